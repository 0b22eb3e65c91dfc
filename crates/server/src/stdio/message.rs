//! A line read as a message.

use std::borrow::Cow;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, ClientRequest, ClientResult, ElicitResult, ErrorData, GetPromptRequest,
    JsonRpcError, JsonRpcRequest, JsonRpcResponse, JsonRpcVersion2_0, ListToolsRequest,
    PingRequest, ReadResourceRequest, RequestId,
};
use rmcp::service::RxJsonRpcMessage;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use serde_json::value::RawValue;

type ServiceMessage = RxJsonRpcMessage<RoleServer>;

/// A line that is no message for the service.
#[derive(Debug)]
pub(super) enum UnreadableLine {
    /// Answered with an error: under the id of the message if it has one.
    Refused(Option<RequestId>, Box<ErrorData>),
    /// Not answered: a notification, or a response.
    Ignored(&'static str),
}

impl UnreadableLine {
    pub(super) fn too_long() -> Self {
        Self::refused(None, "the message is longer than 16 MiB")
    }

    fn refused(id: Option<RequestId>, why: &'static str) -> Self {
        Self::Refused(id, Box::new(ErrorData::invalid_request(why, None)))
    }
}

/// The members that select the kind of a message.
#[derive(Deserialize)]
struct MessageHead<'a> {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: JsonRpcVersion2_0,
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

/// Reads a line.
///
/// The kinds of messages that come often are selected by their method or members; everything else is tried as rmcp does,
/// so that each message has the same meaning as with rmcp's own transport.
pub(super) fn read(line: &[u8]) -> Result<ServiceMessage, UnreadableLine> {
    if let Some(message) = selected(line) {
        return Ok(message);
    }
    serde_json::from_slice(line).or_else(|error| unreadable(line, &error))
}

fn selected(line: &[u8]) -> Option<ServiceMessage> {
    // serde would read a list as the members in their order.
    if line.first() != Some(&b'{') {
        return None;
    }
    let head: MessageHead<'_> = serde_json::from_slice(line).ok()?;
    let id = head.id?;
    if head.error.is_some() {
        return None;
    }
    match (head.method.as_deref(), head.result) {
        (Some(method), None) => Some(ServiceMessage::Request(JsonRpcRequest::new(
            id,
            request(method, line)?,
        ))),
        (None, Some(result)) => Some(ServiceMessage::Response(JsonRpcResponse {
            jsonrpc: JsonRpcVersion2_0,
            id,
            result: reply(result.get())?,
        })),
        _ => None,
    }
}

fn request(method: &str, line: &[u8]) -> Option<ClientRequest> {
    fn read<'a, R: Deserialize<'a>>(
        line: &'a [u8],
        kind: fn(R) -> ClientRequest,
    ) -> Option<ClientRequest> {
        serde_json::from_slice(line).ok().map(kind)
    }
    match method {
        "tools/call" => read::<CallToolRequest>(line, ClientRequest::CallToolRequest),
        "tools/list" => read::<ListToolsRequest>(line, ClientRequest::ListToolsRequest),
        "prompts/get" => read::<GetPromptRequest>(line, ClientRequest::GetPromptRequest),
        "resources/read" => read::<ReadResourceRequest>(line, ClientRequest::ReadResourceRequest),
        "ping" => read::<PingRequest>(line, ClientRequest::PingRequest),
        _ => None,
    }
}

/// Reads the result of a request that this server has sent.
fn reply(result: &str) -> Option<ClientResult> {
    /// The members by which rmcp knows a result of another kind before it tries an answer.
    #[derive(Deserialize)]
    struct OtherResultMembers {
        #[serde(default)]
        action: Option<IgnoredAny>,
        #[serde(default)]
        model: Option<IgnoredAny>,
        #[serde(default)]
        roots: Option<IgnoredAny>,
    }
    if !result.starts_with('{') {
        // Not even a list with the members of an answer is one.
        return serde_json::from_str(result)
            .ok()
            .map(ClientResult::CustomResult);
    }
    let kind = serde_json::from_str::<OtherResultMembers>(result).ok();
    let answer = kind
        .is_some_and(|kind| kind.action.is_some() && kind.model.is_none() && kind.roots.is_none());
    if answer && let Ok(answer) = serde_json::from_str::<ElicitResult>(result) {
        return Some(ClientResult::ElicitResult(answer));
    }
    serde_json::from_str(result).ok()
}

/// Reads what is left of a line that is no message of a known kind.
///
/// A request is refused under its own id (JSON-RPC 2.0, section 5.1), and an error of any form ends the wait for a
/// response.
fn unreadable(line: &[u8], error: &serde_json::Error) -> Result<ServiceMessage, UnreadableLine> {
    #[derive(Deserialize)]
    struct MessageMembers<'a> {
        #[serde(default)]
        id: Option<RequestId>,
        #[serde(default)]
        method: Option<IgnoredAny>,
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
    }
    if matches!(error.classify(), Category::Syntax | Category::Eof) {
        // Text that something else writes into the pipe is no request. The official SDKs ignore it as well: an answer to
        // it could be answered in turn.
        return Err(UnreadableLine::Ignored("not JSON"));
    }
    let refused = |id| {
        Err(UnreadableLine::refused(
            id,
            "the message is no JSON-RPC request of MCP",
        ))
    };
    if line.first() != Some(&b'{') {
        return refused(None);
    }
    match serde_json::from_slice(line) {
        Ok(MessageMembers {
            id: Some(id),
            error: Some(error),
            ..
        }) => Ok(ServiceMessage::Error(JsonRpcError {
            jsonrpc: JsonRpcVersion2_0,
            id: Some(id),
            error: ErrorData::internal_error(excerpt(error.get()), None),
        })),
        Ok(MessageMembers {
            id: None,
            method: Some(_),
            ..
        }) => Err(UnreadableLine::Ignored("a notification of an unknown form")),
        Ok(MessageMembers { id, .. }) => refused(id),
        Err(_) => refused(None),
    }
}

/// Returns the beginning of a client's error that has another form than JSON-RPC's.
fn excerpt(error: &str) -> String {
    error.chars().take(200).collect()
}
