/** What a class or an escape of a pattern stands for, in the order in which the examples take it. */
const DIGITS = "1234567890";
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/** The longest example, in characters. */
const LONGEST = 40;

/** What a part of a pattern takes: the characters to choose from, or an example of a group. */
type Part = { readonly chars: string } | { readonly text: string };

/**
 * Makes a text that a pattern takes: of each choice the first, of each class the next character, of each repetition the fewest.
 * Undefined where it does not succeed; `fits` checks what is returned.
 */
export function exampleOf(pattern: string, fits: (text: string) => boolean): string | undefined {
  for (const more of [0, 1, 2, 4, 8, 16]) {
    const text = new Example(pattern, more).make();
    if (text && text.length <= LONGEST && fits(text)) return text;
  }
  return undefined;
}

class Example {
  #at = 0;
  #taken = new Map<string, number>();

  constructor(
    readonly source: string,
    /** How often what may be repeated at will is repeated beyond its fewest. */
    readonly more: number,
  ) {}

  make(): string | undefined {
    try {
      const text = this.#choice();
      return this.#at === this.source.length ? text : undefined;
    } catch {
      return undefined;
    }
  }

  #choice(): string {
    const first = this.#sequence();
    while (this.source[this.#at] === "|") {
      this.#at++;
      this.#sequence();
    }
    return first;
  }

  #sequence(): string {
    let text = "";
    while (this.#at < this.source.length && !"|)".includes(this.source[this.#at]!)) {
      const part = this.#part();
      const count = this.#count();
      for (let i = 0; i < count && text.length <= LONGEST; i++) text += "text" in part ? part.text : this.#next(part.chars);
    }
    return text;
  }

  #part(): Part {
    const char = this.source[this.#at++]!;
    if (char === "^" || char === "$") return { text: "" };
    if (char === ".") return { chars: LETTERS };
    if (char === "[") return { chars: this.#class() };
    if (char === "(") {
      if (this.source[this.#at] === "?") {
        const opening = /^\?(?::|<[a-z]\w*>)/i.exec(this.source.slice(this.#at));
        if (!opening) throw new Error("look-around");
        this.#at += opening[0].length;
      }
      const text = this.#choice();
      if (this.source[this.#at++] !== ")") throw new Error("an open group");
      return { text };
    }
    if (char === "\\") return this.#escape();
    return { text: char };
  }

  #escape(): Part {
    const char = this.source[this.#at++] ?? "";
    if (char === "d") return { chars: DIGITS };
    if (char === "w") return { chars: LETTERS };
    if (char === "s") return { text: " " };
    if (/[bB]/.test(char)) return { text: "" };
    if (/[a-z\d]/i.test(char)) throw new Error("another escape");
    return { text: char };
  }

  #class(): string {
    let chars = "";
    if (this.source[this.#at] === "^") throw new Error("a class of what is not meant");
    while (this.source[this.#at] !== "]") {
      let char = this.source[this.#at++];
      if (char === undefined) throw new Error("an open class");
      if (char === "\\") {
        const escaped = this.#escape();
        if ("chars" in escaped) {
          chars += escaped.chars;
          continue;
        }
        char = escaped.text;
      }
      const to = this.source[this.#at + 1];
      if (this.source[this.#at] === "-" && to && to !== "]" && to !== "\\") {
        this.#at += 2;
        for (let code = char.charCodeAt(0); code <= to.charCodeAt(0) && chars.length < 200; code++) chars += String.fromCharCode(code);
      } else chars += char;
    }
    this.#at++;
    if (!chars) throw new Error("an empty class");
    // A digit reads better from 1 on, and a letter before a sign.
    return chars.startsWith("0123") ? chars.slice(1) + "0" : chars;
  }

  #next(chars: string): string {
    const at = this.#taken.get(chars) ?? 0;
    this.#taken.set(chars, at + 1);
    return chars[at % Math.min(chars.length, 26)]!;
  }

  #count(): number {
    const found = /^(?:([*+?])|\{(\d+)(,)?(\d*)\})\??/.exec(this.source.slice(this.#at));
    if (!found) return 1;
    this.#at += found[0].length;
    const [, sign, least, comma, most] = found;
    if (sign === "?") return 0;
    if (sign) return (sign === "+" ? 1 : 0) + this.more;
    return Math.min(Number(least) + (comma ? this.more : 0), comma && !most ? Infinity : Number(most || least));
  }
}
