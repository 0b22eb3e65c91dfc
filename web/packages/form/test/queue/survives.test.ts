// What is open and what was entered survives the part of the page that shows it; a question shows the call that asks.
import { describe, expect, test } from "vitest";
import { ElicitationQueue } from "../../src/index.js";
import type { McpClient } from "../../src/index.js";

/** A client of version 2 of the SDK, as the queue sees it. */
function fakeClient() {
  let ask: ((params: object, context: object) => Promise<unknown>) | undefined;
  const calls: { end: (value: unknown) => void; fail: (why: unknown) => void }[] = [];
  class Fake {
    setVersionNegotiation = () => {};
    setRequestHandler = (_: string, __: object, handler: typeof ask) => void (ask = handler);
    removeRequestHandler = () => void (ask = undefined);
    setNotificationHandler = () => {};
    removeNotificationHandler = () => {};
    registerCapabilities = () => {};
    getServerVersion = () => ({ name: "files", version: "1" });
    callTool(_params: object) {
      return new Promise<unknown>((end, fail) => calls.push({ end, fail }));
    }
  }
  const client = new Fake();
  const asks = (message: string) => ask!({ message, requestedSchema: { type: "object", properties: { a: { type: "string" } } } }, { mcpReq: { signal: new AbortController().signal } }).catch((error: Error) => error.message);
  return { client: client as unknown as McpClient & { callTool(params: object): Promise<unknown> }, asks, calls };
}

describe("drafts", () => {
  test("are kept by question while it is open", async () => {
    const { client, asks } = fakeClient();
    const queue = new ElicitationQueue();
    queue.attach(client);
    const answer = asks("Who?");
    const [question] = queue.getSnapshot();
    expect(queue.draft(question!.id)).toBe(undefined);
    queue.keepDraft(question!.id, { a: "Ada" });
    expect(queue.draft(question!.id)).toEqual({ a: "Ada" });
    await queue.accept(question!.id, { a: "Ada" });
    expect(queue.draft(question!.id)).toBe(undefined);
    queue.keepDraft(question!.id, { a: "late" });
    expect(queue.draft(question!.id)).toBe(undefined);
    expect(await answer).toEqual({ action: "accept", content: { a: "Ada" } });
  });

  test("and calls survive a component that ends, if the page holds the client too", async () => {
    const { client, asks } = fakeClient();
    const queue = new ElicitationQueue();
    queue.attach(client);
    const component = queue.attach(client);
    void asks("Who?");
    component();
    await new Promise((done) => setTimeout(done));
    expect(queue.getSnapshot()).toHaveLength(1);
  });
});

describe("the call", () => {
  test("is shown where one is open, and of several none", async () => {
    const { client, asks, calls } = fakeClient();
    const queue = new ElicitationQueue();
    queue.attach(client);
    const last = () => queue.getSnapshot().at(-1)!.origin.tool;
    void asks("before any call");
    expect(last()).toBe(undefined);
    const first = client.callTool({ name: "deploy", arguments: { build: 1 } });
    void asks("within one call");
    expect(last()).toEqual({ name: "deploy", arguments: { build: 1 } });
    const second = client.callTool({ name: "book" }).catch(() => "failed");
    void asks("within one of two");
    expect(last()).toBe(undefined);
    calls[0]!.end("result");
    expect(await first).toBe("result");
    void asks("within the one that is left");
    expect(last()).toEqual({ name: "book" });
    calls[1]!.fail(new Error("no"));
    expect(await second).toBe("failed");
    void asks("after all");
    expect(last()).toBe(undefined);
  });

  test("goes over to the page's own origin, and the client is left as it was", async () => {
    const { client, asks } = fakeClient();
    const queue = new ElicitationQueue();
    const { callTool } = client;
    const end = queue.attach(client, { origin: () => ({ tool: { name: "own" } }) });
    void client.callTool({ name: "deploy" });
    void asks("?");
    expect(queue.getSnapshot()[0]!.origin.tool).toEqual({ name: "own" });
    end();
    await new Promise((done) => setTimeout(done));
    expect(client.callTool).toBe(callTool);
    expect(Object.hasOwn(client, "callTool")).toBe(false);
  });
});
