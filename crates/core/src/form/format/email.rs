//! RFC 5321 mailboxes.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns `true` for a `Mailbox` (RFC 5321 §4.1.2). Mailboxes with non-ASCII letters belong to RFC 6531, which is
/// another format.
pub(super) fn is_mailbox(text: &str) -> bool {
    let local_ends = if text.starts_with('"') {
        quoted(text.as_bytes())
    } else {
        dot_string(text.as_bytes())
    };
    local_ends.filter(|end| *end <= 64).is_some_and(|end| {
        text[end..]
            .strip_prefix('@')
            .is_some_and(|domain| domain.is_ascii() && is_domain(domain))
    })
}

/// Returns the end of the `Dot-string` at the beginning.
fn dot_string(text: &[u8]) -> Option<usize> {
    let end = text
        .iter()
        .position(|b| !is_atext(*b) && *b != b'.')
        .unwrap_or(text.len());
    let sound = text[..end]
        .split(|b| *b == b'.')
        .all(|atom| !atom.is_empty());
    sound.then_some(end)
}

/// Returns the end of the `Quoted-string` at the beginning.
fn quoted(text: &[u8]) -> Option<usize> {
    let mut i = 1;
    loop {
        match *text.get(i)? {
            b'"' => return Some(i + 1),
            b'\\' if matches!(text.get(i + 1)?, b' '..=b'~') => i += 2,
            b'\\' => return None,
            b' '..=b'~' => i += 1,
            _ => return None,
        }
    }
}

const fn is_atext(b: u8) -> bool {
    matches!(b, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'/' | b'=' | b'?' | b'^'..=b'`' | b'{'..=b'~')
}

fn is_domain(domain: &str) -> bool {
    match domain.strip_prefix('[').and_then(|d| d.strip_suffix(']')) {
        Some(literal) => is_address(literal),
        None => is_host(domain),
    }
}

fn is_address(literal: &str) -> bool {
    match literal.split_at_checked(5) {
        Some((tag, address)) if tag.eq_ignore_ascii_case("ipv6:") => {
            address.parse::<Ipv6Addr>().is_ok()
        }
        _ => literal.parse::<Ipv4Addr>().is_ok(),
    }
}

fn is_host(domain: &str) -> bool {
    domain.len() <= 253 && domain.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    let shaped = (1..=63).contains(&bytes.len())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || *b == b'-')
        && bytes[0] != b'-'
        && bytes[bytes.len() - 1] != b'-';
    // "--" in the third and fourth position is reserved for A-labels, which must decode (RFC 5891 §4.2.3.1).
    let marked = matches!(bytes, [_, _, b'-', b'-', ..]);
    shaped
        && (!marked
            || (label
                .get(..4)
                .is_some_and(|tag| tag.eq_ignore_ascii_case("xn--"))
                && url::Host::parse(label).is_ok()))
}
