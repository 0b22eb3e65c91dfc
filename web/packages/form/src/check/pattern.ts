import { bytesOf } from "./text.js";

/** Judges one character. */
type Test = (char: string) => boolean;

/** A place in a search: it takes a character, asserts something about the place, or leads on freely. One that leads nowhere is the end of a match. */
interface State {
  readonly test?: Test;
  readonly at?: string;
  next: readonly State[];
  /** The turn in which it was reached last. */
  turn?: number;
}

/** A part of a pattern: what it costs in states, and the state that leads through it to what follows. */
interface Part {
  readonly cost: number;
  readonly before: (next: State) => State;
  /** A part that always takes one character. */
  readonly one?: Test;
  /** A part that is repeated: what, at least, at most. */
  readonly times?: readonly [Part, number, number];
  /** An assertion, by its letter. */
  readonly at?: string;
}

/** How deep groups nest at most. */
const DEPTH = 100;
/** How many steps a search takes at most, a few tenths of a second: a text of a megabyte in ten thousand states would stop the page. Then nothing is found. */
const STEPS = 1e7;
/** What a Unicode property costs: it is large in the Rust crate, which counts the same. */
const PROPERTY = 64;

// Half of a surrogate pair is no character: `\u` alone is left of it, which the platform refuses.
const ESCAPE = String.raw`\\(?:p\{[^}\\]*\}|u\{(?!0*d[89a-f]..\})[^}\\]*\}|ud[89ab]\w\w\\ud[c-f]\w\w|u(?!d[89a-f])\w{4}|x\w\w|c\w|k<|0\d?|[^])`;
const TOKEN = new RegExp(String.raw`${ESCAPE}|\[(?:${ESCAPE}|[^\]\\])*\]?|\((?:\?(?:<?[=!]|:|<[a-z_$][\w$]*>))?|\{\d+,?\d*\}|[^]`, "giu");
const MEMBER = new RegExp(String.raw`(${ESCAPE}|[^])(?:-(${ESCAPE}|[^]))?`, "giu");
const ESCAPES = new RegExp(ESCAPE, "giu");

/**
 * Compiles a `pattern` (ECMA-262 with the `u` flag, plus `\-`, `[\w-.]` and braces that count nothing) for a search in linear time.
 *
 * Gives null for one with look-around or back-references, which cannot be matched in linear time and is not enforced. `budget.left` is
 * what patterns of the form may still cost, in states.
 */
