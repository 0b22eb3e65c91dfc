import css from "../../style/moment.css";
import type { DraftValue } from "../../types.js";
import type { Kit } from "../later.js";

export { readDateTime } from "../../draft/moment.js";

/** The words of a date and time. */
export const WORDS = {
  "date-time": "a date and time with zone",
  moment: "Date and time",
  zone: "Time zone",
  unknownZone: "the time zone is not known here; write one like Europe/Brussels, UTC or +02:00",
};

/** Its style rules. */
export const CSS: string = css;

/** Makes the two inputs of a date and time with its zone. `line` makes an input of the field. */
export function show({ h, say }: Kit, text: string, id: string, aria: object, line: (more: object) => HTMLInputElement): { root: HTMLElement; read: () => DraftValue; unfinished: () => string | false } {
  const [, local = "", zone = ""] = /^([^[]*?)(?:\[(.*)\]|(Z|[+-][\d:]+)?)$/i.exec(text) ?? [];
  const offset = /(Z|[+-]\d\d:\d\d)$/i.exec(text)?.[0] ?? "";
  const date = line({ type: "datetime-local", step: 1 });
  date.value = local.replace(" ", "T");
  const zones = `${id}d`;
  const place = h("input", { part: "control", id: `${id}z`, list: zones, autocomplete: "off", spellcheck: "false", ...aria });
  place.value = zone || offset || Intl.DateTimeFormat().resolvedOptions().timeZone;
  const list = h("datalist", { id: zones });
  // Four hundred names are made when they are looked at.
  place.addEventListener("focus", () => list.childElementCount || list.append(...Intl.supportedValuesOf("timeZone").map((value) => h("option", { value }))));
  const part = (input: HTMLElement, word: string) => h("div", {}, h("label", { for: input.id }, word), input);
  return {
    root: h("div", { part: "moment" }, part(date, say("moment")), part(place, say("zone")), list),
    read: () => (date.value ? `${date.value}[${place.value.trim()}]` : null),
    unfinished() {
      if (date.validity.badInput) return say("incomplete");
      return !!date.value && !/^(z|[+\-\u2212]\d\d?(:?\d\d)?)$/i.test(place.value.trim()) && !isZone(place.value.trim()) && say("unknownZone");
    },
  };
}

function isZone(timeZone: string): boolean {
  try {
    return !!Intl.DateTimeFormat("en", { timeZone });
  } catch {
    return false;
  }
}
