// Node has no document: every entry can be imported there.
import { expect, test } from "vitest";

test("importing on a server does nothing", async () => {
  expect(globalThis.document).toBeUndefined();
  const { MCPElicitation } = await import("../src/define.js");
  expect(new MCPElicitation()).toBeInstanceOf(MCPElicitation);
  expect((await import("../src/standalone.js")).MCPElicitation).toBe(MCPElicitation);
  expect(await import("../src/render.js")).toHaveProperty("render");
  expect(await import("../src/element.js")).toHaveProperty("ElicitationEvent");
  expect(await import("../src/index.js")).toHaveProperty("parse");
  expect(await import("../src/explain.js")).toHaveProperty("explain");
});
