const ATOM = "[\\w!#-'*+/=?^`{-~-]+";
const MAILBOX = new RegExp(`^(${ATOM}(?:\\.${ATOM})*|"(?:[ !#-[\\]-~]|\\\\[ -~])*")@(?:\\[(.*)\\]|([^[]*))$`);
const CHAR = "[\\w.~!$&'()*+,;=-]|%[\\da-f]{2}";
const REST = `(?:${CHAR}|[:@/?])*`;
const URI = new RegExp(
  `^[a-z][a-z\\d+.-]*:(?://(?:(?:${CHAR}|:)*@)?(?:\\[(?:v[\\da-f]+\\.[\\w.~!$&'()*+,;=:-]+|([\\da-f:.]+))\\]|(?:${CHAR})*)(?::\\d*)?(?![^/?#])|(?!//))${REST}(?:#${REST})?$`,
  "i",
);
/** Whether a text has the format: RFC 5321 mailbox, RFC 3986 URI with a scheme, RFC 3339 date, or date and time. */
export function matches(format: string, text: string): boolean {
  if (format === "email") return isMailbox(text);
  if (format === "uri") {
    const found = URI.exec(text);
    return !!found && (found[1] === undefined || isIpv6(found[1]));
  }
  return format === "date" ? isDate(text) : isDateTime(text);
}

function isMailbox(text: string): boolean {
  const [, local = "", literal, host = ""] = MAILBOX.exec(text) ?? [];
  if (!local || local.length > 64) return false;
  if (literal === undefined) return isHost(host);
  return /^ipv6:/i.test(literal) ? isIpv6(literal.slice(5)) : /^\d+(\.\d+){3}$/.test(literal) && isIpv6(`::${literal}`);
}

function isHost(host: string): boolean {
  return host.length < 254 && host.split(".").every(isLabel);
}

/** "--" in the third and fourth place is reserved for A-labels, which must decode (RFC 5891 §4.2.3.1). */
function isLabel(label: string): boolean {
  if (!/^(?!-)[a-z\d-]{1,63}$/i.test(label) || label.endsWith("-")) return false;
  return !/^..--/.test(label) || (/^xn--/i.test(label) && URL.canParse(`http://${label}`));
}

/** The platform reads RFC 4291 without shortcuts, also where the last four bytes are an IPv4 address. */
function isIpv6(text: string): boolean {
  return /^[\da-f:.]+$/i.test(text) && URL.canParse(`http://[${text}]`);
}

/** A day that the month does not have moves the date on, so it comes back as another. */
export function isDate(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && !!new Date(text).toJSON()?.startsWith(text);
}

/** The offset is required, and second 60 stands only at 23:59 UTC (RFC 3339 §5.7). */
function isDateTime(text: string): boolean {
  const [, day, leap] = /^(.{10})t(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|(60))(?:\.\d+)?(?:z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i.exec(text) ?? [];
  return !!day && isDate(day) && (!leap || new Date(text.toUpperCase().replace(/:60(\.\d+)?/, ":59")).toJSON().includes("T23:59"));
}
