/** Writes a number as JSON does, from what people write: a decimal comma, grouped digits, a plus. Undefined where it can be read in two ways. */
export function plainNumber(text: string): string | undefined {
  let plain = text.replaceAll("\u2212", "-").replace(/^\+/, "");
  // Spaces and apostrophes group digits: 12 000, 12'000.
  const grouped = /[\p{White_Space}'\u2019_]/gu;
  if (plain.search(grouped) >= 0) {
    const groups = plain.split(/[.,]/)[0]!.replace(/^-+/, "").split(grouped);
    const bytes = groups.map(sizeOf);
    if (!/^[123]$/.test(`${bytes[0]}`) || bytes.slice(1).some((size) => size !== 3)) return undefined;
    plain = plain.replace(grouped, "");
  }
  // One comma is a decimal comma unless three digits follow: then it may be either, and is not read.
  const comma = plain.indexOf(",");
  if (comma >= 0) {
    const fraction = plain.slice(comma + 1);
    if (sizeOf(fraction) === 3 || /[,.]/.test(fraction) || plain.slice(0, comma).includes(".")) return undefined;
    plain = plain.replace(",", ".");
  }
  return plain[0] === "." ? `0${plain}` : plain;
}

/** In bytes: a digit of another script is not one of three. */
const sizeOf = (text: string) => new TextEncoder().encode(text).length;
