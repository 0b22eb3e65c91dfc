/** Whether `n` is a whole multiple of `step`, by their decimal notation: 0.3 is a multiple of 0.1. */
export function isMultiple(n: number, step: number): boolean {
  const [digits, exponent] = decimal(n);
  const [by, scale] = decimal(step);
  const shift = exponent - scale;
  const tens = 10n ** BigInt(Math.abs(shift));
  return by > 0n && (shift < 0 ? digits % (by * tens) : (digits * tens) % by) === 0n;
}

/** `digits * 10^exponent`, without the sign. */
function decimal(n: number): [bigint, number] {
  const size = Math.abs(n);
  // Below 10^22 a whole number is what was written; above, only its shortest decimal is.
  if (Number.isInteger(n) && size < 1e22) return [BigInt(size), 0];
  const [mantissa = "", exponent] = size.toExponential().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  return [BigInt(whole + fraction), Number(exponent) - fraction.length];
}
