/** Judges one character, by its code point. */
type Test = (char: number) => boolean;

/** A character, a place to go on, two of them, an assertion by its letter, or the end of a match (null). */
type Step = Test | number[] | string | null;

/** A part of a pattern: what it costs in states, and how it is written into a program. */
interface Node {
  readonly cost: number;
  readonly emit: (program: Step[]) => void;
  /** A part that always takes one character. */
  readonly one?: Test;
  /** A part that is repeated: what, at least, at most. */
  readonly times?: readonly [Node, number, number];
  /** An assertion, by its letter. */
  readonly at?: string;
}

/** How deep groups nest at most. */
const DEPTH = 100;
/** What a Unicode property costs: it is large in the Rust crate, which counts the same. */
const PROPERTY = 64;

const isWord: Test = (c) => (c > 47 && c < 58) || (c > 64 && c < 91) || c === 95 || (c > 96 && c < 123);
const isDigit: Test = (c) => c > 47 && c < 58;
const isSpace: Test = (c) => /\s/.test(String.fromCodePoint(c));
const not =
  (test: Test): Test =>
  (c) =>
    !test(c);
const isBreak: Test = (c) => c === 10 || c === 13 || c === 0x2028 || c === 0x2029;

/**
 * Compiles a `pattern` (ECMA-262 with the `u` flag, plus `\-`, `[\w-.]` and braces that count nothing) for a search in linear time.
 *
 * Gives null for one with look-around or back-references, which cannot be matched in linear time and is not enforced. `budget.left` is
 * what patterns of the form may still cost, in states.
 */
export function compile(source: string, bytes: number, budget: { left: number }): ((text: string) => boolean) | null | "syntax" | "cost" {
  if (new TextEncoder().encode(source).length > bytes) return "cost";
  if (needsBacktracking(source)) return null;
  let root;
  try {
    root = parse([...source]);
  } catch (why) {
    if (why === "syntax" || why === "cost") return why;
    throw why;
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
      return chars.length >= least! && chars.length <= most! && chars.every((char) => one(char.codePointAt(0)!));
    };
  }
  const program: Step[] = [];
  for (const node of root) node.emit(program);
  program.push(null);
  return (text) => search(program, text);
}

