/** The number one step on, by decimal notation: 0.1 + 0.2 is 0.3, and a number of twenty digits keeps them all. Null where there is none. */
export function stepped(value: string, step: string, least: string, most: string, direction: bigint): string | null {
  const read = (text: string) => /^\s*([+-]?)(\d*)(?:\.(\d*))?\s*$/.exec(text);
  const empty = !value.trim();
  const texts = [empty ? least || "0" : value, step, least, most].map((text) => (text ? read(text) : null));
  const places = Math.max(...texts.map((parts) => parts?.[3]?.length ?? 0));
  const [now, by, low, high] = texts.map((parts) => parts && BigInt(parts[1] + (parts[2] || "0") + (parts[3] ?? "").padEnd(places, "0")));
  if (now == null || by == null) return null;
  let next = empty ? now : now + direction * by;
  if (low != null && next < low) next = low;
  if (high != null && next > high) next = high;
  const digits = `${next < 0n ? -next : next}`.padStart(places + 1, "0");
  const fraction = places ? `.${digits.slice(-places)}`.replace(/\.?0+$/, "") : "";
  return (next < 0n ? "-" : "") + digits.slice(0, digits.length - places) + fraction;
}
