// `<mcp-elicitation>` in Vue templates: `import type {} from "@mcp-elicit/form/vue"` once in a project.
import type { ElicitationEvents, ElicitationProperties } from "@mcp-elicit/form/element";

/** What a template can bind: properties, and the events as `@accept` and so on. */
export type ElicitationElement = new () => {
  $props: ElicitationProperties & { [K in keyof ElicitationEvents as `on${Capitalize<K>}`]?: (event: ElicitationEvents[K]) => unknown };
};

declare module "vue" {
  interface GlobalComponents {
    "mcp-elicitation": ElicitationElement;
  }
}
