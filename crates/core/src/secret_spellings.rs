//! A secret in another's text, in the spellings that programs usually give it: the case of letters, percent-encoding,
//! escapes of JSON, hexadecimal digits and Base64.

use std::fmt::Write as _;
use std::ops::Range;

/// The part of a secret that is masked without the rest of it, in bytes: other texts are cut before they come here.
const BEGINNING: usize = 8;
/// The shortest spelling in another alphabet that is looked for, in bytes: a shorter one occurs in other words.
const SHORTEST: usize = 8;
/// The number of encodings on top of each other that are decoded.
const LAYERS: usize = 2;

/// Returns a text without a secret, and without the beginning of one that was cut.
pub(crate) fn masked(text: &str, secret: &str) -> String {
    let spellings = spellings(secret);
    let mut found = Vec::new();
    let mut layer = plain(text);
    for decoded in 0..=LAYERS {
        for spelling in &spellings {
            find(&layer, spelling, &mut found);
        }
        if decoded < LAYERS {
            layer = match decode(&layer) {
                Some(next) => next,
                None => break,
            };
        }
    }
    replaced(text, found)
}

/// One byte of a text, in lower case, and the bytes of the source that stand for it.
struct Decoded {
    byte: u8,
    source: Range<usize>,
}

fn plain(text: &str) -> Vec<Decoded> {
    let bytes = text.bytes().enumerate();
    let decoded = |(at, byte): (usize, u8)| Decoded {
        byte: byte.to_ascii_lowercase(),
        source: at..at + 1,
    };
    bytes.map(decoded).collect()
}

/// Decodes the escapes of URLs and of JSON; `None` if there are none.
fn decode(layer: &[Decoded]) -> Option<Vec<Decoded>> {
    let is_escape = |one: &Decoded| matches!(one.byte, b'%' | b'\\');
    if !layer.iter().any(is_escape) {
        return None;
    }
    let mut decoded = Vec::with_capacity(layer.len());
    let mut rest = layer;
    while let Some(first) = rest.first() {
        let (character, length) = escaped(rest).unwrap_or((None, 1));
        let source = first.source.start..rest[length - 1].source.end;
        let mut push = |byte: u8| {
            decoded.push(Decoded {
                byte: byte.to_ascii_lowercase(),
                source: source.clone(),
            });
        };
        match character {
            None => push(first.byte),
            Some(Escaped::Byte(byte)) => push(byte),
            Some(Escaped::Character(letter)) => {
                let mut buffer = [0; 4];
                letter.encode_utf8(&mut buffer).bytes().for_each(push);
            }
        }
        rest = &rest[length..];
    }
    Some(decoded)
}

enum Escaped {
    Byte(u8),
    Character(char),
}

/// Returns the value and the length of the escape at the start.
fn escaped(rest: &[Decoded]) -> Option<(Option<Escaped>, usize)> {
    let byte = |at: usize| rest.get(at).map(|one| one.byte);
    let number = |digits: Range<usize>| {
        digits.clone().try_fold(0, |number, at| {
            let digit = char::from(byte(at)?).to_digit(16)?;
            Some(number * 16 + digit)
        })
    };
    let one_byte = |digits: Range<usize>| u8::try_from(number(digits)?).ok().map(Escaped::Byte);
    match (byte(0)?, byte(1)?) {
        (b'%', _) => Some((Some(one_byte(1..3)?), 3)),
        (b'\\', b'x') => Some((Some(one_byte(2..4)?), 4)),
        (b'\\', b'u') => {
            let letter = char::from_u32(number(2..6)?)?;
            Some((Some(Escaped::Character(letter)), 6))
        }
        (b'\\', escaped @ (b'"' | b'\\' | b'/' | b'\'')) => Some((Some(Escaped::Byte(escaped)), 2)),
        _ => None,
    }
}

/// Adds the places of this spelling.
fn find(layer: &[Decoded], spelling: &[u8], found: &mut Vec<Range<usize>>) {
    let is_whole = spelling.contains(&b' ') || spelling.len() < BEGINNING;
    let needle = if is_whole {
        spelling
    } else {
        &spelling[..BEGINNING]
    };
    let mut at = 0;
    while at + needle.len() <= layer.len() {
        let same = layer[at..].iter().zip(spelling);
        let length = same.take_while(|(one, byte)| one.byte == **byte).count();
        if length < needle.len() {
            at += 1;
            continue;
        }
        found.push(layer[at].source.start..layer[at + length - 1].source.end);
        at += length;
    }
}

/// Returns the text with a mark in place of each of these parts.
fn replaced(text: &str, mut parts: Vec<Range<usize>>) -> String {
    parts.sort_by_key(|part| part.start);
    let mut shown = String::with_capacity(text.len());
    let (mut end, mut is_masked) = (0, false);
    for part in parts {
        if part.start > end || !is_masked {
            shown.push_str(text.get(end..part.start).unwrap_or_default());
            shown.push_str("***");
            is_masked = true;
        }
        end = end.max(part.end);
    }
    // Within a letter, the rest of it goes as well.
    while !text.is_char_boundary(end) {
        end += 1;
    }
    shown.push_str(&text[end..]);
    shown
}

