//! The HTTP response to a client's message: nothing, one JSON body, or a stream of events.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use mcp_elicit_core::wire::frame::Shape;
use mcp_elicit_core::wire::{Revision, method};
use mcp_elicit_relay::{Event, NEEDS_ID, StreamId};

use super::client_session::ClientSession;
use super::header_checks::{
    cannot_start, carried, no_session, refusal, status_in_session, status_of,
};
use super::request::ClientMessage;
use crate::callers::ProvenCaller;
use crate::frame::FrameBytes;
use crate::headers::{SESSION, VERSION};
use crate::listener::event_queue::EventReceiver;
use crate::listener::response_streams::{HandedOver, StreamEvent};
use crate::server_challenge::ServerChallenge;

/// The time after which a slow answer gets a stream: a client without a response may give up, and one with a session
/// that loses its connection needs an event to resume from.
const SOON: Duration = Duration::from_millis(500);
/// The same for a request of the rounds era, where errors have HTTP statuses, which a stream cannot express.
const LATER: Duration = Duration::from_secs(10);

/// Handles a message of this caller, and returns the response.
pub(super) async fn take(
    held: &Arc<ClientSession>,
    caller: &ProvenCaller,
    message: &ClientMessage,
    headers: &HeaderMap,
    session: Option<String>,
    in_rounds: bool,
) -> Response {
    if !held.pool.has_room() {
        let why = "the server does not accept messages";
        return refusal(StatusCode::SERVICE_UNAVAILABLE, -32000, why);
    }
    let frame = FrameBytes::Seen(&message.frame, &message.index);
    let number = held.stream_ids.fetch_add(1, Ordering::Relaxed) + 1;
    let Some(stream_id) = held.caller.stream_of(number, caller) else {
        return no_session();
    };
    let carried = carried(headers, &held.credentials);
    if message.shape == Shape::Notification && !message.is_notice() {
        return refusal(StatusCode::BAD_REQUEST, -32600, NEEDS_ID);
    }
    if message.shape != Shape::Request {
        // Requests without a session are cancelled by closing their streams: a notification could name another client's
        // request (2026-07-28, transports).
        if !(in_rounds && message.has_method(method::CANCELLED)) {
            let taken = held
                .pool
                .handle_client_with_headers(stream_id, frame, carried);
            held.pool.request_ended(stream_id);
            if let Err(fault) = taken {
                return cannot_start(&fault);
            }
        }
        return StatusCode::ACCEPTED.into_response();
    }
    let told = held.client.open(stream_id);
    let handover = message.hand_over();
    let taken = held
        .pool
        .handle_client_with_headers(stream_id, frame, carried);
    drop(handover);
    if let Err(fault) = taken {
        held.client.close(stream_id);
        return cannot_start(&fault);
    }
    let left = DisconnectGuard {
        held: held.clone(),
        stream_id,
        in_rounds,
        handed_over: None,
        primes: headers
            .get(VERSION)
            .is_some_and(|version| version == Revision::V2025_11_25.as_str()),
    };
    let mut response = answer(told, left, in_rounds).await;
    let session = session.filter(|_| !ServerChallenge::is(response.status()));
    if let Some(name) = session.and_then(|name| HeaderValue::from_str(&name).ok()) {
        response.headers_mut().insert(SESSION, name);
    }
    response
}

/// Responds with one JSON body if it is the whole answer, else with a stream.
async fn answer(mut told: EventReceiver, left: DisconnectGuard, in_rounds: bool) -> Response {
    let first = match tokio::time::timeout(if in_rounds { LATER } else { SOON }, told.recv()).await
    {
        Ok(Some(first)) => first,
        Ok(None) => {
            return refusal(
                StatusCode::INTERNAL_SERVER_ERROR,
                -32603,
                "the session ended",
            );
        }
        Err(_) => return stream(StreamOpening::Primer, told, left),
    };
    if first.last {
        left.close();
        let passed = left.held.credentials.are_passed();
        let challenge = first.challenge.clone();
        if let Some(challenge) = challenge.and_then(|challenge| challenge.for_client(passed)) {
            return challenged(&challenge, first.into_frame());
        }
        let status = if in_rounds {
            status_of(&first.frame)
        } else {
            status_in_session(&first.frame)
        };
        let json = [(CONTENT_TYPE, "application/json")];
        return (status, json, first.into_frame()).into_response();
    }
    stream(StreamOpening::StreamEvent(first), told, left)
}

/// Returns the server's challenge, unchanged.
fn challenged(challenge: &ServerChallenge, frame: Bytes) -> Response {
    let mut response = (
        challenge.status,
        [(CONTENT_TYPE, "application/json")],
        frame,
    )
        .into_response();
    for words in &challenge.authenticate {
        response
            .headers_mut()
            .append(WWW_AUTHENTICATE, words.clone());
    }
    response
}

/// The beginning of a stream.
pub(super) enum StreamOpening {
    /// Nothing yet: a stream without a request.
    Nothing,
    /// An event that announces the stream, since its answer is slow.
    Primer,
    /// The first message.
    StreamEvent(StreamEvent),
}

pub(super) fn stream(
    opening: StreamOpening,
    told: EventReceiver,
    left: DisconnectGuard,
) -> Response {
    let with_ids = !left.in_rounds;
    let rest = futures::stream::unfold(
        (opening, told, left),
        move |(opening, mut told, mut left)| async move {
            let next = match opening {
                StreamOpening::StreamEvent(first) => first,
                StreamOpening::Primer => {
                    let primer = Bytes::from(left.primer());
                    return Some((Ok(primer), (StreamOpening::Nothing, told, left)));
                }
                StreamOpening::Nothing => told.recv().await?,
            };
            if next.last {
                left.hand_over();
            }
            Some((
                Ok::<_, std::convert::Infallible>(next.written(with_ids)),
                (StreamOpening::Nothing, told, left),
            ))
        },
    );
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, Body::from_stream(rest)).into_response()
}

/// A guard that detects a client's disconnect before its answer.
pub(super) struct DisconnectGuard {
    held: Arc<ClientSession>,
    stream_id: StreamId,
    in_rounds: bool,
    /// The answer, once it is on its way in a stream that can be resumed.
    handed_over: Option<HandedOver>,
    /// `true` if the client supports events without data.
    primes: bool,
}

impl DisconnectGuard {
    /// Creates a guard for a stream without a request.
    pub(super) fn watching(held: Arc<ClientSession>, stream_id: StreamId) -> Self {
        Self {
            held,
            stream_id,
            in_rounds: false,
            handed_over: None,
            primes: false,
        }
    }

    fn close(&self) {
        self.held.client.close(self.stream_id);
    }

    /// Ends the stream with its answer, which is written now.
    fn hand_over(&mut self) {
        self.handed_over = self.held.client.hand_over(self.stream_id);
    }

    /// Returns an event to resume from (2025-11-25, transports: its data are empty), or a comment for clients that do
    /// not support it.
    fn primer(&self) -> String {
        if self.primes {
            format!("id: {}-0\nretry: 1000\ndata: \n\n", self.stream_id.0)
        } else {
            ": working on it\n\n".to_owned()
        }
    }
}

impl Drop for DisconnectGuard {
    fn drop(&mut self) {
        self.held.pool.request_ended(self.stream_id);
        // In the pushed era the stream can be resumed; in the rounds era disconnecting cancels the request.
        if self.in_rounds && self.held.client.close(self.stream_id) {
            self.held
                .pool
                .tell_all(|| Event::StreamClosed(self.stream_id));
        }
    }
}
