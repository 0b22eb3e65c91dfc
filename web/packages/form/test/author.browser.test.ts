// What the author of a page meets: the page's own style, language and frame, labels, and what a question looks like first.
import { join } from "node:path";
import { build } from "esbuild";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cssText } from "../../../scripts/css.mjs";
import { everyKind, origin, short, ticket, yesNo } from "./browser/requests.js";
import { events, put, type Site, site } from "./browser/site.js";

let web: Site;
beforeAll(async () => {
  web = await site();
});
afterAll(() => web?.close());

async function on(steps: (page: Page) => Promise<void>, options: Parameters<Site["open"]>[0] = {}) {
  const { page, problems } = await web.open(options);
  try {
    await steps(page);
    expect(problems).toEqual([]);
  } finally {
    await page.close();
  }
}

const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name, exact: true });
const style = (page: Page, selector: string, property: string) =>
  page.locator(`mcp-elicitation ${selector}`).first().evaluate((element, property) => getComputedStyle(element)[property as "color"], property);

describe("the question", () => {
  test("is the heading and the strongest text; who asks stands above it in one line, the rest opens", () =>
    on(async (page) => {
      await put(page, { request: everyKind, origin });
      expect(await page.getByRole("heading", { level: 2 }).first().textContent()).toBe("Where should I deploy build 4812?");
      expect(await page.locator("[part~=origin]").textContent()).toBe("deploy-bot asks · tool deploy");
      expect(await page.locator("[part~=message]").textContent()).toBe("The plan is at https://plan.example/4812.");
      const sizes = await page.evaluate(() => {
        const root = document.querySelector("mcp-elicitation")!.shadowRoot!;
        const size = (element: Element) => parseFloat(getComputedStyle(element).fontSize);
        const question = root.querySelector("[part~=question]")!;
        return [...root.querySelectorAll("*")].filter((element) => element !== question && element.textContent && size(element) >= size(question)).map((element) => element.outerHTML.slice(0, 80));
      });
      expect(sizes).toEqual([]);
      expect(await page.getByText("calls itself").isVisible()).toBe(false);
      await page.getByText("Details").click();
      expect(await page.getByText("calls itself").isVisible()).toBe(true);
      expect(await page.getByText("release/2026-11").isVisible()).toBe(true);
    }));

  test("of a long first line, or in the page's own rendering, is no heading", () =>
    on(async (page) => {
      await put(page, { request: { ...short, message: "why ".repeat(100) }, origin });
      expect(await page.getByRole("heading", { level: 2 }).first().textContent()).toContain("deploy-bot asks");
      expect(await page.locator("[part~=message]").textContent()).toContain("why why");
    }));

  test("of one yes or no is answered by one press", () =>
    on(async (page) => {
      for (const [name, answer] of [["Yes, deploy to production", true], ["No", false]] as const) {
        await put(page, { request: yesNo, origin });
        await button(page, name).click();
        expect(await events(page)).toEqual([{ type: "accept", detail: { content: { confirm: answer } } }]);
      }
      await put(page, { request: yesNo, origin });
      expect(await button(page, "Decline").isVisible()).toBe(false);
      await page.getByText("Neither: decline or cancel").press("Enter");
      await button(page, "Decline").press("Enter");
      expect(await events(page)).toEqual([{ type: "decline", detail: {} }]);
    }));

  test("of one yes or no is not answered by a key that is held down, nor by Ctrl+Enter", () =>
    on(async (page) => {
      await put(page, { request: yesNo, origin });
      await button(page, "Yes, deploy to production").focus();
      for (const key of ["Enter", " "]) {
        const press = "element.shadowRoot.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: '" + key + "', repeat: true, bubbles: true, cancelable: true, composed: true }))";
        expect(await page.evaluate(press)).toBe(false);
      }
      await page.getByText("Neither: decline or cancel").focus();
      await page.keyboard.press("Control+Enter");
      expect(await events(page)).toEqual([]);
    }));

  test("of an optional yes or no can be sent without one, and keeps the review where the page wants one", () =>
    on(async (page) => {
      const optional = { message: "Tell the team?", requestedSchema: { type: "object", properties: { tell: { type: "boolean", title: "Tell the team by mail" } } } };
      await put(page, { request: optional });
      await page.getByText("Neither: decline or cancel").click();
      await button(page, "No answer").click();
      expect(await events(page)).toEqual([{ type: "accept", detail: { content: {} } }]);
      await put(page, { request: yesNo }, { review: "" });
      expect(await button(page, "Review answers").count()).toBe(1);
    }));
});

