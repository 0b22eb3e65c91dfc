import css from "../../style/sure.css";
import type { Kit } from "../later.js";

/** The words of the question whether to cancel. */
export const WORDS = {
  sure: "Cancel this question?",
  sureText: "What you filled in is dropped. The server is told that you made no choice.",
  sureYes: "Cancel the question",
  sureNo: "Keep answering",
};

/** Its style rules. */
export const CSS: string = css;

/** Asks whether what was entered is to be dropped. `yes` is told if so. */
export function show({ h, say }: Kit, root: ParentNode, yes: () => void): void {
  const dialog = h("dialog", { "aria-labelledby": "sure", close: () => dialog.remove(), cancel: (event: Event) => event.stopPropagation() },
    h("h3", { id: "sure" }, say("sure")),
    h("p", {}, say("sureText")),
    h("div", { part: "row" },
      h("button", { part: "button primary", type: "button", click: () => (dialog.close(), yes()) }, say("sureYes")),
      h("button", { part: "button", type: "button", autofocus: true, click: () => dialog.close() }, say("sureNo")),
    ),
  );
  root.append(dialog);
  dialog.showModal();
}
