// TypeScript SDK 2: one tool that removes something after a person agrees, and a switch that breaks one rule of it, for the
// tests of `mcp-elicit check`. `node mutants.mjs MUTANT EFFECTS`; each removal is a line in the file EFFECTS.
import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import {
  CLIENT_CAPABILITIES_META_KEY,
  McpServer,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  inputResponse,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const [mutant, effects] = process.argv.slice(2);
const is = name => mutant === name;

const codec = createRequestStateCodec({ key: crypto.getRandomValues(new Uint8Array(32)), ttlSeconds: 600 });
const plain = {
  mint: async state => JSON.stringify(state),
  verify: async text => JSON.parse(text),
};
const states = is('accepts-a-changed-state') ? plain : codec;

const used = new Set();

const requestedSchema = {
  type: 'object',
  properties: {
    reason: { type: 'string', title: 'Reason', minLength: 3, maxLength: 40 },
    scope: { type: 'string', title: 'Scope', enum: ['one', 'all'] },
    note: { type: 'string', title: 'Note' },
  },
  required: ['reason', 'scope'],
};
if (is('illegal-schema')) requestedSchema.properties.note = { type: ['string', 'null'], title: 'Note' };

const checked = structuredClone(requestedSchema);
if (is('takes-wrong-content')) delete checked.properties.reason.minLength;
const validator = fromJsonSchema(checked)['~standard'];

const question = { message: 'Remove it?', requestedSchema };
const told = text => ({ content: [{ type: 'text', text }] });
const failed = text => ({ ...told(text), isError: true });

function remove() {
  appendFileSync(effects, 'removed\n');
  if (is('effect-twice')) appendFileSync(effects, 'removed\n');
  return told('Removed.');
}

function settle({ action, content }) {
  if (action === 'decline') return is('ignores-decline') ? remove() : told('Not removed: declined.');
  if (action === 'cancel') {
    if (is('hangs')) return new Promise(() => {});
    return is('cancel-removes') ? remove() : told('Not removed: cancelled.');
  }
  if (action !== 'accept') return failed('Not removed: no such action.');
  if (validator.validate(content ?? {}).issues) return failed('Not removed: the answer does not match the form.');
  return remove();
}

// Requests that the SDK would not send, written past it, and their answers, read past it.
let pushed = 0;
const waiting = new Map();
createInterface({ input: process.stdin }).on('line', line => {
  const frame = JSON.parse(line);
  if (is('dies-on-an-unknown-id') && frame.method === undefined && typeof frame.id === 'string') process.exit(7);
  waiting.get(frame.id)?.(frame);
});
function push() {
  const id = `raw-${(pushed += 1)}`;
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'elicitation/create', params: question })}\n`);
  return new Promise(resolve => waiting.set(id, frame => resolve(frame.result ?? { action: 'cancel' })));
}

function build({ era } = {}) {
  const server = new McpServer(
    { name: 'mutants', version: '1.0.0' },
    { capabilities: { tools: {} }, requestState: { verify: states.verify } },
  );
  const rounds = era !== 'legacy';
  server.registerTool('remove', { description: 'Removes something, if a person agrees' }, async ctx => {
    const capabilities = ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? server.server.getClientCapabilities();
    const declared = capabilities?.elicitation;
    const can = declared && (declared.form || !declared.url);
    if (is('removes-if-it-cannot-ask') && !can) return remove();
    if (is('asks-undeclared') && !can) return settle(await push());
    if (is('pushes-on-2026-07-28') && rounds && can) return settle(await push());
    if (!can) return failed('Not removed: nobody can be asked.');
    const view = inputResponse(ctx.mcpReq.inputResponses, 'remove');
    if (view.kind === 'elicit') {
      const nonce = ctx.mcpReq.requestState()?.nonce;
      // A state is good for one removal.
      if (rounds && !is('takes-a-state-twice') && (!nonce || used.has(nonce))) return failed('Not removed: ask again.');
      used.add(nonce);
      return settle(view);
    }
    return inputRequired({
      inputRequests: { remove: inputRequired.elicit(question) },
      requestState: await states.mint({ nonce: randomUUID() }),
    });
  });
  return server;
}

void serveStdio(build);
