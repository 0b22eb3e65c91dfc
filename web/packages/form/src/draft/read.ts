import type { Broken } from "../check/message.js";
import { valuesOf } from "../check/field.js";
import type { ChoiceOption, DraftValue, ElicitContent, Field } from "../types.js";
import { readDate, readDateTime } from "./moment.js";
import { readNumber } from "./number.js";
import { trim } from "./trim.js";

/** Returns the value that a person meant; undefined where the field is left empty. Tells `broken` where it cannot be read. */
export function readDraft(field: Field, entered: DraftValue, broken: Broken): ElicitContent[string] | undefined {
  // Half of a surrogate pair cannot be sent.
  const value = typeof entered === "string" ? entered.replace(/\p{Cs}/gu, "\ufffd") : entered;
  if (value === null || (typeof value === "string" && !trim(value))) return undefined;
  const wrong = (type: string) => void broken("type", type);
  switch (field.kind) {
    case "text":
      return typeof value === "string" ? readText(value, field.format) : wrong("string") as undefined;
    case "number":
    case "integer": {
      const text = typeof value === "string" ? trim(value) : "";
      const number = readNumber(text);
      // A point stands where it groups digits in many countries, 1.000: a whole number has no fraction.
      const doubtful = field.kind === "integer" && /^[-+\u2212]?[1-9]\d{0,2}\.\d{3}$/.test(text);
      if (number === undefined || doubtful) return wrong(field.kind) as undefined;
      if (number === null) return void broken("precision") as undefined;
      return number;
    }
    case "boolean": {
      const flag = typeof value === "string" ? readFlag(trim(value).toLowerCase()) : value;
      return typeof flag === "boolean" ? flag : wrong("boolean") as undefined;
    }
    case "choice": {
      if (Array.isArray(value) && !value.length) return undefined;
      const [text, ...more] = typeof value === "string" ? [value] : Array.isArray(value) ? (value as readonly string[]) : [];
      const option = text !== undefined && !more.length ? optionOf(field.options, text) : undefined;
      if (option === undefined) broken("enum", valuesOf(field));
      return option;
    }
    case "choices": {
      if (Array.isArray(value) && !value.length && !field.required) return undefined;
      const picked =
        typeof value === "string" ? optionsOf(field.options, value) : Array.isArray(value) ? value.map((one: string) => optionOf(field.options, one)) : [undefined];
      if (picked.every((one) => one !== undefined)) return picked;
      return void broken("enum", valuesOf(field)) as undefined;
    }
  }
}

/** Free text is kept as entered; around a formatted value white space means nothing. */
function readText(text: string, format?: string): string {
  if (!format) return text;
  const plain = trim(text);
  return (format === "date" ? readDate(plain) : format === "date-time" ? readDateTime(plain) : undefined) ?? plain;
}

const YES = "yes y true t 1 on ok ja oui si sí sim".split(" ");
const NO = "no n false f 0 off nein non não".split(" ");

function readFlag(word: string): boolean | undefined {
  return YES.includes(word) || (NO.includes(word) ? false : undefined);
}

/** The option meant by a value, a title, or either in other letter case where only one fits. */
function optionOf(options: readonly ChoiceOption[], text: string): string | undefined {
  const label = (option: ChoiceOption) => option.title ?? option.value;
  const exact = options.find((option) => option.value === text) ?? options.find((option) => label(option) === text);
  if (exact) return exact.value;
  const wanted = trim(text).toLowerCase();
  const close = options.filter((option) => option.value.toLowerCase() === wanted || label(option).toLowerCase() === wanted);
  return close.length === 1 ? close[0]!.value : undefined;
}

/** One option, or several between commas, semicolons or line ends, or as a JSON list, in which options may have commas. */
function optionsOf(options: readonly ChoiceOption[], text: string): (string | undefined)[] {
  const one = optionOf(options, trim(text));
  if (one !== undefined) return [one];
  let parts: unknown;
  try {
    parts = JSON.parse(text);
  } catch {
    // It is no JSON list, then.
  }
  if (!Array.isArray(parts) || parts.some((part) => typeof part !== "string")) parts = text.split(/[,;\n]/).map(trim).filter(Boolean);
  return (parts as string[]).map((part) => optionOf(options, part));
}
