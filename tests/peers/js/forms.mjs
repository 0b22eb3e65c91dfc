// A server that asks for every kind of answer that a zod schema describes: `node forms.mjs SDK [stdio | http PORT]`.
//
// `SDK` is `ts1`, which takes JSON Schemas (here those that zod 4 makes), or `ts2`, whose
// `inputRequired.elicit` takes zod schemas. The tool `kinds` lists the kinds; `ask` asks for one and says what it was given.
import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import { listen } from './listen.mjs';
import { told } from './questions.mjs';

const one = schema => z.object({ value: schema });
const Person = z.object({ name: z.string(), age: z.int() });

const KINDS = {
  text: one(z.string()),
  'text bounds': one(z.string().min(2).max(20).describe('A short name').meta({ title: 'Name' })),
  'text default': one(z.string().default('x')),
  'text pattern': one(z.string().regex(/^[A-Z]{3}-\d+$/)),
  'text any case': one(z.string().regex(/^[a-z]+$/i)),
  'text ending': one(z.string().endsWith('.md')),
  integer: one(z.int()),
  'integer bounds': one(z.int().min(1).max(5)),
  'integer 32': one(z.int32()),
  number: one(z.number()),
  'number bounds': one(z.number().gt(0).lt(1).multipleOf(0.01)),
  boolean: one(z.boolean()),
  'boolean default': one(z.boolean().default(false)),
  'optional text': one(z.string().optional()),
  'nullable text': one(z.string().nullable()),
  'nullish text': one(z.string().nullish()),
  'nullish integer': one(z.int().nullish()),
  'optional enum': one(z.enum(['red', 'blue']).optional()),
  'nullable enum': one(z.enum(['a', 'b']).nullable()),
  enum: one(z.enum(['red', 'blue'])),
  'enum default': one(z.enum(['a', 'b']).default('a')),
  'enum of numbers': one(z.enum({ Low: 1, High: 2 })),
  'literal of one': one(z.literal('deploy')),
  literals: one(z.literal(['a', 'b'])),
  'literal of numbers': one(z.literal([1, 2, 3])),
  'literals of all': one(z.literal(['auto', 1, true])),
  'literal or null': one(z.literal(['a', null])),
  'union of two literals': one(z.union([z.literal('a'), z.literal('b')])),
  'union of titled literals': one(
    z.union([z.literal('a').meta({ title: 'First' }), z.literal('b').meta({ title: 'Second' })]),
  ),
  'union of text and number': one(z.union([z.string(), z.number()])),
  'union of number and boolean': one(z.union([z.number(), z.boolean()])),
  email: one(z.email()),
  url: one(z.url()),
  uuid: one(z.uuid()),
  date: one(z.iso.date()),
  datetime: one(z.iso.datetime()),
  time: one(z.iso.time()),
  duration: one(z.iso.duration()),
  'ip address': one(z.ipv4()),
  base64: one(z.base64()),
  'coerced number': one(z.coerce.number()),
  'list of text': one(z.array(z.string())),
  'list of numbers': one(z.array(z.number())),
  'list of enum': one(z.array(z.enum(['red', 'blue'])).min(1)),
  'list of titled literals': one(
    z.array(z.union([z.literal('a').meta({ title: 'First' }), z.literal('b').meta({ title: 'Second' })])),
  ),
  record: one(z.record(z.string(), z.string())),
  'nested object': one(Person),
  'list of objects': one(z.array(Person)),
  'two fields': Person,
  strict: z.strictObject({ value: z.string() }),
  loose: z.looseObject({ value: z.string() }),
  'no fields': z.object({}),
  reused: z.object({ from: z.enum(['a', 'b']).meta({ id: 'Place' }), to: z.enum(['a', 'b']).meta({ id: 'Place2' }) }),
};

/** The result of `ask`: what zod makes of the content, and its type. */
function given(kind, { action, content }) {
  if (action !== 'accept') return told({ action });
  const { value = content } = KINDS[kind].parse(content);
  return told({ action, is: value === null ? 'null' : typeof value, value: JSON.stringify(value) });
}

const [sdk, transport = 'stdio', port = '0'] = process.argv.slice(2);
const about = { name: 'forms', version: '1.0.0' };
const list = async () => told(Object.keys(KINDS));

async function first() {
  const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
  const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
  const build = () => {
    const server = new McpServer(about);
    server.registerTool('kinds', { description: 'Lists the kinds' }, list);
    const inputSchema = { kind: z.string() };
    server.registerTool('ask', { description: 'Asks for one kind', inputSchema }, async ({ kind }, extra) => {
      const params = { message: `Please give: ${kind}`, requestedSchema: z.toJSONSchema(KINDS[kind]) };
      return given(kind, await server.server.elicitInput(params, { relatedRequestId: extra.requestId }));
    });
    return server;
  };
  if (transport === 'stdio') return build().connect(new StdioServerTransport());
  listen(Number(port), {
    openSession: async keep => {
      const opened = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: id => keep(id, opened),
      });
      await build().connect(opened);
      return opened;
    },
  });
}

async function second() {
  const { McpServer, createMcpHandler, inputRequired, inputResponse } = await import('@modelcontextprotocol/server');
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
  const { NodeStreamableHTTPServerTransport, toNodeHandler } = await import('@modelcontextprotocol/node');
  const build = () => {
    const server = new McpServer(about, { capabilities: { tools: {} } });
    server.registerTool('kinds', { description: 'Lists the kinds' }, list);
    const inputSchema = z.object({ kind: z.string() });
    server.registerTool('ask', { description: 'Asks for one kind', inputSchema }, async ({ kind }, ctx) => {
      const answer = inputResponse(ctx.mcpReq.inputResponses, 'it');
      if (answer.kind === 'elicit') return given(kind, answer);
      const params = { message: `Please give: ${kind}`, requestedSchema: KINDS[kind] };
      return inputRequired({ inputRequests: { it: inputRequired.elicit(params) } });
    });
    return server;
  };
  if (transport === 'stdio') return serveStdio(build);
  listen(Number(port), {
    modern: toNodeHandler(createMcpHandler(build)),
    openSession: async keep => {
      const opened = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: id => keep(id, opened),
      });
      await build().connect(opened);
      return opened;
    },
  });
}

await (sdk === 'ts1' ? first() : second());
