// @modelcontextprotocol/server 2: the tool of refund_server.py, which asks in rounds. `refund_server.mjs EFFECTS`
import { appendFileSync } from 'node:fs';
import { McpServer, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod/v4';

const requestedSchema = { type: 'object', properties: { reason: { type: 'string' } }, required: ['reason'] };

serveStdio(() => {
  const server = new McpServer({ name: 'refunds', version: '1.0.0' });
  server.registerTool('refund', { description: 'Refunds an order', inputSchema: z.object({ order: z.string() }) }, async ({ order }, ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'answer');
    const question = { message: `Refund order ${order}?`, requestedSchema };
    if (answer.kind !== 'elicit') return inputRequired({ inputRequests: { answer: inputRequired.elicit(question) } });
    if (answer.action !== 'accept') return { content: [{ type: 'text', text: `not refunded: ${answer.action}` }] };
    appendFileSync(process.argv[2], `${JSON.stringify({ order, reason: answer.content.reason })}\n`);
    return { content: [{ type: 'text', text: `refunded ${order}: ${answer.content.reason}` }] };
  });
  return server;
});