describe("fields", () => {
  test("a yes or no that is required or has a default is a box to tick", () =>
    on(async (page) => {
      const properties = { a: { type: "boolean", title: "Agree" }, b: { type: "boolean", title: "Tell", default: true }, c: { type: "boolean", title: "Perhaps" } };
      await put(page, { request: { message: "m", requestedSchema: { type: "object", properties, required: ["a"] } } });
      expect(await page.getByRole("checkbox", { name: "Agree" }).isChecked()).toBe(false);
      expect(await page.getByRole("checkbox", { name: "Tell" }).isChecked()).toBe(true);
      expect(await page.getByRole("radiogroup", { name: "Perhaps" }).getByRole("radio").count()).toBe(3);
      await page.getByRole("checkbox", { name: "Agree" }).check();
      await button(page, "Send answer").click();
      expect(await events(page)).toEqual([{ type: "accept", detail: { content: { a: true, b: true } } }]);
    }));

  test("of required and optional ones the rarer are marked, in grey", () =>
    on(async (page) => {
      const schema = (required: string[]) => ({ message: "m", requestedSchema: { type: "object", properties: { a: { type: "string", title: "A" }, b: { type: "string", title: "B" }, c: { type: "string", title: "C" } }, required } });
      const marks = () => page.locator("[part~=label]").allTextContents().then((labels) => labels.map((label) => label.trim()));
      await put(page, { request: schema(["a", "b"]) });
      expect(await marks()).toEqual(["A", "B", "C optional"]);
      await put(page, { request: schema(["a"]) });
      expect(await marks()).toEqual(["A required", "B", "C"]);
      expect(await style(page, "[part~=need]", "color")).toBe(await style(page, "[part~=origin] span", "color"));
      await put(page, { request: schema(["a", "b", "c"]) });
      expect(await marks()).toEqual(["A", "B", "C"]);
    }));

  test("a pattern is an example, and itself only once it is opened", () =>
    on(async (page) => {
      await put(page, { request: ticket });
      await page.getByText("such as ABC-12").waitFor();
      expect(await page.getByText("^[A-Z]{3}-[0-9]{2}$").isVisible()).toBe(false);
      await page.getByText("Pattern").click();
      expect(await page.getByText("^[A-Z]{3}-[0-9]{2}$").isVisible()).toBe(true);
      await page.getByRole("textbox", { name: "Ticket" }).fill("ABC-1");
      await button(page, "Send answer").click();
      await page.getByRole("alert").waitFor();
      // A reason begins with a capital.
      expect(await page.locator("[part~=error] li").first().evaluate((line) => getComputedStyle(line, "::first-letter").textTransform)).toBe("uppercase");
      await page.getByRole("textbox", { name: "Ticket" }).fill("ABC-12");
      await button(page, "Send answer").click();
      expect(await events(page)).toEqual([{ type: "accept", detail: { content: { ticket: "ABC-12" } } }]);
    }));

  test("an international mail address is sent in ASCII, as the crate does", () =>
    on(async (page) => {
      await put(page, { request: { message: "m", requestedSchema: { type: "object", properties: { mail: { type: "string", title: "Mail", format: "email" } } } } });
      await page.getByLabel("Mail").fill("ada@bücher.example");
      await button(page, "Send answer").click();
      expect(await events(page)).toEqual([{ type: "accept", detail: { content: { mail: "ada@xn--bcher-kva.example" } } }]);
    }));
});

