import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { confirm, deploy, everyKind, origin, short, ticket, url, yesNo } from "./browser/requests.js";
import { events, findings, put, type Site, site } from "./browser/site.js";

let web: Site;
beforeAll(async () => {
  web = await site();
});
afterAll(() => web?.close());

/** Opens the page, runs the steps, and fails on anything that the policy refused or the page threw. */
async function on(steps: (page: Page) => Promise<void>, options: Parameters<Site["open"]>[0] = {}) {
  const { page, problems } = await web.open(options);
  try {
    await steps(page);
    expect(problems).toEqual([]);
  } finally {
    await page.close();
  }
}

const state = (page: Page) => page.evaluate("element.state");
const focused = (page: Page, id: string) => page.waitForFunction((id) => document.querySelector("mcp-elicitation")!.shadowRoot!.activeElement?.id === id, id);
const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name, exact: true });

describe("answers", () => {
  test("every kind of field, by its accessible name, gives checked content", () =>
    on(async (page) => {
      await put(page, { request: everyKind, origin });
      await page.getByLabel("Release name").fill("Winter release");
      await page.getByRole("radio", { name: "Production" }).check();
      await page.getByRole("textbox", { name: /^Replicas/ }).fill("4");
      await page.getByRole("textbox", { name: /^Replicas/ }).press("ArrowUp");
      await page.getByRole("textbox", { name: /^Ratio/ }).fill("0.1");
      await page.getByRole("button", { name: "More: Ratio" }).click();
      await page.getByRole("button", { name: "More: Ratio" }).click();
      expect(await page.getByRole("checkbox", { name: "Run the migrations" }).isChecked()).toBe(false);
      await page.getByLabel("Tell whom").fill(" ana@example.org ");
      await page.getByLabel("Status page").fill("https://status.example");
      await page.getByLabel("Day").fill("2026-12-24");
      await page.getByRole("group", { name: /Start at/ }).getByLabel("Date and time").fill("2026-07-30T09:00");
      await page.getByLabel("Search the options of Regions").fill("region 1");
      await page.getByRole("checkbox", { name: "Region 13" }).check();
      await page.getByRole("checkbox", { name: "Region 1", exact: true }).check();
      await page.getByRole("checkbox", { name: "safe" }).check();
      await button(page, "Send answer").click();
      expect(await events(page)).toEqual([
        {
          type: "accept",
          detail: {
            content: {
              name: "Winter release", environment: "prod", replicas: 5, ratio: 0.3, migrate: false, mail: "ana@example.org", page: "https://status.example", day: "2026-12-24",
              start: "2026-07-30T09:00:00+02:00", regions: ["r1", "r13"], tags: ["safe"],
            },
          },
        },
      ]);
      expect(await state(page)).toBe("done");
      expect(await page.getByRole("status").textContent()).toContain("Answer sent.");
    }));

  test("a form without fields asks to confirm", () =>
    on(async (page) => {
      await put(page, { request: confirm });
      await button(page, "Send answer").click();
      expect(await events(page)).toEqual([{ type: "accept", detail: { content: {} } }]);
    }));

  test("decline and cancel are acts of their own", () =>
    on(async (page) => {
      await put(page, { request: short });
      await button(page, "Decline").click();
      expect(await events(page)).toEqual([{ type: "decline", detail: {} }]);
      await put(page, { request: short });
      await button(page, "Cancel").click();
      expect(await events(page)).toEqual([{ type: "cancel", detail: { dirty: false } }]);
    }));

  test("names of prototypes are ordinary field names", () =>
    on(async (page) => {
      const schema = '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}},"required":["__proto__"]}';
      await put(page, { request: { message: "m", requestedSchema: JSON.parse(schema) as object } });
      await page.getByLabel("__proto__").fill("x");
      await page.getByLabel("constructor").fill("y");
      await button(page, "Send answer").click();
      expect(JSON.stringify(await events(page))).toBe('[{"type":"accept","detail":{"content":{"__proto__":"x","constructor":"y"}}}]');
    }));
});

