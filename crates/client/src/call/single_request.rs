//! One request and its response, watched.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::{ClientRequest, GetExtensions as _, RequestId, ServerResult};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use rmcp::{RoleClient, model::CancelledNotificationParam};
use tokio::sync::watch;

use super::{CallContext, CallError, CallOptions, RequestReply};
use crate::connection::{Connection, ResultSlot, TransportError};
use crate::connection_state::ConnectionState;

impl<H: ClientHandler> Connection<H> {
    /// Sends the request and waits for its response. Every early end notifies the server.
    pub(super) async fn once(
        &self,
        request: ClientRequest,
        context: &CallContext<'_>,
    ) -> Result<ServerResult, CallError> {
        let reply = self.once_as_received(request, context).await?;
        Ok(reply.result)
    }

    /// Like [`Connection::once`]; the text of the result is kept.
    pub(super) async fn once_as_received(
        &self,
        request: ClientRequest,
        context: &CallContext<'_>,
    ) -> Result<RequestReply, CallError> {
        let begin = |id: &RequestId| {
            self.eliciting().line().begin(
                id,
                context.call.clone(),
                Arc::clone(&context.interruption),
            )
        };
        let interrupted = context.interruption.came();
        self.exchange(request, context.options, begin, interrupted)
            .await
    }

    /// Sends a request and waits for its response, whose text is kept. `begin` gets the request's id once it is sent, and
    /// its value lives until the end.
    pub(super) async fn exchange<A>(
        &self,
        mut request: ClientRequest,
        options: &CallOptions,
        begin: impl FnOnce(&RequestId) -> A,
        interrupted: impl Future<Output = ()>,
    ) -> Result<RequestReply, CallError> {
        let slot = ResultSlot::default();
        request.extensions_mut().insert(slot.clone());
        let handle = self
            .peer()
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await
            .map_err(|error| CallError::from_rmcp(error, self.health()))?;
        let _active = begin(&handle.id);
        let sent = SentRequest::new(handle);
        let result = watched(self, sent, options, interrupted).await?;
        let raw = slot.take();
        Ok(RequestReply { result, raw })
    }
}

/// Waits for the response to a request. Every early end notifies the server.
pub(super) async fn watched<H: ClientHandler>(
    connection: &Connection<H>,
    mut sent: SentRequest,
    options: &CallOptions,
    interrupted: impl Future<Output = ()>,
) -> Result<ServerResult, CallError> {
    let health = connection.health();
    let line = connection.eliciting().line();
    let why = tokio::select! {
        biased;
        response = sent.response() => {
            sent.handle = None;
            let response = response.unwrap_or(Err(rmcp::ServiceError::TransportClosed));
            return response.map_err(|error| CallError::from_rmcp(error, health));
        }
        () = health.ended().cancelled() => {
            CallError::Broken(connection.transport_error().unwrap_or(TransportError::Closed))
        }
        () = interrupted => CallError::Stopped,
        () = options.stop.cancelled() => CallError::Stopped,
        after = silence(line, options.silence) => CallError::Silent { after },
    };
    if let (Some(handle), false) = (sent.handle.take(), matches!(why, CallError::Broken(_))) {
        let told = handle.cancel(Some(why.to_string()));
        let _best_effort = tokio::time::timeout(Duration::from_secs(1), told).await;
    }
    Err(why)
}

/// A request that waits for its response. If it is dropped before, it cancels the request at the server.
pub(super) struct SentRequest {
    handle: Option<RequestHandle<RoleClient>>,
}

impl SentRequest {
    pub(super) fn new(handle: RequestHandle<RoleClient>) -> Self {
        Self {
            handle: Some(handle),
        }
    }

    async fn response(&mut self) -> Option<Result<ServerResult, rmcp::ServiceError>> {
        let handle = self.handle.as_mut()?;
        (&mut handle.rx).await.ok()
    }
}

impl Drop for SentRequest {
    fn drop(&mut self) {
        let (Some(handle), Ok(runtime)) =
            (self.handle.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let reason = Some("the caller no longer waits".to_owned());
        runtime.spawn(async move {
            let params = CancelledNotificationParam::new(Some(handle.id.clone()), reason);
            let _best_effort = handle.peer.notify_cancelled(params).await;
        });
    }
}

/// Completes when the server has been silent for `most`. While a question is open, the silence is the person's.
async fn silence(line: &ConnectionState, most: Option<Duration>) -> Duration {
    let Some(most) = most else {
        return std::future::pending().await;
    };
    let mut signs: watch::Receiver<u64> = line.signs_of_life();
    loop {
        match tokio::time::timeout(most, signs.changed()).await {
            Err(_) if !line.has_open_questions() => return most,
            Ok(Err(_)) => return std::future::pending().await,
            Err(_) | Ok(Ok(())) => {}
        }
    }
}
