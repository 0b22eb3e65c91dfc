//! The address that Slack calls. Each request is authenticated by its signature over the raw body: there is no login,
//! cookie or form token, and the address exists only if a Slack app with a signing secret is configured.

use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use mcp_elicit_channels::slack::interact::BODY_LIMIT;
use mcp_elicit_channels::slack::{SlackInteractions, SlackRequest};
use mcp_elicit_core::lifecycle::Timestamp;

use super::Notifier;
use super::slack_acts::{SlackActs, SlackPeople};
use crate::headers::only_text;

/// The path below the inbox's address.
const PATH: &str = "/slack/interact";
/// The time limit for a body; Slack waits three seconds for the response.
const BODY_TIME: Duration = Duration::from_secs(3);
const TIMESTAMP: &str = "x-slack-request-timestamp";
const SIGNATURE: &str = "x-slack-signature";
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

struct Route {
    notifier: Arc<Notifier>,
    acts: Arc<dyn SlackInteractions>,
    /// The time at which this process began to serve the address. An earlier process may have handled older requests.
    since: Timestamp,
}

impl Notifier {
    /// Returns the address that Slack calls, served from now on. A request that was signed before is refused, since
    /// another process may have handled it.
    pub(crate) fn slack_route(self: &Arc<Self>, people: SlackPeople) -> Router {
        let route = Route {
            notifier: Arc::clone(self),
            acts: Arc::new(SlackActs::new(Arc::clone(self), people)),
            since: self.record.now(),
        };
        Router::new()
            .route(PATH, post(interact))
            .method_not_allowed_fallback(async || refusal(StatusCode::METHOD_NOT_ALLOWED))
            .with_state(Arc::new(route))
    }
}

async fn interact(State(route): State<Arc<Route>>, request: Request) -> Response {
    let open = route.notifier.open();
    let slack = open.channels.slack.as_ref();
    let Some(slack) = slack.filter(|slack| slack.takes_acts()) else {
        return refusal(StatusCode::NOT_FOUND);
    };
    let (head, body) = request.into_parts();
    let body = match tokio::time::timeout(BODY_TIME, to_bytes(body, BODY_LIMIT)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return refusal(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => return refusal(StatusCode::REQUEST_TIMEOUT),
    };
    let timestamp = only_text(&head.headers, TIMESTAMP);
    if timestamp.is_some_and(|at| route.is_before(at)) {
        route.acts.refused("signed-before-start");
        return refusal(StatusCode::UNAUTHORIZED);
    }
    let request = SlackRequest {
        timestamp,
        signature: only_text(&head.headers, SIGNATURE),
        body: &body,
    };
    let now = route.notifier.record.now();
    let reply = slack.interact(request, &route.acts, now).await;
    if let Some(rest) = reply.rest {
        tokio::spawn(rest);
    }
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match reply.body {
        Some(body) => (status, Json(body)).into_response(),
        None => return refusal(status),
    };
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// Returns a response with the next step, for the person who sets up the app. Slack shows it to no user.
fn refusal(status: StatusCode) -> Response {
    let next = match status {
        StatusCode::BAD_REQUEST => "this is none of the requests that Slack sends here",
        StatusCode::UNAUTHORIZED => {
            "the request is not signed by the Slack app of this gateway, is too old, or came before: compare `signing-secret` in [channels.slack] \
             with the app's, and the clocks"
        }
        StatusCode::FORBIDDEN => {
            "the request is of another Slack workspace than the app of this gateway"
        }
        StatusCode::NOT_FOUND => {
            "nobody answers in Slack here: set `signing-secret` in [channels.slack]"
        }
        StatusCode::METHOD_NOT_ALLOWED => {
            "Slack sends POST here: enter this address as the Request URL of the app's interactivity"
        }
        StatusCode::REQUEST_TIMEOUT => "the request took too long to arrive; send it again",
        StatusCode::PAYLOAD_TOO_LARGE => "the request is larger than any that Slack sends",
        _ => return (status, [(CACHE_CONTROL, NO_STORE)]).into_response(),
    };
    (status, [(CACHE_CONTROL, NO_STORE)], format!("{next}\n")).into_response()
}

impl Route {
    /// Returns `true` for a time in seconds, as in a header, from before this address was served.
    fn is_before(&self, seconds: &str) -> bool {
        let seconds = seconds.parse::<u64>();
        seconds.is_ok_and(|seconds| seconds < self.since.as_millis() / 1_000)
    }
}
