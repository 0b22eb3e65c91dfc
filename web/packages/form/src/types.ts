/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** The content of an accepted form, as it is sent. */
export type ElicitContent = Record<string, string | number | boolean | string[]>;

/** Parameters of a form-mode `elicitation/create`, of any revision. */
export interface FormRequest {
  mode?: "form" | undefined;
  message: string;
  requestedSchema: object;
  _meta?: object | undefined;
}

/** Parameters of a url-mode `elicitation/create`. Revision 2026-07-28 has no `elicitationId`. */
export interface UrlRequest {
  mode: "url";
  message: string;
  url: string;
  elicitationId?: string | undefined;
  _meta?: object | undefined;
}

/** Parameters of `elicitation/create`. The types of both TypeScript SDKs are assignable to it. */
export type ElicitRequest = FormRequest | UrlRequest;

/** The result of `elicitation/create`. It is assignable to the types of both TypeScript SDKs. */
export interface ElicitResult {
  [key: string]: unknown;
  action: "accept" | "decline" | "cancel";
  content?: ElicitContent;
}

/** The stable codes of what makes a `requestedSchema` illegal: those of the Rust crate `mcp-elicit-core`. */
export type DefectCode =
  | "not-json"
  | "too-large"
  | "not-an-object"
  | "root-type"
  | "no-properties"
  | "too-many-fields"
  | "duplicate-field"
  | "duplicate-member"
  | "field-not-an-object"
  | "missing-type"
  | "type-list"
  | "unknown-type"
  | "nested"
  | "reference"
  | "array-items"
  | "enum-not-string"
  | "no-options"
  | "option-shape"
  | "duplicate-option"
  | "options-twice"
  | "too-many-options"
  | "keyword-type"
  | "unsupported-keyword"
  | "unsupported-format"
  | "impossible-range"
  | "default-invalid"
  | "pattern-syntax"
  | "pattern-cost"
  | "required-unknown";

/** One reason why a `requestedSchema` is not a legal form. `explain` from `@mcp-elicit/form/explain` makes a sentence of it. */
export interface Defect {
  /** Where in the schema, as an RFC 6901 JSON Pointer. */
  readonly pointer: string;
  readonly code: DefectCode;
  /** Numbers and rules that the sentence of `explain` is made with. */
  readonly args: readonly (string | number)[];
  /** The sentence, where a lenient reading found the defect. */
  readonly message?: string;
}

/** The JSON Schema keyword that a violated rule comes from; `precision` is of this package (see `Form.read`). */
export type RuleCode =
  | "required"
  | "type"
  | "minLength"
  | "maxLength"
  | "pattern"
  | "format"
  | "minimum"
  | "maximum"
  | "exclusiveMinimum"
  | "exclusiveMaximum"
  | "multipleOf"
  | "const"
  | "enum"
  | "minItems"
  | "maxItems"
  | "uniqueItems"
  | "additionalProperties"
  | "precision";

/** One rule that an answer breaks. It never holds the person's value. */
export interface Violation {
  /** The field's name; empty when the content as a whole is meant. */
  readonly field: string;
  readonly rule: RuleCode;
  /** What the field wants, without its name. */
  readonly message: string;
  /** The limit of the rule: a number, a format, a pattern, a constant, or the values of the options. */
  readonly limit?: Json;
}

/** Bounds on a `requestedSchema`. */
export interface Limits {
  /** The longest schema, in bytes of its JSON text. */
  readonly schemaBytes: number;
  /** The most fields in a form. */
  readonly fields: number;
  /** The most options of one field. */
  readonly options: number;
  /** The longest `pattern`, in bytes. */
  readonly patternBytes: number;
  /** The most states that the patterns of a form may have together. */
  readonly patternStates: number;
}

declare const checked: unique symbol;

/** Content that passed `Form.check`, which is its only maker. */
export type Answers = ElicitContent & { readonly [checked]: true };

