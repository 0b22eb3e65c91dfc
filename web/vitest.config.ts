import { defineConfig } from "vitest/config";
import { minified } from "./scripts/css.mjs";

/** A style sheet is imported as its text, as in the build. */
const cssText = {
  name: "css-text",
  enforce: "pre" as const,
  async load(id: string) {
    return id.endsWith(".css") ? `export default ${JSON.stringify(await minified(id))}` : undefined;
  },
};

export default defineConfig({
  plugins: [cssText],
  test: {
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: "unit", testTimeout: 60_000, include: ["packages/*/test/**/*.test.{ts,tsx}"], exclude: ["**/*.browser.test.*"] } },
      { extends: true, test: { name: "browser", include: ["packages/*/test/**/*.browser.test.ts"], testTimeout: 60_000, hookTimeout: 60_000, fileParallelism: false } },
    ],
  },
});