describe("the page around it", () => {
  test("its alignment and spacing stay outside, and two questions do not touch", () =>
    on(async (page) => {
      await page.evaluate(() => {
        const sheet = new CSSStyleSheet();
        sheet.replaceSync("body { text-align: center; letter-spacing: 3px; word-spacing: 9px; text-transform: uppercase; text-indent: 2em; white-space: nowrap }");
        document.adoptedStyleSheets = [sheet];
      });
      await put(page, { request: short });
      for (const [property, value] of [["textAlign", "left"], ["letterSpacing", "normal"], ["wordSpacing", "0px"], ["textTransform", "none"], ["textIndent", "0px"], ["whiteSpace", "normal"]] as const)
        expect([property, await style(page, "[part~=label]", property)]).toEqual([property, value]);
      const gap = await page.evaluate(() => {
        const other = document.querySelector("mcp-elicitation")!.cloneNode() as HTMLElement;
        document.querySelector("#place")!.append(other);
        Object.assign(other, { request: (document.querySelector("mcp-elicitation") as unknown as { request: unknown }).request });
        return other.getBoundingClientRect().top - document.querySelector("mcp-elicitation")!.getBoundingClientRect().bottom;
      });
      expect(gap).toBeGreaterThanOrEqual(12);
    }));

  test("in a page from right to left its own words begin at the right, and so do a server's in English", () =>
    on(async (page) => {
      await page.evaluate("document.documentElement.dir = 'rtl'");
      await put(page, { request: everyKind, origin });
      await page.locator("[part~=label]").first().waitFor();
      const right = await page.evaluate(() => {
        const root = document.querySelector("mcp-elicitation")!.shadowRoot!;
        const far = (selector: string) => {
          const element = root.querySelector(selector)!;
          const range = document.createRange();
          range.selectNodeContents(element);
          return Math.abs(element.getBoundingClientRect().right - range.getBoundingClientRect().right);
        };
        return ["[part~=question]", "[part~=message]", "[part~=limit]", "[part~=description]", "[part~=label]"].map((selector) => [selector, Math.round(far(selector))]);
      });
      expect(right.filter(([, gap]) => (gap as number) > 2)).toEqual([]);
    }));

  test("it follows the language of the page, and the page's labels go over it", () =>
    on(async (page) => {
      for (const [lang, send, required] of [["de", "Antwort senden", "eine Angabe ist nötig"], ["fr-CA", "Envoyer la réponse", "une réponse est nécessaire"], ["es", "Enviar respuesta", "se necesita una respuesta"], ["nl", "Send answer", "a value is required"]] as const) {
        await page.evaluate((lang) => (document.documentElement.lang = lang), lang);
        await put(page, { request: short });
        await button(page, send).click();
        await page.getByRole("alert").filter({ hasText: required }).waitFor();
      }
      await put(page, { request: short, labels: { decline: "Nee" } }, { lang: "de" });
      await button(page, "Antwort senden").waitFor();
      await button(page, "Nee").waitFor();
      await page.evaluate("element.lang = 'es'");
      await button(page, "Enviar respuesta").waitFor();
    }));

  test("an unknown label is told once", async () => {
    const { page } = await web.open();
    const warnings: string[] = [];
    page.on("console", (message) => message.type() === "warning" && warnings.push(message.text()));
    for (let i = 0; i < 2; i++) await put(page, { request: short, labels: { send: "x", accept: "Go", less: "Fewer: {0}" } });
    await expect.poll(() => warnings.length).toBe(1);
    expect(warnings[0]).toContain('"send"');
    expect(warnings[0]).toContain("accept");
    await put(page, { request: short, labels: { sent: "Gone", oops: "x" } });
    await expect.poll(() => warnings.length).toBe(2);
    await page.close();
  });

  test("in a frame that allows no forms, a press and Enter send", async () => {
    const { outputFiles } = await build({
      stdin: { contents: 'import "./src/define.js";', resolveDir: join(import.meta.dirname, "..") },
      bundle: true, write: false, format: "iife", target: "es2022", plugins: [cssText], ignoreAnnotations: true,
    });
    const page = await web.browser.newPage();
    const problems: string[] = [];
    page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    const own = `const element = document.querySelector("mcp-elicitation"); element.addEventListener("accept", (event) => (document.title = JSON.stringify(event.detail.content))); element.request = ${JSON.stringify(short)};`;
    for (const way of ["press", "Enter"]) {
      await page.setContent(`<iframe sandbox="allow-scripts" style="width:700px;height:600px"></iframe>`);
      await page.evaluate(
        ([script, own]) => (document.querySelector("iframe")!.srcdoc = `<!doctype html><html lang="en"><mcp-elicitation></mcp-elicitation><script>${script.replaceAll("</script", "<\\/script")}</script><script>${own}</script>`),
        [outputFiles[0]!.text, own] as const,
      );
      const frame = page.frameLocator("iframe");
      await frame.getByLabel("Name").fill("Ada");
      if (way === "press") await frame.getByRole("button", { name: "Send answer" }).click();
      else await frame.getByRole("textbox", { name: /^Age/ }).press("Enter");
      await expect.poll(() => page.frames()[1]!.title()).toBe('{"name":"Ada"}');
    }
    expect(problems).toEqual([]);
    await page.close();
  });
});
