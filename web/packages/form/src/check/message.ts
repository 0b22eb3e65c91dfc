import type { Json, RuleCode, Violation } from "../types.js";

/** Tells of one broken rule, with its limit. */
export type Broken = (rule: RuleCode, limit?: Json) => void;

const TYPES: Readonly<Record<string, string>> = {
  object: "an object of fields",
  string: "text",
  number: "a number",
  integer: "a whole number",
  boolean: "yes or no",
  array: "a list of options",
};

const FORMATS: Readonly<Record<string, string>> = {
  email: "an email address such as ada@example.com",
  uri: "a URL with its scheme, such as https://example.com",
  date: "a date such as 2026-02-28",
  "date-time": "a date and time with its offset, such as 2026-02-28T09:30:00Z",
};

/** How many options a message spells out; more are counted. */
const SPELLED = 8;

/** Says what a rule wants, as the Rust crate does, without the field's name. */
export function message(rule: RuleCode, limit: Json = null): string {
  const one = limit === 1;
  const value = `${limit}`;
  switch (rule) {
    case "required":
      return "a value is required";
    case "type":
      return `must be ${TYPES[value]}`;
    case "minLength":
      return one ? "must not be empty" : `must have at least ${value} characters`;
    case "maxLength":
      return `must have at most ${value} character${one ? "" : "s"}`;
    case "pattern":
      return `must match the pattern ${value}`;
    case "format":
      return `must be ${FORMATS[value]}`;
    case "minimum":
      return `must be ${value} or more`;
    case "maximum":
      return `must be ${value} or less`;
    case "exclusiveMinimum":
      return `must be more than ${value}`;
    case "exclusiveMaximum":
      return `must be less than ${value}`;
    case "multipleOf":
      return `must be a multiple of ${value}`;
    case "const":
      return `must be ${JSON.stringify(limit)}`;
    case "enum": {
      const options = limit as readonly string[];
      const more = options.length - SPELLED;
      return `must be one of ${options.slice(0, SPELLED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
    }
    case "minItems":
    case "maxItems":
      return `pick at ${rule === "minItems" ? "least" : "most"} ${value} option${one ? "" : "s"}`;
    case "uniqueItems":
      return "each option can be picked once";
    case "additionalProperties":
      return "the form has no such field and takes no others";
    case "precision":
      return "has more digits than this page can send exactly";
  }
}

/** Makes a violation of a field. */
export function violation(field: string, rule: RuleCode, limit?: Json): Violation {
  return { field, rule, message: message(rule, limit), ...(limit !== undefined && { limit }) };
}

/** A name from outside, short enough for a message. */
export function clip(name: string): string {
  const chars = [...name];
  return chars.length > 60 ? `${chars.slice(0, 60).join("")}…` : name;
}
