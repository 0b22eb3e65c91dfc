//! A linter for questions: legality, clarity and safety, on each revision.
//!
//! For authors of servers. The parser decides the legality; everything else here concerns the person: confusing parts
//! (no title, two fields with one label, a hundred options) and dangerous ones (a secret requested in a form, a link in
//! a text, a default that deletes). A question is given as text: a requestedSchema, the params of `elicitation/create`,
//! the whole request, or an `input_required` result with several.
//!
//! - `question`: finds the questions in the text
//! - `defects`: the parser's defects, with help for patterns
//! - `official`: the official schema of each revision; `legality`: the verdict, and the parts that older ones lack;
//!   `partial_form`: the readable parts of an illegal form
//! - `presentation`: the form that is read from a schema with defects, and the programs that show it
//! - `texts`: title, description, message, and hidden characters in them
//! - `options`, `bounds`, `defaults`: the choices, the possible values, and the preselected ones
//! - `link`: a url-mode request's URL

mod bounds;
mod defaults;
mod defects;
mod legality;
mod link;
mod official;
mod options;
mod partial_form;
mod presentation;
mod question;
mod report;
mod texts;

pub use legality::EXCEPTIONS;
pub use presentation::Presentation;
pub use report::{Legal, LintFinding, LintReport, Severity};

use crate::form::{Form, Note, NoteCode};
use crate::secrecy;
use crate::wire::Revision;
use legality::Verdicts;
use question::{LintedQuestion, LocatedQuestion};
use report::LintFindings;

/// The longest text that is linted, in bytes.
const LONGEST: usize = 16 << 20;

/// Lints a question. With a revision, a part that is not legal there is an error, and findings about other revisions
/// are omitted; without one, a question is legal if any revision can ask it.
pub fn lint(text: &str, revision: Option<Revision>) -> LintReport {
    let mut findings = LintFindings::new(revision);
    let mut legal = Legal::everywhere();
    if text.len() > LONGEST {
        findings.error(
            "",
            "too-large",
            format!("the text has {} bytes; {LONGEST} at most", text.len()),
            "",
        );
        return findings.into_report(Legal::nowhere());
    }
    match question::find(text) {
        Ok(questions) => {
            for question in questions {
                legal = legal.and(look(&question, &mut findings));
            }
        }
        Err(unread) => {
            findings.error(&unread.pointer, unread.code, unread.message, unread.help);
            legal = Legal::nowhere();
        }
    }
    findings.into_report(legal)
}

fn look(question: &LocatedQuestion<'_>, findings: &mut LintFindings) -> Legal {
    if let Some(message) = &question.message {
        texts::message(question, message, findings);
    }
    match &question.asked {
        LintedQuestion::Url { url, has_id } => link::look(question, url, *has_id, findings),
        LintedQuestion::Form { schema } => look_at_schema(question, schema, findings),
    }
}

fn look_at_schema(
    question: &LocatedQuestion<'_>,
    schema: &str,
    findings: &mut LintFindings,
) -> Legal {
    let verdicts = Verdicts::new(schema);
    let strict = Form::parse(schema);
    let lenient = Form::parse_leniently(schema);
    if question.slip.is_some() {
        let message = "`requestedSchema` is missing";
        findings.error(
            &question.params(),
            "params",
            message,
            "see the parameters of elicitation/create",
        );
    } else if let Err(defects) = &strict {
        defects::look(question, schema, defects, &verdicts, findings);
    }
    let reading = presentation::look(question, &lenient, findings);
    findings.read(reading);
    let parts = strict
        .as_ref()
        .err()
        .and_then(|defects| partial_form::form(schema, defects));
    if let Some(form) = lenient.as_ref().ok().or(parts.as_ref()) {
        look_at_form(question, form, findings);
    }
    if question.slip.is_some() {
        return Legal::nowhere();
    }
    legality::look(
        question,
        &verdicts,
        strict.as_ref(),
        parts.as_ref(),
        findings,
    )
}

fn look_at_form(question: &LocatedQuestion<'_>, form: &Form, findings: &mut LintFindings) {
    for note in form.notes() {
        tell_note(question, note, findings);
    }
    tell_suspicions(question, form, findings);
    texts::form(question, form, findings);
    for field in form.fields() {
        let at = question.field(field.name());
        texts::field(&at, field, findings);
        options::look(&at, field, findings);
        bounds::look(&at, field, findings);
        defaults::look(&at, field, findings);
    }
}

fn tell_note(question: &LocatedQuestion<'_>, note: &Note, findings: &mut LintFindings) {
    let severity = match note.code {
        NoteCode::NotPortable
        | NoteCode::NoEffect
        | NoteCode::PatternNotEnforced
        | NoteCode::NamesIgnored => Severity::Warning,
        NoteCode::UnknownKeyword | NoteCode::DuplicateRequired => Severity::Note,
    };
    findings.put(
        severity,
        &question.at(&note.pointer),
        note.code.as_str(),
        note.message.clone(),
        "",
    );
}

fn tell_suspicions(question: &LocatedQuestion<'_>, form: &Form, findings: &mut LintFindings) {
    let help =
        "a form must not ask for credentials: send the person to a page of your own with url mode";
    let message = question.message.as_deref().unwrap_or_default();
    for suspicion in secrecy::inspect(form, message) {
        let pointer = match suspicion.field() {
            Some(field) => question.field(field),
            None => question.message_pointer(),
        };
        match suspicion.level() {
            secrecy::Confidence::Certain => {
                findings.error(&pointer, "asks-for-secret", suspicion.to_string(), help);
            }
            secrecy::Confidence::Suspicious => findings.warn(
                &pointer,
                "may-ask-for-secret",
                suspicion.to_string(),
                "if it does, use url mode; if it does not, say in the description what is meant",
            ),
        }
    }
}

#[cfg(test)]
mod tests;
