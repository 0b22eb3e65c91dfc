// A server that asks, for the pages beside it: the tool `deploy` asks where to. `node server.mjs [PORT]`, by default 8080.
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, inputRequired, inputResponse, McpServer } from "@modelcontextprotocol/server";

const WHERE = {
  message: "Which environment should I deploy to?",
  requestedSchema: {
    type: "object",
    properties: {
      environment: { type: "string", title: "Environment", enum: ["staging", "production"] },
      note: { type: "string", title: "Note", maxLength: 80 },
    },
    required: ["environment"],
  },
};

function build() {
  const server = new McpServer({ name: "deploy-server", version: "1.0.0" });
  server.registerTool("deploy", { description: "Deploys the current build" }, async (context) => {
    const answer = inputResponse(context.mcpReq.inputResponses, "where");
    if (answer.kind !== "elicit") return inputRequired({ inputRequests: { where: inputRequired.elicit(WHERE) } });
    const text = answer.action === "accept" ? `going to ${answer.content.environment}` : `not deployed: the person said ${answer.action}`;
    return { content: [{ type: "text", text }] };
  });
  return server;
}

const handle = toNodeHandler(createMcpHandler(build));
const server = createServer((request, response) => void handle(request, response));
server.listen(Number(process.argv[2] ?? 8080), "127.0.0.1", () => {
  console.log(`a server that asks: http://127.0.0.1:${server.address().port}/mcp`);
});
