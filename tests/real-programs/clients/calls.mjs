// What a client is told to do, and what it tells of it, one line of JSON for each call:
//
//   CLIENT [--no-capability] [--revision auto|pushed] [--limit SECONDS] [--calls JSON] -- COMMAND ARGUMENT...
//
// `--calls` is a list of `{tool, arguments, answers: [{action, content}], seconds}`; without it, each line of stdin is a call.
// `--limit` is how long the framework's client is told to wait for a call (120); 0 leaves its default. The lines are
// `{protocol, tools}` once, then `{tool, asked, text, failed, took}` for each call, or `{error}` if nothing could be called.
// The lines between `// begin` and `// end` of a client are what docs/agents.md shows.
import { createInterface } from 'node:readline';

export function readPlan(argv = process.argv.slice(2)) {
  const cut = argv.indexOf('--');
  const [command, ...args] = argv.slice(cut + 1);
  const ours = argv.slice(0, cut);
  const of = name => ours[ours.indexOf(name) + 1];
  return {
    command,
    args,
    capable: !ours.includes('--no-capability'),
    revision: ours.includes('--revision') ? of('--revision') : 'auto',
    limit: ours.includes('--limit') ? Number(of('--limit')) : 120,
    calls: ours.includes('--calls') ? JSON.parse(of('--calls')) : fromStdin(),
  };
}

async function* fromStdin() {
  for await (const line of createInterface({ input: process.stdin })) yield JSON.parse(line);
}

/** Gives the answers of the call at work. */
export class Person {
  asked = [];
  #answers = [];

  begin(call) {
    this.asked = [];
    this.#answers = [...(call.answers ?? [])];
  }

  answer = params => {
    this.asked.push(params.message);
    return this.#answers.shift() ?? { action: 'cancel' };
  };
}

export const tell = line => console.log(JSON.stringify(line));

/** Returns the text of a tool's result; a framework may return the structured content alone. */
export function textOf(result) {
  if (Array.isArray(result?.content)) return result.content.map(part => part.text ?? '').join('\n');
  return typeof result?.result === 'string' ? result.result : JSON.stringify(result ?? '');
}

/** Makes all calls: `connect()` returns `{protocol, tools}`, `call(call)` a tool's result. */
export async function play(plan, person, { connect, call }) {
  try {
    tell(await within(60, connect()));
  } catch (error) {
    tell({ error: String(error?.message ?? error) });
    process.exit(0);
  }
  for await (const one of plan.calls) {
    person.begin(one);
    const started = performance.now();
    const line = { tool: one.tool };
    try {
      const result = await within(one.seconds, call(one));
      Object.assign(line, { text: textOf(result), failed: Boolean(result?.isError) });
    } catch (error) {
      Object.assign(line, { text: String(error?.message ?? error), failed: true });
    }
    tell({ ...line, took: (performance.now() - started) / 1000, asked: person.asked.length });
  }
  process.exit(0);
}

function within(seconds, work) {
  const late = new Promise((_, fail) => setTimeout(() => fail(new Error(`no result within ${seconds} s`)), seconds * 1000));
  return Promise.race([work, late]);
}
