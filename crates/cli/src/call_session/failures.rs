//! Errors of a connection, a call or a question, as failures with exit codes. No mapping has a wildcard arm: the client
//! sorts its errors into complete lists of kinds, and a new kind does not compile until its code is decided here.
#![deny(clippy::wildcard_enum_match_arm)]

use mcp_elicit_client::call::CallErrorKind;
use mcp_elicit_client::connection::{ConnectErrorKind, Stderr, Target};
use mcp_elicit_client::dispatch::Blame;
use mcp_elicit_client::responder::ResponderErrorKind;
use mcp_elicit_client::sign_in::step_up::{in_words, missing_scopes, parameter};
use mcp_elicit_client::{
    CallError, ConnectError, Connection, Question, QuestionError, ResponderError,
};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::wire::Revision;
use mcp_elicit_forms::view::{Control, FieldView, sanitize};
use mcp_elicit_relay::{HANDED_BACK, NOT_CALLED};
use rmcp::model::{ErrorCode, ErrorData};

use super::events::CallRefusal;
use super::request::Got;
use crate::args::answers::answer_name;
use crate::args::server::Protocol;
use crate::failure::{Exit, Failure};

/// The next step after the server has rejected a key or token.
const OTHER_KEY: &str = "put another API key or token into the variable of `--token-env`. At the gateway, `mcp-elicit tokens list` shows which keys \
    are valid, and `mcp-elicit tokens make` makes another.";

/// The largest part of a line that is no message which is quoted, in characters.
const STRAY_LINE: usize = 200;

/// The largest number of a field's options that are listed.
const OPTIONS: usize = 12;

/// The server's output outside the protocol.
pub(crate) struct ServerOutput {
    /// Its stderr.
    stderr: Option<Stderr>,
    /// The number of lines on its stdout that are no messages.
    stray_lines: usize,
    /// The first of them.
    first_stray_line: Option<String>,
}

impl ServerOutput {
    /// Returns the output of this connection's server.
    pub(crate) fn from_connection<H: rmcp::ClientHandler>(connection: &Connection<H>) -> Self {
        Self {
            stderr: connection.stderr_output(),
            stray_lines: connection.stray_lines(),
            first_stray_line: connection.first_stray_line(),
        }
    }
}

impl ServerOutput {
    /// Waits for the rest of the output of a server that has ended.
    pub(crate) async fn ended(&self) {
        if let Some(stderr) = &self.stderr {
            stderr.drained().await;
        }
    }

    /// Returns the last lines of its stderr.
    fn stderr(&self) -> Vec<String> {
        self.stderr.as_ref().map(Stderr::lines).unwrap_or_default()
    }

    /// Quotes the first line that is no message.
    pub(crate) fn warn(&self, events: &super::events::Events) -> Result<(), Failure> {
        let Some(line) = &self.first_stray_line else {
            return Ok(());
        };
        let more = match self.stray_lines {
            0 | 1 => String::new(),
            lines => format!(" (the first of {lines})"),
        };
        let line = sanitize::line(line, STRAY_LINE);
        let said = format!(
            "the server wrote a line that is no MCP message{more}, and it was passed over: {line}"
        );
        events.warn(&said, None)
    }
}

/// Returns the failure for a list that was not read to its end.
pub(super) fn unfinished(why: &str) -> Failure {
    Failure::connection(why).hint("the server's list is at fault; what was read of it is shown.")
}

/// Returns the failure for a process that the person or the system ended.
pub(crate) fn stopped() -> Failure {
    Failure::interrupted("stopped; the server was notified")
}