export function compile(source: string, bytes: number, budget: { left: number }): ((text: string) => boolean) | null | "syntax" | "cost" {
  if (bytesOf(source) > bytes) return "cost";
  const tokens = source.match(TOKEN) ?? [];
  if (tokens.some((token) => /^(\\[1-9]|\\k<|\(\?<?[=!])/.test(token))) return null;
  let root;
  try {
    root = parse(tokens);
  } catch (why) {
    return why === "cost" ? why : "syntax";
  }
  const [first, middle, last] = root;
  const [part, least, most] = (root.length === 3 && first!.at === "^" && last!.at === "$" && middle!.times) || [];
  const one = part?.one;
  const cost = one ? part!.cost + 3 : sum(root);
  if (cost > budget.left) return "cost";
  budget.left -= cost;
  if (one) {
    return (text) => {
      const chars = [...text];
      return chars.length >= least! && chars.length <= most! && chars.every(one);
    };
  }
  const start = through(root, { next: [] });
  return (text) => search(start, text);
}

const sum = (parts: readonly Part[]) => parts.reduce((total, part) => total + part.cost, 0) || 1;

const through = (parts: readonly Part[], end: State) => parts.reduceRight((next, part) => part.before(next), end);

/** Reads a pattern, as the list of its parts. Throws "cost", or anything else for what is no pattern. */
function parse(tokens: readonly string[]): readonly Part[] {
  let at = 0;
  let depth = 0;
  const names = new Set<string>();
  const need = (sound: unknown) => {
    if (!sound) throw 0;
  };

  const alternatives = (): readonly Part[] => {
    if (++depth > DEPTH) throw "cost";
    const all: Part[][] = [[]];
    for (; at < tokens.length && tokens[at] !== ")"; at++) {
      if (tokens[at] === "|") all.push([]);
      else all.at(-1)!.push(term());
    }
    depth--;
    if (all.length === 1) return all[0]!;
    return [{ cost: all.reduce((total, parts) => total + sum(parts), all.length - 1), before: (next) => ({ next: all.map((parts) => through(parts, next)) }) }];
  };

  /** Reads a part up to its last token. */
  const term = (): Part => {
    const part = atom(tokens[at]!);
    if (part.at) return part;
    const [, low, comma, high] = /^\{(\d+)(,?)(\d*)\}$/.exec(tokens[at + 1] ?? "") ?? [];
    const sign = low ? -1 : "*+?".indexOf(tokens[at + 1] ?? "-");
    if (!low && sign < 0) return part;
    at++;
    const least = Number(low ?? sign % 2);
    const most = low ? (high ? Number(high) : comma ? Infinity : least) : sign < 2 ? Infinity : 1;
    need(least <= most);
    if (tokens[at + 1] === "?") at++;
    return {
      cost: part.cost * Math.max(1, most < Infinity ? most : least) + 1,
      times: [part, least, most],
      before(next) {
        let state = next;
        let copies = least;
        if (most === Infinity) {
          const loop: State = { next: [] };
          const again = part.before(loop);
          loop.next = [again, next];
          state = least ? (copies--, again) : loop;
        } else for (let i = least; i < most; i++) state = { next: [part.before(state), next] };
        while (copies-- > 0) state = part.before(state);
        return state;
      },
    };
  };

  const atom = (token: string): Part => {
    if (/^(\^|\$|\\b)$/i.test(token)) return { cost: 1, at: token, before: (next) => ({ at: token, next: [next] }) };
    if (token[0] === "(") {
      need(!token[2] || token[2] === ":" || !names.has(token));
      names.add(token);
      at++;
      const parts = alternatives();
      need(tokens[at]);
      return { cost: sum(parts), before: (next) => through(parts, next) };
    }
    need(!/^([*+?\\]|\{.+)$/.test(token));
    const set = token === "." ? String.raw`[^\n\r\u2028\u2029]` : token[0] === "[" ? token : token[0] === "\\" ? `[${token}]` : "";
    const one = set ? member(set) : (char: string) => char === token;
    const properties = (set.match(ESCAPES) ?? []).filter((found) => /^\\p/i.test(found));
    need(!properties.some((name) => /KC/.test(name)));
    return { cost: 1 + properties.length * (PROPERTY - 1), one, before: (next) => ({ test: one, next: [next] }) };
  };

  const parts = alternatives();
  need(at === tokens.length);
  return parts;
}

/** The test of a set. The platform judges single characters, of which none takes long. */
function member(set: string): Test {
  // Every sign is written by its number: some may be escaped here and not there, and a hyphen beside `\w` stands for itself.
  const plain = (text: string) => {
    if (text === "\\u") throw 0;
    return text.replace(/^\\?([\0-/:-@[-`{-\x7f])$/, (_, sign: string) => `\\x${sign.charCodeAt(0).toString(16).padStart(2, "0")}`);
  };
  const [, start, inner] = /^(\[\^?)((?:\\[^]|[^\\])*)\]$/.exec(set)!;
  const members = inner!.replace(MEMBER, (_, low: string, high?: string) => plain(low) + (high ? (/^\\[dwsp]/i.test(low) || /^\\[dwsp]/i.test(high) ? "\\-" : "-") + plain(high) : ""));
  const judge = new RegExp(`^${start}${members}]$`, "u");
  const known = new Map<string, boolean>();
  return (char) => {
    let fits = known.get(char);
    if (fits === undefined) known.set(char, (fits = judge.test(char)));
    return fits;
  };
}

let turn = 0;

/** Whether the text contains a match: every state at once, one character after the other. */
function search(start: State, text: string): boolean {
  let before = "";
  let reached: State[] = [];
  let left = STEPS;
  for (const char of [...text, ""]) {
    turn++;
    const after: State[] = [];
    reached.push(start);
    for (const state of reached) {
      if (!--left) return false;
      if (state.turn === turn) continue;
      state.turn = turn;
      const { test, at, next } = state;
      if (!next.length) return true;
      if (test) {
        if (char && test(char)) after.push(...next);
      } else if (!at || (at === "^" ? !before : at === "$" ? !char : (/\w/.test(before) !== /\w/.test(char)) === (at === "\\b"))) reached.push(...next);
    }
    reached = after;
    before = char;
  }
  return false;
}
