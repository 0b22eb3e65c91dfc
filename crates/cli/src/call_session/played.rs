//! `call --as`: plays a client as it was seen to behave, for the author of a server. The answers that a profile knows
//! are the client's program's; a person answers the others.
//!
//! It speaks to the server itself, because a client of the library never sends what a played client may: an answer that
//! breaks the form's rules, or an error.

use std::process::Stdio;
use std::time::Duration;

use mcp_elicit_client::QuestionQueue;
use mcp_elicit_client::connection::Target;
use mcp_elicit_client::question::Question;
use mcp_elicit_client::responder::{Responder as _, ResponderErrorKind};
use mcp_elicit_clients::{Played, Profile, ProgramAct, ProgramActs};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::question::outcome_json;
use mcp_elicit_core::view::{Origin, QuestionView};
use mcp_elicit_core::wire::{ElicitRequest, Revision};
use mcp_elicit_relay::HANDED_BACK;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::OnceCell;

use super::request::ServerRequest;
use super::responder_setup::{self, ResponderSetup};
use super::{SILENCE, stop};
use crate::args::answers::AnswerArgs;
use crate::failure::{Exit, Failure};
use crate::output::{self, harmless, say};

/// The ids of the opening and of the request.
const OPENING: u64 = 1;
const REQUEST: u64 = 2;

/// A played client with its request.
pub(crate) struct PlayedCall {
    /// The client's description of itself.
    pub(crate) plays: Played,
    pub(crate) profile: Profile,
    pub(crate) acts: ProgramActs,
    pub(crate) target: Target,
    /// The environment for the server, in addition to the inherited one.
    pub(crate) environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    pub(crate) request: ServerRequest,
    pub(crate) answers: AnswerArgs,
    /// The responder for questions that the client shows to a person, once there is one.
    pub(crate) responder: OnceCell<ResponderSetup>,
}

/// The connection with the server.
struct Wire {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    silence: Duration,
}

impl Wire {
    fn start(call: &PlayedCall) -> Result<Self, Failure> {
        let Target::Command { program, arguments } = &call.target else {
            return Err(Failure::usage("`--as` plays a client that starts its server")
                .hint("put the server's command after `--`; for a URL, `-- mcp-elicit gateway --upstream URL`."));
        };
        let mut command = Command::new(program);
        command.args(arguments);
        command.envs(call.plays.env.iter());
        command.envs(call.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            Failure::connection(format!("cannot start {}", program.to_string_lossy()))
                .because(error)
        })?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::connection("the server has no stdin or stdout"));
        };
        Ok(Self {
            child,
            input,
            output: BufReader::new(output).lines(),
            silence: call.answers.timeout.unwrap_or(SILENCE),
        })
    }

    async fn send(&mut self, frame: &Value) -> Result<(), Failure> {
        let line = format!("{frame}\n");
        let sent = async {
            self.input.write_all(line.as_bytes()).await?;
            self.input.flush().await
        };
        sent.await.map_err(|error| {
            Failure::connection("the server does not read any more").because(error)
        })
    }

    /// Returns the next message of the server; lines that are not JSON objects are skipped.
    async fn next(&mut self) -> Result<Value, Failure> {
        loop {
            let line = tokio::time::timeout(self.silence, self.output.next_line()).await;
            let line = line.map_err(|_| {
                Failure::connection(format!(
                    "the server was silent for {} s",
                    self.silence.as_secs()
                ))
            })?;
            let line = line.map_err(|error| {
                Failure::connection("the server's output cannot be read").because(error)
            })?;
            let Some(line) = line else {
                return Err(Failure::connection("the server ended before it answered"));
            };
            if let Ok(frame @ Value::Object(_)) = serde_json::from_str::<Value>(&line) {
                return Ok(frame);
            }
        }
    }

    async fn end(mut self) {
        drop(self.input);
        let ended = tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await;
        if ended.is_err() {
            // It is killed as it is dropped.
            let _kills = self.child.start_kill();
        }
    }
}

/// Makes the request as the client, shows its result, and returns the exit code.
pub(crate) async fn run(call: PlayedCall) -> Result<Exit, Failure> {
    let stop = stop::listen()?;
    let mut wire = Wire::start(&call)?;
    let ended = tokio::select! {
        ended = converse(&call, &mut wire) => ended,
        () = stop.cancelled() => Err(super::failures::stopped()),
    };
    wire.end().await;
    let response = ended?;
    let exit = show(&call, &response)?;
    // As without `--as`: no answer is dropped in silence.
    let setup = call.responder.get();
    match setup.and_then(ResponderSetup::unused) {
        Some(unused) if exit == Exit::Done => Err(unused),
        _ => Ok(exit),
    }
}

