/** Reads a number as people write it. Undefined where it is none, null where this page would have to round a whole number. */
export function readNumber(text: string): number | null | undefined {
  let plain = text.replaceAll("\u2212", "-").replace(/^\+/, "");
  // Spaces and apostrophes group digits: 12 000, 12'000.
  const grouped = /[\p{White_Space}'\u2019_]/gu;
  if (plain.search(grouped) >= 0) {
    const groups = plain.split(/[.,]/)[0]!.replace(/^-+/, "").split(grouped);
    const bytes = groups.map((group) => new TextEncoder().encode(group).length);
    if (!/^[123]$/.test(`${bytes[0]}`) || bytes.slice(1).some((size) => size !== 3)) return undefined;
    plain = plain.replace(grouped, "");
  }
  // One comma is a decimal comma unless three digits follow: then it may be either, and is not read.
  const comma = plain.indexOf(",");
  if (comma >= 0) {
    const fraction = plain.slice(comma + 1);
    if (new TextEncoder().encode(fraction).length === 3 || /[,.]/.test(fraction) || plain.slice(0, comma).includes(".")) return undefined;
    plain = plain.replace(",", ".");
  }
  if (plain[0] === ".") plain = `0${plain}`;
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(plain)) return undefined;
  const number = Number(plain);
  if (!Number.isFinite(number)) return undefined;
  return /^-?\d+$/.test(plain) && BigInt(plain) !== BigInt(number) ? null : number;
}
