/** A time that is left, in seconds, as `4:09`; null for an hour or more. */
export function minutesLeft(seconds: number): string | null {
  return seconds < 3600 ? `${Math.floor(seconds / 60)}:${`${seconds % 60}`.padStart(2, "0")}` : null;
}
