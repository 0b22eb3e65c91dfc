/**
 * Spells an http or https address in its own letters in ASCII: the host in Punycode, the rest percent-encoded. Undefined for one that is in
 * ASCII already, and for what the platform would repair.
 */
export function readAddress(text: string): string | undefined {
  if (/^[\0-\x7f]*$|[\p{White_Space}\p{Cc}\\]/u.test(text) || !URL.canParse(text)) return undefined;
  const { protocol, href } = new URL(text);
  return /^https?:$/.test(protocol) ? href : undefined;
}
