// Packs the packages, installs the tarballs into an empty folder, and tries the lines of their READMEs there: types, a build with Vite, an
// answer in a browser.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { chromium } from "playwright-core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

const root = join(import.meta.dirname, "..");
const folder = await mkdtemp(join(tmpdir(), "mcp-elicit-pack-"));
const npm = (...args) => execFileSync("npm", args, { cwd: folder, stdio: ["ignore", "pipe", "inherit"], encoding: "utf8", env: { ...process.env, npm_config_ignore_scripts: "true" } });
const install = (...what) => npm("install", "--silent", "--no-audit", "--no-fund", ...what);
const say = (what) => console.log(`pack: ${what}`);
const json = async (...path) => JSON.parse(await readFile(join(...path, "package.json"), "utf8"));

/** Packs a package and judges what is in it. Returns the tarball. */
async function packed(name) {
  const source = join(root, "packages", name);
  const [{ filename, files }] = JSON.parse(npm("pack", source, "--json", "--silent"));
  const names = files.map(({ path }) => path);
  if (names.some((name) => !/^(dist\/|types\/|custom-elements\.json$|README\.md$|package\.json$)/.test(name)) || !names.includes("README.md")) throw new Error(`unexpected files: ${names.join(", ")}`);
  say(`${filename}, ${names.length} files`);

  const { messages, pkg } = await publint({ pkgDir: source, strict: true });
  if (messages.length) throw new Error(messages.map((message) => formatMessage(message, pkg)).join("\n"));
  const tarball = join(folder, filename);
  const { problems } = await checkPackage(createPackageFromTarballData(new Uint8Array(await readFile(tarball))));
  // The packages are ESM only: `require` of them works from Node 20.19 on, and resolution without `exports` is that of Node 10.
  const wrong = problems.filter(({ kind, resolutionKind }) => kind !== "CJSResolvesToESM" && resolutionKind !== "node10");
  if (wrong.length) throw new Error(JSON.stringify(wrong, null, 2));
  say(`${name}: publint finds nothing, and the types of every entry resolve`);
  return tarball;
}

/** Returns the first lines of code in the installed README of a package, which are few. */
async function quickStart(name) {
  const readme = await readFile(join(folder, "node_modules/@mcp-elicit", name, "README.md"), "utf8");
  const [, lines] = /```tsx?\n(import[^`]*?)```/.exec(readme);
  const count = lines.trim().split("\n").filter((line) => line.trim() && !/^\s*(\/\/|\})/.test(line)).length;
  if (count > 8) throw new Error(`the quick start of ${name} has ${count} lines`);
  return lines;
}

// A server in the page itself takes the place of a transport to one.
const SERVER = `import { InMemoryTransport } from "@modelcontextprotocol/client";
import { McpServer } from "@modelcontextprotocol/server";
export const [transport, other] = InMemoryTransport.createLinkedPair();
const server = new McpServer({ name: "asker", version: "1.0.0" });
server.registerTool("ask", {}, async () => {
  const answer = await server.server.elicitInput({ message: "Who are you?", requestedSchema: { type: "object", properties: { name: { type: "string", title: "Name" }, start: { type: "string", title: "Start", format: "date-time" } }, required: ["name"] } });
  return { content: [{ type: "text", text: JSON.stringify(answer) }] };
});
void server.connect(other);
`;
const CALL = "client.callTool({ name: \"ask\" }).then((result) => (document.title = JSON.stringify(result)))";
const pages = {
  form: (lines) => {
    const connected = lines.replace(/new StreamableHTTPClientTransport\(new URL\("[^"]*"\)\)/, "transport");
    const called = connected.replace(/^await client\.callTool\(.*$/m, `void ${CALL};`);
    if (connected === lines || called === connected) throw new Error("the quick start of form connects and calls in other words");
    return { "lines.ts": lines, "main.ts": `import { transport } from "./server.js";\n${called}` };
  },
  react: (lines) => ({
    "tsconfig.json": '{"compilerOptions":{"jsx":"react-jsx"}}',
    "questions.tsx": lines,
    "main.tsx": `import { useEffect } from "react";
