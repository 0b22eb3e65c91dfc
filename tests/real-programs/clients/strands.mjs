// Strands Agents' McpClient for TypeScript. For its arguments see calls.mjs.
// begin
import { McpClient } from '@strands-agents/sdk';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
// end
import { Person, play, readPlan } from './calls.mjs';

const plan = readPlan();
const person = new Person();
// begin
const client = new McpClient({
  applicationName: 'tickets',
  transport: new StdioClientTransport({ command: plan.command, args: plan.args, env: process.env, stderr: 'ignore' }),
  ...(plan.capable && { elicitationCallback: async (_, params) => person.answer(params) }),
});
// end
let tools;
await play(plan, person, {
  connect: async () => {
    tools = await client.listTools();
    return { tools: tools.map(tool => tool.name) };
  },
  call: one => client.callTool(tools.find(tool => tool.name === one.tool), one.arguments ?? {}),
});
