// Forms as servers send them: an illegal schema that a person can still fill in is read by a fixed table, as in the Rust crate
// (`core/src/form/lenient`). Nested objects and lists of objects stay unreadable.
import type { Read, ReadSchema } from "../check/parse.js";
import { bytesOf } from "../check/text.js";
import type { ChoiceOption, Defect, DefectCode, Field, Limits } from "../types.js";
import type { Adjustment, AdjustmentCode } from "./adjustment.js";
import { JUDGE, LenientCheck } from "./answer.js";
import { clip, CONSTRAINS, isObject, kindOf } from "./core.js";
import { Flat, flatten, same, SCHEMAS } from "./flat.js";

/** The most keywords and options that one reading looks at: definitions can be read in place many times. */
const STEPS = 200_000;
/** The most bytes that one reading copies or compares: a definition that many fields share is copied into each. */
const BYTES = 8 << 20;
/** The bytes as which one compilation of a pattern counts. */
const PATTERN_BYTES = 4096;
/** The most adjustments that are listed. */
const ADJUSTMENTS = 1_000;
/** The deepest nesting of alternatives and items. */
const DEPTH = 8;
/** The most alternatives of a union. */
const ALTERNATIVES = 64;
/** The most comparisons of two lists of options. */
const COMPARED = 1_000_000;
/** Keywords that say what the value is; the others are rules and annotations. */
const SHAPES = ["anyOf", "oneOf", "enum", "const"];
/** Keywords that are used elsewhere, or that are not rules. */
const USED = new Set("type title description anyOf oneOf allOf $ref enum enumNames nullable items required properties".split(" "));
const BOUNDS_OF_TEXT = ["minLength", "maxLength"];
const BOUNDS_OF_NUMBER = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
const BOUNDS = [...BOUNDS_OF_TEXT, ...BOUNDS_OF_NUMBER];

/** A kind of field, without its name and texts. */
type Kind = Record<string, unknown> & { kind: Field["kind"] };
const asField = (kind: Kind): Field => ({ name: "", label: "", required: true, ...kind }) as unknown as Field;
type ScalarType = "string" | "number" | "integer" | "boolean";
const WORDS: Readonly<Record<ScalarType, string>> = { string: "text", number: "a number", integer: "a whole number", boolean: "yes or no" };

/** A location in the schema, and the field that it belongs to. */
export class Place {
  constructor(
    readonly pointer = "",
    readonly field?: string,
  ) {}

  child(key: string | number): Place {
    return new Place(`${this.pointer}/${`${key}`.replaceAll("~", "~0").replaceAll("/", "~1")}`, this.field);
  }
}
const placeOf = (name: string) => new Place(new Place("/properties").child(name).pointer, name);

/** What was read of a field. Without `kind` it accepts no value but null. */
interface Reading {
  readonly title?: string;
  readonly description?: string;
  readonly kind?: Kind | undefined;
  readonly nullable: boolean;
  /** `required: true` in the field itself, as in JSON Schema draft 3. */
  readonly required: boolean;
}

/** What was read of a schema that is not legal. */
export interface LenientRead extends Read {
  readonly adjustments: readonly Adjustment[];
  readonly check: LenientCheck;
}

/** Thrown for a part that no reading can make readable. The reason is among the defects. */
export class Unreadable extends Error {}

type OptionDraft = ChoiceOption;

/** The state of one reading. */
export class LenientReader {
  readonly adjustments: Adjustment[] = [];
  readonly check = new LenientCheck();
  readonly #budget: { left: number };
  #unenforced: string[] = [];
  #defects: Defect[] = [];
  #steps = STEPS;
  #bytes = BYTES;
  #overspent = false;
  /** What a browser has lost of the schema. No other alternative takes its place, since the crate reads the form as it is. */
  #unknown: Defect | undefined;

  constructor(
    readonly read: ReadSchema,
    readonly root: unknown,
    readonly limits: Limits,
  ) {
    this.#budget = { left: limits.patternStates };
  }

