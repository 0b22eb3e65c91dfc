/** The address of a url-mode request, if it may be opened: http and https only. */
export function openable(text: unknown): URL | undefined {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  return url && /^https?:$/.test(url.protocol) ? url : undefined;
}
