/** A server end that is written by hand, so that the very bytes of a question are the test's, and clients of both SDKs before it. */
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport as Pipe1 } from "@modelcontextprotocol/sdk/inMemory.js";
import { Client as Client2, InMemoryTransport as Pipe2 } from "@modelcontextprotocol/client";
import type { McpClient } from "../../src/queue/adapter.js";

interface Message {
  jsonrpc: "2.0";
  id?: string | number;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: unknown };
}

/** The server's end of the pipe. */
export class RawServer {
  readonly #waiting = new Map<string | number, (message: Message) => void>();
  #count = 0;
  /** What the client declared. */
  capabilities: unknown;

  constructor(
    private readonly pipe: { start(): Promise<void>; send(message: never): Promise<void>; close(): Promise<void>; onmessage?: unknown },
    private readonly name: string,
  ) {
    pipe.onmessage = (message: Message) => void this.#got(message);
  }

  async #got(message: Message): Promise<void> {
    if (message.method === "initialize") {
      this.capabilities = message.params?.["capabilities"];
      await this.#send({
        jsonrpc: "2.0",
        id: message.id!,
        result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: this.name, version: "1.2.3" } },
      });
    } else if (message.method === undefined && message.id !== undefined) {
      this.#waiting.get(message.id)?.(message);
    }
  }

  #send(message: Message): Promise<void> {
    return this.pipe.send(message as never);
  }

  /** Sends a question and returns its id and the response that will come. */
  ask(params: Record<string, unknown>): { id: number; response: Promise<Message> } {
    const id = ++this.#count;
    const response = new Promise<Message>((resolve) => this.#waiting.set(id, resolve));
    void this.#send({ jsonrpc: "2.0", id, method: "elicitation/create", params });
    return { id, response };
  }

  /** Withdraws a question. */
  withdraw(id: number, reason: string): Promise<void> {
    return this.#send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason } });
  }

  /** Says that a visit is done. */
  complete(elicitationId: string): Promise<void> {
    return this.#send({ jsonrpc: "2.0", method: "notifications/elicitation/complete", params: { elicitationId } });
  }

  close(): Promise<void> {
    return this.pipe.close();
  }
}

/** A client that is not connected yet, and what connects it to a server of this name. */
export interface Peers {
  readonly client: McpClient & { close(): Promise<void> };
  connect(name?: string): Promise<RawServer>;
}

/** Returns a client of this major version of the TypeScript SDK. */
export function peers(sdk: 1 | 2, capabilities: Record<string, object> = {}): Peers {
  const info = { name: "page", version: "1.0.0" };
  const client =
    sdk === 1
      ? new Client1(info, { capabilities })
      : new Client2(info, { capabilities, versionNegotiation: { mode: "legacy" } });
  return {
    client,
    async connect(name = "deploy-bot") {
      const [here, there] = sdk === 1 ? Pipe1.createLinkedPair() : Pipe2.createLinkedPair();
      const server = new RawServer(there as never, name);
      await (there as { start(): Promise<void> }).start();
      await client.connect(here as never);
      return server;
    },
  };
}
