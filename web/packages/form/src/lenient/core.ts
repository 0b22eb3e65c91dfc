// What the lenient reading has of its own: a page that has loaded the strict one hands over the rest, so that neither has a copy of much.

/** The validation and applicator keywords of JSON Schema, draft-04 to 2020-12. */
export const CONSTRAINS = new Set(
  (
    "$ref $dynamicRef $recursiveRef properties patternProperties additionalProperties required type const enum oneOf items format pattern minLength maxLength " +
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems uniqueItems allOf anyOf not if then else additionalItems prefixItems " +
    "contains minContains maxContains unevaluatedItems propertyNames minProperties maxProperties dependencies dependentRequired dependentSchemas " +
    "unevaluatedProperties divisibleBy disallow extends"
  ).split(" "),
);

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null && !Array.isArray(value);

/** What kind of JSON value this is. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : `a${typeof value === "object" ? "n" : ""} ${typeof value}`;
}

/** A name from outside, short enough for a message. */
export function clip(name: string): string {
  const chars = [...name];
  return chars.length > 60 ? `${chars.slice(0, 60).join("")}…` : name;
}

/** Whether a text has nothing but white space, as Unicode defines it. */
export const isBlank = (text: string) => !/\P{White_Space}/u.test(text);
