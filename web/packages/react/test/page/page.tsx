/** A page with two clients, whose servers the test plays: `window.page` is its handle. */
import { StrictMode, useState, version } from "react";
import { createRoot } from "react-dom/client";
import { acceptWithDefaults, ElicitationQueue } from "@mcp-elicit/form";
import { Elicitation, Elicitations, useElicitation } from "@mcp-elicit/react";
import { peers, type RawServer } from "../../../form/test/queue/peers.js";

const queue = new ElicitationQueue();
const clients = { first: peers(1), second: peers(2) };
// As the README has it: client and queue belong to the module.
if (location.hash === "#held") for (const { client } of Object.values(clients)) queue.attach(client);
const servers: Partial<Record<keyof typeof clients, RawServer>> = {};
const drafts: unknown[] = [];
const open: Record<string, { id: number; response: Promise<unknown> }> = {};

function App() {
  const [renders, setRenders] = useState(0);
  const [mounted, setMounted] = useState(true);
  return (
    <>
      <button type="button" id="again" onClick={() => setRenders(renders + 1)}>
        Render again ({renders})
      </button>
      <button type="button" id="toggle" onClick={() => setMounted(!mounted)}>
        {mounted ? "Take away" : "Bring back"}
      </button>
      {mounted && <Questions key={location.hash} />}
    </>
  );
}

function Questions() {
  // A new object at each render, as most callers write it.
  const elicitation = useElicitation(
    { first: clients.first.client, second: clients.second.client },
    location.hash === "#own" ? {} : location.hash === "#callback" ? { onElicitation: async (params) => acceptWithDefaults(params) } : { queue },
  );
  return (
    <section aria-label="Questions">
      <output id="count">{elicitation.pending.length}</output>
      <output id="error">{elicitation.error?.message}</output>
      {location.hash === "#headless" ? (
        elicitation.pending.map((question) => (
          <Elicitation.Root key={question.id} question={question} queue={elicitation.queue} onDraft={(draft) => drafts.push(draft)}>
            <Elicitation.Origin />
            <Elicitation.Message className="message" />
            <Elicitation.Fields>
              {({ field, inputProps, labelProps, errors, errorProps }) => (
                <div>
                  <label {...labelProps}>{field.label}</label>
                  <input {...inputProps} />
                  {errors.length > 0 && <span {...errorProps}>{errors.map(({ message }) => message).join(", ")}</span>}
                </div>
              )}
            </Elicitation.Fields>
            <Elicitation.Link />
            <Elicitation.Problems />
            <Elicitation.Accept asChild>
              <button className="mine">Send it</button>
            </Elicitation.Accept>
            <Elicitation.Decline />
            <Elicitation.Cancel />
          </Elicitation.Root>
        ))
      ) : (
        <Elicitations of={elicitation} empty={<p id="empty">Nothing is asked.</p>} />
      )}
    </section>
  );
}

const page = {
  version,
  drafts,
  async connect(which: keyof typeof clients) {
    const server = await clients[which].connect(`${which}-server`);
    servers[which] = server;
    return server.capabilities;
  },
  ask(which: keyof typeof clients, name: string, params: Record<string, unknown>) {
    open[name] = servers[which]!.ask(params);
  },
  answer: (name: string) => open[name]!.response,
  withdraw: (which: keyof typeof clients, name: string, reason: string) => servers[which]!.withdraw(open[name]!.id, reason),
};
export type Page = typeof page;
Object.assign(window, { page });

createRoot(document.querySelector("#root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
