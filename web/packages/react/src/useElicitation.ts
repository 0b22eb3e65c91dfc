import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { ElicitationQueue, type AttachOptions, type McpClient, type PendingElicitation } from "@mcp-elicit/form";

/** How a component takes questions. */
export interface ElicitationOptions extends Omit<AttachOptions, "server"> {
  /** A queue that was attached before `connect`, or that several components share. By default one of the component's own. */
  readonly queue?: ElicitationQueue;
}

/** What `useElicitation` returns. Everything but `pending` and `error` stays the same from render to render. */
export interface Elicitation {
  /** The open questions of all clients, in the order in which they were asked. */
  readonly pending: readonly PendingElicitation[];
  /** Why a client could not be attached. */
  readonly error: Error | null;
  /** Accepts a question; rejects with an `ElicitationError` where the content does not fit. */
  readonly accept: (id: string, content?: unknown) => Promise<void>;
  /** Declines a question: the person said no. */
  readonly decline: (id: string) => Promise<void>;
  /** Cancels a question: the person made no choice. */
  readonly cancel: (id: string) => Promise<void>;
  /** Says that the visit of a link is done. */
  readonly complete: (id: string) => Promise<void>;
  readonly queue: ElicitationQueue;
}

/** One client, or several by the names that the page gives to their servers. */
export type Clients = McpClient | Readonly<Record<string, McpClient>> | null | undefined;

type Named = readonly (readonly [name: string | undefined, client: McpClient])[];

const NOTHING: readonly PendingElicitation[] = Object.freeze([]);

/**
 * Takes the questions that servers ask through these clients, of the TypeScript SDK's major versions 1 and 2, of every revision.
 *
 * A client that is not connected yet declares the capability by being attached; one that is connected must have declared it. Options
 * may change from render to render: nothing is registered again, and no question is lost.
 */
export function useElicitation(clients: Clients, options: ElicitationOptions = {}): Elicitation {
  const [own] = useState(() => new ElicitationQueue());
  const queue = options.queue ?? own;
  const latest = useRef(options);
  latest.current = options;
  const named = useNamed(clients);
  const [error, setError] = useState<Error | null>(null);

  useEffect(() => {
    const detach: (() => void)[] = [];
    let failure: Error | null = null;
    for (const [name, client] of named) {
      try {
        detach.push(queue.attach(client, () => attachOptions(latest.current, name)));
      } catch (cause) {
        failure ??= cause instanceof Error ? cause : new Error(String(cause));
      }
    }
    setError(failure);
    return () => detach.forEach((end) => end());
  }, [queue, named]);

  const pending = useSyncExternalStore(queue.subscribe, queue.getSnapshot, () => NOTHING);
  return useMemo(
    () => ({ pending, error, queue, accept: queue.accept, decline: queue.decline, cancel: queue.cancel, complete: queue.complete }),
    [pending, error, queue],
  );
}

function attachOptions({ queue: _queue, ...options }: ElicitationOptions, server: string | undefined): AttachOptions {
  return server === undefined ? options : { ...options, server };
}

/** Returns the clients with their names; the same array as long as they are the same, however the caller's object is made anew. */
function useNamed(clients: Clients): Named {
  const last = useRef<Named>([]);
  const next: Named = !clients ? [] : isClient(clients) ? [[undefined, clients]] : Object.entries(clients);
  const same =
    next.length === last.current.length &&
    next.every(([name, client], at) => last.current[at]?.[0] === name && last.current[at]?.[1] === client);
  if (!same) last.current = next;
  return last.current;
}

function isClient(clients: McpClient | Readonly<Record<string, McpClient>>): clients is McpClient {
  return typeof clients.setRequestHandler === "function";
}
