import type { Defect } from "./types.js";

const TYPES = "string, number, integer, boolean, or array (of strings from a list)";
const SHAPE = 'an option must be {"const": "value", "title": "what the person reads"}';

/** Says what is wrong at a defect and what is allowed there, in the words of the Rust crate. */
export function explain(defect: Defect): string {
  const [first = "", second = "", third = ""] = defect.args;
  switch (defect.code) {
    case "not-json":
      return "not JSON";
    case "too-large":
      return `the schema has ${first} bytes; ${second} at most`;
    case "not-an-object":
      return `a requestedSchema must be an object, not ${first}`;
    case "root-type":
      return defect.pointer ? 'a form\'s `type` must be "object"' : 'a form needs "type": "object"';
    case "no-properties":
      return first ? `\`properties\` must be an object of fields, not ${first}` : "a form needs `properties`; an empty object asks only to confirm";
    case "too-many-fields":
      return `${first} fields; ${second} at most`;
    case "doubled-field":
      return "this field is there twice: give each name once";
    case "field-not-an-object":
      return `a field must be an object such as {"type": "string"}, not ${first}`;
    case "missing-type":
      return `a field needs a \`type\`: ${TYPES}`;
    case "type-list":
      return `a field has one type, not a list of them: ${TYPES}; for a field that may be left empty, leave it out of \`required\``;
    case "unknown-type":
      return `Unsupported type '${first}': use ${TYPES}`;
    case "nested":
      return first ? `a form is flat, so a field has no \`${first}\`` : `a form is flat, a field cannot be an object: ${TYPES}`;
    case "reference":
      return "references are not part of a form: write the schema out in place";
    case "array-items":
      return 'a list may hold only strings from a list: {"type": "string", "enum": [...]} or {"anyOf": [{"const", "title"}]}';
    case "enum-not-string":
      return `only strings have options, not ${first}: use "type": "string"`;
    case "no-options":
      return second ? `\`${first}\` must be a list of options, not ${second}` : `\`${first}\` is empty, so nothing can be picked: list at least one option`;
    case "option-shape":
      if (first === "string") return `an option must be a string, not ${second}`;
      if (first === "object") return `${SHAPE}, not ${second}`;
      if (first === "key") return `\`${second}\` of an option must be a string, not ${third}`;
      return first === "keyword" ? `${SHAPE}; \`${second}\` is not allowed there` : SHAPE;
    case "doubled-option":
      return "this option is already in the list: give each value once";
    case "options-twice":
      return first === "enum" ? "give the options as `enum` or as `oneOf`, not both" : "give the options once: as `enum`, `anyOf` or `oneOf`";
    case "too-many-options":
      return `${first} options; a field may have ${second} at most`;
    case "keyword-type":
      return `\`${first}\` must be ${second}${third && `, not ${third}`}`;
    case "unsupported-keyword":
      if (first === "closed") return "only true or false; a form has no fields beside its `properties`";
      if (first === "items") return '`items` is only for "type": "array"';
      if (first === "list") return "`const` is not for lists: leave the field out";
      if (first === "choice") return `\`${second}\` constrains a text that is written; the options are listed already, remove it`;
      return first === "root"
        ? `\`${second}\` is not part of a form: use type, properties and required`
        : `\`${second}\` is not part of a form: a field has a type, bounds, a format, a pattern or options`;
    case "unsupported-format":
      return `\`${first}\` is not a format of elicitation: use email, uri, date or date-time, or a \`pattern\``;
    case "impossible-range":
      if (first === "length") return `no text has at least ${second} and at most ${third} characters`;
      if (first === "const") return `the only value allowed breaks another rule: ${second}`;
      if (first === "option") return "the only value allowed is none of the options";
      if (first === "boolean") return `a boolean is never ${second}: use true or false`;
      if (first === "picks") return `nobody can pick at least ${second} and at most ${third}`;
      return first === "options" ? `nobody can pick ${second} of ${third} options` : `no ${first} is between ${second} and ${third} as asked`;
    case "default-invalid":
      return `the default breaks the field's own rule: ${first}`;
    case "pattern-syntax":
      return "not a regular expression";
    case "pattern-cost":
      return `a pattern may have ${first} bytes, and the patterns of a form ${second} states at most`;
    case "required-unknown":
      return `\`${first}\` is not a field of the form`;
  }
}
