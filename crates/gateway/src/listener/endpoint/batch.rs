//! Several messages in one body, which only sessions of 2025-03-26 have. The responses are one JSON list if all are there
//! soon, else events of one stream.

use std::pin::Pin;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use futures::future::{MaybeDone, join_all, maybe_done};
use futures::stream::{BoxStream, select_all};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use mcp_elicit_core::wire::frame::Shape;
use mcp_elicit_core::wire::{SessionVersion, method};
use mcp_elicit_relay::{NO_BATCHES, batch_items};

use super::header_checks::{refusal, with_id};
use super::request::Message;
use super::response::take;
use super::{ClientSession, McpEndpoint};
use crate::callers::ProvenCaller;
use crate::headers::{SESSION, VERSION};
use crate::listener::requests_at_work::Kind;

/// The longest response that is kept until all others are there, in bytes.
const LONGEST_RESPONSE: usize = 64 * 1024 * 1024;

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
    joined(in_turn(responses).await).await
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
    let message = match Message::of(item) {
        Ok(message) => message,
        Err(response) => return *response,
    };
    if message.has_method(method::INITIALIZE) {
        let why = "a list of messages does not hold `initialize`";
        return refusal(StatusCode::BAD_REQUEST, -32600, why);
    }
    let kind = if message.shape == Shape::Request {
        Kind::Work
    } else {
        Kind::Arrival
    };
    match endpoint.at_work.begin(caller, kind) {
        Ok(permit) => {
            let response = take(held, caller, &message, headers, None, false).await;
            permit.until_sent(response)
        }
        Err(refused) => with_id(message.parts(), refused.error()),
    }
}

/// Joins the responses to the messages of one list. Notifications and answers have none.
async fn joined(responses: Vec<Response>) -> Response {
    let (mut bodies, mut streams) = (Vec::new(), Vec::new());
    for response in responses {
        if response.status() == StatusCode::ACCEPTED {
            continue;
        }
        let kind = response.headers().get(CONTENT_TYPE);
        let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let body = response.into_body();
        if is_stream {
            streams.push(body.into_data_stream().boxed());
        } else if let Ok(body) = axum::body::to_bytes(body, LONGEST_RESPONSE).await {
            bodies.push(body);
        }
    }
    if streams.is_empty() {
        if bodies.is_empty() {
            return StatusCode::ACCEPTED.into_response();
        }
        let list = [&b"["[..], &bodies.join(&b","[..]), b"]"].concat();
        return ([(CONTENT_TYPE, "application/json")], list).into_response();
    }
    let first = bodies.into_iter().map(|body| {
        let event = [&b"event: message\ndata: "[..], &body, b"\n\n"].concat();
        Ok(Bytes::from(event))
    });
    let first: BoxStream<'static, _> = futures::stream::iter(first.collect::<Vec<_>>()).boxed();
    let events = first.chain(select_all(streams));
    let head = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (head, Body::from_stream(events)).into_response()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

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
