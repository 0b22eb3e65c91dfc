const ATOM = "[\\w!#-'*+/=?^`{-~-]+";
const MAILBOX = new RegExp(`^(${ATOM}(?:\\.${ATOM})*|"(?:[ !#-[\\]-~]|\\\\[ -~])*")@(?:\\[(.*)\\]|([^[]*))$`);
const PCHAR = "[\\w.~!$&'()*+,;=:@-]|%[\\da-f]{2}";
const SEGMENTS = `(?:/(?:${PCHAR})*)*`;
const NAME = "(?:[\\w.~!$&'()*+,;=-]|%[\\da-f]{2})*";
const URI = new RegExp(
  `^[a-z][a-z\\d+.-]*:(?://(?:(?:[\\w.~!$&'()*+,;=:-]|%[\\da-f]{2})*@)?(?:\\[(?:v[\\da-f]+\\.[\\w.~!$&'()*+,;=:-]+|([\\da-f:.]+))\\]|${NAME})(?::\\d*)?${SEGMENTS}` +
    `|/(?:(?:${PCHAR})+${SEGMENTS})?|(?:(?:${PCHAR})+${SEGMENTS})?)(?:\\?(?:${PCHAR}|[/?])*)?(?:#(?:${PCHAR}|[/?])*)?$`,
  "i",
);
const OCTET = "(?:25[0-5]|2[0-4]\\d|1?\\d|1\\d\\d|[1-9]\\d)";
const IPV4 = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);

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
  return /^ipv6:/i.test(literal) ? isIpv6(literal.slice(5)) : IPV4.test(literal);
}

function isHost(host: string): boolean {
  return host.length < 254 && host.split(".").every(isLabel);
}

/** "--" in the third and fourth place is reserved for A-labels, which must decode (RFC 5891 §4.2.3.1). */
function isLabel(label: string): boolean {
  if (!/^(?!-)[a-z\d-]{1,63}$/i.test(label) || label.endsWith("-")) return false;
  return !/^..--/.test(label) || (/^xn--/i.test(label) && URL.canParse(`http://${label}`));
}

function isIpv6(text: string): boolean {
  const [, head, tail] = /^(.*:)([^:]*\..*)$/.exec(text) ?? [];
  if (tail !== undefined && !IPV4.test(tail)) return false;
  const halves = (tail === undefined ? text : `${head}0:0`).split("::");
  const groups = halves.flatMap((half) => (half ? half.split(":") : []));
  const count = groups.length;
  return groups.every((group) => /^[\da-f]{1,4}$/i.test(group)) && (halves.length === 2 ? count < 8 : halves.length === 1 && count === 8);
}

function isDate(text: string): boolean {
  const [, year, month, day] = (/^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? []).map(Number);
  if (!month || !day || month > 12) return false;
  const leap = year! % 4 === 0 && (year! % 100 !== 0 || year! % 400 === 0);
  const days = month === 2 ? (leap ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31;
  return day <= days;
}

/** The offset is required, and second 60 stands only at 23:59 UTC (RFC 3339 §5.7). */
function isDateTime(text: string): boolean {
  const found = /^(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:z|([+-])(\d\d):(\d\d))$/i.exec(text.slice(11));
  if (!found || !isDate(text.slice(0, 10)) || !/t/i.test(text[10]!)) return false;
  const [hour = 0, minute = 0, second = 0, , hours = 0, minutes = 0] = found.slice(1).map((part) => (part ? Number(part) : 0));
  if (hour > 23 || minute > 59 || second > 60 || hours > 23 || minutes > 59) return false;
  const offset = (hours * 60 + minutes) * (found[4] === "-" ? -1 : 1);
  return second < 60 || (((hour * 60 + minute - offset) % 1440) + 1440) % 1440 === 1439;
}
