// Mastra's MCPClient. Version 0 declares elicitation also without a handler; version 2 is asked in the rounds era only. For its arguments see calls.mjs.
// begin
import { MCPClient } from '@mastra/mcp';
// end
import { Person, play, readPlan } from './calls.mjs';

const plan = readPlan();
const person = new Person();
const pushed = 'elicitation' in MCPClient.prototype || !('listTools' in MCPClient.prototype);
const handler = plan.capable && !pushed ? { inputRequests: async ({ params }) => person.answer(params) } : {};
const limit = plan.limit ? { timeout: plan.limit * 1000 } : {};
// begin
const client = new MCPClient({
  id: 'tickets',
  servers: { s: { command: plan.command, args: plan.args, env: process.env, ...limit, ...handler } },
});
// end
let tools;
await play(plan, person, {
  connect: async () => {
    if (plan.capable && pushed) await client.elicitation.onRequest('s', async request => person.answer(request));
    tools = await (client.listTools ?? client.getTools).call(client);
    return { tools: Object.keys(tools).map(name => name.replace(/^s_/, '')) };
  },
  call: one => {
    const given = one.arguments ?? {};
    return tools[`s_${one.tool}`].execute(pushed ? { context: given } : given, {});
  },
});
