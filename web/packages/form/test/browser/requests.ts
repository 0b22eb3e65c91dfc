// The questions that the browser tests ask.
const options = (count: number) => Array.from({ length: count }, (_, i) => ({ const: `r${i}`, title: `Region ${i}` }));

export const origin = {
  server: "deploy-bot",
  claimed: "Acme Deployments",
  version: "2.4.1",
  connection: "https://deploy.example/mcp",
  tool: { name: "deploy", arguments: { build: 4812, branch: "release/2026-11" } },
};

/** Every kind of field. */
export const everyKind = {
  message: "Where should I deploy build 4812?\nThe plan is at https://plan.example/4812.",
  requestedSchema: {
    type: "object",
    properties: {
      name: { type: "string", title: "Release name", description: "Shown in the changelog.", minLength: 3, maxLength: 50, default: "Autumn release" },
      environment: { type: "string", title: "Environment", enum: ["dev", "staging", "prod"], enumNames: ["Development", "Staging", "Production"], default: "staging" },
      replicas: { type: "integer", title: "Replicas", minimum: 1, maximum: 20, default: 3 },
      ratio: { type: "number", title: "Ratio", multipleOf: 0.1 },
      migrate: { type: "boolean", title: "Run the migrations", description: "They take about four minutes." },
      note: { type: "string", title: "Note", maxLength: 2000 },
      mail: { type: "string", title: "Tell whom", format: "email" },
      page: { type: "string", title: "Status page", format: "uri" },
      day: { type: "string", title: "Day", format: "date" },
      start: { type: "string", title: "Start at", format: "date-time" },
      regions: { type: "array", title: "Regions", items: { anyOf: options(14) }, minItems: 1, maxItems: 3 },
      tags: { type: "array", title: "Tags", items: { type: "string", enum: ["fast", "safe", "cheap"] } },
    },
    required: ["name", "environment", "replicas", "migrate", "regions"],
  },
};

/** What the guide shows. */
export const deploy = {
  message: "Where should I deploy build 4812?",
  requestedSchema: {
    type: "object",
    properties: Object.fromEntries(["name", "environment", "replicas", "migrate", "start"].map((name) => [name, everyKind.requestedSchema.properties[name as "name"]])),
    required: ["name", "environment", "replicas", "migrate"],
  },
};

export const confirm = { message: "Delete the branch?", requestedSchema: { type: "object", properties: {} } };

export const short = {
  message: "Who are you?",
  requestedSchema: { type: "object", properties: { name: { type: "string", title: "Name", minLength: 2 }, age: { type: "integer", title: "Age", minimum: 0 } }, required: ["name"] },
};

export const url = { mode: "url", message: "Sign in so that I can read your calendar.", url: "https://login.example.org:8443/authorize?client=1&state=abc", elicitationId: "e1" };

export const yesNo = {
  message: "Deploy build 4812 to production?\nIt takes about four minutes.",
  requestedSchema: { type: "object", properties: { confirm: { type: "boolean", title: "Yes, deploy to production" } }, required: ["confirm"] },
};

export const ticket = {
  message: "Which ticket?",
  requestedSchema: { type: "object", properties: { ticket: { type: "string", title: "Ticket", pattern: "^[A-Z]{3}-[0-9]{2}$" }, more: { type: "string", title: "Remark" } }, required: ["ticket"] },
};
