import type { ElicitRequest, ElicitResult } from "../types.js";

/**
 * What the queue uses of a client. `Client` of `@modelcontextprotocol/sdk` (1.x) and of `@modelcontextprotocol/client` (2.x) are
 * both assignable to it.
 */
export interface McpClient {
  // The parameters of both SDKs' overloads have no common type.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  setRequestHandler(...args: any[]): void;
  removeRequestHandler(method: any): void;
  setNotificationHandler(...args: any[]): void;
  removeNotificationHandler(method: any): void;
  registerCapabilities(capabilities: any): void;
  callTool?(...args: any[]): Promise<any>;
  getServerVersion(): { name: string; version: string; title?: string | undefined } | undefined;
}

/** The questions of one client, as its SDK hands them over. */
export interface Handlers {
  /** Returns the answer; rejects where there is none. The signal fires when the server withdraws the question or the client closes. */
  ask(params: ElicitRequest, signal: AbortSignal): Promise<ElicitResult>;
  /** Notes that the server knows the visit of this `elicitationId` to be done. */
  completed(elicitationId: string): void;
}

const ASK = "elicitation/create";
const COMPLETE = "notifications/elicitation/complete";

/**
 * Both SDKs parse a request with a schema of their own before a handler sees it, and drop what that schema lacks: `pattern`,
 * exclusive bounds, `uniqueItems`. These two let the parameters through as they came.
 */
const everything = {
  "~standard": { version: 1, vendor: "mcp-elicit", validate: (value: unknown) => ({ value }) },
} as const;
const anyRequest = (method: string) => ({
  shape: { method: { value: method } },
  safeParse: (data: unknown) => ({ success: true, data }),
  parse: (data: unknown) => data,
});

/** Returns which major version of the TypeScript SDK a client is of. */
export function sdkOf(client: McpClient): 1 | 2 {
  return "setVersionNegotiation" in client ? 2 : 1;
}

/**
 * Registers the handlers at the client, and declares the capability where the client is not connected yet. Throws the SDK's own
 * error where the client was connected without the capability.
 */
export function register(client: McpClient, handlers: Handlers, modes: readonly ("form" | "url")[], sdk: 1 | 2): void {
  declare(client, modes);
  const completed = (params: unknown) => {
    const id = (params as { elicitationId?: unknown } | undefined)?.elicitationId;
    if (typeof id === "string") handlers.completed(id);
  };
  if (sdk === 2) {
    client.setRequestHandler(ASK, { params: everything }, (params: ElicitRequest, context: { mcpReq: { signal: AbortSignal } }) =>
      handlers.ask(params, context.mcpReq.signal),
    );
    client.setNotificationHandler(COMPLETE, { params: everything }, completed);
  } else {
    client.setRequestHandler(anyRequest(ASK), (request: { params: ElicitRequest }, extra: { signal: AbortSignal }) =>
      handlers.ask(request.params, extra.signal),
    );
    client.setNotificationHandler(anyRequest(COMPLETE), (notification: { params?: unknown }) => completed(notification.params));
  }
}

/** Takes the handlers away again. */
export function unregister(client: McpClient): void {
  client.removeRequestHandler(ASK);
  client.removeNotificationHandler(COMPLETE);
}

/** A call that a client has made and that is not over. */
export interface OpenCall {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

/** Notes the client's calls of tools while they are open, in `open`. Returns what ends it. The calls themselves go through unchanged. */
export function watchCalls(client: McpClient, open: Set<OpenCall>): () => void {
  const own = Object.getOwnPropertyDescriptor(client, "callTool");
  const { callTool } = client;
  if (typeof callTool !== "function") return () => {};
  const watched = function (this: McpClient, ...args: unknown[]): Promise<unknown> {
    const { name, arguments: given } = (args[0] ?? {}) as { name?: unknown; arguments?: unknown };
    const call: OpenCall = { name: String(name), ...(typeof given === "object" && given && { arguments: given as Record<string, unknown> }) };
    open.add(call);
    const over = () => void open.delete(call);
    const result = callTool.apply(this, args);
    result.then(over, over);
    return result;
  };
  client.callTool = watched;
  return () => {
    // Another library may have put its own in front of it since.
    if (client.callTool !== watched) return;
    if (own) Object.defineProperty(client, "callTool", own);
    else delete client.callTool;
  };
}

function declare(client: McpClient, modes: readonly ("form" | "url")[]): void {
  const elicitation = Object.fromEntries(modes.map((mode) => [mode, {}]));
  try {
    client.registerCapabilities({ elicitation });
  } catch {
    // The client is connected. If it declared the capability itself, the handlers can be registered all the same.
  }
}
