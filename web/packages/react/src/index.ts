export { useElicitation, type Clients, type Elicitation as ElicitationState, type ElicitationOptions } from "./useElicitation.js";
export { Elicitations, type ElicitationsProps } from "./Elicitations.js";
export { ElicitationForm, type ElicitationFormProps } from "./element.js";
export * as Elicitation from "./headless.js";
