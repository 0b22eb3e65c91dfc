import type { BooleanField, ChoiceField, ChoicesField, Field, NumberField, TextField } from "../types.js";
import { matches } from "./format.js";
import type { Broken } from "./message.js";
import { isMultiple } from "./number.js";

/** The compiled pattern of a field. */
export type Matcher = (text: string) => boolean;

/** Whether a string is text: without half of a surrogate pair, which no JSON text of the other side takes. */
export const isText = (value: unknown): value is string => typeof value === "string" && !/\p{Cs}/u.test(value);

/** How many characters (Unicode code points) a text has. */
export function length(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** Tells `broken` of every rule that the value breaks. */
export function checkField(field: Field, value: unknown, broken: Broken, matcher?: Matcher): void {
  switch (field.kind) {
    case "text":
      return checkText(field, value, broken, matcher);
    case "number":
    case "integer":
      return checkNumber(field, value, broken);
    case "boolean":
      return checkBoolean(field, value, broken);
    case "choice":
      return checkChoice(field, value, broken);
    case "choices":
      return checkChoices(field, value, broken);
  }
}

/** The values of the options, as the limit of a rule. */
export const valuesOf = (field: ChoiceField | ChoicesField) => field.options.map((option) => option.value);

function checkConstant(field: { readonly constant?: string | number | boolean }, value: unknown, broken: Broken) {
  if (field.constant !== undefined && field.constant !== value) broken("const", field.constant);
}

function checkText(field: TextField, value: unknown, broken: Broken, matcher?: Matcher) {
  if (!isText(value)) return broken("type", "string");
  const size = length(value);
  if (size < field.minLength!) broken("minLength", field.minLength);
  if (size > field.maxLength!) broken("maxLength", field.maxLength);
  if (field.format && !matches(field.format, value)) broken("format", field.format);
  if (matcher && !matcher(value)) broken("pattern", field.pattern);
  checkConstant(field, value, broken);
}

function checkNumber(field: NumberField, value: unknown, broken: Broken) {
  if (typeof value !== "number" || !Number.isFinite(value)) return broken("type", field.kind);
  if (field.kind === "integer" && !Number.isInteger(value)) broken("type", field.kind);
  if (value < field.minimum!) broken("minimum", field.minimum);
  if (value > field.maximum!) broken("maximum", field.maximum);
  if (value <= field.exclusiveMinimum!) broken("exclusiveMinimum", field.exclusiveMinimum);
  if (value >= field.exclusiveMaximum!) broken("exclusiveMaximum", field.exclusiveMaximum);
  if (field.multipleOf !== undefined && !isMultiple(value, field.multipleOf)) broken("multipleOf", field.multipleOf);
  checkConstant(field, value, broken);
}

function checkBoolean(field: BooleanField, value: unknown, broken: Broken) {
  if (typeof value !== "boolean") return broken("type", "boolean");
  checkConstant(field, value, broken);
}

function checkChoice(field: ChoiceField, value: unknown, broken: Broken) {
  if (!isText(value)) return broken("type", "string");
  const values = valuesOf(field);
  if (!values.includes(value)) broken("enum", values);
  checkConstant(field, value, broken);
}

function checkChoices(field: ChoicesField, value: unknown, broken: Broken) {
  if (!Array.isArray(value)) return broken("type", "array");
  if (value.length < field.minItems!) broken("minItems", field.minItems);
  if (value.length > field.maxItems!) broken("maxItems", field.maxItems);
  const texts = value.filter(isText);
  if (texts.length < value.length) broken("type", "array");
  const values = valuesOf(field);
  const known = new Set(values);
  if (texts.some((text) => !known.has(text))) broken("enum", values);
  if (field.unique && new Set(texts).size < texts.length) broken("uniqueItems");
}
