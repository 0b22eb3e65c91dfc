// @modelcontextprotocol/sdk 1: `elicitInput`. `ts1_server.mjs EFFECTS`
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { FORMS, done } from './effects.mjs';

const server = new McpServer({ name: 'tickets', version: '1.0.0' });
for (const [kind, requestedSchema] of Object.entries(FORMS)) {
  server.registerTool(kind, { description: `Asks: ${kind}` }, async () =>
    done(kind, await server.server.elicitInput({ message: `Please answer: ${kind}`, requestedSchema })),
  );
}
server.registerTool('plain', { description: 'Asks nothing' }, async () => done('plain', { action: 'none' }));
await server.connect(new StdioServerTransport());
