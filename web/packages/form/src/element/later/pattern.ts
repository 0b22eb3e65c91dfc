import { exampleOf } from "../../check/example.js";
import type { TextField } from "../../types.js";
import type { Kit } from "../later.js";

export { compile } from "../../check/pattern.js";

/** The words of a pattern. */
export const WORDS = {
  such: "such as {0}",
  inPattern: "in a given pattern",
  pattern: "Pattern",
};

/** Its style rules. */
export const CSS = '[part~="pattern"]{display:inline-block;vertical-align:top}[part~="pattern"] code{font-family:var(--font-mono,monospace)}';

/** Shows a text that a pattern takes, and the pattern itself once it is opened. */
export function show({ h, inert, say }: Kit, field: TextField, fits: (text: string) => boolean): HTMLElement {
  const example = exampleOf(field.pattern!, fits);
  return h("span", {}, example === undefined ? say("inPattern") : say("such", example), " ", h("details", { part: "pattern" }, h("summary", {}, say("pattern")), h("code", { dir: "ltr" }, inert(field.pattern, 1000))));
}
