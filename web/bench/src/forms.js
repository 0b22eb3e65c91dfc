/** The three forms: the same text for everyone. */
const text = (title, more) => ({ type: "string", title, ...more });

export const FORMS = {
  "1 field": {
    type: "object",
    properties: { environment: text("Environment", { enum: ["staging", "production"] }) },
    required: ["environment"],
  },
  "3 fields": {
    type: "object",
    properties: { name: text("Name", { minLength: 1 }), email: text("Email", { format: "email" }), age: { type: "integer", title: "Age", minimum: 0, maximum: 150 } },
    required: ["name", "email"],
  },
  "12 fields": {
    type: "object",
    properties: {
      ...Object.fromEntries([1, 2, 3, 4].map((n) => [`text${n}`, text(`Text ${n}`, { maxLength: 80, description: "Some words about this field." })])),
      ...Object.fromEntries([1, 2, 3].map((n) => [`number${n}`, { type: "number", title: `Number ${n}`, minimum: 0 }])),
      day: text("Day", { format: "date" }),
      mail: text("Mail", { format: "email" }),
      notify: { type: "boolean", title: "Notify", default: true },
      plan: text("Plan", { oneOf: [{ const: "a", title: "Small" }, { const: "b", title: "Large" }] }),
      days: { type: "array", title: "Days", items: { type: "string", enum: ["Mon", "Tue", "Wed", "Thu", "Fri"] }, uniqueItems: true },
    },
    required: ["text1"],
  },
};

/** What the page was asked for: the form's name in the address. */
export const schema = FORMS[decodeURIComponent(location.hash.slice(1))];
export const root = document.querySelector("#root");

/** Says that the form is drawn: two frames after it was put into the page, its pixels are there. */
export function drawn() {
  requestAnimationFrame(() => requestAnimationFrame(() => (window.drawnAfter = performance.now())));
}
