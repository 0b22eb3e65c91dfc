// TypeScript SDK 1: calls a tool as a task, if its server says that it may be one.
//
//   TOOL -- COMMAND ARGUMENT...
//
// For each step of the call there is a line on stdout, one JSON object as the SDK gives it.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [name, , command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'ts1-tasks', version: '1.0.0' }, { capabilities: { tasks: {} } });
await client.connect(new StdioClientTransport({ command, args, stderr: 'inherit' }));
await client.listTools();
for await (const step of client.experimental.tasks.callToolStream({ name, arguments: {} })) {
  console.log(JSON.stringify(step));
}
await client.close();
process.exit(0);
