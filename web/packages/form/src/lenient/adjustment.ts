/** The stable codes of the differences between an illegal schema and the form that is read from it: those of the Rust crate. */
export type AdjustmentCode =
  | "no-schema"
  | "no-properties"
  | "empty-list"
  | "root-type"
  | "reference"
  | "all-of"
  | "null-option"
  | "typed-options"
  | "options-spelling"
  | "option-dropped"
  | "no-options"
  | "names-ignored"
  | "lines"
  | "union"
  | "alternative-dropped"
  | "type-assumed"
  | "type-name"
  | "format-not-enforced"
  | "pattern-not-enforced"
  | "bound-not-enforced"
  | "rule-not-enforced"
  | "default-dropped"
  | "required-dropped"
  | "keyword-ignored"
  | "field-dropped";

/** One difference between an illegal schema and the form that was read from it. */
export interface Adjustment {
  /** Where in the schema, as an RFC 6901 JSON Pointer. */
  readonly pointer: string;
  /** The name of the field; absent for the schema itself. */
  readonly field?: string;
  readonly code: AdjustmentCode;
  /** What it means, as a sentence for a person. */
  readonly message: string;
}

const MATTERS: ReadonlySet<AdjustmentCode> = new Set([
  "format-not-enforced",
  "pattern-not-enforced",
  "bound-not-enforced",
  "rule-not-enforced",
  "no-options",
  "type-name",
  "required-dropped",
]);

/** Returns whether the person who answers should know: the server has a rule that is not checked here. */
export const matters = ({ code }: Adjustment): boolean => MATTERS.has(code);
