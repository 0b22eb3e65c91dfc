// What is shipped for authors: every word in every language, a manifest that says what there is, examples of patterns.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { exampleOf } from "../src/check/example.js";
import { LABELS } from "../src/element/labels.js";
import { MCPElicitation } from "../src/element/element.js";
import * as clock from "../src/element/later/clock.js";
import { labels as de } from "../src/element/later/de.js";
import { labels as es } from "../src/element/later/es.js";
import { labels as fr } from "../src/element/later/fr.js";
import { KEYS } from "../src/element/later/known.js";
import * as lenient from "../src/element/later/lenient.js";
import * as moment from "../src/element/later/moment.js";
import * as pattern from "../src/element/later/pattern.js";
import * as review from "../src/element/later/review.js";
import * as search from "../src/element/later/search.js";
import * as sure from "../src/element/later/sure.js";
import * as typing from "../src/element/later/typing.js";
import * as visit from "../src/element/later/visit.js";
import { parse } from "../src/index.js";

const folder = join(import.meta.dirname, "..");
// What a value has to be is said by messages, too: these four are no labels.
const { string, boolean, array, object, ...english }: Record<string, string> = Object.assign({}, LABELS, ...[clock, lenient, moment, pattern, review, search, sure, typing, visit].map(({ WORDS }) => WORDS));

describe("words", () => {
  test("the list of keys has every word and nothing else", () => {
    expect([...KEYS].sort()).toEqual([...Object.keys(english), "messages"].sort());
  });

  test.each([["German", de], ["French", fr], ["Spanish", es]])("%s has every word, with the same places for values", (_, labels) => {
    const { messages, ...words } = labels;
    expect(Object.keys(words).sort()).toEqual(Object.keys(english).sort());
    const places = (text: string) => [...text.matchAll(/\{\d\}/g)].map(String).sort();
    for (const [key, text] of Object.entries(words)) {
      expect([key, places(text)]).toEqual([key, places(english[key]!)]);
      expect(text.trim()).not.toBe("");
    }
    // Every rule has words of its own, with the limit where there is one.
    const rules = ["required", "minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "const", "enum", "minItems", "maxItems", "uniqueItems", "additionalProperties", "precision"] as const;
    for (const rule of rules) expect(messages({ field: "a", rule, limit: rule === "enum" ? ["x"] : 7, message: "english" })).not.toBe("english");
    for (const kind of ["string", "number", "integer", "boolean", "array", "email", "uri", "date", "date-time"]) expect(messages({ field: "a", rule: "type", limit: kind, message: "english" })).not.toBe("english");
  });

  test("the README lists every key with its English word", () => {
    const readme = readFileSync(join(folder, "README.md"), "utf8");
    const rows = new Map([...readme.matchAll(/^\| `([\w-]+)` \| (.*) \|$/gm)].map(([, key, text]) => [key!, text!]));
    expect(Object.keys(english).filter((key) => rows.get(key) !== english[key])).toEqual([]);
  });
});

test("the manifest says what the element has", () => {
  const manifest = JSON.parse(readFileSync(join(folder, "custom-elements.json"), "utf8")) as { modules: { declarations: { attributes: { name: string }[]; members: { kind: string; name: string; readonly?: boolean }[]; events: { name: string }[]; cssParts: { name: string }[]; slots: { name: string }[]; cssProperties: { name: string }[] }[] }[] };
  const [element] = manifest.modules[0]!.declarations;
  const internal = /^(constructor|connectedCallback|disconnectedCallback|attributeChangedCallback|form\w+Callback)$/;
  const own = Object.entries(Object.getOwnPropertyDescriptors(MCPElicitation.prototype)).filter(([name]) => !internal.test(name));
  expect(element!.members.map(({ name }) => name).sort()).toEqual(own.map(([name]) => name).sort());
  for (const [name, { set, value }] of own) {
    const member = element!.members.find((member) => member.name === name)!;
    expect([name, member.kind, member.readonly ?? false]).toEqual([name, value ? "method" : "field", !value && !set]);
  }
  expect(element!.attributes.map(({ name }) => name).sort()).toEqual([...MCPElicitation.observedAttributes, "name"].sort());
  const source = ["element.ts", "field.ts", ...["visit", "review", "search", "moment", "typing", "clock", "pattern"].map((name) => `later/${name}.ts`)].map((name) => readFileSync(join(folder, "src/element", name), "utf8")).join("\n");
  const css = readFileSync(join(folder, "src/style/element.css"), "utf8");
  for (const { name } of element!.cssParts) expect([name, new RegExp(`[\`" ]${name}[\`" $]`).test(source)]).toEqual([name, true]);
  for (const { name } of element!.slots) expect([name, source.includes(`name: "${name}"`)]).toEqual([name, true]);
  for (const { name } of element!.cssProperties) expect([name, css.includes(name)]).toEqual([name, true]);
  expect([...css.matchAll(/var\((--(?:mcp|color|font|border|shadow)[\w-]*)/g)].map(([, name]) => name).filter((name) => !element!.cssProperties.some((property) => property.name === name))).toEqual([]);
  expect(element!.events.map(({ name }) => name)).toEqual(["accept", "decline", "cancel", "draft"]);
});

describe("an example of a pattern", () => {
  const example = (pattern: string, more: object = {}) => {
    const parsed = parse({ type: "object", properties: { a: { type: "string", pattern, ...more } } });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.defects));
    return exampleOf(pattern, (text) => parsed.form.readField("a", text).ok);
  };

  test.each([
    ["^[A-Z]{3}-[0-9]{2}$", "ABC-12"],
    ["^\\d{4}$", "1234"],
    ["^(feature|fix)/[a-z0-9-]+$", "feature/a"],
    ["^v\\d+\\.\\d+\\.\\d+$", "v1.2.3"],
    ["^#[0-9a-fA-F]{6}$", "#123456"],
    ["^[A-Za-z_]\\w*$", "A"],
    ["^(?:yes|no)$", "yes"],
    ["^a{2,}b?$", "aa"],
  ])("%s: %s", (pattern, expected) => {
    expect(example(pattern)).toBe(expected);
  });

  test("keeps to the bounds of the length, and is left out where none is found", () => {
    expect(example("^[a-z]+$", { minLength: 5 })).toHaveLength(5);
    for (const pattern of ["^[^a]+$", "^\\p{Lu}+$", "^x{200}$", "(", "^[z-z]{3}"]) {
      let found: string | undefined;
      try {
        found = example(pattern);
      } catch {
        continue;
      }
      if (found !== undefined) expect(new RegExp(pattern, "u").test(found)).toBe(true);
    }
    expect(example("^[^a]+$")).toBe(undefined);
  });
});
