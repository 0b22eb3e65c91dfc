// Builds every package: minified modules with esbuild and terser, declarations with tsc.
import { execFileSync } from "node:child_process";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { minify } from "terser";
import { cssText } from "./css.mjs";

const root = join(import.meta.dirname, "..");

/** Minifies a module once more: terser is a twentieth smaller than esbuild alone. What bundlers are told stays. */
export async function smaller(code) {
  const { code: out } = await minify(code, { module: true, ecma: 2020, compress: { passes: 3, unsafe_arrows: true }, format: { comments: /webpackIgnore|@vite-ignore/ } });
  return out;
}

/** What can be imported from the package, and the parts that the element loads when a question needs them. */
const ENTRIES = ["index", "element", "define", "explain", "lenient", "render"];
export const LATER = ["visit", "review", "search", "moment", "typing", "clock", "sure", "lenient", "pattern", "known", "de", "fr", "es"];

export async function buildForm() {
  const form = join(root, "packages/form");
  const out = join(form, "dist");
  await rm(out, { recursive: true, force: true });
  await build({
    entryPoints: Object.fromEntries([...ENTRIES.map((name) => [name, join(form, `src/${name}.ts`)]), ...LATER.map((name) => [`later/${name}`, join(form, `src/element/later/${name}.ts`)])]),
    outdir: out,
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    minifySyntax: true,
    charset: "utf8",
    chunkNames: "chunk-[hash]",
    plugins: [cssText],
    // The sources are no part of the package: what has side effects is said of the built files.
    ignoreAnnotations: true,
    logLevel: "warning",
  });
  // One file for pages without a bundler. It shares the later parts with the others.
  await build({
    entryPoints: [join(form, "src/standalone.ts")],
    outdir: out,
    bundle: true,
    format: "esm",
    target: "es2022",
    minify: true,
    charset: "utf8",
    plugins: [cssText, { name: "later", setup: (build) => build.onResolve({ filter: /^\.\/later\// }, ({ path, kind }) => (kind === "dynamic-import" ? { path, external: true } : undefined)) }],
    logLevel: "warning",
  });
  for (const name of (await readdir(out, { recursive: true })).filter((name) => name.endsWith(".js"))) {
    const path = join(out, name);
    await writeFile(path, `${await smaller(await readFile(path, "utf8"))}\n`);
  }
  execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", join(form, "tsconfig.json")], { stdio: "inherit" });
}

/** Builds the React package after the form, whose declarations it takes. */
export async function buildReact() {
  const react = join(root, "packages/react");
  const out = join(react, "dist");
  await rm(out, { recursive: true, force: true });
  await build({
    entryPoints: [join(react, "src/index.ts")],
    outdir: out,
    bundle: true,
    packages: "external",
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    charset: "utf8",
    logLevel: "warning",
  });
  execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", join(react, "tsconfig.json")], { stdio: "inherit" });
}

/** Writes the script of the inbox's pages, which the Rust build takes as it is. It is committed, so that it needs no npm. */
export async function buildInbox() {
  await build({
    entryPoints: [join(root, "packages/inbox/src/page.js")],
    outfile: join(root, "../crates/forms/assets/page.js"),
    absWorkingDir: root,
    bundle: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    banner: { js: "// Made by `npm run build` in web/ from web/packages/inbox/src/page.js: change it there." },
    logLevel: "warning",
  });
}

if (process.argv[1] === import.meta.filename) {
  await buildInbox();
  await buildForm();
  await buildReact();
}
