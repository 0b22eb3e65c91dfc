// fastmcp for TypeScript: `elicit` of a tool's context. `tsfastmcp_server.mjs EFFECTS`
import { FastMCP } from 'fastmcp';
import { FORMS, done } from './effects.mjs';

const server = new FastMCP({ name: 'tickets', version: '1.0.0' });
for (const [kind, requestedSchema] of Object.entries(FORMS)) {
  server.addTool({
    name: kind,
    description: `Asks: ${kind}`,
    execute: async (_, { elicit }) => done(kind, await elicit({ message: `Please answer: ${kind}`, requestedSchema })),
  });
}
server.addTool({ name: 'plain', description: 'Asks nothing', execute: async () => done('plain', { action: 'none' }) });
await server.start({ transportType: 'stdio' });
