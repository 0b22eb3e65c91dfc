import type { ChoiceField, ChoicesField, Field, Json, RuleCode, TextField } from "../types.js";
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
  const { kind } = field;
  /** A rule whose limit is a keyword of the field; one that is not there breaks nothing. */
  const rule = (name: RuleCode, isBroken: unknown) => isBroken && broken(name, (field as unknown as Record<string, Json>)[name]);
  switch (kind) {
    case "text": {
      if (!isText(value)) return broken("type", "string");
      const size = length(value);
      rule("minLength", size < field.minLength!);
      rule("maxLength", size > field.maxLength!);
      rule("format", field.format && !matches(field.format, value));
      rule("pattern", matcher && !matcher(value));
      break;
    }
    case "number":
    case "integer":
      if (typeof value !== "number" || !Number.isFinite(value)) return broken("type", kind);
      if (kind === "integer" && !Number.isInteger(value)) broken("type", kind);
      rule("minimum", value < field.minimum!);
      rule("maximum", value > field.maximum!);
      rule("exclusiveMinimum", value <= field.exclusiveMinimum!);
      rule("exclusiveMaximum", value >= field.exclusiveMaximum!);
      rule("multipleOf", field.multipleOf !== undefined && !isMultiple(value, field.multipleOf));
      break;
    case "boolean":
      if (typeof value !== kind) return broken("type", kind);
      break;
    case "choice": {
      if (!isText(value)) return broken("type", "string");
      const values = valuesOf(field);
      if (!values.includes(value)) broken("enum", values);
      break;
    }
    case "choices": {
      if (!Array.isArray(value)) return broken("type", "array");
      rule("minItems", value.length < field.minItems!);
      rule("maxItems", value.length > field.maxItems!);
      const texts = value.filter(isText);
      if (texts.length < value.length) broken("type", "array");
      const values = valuesOf(field);
      const known = new Set(values);
      if (texts.some((text) => !known.has(text))) broken("enum", values);
      if (field.unique && new Set(texts).size < texts.length) broken("uniqueItems");
      return;
    }
  }
  const { constant } = field as TextField;
  if (constant !== undefined && constant !== value) broken("const", constant);
}

/** The values of the options, as the limit of a rule. */
export const valuesOf = (field: ChoiceField | ChoicesField) => field.options.map((option) => option.value);
