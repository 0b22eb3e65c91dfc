//! Results as the server wrote them, read as far as they can be.
//!
//! A program that uses a server wants a result that keeps to the protocol, or an error: [`Connection::call_tool`]. A
//! program that shows a server to a person wants to see everything that came, with the members that are wrong.

use mcp_elicit_core::misfit::{Misfit, ResultKind, fit};
use mcp_elicit_core::wire::{LenientMembers, members};
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientRequest, GetPromptRequestParams, GetPromptResult,
    JsonObject, ListPromptsRequest, ListPromptsResult, ListResourceTemplatesRequest,
    ListResourceTemplatesResult, ListResourcesRequest, ListResourcesResult, ListToolsRequest,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResult,
    RequestId, ServerResult,
};
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use super::request::CallRequest;
use super::{CallError, CallOptions};
use crate::connection::{Connection, Health};

/// A result as it was received: its text, the members that do not fit the protocol, and the result without them.
///
/// ```
/// use mcp_elicit_client::{CallError, CallOptions, Connection};
///
/// async fn show(connection: &Connection<()>) -> Result<(), CallError> {
///     let received = connection.tool_as_received("report", Default::default(), &CallOptions::default()).await?;
///     for misfit in received.misfits() {
///         eprintln!("{misfit}");
///     }
///     println!("{}", received.raw());
///     if received.result().is_error == Some(true) {
///         eprintln!("{} items of an error", received.into_result().content.len());
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Received<T> {
    result: T,
    raw: Box<RawValue>,
    misfits: Vec<Misfit>,
}

impl<T> Received<T> {
    /// Returns the result as far as it can be read: what does not fit is left out, and what is missing is empty.
    pub fn result(&self) -> &T {
        &self.result
    }

    /// Returns the result as far as it can be read.
    pub fn into_result(self) -> T {
        self.result
    }

    /// Returns the result as the server wrote it.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// Returns the members that do not fit the protocol.
    pub fn misfits(&self) -> &[Misfit] {
        &self.misfits
    }
}

impl<T: DeserializeOwned> Received<T> {
    fn read(kind: ResultKind, reply: RequestReply, health: &Health) -> Result<Self, CallError> {
        let mut received = Self::read_reply(kind, reply).map_err(|error| error.masked(health))?;
        for misfit in &mut received.misfits {
            *misfit = misfit.clone().with_texts(|text| health.masked(text));
        }
        Ok(received)
    }

    fn read_reply(kind: ResultKind, reply: RequestReply) -> Result<Self, CallError> {
        let raw = reply.into_raw()?;
        // A request for input that could not be read is no result.
        let result_type = LenientMembers::read(raw.get()).and_then(|members| {
            members
                .get("resultType")
                .and_then(|value| members::text(value).map(std::borrow::Cow::into_owned))
        });
        if let Some(asks @ ("input_required" | "task")) = result_type.as_deref() {
            let mut misfits = fit(ResultKind::InputRequired, raw.get()).misfits;
            if misfits.is_empty() {
                misfits.push(Misfit::of_result_type(asks));
            }
            return Err(CallError::Unreadable { misfits });
        }
        let fitted = fit(kind, raw.get());
        let misfits = fitted.misfits;
        match serde_json::from_value(fitted.value) {
            Ok(result) => Ok(Self {
                result,
                raw,
                misfits,
            }),
            Err(_) => Err(CallError::Unreadable { misfits }),
        }
    }
}

/// The response to one request: rmcp's reading of it, which may be wrong, and its text if it was kept.
pub(super) struct RequestReply {
    pub(super) result: ServerResult,
    pub(super) raw: Option<Box<RawValue>>,
}

impl From<ServerResult> for RequestReply {
    fn from(result: ServerResult) -> Self {
        Self { result, raw: None }
    }
}

impl RequestReply {
    fn into_raw(self) -> Result<Box<RawValue>, CallError> {
        match self.raw {
            Some(raw) => Ok(raw),
            None => to_raw_value(&self.result).map_err(|_| CallError::UnexpectedResponse),
        }
    }

