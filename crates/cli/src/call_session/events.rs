//! Reports events as they happen: one JSON object per line for a program, or a few words for a person.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use mcp_elicit_client::connection::Target;
use mcp_elicit_client::dispatch::Observer;
use mcp_elicit_client::{Answer, Connection, Question, QuestionError, Received, ResponderError};
use mcp_elicit_core::answer::{Action, Answers};
use mcp_elicit_core::wire::{LenientMembers, Mode};
use mcp_elicit_forms::view::sanitize;
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResourceContents, Role,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::failures;
use super::request::{self, Got};
use crate::args::field_answers;
use crate::failure::Failure;
use crate::output;

/// The largest part of a server's text that is shown to a person, in characters.
const TEXT: usize = 100_000;
/// The longest warning that is shown, in characters.
const WARNING: usize = 600;

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum ReportedEvent<'e> {
    Connected {
        server: Value,
        protocol: &'e str,
        transport: &'e str,
    },
    Asked {
        mode: &'e str,
        message: &'e str,
        #[serde(skip_serializing_if = "Option::is_none")]
        schema: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<&'e str>,
    },
    Answered {
        action: &'e str,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'e Answers>,
    },
    Warning {
        message: &'e str,
        #[serde(skip_serializing_if = "Option::is_none")]
        pointer: Option<&'e str>,
    },
    Error {
        error: Value,
    },
}

#[derive(Serialize)]
struct ResultEvent<'e, R> {
    event: &'static str,
    result: &'e R,
}

fn print_result(result: &impl Serialize) -> Result<(), Failure> {
    let event = "result";
    output::print_json(&ResultEvent { event, result })
}

/// The person's answer after which a call ended without its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallRefusal {
    Declined,
    Cancelled,
    /// A form that only asks yes or no was answered with no.
    AnsweredNo,
}

impl CallRefusal {
    /// Returns the refusal in an action; `None` for an acceptance.
    fn in_action(action: Action) -> Option<Self> {
        match action {
            Action::Accept => None,
            Action::Decline => Some(Self::Declined),
            Action::Cancel => Some(Self::Cancelled),
        }
    }

    /// Returns the refusal in an answer.
    fn in_answer(question: &Question, answer: &Answer) -> Option<Self> {
        let outcome = answer.outcome();
        let is_no = || {
            let [field] = question.form()?.fields() else {
                return None;
            };
            let no = outcome.answers()?.get(field.name()) == Some(&Value::Bool(false));
            no.then_some(Self::AnsweredNo)
        };
        Self::in_action(outcome.action()).or_else(is_no)
    }
}

impl fmt::Display for CallRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::AnsweredNo => "answered no",
        })
    }
}

/// The last answer of a conversation, and its refusal.
#[derive(Debug, Clone, Copy)]
struct LastAnswer(Option<CallRefusal>);

/// Reports events, and remembers why a question got no answer.
pub(crate) struct Events {
    json: bool,
    stop: CancellationToken,
    ended: Mutex<Option<Failure>>,
    /// The last answer.
    last: Mutex<Option<LastAnswer>>,
    /// The values from the command line, by the names of fields.
    typed: Vec<(String, String)>,
    policy: Option<PathBuf>,
    /// The number of findings that were reported.
    told: AtomicUsize,
}

impl Events {
    pub(crate) fn new(json: bool, stop: CancellationToken) -> Self {
        Self {
            json,
            stop,
            ended: Mutex::default(),
            last: Mutex::default(),
            typed: Vec::new(),
            policy: None,
            told: AtomicUsize::new(0),
        }
    }

    /// Also reports which of these answers are sent in a different spelling.
    pub(super) fn explaining(mut self, typed: Vec<(String, String)>) -> Self {
        self.typed = typed;
        self
    }

    /// Names the policy in events of questions that it answers.
    pub(super) fn under(mut self, policy: Option<PathBuf>) -> Self {
        self.policy = policy;
        self
    }

    /// Records the action of an answer.
    pub(crate) fn note_action(&self, action: Action) {
        self.note(CallRefusal::in_action(action));
    }

    fn note(&self, refusal: Option<CallRefusal>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(LastAnswer(refusal));
    }

    fn last(&self) -> Option<LastAnswer> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the refusal in the last answer.
    pub(crate) fn refusal(&self) -> Option<CallRefusal> {
        self.last()?.0
    }

