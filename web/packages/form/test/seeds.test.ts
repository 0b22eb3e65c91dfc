import { describe, expect, test } from "vitest";
import { accept, acceptWithDefaults, applyDefaults, cancel, decline, ElicitationError, getDefaults, parse, reject, validate } from "../src/index.js";

const request = (properties: object, required: string[] = []) => ({ message: "m", requestedSchema: { type: "object", properties, required } });
const url = { mode: "url" as const, message: "m", url: "https://example.org", elicitationId: "1" };

describe("helpers", () => {
  const full = request({ port: { type: "integer", default: 3000 }, host: { type: "string" }, tags: { type: "array", items: { enum: ["a", "b"] }, default: ["b"] }, hot: { type: "boolean", default: true } }, ["port"]);

  test("defaults", () => {
    expect(getDefaults(full)).toEqual({ port: 3000, tags: ["b"], hot: true });
    expect(applyDefaults(full, { host: "x", port: 80 })).toEqual({ port: 80, tags: ["b"], hot: true, host: "x" });
    expect(applyDefaults(full)).toEqual(getDefaults(full));
    expect(getDefaults(url)).toEqual({});
    expect(getDefaults(request({ a: { type: "object" } }))).toEqual({});
    const changed = getDefaults(full);
    (changed["tags"] as string[]).push("x");
    expect(getDefaults(full)["tags"]).toEqual(["b"]);
  });

  test("results", () => {
    expect(accept({ a: 1 })).toEqual({ action: "accept", content: { a: 1 } });
    expect(decline("why")).toEqual({ action: "decline" });
    expect(reject("why")).toEqual({ action: "decline" });
    expect(cancel()).toEqual({ action: "cancel" });
    expect(acceptWithDefaults(full)).toEqual({ action: "accept", content: { port: 3000, tags: ["b"], hot: true } });
  });

  test("defaults that do not suffice are an error, never a made-up answer", () => {
    const code = (run: () => unknown) => {
      try {
        run();
      } catch (error) {
        return error instanceof ElicitationError && [error.code, error.violations.map(({ field }) => field)];
      }
      return undefined;
    };
    expect(code(() => acceptWithDefaults(request({ a: { type: "string" } }, ["a"])))).toEqual(["violations", ["a"]]);
    expect(code(() => acceptWithDefaults(url))).toEqual(["mode", []]);
    expect(code(() => acceptWithDefaults(request({ a: { type: "object" } })))).toEqual(["defects", []]);
  });

  test("validate", () => {
    expect(validate(full, { port: 1 })).toEqual({ valid: true });
    expect(validate(full, { port: 1.5, hot: "yes" })).toEqual({ valid: false, errors: ["port: must be a whole number", "hot: must be yes or no"] });
    expect(validate(full, null)).toEqual({ valid: false, errors: ["the answer must be an object of fields"] });
    expect(validate(request({ a: { type: "object" } }), {})).toEqual({ valid: false, errors: ["the requested schema is illegal at /properties/a/type (nested)"] });
    expect(validate(url, undefined)).toEqual({ valid: true });
    expect(validate(url, { a: 1 }).valid).toBe(false);
  });
});

test("the five spellings of options", () => {
  const plain = [{ value: "x" }, { value: "y" }];
  const titled = [{ value: "x", title: "Ex" }, { value: "y", title: "Why" }];
  const constants = [{ const: "x", title: "Ex" }, { const: "y", title: "Why" }];
  for (const [field, kind, options] of [
    [{ type: "string", enum: ["x", "y"] }, "choice", plain],
    [{ type: "string", oneOf: constants }, "choice", titled],
    [{ type: "string", enum: ["x", "y"], enumNames: ["Ex", "Why"] }, "choice", titled],
    [{ type: "array", items: { type: "string", enum: ["x", "y"] } }, "choices", plain],
    [{ type: "array", items: { anyOf: constants } }, "choices", titled],
  ] as const) {
    const parsed = parse({ type: "object", properties: { a: field } });
    expect(parsed.ok && parsed.form.fields[0]).toMatchObject({ kind, options });
    const good = kind === "choice" ? "y" : ["y"];
    const bad = kind === "choice" ? "Why" : ["Why"];
    expect(parsed.ok && parsed.form.check({ a: good }).ok).toBe(true);
    expect(parsed.ok && parsed.form.check({ a: bad })).toMatchObject({ violations: [{ rule: "enum" }] });
  }
});
