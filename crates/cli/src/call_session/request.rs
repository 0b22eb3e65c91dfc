//! The request to the server: a tool's call, a prompt, a resource, or a list of its contents.

use mcp_elicit_client::{CallError, CallOptions, Connection, Received};
use mcp_elicit_relay::{HANDED_BACK, NOT_CALLED};
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolResult, GetPromptRequestParams, GetPromptResult, JsonObject, ReadResourceRequestParams,
    ReadResourceResult,
};

use super::listing::{self, Listing};

/// The request to the server.
#[derive(Debug)]
pub(crate) enum ServerRequest {
    /// A list of its tools, prompts and resources.
    List,
    /// A call of a tool.
    Tool {
        /// The tool's name.
        name: String,
        /// Its arguments.
        arguments: JsonObject,
        /// `true` if the call is to be a task, in revisions that leave that to the caller.
        as_task: bool,
    },
    /// A prompt.
    Prompt {
        /// The prompt's name.
        name: String,
        /// Its arguments, which are strings.
        arguments: JsonObject,
    },
    /// The contents of a resource.
    Resource {
        /// Its URI.
        uri: String,
    },
}

/// The result.
pub(super) enum Got {
    List(Box<Listing>),
    Tool(Received<CallToolResult>),
    Prompt(Received<GetPromptResult>),
    Resource(Received<ReadResourceResult>),
}

impl Got {
    /// Returns `true` if the tool says that it failed.
    pub(super) fn is_error(&self) -> bool {
        matches!(self, Self::Tool(received) if received.result().is_error == Some(true))
    }

    /// Returns the reason why a list was not read to its end, if it was not.
    pub(super) fn unfinished(&self) -> Option<String> {
        match self {
            Self::List(listing) => listing.unfinished(),
            Self::Tool(_) | Self::Prompt(_) | Self::Resource(_) => None,
        }
    }

    /// Returns the reason why a gateway did not call the server; `None` if the result is the server's.
    pub(super) fn not_called(&self) -> Option<&str> {
        match self {
            Self::Tool(received) => not_called(received.result()),
            Self::List(_) | Self::Prompt(_) | Self::Resource(_) => None,
        }
    }

    /// Returns `true` if a gateway handed the call back, to be made again.
    pub(super) fn is_handed_back(&self) -> bool {
        match self {
            Self::Tool(received) => is_handed_back(received.result()),
            Self::Prompt(received) => {
                is_marked(received.result().meta.as_ref().map(|meta| &meta.0))
            }
            Self::List(_) | Self::Resource(_) => false,
        }
    }
}

impl ServerRequest {
    /// Sends the request and returns the result. Questions are answered in the meantime.
    pub(super) async fn get<H: ClientHandler>(
        &self,
        connection: &Connection<H>,
        options: CallOptions,
    ) -> Result<Got, CallError> {
        match self {
            Self::List => listing::read(connection, &options)
                .await
                .map(|listing| Got::List(Box::new(listing))),
            Self::Tool {
                name,
                arguments,
                as_task,
            } => {
                let options = options.as_task(*as_task);
                let called = connection.tool_as_received(name.clone(), arguments.clone(), &options);
                called.await.map(Got::Tool)
            }
            Self::Prompt { name, arguments } => {
                let mut params = GetPromptRequestParams::new(name.clone());
                if !arguments.is_empty() {
                    params = params.with_arguments(arguments.clone());
                }
                let got = connection.prompt_as_received(params, &options);
                got.await.map(Got::Prompt)
            }
            Self::Resource { uri } => {
                let params = ReadResourceRequestParams::new(uri.clone());
                let read = connection.resource_as_received(params, &options);
                read.await.map(Got::Resource)
            }
        }
    }
}

/// Returns the reason why a gateway did not call the server of this tool; `None` if the result is the server's.
pub(crate) fn not_called(result: &CallToolResult) -> Option<&str> {
    let meta = result.meta.as_ref()?;
    meta.0.get(NOT_CALLED)?.as_str()
}

/// Returns `true` for the result of a tool's call that a gateway handed back, to be made again.
pub(crate) fn is_handed_back(result: &CallToolResult) -> bool {
    is_marked(result.meta.as_ref().map(|meta| &meta.0))
}

fn is_marked(meta: Option<&JsonObject>) -> bool {
    meta.is_some_and(|meta| meta.get(HANDED_BACK) == Some(&true.into()))
}