describe("wrong answers", () => {
  test("a field is judged when it is left, and the summary leads to it", () =>
    on(async (page) => {
      await put(page, { request: short });
      const name = page.getByLabel("Name");
      await name.fill("a");
      expect(await page.getByText("must have at least 2 characters").count()).toBe(0);
      await page.getByRole("textbox", { name: /^Age/ }).focus();
      await page.getByText("must have at least 2 characters").waitFor();
      expect(await name.getAttribute("aria-invalid")).toBe("true");
      await name.fill("");
      await page.getByRole("textbox", { name: /^Age/ }).fill("-1");
      await button(page, "Send answer").click();
      const alert = page.getByRole("alert");
      expect(await alert.evaluate((node) => (node.getRootNode() as ShadowRoot).activeElement === node)).toBe(true);
      expect(await alert.textContent()).toContain("need another look: 2");
      await alert.getByRole("button", { name: /Age/ }).click();
      expect(await page.getByRole("textbox", { name: /^Age/ }).evaluate((node) => (node.getRootNode() as ShadowRoot).activeElement === node)).toBe(true);
      await name.fill("Ada");
      expect(await page.getByText("a value is required").count()).toBe(0);
      await page.getByRole("textbox", { name: /^Age/ }).fill("36");
      expect(await alert.count()).toBe(0);
      await button(page, "Send answer").click();
      expect((await events(page))[0]).toEqual({ type: "accept", detail: { content: { name: "Ada", age: 36 } } });
    }));

  test("one press of the button is enough, although what is wrong appears above it", () =>
    on(async (page) => {
      await put(page, { request: short });
      await page.getByLabel("Name").fill("A");
      await button(page, "Send answer").click();
      await page.getByRole("alert").filter({ hasText: "Name: must have at least 2 characters" }).waitFor();
      await page.getByLabel("Name").fill("Ada");
      await page.getByRole("textbox", { name: /^Age/ }).fill("-1");
      await page.keyboard.press("Tab");
      expect(await page.getByRole("textbox", { name: /^Age/ }).getAttribute("aria-invalid")).toBe("true");
    }));

  test("a date that is half typed is not complete", () =>
    on(async (page) => {
      await put(page, { request: { message: "m", requestedSchema: { type: "object", properties: { d: { type: "string", title: "Day", format: "date" } } } } });
      await page.getByLabel("Day").focus();
      await page.keyboard.type("12");
      await button(page, "Send answer").click();
      expect(await page.getByRole("list").first().textContent()).toContain("is not complete yet");
      expect(await events(page)).toEqual([]);
    }));

  test("a refused answer stays with its reasons, and nothing is lost", () =>
    on(async (page) => {
      await put(page, { request: short });
      await page.evaluate(() => {
        const { element } = window as unknown as { element: HTMLElement };
        element.addEventListener("accept", (event) => {
          const failure = Object.assign(new Error("no"), { violations: [{ field: "name", rule: "enum", message: "is taken" }] });
          (event as unknown as { respondWith(work: Promise<unknown>): void }).respondWith(Promise.reject(failure));
        }, { once: true });
      });
      await page.getByLabel("Name").fill("Ada");
      await button(page, "Send answer").click();
      await page.locator("[part~=error]").getByText("is taken").waitFor();
      expect(await state(page)).toBe("editing");
      expect(await page.getByLabel("Name").inputValue()).toBe("Ada");
    }));

  test("while the page works on it, nothing can be pressed; preventDefault leaves everything as it was", () =>
    on(async (page) => {
      await put(page, { request: short });
      await page.evaluate(() => {
        const { element } = window as unknown as { element: HTMLElement };
        const work = new Promise((done) => Object.assign(window, { done }));
        element.addEventListener("accept", (event) => (event as unknown as { respondWith(work: Promise<unknown>): void }).respondWith(work), { once: true });
        element.addEventListener("decline", (event) => event.preventDefault());
      });
      await page.getByLabel("Name").fill("Ada");
      await button(page, "Decline").click();
      expect(await state(page)).toBe("editing");
      await button(page, "Send answer").click();
      expect(await state(page)).toBe("submitting");
      expect(await button(page, "Decline").isDisabled()).toBe(true);
      await page.evaluate("done()");
      await expect.poll(() => state(page)).toBe("done");
    }));
});

