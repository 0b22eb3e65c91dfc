/** The example pages, built by Vite, in a real browser, before a server over Streamable HTTP: the one at `MCP_SERVER`, else the examples' own. */
import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium, type Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";

interface Preview {
  readonly resolvedUrls: { local: string[] };
  close(): Promise<void>;
}

let browser: Browser;
let server: ChildProcess | undefined;
let target = process.env["MCP_SERVER"];

const example = (path: string) => fileURLToPath(new URL(`../../../examples/${path}`, import.meta.url));

beforeAll(async () => {
  browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  if (target !== undefined) return;
  server = spawn(process.execPath, [example("server/server.mjs"), "0"], { stdio: ["ignore", "pipe", "inherit"] });
  target = await new Promise<string>((resolve, reject) => {
    server!.stdout!.once("data", (line: Buffer) => resolve(/http:\/\/[^/]+/u.exec(String(line))![0]));
    server!.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
});
afterAll(async () => {
  server?.kill();
  await browser?.close();
});

it.each(["plain", "react"])("the example %s answers a question", async (name) => {
  process.env["MCP_SERVER"] = target;
  const root = example(name);
  const vite = (await import(pathToFileURL(createRequire(`${root}/package.json`).resolve("vite")).href)) as {
    build(options: object): Promise<unknown>;
    preview(options: object): Promise<Preview>;
  };
  await vite.build({ root, logLevel: "error" });
  const preview = await vite.preview({ root, logLevel: "error", preview: { port: 0, host: "127.0.0.1" } });
  const tab = await browser.newPage();
  try {
    await tab.goto(preview.resolvedUrls.local[0]!);
    await tab.locator("#call:not([disabled])").click();
    const form = tab.locator("mcp-elicitation");
    await form.getByRole("radio", { name: "staging" }).check();
    await form.getByRole("button", { name: "Send answer" }).click();
    await expect.poll(() => tab.locator("#result").textContent(), { timeout: 20_000 }).toContain("staging");
    expect(await form.count()).toBe(0);

    await tab.locator("#call:not([disabled])").click();
    await form.getByRole("button", { name: "Decline" }).click();
    await tab.locator("#call:not([disabled])").waitFor();
    expect(await tab.locator("#result").textContent()).not.toContain("going to");
  } finally {
    await tab.close();
    await preview.close();
  }
});
