/**
 * Parts without looks, for pages that draw the form themselves: `<Elicitation.Root>` holds one question's state, the others read it.
 * The check, the defaults and the words are those of the element.
 */
import {
  Children,
  cloneElement,
  createContext,
  createElement,
  isValidElement,
  useContext,
  useId,
  useMemo,
  useRef,
  useState,
  type HTMLAttributes,
  type MouseEvent,
  type ReactElement,
  type ReactNode,
} from "react";
import { ElicitationError, type Draft, type DraftValue, type ElicitationQueue, type Field, type PendingElicitation, type Violation } from "@mcp-elicit/form";

interface State {
  readonly question: PendingElicitation;
  readonly draft: Draft;
  readonly violations: readonly Violation[];
  readonly problem: string | undefined;
  readonly busy: boolean;
  readonly base: string;
  set(name: string, value: DraftValue): void;
  judge(name: string): void;
  act(what: "accept" | "decline" | "cancel"): Promise<void>;
}

const Context = createContext<State | null>(null);

function useQuestion(part: string): State {
  const state = useContext(Context);
  if (!state) throw new Error(`<Elicitation.${part}> must be inside <Elicitation.Root>`);
  return state;
}

/** What `<Elicitation.Root>` takes. */
export interface RootProps {
  readonly question: PendingElicitation;
  readonly queue: ElicitationQueue;
  /** What was typed before. By default the form's defaults. */
  readonly draft?: Draft;
  readonly onDraft?: (draft: Draft) => void;
  readonly children?: ReactNode;
}

/** Holds the state of one question. Give it the question's id as `key`. */
export function Root(props: RootProps): ReactElement {
  // A form that is not legal is read a moment after the question came: its defaults come with it.
  return <Question key={props.question.form ? "form" : "none"} {...props} />;
}

function Question({ question, queue, draft: given, onDraft, children }: RootProps): ReactElement {
  const { form } = question;
  const [draft, setDraft] = useState<Draft>(() => given ?? firstDraft(question));
  const [violations, setViolations] = useState<readonly Violation[]>([]);
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const judged = useRef(new Set<string>());
  const base = useId();

  const state = useMemo<State>(() => {
    const judge = (name: string, next: Draft) => {
      const verdict = form?.readField(name, Object.hasOwn(next, name) ? (next[name] ?? null) : null);
      setViolations((all) => [...all.filter(({ field }) => field !== name), ...(verdict && !verdict.ok ? verdict.violations : [])]);
    };
    return {
      question,
      draft,
      violations,
      problem,
      busy,
      base,
      set(name, value) {
        const next = Object.fromEntries([...Object.entries(draft).filter(([key]) => key !== name), [name, value]]);
        setDraft(next);
        if (judged.current.has(name)) judge(name, next);
        onDraft?.(next);
      },
      judge(name) {
        judged.current.add(name);
        judge(name, draft);
      },
      async act(what) {
        setProblem(undefined);
        let content: unknown;
        // Nobody accepts what was not shown.
        if (what === "accept" && !form && question.request.mode !== "url") return setProblem("This form cannot be shown here; it can be declined or cancelled only.");
        if (what === "accept" && form) {
          const verdict = form.read(draft);
          form.fields.forEach(({ name }) => judged.current.add(name));
          setViolations(verdict.ok ? [] : verdict.violations);
          if (!verdict.ok) return;
          content = verdict.answers;
        }
        setBusy(true);
        try {
          if (what === "accept") await queue.accept(question.id, content);
          else await queue[what](question.id);
        } catch (error) {
          if (error instanceof ElicitationError && error.violations.length > 0) setViolations(error.violations);
          else setProblem(error instanceof Error ? error.message : String(error));
        } finally {
          setBusy(false);
        }
      },
    };
  }, [question, form, draft, violations, problem, busy, base, queue, onDraft]);
  return <Context.Provider value={state}>{children}</Context.Provider>;
}

type PartProps = HTMLAttributes<HTMLElement> & {
  /** Renders the only child with the part's properties, in place of an element of the part's own. */
  readonly asChild?: boolean;
};

function part(tag: string, { asChild, children, ...props }: PartProps, own: Record<string, unknown>, content: ReactNode): ReactElement {
  const all: Record<string, unknown> = { ...own, ...props };
  if (!asChild) return createElement(tag, all, children ?? content);
  const child = Children.only(children);
  if (!isValidElement<Record<string, unknown>>(child)) throw new Error("asChild wants one element as its child");
  const handlers = Object.fromEntries(
    Object.entries(all)
      .filter(([key, value]) => key.startsWith("on") && typeof value === "function" && typeof child.props[key] === "function")
      .map(([key, value]) => [
        key,
        (...args: unknown[]) => {
          (child.props[key] as (...args: unknown[]) => void)(...args);
          (value as (...args: unknown[]) => void)(...args);
        },
      ]),
  );
  return cloneElement(child, { ...all, ...child.props, ...handlers }, (child.props["children"] as ReactNode) ?? content);
}