import { createRoot } from "react-dom/client";
import { client, Questions } from "./questions.js";
import { transport } from "./server.js";
function App() {
  useEffect(() => void client.connect(transport).then(() => ${CALL}), []);
  return <Questions />;
}
createRoot(document.querySelector("#root")!).render(<App />);
`,
  }),
};

const TYPES = { ".js": "text/javascript", ".html": "text/html; charset=utf-8", ".css": "text/css" };

/** Answers the question of the built page, which is served with a strict policy for scripts. */
async function answered(browser, dist) {
  const server = createServer(async ({ url }, response) => {
    const path = url === "/" ? "/index.html" : url;
    try {
      const body = await readFile(join(dist, path));
      response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "text/plain", "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'none'" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const page = await browser.newPage();
  try {
    page.on("pageerror", (error) => console.error(error));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await page.getByLabel("Name").fill("Ada");
    // This field is of the parts that are loaded later.
    await page.getByRole("group", { name: /Start/ }).getByLabel("Time zone").fill("UTC");
    await page.getByRole("group", { name: /Start/ }).getByLabel("Date and time").fill("2026-07-30T09:00");
    await page.getByRole("button", { name: "Send answer" }).click();
    await page.waitForFunction(() => document.title !== "page");
    const title = await page.title();
    if (!title.includes(String.raw`\"name\":\"Ada\",\"start\":\"2026-07-30T09:00:00+00:00\"`)) throw new Error(title);
  } finally {
    await page.close();
    server.close();
  }
}

// Properties and events of the element, written in each kind of template; the second of each has a request that is none, or an event's
// detail that there is not.
const REQUEST = "const request: ElicitRequest = { message: \"Who?\", requestedSchema: { type: \"object\", properties: {} } };";
const TEMPLATES = {
  "right.tsx": `import type {} from "@mcp-elicit/form/jsx";
import type { ElicitRequest } from "@mcp-elicit/form";
${REQUEST}
export const Right = () => <mcp-elicitation request={request} review lang="de" className="question" deadline={new Date()} onaccept={(event) => event.detail.content} ondraft={(event) => event.detail.draft} />;
`,
  "wrong.tsx": `import type {} from "@mcp-elicit/form/jsx";
export const Wrong = () => <mcp-elicitation request={5} oncancel={(event) => event.detail.dirt} />;
`,
  "right.vue": `<script setup lang="ts">
import type {} from "@mcp-elicit/form/vue";
import type { ElicitRequest } from "@mcp-elicit/form";
${REQUEST}
</script>
<template><mcp-elicitation :request="request" :review="true" @accept="(event) => event.detail.content" @draft="(event) => event.detail.draft" /></template>
`,
  "wrong.vue": `<script setup lang="ts">
import type {} from "@mcp-elicit/form/vue";
</script>
<template><mcp-elicitation :request="5" @cancel="(event) => event.detail.dirt" /></template>
`,
  "right.svelte": `<script lang="ts">
import type {} from "@mcp-elicit/form/svelte";
import type { ElicitRequest } from "@mcp-elicit/form";
${REQUEST}
</script>
<mcp-elicitation {request} review lang="de" onaccept={(event) => event.detail.content}></mcp-elicitation>
`,
  "wrong.svelte": `<script lang="ts">
import type {} from "@mcp-elicit/form/svelte";
</script>
<mcp-elicitation request={5} oncancel={(event) => event.detail.dirt}></mcp-elicitation>
`,
};

/** Compiles the templates of each kind with its own compiler: the right ones have no mistake, and in the wrong ones both are found. */
async function compiled() {
  install("vue@3.5.45", "vue-tsc@3.3.14", "svelte@5.57.3", "svelte-check@4.7.8", `typescript@${(await json(root)).devDependencies.typescript}`);
  const options = { strict: true, noEmit: true, module: "esnext", moduleResolution: "bundler", target: "es2022", lib: ["es2023", "dom", "dom.iterable"], jsx: "react-jsx", types: [], skipLibCheck: true, verbatimModuleSyntax: true };
  const compilers = { tsx: ["typescript/bin/tsc", "-p"], vue: ["vue-tsc/bin/vue-tsc.js", "-p"], svelte: ["svelte-check/bin/svelte-check", "--output", "machine", "--tsconfig"] };
  for (const [kind, [compiler, ...more]] of Object.entries(compilers)) {
    for (const state of ["right", "wrong"]) {
      const file = `${state}.${kind}`;
      const project = join(folder, `${kind}-${state}`);
      await mkdir(project);
      await writeFile(join(project, file), TEMPLATES[file]);
      await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: options, vueCompilerOptions: { strictTemplates: true }, include: [file] }));
      const found = spawnSync(process.execPath, [join(folder, "node_modules", compiler), ...more, join(project, "tsconfig.json")], { cwd: project, encoding: "utf8" });
      const told = `${found.stdout}${found.stderr}`;
      if (state === "right" && found.status !== 0) throw new Error(`${file}: ${told}`);
      if (state === "wrong" && !(found.status !== 0 && /request|number/.test(told) && told.includes("dirt"))) throw new Error(`${file} compiles: ${told}`);
    }
    say(`form: the element has types in ${kind === "tsx" ? "JSX" : kind}`);
  }
}