/// Returns the failure for a connection that could not be established.
pub(crate) fn connecting(error: &ConnectError, target: &Target) -> Failure {
    let stderr = error.stderr().to_vec();
    let stray_line = error.first_stray_line().map(str::to_owned);
    let failure = match error.kind() {
        ConnectErrorKind::Start { program, source } => {
            let is_missing = source.kind() == std::io::ErrorKind::NotFound;
            let failure = Failure::connection(format!("cannot start {program}")).because(source);
            if is_missing {
                failure.hint(
                    "install the program, or write its whole path; the server's command begins after `--`.",
                )
            } else {
                failure
            }
        }
        ConnectErrorKind::Url { url } => {
            let failure = Failure::usage(error.to_string());
            // An address without a scheme, as people copy it.
            if url.contains("://") || url.is_empty() {
                failure
            } else {
                failure.hint(format!("write `--url http://{}`.", one_line(url)))
            }
        }
        ConnectErrorKind::NoCommonRevision { offered } => {
            let failure = Failure::connection(error.to_string());
            if offered
                .iter()
                .any(|version| version.parse::<Revision>().is_ok())
            {
                failure.hint("without `--protocol`, the newest revision that both support is used.")
            } else {
                failure
            }
        }
        ConnectErrorKind::TimedOut => {
            Failure::connection(error.to_string()).hint("give it more time with `--timeout 5m`.")
        }
        ConnectErrorKind::Unauthorized { challenge, reason } => {
            let failure = refused(&error, challenge, reason);
            if parameter(challenge, "resource_metadata").is_some() {
                failure.hint(
                    "sign in with `--sign-in`, or put a token into an environment variable and name it with `--token-env VARIABLE`.",
                )
            } else if is_invalid(challenge) {
                failure.hint(OTHER_KEY)
            } else {
                failure.hint(
                    "put the API key or token into an environment variable and name it with `--token-env VARIABLE`; where the server has a login, sign in with `--sign-in`.",
                )
            }
        }
        ConnectErrorKind::Unreachable { why } => unreachable(why, target),
        ConnectErrorKind::Setup | ConnectErrorKind::Broken => {
            Failure::connection(format!("no connection: {error}"))
        }
    };
    with_output(failure, &stderr, stray_line.as_deref())
}

/// Returns the failure for a connection in this revision only, if one was named: a server that lacks it refuses, says
/// nothing, or ends.
pub(crate) fn connecting_in(protocol: Protocol, error: &ConnectError, target: &Target) -> Failure {
    let may_lack_it = match error.kind() {
        ConnectErrorKind::Start { .. }
        | ConnectErrorKind::Url { .. }
        | ConnectErrorKind::Setup
        | ConnectErrorKind::Unauthorized { .. } => false,
        // An HTTP server refuses an opening that it does not know with a status; nothing was reached otherwise.
        ConnectErrorKind::Unreachable { why } => why.contains("HTTP 4") && !why.contains("404"),
        ConnectErrorKind::NoCommonRevision { .. }
        | ConnectErrorKind::TimedOut
        | ConnectErrorKind::Broken => true,
    };
    let failure = connecting(error, target);
    match protocol.revision() {
        Some(revision) if may_lack_it => failure.hint(format!(
            "`--protocol {revision}` allows no other revision, and the server may not speak this one. If it is not only away for a moment, leave the option out, and both agree on one; \
             `mcp-elicit call --list` says which ones the server speaks."
        )),
        _ => failure,
    }
}

/// Returns the failure for a request that the server rejected without an authorization, or with one that is no longer
/// valid. The challenge or the body gives the reason.
fn refused(words: &dyn std::fmt::Display, challenge: &str, reason: Option<&str>) -> Failure {
    let why = parameter(challenge, "error_description").or(reason);
    Failure::connection(match why.map(one_line).filter(|why| !why.is_empty()) {
        Some(why) => format!("{words}: {why}"),
        None => words.to_string(),
    })
}

/// Returns `true` if the server says that the token is not valid.
fn is_invalid(challenge: &str) -> bool {
    parameter(challenge, "error") == Some("invalid_token")
}

/// Returns the failure for a URL at which nothing answered: one line with the URL, one with the reason.
fn unreachable(why: &str, target: &Target) -> Failure {
    let at = target.describe();
    if why.to_ascii_lowercase().contains("connection refused") {
        return Failure::connection(format!("nothing listens at {at}"))
            .hint("start the server, or check the address and the port.");
    }
    // The transport's message repeats the operation; only its last part says what happened.
    let last = why.rsplit(": ").next().unwrap_or(why);
    let failure = Failure::connection(format!("cannot reach {at}: {}", one_line(last)));
    if last.contains("404") {
        failure.hint("check the path: a gateway serves each of its servers at /mcp/NAME.")
    } else {
        failure
    }
}

/// Returns the failure for a call without a result. `refusal` is that of the last answer.
pub(crate) fn calling(
    error: &CallError,
    said: &ServerOutput,
    refusal: Option<CallRefusal>,
) -> Failure {
    let is_internal =
        matches!(error, CallError::Server(error) if error.code == ErrorCode::INTERNAL_ERROR);
    let failure = called(error, refusal);
    if failure.exit() != Exit::Connection {
        let panic = said
            .stderr
            .as_ref()
            .filter(|_| is_internal)
            .map(Stderr::panic);
        return match panic {
            Some(panic) if !panic.is_empty() => failure.telling(
                "its stderr says:",
                panic.iter().map(|line| one_line(line)).collect(),
            ),
            _ => failure,
        };
    }
    let failure = match said.stray_lines {
        0 | 1 => failure,
        lines => failure.telling(
            &format!("lines it wrote to its stdout that are no messages: {lines}"),
            Vec::new(),
        ),
    };
    with_output(failure, &said.stderr(), said.first_stray_line.as_deref())
}

