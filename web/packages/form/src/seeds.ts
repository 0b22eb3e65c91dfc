import type { Form } from "./check/form.js";
import { ElicitationError, lines } from "./error.js";
import { parse } from "./parse.js";
import type { ElicitContent, ElicitRequest, ElicitResult } from "./types.js";

/** What `validate` returns. */
export type ElicitValidationResult = { valid: boolean; errors?: string[] };

/** Answers a request in place of a person: a callback of a client. */
export type OnElicitationCallback = (params: ElicitRequest, context?: { signal: AbortSignal; server: string }) => Promise<ElicitResult>;

/** Returns the default values of the requested schema. Empty for a url-mode request and for an illegal schema. */
export function getDefaults(params: ElicitRequest): ElicitContent {
  return formOf(params)?.defaults() ?? {};
}

/** Returns the default values with `partial` going over them. */
export function applyDefaults(params: ElicitRequest, partial?: ElicitContent): ElicitContent {
  return Object.fromEntries([...Object.entries(getDefaults(params)), ...Object.entries(partial ?? {})]);
}

/**
 * Accepts with the default values alone.
 *
 * Throws an `ElicitationError`: `violations` where a required field has no default, `defects` for an illegal schema, and `mode` for a
 * url-mode request, which only a person can agree to.
 */
export function acceptWithDefaults(params: ElicitRequest): ElicitResult {
  if (params.mode === "url") throw new ElicitationError("mode", "a url-mode request has no defaults: a person must agree to visit it");
  const parsed = parse(params.requestedSchema);
  if (!parsed.ok) throw new ElicitationError("defects", `the requested schema is illegal at ${parsed.defects[0].pointer || "its root"} (${parsed.defects[0].code})`);
  const checked = parsed.form.check(parsed.form.defaults());
  if (!checked.ok) throw new ElicitationError("violations", `the defaults do not suffice: ${lines(checked.violations).join("; ")}`, checked.violations);
  return accept(checked.answers);
}

/** Makes an accepting result. */
export function accept(content: ElicitContent): ElicitResult {
  return { action: "accept", content };
}

/** Makes a declining result. The protocol has no room for the reason: it is not sent. */
export function decline(_reason?: string): ElicitResult {
  return { action: "decline" };
}

/** Makes a cancelling result: the person made no choice. */
export function cancel(): ElicitResult {
  return { action: "cancel" };
}

/** Makes a declining result, as `decline` does. */
export const reject: (reason?: string) => ElicitResult = decline;

/** Checks content against the requested schema. Each error is a field's name and what it wants, in the words of `Form.check`. */
export function validate(params: ElicitRequest, content: unknown): ElicitValidationResult {
  if (params.mode === "url") {
    const empty = content === undefined || content === null || (typeof content === "object" && !Object.keys(content).length);
    return empty ? { valid: true } : { valid: false, errors: ["a url-mode request is accepted without content"] };
  }
  const parsed = parse(params.requestedSchema);
  if (!parsed.ok) return { valid: false, errors: parsed.defects.map(({ pointer, code }) => `the requested schema is illegal at ${pointer || "its root"} (${code})`) };
  const checked = parsed.form.check(content);
  return checked.ok ? { valid: true } : { valid: false, errors: lines(checked.violations) };
}

function formOf(params: ElicitRequest): Form | undefined {
  const parsed = params.mode === "url" ? undefined : parse(params.requestedSchema);
  return parsed?.ok ? parsed.form : undefined;
}
