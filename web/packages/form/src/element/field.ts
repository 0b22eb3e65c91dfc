import type { ChoiceField, DraftValue, Field } from "../types.js";
import { h } from "./h.js";
import { hints } from "./hints.js";
import { inert } from "./inert.js";
import type { Say } from "./labels.js";
import { LATER, type LaterName, load } from "./later.js";

/** One field on the screen. */
export interface Control {
  readonly field: Field;
  readonly root: HTMLElement;
  /** Returns what is entered. */
  readonly read: () => DraftValue;
  /** Returns what is wrong with it before it can be read: half a date, an unknown zone. */
  readonly unfinished: () => string | false;
  readonly show: (errors: readonly string[]) => void;
  readonly focus: () => void;
}

/** Longer lists have a box to search in. */
const SEARCHED = 12;

/** Makes the control of a field with what was entered before. `id` is unique in the element, `mark` says whether it is required, `fits` checks an example. */
export function control(field: Field, entered: DraftValue, id: string, say: Say, mark: string | false, fits: (text: string) => boolean): Control {
  const label = inert(field.label);
  const hint = field.hint ?? hints(field, say);
  const about = field.description && inert(field.description, 4000, true);
  const like = field.kind === "text" && field.pattern !== undefined && LATER.pattern?.show({ h, inert, say }, field, fits);
  const described = [about && `${id}a`, (hint || like) && `${id}l`, `${id}e`].filter(Boolean).join(" ");
  const aria = { "aria-describedby": described };
  const errors = h("ul", { part: "error", id: `${id}e`, "aria-live": "polite" });
  const name = [h("bdi", {}, label), " ", mark && h("span", { part: `need${field.required ? " required" : ""}` }, mark)];
  const texts = [
    about && h("p", { part: "description", id: `${id}a`, dir: "auto" }, about),
    (hint || like) && h("p", { part: "limit", id: `${id}l` }, hint, hint && like && ", ", like),
  ];
  const text = typeof entered === "string" ? entered : "";
  /** The control that is marked as wrong and takes the focus. */
  let main: HTMLElement;
  let root: HTMLElement;
  let unfinished: () => string | false = () => false;
  let read: () => DraftValue;

  /** A field of one input under its label. */
  const single = (input: HTMLInputElement | HTMLTextAreaElement, box: HTMLElement = input) => {
    main = input;
    root = h("div", { part: "field" }, h("label", { part: "label", for: id }, ...name), ...texts, box, errors);
    read = () => (main as HTMLInputElement).value || null;
  };
  /** A field of several inputs under a legend. */
  const group = (role: string | undefined, ...content: Node[]) => {
    main = root = h("fieldset", { part: "field", role, "aria-required": role === "radiogroup" && field.required, ...aria }, h("legend", { part: "label" }, ...name), ...texts, ...content, errors);
  };
  const line = (more: object) => {
    const input = h("input", { part: "control", id, autocomplete: "off", "aria-required": field.required, ...aria, ...more });
    return input;
  };

  if (isMoment(field) && LATER.moment) {
    const made = LATER.moment.show({ h, inert, say }, text, id, aria, line);
    group("group", made.root);
    ({ read, unfinished } = made);
  } else if (field.kind === "text") {
    const long = !field.format && (/\n/.test(text) || field.maxLength! > 200);
    const input = long
      ? h("textarea", { part: "control", id, rows: 4, dir: "auto", "aria-required": field.required, ...aria })
      : line({ type: field.format === "date" ? "date" : "text", inputmode: field.format && (field.format === "uri" ? "url" : field.format), dir: "auto" });
    input.value = text;
    single(input);
    if (input instanceof HTMLInputElement) {
      if (!field.format) void load("typing").then(() => LATER.typing?.growing(input, (area) => (main = area)));
      else unfinished = () => input.validity.badInput && say("incomplete");
    }
  } else if (field.kind === "number" || field.kind === "integer") {
    const input = line({ type: "text", inputmode: field.kind === "integer" ? "numeric" : "decimal" });
    input.value = text;
    single(input, LATER.typing?.stepper({ h, inert, say }, field, input, label));
  } else if (isBox(field)) {
    const input = h("input", { type: "checkbox", id, checked: entered === true, ...aria });
    main = input;
    root = h("div", { part: "field" }, h("label", { part: "option box" }, input, h("bdi", {}, label)), ...texts, errors);
    read = () => input.checked;
  } else {
    const several = field.kind === "choices";
    const options: readonly { readonly value: string | boolean; readonly title?: string }[] =
      field.kind === "boolean" ? [{ value: true, title: say("yes") }, { value: false, title: say("no") }] : (field as ChoiceField).options;
    const isPicked = (value: string | boolean) => (Array.isArray(entered) ? entered.includes(value) : entered === value);
    const inputs: HTMLInputElement[] = [];
    const option = (title: string, checked: boolean, part = "option") => {
      const input = h("input", { type: several ? "checkbox" : "radio", name: id, checked });
      inputs.push(input);
      return h("label", { part }, input, h("bdi", {}, title));
    };
    const rows = options.map(({ value, title }) => option(inert(title ?? value), isPicked(value)));
    const none = !several && !field.required && option(say("noAnswer"), !options.some(({ value }) => isPicked(value)), "option none");
    const short = rows.length < 5 && rows.every((row) => row.textContent.length < 20);
    const picks = h("div", { part: short ? "options row" : "options" }, none, ...rows);
    const picked = () => options.filter((_, i) => inputs[i]!.checked);
    const titles = () => picked().map(({ value, title }) => inert(title ?? value));
    const search = rows.length > SEARCHED && LATER.search;
    group(several ? "group" : "radiogroup", search ? search.show({ h, inert, say }, label, picks, none ? [none, ...rows] : rows, rows.length, titles) : picks);
    read = () => {
      const values = picked().map(({ value }) => value);
      return several ? (values as string[]) : (values[0] ?? null);
    };
  }

  return {
    field,
    root: root!,
    read: read!,
    unfinished,
    focus: () => (main.matches("fieldset") ? main.querySelector<HTMLElement>("input:checked,input")! : main).focus(),
    show(messages) {
      const wrong = messages.length > 0;
      root.toggleAttribute("data-wrong", wrong);
      if (wrong) main.setAttribute("aria-invalid", "true");
      else main.removeAttribute("aria-invalid");
      if ([...errors.children].map((line) => line.textContent).join("\n") !== messages.join("\n")) errors.replaceChildren(...messages.map((message) => h("li", {}, message)));
    },
  };
}

/** Whether a yes or no is a box to tick: it is never without an answer. */
export const isBox = (field: Field) => field.kind === "boolean" && (field.required || field.default !== undefined);
const isMoment = (field: Field) => field.kind === "text" && field.format === "date-time";
const isTyped = (field: Field) => field.kind === "number" || field.kind === "integer" || (field.kind === "text" && /uri|email/.test(field.format ?? ""));

/** The parts without which the controls of these fields would lose what is pressed or typed meanwhile. */
export const needs = (fields: readonly Field[]): readonly LaterName[] => [
  ...(fields.some(isTyped) ? (["typing"] as const) : []),
  ...(fields.some(isMoment) ? (["moment"] as const) : []),
  ...(fields.some((field) => "options" in field && field.options.length > SEARCHED) ? (["search"] as const) : []),
];
