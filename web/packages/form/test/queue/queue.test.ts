import { describe, expect, it, vi } from "vitest";
import { ElicitationQueue, type PendingElicitation } from "../../src/queue/queue.js";
import { ElicitationError } from "../../src/error.js";
import { peers } from "./peers.js";

const FORM = {
  message: "Where to?",
  requestedSchema: {
    type: "object",
    properties: {
      environment: { type: "string", enum: ["staging", "production"] },
      ticket: { type: "string", pattern: "^T-[0-9]+$" },
      share: { type: "number", exclusiveMinimum: 0 },
    },
    required: ["environment"],
  },
};
const LINK = { mode: "url", message: "Sign in", url: "https://example.com/sign-in", elicitationId: "e1" };

/** Waits until this many questions are open. */
function open(queue: ElicitationQueue, count = 1): Promise<readonly PendingElicitation[]> {
  return vi.waitFor(() => {
    const pending = queue.getSnapshot();
    if (pending.length !== count) throw new Error(`${pending.length} open`);
    return pending;
  });
}

async function fails(work: Promise<unknown>): Promise<ElicitationError> {
  const error = await work.then(() => undefined, (reason: unknown) => reason);
  expect(error).toBeInstanceOf(ElicitationError);
  return error as ElicitationError;
}

describe.each([1, 2] as const)("a client of SDK %i", (sdk) => {
  it("declares both modes, and a form is answered once its content fits", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    queue.attach(client);
    const server = await connect();
    expect(server.capabilities).toEqual({ elicitation: { form: {}, url: {} } });

    const { response } = server.ask(FORM);
    const [question] = await open(queue);
    expect(question).toMatchObject({ server: "deploy-bot", origin: { server: "deploy-bot", version: "1.2.3" }, completed: false });
    expect(question!.timestamp).toBe(question!.since);
    expect(question!.serverName).toBe("deploy-bot");

    // What the SDK's own schemas drop is kept: the pattern and the exclusive bound are checked.
    const error = await fails(queue.accept(question!.id, { environment: "staging", ticket: "x", share: 0 }));
    expect(error.code).toBe("violations");
    expect(error.violations.map(({ field, rule }) => [field, rule])).toEqual([["ticket", "pattern"], ["share", "exclusiveMinimum"]]);
    expect(queue.getSnapshot()).toHaveLength(1);

    await queue.accept(question!.id, { environment: "staging", ticket: "T-1" });
    expect(await response).toMatchObject({ result: { action: "accept", content: { environment: "staging", ticket: "T-1" } } });
    expect(queue.getSnapshot()).toHaveLength(0);
    expect((await fails(queue.accept(question!.id, {}))).code).toBe("unknown");
  });

  it.each(["decline", "cancel"] as const)("%s is passed on as it is", async (action) => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    queue.attach(client);
    const { response } = (await connect()).ask(FORM);
    const [question] = await open(queue);
    await queue[action](question!.id);
    expect((await response).result).toEqual({ action });
  });

  it("a link is accepted without content, and the server's word that it is done answers nothing", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    queue.attach(client);
    const server = await connect();
    const { response } = server.ask(LINK);
    const [question] = await open(queue);
    expect(question!.form).toBeUndefined();
    await server.complete("e1");
    await vi.waitFor(() => expect(queue.getSnapshot()[0]?.completed).toBe(true));
    expect((await fails(queue.accept(question!.id, { a: 1 }))).code).toBe("mode");
    await queue.complete(question!.id);
    expect((await response).result).toEqual({ action: "accept" });
    await queue.complete(question!.id);
  });

  it("a question that the server withdraws leaves the queue, with the reason", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    queue.attach(client);
    const server = await connect();
    const { id } = server.ask(FORM);
    const [question] = await open(queue);
    await server.withdraw(id, "not needed any more");
    await open(queue, 0);
    expect(queue.withdrawn(question!.id)).toContain("not needed any more");
    expect((await fails(queue.accept(question!.id, { environment: "staging" }))).code).toBe("withdrawn");
  });

  it("a connection that closes withdraws its questions", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    queue.attach(client);
    const server = await connect();
    server.ask(FORM);
    await open(queue);
    await server.close();
    await open(queue, 0);
  });

  it("detached for good, the server gets an error and never an action", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    const detach = queue.attach(client);
    const { response } = (await connect()).ask(FORM);
    await open(queue);
    detach();
    const { result, error } = await response;
    expect(result).toBeUndefined();
    expect(error?.code).toBe(-32603);
    expect(queue.getSnapshot()).toHaveLength(0);
  });

  it("detached and attached again in one task, nothing is lost", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    const first = queue.attach(client);
    const { response } = (await connect()).ask(FORM);
    const [question] = await open(queue);
    first();
    queue.attach(client);
    await Promise.resolve();
    await queue.accept(question!.id, { environment: "production" });
    expect((await response).result).toMatchObject({ action: "accept" });
  });

  it("a client that connected without the capability is told so", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    await connect();
    expect(() => queue.attach(client)).toThrowError(expect.objectContaining({ code: "capability" }));
  });

  it("a client that connected with the capability can be attached later", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk, { elicitation: { form: {} } });
    const server = await connect();
    queue.attach(client);
    const { response } = server.ask(FORM);
    const [question] = await open(queue);
    await queue.decline(question!.id);
    expect((await response).result).toEqual({ action: "decline" });
  });

  it("a form that is not legal can be declined and cancelled, not accepted", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    queue.attach(client);
    const { response } = (await connect()).ask({ message: "?", requestedSchema: { type: "object", properties: { a: { type: "object" } } } });
    const pending = await Promise.race([open(queue), response]);
    // Some SDK versions refuse it themselves, before anybody sees it.
    if (!Array.isArray(pending)) return expect(await response).toMatchObject({ error: { code: -32602 } });
    expect(pending[0]!.form).toBeUndefined();
    expect((await fails(queue.accept(pending[0]!.id, { a: "x" }))).code).toBe("defects");
    await queue.cancel(pending[0]!.id);
    expect((await response).result).toEqual({ action: "cancel" });
  });

  it("a form as servers send them, which is not legal, is read and answered with its own types", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    queue.attach(client);
    const requestedSchema = { type: "object", properties: { level: { type: "integer", enum: [1, 2], title: "Level" } }, required: ["level", "other"] };
    const { response } = (await connect()).ask({ message: "?", requestedSchema });
    const pending = await Promise.race([open(queue), response]);
    if (!Array.isArray(pending)) return expect(await response).toMatchObject({ error: { code: -32602 } });
    expect((await fails(queue.accept(pending[0]!.id, { level: "2" }))).code).toBe("violations");
    await vi.waitFor(() => expect(queue.getSnapshot()[0]!.form?.fields).toHaveLength(1));
    expect(queue.getSnapshot()[0]!.form!.adjustments!.map(({ code }) => code)).toEqual(["typed-options", "required-dropped"]);
    await queue.accept(pending[0]!.id, { level: 2 });
    expect((await response).result).toEqual({ action: "accept", content: { level: 2 } });
  });

  it("a field that the SDK would drop is not sent without it", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    queue.attach(client);
    const requestedSchema = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}') as object;
    const { response } = (await connect()).ask({ message: "?", requestedSchema });
    const pending = await Promise.race([open(queue), response]);
    if (!Array.isArray(pending)) return expect(await response).toMatchObject({ error: { code: -32602 } });
    const content = JSON.parse('{"__proto__":"x"}') as unknown;
    expect((await fails(queue.accept(pending[0]!.id, content))).code).toBe("undeliverable");
    await queue.decline(pending[0]!.id);
  });

  it("time that runs out is an error, not an action", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    queue.attach(client, { timeout: 20 });
    const seen: PendingElicitation[] = [];
    queue.subscribe(() => seen.push(...queue.getSnapshot()));
    const { response } = (await connect()).ask(FORM);
    const { result, error } = await response;
    expect(seen[0]!.deadline).toBe(seen[0]!.since + 20);
    expect(result).toBeUndefined();
    expect(error?.message).toContain("in time");
  });

  it("no more questions than the limit wait", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    queue.attach(client, { limit: 2 });
    const server = await connect();
    server.ask(FORM);
    server.ask(FORM);
    await open(queue, 2);
    const { error } = await server.ask(FORM).response;
    expect(error?.message).toContain("2 questions");
    expect(queue.getSnapshot()).toHaveLength(2);
  });

  it("links that a call needs are released by the person or by the server", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    queue.attach(client);
    const server = await connect();
    const elicitations = [
      { mode: "url" as const, message: "one", url: "https://example.com/1", elicitationId: "v1" },
      { mode: "url" as const, message: "two", url: "https://example.com/2", elicitationId: "v2" },
    ];
    const visit = queue.visit(client, { elicitations });
    const [one] = await open(queue, 2);
    await queue.accept(one!.id);
    await server.complete("v2");
    await visit;

    const declined = queue.visit(client, { elicitations });
    const [first] = await open(queue, 2);
    const failure = fails(declined);
    await queue.decline(first!.id);
    expect((await failure).code).toBe("declined");
    await open(queue, 0);
  });

  it("one round is answered by hand", async () => {
    const queue = new ElicitationQueue();
    const { client, connect } = peers(sdk);
    queue.attach(client);
    await connect();
    const round = queue.round(client, {
      where: { method: "elicitation/create", params: FORM },
      login: { method: "elicitation/create", params: { mode: "url", message: "Sign in", url: "https://example.com/" } },
    });
    const [where, login] = await open(queue, 2);
    await queue.accept(login!.id);
    await queue.accept(where!.id, { environment: "staging" });
    expect(await round).toEqual({ where: { action: "accept", content: { environment: "staging" } }, login: { action: "accept" } });
    expect((await fails(queue.round(client, { x: { method: "roots/list" } }))).code).toBe("mode");
  });
});