/// Returns `true` for the error with which a gateway hands back a call, to be made again.
fn is_handed_back(error: &ErrorData) -> bool {
    let data = error.data.as_ref();
    data.is_some_and(|data| data[HANDED_BACK] == true)
}

/// Returns the reason why a gateway did not call the server, if the error is the gateway's.
fn not_called(error: &ErrorData) -> Option<&str> {
    error.data.as_ref()?[NOT_CALLED].as_str()
}

/// Returns `true` if a gateway handed the call back or did not call the server: advice on the tool's arguments does not
/// help then.
pub(super) fn is_of_gateway(got: &Result<Got, CallError>) -> bool {
    match got {
        Ok(got) => got.is_handed_back() || got.not_called().is_some(),
        Err(CallError::Server(error)) => is_handed_back(error) || not_called(error).is_some(),
        Err(_) => false,
    }
}

/// Returns the failure for an error that the server, or a gateway before it, reported.
fn reported(error: &ErrorData, refusal: Option<CallRefusal>) -> Failure {
    let said = one_line(&error.message);
    if is_handed_back(error) {
        return Failure::handed_back(said);
    }
    match (not_called(error), refusal) {
        (Some("declined"), _) => Failure::declined(said),
        (Some(_), _) => Failure::refused(said),
        (None, Some(refusal)) => Failure::declined(format!(
            "the call ended after its question was {refusal}: {said}"
        )),
        (None, None) => Failure::refused(format!(
            "the server reported error {}: {said}",
            error.code.0
        )),
    }
}

fn called(error: &CallError, refusal: Option<CallRefusal>) -> Failure {
    match error.kind() {
        CallErrorKind::Reported(error) => reported(error, refusal),
        CallErrorKind::Question(refusal) => question(None, refusal),
        CallErrorKind::Stopped => stopped(),
        CallErrorKind::VisitRefused { action } => Failure::declined(format!(
            "the server needs a visit that was not agreed to ({action})"
        )),
        CallErrorKind::TaskCancelled => match refusal {
            Some(refusal) => Failure::declined(format!(
                "the server cancelled the task after its question was {refusal}"
            )),
            None => Failure::refused(error.to_string()),
        },
        CallErrorKind::SameVisitAgain => Failure::refused(error.to_string())
            .hint("finish the visit in the browser, then call again."),
        CallErrorKind::Silent => {
            Failure::connection(error.to_string()).hint("give it more time with `--timeout 5m`.")
        }
        CallErrorKind::Unauthorized { challenge, reason } => {
            let words = "the server requires another authorization";
            let failure = refused(&words, challenge, reason);
            match missing_scopes(challenge) {
                Some(scopes) => {
                    let options = scopes
                        .iter()
                        .flat_map(|scope| ["--scope", scope.as_str()]);
                    failure.hint(format!(
                        "it requires {}: sign in for that with `--sign-in {}`.",
                        in_words(&scopes),
                        shell_words::join(options)
                    ))
                }
                None if is_invalid(challenge)
                    && parameter(challenge, "resource_metadata").is_none() =>
                {
                    failure.hint(OTHER_KEY)
                }
                None => failure.hint(
                    "sign in with `--sign-in`, or name a token that it accepts with `--token-env VARIABLE`.",
                ),
            }
        }
        CallErrorKind::Disconnected | CallErrorKind::Broken => {
            Failure::connection(error.to_string())
        }
    }
}

/// Returns the failure for a question that got no answer; `asked` is `None` if it could not be read.
pub(crate) fn question(asked: Option<&Question>, refusal: &QuestionError) -> Failure {
    let text = match asked {
        Some(asked) => format!("{}: {refusal}", which(asked)),
        None => refusal.to_string(),
    };
    if let QuestionError::NoResponder { why, .. } = refusal {
        return no_responder(asked, why, text);
    }
    if let QuestionError::CredentialNotAllowed { .. } = refusal {
        return Failure::unanswered(text)
            .hint("never give a credential in a form; if this is not one, say so with `--allow-credentials`.");
    }
    match refusal.blame() {
        Blame::Server => Failure::connection(text),
        Blame::NoAnswer | Blame::Policy => Failure::unanswered(text),
    }
}

/// Names the question by its number in this call and its first words, since a call may ask several.
fn which(asked: &Question) -> String {
    let message = sanitize::line(asked.message(), 60);
    format!("question {} ({message:?})", asked.id())
}

