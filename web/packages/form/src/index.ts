export { type Parsed, Form } from "./check/form.js";
export { type ElicitationErrorCode, ElicitationError } from "./error.js";
export type { McpClient } from "./queue/adapter.js";
export { type AttachOptions, ElicitationQueue, type PendingElicitation, type ServerCallbacks } from "./queue/queue.js";
export {
  accept,
  acceptWithDefaults,
  applyDefaults,
  cancel,
  decline,
  type ElicitValidationResult,
  getDefaults,
  type OnElicitationCallback,
  reject,
  validate,
} from "./seeds.js";
export { parse } from "./parse.js";
export type * from "./types.js";
