/** Gives text of several lines, pasted into one line, the room it needs instead of losing its breaks. `replaced` is told of the new control. */
export function growing(input: HTMLInputElement, replaced: (area: HTMLTextAreaElement) => void): void {
  input.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (!/[\r\n]/.test(text.trim())) return;
    event.preventDefault();
    const area = document.createElement("textarea");
    for (const { name, value } of input.attributes) if (name !== "type" && name !== "value") area.setAttribute(name, value);
    area.rows = 4;
    area.value = input.value.slice(0, input.selectionStart!) + text + input.value.slice(input.selectionEnd!);
    input.replaceWith(area);
    replaced(area);
    area.focus();
    area.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  });
}
