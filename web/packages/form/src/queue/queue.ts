import { Form } from "../check/form.js";
import { readSchema } from "../check/read.js";
import { readDraft } from "../draft/read.js";
import { ElicitationError } from "../error.js";
import { parse } from "../parse.js";
import type { OnElicitationCallback } from "../seeds.js";
import type { Draft, ElicitRequest, ElicitResult, FormRequest, Origin, UrlRequest } from "../types.js";
import { register, sdkOf, unregister, watchCalls, type McpClient, type OpenCall } from "./adapter.js";

/** How the questions of one client are taken. */
export interface AttachOptions {
  /** What the page calls the server. By default the name that the server reports. */
  readonly server?: string;
  /** Answers questions in place of the queue. */
  readonly onElicitation?: OnElicitationCallback | undefined;
  /** @deprecated Use `onElicitation`. */
  readonly elicitationCallback?: OnElicitationCallback | undefined;
  /** Callbacks for single servers by name; each goes before the two above. */
  readonly servers?: Readonly<Record<string, ServerCallbacks>>;
  /**
   * What the page knows of who asks, added to what the server reports and to the call: if one call of a tool is open when the question
   * comes, `tool` is that call.
   */
  readonly origin?: (server: string, request: ElicitRequest) => Partial<Origin>;
  /** The longest time that a question stays open, in milliseconds. Then the server gets an error: running out of time is not an action. */
  readonly timeout?: number;
  /** The modes that are declared to the server. By default both. */
  readonly modes?: readonly ("form" | "url")[];
  /** The most questions of this client that may be open. By default 64. */
  readonly limit?: number;
  /** The SDK's major version, where it cannot be told from the client. */
  readonly sdk?: 1 | 2;
}

/** The callbacks of one server. */
export interface ServerCallbacks {
  readonly onElicitation?: OnElicitationCallback | undefined;
  /** @deprecated Use `onElicitation`. */
  readonly elicitationCallback?: OnElicitationCallback | undefined;
}

/** A question that waits for a person. */
export interface PendingElicitation {
  /** An id of the queue's own: ids of several servers may be equal. */
  readonly id: string;
  readonly server: string;
  readonly request: ElicitRequest;
  /** When it was asked, in milliseconds since 1970. */
  readonly since: number;
  readonly origin: Origin;
  /** Until when it can be answered, in milliseconds since 1970. */
  readonly deadline?: number;
  /** The parsed form; absent for links, and for forms that nobody can fill in. A form that is not legal is read a moment later. */
  readonly form?: Form;
  /** The server said that the visit of this link is done. The person has still to say so. */
  readonly completed: boolean;
  /** `since` under the name that mcp-use gives it. */
  readonly timestamp: number;
  /** `server` under the name that mcp-use gives it. */
  readonly serverName: string;
}

const LIMIT = 64;
/** How many ids are remembered after their questions have ended, so that a late answer gets the right reason. */
const REMEMBERED = 256;

interface Entry {
  readonly pending: PendingElicitation;
  /** Whether nothing is sent: a link that a call needs before it is made again. */
  readonly visit: boolean;
  readonly attachment: Attachment;
  resolve(result: ElicitResult): void;
  reject(error: ElicitationError): void;
}

interface Attachment {
  readonly client: McpClient;
  /** The options of everybody who attached this client, the latest last. */
  readonly options: (() => AttachOptions)[];
  /** The calls of the client that are open. */
  readonly calls: Set<OpenCall>;
  /** Ends the watch over the calls. */
  readonly unwatch: () => void;
}

/** The open questions of any number of clients, in the order in which they were asked. It knows no framework. */
export class ElicitationQueue {
  readonly #attachments = new Map<McpClient, Attachment>();
  readonly #entries = new Map<string, Entry>();
  readonly #ended = new Map<string, "answered" | "withdrawn">();
  readonly #reasons = new Map<string, string>();
  readonly #drafts = new Map<string, Draft>();
  readonly #listeners = new Set<() => void>();
  #snapshot: readonly PendingElicitation[] = Object.freeze([]);
  #count = 0;

