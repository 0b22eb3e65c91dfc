//! The pushed backend (2025-06-18 and 2025-11-25): it sends `elicitation/create` and waits for the response.
//!
//! The request is sent on the stream of the call that it belongs to, even from a spawned task. While a person thinks,
//! progress on the caller's token keeps the caller's own timer from running out. An ask that ends without a response
//! (deadline passed, call cancelled, future dropped) withdraws its question with `notifications/cancelled`.

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::wire::{self, Capability, ElicitRequest, Mode, Revision, method};
use rmcp::ErrorData;
use rmcp::model::{
    ClientResult, CustomRequest, ElicitResult, ElicitationAction, ErrorCode, RequestId,
    ServerRequest,
};
use rmcp::service::{
    OriginatingRequestId, Peer, PeerRequestOptions, RequestContext, RequestHandle, RoleServer,
    ServiceError,
};
use serde_json::Value;
use tokio::time::Instant;

use super::call_wait::CallWait;
use super::question_params::read_reply;
use super::{AdmitFn, AskResult};
use crate::error::{CannotAsk, CannotAskReason, ElicitError};
use crate::journal::ReceivedAnswer;
use crate::question::{OutgoingBody, OutgoingQuestion};
use crate::seal;

/// The connection of one pushed-era call.
#[derive(Debug)]
pub(crate) struct Pushed {
    revision: Revision,
    capability: Capability,
    peer: Peer<RoleServer>,
    call: RequestId,
    call_wait: Arc<CallWait>,
}

/// The reason why a request to the client has no result.
pub(crate) enum RequestError {
    /// The client returned an error.
    Reported(ErrorData),
    /// No response came.
    Unanswered(ElicitError),
}

impl From<ElicitError> for RequestError {
    fn from(error: ElicitError) -> Self {
        Self::Unanswered(error)
    }
}

impl From<RequestError> for ErrorData {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Reported(error) => error,
            RequestError::Unanswered(error) => error.into(),
        }
    }
}

