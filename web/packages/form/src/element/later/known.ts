import type { Labels } from "../labels.js";

export const WORDS = {};
export const CSS = "";

/** Every key of `labels`. The compiler finds one that is missing. */
export const KEYS: readonly string[] = Object.keys({
  asks: 1, asksVisit: 1, claims: 1, version: 1, tool: 1, details: 1, neither: 1, required: 1, optional: 1, noAnswer: 1, yes: 1, no: 1, accept: 1,
  review: 1, decline: 1, cancel: 1, notNow: 1, problems: 1, failed: 1, incomplete: 1, loading: 1, submitting: 1, sent: 1, declined: 1, cancelled: 1,
  withdrawn: 1, expired: 1, refused: 1, missing: 1, unchecked: 1, exactly: 1, range: 1, least: 1, most: 1, characters: 1, above: 1, below: 1,
  steps: 1, matches: 1, choose: 1, date: 1, number: 1, integer: 1, email: 1, uri: 1, "date-time": 1, time: 1, days: 1, hours: 1, open: 1, visited: 1,
  where: 1, whereText: 1, address: 1, plain: 1, user: 1, ip: 1, foreign: 1, port: 1, long: 1, change: 1, reviewTitle: 1, nothingSent: 1, empty: 1,
  search: 1, searchIn: 1, found: 1, chosen: 1, moment: 1, zone: 1, unknownZone: 1, lines: 1, otherFormat: 1, sure: 1, sureText: 1, sureYes: 1,
  sureNo: 1, less: 1, more: 1, such: 1, inPattern: 1, pattern: 1, messages: 1,
} satisfies Record<keyof Labels, 1>);

const warned = new Set<string>();

/** Says once of each key that it is none, and what it may have been meant for. */
export function warn(labels: Partial<Labels>): void {
  for (const key of Object.keys(labels)) {
    if (KEYS.includes(key) || warned.has(key)) continue;
    warned.add(key);
    console.warn(`<mcp-elicitation> has no label "${key}". Its labels are: ${KEYS.join(", ")}.`);
  }
}
