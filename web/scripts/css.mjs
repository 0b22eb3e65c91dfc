import { readFile } from "node:fs/promises";
import { transform } from "esbuild";

/** Minifies a style sheet. */
export async function minified(path) {
  const { code } = await transform(await readFile(path, "utf8"), { loader: "css", minify: true, target: "chrome123" });
  return code.trim();
}

/** An esbuild plugin: a style sheet is imported as its minified text. */
export const cssText = {
  name: "css-text",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path }) => ({ contents: await minified(path), loader: "text" }));
  },
};