impl Pushed {
    pub(crate) fn new(
        revision: Revision,
        capability: Capability,
        context: &RequestContext<RoleServer>,
        call_wait: Arc<CallWait>,
    ) -> Self {
        Self {
            revision,
            capability,
            peer: context.peer.clone(),
            call: context.id.clone(),
            call_wait,
        }
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn capability(&self) -> Capability {
        self.capability
    }

    /// Returns the wait for steps, and for a person's actions outside of MCP.
    pub(crate) fn call_wait(&self) -> &CallWait {
        &self.call_wait
    }

    pub(crate) async fn put(
        &self,
        question: &OutgoingQuestion,
        admit: AdmitFn<'_>,
    ) -> Result<AskResult, ElicitError> {
        if self.call_wait.has_returned() {
            return Err(ElicitError::HandlerReturned);
        }
        if self.call_wait.is_cancelled() {
            return Err(ElicitError::CallCancelled);
        }
        let params = params(question, self.revision)?;
        admit()?;
        let since = Instant::now();
        let result = self.send(method::CREATE, params, question.timeout).await;
        let reply = match result {
            Ok(result) => read_result(result, question.mode()),
            Err(RequestError::Reported(error)) => {
                return Err(self.refused(question.mode(), &error));
            }
            Err(RequestError::Unanswered(error)) => return Err(error),
        };
        Ok(AskResult::fresh(reply, since.elapsed()))
    }

    /// Sends a request to the client on the stream of this call and waits for its result.
    ///
    /// # Errors
    /// If the client returns an error, or no response comes.
    pub(crate) async fn send(
        &self,
        method: &str,
        params: Value,
        timeout: Duration,
    ) -> Result<ClientResult, RequestError> {
        let mut request = CustomRequest::new(method, Some(params));
        request
            .extensions
            .insert(OriginatingRequestId(self.call.clone()));
        let sent = self.peer.send_cancellable_request(
            ServerRequest::CustomRequest(request),
            PeerRequestOptions::no_options(),
        );
        // Boxed, and freed again while a person thinks.
        let handle = Box::pin(sent).await;
        let handle = handle.map_err(|_| ElicitError::Disconnected)?;
        let mut open = WithdrawOnDrop {
            request: Some(handle),
            why: "the question was withdrawn",
        };
        let reply = async {
            match open.request.as_mut() {
                Some(handle) => (&mut handle.rx).await.ok(),
                None => None,
            }
        };
        let reply = self.call_wait.wait(reply, timeout).await;
        if matches!(reply, Err(ElicitError::TimedOut { .. })) {
            open.why = "the question timed out";
        }
        let reply = reply?;
        open.request = None;
        match reply {
            Some(Ok(result)) => Ok(result),
            Some(Err(ServiceError::McpError(error))) => Err(RequestError::Reported(error)),
            Some(Err(_)) | None => Err(ElicitError::Disconnected.into()),
        }
    }

    /// Sends `notifications/elicitation/complete`, which only 2025-11-25 has, to the client that was asked.
    #[cfg(feature = "connect")]
    pub(crate) async fn tell_complete(&self, id: &str) {
        if self.revision != Revision::V2025_11_25 {
            return;
        }
        let params = serde_json::json!({ "elicitationId": id });
        let complete = rmcp::model::CustomNotification::new(method::COMPLETE, Some(params));
        let told = self
            .peer
            .send_notification(rmcp::model::ServerNotification::CustomNotification(
                complete,
            ))
            .await;
        if let Err(error) = told {
            tracing::debug!(%error, "the client cannot be told that its question is done");
        }
    }

    /// Converts an error of the client into the error of the ask.
    fn refused(&self, mode: Mode, error: &ErrorData) -> ElicitError {
        if error.code == ErrorCode::METHOD_NOT_FOUND {
            // The client declared the capability and does not implement it.
            return CannotAsk {
                mode,
                revision: self.revision,
                declared: Capability::NONE,
                why: CannotAskReason::Undeclared,
            }
            .into();
        }
        ElicitError::Peer(format!(
            "it answered with error {}: {}",
            error.code.0, error.message
        ))
    }
}

/// Returns the `elicitationId` of 2025-11-25: the author's, or an unguessable one.
pub(crate) fn elicitation_id(given: Option<&str>) -> Result<String, ElicitError> {
    match given {
        Some(id) => Ok(id.to_owned()),
        None => seal::unguessable().map_err(|error| ElicitError::Author(error.to_string())),
    }
}

/// Returns the exact parameters of the revision; rmcp's typed request would send `mode` to 2025-06-18 too.
fn params(question: &OutgoingQuestion, revision: Revision) -> Result<Value, ElicitError> {
    let message = question.message.clone();
    match &question.subject {
        OutgoingBody::Form(form) => {
            let schema = form.schema(revision)?;
            Ok(ElicitRequest::form_params(message, schema, revision))
        }
        OutgoingBody::Url { url, id } => ElicitRequest::Url {
            message,
            url: url.clone(),
            elicitation_id: Some(elicitation_id(id.as_deref())?),
        }
        .to_params(revision)
        .map_err(|unaskable| ElicitError::Author(unaskable.to_string())),
    }
}

/// Reads the result as an `ElicitResult`, whatever type rmcp took it for: rmcp tells results apart by shape.
fn read_result(result: ClientResult, mode: Mode) -> ReceivedAnswer {
    match result {
        // Nearly every answer; reading it here saves a round trip through text.
        ClientResult::ElicitResult(ElicitResult {
            action: ElicitationAction::Accept,
            content: Some(content @ Value::Object(_)),
            ..
        }) if mode == Mode::Form => {
            ReceivedAnswer::Result((&wire::ElicitResult::accept(&content)).into())
        }
        ClientResult::CustomResult(custom) => read_reply(&custom.0, mode),
        other => match serde_json::to_value(other) {
            Ok(value) => read_reply(&value, mode),
            Err(error) => ReceivedAnswer::Broken(error.to_string()),
        },
    }
}

/// A guard that withdraws the question when the ask ends without a response.
struct WithdrawOnDrop {
    request: Option<RequestHandle<RoleServer>>,
    why: &'static str,
}

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        let why = self.why;
        let Some(handle) = self.request.take() else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = handle.cancel(Some(why.into())).await {
                    tracing::debug!(%error, "a question could not be withdrawn");
                }
            });
        }
    }
}