describe("keyboard", () => {
  test("a form is answered without a pointer", () =>
    on(async (page) => {
      await put(page, {
        request: { message: "m", requestedSchema: { type: "object", properties: { a: { type: "string", title: "A" }, n: { type: "integer", title: "N" }, c: { type: "string", title: "C", enum: ["x", "y"] }, s: { type: "array", title: "S", items: { enum: ["p", "q"] } } }, required: ["a", "c"] } },
      });
      await page.evaluate("element.focusFirst()");
      await focused(page, "f0");
      await page.keyboard.type("text");
      await page.keyboard.press("Tab");
      await page.keyboard.press("ArrowUp");
      await page.keyboard.press("ArrowUp");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Space");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Space");
      await page.keyboard.press("Control+Enter");
      expect(await events(page)).toEqual([{ type: "accept", detail: { content: { a: "text", n: 1, c: "y", s: ["q"] } } }]);
    }));

  test("a key that is held down decides nothing", () =>
    on(async (page) => {
      await put(page, { request: confirm });
      await button(page, "Send answer").focus();
      const held = () => page.evaluate("element.shadowRoot.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', repeat: true, bubbles: true, cancelable: true, composed: true }))");
      expect(await held()).toBe(false);
      await put(page, { request: short });
      await page.getByLabel("Name").fill("Ada");
      expect(await held()).toBe(false);
      expect(await events(page)).toEqual([]);
    }));

  test("ask shows a request without taking the focus, and returns what the person does", () =>
    on(async (page) => {
      await page.evaluate(async (request) => {
        const chat = document.createElement("textarea");
        document.querySelector("#place")!.append(chat);
        chat.focus();
        const { ask } = window as unknown as { ask(request: object, context: object): Promise<unknown> };
        const stop = new AbortController();
        Object.assign(window, { chat, stop, first: ask(request, { server: "files", signal: new AbortController().signal }), second: ask(request, { server: "other", signal: stop.signal }).catch((error: { code: string }) => error.code) });
      }, short);
      await page.getByRole("heading", { name: "Who are you?" }).first().waitFor();
      expect(await page.locator("[part~=origin]").first().textContent()).toBe("files asks");
      expect(await page.evaluate("document.activeElement === chat")).toBe(true);
      await page.evaluate("stop.abort()");
      expect(await page.evaluate("second")).toBe("withdrawn");
      await page.getByLabel("Name").fill("Ada");
      await button(page, "Send answer").click();
      expect(await page.evaluate("first")).toEqual({ action: "accept", content: { name: "Ada" } });
      expect(await page.locator("mcp-elicitation").count()).toBe(0);
    }));

  test("Escape cancels, and asks first where something was entered", () =>
    on(async (page) => {
      await put(page, { request: short });
      await page.evaluate("element.focusFirst()");
      await focused(page, "f0");
      await page.keyboard.press("Escape");
      expect(await events(page)).toEqual([{ type: "cancel", detail: { dirty: false } }]);
      await put(page, { request: short });
      await page.getByLabel("Name").fill("Ada");
      await page.keyboard.press("Escape");
      expect(await page.getByRole("dialog").textContent()).toContain("Cancel this question?");
      await page.keyboard.press("Escape");
      expect(await events(page)).toEqual([]);
      expect(await page.getByLabel("Name").inputValue()).toBe("Ada");
      await page.getByLabel("Name").focus();
      await page.keyboard.press("Escape");
      await button(page, "Cancel the question").click();
      expect(await events(page)).toEqual([{ type: "cancel", detail: { dirty: true } }]);
    }));

  test("the search box: Escape clears it, Down enters the list, Enter picks the only match", () =>
    on(async (page) => {
      await put(page, { request: everyKind });
      const find = page.getByLabel("Search the options of Regions");
      await find.fill("région 13");
      await find.press("Enter");
      expect(await page.getByRole("checkbox", { name: "Region 13" }).isChecked()).toBe(true);
      await find.press("Escape");
      expect(await find.inputValue()).toBe("");
      expect(await events(page)).toEqual([]);
      await find.press("ArrowDown");
      await page.keyboard.press("Space");
      expect(await page.getByRole("checkbox", { name: "Region 0" }).isChecked()).toBe(true);
      expect(await page.locator("[part~=tally]").textContent()).toBe("Chosen: Region 0, Region 13");
    }));

  test("Enter in a text field goes on; pasted line breaks are kept", () =>
    on(async (page) => {
      await put(page, { request: short });
      const name = page.getByLabel("Name");
      await name.evaluate((input) => {
        const data = new DataTransfer();
        data.setData("text/plain", "two\nlines");
        input.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
      });
      expect(await name.inputValue()).toBe("two\nlines");
      await page.getByRole("textbox", { name: /^Age/ }).press("Enter");
      expect(await events(page)).toEqual([{ type: "accept", detail: { content: { name: "two\nlines" } } }]);
    }));
});

describe("review", () => {
  test("shows exactly what is sent, and leads back", () =>
    on(async (page) => {
      await put(page, { request: everyKind }, { review: "" });
      await page.getByRole("textbox", { name: /^Replicas/ }).fill("1 0");
      await page.getByRole("textbox", { name: /^Replicas/ }).fill("1e1");
      await page.getByRole("checkbox", { name: "Run the migrations" }).check();
      await page.getByRole("checkbox", { name: "Region 2", exact: true }).check();
      await button(page, "Review answers").click();
      expect(await state(page)).toBe("reviewing");
      const text = await page.locator("[part~=answers]").innerText();
      expect(text).toMatch(/Replicas\s+10\b/);
      expect(text).toContain("Staging (staging)");
      expect(text).toContain("Region 2 (r2)");
      expect(text).toMatch(/Note\s+no answer/);
      expect(await events(page)).toEqual([]);
      await button(page, "Change answers").click();
      await page.getByLabel("Release name").fill("Other");
      await page.getByLabel("Release name").press("Enter");
      await button(page, "Send answer").click();
      expect((await events(page))[0]!.detail["content"]).toMatchObject({ name: "Other", replicas: 10, regions: ["r2"] });
    }));
});