function needsBacktracking(source: string): boolean {
  let inClass = false;
  for (const [found] of source.matchAll(/\\[1-9]|\\k<|\\[^]|\\$|\[|\]|\((?:\?<?[=!])?/g)) {
    if (found === "[") inClass = true;
    else if (found === "]") inClass = false;
    else if (!inClass && (/^\\[1-9]|^\\k<$/.test(found) || found.startsWith("(?"))) return true;
  }
  return false;
}

const sum = (nodes: readonly Node[]) => nodes.reduce((total, node) => total + node.cost, 0) || 1;

/** Reads a pattern, as the list of its parts. Throws "syntax" or "cost". */
function parse(chars: readonly string[]): readonly Node[] {
  let at = 0;
  let depth = 0;
  const names = new Set<string>();
  const eat = (char: string) => chars[at] === char && !!++at;
  const need = (sound: unknown) => {
    if (!sound) throw "syntax";
  };

  const single = (one: Test, cost = 1): Node => ({ cost, one, emit: (program) => void program.push(one) });
  const assertion = (letter: string): Node => ({ cost: 1, at: letter, emit: (program) => void program.push(letter) });

  const alternatives = (): readonly Node[] => {
    if (++depth > DEPTH) throw "cost";
    const all = [sequence()];
    while (eat("|")) all.push(sequence());
    depth--;
    if (all.length === 1) return all[0]!;
    const emit = (program: Step[]) => {
      const ends: number[][] = [];
      all.forEach((nodes, i) => {
        const fork = [program.length + 1];
        if (i < all.length - 1) program.push(fork);
        for (const node of nodes) node.emit(program);
        if (i < all.length - 1) {
          const end: number[] = [];
          ends.push(end);
          program.push(end);
          fork.push(program.length);
        }
      });
      for (const end of ends) end.push(program.length);
    };
    return [{ cost: all.reduce((total, nodes) => total + sum(nodes), all.length - 1), emit }];
  };

  const sequence = (): readonly Node[] => {
    const nodes: Node[] = [];
    while (at < chars.length && chars[at] !== "|" && chars[at] !== ")") nodes.push(term());
    return nodes;
  };

  /** `{2}`, `{2,}` or `{2,3}` at the current place. */
  const count = () => (chars[at] === "{" ? /^\{(\d+)(,?)(\d*)\}/.exec(chars.slice(at).join("")) : null);

  const term = (): Node => {
    const char = chars[at]!;
    need(!"*+?".includes(char) && !count());
    at++;
    let node: Node;
    if (char === "^" || char === "$") return assertion(char);
    if (char === "(") node = group();
    else if (char === "[") node = set();
    else if (char === ".") node = single(not(isBreak));
    else if (char === "\\") {
      if (chars[at] === "b" || chars[at] === "B") return assertion(chars[at++]!);
      const [member, cost] = escape();
      node = single(typeof member === "number" ? (c) => c === member : member, cost);
    } else {
      const code = char.codePointAt(0)!;
      node = single((c) => c === code);
    }
    let [least, most] = [1, 1];
    const found = count();
    if (found) {
      at += found[0]!.length;
      least = Number(found[1]);
      most = found[3] ? Number(found[3]) : found[2] ? Infinity : least;
      need(least <= most);
    } else if (eat("*")) [least, most] = [0, Infinity];
    else if (eat("+")) most = Infinity;
    else if (eat("?")) least = 0;
    else return node;
    eat("?");
    return repeat(node, least, most);
  };

  const repeat = (node: Node, least: number, most: number): Node => ({
    cost: node.cost * Math.max(1, most < Infinity ? most : least) + 1,
    times: [node, least, most],
    emit(program) {
      for (let i = 1; i < least; i++) node.emit(program);
      const forks: number[][] = [];
      const fork = () => {
        const step = [program.length + 1];
        forks.push(step);
        program.push(step);
      };
      if (most === Infinity) {
        const loop = program.length;
        if (least) {
          node.emit(program);
          program.push([loop, program.length + 1]);
        } else {
          fork();
          node.emit(program);
          program.push([loop]);
        }
      } else {
        if (least) node.emit(program);
        for (let i = least; i < most; i++) {
          fork();
          node.emit(program);
        }
      }
      for (const step of forks) step.push(program.length);
    },
  });

  const group = (): Node => {
    if (eat("?") && !eat(":")) {
      need(eat("<"));
      let name = "";
      while (at < chars.length && !eat(">")) name += chars[at++];
      need(chars[at - 1] === ">" && /^[a-z_$][\w$]*$/i.test(name) && !names.has(name));
      names.add(name);
    }
    const nodes = alternatives();
    need(eat(")"));
    return { cost: sum(nodes), emit: (program) => nodes.forEach((node) => node.emit(program)) };
  };

  const set = (): Node => {
    const negated = eat("^");
    const tests: Test[] = [];
    let cost = 1;
    const member = () => {
      const char = chars[at++];
      if (char !== "\\") return char!.codePointAt(0)!;
      const [read, price] = escape(true);
      cost += price - 1;
      return read;
    };
    const put = (read: number | Test) => void tests.push(typeof read === "number" ? (c) => c === read : read);
    for (;;) {
      need(at < chars.length);
      if (eat("]")) break;
      const low = member();
      if (chars[at] === "-" && chars[at + 1] !== "]" && at + 1 < chars.length) {
        at++;
        const high = member();
        if (typeof low === "number" && typeof high === "number") {
          need(low <= high);
          tests.push((c) => c >= low && c <= high);
          continue;
        }
        put(45);
        put(high);
      }
      put(low);
    }
    return single((c) => tests.some((test) => test(c)) !== negated, cost);
  };

  const hex = (digits: number) => {
    const text = chars.slice(at, at + digits).join("");
    need(text.length === digits && /^[\da-f]+$/i.test(text));
    at += digits;
    return parseInt(text, 16);
  };

  const braced = () => {
    need(eat("{"));
    const end = chars.indexOf("}", at);
    need(end > at);
    const text = chars.slice(at, end).join("");
    at = end + 1;
    return text;
  };

  /** An escape after its backslash: a character or a set of them, and the cost. */
  const escape = (inClass = false): [number | Test, number] => {
    const char = chars[at++];
    need(char);
    const plain = { d: isDigit, w: isWord, s: isSpace, D: not(isDigit), W: not(isWord), S: not(isSpace) }[char!];
    if (plain) return [plain, 1];
    const control = "tnvfr".indexOf(char!);
    if (control >= 0) return [[9, 10, 11, 12, 13][control]!, 1];
    let code = char!.codePointAt(0)!;
    if (char === "b" && inClass) code = 8;
    else if (char === "0") {
      need(!isDigit(chars[at]?.codePointAt(0) ?? 0));
      code = 0;
    } else if (char === "x") code = hex(2);
    else if (char === "c") {
      const letter = chars[at++] ?? "";
      need(/^[a-z]$/i.test(letter));
      code = letter.charCodeAt(0) % 32;
    } else if (char === "u") {
      if (chars[at] === "{") {
        const digits = braced();
        need(/^[\da-f]+$/i.test(digits));
        code = parseInt(digits, 16);
      } else {
        code = hex(4);
        if (code >= 0xd800 && code < 0xdc00) {
          need(eat("\\") && eat("u"));
          const low = hex(4);
          need(low >= 0xdc00 && low < 0xe000);
          code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
      }
      need(code < 0x110000 && (code < 0xd800 || code > 0xdfff));
    } else if (char === "p" || char === "P") {
      const name = braced();
      need(/^\w+(?:=\w+)?$/.test(name) && !/KC/.test(name));
      let property: RegExp;
      try {
        property = new RegExp(`\\${char}{${name}}`, "u");
      } catch {
        throw "syntax";
      }
      return [(c) => property.test(String.fromCodePoint(c)), PROPERTY];
    } else need(code < 128 && !/[a-z\d]/i.test(char!));
    return [code, 1];
  };

  const nodes = alternatives();
  need(at === chars.length);
  return nodes;
}

/** Whether the text contains a match: every state at once, one character after the other. */
function search(program: readonly Step[], text: string): boolean {
  const seen = new Uint32Array(program.length);
  const size = text.length;
  let [at, turn, before] = [0, 0, -1];
  let threads: number[] = [];
  for (;;) {
    const char = at < size ? text.codePointAt(at)! : -1;
    turn++;
    const next: Test[] = [];
    const places: number[] = [];
    threads.push(0);
    while (threads.length) {
      const place = threads.pop()!;
      if (seen[place] === turn) continue;
      seen[place] = turn;
      const step = program[place]!;
      if (step === null) return true;
      if (typeof step === "function") {
        next.push(step);
        places.push(place + 1);
      } else if (typeof step === "string") {
        const boundary = isWord(before) !== isWord(char);
        if (step === "^" ? before < 0 : step === "$" ? char < 0 : boundary === (step === "b")) threads.push(place + 1);
      } else threads.push(...step);
    }
    if (char < 0) return false;
    threads = places.filter((_, i) => next[i]!(char));
    before = char;
    at += char > 0xffff ? 2 : 1;
  }
}
