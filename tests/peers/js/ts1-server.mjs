// TypeScript SDK 1: a pushed-era server. `node ts1-server.mjs [stdio | http PORT]`
import { randomUUID } from 'node:crypto';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/sdk/types.js';
import { listen } from './listen.mjs';
import { TOOLS, answered, questions, told } from './questions.mjs';

function build() {
  const server = new Server({ name: 'ts1-server', version: '1.0.0' }, { capabilities: { tools: {} } });
  const visited = new Set();
  // A pushed question belongs to the call it serves: over HTTP it would otherwise wait for a stream nobody opened.
  const ask = (params, extra) =>
    server.elicitInput(params, { relatedRequestId: extra.requestId, timeout: 600_000 }).then(answered);
  const form = (name, extra) => ask({ mode: 'form', ...questions[name] }, extra);

  const tools = {
    echo: async ({ text = '' }) => told({ echo: text }),
    contact: async (_, extra) => told(await form('contact', extra)),
    'every-kind': async (_, extra) => told(await form('every-kind', extra)),
    visit: async (_, extra) => {
      const elicitationId = randomUUID();
      const answer = await ask({ mode: 'url', ...questions.visit, elicitationId }, extra);
      if (answer.action === 'accept') await server.createElicitationCompletionNotifier(elicitationId)();
      return told(answer);
    },
    'require-visit': async ({ forever = false }) => {
      if (visited.size > 0 && !forever) return told({ visited: true });
      const elicitationId = randomUUID();
      visited.add(elicitationId);
      setTimeout(() => server.createElicitationCompletionNotifier(elicitationId)().catch(() => {}), 50);
      throw new UrlElicitationRequiredError([{ mode: 'url', ...questions.visit, elicitationId }]);
    },
    'two-steps': async (_, extra) => {
      const first = await form('contact', extra);
      return told(first.action === 'accept' ? [first, await form('seat', extra)] : [first]);
    },
    both: async (_, extra) => told(await Promise.all([form('contact', extra), form('seat', extra)])),
  };

  server.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: Object.entries(TOOLS).map(([name, description]) => ({ name, description, inputSchema: { type: 'object' } })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async (request, extra) => {
    const tool = tools[request.params.name];
    if (!tool) throw new McpError(ErrorCode.InvalidParams, `no tool ${request.params.name}`);
    return tool(request.params.arguments ?? {}, extra);
  });
  return server;
}

const [kind = 'stdio', port = '0'] = process.argv.slice(2);
if (kind === 'http') {
  listen(Number(port), {
    openSession: async keep => {
      const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: id => keep(id, transport),
      });
      await build().connect(transport);
      return transport;
    },
  });
} else {
  await build().connect(new StdioServerTransport());
}