describe("url mode", () => {
  test("the whole address is shown, opened only on a click, and agreed to afterwards", () =>
    on(async (page) => {
      await put(page, { request: url, origin });
      const link = page.getByRole("link", { name: "Open in a new tab" });
      expect(await link.getAttribute("href")).toBe(url.url);
      expect(await link.getAttribute("rel")).toBe("noopener noreferrer");
      expect(await page.getByRole("group", { name: "The whole address" }).textContent()).toBe(url.url);
      expect(await page.locator("[part~=address] b").textContent()).toBe("login.example.org:8443");
      expect(await page.getByRole("note").textContent()).toContain("8443");
      expect(page.context().pages().length).toBe(1);
      await button(page, "I have done this").click();
      expect(await events(page)).toEqual([{ type: "accept", detail: {} }]);
    }));

  test.each([
    ["http://user:pw@xn--80ak6aa92e.com/", ["encrypted", "user name", "scripts"]],
    ["https://192.168.0.1/", ["number"]],
    [`https://example.org/${"x".repeat(300)}`, ["long"]],
  ])("cautions: %s", (address, words) =>
    on(async (page) => {
      await put(page, { request: { ...url, url: address } });
      const note = (await page.getByRole("note").textContent()) ?? "";
      for (const word of words) expect(note).toContain(word);
    }));

  test.each(["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "no address"])("%s is text and cannot be opened", (address) =>
    on(async (page) => {
      await put(page, { request: { ...url, url: address } });
      expect(await state(page)).toBe("refused");
      expect(await page.getByRole("link").count()).toBe(0);
      expect(await page.getByRole("note").textContent()).toContain(address);
      await button(page, "Decline").click();
      expect(await events(page)).toEqual([{ type: "decline", detail: {} }]);
    }));
});

describe("parts that are loaded later", () => {
  /** Opens the page with requests for a part as `answer` says; a refused one is told on the console. */
  async function without(part: string, answer: (page: Page, go: () => Promise<void>) => Promise<void>) {
    const { page } = await web.open();
    try {
      let held: () => void;
      const gate = new Promise<void>((go) => (held = go));
      let refuse = true;
      await page.route(`**/${part}-*.js`, async (route) => {
        await gate;
        return refuse ? route.abort() : route.continue();
      });
      await answer(page, async () => {
        const asked = page.waitForResponse(`**/${part}-*.js`);
        refuse = false;
        held();
        await asked;
      });
    } finally {
      await page.unrouteAll({ behavior: "ignoreErrors" });
      await page.close();
    }
  }
  const missing = async (part: string, steps: (page: Page) => Promise<void>) => {
    const { page } = await web.open();
    try {
      await page.route(`**/${part}-*.js`, (route) => route.abort());
      await steps(page);
    } finally {
      await page.close();
    }
  };

  test("while one loads, nothing of the question before can be pressed; then the wanted focus is there", () =>
    without("moment", async (page, go) => {
      await put(page, { request: short });
      await page.getByLabel("Name").fill("Ada");
      await page.evaluate((request) => {
        const element = document.querySelector("mcp-elicitation")!;
        element.request = request;
        element.focusFirst();
      }, everyKind);
      expect(await page.getByRole("button").count()).toBe(0);
      await page.keyboard.press("Control+Enter");
      expect(await events(page)).toEqual([]);
      await go();
      await focused(page, "f0");
      await page.keyboard.press("End");
      await page.keyboard.type(" two");
      expect(await page.getByLabel("Release name").inputValue()).toBe("Autumn release two");
    }));

  test("while the part for typing loads no number can be stepped; then every press counts", () =>
    without("typing", async (page, go) => {
      await put(page, { request: { message: "How many?", requestedSchema: { type: "object", properties: { n: { type: "integer", title: "N" } } } } });
      await page.evaluate("element.focusFirst()");
      expect(await page.getByRole("textbox").count()).toBe(0);
      await go();
      await focused(page, "f0");
      for (const key of ["ArrowUp", "ArrowUp", "ArrowUp", "Control+Enter"]) await page.keyboard.press(key);
      expect(await events(page)).toEqual([{ type: "accept", detail: { content: { n: 2 } } }]);
    }));

  test("without the part for a date and time it is typed as text", () =>
    missing("moment", async (page) => {
      await put(page, { request: { message: "When?", requestedSchema: { type: "object", properties: { start: { type: "string", title: "Start", format: "date-time" } } } } });
      // What can be written in many ways is read by the part, too.
      await page.getByLabel("Start").fill("2026-07-30 09:00+02:00");
      await button(page, "Send answer").click();
      await page.getByRole("alert").filter({ hasText: "such as 2026-02-28T09:30:00Z" }).waitFor();
      expect(await events(page)).toEqual([]);
      await page.getByLabel("Start").fill("2026-07-30T09:00:00+02:00");
      await button(page, "Send answer").click();
      expect(await events(page)).toEqual([{ type: "accept", detail: { content: { start: "2026-07-30T09:00:00+02:00" } } }]);
    }));

  test("without the part for typing a number is typed plainly", () =>
    missing("typing", async (page) => {
      await put(page, { request: { message: "How many?", requestedSchema: { type: "object", properties: { n: { type: "number", title: "N" } } } } });
      await page.getByRole("textbox", { name: "N" }).fill("1,5");
      await page.keyboard.press("ArrowUp");
      await button(page, "Send answer").click();
      await page.getByRole("alert").filter({ hasText: "must be a number" }).waitFor();
      await page.getByRole("textbox", { name: "N" }).fill("1.5");
      await button(page, "Send answer").click();
      expect(await events(page)).toEqual([{ type: "accept", detail: { content: { n: 1.5 } } }]);
    }));

  test("without the question whether to cancel, Escape cancels", () =>
    missing("sure", async (page) => {
      await put(page, { request: short });
      await page.getByLabel("Name").fill("Ada");
      await page.keyboard.press("Escape");
      await page.waitForFunction(() => document.querySelector("mcp-elicitation")!.state === "done");
      expect(await events(page)).toEqual([{ type: "cancel", detail: { dirty: true } }]);
    }));

  test("without the clock the time to answer runs out all the same", () =>
    missing("clock", async (page) => {
      await put(page, { request: short, deadline: Date.now() + 1_500 });
      expect(await state(page)).toBe("editing");
      await page.waitForFunction(() => document.querySelector("mcp-elicitation")!.state === "expired");
      expect(await events(page)).toEqual([]);
    }));

  test("without the search a long list is a long list", () =>
    missing("search", async (page) => {
      await put(page, { request: { message: "Where?", requestedSchema: { type: "object", properties: { regions: everyKind.requestedSchema.properties.regions } } } });
      await page.getByRole("checkbox", { name: "Region 13" }).check();
      await button(page, "Send answer").click();
      expect(await events(page)).toEqual([{ type: "accept", detail: { content: { regions: ["r13"] } } }]);
    }));

  test("without the review nothing is sent", () =>
    missing("review", async (page) => {
      await put(page, { request: short }, { review: "" });
      await page.getByLabel("Name").fill("Ada");
      await button(page, "Review answers").click();
      await page.getByRole("alert").filter({ hasText: "Nothing is lost" }).waitFor();
      expect(await state(page)).toBe("editing");
      expect(await events(page)).toEqual([]);
    }));

  test("a part that could not be loaded is tried again with the next question", () =>
    missing("visit", async (page) => {
      await put(page, { request: url });
      await page.getByRole("note").filter({ hasText: "could not be loaded" }).waitFor();
      await page.unrouteAll();
      await put(page, { request: { ...url, message: "Once more." } });
      await page.getByRole("link", { name: "Open in a new tab" }).waitFor();
    }));

  test("without the part for addresses none can be opened or agreed to", () =>
    missing("visit", async (page) => {
      await put(page, { request: url });
      await page.getByRole("note").filter({ hasText: "could not be loaded" }).waitFor();
      expect(await page.getByText(url.url).count()).toBe(1);
      expect(await page.getByRole("link").count()).toBe(0);
      await page.evaluate(() => document.querySelector("mcp-elicitation")!.submit());
      expect(await events(page)).toEqual([]);
      expect(await findings(page)).toEqual([]);
      await button(page, "Decline").click();
      expect(await events(page)).toEqual([{ type: "decline", detail: {} }]);
    }));
});

describe("forms as servers send them", () => {
  const sent = {
    message: "m",
    requestedSchema: {
      type: "object",
      properties: {
        level: { type: "integer", enum: [1, 2, 3], title: "Level", default: 2 },
        size: { oneOf: [{ const: 10, title: "Small" }, { const: 20, title: "Large" }], title: "Size" },
        tags: { type: "array", items: { type: "string" }, title: "Tags", default: ["red"] },
        port: { anyOf: [{ type: "integer" }, { type: "string" }], title: "Port or name" },
        nick: { anyOf: [{ type: "string" }, { type: "null" }], default: null, title: "Nick" },
        id: { type: "string", format: "uuid", title: "Id" },
        both: { type: "array", items: { type: "boolean", enum: [true, false] }, title: "Both" },
      },
      required: ["level", "tags"],
    },
  };

  test("are shown, and what is sent has the types that the server asks for", () =>
    on(async (page) => {
      await put(page, { request: sent });
      expect(await page.getByRole("radio", { name: "2" }).isChecked()).toBe(true);
      expect(await page.getByLabel("Tags").inputValue()).toBe("red");
      await page.getByRole("radio", { name: "3" }).check();
      await page.getByRole("radio", { name: "Large" }).check();
      await page.getByLabel("Tags").fill("red\nblue, dark\n\n");
      await page.getByLabel("Port or name").fill("8080");
      await page.getByRole("checkbox", { name: "true" }).check();
      expect(await page.getByText("the server asks for the format `uuid`, which is not checked here").count()).toBe(1);
      expect(await findings(page)).toEqual([]);
      await button(page, "Send answer").click();
      expect((await events(page)).at(-1)!.detail).toEqual({ content: { level: 3, size: 20, tags: ["red", "blue, dark"], port: 8080, both: [true] } });
    }));

  test("a union takes a text that is no number, and a rule that is broken is told", () =>
    on(async (page) => {
      const tags = { type: "array", items: { type: "integer", minimum: 1 }, minItems: 2, title: "Numbers" };
      await put(page, { request: { message: "m", requestedSchema: { type: "object", properties: { ...sent.requestedSchema.properties, tags }, required: ["tags"] } } });
      await page.getByLabel("Port or name").fill("https");
      await page.getByLabel("Numbers").fill("0");
      await button(page, "Send answer").click();
      expect(await events(page)).not.toContainEqual(expect.objectContaining({ type: "accept" }));
      expect(await page.getByRole("alert").textContent()).toContain("write at least 2 lines");
      await page.getByLabel("Numbers").fill("4\n5");
      await button(page, "Send answer").click();
      expect((await events(page)).at(-1)!.detail).toEqual({ content: { level: 2, tags: [4, 5], port: "https" } });
    }));

  test("a question without fields, however it says so, asks to confirm", () =>
    on(async (page) => {
      for (const requestedSchema of [undefined, null, {}, [], { type: "object", properties: [] }]) {
        await put(page, { request: { message: "Go on?", requestedSchema } });
        await button(page, "Send answer").click();
        expect((await events(page)).at(-1)!.detail).toEqual({ content: {} });
      }
    }));
});

describe("states", () => {
  test("an illegal schema is refused with pointer and code; decline and cancel remain", () =>
    on(async (page) => {
      await put(page, { request: { message: "m", requestedSchema: { type: "object", properties: { a: { type: "object" } } } } });
      await page.getByRole("note").waitFor();
      expect(await state(page)).toBe("refused");
      expect(await page.getByRole("note").textContent()).toContain("/properties/a/type: nested");
      await button(page, "Not now").or(button(page, "Cancel")).click();
      expect(await events(page)).toEqual([{ type: "cancel", detail: { dirty: false } }]);
    }));

  test("withdrawn and expired questions are no act of a person", () =>
    on(async (page) => {
      await put(page, { request: short });
      await page.getByLabel("Name").fill("Ada");
      await page.evaluate("element.withdraw()");
      expect(await state(page)).toBe("withdrawn");
      expect(await page.getByRole("button").count()).toBe(0);
      await put(page, { request: short, deadline: 1 });
      expect(await state(page)).toBe("expired");
      expect(await events(page)).toEqual([]);
    }));

  test("properties that were set before the element is defined are taken over, and equal ones keep what was entered", () =>
    on(async (page) => {
      await put(page, { request: short });
      await page.getByLabel("Name").fill("Ada");
      await page.evaluate((request) => {
        const { element } = window as unknown as { element: { request: unknown; labels: unknown } };
        element.request = request;
        element.labels = {};
      }, short);
      expect(await page.getByLabel("Name").inputValue()).toBe("Ada");
      await page.evaluate(() => {
        const { element } = window as unknown as { element: { labels: unknown } };
        element.labels = { accept: "Antwort senden", messages: ({ rule }: { rule: string }) => `Regel ${rule}` };
      });
      expect(await page.getByLabel("Name").inputValue()).toBe("Ada");
      await page.getByLabel("Name").fill("A");
      await button(page, "Antwort senden").click();
      expect(await page.getByRole("alert").textContent()).toContain("Regel minLength");
    }));

  test("a draft may come before its request, and lies over the defaults", () =>
    on(async (page) => {
      await put(page, { draft: { replicas: "7" }, request: everyKind });
      expect(await page.getByRole("textbox", { name: /^Replicas/ }).inputValue()).toBe("7");
      expect(await page.getByLabel("Release name").inputValue()).toBe("Autumn release");
      expect(await page.evaluate("element.matches(':state(editing)')")).toBe(true);
    }));

  test("it takes part in a form", () =>
    on(async (page) => {
      await put(page, { request: short }, { name: "answer" });
      await page.evaluate(() => {
        const form = document.createElement("form");
        document.querySelector("#place")!.append(form);
        form.append((window as unknown as { element: Node }).element);
      });
      const value = () => page.evaluate(() => new FormData(document.querySelector("form")!).get("answer"));
      expect(await value()).toBe(null);
      expect(await page.evaluate("document.querySelector('form').checkValidity()")).toBe(false);
      await page.getByLabel("Name").fill("Ada");
      expect(await value()).toBe('{"name":"Ada"}');
      expect(await page.evaluate("document.querySelector('form').checkValidity()")).toBe(true);
      await page.evaluate("document.querySelector('form').reset()");
      expect(await page.getByLabel("Name").inputValue()).toBe("");
    }));
});

describe("hostile requests", () => {
  test("markup and bidi characters in every text show as text", () =>
    on(async (page) => {
      const evil = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>\u202egpj';
      await put(page, {
        origin: { server: evil, claimed: evil, version: evil, connection: evil, tool: { name: evil, arguments: { [evil]: evil } } },
        request: {
          message: evil,
          requestedSchema: {
            type: "object",
            properties: {
              [evil]: { type: "string", title: evil, description: evil, pattern: "^[<]", default: "<b>" },
              c: { type: "string", title: evil, oneOf: [{ const: evil, title: evil }] },
              m: { type: "array", title: evil, items: { enum: [evil] } },
            },
          },
        },
      });
      expect(await page.evaluate("element.shadowRoot.querySelectorAll('img,script,b').length")).toBe(0);
      expect(await page.evaluate("window.pwned")).toBe(undefined);
      const text = (await page.evaluate("element.shadowRoot.textContent")) as string;
      expect(text).not.toContain("\u202e");
      expect(text).toContain("‹U+202E›");
      await page.evaluate("element.setAttribute('review','')");
      await button(page, "Review answers").click();
      expect(await page.evaluate("element.shadowRoot.querySelectorAll('img,script').length")).toBe(0);
    }));

  test.each([
    ["a number in place of the request", 5, "not-an-object"],
    ["a list of something in place of the schema", { message: "m", requestedSchema: [1] }, "not-an-object"],
    ["a mode that there is not", { mode: "x", message: "m", requestedSchema: { type: "object", properties: {} } }, "not a legal question"],
    ["no address", { mode: "url", message: "m" }, "not a legal question"],
    ["an object in place of an address", { mode: "url", message: "m", url: { toString: 1 } }, '{"toString":1}'],
    ["a script behind control characters", { mode: "url", message: "m", url: " \u0001java\tscript:alert(1)" }, "javascript:alert"],
    ["objects in place of texts", { message: { toString: 1 }, requestedSchema: { type: "object", properties: { a: { type: "string", title: {}, description: [] } } } }, "/properties/a/title"],
    ["257 fields", { message: "m", requestedSchema: { type: "object", properties: Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`f${i}`, { type: "string" }])) } }, "too-many-fields"],
  ])("%s is refused, and can be declined", (_, request, reason) =>
    on(async (page) => {
      await put(page, { request, origin: { server: null, claimed: { a: 1 }, version: 5, tool: { name: null, arguments: "ab" } } });
      await page.getByRole("note").waitFor();
      expect(await state(page)).toBe("refused");
      expect(((await page.getByRole("note").textContent()) ?? "").replace("java script", "javascript")).toContain(reason);
      await page.evaluate("element.submit()");
      expect(await page.getByRole("link").count()).toBe(0);
      await button(page, "Decline").click();
      expect(await events(page)).toEqual([{ type: "decline", detail: {} }]);
    }));

  test("a pattern and a default that would stop the page do not: the default is left out", () =>
    on(async (page) => {
      const requestedSchema = { type: "object", properties: { a: { type: "string", title: "A", pattern: "([a-z]{99}){99}b", default: "a".repeat(1_000_000) } } };
      await put(page, { request: { message: "m", requestedSchema } });
      expect(await page.getByRole("textbox").inputValue()).toBe("");
    }));

  test("five hundred options are shown and found; ten megabytes are refused", () =>
    on(async (page) => {
      await put(page, { request: { message: "m", requestedSchema: { type: "object", properties: { c: { type: "string", title: "C", enum: Array.from({ length: 500 }, (_, i) => `o${i}`) } } } } });
      await page.getByLabel("Search the options of C").fill("o499");
      await page.getByRole("radio", { name: "o499" }).check();
      await button(page, "Send answer").click();
      expect((await events(page))[0]!.detail).toEqual({ content: { c: "o499" } });
      await page.evaluate(() => {
        const { element } = window as unknown as { element: { request: unknown } };
        element.request = { message: "m", requestedSchema: { type: "object", properties: { a: { type: "string", description: "x".repeat(10_000_000) } } } };
      });
      expect(await page.getByRole("note").textContent()).toContain("too-large");
      await page.evaluate(() => {
        const { element } = window as unknown as { element: { request: unknown } };
        element.request = { message: "y".repeat(10_000_000), requestedSchema: { type: "object", properties: {} } };
      });
      expect(((await page.evaluate("element.shadowRoot.textContent")) as string).length).toBeLessThan(40_000);
    }));
});

