//! Links inside ordinary text. A form's texts are no place for them: servers "SHOULD NOT include URLs intended to be
//! clickable in any field of a form mode elicitation request", and clients should not make them clickable ("Safe URL
//! Handling", 3 for servers and 7 for clients).

/// How many links of one text are told.
const TOLD: usize = 10;

/// The links in a text, as they stand there and in order: URLs with a scheme, `www.` names, names with a path
/// (`example.net/login`), Markdown and HTML links. Hosts reserved for examples (RFC 2606) lead nowhere and do not count.
/// At most ten are given.
pub fn mentions(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for chunk in text.split(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`' | '|'))
    {
        for piece in chunk.split("](") {
            if found.len() >= TOLD {
                return found;
            }
            found.extend(mention(piece));
        }
    }
    found
}

/// The link that a piece of text without white space is.
fn mention(piece: &str) -> Option<&str> {
    let piece = piece.trim_start_matches(|c: char| c.is_ascii_punctuation() && c != '/');
    let piece = piece.trim_end_matches(|c: char| {
        matches!(
            c,
            '.' | ',' | ';' | ':' | '!' | '?' | ')' | ']' | '\'' | '*' | '_'
        )
    });
    let start = piece.find("://").map_or(0, |at| scheme_start(piece, at));
    let piece = &piece[start..];
    let lower = piece.to_ascii_lowercase();
    let is_link = match lower.split_once("://") {
        Some((scheme, rest)) => is_scheme(scheme) && starts_host(rest) && !is_example(rest),
        None if ["javascript:", "data:", "mailto:", "tel:", "file:"]
            .iter()
            .any(|scheme| opens(&lower, scheme)) =>
        {
            true
        }
        None => is_bare(&lower) && !is_example(&lower),
    };
    is_link.then_some(piece)
}

/// Where the scheme before `://` begins: "see(https://" is "https://".
fn scheme_start(piece: &str, at: usize) -> usize {
    let scheme = piece[..at]
        .bytes()
        .rev()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
        .count();
    at - scheme
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn starts_host(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_alphanumeric() || c == '[' || c == '/')
}

/// "data:" alone or "Data: see below" is a word; "data:text/html" is not.
fn opens(lower: &str, scheme: &str) -> bool {
    lower
        .strip_prefix(scheme)
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '/' || c == '+'))
}

/// A name that programs make clickable without a scheme: `www.x.y`, or a name under a listed suffix with a path.
fn is_bare(lower: &str) -> bool {
    let host = lower.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    let named = host.contains('.')
        && !host.contains('@')
        && host.split('.').all(|label| !label.is_empty())
        && host
            .chars()
            .all(|c| c.is_alphanumeric() || c == '.' || c == '-')
        && psl::suffix(host.as_bytes())
            .is_some_and(|suffix| suffix.is_known() && suffix.as_bytes().len() < host.len());
    named && (host.starts_with("www.") || lower.as_bytes().get(host.len()) == Some(&b'/'))
}

fn is_example(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority
        .rsplit('@')
        .next()
        .unwrap_or_default()
        .split(':')
        .next()
        .unwrap_or_default();
    ["example.com", "example.net", "example.org", "example"]
        .iter()
        .any(|reserved| {
            host.strip_suffix(reserved)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_as_they_stand() {
        for (text, links) in [
            (
                "Sign in at https://evil.test/login.",
                vec!["https://evil.test/login"],
            ),
            (
                "Click [here](https://evil.test/a)!",
                vec!["https://evil.test/a"],
            ),
            (
                "<a href=\"http://evil.test\">x</a>",
                vec!["http://evil.test"],
            ),
            ("(see HTTPS://Evil.test)", vec!["HTTPS://Evil.test"]),
            ("a:https://evil.test b", vec!["https://evil.test"]),
            ("www.evil.net", vec!["www.evil.net"]),
            ("go to evil.net/login now", vec!["evil.net/login"]),
            ("javascript:alert(1)", vec!["javascript:alert(1"]),
            ("open data:text/html,x", vec!["data:text/html,x"]),
            ("mail mailto:a@b.test", vec!["mailto:a@b.test"]),
            (
                "vscode://file/x and slack://open",
                vec!["vscode://file/x", "slack://open"],
            ),
            (
                "x https://a.test y https://b.test",
                vec!["https://a.test", "https://b.test"],
            ),
        ] {
            assert_eq!(mentions(text), links, "{text}");
        }
    }

    #[test]
    fn ordinary_text_has_no_links() {
        for text in [
            "",
            "Which environment should I deploy to?",
            "and/or, yes/no, 1/2",
            "The file main.rs or src/main.rs",
            "e.g. https://example.com/x or http://api.example.org",
            "Node.js is fine",
            "version 1.2.3/4",
            "Data: none. File: none",
            "user@mail.test",
            "github.com",
            "://",
        ] {
            assert_eq!(mentions(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_is_told_is_bounded() {
        assert_eq!(mentions(&"https://a.test ".repeat(1_000)).len(), TOLD);
    }
}
