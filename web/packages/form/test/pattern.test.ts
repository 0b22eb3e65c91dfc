import { describe, expect, test } from "vitest";
import { compile } from "../src/check/pattern.js";

const matcher = (source: string) => {
  const matcher = compile(source, 1024, { left: 10_000 });
  if (typeof matcher !== "function") throw new Error(`${source}: ${matcher}`);
  return matcher;
};

/** A small generator, the same on every machine. */
function random(seed: number) {
  let state = seed;
  const below = (bound: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
  return { below, pick: <T>(list: readonly T[]) => list[below(list.length)]! };
}

const ATOMS = ["a", "b", "c", ".", "[ab]", "[^a]", "[a-c]", "\\d", "\\w", "\\W", "\\s", "(a)", "(a|b)", "(?:ab|c)", "(a*)", "(|b)", "(a+b?)", "\\b", "\\B", "^", "$", "[\\d-]", "\\u0061", "\\x62", "[^]", "[]", "é", "\\p{L}", "[\\P{Lu}x]"];
const COUNTS = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}", "{0}", "*?", "+?", "??", "{1,2}?"];

describe("patterns", () => {
  test("50,000 random searches end as those of the platform's own engine", () => {
    const { below, pick } = random(7);
    let compared = 0;
    let found = 0;
    for (let i = 0; i < 2_500; i++) {
      let source = "";
      for (let j = below(5); j >= 0; j--) {
        const atom = pick(ATOMS);
        source += atom + (/^(\^|\$|\\[bB])$/.test(atom) ? "" : pick(COUNTS)) + (below(8) ? "" : "|");
      }
      const native = new RegExp(source, "u");
      const ours = matcher(source);
      for (let j = 0; j < 20; j++) {
        // V8 finds `\\B` between the halves of a surrogate pair, which ECMA-262 with the `u` flag does not.
        const chars = ["a", "b", "c", "1", " ", "A", "é", "\n", ...(source.includes("\\B") ? [] : ["👍"])];
        const text = Array.from({ length: below(7) }, () => pick(chars)).join("");
        const expected = native.test(text);
        expect(ours(text), `${source} on ${JSON.stringify(text)}`).toBe(expected);
        compared++;
        if (expected) found++;
      }
    }
    expect(compared).toBe(50_000);
    expect(found).toBeGreaterThan(10_000);
    expect(compared - found).toBeGreaterThan(10_000);
  });

  // A backtracking engine needs longer than the age of the universe for each of these; the test ends, or it does not.
  test.each(["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x+x+)+y", "^(a?){50}a{50}b", "(.*)(.*)(.*)(.*)(.*)=$", "^((a|b)*)*c$", "([a-z]+)*[0-9]"])("%s is searched in linear time", (source) => {
    expect(matcher(source)(`${"a".repeat(20_000)}!`)).toBe(false);
  });

  // The crate reads a pattern by one grammar; what only this platform takes is refused, and what it refuses there may be legal.
  test.each(["\\", "[a\\]", "[a", "(a", "a)", "\\ud83d", "[\\ud83d]", "\\u{d800}", "[\\u{0D800}]", "\\x4", "\\00", "[\\00]", "\\é", "\\p{KC}", "\\p", "[b-a]", "a**", "{2}", "(?<a>x)(?<a>y)", "(?i:a)", "\\cé", "[\\B]", "a{2,1}"])("%s is no pattern", (source) => {
    expect(compile(source, 1024, { left: 10_000 })).toBe("syntax");
  });

  test.each([
    ["^[\\w-.]$", "-", "%"],
    ["^[\\w-.-z]$", "-", "/"],
    ["^[a-\\d]$", "-", "b"],
    ["^\\-\\@\\_$", "-@_", "\\-@_"],
    ["^{,2}]}$", "{,2}]}", ""],
    ["^[\\@\\]^-]$", "]", "\\"],
    ["^\\ud83d\\udc4d\\u{1F44D}$", "👍👍", "👍"],
    ["^[\\ud83d\\udc4d]$", "👍", "\ud83d"],
    ["^(a){2,}$", "aaa", "a"],
    ["^(?:|a)b?$", "b", "aa"],
  ])("%s takes %s", (source, fits, odd) => {
    expect(matcher(source)(fits)).toBe(true);
    expect(matcher(source)(odd)).toBe(false);
  });

  test("a search that would stop the page ends, and finds nothing", () => {
    expect(matcher("([a-z]{99}){99}b")("a".repeat(1_000_000))).toBe(false);
    expect(matcher("^(a|b){1,500}$")("ab".repeat(250))).toBe(true);
  });

  test("what a form may cost is shared, and nothing above it is accepted", () => {
    const budget = { left: 100 };
    expect(compile("x{60}y", 1024, budget)).toBeTypeOf("function");
    expect(compile("x{60}y", 1024, budget)).toBe("cost");
    expect(compile("x".repeat(1025), 1024, { left: 10_000 })).toBe("cost");
    expect(compile("é".repeat(600), 1024, { left: 10_000 })).toBe("cost");
  });
});