const LOOKS: readonly { name: string; request: object; attributes?: Record<string, string>; then?: (page: Page) => Promise<unknown> }[] = [
  { name: "editing", request: everyKind },
  { name: "wrong", request: everyKind, then: async (page) => (await page.getByLabel("Release name").fill("x"), page.getByRole("button", { name: "Send answer" }).click()) },
  {
    name: "reviewing",
    request: everyKind,
    attributes: { review: "" },
    then: async (page) => {
      await page.getByRole("checkbox", { name: "Region 2", exact: true }).check();
      await page.getByRole("button", { name: "Review answers" }).click();
    },
  },
  { name: "url", request: url },
  { name: "deploy", request: deploy, then: async (page) => (await page.getByLabel("Release name").fill("Autumn"), page.getByRole("checkbox", { name: "Run the migrations" }).check()) },
  { name: "yes-no", request: yesNo },
  { name: "yes-no-neither", request: yesNo, then: (page) => page.getByText("Neither: decline or cancel").click() },
  { name: "details", request: short, then: (page) => page.getByText("Details").click() },
  { name: "pattern", request: ticket, then: async (page) => (await page.getByText("Pattern").click(), page.getByRole("textbox", { name: "Ticket" }).fill("x"), page.getByRole("button", { name: "Send answer" }).click()) },
  {
    name: "wrong-deploy",
    request: deploy,
    then: async (page) => {
      await page.getByLabel("Release name").fill("x");
      await page.getByRole("textbox", { name: /^Replicas/ }).fill("99");
      await page.getByRole("button", { name: "Send answer" }).click();
    },
  },
  { name: "refused", request: { message: "m", requestedSchema: { type: "object", properties: { a: { type: "object" } } } } },
  { name: "confirm", request: confirm },
  { name: "done", request: confirm, then: (page) => page.getByRole("button", { name: "Send answer" }).click() },
  { name: "loading", request: null as never },
  { name: "withdrawn", request: short, then: (page) => page.evaluate("element.withdraw()") },
  {
    name: "submitting",
    request: short,
    then: async (page) => {
      await page.evaluate("element.addEventListener('accept', (event) => event.respondWith(new Promise(() => {})))");
      await page.getByLabel("Name").fill("Ada");
      await page.getByRole("button", { name: "Send answer" }).click();
    },
  },
  { name: "sure", request: short, then: async (page) => (await page.getByLabel("Name").fill("x"), page.keyboard.press("Escape")) },
];
const VIEWS = [
  { name: "light", options: {} },
  { name: "dark", options: { colorScheme: "dark" } },
  { name: "narrow", options: { width: 320 } },
  { name: "forced", options: { forcedColors: "active" } },
  { name: "rtl", options: { width: 320 } },
] as const;

describe("looks", () => {
  const folder = join(import.meta.dirname, "screenshots");
  const keep = process.env["SCREENSHOTS"];
  if (keep) mkdirSync(folder, { recursive: true });

  test.each(VIEWS.flatMap((view) => LOOKS.filter((look) => (view.name !== "forced" && view.name !== "rtl") || ["editing", "wrong", "yes-no", "url"].includes(look.name)).map((look) => [`${look.name}, ${view.name}`, look, view] as const)))("axe finds nothing: %s", (_, look, view) =>
    on(async (page) => {
      if (view.name === "rtl") await page.evaluate("document.documentElement.dir = 'rtl'");
      await put(page, { request: look.request, origin, deadline: Date.now() + 595_000 }, look.attributes);
      await look.then?.(page);
      if (keep) await page.screenshot({ path: join(folder, `${look.name}-${view.name}.png`), fullPage: true });
      expect(await findings(page)).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    }, view.options));
});