/// Opens the session and makes the request. Returns the response.
async fn converse(call: &PlayedCall, wire: &mut Wire) -> Result<Value, Failure> {
    let plays = &call.plays;
    let mut capabilities = json!({"roots": {}});
    if let Some(elicitation) = &plays.elicitation {
        capabilities["elicitation"] = elicitation.clone();
    }
    let info = json!({"name": plays.name, "version": plays.version});
    let opening = json!({"jsonrpc": "2.0", "id": OPENING, "method": "initialize", "params": {
        "protocolVersion": plays.revision, "capabilities": capabilities, "clientInfo": info}});
    wire.send(&opening).await?;
    let opened = response_to(call, wire, OPENING, Revision::V2025_06_18).await?;
    let spoken = opened["result"]["protocolVersion"].as_str();
    let revision = spoken.and_then(|spoken| spoken.parse().ok());
    let Some(revision) = revision else {
        return Err(Failure::connection(
            "the server answered the opening without a revision that this program knows",
        ));
    };
    if call.answers.json {
        let server = &opened["result"]["serverInfo"];
        output::print_json(
            &json!({"event": "connected", "server": server, "protocol": spoken,
            "transport": "stdio", "as": plays.name}),
        )?;
    }
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    wire.send(&initialized).await?;
    wire.send(&request(call)).await?;
    response_to(call, wire, REQUEST, revision).await
}

fn request(call: &PlayedCall) -> Value {
    let (method, mut params) = match &call.request {
        ServerRequest::List => ("tools/list", json!({})),
        ServerRequest::Tool {
            name, arguments, ..
        } => ("tools/call", json!({"name": name, "arguments": arguments})),
        ServerRequest::Prompt { name, arguments } => {
            ("prompts/get", json!({"name": name, "arguments": arguments}))
        }
        ServerRequest::Resource { uri } => ("resources/read", json!({"uri": uri})),
    };
    let mut meta = Value::Object(call.plays.call_meta.clone());
    meta["progressToken"] = json!(REQUEST);
    params["_meta"] = meta;
    json!({"jsonrpc": "2.0", "id": REQUEST, "method": method, "params": params})
}

/// Answers the server's requests until it responds to this request.
async fn response_to(
    call: &PlayedCall,
    wire: &mut Wire,
    id: u64,
    revision: Revision,
) -> Result<Value, Failure> {
    loop {
        let frame = wire.next().await?;
        let (method, asked) = (frame["method"].as_str(), &frame["id"]);
        match method {
            None if *asked == id => return Ok(frame),
            None => {}
            Some(_) if asked.is_null() => {}
            Some("elicitation/create") => {
                let answer = answer(call, &frame["params"], revision).await?;
                let mut response = json!({"jsonrpc": "2.0", "id": asked});
                let (member, value) = answer;
                response[member] = value;
                wire.send(&response).await?;
            }
            Some(method) => {
                let mut response = json!({"jsonrpc": "2.0", "id": asked});
                match method {
                    "ping" => response["result"] = json!({}),
                    "roots/list" => response["result"] = json!({"roots": []}),
                    _ => {
                        let error = json!({"code": -32601, "message": "Method not found"});
                        response["error"] = error;
                    }
                }
                wire.send(&response).await?;
            }
        }
    }
}

/// Returns the answer to a question: the client's, if its profile knows it, otherwise the person's.
async fn answer(
    call: &PlayedCall,
    params: &Value,
    revision: Revision,
) -> Result<(&'static str, Value), Failure> {
    if call.answers.json {
        let mut event = params.clone();
        if let Some(members) = event.as_object_mut() {
            members.insert("event".to_owned(), json!("asked"));
        }
        output::print_json(&event)?;
    } else {
        let message = params["message"].as_str().unwrap_or_default();
        say(format_args!("asked: {}", harmless(message)));
    }
    let read = ElicitRequest::from_value(params, revision).ok();
    let is_link = params["mode"] == "url";
    let form = match &read {
        Some(ElicitRequest::Form { schema, .. }) => Form::parse(schema.get()).ok(),
        Some(ElicitRequest::Url { .. }) | None => None,
    };
    let act = if is_link || form.is_some() {
        call.acts.to(form.as_ref(), &call.profile)
    } else {
        // No client can show what cannot be read.
        Some(call.acts.form.unwrap_or(ProgramAct::InvalidParams))
    };
    let (member, value) = if let Some(act) = act {
        answer_of(act, is_link)
    } else {
        let request = read.ok_or_else(|| {
            Failure::connection("the server's question cannot be read")
                .hint("`mcp-elicit lint` finds what is wrong.")
        })?;
        ("result", ask_person(call, request, form, revision).await?)
    };
    let by = if act.is_some() { "client" } else { "person" };
    if call.answers.json {
        output::print_json(&json!({"event": "answered", "by": by, member: value}))?;
    } else if act.is_some() {
        say(format_args!(
            "{} answers: {value}",
            harmless(&call.plays.name)
        ));
    }
    Ok((member, value))
}

