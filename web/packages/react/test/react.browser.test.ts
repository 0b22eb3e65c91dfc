/** The hook and its parts in a real browser, with React 19, React 18 and Preact, in strict mode, before real clients of both SDKs. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium, type Browser, type Page as Tab } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Page } from "./page/page.js";

declare const page: Page;

const FORM = {
  message: "Where to?",
  requestedSchema: {
    type: "object",
    properties: { ticket: { type: "string", title: "Ticket", pattern: "^T-[0-9]+$" }, force: { type: "boolean", title: "Force" } },
    required: ["ticket"],
  },
};
const POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'none'; base-uri 'none'; form-action 'none'";
/** The SDKs' schema library tries whether it may make code at run time, and goes on without. */
const PROBE = /unsafe-eval/u;

const works = {
  "React 19": {},
  "React 18": { react: "react-18", "react-dom": "react-dom-18" },
  Preact: {
    react: "preact/compat",
    "react-dom": "preact/compat",
    "react-dom/client": "preact/compat/client",
    "react/jsx-runtime": "preact/jsx-runtime",
  },
};

let browser: Browser;
beforeAll(async () => {
  browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
});
afterAll(() => browser?.close());

describe.each(Object.entries(works))("%s", (name, alias) => {
  let server: Server;
  let address: string;
  beforeAll(async () => {
    const { outputFiles } = await build({
      entryPoints: [fileURLToPath(new URL("page/page.tsx", import.meta.url))],
      bundle: true,
      write: false,
      format: "esm",
      platform: "browser",
      jsx: "automatic",
      define: { "process.env.NODE_ENV": '"development"' },
      alias: { "@mcp-elicit/react": fileURLToPath(new URL("../src/index.ts", import.meta.url)), ...alias },
      logLevel: "error",
    });
    const script = outputFiles[0]!.text;
    server = createServer((request, response) => {
      const [type, body] =
        request.url === "/page.js"
          ? ["text/javascript", script]
          : ["text/html", '<!doctype html><html lang="en"><title>Test</title><div id="root"></div><script type="module" src="/page.js"></script>'];
      response.writeHead(200, { "Content-Type": type, "Content-Security-Policy": POLICY }).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  afterAll(() => server?.close());

  /** Opens the page, and fails the test on errors, policy violations and React's warnings. */
  async function opened<T>(hash: string, run: (tab: Tab) => Promise<T>): Promise<T> {
    const tab = await browser.newPage();
    const wrong: string[] = [];
    tab.on("pageerror", (error) => wrong.push(String(error)));
    tab.on("console", (message) => message.type() === "error" && !PROBE.test(message.text()) && wrong.push(message.text()));
    try {
      await tab.goto(address + hash);
      await tab.waitForFunction(() => "page" in window);
      const result = await run(tab);
      expect(wrong).toEqual([]);
      return result;
    } catch (error) {
      throw wrong.length > 0 ? new Error(wrong.join("\n"), { cause: error }) : error;
    } finally {
      await tab.close();
    }
  }
  const count = (tab: Tab, wanted: number) => tab.waitForFunction((n) => document.querySelector("#count")?.textContent === String(n), wanted);

  it(`is ${name}`, () =>
    opened("", async (tab) => {
      const version = await tab.evaluate(() => page.version);
      expect(version).toMatch(name === "React 19" ? /^19\./u : name === "React 18" ? /^18\.|^17/u : /./u);
    }));

  it("two servers, one queue; a wrong answer stays, the right one is sent", () =>
    opened("", async (tab) => {
      for (const which of ["first", "second"] as const) {
        expect(await tab.evaluate((w) => page.connect(w), which)).toEqual({ elicitation: { form: {}, url: {} } });
      }
      await tab.evaluate((form) => (page.ask("first", "a", form), page.ask("second", "b", form)), FORM);
      await count(tab, 2);
      const form = tab.locator("mcp-elicitation").first();
      await form.getByText("first").first().waitFor();
      await form.getByLabel("Ticket").fill("wrong");
      await form.getByRole("button", { name: /accept|send|submit/iu }).click();
      await form.getByLabel("Ticket").fill("T-7");
      await form.getByRole("button", { name: /accept|send|submit/iu }).click();
      await count(tab, 1);
      expect(await tab.evaluate(() => page.answer("a"))).toMatchObject({ result: { action: "accept", content: { ticket: "T-7" } } });
      await tab.locator("mcp-elicitation").first().getByRole("button", { name: /decline/iu }).click();
      expect(await tab.evaluate(() => page.answer("b"))).toMatchObject({ result: { action: "decline" } });
      await tab.locator("#empty").waitFor();
    }));

  it("an open call and what was typed survive a component that is taken away", () =>
    opened("#held", async (tab) => {
      await tab.evaluate(() => page.connect("first"));
      await tab.evaluate((form) => page.ask("first", "a", form), FORM);
      await count(tab, 1);
      const ticket = tab.locator("mcp-elicitation").getByLabel("Ticket");
      await ticket.fill("T-");
      await tab.locator("#toggle").click();
      await tab.locator("mcp-elicitation").waitFor({ state: "detached" });
      await tab.locator("#toggle").click();
      await count(tab, 1);
      expect(await ticket.inputValue()).toBe("T-");
      await ticket.fill("T-8");
      await tab.locator("mcp-elicitation").getByRole("button", { name: "Send answer" }).click();
      expect(await tab.evaluate(() => page.answer("a"))).toMatchObject({ result: { action: "accept", content: { ticket: "T-8" } } });
    }));

  it("what was typed survives renders, and a component that comes back finds the question", () =>
    opened("", async (tab) => {
      await tab.evaluate(() => page.connect("second"));
      await tab.evaluate((form) => page.ask("second", "a", form), FORM);
      await count(tab, 1);
      const ticket = tab.locator("mcp-elicitation").getByLabel("Ticket");
      await ticket.fill("T-12");
      await tab.locator("#again").click();
      await tab.locator("#again").click();
      expect(await ticket.inputValue()).toBe("T-12");
    }));

  it("a component that goes away for good answers with an error, never with an action", () =>
    opened("#own", async (tab) => {
      await tab.evaluate(() => page.connect("first"));
      await tab.evaluate((form) => page.ask("first", "a", form), FORM);
      await count(tab, 1);
      await tab.locator("#toggle").click();
      expect(await tab.evaluate(() => page.answer("a"))).toMatchObject({ error: { code: -32603 } });
    }));

  it("a callback given to the hook answers in place of a person", () =>
    opened("#callback", async (tab) => {
      await tab.evaluate(() => page.connect("second"));
      const properties = { ticket: { type: "string", default: "T-5" } };
      await tab.evaluate((schema) => page.ask("second", "a", { message: "?", requestedSchema: schema }), { type: "object", properties });
      expect(await tab.evaluate(() => page.answer("a"))).toMatchObject({ result: { action: "accept", content: { ticket: "T-5" } } });
      await count(tab, 0);
    }));

  it("a question that the server withdraws is shown as withdrawn", () =>
    opened("", async (tab) => {
      await tab.evaluate(() => page.connect("first"));
      await tab.evaluate((form) => page.ask("first", "a", form), FORM);
      await count(tab, 1);
      await tab.evaluate(() => page.withdraw("first", "a", "the build failed"));
      await count(tab, 0);
      await tab.locator("mcp-elicitation").getByText("the build failed").waitFor();
      await tab.locator("#empty").waitFor({ timeout: 10_000 });
    }));

  it("headless parts check, show reasons and send", () =>
    opened("#headless", async (tab) => {
      await tab.evaluate(() => page.connect("first"));
      await tab.evaluate((form) => page.ask("first", "a", { ...form, message: "<b>Where</b>?" }), FORM);
      await count(tab, 1);
      expect(await tab.locator(".message").textContent()).toBe("<b>Where</b>?");
      expect(await tab.locator("strong").textContent()).toBe("first");
      await tab.getByRole("button", { name: "Send it" }).click();
      expect(await tab.getByRole("alert").count()).toBe(1);
      expect(await tab.getByLabel("Ticket").getAttribute("aria-invalid")).toBe("true");
      await tab.getByLabel("Ticket").fill("T-1");
      await tab.getByLabel("Force").check();
      expect(await tab.getByRole("alert").count()).toBe(0);
      await tab.locator("button.mine").click();
      expect(await tab.evaluate(() => page.answer("a"))).toMatchObject({ result: { action: "accept", content: { ticket: "T-1", force: true } } });
      expect(await tab.evaluate(() => page.drafts.length)).toBeGreaterThan(0);
    }));

  it("a headless link is opened on a click only, and is no link where its scheme is another", () =>
    opened("#headless", async (tab) => {
      await tab.evaluate(() => page.connect("first"));
      await tab.evaluate(() => page.ask("first", "a", { mode: "url", message: "Sign in", url: "https://example.com/x?y=1", elicitationId: "1" }));
      await count(tab, 1);
      const link = tab.getByRole("link");
      expect(await link.getAttribute("href")).toBe("https://example.com/x?y=1");
      expect(await link.getAttribute("rel")).toBe("noopener noreferrer");
      await tab.getByRole("button", { name: "Cancel" }).click();
      expect(await tab.evaluate(() => page.answer("a"))).toMatchObject({ result: { action: "cancel" } });
    }));
});
