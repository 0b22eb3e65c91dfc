//! One call with its questions: connecting, answering, telling what happens, ending. Shared by `call` and the demos.
//!
//! - [`answering`]: who answers, from the options
//! - [`consent`]: what the person allows servers, kept in a file
//! - [`events`]: what happens, told to a program or to a person
//! - [`handler`]: what the server says beside its questions
//! - [`progress`]: a sign of life while waiting for the server
//! - [`stop`]: Ctrl-C and the like

pub(crate) mod answering;
mod consent;
pub(crate) mod events;
pub(crate) mod failures;
pub(crate) mod handler;
mod progress;
pub(crate) mod stop;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_client::connection::{BearerToken, Target};
use mcp_elicit_client::{CallOptions, Connection, Eliciting, Options, Settings};
use mcp_elicit_core::wire::Revision;
use rmcp::model::{CallToolResult, JsonObject};

use crate::args::answers::AnswerArgs;
use crate::args::server::Protocol;
use crate::failure::{Exit, Failure};
use consent::Keeper;
use events::Events;
use handler::Handler;

/// How long a server may be silent unless told otherwise.
const SILENCE: Duration = Duration::from_mins(1);

/// One call of one tool.
pub(crate) struct Call {
    pub(crate) target: Target,
    /// What is shown to a server over HTTP to be let in.
    pub(crate) token: Option<BearerToken>,
    /// The name the person knows the server by.
    pub(crate) server: String,
    pub(crate) protocol: Protocol,
    pub(crate) tool: String,
    pub(crate) arguments: JsonObject,
    /// Whether to call it as a task, where the revision leaves that to the caller.
    pub(crate) as_task: bool,
    pub(crate) answers: AnswerArgs,
    /// Where what the person allows servers is kept.
    pub(crate) consent: Option<PathBuf>,
}

/// Makes the call, shows its result, and says how the process ends.
pub(crate) async fn run(call: Call) -> Result<Exit, Failure> {
    let json = call.answers.json;
    match conversation(&call).await {
        Ok(exit) => Ok(exit),
        Err(failure) => {
            if json {
                events::print_failure(&failure)?;
            }
            Err(failure)
        }
    }
}

async fn conversation(call: &Call) -> Result<Exit, Failure> {
    let answering = answering::from_args(&call.answers).await?;
    let stop = stop::listen()?;
    let events = Arc::new(Events::new(call.answers.json, stop.clone()));
    let mut settings = Settings::default()
        .responder(Arc::clone(&answering.responder))
        .observer(Arc::clone(&events))
        .observer(Keeper::new(call.consent.clone(), call.server.clone()));
    if let Some(file) = &call.consent {
        settings = settings.consent(consent::read(file)?);
    }
    if let Some(time) = call.answers.timeout {
        settings = settings.answer_within(time);
    }
    let connected = format!(
        "over {}: {}",
        call.target.transport(),
        call.target.describe()
    );
    let handler = Handler::new(call.answers.json);
    let eliciting = Eliciting::new(handler, call.server.clone(), settings)
        .connected(connected)
        .following_tasks();
    let options = Options {
        revision: revision(call.protocol),
        within: call.answers.timeout.unwrap_or(Options::default().within),
        token: call.token.clone(),
        ..Options::default()
    };
    let waiting = progress::show(format!("connecting to {}", call.server), call.answers.json);
    let opened = tokio::select! {
        opened = Connection::open(&call.target, eliciting, &options) => opened,
        () = stop.cancelled() => return Err(failures::stopped()),
    };
    drop(waiting);
    let connection = opened.map_err(failures::connecting)?;
    events.connected(&connection, &call.target)?;
    let call_options = CallOptions {
        silence: Some(call.answers.timeout.unwrap_or(SILENCE)),
        stop: stop.clone(),
        as_task: call.as_task,
    };
    let called = connection
        .call_tool(call.tool.clone(), call.arguments.clone(), &call_options)
        .await;
    let said = failures::Said {
        stderr: connection.stderr(),
        noise: connection.noise(),
    };
    connection.close().await;
    answering.warn_of_unused();
    let ended = match (called, events.ended()) {
        (Ok(result), ended) => {
            let shown = events.result(&result).map(|()| exit_of(&result));
            ended.map_or(shown, Err)
        }
        // What went wrong with a question explains why the call failed after it.
        (Err(_), Some(ended)) => Err(ended),
        (Err(error), None) => Err(failures::calling(error, &said)),
    };
    answering.farewell().await;
    ended
}

fn exit_of(result: &CallToolResult) -> Exit {
    if result.is_error == Some(true) {
        Exit::Refused
    } else {
        Exit::Done
    }
}

fn revision(protocol: Protocol) -> Option<Revision> {
    match protocol {
        Protocol::Auto => None,
        Protocol::V2025_06_18 => Some(Revision::V2025_06_18),
        Protocol::V2025_11_25 => Some(Revision::V2025_11_25),
        Protocol::V2026_07_28 => Some(Revision::V2026_07_28),
    }
}
