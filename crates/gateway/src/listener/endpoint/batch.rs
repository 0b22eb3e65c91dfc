//! Several messages in one body, which only sessions of 2025-03-26 have. The responses are one JSON list if all are there
//! soon, else events of one stream.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use futures::future::join_all;
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
    joined(join_all(responses).await).await
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
            let response = take(held, &message, headers, None, false).await;
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