fn no_responder(asked: Option<&Question>, why: &ResponderError, text: String) -> Failure {
    match why.kind() {
        ResponderErrorKind::Interrupted => stopped(),
        ResponderErrorKind::NothingPrepared => {
            let failure = Failure::unanswered(text).hint(how_to_give(asked));
            match asked.and_then(Question::form) {
                Some(form) if !form.fields().is_empty() => {
                    failure.telling("the form asks for:", field_lines(form))
                }
                _ => failure,
            }
        }
        // The prepared answers came from the command line.
        ResponderErrorKind::DoesNotFit => {
            Failure::usage(text).hint("the answer was not sent; correct it and call again.")
        }
        ResponderErrorKind::EndOfInput => Failure::unanswered(text).hint(
            "run it in a terminal, or give the answers with `--answer NAME=VALUE` or `--answers FILE`.",
        ),
        ResponderErrorKind::Ended | ResponderErrorKind::Unable => Failure::unanswered(text),
    }
}

/// Returns a line for each field of the form, with the values that it takes.
fn field_lines(form: &Form) -> Vec<String> {
    let line = |field: &mcp_elicit_core::form::Field| {
        let view = FieldView::from_field(field);
        let mut facts = vec![view.need().to_owned()];
        let options = view.control.options();
        if !options.is_empty() {
            let labels: Vec<_> = options
                .iter()
                .take(OPTIONS)
                .map(|pick| pick.label.clone())
                .collect();
            let more = if options.len() > OPTIONS { ", .." } else { "" };
            facts.push(format!("{}{more}", labels.join(", ")));
        }
        if view.control == Control::YesNo {
            facts.push("yes or no".to_owned());
        }
        facts.extend(Some(view.hint()).filter(|hint| !hint.is_empty()));
        sanitize::line(&format!("{}: {}", field.name(), facts.join("; ")), 300)
    };
    form.fields().iter().map(line).collect()
}

/// Returns the advice on how to prepare an answer to this question.
fn how_to_give(asked: Option<&Question>) -> String {
    let options: Vec<_> = asked
        .and_then(Question::form)
        .map(needed_fields)
        .unwrap_or_default()
        .iter()
        .map(|name| {
            let name = answer_name(name);
            let option = format!("{name}=VALUE");
            // `shell_words` quotes every `=`; a shell needs it only where the name itself needs quotes.
            let option = if *shell_words::quote(&name) == *name {
                option
            } else {
                shell_words::quote(&option).into_owned()
            };
            format!("`--answer {}`", sanitize::line(&option, 80))
        })
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

/// Returns the fields that an answer must have, or all fields if none is required.
fn needed_fields(form: &Form) -> Vec<&str> {
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

/// Returns the heading of a line that is no message. One that begins like a message may be a response that was lost.
fn stray_heading(line: &str) -> &'static str {
    if !line.starts_with(['{', '[']) {
        return "it wrote to its stdout, where only MCP messages belong:";
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(line) {
        Ok(_) => "it wrote JSON that is not an MCP message to its stdout:",
        Err(_) => "it wrote broken JSON to its stdout:",
    }
}

fn with_output(failure: Failure, stderr: &[String], stray_line: Option<&str>) -> Failure {
    let failure = match stray_line {
        Some(line) => failure.telling(stray_heading(line), vec![one_line(line)]),
        None => failure,
    };
    match stderr {
        [] => failure,
        lines => failure.telling(
            "the last lines of its stderr:",
            lines.iter().map(|line| one_line(line)).collect(),
        ),
    }
}

/// Returns a server's text as one line that is safe to show.
fn one_line(text: &str) -> String {
    sanitize::line(text, 500)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_that_a_gateway_did_not_make_gets_no_advice_on_arguments() {
        for why in ["declined", "timed-out", "refused", "failed"] {
            let data = Some(json!({NOT_CALLED: why}));
            let error = ErrorData::new(ErrorCode(-32000), "Not done", data);
            assert!(is_of_gateway(&Err(CallError::Server(error))));
        }
        let other = Some(json!({"other": "declined"}));
        let error = ErrorData::new(ErrorCode(-32000), "Not done", other);
        assert!(!is_of_gateway(&Err(CallError::Server(error))));
    }

    #[test]
    fn an_error_of_the_gateway_is_told_in_its_words_and_a_decline_is_no_error() {
        for (why, exit) in [
            ("declined", Exit::Declined),
            ("timed-out", Exit::Refused),
            ("refused", Exit::Refused),
        ] {
            let data = Some(json!({NOT_CALLED: why}));
            let error = ErrorData::new(ErrorCode(-32000), "Not done: no", data);
            assert!(is_of_gateway(&Err(CallError::Server(error.clone()))));
            let failure = called(&CallError::Server(error), None);
            assert_eq!(failure.exit(), exit);
            assert_eq!(failure.message(), "Not done: no");
        }
    }
}
