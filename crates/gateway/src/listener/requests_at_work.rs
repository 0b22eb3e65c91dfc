//! The concurrent requests of each authenticated caller, limited so that one caller cannot occupy the whole gateway.
//!
//! A request is in progress until the last part of its response is written, or its client has disconnected. Three kinds
//! are counted separately:
//!
//! | kind | counted | reason |
//! | --- | --- | --- |
//! | calls and other requests | from their body on, until the response has ended | they occupy servers and people |
//! | bodies being received, responses, notifications, ends of sessions | until they are handled | answers and cancellations end requests in progress, so they must pass even if a caller has reached its limit |
//! | the streams of sessions (GET) | while a client listens | each belongs to one session and takes no server's time; a stream that resumes a lost response counts as its call |
//!
//! Unauthenticated callers are not counted: without `[auth]` all of them may be one, and the connections of one machine
//! are limited.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::response::Response;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::held_body::with_held;
use crate::callers::ProvenCaller;

/// The most concurrent requests of one caller, over all servers. Calls that wait for people are included.
pub(crate) const AT_WORK: usize = 256;
/// The most bodies of one caller received at once, including responses and notifications.
const ARRIVING: usize = 64;
/// The most streams of sessions that one caller listens to at once: more than its sessions with one server
/// ([`SESSIONS_EACH`](super::endpoint::eviction)).
const STREAMS: usize = 256;
/// The time after which a caller with too many requests may retry, in seconds.
const RETRY_SECONDS: &str = "2";

/// The kind of a counted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// A request to the server, or the resumed stream of its response.
    Work,
    /// A message that is being received, which may or may not be a request.
    Arrival,
    /// The stream of a session.
    Stream,
}

impl RequestKind {
    const fn most(self) -> usize {
        match self {
            Self::Work => AT_WORK,
            Self::Arrival => ARRIVING,
            Self::Stream => STREAMS,
        }
    }
}

/// The error of a caller that has reached the limit for this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany(RequestKind);

impl TooMany {
    /// Returns the status and the protocol's error.
    pub(crate) fn error(self) -> (StatusCode, Value) {
        let most = self.0.most();
        let why = match self.0 {
            RequestKind::Work => format!(
                "{most} requests of this caller are at work; send this one again when one of them has ended, or cancel some"
            ),
            RequestKind::Arrival => format!(
                "{most} messages of this caller are arriving; send this one again when they have arrived"
            ),
            RequestKind::Stream => format!(
                "this caller listens to {most} streams of sessions; end sessions that are not needed any more (DELETE)"
            ),
        };
        let error = json!({"code": -32000, "message": why});
        (StatusCode::TOO_MANY_REQUESTS, error)
    }

