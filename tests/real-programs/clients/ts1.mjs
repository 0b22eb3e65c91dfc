// @modelcontextprotocol/sdk 1. For its arguments see calls.mjs.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Person, play, readPlan } from './calls.mjs';

const plan = readPlan();
const person = new Person();
const client = new Client({ name: 'ts1', version: '1.0.0' }, { capabilities: plan.capable ? { elicitation: { form: {} } } : {} });
if (plan.capable) client.setRequestHandler(ElicitRequestSchema, request => person.answer(request.params));
const transport = new StdioClientTransport({ command: plan.command, args: plan.args, env: process.env, stderr: 'ignore' });
await play(plan, person, {
  connect: async () => {
    await client.connect(transport);
    return { protocol: transport.protocolVersion ?? null, tools: (await client.listTools()).tools.map(tool => tool.name) };
  },
  call: one => client.callTool({ name: one.tool, arguments: one.arguments ?? {} }, undefined, { timeout: one.seconds * 1000 }),
});
