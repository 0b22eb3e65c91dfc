import type { ChoiceOption, Defect, DefectCode, Field, Limits } from "../types.js";
import { checkField, type Matcher } from "./field.js";
import { message } from "./message.js";
import { compile } from "./pattern.js";

/** The bounds unless others are given: those of the Rust crate. */
export const LIMITS: Limits = { schemaBytes: 1 << 20, fields: 256, options: 5000, patternBytes: 1024, patternStates: 10000 };

/** What a legal schema says. */
export interface Read {
  readonly fields: readonly Field[];
  readonly closed: boolean;
  /** The compiled patterns, by field. */
  readonly matchers: ReadonlyMap<string, Matcher>;
  readonly unenforced: readonly string[];
}

type Keywords = Readonly<Record<string, unknown>>;

const words = (text: string) => new Set(text.split(" "));

/** Validation keywords of JSON Schema, draft-04 to 2020-12: to ignore one would ignore a rule in silence. */
export const CONSTRAINS = words(
  "allOf anyOf oneOf not if then else enum const type items additionalItems prefixItems contains minContains maxContains minItems maxItems uniqueItems unevaluatedItems properties patternProperties additionalProperties propertyNames minProperties maxProperties required dependencies dependentRequired dependentSchemas unevaluatedProperties minimum maximum exclusiveMinimum exclusiveMaximum multipleOf divisibleBy disallow extends minLength maxLength pattern format $ref $dynamicRef $recursiveRef",
);
const REFERENCES = words("$ref $dynamicRef $recursiveRef");
const ROOT = words("type properties required");
const FIELD = words(
  "type title description default const enum enumNames oneOf items format pattern minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems uniqueItems",
);
const NESTED = words("properties patternProperties additionalProperties required");
export const TEXT = ["minLength", "maxLength", "pattern", "format"];

export const isObject = (value: unknown): value is Keywords => typeof value === "object" && value !== null && !Array.isArray(value);

/** The first keyword of a titled option that does not belong there, or has the wrong type. */
export function oddKey(option: Keywords): string | undefined {
  return Object.keys(option).find((key) => {
    const text = typeof option[key] === "string";
    return key === "const" || key === "title" ? !text : CONSTRAINS.has(key) && !(key === "type" && option[key] === "string");
  });
}

const get = (keywords: Keywords, key: string) => (Object.hasOwn(keywords, key) ? keywords[key] : undefined);