  document(): LenientRead | readonly Defect[] {
    try {
      const { fields, closed } = this.#form();
      // The schema is illegal, such as by a default of null, and others must know that.
      if (!this.adjustments.length) this.adjust("keyword-ignored", new Place(), "a part of the schema that has no meaning here is ignored");
      if (!this.#defects.length && !this.#overspent && !this.#unknown) return { fields, closed, judge: this.check.check, unenforced: this.#unenforced, adjustments: this.adjustments, check: this.check };
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
    }
    if (this.#unknown) return [this.#unknown];
    if (!this.#defects.length) this.#tooLarge(new Place());
    // A definition that several alternatives share has the same defects each time.
    return [...new Map(this.#defects.map((defect) => [JSON.stringify(defect), defect])).values()];
  }

  adjust(code: AdjustmentCode, { pointer, field }: Place, message: string): void {
    // Each adjustment repeats the name of its field, which may be long.
    if (!this.#takes(bytesOf(pointer))) return;
    const adjustment: Adjustment = { pointer, ...(field !== undefined && { field }), code, message };
    const known = this.adjustments.slice(-16).some((one) => one.pointer === pointer && one.field === field && one.code === code && one.message === message);
    // A definition that several alternatives share says the same each time.
    if (this.adjustments.length < ADJUSTMENTS && !known) this.adjustments.push(adjustment);
  }

  defect({ pointer }: Place, code: DefectCode, message: string): Unreadable {
    this.#defects.push({ pointer, code, args: [], message });
    return new Unreadable(message);
  }

  /** Says that a browser does not have a part of the schema as the server wrote it, so that no reading of the form is right. */
  #lost({ pointer }: Place, message: string): Unreadable {
    this.#unknown ??= { pointer, code: "option-shape", args: [], message };
    return new Unreadable(message);
  }

  /** Counts work, which definitions in place can multiply. */
  spend(steps: number, place: Place): void {
    if (this.#steps < steps || this.#overspent) throw this.#tooLarge(place);
    this.#steps -= steps;
  }

  /** Counts bytes that are copied or compared. */
  spendBytes(bytes: number, place: Place): void {
    if (!this.#takes(bytes)) throw this.#tooLarge(place);
  }

  /** Counts the texts in a value. Counting ends with the bytes that are left. */
  spendValue(value: unknown, place: Place): void {
    const weigh = (value: unknown): boolean => {
      if (!this.#takes(typeof value === "string" ? bytesOf(value) + 1 : typeof value === "number" ? 8 : 1)) return false;
      if (Array.isArray(value)) return value.every(weigh);
      return !isObject(value) || Object.entries(value).every(([name, one]) => this.#takes(bytesOf(name)) && weigh(one));
    };
    if (!weigh(value)) throw this.#tooLarge(place);
  }

  /** Counts the keywords that are copied into one more alternative. */
  #spendKeywords(flat: Flat, place: Place): void {
    for (const [key, value] of flat.keywords) if (!SCHEMAS.has(key)) this.spendValue(value, place);
  }

  /** Whether so many bytes are left. */
  #takes(bytes: number): boolean {
    if (this.#bytes < bytes) this.#overspent = true;
    else this.#bytes -= bytes;
    return !this.#overspent;
  }

  #tooLarge(place: Place): Unreadable {
    // Nothing else is read, so that what is left out of one alternative is not spent on the next.
    this.#overspent = true;
    return this.defect(place, "too-large", "the definitions of this form make it too large to show");
  }

  #ignoredRule(place: Place, key: string): void {
    this.adjust("rule-not-enforced", place.child(key), `the server's rule \`${clip(key)}\` is not checked here`);
  }

  #form(): { fields: readonly Field[]; closed: boolean } {
    const place = new Place();
    const { root } = this;
    if (root === null) {
      this.adjust("no-schema", place, "there is no schema: the question asks to confirm");
      return { fields: [], closed: false };
    }
    if (!isObject(root) && !(Array.isArray(root) && !root.length)) throw this.defect(place, "not-an-object", `a requestedSchema must be an object, not ${kindOf(root)}`);
    const flat = this.#onlyObject(flatten(this, root, place), place);
    this.#checkRootType(flat, flat.properties.some((properties) => !isEmpty(properties)), place);
    const closed = this.#rootRules(flat, place);
    if (!flat.properties.length) this.adjust("no-properties", place, "the form has no fields: the question asks to confirm");
    return { fields: this.#fields(flat), closed };
  }

  /** Puts the only object of a root `anyOf` or `oneOf` in place, if the schema has no fields of its own. */
  #onlyObject(flat: Flat, place: Place): Flat {
    for (const key of ["anyOf", "oneOf"]) {
      const entries = flat.get(key);
      if (flat.properties.length || !Array.isArray(entries)) continue;
      const at = place.child(key);
      const objects = entries.map((entry) => flatten(this, entry, at)).filter((entry) => !entry.isNull());
      if (objects.length === 1) {
        this.adjust("root-type", at, "the only form among the alternatives is read");
        return flat.without(key).over(objects[0]!);
      }
      if (objects.some((object) => object.properties.length)) throw this.defect(at, "unsupported-keyword", "the question offers several forms to choose from; a person can be shown one");
    }
    return flat;
  }

  #checkRootType(flat: Flat, hasFields: boolean, place: Place): void {
    const at = place.child("type");
    const type = flat.get("type");
    if (type === "object") return;
    if (Array.isArray(type) && type.includes("object")) this.adjust("root-type", at, "the answer is an object");
    else if (type !== undefined && hasFields) this.adjust("root-type", at, "the form's `type` is ignored, since it has fields");
    else if (type === undefined) {
      if (flat.properties.length) this.adjust("root-type", at, "the form has no `type`; it has fields, so the answer is an object");
    } else throw this.defect(at, "root-type", "the answer to a question is an object of fields; this schema asks for another type");
  }

  /** Reads the rules of the schema itself. Returns whether other fields are rejected. */
  #rootRules(flat: Flat, place: Place): boolean {
    let closed = false;
    for (const [key, value] of flat.keywords) {
      if (key === "type") continue;
      if (key === "additionalProperties" && (typeof value === "boolean" || ((isObject(value) || Array.isArray(value)) && !Object.keys(value).length))) {
        if (typeof value === "boolean") closed = !value;
      } else if (CONSTRAINS.has(key)) this.#ignoredRule(place, key);
    }
    return closed;
  }

  #fields(flat: Flat): readonly Field[] {
    const place = new Place("/properties");
    const fields: Field[] = [];
    for (const properties of flat.properties) {
      this.spendBytes(0, place);
      if (Array.isArray(properties) && !properties.length) {
        this.adjust("empty-list", place, "an empty list stands in place of an empty object and is read as one");
        continue;
      }
      if (properties === null) {
        this.adjust("no-properties", place, "the form has no fields: the question asks to confirm");
        continue;
      }
      if (!isObject(properties)) throw this.defect(place, "no-properties", `\`properties\` must be an object of fields, not ${kindOf(properties)}`);
      const entries = Object.entries(properties);
      const count = fields.length + entries.length;
      if (count > this.limits.fields) throw this.defect(place, "too-many-fields", `${count} fields; ${this.limits.fields} at most`);
      for (const [name, schema] of entries) {
        if (fields.some((field) => field.name === name)) {
          this.adjust("all-of", placeOf(name), "this field is there twice; the first is shown");
          continue;
        }
        // All fields are read, so that every reason is told at once.
        const field = this.#try(() => this.#field(name, schema));
        if (field) fields.push(field);
      }
    }
    this.#required(flat.required, fields);
    return fields;
  }

  #try<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (error instanceof Unreadable) return undefined;
      throw error;
    }
  }

