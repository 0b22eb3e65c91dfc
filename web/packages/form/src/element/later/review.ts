import css from "../../style/review.css";
import type { Form } from "../../check/form.js";
import type { Answers } from "../../types.js";
import type { Kit } from "../later.js";

/** The words of the review. */
export const WORDS = {
  change: "Change answers",
  reviewTitle: "This is what the server will get",
  nothingSent: "Nothing has been sent yet.",
  empty: "no answer",
};

/** Its style rules. */
export const CSS: string = css;

/** Shows exactly what will be sent. */
export function show({ h, inert, say }: Kit, form: Form, answers: Answers | undefined): Node[] {
  const words = (field: Form["fields"][number]): string[] => {
    const value = answers && Object.hasOwn(answers, field.name) ? answers[field.name] : undefined;
    if (value === undefined) return [];
    if (typeof value === "boolean") return [say(value ? "yes" : "no")];
    const options = "options" in field ? field.options : [];
    return [value].flat().map((one) => {
      const title = options.find(({ value, typed = value }) => typed === one)?.title;
      return title === undefined || title === one ? `${one}` : `${title} (${one})`;
    });
  };
  return [
    h("h3", { part: "review", tabindex: -1 }, say("reviewTitle")),
    h("p", { part: "description" }, say("nothingSent")),
    h("dl", { part: "answers" },
      ...form.fields.map((field) => {
        const values = words(field);
        return h("div", {}, h("dt", {}, h("bdi", {}, inert(field.label))), ...(values.length ? values.map((value) => h("dd", {}, value)) : [h("dd", { part: "none" }, say("empty"))]));
      }),
    ),
  ];
}
