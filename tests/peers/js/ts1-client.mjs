// TypeScript SDK 1: a pushed-era client. For its arguments see script.mjs.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Person, play, readScripts } from './script.mjs';

for (const script of readScripts()) {
  const person = new Person(script);
  const capabilities = script.capability ? { elicitation: script.capability } : {};
  const client = new Client({ name: 'ts1-client', version: '1.0.0' }, { capabilities });
  if (script.capability) client.setRequestHandler(ElicitRequestSchema, request => person.answer(request.params));
  const transport = script.url
    ? new StreamableHTTPClientTransport(new URL(script.url))
    : new StdioClientTransport({ command: script.command, args: script.args, stderr: 'inherit' });

  await play('ts1-client', script, person, {
    connect: () => client.connect(transport),
    about: () => ({ protocol: transport.protocolVersion ?? null, server: client.getServerVersion()?.name }),
    call: () => client.callTool({ name: script.tool, arguments: script.arguments }, undefined, { timeout: 120_000 }),
    close: () => client.close(),
  });
}
process.exit(0);
