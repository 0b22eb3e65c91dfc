//! The project's transcripts, with a real wrapped server at the other end of a pipe: the test plays the client, line by
//! line, and the server's messages must match the transcript.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not there"
)]

use std::path::Path;
use std::time::Duration;

use mcp_elicit_core::form::Form;
use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, ServerSettings};
use mcp_elicit_testkit::transcript::replay::{Replay, ReplayStep};
use mcp_elicit_testkit::transcript::{Side, Transcript, TranscriptEvent};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, PromptMessage, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ResourceContents, Role, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

/// The transcripts that do not test a server of this project, with the reasons.
const NOT_HERE: [(&str, &str); 18] = [
    (
        "2025-06-18/no-capability",
        "the server asks what was not declared: ours never does",
    ),
    (
        "2025-06-18/url-mode-unknown",
        "the server asks what the revision does not have: ours never does",
    ),
    (
        "2025-06-18/illegal-form",
        "the server sends an illegal form: ours never does",
    ),
    (
        "2025-06-18/timeout",
        "both sides keep time; the client's is told here",
    ),
    (
        "2025-11-25/no-capability",
        "the server asks what was not declared: ours never does",
    ),
    (
        "2025-11-25/mode-not-declared",
        "the server asks what was not declared: ours never does",
    ),
    (
        "2025-11-25/form-not-declared",
        "the server asks what was not declared: ours never does",
    ),
    ("2025-11-25/form-without-mode", "ours always says the mode"),
    ("2025-11-25/two-at-once", "the ids are a foreign server's"),
    (
        "2025-11-25/withdrawn",
        "the handler would have to lose interest by itself",
    ),
    (
        "2025-11-25/url-complete",
        "the completion is sent by whoever serves the page",
    ),
    (
        "2025-11-25/url-required",
        "the completions are sent by whoever serves the pages",
    ),
    (
        "2026-07-28/unsupported-revision",
        "rmcp answers before the wrapper is reached",
    ),
    ("2026-07-28/several-at-once", "sampling is not ours"),
    (
        "2026-07-28/state-only",
        "ours never sends a round without a question",
    ),
    ("2026-07-28/stateless-question", "ours always seals a state"),
    (
        "2026-07-28/url",
        "rmcp's own type for input requests writes an elicitationId, which this revision dropped",
    ),
    ("2026-07-28/task", "a task's times and id are rmcp's"),
];

/// Asks the questions of the transcript, in order.
struct Greeter {
    questions: Vec<Question>,
}

struct Question {
    key: Option<String>,
    message: String,
    what: What,
}

enum What {
    Form(Form),
    Visit(String),
}

impl Greeter {
    fn of(transcript: &Transcript) -> Self {
        let mut questions: Vec<Question> = Vec::new();
        for line in &transcript.lines {
            let TranscriptEvent::Says {
                side: Side::Server,
                pattern,
                ..
            } = &line.event
            else {
                continue;
            };
            if pattern["method"] == "elicitation/create" {
                questions.push(Question::of(None, &pattern["params"]));
            }
            for (key, request) in pattern["result"]["inputRequests"]
                .as_object()
                .into_iter()
                .flatten()
            {
                questions.push(Question::of(Some(key), &request["params"]));
            }
            if let Some(needed) =
                pattern["error"]["data"]["requiredCapabilities"]["elicitation"].as_object()
            {
                questions.push(Question::needing(needed.contains_key("url")));
            }
        }
        // A question that is asked again with a reason is one question to its author.
        questions.retain(|question| question.message != "$reason");
        Self { questions }
    }

    async fn greet(&self, elicit: &Elicit) -> Result<(), ElicitError> {
        for question in &self.questions {
            let message = question.message.as_str();
            match &question.what {
                What::Form(form) => {
                    let ask = elicit.ask(message, form.clone());
                    match &question.key {
                        Some(key) => ask.key(key.as_str()).await?,
                        None => ask.await?,
                    };
                }
                What::Visit(url) => {
                    let ask = elicit.visit(message, url.as_str());
                    match &question.key {
                        Some(key) => ask.key(key.as_str()).await?,
                        None => ask.await?,
                    }
                }
            }
        }
        Ok(())
    }
}

