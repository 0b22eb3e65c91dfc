import { expect, test } from "vitest";
import { parse } from "../src/index.js";

const form = (properties: object, more: object = {}) => {
  const parsed = parse({ type: "object", properties, ...more });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.defects));
  return parsed.form;
};

const broken = (properties: object, content: object) => {
  const checked = form(properties).check(content);
  return checked.ok ? [] : checked.violations.map(({ rule }) => rule);
};

test("every defect is found at once, in order", () => {
  const parsed = parse({
    type: "object",
    $ref: "x",
    properties: {
      a: { type: "string", minLength: "1" },
      b: { type: ["string", "null"] },
      c: { type: "object", properties: {} },
      "g/h": { type: "string", not: {} },
      i: { type: "array", items: { type: "string" } },
    },
    required: ["a", "zz", 3],
    minProperties: 1,
  });
  expect(parsed.ok ? [] : parsed.defects.map(({ pointer, code }) => `${pointer} ${code}`)).toEqual([
    "/$ref reference",
    "/minProperties unsupported-keyword",
    "/properties/a/minLength keyword-type",
    "/properties/b/type type-list",
    "/properties/c/properties nested",
    "/properties/c/type nested",
    "/properties/g~1h/not unsupported-keyword",
    "/properties/i/items array-items",
    "/required/1 required-unknown",
    "/required/2 keyword-type",
  ]);
});

test("every broken rule is told", () => {
  expect(broken({ a: { type: "string", minLength: 20, format: "email", pattern: "^x" } }, { a: "abc" })).toEqual(["minLength", "format", "pattern"]);
  expect(broken({ a: { type: "integer", minimum: 2 } }, { a: 1.5 })).toEqual(["type", "minimum"]);
});

test("prototype keys are ordinary field names", () => {
  const names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
  const schema = JSON.parse(`{${names.map((name) => `"${name}":{"type":"string"}`).join(",")}}`) as object;
  const checked = form(schema, { required: names }).check(JSON.parse(`{${names.map((name) => `"${name}":"x"`).join(",")}}`));
  expect(checked.ok && Object.keys(checked.answers)).toEqual(names);
  expect(form(schema, { required: names }).check({})).toMatchObject({ ok: false, violations: names.map((field) => ({ field, rule: "required" })) });
});
