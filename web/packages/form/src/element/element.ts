import { Form, parseWith } from "../check/form.js";
import { schemaReader } from "../check/parse.js";
import { enteredReader } from "../draft/entered.js";
import type { Answers, Checked, Defect, Draft, DraftValue, ElicitRequest, Field, Origin, Violation } from "../types.js";
import { type Control, control, isBox, needs } from "./field.js";
import { h } from "./h.js";
import { inert } from "./inert.js";
import { LABELS, type Labels, type Say, sayWith, type Word } from "./labels.js";
import { type Kit, languageOf, LATER, type LaterName, load, styles } from "./later.js";
import { openable } from "./url.js";

/** What the element shows. `refused` means that the request itself is not a legal question. */
export type ElementState = "loading" | "editing" | "reviewing" | "submitting" | "refused" | "done" | "withdrawn" | "expired";

const Base: typeof HTMLElement = globalThis.HTMLElement ?? (class {} as typeof HTMLElement);
const BaseEvent: typeof CustomEvent = globalThis.CustomEvent ?? (class {} as unknown as typeof CustomEvent);

/** What can be written in many ways is read by the parts for typing and for a date and time; without them, what is typed is taken as it is. */
const READER = enteredReader({
  "date-time": (text, basics) => LATER.moment?.readDateTime(text, basics),
  uri: (text) => LATER.typing?.readAddress(text),
  email: (text) => LATER.typing?.readMail(text),
  number: (text) => (LATER.typing ? LATER.typing.plainNumber(text) : text),
});

/** What pages do about the events. */
const works = new WeakMap<Event, Promise<unknown>>();

/** What a person did. Until the work handed to `respondWith` is done, the element shows that it is sending. */
export class ElicitationEvent<D> extends BaseEvent<D> {
  /** Keeps the question on the screen until `work` is done. If it fails, nothing is lost, and its `violations` are shown beside the fields. */
  respondWith(work: Promise<unknown>): void {
    works.set(this, work);
  }
}

/** The events of the element. All bubble, are composed and can be cancelled; `preventDefault` leaves the element as it was. */
export interface MCPElicitationEventMap {
  /** The person accepted: with checked content, or without for a url-mode request. */
  accept: ElicitationEvent<{ content?: Answers }>;
  decline: ElicitationEvent<Record<string, never>>;
  cancel: ElicitationEvent<{ dirty: boolean }>;
  /** Something was entered. */
  draft: ElicitationEvent<{ draft: Draft }>;
}

/** The wanted properties, which a page may set before the element is defined. */
const PROPERTIES = ["request", "origin", "deadline", "draft", "labels", "renderMessage"] as const;
const OVER: readonly ElementState[] = ["done", "withdrawn", "expired"];
/** The longest first line of a message that is its heading. */
const TITLE = 300;

const same = (a: unknown, b: unknown) => a === b || JSON.stringify(a) === JSON.stringify(b);

/** `<mcp-elicitation>`: shows one elicitation request and hands over what the person does. */
export class MCPElicitation extends Base {
  static readonly formAssociated = true;
  static readonly observedAttributes = ["review", "disabled", "lang"];

  #request: ElicitRequest | null = null;
  #origin: Origin | null = null;
  #deadline: number | null = null;
  #labels: Partial<Labels> = {};
  #renderMessage: ((text: string) => Node) | undefined;
  #draft: Record<string, DraftValue> = {};
  /** A draft that came before its request. */
  #early: Draft | null = null;
  #form: Form | undefined;
  #defects: readonly Defect[] = [];
  #url: URL | undefined;
  #state: ElementState = "loading";
  #violations: readonly Violation[] = [];
  #dirty = false;
  #failed = false;
  #visited = false;
  #notice = "";
  #disabled = false;
  #controls: Control[] = [];
  #touched = new Set<string>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #root: ShadowRoot | undefined;
  #internals: ElementInternals | undefined;
  #say: Say = sayWith({});
  /** What takes the focus after the next rendering: the id of a control, or "*" for the first. */
  #focused: string | undefined;
  /** The request whose parts are asked for, and the one for which they are there or could not be loaded: each request tries once. */
  #asked: ElicitRequest | null = null;
  #ready: ElicitRequest | null = null;
  /** Whether a pointer is on a button: reasons that appear meanwhile would move it away from the pointer. */
  #pressed = false;

