// `<mcp-elicitation>` in JSX of React 19: `import type {} from "@mcp-elicit/form/jsx"` once in a project. @mcp-elicit/react does so.
import type { DetailedHTMLProps, HTMLAttributes } from "react";
import type { ElicitationEvents, ElicitationProperties, MCPElicitation } from "@mcp-elicit/form/element";

/** What a JSX expression can set: properties, and the events as `onaccept` and so on. */
export type ElicitationElementProps = ElicitationProperties & { [K in keyof ElicitationEvents as `on${K}`]?: (event: ElicitationEvents[K]) => unknown };

declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "mcp-elicitation": ElicitationElementProps & DetailedHTMLProps<HTMLAttributes<MCPElicitation>, MCPElicitation>;
    }
  }
}
