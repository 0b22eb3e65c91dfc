import "../define.js";
import type { ElicitationEvent, MCPElicitation } from "../element/element.js";
import type { Labels } from "../element/labels.js";
import type { ElicitContent } from "../types.js";
import type { ElicitationQueue, PendingElicitation } from "./queue.js";

/** How long a withdrawn question stays to be read, in milliseconds. */
const WITHDRAWN_FOR = 4000;

/** How `render` shows the questions. */
export interface RenderOptions {
  /** Shows what will be sent before it is sent. */
  readonly review?: boolean;
  readonly labels?: Partial<Labels>;
}

/** Shows the open questions of a queue inside an element of the page, the oldest first, and keeps it up to date. Returns what ends it. */
export function render(queue: ElicitationQueue, into: Element, options: RenderOptions = {}): () => void {
  const shown = new Map<string, MCPElicitation>();
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const update = () => {
    const pending = queue.getSnapshot();
    const open = new Set(pending.map(({ id }) => id));
    for (const [id, element] of shown) {
      if (open.has(id)) continue;
      shown.delete(id);
      const reason = queue.withdrawn(id);
      if (reason === undefined) {
        element.remove();
        continue;
      }
      element.withdraw(reason);
      const timer = setTimeout(() => {
        timers.delete(timer);
        element.remove();
      }, WITHDRAWN_FOR);
      timers.add(timer);
    }
    for (const question of pending) {
      if (shown.has(question.id)) continue;
      const element = elementOf(queue, question, options);
      shown.set(question.id, element);
      into.append(element);
    }
  };
  const end = queue.subscribe(update);
  update();
  return () => {
    end();
    timers.forEach(clearTimeout);
    for (const element of shown.values()) element.remove();
    shown.clear();
  };
}

function elementOf(queue: ElicitationQueue, { id, request, origin, deadline }: PendingElicitation, options: RenderOptions): MCPElicitation {
  const element = document.createElement("mcp-elicitation") as MCPElicitation;
  if (options.labels) element.labels = options.labels;
  if (options.review) element.setAttribute("review", "");
  element.origin = origin;
  element.deadline = deadline ?? null;
  element.request = request;
  element.draft = queue.draft(id) ?? null;
  element.addEventListener("draft", (event) => queue.keepDraft(id, event.detail.draft));
  const on = <D>(name: string, act: (event: ElicitationEvent<D>) => Promise<void>) =>
    element.addEventListener(name, (event) => (event as ElicitationEvent<D>).respondWith(act(event as ElicitationEvent<D>)));
  on<{ content?: ElicitContent }>("accept", (event) => queue.accept(id, event.detail.content));
  on("decline", () => queue.decline(id));
  on("cancel", () => queue.cancel(id));
  return element;
}
