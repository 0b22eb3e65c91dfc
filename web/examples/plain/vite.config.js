import { defineConfig } from "vite";

// A page may speak only to its own origin here, so Vite passes /mcp on to the server.
// The server refuses pages of other origins, and this one speaks to it through its own server only.
const target = process.env.MCP_SERVER ?? "http://127.0.0.1:8080";
const proxy = { "/mcp": { target, changeOrigin: true, headers: { origin: target } } };

export default defineConfig({ server: { proxy }, preview: { proxy }, build: { target: "es2022" } });
