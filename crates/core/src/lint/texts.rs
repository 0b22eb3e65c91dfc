//! Lint rules for missing, long or deceptive texts.

use std::collections::HashMap;

use super::question::LocatedQuestion;
use super::report::LintFindings;
use crate::form::{ChoiceOption, Field, Form, Format, Kind};
use crate::link;
use crate::secrecy::TextSource;
use crate::secrecy::words::{is_invisible, words};
use crate::text;

const LONG_TITLE: usize = 80;
const LONG_DESCRIPTION: usize = 500;
const LONG_MESSAGE: usize = 1_000;
const MANY_FIELDS: usize = 12;

/// Lints the message above a form or link.
pub(super) fn message(question: &LocatedQuestion<'_>, message: &str, findings: &mut LintFindings) {
    let at = question.message_pointer();
    if message.trim().is_empty() {
        findings.warn(
            &at,
            "no-message",
            "the message is empty: a person is not told why this is asked",
            "say what it is for in one sentence",
        );
    }
    if message.chars().count() > LONG_MESSAGE {
        findings.note(
            &at,
            "long-text",
            format!("the message is longer than {LONG_MESSAGE} characters: few will read it"),
            "",
        );
    }
    hidden(&at, message, findings);
}

/// Adds the findings that concern the whole form.
pub(super) fn form(question: &LocatedQuestion<'_>, form: &Form, findings: &mut LintFindings) {
    if form.fields().is_empty() {
        findings.note(
            &question.at("/properties"),
            "no-fields",
            "the form has no fields: it only asks a person to confirm",
            "",
        );
    }
    if form.fields().len() > MANY_FIELDS {
        let message = format!("{} fields are many for one question", form.fields().len());
        findings.warn(
            &question.at("/properties"),
            "many-fields",
            message,
            "ask in two steps, or leave out what can be asked later",
        );
    }
    let mut labels: HashMap<String, &str> = HashMap::new();
    for field in form.fields() {
        if let Some(first) = labels.insert(field.label().trim().to_lowercase(), field.name()) {
            let message =
                format!("this field is labelled like `{first}`: a person cannot tell them apart");
            findings.warn(
                &question.field(field.name()),
                "same-label",
                message,
                "give each a title of its own",
            );
        }
    }
    let message = question.message.as_deref().unwrap_or_default();
    for mention in link::mentions_in(form, message) {
        let at = match (&mention.field, mention.source) {
            (None, _) => question.message_pointer(),
            (Some(field), TextSource::Title) => format!("{}/title", question.field(field)),
            (Some(field), TextSource::Description) => {
                format!("{}/description", question.field(field))
            }
            (
                Some(field),
                TextSource::Name
                | TextSource::Option
                | TextSource::Pattern
                | TextSource::Format
                | TextSource::Message,
            ) => question.field(field),
        };
        findings.warn(
            &at,
            "link-in-form",
            format!(
                "the {} holds a link: a form should have none that could be clicked",
                mention.source.as_str()
            ),
            "send the person there with url mode, or name the place in words",
        );
    }
}

/// Adds the findings about one field's texts.
pub(super) fn field(at: &str, field: &Field, findings: &mut LintFindings) {
    let title_at = format!("{at}/title");
    match field.title().map(str::trim) {
        None => {
            let message = format!(
                "there is no title: a person reads the bare name \"{}\"",
                shortened(field.name())
            );
            if is_readable(field.name()) {
                findings.note(at, "no-title", message, "give a `title`");
            } else {
                findings.warn(
                    at,
                    "no-title",
                    message,
                    "give a `title` that a person understands",
                );
            }
        }
        Some("") => findings.warn(
            &title_at,
            "no-title",
            "the title is empty",
            "give a `title` that a person understands",
        ),
        Some(title) if title.chars().count() > LONG_TITLE => {
            let message = format!("the title is longer than {LONG_TITLE} characters");
            findings.note(
                &title_at,
                "long-text",
                message,
                "move the explanation into the description",
            );
        }
        Some(_) => {}
    }
    let description_at = format!("{at}/description");
    match field.description().map(str::trim) {
        None | Some("") => {
            findings.note(
                at,
                "no-description",
                "there is no description: a person is not told what it is for",
                "give a `description` of one sentence",
            );
        }
        Some(text) if text.chars().count() > LONG_DESCRIPTION => {
            let message = format!(
                "the description is longer than {LONG_DESCRIPTION} characters: few will read it"
            );
            findings.note(&description_at, "long-text", message, "");
        }
        Some(_) => {}
    }
    hidden(at, field.name(), findings);
    hidden(&title_at, field.title().unwrap_or_default(), findings);
    hidden(
        &description_at,
        field.description().unwrap_or_default(),
        findings,
    );
    if let Kind::Text(text) = field.kind()
        && text.format.is_none()
        && text.other_format.is_none()
        && text.pattern.is_none()
        && let Some(format) = fitting_format(field.name())
    {
        let message = format!(
            "by its name this is {}, but nothing checks that it is one",
            format.expected()
        );
        findings.note(
            at,
            "no-format",
            message,
            &format!("add \"format\": \"{}\"", format.as_str()),
        );
    }
}

/// Adds findings about characters that make a text look like another.
pub(super) fn hidden(at: &str, text: &str, findings: &mut LintFindings) {
    let suspect = |c: char| is_invisible(c) || (c.is_control() && !matches!(c, '\n' | '\t' | '\r'));
    // Joiners, direction marks and variation selectors are part of emoji and of several scripts.
    let harmless = |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}');
    if let Some(c) = text.chars().find(|c| suspect(*c) && !harmless(*c)) {
        let message = format!(
            "the text holds an invisible character (U+{:04X}), which can make it read as another",
            u32::from(c)
        );
        findings.warn(at, "invisible-characters", message, "remove it");
    }
}

/// Lints the titles of options, which people read too.
pub(super) fn option_titles(at: &str, options: &[ChoiceOption], findings: &mut LintFindings) {
    for option in options {
        hidden(at, option.label(), findings);
    }
}

/// Returns `true` for one plain word, as a person would write it.
fn is_readable(name: &str) -> bool {
    name.chars().all(|c| c.is_alphabetic() && !c.is_uppercase()) && name.len() > 2
}

/// Returns a peer's text, short enough to repeat.
pub(super) fn shortened(name: &str) -> String {
    text::shortened(name, 40)
}

fn fitting_format(name: &str) -> Option<Format> {
    let words = words(name);
    Some(match words.last()?.as_str() {
        "email" | "mail" => Format::Email,
        "date" | "birthday" | "birthdate" => Format::Date,
        "url" | "uri" | "website" | "homepage" => Format::Uri,
        _ => return None,
    })
}
