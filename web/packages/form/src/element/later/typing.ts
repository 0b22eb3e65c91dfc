export { growing } from "../../behaviour/grow.js";
export { stepped } from "../../behaviour/stepper.js";
export { readAddress } from "../../draft/address.js";
export { plainNumber } from "../../draft/number.js";

/** It has neither words nor rules. */
export const WORDS = {};
export const CSS = "";
