//! One request and its response, watched.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::{ClientRequest, ServerResult};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use rmcp::{RoleClient, model::CancelledNotificationParam};
use tokio::sync::watch;

use super::{CallContext, CallError};
use crate::connection::{Connection, TransportError};
use crate::connection_state::ConnectionState;

impl<H: ClientHandler> Connection<H> {
    /// Sends the request and waits for its response. Every early end notifies the server.
    pub(super) async fn once(
        &self,
        request: ClientRequest,
        context: &CallContext<'_>,
    ) -> Result<ServerResult, CallError> {
        let line = self.eliciting().line();
        let handle = self
            .peer()
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await
            .map_err(|error| CallError::from_rmcp(error, self.health()))?;
        let _active = line.begin(
            &handle.id,
            context.call.clone(),
            Arc::clone(&context.interruption),
        );
        let mut sent = Sent {
            handle: Some(handle),
        };
        let ended = self.health().ended();
        let why = tokio::select! {
            biased;
            response = sent.response() => {
                sent.handle = None;
                let response = response.unwrap_or(Err(rmcp::ServiceError::TransportClosed));
                return response.map_err(|error| CallError::from_rmcp(error, self.health()));
            }
            () = ended.cancelled() => CallError::Broken(self.transport_error().unwrap_or(TransportError::Closed)),
            () = context.interruption.came() => CallError::Stopped,
            () = context.options.stop.cancelled() => CallError::Stopped,
            after = silence(line, context.options.silence) => CallError::Silent { after },
        };
        if let (Some(handle), false) = (sent.handle.take(), matches!(why, CallError::Broken(_))) {
            let told = handle.cancel(Some(why.to_string()));
            let _best_effort = tokio::time::timeout(Duration::from_secs(1), told).await;
        }
        Err(why)
    }
}

/// A request that waits for its response. If it is dropped before, it cancels the request at the server.
struct Sent {
    handle: Option<RequestHandle<RoleClient>>,
}

impl Sent {
    async fn response(&mut self) -> Option<Result<ServerResult, rmcp::ServiceError>> {
        let handle = self.handle.as_mut()?;
        (&mut handle.rx).await.ok()
    }
}

impl Drop for Sent {
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