    /// Reads the result strictly. rmcp guesses a result's type from its members and may guess wrong; the caller knows
    /// the type.
    pub(super) fn strictly<T: DeserializeOwned>(
        self,
        kind: ResultKind,
        health: &Health,
    ) -> Result<T, CallError> {
        let raw = self.into_raw()?;
        serde_json::from_str(raw.get()).map_err(|_| {
            let misfits = fit(kind, raw.get()).misfits;
            CallError::Unreadable { misfits }.masked(health)
        })
    }
}

impl<H: ClientHandler> Connection<H> {
    /// Calls a tool and answers its questions, like [`call_tool`](Self::call_tool), and reads the result as far as it
    /// can be read.
    ///
    /// ```
    /// use mcp_elicit_client::{CallError, CallOptions, Connection};
    ///
    /// async fn show(connection: &Connection<()>) -> Result<(), CallError> {
    ///     let options = CallOptions::default();
    ///     let received = connection.tool_as_received("report", Default::default(), &options).await?;
    ///     println!("{}", received.raw());
    ///     Ok(())
    /// }
    /// ```
    pub async fn tool_as_received(
        &self,
        name: impl Into<String>,
        arguments: JsonObject,
        options: &CallOptions,
    ) -> Result<Received<CallToolResult>, CallError> {
        let params = CallToolRequestParams::new(name.into()).with_arguments(arguments);
        let reply = Box::pin(self.drive(CallRequest::Tool(params), options)).await?;
        Received::read(ResultKind::Tool, reply, self.health())
    }

    /// Gets a prompt and answers its questions, like [`get_prompt`](Self::get_prompt), and reads the result as far as
    /// it can be read.
    ///
    /// ```
    /// use mcp_elicit_client::{CallError, CallOptions, Connection};
    ///
    /// async fn show(connection: &Connection<()>) -> Result<(), CallError> {
    ///     let options = CallOptions::default();
    ///     let received = connection.prompt_as_received(rmcp::model::GetPromptRequestParams::new("summary"), &options).await?;
    ///     println!("{}", received.raw());
    ///     Ok(())
    /// }
    /// ```
    pub async fn prompt_as_received(
        &self,
        params: GetPromptRequestParams,
        options: &CallOptions,
    ) -> Result<Received<GetPromptResult>, CallError> {
        let reply = Box::pin(self.drive(CallRequest::Prompt(params), options)).await?;
        Received::read(ResultKind::Prompt, reply, self.health())
    }

    /// Reads a resource and answers its questions, like [`read_resource`](Self::read_resource), and reads the result as
    /// far as it can be read.
    ///
    /// ```
    /// use mcp_elicit_client::{CallError, CallOptions, Connection};
    ///
    /// async fn show(connection: &Connection<()>) -> Result<(), CallError> {
    ///     let options = CallOptions::default();
    ///     let received = connection.resource_as_received(rmcp::model::ReadResourceRequestParams::new("file:///notes"), &options).await?;
    ///     println!("{}", received.raw());
    ///     Ok(())
    /// }
    /// ```
    pub async fn resource_as_received(
        &self,
        params: ReadResourceRequestParams,
        options: &CallOptions,
    ) -> Result<Received<ReadResourceResult>, CallError> {
        let reply = Box::pin(self.drive(CallRequest::Resource(params), options)).await?;
        Received::read(ResultKind::Resource, reply, self.health())
    }

    /// Requests one page of the tools, and reads it as far as it can be read.
    ///
    /// ```
    /// use mcp_elicit_client::{CallError, CallOptions, Connection};
    ///
    /// async fn show(connection: &Connection<()>) -> Result<(), CallError> {
    ///     let options = CallOptions::default();
    ///     let received = connection.tools_page(None, &options).await?;
    ///     println!("{}", received.raw());
    ///     Ok(())
    /// }
    /// ```
    pub async fn tools_page(
        &self,
        cursor: Option<String>,
        options: &CallOptions,
    ) -> Result<Received<ListToolsResult>, CallError> {
        let request = ListToolsRequest::with_param(page(cursor));
        let request = ClientRequest::ListToolsRequest(request);
        let reply = self.list(request, options).await?;
        Received::read(ResultKind::Tools, reply, self.health())
    }

