import type { ElicitationEvent, MCPElicitation } from "./element/element.js";
import type { Answers, Draft } from "./types.js";

/** The properties of `<mcp-elicitation>` that a template or a JSX expression can set. */
export type ElicitationProperties = Partial<Pick<MCPElicitation, "request" | "origin" | "draft" | "labels" | "renderMessage" | "name" | "review" | "disabled">> & {
  /** When the time to answer runs out. */
  deadline?: Date | number | string | null | undefined;
};

/** The events of `<mcp-elicitation>`, by name. */
export interface ElicitationEvents {
  accept: ElicitationEvent<{ content?: Answers }>;
  decline: ElicitationEvent<Record<string, never>>;
  cancel: ElicitationEvent<{ dirty: boolean }>;
  draft: ElicitationEvent<{ draft: Draft }>;
}
