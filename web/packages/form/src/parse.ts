import { type Parsed, parseWith } from "./check/form.js";
import { readSchema } from "./check/read.js";
import { readDraft } from "./draft/read.js";
import type { Limits } from "./types.js";

/** Reads a `requestedSchema` and finds every defect at once. */
export function parse(requestedSchema: unknown, limits?: Partial<Limits>): Parsed {
  return parseWith(readDraft, readSchema, requestedSchema, limits);
}