/** Answers a question on a page without a bundler, from the one file of the installed package. */
async function answeredStandalone(browser) {
  const dist = join(folder, "node_modules/@mcp-elicit/form/dist");
  const schema = { type: "object", properties: { count: { type: "integer", title: "Count" }, start: { type: "string", title: "Start", format: "date-time" } }, required: ["count"] };
  const own = {
    "/": ["text/html", '<!doctype html><html lang="en"><title>page</title><script type="module" src="/standalone.js"></script><script type="module" src="/page.js"></script><mcp-elicitation></mcp-elicitation>'],
    "/page.js": ["text/javascript", `const element = document.querySelector("mcp-elicitation");
element.addEventListener("accept", (event) => (document.title = JSON.stringify(event.detail.content)));
element.request = ${JSON.stringify({ message: "How many?", requestedSchema: schema })};`],
  };
  const server = createServer(async ({ url }, response) => {
    try {
      const [type, body] = own[url] ?? ["text/javascript", await readFile(join(dist, url))];
      response.writeHead(200, { "content-type": type, "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'none'" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const page = await browser.newPage();
  const asked = [];
  try {
    page.on("pageerror", (error) => console.error(error));
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await page.getByRole("textbox", { name: "Count" }).fill("12 000");
    await page.getByLabel("Time zone").fill("UTC");
    await page.getByLabel("Date and time").fill("2026-07-30T09:00");
    await page.getByRole("button", { name: "Send answer" }).click();
    await page.waitForFunction(() => document.title !== "page");
    const title = await page.title();
    if (title !== '{"count":12000,"start":"2026-07-30T09:00:00+00:00"}') throw new Error(title);
    if (asked.some((path) => /element|index|define/.test(path))) throw new Error(`more than one file: ${asked.join(" ")}`);
  } finally {
    await page.close();
    server.close();
  }
}

let browser;
try {
  await writeFile(join(folder, "package.json"), '{"private":true,"type":"module"}');
  const tarballs = [await packed("form"), await packed("react")];
  const { devDependencies: wanted } = await json(root, "packages/react");
  const vite = (await json(root, "examples/react")).devDependencies.vite;
  const names = ["@modelcontextprotocol/client", "@modelcontextprotocol/server", "react", "react-dom", "@types/react", "@types/react-dom"];
  install(...tarballs, `vite@${vite}`, ...names.map((name) => `${name}@${wanted[name]}`));
  const compilers = [["TypeScript 5.9", join(root, "node_modules/typescript/bin/tsc")]];
  try {
    install("typescript-7@npm:typescript@7.0.2");
    compilers.push(["TypeScript 7", join(folder, "node_modules/typescript-7/bin/tsc")]);
  } catch {
    say("TypeScript 7 was not installed and is not tried");
  }

  // The SDK's declarations are not ours to check; our own are checked in a second run.
  const entries = ["form", "form/element", "form/define", "form/render", "form/standalone", "form/explain", "react"].map((entry, i) => `export * as e${i} from "@mcp-elicit/${entry}";\n`);
  await writeFile(join(folder, "entries.ts"), entries.join(""));
  const runs = [["entries.ts", "--exactOptionalPropertyTypes"]];
  for (const [name, page] of Object.entries(pages)) {
    const files = { ...page(await quickStart(name)), "server.ts": SERVER };
    await mkdir(join(folder, name));
    for (const [file, text] of Object.entries(files)) await writeFile(join(folder, name, file), text);
    const main = `main.ts${name === "react" ? "x" : ""}`;
    await writeFile(join(folder, name, "index.html"), `<!doctype html><html lang="en"><title>page</title><body><div id="root"></div><script type="module" src="/${main}"></script>`);
    runs.push([join(name, main), "--skipLibCheck"]);
    if (files["lines.ts"]) runs.push([join(name, "lines.ts"), "--skipLibCheck"]);
  }
  for (const [compiler, tsc] of compilers) {
    for (const [file, ...more] of runs) {
      const options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2023,dom,dom.iterable", "--jsx", "react-jsx", ...more, file];
      execFileSync(process.execPath, [tsc, ...options], { cwd: folder, stdio: "inherit" });
    }
    say(`${compiler}: the READMEs' lines and every entry have types`);
  }

  await compiled();

  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  for (const name of Object.keys(pages)) {
    execFileSync(process.execPath, [join(folder, "node_modules/vite/bin/vite.js"), "build", "--logLevel", "error", "--target", "es2022", join(folder, name)], { cwd: folder, stdio: "inherit" });
    await answered(browser, join(folder, name, "dist"));
    say(`${name}: built with Vite and answered in a browser`);
  }
  await answeredStandalone(browser);
  say("form: answered on a page without a bundler");
} finally {
  await browser?.close();
  await rm(folder, { recursive: true, force: true });
}