  #field(name: string, schema: unknown): Field | undefined {
    const place = placeOf(name);
    const read = this.#strictly(name, schema) ?? this.#value(flatten(this, schema, place), place, 0);
    if (!read.kind) {
      this.adjust("field-dropped", place, `\`${clip(name)}\` accepts no value, so it is left out`);
      return undefined;
    }
    const { title, description, nullable, required, kind } = read;
    return {
      name,
      label: /\P{White_Space}/u.test(title ?? "") ? title : name,
      ...(title !== undefined && { title }),
      ...(description !== undefined && { description }),
      required: required && !nullable,
      ...(nullable && { nullable, nullWhenEmpty: required }),
      ...kind,
    } as unknown as Field;
  }

  /** Reads a field with the strict reader. */
  #read(name: string, schema: unknown, place: Place): Field | readonly Defect[] {
    const left = this.#budget.left;
    const read = this.read({ type: "object", properties: { [name]: schema } }, this.limits, this.#budget);
    if (!("fields" in read)) {
      this.#budget.left = left;
      return read;
    }
    if (read.unenforced.length && name === place.field) this.#unenforced.push(name);
    const judge: Read["judge"] = (_, value, broken) => read.judge(read.fields[0]!, value, broken);
    return Object.assign({ ...read.fields[0]! }, { [JUDGE]: judge });
  }

  /** Reads a legal field. */
  #strictly(name: string, schema: unknown): Reading | undefined {
    const read = this.#read(name, schema, placeOf(name));
    if (Array.isArray(read)) return undefined;
    const { title, description, kind } = taken(read as Field);
    return { ...texts(title, description), kind, nullable: false, required: false };
  }

  #required(lists: readonly unknown[], fields: readonly Field[]): void {
    const place = new Place("/required");
    const known = new Map<unknown, Field>(fields.map((field) => [field.name, field]));
    for (const list of lists) {
      if (!Array.isArray(list)) {
        this.adjust("required-dropped", place, "`required` is not a list of field names and is ignored");
        continue;
      }
      list.forEach((name: unknown, i) => {
        const field = known.get(name) as { -readonly [K in keyof Field]: Field[K] } | undefined;
        if (field) field[field.nullable ? "nullWhenEmpty" : "required"] = true;
        else if (typeof name === "string")
          this.adjust("required-dropped", place.child(i), `the server requires \`${clip(name)}\`, which the form does not have; it is not asked for`);
        else this.adjust("keyword-ignored", place.child(i), "an entry of `required` is not a name and is ignored");
      });
    }
  }

  /** Reads the field or value that these keywords describe. */
  #value(flat: Flat, place: Place, depth: number): Reading {
    if (depth > DEPTH) throw this.defect(place, "nested", "the alternatives of this field are nested too deep to show");
    this.spendBytes(bytesOf(place.pointer), place);
    const required = flat.required[0] === true;
    const types = this.#types(flat, place);
    let nullable = flat.get("nullable") === true || types.includes("null");
    const kinds = types.filter((type) => type !== "null");
    if (flat.isNull()) return this.#reading(flat, undefined, true, required);
    const read = this.#alternatives(flat, place, depth);
    if (read && !(read instanceof Flat)) {
      nullable ||= read.nullable;
      this.#noteNull(nullable, place);
      return { ...read, nullable, required };
    }
    const rest = read ?? flat;
    const options = this.#options(rest, place, () => (nullable = true));
    this.#noteNull(nullable, place);
    const kind = options ? this.#choice(options, rest, place) : this.#ofTypes(kinds, rest, place, depth);
    return this.#reading(rest, kind, nullable, required);
  }

  #reading(flat: Flat, kind: Kind | undefined, nullable: boolean, required: boolean): Reading {
    return { ...texts(flat.get("title"), flat.get("description")), kind, nullable, required };
  }

  #noteNull(nullable: boolean, place: Place): void {
    if (nullable) this.adjust("null-option", place, "null is accepted too, so the field may be left empty");
  }

  /** Returns the names of the types, each once. */
  #types(flat: Flat, place: Place): readonly string[] {
    const type = flat.get("type");
    if (type === undefined) return [];
    if (typeof type === "string") return [type];
    if (Array.isArray(type) && type.length > ALTERNATIVES) throw this.defect(place.child("type"), "too-many-options", `${type.length} types; ${ALTERNATIVES} at most`);
    if (Array.isArray(type)) return [...new Set(type.filter((name) => typeof name === "string"))];
    this.adjust("keyword-ignored", place.child("type"), `\`type\` is ${kindOf(type)} and is ignored`);
    return [];
  }

  /**
   * Reads `anyOf` or `oneOf`: options, a value or null, or a union. Nothing if there is neither; the keywords that are left where the
   * alternatives only limit the options beside them.
   */
  #alternatives(flat: Flat, place: Place, depth: number): Reading | Flat | undefined {
    let found: readonly [string, readonly unknown[]] | undefined;
    for (const key of ["oneOf", "anyOf"]) {
      const entries = flat.get(key);
      if (!flat.has(key)) continue;
      if (!Array.isArray(entries) || !entries.length) this.adjust("keyword-ignored", place.child(key), `\`${key}\` has no alternatives and is ignored`);
      else if (found) this.#ignoredRule(place, key);
      else found = [key, entries];
    }
    if (!found) return undefined;
    const [key, entries] = found;
    const outer = flat.without("anyOf", "oneOf");
    const at = place.child(key);
    this.spend(entries.length, at);
    const all = entries.map((entry) => flatten(this, entry, at));
    const parts = all.filter((part) => !part.isNull());
    let nullable = parts.length < all.length;
    const outerOptions = outer.has("enum", "const");
    if (!parts.length) return this.#reading(outer, undefined, true, false);
    const areOptions = parts.every((part) => part.has("const", "enum") && !part.has("anyOf", "oneOf"));
    // A single list of options is read as the field itself, with its titles.
    const isList = parts.length === 1 && (outerOptions || !parts[0]!.has("const"));
    if (areOptions && outer.get("type") !== "array" && !isList) {
      const options = this.#constants(parts, outer, at, () => (nullable = true));
      if (options) {
        const typed = options.some((option) => option.typed !== undefined);
        if (!typed && (key === "anyOf" || outer.get("type") !== "string")) this.adjust("options-spelling", at, "the options are given in a spelling that forms do not have");
        const kind = this.#choice(options, outer, place);
        return this.#reading(outer, kind, nullable, false);
      }
    }
    if (outerOptions) {
      // The options stand beside the alternatives, which then only repeat or limit them.
      this.adjust("rule-not-enforced", at, `the server's rule \`${key}\` is not checked here`);
      return outer;
    }
    const read = this.#union(parts, outer, place, at, depth);
    return { ...read, nullable: nullable || read.nullable };
  }

  /** Reads the alternatives one by one, and joins those that a person can enter. */
  #union(parts: readonly Flat[], outer: Flat, place: Place, at: Place, depth: number): Reading {
    if (parts.length === 1) return this.#value(outer.over(parts[0]!), place, depth + 1);
    if (parts.length > ALTERNATIVES) throw this.defect(at, "too-many-options", `${parts.length} alternatives; ${ALTERNATIVES} at most`);
    const before = this.#defects.length;
    const base = outer.without("default", "title", "description");
    const kinds: Kind[] = [];
    const lists: Kind[] = [];
    let nullable = false;
    for (const part of parts) {
      this.#spendKeywords(base, place);
      // An alternative's own type replaces that of the field, which only repeats it.
      const read = this.#try(() => this.#value(part.over(base), place, depth + 1));
      if (!read) continue;
      nullable ||= read.nullable;
      if (!read.kind) continue;
      if (read.kind.kind === "union") kinds.push(...(read.kind["alternatives"] as readonly Field[]).map((one) => taken(one).kind));
      else (isListKind(read.kind) ? lists : kinds).push(read.kind);
    }
    if (kinds.length > ALTERNATIVES) throw this.defect(at, "too-many-options", `${kinds.length} alternatives; ${ALTERNATIVES} at most`);
    if (!kinds.length && !lists.length) {
      if (this.#defects.length === before) return this.#reading(outer, undefined, true, false);
      throw new Unreadable();
    }
    return this.#reading(outer, this.#someOf(kinds, lists, before, outer, place, at), nullable, false);
  }

  /** Joins what could be read of several alternatives. */
  #someOf(kinds: readonly Kind[], lists: readonly Kind[], before: number, outer: Flat, place: Place, at: Place): Kind {
    if ((kinds.length ? lists.length > 0 : lists.length > 1) || this.#defects.length > before) {
      this.#defects.length = before;
      this.adjust("alternative-dropped", at, "an alternative that cannot be shown is left out");
    }
    return kinds.length ? this.#joined(kinds, outer, place, at) : lists[0]!;
  }

  /** Joins single values: choices into one choice, anything else into a union. */
  #joined(kinds: readonly Kind[], outer: Flat, place: Place, at: Place): Kind {
    const distinct = [...new Map(kinds.map((kind) => [JSON.stringify(sorted(kind)), kind])).values()];
    if (distinct.every(({ kind }) => kind === "choice"))
      return this.#choice(
        distinct.flatMap((kind) => kind["options"] as readonly ChoiceOption[]),
        outer,
        place,
      );
    if (distinct.length === 1) return this.#withDefault(distinct[0]!, outer, place);
    const names = [...new Set(distinct.map(({ kind }) => NAMES[kind]))];
    this.adjust("union", at, `several types are accepted (${names.join(", or ")}); the text is sent as the first that it fits`);
    return this.#withDefault({ kind: "union", alternatives: distinct.map(asField) }, outer, place);
  }

  /** Reads a value without options: of one type, or of several. */
  #ofTypes(types: readonly string[], flat: Flat, place: Place, depth: number): Kind {
    if (types.length < 2) return this.#ofType(types[0], flat, place, depth);
    const before = this.#defects.length;
    const base = flat.without("default");
    const read = types.map((type) => this.#try(() => this.#ofType(type, base, place, depth))).filter((kind) => kind !== undefined);
    if (!read.length) throw new Unreadable();
    const scalars = read.filter((kind) => !isListKind(kind));
    return this.#someOf(scalars, read.filter(isListKind), before, flat, place, place.child("type"));
  }

  #ofType(type: string | undefined, flat: Flat, place: Place, depth: number): Kind {
    if (type === "array") return this.#list(flat, place, depth);
    if (type === undefined && !flat.properties.length && !flat.has("patternProperties") && flat.has("items", "minItems", "maxItems", "uniqueItems")) {
      this.adjust("type-assumed", place, "the field has no `type`; it has `items`, so it is a list");
      return this.#list(flat, place, depth);
    }
    if (type === "object" || (type === undefined && (flat.properties.length || flat.has("patternProperties"))))
      throw this.defect(place.child(type === undefined ? "properties" : "type"), "nested", `\`${clip(place.field ?? "")}\` is an object with fields of its own, and a form is flat`);
    return this.#scalar(type === undefined ? this.#assumedType(flat, place) : this.#scalarType(type, place), flat, place);
  }

  /** Returns the type of a field that has none. */
  #assumedType(flat: Flat, place: Place): ScalarType {
    const value = flat.get("default");
    const type: ScalarType = flat.has("minLength", "maxLength", "pattern", "format")
      ? "string"
      : flat.has("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
        ? "number"
        : typeof value === "boolean" || typeof value === "number"
          ? (typeof value as "boolean" | "number")
          : "string";
    this.adjust("type-assumed", place, `the field has no \`type\`; it is read as ${WORDS[type]}`);
    return type;
  }

  /** Returns the type that a name means; text for a name that nothing is known of. */
  #scalarType(name: string, place: Place): ScalarType {
    if (Object.hasOwn(WORDS, name)) return name as ScalarType;
    const lower = name.toLowerCase();
    const type: ScalarType = /^(int|integer|int32|int64|long|short|uint)$/.test(lower)
      ? "integer"
      : /^(number|float|double|decimal)$/.test(lower)
        ? "number"
        : /^(bool|boolean|checkbox)$/.test(lower)
          ? "boolean"
          : "string";
    this.adjust("type-name", place.child("type"), `\`${clip(name)}\` is not a type of JSON; the field is read as ${WORDS[type]}`);
    return type;
  }

  /** Reads an array: several choices, or values that are written one per line. */
  #list(flat: Flat, place: Place, depth: number): Kind {
    for (const key of SHAPES) if (flat.has(key)) this.#ignoredRule(place, key);
    const at = place.child("items");
    let item: Kind | undefined;
    if (!flat.has("items")) item = this.#scalar("string", new Flat(), at);
    else {
      item = this.#value(flatten(this, flat.get("items"), at).without("default"), at, depth + 1).kind;
      if (!item) throw this.defect(at, "array-items", "the items of this list accept no value but null");
    }
    const bounds = this.#listBounds(flat, place);
    let kind: Kind;
    if (item.kind === "choice") {
      const options = item["options"] as readonly ChoiceOption[];
      if (bounds.minItems! > options.length) {
        this.#bound(place.child("minItems"), `a selection of that many of ${options.length} options`);
        delete bounds.minItems;
      }
      kind = { kind: "choices", ...bounds, options };
    } else if (isListKind(item)) throw this.defect(at, "array-items", "this field is a list of lists, which a form cannot show");
    else {
      this.adjust("lines", place, "the list is written, one value per line");
      kind = { kind: "lines", item: asField(item), ...bounds };
    }
    for (const key of ["prefixItems", "additionalItems", "contains", "minContains", "maxContains"]) if (flat.has(key)) this.#ignoredRule(place, key);
    return this.#withDefault(kind, flat, place);
  }

  #listBounds(flat: Flat, place: Place): { minItems?: number; maxItems?: number; unique: boolean } {
    const [minItems, maxItems] = [this.#count(flat, "minItems", place), this.#count(flat, "maxItems", place)];
    const possible = !(minItems! > maxItems!);
    if (!possible) this.#bound(place.child("minItems"), `a list of at least ${minItems} and at most ${maxItems} values`);
    const unique = flat.get("uniqueItems");
    if (unique !== undefined && typeof unique !== "boolean") this.adjust("keyword-ignored", place.child("uniqueItems"), `\`uniqueItems\` is ${kindOf(unique)} and is ignored`);
    return { ...(possible && minItems !== undefined && { minItems }), ...(possible && maxItems !== undefined && { maxItems }), unique: unique === true };
  }

  #count(flat: Flat, key: string, place: Place): number | undefined {
    const value = flat.get(key);
    if (value === undefined || (Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 64)) return value as number | undefined;
    this.adjust("bound-not-enforced", place.child(key), `\`${key}\` is not a whole number from 0 and is not checked`);
    return undefined;
  }

  /** Notes a bound that no value meets. */
  #bound(place: Place, wanted: string): void {
    this.adjust("bound-not-enforced", place, `the server asks for ${wanted}, which does not exist; this is not checked`);
  }

  /** Fills in the default of a kind that has none yet, if the field accepts it. */
  #withDefault(kind: Kind, flat: Flat, place: Place): Kind {
    const value = flat.get("default");
    if (value === undefined || value === null) return kind;
    if (!this.check.accepts(asField(kind), value)) {
      this.adjust("default-dropped", place.child("default"), "the default is not a value that the field accepts, and is ignored");
      return kind;
    }
    return { ...kind, default: value };
  }

  /** Creates a choice from options that may repeat. */
  #choice(drafts: readonly OptionDraft[], flat: Flat, place: Place): Kind {
    const [options, dropped] = distinct(drafts);
    if (dropped) this.adjust("option-dropped", place, "an option that occurs twice is shown once");
    if (options.some(({ typed }) => typed !== undefined)) this.adjust("typed-options", place, "the options are numbers or yes and no, and are sent as such");
    return this.#withDefault({ kind: "choice", options }, flat, place);
  }

  /** Reads `enum` or a `const`. Nothing if there are no options. */
  #options(flat: Flat, place: Place, foundNull: () => void): readonly OptionDraft[] | undefined {
    if (flat.get("type") === "array") return undefined;
    const values = flat.get("enum");
    if (Array.isArray(values)) {
      const titles = this.#titles(flat, values.length, place);
      return this.#drafts(
        values.map((value: unknown, i) => [value, titles[i]]),
        place.child("enum"),
        foundNull,
      );
    }
    if (values !== undefined) {
      this.adjust("keyword-ignored", place.child("enum"), `\`enum\` is ${kindOf(values)} and is ignored`);
      return undefined;
    }
    // The only value of a typed field is a rule of that type.
    if (flat.has("const") && !flat.has("type")) return this.#drafts([[flat.get("const"), undefined]], place.child("const"), foundNull);
    return undefined;
  }

  /** Reads alternatives that are all constants or lists of constants. */
  #constants(parts: readonly Flat[], outer: Flat, at: Place, foundNull: () => void): readonly OptionDraft[] | undefined {
    let entries: (readonly [unknown, unknown])[] = [];
    for (const part of parts) {
      const values = part.get("enum");
      const title = text(part.get("title"));
      if (part.has("const")) entries.push([part.get("const"), title ?? part.get("description")]);
      else if (!Array.isArray(values)) return undefined;
      else if (values.length === 1) entries.push([values[0], title]);
      else entries.push(...values.map((value: unknown) => [value, undefined] as const));
    }
    // Options that stand beside the alternatives limit them.
    const allowed = outer.get("enum");
    if (Array.isArray(allowed) && allowed.length * entries.length < COMPARED) {
      const limited = entries.filter(([value]) => allowed.some((one) => same(one, value)));
      if (limited.length) entries = limited;
    }
    return this.#drafts(entries, at, foundNull);
  }

  #drafts(entries: readonly (readonly [unknown, unknown])[], at: Place, foundNull: () => void): readonly OptionDraft[] | undefined {
    if (entries.length > this.limits.options) throw this.defect(at, "too-many-options", `${entries.length} options; a field may have ${this.limits.options} at most`);
    this.spend(entries.length, at);
    // `JSON.parse` has rounded it, and another option may be the same number now. The crate keeps the text.
    const rounded = entries.find(([value]) => Number.isInteger(value) && !Number.isSafeInteger(value));
    if (rounded) throw this.#lost(at, `the option ${rounded[0] as number} may have more digits than a browser keeps`);
    const drafts: OptionDraft[] = [];
    let hidden = false;
    for (const [value, title] of entries) {
      if (value === null) foundNull();
      else if (typeof value === "object") hidden = true;
      else drafts.push({ value: `${value as string}`, ...(typeof title === "string" && { title }), ...(typeof value !== "string" && { typed: value as number | boolean }) });
    }
    if (hidden) this.adjust("option-dropped", at, "an option that is a list or an object cannot be shown and is left out");
    if (!drafts.length) {
      if (hidden) throw this.defect(at, "option-shape", "none of the options can be shown, since they are lists or objects");
      this.adjust("no-options", at, "the server's list of options is empty and is not checked");
      return undefined;
    }
    if (drafts.length < entries.length) this.adjust("option-dropped", at, "null is not shown among the options");
    return drafts;
  }

  /** Returns the titles of `enumNames`; empty if they do not name the options. */
  #titles(flat: Flat, options: number, place: Place): readonly unknown[] {
    const names = flat.get("enumNames");
    if (names === undefined || (Array.isArray(names) && names.length === options)) return names ?? [];
    this.adjust("names-ignored", place.child("enumNames"), "`enumNames` does not name each option and is ignored");
    return [];
  }

  /** Reads a value of one type: its rules are read strictly, and those that cannot be enforced are removed. */
  #scalar(type: ScalarType, flat: Flat, place: Place): Kind {
    // The default of an optional field that is left empty is null.
    const keywords = new Map([...flat.keywords].filter(([key, value]) => !USED.has(key) && !(key === "default" && value === null)));
    const kept: { pattern?: string; otherFormat?: string } = {};
    for (;;) {
      for (const [key, value] of keywords) {
        this.spendValue(value, place);
        if (key === "pattern") this.spendBytes(PATTERN_BYTES, place);
      }
      const schema = { ...Object.fromEntries(keywords), type };
      const read = this.#read("value", schema, place);
      if (!Array.isArray(read)) {
        const { kind } = taken(read as Field);
        return type === "string" ? { ...kind, ...kept } : kind;
      }
      const defect = read[0] as Defect;
      const key = defect.pointer.split("/").at(-1)!.replaceAll("~1", "/").replaceAll("~0", "~");
      const at = place.child(key);
      const code = remedy(defect.code, key);
      const value = keywords.get(key);
      if (!code || !keywords.has(key)) {
        this.#defects.push({ ...defect, pointer: at.pointer });
        throw new Unreadable();
      }
      if (code === "contradiction") {
        const [low, high] = defect.args.map((bound) => (key === "minLength" ? `${BigInt(bound)}` : bound));
        const why = key === "minLength" ? `no text has at least ${low} and at most ${high} characters` : `no ${type === "integer" ? "whole number" : "number"} is between ${low} and ${high} as asked`;
        this.adjust("bound-not-enforced", at, `no value meets the bounds of this field, so they are not checked (${why})`);
        for (const bound of BOUNDS) keywords.delete(bound);
        continue;
      }
      if (typeof value === "string" && code === "pattern-not-enforced") kept.pattern = value;
      if (typeof value === "string" && code === "format-not-enforced") kept.otherFormat = value;
      this.adjust(code, at, sentence(code, key, value));
      keywords.delete(key);
    }
  }
}

