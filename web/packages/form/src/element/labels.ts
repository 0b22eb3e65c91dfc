import type { Violation } from "../types.js";

/** Every word of the element, in English. `{0}` and `{1}` stand for names and numbers. */
export const LABELS = {
  asks: "asks",
  asksVisit: "asks you to visit a page",
  claims: "calls itself “{0}”",
  version: "version {0}",
  tool: "To go on with the tool {0}",
  toolCalled: "To go on with the tool {0} called with",
  time: "Time left to answer:",
  days: "{0} days",
  hours: "{0} h {1} min",
  required: "required",
  optional: "optional",
  noAnswer: "No answer",
  yes: "Yes",
  no: "No",
  moment: "Date and time",
  zone: "Time zone",
  less: "Less: {0}",
  more: "More: {0}",
  search: "Search {0} options",
  searchIn: "Search the options of {0}",
  found: "Options found: {0}.",
  chosen: "Chosen: {0}",
  accept: "Send answer",
  review: "Review answers",
  change: "Change answers",
  decline: "Decline",
  cancel: "Cancel",
  notNow: "Not now",
  open: "Open in a new tab",
  visited: "I have done this",
  reviewTitle: "This is what the server will get",
  nothingSent: "Nothing has been sent yet.",
  empty: "no answer",
  problems: "Nothing was sent yet. Answers that need another look: {0}",
  failed: "The answer could not be sent. Nothing is lost: try again.",
  incomplete: "is not complete yet",
  unknownZone: "the time zone is not known here; write one like Europe/Brussels, UTC or +02:00",
  sure: "Cancel this question?",
  sureText: "What you filled in is dropped. The server is told that you made no choice.",
  sureYes: "Cancel the question",
  sureNo: "Keep answering",
  loading: "Loading the question…",
  submitting: "Sending…",
  sent: "Answer sent.",
  declined: "Declined.",
  cancelled: "Cancelled. The server is told that you made no choice.",
  withdrawn: "The server withdrew this question. Nothing was sent.",
  expired: "The time to answer ran out. Nothing was sent.",
  refused: "This question cannot be answered here: it is not a legal question.",
  unchecked: "The pattern of {0} is not checked here.",
  where: "Is this where you want to go?",
  whereText: "Check the name in bold before you open it. What you do there is between you and that site.",
  address: "The whole address",
  plain: "The connection is not encrypted (no https).",
  user: "The address has a user name in it, which can make it look like another site.",
  ip: "The address has a number in place of a name.",
  foreign: "The name has letters of other scripts, which can look like another name.",
  port: "The address has an unusual port: {0}.",
  long: "The address is unusually long.",
  exactly: "exactly {0}",
  range: "{0} to {1}",
  least: "at least {0}",
  most: "at most {0}",
  characters: "{0} characters",
  number: "a number",
  integer: "a whole number",
  above: "more than {0}",
  below: "less than {0}",
  steps: "in steps of {0}",
  matches: "matches {0}",
  choose: "choose {0}",
  email: "an email address, like ana@example.org",
  uri: "a full address, like https://example.org",
  date: "a date",
  "date-time": "a date and time with zone",
};

/** The words of the element; every one can be replaced. */
export type Labels = { [K in keyof typeof LABELS]: string } & {
  /** Says in other words what a field wants. */
  messages?: (violation: Violation) => string;
};

/** Says a label with names and numbers in it. */
export type Say = (key: keyof typeof LABELS, ...values: readonly (string | number)[]) => string;

export const sayWith =
  (labels: Partial<Labels>): Say =>
  (key, ...values) =>
    (labels[key] ?? LABELS[key]).replace(/\{(\d)\}/g, (_, i: string) => `${values[Number(i)]}`);
