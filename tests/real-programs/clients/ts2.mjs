// @modelcontextprotocol/client 2, in either era. For its arguments see calls.mjs.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Person, play, readPlan } from './calls.mjs';

const plan = readPlan();
const person = new Person();
const client = new Client(
  { name: 'ts2', version: '1.0.0' },
  {
    capabilities: plan.capable ? { elicitation: { form: {} } } : {},
    versionNegotiation: { mode: plan.revision === 'pushed' ? 'legacy' : 'auto' },
  },
);
if (plan.capable) client.setRequestHandler('elicitation/create', request => person.answer(request.params));
const transport = new StdioClientTransport({ command: plan.command, args: plan.args, env: process.env, stderr: 'ignore' });
await play(plan, person, {
  connect: async () => {
    await client.connect(transport);
    return { protocol: client.getNegotiatedProtocolVersion(), tools: (await client.listTools()).tools.map(tool => tool.name) };
  },
  call: one => client.callTool({ name: one.tool, arguments: one.arguments ?? {} }, { timeout: one.seconds * 1000 }),
});