/** The server's words, as text: markup in them stays text. */
export function Message(props: PartProps): ReactElement {
  const { question } = useQuestion("Message");
  return part("p", props, {}, question.request.message);
}

/** Who asks, as the page knows it. Show it before the message. */
export function Origin(props: PartProps): ReactElement {
  const { origin } = useQuestion("Origin").question;
  return part("strong", props, {}, origin.server);
}

/** What a field's control is drawn with. */
export interface FieldParts {
  readonly field: Field;
  readonly value: DraftValue;
  readonly setValue: (value: DraftValue) => void;
  readonly errors: readonly Violation[];
  /** For an `<input>`: id, name, value, handlers, and what a screen reader wants. */
  readonly inputProps: Readonly<Record<string, unknown>>;
  /** For a `<label>`. */
  readonly labelProps: { readonly htmlFor: string };
  /** For the element that shows the errors. */
  readonly errorProps: { readonly id: string; readonly role: "alert" };
}

/** Calls `children` for each field of the form. */
export function Fields({ children }: { readonly children: (parts: FieldParts) => ReactNode }): ReactElement {
  const state = useQuestion("Fields");
  return (
    <>
      {(state.question.form?.fields ?? []).map((field) => (
        <FieldPart key={field.name} state={state} field={field} draw={children} />
      ))}
    </>
  );
}

function FieldPart({ state, field, draw }: { readonly state: State; readonly field: Field; readonly draw: (parts: FieldParts) => ReactNode }): ReactElement {
  const id = `${state.base}-${state.question.form?.fields.indexOf(field) ?? 0}`;
  const value = Object.hasOwn(state.draft, field.name) ? (state.draft[field.name] ?? null) : null;
  const errors = state.violations.filter((violation) => violation.field === field.name);
  const setValue = (next: DraftValue) => state.set(field.name, next);
  const common = {
    id,
    name: field.name,
    disabled: state.busy,
    "aria-required": field.required,
    "aria-invalid": errors.length > 0,
    ...(errors.length > 0 && { "aria-describedby": `${id}-error` }),
    onBlur: () => state.judge(field.name),
  };
  const inputProps =
    field.kind === "boolean"
      ? { ...common, type: "checkbox", checked: value === true, onChange: (event: { target: { checked: boolean } }) => setValue(event.target.checked) }
      : {
          ...common,
          type: inputType(field),
          value: typeof value === "string" ? value : "",
          onChange: (event: { target: { value: string } }) => setValue(event.target.value === "" ? null : event.target.value),
        };
  return <>{draw({ field, value, setValue, errors, inputProps, labelProps: { htmlFor: id }, errorProps: { id: `${id}-error`, role: "alert" } })}</>;
}

function inputType(field: Field): string {
  if (field.kind !== "text") return "text";
  return field.format === "email" ? "email" : field.format === "uri" ? "url" : field.format === "date" ? "date" : "text";
}

/** Everything that is wrong and belongs to no field; nothing where all is well. */
export function Problems(props: PartProps): ReactElement | null {
  const { violations, problem, question } = useQuestion("Problems");
  const names = new Set(question.form?.fields.map(({ name }) => name));
  const general = violations.filter(({ field }) => !names.has(field)).map(({ message }) => message);
  const all = problem === undefined ? general : [problem, ...general];
  return all.length === 0 ? null : part("p", props, { role: "alert" }, all.join(" "));
}

function action(what: "accept" | "decline" | "cancel", words: string) {
  return function Action(props: PartProps): ReactElement {
    const state = useQuestion(`${what[0]?.toUpperCase()}${what.slice(1)}`);
    const { onClick, ...rest } = props;
    return part(
      "button",
      rest,
      {
        type: "button",
        disabled: state.busy,
        onClick: (event: MouseEvent<HTMLElement>) => {
          onClick?.(event);
          if (!event.defaultPrevented) void state.act(what);
        },
      },
      words,
    );
  };
}

/** Checks and sends what was typed. */
export const Accept = action("accept", "Accept");
/** Declines: the person says no. */
export const Decline = action("decline", "Decline");
/** Cancels: the person makes no choice. */
export const Cancel = action("cancel", "Cancel");

/** The link of a url-mode question, whole; only text where its scheme is neither http nor https. It is opened on a click only. */
export function Link(props: PartProps): ReactElement | null {
  const { request } = useQuestion("Link").question;
  if (request.mode !== "url") return null;
  if (!/^https?:/iu.test(request.url)) return part("span", props, {}, request.url);
  return part("a", props, { href: request.url, target: "_blank", rel: "noopener noreferrer", referrerPolicy: "no-referrer" }, request.url);
}

function firstDraft({ form }: PendingElicitation): Draft {
  if (!form) return {};
  if (form.initial) return form.initial;
  return Object.fromEntries(Object.entries(form.defaults()).map(([name, value]) => [name, typeof value === "number" ? String(value) : value]));
}
