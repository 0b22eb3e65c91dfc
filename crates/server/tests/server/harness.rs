//! A client that answers by script, a server that asks it, and pipes between them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use mcp_elicit_server::{ElicitingExt, ElicitingServer, ServerSettings};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
    CustomNotification, ElicitRequestParams, ElicitResult, ElicitationAction, Implementation,
    InputRequests, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, RequestContext, RunningService,
    ServiceError,
};
use rmcp::{ClientHandler, ErrorData, RoleClient, ServerHandler, ServiceExt};
use serde_json::{Value, json};

pub(crate) const REVISIONS: [&str; 3] = ["2025-06-18", "2025-11-25", "2026-07-28"];

/// The scripted person's action on one question.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Accept(Value),
    /// Accepts with the content that it computes from the message: for questions that come in any order.
    Sees(fn(&str) -> Value),
    /// Accepts without content: a URL, or a careless client.
    Bare,
    Decline,
    Cancel,
    /// Declines and sends content with it.
    DeclineWith(Value),
    /// Answers after ten minutes.
    Late(Value),
    /// The client fails instead of asking.
    Fail(i32),
}

/// The clock of the test: tokio's paused clock for waits, and this one for recorded times.
#[derive(Debug, Clone)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_800_000_000)))
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_secs(), Ordering::SeqCst);
    }

    pub(crate) fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.0.load(Ordering::SeqCst))
    }

    pub(crate) fn settings(&self) -> ServerSettings {
        let clock = self.clone();
        ServerSettings::default().clock(move || clock.now())
    }
}

type Always = Arc<dyn Fn(&str) -> Act + Send + Sync>;

#[derive(Clone)]
pub(crate) struct ScriptedUser {
    pub(crate) revision: &'static str,
    pub(crate) capability: Value,
    pub(crate) clock: Clock,
    acts: Arc<Mutex<VecDeque<Act>>>,
    asked: Arc<Mutex<Vec<Value>>>,
    progress: Arc<AtomicU64>,
    told: Arc<Mutex<Vec<(String, Value)>>>,
    name: &'static str,
    always: Option<Always>,
}

impl ScriptedUser {
    pub(crate) fn answering(revision: &'static str, acts: impl IntoIterator<Item = Act>) -> Self {
        Self {
            revision,
            capability: json!({ "elicitation": { "form": {}, "url": {} } }),
            clock: Clock::new(),
            acts: Arc::new(Mutex::new(acts.into_iter().collect())),
            asked: Arc::default(),
            progress: Arc::default(),
            told: Arc::default(),
            name: "person",
            always: None,
        }
    }

    pub(crate) fn declaring(mut self, capability: Value) -> Self {
        self.capability = capability;
        self
    }

    /// Sets the person's action on every question after the given actions.
    pub(crate) fn always(mut self, act: impl Fn(&str) -> Act + Send + Sync + 'static) -> Self {
        self.always = Some(Arc::new(act));
        self
    }

    pub(crate) fn lifecycle(&self) -> ClientLifecycleMode {
        match self.revision {
            "2026-07-28" => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
            _ => ClientLifecycleMode::Initialize,
        }
    }

