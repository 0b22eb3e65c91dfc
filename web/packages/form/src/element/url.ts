import type { Say } from "./labels.js";

/** The address of a url-mode request, if it may be opened: http and https only. */
export function openable(text: unknown): URL | undefined {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  return url && /^https?:$/.test(url.protocol) ? url : undefined;
}

/** What a person should know before opening an address. */
export function cautions(url: URL, say: Say): string[] {
  return [
    url.protocol === "http:" && say("plain"),
    (url.username || url.password) && say("user"),
    /^\[|^[\d.]+$/.test(url.hostname) && say("ip"),
    /(^|\.)xn--/.test(url.hostname) && say("foreign"),
    url.port && say("port", url.port),
    url.href.length > 200 && say("long"),
  ].filter((caution) => !!caution) as string[];
}
