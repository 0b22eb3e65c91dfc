// @modelcontextprotocol/server 2: `elicitInput`, which asks in the pushed era only, and `inputRequired`, which asks in both.
// `ts2_server.mjs EFFECTS`
import { McpServer, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { FORMS, done } from './effects.mjs';

serveStdio(() => {
  const server = new McpServer({ name: 'tickets', version: '1.0.0' });
  for (const [kind, requestedSchema] of Object.entries(FORMS)) {
    const question = { message: `Please answer: ${kind}`, requestedSchema };
    server.registerTool(kind, { description: `Asks: ${kind}` }, async ctx => {
      const answer = inputResponse(ctx.mcpReq.inputResponses, 'answer');
      if (answer.kind !== 'elicit') return inputRequired({ inputRequests: { answer: inputRequired.elicit(question) } });
      return done(kind, answer);
    });
  }
  server.registerTool('pushed', { description: 'Asks while the call runs' }, async ctx =>
    done('pushed', await ctx.mcpReq.elicitInput({ message: 'Please answer: pushed', requestedSchema: FORMS.book })),
  );
  server.registerTool('plain', { description: 'Asks nothing' }, async () => done('plain', { action: 'none' }));
  return server;
});
