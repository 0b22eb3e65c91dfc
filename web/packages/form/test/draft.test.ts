import { describe, expect, test } from "vitest";
import { parse } from "../src/index.js";

const read = (field: object, value: string) => {
  const parsed = parse({ type: "object", properties: { a: field } });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.defects));
  const read = parsed.form.readField("a", value);
  return read.ok ? read.value : read.violations.map(({ rule }) => rule);
};

describe("moments", () => {
  test.each([
    ["2026-11-30T09:00[Europe/Brussels]", "2026-11-30T09:00:00+01:00"],
    ["2026-07-30T09:00:30.5[Europe/Brussels]", "2026-07-30T09:00:30.5+02:00"],
    ["2026-01-02T03:04[UTC]", "2026-01-02T03:04:00+00:00"],
    ["2026-01-02T03:04[z]", "2026-01-02T03:04:00+00:00"],
    ["2026-01-02T03:04[+05:30]", "2026-01-02T03:04:00+05:30"],
    ["2026-01-02T03:04[-8]", "2026-01-02T03:04:00-08:00"],
    ["2026-01-02T03:04[America/St_Johns]", "2026-01-02T03:04:00-03:30"],
    // Clocks go from 02:00 to 03:00: what is skipped is moved on.
    ["2026-03-29T02:30[Europe/Brussels]", "2026-03-29T03:30:00+02:00"],
    // Clocks go back: the first of two is taken.
    ["2026-10-25T02:30[Europe/Brussels]", "2026-10-25T02:30:00+02:00"],
    ["2026-10-25T03:00[Europe/Brussels]", "2026-10-25T03:00:00+01:00"],
  ])("%s is %s", (entered, sent) => expect(read({ type: "string", format: "date-time" }, entered)).toBe(sent));

  test.each(["2026-01-02T03:04[Mars/Base]", "2026-01-02T03:04[]", "2026-02-30T03:04[UTC]", "2026-01-02[UTC]", "[UTC]"])("%s is none", (entered) =>
    expect(read({ type: "string", format: "date-time" }, entered)).toEqual(["format"]),
  );
});

describe("numbers", () => {
  test("a whole number that would be rounded is refused", () => {
    for (const kind of ["integer", "number"]) {
      expect(read({ type: kind }, "9007199254740993")).toEqual(["precision"]);
      expect(read({ type: kind }, "9007199254740992")).toBe(9007199254740992);
      expect(read({ type: kind }, "-123456789012345678901234567890")).toEqual(["precision"]);
      expect(read({ type: kind }, "100000000000000000000")).toBe(1e20);
    }
  });

  test("a long text is read in reasonable time", () => {
    expect(read({ type: "integer" }, `1${" ".repeat(100_000)}1`)).toEqual(["type"]);
    expect(read({ type: "string", format: "date-time" }, `2026-01-02 ${" ".repeat(100_000)}x`)).toEqual(["format"]);
  });
});

test("half of a surrogate pair is no text", () => {
  const parsed = parse({ type: "object", properties: { a: { type: "string" } } });
  expect(parsed.ok && parsed.form.check({ a: "\ud83d" })).toMatchObject({ ok: false, violations: [{ field: "a", rule: "type" }] });
  expect(parsed.ok && parsed.form.read({ a: "\ud83d" })).toMatchObject({ ok: true, answers: { a: "\ufffd" } });
  expect(parse({ type: "object", properties: { a: { type: "string", title: "\udc00" } } })).toMatchObject({ ok: false, defects: [{ code: "not-json" }] });
});
