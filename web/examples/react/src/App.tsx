import { useEffect, useState } from "react";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { ElicitationQueue } from "@mcp-elicit/form";
import { Elicitations, useElicitation } from "@mcp-elicit/react";

const client = new Client({ name: "react-page", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });

// Attached before it connects, the client declares the capability; the hook joins the same queue.
const queue = new ElicitationQueue();
queue.attach(client);
const connected = client.connect(new StreamableHTTPClientTransport(new URL("/mcp", location.href)));

export function App() {
  const elicitation = useElicitation(client, { queue });
  const [ready, setReady] = useState(false);
  const [busy, setBusy] = useState(false);
  const [result, setResult] = useState("");

  useEffect(() => {
    connected.then(
      () => setReady(true),
      (error) => setResult(String(error)),
    );
  }, []);

  async function deploy() {
    setBusy(true);
    setResult("");
    try {
      // A person thinks longer than the SDK's 60 seconds.
      const { content } = await client.callTool({ name: "deploy" }, { timeout: 600_000 });
      setResult(content.map((block) => (block.type === "text" ? block.text : block.type)).join("\n"));
    } catch (error) {
      setResult(String(error));
    }
    setBusy(false);
  }

  return (
    <main>
      <h1>Elicitation in React</h1>
      <p>
        <button id="call" type="button" disabled={!ready || busy} onClick={deploy}>
          Call the tool “deploy”
        </button>
      </p>
      <Elicitations of={elicitation} />
      <output id="result" aria-live="polite">
        {result}
      </output>
    </main>
  );
}
