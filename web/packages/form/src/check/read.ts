import { schemaReader } from "./parse.js";
import { compile } from "./pattern.js";

/** Reads a requestedSchema, patterns included. */
export const readSchema = schemaReader(compile);
