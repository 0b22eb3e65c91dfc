import { ElicitationError } from "../error.js";
import type { Answers, ElicitRequest, ElicitResult } from "../types.js";
import type { ElicitationEvent, MCPElicitation } from "./element.js";

/**
 * Shows a request at the end of `parent` and returns what the person does: a callback for `ElicitationQueue.attach`.
 *
 * The element is removed once the person acted. If the signal fires first, the promise is rejected with the code `withdrawn`: that is no
 * act of the person.
 */
export function ask(params: ElicitRequest, context?: { signal: AbortSignal; server: string }, parent: Node = document.body): Promise<ElicitResult> {
  return new Promise((resolve, reject) => {
    const element: MCPElicitation = document.createElement("mcp-elicitation");
    const signal = context?.signal;
    const end = () => {
      signal?.removeEventListener("abort", withdraw);
      element.remove();
    };
    const withdraw = () => {
      end();
      reject(new ElicitationError("withdrawn", "The request was withdrawn before a person acted."));
    };
    if (signal?.aborted) return withdraw();
    signal?.addEventListener("abort", withdraw);
    for (const action of ["accept", "decline", "cancel"] as const) {
      element.addEventListener(action, (event) => {
        const { content } = (event as ElicitationEvent<{ content?: Answers }>).detail;
        end();
        resolve(content ? { action, content } : { action });
      });
    }
    element.request = params;
    if (context) element.origin = { server: context.server };
    // It does not take the focus: a key that was meant for the page must not answer.
    parent.appendChild(element);
    element.scrollIntoView({ block: "nearest" });
  });
}