/// Returns a program's answer as a member of the response.
fn answer_of(act: ProgramAct, is_link: bool) -> (&'static str, Value) {
    let error = |code: i32, message: &str| ("error", json!({"code": code, "message": message}));
    match act {
        ProgramAct::AcceptEmpty if is_link => ("result", json!({"action": "accept"})),
        ProgramAct::AcceptEmpty => ("result", json!({"action": "accept", "content": {}})),
        ProgramAct::Decline => ("result", json!({"action": "decline"})),
        ProgramAct::Cancel => ("result", json!({"action": "cancel"})),
        ProgramAct::NoMethod => error(-32601, "Method not found"),
        ProgramAct::InvalidParams => error(-32602, "Invalid params"),
        ProgramAct::InternalError => error(-32603, "Internal error"),
    }
}

/// Asks the person, or uses the prepared answers. Returns the `ElicitResult`.
async fn ask_person(
    call: &PlayedCall,
    request: ElicitRequest,
    form: Option<Form>,
    revision: Revision,
) -> Result<Value, Failure> {
    let setup = || responder_setup::from_args(&call.answers);
    let ResponderSetup { responder, .. } = call.responder.get_or_try_init(setup).await?;
    let origin = Origin::new(call.target.describe());
    let message = request.message().to_owned();
    let unreadable = || Failure::connection("the server's question cannot be shown");
    let shown = match (&request, form) {
        (ElicitRequest::Url { url, .. }, _) => {
            let link = Link::parse(url).map_err(|error| unreadable().because(error))?;
            QuestionView::url(origin, message, link)
        }
        (ElicitRequest::Form { .. }, Some(form)) => QuestionView::form(origin, message, form),
        (ElicitRequest::Form { .. }, None) => return Err(unreadable()),
    };
    let (question, _withdrawal) =
        Question::from_record(shown, request, revision, QuestionQueue::new());
    let answer = responder.respond(&question).await;
    let answer = answer.map_err(|error| {
        let said = "the question was not answered";
        match error.kind() {
            ResponderErrorKind::DoesNotFit => Failure::usage(said),
            ResponderErrorKind::Interrupted
            | ResponderErrorKind::NothingPrepared
            | ResponderErrorKind::EndOfInput
            | ResponderErrorKind::Ended
            | ResponderErrorKind::Unable => Failure::unanswered(said),
        }
        .because(error)
    })?;
    serde_json::from_str(&outcome_json(answer.outcome()))
        .map_err(|error| Failure::unanswered("the answer cannot be sent").because(error))
}

/// Shows the response. Returns the exit code.
fn show(call: &PlayedCall, response: &Value) -> Result<Exit, Failure> {
    if let Some(error) = response.get("error") {
        let message = error["message"].as_str().unwrap_or_default();
        let told = format!("the server reported error {}: {message}", error["code"]);
        if call.answers.json {
            output::print_json(&json!({"event": "error", "error": error}))?;
        }
        return Err(Failure::refused(harmless(&told)));
    }
    let result = response.get("result").cloned().unwrap_or_default();
    if call.answers.json {
        output::print_json(&json!({"event": "result", "result": result}))?;
    } else {
        let texts = result["content"].as_array().into_iter().flatten();
        let texts: Vec<&str> = texts.filter_map(|part| part["text"].as_str()).collect();
        if texts.is_empty() {
            output::print_json(&result)?;
        }
        for text in texts {
            output::print(harmless(text))?;
        }
    }
    let marks: Option<&Map<String, Value>> = result["_meta"].as_object();
    Ok(
        if marks.is_some_and(|meta| meta.get(HANDED_BACK) == Some(&json!(true))) {
            Exit::HandedBack
        } else if result["isError"] == true {
            Exit::Refused
        } else {
            Exit::Done
        },
    )
}
