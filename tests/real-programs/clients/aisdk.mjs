// @ai-sdk/mcp, in the version of the environment's AI_SDK. For its arguments see calls.mjs.
import { Person, play, readPlan } from './calls.mjs';

const name = process.env.AI_SDK ?? '@ai-sdk/mcp';
const { ElicitationRequestSchema, createMCPClient, experimental_createMCPClient } = await import(name);
const { Experimental_StdioMCPTransport: Stdio } = await import(`${name}/mcp-stdio`);
const plan = readPlan();
const person = new Person();
let tools;
await play(plan, person, {
  connect: async () => {
    const create = createMCPClient ?? experimental_createMCPClient;
    // begin
    const client = await create({
      transport: new Stdio({ command: plan.command, args: plan.args, env: process.env, stderr: 'ignore' }),
      capabilities: plan.capable ? { elicitation: {} } : undefined,
    });
    // end
    if (plan.capable) client.onElicitationRequest(ElicitationRequestSchema, request => person.answer(request.params));
    tools = await client.tools();
    return { tools: Object.keys(tools) };
  },
  call: one => tools[one.tool].execute(one.arguments ?? {}, { toolCallId: '1', messages: [] }),
});
