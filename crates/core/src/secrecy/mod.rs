//! Detection of forms that ask for a credential.
//!
//! Form mode must not: "Servers MUST NOT use form mode elicitation to request sensitive information such as passwords,
//! API keys, access tokens, or payment credentials" (specification, elicitation page, 2025-11-25 and 2026-07-28).
//! Servers reject certain findings, clients warn of all findings. Names, titles, descriptions, the message and patterns
//! are checked, in several languages and with the usual disguises. Only fields for typed input can ask for a secret; a
//! choice or a yes-or-no field cannot.
//!
//! - `words`: any spelling, split into plain words
//! - `terms`: the words for credentials, and the words that make them harmless
//! - `scan`: the credential that a label or a sentence asks for
//! - `shapes`: patterns that only credentials match
//! - `suspicion`: the reported finding

mod scan;
mod shapes;
mod suspicion;
mod terms;
pub(crate) mod words;

pub use suspicion::{Confidence, CredentialKind, Suspicion, TextSource};

use crate::form::{Field, Form, Kind, Pattern};
use crate::wire::{ElicitRequest, members};
use scan::{FoundCredential, Intent, Scan, TextStyle};

/// Returns the credentials that a form and its message ask for: one suspicion per field, in the form's order, then the
/// message's own.
pub fn inspect(form: &Form, message: &str) -> Vec<Suspicion> {
    let subjects: Vec<FieldTexts<'_>> = form
        .fields()
        .iter()
        .filter_map(FieldTexts::from_field)
        .collect();
    inspect_subjects(&subjects, message)
}

/// Returns the credentials that a question with this form asks for. The title and the description of the schema itself,
/// which are not part of a form and which some clients show, count with the message.
pub fn inspect_request(request: &ElicitRequest, form: &Form) -> Vec<Suspicion> {
    let message = request.message();
    let ElicitRequest::Form { schema, .. } = request else {
        return inspect(form, message);
    };
    let headings = members::several(schema, ["title", "description"]);
    let headings = headings.into_iter().flatten().filter_map(members::text);
    let headings: Vec<_> = headings.collect();
    if headings.is_empty() {
        return inspect(form, message);
    }
    let mut suspicions = inspect(form, message);
    for text in headings {
        let more = inspect(form, &text).into_iter();
        suspicions.extend(more.filter(|found| found.source == TextSource::Message));
    }
    suspicions
}

/// The parts of a field that are checked.
#[derive(Debug, Clone, Copy)]
struct FieldTexts<'a> {
    name: &'a str,
    title: Option<&'a str>,
    description: Option<&'a str>,
    pattern: Option<&'a str>,
    /// A format that forms do not have.
    format: Option<&'a str>,
    /// `true` if only a number can be entered.
    numeric: bool,
}

impl<'a> FieldTexts<'a> {
    /// Returns the parts of a field; `None` for a field without typed input, whose options the server already knows.
    fn from_field(field: &'a Field) -> Option<Self> {
        let (pattern, format, numeric) = typed_rules(field.kind())?;
        let (name, title, description) = (field.name(), field.title(), field.description());
        Some(Self {
            name,
            title,
            description,
            pattern,
            format,
            numeric,
        })
    }
}

/// Returns the pattern and the format of a kind, and `true` if only a number can be entered. `None` for a kind without
/// typed input.
fn typed_rules(kind: &Kind) -> Option<(Option<&str>, Option<&str>, bool)> {
    match kind {
        Kind::Text(text) => {
            let pattern = text.pattern.as_ref().map(Pattern::as_str);
            Some((pattern, text.other_format.as_deref(), false))
        }
        Kind::Number(_) | Kind::Integer(_) => Some((None, None, true)),
        Kind::Boolean(_) | Kind::Choice(_) | Kind::Choices(_) => None,
        // The alternative that accepts most: a text, then a number.
        Kind::Union(union) => {
            let rules = union.alternatives.iter().filter_map(typed_rules);
            rules.min_by_key(|(_, _, numeric)| *numeric)
        }
        Kind::Lines(lines) => typed_rules(&lines.item),
    }
}

