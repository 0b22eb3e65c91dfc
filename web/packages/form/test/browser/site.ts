// A page under a strict policy, in a real Chromium.
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { build } from "esbuild";
import { type Browser, chromium, type Page } from "playwright-core";
import { cssText } from "../../../../scripts/css.mjs";

const root = join(import.meta.dirname, "../..");

/** No inline style or script, no evaluated text, no markup from strings. */
const POLICY = "default-src 'none'; script-src 'self'; style-src 'none'; connect-src 'self'; require-trusted-types-for 'script'";

const PAGE = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>Test</title>
<script type="module" src="/page.js"></script></head><body><main><h1>Page</h1><div id="place"></div></main></body></html>`;

export interface Site {
  readonly browser: Browser;
  readonly url: string;
  /** Opens the page. What the policy refuses and what the page throws is collected in `problems`. */
  open(options?: { colorScheme?: "light" | "dark"; forcedColors?: "active"; width?: number }): Promise<{ page: Page; problems: string[] }>;
  close(): Promise<void>;
}

export async function site(): Promise<Site> {
  const { outputFiles } = await build({
    stdin: { contents: 'import * as form from "./src/index.js"; import { ask } from "./src/define.js"; Object.assign(window, { form, ask });', resolveDir: root },
    bundle: true,
    splitting: true,
    outdir: "/",
    entryNames: "page",
    write: false,
    format: "esm",
    target: "es2022",
    plugins: [cssText],
    ignoreAnnotations: true,
  });
  const files: Record<string, [string, string]> = {
    "/": ["text/html", PAGE],
    ...Object.fromEntries(outputFiles.map(({ path, text }) => [path, ["text/javascript", text]])),
    "/axe.js": ["text/javascript", readFileSync(join(root, "../../node_modules/axe-core/axe.min.js"), "utf8")],
  };
  const server: Server = createServer((request, response) => {
    const [type, body] = files[request.url ?? ""] ?? ["text/plain", ""];
    // A slow network, to find the tests that do not wait: PARTS_LATE_MS=400 npm run test:browser
    const part = request.url !== "/" && request.url !== "/page.js";
    setTimeout(
      () => {
        response.writeHead(body ? 200 : 404, { "content-type": `${type}; charset=utf-8`, "content-security-policy": POLICY });
        response.end(body);
      },
      part ? Number(process.env["PARTS_LATE_MS"] ?? 0) : 0,
    );
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  return {
    browser,
    url,
    async open({ colorScheme = "light", forcedColors, width = 800 } = {}) {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme, ...(forcedColors && { forcedColors }), locale: "en-GB", timezoneId: "Europe/Brussels" });
      const problems: string[] = [];
      page.on("pageerror", (error) => problems.push(error.message));
      page.on("console", (message) => message.type() === "error" && !message.text().includes("favicon") && problems.push(message.text()));
      await page.goto(url);
      await page.evaluate(() => customElements.whenDefined("mcp-elicitation").then(() => undefined));
      return { page, problems };
    },
    async close() {
      await browser.close();
      await new Promise((done) => server.close(done));
    },
  };
}

/** Puts the element on the page with these properties; its events are kept in `window.events`. */
export async function put(page: Page, properties: Record<string, unknown>, attributes: Record<string, string> = {}): Promise<void> {
  await page.evaluate(
    ([properties, attributes]) => {
      const element = document.createElement("mcp-elicitation");
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
      // JSON keeps __proto__ as a name.
      Object.assign(element, JSON.parse(properties));
      const events: unknown[] = [];
      Object.assign(window, { element, events });
      for (const type of ["accept", "decline", "cancel", "draft"]) element.addEventListener(type, (event) => events.push({ type, detail: (event as CustomEvent).detail }));
      document.querySelector("#place")!.replaceChildren(element);
    },
    [JSON.stringify(properties), attributes] as const,
  );
}

/** What happened, as JSON has it, without the drafts. */
export async function events(page: Page): Promise<{ type: string; detail: Record<string, unknown> }[]> {
  const all = JSON.parse(await page.evaluate("JSON.stringify(window.events)")) as { type: string; detail: Record<string, unknown> }[];
  return all.filter(({ type }) => type !== "draft");
}

/** What axe finds, one line each. */
export async function findings(page: Page): Promise<string[]> {
  await page.evaluate(async () => {
    if ("axe" in window) return;
    const script = document.createElement("script");
    const policy = (window as unknown as { trustedTypes: { createPolicy(name: string, rules: object): { createScriptURL(url: string): string } } }).trustedTypes.createPolicy("test", { createScriptURL: (url: string) => url });
    script.src = policy.createScriptURL("/axe.js");
    const loaded = new Promise((done) => (script.onload = done));
    document.head.append(script);
    await loaded;
  });
  return page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run(root: Element, options: object): Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }> } };
    const { violations } = await axe.run(document.querySelector("#place")!, { resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`));
  });
}
