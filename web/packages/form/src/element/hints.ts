import type { Field } from "../types.js";
import { inert } from "./inert.js";
import type { Say } from "./labels.js";

/** Says what a person must keep to, in the order in which it matters. Empty where anything goes. */
export function hints(field: Field, say: Say): string {
  const range = (least: number | undefined, most: number | undefined) => {
    if (least === undefined) return most === undefined ? "" : say("most", most);
    if (most === undefined) return least ? say("least", least) : "";
    return least === most ? say("exactly", least) : say("range", least, most);
  };
  const parts: (string | false | undefined)[] = [];
  if (field.kind === "text") {
    const length = range(field.minLength, field.maxLength);
    parts.push(
      field.constant !== undefined && say("exactly", `“${inert(field.constant)}”`),
      field.format && say(field.format),
      length && say("characters", length),
      field.pattern !== undefined && say("matches", inert(field.pattern)),
    );
  } else if (field.kind === "number" || field.kind === "integer") {
    parts.push(
      field.constant !== undefined && say("exactly", field.constant),
      say(field.kind),
      range(field.minimum, field.maximum),
      field.exclusiveMinimum !== undefined && say("above", field.exclusiveMinimum),
      field.exclusiveMaximum !== undefined && say("below", field.exclusiveMaximum),
      field.multipleOf !== undefined && say("steps", field.multipleOf),
    );
  } else if (field.kind === "choices") {
    const count = range(field.minItems || undefined, field.maxItems);
    parts.push(count && say("choose", count));
  }
  return parts.filter((part) => part).join(", ");
}
