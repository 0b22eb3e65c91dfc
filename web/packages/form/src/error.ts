import type { Violation } from "./types.js";

/** Why an answer was not sent. */
export type ElicitationErrorCode = "violations" | "defects" | "unknown" | "withdrawn" | "closed" | "mode" | "undeliverable";

/** An answer that was not sent. The person's values are in neither message nor properties. */
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
