// `<mcp-elicitation>` in Svelte templates: `import type {} from "@mcp-elicit/form/svelte"` once in a project.
import type { HTMLAttributes } from "svelte/elements";
import type { ElicitationEvents, ElicitationProperties, MCPElicitation } from "@mcp-elicit/form/element";

/** What a template can set: properties, and the events as `onaccept` and so on. */
export type ElicitationAttributes = ElicitationProperties & { [K in keyof ElicitationEvents as `on${K}`]?: (event: ElicitationEvents[K]) => unknown };

declare module "svelte/elements" {
  interface SvelteHTMLElements {
    "mcp-elicitation": ElicitationAttributes & HTMLAttributes<MCPElicitation>;
  }
}
