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
  lenient: () => import("./later/lenient.js"),
  pattern: () => import("./later/pattern.js"),
  known: () => import("./later/known.js"),
  de: () => import("./later/de.js"),
  fr: () => import("./later/fr.js"),
  es: () => import("./later/es.js"),
};

/** The languages besides English. */
const LANGUAGES = ["de", "fr", "es"] as const;

/** Returns the language of an element, where it is one of those besides English. */
export function languageOf(element: Element): (typeof LANGUAGES)[number] | undefined {
  const { lang } = element.closest<HTMLElement>("[lang]") ?? document.documentElement;
  return LANGUAGES.find((language) => language === lang.slice(0, 2).toLowerCase());
}

/** The name of a part. */
export type LaterName = keyof typeof PARTS;

/** The parts that are there; null for one that could not be loaded. */
export const LATER: { [K in LaterName]?: Awaited<ReturnType<(typeof PARTS)[K]>> | null } = {};

/** The addresses of parts that could not be loaded. */
const FAILED: { [K in LaterName]?: string } = {};
let tries = 0;

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
    // A browser may remember for as long as the page is open that it could not load a module from an address.
    const part = await (FAILED[name] ? import(/* webpackIgnore: true */ /* @vite-ignore */ `${FAILED[name]}#${++tries}`) : PARTS[name]());
    Object.assign(LABELS, part.WORDS);
    if (!LATER[name]) sheet?.replaceSync((text += part.CSS));
    Object.assign(LATER, { [name]: part });
  } catch (error) {
    // Chromium and Firefox name the address; Safari loads it again by itself.
    FAILED[name] ??= /\bhttps?:\S+/.exec(String(error))?.[0]!;
    LATER[name] = null;
  }
}
