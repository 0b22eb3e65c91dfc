import { searchable } from "../../behaviour/search.js";
import css from "../../style/search.css";
import type { Kit } from "../later.js";

/** The words of the search. */
export const WORDS = {
  search: "Search {0} options",
  searchIn: "Search the options of {0}",
  found: "Options found: {0}.",
  chosen: "Chosen: {0}",
};

/** Its style rules. */
export const CSS: string = css;

/** Puts a box to search in above a long list, and below it what was found and chosen. */
export function show({ h, say }: Kit, label: string, picks: HTMLElement, rows: readonly HTMLElement[], count: number, picked: () => string[]): HTMLElement {
  const find = h("input", { part: "search", type: "search", autocomplete: "off", placeholder: say("search", count), "aria-label": say("searchIn", label) });
  const tally = h("p", { part: "tally", "aria-live": "polite" });
  let found: number | null = null;
  const tell = () => {
    const chosen = picked();
    const more = chosen.length - 3;
    tally.textContent = `${found === null ? "" : say("found", found)} ${chosen.length ? say("chosen", chosen.slice(0, 3).join(", ") + (more > 0 ? ` +${more}` : "")) : ""}`.trim();
  };
  searchable(find, rows, (count) => {
    found = count;
    tell();
  });
  picks.addEventListener("change", tell);
  tell();
  return h("div", { part: "list" }, find, picks, tally);
}