/// Returns the spellings of a secret, in lower case.
fn spellings(secret: &str) -> Vec<Vec<u8>> {
    if secret.is_empty() {
        return Vec::new();
    }
    let mut all = vec![secret.to_owned()];
    let hex = secret.bytes().fold(String::new(), |mut hex, byte| {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    all.push(hex);
    for before in 0..3 {
        let inner = base64_of(secret.as_bytes(), before);
        all.push(inner.replace('+', "-").replace('/', "_"));
        all.push(inner);
    }
    // `user:password` is sent as Base64, and repeated as it is.
    if let Some(decoded) = base64_decoded(secret) {
        let password = decoded.split_once(':').map(|(_, password)| password);
        all.extend(password.map(str::to_owned));
        all.push(decoded);
    }
    let own = secret.len();
    let mut all: Vec<_> = all
        .into_iter()
        .enumerate()
        .filter(|(at, spelling)| spelling.len() >= if *at == 0 { own } else { SHORTEST })
        .map(|(_, spelling)| spelling.to_ascii_lowercase().into_bytes())
        .collect();
    all.dedup();
    all
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the digits of Base64 that depend on these bytes alone, if so many others, modulo three, come before them.
fn base64_of(bytes: &[u8], before: usize) -> String {
    let skipped = (before * 8).div_ceil(6);
    let mut digits = String::new();
    let (mut bits, mut held) = (0_u32, before * 8);
    for byte in bytes {
        bits = (bits << 8) | u32::from(*byte);
        held += 8;
        while held >= 6 {
            held -= 6;
            let digit = usize::try_from((bits >> held) & 63).unwrap_or_default();
            digits.push(char::from(ALPHABET[digit]));
        }
    }
    digits.get(skipped..).unwrap_or_default().to_owned()
}

/// Returns the text of a Base64 spelling, if it is one.
fn base64_decoded(text: &str) -> Option<String> {
    let digits = text.trim_end_matches('=');
    let (mut bits, mut held, mut bytes) = (0_u32, 0, Vec::new());
    for digit in digits.bytes() {
        let digit = match digit {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        };
        let value = ALPHABET.iter().position(|known| *known == digit)?;
        bits = (bits << 6) | u32::try_from(value).ok()?;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 255).ok()?);
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    (!text.chars().any(char::is_control)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_masked_in_every_usual_spelling() {
        let secret = "s3cr3t/Köy+\"9 ";
        let secret = secret.trim();
        for spelled in [
            "s3cr3t/Köy+\"9",
            "S3CR3T/KÖY+\"9",
            "s3cr3t%2FK%C3%B6y%2B%229",
            "s3cr3t%2fK%c3%b6y%2b%229",
            "%73%33%63%72%33%74%2f%4b%c3%b6%79%2b%22%39",
            r#"s3cr3t\/K\u00f6y+\"9"#,
            r"s3cr3t\u002fK\u00F6y\u002B\u00229",
            r"\x733cr3t\x2fK\xc3\xb6y+\x229",
            // Both, one in the other.
            "s3cr3t%252FK%25C3%25B6y%252B%25229",
            r#"s3cr3t\\/K\\u00f6y+\\\"9"#,
            "7333637233742f4bc3b6792b2239",
            "7333637233742F4BC3B6792B2239",
            // Base64 of the secret, and after one and two other bytes.
            "czNjcjN0L0vDtnkrIjk=",
            "OnMzY3IzdC9Lw7Z5KyI5",
            "eDpzM2NyM3QvS8O2eSsiOQ==",
        ] {
            let text = format!("before {spelled} after");
            let shown = masked(&text, secret);
            let parts = shown.split_once("***");
            let (before, after) = parts.unwrap_or_else(|| panic!("{spelled}: {shown}"));
            assert!(
                before.starts_with("before") && after.ends_with(" after"),
                "{shown}"
            );
            assert!(shown.len() < "before xxxx*** xxxx after".len(), "{shown}");
        }
    }

    #[test]
    fn other_words_stay() {
        let text = r#"100 %, 5%2F \u00e9 é \"x\" %zz \u12 c:\dir %"#;
        assert_eq!(masked(text, "hunter2hunter2"), text);
        assert_eq!(masked(text, ""), text);
        assert_eq!(masked("a b", "b"), "a ***");
        // Two next to each other are one.
        assert_eq!(masked("hunter2hunter2 x", "hunter2"), "*** x");
        assert_eq!(masked("ö hunter2345é ü", "hunter2345é"), "ö *** ü");
        assert_eq!(masked("a mek_1_2345 ...", "mek_1_23456789"), "a *** ...");
    }

    #[test]
    fn a_password_is_masked_beside_the_header_that_has_it() {
        // `me:hunter2hunter2`
        let header = "bWU6aHVudGVyMmh1bnRlcjI=";
        for text in [header, "me:hunter2hunter2", "hunter2hunter2"] {
            let shown = masked(text, header);
            assert!(
                !shown.contains("hunter2") && shown.contains("***"),
                "{shown}"
            );
        }
    }
}
