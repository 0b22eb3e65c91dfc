import { useEffect, useRef, useState, type ReactElement, type ReactNode } from "react";
import type { PendingElicitation } from "@mcp-elicit/form";
import type { Labels } from "@mcp-elicit/form/element";
import { ElicitationForm } from "./element.js";
import type { Elicitation } from "./useElicitation.js";

/** How long a withdrawn question stays to be read, in milliseconds. */
const WITHDRAWN_FOR = 4000;

/** What `<Elicitations>` takes. */
export interface ElicitationsProps {
  /** The result of `useElicitation`. */
  readonly of: Pick<Elicitation, "pending" | "queue">;
  /** Shows what will be sent before it is sent. */
  readonly review?: boolean;
  readonly labels?: Partial<Labels>;
  /** The most questions to show at once, the oldest first. By default all. */
  readonly limit?: number;
  /** What to show where nothing is asked. */
  readonly empty?: ReactNode;
  readonly className?: string;
}

/** Renders the open questions, each with the element; an answer that is refused stays on the screen with its reasons. */
export function Elicitations({ of: { pending, queue }, review, labels, limit, empty, className }: ElicitationsProps): ReactElement {
  const withdrawn = useWithdrawn(pending, queue.withdrawn);
  const shown = [...withdrawn, ...pending].sort((a, b) => a.since - b.since || order(a) - order(b)).slice(0, limit ?? Infinity);
  if (shown.length === 0) return <>{empty}</>;
  return (
    <>
      {shown.map((question) => (
        <ElicitationForm
          key={question.id}
          request={question.request}
          origin={question.origin}
          deadline={question.deadline}
          draft={queue.draft(question.id)}
          onDraft={(draft) => queue.keepDraft(question.id, draft)}
          labels={labels}
          review={review}
          className={className}
          withdrawn={queue.withdrawn(question.id)}
          onAccept={(content) => queue.accept(question.id, content)}
          onDecline={() => queue.decline(question.id)}
          onCancel={() => queue.cancel(question.id)}
        />
      ))}
    </>
  );
}

function order({ id }: PendingElicitation): number {
  return Number(id.slice(1));
}

/** Returns the questions that were withdrawn while they were shown, for a time in which a person can read so. */
function useWithdrawn(pending: readonly PendingElicitation[], reason: (id: string) => string | undefined): readonly PendingElicitation[] {
  const [withdrawn, setWithdrawn] = useState<readonly PendingElicitation[]>([]);
  const last = useRef(pending);
  const timers = useRef(new Set<ReturnType<typeof setTimeout>>());

  useEffect(() => {
    const open = new Set(pending.map(({ id }) => id));
    const gone = last.current.filter(({ id }) => !open.has(id) && reason(id) !== undefined);
    last.current = pending;
    if (gone.length === 0) return;
    setWithdrawn((shown) => [...shown, ...gone]);
    const timer = setTimeout(() => {
      timers.current.delete(timer);
      setWithdrawn((shown) => shown.filter((question) => !gone.includes(question)));
    }, WITHDRAWN_FOR);
    timers.current.add(timer);
  }, [pending, reason]);

  useEffect(() => {
    const running = timers.current;
    return () => running.forEach(clearTimeout);
  }, []);
  return withdrawn;
}
