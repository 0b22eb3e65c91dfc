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
use tokio::sync::mpsc;

use super::ClientSession;
use super::header_checks::{cannot_start, carried, refusal, status_in_session, status_of};
use super::request::Message;
use crate::frame::FrameBytes;
use crate::headers::{SESSION, VERSION};
use crate::listener::response_streams::StreamEvent;
use crate::server_challenge::ServerChallenge;

/// The time that an answer may take before its request gets a stream: a client that hears nothing may give up, and one with
/// a session that loses its connection needs an event to go on from.
const SOON: Duration = Duration::from_millis(500);
/// The same for a request of the rounds era, where errors have HTTP statuses, which a stream has no room for.
const LATER: Duration = Duration::from_secs(10);

/// Takes a message in, and gives what comes of it.
pub(super) async fn take(
    held: &Arc<ClientSession>,
    message: &Message,
    headers: &HeaderMap,
    session: Option<String>,
    in_rounds: bool,
) -> Response {
    if !held.pool.has_room() {
        let why = "the server does not accept messages";
        return refusal(StatusCode::SERVICE_UNAVAILABLE, -32000, why);
    }
    let frame = FrameBytes::Seen(&message.frame, &message.index);
    let stream_id = StreamId(held.stream_ids.fetch_add(1, Ordering::Relaxed) + 1);
    let carried = carried(headers, &held.credentials);
    if message.shape == Shape::Notification && !message.is_notice() {
        return refusal(StatusCode::BAD_REQUEST, -32600, NEEDS_ID);
    }
    if message.shape != Shape::Request {
        // Requests that come without a session are given up by closing their streams: a notification could name another
        // client's (2026-07-28, transports).
        if !(in_rounds && message.has_method(method::CANCELLED)) {
            let taken = held
                .pool
                .handle_client_with_headers(stream_id, frame, carried);
            held.pool.is_over_at(stream_id);
            if let Err(fault) = taken {
                return cannot_start(&fault);
            }
        }
        return StatusCode::ACCEPTED.into_response();
    }
    let told = held.client.open(stream_id);
    if let Err(fault) = held
        .pool
        .handle_client_with_headers(stream_id, frame, carried)
    {
        held.client.close(stream_id);
        return cannot_start(&fault);
    }
    let left = DisconnectGuard {
        held: held.clone(),
        stream_id,
        in_rounds,
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

/// One JSON body when the answer is all there is, else a stream.
async fn answer(
    mut told: mpsc::UnboundedReceiver<StreamEvent>,
    left: DisconnectGuard,
    in_rounds: bool,
) -> Response {
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
        Err(_) => return stream(Opening::Primer, told, left),
    };
    if first.last {
        left.done();
        let passed = left.held.credentials.are_passed();
        let challenge = first.challenge;
        if let Some(challenge) = challenge.and_then(|challenge| challenge.for_client(passed)) {
            return challenged(&challenge, first.frame);
        }
        let status = if in_rounds {
            status_of(&first.frame)
        } else {
            status_in_session(&first.frame)
        };
        return (status, [(CONTENT_TYPE, "application/json")], first.frame).into_response();
    }
    stream(Opening::StreamEvent(first), told, left)
}

/// The server wants credentials: the client hears it as the server said it.
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
pub(super) enum Opening {
    /// With nothing: it is there for what may come.
    Nothing,
    /// With something that says that it is there, since its answer takes a while.
    Primer,
    /// With what came first.
    StreamEvent(StreamEvent),
}

pub(super) fn stream(
    opening: Opening,
    told: mpsc::UnboundedReceiver<StreamEvent>,
    left: DisconnectGuard,
) -> Response {
    let with_ids = !left.in_rounds;
    let rest = futures::stream::unfold(
        (opening, told, left),
        move |(opening, mut told, left)| async move {
            let next = match opening {
                Opening::StreamEvent(first) => first,
                Opening::Primer => {
                    let primer = Bytes::from(left.primer());
                    return Some((Ok(primer), (Opening::Nothing, told, left)));
                }
                Opening::Nothing => told.recv().await?,
            };
            let event = next.written(with_ids);
            if next.last {
                left.done();
            }
            Some((
                Ok::<_, std::convert::Infallible>(Bytes::from(event)),
                (Opening::Nothing, told, left),
            ))
        },
    );
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, Body::from_stream(rest)).into_response()
}

/// Notices when the client leaves before its answer.
pub(super) struct DisconnectGuard {
    held: Arc<ClientSession>,
    stream_id: StreamId,
    in_rounds: bool,
    /// `true` if the client knows events without data.
    primes: bool,
}

impl DisconnectGuard {
    /// Watches a stream that nobody waits for an answer on.
    pub(super) fn watching(held: Arc<ClientSession>, stream_id: StreamId) -> Self {
        Self {
            held,
            stream_id,
            in_rounds: false,
            primes: false,
        }
    }

    fn done(&self) {
        self.held.client.close(self.stream_id);
    }

    /// An event to go on from (2025-11-25, transports: its data is empty), or a comment for those who could not.
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
        self.held.pool.is_over_at(self.stream_id);
        // In the pushed era the stream can be taken up again; in the rounds era leaving gives the request up.
        if self.in_rounds && self.held.client.close(self.stream_id) {
            self.held
                .pool
                .tell_all(|| Event::StreamClosed(self.stream_id));
        }
    }
}
