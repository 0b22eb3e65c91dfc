import css from "../../style/visit.css";
import type { Kit } from "../later.js";
import type { Say } from "../labels.js";

/** The words about an address. */
export const WORDS = {
  open: "Open in a new tab",
  visited: "I have done this",
  where: "Is this where you want to go?",
  whereText: "Check the name in bold before you open it. What you do there is between you and that site.",
  address: "The whole address",
  plain: "The connection is not encrypted (no https).",
  user: "The address has a user name in it, which can make it look like another site.",
  ip: "The address has a number in place of a name.",
  foreign: "The name has letters of other scripts, which can look like another name.",
  port: "The address has an unusual port: {0}.",
  long: "The address is unusually long.",
};

/** Its style rules. */
export const CSS: string = css;

/** Shows an address before it is opened: all of it, its host apart, and what is unusual about it. `opened` is told of the click. */
export function show({ h, say }: Kit, url: URL, visited: boolean, busy: boolean, opened: () => void): Node[] {
  const warnings = cautions(url, say);
  const start = hostAt(url);
  const [before, after] = [url.href.slice(0, start), url.href.slice(start + url.host.length)];
  const open = h("a", {
    part: visited ? "button" : "button primary",
    href: url.href,
    target: "_blank",
    rel: "noopener noreferrer",
    referrerpolicy: "no-referrer",
    inert: busy,
    click: opened,
  }, say("open"));
  return [
    h("h3", {}, say("where")),
    h("p", { part: "description" }, say("whereText")),
    h("p", { part: "host", dir: "ltr" }, h("strong", {}, url.host)),
    h("p", { part: "address", dir: "ltr", role: "group", tabindex: 0, "aria-label": say("address") }, before, h("b", {}, url.host), after),
    ...(warnings.length ? [h("div", { part: "warning", role: "note" }, h("ul", {}, ...warnings.map((warning) => h("li", {}, warning))))] : []),
    h("p", {}, open),
  ];
}

/** What a person should know before opening an address. */
function cautions(url: URL, say: Say): string[] {
  return [
    url.protocol === "http:" && say("plain"),
    (url.username || url.password) && say("user"),
    /^\[|^[\d.]+$/.test(url.hostname) && say("ip"),
    /(^|\.)xn--/.test(url.hostname) && say("foreign"),
    url.port && say("port", url.port),
    url.href.length > 200 && say("long"),
  ].filter((caution) => !!caution) as string[];
}

/** Where the host begins in the address: after the scheme and what stands before an @. */
function hostAt(url: URL): number {
  const start = url.protocol.length + 2;
  const end = url.href.indexOf("/", start);
  return url.href.lastIndexOf("@", end) >= start ? url.href.lastIndexOf("@", end) + 1 : start;
}