impl Question {
    fn of(key: Option<&str>, params: &Value) -> Self {
        let what = match params["url"].as_str() {
            Some(url) => What::Visit(url.to_owned()),
            None => What::Form(Form::from_value(&params["requestedSchema"]).unwrap()),
        };
        let message = params["message"].as_str().unwrap().to_owned();
        Self {
            key: key.map(str::to_owned),
            message,
            what,
        }
    }

    /// Returns a question that needs the capability.
    fn needing(url: bool) -> Self {
        let what = if url {
            What::Visit("https://example.com/connect".to_owned())
        } else {
            What::Form(Form::parse(r#"{"type": "object", "properties": {}}"#).unwrap())
        };
        Self {
            key: None,
            message: "Go on?".to_owned(),
            what,
        }
    }
}

impl ServerHandler for Greeter {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_prompts()
                .enable_resources()
                .build(),
        )
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = match self.greet(&Elicit::from_context(&context)?).await {
            Ok(()) => "Hello".to_owned(),
            Err(unanswered) => {
                return rmcp::handler::server::tool::IntoCallToolResult::into_call_tool_result(
                    unanswered,
                );
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    async fn get_prompt(
        &self,
        _: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.greet(&Elicit::from_context(&context)?).await?;
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(
            Role::User,
            "Hello".to_owned(),
        )])
        .into())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.greet(&Elicit::from_context(&context)?).await?;
        Ok(ReadResourceResult::new(vec![ResourceContents::text("Hello", request.uri)]).into())
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_says_what_the_transcripts_say() {
    let mut wrong = Vec::new();
    let mut played = 0;
    for (path, transcript) in Transcript::all().unwrap() {
        if not_here(&path).is_some() {
            continue;
        }
        played += 1;
        let conversation = tokio::time::timeout(Duration::from_secs(60 * 60), play(&transcript));
        match conversation.await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => wrong.push(format!("{}:{why}", path.display())),
            Err(_) => wrong.push(format!(
                "{}: the server said nothing for an hour",
                path.display()
            )),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(played >= 20, "only {played} were played");
}

#[test]
fn what_is_not_played_exists() {
    let all = Transcript::all().unwrap();
    for (name, why) in NOT_HERE {
        let known = all
            .iter()
            .any(|(path, _)| path.with_extension("").ends_with(name));
        assert!(known, "{name} ({why}) is not a transcript");
    }
}

fn not_here(path: &Path) -> Option<&'static str> {
    let path = path.with_extension("");
    NOT_HERE
        .iter()
        .find(|(name, _)| path.ends_with(name))
        .map(|(_, why)| *why)
}

/// Plays the client's side of one transcript.
async fn play(transcript: &Transcript) -> Result<(), String> {
    let (near, far) = tokio::io::duplex(1 << 16);
    let server = Greeter::of(transcript).eliciting(ServerSettings::default());
    let serving = tokio::spawn(async move {
        if let Ok(running) = server.serve(far).await {
            running.waiting().await.ok();
        }
    });
    let mut pipe = BufReader::new(near);
    let mut replay = Replay::playing(transcript, Side::Client);
    loop {
        match replay.step() {
            ReplayStep::Send(message) => send(&mut pipe, &message).await?,
            ReplayStep::Receive => {
                let message = receive(&mut pipe).await?;
                replay
                    .received(&message)
                    .map_err(|strayed| strayed.to_string())?;
            }
            ReplayStep::Time { seconds } => tokio::time::sleep(Duration::from_secs(seconds)).await,
            // The client's next message contains the person's action.
            ReplayStep::Person { .. } | ReplayStep::Outcome { .. } => {}
            ReplayStep::Done => break,
        }
    }
    drop(pipe);
    serving.await.map_err(|error| error.to_string())
}

async fn send(pipe: &mut BufReader<DuplexStream>, message: &str) -> Result<(), String> {
    let line = format!("{message}\n");
    pipe.get_mut()
        .write_all(line.as_bytes())
        .await
        .map_err(|error| error.to_string())
}

async fn receive(pipe: &mut BufReader<DuplexStream>) -> Result<String, String> {
    let mut line = String::new();
    match pipe.read_line(&mut line).await {
        Ok(0) => Err("the server hung up".to_owned()),
        Ok(_) => Ok(line),
        Err(error) => Err(error.to_string()),
    }
}
