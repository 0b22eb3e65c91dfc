import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { ElicitationQueue } from "@mcp-elicit/form";
import { render } from "@mcp-elicit/form/render";

const client = new Client({ name: "plain-page", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });

const queue = new ElicitationQueue();
queue.attach(client); // before it connects, so that the capability is declared
render(queue, document.querySelector("#questions")!);

const call = document.querySelector<HTMLButtonElement>("#call")!;
const result = document.querySelector("#result")!;

call.addEventListener("click", async () => {
  call.disabled = true;
  result.textContent = "";
  try {
    // A person thinks longer than the SDK's 60 seconds.
    const { content } = await client.callTool({ name: "deploy" }, { timeout: 600_000 });
    result.textContent = content.map((block) => (block.type === "text" ? block.text : block.type)).join("\n");
  } catch (error) {
    result.textContent = String(error);
  }
  call.disabled = false;
});

await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", location.href)));
call.disabled = false;
