/** Revision 2026-07-28: a round is answered through the same queue, by the SDK itself and by hand. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createMcpHandler, inputRequired, inputResponse, McpServer } from "@modelcontextprotocol/server";
import { describe, expect, it, vi } from "vitest";
import { ElicitationQueue } from "../../src/queue/queue.js";

const WHERE = { message: "Where to?", requestedSchema: { type: "object" as const, properties: { to: { type: "string" as const } }, required: ["to"] } };
const SURE = { message: "Sure?", requestedSchema: { type: "object" as const, properties: { sure: { type: "boolean" as const } }, required: ["sure"] } };

function build(): McpServer {
  const server = new McpServer({ name: "rounds-server", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.registerTool("deploy", { description: "Deploys" }, async (context) => {
    const [where, sure] = ["where", "sure"].map((key) => inputResponse(context.mcpReq.inputResponses, key));
    if (where?.kind === "elicit" && sure?.kind === "elicit") {
      return { content: [{ type: "text", text: JSON.stringify([where, sure]) }] };
    }
    return inputRequired({ inputRequests: { where: inputRequired.elicit(WHERE), sure: inputRequired.elicit(SURE) } });
  });
  return server;
}

async function connected(queue: ElicitationQueue) {
  const handler = createMcpHandler(build, { legacy: "reject" });
  const client = new Client({ name: "page", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  queue.attach(client);
  const transport = new StreamableHTTPClientTransport(new URL("http://127.0.0.1/mcp"), {
    fetch: (url, init) => handler.fetch(new Request(url, init)),
  });
  await client.connect(transport);
  expect(client.getNegotiatedProtocolVersion()).toBe("2026-07-28");
  return client;
}

describe("a round of 2026-07-28", () => {
  it("is answered by the SDK with what the queue says", async () => {
    const queue = new ElicitationQueue();
    const client = await connected(queue);
    const call = client.callTool({ name: "deploy" });
    await vi.waitFor(() => expect(queue.getSnapshot()).toHaveLength(2));
    for (const { id, request } of queue.getSnapshot()) {
      await queue.accept(id, request.message === "Sure?" ? { sure: true } : { to: "staging" });
    }
    const { content } = (await call) as { content: { text: string }[] };
    expect(content[0]!.text).toContain('"staging"');
    expect(queue.getSnapshot()).toHaveLength(0);
    await client.close();
  });

  it("ends with the call: both questions are withdrawn", async () => {
    const queue = new ElicitationQueue();
    const client = await connected(queue);
    const stop = new AbortController();
    const call = client.callTool({ name: "deploy" }, { signal: stop.signal }).catch((error: unknown) => error);
    await vi.waitFor(() => expect(queue.getSnapshot()).toHaveLength(2));
    stop.abort("the person left");
    await call;
    await vi.waitFor(() => expect(queue.getSnapshot()).toHaveLength(0));
    await client.close();
  });

  it("is answered by hand", async () => {
    const queue = new ElicitationQueue();
    const client = await connected(queue);
    const first = (await client.callTool({ name: "deploy" }, { allowInputRequired: true })) as unknown as {
      resultType: string;
      inputRequests: Record<string, { method: string; params?: unknown }>;
      requestState?: string;
    };
    expect(first.resultType).toBe("input_required");
    const answers = queue.round(client, first.inputRequests);
    await vi.waitFor(() => expect(queue.getSnapshot()).toHaveLength(2));
    for (const { id, request } of queue.getSnapshot()) {
      if (request.message === "Sure?") await queue.decline(id);
      else await queue.accept(id, { to: "production" });
    }
    expect(await answers).toEqual({ where: { action: "accept", content: { to: "production" } }, sure: { action: "decline" } });
    await client.close();
  });
});
