// TypeScript SDK 2: a client of both eras (`--revision auto` or `pushed`). For its arguments see script.mjs.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Person, play, readScripts } from './script.mjs';

for (const script of readScripts()) {
  const person = new Person(script);
  const client = new Client(
    { name: 'ts2-client', version: '1.0.0' },
    {
      capabilities: script.capability ? { elicitation: script.capability } : {},
      versionNegotiation: { mode: script.revision === 'pushed' ? 'legacy' : 'auto' },
    },
  );
  if (script.capability) client.setRequestHandler('elicitation/create', request => person.answer(request.params));
  const transport = script.url
    ? new StreamableHTTPClientTransport(new URL(script.url))
    : new StdioClientTransport({ command: script.command, args: script.args, stderr: 'inherit' });

  await play('ts2-client', script, person, {
    connect: () => client.connect(transport),
    about: () => ({ protocol: client.getNegotiatedProtocolVersion(), server: client.getServerVersion()?.name }),
    call: () => client.callTool({ name: script.tool, arguments: script.arguments }, { timeout: 120_000 }),
    close: () => client.close(),
  });
}
process.exit(0);