fn inspect_subjects(subjects: &[FieldTexts<'_>], message: &str) -> Vec<Suspicion> {
    let mut suspicions: Vec<Suspicion> = subjects.iter().filter_map(inspect_subject).collect();
    // Without typed input, nothing that the message mentions can be entered.
    if !subjects.is_empty()
        && let Some(found) = scan::scan(message, TextStyle::Message).found
        && !suspicions
            .iter()
            .any(|known| known.secret == found.secret && known.level >= found.level)
    {
        let field = match subjects {
            [only] if suspicions.is_empty() => Some(only.name.to_owned()),
            _ => None,
        };
        suspicions.push(Suspicion {
            field,
            secret: found.secret,
            level: found.level,
            source: TextSource::Message,
        });
    }
    suspicions
}

fn inspect_subject(subject: &FieldTexts<'_>) -> Option<Suspicion> {
    let texts = [
        (TextSource::Name, Some(subject.name), TextStyle::Label),
        (TextSource::Title, subject.title, TextStyle::Label),
        (
            TextSource::Description,
            subject.description,
            TextStyle::Prose,
        ),
    ];
    let scans: Vec<(TextSource, Scan)> = texts
        .into_iter()
        .filter_map(|(source, text, style)| Some((source, scan::scan(text?, style))))
        .collect();
    let shape = subject
        .pattern
        .and_then(shapes::from_pattern)
        .map(|found| (TextSource::Pattern, found));
    let format = subject
        .format
        .and_then(shapes::from_format)
        .map(|found| (TextSource::Format, found));
    let found: Vec<(TextSource, FoundCredential)> = scans
        .iter()
        .filter_map(|(source, scan)| Some((*source, scan.found?)))
        .chain(shape)
        .chain(format)
        .filter(|(_, found)| !subject.numeric || found.secret.is_numeric())
        .collect();
    // The first of the gravest, so that the name is reported before texts that repeat it.
    let (source, gravest) = found.iter().rev().max_by_key(|(_, found)| found.level)?;
    let mut level = gravest.level;
    if level == Confidence::Suspicious {
        let harmless = scans
            .iter()
            .any(|(_, scan)| scan.harmless.contains(&gravest.secret));
        if harmless {
            return None;
        }
        // "token", described as "Your token for ...": together they are certain.
        let asks = |(source, found): &(TextSource, FoundCredential)| {
            *source == TextSource::Description && found.intent >= Intent::Owned
        };
        if found.len() > 1 && found.iter().any(asks) {
            level = Confidence::Certain;
        }
    }
    Some(Suspicion {
        field: Some(subject.name.to_owned()),
        secret: gravest.secret,
        level,
        source: *source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<'a>(
        name: &'a str,
        title: Option<&'a str>,
        description: Option<&'a str>,
    ) -> FieldTexts<'a> {
        FieldTexts {
            name,
            title,
            description,
            pattern: None,
            format: None,
            numeric: false,
        }
    }

    fn told(subjects: &[FieldTexts<'_>], message: &str) -> Vec<String> {
        inspect_subjects(subjects, message)
            .iter()
            .map(Suspicion::to_string)
            .collect()
    }

    #[test]
    fn each_field_is_told_once_with_the_first_of_the_gravest_places() {
        let fields = [
            text("value", Some("API key"), Some("Your API key")),
            text("note", None, None),
            text("password", Some("Password"), None),
            text("input", None, Some("Enter your password")),
        ];
        assert_eq!(
            told(&fields, "Please log in"),
            [
                "The field \"value\" asks for an API key or secret: its title says so.",
                "The field \"password\" asks for a password.",
                "The field \"input\" asks for a password: its description says so.",
            ]
        );
    }

    #[test]
    fn a_description_settles_what_an_ambiguous_name_means() {
        let level = |name, description| {
            inspect_subjects(&[text(name, None, Some(description))], "")
                .first()
                .map(Suspicion::level)
        };
        assert_eq!(
            level("token", "Your token for the build service"),
            Some(Confidence::Certain)
        );
        assert_eq!(level("token", "The page token to continue from"), None);
        assert_eq!(
            level("token", "From the last answer"),
            Some(Confidence::Suspicious)
        );
        assert_eq!(level("pin", "GPIO pin to switch on"), None);
        assert_eq!(level("pin", "Enter your PIN"), Some(Confidence::Certain));
        assert_eq!(
            level("password", "password policy to apply"),
            Some(Confidence::Certain)
        );
    }

    #[test]
    fn a_number_is_no_key_and_no_token() {
        let number = |name| FieldTexts {
            numeric: true,
            ..text(name, None, None)
        };
        assert_eq!(
            told(&[number("token"), number("api_key"), number("secret")], ""),
            Vec::<String>::new()
        );
        assert_eq!(
            told(&[number("otp")], ""),
            ["The field \"otp\" asks for a one-time login code."]
        );
        assert_eq!(
            told(&[number("ssn")], ""),
            ["The field \"ssn\" asks for a national identity number."]
        );
    }

    #[test]
    fn a_message_counts_when_there_is_something_to_write_into() {
        let message = "Please enter your password to continue.";
        assert_eq!(told(&[], message), Vec::<String>::new());
        assert_eq!(
            told(&[text("value", None, None)], message),
            ["The field \"value\" asks for a password: the message says so."]
        );
        assert_eq!(
            told(
                &[text("user", None, None), text("value", None, None)],
                message
            ),
            ["The message asks for a password."]
        );
        assert_eq!(
            told(&[text("password", None, None)], message),
            ["The field \"password\" asks for a password."]
        );
        assert_eq!(
            told(&[text("reason", None, None)], "Your password has expired"),
            Vec::<String>::new()
        );
        assert_eq!(
            told(&[text("reason", None, None)], "Your password is required"),
            ["The field \"reason\" may ask for a password: the message says so."]
        );
    }

    #[test]
    fn a_choice_or_a_yes_or_no_asks_for_no_secret() {
        let form = Form::parse(
            r#"{"type":"object","properties":{
                "password":{"type":"boolean","title":"Change password?"},
                "token":{"type":"string","enum":["read","write"]},
                "secrets":{"type":"array","items":{"type":"string","enum":["a","b"]}},
                "api_key":{"type":"string"}
            }}"#,
        )
        .expect("a form");
        let suspicions = inspect(&form, "Enter your password");
        let fields: Vec<_> = suspicions.iter().map(Suspicion::field).collect();
        assert_eq!(fields, [Some("api_key"), None]);
    }

    #[test]
    fn the_title_and_the_description_of_the_schema_count_with_the_message() {
        let schema = |more: &str| {
            format!(r#"{{"type":"object","properties":{{"value":{{"type":"string"}}}}{more}}}"#)
        };
        for (more, asks) in [
            ("", false),
            (
                r#","title":"Where to deploy","description":"The region""#,
                false,
            ),
            (r#","title":"Password""#, true),
            (r#","description":"Enter your password""#, true),
        ] {
            let text = schema(more);
            let form = Form::parse(&text).expect("a form");
            let value = serde_json::from_str(&text).expect("JSON");
            let request = ElicitRequest::form("Go on?", &value);
            assert_eq!(!inspect_request(&request, &form).is_empty(), asks, "{more}");
        }
    }

    #[test]
    fn a_pattern_gives_a_key_away() {
        let keyed = FieldTexts {
            pattern: Some("^ghp_[A-Za-z0-9]{36}$"),
            format: None,
            ..text("value", None, None)
        };
        assert_eq!(
            told(&[keyed], ""),
            ["The field \"value\" asks for an access token: its pattern says so."]
        );
    }

    #[test]
    fn a_hostile_name_is_harmless_to_print() {
        let sentence = told(&[text("pass\u{202e}word\n\u{1b}[31m", None, None)], "").join("");
        assert!(
            sentence.starts_with("The field \"password[31m\" "),
            "{sentence}"
        );
        let long = "x_".repeat(10_000) + "password";
        assert!(told(&[text(&long, None, None)], "")[0].len() < 200);
    }
}
