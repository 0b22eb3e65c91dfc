//! Several messages in one body, which only sessions of 2025-03-26 have. The responses are one JSON list if all are there
//! soon, else events of one stream.

use std::pin::Pin;
use std::sync::Arc;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::response::{IntoResponse as _, Response};
use futures::future::{MaybeDone, join_all, maybe_done};
use futures::stream::{Stream, StreamExt as _, iter, select_all};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use mcp_elicit_core::wire::frame::Shape;
use mcp_elicit_core::wire::{SessionVersion, method};
use mcp_elicit_relay::{NO_BATCHES, batch_items};

use super::McpEndpoint;
use super::client_session::ClientSession;
use super::header_checks::{refusal, with_id};
use super::request::ClientMessage;
use super::response::take;
use crate::callers::ProvenCaller;
use crate::headers::{SESSION, VERSION};
use crate::listener::requests_at_work::RequestKind;

/// Responds to a body with a list of messages.
pub(super) async fn respond(
    endpoint: &Arc<McpEndpoint>,
    caller: &ProvenCaller,
    body: &Bytes,
    headers: &HeaderMap,
) -> Response {
    let refused = |code, why: &str| refusal(StatusCode::BAD_REQUEST, code, why);
    let names_other = headers.get_all(VERSION).iter().any(|version| {
        let known = SessionVersion::all().find(|known| version == known.as_str());
        !known.is_some_and(SessionVersion::has_batches)
    });
    if names_other || !headers.contains_key(SESSION) {
        return refused(-32600, NO_BATCHES);
    }
    let held = match endpoint.named(headers, caller) {
        Ok(held) => held,
        Err(response) => return *response,
    };
    if !held.pool.has_batches() {
        return refused(-32600, NO_BATCHES);
    }
    let items = match batch_items(body) {
        Ok(items) => items,
        Err((code, why)) => return refused(code, &why),
    };
    let items = items
        .into_iter()
        // A part of the body would keep all of it while its request is open.
        .map(|item| Bytes::copy_from_slice(item.get().as_bytes()));
    let responses = items.map(|item| respond_to_one(endpoint, caller, &held, item, headers));
    joined(in_turn(responses).await)
}

/// Starts each of these in order, and lets the thread do other work in between: a list may have many messages, each of
/// which is read before its response is awaited. Returns their results once all are there.
async fn in_turn<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut started = Vec::new();
    for one in all {
        let mut one = Box::pin(maybe_done(one));
        // What is not ready is polled again below.
        let _ = futures::poll!(one.as_mut());
        started.push(one);
        tokio::task::yield_now().await;
    }
    let mut results = Vec::with_capacity(started.len());
    for mut one in join_all(started.into_iter().map(finished)).await {
        results.extend(one.as_mut().take_output());
    }
    results
}

/// Waits for the result, and leaves it in its place.
async fn finished<F: Future>(mut one: Pin<Box<MaybeDone<F>>>) -> Pin<Box<MaybeDone<F>>> {
    one.as_mut().await;
    one
}

/// Responds to one message of the list.
async fn respond_to_one(
    endpoint: &Arc<McpEndpoint>,
    caller: &ProvenCaller,
    held: &Arc<ClientSession>,
    item: Bytes,
    headers: &HeaderMap,
) -> Response {
    let message = match ClientMessage::of(item) {
        Ok(message) => message,
        Err(response) => return *response,
    };
    if message.has_method(method::INITIALIZE) {
        let why = "a list of messages does not hold `initialize`";
        return refusal(StatusCode::BAD_REQUEST, -32600, why);
    }
    let kind = if message.shape == Shape::Request {
        RequestKind::Work
    } else {
        RequestKind::Arrival
    };
    match endpoint.at_work.begin(caller, kind) {
        Ok(permit) => {
            let response = take(held, caller, &message, headers, None, false).await;
            permit.until_sent(response)
        }
        Err(refused) => with_id(message.parts(), refused.error()),
    }
}

/// Joins the responses to the messages of one list. Notifications and answers have none. The list is written part by
/// part: each response is held, and counts, until its own part is written.
fn joined(responses: Vec<Response>) -> Response {
    let (mut bodies, mut streams) = (Vec::new(), Vec::new());
    for response in responses {
        if response.status() == StatusCode::ACCEPTED {
            continue;
        }
        let kind = response.headers().get(CONTENT_TYPE);
        let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let body = response.into_body().into_data_stream();
        if is_stream {
            streams.push(body);
        } else {
            bodies.push(body);
        }
    }
    if streams.is_empty() {
        if bodies.is_empty() {
            return StatusCode::ACCEPTED.into_response();
        }
        let begins = std::iter::once("[").chain(std::iter::repeat(","));
        let parts = bodies.into_iter().zip(begins);
        let parts = parts.map(|(body, begins)| between(begins, body, ""));
        let list = iter(parts).flatten().chain(text("]"));
        return json(Body::from_stream(list));
    }
    let bodies = bodies.into_iter();
    let first = bodies.map(|body| between("event: message\ndata: ", body, "\n\n"));
    let events = iter(first).flatten().chain(select_all(streams));
    let head = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (head, Body::from_stream(events)).into_response()
}

