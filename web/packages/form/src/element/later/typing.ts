import { stepped } from "../../behaviour/stepper.js";
import type { NumberField } from "../../types.js";
import type { Kit } from "../later.js";

export { growing } from "../../behaviour/grow.js";
export { readAddress, readMail } from "../../draft/address.js";
export { plainNumber } from "../../draft/number.js";

/** The words of a number. */
export const WORDS = {
  less: "Less: {0}",
  more: "More: {0}",
};
export const CSS = "";

/** Puts buttons for less and more beside the input of a number. */
export function stepper({ h, say }: Kit, { multipleOf = 1, minimum, maximum }: NumberField, input: HTMLInputElement, label: string): HTMLElement {
  const move = (direction: bigint) => {
    const next = stepped(input.value, `${multipleOf}`, `${minimum ?? ""}`, `${maximum ?? ""}`, direction);
    if (next == null) return;
    input.value = next;
    input.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  };
  const button = (sign: string, key: "less" | "more", direction: bigint) =>
    h("button", { part: "button step", type: "button", tabindex: -1, "aria-label": say(key, label), click: () => move(direction) }, sign);
  input.addEventListener("keydown", (event) => {
    const direction = { ArrowUp: 1n, ArrowDown: -1n }[event.key];
    if (!direction) return;
    event.preventDefault();
    move(direction);
  });
  return h("div", { part: "stepper" }, input, button("−", "less", -1n), button("+", "more", 1n));
}
