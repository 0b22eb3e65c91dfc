import { MCPElicitation } from "./element/element.js";

// Importing this on a server does nothing.
if (typeof customElements !== "undefined" && !customElements.get("mcp-elicitation")) customElements.define("mcp-elicitation", MCPElicitation);

export { ElicitationEvent } from "./element/element.js";
export { MCPElicitation };
