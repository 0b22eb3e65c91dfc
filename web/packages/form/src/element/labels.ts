import { SORTS } from "../check/message.js";
import type { Violation } from "../types.js";
import type { WORDS as Clock } from "./later/clock.js";
import type { WORDS as Lenient } from "./later/lenient.js";
import type { WORDS as Moment } from "./later/moment.js";
import type { WORDS as Pattern } from "./later/pattern.js";
import type { WORDS as Review } from "./later/review.js";
import type { WORDS as Search } from "./later/search.js";
import type { WORDS as Sure } from "./later/sure.js";
import type { WORDS as Typing } from "./later/typing.js";
import type { WORDS as Visit } from "./later/visit.js";

/** The words of the first screen, in English. `{0}` and `{1}` stand for names and numbers. What is loaded later brings its own. */
export const LABELS = {
  asks: "asks",
  asksVisit: "asks you to visit a page",
  claims: "calls itself “{0}”",
  version: "version {0}",
  tool: "tool {0}",
  details: "Details",
  neither: "Neither: decline or cancel",
  required: "required",
  optional: "optional",
  noAnswer: "No answer",
  yes: "Yes",
  no: "No",
  accept: "Send answer",
  review: "Review answers",
  decline: "Decline",
  cancel: "Cancel",
  notNow: "Not now",
  problems: "Nothing was sent yet. Answers that need another look: {0}",
  failed: "The answer could not be sent. Nothing is lost: try again.",
  incomplete: "is not complete yet",
  loading: "Loading the question…",
  submitting: "Sending…",
  sent: "Answer sent.",
  declined: "Declined.",
  cancelled: "Cancelled. The server is told that you made no choice.",
  withdrawn: "The server withdrew this question. Nothing was sent.",
  expired: "The time to answer ran out. Nothing was sent.",
  refused: "This question cannot be answered here: it is not a legal question.",
  missing: "A part of this page could not be loaded.",
  unchecked: "The pattern of {0} is not checked here.",
  exactly: "exactly {0}",
  range: "{0} to {1}",
  least: "at least {0}",
  most: "at most {0}",
  characters: "{0} characters",
  above: "more than {0}",
  below: "less than {0}",
  steps: "in steps of {0}",
  matches: "matches {0}",
  choose: "choose {0}",
  ...(SORTS as Pick<typeof SORTS, "number" | "integer" | "email" | "uri" | "date-time">),
  date: "a date",
};

/** The key of a word. */
export type Word = keyof (typeof LABELS & typeof Clock & typeof Visit & typeof Review & typeof Search & typeof Moment & typeof Lenient & typeof Sure & typeof Typing & typeof Pattern);

/** The words of the element; every one can be replaced. */
export type Labels = { [K in Word]: string } & {
  /** Says in other words what a field wants. */
  messages?: (violation: Violation) => string;
};

/** Says a label with names and numbers in it. */
export type Say = (key: Word, ...values: readonly (string | number)[]) => string;

export const sayWith =
  (labels: Partial<Labels>): Say =>
  (key, ...values) =>
    (labels[key] ?? (LABELS as Labels)[key]).replace(/\{(\d)\}/g, (_, i: string) => `${values[Number(i)]}`);