/** What `Form.check` and `Form.read` return. */
export type Checked =
  | {
      readonly ok: true;
      readonly answers: Answers;
      /** Names of fields that the form does not have; they were dropped. The first 32. */
      readonly ignored: readonly string[];
    }
  | { readonly ok: false; readonly violations: readonly [Violation, ...Violation[]] };

/** One option of a choice. */
export interface ChoiceOption {
  /** What is sent. */
  readonly value: string;
  /** What the person reads, where it is something else. */
  readonly title?: string;
  /** What is sent instead of `value`: a number or a boolean. Only a lenient reading has such options. */
  readonly typed?: string | number | boolean;
}

/** What every field has. */
export interface FieldBase {
  /** The key in the content. */
  readonly name: string;
  /** What a person reads: the title, or the name where there is none. */
  readonly label: string;
  readonly title?: string;
  readonly description?: string;
  readonly required: boolean;
  /** Null in an answer means that the field was left empty. Only a lenient reading has such fields. */
  readonly nullable?: boolean;
  /** Null is sent where the field was left empty. */
  readonly nullWhenEmpty?: boolean;
  /** @internal What the element says of the field in place of its rules. */
  readonly hint?: string;
}

/** A string that the person writes. */
export interface TextField extends FieldBase {
  readonly kind: "text";
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: "email" | "uri" | "date" | "date-time";
  /** A format that forms do not have. It is not checked. Only a lenient reading has it. */
  readonly otherFormat?: string;
  readonly constant?: string;
  readonly default?: string;
}

/** A number, or a number without fractional part. */
export interface NumberField extends FieldBase {
  readonly kind: "number" | "integer";
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
  readonly constant?: number;
  readonly default?: number;
}

/** Yes or no. */
export interface BooleanField extends FieldBase {
  readonly kind: "boolean";
  readonly constant?: boolean;
  readonly default?: boolean;
}

/** One string from a list. */
export interface ChoiceField extends FieldBase {
  readonly kind: "choice";
  readonly options: readonly ChoiceOption[];
  readonly constant?: string;
  readonly default?: string;
}

/** Several strings from a list. */
export interface ChoicesField extends FieldBase {
  readonly kind: "choices";
  readonly options: readonly ChoiceOption[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly unique: boolean;
  readonly default?: readonly string[];
}

/** A value of one of several types: a text is sent as the first that it fits. Only a lenient reading has it. */
export interface UnionField extends FieldBase {
  readonly kind: "union";
  /** The alternatives, whose names and texts mean nothing. */
  readonly alternatives: readonly Field[];
  readonly default?: string | number | boolean;
}

/** Several values that the person writes, one per line. Only a lenient reading has it. */
export interface LinesField extends FieldBase {
  readonly kind: "lines";
  /** The rules of each value; the name and the texts mean nothing. */
  readonly item: Field;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly unique: boolean;
  readonly default?: readonly string[];
}

/** One field of a form, told apart by `kind`. */
export type Field = TextField | NumberField | BooleanField | ChoiceField | ChoicesField | UnionField | LinesField;

/**
 * What a person has entered into one field: nothing, text, yes or no, or options by their values.
 * A moment with a time zone is text such as `2026-11-30T09:00[Europe/Brussels]`.
 */
export type DraftValue = null | string | boolean | readonly string[];

/** What a person has entered so far, by field name. */
export type Draft = Readonly<Record<string, DraftValue>>;

/** Who asks, as the page knows it; shown before anything that the server says. */
export interface Origin {
  /** The name that the page's own configuration gives to the server. */
  readonly server: string;
  /** The name that the server claims. */
  readonly claimed?: string;
  readonly version?: string;
  /** How the server is reached, for example its address. */
  readonly connection?: string;
  /** The call during which the server asks. */
  readonly tool?: { readonly name: string; readonly arguments?: Readonly<Record<string, unknown>> };
}