    /// Requests one page of the prompts, and reads it as far as it can be read.
    ///
    /// ```
    /// use mcp_elicit_client::{CallError, CallOptions, Connection};
    ///
    /// async fn show(connection: &Connection<()>) -> Result<(), CallError> {
    ///     let options = CallOptions::default();
    ///     let received = connection.prompts_page(None, &options).await?;
    ///     println!("{}", received.raw());
    ///     Ok(())
    /// }
    /// ```
    pub async fn prompts_page(
        &self,
        cursor: Option<String>,
        options: &CallOptions,
    ) -> Result<Received<ListPromptsResult>, CallError> {
        let request = ListPromptsRequest::with_param(page(cursor));
        let request = ClientRequest::ListPromptsRequest(request);
        let reply = self.list(request, options).await?;
        Received::read(ResultKind::Prompts, reply, self.health())
    }

    /// Requests one page of the resources, and reads it as far as it can be read.
    ///
    /// ```
    /// use mcp_elicit_client::{CallError, CallOptions, Connection};
    ///
    /// async fn show(connection: &Connection<()>) -> Result<(), CallError> {
    ///     let options = CallOptions::default();
    ///     let received = connection.resources_page(None, &options).await?;
    ///     println!("{}", received.raw());
    ///     Ok(())
    /// }
    /// ```
    pub async fn resources_page(
        &self,
        cursor: Option<String>,
        options: &CallOptions,
    ) -> Result<Received<ListResourcesResult>, CallError> {
        let request = ListResourcesRequest::with_param(page(cursor));
        let request = ClientRequest::ListResourcesRequest(request);
        let reply = self.list(request, options).await?;
        Received::read(ResultKind::Resources, reply, self.health())
    }

    /// Requests one page of the resource templates, and reads it as far as it can be read.
    ///
    /// ```
    /// use mcp_elicit_client::{CallError, CallOptions, Connection};
    ///
    /// async fn show(connection: &Connection<()>) -> Result<(), CallError> {
    ///     let options = CallOptions::default();
    ///     let received = connection.templates_page(None, &options).await?;
    ///     println!("{}", received.raw());
    ///     Ok(())
    /// }
    /// ```
    pub async fn templates_page(
        &self,
        cursor: Option<String>,
        options: &CallOptions,
    ) -> Result<Received<ListResourceTemplatesResult>, CallError> {
        let request = ListResourceTemplatesRequest::with_param(page(cursor));
        let request = ClientRequest::ListResourceTemplatesRequest(request);
        let reply = self.list(request, options).await?;
        Received::read(ResultKind::Templates, reply, self.health())
    }

    async fn list(
        &self,
        request: ClientRequest,
        options: &CallOptions,
    ) -> Result<RequestReply, CallError> {
        let no_call = |_: &RequestId| ();
        self.exchange(request, options, no_call, std::future::pending())
            .await
    }
}

fn page(cursor: Option<String>) -> PaginatedRequestParams {
    PaginatedRequestParams::default().with_cursor(cursor)
}

#[cfg(test)]
mod tests {
    use rmcp::model::{DiscoverResult, InitializeResult};
    use serde_json::{Value, json};

    use super::*;

