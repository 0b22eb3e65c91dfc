import css from "../style/element.css";
import type { h } from "./h.js";
import type { inert } from "./inert.js";
import { LABELS, type Say } from "./labels.js";

/** What the parts that are loaded later take from the element, so that no part has a copy of it. */
export interface Kit {
  readonly h: typeof h;
  readonly inert: typeof inert;
  readonly say: Say;
}

/** The parts that most questions do without. A page loads them with its first question that needs them. */
const PARTS = {
  visit: () => import("./later/visit.js"),
  review: () => import("./later/review.js"),
  search: () => import("./later/search.js"),
  moment: () => import("./later/moment.js"),
  typing: () => import("./later/typing.js"),
  clock: () => import("./later/clock.js"),
  sure: () => import("./later/sure.js"),
};

/** The name of a part. */
export type LaterName = keyof typeof PARTS;

/** The parts that are there; null for one that could not be loaded. */
export const LATER: { [K in LaterName]?: Awaited<ReturnType<(typeof PARTS)[K]>> | null } = {};

let text = css;
let sheet: CSSStyleSheet | undefined;

/** Returns the style sheet of all elements. */
export function styles(): CSSStyleSheet {
  if (!sheet) (sheet = new CSSStyleSheet()).replaceSync(text);
  return sheet;
}

/** Loads a part, and does not fail: `LATER` says what came of it. */
export async function load(name: LaterName): Promise<void> {
  if (LATER[name]) return;
  try {
    const part = await PARTS[name]();
    Object.assign(LABELS, part.WORDS);
    if (!LATER[name]) sheet?.replaceSync((text += part.CSS));
    Object.assign(LATER, { [name]: part });
  } catch {
    LATER[name] = null;
  }
}
