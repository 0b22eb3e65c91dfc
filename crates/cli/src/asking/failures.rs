//! What went wrong with a connection, a call or a question, as a failure with its exit code. No wildcard: a new error
//! must not compile until someone decides its code.

use mcp_elicit_client::{CallError, ConnectError, Question, Refusal, Unanswered};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::wire::Revision;
use mcp_elicit_forms::view::inert;

use crate::failure::{Exit, Failure};

/// What the server said beside the protocol.
pub(crate) struct Said {
    /// The last lines of its stderr.
    pub(crate) stderr: Vec<String>,
    /// Lines on its stdout that are no JSON.
    pub(crate) noise: usize,
}

/// The person, or the system, ended this process.
pub(crate) fn stopped() -> Failure {
    Failure::interrupted("stopped; the server was told")
}

/// No connection came about.
pub(crate) fn connecting(error: ConnectError) -> Failure {
    let stderr = error.stderr().to_vec();
    let failure = match error {
        ConnectError::Start { program, source } => {
            Failure::connection(format!("cannot start {program}")).because(source)
        }
        ConnectError::Url { .. } => Failure::usage(error.to_string()),
        ConnectError::NoCommonRevision { ref offered, .. } => {
            let failure = Failure::connection(error.to_string());
            if offered
                .iter()
                .any(|version| version.parse::<Revision>().is_ok())
            {
                failure.hint("without `--protocol` the newest revision that both speak is taken.")
            } else {
                failure
            }
        }
        ConnectError::TimedOut { .. } => {
            Failure::connection(error.to_string()).hint("give it more time with `--timeout 5m`.")
        }
        ConnectError::Unauthorized { .. } => Failure::connection(error.to_string()).hint(
            "put a token into an environment variable and name it with `--token-env VARIABLE`.",
        ),
        ConnectError::Setup(_)
        | ConnectError::Broken { .. }
        | ConnectError::Refused { .. }
        | ConnectError::Unreachable(_)
        | ConnectError::Nonsense => Failure::connection(format!("no connection: {error}")),
    };
    with_stderr(failure, &stderr)
}

/// The call brought no result.
pub(crate) fn calling(error: CallError, said: &Said) -> Failure {
    let failure = called(error);
    if failure.exit() != Exit::Connection {
        return failure;
    }
    let failure = match said.noise {
        0 => failure,
        lines => failure.telling(
            &format!("lines it wrote to its stdout that are no JSON: {lines}"),
            Vec::new(),
        ),
    };
    with_stderr(failure, &said.stderr)
}

fn called(error: CallError) -> Failure {
    match error {
        CallError::Server(error) => Failure::refused(format!(
            "the server reported error {}: {}",
            error.code.0,
            one_line(&error.message)
        )),
        CallError::Unanswered(refusal) => question(None, &refusal),
        CallError::Stopped => stopped(),
        CallError::VisitRefused { .. } | CallError::TaskCancelled => {
            Failure::refused(error.to_string())
        }
        CallError::SameVisitAgain { .. } => Failure::refused(error.to_string())
            .hint("finish the visit in the browser, then call again."),
        CallError::Silent { .. } => {
            Failure::connection(error.to_string()).hint("give it more time with `--timeout 5m`.")
        }
        CallError::Unauthorized { .. }
        | CallError::TooManyRounds { .. }
        | CallError::SameAgain
        | CallError::Broken(_)
        | CallError::Undelivered(_)
        | CallError::Nonsense => Failure::connection(error.to_string()),
    }
}

/// A question got no answer; `asked` is absent where it could not be read.
pub(crate) fn question(asked: Option<&Question>, refusal: &Refusal) -> Failure {
    let text = match asked {
        Some(asked) => format!("{}: {refusal}", which(asked)),
        None => refusal.to_string(),
    };
    match refusal {
        Refusal::Malformed(_)
        | Refusal::IllegalForm(_)
        | Refusal::BadLink(_)
        | Refusal::Undeclared { .. } => Failure::connection(text),
        Refusal::Nobody { why, .. } => nobody(asked, why, text),
        Refusal::NotInsisted { .. } => Failure::unanswered(text)
            .hint("never give a credential in a form; if this is none, say so with `--insist`."),
        Refusal::Forbidden(_)
        | Refusal::TooMuch(_)
        | Refusal::TimedOut { .. }
        | Refusal::Withdrawn { .. }
        | Refusal::WrongAnswer(_) => Failure::unanswered(text),
    }
}

/// The question by its number in this call and its first words: a call may ask several.
fn which(asked: &Question) -> String {
    let message = inert::line(asked.message(), 60);
    format!("question {} ({message:?})", asked.id())
}

fn nobody(asked: Option<&Question>, why: &Unanswered, text: String) -> Failure {
    match why {
        Unanswered::Interrupted => stopped(),
        Unanswered::Exhausted | Unanswered::NoDefaults { .. } => {
            Failure::unanswered(text).hint(how_to_give(asked))
        }
        // What was prepared came with the command line.
        Unanswered::Refused { .. } => {
            Failure::usage(text).hint("the answer was not sent; correct it and call again.")
        }
        Unanswered::EndOfInput => Failure::unanswered(text).hint(
            "run it in a terminal, or give the answers with `--answer NAME=VALUE` or `--answers FILE`.",
        ),
        Unanswered::CannotShow { .. }
        | Unanswered::TimedOut { .. }
        | Unanswered::Expired
        | Unanswered::Withdrawn { .. }
        | Unanswered::Failed { .. } => Failure::unanswered(text),
    }
}

/// How an answer to this very question is prepared.
fn how_to_give(asked: Option<&Question>) -> String {
    let options: Vec<_> = asked
        .and_then(Question::form)
        .map(wanted)
        .unwrap_or_default()
        .iter()
        .map(|name| format!("`--answer {}=VALUE`", inert::line(name, 60)))
        .collect();
    let add = if options.is_empty() {
        "an answer in its place in `--answers FILE`".to_owned()
    } else {
        format!(
            "{}, or an answer in its place in `--answers FILE`",
            options.join(" ")
        )
    };
    format!("add {add}; without answer options you are asked.")
}

/// The fields that an answer must have; all of them where it may leave any out.
fn wanted(form: &Form) -> Vec<&str> {
    let names = |required: bool| {
        form.fields()
            .iter()
            .filter(move |field| field.required() || !required)
            .map(mcp_elicit_core::form::Field::name)
            .collect::<Vec<_>>()
    };
    let required = names(true);
    if required.is_empty() {
        names(false)
    } else {
        required
    }
}

fn with_stderr(failure: Failure, stderr: &[String]) -> Failure {
    match stderr {
        [] => failure,
        lines => failure.telling(
            "the server's last words:",
            lines.iter().map(|line| one_line(line)).collect(),
        ),
    }
}

/// A server's words, harmless to look at.
fn one_line(text: &str) -> String {
    inert::line(text, 500)
}
