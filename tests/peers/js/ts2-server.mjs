// TypeScript SDK 2: one server for both eras. A handler returns what it needs; on a pushed-era connection the SDK itself
// pushes the questions and runs the handler again. `node ts2-server.mjs [--rounds-only] [stdio | http PORT]`
import { randomUUID } from 'node:crypto';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import {
  McpServer,
  UrlElicitationRequiredError,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  inputResponse,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { listen } from './listen.mjs';
import { TOOLS, answered, questions, told } from './questions.mjs';

const codec = createRequestStateCodec({ key: crypto.getRandomValues(new Uint8Array(32)), ttlSeconds: 600 });
const visited = new Set();

const form = name => inputRequired.elicit(questions[name]);
const link = () => inputRequired.elicitUrl(questions.visit);

/** What this round's answers say to `name`, or undefined when it has not been asked yet. */
function answer(ctx, name) {
  const view = inputResponse(ctx.mcpReq.inputResponses, name);
  if (view.kind !== 'elicit') return undefined;
  if (view.action === 'accept' && questions[name].requestedSchema) {
    const checked = fromJsonSchema(questions[name].requestedSchema)['~standard'].validate(view.content ?? {});
    if (checked.issues) throw new Error(`the answer to ${name} does not match the form`);
  }
  return answered(view);
}

function build({ era } = {}) {
  const server = new McpServer(
    { name: 'ts2-server', version: '1.0.0' },
    { capabilities: { tools: {} }, requestState: { verify: codec.verify } },
  );
  const single = (name, request) => async ctx => {
    const got = answer(ctx, name);
    if (got) return told(got);
    return inputRequired({ inputRequests: { [name]: request() }, requestState: await codec.mint({ asked: name }) });
  };
  const tools = {
    contact: single('contact', () => form('contact')),
    'every-kind': single('every-kind', () => form('every-kind')),
    visit: single('visit', link),
    'require-visit': async ctx => {
      if (era !== 'legacy') return single('visit', link)(ctx);
      if (visited.size > 0) return told({ visited: true });
      const elicitationId = randomUUID();
      visited.add(elicitationId);
      throw new UrlElicitationRequiredError([{ mode: 'url', ...questions.visit, elicitationId }]);
    },
    'two-steps': async ctx => {
      const { contact } = ctx.mcpReq.requestState() ?? {};
      if (contact) {
        const seat = answer(ctx, 'seat');
        if (seat) return told([contact, seat]);
      }
      const first = contact ?? answer(ctx, 'contact');
      if (!first) return inputRequired({ inputRequests: { contact: form('contact') } });
      if (first.action !== 'accept') return told([first]);
      return inputRequired({ inputRequests: { seat: form('seat') }, requestState: await codec.mint({ contact: first }) });
    },
    both: async ctx => {
      const [contact, seat] = [answer(ctx, 'contact'), answer(ctx, 'seat')];
      if (contact && seat) return told([contact, seat]);
      return inputRequired({ inputRequests: { contact: form('contact'), seat: form('seat') } });
    },
  };
  for (const [name, tool] of Object.entries(tools)) server.registerTool(name, { description: TOOLS[name] }, tool);
  const inputSchema = fromJsonSchema({ type: 'object', properties: { text: { type: 'string' } } });
  server.registerTool('echo', { description: TOOLS.echo, inputSchema }, async ({ text = '' }) => told({ echo: text }));
  return server;
}

const words = process.argv.slice(2);
const roundsOnly = words[0] === '--rounds-only';
const legacy = roundsOnly ? 'reject' : undefined;
const [kind = 'stdio', port = '0'] = roundsOnly ? words.slice(1) : words;
if (kind === 'http') {
  listen(Number(port), {
    modern: toNodeHandler(createMcpHandler(build, { legacy })),
    roundsOnly,
    openSession: async keep => {
      const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: id => keep(id, transport),
      });
      await build({ era: 'legacy' }).connect(transport);
      return transport;
    },
  });
} else {
  void serveStdio(build, { legacy });
}
