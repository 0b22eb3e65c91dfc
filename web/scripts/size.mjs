// Prints what a page loads for each entry, minified and gzipped, and fails above the bounds.
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { smaller } from "./build.mjs";
import { cssText } from "./css.mjs";

const form = join(import.meta.dirname, "../packages/form/src");
/** Bytes after gzip -9, by entry. */
const BOUNDS = { define: 20_000, index: 13_000 };

let failed = false;
for (const [name, bound] of Object.entries(BOUNDS)) {
  const { outputFiles } = await build({ entryPoints: [join(form, `${name}.ts`)], bundle: true, write: false, format: "esm", target: "es2022", minify: true, charset: "utf8", plugins: [cssText] });
  const code = await smaller(outputFiles[0].text);
  const bytes = gzipSync(code, { level: 9 }).length;
  console.log(`@mcp-elicit/form ${name}: ${bytes} bytes gzipped (${code.length} minified), bound ${bound}`);
  failed ||= bytes > bound;
}
if (failed) {
  console.error("over the bound");
  process.exit(1);
}