    pub(crate) fn called(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// Returns the parameters of every question so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn messages(&self) -> Vec<String> {
        self.asked()
            .iter()
            .map(|asked| asked["message"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn progress(&self) -> u64 {
        self.progress.load(Ordering::SeqCst)
    }

    /// Returns every notification that rmcp does not know, with its parameters.
    pub(crate) fn told(&self) -> Vec<(String, Value)> {
        self.told.lock().unwrap().clone()
    }

    /// Connects to `server` through a pipe.
    pub(crate) async fn meet<S: ServerHandler>(
        &self,
        server: ElicitingServer<S>,
    ) -> RunningService<RoleClient, Self> {
        let (near, far) = tokio::io::duplex(1 << 20);
        tokio::spawn(async move {
            if let Ok(running) = server.serve(far).await {
                running.waiting().await.unwrap();
            }
        });
        self.clone()
            .serve_with_lifecycle(near, self.lifecycle())
            .await
            .unwrap()
    }

    /// Calls a tool of `server` and returns its result.
    pub(crate) async fn call<S: ServerHandler>(
        &self,
        server: S,
        tool: &'static str,
    ) -> Result<CallToolResult, ErrorData> {
        let settings = self.clock.settings();
        self.call_under(server.eliciting(settings), tool).await
    }

    pub(crate) async fn call_under<S: ServerHandler>(
        &self,
        server: ElicitingServer<S>,
        tool: &'static str,
    ) -> Result<CallToolResult, ErrorData> {
        let client = self.meet(server).await;
        let result = client.call_tool(CallToolRequestParams::new(tool)).await;
        match result {
            Ok(result) => Ok(result),
            Err(ServiceError::McpError(error)) => Err(error),
            Err(other) => panic!("{other}"),
        }
    }
}

/// Plays one round by hand: sends the request as it is, and returns the response.
pub(crate) async fn once(
    client: &RunningService<RoleClient, ScriptedUser>,
    request: &CallToolRequestParams,
) -> Result<CallToolResponse, ErrorData> {
    match client.call_tool_once(request.clone()).await {
        Ok(response) => Ok(response),
        Err(ServiceError::McpError(error)) => Err(error),
        Err(other) => panic!("{other}"),
    }
}

/// Returns the requests and the state of a round that requires input.
pub(crate) fn required(response: CallToolResponse) -> (InputRequests, String) {
    match response {
        CallToolResponse::InputRequired(required) => (
            required.input_requests.unwrap(),
            required.request_state.unwrap(),
        ),
        other => panic!("no input required: {other:?}"),
    }
}

/// Returns the text of a complete result.
pub(crate) fn complete(response: CallToolResponse) -> String {
    match response {
        CallToolResponse::Complete(result) => said(&result).0,
        other => panic!("not complete: {other:?}"),
    }
}

/// Returns the same request with replies that accept `content` under each key.
pub(crate) fn retry(
    request: &CallToolRequestParams,
    state: &str,
    replies: impl IntoIterator<Item = (String, Value)>,
) -> CallToolRequestParams {
    let accept = |content| json!({ "action": "accept", "content": content });
    let replies = replies
        .into_iter()
        .map(|(key, content)| (key, accept(content)))
        .collect();
    request
        .clone()
        .with_input_responses(replies)
        .with_request_state(state)
}

/// Returns the text of a result, and `true` if it is an error.
pub(crate) fn said(result: &CallToolResult) -> (String, bool) {
    let text = result
        .content
        .iter()
        .filter_map(|content| content.as_text())
        .map(|text| text.text.clone())
        .collect();
    (text, result.is_error.unwrap_or(false))
}

impl ClientHandler for ScriptedUser {
    fn get_info(&self) -> ClientConfig {
        let capabilities: ClientCapabilities =
            serde_json::from_value(self.capability.clone()).unwrap();
        let mut info = ClientConfig::new(capabilities, Implementation::new(self.name, "1"));
        info.protocol_version = serde_json::from_value(json!(self.revision)).unwrap();
        info
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = serde_json::to_value(request).unwrap();
        let message = request["message"].as_str().unwrap().to_owned();
        self.asked.lock().unwrap().push(request);
        let act = self.acts.lock().unwrap().pop_front();
        let act = act.or_else(|| self.always.as_ref().map(|always| always(&message)));
        let act = act.expect("one question too many");
        Ok(match act {
            Act::Accept(content) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(content)
            }
            Act::Sees(answer) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(answer(&message))
            }
            Act::Bare => ElicitResult::new(ElicitationAction::Accept),
            Act::Decline => ElicitResult::new(ElicitationAction::Decline),
            Act::Cancel => ElicitResult::new(ElicitationAction::Cancel),
            Act::DeclineWith(content) => {
                ElicitResult::new(ElicitationAction::Decline).with_content(content)
            }
            Act::Late(content) => {
                let late = Duration::from_secs(10 * 60);
                self.clock.advance(late);
                tokio::time::sleep(late).await;
                ElicitResult::new(ElicitationAction::Accept).with_content(content)
            }
            Act::Fail(code) => {
                return Err(ErrorData::new(rmcp::model::ErrorCode(code), "no", None));
            }
        })
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleClient>,
    ) {
        self.told
            .lock()
            .unwrap()
            .push((notification.method, notification.params.unwrap_or_default()));
    }

    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.fetch_add(1, Ordering::SeqCst);
    }
}
