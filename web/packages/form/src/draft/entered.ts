import { isDate } from "../check/format.js";
import type { Broken } from "../check/message.js";
import type { DraftValue, ElicitContent, Field } from "../types.js";
import { trim } from "./trim.js";

/** Returns the value that a person meant; undefined where the field is left empty. Tells `broken` where it cannot be read. */
export type Reader = (field: Field, entered: DraftValue, broken: Broken) => ElicitContent[string] | undefined;

/** What the reading of a date and time is made with: it may be in a file of its own, which has no copy of these. */
export interface Basics {
  readonly trim: typeof trim;
  readonly isDate: typeof isDate;
}

/** Reads what people write in many ways; each gives undefined where it cannot. */
export interface Lenient {
  readonly date?: (text: string) => string | undefined;
  readonly "date-time": (text: string, basics: Basics) => string | undefined;
  readonly uri: (text: string) => string | undefined;
  readonly email?: (text: string) => string | undefined;
  readonly number: (text: string) => string | undefined;
}

/** Reads what the element's own controls give: text, and of yes or no and of options the values. */
export const enteredReader =
  (lenient: Lenient): Reader =>
  (field, entered, broken) => {
    const value = whole(entered);
    if (isEmpty(field, value)) return undefined;
    const wrong = () => void broken("type", field.kind === "text" ? "string" : field.kind);
    switch (field.kind) {
      case "text": {
        if (typeof value !== "string") return wrong();
        // Free text is kept as entered; around a formatted value white space means nothing.
        if (!field.format) return value;
        const plain = trim(value);
        return lenient[field.format]?.(plain, { trim, isDate }) ?? plain;
      }
      case "number":
      case "integer": {
        const text = typeof value === "string" ? trim(value) : "";
        const number = readNumber(lenient.number(text) ?? "");
        // A point stands where it groups digits in many countries, 1.000: a whole number has no fraction.
        const doubtful = field.kind === "integer" && /^[-+\u2212]?[1-9]\d{0,2}\.\d{3}$/.test(text);
        if (number === undefined || doubtful) return wrong();
        if (number === null) return void broken("precision");
        return number;
      }
    }
    // The check says what is wrong with these.
    return value as ElicitContent[string];
  };

/** Half of a surrogate pair cannot be sent. */
export const whole = (entered: DraftValue): DraftValue => (typeof entered === "string" ? entered.replace(/\p{Cs}/gu, "\ufffd") : entered);

/** Whether nothing was entered: a required list of options may be empty. */
export const isEmpty = (field: Field, value: DraftValue): boolean =>
  value === null || (typeof value === "string" ? !trim(value) : Array.isArray(value) && !value.length && "options" in field && !(field.kind === "choices" && field.required));

/** Reads a number. Undefined where it is none, null where this page would have to round a whole number. */
function readNumber(text: string): number | null | undefined {
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(text)) return undefined;
  const number = Number(text);
  if (!Number.isFinite(number)) return undefined;
  return /^-?\d+$/.test(text) && BigInt(text) !== BigInt(number) ? null : number;
}
