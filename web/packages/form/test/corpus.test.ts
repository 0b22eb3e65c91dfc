// The check here and in the Rust crate are one check: every form, content and draft of the corpus has the same verdict in the same words.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { explain } from "../src/explain.js";
import { type Checked, type Draft, type Field, type Parsed, parse } from "../src/index.js";
import { parseLeniently } from "../src/lenient.js";

const folder = join(import.meta.dirname, "../../../corpus");

interface Verdict {
  verdict: "answers" | "violations" | "defects" | "broken" | "form";
  answers?: string;
  ignored?: string[];
  violations?: [string, string, string][];
  defects?: [string, string, string][];
}

interface Line {
  id: string;
  schema: string;
  core?: Verdict;
  web?: Verdict;
  cases?: { content?: string; draft?: Draft; core: Verdict; web?: Verdict }[];
}

const read = (text: string) => text.trimEnd().split("\n").map((line) => JSON.parse(line) as Line);

/** A JSON text as its value; null where it is none. */
function json(text: string): { value: unknown } | null {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}

/** As the corpus spells a verdict, with numbers as this platform has them. */
const plain = (verdict: Verdict) => JSON.stringify({ ...verdict, answers: verdict.answers === undefined ? undefined : JSON.stringify(JSON.parse(verdict.answers)) }, Object.keys(order));
const order = { verdict: 0, answers: 0, ignored: 0, violations: 0, defects: 0 };

function ofParsed(parsed: Parsed, schema: unknown): Verdict {
  if (parsed.ok) return { verdict: "form" };
  return { verdict: "defects", defects: parsed.defects.map((defect) => [defect.pointer, defect.code, explain(defect, schema)]) };
}

function ofChecked(checked: Checked, withIgnored: boolean): Verdict {
  if (!checked.ok) return { verdict: "violations", violations: checked.violations.map(({ field, rule, message }) => [field, rule, message]) };
  return { verdict: "answers", answers: JSON.stringify(checked.answers), ...(withIgnored && checked.ignored.length && { ignored: [...checked.ignored] }) };
}

/** The first ten differences, for a failure that says enough. */
function differences(lines: readonly Line[]): { found: string[]; compared: number } {
  const found: string[] = [];
  let compared = 0;
  const compare = (id: string, what: string, expected: Verdict, actual: Verdict) => {
    compared++;
    if (plain(expected) !== plain(actual) && found.length < 10) found.push(`${id} ${what}\n  Rust:       ${plain(expected)}\n  TypeScript: ${plain(actual)}`);
  };
  for (const { id, schema, core, web, cases } of lines) {
    const value = json(schema);
    const parsed = value ? parse(value.value) : null;
    if (!parsed) {
      found.push(`${id}: the schema is not JSON`);
      continue;
    }
    if (core) compare(id, schema, web ?? core, ofParsed(parsed, value!.value));
    else if (!parsed.ok) for (const { core, web } of cases ?? []) compare(id, schema, web ?? core, ofParsed(parsed, value!.value));
    else
      for (const { content, draft, core, web } of cases ?? []) {
        const expected = web ?? core;
        if (draft) {
          compare(id, `${schema} ${JSON.stringify(draft)}`, expected, ofChecked(parsed.form.read(draft), false));
          continue;
        }
        const given = json(content!);
        compare(id, `${schema} ${content}`, expected, given ? ofChecked(parsed.form.check(given.value), true) : { verdict: "broken" });
      }
  }
  return { found, compared };
}

function agree(lines: readonly Line[], least: number) {
  const { found, compared } = differences(lines);
  expect(found.join("\n")).toBe("");
  expect(compared).toBeGreaterThanOrEqual(least);
}

interface LenientLine {
  id: string;
  schema: string;
  defects?: [string, string][];
  adjustments?: unknown[];
  fields?: unknown[];
  cases?: { content?: string; draft?: Draft; core: Verdict }[];
}

