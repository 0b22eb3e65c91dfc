import { clip, count } from "./check/message.js";
import { isObject, oddKey, TEXT } from "./check/parse.js";
import type { Defect } from "./types.js";

const TYPES = "string, number, integer, boolean, or array (of strings from a list)";
const SHAPE = 'an option must be {"const": "value", "title": "what the person reads"}';

/** What a keyword wants; a string where nothing else is said. */
const WANTED: Readonly<Record<string, string>> = {
  ...Object.fromEntries(["minLength", "maxLength", "minItems", "maxItems"].map((key) => [key, "a whole number, 0 or more"])),
  ...Object.fromEntries(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "const"].map((key) => [key, "a number"])),
  uniqueItems: "true or false",
  enumNames: "a list of strings",
};

/** What kind of JSON value this is. */
function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : `a${typeof value === "object" ? "n" : ""} ${typeof value}`;
}

/** Says what is wrong at a defect of this schema and what is allowed there, in the words of the Rust crate. */
export function explain(defect: Defect, requestedSchema: unknown): string {
  if (defect.message) return defect.message;
  const path = defect.pointer.split("/").slice(1).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  const at = (keys: readonly string[]) => keys.reduce<unknown>((value, key) => (isObject(value) || Array.isArray(value) ? (value as Record<string, unknown>)[key] : undefined), requestedSchema);
  const key = path.at(-1) ?? "";
  const value = at(path);
  const field = at(path.slice(0, 2));
  const type = isObject(field) ? field["type"] : undefined;
  const [first = "", second = ""] = defect.args;
  switch (defect.code) {
    case "not-json":
      return "not JSON";
    case "too-large":
      return `the schema has ${first} bytes; ${second} at most`;
    case "not-an-object":
      return `a requestedSchema must be an object, not ${kindOf(value)}`;
    case "root-type":
      return path.length ? 'a form\'s `type` must be "object"' : 'a form needs "type": "object"';
    case "no-properties":
      return path.length ? `\`properties\` must be an object of fields, not ${kindOf(value)}` : "a form needs `properties`; an empty object asks only to confirm";
    case "too-many-fields":
      return `${first} fields; ${second} at most`;
    case "duplicate-field":
      return "this field is there twice: give each name once";
    case "duplicate-member":
      return "this member is there twice: write each member once";
    case "field-not-an-object":
      return `a field must be an object such as {"type": "string"}, not ${kindOf(value)}`;
    case "missing-type":
      return `a field needs a \`type\`: ${TYPES}`;
    case "type-list":
      return `a field has one type, not a list of them: ${TYPES}; for a field that may be left empty, leave it out of \`required\``;
    case "unknown-type":
      return `Unsupported type '${clip(`${value}`)}': use ${TYPES}`;
    case "nested":
      return key === "type" ? `a form is flat, a field cannot be an object: ${TYPES}` : `a form is flat, so a field has no \`${key}\``;
    case "reference":
      return "references are not part of a form: write the schema out in place";
    case "array-items":
      return 'a list may hold only strings from a list: {"type": "string", "enum": [...]} or {"anyOf": [{"const", "title"}]}';
    case "enum-not-string":
      return `only strings have options, not ${type === "array" ? "a list (put the options into `items`)" : type === "boolean" ? "a boolean" : "a number"}: use "type": "string"`;
    case "no-options":
      return Array.isArray(value) ? `\`${key}\` is empty, so nothing can be picked: list at least one option` : `\`${key}\` must be a list of options, not ${kindOf(value)}`;
    case "option-shape": {
      if (path.at(-2) === "enum") return `an option must be a string, not ${kindOf(value)}`;
      if (!isObject(value)) return `${SHAPE}, not ${kindOf(value)}`;
      const odd = oddKey(value);
      if (odd === "const" || odd === "title") return `\`${odd}\` of an option must be a string, not ${kindOf(value[odd])}`;
      return odd === undefined ? SHAPE : `${SHAPE}; \`${clip(odd)}\` is not allowed there`;
    }
    case "duplicate-option":
      return "this option is already in the list: give each value once";
    case "options-twice":
      return key === "enum" ? "give the options as `enum` or as `oneOf`, not both" : "give the options once: as `enum`, `anyOf` or `oneOf`";
    case "too-many-options":
      return `${first} options; a field may have ${second} at most`;
    case "keyword-type":
      if (path[0] === "required") return `\`required\` must be a list of field names, not ${kindOf(value)}`;
      if (key === "multipleOf" && typeof value === "number") return "`multipleOf` must be more than 0";
      if (key === "enumNames" && Array.isArray(value)) return "`enumNames` must be a list of strings";
      return `\`${key}\` must be ${(key !== "const" || type === "number" || type === "integer" ? WANTED[key] : undefined) ?? "a string"}, not ${kindOf(value)}`;
    case "unsupported-keyword":
      if (path.length === 1)
        return key === "additionalProperties" ? "only true or false; a form has no fields beside its `properties`" : `\`${key}\` is not part of a form: use type, properties and required`;
      if (key === "items") return '`items` is only for "type": "array"';
      if (key === "const") return "`const` is not for lists: leave the field out";
      if (TEXT.includes(key)) return `\`${key}\` constrains a text that is written; the options are listed already, remove it`;
      return `\`${key}\` is not part of a form: a field has a type, bounds, a format, a pattern or options`;
    case "unsupported-format":
      return `\`${clip(`${value}`)}\` is not a format of elicitation: use email, uri, date or date-time, or a \`pattern\``;
    case "impossible-range":
      if (key === "minLength") return `no text has at least ${count(first as number)} and at most ${count(second as number)} characters`;
      if (key === "minItems") {
        const most = isObject(field) ? field["maxItems"] : undefined;
        const [wanted, possible] = [count(first as number), count(second as number)];
        return typeof most === "number" && Number(first) > most ? `no selection has at least ${wanted} and at most ${possible}` : `no selection has ${wanted} of ${possible} options`;
      }
      if (key !== "const") return `no ${type === "integer" ? "whole number" : "number"} is between ${first} and ${second} as asked`;
      if (first) return `the only value allowed breaks another rule: ${first}`;
      return type === "boolean" ? `a boolean is never ${kindOf(value)}: use true or false` : "the only value allowed is none of the options";
    case "default-invalid":
      return `the default breaks the field's own rule: ${first}`;
    case "pattern-syntax":
      return "not a regular expression";
    case "pattern-cost":
      return `a pattern may have ${first} bytes, and the patterns of a form ${second} states at most`;
    case "required-unknown":
      return `\`${clip(`${value}`)}\` is not a field of the form`;
  }
}
