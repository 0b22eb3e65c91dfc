import type { Plugin } from "esbuild";

export declare function minified(path: string): Promise<string>;
export declare const cssText: Plugin;
