//! RFC 5321 mailboxes: the crate reads the shape, the rules for the domain are SMTP's.

use std::net::{Ipv4Addr, Ipv6Addr};

use email_address::EmailAddress;

pub(super) fn is_mailbox(text: &str) -> bool {
    // Mailboxes with other letters are RFC 6531's, a different format.
    if !text.is_ascii() || !text.contains('@') {
        return false;
    }
    if let Some(plain) = plain_domain(text) {
        return is_host(plain);
    }
    // An empty quoted local part is legal (RFC 5321 §4.1.2, Quoted-string) though the crate refuses it.
    if let Some(domain) = text.strip_prefix("\"\"@") {
        return is_domain(domain) && EmailAddress::is_valid_domain(domain);
    }
    text.parse::<EmailAddress>()
        .is_ok_and(|mailbox| is_domain(mailbox.domain()))
}

/// The domain of the everyday shape, `atom(.atom)*@domain` with a short local part, which needs no general parser.
fn plain_domain(text: &str) -> Option<&str> {
    let at = text.bytes().position(|b| !is_atext(b))?;
    let (local, rest) = text.split_at(at);
    let dots_stand_inside =
        !local.starts_with('.') && !local.ends_with('.') && !local.contains("..");
    let domain = rest.strip_prefix('@')?;
    let plain = dots_stand_inside
        && (1..=64).contains(&local.len())
        && (1..=253).contains(&domain.len())
        && !domain.starts_with('[');
    plain.then_some(domain)
}

const fn is_atext(b: u8) -> bool {
    matches!(b, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'/' | b'=' | b'?' | b'^'..=b'`' | b'{'..=b'~')
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
    // "--" in the third and fourth place is kept for A-labels, which must decode (RFC 5891 §4.2.3.1).
    let marked = matches!(bytes, [_, _, b'-', b'-', ..]);
    shaped
        && (!marked
            || (label
                .get(..4)
                .is_some_and(|tag| tag.eq_ignore_ascii_case("xn--"))
                && url::Host::parse(label).is_ok()))
}