const NAMES: Readonly<Record<Field["kind"], string>> = {
  text: "text",
  number: "a number",
  integer: "a whole number",
  boolean: "true or false",
  choice: "an option",
  choices: "a list",
  union: "a list",
  lines: "a list",
};

const isListKind = ({ kind }: Kind) => kind === "choices" || kind === "lines";

const text = (value: unknown) => (typeof value === "string" ? value : undefined);

const texts = (title: unknown, description: unknown) => ({
  ...(typeof title === "string" && { title }),
  ...(typeof description === "string" && { description }),
});

/** Returns a value with the members of its objects in one order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

function taken({ name: _name, label: _label, required: _required, title, description, ...kind }: Field): { title: string | undefined; description: string | undefined; kind: Kind } {
  return { title, description, kind: kind as unknown as Kind };
}

const isEmpty = (properties: unknown) => !(isObject(properties) || Array.isArray(properties)) || !Object.keys(properties).length;

/**
 * Returns each option once, and whether one was left out. A string that is spelled like a number or a boolean in the same list is told
 * apart by quotation marks.
 */
function distinct(drafts: readonly OptionDraft[]): readonly [readonly ChoiceOption[], boolean] {
  const spelled = new Set(drafts.filter(({ typed }) => typed !== undefined).map(({ value }) => value));
  const seen = new Set<string>();
  const kept: ChoiceOption[] = [];
  for (const draft of drafts) {
    const key = `${draft.typed !== undefined}${draft.value}`;
    if (seen.has(key)) continue;
    seen.add(key);
    kept.push(draft.typed === undefined && spelled.has(draft.value) ? { ...draft, value: JSON.stringify(draft.value), typed: draft.value } : draft);
  }
  return [kept, kept.length < drafts.length];
}

