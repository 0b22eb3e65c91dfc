import type { Reader } from "../draft/entered.js";
import type { Answers, Checked, Defect, Draft, DraftValue, ElicitContent, Field, Limits, Violation } from "../types.js";
import { checkField, type Matcher } from "./field.js";
import { type Broken, clip, violation } from "./message.js";
import { LIMITS, type Read, readSchema } from "./parse.js";

/** What `parse` returns. */
export type Parsed = { readonly ok: true; readonly form: Form } | { readonly ok: false; readonly defects: readonly [Defect, ...Defect[]] };

/** How many names of dropped fields are kept. */
const IGNORED = 32;

/** Reads a `requestedSchema` and finds every defect at once. `reader` reads drafts for the form. */
export function parseWith(reader: Reader, requestedSchema: unknown, limits?: Partial<Limits>): Parsed {
  const read = readSchema(requestedSchema, { ...LIMITS, ...limits });
  if ("fields" in read) return { ok: true, form: new Form(read, reader) };
  return { ok: false, defects: read as readonly [Defect, ...Defect[]] };
}

/** A legal form. `parse` makes it. */
export class Form {
  /** The fields in the schema's order. None at all asks only to confirm. */
  readonly fields: readonly Field[];
  /** Whether fields that are not in the form are refused and not merely dropped (`additionalProperties: false`). */
  readonly closed: boolean;
  /** The fields whose pattern is not checked, because it needs look-around or back-references. */
  readonly unenforced: readonly string[];
  readonly #matchers: ReadonlyMap<string, Matcher>;
  readonly #places: ReadonlyMap<string, number>;
  readonly #reader: Reader;

  /** @internal */
  constructor(read: Read, reader: Reader) {
    this.#reader = reader;
    this.fields = read.fields;
    this.closed = read.closed;
    this.unenforced = read.unenforced;
    this.#matchers = read.matchers;
    this.#places = new Map(read.fields.map((field, i) => [field.name, i]));
  }

  /**
   * Makes answers of content, or tells every violation in the form's order.
   *
   * Fields that the form does not have are dropped and named in `ignored`, unless the form is closed. Null is no value: a required field
   * that is null is missing, another has the wrong type.
   */
  check(content: unknown): Checked {
    if (typeof content !== "object" || content === null || Array.isArray(content)) return refuse([violation("", "type", "object")]);
    const found: Violation[][] = [];
    const extra: Violation[] = [];
    const ignored: string[] = [];
    const values: unknown[] = [];
    for (const [key, value] of Object.entries(content)) {
      const place = this.#places.get(key);
      if (value === undefined) continue;
      if (place === undefined) {
        if (this.closed) extra.push(violation(clip(key), "additionalProperties"));
        else if (ignored.length < IGNORED) ignored.push(clip(key));
        continue;
      }
      const field = this.fields[place]!;
      if (value === null && field.required) continue;
      values[place] = value;
      found[place] = this.#violations(field, value);
    }
    this.fields.forEach((field, i) => {
      if (field.required && values[i] === undefined) found[i] = [violation(field.name, "required")];
    });
    const violations = [...found.flat(), ...extra].filter((entry) => entry);
    if (violations.length) return refuse(violations);
    // Object.fromEntries defines own properties, whatever their names.
    const answers = Object.fromEntries(this.fields.flatMap(({ name }, i) => (values[i] === undefined ? [] : [[name, values[i]]])));
    return { ok: true, answers: answers as unknown as Answers, ignored };
  }

  /**
   * Makes answers of what a person entered, or tells every violation in the form's order.
   *
   * A whole number that this page would have to round is refused with the rule `precision`.
   */
  read(draft: Draft): Checked {
    const entries: [string, unknown][] = [];
    const unread = new Map<string, Violation>();
    for (const field of this.fields) {
      const value = this.#value(field, draft, (rule, limit) => unread.set(field.name, violation(field.name, rule, limit)));
      if (value !== undefined) entries.push([field.name, value]);
    }
    const checked = this.check(Object.fromEntries(entries));
    if (!unread.size) return checked;
    // A field that could not be read is not also missing.
    const judged = checked.ok ? [] : checked.violations;
    return refuse(this.fields.flatMap(({ name }) => unread.get(name) ?? judged.filter(({ field }) => field === name)));
  }

  /** Reads one field, for checks while a person enters it. Without `value` where an optional field is left empty. */
  readField(name: string, value: DraftValue): { readonly ok: true; readonly value?: ElicitContent[string] } | { readonly ok: false; readonly violations: readonly Violation[] } {
    const place = this.#places.get(name);
    if (place === undefined) return refuse([violation(clip(name), "additionalProperties")]);
    const field = this.fields[place]!;
    let violations: Violation[] = [];
    const read = this.#reader(field, value, (rule, limit) => void violations.push(violation(name, rule, limit)));
    if (!violations.length) {
      if (read !== undefined) violations = this.#violations(field, read);
      else if (field.required) violations = [violation(name, "required")];
    }
    if (violations.length) return refuse(violations);
    return { ok: true, ...(read !== undefined && { value: read }) };
  }

  /** Returns every field's default, in the form's order. Each passes its field's rules; required fields may still be missing. */
  defaults(): ElicitContent {
    return Object.fromEntries(this.fields.flatMap(({ name, default: value }) => (value === undefined ? [] : [[name, copy(value)]])));
  }

  #value(field: Field, draft: Draft, broken: Broken) {
    return this.#reader(field, Object.hasOwn(draft, field.name) ? draft[field.name]! : null, broken);
  }

  #violations(field: Field, value: unknown): Violation[] {
    const found: Violation[] = [];
    checkField(field, value, (rule, limit) => void found.push(violation(field.name, rule, limit)), this.#matchers.get(field.name));
    return found;
  }
}

const copy = (value: NonNullable<Field["default"]>): ElicitContent[string] => (typeof value === "object" ? [...value] : value);

const refuse = (violations: readonly Violation[]) => ({ ok: false as const, violations: violations as readonly [Violation, ...Violation[]] });
