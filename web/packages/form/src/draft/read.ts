import { valuesOf } from "../check/field.js";
import type { ChoiceOption } from "../types.js";
import { enteredReader, isEmpty, type Reader, whole } from "./entered.js";
import { readAddress, readMail } from "./address.js";
import { readDate, readDateTime } from "./moment.js";
import { plainNumber } from "./number.js";
import { trim } from "./trim.js";

const readEntered = enteredReader({ date: readDate, "date-time": readDateTime, uri: readAddress, email: readMail, number: plainNumber });

/** Reads a draft from anywhere: yes or no in words, and options by their values, their titles, or as a list in one text. */
export const readDraft: Reader = (field, entered, broken) => {
  const value = whole(entered);
  if (isEmpty(field, value)) return undefined;
  switch (field.kind) {
    case "boolean": {
      const flag = typeof value === "string" ? readFlag(trim(value).toLowerCase()) : value;
      return typeof flag === "boolean" ? flag : void broken("type", field.kind);
    }
    case "choice": {
      const [text, ...more] = typeof value === "string" ? [value] : Array.isArray(value) ? (value as readonly string[]) : [];
      const option = text !== undefined && !more.length ? optionOf(field.options, text) : undefined;
      if (option === undefined) broken("enum", valuesOf(field));
      return option;
    }
    case "choices": {
      const picked =
        typeof value === "string" ? optionsOf(field.options, value) : Array.isArray(value) ? value.map((one: string) => optionOf(field.options, one)) : [undefined];
      if (picked.every((one) => one !== undefined)) return picked;
      return void broken("enum", valuesOf(field));
    }
  }
  return readEntered(field, value, broken);
};

const YES = "yes y true t 1 on ok ja oui si sí sim".split(" ");
const NO = "no n false f 0 off nein non não".split(" ");

function readFlag(word: string): boolean | undefined {
  return YES.includes(word) || (NO.includes(word) ? false : undefined);
}

/** The option meant by a value, a title, or either in other letter case where only one fits. */
function optionOf(options: readonly ChoiceOption[], text: string): string | undefined {
  const label = (option: ChoiceOption) => option.title ?? option.value;
  const exact = options.find((option) => option.value === text);
  if (exact) return exact.value;
  // Of two options with one title, neither is guessed.
  const titled = options.filter((option) => label(option) === text);
  if (titled.length) return titled.length > 1 ? undefined : titled[0]!.value;
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
