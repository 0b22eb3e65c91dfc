export { ElicitationEvent, type ElementState, MCPElicitation, type MCPElicitationEventMap } from "./element/element.js";
export type { Labels } from "./element/labels.js";
export type { ElicitationEvents, ElicitationProperties } from "./props.js";
