import { minutesLeft } from "../../behaviour/clock.js";
import css from "../../style/clock.css";
import type { Kit } from "../later.js";

/** The words of the time that is left. */
export const WORDS = {
  time: "Time left to answer:",
  days: "{0} days",
  hours: "{0} h {1} min",
};

/** Its style rules. */
export const CSS: string = css;

/** Shows how many seconds are left. */
export function show({ h, say }: Kit, clock: HTMLElement, left: number): void {
  const hours = Math.floor(left / 3600);
  const words = minutesLeft(left) ?? (hours < 48 ? say("hours", hours, Math.floor(left / 60) % 60) : say("days", Math.floor(hours / 24)));
  clock.replaceChildren(h("span", { part: "unseen" }, say("time"), " "), words);
  clock.toggleAttribute("data-short", left <= 30);
}
