import { Form, type Parsed } from "./check/form.js";
import { readSchema } from "./check/read.js";
import { readDraft } from "./draft/read.js";
import { parse } from "./lenient/parse.js";
import type { Limits } from "./types.js";

export type { Adjustment, AdjustmentCode } from "./lenient/adjustment.js";

/**
 * Reads a `requestedSchema` as servers send them: an illegal schema that a person can still fill in becomes a form, whose `adjustments`
 * list the differences. A legal schema is the same form as with `parse`. What no reading makes a form, such as a nested object, has defects.
 */
export function parseLeniently(requestedSchema: unknown, limits?: Partial<Limits>): Parsed {
  return parse(readDraft, Form, readSchema, requestedSchema, limits);
}
