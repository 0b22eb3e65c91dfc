export { render, type RenderOptions } from "./queue/render.js";
