// Prints what a page loads for each entry, minified and gzipped: with the first question, and with every part that a question may need
// later. Fails above the bounds.
import { basename, join, relative } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { LATER, smaller } from "./build.mjs";
import { cssText } from "./css.mjs";

const packages = join(import.meta.dirname, "../packages");
/** Bytes after gzip -9, by entry: what is loaded at first, and in all. React itself is not counted. */
const BOUNDS = {
  "form/src/standalone.ts": [15_000, 40_500],
  "form/src/element.ts": [15_000, 40_500],
  "form/src/define.ts": [15_000, 40_800],
  "form/src/index.ts": [11_900, 21_200],
  "react/src/index.ts": [24_200, 48_000],
};

let failed = false;
for (const [entry, bounds] of Object.entries(BOUNDS)) {
  const { outputFiles, metafile } = await build({
    // The later parts have the names that they have in the package.
    entryPoints: { entry: join(packages, entry), ...(/element|define|standalone/.test(entry) && Object.fromEntries(LATER.map((name) => [`later/${name}`, join(packages, `form/src/element/later/${name}.ts`)]))) },
    absWorkingDir: packages,
    outdir: "dist",
    bundle: true,
    splitting: true,
    write: false,
    metafile: true,
    format: "esm",
    target: "es2022",
    minify: true,
    charset: "utf8",
    plugins: [cssText],
    external: ["react", "react/jsx-runtime", "react-dom"],
    jsx: "automatic",
    logLevel: "error",
  });
  const sizes = new Map();
  for (const { path, text } of outputFiles) sizes.set(relative(packages, path), gzipSync(await smaller(text), { level: 9 }).length);
  const first = new Set();
  const visit = (path) => {
    if (first.has(path)) return;
    first.add(path);
    for (const { path: next, kind, external } of metafile.outputs[path].imports) if (kind === "import-statement" && !external) visit(next);
  };
  visit(Object.keys(metafile.outputs).find((path) => metafile.outputs[path].entryPoint?.endsWith(entry)));
  const total = (paths) => paths.reduce((sum, path) => sum + sizes.get(path), 0);
  const later = [...sizes.keys()].filter((path) => !first.has(path));
  const measured = [total([...first]), total([...sizes.keys()])];
  console.log(`${entry}: ${measured[0]} bytes gzipped at first (bound ${bounds[0]}), ${measured[1]} with all of ${later.length} later parts (bound ${bounds[1]})`);
  for (const path of later) console.log(`  later: ${basename(path)} ${sizes.get(path)}`);
  failed ||= measured.some((bytes, i) => bytes > bounds[i]);
}
if (failed) {
  console.error("over the bound");
  process.exit(1);
}
