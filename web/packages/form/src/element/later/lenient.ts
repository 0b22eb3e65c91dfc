import type { Form, Parsed } from "../../check/form.js";
import type { ReadSchema } from "../../check/parse.js";
import type { Reader } from "../../draft/entered.js";
import { plainNumber } from "../../draft/number.js";
import { LIMITS, parse as parseLeniently, strictly } from "../../lenient/parse.js";
import type { Defect, Field, FormRequest } from "../../types.js";
import type { Say } from "../labels.js";
import type { Kit } from "../later.js";

/** Reads a schema that is not legal. Numbers are read in all their spellings, also where the part for typing is not there. */
export const parse = (reader: Reader, Base: typeof Form, read: ReadSchema, { message, requestedSchema }: FormRequest): Parsed => {
  // Nobody can answer a question that says nothing.
  if (typeof message !== "string") return strictly(reader, Base, read(requestedSchema, LIMITS));
  const numbers: Reader = (field, value, broken) => {
    const plain = (field.kind === "number" || field.kind === "integer") && typeof value === "string" ? plainNumber(value.trim()) : undefined;
    return reader(field, plain ?? value, broken);
  };
  return parseLeniently(numbers, Base, read, requestedSchema);
};

export const CSS = "";

/** The words of this part. */
export const WORDS = {
  lines: "one value per line",
  otherFormat: "{0}, not checked here",
};

/** Says what makes the schema one that nobody can fill in. */
export const reasons = ({ h, inert }: Kit, defects: readonly Defect[]): HTMLElement[] =>
  defects.slice(0, 20).map(({ pointer, code, message }) => h("li", {}, inert(`${pointer || "/"}: ${code}${message ? ` (${message})` : ""}`)));

/** Returns a field that the element has a control for in place of one that only a lenient reading has. */
export function shown(field: Field, say: Say): Field | undefined {
  const { name, label, title, description, required } = field;
  const text = { name, label, ...(title && { title }), ...(description && { description }), required, kind: "text" as const };
  if (field.kind === "lines") {
    const bounds = [field.minItems && say("least", field.minItems), field.maxItems !== undefined && say("most", field.maxItems)];
    return { ...text, maxLength: Infinity, hint: [say("lines"), ...bounds].filter(Boolean).join(" · ") };
  }
  if (field.kind === "union") return { ...text, hint: "" };
  if (field.kind === "text" && field.otherFormat && !field.format) return { ...field, hint: say("otherFormat", field.otherFormat) };
  return undefined;
}
