//! Programs that answer, in any language: questions and answers as JSON, with retries after wrong answers.

use std::time::{Duration, SystemTime};

use mcp_elicit_core::answer::{Action, Violations};
use mcp_elicit_core::digest::canonical;
use mcp_elicit_core::text::str_without_mark;
use mcp_elicit_core::wire::CallDefect;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::ResponderError;
use crate::answer::{self, Answer};
use crate::question::Question;

/// The number of answers that a program may give to one question.
const ATTEMPTS: u32 = 3;

/// A program that reads a question as one line of JSON and answers in JSON.
pub(super) trait QuestionProgram: Sync {
    /// Sends one question and returns the answer as it was written.
    fn exchange(&self, line: &str) -> impl Future<Output = Result<String, ResponderError>> + Send;
}

/// Returns the program's answer. Invalid content, such as a field that the form does not have, is returned to it with
/// every violation, so that it can correct itself.
pub(super) async fn answer_of(
    program: &impl QuestionProgram,
    question: &Question,
) -> Result<Answer, ResponderError> {
    let mut violations = Violations::default();
    for attempt in 1..=ATTEMPTS {
        let line = ProgramQuestion::new(question, attempt, &violations).to_json()?;
        match read(question, &program.exchange(&line).await?)? {
            ProgramRead::Answer(answer) => return Ok(answer),
            ProgramRead::Wrong(wrong) => violations = wrong,
        }
    }
    Err(ResponderError::Refused { violations })
}

/// A question as a program reads it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProgramQuestion<'q> {
    id: u64,
    mode: &'static str,
    /// The server's name, as the client knows it.
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    claimed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    message: &'q str,
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_schema: Option<&'q RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'q str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'q str>,
    /// Warnings, written for a person.
    warnings: Vec<String>,
    /// `true` if an acceptance must carry `"allowCredentials": true`.
    asks_for_credential: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_left: Option<u64>,
    attempt: u32,
    /// The violations of the previous answer.
    violations: &'q Violations,
}

impl<'q> ProgramQuestion<'q> {
    fn new(question: &'q Question, attempt: u32, violations: &'q Violations) -> Self {
        let shown = question.shown();
        let warnings = mcp_elicit_core::view::warnings(shown);
        Self {
            id: question.id(),
            mode: question.mode().as_str(),
            server: shown.origin().server(),
            claimed: shown.origin().claimed(),
            version: shown.origin().version(),
            connection: shown.origin().connection(),
            call: shown.call().map(mcp_elicit_core::view::CallView::title),
            message: question.message(),
            requested_schema: question.schema(),
            url: question.url(),
            host: question.link().map(|link| link.host().ascii()),
            warnings: warnings.into_iter().map(|warning| warning.text).collect(),
            asks_for_credential: question.asks_for_credential(),
            seconds_left: remaining(question).map(|left| left.as_secs()),
            attempt,
            violations,
        }
    }

    fn to_json(&self) -> Result<String, ResponderError> {
        serde_json::to_string(self)
            .map_err(|_| ResponderError::failed("the question cannot be written"))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this shell tells a program how much time is left"
)]
fn remaining(question: &Question) -> Option<Duration> {
    question.shown().remaining(SystemTime::now())
}

/// The answer of a program.
#[derive(Deserialize)]
struct ProgramAnswer {
    action: String,
    content: Option<Value>,
    reason: Option<String>,
    #[serde(default, rename = "allowCredentials")]
    allow_credentials: bool,
}

/// The result of reading a program's answer.
enum ProgramRead {
    Answer(Answer),
    /// The content breaks the form's rules; the program may try again.
    Wrong(Violations),
}

/// Reads a program's answer. An empty one means that it cannot show the question.
fn read(question: &Question, text: &str) -> Result<ProgramRead, ResponderError> {
    let text = str_without_mark(text);
    if text.trim().is_empty() {
        return Err(ResponderError::cannot_show("the program gave no answer"));
    }
    if canonical(text.trim()) == Err(CallDefect::Duplicate) {
        let why = "an object in its answer has a member twice";
        return Err(ResponderError::failed(why));
    }
    let answer_given: ProgramAnswer = serde_json::from_str(text)
        .map_err(|_| ResponderError::failed("its answer is not {\"action\", \"content\"}"))?;
    let action = answer_given
        .action
        .parse::<Action>()
        .map_err(|_| ResponderError::failed("its action is not accept, decline or cancel"))?;
    let answer = match action {
        Action::Accept => {
            match question.accept(
                answer_given
                    .content
                    .unwrap_or_else(|| Value::Object(Map::new())),
            ) {
                Ok(answer) if answer_given.allow_credentials => answer.allow_credentials(),
                Ok(answer) => answer,
                Err(violations) => return Ok(ProgramRead::Wrong(violations)),
            }
        }
        Action::Decline => match answer_given.reason {
            Some(reason) => answer::decline(reason),
            None => answer::declined(),
        },
        Action::Cancel => answer::cancel(),
    };
    Ok(ProgramRead::Answer(answer))
}
