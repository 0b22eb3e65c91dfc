import type { ChoiceOption, Defect, DefectCode, Field, FieldBase, Limits } from "../types.js";
import { checkField, type Matcher } from "./field.js";
import { type Broken, message } from "./message.js";
import type { compile as Compile } from "./pattern.js";
import { bytesOf } from "./text.js";

/** The bounds unless others are given: those of the Rust crate. */
export const LIMITS: Limits = { schemaBytes: 1 << 20, fields: 256, options: 5000, patternBytes: 1024, patternStates: 10000 };

/** What a legal schema says. */
export interface Read {
  readonly fields: readonly Field[];
  readonly closed: boolean;
  /** Tells of every rule of the field that a value breaks. */
  readonly judge: (field: Field, value: unknown, broken: Broken) => void;
  readonly unenforced: readonly string[];
}

type Keywords = Readonly<Record<string, unknown>>;

const words = (text: string) => new Set(text.split(" "));

// Validation keywords of JSON Schema, draft-04 to 2020-12: to ignore one would ignore a rule in silence.
const REFERENCES = words("$ref $dynamicRef $recursiveRef");
const NESTED = words("properties patternProperties additionalProperties required");
/** Those that a field of a form has. */
const FIELD = words("type const enum oneOf items format pattern minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems uniqueItems");
/** Those that no form has. */
const OTHER = words(
  "allOf anyOf not if then else additionalItems prefixItems contains minContains maxContains unevaluatedItems propertyNames minProperties maxProperties dependencies dependentRequired dependentSchemas unevaluatedProperties divisibleBy disallow extends",
);
const CONSTRAINS = new Set([...REFERENCES, ...NESTED, ...FIELD, ...OTHER]);
export const TEXT = ["minLength", "maxLength", "pattern", "format"];

export const isObject = (value: unknown): value is Keywords => typeof value === "object" && value !== null && !Array.isArray(value);

/** The first keyword of a titled option that does not belong there, or has the wrong type. */
export function oddKey(option: Keywords): string | undefined {
  return Object.keys(option).find((key) => {
    const text = typeof option[key] === "string";
    return key === "const" || key === "title" ? !text : CONSTRAINS.has(key) && !(key === "type" && option[key] === "string");
  });
}

const has = (keywords: Keywords, key: string) => Object.hasOwn(keywords, key);
const get = (keywords: Keywords, key: string) => (has(keywords, key) ? keywords[key] : undefined);

