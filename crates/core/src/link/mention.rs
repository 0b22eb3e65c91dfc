//! Links inside ordinary text, where a form must not have them: servers "SHOULD NOT include URLs intended to be
//! clickable in any field of a form mode elicitation request", and clients should not make them clickable ("Safe URL
//! Handling", 3 for servers and 7 for clients).

use crate::form::{ChoiceOption, Form, Kind};
use crate::secrecy::TextSource;

/// A link in one of a form's texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The field; `None` for the message.
    pub field: Option<String>,
    /// The text of the field that contains it.
    pub source: TextSource,
    /// The link as written.
    pub link: String,
}

/// Returns every link in the message and in the names, titles, descriptions and options of a form; at most ten per
/// text.
pub fn mentions_in(form: &Form, message: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut read = |field: Option<&str>, source: TextSource, text: &str| {
        found.extend(mentions(text).into_iter().map(|link| Mention {
            field: field.map(str::to_owned),
            source,
            link: link.to_owned(),
        }));
    };
    read(None, TextSource::Message, message);
    for field in form.fields() {
        let name = Some(field.name());
        read(name, TextSource::Name, field.name());
        read(name, TextSource::Title, field.title().unwrap_or_default());
        read(
            name,
            TextSource::Description,
            field.description().unwrap_or_default(),
        );
        let options: &[ChoiceOption] = match field.kind() {
            Kind::Choice(choice) => &choice.options,
            Kind::Choices(choices) => &choices.options,
            Kind::Text(_)
            | Kind::Number(_)
            | Kind::Integer(_)
            | Kind::Boolean(_)
            | Kind::Union(_)
            | Kind::Lines(_) => &[],
        };
        // A bare value is data, such as one of several URLs to choose from; a title is text for people.
        options
            .iter()
            .filter_map(|option| option.title.as_deref())
            .for_each(|title| read(name, TextSource::Option, title));
    }
    found
}

/// The most links per text that are reported.
const MAX_MENTIONS: usize = 10;

/// Returns the links in a text, as written and in order: URLs with a scheme, `www.` names, names with a path
/// (`example.net/login`), Markdown and HTML links. Hosts reserved for examples (RFC 2606) are skipped. At most ten are
/// returned.
pub fn mentions(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for chunk in text.split(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`' | '|'))
    {
        for piece in chunk.split("](") {
            if found.len() >= MAX_MENTIONS {
                return found;
            }
            found.extend(mention(piece));
        }
    }
    found
}

/// Returns the link in a piece of text without white space.
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

/// Returns the start of the scheme before `://`: "https://" in "see(https://".
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

/// Returns `true` if `lower` starts a link with this scheme: "data:text/html" does; "data:" alone and "Data: see below"
/// do not.
fn opens(lower: &str, scheme: &str) -> bool {
    lower
        .strip_prefix(scheme)
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '/' || c == '+'))
}

/// Returns `true` for a name that programs make clickable without a scheme: `www.x.y`, or a name under a listed suffix
/// with a path.
fn is_bare(lower: &str) -> bool {
    let host = lower.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    let named = host.contains('.')
        && !host.contains('@')
        && host.split('.').all(|label| !label.is_empty())
        && host
            .chars()
            .all(|c| c.is_alphanumeric() || c == '.' || c == '-')
        && stands_under_a_suffix(host);
    named && (host.starts_with("www.") || lower.as_bytes().get(host.len()) == Some(&b'/'))
}

fn stands_under_a_suffix(host: &str) -> bool {
    idna::domain_to_ascii(host).is_ok_and(|name| {
        psl2::lookup(&name).is_some_and(|name| name.is_known() && !name.is_public_suffix())
    })
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
    fn every_text_of_a_form_is_read() {
        let form = Form::parse(
            r#"{"type":"object","properties":{
                "a":{"type":"string","title":"See https://a.test","description":"or https://b.test","default":"https://no.test"},
                "c":{"type":"string","oneOf":[{"const":"https://no.test","title":"www.c.net"}]},
                "d":{"type":"string","enum":["https://no.test"]}
            }}"#,
        )
        .expect("a form");
        let found = mentions_in(&form, "go to https://m.test now");
        let told: Vec<_> = found
            .iter()
            .map(|m| (m.field.as_deref(), m.source.as_str(), m.link.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (None, "message", "https://m.test"),
                (Some("a"), "title", "https://a.test"),
                (Some("a"), "description", "https://b.test"),
                (Some("c"), "option", "www.c.net"),
            ]
        );
    }

    #[test]
    fn what_is_told_is_bounded() {
        assert_eq!(
            mentions(&"https://a.test ".repeat(1_000)).len(),
            MAX_MENTIONS
        );
    }
}
