// What a scripted client is told to do, and what it tells of it.
//
//   [--revision auto|pushed] [--tool NAME] [--arguments JSON] [--no-capability | --modes form,url]
//   [--answer accept|decline|cancel|wrong] [--content JSON] [--answers JSON] [--delay MILLISECONDS]
//   --plays JSON | --url URL | -- COMMAND ARGUMENT...
//
// `--answers` is a list of `{action, content}` given one after the other, the last one again and again.
// `--plays` is a list of calls to make one after the other, each on a connection of its own, instead of the one that the
// other arguments describe: `{name, revision, url | command, tool, answers, delay, capable}`.
// For each call there is a line on stdout, one JSON object:
// {peer, name, protocol, server, asked: [...], answered: [...], result | error}.
import { parseArgs } from 'node:util';
import { answered } from './questions.mjs';

const WRONG = { name: '', email: 'not an address', age: 3, environment: 'the moon' };

export function readScripts(argv = process.argv.slice(2)) {
  const cut = argv.indexOf('--');
  const { values } = parseArgs({
    args: cut < 0 ? argv : argv.slice(0, cut),
    options: {
      revision: { type: 'string', default: 'auto' },
      tool: { type: 'string', default: 'contact' },
      arguments: { type: 'string', default: '{}' },
      'no-capability': { type: 'boolean', default: false },
      modes: { type: 'string', default: 'form,url' },
      answer: { type: 'string', default: 'accept' },
      content: { type: 'string' },
      answers: { type: 'string' },
      plays: { type: 'string' },
      delay: { type: 'string', default: '0' },
      url: { type: 'string' },
    },
  });
  const [command, ...args] = cut < 0 ? [] : argv.slice(cut + 1);
  const modes = values['no-capability'] ? [] : values.modes.split(',').filter(Boolean);
  const script = {
    revision: values.revision,
    tool: values.tool,
    arguments: JSON.parse(values.arguments),
    capability: modes.length ? Object.fromEntries(modes.map(mode => [mode, {}])) : undefined,
    replies: values.answers ? JSON.parse(values.answers) : [reply(values.answer, values.content)],
    delay: Number(values.delay),
    url: values.url,
    command,
    args,
  };
  if (!values.plays) return [script];
  return JSON.parse(values.plays).map(({ answers, command: argv = [], capable = true, ...play }) => ({
    ...script,
    ...play,
    command: argv[0],
    args: argv.slice(1),
    replies: answers,
    capability: capable ? script.capability : undefined,
  }));
}

function reply(answer, content) {
  if (answer === 'wrong') return { action: 'accept', content: WRONG };
  if (answer !== 'accept') return { action: answer };
  return content === undefined ? { action: 'accept' } : { action: 'accept', content: JSON.parse(content) };
}

/** Answers by script and remembers both sides. */
export class Person {
  asked = [];
  answered = [];
  #script;

  constructor(script) {
    this.#script = script;
  }

  answer = async params => {
    const { mode = 'form', message, requestedSchema, url } = params;
    this.asked.push(mode === 'url' ? { mode, message, url } : { mode, message, schema: requestedSchema });
    const { replies, delay } = this.#script;
    const next = { ...replies[Math.min(this.answered.length, replies.length - 1)] };
    if (mode === 'url') delete next.content;
    this.answered.push(answered(next));
    if (delay) await new Promise(done => setTimeout(done, delay));
    return next;
  };
}

/** Calls the tool and prints the one line. */
export async function play(peer, script, person, { connect, call, about, close }) {
  const line = { peer, name: script.name };
  try {
    await connect();
    Object.assign(line, about());
    line.result = await call();
  } catch (error) {
    line.error = { code: error.code, message: error.message, data: error.data };
  }
  console.log(JSON.stringify({ ...line, asked: person.asked, answered: person.answered }));
  await close().catch(() => {});
}