const child = (pointer: string, key: string | number) => `${pointer}/${`${key}`.replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** Leaves out what is not set. */
const set = (field: object) => Object.fromEntries(Object.entries(field).filter(([, value]) => value !== undefined)) as unknown as Field;

/** Reads a requestedSchema. Gives every defect at once, in the order of the Rust crate. */
export function readSchema(given: unknown, limits: Limits): Read | readonly Defect[] {
  const defects: Defect[] = [];
  const defect = (pointer: string, code: DefectCode, ...args: (string | number)[]) => void defects.push({ pointer, code, args });
  const budget = { left: limits.patternStates };
  const matchers = new Map<string, Matcher>();
  const unenforced: string[] = [];

  let schema: unknown;
  try {
    // A copy without getters, cycles and what JSON does not have.
    const text = JSON.stringify(given) ?? "null";
    const bytes = new TextEncoder().encode(text).length;
    if (bytes > limits.schemaBytes) {
      defect("", "too-large", bytes, limits.schemaBytes);
      return defects;
    }
    // Half of a surrogate pair stays escaped.
    if (/(?<!\\)(\\\\)*\\ud[89a-f]/.test(text)) throw text;
    schema = JSON.parse(text);
  } catch {
    defect("", "not-json");
    return defects;
  }
  if (!isObject(schema)) {
    defect("", "not-an-object");
    return defects;
  }

  let closed = false;
  for (const [key, value] of Object.entries(schema)) {
    const at = child("", key);
    if (key === "additionalProperties") {
      closed = value === false;
      if (typeof value !== "boolean" && !(isObject(value) && !Object.keys(value).length)) defect(at, "unsupported-keyword");
    } else if (REFERENCES.has(key)) defect(at, "reference");
    else if (!ROOT.has(key) && CONSTRAINS.has(key)) defect(at, "unsupported-keyword");
  }
  const type = get(schema, "type");
  if (type === undefined) defect("", "root-type");
  else if (type !== "object") defect("/type", "root-type");
  const properties = get(schema, "properties");
  let fields: Field[] = [];
  if (!isObject(properties)) {
    if (properties === undefined) defect("", "no-properties");
    else defect("/properties", "no-properties");
    return defects;
  }
  const entries = Object.entries(properties);
  if (entries.length > limits.fields) {
    defect("/properties", "too-many-fields", entries.length, limits.fields);
    return defects;
  }
  fields = entries.map(([name, field]) => readField(name, field));
  readRequired(get(schema, "required"));
  return defects.length ? defects : { fields, closed, matchers, unenforced };

  function readRequired(required: unknown) {
    if (required === undefined) return;
    if (!Array.isArray(required)) return defect("/required", "keyword-type");
    const places = new Map(fields.map((field, i) => [field.name, i]));
    required.forEach((name: unknown, i) => {
      const at = child("/required", i);
      if (typeof name !== "string") return defect(at, "keyword-type");
      const place = places.get(name);
      if (place === undefined) defect(at, "required-unknown");
      else fields[place] = { ...fields[place]!, required: true };
    });
  }

  function readField(name: string, field: unknown): Field {
    const at = child("/properties", name);
    // A field that could not be read still has a name, so that `required` is judged fairly.
    const base = { name, label: name, required: false };
    const unread: Field = { ...base, kind: "boolean" };
    if (!isObject(field)) {
      defect(at, "field-not-an-object");
      return unread;
    }
    const keywords = field;
    const has = (key: string) => Object.hasOwn(keywords, key);
    /** A defect at a keyword of the field. */
    const wrong = (key: string, code: DefectCode = "keyword-type", ...args: (string | number)[]) => defect(child(at, key), code, ...args);
    /** Reads a keyword that wants a certain type. */
    const read = <T>(key: string, fits: (value: unknown) => value is T): T | undefined => {
      const value = get(keywords, key);
      if (value === undefined || fits(value)) return value;
      wrong(key);
      return undefined;
    };
    const text = (key: string) => read(key, (value) => typeof value === "string");
    const number = (key: string) => read(key, (value) => typeof value === "number");
    const count = (key: string) =>
      read(key, (value): value is number => Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 64);
    const refuseOptions = () => {
      for (const key of ["enum", "oneOf"]) if (has(key)) wrong(key, "enum-not-string");
    };
    /** The first rule that a value breaks. */
    const firstBroken = (field: Field, value: unknown) => {
      let found: string | undefined;
      checkField(field, value, (rule, limit) => void (found ??= message(rule, limit)), matchers.get(name));
      return found;
    };
    const checkConstant = (field: Field, constant: unknown) => {
      if (constant !== undefined)
        checkField(field, constant, (rule, limit) => wrong("const", "impossible-range", message(rule, limit)), matchers.get(name));
    };
    const withDefault = (field: Field): Field => {
      const value = get(keywords, "default");
      if (value === undefined) return field;
      const broken = firstBroken(field, value);
      if (!broken) return { ...field, default: value } as Field;
      wrong("default", "default-invalid", broken);
      return field;
    };

    for (const key of Object.keys(keywords)) {
      if (FIELD.has(key)) continue;
      if (REFERENCES.has(key)) wrong(key, "reference");
      else if (NESTED.has(key)) wrong(key, "nested");
      else if (CONSTRAINS.has(key)) wrong(key, "unsupported-keyword");
    }
    const title = text("title");
    const description = text("description");
    const label = title !== undefined && /\P{White_Space}/u.test(title) ? title : name;
    return readKind({ ...base, label, title, description }) ?? unread;

    function readKind(base: object): Field | undefined {
      const kind = get(keywords, "type");
      if (kind === undefined) return defect(at, "missing-type"), undefined;
      if (kind === "array") return readChoices(base);
      if (typeof kind === "string" && has("items")) wrong("items", "unsupported-keyword");
      switch (kind) {
        case "string":
          return has("enum") || has("oneOf") ? readChoice(base) : readText(base);
        case "number":
        case "integer":
          return readNumber(base, kind as "number" | "integer");
        case "boolean":
          return readBoolean(base);
      }
      wrong("type", Array.isArray(kind) ? "type-list" : kind === "object" ? "nested" : typeof kind === "string" ? "unknown-type" : undefined);
      return undefined;
    }

    function readText(base: object) {
      const [minLength, maxLength] = [count("minLength"), count("maxLength")];
      const pattern = readPattern();
      const format = text("format");
      const known = ["email", "uri", "date", "date-time"].includes(format!);
      if (format !== undefined && !known) wrong("format", "unsupported-format");
      const constant = text("const");
      const field = set({ ...base, kind: "text", minLength, maxLength, pattern, format: known ? format : undefined, constant });
      if (minLength! > maxLength!) wrong("minLength", "impossible-range", minLength!, maxLength!);
      checkConstant(field, constant);
      return withDefault(field);
    }

    function readPattern() {
      const source = text("pattern");
      if (source === undefined) return undefined;
      const matcher = compile(source, limits.patternBytes, budget);
      if (matcher === "syntax") wrong("pattern", "pattern-syntax");
      else if (matcher === "cost") wrong("pattern", "pattern-cost", limits.patternBytes, limits.patternStates);
      else {
        if (matcher) matchers.set(name, matcher);
        else unenforced.push(name);
        return source;
      }
      return undefined;
    }

    function readNumber(base: object, kind: "number" | "integer") {
      refuseOptions();
      const whole = kind === "integer";
      const [minimum, maximum] = [number("minimum"), number("maximum")];
      const [exclusiveMinimum, exclusiveMaximum] = [number("exclusiveMinimum"), number("exclusiveMaximum")];
      const [multipleOf, constant] = [number("multipleOf"), number("const")];
      const field = set({ ...base, kind, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, constant });
      if (multipleOf! <= 0) wrong("multipleOf");
      for (const [low, open, key] of [[minimum, false, "minimum"], [exclusiveMinimum, true, "exclusiveMinimum"]] as const) {
        for (const [high, shut] of [[maximum, false], [exclusiveMaximum, true]] as const) {
          if (low !== undefined && high !== undefined && isEmpty(low, open, high, shut, whole))
            wrong(key, "impossible-range", low, high);
        }
      }
      checkConstant(field, constant);
      return withDefault(field);
    }

    function readBoolean(base: object) {
      refuseOptions();
      const given = get(keywords, "const");
      const sound = given === undefined || typeof given === "boolean";
      if (!sound) wrong("const", "impossible-range");
      return withDefault(set({ ...base, kind: "boolean", constant: sound ? given : undefined }));
    }

    function readChoice(base: object) {
      for (const key of TEXT) if (has(key)) wrong(key, "unsupported-keyword");
      if (has("enum") && has("oneOf")) return wrong("enum", "options-twice"), undefined;
      let options = has("enum") ? readOptions(keywords["enum"], "enum", at) : readOptions(keywords["oneOf"], "oneOf", at);
      if (!options) return undefined;
      if (has("enum") && has("enumNames")) options = readNames(options, keywords["enumNames"]);
      const constant = text("const");
      if (constant !== undefined && !options.some((option) => option.value === constant)) wrong("const", "impossible-range");
      return withDefault(set({ ...base, kind: "choice", options, constant }));
    }

    function readNames(options: readonly ChoiceOption[], names: unknown): readonly ChoiceOption[] {
      if (!Array.isArray(names) || !names.every((name) => typeof name === "string")) wrong("enumNames");
      else if (names.length === options.length) return options.map(({ value }, i) => ({ value, title: names[i] as string }));
      return options;
    }

    function readChoices(base: object) {
      refuseOptions();
      if (has("const")) wrong("const", "unsupported-keyword");
      const options = readItems();
      const [minItems, maxItems] = [count("minItems"), count("maxItems")];
      const unique = read("uniqueItems", (value) => typeof value === "boolean") ?? false;
      if (!options) return undefined;
      const most = Math.min(maxItems ?? Infinity, options.length);
      if (minItems! > most) wrong("minItems", "impossible-range", minItems!, minItems! > maxItems! ? maxItems! : most);
      return withDefault(set({ ...base, kind: "choices", options, minItems, maxItems, unique }));
    }

    function readItems() {
      const items = get(keywords, "items");
      const where = child(at, "items");
      if (!isObject(items)) return defect(where, "array-items"), undefined;
      let options: readonly ChoiceOption[] | undefined;
      let [seen, sound] = [0, true];
      for (const [key, value] of Object.entries(items)) {
        if (key === "type" && value === "string") continue;
        if (key === "enum" || key === "anyOf" || key === "oneOf") {
          seen++;
          options = readOptions(value, key, where);
        } else if (CONSTRAINS.has(key)) {
          sound = false;
          defect(child(where, key), "array-items");
        }
      }
      if (seen > 1) return defect(where, "options-twice"), undefined;
      if (!seen && sound) defect(where, "array-items");
      return sound ? options : undefined;
    }
  }

  function readOptions(list: unknown, key: string, parent: string): readonly ChoiceOption[] | undefined {
    const at = child(parent, key);
    if (!Array.isArray(list)) return defect(at, "no-options"), undefined;
    if (list.length > limits.options) return defect(at, "too-many-options", list.length, limits.options), undefined;
    if (!list.length) return defect(at, "no-options"), undefined;
    const options: ChoiceOption[] = [];
    list.forEach((entry: unknown, i) => {
      if (key === "enum" && typeof entry === "string") options.push({ value: entry });
      else if (key !== "enum" && isObject(entry) && typeof get(entry, "const") === "string" && !oddKey(entry)) {
        const [value, title] = [entry["const"] as string, get(entry, "title") as string | undefined];
        options.push(title === undefined ? { value } : { value, title });
      } else defect(child(at, i), "option-shape");
    });
    const seen = new Set<string>();
    // Places are those among the options that could be read, as the Rust crate counts them.
    options.forEach(({ value }, i) => {
      if (seen.has(value)) defect(child(at, i), "duplicate-option");
      seen.add(value);
    });
    return seen.size === list.length ? options : undefined;
  }
}

/** Whether nothing lies between the bounds. */
function isEmpty(low: number, open: boolean, high: number, shut: boolean, whole: boolean): boolean {
  if (low >= high) return low > high || open || shut || (whole && !Number.isInteger(low));
  if (!whole || high - low > 2) return false;
  const first = open && Number.isInteger(low) ? low + 1 : Math.ceil(low);
  return first > high || (shut && first >= high);
}

