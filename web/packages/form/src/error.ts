import type { Violation } from "./types.js";

/**
 * Why a question or an answer was not taken:
 *
 * - `violations`: the content does not fit the form; `violations` has each reason
 * - `defects`: the request is not a legal question, so it can be declined or cancelled only
 * - `unknown`: there is no open question of this id; it was answered before, or never asked
 * - `withdrawn`: the server withdrew the question, its call ended, or its time ran out
 * - `closed`: the queue does not take this client's questions, or no longer
 * - `mode`: a form's action was used on a link or the other way round, or there is no such mode or action
 * - `undeliverable`: the SDK would drop a part of the content without a word (a field named `__proto__`)
 * - `capability`: the client connected without declaring the elicitation capability
 * - `limit`: too many questions of one server are open
 * - `declined`, `cancelled`: the person's action on a link that a call needed (`ElicitationQueue.visit`)
 */
export type ElicitationErrorCode =
  | "violations"
  | "defects"
  | "unknown"
  | "withdrawn"
  | "closed"
  | "mode"
  | "undeliverable"
  | "capability"
  | "limit"
  | "declined"
  | "cancelled";

/** A question or an answer that was not taken. The person's values are in neither message nor properties. */
export class ElicitationError extends Error {
  override readonly name = "ElicitationError";
  readonly code: ElicitationErrorCode;
  /** The rules that the answer breaks, where the code is `violations`. */
  readonly violations: readonly Violation[];

  constructor(code: ElicitationErrorCode, message: string, violations: readonly Violation[] = []) {
    super(message);
    this.code = code;
    this.violations = violations;
  }
}

/** One line per violation: the field, and what it wants. */
export const lines = (violations: readonly Violation[]) => violations.map(({ field, message }) => (field ? `${field}: ${message}` : `the answer ${message}`));