  /**
   * Takes the questions of this client from now on; call it before `client.connect`, so that the capability is declared. Returns
   * what ends it. A client that is attached several times stays attached until each has ended.
   *
   * Throws an `ElicitationError` of code `capability` where the client was connected without declaring the capability.
   */
  attach(client: McpClient, options: AttachOptions | (() => AttachOptions) = {}): () => void {
    const read = typeof options === "function" ? options : () => options;
    let attachment = this.#attachments.get(client);
    if (!attachment) {
      const calls = new Set<OpenCall>();
      attachment = { client, options: [], calls, unwatch: () => unwatch() };
      this.#register(attachment, read());
      const unwatch = watchCalls(client, calls);
      this.#attachments.set(client, attachment);
    }
    attachment.options.push(read);
    const own = attachment;
    let attached = true;
    return () => {
      if (!attached) return;
      attached = false;
      own.options.splice(own.options.indexOf(read), 1);
      // React's strict mode detaches and attaches again within one task: that must lose no question.
      queueMicrotask(() => {
        if (own.options.length === 0 && this.#attachments.get(client) === own) this.#detach(own);
      });
    };
  }

  /** Calls the listener after every change. Returns what ends it. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Returns the open questions: the same frozen array until something changes. */
  readonly getSnapshot = (): readonly PendingElicitation[] => this.#snapshot;

  /**
   * Accepts a question: a form with this content, which is checked, a link without content. Rejects with an `ElicitationError` where
   * that is not possible; the question stays open then.
   */
  readonly accept = async (id: string, content?: unknown): Promise<void> => {
    let { pending } = this.#open(id);
    if (isUnread(pending)) pending = { ...pending, ...(await readLeniently(pending.request)) };
    this.#answer(this.#open(id), accepted(pending, content));
  };

  /** Declines a question: the person said no. */
  readonly decline = async (id: string): Promise<void> => {
    const entry = this.#open(id);
    if (entry.visit) this.#end(entry, () => entry.reject(new ElicitationError("declined", "The link was declined.")));
    else this.#answer(entry, { action: "decline" });
  };

  /** Cancels a question: the person made no choice. */
  readonly cancel = async (id: string): Promise<void> => {
    const entry = this.#open(id);
    if (entry.visit) this.#end(entry, () => entry.reject(new ElicitationError("cancelled", "The link was dismissed.")));
    else this.#answer(entry, { action: "cancel" });
  };

  /** Says that the person has done what a link was for: accepts it where that has not been said before. */
  readonly complete = async (id: string): Promise<void> => {
    if (this.#ended.get(id) === "answered") return;
    const entry = this.#open(id);
    if (entry.pending.request.mode !== "url") throw new ElicitationError("mode", "Only a link can be completed.");
    this.#answer(entry, { action: "accept" });
  };

  /** Accepts, declines or cancels with a result, as mcp-use's `approveElicitation` does. */
  readonly approveElicitation = async (id: string, result: ElicitResult): Promise<void> => {
    if (result.action === "accept") return this.accept(id, result.content);
    return result.action === "decline" ? this.decline(id) : this.cancel(id);
  };

  /** Declines, as mcp-use's `rejectElicitation` does. The reason stays in the page: the protocol has no place for it. */
  readonly rejectElicitation = async (id: string, _reason?: string): Promise<void> => this.decline(id);

  /** Returns what was entered for an open question; undefined where nothing was. */
  readonly draft = (id: string): Draft | undefined => this.#drafts.get(id);

  /** Keeps what is entered for an open question until it ends, so that it survives the element that shows it. */
  readonly keepDraft = (id: string, draft: Draft): void => {
    if (this.#entries.has(id)) this.#drafts.set(id, draft);
  };

  /** Returns why a question was withdrawn, if it was; remembered for the last 256 questions. */
  readonly withdrawn = (id: string): string | undefined => this.#reasons.get(id);

  /**
   * Asks for the visits that a call needs before it can be made again (error -32042 of revision 2025-11-25): one question a link.
   * Resolves when each was accepted, or was reported as done by the server; then make the call again. Rejects with `declined` or
   * `cancelled`.
   */
  async visit(
    client: McpClient,
    error: { readonly elicitations: readonly UrlRequest[] },
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    const attachment = this.#attachmentOf(client);
    await together(options.signal, error.elicitations, (request, signal) =>
      this.#enqueue(attachment, { ...request, mode: "url" }, signal, true),
    );
  }

  /**
   * Answers one round of revision 2026-07-28 by hand (`callTool` with `allowInputRequired`): returns the `inputResponses` for the
   * retry.
   */
  async round(
    client: McpClient,
    inputRequests: Readonly<Record<string, { readonly method: string; readonly params?: unknown }>>,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<Record<string, ElicitResult>> {
    const attachment = this.#attachmentOf(client);
    const entries = Object.entries(inputRequests);
    const foreign = entries.find(([, entry]) => entry.method !== "elicitation/create");
    if (foreign) throw new ElicitationError("mode", `${JSON.stringify(foreign[0])} asks for ${foreign[1].method}, which is not an elicitation.`);
    const answers = await together(options.signal, entries, async ([key, entry], signal) => [
      key,
      await this.#ask(attachment, entry.params as ElicitRequest, signal),
    ] as const);
    return Object.fromEntries(answers);
  }

  #register(attachment: Attachment, options: AttachOptions): void {
    const { client } = attachment;
    const handlers = {
      ask: (params: ElicitRequest, signal: AbortSignal) => this.#ask(attachment, params, signal),
      completed: (elicitationId: string) => this.#completed(attachment, elicitationId),
    };
    try {
      register(client, handlers, options.modes ?? ["form", "url"], options.sdk ?? sdkOf(client));
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new ElicitationError(
        "capability",
        `This client cannot be asked: ${why}. Attach it before it connects, or declare { elicitation: { form: {}, url: {} } } in its capabilities.`,
      );
    }
  }

  #detach(attachment: Attachment): void {
    this.#attachments.delete(attachment.client);
    unregister(attachment.client);
    attachment.unwatch();
    for (const entry of [...this.#entries.values()]) {
      if (entry.attachment === attachment) {
        this.#withdraw(entry, new ElicitationError("closed", "The page no longer takes questions of this server."));
      }
    }
  }

  #attachmentOf(client: McpClient): Attachment {
    const attachment = this.#attachments.get(client);
    if (!attachment) throw new ElicitationError("closed", "This client is not attached to the queue.");
    return attachment;
  }

  async #ask(attachment: Attachment, request: ElicitRequest, signal: AbortSignal): Promise<ElicitResult> {
    const server = serverOf(attachment);
    const callback = callbackOf(attachment, server);
    if (!callback) return this.#enqueue(attachment, request, signal, false);
    const result = await callback(request, { signal, server });
    const parsed = request.mode === "url" ? undefined : parse(request.requestedSchema);
    return checked(request, result, parsed?.ok ? { form: parsed.form } : parsed ? await readLeniently(request) : {});
  }

  #enqueue(attachment: Attachment, request: ElicitRequest, signal: AbortSignal, visit: boolean): Promise<ElicitResult> {
    if (signal.aborted) return Promise.reject(withdrawal(signal));
    const options = merged(attachment);
    const open = [...this.#entries.values()].filter((entry) => entry.attachment === attachment).length;
    if (open >= (options.limit ?? LIMIT)) {
      return Promise.reject(new ElicitationError("limit", `${open} questions of this server are open already.`));
    }
    const pending = pendingOf(`q${++this.#count}`, attachment, options, request);
    return new Promise<ElicitResult>((resolve, reject) => {
      const timer =
        options.timeout === undefined
          ? undefined
          : setTimeout(() => this.#withdraw(entry, new ElicitationError("withdrawn", "Nobody answered in time.")), options.timeout);
      const withdrawn = () => this.#withdraw(entry, withdrawal(signal));
      const settle = <T>(how: (value: T) => void) => (value: T) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", withdrawn);
        how(value);
      };
      const entry: Entry = { pending, visit, attachment, resolve: settle(resolve), reject: settle(reject) };
      signal.addEventListener("abort", withdrawn, { once: true });
      this.#entries.set(pending.id, entry);
      this.#changed();
      if (isUnread(pending)) void readLeniently(request).then((read) => this.#update(pending.id, read));
    });
  }

  #update(id: string, change: Partial<PendingElicitation>): void {
    const entry = this.#entries.get(id);
    if (!entry || !Object.keys(change).length) return;
    this.#entries.set(id, { ...entry, pending: Object.freeze({ ...entry.pending, ...change }) });
    this.#changed();
  }

  #completed(attachment: Attachment, elicitationId: string): void {
    for (const [id, entry] of [...this.#entries]) {
      const { request } = entry.pending;
      if (entry.attachment !== attachment || request.mode !== "url" || request.elicitationId !== elicitationId) continue;
      if (entry.visit) {
        this.#answer(entry, { action: "accept" });
      } else if (!entry.pending.completed) {
        this.#update(id, { completed: true });
      }
    }
  }

  #open(id: string): Entry {
    const entry = this.#entries.get(id);
    if (entry) return entry;
    if (this.#ended.get(id) === "withdrawn") throw new ElicitationError("withdrawn", this.#reasons.get(id) ?? "The question was withdrawn.");
    throw new ElicitationError("unknown", "There is no open question of this id.");
  }

  #answer(entry: Entry, result: ElicitResult): void {
    this.#end(entry, () => entry.resolve(result));
  }

