type Child = Node | string | false | null | undefined;

/** Makes an element: functions are listeners, everything else is an attribute. Text is never markup. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Readonly<Record<string, unknown>> = {}, ...children: readonly Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (value !== false && value != null) element.setAttribute(name, value === true && !name.startsWith("aria") ? "" : `${value as string}`);
  }
  element.append(...children.filter((child): child is Node | string => child !== false && child != null));
  return element;
}
