import type { Form, Parsed } from "../check/form.js";
import type { Read, ReadSchema } from "../check/parse.js";
import type { Reader } from "../draft/entered.js";
import type { Checked, Defect, DraftValue, Field, Json, Limits } from "../types.js";
import { matters } from "./adjustment.js";
import { type LenientCheck, initialOf } from "./answer.js";
import { isObject } from "./core.js";
import { type LenientRead, LenientReader } from "./read.js";

/** The bounds unless others are given: those of the strict reading. */
export const LIMITS: Limits = { schemaBytes: 1 << 20, fields: 256, options: 5000, patternBytes: 1024, patternStates: 10000 };

/** Reads a schema that is not legal. `reader`, `Base` and `read` are those of the strict reading. */
export function parse(reader: Reader, Base: typeof Form, read: ReadSchema, requestedSchema: unknown, limits?: Partial<Limits>): Parsed {
  const bounds = { ...LIMITS, ...limits };
  const strict = read(requestedSchema, bounds);
  // No reading makes a schema of these.
  if ("fields" in strict || /^(not-json|too-large)$/.test(strict[0]!.code)) return strictly(reader, Base, strict);
  const found = new LenientReader(read, JSON.parse(JSON.stringify(requestedSchema) ?? "null"), bounds).document();
  if (!("fields" in found)) return { ok: false, defects: found as readonly [Defect, ...Defect[]] };
  return { ok: true, form: formOf(Base, found, found.check, reader) };
}

/** Returns what the strict reading found. */
export function strictly(reader: Reader, Base: typeof Form, found: Read | readonly Defect[]): Parsed {
  return "fields" in found ? { ok: true, form: new Base(found, reader) } : { ok: false, defects: found as readonly [Defect, ...Defect[]] };
}

function formOf(Base: typeof Form, found: LenientRead, check: LenientCheck, reader: Reader): Form {
  class LenientForm extends Base {
    override readonly adjustments = found.adjustments;
    override readonly remarks = found.adjustments.filter(matters).map(({ field, message }) => (field === undefined ? message : `${field}: ${message}`));
    override readonly initial: Record<string, DraftValue> = initialOf(found.fields);

    override check(content: unknown): Checked {
      const given = isObject(content) ? Object.fromEntries(Object.entries(content).filter(([name, value]) => value !== null || !found.fields.some((field) => field.name === name && field.nullable))) : content;
      const checked = super.check(given);
      if (!checked.ok) return checked;
      const answers = this.fields.flatMap((field: Field): [string, Json][] => {
        if (Object.hasOwn(checked.answers, field.name)) return [[field.name, checked.answers[field.name]!]];
        return field.nullWhenEmpty ? [[field.name, null]] : [];
      });
      return { ...checked, answers: Object.fromEntries(answers) as unknown as typeof checked.answers };
    }
  }
  return new LenientForm(found, check.reader(reader));
}
