/**
 * Spells the domain of a mail address in Punycode. Undefined for one that is in ASCII already, and for what is no domain. Each label is read
 * before another one, so that the platform does not take a number for an address.
 */
export function readMail(text: string): string | undefined {
  const at = text.lastIndexOf("@");
  const domain = text.slice(at + 1);
  if (at < 0 || /[^\0-\x7f]/.test(text.slice(0, at)) || !/[^\0-\x7f]/.test(domain)) return undefined;
  const labels = domain.normalize("NFKC").split(/[.\u3002]/).map((label) => {
    if (!/^(?!-|(?!xn)..--)[^\0-,/:-@[-`{-\x7f]+(?<!-)$/iu.test(label) || !URL.canParse(`http://${label}.x`)) return "";
    return new URL(`http://${label}.x`).hostname.slice(0, -2);
  });
  return labels.every(Boolean) ? `${text.slice(0, at)}@${labels.join(".")}` : undefined;
}

/**
 * Spells an http or https address in its own letters in ASCII: the host in Punycode, the rest percent-encoded. Undefined for one that is in
 * ASCII already, and for what the platform would repair.
 */
export function readAddress(text: string): string | undefined {
  if (/^[\0-\x7f]*$|[\p{White_Space}\p{Cc}\\]/u.test(text) || !URL.canParse(text)) return undefined;
  const { protocol, href } = new URL(text);
  return /^https?:$/.test(protocol) ? href : undefined;
}