/** Returns how a defect of a field with a known type and without options is removed; nothing if no reading removes it. */
function remedy(code: DefectCode, key: string): AdjustmentCode | "contradiction" | undefined {
  const isBound = BOUNDS.includes(key);
  switch (code) {
    case "keyword-type":
      return isBound || key === "multipleOf" ? "bound-not-enforced" : "keyword-ignored";
    // Members that only objects have say nothing about a value of another type.
    case "nested":
      return "keyword-ignored";
    case "unsupported-keyword":
    case "enum-not-string":
      return "rule-not-enforced";
    case "unsupported-format":
      return "format-not-enforced";
    case "pattern-syntax":
    case "pattern-cost":
      return "pattern-not-enforced";
    case "impossible-range":
      return isBound ? "contradiction" : "rule-not-enforced";
    case "default-invalid":
      return "default-dropped";
    default:
      return undefined;
  }
}

function sentence(code: AdjustmentCode, key: string, value: unknown): string {
  switch (code) {
    case "format-not-enforced":
      if (typeof value === "string") return `the server asks for the format \`${clip(value)}\`, which is not checked here`;
      break;
    case "pattern-not-enforced":
      return "the server's pattern cannot be read, so it is not checked here";
    case "default-dropped":
      return "the default is not a value that the field accepts, and is ignored";
    case "rule-not-enforced":
      return `the server's rule \`${clip(key)}\` is not checked here`;
    case "bound-not-enforced":
      return `the server's bound \`${clip(key)}\` is not valid and is not checked`;
    default:
  }
  return `\`${clip(key)}\` has no meaning here and is ignored`;
}
