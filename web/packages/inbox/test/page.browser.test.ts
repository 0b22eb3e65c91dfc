// The script of the inbox's pages, as the Rust build takes it, on a page with the markup of crates/forms/templates.
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

const script = readFileSync(join(import.meta.dirname, "../../../../crates/forms/assets/page.js"), "utf8");
const options = Array.from({ length: 14 }, (_, i) => `<label class="pick"><input type="checkbox" name="f2" value="${i}"><span class="name">Région ${i}</span></label>`).join("");
const html = `<!doctype html><html lang="en"><title>t</title><body data-base="/x">
<p class="clock" data-left="65000"><span data-words>1:05</span></p>
<form data-question="/q" data-state="/s" action="/sent"><div class="field" data-field="f0"><div data-stepper data-step="0.1" data-least="0" data-most="1">
<input class="in" id="f0" value="0.1"><button class="step" type="submit" name="step" value="f0:down">-</button><button class="step" type="submit" name="step" value="f0:up">+</button></div><ul class="errors"></ul></div>
<div class="field" data-field="f1"><input class="in" id="f1" name="f1" data-grows><ul class="errors"></ul></div>
<fieldset class="field" data-field="f2"><div class="list" data-list><input class="in find" type="search" hidden aria-label="Search"><div class="picks">${options}</div><p class="tally"></p></div><ul class="errors"></ul></fieldset>
<button class="btn main" type="submit" data-act="accept" data-answers>Send</button><button type="submit" formnovalidate data-act="cancel">Cancel</button></form>
<form method="post" action="/acted" id="acts"><button type="submit">Approve</button></form><script type="module" src="/page.js"></script>`;

let server: Server;
let browser: Browser;
let page: Page;
/** Waits until presses count. */
const settled = () => page.waitForFunction(() => !("fresh" in document.body.dataset));
beforeAll(async () => {
  server = createServer(({ url }, response) => {
    response.setHeader("content-type", url === "/page.js" ? "text/javascript" : "text/html; charset=utf-8");
    response.end(url === "/page.js" ? script : html);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/q`);
  await settled();
});
afterAll(async () => {
  await browser?.close();
  server?.close();
});

test("numbers step by decimal notation, within their bounds", async () => {
  const input = page.locator("#f0");
  for (const [key, value] of [["ArrowUp", "0.2"], ["ArrowUp", "0.3"], ["ArrowDown", "0.2"]] as const) {
    await input.press(key);
    expect(await input.inputValue()).toBe(value);
  }
  await input.fill("0.95");
  await page.getByRole("button", { name: "+" }).click();
  expect(await input.inputValue()).toBe("1");
  await input.fill("0");
  await page.getByRole("button", { name: "-", exact: true }).click();
  expect(await input.inputValue()).toBe("0");
});

test("a list is searched without accents; Enter picks the only match and sends nothing", async () => {
  const find = page.getByLabel("Search");
  await find.fill("region 13");
  expect(await page.locator(".pick:visible").count()).toBe(1);
  expect(await page.locator(".tally").textContent()).toBe("1 option matches.");
  await find.press("Enter");
  expect(await page.locator(".tally").textContent()).toBe("1 option matches. Chosen: Région 13");
  await find.press("Escape");
  expect(await find.inputValue()).toBe("");
  await find.press("ArrowDown");
  await page.keyboard.press("Space");
  expect(await page.locator(".tally").textContent()).toBe("Chosen: Région 0, Région 13");
  expect(page.url()).toMatch(/\/q$/);
});

test("pasted line breaks get a text area; the clock counts down", async () => {
  await page.locator("#f1").evaluate((input) => {
    const data = new DataTransfer();
    data.setData("text/plain", "two\nlines");
    input.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  });
  expect(await page.locator("textarea#f1").inputValue()).toBe("two\nlines");
  await expect.poll(() => page.locator("[data-words]").textContent(), { timeout: 30_000 }).toMatch(/^(1:0[0-4]|0:\d\d)$/);
});

test("a page that has only just come up is not pressed; a moment later it is", async () => {
  // The window gets the focus under the second click of a double click.
  await page.evaluate(() => {
    window.dispatchEvent(new Event("focus"));
    document.querySelector<HTMLButtonElement>("#acts button")!.click();
    document.querySelector<HTMLFormElement>("#acts")!.requestSubmit();
  });
  expect(await page.getByRole("alert").textContent()).toContain("press again");
  expect(page.url()).toMatch(/\/q$/);
  await settled();
  await page.getByRole("button", { name: "Approve" }).click();
  await page.waitForURL(/\/acted$/);
});