    /// Adds the time to retry.
    pub(crate) fn retry_later(mut response: Response) -> Response {
        let seconds = HeaderValue::from_static(RETRY_SECONDS);
        response.headers_mut().insert(RETRY_AFTER, seconds);
        response
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RequestCounts {
    work: usize,
    arrivals: usize,
    streams: usize,
}

impl RequestCounts {
    fn of(&mut self, kind: RequestKind) -> &mut usize {
        match kind {
            RequestKind::Work => &mut self.work,
            RequestKind::Arrival => &mut self.arrivals,
            RequestKind::Stream => &mut self.streams,
        }
    }
}

/// The requests in progress of all authenticated callers.
#[derive(Debug, Default)]
pub(crate) struct RequestsAtWork {
    /// By the bindings of callers; those with no request have no entry.
    by_caller: Mutex<HashMap<String, RequestCounts>>,
}

/// One request in progress, until this is dropped.
#[derive(Debug)]
pub(crate) struct WorkPermit {
    /// `None` for a caller that is not counted.
    counted: Option<CountedRequest>,
}

#[derive(Debug)]
struct CountedRequest {
    all: Arc<RequestsAtWork>,
    caller: String,
    kind: RequestKind,
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        let mut all = self.all.by_caller();
        if let Some(counts) = all.get_mut(&self.caller) {
            let count = counts.of(self.kind);
            *count = count.saturating_sub(1);
            if *counts == RequestCounts::default() {
                all.remove(&self.caller);
            }
        }
    }
}

impl RequestsAtWork {
    fn by_caller(&self) -> MutexGuard<'_, HashMap<String, RequestCounts>> {
        self.by_caller
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request of this caller.
    ///
    /// # Errors
    /// If the caller has reached the limit.
    pub(crate) fn begin(
        self: &Arc<Self>,
        caller: &ProvenCaller,
        kind: RequestKind,
    ) -> Result<WorkPermit, TooMany> {
        if !caller.is_authenticated() {
            return Ok(WorkPermit { counted: None });
        }
        let mut all = self.by_caller();
        let counts = all.entry(caller.binding().to_owned()).or_default();
        let count = counts.of(kind);
        if *count >= kind.most() {
            return Err(TooMany(kind));
        }
        *count += 1;
        let counted = CountedRequest {
            all: self.clone(),
            caller: caller.binding().to_owned(),
            kind,
        };
        let counted = Some(counted);
        Ok(WorkPermit { counted })
    }
}

impl WorkPermit {
    /// Returns the response, which is in progress until its body has ended or is dropped.
    pub(crate) fn until_sent(self, response: Response) -> Response {
        match self.counted {
            Some(counted) => response.map(|body| with_held(body, counted)),
            None => response,
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, HttpBody as _};
    use axum::response::IntoResponse as _;
    use bytes::Bytes;

    use super::*;

    fn caller(subject: &str) -> ProvenCaller {
        ProvenCaller::of_subject("https://id.example", subject, None)
    }

    #[tokio::test]
    async fn a_caller_has_so_many_requests_at_work_and_others_have_theirs() {
        let all = Arc::new(RequestsAtWork::default());
        let busy = caller("busy");
        let permits: Vec<_> = (0..AT_WORK)
            .map(|_| all.begin(&busy, RequestKind::Work).unwrap())
            .collect();
        let refused = all.begin(&busy, RequestKind::Work).unwrap_err();
        let (status, error) = refused.error();
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
        assert!(error["message"].as_str().unwrap().contains("cancel some"));
        let response = TooMany::retry_later((status, "").into_response());
        assert!(response.headers().contains_key(RETRY_AFTER));
        // Answers and cancellations pass, and so do streams.
        let arriving = all.begin(&busy, RequestKind::Arrival).unwrap();
        let stream = all.begin(&busy, RequestKind::Stream).unwrap();
        let other = all.begin(&caller("other"), RequestKind::Work).unwrap();
        drop(permits);
        drop((arriving, stream, other));
        assert!(all.by_caller().is_empty());
    }

    #[tokio::test]
    async fn a_request_is_at_work_until_its_response_has_ended() {
        let all = Arc::new(RequestsAtWork::default());
        let is_at_work = || !all.by_caller().is_empty();
        let permit = all.begin(&caller("a"), RequestKind::Work).unwrap();
        let response = permit.until_sent("a text".into_response());
        let length = response.body().size_hint().exact();
        assert_eq!((is_at_work(), length), (true, Some(6)));
        let bytes = axum::body::to_bytes(response.into_body(), 100).await;
        assert_eq!(bytes.unwrap(), "a text");
        assert!(!is_at_work());
        let permit = all.begin(&caller("a"), RequestKind::Stream).unwrap();
        let endless = futures::stream::pending::<Result<Bytes, std::convert::Infallible>>();
        let response = permit.until_sent(Body::from_stream(endless).into_response());
        assert!(is_at_work());
        drop(response);
        assert!(!is_at_work());
    }

    #[test]
    fn callers_that_prove_nothing_are_not_counted() {
        let all = Arc::new(RequestsAtWork::default());
        let local = ProvenCaller::local();
        let permits: Vec<_> = (0..10 * AT_WORK)
            .map(|_| all.begin(&local, RequestKind::Work).unwrap())
            .collect();
        assert!(all.by_caller().is_empty());
        drop(permits);
    }
}