it("several servers have one queue, and ids of theirs may be equal", async () => {
  const queue = new ElicitationQueue();
  const [a, b] = [peers(1), peers(2)];
  queue.attach(a.client, { server: "first" });
  queue.attach(b.client, { server: "second" });
  const first = (await a.connect("same")).ask(FORM);
  await open(queue, 1);
  const second = (await b.connect("same")).ask(FORM);
  const pending = await open(queue, 2);
  expect(first.id).toBe(second.id);
  expect(pending.map(({ server, origin }) => [server, origin.claimed])).toEqual([["first", "same"], ["second", "same"]]);
  await queue.accept(pending[1]!.id, { environment: "production" });
  await queue.decline(pending[0]!.id);
  expect((await first.response).result).toEqual({ action: "decline" });
  expect((await second.response).result).toMatchObject({ action: "accept" });
});

it("the snapshot is the same until something changes", async () => {
  const queue = new ElicitationQueue();
  const { client, connect } = peers(2);
  queue.attach(client);
  const server = await connect();
  const before = queue.getSnapshot();
  expect(queue.getSnapshot()).toBe(before);
  const heard = vi.fn();
  const end = queue.subscribe(heard);
  server.ask(FORM);
  await open(queue);
  expect(heard).toHaveBeenCalledTimes(1);
  expect(Object.isFrozen(queue.getSnapshot())).toBe(true);
  end();
});
