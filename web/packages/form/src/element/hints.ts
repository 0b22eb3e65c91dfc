import type { Field } from "../types.js";
import { inert } from "./inert.js";
import type { Say } from "./labels.js";
import { LATER } from "./later.js";

/** Says what a person must keep to, in the order in which it matters. Empty where anything goes. */
export function hints(field: Field, say: Say): string {
  const range = (least: number | undefined, most: number | undefined) => {
    if (least === undefined) return most === undefined ? "" : say("most", most);
    if (most === undefined) return least ? say("least", least) : "";
    return least === most ? say("exactly", least) : say("range", least, most);
  };
  const parts: (string | false | undefined)[] = [];
  const constant = "constant" in field && field.constant;
  if (field.kind === "text") {
    const length = range(field.minLength, field.maxLength);
    parts.push(
      typeof constant === "string" && say("exactly", `“${inert(constant)}”`),
      field.format && say(field.format),
      length && say("characters", length),
      field.pattern !== undefined && !LATER.pattern && say("matches", inert(field.pattern)),
    );
  } else if (field.kind === "number" || field.kind === "integer") {
    parts.push(typeof constant === "number" && say("exactly", constant), say(field.kind), range(field.minimum, field.maximum));
    for (const [limit, word] of [["exclusiveMinimum", "above"], ["exclusiveMaximum", "below"], ["multipleOf", "steps"]] as const)
      if (field[limit] !== undefined) parts.push(say(word, field[limit]));
  } else if (field.kind === "choices") {
    const count = range(field.minItems || undefined, field.maxItems);
    parts.push(count && say("choose", count));
  }
  return parts.filter((part) => part).join(", ");
}
