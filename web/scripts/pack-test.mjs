// Packs @mcp-elicit/form, installs the tarball into an empty folder, and tries the lines of its README there: types, a build, an answer.
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

const root = join(import.meta.dirname, "..");
const form = join(root, "packages/form");
const folder = await mkdtemp(join(tmpdir(), "mcp-elicit-pack-"));
const npm = (...args) => execFileSync("npm", args, { cwd: folder, stdio: ["ignore", "pipe", "inherit"], encoding: "utf8", env: { ...process.env, npm_config_ignore_scripts: "true" } });
const say = (what) => console.log(`pack: ${what}`);

try {
  const [{ filename, files }] = JSON.parse(npm("pack", form, "--json", "--silent"));
  const tarball = join(folder, filename);
  const names = files.map(({ path }) => path);
  if (names.some((name) => !/^(dist\/|README\.md$|package\.json$)/.test(name)) || !names.includes("README.md")) throw new Error(`unexpected files: ${names.join(", ")}`);
  say(`${filename}, ${names.length} files`);

  const { messages, pkg } = await publint({ pkgDir: form, strict: true });
  if (messages.length) throw new Error(messages.map((message) => formatMessage(message, pkg)).join("\n"));
  say("publint finds nothing");

  const { problems } = await checkPackage(createPackageFromTarballData(new Uint8Array(await readFile(tarball))));
  // The package is ESM only: `require` of it works from Node 20.19 on, and resolution without `exports` is that of Node 10.
  const wrong = problems.filter(({ kind, resolutionKind }) => kind !== "CJSResolvesToESM" && resolutionKind !== "node10");
  if (wrong.length) throw new Error(JSON.stringify(wrong, null, 2));
  say("the types of every entry resolve");

  await writeFile(join(folder, "package.json"), '{"private":true,"type":"module"}');
  const { devDependencies } = JSON.parse(await readFile(join(form, "package.json"), "utf8"));
  npm("install", "--silent", "--no-audit", "--no-fund", tarball, ...["client", "server"].map((name) => `@modelcontextprotocol/${name}@${devDependencies[`@modelcontextprotocol/${name}`]}`));
  const readme = await readFile(join(folder, "node_modules/@mcp-elicit/form/README.md"), "utf8");
  const [, lines] = /```ts\n(import[^`]*?)```/.exec(readme);
  const count = lines.trim().split("\n").filter((line) => line.trim() && !line.startsWith("//")).length;
  if (count > 7) throw new Error(`the quick start has ${count} lines`);
  // A server in the page itself takes the place of a transport to one.
  await writeFile(
    join(folder, "server.ts"),
    `import { InMemoryTransport } from "@modelcontextprotocol/client";
import { McpServer } from "@modelcontextprotocol/server";
export const [transport, other] = InMemoryTransport.createLinkedPair();
const server = new McpServer({ name: "asker", version: "1.0.0" });
server.registerTool("ask", {}, async () => {
  const answer = await server.server.elicitInput({ message: "Who are you?", requestedSchema: { type: "object", properties: { name: { type: "string", title: "Name" } }, required: ["name"] } });
  return { content: [{ type: "text", text: JSON.stringify(answer) }] };
});
await server.connect(other);
`,
  );
  await writeFile(join(folder, "main.ts"), `import { transport } from "./server.js";\n${lines}\ndocument.title = JSON.stringify(await client.callTool({ name: "ask" }));\n`);
  // The SDK's declarations are not ours to check; our own are checked in a second run.
  await writeFile(join(folder, "entries.ts"), ["", "/element", "/define", "/explain"].map((entry, i) => `export * as e${i} from "@mcp-elicit/form${entry}";\n`).join(""));
  for (const [file, ...more] of [["main.ts", "--skipLibCheck"], ["entries.ts", "--exactOptionalPropertyTypes"]]) {
    const options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2023,dom,dom.iterable", ...more, file];
    execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), ...options], { cwd: folder, stdio: "inherit" });
  }
  say("the README's lines and every entry have types");

  const { outputFiles } = await build({ entryPoints: [join(folder, "main.ts")], bundle: true, write: false, format: "esm", target: "es2022", platform: "browser", logLevel: "error" });
  const server = createServer(({ url }, response) => {
    response.setHeader("content-type", url === "/main.js" ? "text/javascript" : "text/html; charset=utf-8");
    response.end(url === "/main.js" ? outputFiles[0].text : '<!doctype html><title>page</title><body><script type="module" src="/main.js"></script>');
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  try {
    const page = await browser.newPage();
    page.on("pageerror", (error) => console.error(error));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await page.getByLabel("Name").fill("Ada");
    await page.getByRole("button", { name: "Send answer" }).click();
    await page.waitForFunction(() => document.title !== "page");
    const title = await page.title();
    if (!title.includes(String.raw`\"name\":\"Ada\"`)) throw new Error(title);
    say("answered in a browser");
  } finally {
    await browser.close();
    server.close();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
