import { describe, expect, it, vi } from "vitest";
import { ElicitationQueue, type AttachOptions } from "../../src/queue/queue.js";
import type { OnElicitationCallback } from "../../src/seeds.js";
import { peers } from "./peers.js";

const FORM = { message: "?", requestedSchema: { type: "object", properties: { who: { type: "string" } }, required: ["who"] } };

const says = (who: string): OnElicitationCallback => vi.fn(async () => ({ action: "accept" as const, content: { who } }));

describe.each([1, 2] as const)("callbacks, with a client of SDK %i", (sdk) => {
  async function answered(options: AttachOptions) {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    queue.attach(client, { server: "crm", ...options });
    return (await (await connect()).ask(FORM).response) as { result?: { content?: { who?: string } }; error?: { message: string } };
  }

  // The order of the seeds, the first of which wins.
  const all = {
    servers: { crm: { onElicitation: says("own"), elicitationCallback: says("own, old") } },
    onElicitation: says("global"),
    elicitationCallback: says("global, old"),
  };
  it.each([
    ["the server's own first", all, "own"],
    ["then the server's own under the old name", { ...all, servers: { crm: { elicitationCallback: says("own, old") } } }, "own, old"],
    ["then the global one", { ...all, servers: { other: { onElicitation: says("other") } } }, "global"],
    ["then the global one under the old name", { elicitationCallback: says("global, old") }, "global, old"],
  ] as const)("%s", async (_name, options, who) => {
    expect((await answered(options)).result?.content?.who).toBe(who);
  });

  it("a callback knows the server and hears of a withdrawal", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    let seen: { signal: AbortSignal; server: string } | undefined;
    queue.attach(client, {
      onElicitation: (_params, context) => {
        seen = context;
        return new Promise(() => {});
      },
    });
    const server = await connect("crm");
    const { id } = server.ask(FORM);
    await vi.waitFor(() => expect(seen?.server).toBe("crm"));
    await server.withdraw(id, "enough");
    await vi.waitFor(() => expect(seen?.signal.aborted).toBe(true));
  });

  it("what a callback accepts is checked, too", async () => {
    const { result, error } = await answered({ onElicitation: async () => ({ action: "accept", content: {} }) });
    expect(result).toBeUndefined();
    expect(error?.message).toContain("does not fit");
  });

  it("a callback that returns no action is an error, not an action", async () => {
    const { result } = await answered({ onElicitation: (async () => undefined) as never });
    expect(result).toBeUndefined();
  });
});

it("mcp-use's names for the actions do what they say", async () => {
  const queue = new ElicitationQueue();
  const { client, connect } = peers(1);
  queue.attach(client);
  const server = await connect();
  const first = server.ask(FORM);
  const second = server.ask(FORM);
  await vi.waitFor(() => expect(queue.getSnapshot()).toHaveLength(2));
  const [a, b] = queue.getSnapshot();
  await queue.approveElicitation(a!.id, { action: "accept", content: { who: "me" } });
  await queue.rejectElicitation(b!.id, "no time");
  expect((await first.response).result).toEqual({ action: "accept", content: { who: "me" } });
  expect((await second.response).result).toEqual({ action: "decline" });
});
