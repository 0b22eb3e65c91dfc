import { defineConfig } from "vite";

// A page may speak only to its own origin here, so Vite passes /mcp on to the server.
const proxy = { "/mcp": { target: process.env.MCP_SERVER ?? "http://127.0.0.1:8080", changeOrigin: true } };

export default defineConfig({ server: { proxy }, preview: { proxy }, build: { target: "es2022" } });
