/** @internal */
export class ElicitationEvent<D> extends CustomEvent<D> {}
export type ElementState = "loading";
export interface MCPElicitationEventMap {}
const Base = globalThis.HTMLElement ?? (class {} as typeof HTMLElement);
export class MCPElicitation extends Base {}