    /// Returns the value with each of its members and entries, in turn, left out and replaced by values of every type.
    fn variants(value: &Value) -> Vec<Value> {
        let mut all = vec![
            json!(null),
            json!(true),
            json!(-7),
            json!(1.5),
            json!("x"),
            json!([]),
            json!([null]),
            json!({}),
            json!({"type": "text"}),
        ];
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let mut without = members.clone();
                    without.remove(name);
                    all.push(Value::Object(without));
                    all.extend(variants(member).into_iter().map(|variant| {
                        let mut changed = members.clone();
                        changed.insert(name.clone(), variant);
                        Value::Object(changed)
                    }));
                }
            }
            Value::Array(entries) => {
                for (place, entry) in entries.iter().enumerate() {
                    all.extend(variants(entry).into_iter().map(|variant| {
                        let mut changed = entries.clone();
                        changed[place] = variant;
                        Value::Array(changed)
                    }));
                }
            }
            _ => {}
        }
        all
    }

    fn all_can_be_read<T: DeserializeOwned>(kind: ResultKind, legal: &Value, vital: Option<&str>) {
        let unchanged = fit(kind, &legal.to_string());
        assert_eq!(unchanged.misfits, [], "{legal}");
        let read: Result<T, _> = serde_json::from_value(unchanged.value);
        assert!(read.is_ok(), "{legal}");
        for variant in variants(legal) {
            let fitted = fit(kind, &variant.to_string()).value;
            if vital.is_some_and(|member| fitted.get(member).is_none()) {
                continue;
            }
            let read: Result<T, _> = serde_json::from_value(fitted.clone());
            assert!(read.is_ok(), "{variant}: {fitted}: {:?}", read.err());
        }
    }

    #[test]
    fn every_result_can_be_read_once_it_is_fitted() {
        let icons =
            json!([{"src": "a", "mimeType": "image/png", "sizes": ["1x1"], "theme": "dark"}]);
        let annotations = json!({"audience": ["user"], "priority": 1, "lastModified": "x"});
        let link = json!({"type": "resource_link", "uri": "a:b", "name": "b", "title": "t", "description": "d",
            "mimeType": "m", "size": 1, "icons": icons, "annotations": annotations, "_meta": {}});
        let contents = json!([{"uri": "a", "text": "t", "mimeType": "m", "_meta": {}}, {"uri": "a", "blob": ""}]);
        let text = json!({"type": "text", "text": "t", "annotations": annotations, "_meta": {}});
        let page = |name: &str, entry: Value| {
            json!({name: [entry], "nextCursor": "c", "ttlMs": 1, "cacheScope": "public",
            "resultType": "complete", "_meta": {}})
        };
        let resource = json!({"uri": "a:b", "name": "b", "title": "t", "description": "d", "mimeType": "m", "size": 1,
            "icons": icons, "annotations": annotations, "_meta": {}});
        all_can_be_read::<CallToolResult>(
            ResultKind::Tool,
            &json!({"resultType": "complete", "isError": false, "structuredContent": 1, "_meta": {}, "content": [
                text, link, {"type": "image", "data": "", "mimeType": "m", "annotations": annotations},
                {"type": "audio", "data": "", "mimeType": "m"}, {"type": "resource", "resource": contents[0]},
            ]}),
            None,
        );
        all_can_be_read::<GetPromptResult>(
            ResultKind::Prompt,
            &json!({"description": "d", "messages": [{"role": "user", "content": text}], "_meta": {}}),
            None,
        );
        all_can_be_read::<ReadResourceResult>(
            ResultKind::Resource,
            &json!({"contents": contents, "ttlMs": 5, "cacheScope": "private"}),
            None,
        );
        all_can_be_read::<ListToolsResult>(
            ResultKind::Tools,
            &page(
                "tools",
                json!({"name": "n", "title": "t", "description": "d", "inputSchema": {}, "outputSchema": {},
                "annotations": {"title": "t", "readOnlyHint": true}, "icons": icons, "_meta": {}}),
            ),
            None,
        );
        all_can_be_read::<ListPromptsResult>(
            ResultKind::Prompts,
            &page(
                "prompts",
                json!({"name": "n", "title": "t", "description": "d", "icons": icons, "arguments": [
                {"name": "a", "title": "t", "description": "d", "required": true}]}),
            ),
            None,
        );
        all_can_be_read::<ListResourcesResult>(
            ResultKind::Resources,
            &page("resources", resource.clone()),
            None,
        );
        all_can_be_read::<ListResourceTemplatesResult>(
            ResultKind::Templates,
            &page(
                "resourceTemplates",
                json!({"uriTemplate": "a:{b}", "name": "b", "title": "t", "description": "d",
                "mimeType": "m", "icons": icons, "annotations": annotations}),
            ),
            None,
        );
        let capabilities = json!({"experimental": {"x": {}}, "extensions": {"y": {}}, "logging": {}, "completions": {},
            "prompts": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true}, "tools": {"listChanged": false}});
        let info = json!({"name": "n", "title": "t", "version": "1", "description": "d", "icons": icons, "websiteUrl": "u"});
        all_can_be_read::<InitializeResult>(
            ResultKind::Initialize,
            &json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info, "instructions": "i", "_meta": {}}),
            None,
        );
        all_can_be_read::<DiscoverResult>(
            ResultKind::Discover,
            &json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "instructions": "i",
                "ttlMs": 1, "cacheScope": "public", "_meta": {"io.modelcontextprotocol/serverInfo": info}}),
            Some("supportedVersions"),
        );
    }
}
