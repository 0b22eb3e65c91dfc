// JSX knows the element where this package is imported.
import type {} from "@mcp-elicit/form/jsx";

export { useElicitation, type Clients, type Elicitation as ElicitationState, type ElicitationOptions } from "./useElicitation.js";
export { ElicitationQueue } from "@mcp-elicit/form";
export { Elicitations, type ElicitationsProps } from "./Elicitations.js";
export { ElicitationForm, type ElicitationFormProps } from "./element.js";
export * as Elicitation from "./headless.js";