    /// Returns `true` if a question was answered.
    pub(super) fn has_answered(&self) -> bool {
        self.last().is_some()
    }

    /// Takes the first failure of a question; `None` if all were answered.
    pub(crate) fn ended(&self) -> Option<Failure> {
        self.ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn end(&self, failure: Failure) {
        self.ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(failure);
    }

    /// Prints an event of the call. If stdout is closed, the call is stopped.
    fn tell(&self, event: &ReportedEvent<'_>) {
        if let Err(failure) = output::print_json(event) {
            self.end(failure);
            self.stop.cancel();
        }
    }

    pub(crate) fn connected<H: ClientHandler>(
        &self,
        connection: &Connection<H>,
        target: &Target,
    ) -> Result<(), Failure> {
        let server = connection.server();
        let protocol = connection.protocol();
        if self.json {
            let server = server.map_or(
                Value::Null,
                |server| json!({ "name": server.name, "version": server.version }),
            );
            return output::print_json(&ReportedEvent::Connected {
                server,
                protocol: &protocol,
                transport: target.transport(),
            });
        }
        let named = server.filter(|server| !server.name.is_empty());
        let name = named.map_or_else(
            || target.describe(),
            |server| format!("{} {}", server.name, server.version),
        );
        output::say(format_args!(
            "connected to {} ({}, {protocol})",
            sanitize::line(&name, 200),
            target.transport()
        ));
        Ok(())
    }

    /// Shows the result of the request.
    pub(super) fn got(&self, got: &Got) -> Result<(), Failure> {
        match got {
            Got::List(listing) => {
                for (message, pointer) in listing.warnings() {
                    self.warn(&message, pointer)?;
                }
                listing.show(self.json)
            }
            Got::Tool(received) => {
                let structured = member(received.raw(), "structuredContent");
                self.received(received, |result| self.tool(result, structured.as_deref()))
            }
            Got::Prompt(received) => self.received(received, Self::prompt),
            Got::Resource(received) => self.received(received, Self::resource),
        }
    }

    /// Shows a result: as `show` does if it keeps to the protocol, and otherwise as the server wrote it, with what is
    /// wrong.
    fn received<R>(
        &self,
        received: &Received<R>,
        show: impl FnOnce(&R) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for misfit in received.misfits() {
            self.warn(
                &format!("the server's result breaks the protocol: {misfit}"),
                Some(misfit.pointer()),
            )?;
        }
        let raw = one_line(received.raw());
        if self.json {
            return print_result(&raw);
        }
        if received.misfits().is_empty() {
            return show(received.result());
        }
        output::print_json(&raw)
    }

    /// Reports what the server did against the protocol and the connection survived, once each.
    pub(crate) fn findings<H: ClientHandler>(
        &self,
        connection: &Connection<H>,
    ) -> Result<(), Failure> {
        let findings = connection.findings();
        let told = self.told.swap(findings.len(), Ordering::Relaxed);
        for finding in findings.iter().skip(told) {
            self.warn(&finding.to_string(), finding.pointer())?;
        }
        Ok(())
    }

    /// Prints a warning, for a program too.
    pub(crate) fn warn(&self, message: &str, pointer: Option<&str>) -> Result<(), Failure> {
        let message = sanitize::line(message, WARNING);
        output::say(format_args!(
            "{} {message}",
            output::styled(output::WARNING, "warning:")
        ));
        if self.json {
            let message = &message;
            output::print_json(&ReportedEvent::Warning { message, pointer })?;
        }
        Ok(())
    }

    /// Shows the result of a tool.
    pub(crate) fn result(&self, result: &CallToolResult) -> Result<(), Failure> {
        if self.json {
            return print_result(result);
        }
        self.tool(result, None)
    }

    /// Shows the result of a tool to a person; `structured` is its structured content as the server wrote it.
    fn tool(&self, result: &CallToolResult, structured: Option<&RawValue>) -> Result<(), Failure> {
        if result.is_error == Some(true) {
            match self.refusal() {
                Some(refusal) => output::say(format_args!(
                    "{} the tool ended after its question was {refusal}:",
                    output::styled(output::WARNING, "declined:"),
                )),
                None if request::is_handed_back(result) => {}
                // The gateway's text already says that the server was not called, and why.
                None if request::not_called(result).is_some() => {}
                None => output::say(format_args!(
                    "{} the tool reported an error",
                    output::styled(output::ERROR, "error:")
                )),
            }
        }
        let mut shown = false;
        for block in &result.content {
            shown = true;
            show_block(block)?;
        }
        match &result.structured_content {
            Some(typed) if !shown => match structured {
                Some(raw) => output::print_json(&one_line(raw)),
                None => output::print_json(typed),
            },
            _ => Ok(()),
        }
    }

    fn prompt(result: &GetPromptResult) -> Result<(), Failure> {
        for message in &result.messages {
            output::say(match message.role {
                Role::User => "user:",
                Role::Assistant => "assistant:",
            });
            show_block(&message.content)?;
        }
        Ok(())
    }

    fn resource(result: &ReadResourceResult) -> Result<(), Failure> {
        result.contents.iter().try_for_each(show_contents)
    }
}

fn show_block(block: &ContentBlock) -> Result<(), Failure> {
    match block {
        ContentBlock::Text(text) => output::print(sanitize::text(&text.text, TEXT)),
        ContentBlock::Resource(embedded) => show_contents(&embedded.resource),
        other => output::print_json(other),
    }
}

fn show_contents(contents: &ResourceContents) -> Result<(), Failure> {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => {
            output::print(sanitize::text(text, TEXT))
        }
        other => output::print_json(other),
    }
}

