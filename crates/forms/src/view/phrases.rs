//! The phrases that both frontends use, so that a person sees the same words everywhere.

use std::time::Duration;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::link::Link;

use super::{
    AnswerState, CallView, FrontendError, Origin, PendingView, QuestionView, countdown, sanitize,
};

/// The replacement for an empty answer.
pub const EMPTY: &str = "(left empty)";

/// The reason why a form that asks for a credential should not be answered.
pub const NO_CREDENTIALS_IN_FORMS: &str = "A form is not a place for a secret: the program that asks you and the server \
     both read what you type here, and may keep it. An honest server sends you to its own page instead.";

/// The longest address shown whole, in characters.
const ADDRESS: usize = sanitize::ARGUMENTS;

/// Returns a phrase about the server: `files 1.2.0 asks (over stdio)`.
pub fn asks(origin: &Origin) -> String {
    let known: Vec<_> = [origin.command(), origin.connection()]
        .into_iter()
        .flatten()
        .collect();
    if known.is_empty() {
        return format!("{} asks", origin.title());
    }
    format!("{} asks ({})", origin.title(), known.join(", "))
}

/// Returns a phrase about the call: `for the tool deploy (build: latest)`.
pub fn for_call(call: &CallView) -> String {
    let words = format!("for the {} {}", call.kind().word(), call.title());
    match call.doubt() {
        Some(doubt) => format!("{words} ({doubt})"),
        None => words,
    }
}

/// Returns a phrase about caller and client: `Called by ana@example.org, through a client that calls itself “Claude Code
/// 2.1”`, or `On behalf of` them outside a call. `None` if neither is known.
pub fn on_behalf_of(question: &QuestionView) -> Option<String> {
    let by = match question.call() {
        Some(_) => "Called by",
        None => "On behalf of",
    };
    let client = question.client();
    let client = client.map(|name| format!("a client that calls itself “{name}”"));
    match (question.caller(), client) {
        (Some(caller), Some(client)) => Some(format!("{by} {caller}, through {client}")),
        (Some(caller), None) => Some(format!("{by} {caller}")),
        (None, Some(client)) => Some(format!("Through {client}")),
        (None, None) => None,
    }
}

/// Returns the typed text of a field whose sent value differs, with the reason to check it again: `typed as 1e3`.
pub fn typed_as(state: &AnswerState, index: usize) -> Option<String> {
    state.understood(index)?;
    let typed = format!("typed as {}", state.shown(index)?.replace('\n', " "));
    Some(match state.caveat(index) {
        Some(caveat) => format!("{typed}: {caveat}"),
        None => typed,
    })
}

/// Returns a phrase about the number of waiting questions; `None` if there are none.
pub fn pending(others: &[PendingView]) -> Option<String> {
    match others.len() {
        0 => None,
        1 => Some("1 more question is waiting".to_owned()),
        many => Some(format!("{many} more questions are waiting")),
    }
}

/// Returns a phrase about a waiting question: `files, for add_note: What should the note say?`
pub fn next(next: &PendingView) -> String {
    let call = next.call().map(|call| format!(", for {call}"));
    format!(
        "{}{}: {}",
        next.server(),
        call.unwrap_or_default(),
        next.beginning()
    )
}

/// Returns a phrase about the remaining time: `4:09 left to answer`
pub fn time_left(remaining: Duration) -> String {
    format!("{} left to answer", countdown::left(remaining))
}

/// Returns the whole address of a link, safe to show.
pub fn address(link: &Link) -> String {
    sanitize::line(link.as_str(), ADDRESS)
}

/// Returns a phrase about the target of a link: `This goes to login.example.org, which belongs to example.org.`
pub fn goes_to(link: &Link) -> String {
    let host = sanitize::line(link.host().ascii(), sanitize::LABEL);
    match link
        .registrable_domain()
        .map(|domain| sanitize::line(domain, sanitize::LABEL))
    {
        Some(domain) if domain != host => {
            format!("This goes to {host}, which belongs to {domain}.")
        }
        _ => format!("This goes to {host}."),
    }
}

/// Returns the question of a confirmation.
pub fn confirm(question: &QuestionView) -> &'static str {
    if question.as_link().is_some() {
        "Open this address in your browser?"
    } else {
        "Go ahead?"
    }
}

/// Returns a sentence about the end of a question, for the person who was asked.
pub fn over(why: &FrontendError) -> String {
    match why {
        FrontendError::Interrupted => "Interrupted. Nothing was answered.".to_owned(),
        FrontendError::EndOfInput { .. } => "The input ended. Nothing was answered.".to_owned(),
        FrontendError::Withdrawn { why } => {
            format!(
                "This question is gone: {}. Nothing was sent.",
                sanitize::line(why, sanitize::LABEL)
            )
        }
        FrontendError::Expired => "The time to answer ran out. Nothing was sent.".to_owned(),
        FrontendError::Refused { tries, .. } => format!("Gave up after {tries} refused answers."),
        FrontendError::NoTerminal => "There is no terminal to ask in.".to_owned(),
        FrontendError::Broken(_) => "The terminal failed. Nothing was answered.".to_owned(),
    }
}

/// Returns a phrase about the person's action, for the line shown afterwards.
pub fn done(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Accept(answers) if answers.iter().next().is_none() => "agreed.",
        Outcome::Accept(_) => "answer sent.",
        Outcome::Visit => "agreed to open the address.",
        Outcome::Decline => "declined.",
        Outcome::Cancel => "cancelled; no choice was made.",
    }
}

/// Returns the instructions for a visit to a link.
pub fn visiting(hosts: &[String]) -> String {
    let hosts: Vec<_> = hosts
        .iter()
        .map(|host| sanitize::line(host, sanitize::LABEL))
        .collect();
    format!(
        "Finish what {} asks of you, then come back here and press Enter.",
        hosts.join(" and ")
    )
}

/// Returns a sentence about a visit that the person did not end.
pub fn visit_over(why: &str) -> String {
    format!("Going on: {}.", sanitize::line(why, sanitize::LABEL))
}
