/** Characters that are not seen, or that change how their neighbours are seen. Joiners stay between letters that are not Latin. */
const HIDDEN =
  /[\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufff9-\ufffb]|(?![\u200c\u200d\ufe0e\ufe0f])\p{DI}|(?<![^\0-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\0-\x7f])/gu;

/** Makes a text of a server harmless to look at. What is taken out stays visible. */
export function inert(text: unknown, limit = 200, lines = false): string {
  const raw = typeof text === "string" ? text : (JSON.stringify(text) ?? "");
  const more = raw.length - limit;
  const shown = raw
    .slice(0, limit)
    .replace(/[\u200e\u200f\u061c]/g, "")
    .replace(/\r\n?|[\x0b\f\x85\u2028\u2029]/g, "\n")
    .replace(HIDDEN, (char) => {
      const code = char.codePointAt(0)!;
      return code < 32 ? String.fromCharCode(0x2400 + code) : `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
    });
  return (lines ? shown : shown.replace(/\s+/g, " ").trim()) + (more > 0 ? `… (+${more})` : "");
}