  #withdraw(entry: Entry, error: ElicitationError): void {
    const { id } = entry.pending;
    if (!this.#entries.has(id)) return;
    remember(this.#reasons, id, error.message);
    this.#end(entry, () => entry.reject(error), "withdrawn");
  }

  #end(entry: Entry, tell: () => void, how: "answered" | "withdrawn" = "answered"): void {
    const { id } = entry.pending;
    this.#entries.delete(id);
    this.#drafts.delete(id);
    remember(this.#ended, id, how);
    tell();
    this.#changed();
  }

  #changed(): void {
    this.#snapshot = Object.freeze([...this.#entries.values()].map((entry) => entry.pending));
    for (const listener of [...this.#listeners]) listener();
  }
}

function remember<T>(memory: Map<string, T>, id: string, value: T): void {
  memory.set(id, value);
  const oldest = memory.keys().next();
  if (memory.size > REMEMBERED && !oldest.done) memory.delete(oldest.value);
}

function merged(attachment: Attachment): AttachOptions {
  return Object.assign({}, ...attachment.options.map((read) => read())) as AttachOptions;
}

function serverOf(attachment: Attachment): string {
  return merged(attachment).server ?? attachment.client.getServerVersion()?.name ?? "MCP server";
}

/** Returns the callback for this server, the first of: its own, its own under the old name, everyone's, everyone's under the old name. */
function callbackOf(attachment: Attachment, server: string): OnElicitationCallback | undefined {
  const options = merged(attachment);
  const own = options.servers && Object.hasOwn(options.servers, server) ? options.servers[server] : undefined;
  return own?.onElicitation ?? own?.elicitationCallback ?? options.onElicitation ?? options.elicitationCallback;
}

function pendingOf(id: string, attachment: Attachment, options: AttachOptions, request: ElicitRequest): PendingElicitation {
  const info = attachment.client.getServerVersion();
  const server = serverOf(attachment);
  const since = Date.now();
  const parsed = request.mode === "url" ? undefined : parse(request.requestedSchema);
  const claimed = info?.title ?? info?.name;
  const [tool, another] = attachment.calls;
  return Object.freeze({
    id,
    server,
    request,
    since,
    origin: Object.freeze({
      server,
      ...(claimed !== undefined && claimed !== server && { claimed }),
      ...(info && { version: info.version }),
      // Of several open calls, nothing says which one asks.
      ...(tool && !another && { tool }),
      ...options.origin?.(server, request),
    }),
    ...(options.timeout !== undefined && { deadline: since + options.timeout }),
    ...(parsed?.ok && { form: parsed.form }),
    completed: false,
    timestamp: since,
    serverName: server,
  });
}

/** Returns the result that accepts, once the content is checked. */
function accepted(pending: { readonly request: ElicitRequest; readonly form?: Form }, content: unknown): ElicitResult {
  if (pending.request.mode === "url") {
    if (content !== undefined) throw new ElicitationError("mode", "A link is accepted without content.");
    return { action: "accept" };
  }
  if (!pending.form) throw new ElicitationError("defects", "The request is not a legal form, so it can be declined or cancelled only.");
  const verdict = pending.form.check(content ?? {});
  if (!verdict.ok) throw new ElicitationError("violations", "The answer does not fit the form.", verdict.violations);
  if (Object.hasOwn(verdict.answers, "__proto__")) {
    throw new ElicitationError("undeliverable", 'The SDK drops the field "__proto__" without a word, so this form cannot be answered in full.');
  }
  return { action: "accept", content: { ...verdict.answers } };
}

/** Returns a callback's result, once it is checked as a person's answer is. */
function checked(request: ElicitRequest, result: ElicitResult, read: { readonly form?: Form }): ElicitResult {
  if (result?.action === "decline" || result?.action === "cancel") return { action: result.action };
  if (result?.action !== "accept") throw new ElicitationError("mode", "The callback returned no action: expected accept, decline or cancel.");
  if (request.mode === "url") return accepted({ request }, undefined);
  return accepted({ request, ...read }, result.content);
}

/** Whether a question has no form yet: its schema is not legal, but may be one that a person can fill in. */
const isUnread = ({ request, form }: PendingElicitation) => request.mode !== "url" && !form;

/** Returns the form of a schema that is not legal, if a person can fill it in. */
async function readLeniently(request: ElicitRequest): Promise<{ readonly form?: Form }> {
  try {
    const lenient = await import("../lenient/parse.js");
    const parsed = lenient.parse(readDraft, Form, readSchema, (request as FormRequest).requestedSchema);
    return parsed.ok ? { form: parsed.form } : {};
  } catch {
    // The part could not be loaded.
    return {};
  }
}

function withdrawal(signal: AbortSignal): ElicitationError {
  const { reason } = signal;
  const why = typeof reason === "string" ? reason : reason instanceof Error && reason.name !== "AbortError" ? reason.message : "";
  return new ElicitationError("withdrawn", why === "" ? "The question was withdrawn." : `The question was withdrawn: ${why}`);
}

/** Runs all at once; the first failure, or the outer signal, withdraws the others. */
async function together<T, R>(outer: AbortSignal | undefined, items: readonly T[], run: (item: T, signal: AbortSignal) => Promise<R>): Promise<R[]> {
  const inner = new AbortController();
  const abort = () => inner.abort(outer?.reason);
  if (outer?.aborted) abort();
  outer?.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.all(items.map((item) => run(item, inner.signal)));
  } catch (error) {
    inner.abort(error);
    throw error;
  } finally {
    outer?.removeEventListener("abort", abort);
  }
}