/// Returns a member of a result as the server wrote it.
fn member(result: &RawValue, name: &str) -> Option<Box<RawValue>> {
    let members = LenientMembers::read(result.get())?;
    members.get(name).map(ToOwned::to_owned)
}

/// Returns JSON of the server on one line. Line ends and tabs in JSON stand between its tokens.
pub(super) fn one_line(raw: &RawValue) -> Box<RawValue> {
    let text = raw.get().replace(['\n', '\r', '\t'], " ");
    RawValue::from_string(text).unwrap_or_else(|_| raw.to_owned())
}

/// Prints the last event of a conversation that failed.
pub(crate) fn print_failure(failure: &Failure) -> Result<(), Failure> {
    if failure.is_silent() {
        return Ok(());
    }
    let mut error = json!({ "message": failure.message(), "exit": failure.exit() as u8 });
    if !failure.causes().is_empty() {
        error["causes"] = json!(failure.causes());
    }
    output::print_json(&ReportedEvent::Error { error })
}

impl Observer for Events {
    fn asked(&self, question: &Question) {
        if self.json {
            self.tell(&ReportedEvent::Asked {
                mode: question.mode().as_str(),
                message: question.message(),
                // Serialized again, because the server may have written it on several lines.
                schema: question
                    .schema()
                    .and_then(|schema| serde_json::from_str(schema.get()).ok()),
                url: question.url(),
            });
        }
    }

    fn answered(&self, question: &Question, answer: &Answer) {
        self.note(CallRefusal::in_answer(question, answer));
        let action = answer.outcome().action().as_str();
        if self.json {
            // The person asked for this: `--json` reports everything that was sent.
            let content = answer.outcome().answers();
            return self.tell(&ReportedEvent::Answered { action, content });
        }
        let asked = match question.mode() {
            Mode::Form => "form",
            Mode::Url => "url",
        };
        let message = sanitize::line(question.message(), 80);
        let by = match (answer.by(), &self.policy) {
            (Some("policy"), Some(file)) => format!(", as {} says", file.display()),
            _ => String::new(),
        };
        output::say(format_args!(
            "answered {action} to the {asked} question {message:?}{by}"
        ));
        if let (Some(form), Some(answers)) = (question.form(), answer.outcome().answers()) {
            for line in field_answers::understood(form, answers, &self.typed) {
                output::say(format_args!("  {line}"));
            }
        }
    }

    fn refused(&self, question: Option<&Question>, why: &QuestionError) {
        if let QuestionError::Withdrawn { .. } = why {
            return;
        }
        let interrupted = matches!(
            why,
            QuestionError::NoResponder {
                why: ResponderError::Interrupted,
                ..
            }
        );
        self.end(failures::question(question, why));
        if interrupted {
            self.stop.cancel();
        }
    }
}