fn json(body: Body) -> Response {
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

/// Returns the parts of a body between these texts.
fn between(
    begins: &'static str,
    body: BodyDataStream,
    ends: &'static str,
) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send {
    text(begins).chain(body).chain(text(ends))
}

/// Returns a text as the part of a body; nothing if it is empty.
fn text(text: &'static str) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send {
    let text = Some(text).filter(|text| !text.is_empty());
    iter(text.map(|text| Ok(Bytes::from_static(text.as_bytes()))))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use mcp_elicit_relay::StreamId;

    use super::*;
    use crate::frame::FrameBytes;
    use crate::listener::caller_bytes::CallerBytes;
    use crate::listener::requests_at_work::{AT_WORK, RequestsAtWork};
    use crate::listener::response_streams::ResponseStreams;
    use crate::session::ClientTransport as _;

    /// A caller with responses that it has not read.
    struct Unread {
        caller: ProvenCaller,
        at_work: Arc<RequestsAtWork>,
        bytes: Arc<CallerBytes>,
        streams: ResponseStreams,
    }

    impl Unread {
        fn new(name: &str) -> Self {
            Self {
                caller: ProvenCaller::of_subject("https://id.example", name, None),
                at_work: Arc::default(),
                bytes: CallerBytes::of(name),
                streams: ResponseStreams::of_caller(name),
            }
        }

        /// Returns the response to a request with this frame; in a stream if it is not the whole answer.
        fn response(&self, number: u64, frame: &str, is_stream: bool) -> Response {
            let permit = self.at_work.begin(&self.caller, RequestKind::Work).unwrap();
            let mut told = self.streams.open(StreamId(number));
            let sent = FrameBytes::Lent(frame.as_bytes());
            self.streams.send(StreamId(number), sent, true);
            let event = told.try_recv().unwrap();
            permit.until_sent(if is_stream {
                let head = [(CONTENT_TYPE, "text/event-stream")];
                (head, Body::from(event.written(false))).into_response()
            } else {
                json(Body::from(event.into_frame()))
            })
        }

        /// Returns the bytes that are not read, and the number of requests at work.
        fn counted(&self) -> (usize, usize) {
            let begin = |_: &usize| self.at_work.begin(&self.caller, RequestKind::Work).ok();
            let free: Vec<_> = (0..AT_WORK).map_while(|at| begin(&at)).collect();
            (self.bytes.unread.bytes(), AT_WORK - free.len())
        }
    }

    #[tokio::test]
    async fn the_responses_to_a_list_count_until_they_are_written() {
        const LONG: usize = 100_000;
        for is_stream in [false, true] {
            let unread = Unread::new(if is_stream { "events" } else { "list" });
            let frame = format!("\"{}\"", "x".repeat(LONG));
            let mut responses: Vec<_> = (0..4)
                .map(|number| unread.response(number, &frame, false))
                .collect();
            responses.push(StatusCode::ACCEPTED.into_response());
            responses.extend(is_stream.then(|| unread.response(9, "\"last\"", true)));
            let most = unread.counted();
            assert!(most.0 > 4 * LONG && most.1 == 4 + usize::from(is_stream));
            let response = joined(responses);
            assert_eq!(unread.counted(), most, "nothing is written yet");
            let kind = ["application/json", "text/event-stream"][usize::from(is_stream)];
            assert_eq!(response.headers()[CONTENT_TYPE], kind);
            let mut body = response.into_body().into_data_stream();
            let (mut written, mut parts) = (String::new(), Vec::new());
            while let Some(part) = body.next().await {
                let part = part.unwrap();
                written.push_str(std::str::from_utf8(&part).unwrap());
                drop(part);
                parts.push(unread.counted());
            }
            assert!(
                parts.is_sorted_by(|before, after| before >= after),
                "{parts:?}"
            );
            assert!(parts.iter().any(|left| left.0 > LONG && left.0 < most.0));
            drop(body);
            assert_eq!(unread.counted(), (0, 0));
            let expected = if is_stream {
                let event = format!("event: message\ndata: {frame}\n\n");
                format!("{}data: \"last\"\n\n", event.repeat(4))
            } else {
                format!("[{frame},{frame},{frame},{frame}]")
            };
            assert_eq!(written, expected);
        }
    }

    #[tokio::test]
    async fn a_list_without_requests_has_no_response() {
        let accepted = || StatusCode::ACCEPTED.into_response();
        let response = joined(vec![accepted(), accepted()]);
        assert_eq!(response.status(), StatusCode::ACCEPTED);
    }

    #[tokio::test]
    async fn other_work_is_done_between_the_messages_of_a_list() {
        const MESSAGES: usize = 1_000;
        let others = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = others.clone();
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let (begun, ready) = (Cell::new(0), tokio::sync::Notify::new());
        let one = |i: usize| {
            let (begun, ready, others) = (&begun, &ready, &others);
            async move {
                assert_eq!(begun.replace(i + 1), i, "they begin in order");
                let seen = others.load(std::sync::atomic::Ordering::Relaxed);
                match i {
                    // The first one waits for the last one.
                    0 => ready.notified().await,
                    _ if i + 1 == MESSAGES => ready.notify_one(),
                    _ => {}
                }
                (i, seen)
            }
        };
        let results = in_turn((0..MESSAGES).map(one)).await;
        other.abort();
        assert!(results.iter().map(|(i, _)| *i).eq(0..MESSAGES));
        let last = results.last().map(|(_, seen)| *seen);
        assert!(last.is_some_and(|seen| seen > MESSAGES / 2), "{last:?}");
    }
}
