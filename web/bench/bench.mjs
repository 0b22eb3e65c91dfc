// Bundles each work as a page of its own, prints its size, and draws the same three forms with each, in turn, in one browser.
// usage: npm ci && node bench.mjs [ROUNDS]      after `npm run build` in web/
import { createServer } from "node:http";
import { gzipSync } from "node:zlib";
import { join } from "node:path";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const rounds = Number(process.argv[2] ?? 15);
const here = import.meta.dirname;
const works = { "mcp-elicit": "ours.js", "react-jsonschema-form": "rjsf.jsx", "JSON Forms": "jsonforms.jsx", "assistant-ui": "assistant-ui.jsx" };
const forms = ["1 field", "3 fields", "12 fields"];

const scripts = new Map();
for (const [work, entry] of Object.entries(works)) {
  try {
    const { outputFiles } = await build({
      entryPoints: [join(here, "src", entry)],
      bundle: true,
      write: false,
      minify: true,
      format: "esm",
      target: "es2022",
      jsx: "automatic",
      define: { "process.env.NODE_ENV": '"production"' },
      alias: { "@mcp-elicit/form/define": join(here, "../packages/form/dist/define.js") },
      logLevel: "silent",
    });
    scripts.set(work, outputFiles[0].text);
  } catch (error) {
    console.error(`${work} was not built: ${error.errors?.[0]?.text ?? error.message}`);
  }
}

const size = (text) => (gzipSync(text, { level: 9 }).length / 1000).toFixed(1);
const ours = gzipSync(scripts.get("mcp-elicit"), { level: 9 }).length;
console.log("| library | minified, gzipped, kB | relative to mcp-elicit |\n| --- | --- | --- |");
for (const [work, text] of scripts) {
  console.log(`| ${work} | ${size(text)} | ${(gzipSync(text, { level: 9 }).length / ours).toFixed(1)} |`);
}

const server = createServer((request, response) => {
  const [, work] = /^\/(.+)\.js$/u.exec(decodeURIComponent(request.url)) ?? [];
  if (work) return response.writeHead(200, { "Content-Type": "text/javascript" }).end(scripts.get(work));
  const page = `<!doctype html><meta charset="utf-8"><title>bench</title><div id="root"></div><script type="module" src="${request.url}.js"></script>`;
  return response.writeHead(200, { "Content-Type": "text/html" }).end(page);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const base = `http://127.0.0.1:${server.address().port}/`;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const times = new Map();
const drawing = [...scripts.keys()].filter((work) => work !== "assistant-ui");
for (let round = 0; round < rounds; round++) {
  for (const form of forms) {
    for (const work of drawing) {
      const context = await browser.newContext();
      const tab = await context.newPage();
      await tab.goto(`${base}${encodeURIComponent(work)}#${encodeURIComponent(form)}`);
      await tab.waitForFunction(() => window.drawnAfter);
      const taken = await tab.evaluate(() => window.drawnAfter - performance.getEntriesByType("navigation")[0].responseEnd);
      const key = `${work}/${form}`;
      times.set(key, [...(times.get(key) ?? []), taken]);
      await context.close();
    }
  }
}
await browser.close();
server.close();

const median = (all) => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)];
console.log(`\nFrom the page's last byte to the form's pixels, ms, median of ${rounds} loads, scripts from this machine.\n`);
console.log(`| work | ${forms.join(" | ")} |\n| --- |${" --- |".repeat(forms.length)}`);
for (const work of drawing) {
  const cells = forms.map((form) => `${median(times.get(`${work}/${form}`)).toFixed(1)} (${(median(times.get(`${work}/${form}`)) / median(times.get(`mcp-elicit/${form}`))).toFixed(1)})`);
  console.log(`| ${work} | ${cells.join(" | ")} |`);
}