const child = (pointer: string, key: string | number) => `${pointer}/${`${key}`.replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** A field while it is read. */
type Unread = { -readonly [K in keyof FieldBase]: FieldBase[K] } & { kind: Field["kind"]; [keyword: string]: unknown };

// What keywords want; a count is a whole number of 64 bits.
const isString = (value: unknown) => typeof value === "string";
const isNumber = (value: unknown) => typeof value === "number";
const isBoolean = (value: unknown) => typeof value === "boolean";
const isCount = (value: unknown) => Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 64;

/** Leaves patterns unchecked, where what compiles them could not be loaded. */
const unchecked: typeof Compile = () => null;

/** Reads a requestedSchema. Gives every defect at once, in the order of the Rust crate. */
export type ReadSchema = (given: unknown, limits: Limits, budget?: { left: number }) => Read | readonly Defect[];

/** Returns what reads a requestedSchema, with patterns compiled by `compile`. */
export const schemaReader = (compile: typeof Compile = unchecked): ReadSchema => (given, limits, budget = { left: limits.patternStates }) => readWith(given, limits, budget, compile);

function readWith(given: unknown, limits: Limits, budget: { left: number }, compile: typeof Compile): Read | readonly Defect[] {
  const defects: Defect[] = [];
  const defect = (pointer: string, code: DefectCode, ...args: (string | number)[]) => void defects.push({ pointer, code, args });
  const matchers = new Map<string, Matcher>();
  const unenforced: string[] = [];
  let closed = false;
  const fields = readRoot();
  return fields && !defects.length ? { fields: fields as unknown as readonly Field[], closed, judge: judgeValue, unenforced } : defects;

  function judgeValue(field: Field, value: unknown, broken: Broken) {
    checkField(field, value, broken, matchers.get(field.name));
  }

  function readRoot(): readonly Unread[] | void {
    let schema: unknown;
    try {
      // A copy without getters, cycles and what JSON does not have.
      const text = JSON.stringify(given) ?? "null";
      const bytes = bytesOf(text);
      if (bytes > limits.schemaBytes) return defect("", "too-large", bytes, limits.schemaBytes);
      // Half of a surrogate pair stays escaped.
      if (/(?<!\\)(\\\\)*\\ud[89a-f]/.test(text)) throw text;
      schema = JSON.parse(text);
    } catch {
      return defect("", "not-json");
    }
    if (!isObject(schema)) return defect("", "not-an-object");
    for (const [key, value] of Object.entries(schema)) {
      const at = child("", key);
      if (key === "additionalProperties") {
        closed = value === false;
        if (!isBoolean(value) && !(isObject(value) && !Object.keys(value).length)) defect(at, "unsupported-keyword");
      } else if (REFERENCES.has(key)) defect(at, "reference");
      else if (!/^(type|properties|required)$/.test(key) && CONSTRAINS.has(key)) defect(at, "unsupported-keyword");
    }
    const type = get(schema, "type");
    if (type !== "object") defect(type === undefined ? "" : "/type", "root-type");
    const properties = get(schema, "properties");
    if (!isObject(properties)) return defect(properties === undefined ? "" : "/properties", "no-properties");
    const entries = Object.entries(properties);
    if (entries.length > limits.fields) return defect("/properties", "too-many-fields", entries.length, limits.fields);
    const fields = entries.map(([name, keywords]) => {
      // A field that could not be read still has a name, so that `required` is judged fairly.
      const field: Unread = { name, label: name, required: false, kind: "boolean" };
      const at = child("/properties", name);
      if (isObject(keywords)) readField(at, keywords, field);
      else defect(at, "field-not-an-object");
      return field;
    });
    const required = has(schema, "required") ? schema["required"] : [];
    if (!Array.isArray(required)) defect("/required", "keyword-type");
    else {
      const named = new Map(fields.map((field) => [field.name, field]));
      required.forEach((name: unknown, i) => {
        const field = named.get(name as string);
        if (field) field.required = true;
        else defect(child("/required", i), isString(name) ? "required-unknown" : "keyword-type");
      });
    }
    return fields;
  }

  function readField(at: string, keywords: Keywords, field: Unread): void {
    /** A defect at a keyword of the field. */
    const wrong = (key: string, code: DefectCode = "keyword-type", ...args: (string | number)[]) => defect(child(at, key), code, ...args);
    const refuse = (code: DefectCode, ...keys: string[]) => keys.forEach((key) => has(keywords, key) && wrong(key, code));
    /** Takes keywords that want a certain type over into the field. */
    const take = (fits: (value: unknown) => boolean, keys: readonly string[], code?: DefectCode) => {
      for (const key of keys) {
        const value = get(keywords, key);
        if (value === undefined) continue;
        if (fits(value)) field[key === "const" ? "constant" : key === "uniqueItems" ? "unique" : key] = value;
        else wrong(key, code);
      }
    };
    /** Tells what is wrong with a value of the field. */
    const judge = (value: unknown, tell: (message: string) => void) =>
      value === undefined || judgeValue(field as unknown as Field, value, (rule, limit) => tell(message(rule, limit)));
    const empty = (key: string, least: number, most: number) => wrong(key, "impossible-range", least, most);

    for (const key of Object.keys(keywords)) {
      if (REFERENCES.has(key)) wrong(key, "reference");
      else if (NESTED.has(key)) wrong(key, "nested");
      else if (OTHER.has(key)) wrong(key, "unsupported-keyword");
    }
    take(isString, ["title", "description"]);
    if (/\P{White_Space}/u.test(field.title ?? "")) field.label = field.title!;
    const type = get(keywords, "type");
    if (type === undefined) return defect(at, "missing-type");
    if (isString(type) && type !== "array") refuse("unsupported-keyword", "items");
    if (!/^(array|string|number|integer|boolean)$/.test(type as string) || !isString(type))
      return wrong("type", Array.isArray(type) ? "type-list" : type === "object" ? "nested" : isString(type) ? "unknown-type" : undefined);
    const listed = type === "string" && (has(keywords, "enum") || has(keywords, "oneOf"));
    if (type !== "string") refuse("enum-not-string", "enum", "oneOf");
    field.kind = type === "array" ? "choices" : listed ? "choice" : type === "string" ? "text" : (type as "number");
    if (!{ text: readText, number: readNumber, integer: readNumber, boolean: readBoolean, choice: readChoice, choices: readChoices }[field.kind]()) return;

    const value = get(keywords, "default");
    let broken: string | undefined;
    judge(value, (message) => (broken ??= message));
    if (broken) wrong("default", "default-invalid", broken);
    else if (value !== undefined) field["default"] = value;

    // Each gives whether the field could be read, so that its default can be judged.

    function readText() {
      take(isCount, ["minLength", "maxLength"]);
      readPattern();
      take(isString, ["format"]);
      if (field["format"] !== undefined && !/^(email|uri|date|date-time)$/.test(field["format"] as string)) {
        delete field["format"];
        wrong("format", "unsupported-format");
      }
      take(isString, ["const"]);
      const [least, most] = [field["minLength"] as number, field["maxLength"] as number];
      if (least > most) empty("minLength", least, most);
      return judgeConstant();
    }

    function judgeConstant() {
      judge(field["constant"], (message) => wrong("const", "impossible-range", message));
      return true;
    }

    function readPattern() {
      take(isString, ["pattern"]);
      const { name, pattern } = field;
      if (pattern === undefined) return;
      const matcher = compile(pattern as string, limits.patternBytes, budget);
      if (typeof matcher === "function") matchers.set(name, matcher);
      else if (!matcher) unenforced.push(name);
      else {
        delete field["pattern"];
        if (matcher === "syntax") wrong("pattern", "pattern-syntax");
        else wrong("pattern", "pattern-cost", limits.patternBytes, limits.patternStates);
      }
    }

    function readNumber() {
      take(isNumber, ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "const"]);
      if ((field["multipleOf"] as number) <= 0) wrong("multipleOf");
      for (const least of ["minimum", "exclusiveMinimum"]) {
        for (const most of ["maximum", "exclusiveMaximum"]) {
          const [low, high] = [field[least] as number, field[most] as number];
          if (low !== undefined && isEmpty(low, least[0] === "e", high, most[0] === "e", type === "integer")) empty(least, low, high);
        }
      }
      return judgeConstant();
    }

    function readBoolean() {
      take(isBoolean, ["const"], "impossible-range");
      return true;
    }

    function readChoice() {
      refuse("unsupported-keyword", ...TEXT);
      const [one, names] = [has(keywords, "enum"), keywords["enumNames"]];
      if (one && has(keywords, "oneOf")) return wrong("enum", "options-twice");
      const key = one ? "enum" : "oneOf";
      let options = readOptions(keywords[key], key, at);
      if (!options) return;
      if (one && has(keywords, "enumNames")) {
        if (!Array.isArray(names) || !names.every(isString)) wrong("enumNames");
        else if (names.length === options.length) options = options.map(({ value }, i) => ({ value, title: names[i] as string }));
      }
      field["options"] = options;
      take(isString, ["const"]);
      const { constant } = field;
      if (constant !== undefined && !options.some(({ value }) => value === constant)) wrong("const", "impossible-range");
      return true;
    }

    function readChoices() {
      refuse("unsupported-keyword", "const");
      const options = readItems();
      field["unique"] = false;
      take(isCount, ["minItems", "maxItems"]);
      take(isBoolean, ["uniqueItems"]);
      if (!options) return;
      field["options"] = options;
      const [least, most] = [field["minItems"] as number, field["maxItems"] as number | undefined];
      const possible = Math.min(most ?? Infinity, options.length);
      if (least > possible) empty("minItems", least, least > most! ? most! : possible);
      return true;
    }

    function readItems(): readonly ChoiceOption[] | void {
      const items = get(keywords, "items");
      const where = child(at, "items");
      if (!isObject(items)) return defect(where, "array-items");
      let options: readonly ChoiceOption[] | void = undefined;
      let [seen, sound] = [0, true];
      for (const [key, value] of Object.entries(items)) {
        if (key === "type" && value === "string") continue;
        if (/^(enum|anyOf|oneOf)$/.test(key)) {
          seen++;
          options = readOptions(value, key, where);
        } else if (CONSTRAINS.has(key)) {
          sound = false;
          defect(child(where, key), "array-items");
        }
      }
      if (seen > 1) return defect(where, "options-twice");
      if (!seen && sound) defect(where, "array-items");
      if (sound) return options;
    }
  }

  function readOptions(list: unknown, key: string, parent: string): readonly ChoiceOption[] | void {
    const at = child(parent, key);
    if (!Array.isArray(list)) return defect(at, "no-options");
    if (list.length > limits.options) return defect(at, "too-many-options", list.length, limits.options);
    if (!list.length) return defect(at, "no-options");
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
    if (seen.size === list.length) return options;
  }
}

/** Whether nothing lies between the bounds. */
function isEmpty(low: number, open: boolean, high: number, shut: boolean, whole: boolean): boolean {
  const first = open && Number.isInteger(low) ? low + 1 : Math.ceil(low);
  return low > high || (low === high && (open || shut)) || (whole && high - low < 3 && (first > high || (shut && first >= high)));
}