  /** The parameters of `elicitation/create`, of any revision. */
  get request(): ElicitRequest | null {
    return this.#request;
  }
  set request(request: ElicitRequest | null) {
    if (same(request, this.#request)) return;
    this.#request = request;
    this.#form = this.#url = undefined;
    this.#defects = [];
    this.#visited = this.#failed = false;
    this.#fill({});
    this.#notice = "";
    const wanted: readonly LaterName[] = LATER.pattern === undefined && needsPattern(request) ? ["pattern"] : [];
    let legal: unknown;
    if (request?.mode === "url") legal = this.#url = openable(request.url);
    else if (request && (request.mode ?? "form") === "form") {
      const readSchema = schemaReader(LATER.pattern?.compile);
      const parsed = LATER.lenient?.parse(READER, Form, readSchema, request) ?? parseWith(READER, readSchema, request.requestedSchema);
      if (wanted.length) this.#reread(wanted);
      else if (parsed.ok) {
        legal = this.#form = parsed.form;
        this.#draft = { ...draftOf(parsed.form), ...this.#early };
        this.#early = null;
      } else {
        this.#defects = parsed.defects;
        // What is no legal form may be one that a person can fill in: with the part for those it is read again.
        if (LATER.lenient === undefined) this.#reread(["lenient"]);
      }
    }
    this.#enter(legal ? "editing" : !request || wanted.length || (this.#defects.length && LATER.lenient === undefined) ? "loading" : "refused");
  }

  /** Reads the request again once these parts are there, or could not be loaded. */
  #reread(parts: readonly LaterName[]): void {
    void Promise.all(parts.map(load)).then(() => {
      const now = this.#request;
      if (this.#state !== "loading") return;
      this.#request = null;
      this.request = now;
    });
  }

  /** Who asks. */
  get origin(): Origin | null {
    return this.#origin;
  }
  set origin(origin: Origin | null) {
    if (same(origin, this.#origin)) return;
    this.#origin = origin;
    this.#render();
  }

  /** When the time to answer runs out: a date, milliseconds since 1970, or an ISO 8601 text. */
  get deadline(): number | null {
    return this.#deadline;
  }
  set deadline(deadline: Date | number | string | null) {
    const time = deadline === null ? NaN : new Date(deadline).getTime();
    this.#deadline = Number.isNaN(time) ? null : time;
    this.#tick();
  }

  /** What is entered so far. */
  get draft(): Draft {
    return { ...this.#draft };
  }
  set draft(draft: Draft | null) {
    if (!draft || same(draft, this.#draft)) return;
    if (!this.#form) this.#early = draft;
    this.#draft = { ...draft };
    this.#dirty = true;
    this.#render();
  }

  /** Words that replace those of the page's language. */
  get labels(): Partial<Labels> {
    return this.#labels;
  }
  set labels(labels: Partial<Labels>) {
    if (same(labels, this.#labels) && labels?.messages === this.#labels.messages) return;
    this.#labels = labels ?? {};
    // A misspelled key changes nothing; the part that knows every key says so.
    if (Object.keys(this.#labels).some((key) => !(key in LABELS))) void load("known").then(() => LATER.known?.warn(this.#labels));
    this.#render();
  }

  /** Makes a node of the server's message; without it the message is shown as it is. */
  get renderMessage(): ((text: string) => Node) | undefined {
    return this.#renderMessage;
  }
  set renderMessage(render: ((text: string) => Node) | undefined) {
    if (render === this.#renderMessage) return;
    this.#renderMessage = render;
    this.#render();
  }

  /** What the element shows. */
  get state(): ElementState {
    return this.#state;
  }

  /** What is wrong with what is entered, as far as it is shown. */
  get violations(): readonly Violation[] {
    return this.#violations;
  }

  /** The form of a form-mode request; undefined where it is illegal. */
  get form(): Form | undefined {
    return this.#form;
  }

  /** What makes the requested schema illegal. */
  get defects(): readonly Defect[] {
    return this.#defects;
  }

  get name(): string {
    return this.getAttribute("name") ?? "";
  }
  set name(name: string) {
    this.setAttribute("name", name);
  }

  /** Whether a review is shown before answers are sent. */
  get review(): boolean {
    return this.hasAttribute("review");
  }
  set review(review: boolean) {
    this.toggleAttribute("review", review);
  }

  get disabled(): boolean {
    return this.hasAttribute("disabled");
  }
  set disabled(disabled: boolean) {
    this.toggleAttribute("disabled", disabled);
  }

  get validity(): ValidityState | undefined {
    return this.#internals?.validity;
  }

  /** Ends the question because the server withdrew it. Nothing is sent. */
  withdraw(reason?: string): void {
    if (OVER.includes(this.#state)) return;
    this.#notice = reason ? inert(reason) : this.#say("withdrawn");
    this.#enter("withdrawn");
  }

  /** Shows reasons why an answer was not taken, beside their fields. */
  refuse(violations: readonly Violation[]): void {
    if (this.#state !== "editing") this.#enter("editing");
    this.#complain(violations, true);
  }

  /** Moves the focus to the first field. */
  focusFirst(): void {
    if (!this.#root?.firstChild) this.#focused = "*";
    (this.#controls[0] ?? this.#root?.querySelector<HTMLElement>("[part~=primary]"))?.focus();
  }

  /** Does what the main button does: shows the review, or accepts. */
  submit(): void {
    if (this.#disabled || (this.#state !== "editing" && this.#state !== "reviewing")) return;
    if (this.#url) return LATER.visit ? this.#act("accept", {}, "sent") : undefined;
    const unfinished = this.#controls.filter((control) => control.unfinished());
    const checked = this.#check();
    if (unfinished.length || !checked?.ok) {
      if (this.#state === "reviewing") this.#enter("editing");
      return this.#complain(checked && !checked.ok ? checked.violations : [], true);
    }
    this.#violations = [];
    if (this.review && this.#state === "editing" && this.#form?.fields.length) return this.#showReview();
    this.#act("accept", { content: checked.answers }, "sent");
  }

  /** @internal */
  connectedCallback(): void {
    for (const name of PROPERTIES) {
      if (!Object.hasOwn(this, name)) continue;
      const value: unknown = this[name];
      delete (this as Record<string, unknown>)[name];
      (this as Record<string, unknown>)[name] = value;
    }
    if (!this.#root) {
      this.#root = this.attachShadow({ mode: "open", delegatesFocus: true });
      this.#root.adoptedStyleSheets = [styles()];
      this.#internals = this.attachInternals();
      this.#root.addEventListener("pointerdown", (event) => (this.#pressed = !!(event.target as Element).closest("button")));
      this.#root.addEventListener("keydown", (event) => this.#key(event as KeyboardEvent));
    }
    this.#disabled = this.matches(":disabled");
    this.#enter(this.#state);
    this.#timer = setInterval(() => this.#tick(), 1000);
  }

  /** @internal */
  disconnectedCallback(): void {
    clearInterval(this.#timer);
  }

  /** @internal */
  attributeChangedCallback(name: string): void {
    if (name === "lang") this.#ready = this.#asked = null;
    this.#render();
  }

  /** @internal */
  formDisabledCallback(disabled: boolean): void {
    this.#disabled = disabled;
    this.#render();
  }

  /** @internal */
  formResetCallback(): void {
    this.#fill(this.#form ? draftOf(this.#form) : {});
    this.#render();
  }

  /** @internal */
  formStateRestoreCallback(state: unknown): void {
    if (typeof state !== "string" || !this.#form) return;
    try {
      this.draft = JSON.parse(state) as Draft;
    } catch {
      // It is not a state of this element.
    }
  }

  /** Starts over with this draft. */
  #fill(draft: Record<string, DraftValue>): void {
    this.#draft = draft;
    this.#violations = [];
    this.#touched.clear();
    this.#dirty = false;
  }

  /** Shows the review. Without it nothing is sent. */
  #showReview(): void {
    const form = this.#form;
    const show = () => this.#state === "editing" && form === this.#form && this.#enter("reviewing", "[part~=review]");
    if (LATER.review) return void show();
    void load("review").then(() => {
      if (LATER.review) return show();
      this.#failed = true;
      this.#complain([], true);
    });
  }

  get #kit(): Kit {
    return { h, inert, say: this.#say };
  }

  #check(): Checked | undefined {
    return this.#form?.read(this.#draft);
  }

  /** Goes to a state; what `focus` selects takes the focus. */
  #enter(state: ElementState, focus?: string): void {
    this.#state = state;
    const states = this.#internals?.states;
    states?.clear();
    states?.add(state);
    this.#render();
    this.#tick();
    if (focus) this.#root?.querySelector<HTMLElement>(focus)?.focus();
  }

  /** Tells the page what the person did, and waits for what the page does about it. */
  #act(type: "accept" | "decline" | "cancel", detail: object, notice: "sent" | "declined" | "cancelled"): void {
    if (OVER.includes(this.#state) || this.#state === "submitting") return;
    const before = this.#state === "refused" ? "refused" : "editing";
    const event = new ElicitationEvent(type, { detail, bubbles: true, composed: true, cancelable: true });
    this.#failed = false;
    if (!this.dispatchEvent(event)) return;
    const done = () => {
      this.#notice = this.#say(notice);
      this.#enter("done", "[part~=notice]");
    };
    const work = works.get(event);
    if (!work) return done();
    this.#enter("submitting", "[part~=notice]");
    const current = this.#request;
    work.then(
      () => this.#state === "submitting" && current === this.#request && done(),
      (error: { violations?: readonly Violation[] } | undefined) => {
        if (this.#state !== "submitting" || current !== this.#request) return;
        this.#enter(before);
        const violations = Array.isArray(error?.violations) ? error.violations : [];
        this.#failed = !violations.length;
        this.#complain(violations, true);
      },
    );
  }

  async #cancel(): Promise<void> {
    const root = this.#root!;
    const act = () => this.#act("cancel", { dirty: this.#dirty }, "cancelled");
    if (!this.#dirty || !this.#form) return act();
    // Without its part nothing is asked: a person who wants to leave can.
    const request = this.#request;
    if (!LATER.sure) await load("sure");
    if (request !== this.#request || root.querySelector("dialog")) return;
    if (LATER.sure) LATER.sure.show(this.#kit, root, act);
    else act();
  }

  #key(event: KeyboardEvent): void {
    this.#pressed = false;
    if (event.defaultPrevented || event.isComposing || this.#root!.querySelector("dialog[open]")) return;
    if (event.key === "Escape" && !OVER.includes(this.#state) && this.#state !== "submitting" && !this.#disabled) void this.#cancel();
    else if (event.repeat && (event.key === "Enter" || (event.key === " " && (event.target as Element).matches("button"))) && !(event.target as Element).matches("textarea")) {
      // A key that is held down decides nothing.
    } else if (event.key === "Enter" && (this.#only ? event.ctrlKey : event.ctrlKey || event.metaKey || (event.target as Element).matches("input"))) this.submit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Shows what is wrong: beside the fields, and with `all` in the summary, which takes the focus. */
  #complain(violations: readonly Violation[], all = false): void {
    this.#violations = violations;
    const problems: HTMLElement[] = [];
    const known = new Set<string>();
    for (const control of this.#controls) {
      const { name, label } = control.field;
      known.add(name);
      if (all) this.#touched.add(name);
      const unfinished = control.unfinished();
      const messages = unfinished ? [unfinished] : violations.filter(({ field }) => field === name).map((violation) => this.#message(violation));
      control.show(this.#touched.has(name) ? messages : []);
      if (messages.length && this.#touched.has(name))
        problems.push(h("button", { type: "button", part: "problem", click: () => control.focus() }, h("bdi", {}, inert(label)), `: ${messages.join("; ")}`));
    }
    for (const violation of violations) if (!known.has(violation.field)) problems.push(h("span", {}, inert(violation.field), " ", this.#message(violation)));
    this.#update();
    const summary = this.#root?.querySelector<HTMLElement>("[part~=summary]");
    if (!summary) return;
    const shown = all || (!summary.hidden && !this.#failed);
    summary.hidden = !(this.#failed || (shown && problems.length));
    if (summary.hidden) return summary.replaceChildren();
    summary.replaceChildren(
      h("strong", {}, this.#failed ? this.#say("failed") : this.#say("problems", problems.length)),
      h("ul", {}, ...problems.map((problem) => h("li", {}, problem))),
    );
    if (all) summary.focus();
  }

  #message(violation: Violation): string {
    return inert((this.#labels.messages ?? LATER[languageOf(this)!]?.labels.messages)?.(violation) ?? violation.message, 1000);
  }

  /** Tells a surrounding form what would be sent. */
  #update(): void {
    const internals = this.#internals;
    if (!internals) return;
    const checked = this.#check();
    internals.setFormValue(checked?.ok ? JSON.stringify(checked.answers) : null, JSON.stringify(this.#draft));
    const first = checked && !checked.ok && checked.violations[0];
    const anchor = this.#root!.querySelector<HTMLElement>("[part~=field]") ?? undefined;
    if (first && !OVER.includes(this.#state)) internals.setValidity({ customError: true }, `${first.field}: ${first.message}`, anchor);
    else internals.setValidity({});
  }

  #entered(control: Control): void {
    const { name } = control.field;
    this.#draft = Object.fromEntries([...Object.entries(this.#draft).filter(([key]) => key !== name), [name, control.read()]]);
    this.#dirty = true;
    void load("sure");
    this.#failed = false;
    this.#judge();
    this.dispatchEvent(new ElicitationEvent("draft", { detail: { draft: this.draft }, bubbles: true, composed: true, cancelable: true }));
  }

  /** Shows what is wrong with the fields that were left once. */
  #judge(): void {
    const checked = this.#check();
    this.#complain(checked?.ok === false ? checked.violations.filter(({ field }) => this.#touched.has(field)) : []);
  }

  #tick(): void {
    if (this.#deadline === null || !this.#root) return;
    const left = Math.ceil((this.#deadline - Date.now()) / 1000);
    const open = !OVER.includes(this.#state) && this.#state !== "loading";
    if (open && left <= 0) {
      this.#notice = this.#say("expired");
      return this.#enter("expired");
    }
    const clock = this.#root.querySelector<HTMLElement>("[part~=clock]");
    if (!clock) return;
    clock.hidden = !open;
    if (LATER.clock) LATER.clock.show(this.#kit, clock, left);
    else if (LATER.clock !== null) void load("clock").then(() => this.#tick());
  }

  #render(): void {
    const root = this.#root;
    if (!root) return;
    const language = languageOf(this);
    const say = (this.#say = sayWith({ ...LATER[language!]?.labels, ...this.#labels }));
    const state = this.#state;
    const request = this.#request;
    const over = OVER.includes(state);
    const waiting = state === "submitting";
    const busy = waiting || this.#disabled;
    this.#focused ??= root.activeElement?.id;
    this.#controls = [];
    const kit = this.#kit;
    const wanted: readonly LaterName[] = [...(language ? [language] : []), ...(over || state === "refused" ? [] : this.#url ? (["visit"] as const) : needs(this.#form?.fields ?? []))];
    const missing = wanted.filter((name) => !LATER[name]);
    if (missing.length && this.#ready !== request) {
      // Nothing of another question may be left to press meanwhile.
      root.replaceChildren();
      this.#update();
      if (this.#asked === request) return;
      this.#asked = request;
      void Promise.all(missing.map(load)).then(() => {
        this.#ready = request;
        this.#render();
      });
      return;
    }
    if (this.review && !LATER.review) void load("review");

    const button = (word: Word, part: string, click?: () => void) =>
      h("button", { part: `button ${part}`, type: "button", disabled: busy, click }, say(word));
    // A form cannot be submitted in a frame that does not allow it: the buttons do not submit, and neither does Enter.
    const submit = () => this.submit();
    const decline = button("decline", "decline", () => this.#act("decline", {}, "declined"));
    const cancel = button(this.#url ? "notNow" : "cancel", "cancel", () => void this.#cancel());
    const actions = (...buttons: (Node | false)[]) => h("div", { part: "actions" }, ...buttons, h("slot", { name: "actions" }));

    let body: (Node | string | false | undefined)[] = [];
    if (request && !over) {
      const summary = h("div", { part: "summary", role: "alert", tabindex: -1, hidden: true });
      if (state === "refused") {
        const reasons = LATER.lenient?.reasons(kit, this.#defects) ?? [];
        if (request.mode === "url") reasons.push(h("li", { part: "address" }, inert(request.url, 8000)));
        body = [h("div", { part: "warning", role: "note" }, h("p", {}, say("refused")), h("ul", {}, ...reasons)), summary, actions(decline, cancel)];
      } else if (this.#url) {
        const opened = () => {
          this.#visited = true;
          this.#render();
          root.querySelector<HTMLElement>("[part~=primary]")?.focus();
        };
        body = LATER.visit
          ? [summary, ...LATER.visit.show(kit, this.#url, this.#visited, busy, opened), actions(button("visited", this.#visited ? "primary" : "visited", submit), cancel, decline)]
          : [h("p", { part: "warning", role: "note" }, say("missing")), h("p", { part: "address" }, this.#url.href), summary, actions(decline, cancel)];
      } else if (state === "reviewing") {
        const checked = this.#check();
        body = [...LATER.review!.show(kit, this.#form!, checked?.ok ? checked.answers : undefined), actions(button("accept", "primary", submit), button("change", "change", () => this.#enter("editing", "[part~=field] *:is(input,textarea)")), decline, cancel)];
      } else if (this.#form && this.#only) {
        const { name, label, description, required } = this.#only;
        const saysYes = /^(yes|ja|oui|s[ií])\P{L}/iu.test(label);
        const press = (value: DraftValue, part: string, text: string) =>
          h("button", { part: `button ${part}`, type: "button", disabled: busy, click: () => {
            this.#draft = { [name]: value };
            this.submit();
          } }, text);
        body = [
          summary,
          !saysYes && h("p", { part: "label", dir: "auto" }, inert(label)),
          description && h("p", { part: "description", dir: "auto" }, inert(description, 4000, true)),
          h("div", { part: "pair" }, press(true, "primary", saysYes ? inert(label) : say("yes")), press(false, "no", say("no"))),
          h("details", { part: "neither" }, h("summary", {}, say("neither")), actions(!required && press(null, "none", say("noAnswer")), decline, cancel)),
        ];
      } else if (this.#form) {
        const form = this.#form;
        const required = form.fields.filter((field) => field.required).length;
        // Of required and optional fields, the fewer are marked.
        const marked = required && required < form.fields.length / 2 ? "required" : "optional";
        this.#controls = form.fields.map((field, i) => {
          const made = control(LATER.lenient?.shown(field, say) ?? field, Object.hasOwn(this.#draft, field.name) ? this.#draft[field.name]! : null, `f${i}`, say, field.required === (marked === "required") && say(marked), (text) => form.readField(field.name, text).ok);
          made.root.addEventListener("input", (event) => (event.target as HTMLInputElement).type !== "search" && this.#entered(made));
          made.root.addEventListener("focusout", (event) => {
            if (!this.#dirty || this.#pressed || made.root.contains(event.relatedTarget as Node | null) || this.#state !== "editing") return;
            this.#touched.add(field.name);
            this.#judge();
          });
          return made;
        });
        const unchecked = [...form.unenforced.map((name) => say("unchecked", inert(name))), ...(form.remarks ?? [])].map((text) => h("p", { part: "limit" }, inert(text)));
        const fields = h("div", { part: "fields", inert: busy }, ...this.#controls.map(({ root }) => root));
        const review = this.review && form.fields.length;
        body = [summary, fields, ...unchecked, actions(button(review ? "review" : "accept", "primary", submit), decline, cancel)];
      }
      body = [
        h("form", { part: "form", novalidate: true, submit: (event: Event) => event.preventDefault() }, ...body),
      ];
    }
    const notice = over ? this.#notice : waiting ? say("submitting") : state === "loading" ? say("loading") : "";
    root.replaceChildren(
      h("section", { part: "card", "aria-labelledby": "asks", "aria-busy": waiting },
        h("slot", { name: "before" }),
        request && this.#header(request),
        ...body,
        h("div", { part: "notice", role: "status", tabindex: -1 }, over ? h("slot", { name: "done" }, notice) : notice),
      ),
    );
    if (state === "editing") {
      this.#judge();
      if (this.#focused === "*") this.focusFirst();
      else if (this.#focused) root.getElementById(this.#focused)?.focus();
    } else this.#update();
    this.#focused = undefined;
    this.#tick();
  }

  /** The field of a form that asks for one yes or no, which two buttons answer. */
  get #only(): Field | undefined {
    const [field, more] = this.#form?.fields ?? [];
    return !more && field?.kind === "boolean" && !this.review && !this.#form!.remarks?.length ? field : undefined;
  }

  #header(request: ElicitRequest): HTMLElement {
    const say = this.#say;
    const origin = this.#origin;
    const server = inert(origin?.server ?? "?");
    const facts = [origin?.claimed && say("claims", inert(origin.claimed)), origin?.version && say("version", inert(origin.version)), origin?.connection && inert(origin.connection)].filter(Boolean).join(" · ");
    const tool = origin?.tool;
    const given = Object.entries(tool?.arguments ?? {});
    const text = inert(request.message ?? "", 32000, true);
    const own = this.#renderMessage?.(request.message);
    // The first line of the message is the heading, unless the page draws the message itself.
    const [line = "", rest = ""] = own ? [] : /^([^\n]*)\n*([^]*)$/.exec(text)!.slice(1);
    const isTitle = line.trim() && line.length <= TITLE;
    const who = [h("bdi", {}, server), " ", h("span", {}, say(request.mode === "url" ? "asksVisit" : "asks"), tool && " · ", tool && say("tool", inert(tool.name)))];
    return h("header", { part: "header" },
      h("div", { part: "asker" }, h(isTitle ? "p" : "h2", { part: "origin", id: isTitle ? "" : "asks" }, ...who), h("p", { part: "clock", hidden: true })),
      h("slot", { name: "message" },
        isTitle && h("h2", { part: "question", id: "asks", dir: "auto" }, line),
        (own || !isTitle || rest) && h("div", { part: "message", dir: "auto" }, own ?? (isTitle ? rest : text)),
      ),
      (facts || given.length > 0) && h("details", { part: "call" },
        h("summary", {}, say("details")),
        given.length > 0 && h("dl", { tabindex: 0 }, ...given.flatMap(([name, value]) => [h("dt", {}, inert(name)), h("dd", {}, inert(typeof value === "string" ? value : JSON.stringify(value), 4000, true))])),
        facts && h("p", { part: "facts" }, facts),
      ),
    );
  }
}

/** Whether a field has a pattern, which a part compiles. */
function needsPattern(request: ElicitRequest | null): boolean {
  const { properties } = ((request as { requestedSchema?: unknown } | null)?.requestedSchema ?? {}) as { properties?: Record<string, { pattern?: unknown } | null> };
  return typeof properties === "object" && properties !== null && Object.values(properties).some((field) => field?.pattern !== undefined);
}

/** What is filled in before a person answers. */
function draftOf(form: Form): Record<string, DraftValue> {
  return form.initial ?? Object.fromEntries([...form.fields.flatMap((field): [string, boolean][] => (form.fields[1] && isBox(field) ? [[field.name, false]] : [])), ...Object.entries(form.defaults())].map(([name, value]) => [name, typeof value === "number" ? `${value}` : (value as DraftValue)]));
}

export interface MCPElicitation {
  addEventListener<K extends keyof MCPElicitationEventMap>(type: K, listener: (this: MCPElicitation, event: MCPElicitationEventMap[K]) => unknown, options?: boolean | AddEventListenerOptions): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject, options?: boolean | AddEventListenerOptions): void;
}

declare global {
  interface HTMLElementTagNameMap {
    "mcp-elicitation": MCPElicitation;
  }
}
