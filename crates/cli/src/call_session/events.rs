//! Reports events as they happen: one JSON object per line for a program, or a few words for a person.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use mcp_elicit_client::connection::Target;
use mcp_elicit_client::dispatch::Observer;
use mcp_elicit_client::{Answer, Connection, Question, QuestionError, ResponderError};
use mcp_elicit_core::answer::Action;
use mcp_elicit_core::wire::Mode;
use mcp_elicit_forms::view::sanitize;
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResourceContents, Role,
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::failures;
use super::request::{self, Got};
use crate::args::field_answers;
use crate::failure::Failure;
use crate::output;

/// The largest part of a server's text that is shown to a person, in characters.
const TEXT: usize = 100_000;

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event<'e> {
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
        content: Option<Value>,
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

/// Reports events, and remembers why a question got no answer.
pub(crate) struct Events {
    json: bool,
    stop: CancellationToken,
    ended: Mutex<Option<Failure>>,
    /// The action of the last answer.
    last: Mutex<Option<Action>>,
    /// The values from the command line, by the names of fields.
    typed: Vec<(String, String)>,
    policy: Option<PathBuf>,
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
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(action);
    }

    /// Returns the action of the last answer unless it is `accept`.
    pub(crate) fn refusal(&self) -> Option<Action> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.filter(|action| *action != Action::Accept)
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
    fn tell(&self, event: &Event<'_>) {
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
            return output::print_json(&Event::Connected {
                server,
                protocol: &protocol,
                transport: target.transport(),
            });
        }
        let name = server.map_or_else(
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
            Got::List(listing) => listing.show(self.json),
            Got::Tool(result) => self.result(result),
            Got::Prompt(result) => self.prompt(result),
            Got::Resource(result) => self.resource(result),
        }
    }

    pub(crate) fn result(&self, result: &CallToolResult) -> Result<(), Failure> {
        if self.json {
            return print_result(result);
        }
        if result.is_error == Some(true) {
            match self.refusal() {
                Some(action) => output::say(format_args!(
                    "{} the tool ended after its question was {}:",
                    output::styled(output::WARNING, "declined:"),
                    past(action)
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
            Some(structured) if !shown => output::print_json(structured),
            _ => Ok(()),
        }
    }

    fn prompt(&self, result: &GetPromptResult) -> Result<(), Failure> {
        if self.json {
            return print_result(result);
        }
        for message in &result.messages {
            output::say(match message.role {
                Role::User => "user:",
                Role::Assistant => "assistant:",
            });
            show_block(&message.content)?;
        }
        Ok(())
    }

    fn resource(&self, result: &ReadResourceResult) -> Result<(), Failure> {
        if self.json {
            return print_result(result);
        }
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

/// Returns an action as a past participle, such as "declined".
pub(super) fn past(action: Action) -> &'static str {
    match action {
        Action::Accept => "accepted",
        Action::Decline => "declined",
        Action::Cancel => "cancelled",
    }
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
    output::print_json(&Event::Error { error })
}

impl Observer for Events {
    fn asked(&self, question: &Question) {
        if self.json {
            self.tell(&Event::Asked {
                mode: question.mode().as_str(),
                message: question.message(),
                // Serialized anew, because the server may have written it on several lines.
                schema: question
                    .schema()
                    .and_then(|schema| serde_json::from_str(schema.get()).ok()),
                url: question.url(),
            });
        }
    }

    fn answered(&self, question: &Question, answer: &Answer) {
        let done = answer.outcome().action();
        self.note_action(done);
        let action = done.as_str();
        if self.json {
            // The person asked for this: `--json` reports everything that was sent.
            let content = answer
                .outcome()
                .answers()
                .map(mcp_elicit_core::answer::Answers::to_value);
            return self.tell(&Event::Answered { action, content });
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
