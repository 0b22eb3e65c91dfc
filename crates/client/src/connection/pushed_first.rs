//! A transport that opens a session before it asks for the rounds era, since all tools of a server that speaks both can
//! ask in a session.
//!
//! rmcp asks with `server/discover` first. This transport keeps that request back and sends `initialize` in its place,
//! on the same connection, so a program is started once. If the server opens a session, rmcp is told that there is no
//! `server/discover`, and its own `initialize` gets the result. If the server refuses, or declares that its tools ask in
//! every era, rmcp's request goes to the server after all.

use std::collections::VecDeque;

use futures::future::Either;
use mcp_elicit_core::wire::ASKS_IN_EVERY_ERA;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, InitializeRequest, InitializeRequestParams,
    InitializeResult, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;

/// The id of the `initialize` that this transport sends: a number, since there are servers that read no other ids, and one that rmcp, which
/// counts from 0, does not reach.
const OWN_ID: RequestId = RequestId::Number(1_000_000_000);

/// Returns `true` if a server declares that its tools also ask in the rounds era.
pub(super) fn asks_in_every_era(result: &InitializeResult) -> bool {
    let experimental = result.capabilities.experimental.as_ref();
    experimental.is_some_and(|all| all.contains_key(ASKS_IN_EVERY_ERA))
}

/// The transport of [this module](self).
pub(super) struct PushedFirst<T> {
    inner: T,
    /// The params of `initialize`; `None` to pass everything on.
    initialize: Option<InitializeRequestParams>,
    step: OpeningStep,
    /// Messages for rmcp that are not the server's own.
    ready: VecDeque<ServerJsonRpcMessage>,
}

/// The state of the opening.
enum OpeningStep {
    /// Everything is passed on.
    Passing,
    /// The server is asked for a session, in place of this `server/discover` of rmcp.
    Opening {
        discover: Box<ClientJsonRpcMessage>,
        probe: RequestId,
        /// The id of rmcp's own `initialize`, which it sends after a while.
        initialize: Option<RequestId>,
    },
    /// The server opened this session, which rmcp does not know yet.
    Opened(Box<InitializeResult>),
    /// The server is asked for the rounds era under this id; it may have opened a session before.
    Discovering {
        probe: RequestId,
        session: Option<Box<InitializeResult>>,
    },
}

impl<T> PushedFirst<T> {
    /// Wraps a transport. Without `initialize`, it changes nothing.
    pub(super) fn new(inner: T, initialize: Option<InitializeRequestParams>) -> Self {
        Self {
            inner,
            initialize,
            step: OpeningStep::Passing,
            ready: VecDeque::new(),
        }
    }

    /// Returns the message to send in place of this one; `None` if nothing is to be sent.
    fn outgoing(&mut self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        let ClientJsonRpcMessage::Request(request) = &message else {
            return Some(message);
        };
        let id = request.id.clone();
        match (&request.request, &mut self.step) {
            (ClientRequest::DiscoverRequest(_), OpeningStep::Passing) => {
                let Some(params) = self.initialize.take() else {
                    return Some(message);
                };
                self.step = OpeningStep::Opening {
                    discover: Box::new(message),
                    probe: id,
                    initialize: None,
                };
                let request = InitializeRequest::new(params);
                Some(ClientJsonRpcMessage::request(
                    ClientRequest::InitializeRequest(request),
                    OWN_ID,
                ))
            }
            (ClientRequest::InitializeRequest(_), OpeningStep::Opening { initialize, .. }) => {
                *initialize = Some(id);
                None
            }
            (
                ClientRequest::InitializeRequest(_),
                OpeningStep::Opened(_)
                | OpeningStep::Discovering {
                    session: Some(_), ..
                },
            ) => {
                if let OpeningStep::Opened(result)
                | OpeningStep::Discovering {
                    session: Some(result),
                    ..
                } = std::mem::replace(&mut self.step, OpeningStep::Passing)
                {
                    self.ready.push_back(opened(*result, id));
                }
                None
            }
            _ => Some(message),
        }
    }
}

fn opened(result: InitializeResult, id: RequestId) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::response(ServerResult::InitializeResult(result), id)
}

/// Returns the refusal after which rmcp sends `initialize`.
fn no_discover(probe: RequestId) -> ServerJsonRpcMessage {
    let error = ErrorData::new(
        rmcp::model::ErrorCode::METHOD_NOT_FOUND,
        "a session is open",
        None,
    );
    ServerJsonRpcMessage::error(error, Some(probe))
}

/// Returns the id of the request that a message answers.
fn answers(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        ServerJsonRpcMessage::Response(response) => Some(&response.id),
        ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

impl<T: Transport<RoleClient>> PushedFirst<T> {
    /// Returns the message for rmcp, if there is one. Sends what follows from it.
    async fn incoming(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> Result<Option<ServerJsonRpcMessage>, T::Error> {
        let own = OWN_ID;
        let id = answers(&message).cloned();
        match std::mem::replace(&mut self.step, OpeningStep::Passing) {
            OpeningStep::Opening {
                discover,
                probe,
                initialize,
            } if id.as_ref() == Some(&own) => {
                let session = match &message {
                    ServerJsonRpcMessage::Response(response) => match &response.result {
                        ServerResult::InitializeResult(result) => Some(result.clone()),
                        _ => None,
                    },
                    _ => None,
                };
                let is_wanted = session
                    .as_ref()
                    .is_some_and(|result| !asks_in_every_era(result));
                match (session, initialize, message) {
                    // rmcp has given `server/discover` up.
                    (Some(result), Some(id), _) => Ok(Some(opened(result, id))),
                    (None, Some(id), ServerJsonRpcMessage::Error(error)) => {
                        Ok(Some(ServerJsonRpcMessage::error(error.error, Some(id))))
                    }
                    (Some(result), None, _) if is_wanted => {
                        self.step = OpeningStep::Opened(Box::new(result));
                        Ok(Some(no_discover(probe)))
                    }
                    (session, _, _) => {
                        self.step = OpeningStep::Discovering {
                            probe,
                            session: session.map(Box::new),
                        };
                        self.inner.send(*discover).await?;
                        Ok(None)
                    }
                }
            }
            OpeningStep::Discovering { probe, session } if id.as_ref() == Some(&probe) => {
                match (session, &message) {
                    (Some(session), ServerJsonRpcMessage::Error(_)) => {
                        self.step = OpeningStep::Opened(session);
                        Ok(Some(no_discover(probe)))
                    }
                    _ => Ok(Some(message)),
                }
            }
            step => {
                self.step = step;
                Ok(Some(message))
            }
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for PushedFirst<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        match self.outgoing(message) {
            Some(message) => Either::Left(self.inner.send(message)),
            None => Either::Right(std::future::ready(Ok(()))),
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let message = self.inner.receive().await?;
            match self.incoming(message).await {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(%error, "the server cannot be asked for another era");
                    return None;
                }
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
