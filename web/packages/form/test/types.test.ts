// Both SDKs' types fit ours; the compiler is the test.
import type { ElicitRequestFormParams as Form2, ElicitRequestURLParams as Url2, ElicitResult as Result2 } from "@modelcontextprotocol/client";
import type { ElicitRequestFormParams as Form1, ElicitRequestURLParams as Url1, ElicitResult as Result1 } from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";
import { accept, type ElicitRequest, type ElicitResult, parse } from "../src/index.js";

test("requests and results of both SDKs are assignable", () => {
  const requests: ((params: Form1 | Url1 | Form2 | Url2) => ElicitRequest)[] = [(params) => params];
  const result1 = (result: ElicitResult): Result1 => result;
  const result2 = (result: ElicitResult): Result2 => result;
  expect(requests).toHaveLength(1);
  expect(result1(accept({ a: 1 }))).toEqual(result2(accept({ a: 1 })));
});

test("only a check makes answers, and its kind tells a field apart", () => {
  const parsed = parse({ type: "object", properties: { a: { type: "integer", minimum: 1 } } });
  if (!parsed.ok) throw new Error("illegal");
  const [field] = parsed.form.fields;
  if (field?.kind === "integer") expect(field.minimum).toBe(1);
  // @ts-expect-error a text field has no minimum
  if (field?.kind === "text") expect(field.minimum).toBe(undefined);
  const checked = parsed.form.check({ a: 1 });
  // @ts-expect-error content that was not checked is no answers
  const answers: typeof checked extends { answers: infer A } ? A : Extract<typeof checked, { ok: true }>["answers"] = { a: 1 };
  expect(answers).toEqual({ a: 1 });
});
