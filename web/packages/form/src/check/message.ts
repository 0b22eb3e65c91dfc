import type { Json, RuleCode, Violation } from "../types.js";

/** Tells of one broken rule, with its limit, and with words of its own where the rule's do not fit. */
export type Broken = (rule: RuleCode, limit?: Json, words?: string) => void;

/** What a value has to be, by type and by format. */
export const SORTS = {
  object: "an object of fields",
  string: "text",
  number: "a number",
  integer: "a whole number",
  boolean: "yes or no",
  array: "a list of options",
  email: "an email address such as ada@example.com",
  uri: "a URL with its scheme, such as https://example.com",
  date: "a date such as 2026-02-28",
  "date-time": "a date and time with its offset, such as 2026-02-28T09:30:00Z",
};

/** How many options a message spells out; more are counted. */
const SPELLED = 8;

/** What a rule wants; `{}` stands for its limit. */
const RULES: Readonly<Record<RuleCode, string>> = {
  required: "a value is required",
  type: "must be {}",
  minLength: "must have at least {} characters",
  maxLength: "must have at most {} characters",
  pattern: "must match the pattern {}",
  format: "must be {}",
  minimum: "must be {} or more",
  maximum: "must be {} or less",
  exclusiveMinimum: "must be more than {}",
  exclusiveMaximum: "must be less than {}",
  multipleOf: "must be a multiple of {}",
  const: "must be {}",
  enum: "must be one of {}",
  minItems: "pick at least {} options",
  maxItems: "pick at most {} options",
  uniqueItems: "each option can be picked once",
  additionalProperties: "the form has no such field and takes no others",
  precision: "has more digits than this page can send exactly",
};

/** Says what a rule wants, as the Rust crate does, without the field's name. */
export function message(rule: RuleCode, limit: Json = null): string {
  if (rule === "minLength" && limit === 1) return "must not be empty";
  const counts = /^m..(Length|Items)$/.test(rule);
  let value = counts ? count(limit as number) : `${limit}`;
  if (rule === "type" || rule === "format") value = SORTS[value as keyof typeof SORTS];
  if (rule === "const") value = JSON.stringify(limit);
  if (Array.isArray(limit)) {
    const more = limit.length - SPELLED;
    value = limit.slice(0, SPELLED).join(", ") + (more > 0 ? ` and ${more} more` : "");
  }
  // A pattern may hold what a replacement text would take for a sign.
  const text = RULES[rule].replace("{}", () => value);
  return limit === 1 && counts ? text.slice(0, -1) : text;
}

/** A count with all of its digits: a number above 2^53 that is printed as it is ends in zeros. */
export function count(value: number): string {
  return `${BigInt(value)}`;
}

/** Makes a violation of a field. */
export function violation(field: string, rule: RuleCode, limit?: Json, words = message(rule, limit)): Violation {
  return { field, rule, message: words, ...(limit !== undefined && { limit }) };
}

/** A name from outside, short enough for a message. */
export function clip(name: string): string {
  const chars = [...name];
  return chars.length > 60 ? `${chars.slice(0, 60).join("")}…` : name;
}
