const isSpace = (char: string | undefined) => /^\p{White_Space}$/u.test(char ?? "");

/** Removes white space at both ends, as Unicode counts it. */
export function trim(text: string): string {
  let [start, end] = [0, text.length];
  while (isSpace(text[start])) start++;
  while (end > start && isSpace(text[end - 1])) end--;
  return text.slice(start, end);
}