/** The parts of a kind of field, as the corpus spells them. */
function parts(field: Field): unknown[] {
  const { kind } = field;
  const of = (...keys: string[]) => keys.map((key) => (field as unknown as Record<string, unknown>)[key] ?? null);
  const options = () => (field as Field & { options: readonly { value: string; title?: string; typed?: unknown }[] }).options.map(({ value, title, typed }) => [value, title ?? null, typed ?? value]);
  switch (kind) {
    case "text":
      return [kind, ...of("minLength", "maxLength", "pattern", "format", "otherFormat", "constant")];
    case "number":
    case "integer":
      return [kind, ...of("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "constant")];
    case "boolean":
      return [kind, ...of("constant")];
    case "choice":
      return [kind, options()];
    case "choices":
      return [kind, options(), ...of("minItems", "maxItems", "unique")];
    case "union":
      return [kind, field.alternatives.map(parts)];
    case "lines":
      return [kind, parts(field.item), ...of("minItems", "maxItems", "unique")];
  }
}

/** Compares the lenient reading with the crate's: the form, what was adjusted, and the answers that it takes. */
function agreeLeniently(text: string, least: number) {
  const found: string[] = [];
  let compared = 0;
  const compare = (what: string, expected: unknown, actual: unknown) => {
    compared++;
    const [rust, typescript] = [JSON.stringify(expected), JSON.stringify(actual)];
    if (rust !== typescript && found.length < 10) found.push(`${what}\n  Rust:       ${rust}\n  TypeScript: ${typescript}`);
  };
  for (const line of text.trimEnd().split("\n")) {
    const { id, schema, defects, adjustments, fields, cases } = JSON.parse(line) as LenientLine;
    const parsed = parseLeniently(JSON.parse(schema));
    const what = `${id} ${schema}`;
    // The crate keeps the text of a number, which `JSON.parse` loses: such a form is refused here.
    if (!parsed.ok && parsed.defects.some(({ message }) => message?.includes("more digits than a browser keeps"))) continue;
    if (defects || !parsed.ok) {
      compare(what, defects ?? "a form", parsed.ok ? "a form" : parsed.defects.map(({ pointer, code }) => [pointer, code]));
      continue;
    }
    const { form } = parsed;
    compare(`${what} adjustments`, adjustments, (form.adjustments ?? []).map(({ pointer, field, code, message }) => [pointer, field ?? null, code, message]));
    const shapes = form.fields.map((field) => [field.name, field.label, field.required, field.nullable ?? false, field.nullWhenEmpty ?? false, parts(field), field.default ?? null]);
    compare(`${what} fields`, fields, shapes);
    for (const { content, draft, core } of cases ?? []) {
      const checked = draft ? form.read(draft) : form.check(JSON.parse(content!));
      compare(`${what} ${content ?? JSON.stringify(draft)}`, plain(core), plain(ofChecked(checked, false)));
    }
  }
  expect(found.join("\n")).toBe("");
  expect(compared).toBeGreaterThanOrEqual(least);
}

describe("corpus of forms as servers send them", () => {
  test("the table, and the forms of SDKs", () => agreeLeniently(gunzipSync(readFileSync(join(folder, "lenient.jsonl.gz"))).toString("utf8"), 10_000));
  test("random forms", () => agreeLeniently(gunzipSync(readFileSync(join(folder, "sent.jsonl.gz"))).toString("utf8"), 8_000));
  const fresh = process.env["FRESH_CORPUS_FILE"]?.replace(/[^.]*$/, "sent");
  test.runIf(fresh)("fresh random forms", () => agreeLeniently(readFileSync(fresh!, "utf8"), 8_000));
});

describe("corpus", () => {
  test("every rule at its bounds", () => agree(read(readFileSync(join(folder, "rules.jsonl"), "utf8")), 600));
  test("drafts", () => agree(read(readFileSync(join(folder, "drafts.jsonl"), "utf8")), 3_000));
  test("20,000 random contents", () => {
    const lines = read(gunzipSync(readFileSync(join(folder, "random.jsonl.gz"))).toString("utf8"));
    agree(lines, 20_000);
  });
  const fresh = process.env["FRESH_CORPUS_FILE"];
  test.runIf(fresh)("fresh random contents", () => agree(read(readFileSync(fresh!, "utf8")), 20_000));
});
