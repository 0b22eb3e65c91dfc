import type { Reader } from "../draft/entered.js";
import type { Answers, Checked, Defect, Draft, DraftValue, ElicitContent, Field, Limits, Violation } from "../types.js";
import type { Adjustment } from "../lenient/adjustment.js";
import { type Broken, clip, violation } from "./message.js";
import { LIMITS, type Read, type ReadSchema } from "./parse.js";

/** What `parse` returns. */
export type Parsed = { readonly ok: true; readonly form: Form } | { readonly ok: false; readonly defects: readonly [Defect, ...Defect[]] };

/** How many names of dropped fields are kept. */
const IGNORED = 32;

/** Reads a `requestedSchema` with `readSchema` and finds every defect at once. `reader` reads drafts for the form. */
export function parseWith(reader: Reader, readSchema: ReadSchema, requestedSchema: unknown, limits?: Partial<Limits>): Parsed {
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
  /** Where the schema is not legal and was read leniently: the differences between the schema and this form. */
  declare readonly adjustments?: readonly Adjustment[];
  /** Rules of the server that are not checked here, for the person who answers. */
  declare readonly remarks?: readonly string[];
  /** What is filled in before a person answers, where that is not the defaults themselves. */
  declare readonly initial?: Record<string, DraftValue>;
  readonly #check: Read["judge"];
  readonly #fields: ReadonlyMap<string, Field>;
  readonly #reader: Reader;

  /** @internal */
  constructor(read: Read, reader: Reader) {
    this.#reader = reader;
    ({ fields: this.fields, closed: this.closed, unenforced: this.unenforced, judge: this.#check } = read);
    this.#fields = new Map(read.fields.map((field) => [field.name, field]));
  }

  /**
   * Makes answers of content, or tells every violation in the form's order.
   *
   * Fields that the form does not have are dropped and named in `ignored`, unless the form is closed. Null is no value: a required field
   * that is null is missing, another has the wrong type.
   */
  check(content: unknown): Checked {
    if (typeof content !== "object" || content === null || Array.isArray(content)) return refuse([violation("", "type", "object")]);
    const given = new Map<string, unknown>(Object.entries(content).filter(([, value]) => value !== undefined));
    for (const { name, required } of this.fields) if (required && given.get(name) === null) given.delete(name);
    const extra = [...given.keys()].filter((key) => !this.#fields.has(key)).map(clip);
    const violations = this.fields.flatMap((field) => this.#judge(field, given.get(field.name)));
    if (this.closed) violations.push(...extra.map((key) => violation(key, "additionalProperties")));
    if (violations.length) return refuse(violations);
    // Object.fromEntries defines own properties, whatever their names.
    const answers = Object.fromEntries(this.fields.flatMap(({ name }) => (given.has(name) ? [[name, given.get(name)]] : [])));
    return { ok: true, answers: answers as unknown as Answers, ignored: extra.slice(0, IGNORED) };
  }

  /**
   * Makes answers of what a person entered, or tells every violation in the form's order.
   *
   * A whole number that this page would have to round is refused with the rule `precision`.
   */
  read(draft: Draft): Checked {
    const found = this.fields.map(({ name }) => [name, this.readField(name, Object.hasOwn(draft, name) ? draft[name]! : null)] as const);
    const violations = found.flatMap(([, read]) => (read.ok ? [] : read.violations));
    if (violations.length) return refuse(violations);
    return this.check(Object.fromEntries(found.map(([name, read]) => [name, read.ok ? read.value : null])));
  }

  /** Reads one field, for checks while a person enters it. Without `value` where an optional field is left empty. */
  readField(name: string, value: DraftValue): { readonly ok: true; readonly value?: ElicitContent[string] } | { readonly ok: false; readonly violations: readonly Violation[] } {
    const field = this.#fields.get(name);
    if (!field) return refuse([violation(clip(name), "additionalProperties")]);
    const unread: Violation[] = [];
    const read = this.#reader(field, value, (...rule) => void unread.push(violation(name, ...rule)));
    // A field that could not be read is not also missing.
    const violations = unread.length ? unread : this.#judge(field, read);
    if (violations.length) return refuse(violations);
    return { ok: true, ...(read !== undefined && { value: read }) };
  }

  /** Returns every field's default, in the form's order. Each passes its field's rules; required fields may still be missing. */
  defaults(): ElicitContent {
    return Object.fromEntries(this.fields.flatMap(({ name, default: value }) => (value === undefined ? [] : [[name, copy(value)]])));
  }

  #judge(field: Field, value: unknown): Violation[] {
    const found: Violation[] = [];
    const broken: Broken = (...rule) => void found.push(violation(field.name, ...rule));
    if (value !== undefined) this.#check(field, value, broken);
    else if (field.required) broken("required");
    return found;
  }
}

const copy = (value: NonNullable<Field["default"]>): ElicitContent[string] => (typeof value === "object" ? [...value] : value);

const refuse = (violations: readonly Violation[]) => ({ ok: false as const, violations: violations as readonly [Violation, ...Violation[]] });
