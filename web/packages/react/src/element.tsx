import { createElement, useEffect, useLayoutEffect, useRef, type ReactElement } from "react";
import "@mcp-elicit/form/define";
import type { Draft, ElicitContent, ElicitRequest, Origin } from "@mcp-elicit/form";
import type { ElicitationEvent, Labels, MCPElicitation } from "@mcp-elicit/form/element";

/** What `<ElicitationForm>` takes. A promise that a callback returns is awaited: where it rejects, nothing that was typed is lost. */
export interface ElicitationFormProps {
  readonly request: ElicitRequest;
  readonly origin?: Origin | undefined;
  readonly deadline?: Date | number | string | null | undefined;
  readonly draft?: Draft | undefined;
  readonly labels?: Partial<Labels> | undefined;
  /** Shows what will be sent before it is sent. */
  readonly review?: boolean | undefined;
  readonly lang?: string | undefined;
  readonly className?: string | undefined;
  /** Shows the question as withdrawn, for this reason. */
  readonly withdrawn?: string | undefined;
  readonly onAccept?: ((content: ElicitContent | undefined) => unknown) | undefined;
  readonly onDecline?: (() => unknown) | undefined;
  readonly onCancel?: (() => unknown) | undefined;
  readonly onDraft?: ((draft: Draft) => void) | undefined;
}

// On a server there is no layout to have an effect on, and React warns about it.
const useBrowserLayoutEffect = typeof document === "undefined" ? useEffect : useLayoutEffect;

/** The element `<mcp-elicitation>`, with properties instead of attributes, which React 18 would make of them. */
export function ElicitationForm(props: ElicitationFormProps): ReactElement {
  const element = useRef<MCPElicitation>(null);
  const latest = useRef(props);
  latest.current = props;
  const { request, origin, deadline, draft, labels, withdrawn } = props;

  useBrowserLayoutEffect(() => {
    if (!element.current) return;
    const target = element.current;
    if (labels) target.labels = labels;
    if (origin) target.origin = origin;
    target.deadline = deadline ?? null;
    target.request = request;
    if (draft) target.draft = draft;
  }, [request, origin, deadline, draft, labels]);

  useBrowserLayoutEffect(() => {
    if (withdrawn !== undefined) element.current?.withdraw(withdrawn);
  }, [withdrawn]);

  useBrowserLayoutEffect(() => {
    const target = element.current;
    if (!target) return;
    const listening = new AbortController();
    const on = <D,>(name: string, run: (event: ElicitationEvent<D>) => unknown) =>
      target.addEventListener(
        name,
        (event) => {
          // Another element's event, of a question inside this one's slots, is none of this one's.
          if (event.target !== target) return;
          const work = run(event as ElicitationEvent<D>);
          if (work instanceof Promise) (event as ElicitationEvent<D>).respondWith(work);
        },
        { signal: listening.signal },
      );
    on<{ content?: ElicitContent }>("accept", (event) => latest.current.onAccept?.(event.detail.content));
    on("decline", () => latest.current.onDecline?.());
    on("cancel", () => latest.current.onCancel?.());
    on<{ draft: Draft }>("draft", (event) => latest.current.onDraft?.(event.detail.draft));
    return () => listening.abort();
  }, []);

  return createElement("mcp-elicitation", {
    ref: element,
    // React 18 hands `className` to custom elements as it is; `class` works with 18 and 19.
    ...(props.className !== undefined && { class: props.className }),
    ...(props.lang !== undefined && { lang: props.lang }),
    ...(props.review ? { review: "" } : {}),
  });
}
