//! The rounds era (2026-07-28, multi round-trip requests): answers to an `input_required`, with a limit on rounds and a
//! check for servers that ignore answers.

use std::time::Duration;

use futures::future::try_join_all;
use rmcp::model::{
    ClientResult, InputRequest, InputRequiredResult, InputResponses, RequestId, RequestMetaObject,
    ServerRequest,
};
use rmcp::service::{RequestContext, Service};
use rmcp::{ClientHandler, ErrorData};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{CallContext, CallError};
use crate::connection::Connection;
use crate::dispatch::CALL_OVER;
use crate::eliciting::result_of;
use crate::raw_params;

/// The longest wait before the next attempt when the server asks nothing.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The rounds of one call so far.
pub(super) struct RoundsSoFar {
    limit: usize,
    done: usize,
    without_questions: u32,
    last: Option<String>,
}

impl RoundsSoFar {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            done: 0,
            without_questions: 0,
            last: None,
        }
    }

    /// Answers one `input_required`, and returns the contents of the next attempt.
    pub(super) async fn answer<H: ClientHandler>(
        &mut self,
        connection: &Connection<H>,
        required: InputRequiredResult,
        context: &CallContext<'_>,
    ) -> Result<(Option<InputResponses>, Option<String>), CallError> {
        self.count(&required)?;
        let requests = required.input_requests.unwrap_or_default();
        if requests.is_empty() {
            self.pause().await;
            return Ok((None, required.request_state));
        }
        self.without_questions = 0;
        let responses = answer_all(connection, requests, context).await?;
        Ok((Some(responses), required.request_state))
    }

    /// Counts a round. A server that asks the same with the same state has ignored the answers, and will do so again.
    fn count(&mut self, required: &InputRequiredResult) -> Result<(), CallError> {
        if self.done == self.limit {
            return Err(CallError::TooManyRounds { limit: self.limit });
        }
        self.done += 1;
        let asks = required
            .input_requests
            .as_ref()
            .is_some_and(|requests| !requests.is_empty());
        let this = serde_json::to_string(required).map_err(|_| CallError::UnexpectedResponse)?;
        if asks && self.last.as_ref() == Some(&this) {
            return Err(CallError::SameAgain);
        }
        self.last = Some(this);
        Ok(())
    }

    async fn pause(&mut self) {
        let pause = Duration::from_millis(50).saturating_mul(1 << self.without_questions.min(6));
        self.without_questions += 1;
        tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
    }
}

/// Answers every request of a round, queued for the person in the server's order. The first one without an answer ends
/// the call and withdraws the others.
pub(super) async fn answer_all<H: ClientHandler>(
    connection: &Connection<H>,
    requests: rmcp::model::InputRequests,
    context: &CallContext<'_>,
) -> Result<InputResponses, CallError> {
    let mut in_order: Vec<_> = requests
        .into_iter()
        .map(|(key, request)| {
            let kept = match &request {
                InputRequest::Elicitation(request) => request
                    .extensions
                    .get::<RequestMetaObject>()
                    .and_then(|meta| raw_params::extract(meta)),
                _ => None,
            };
            (
                kept.as_ref().map_or(0, |kept| kept.position),
                key,
                request,
                kept,
            )
        })
        .collect();
    in_order.sort_by_key(|(position, ..)| *position);
    let answers = in_order
        .into_iter()
        .map(|(_, key, request, kept)| async move {
            let answer = answer_one(connection, &key, request, kept, context).await?;
            Ok::<_, CallError>((key, answer))
        });
    let all = try_join_all(answers);
    tokio::select! {
        answers = all => Ok(answers?.into_iter().collect()),
        () = context.options.stop.cancelled() => Err(CallError::Stopped),
        () = connection.health().ended().cancelled() => {
            Err(CallError::Broken(connection.transport_error().unwrap_or(crate::connection::TransportError::Closed)))
        }
    }
}

async fn answer_one<H: ClientHandler>(
    connection: &Connection<H>,
    key: &str,
    request: InputRequest,
    kept: Option<raw_params::RawParams>,
    context: &CallContext<'_>,
) -> Result<Value, CallError> {
    let eliciting = connection.eliciting();
    match request {
        InputRequest::Elicitation(request) => {
            let params: Box<RawValue> = match kept {
                Some(kept) => RawValue::from_string(kept.params),
                None => to_raw_value(&request.params),
            }
            .map_err(|_| CallError::UnexpectedResponse)?;
            let ends = vec![(context.over.clone(), CALL_OVER)];
            let answer = eliciting
                .ask(&params, Some(context.call.clone()), ends)
                .await?;
            serde_json::to_value(result_of(answer)).map_err(|_| CallError::UnexpectedResponse)
        }
        InputRequest::CreateMessage(request) => {
            pass_on(
                connection,
                key,
                ServerRequest::CreateMessageRequest(request),
            )
            .await
        }
        InputRequest::ListRoots(request) => {
            pass_on(connection, key, ServerRequest::ListRootsRequest(request)).await
        }
        _ => Err(CallError::UnexpectedResponse),
    }
}

/// Passes sampling and roots to the wrapped handler.
async fn pass_on<H: ClientHandler>(
    connection: &Connection<H>,
    key: &str,
    request: ServerRequest,
) -> Result<Value, CallError> {
    let context = RequestContext::new(RequestId::String(key.into()), connection.peer().clone());
    let result: Result<ClientResult, ErrorData> =
        Service::handle_request(connection.eliciting().inner(), request, context).await;
    let result = result.map_err(CallError::Server)?;
    serde_json::to_value(result).map_err(|_| CallError::UnexpectedResponse)
}
