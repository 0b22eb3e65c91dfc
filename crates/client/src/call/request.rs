//! The three requests during which a server may ask.

use mcp_elicit_core::view;
use mcp_elicit_core::wire::CallKind;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetPromptRequest,
    GetPromptRequestParams, InputResponses, ReadResourceRequest, ReadResourceRequestParams,
};
use serde_json::Value;

/// A request that may be sent again with answers (2026-07-28, MRTR, supported requests).
pub(super) enum CallRequest {
    Tool(CallToolRequestParams),
    Prompt(GetPromptRequestParams),
    Resource(ReadResourceRequestParams),
}

impl CallRequest {
    pub(super) fn to_request(&self) -> ClientRequest {
        match self {
            Self::Tool(params) => {
                ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()))
            }
            Self::Prompt(params) => {
                ClientRequest::GetPromptRequest(GetPromptRequest::new(params.clone()))
            }
            Self::Resource(params) => {
                ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params.clone()))
            }
        }
    }

    /// Returns the call as the person sees it.
    pub(super) fn call(&self) -> view::CallView {
        match self {
            Self::Tool(params) => with(
                view::CallView::tool(params.name.as_ref()),
                params.arguments.as_ref(),
            ),
            Self::Prompt(params) => with(
                view::CallView::new(CallKind::Prompt, params.name.as_str()),
                params.arguments.as_ref(),
            ),
            Self::Resource(params) => view::CallView::new(CallKind::Resource, params.uri.as_str()),
        }
    }

    /// Prepares the next attempt, with these responses and this state, and nothing of earlier attempts.
    pub(super) fn go_on(&mut self, responses: Option<InputResponses>, state: Option<String>) {
        let (old_responses, old_state) = match self {
            Self::Tool(params) => (&mut params.input_responses, &mut params.request_state),
            Self::Prompt(params) => (&mut params.input_responses, &mut params.request_state),
            Self::Resource(params) => (&mut params.input_responses, &mut params.request_state),
        };
        *old_responses = responses;
        *old_state = state;
    }

    /// Makes the next attempt equal to the first.
    pub(super) fn again(&mut self) {
        self.go_on(None, None);
    }
}

fn with(call: view::CallView, arguments: Option<&impl serde::Serialize>) -> view::CallView {
    match arguments.map(serde_json::to_value) {
        Some(Ok(arguments @ Value::Object(_))) => call.with(arguments),
        _ => call,
    }
}
