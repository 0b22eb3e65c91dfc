import type { Basics } from "./entered.js";

/** Reads a date, year first, with any of three separators and without leading zeros: 2026/2/3. A day first could be a month. */
export function readDate(text: string): string | undefined {
  const found = /^(\d{4})([-/.])(\d\d?)\2(\d\d?)$/.exec(text);
  return found ? `${found[1]}-${found[3]!.padStart(2, "0")}-${found[4]!.padStart(2, "0")}` : undefined;
}

/** Reads a date and time: a space in place of the T, seconds left out, a zone in brackets. An offset is never guessed. */
export function readDateTime(text: string, basics: Basics): string | undefined {
  const zoned = /^([^[]*)\[([^[]*)\]$/.exec(text);
  if (zoned) return withZone(zoned[1]!, zoned[2]!, basics);
  const { trim } = basics;
  const middle = text.search(/[Tt ]/);
  const date = middle < 0 ? undefined : readDate(text.slice(0, middle));
  const rest = trim(text.slice(middle + 1));
  const end = rest.search(/[Zz+-]/);
  if (!date || end < 0) return undefined;
  const time = trim(rest.slice(0, end));
  const seconds = time.split(":").length === 2 ? ":00" : "";
  return `${date}T${time}${seconds}${rest.slice(end).replace(/[a-z]/g, (letter) => letter.toUpperCase())}`;
}

/** A local time in a zone, as the moment it means. A time that a change of clocks skips is the one after it; of two, the first is taken. */
function withZone(local: string, zone: string, { isDate }: Basics): string | undefined {
  const found = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::(\d\d)(\.\d+)?)?$/.exec(local.trim());
  const wall = found && isDate(found[1]!) ? Date.parse(`${found[1]}T${found[2]}:${found[3] ?? "00"}Z`) : NaN;
  if (Number.isNaN(wall)) return undefined;
  const before = offsetAt(wall - 864e5, zone);
  const after = offsetAt(wall + 864e5, zone);
  if (before === undefined || after === undefined) return undefined;
  const holds = (offset: number) => offsetAt(wall - offset, zone) === offset;
  const offset = holds(before) ? before : holds(after) ? after : offsetAt(wall - before, zone)!;
  // In a gap the clock is moved on by what is skipped.
  const shown = holds(before) || holds(after) ? wall : wall - before + offset;
  const minutes = Math.abs(offset) / 6e4;
  const two = (number: number) => `${Math.floor(number)}`.padStart(2, "0");
  return `${new Date(shown).toISOString().slice(0, 19)}${found![4] ?? ""}${offset < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

/** The offset of a zone from UTC at a moment, in milliseconds; undefined for a zone that is not known here. */
function offsetAt(moment: number, zone: string): number | undefined {
  const fixed = /^([+\-\u2212])(\d\d?)(?::?(\d\d))?$/.exec(zone.trim());
  if (fixed) return (Number(fixed[2]) * 60 + Number(fixed[3] ?? 0)) * (fixed[1] === "+" ? 6e4 : -6e4);
  try {
    const parts = new Intl.DateTimeFormat("en", { timeZone: /^z$/i.test(zone.trim()) ? "UTC" : zone.trim(), timeZoneName: "longOffset" }).formatToParts(moment);
    const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)/.exec(parts.find(({ type }) => type === "timeZoneName")!.value) ?? [];
    return sign ? (Number(hours) * 60 + Number(minutes)) * (sign === "+" ? 6e4 : -6e4) : 0;
  } catch {
    return undefined;
  }
}
