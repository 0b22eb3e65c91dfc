//! One exchange with the server: a request, and its response as one body or a stream of events.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use mcp_elicit_core::text::without_mark;
use mcp_elicit_core::wire::frame::{FrameIndex, FramePart, Shape};
use mcp_elicit_core::wire::sse::EventReader;
use mcp_elicit_core::wire::{self, Id, members, message, method};
use mcp_elicit_record::clock;
use mcp_elicit_relay::{CallId, DeliveryId, Event};
use reqwest::Response;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::param_headers::ListPage;
use super::{ACCEPTS, Fate, HttpUpstream, OutgoingRequest, SessionUse, Unsent, words_of};
use crate::frame::{FrameBytes, one_line_of};
use crate::headers::{LAST_EVENT, SESSION};
use crate::server_challenge::ServerChallenge;
use crate::transports::unfinished::{MessageTooLong, UnfinishedMessage};

/// The default pause before a lost stream is opened again; each failure doubles it.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// The longest accepted pause before a stream is opened again.
const LONGEST_RETRY_PAUSE: Duration = Duration::from_secs(30);
/// The shortest pause, whatever the server requests; grows if a stream sends nothing but ids.
const SHORTEST_RETRY_PAUSE: Duration = Duration::from_millis(100);
/// The number of consecutive attempts on a lost stream that may fail or return nothing before it is abandoned.
const TRIES: u32 = 5;
/// A stream that was open for this long was not a failure, whatever it sent.
const OPEN: Duration = Duration::from_secs(1);

/// The time for which the stream of a request is read after the response to it. Servers should end it there
/// (2025-11-25, transports, sending messages to the server).
const AFTER_ANSWER: Duration = Duration::from_secs(2);
/// The time for which a stream is read that a server opens in response to a message that is not a request.
const WITHOUT_REQUEST: Duration = Duration::from_secs(60);

/// The state of a stream that may be lost and resumed.
#[derive(Default)]
struct StreamCursor {
    last_id: Option<String>,
    /// The pause that the server requests.
    retry: Option<Duration>,
    /// The number of consecutive times that it sent nothing.
    failures: u32,
    /// The number of consecutive times that it sent no message.
    idle: u32,
}

/// The media type of a stream of events.
const EVENT_STREAM: &str = "text/event-stream";

/// Returns `true` if the response is a stream of events. Media types are case-insensitive.
fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    let start = kind.and_then(|kind| kind.as_bytes().get(..EVENT_STREAM.len()));
    start.is_some_and(|start| start.eq_ignore_ascii_case(EVENT_STREAM.as_bytes()))
}

/// The part of a response that is remembered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RememberedPart {
    /// The negotiated revision.
    Revision,
    /// The tools' arguments that headers repeat, from this page of the list.
    Tools(ListPage),
    Nothing,
}

/// The end of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamEnd {
    /// With the response to its call.
    Answered,
    /// After it had sent something, or been open for a while.
    Said,
    /// At once.
    Empty,
}

/// The messages that a stream is read for.
#[derive(Clone, Copy)]
enum Reads<'a> {
    /// Those about one request, until its response; a notification or a response has no id.
    Request(Option<&'a Id>),
    /// Those that belong to no request, as long as the session.
    Session,
}

impl<'a> Reads<'a> {
    fn id(self) -> Option<&'a Id> {
        match self {
            Self::Request(id) => id,
            Self::Session => None,
        }
    }

    fn ends_with_answer(self) -> bool {
        matches!(self, Self::Request(_))
    }

    /// Returns the end of the time for which the stream is read, if it has one from the beginning.
    fn until(self) -> Option<Instant> {
        match self {
            Self::Request(None) => Some(Instant::now() + WITHOUT_REQUEST),
            Self::Request(Some(_)) | Self::Session => None,
        }
    }
}

/// Returns the next chunk; `None` at the end of the stream, or of the time.
async fn next_until<S: Stream + Unpin>(chunks: &mut S, until: Option<Instant>) -> Option<S::Item> {
    match until {
        Some(until) => timeout_at(until, chunks.next()).await.ok().flatten(),
        None => chunks.next().await,
    }
}

/// Returns the sentence about a message of the server that is too long.
fn too_long(error: &MessageTooLong) -> String {
    format!("the server sent {error}")
}

impl StreamCursor {
    /// Returns `true` if the stream should be opened again after this end.
    fn goes_on(&mut self, ended: StreamEnd) -> bool {
        self.failures = if ended == StreamEnd::Empty {
            self.failures + 1
        } else {
            0
        };
        self.failures < TRIES
    }

    fn retry_pause(&self) -> Duration {
        // Polling for a while is not slowed down much.
        let shortest = SHORTEST_RETRY_PAUSE * 2_u32.pow((self.idle / 4).min(4));
        let retry_pause = self.retry.unwrap_or(RETRY_PAUSE).min(LONGEST_RETRY_PAUSE);
        retry_pause.max(shortest) * 2_u32.saturating_pow(self.failures.min(TRIES))
    }
}

/// The reason why an exchange has no response of the server.
struct ExchangeError {
    /// In words.
    why: String,
    /// The challenge of the server.
    challenge: Option<ServerChallenge>,
}

impl From<String> for ExchangeError {
    fn from(why: String) -> Self {
        Self {
            why,
            challenge: None,
        }
    }
}

impl HttpUpstream {
    /// Sends a request and reads the response.
    pub(super) async fn exchange(self: Arc<Self>, outgoing: OutgoingRequest) {
        let id = outgoing.index.id_in(&outgoing.frame);
        let noted = if outgoing.has_method(method::INITIALIZE) {
            RememberedPart::Revision
        } else if outgoing.has_method("tools/list") {
            RememberedPart::Tools(ListPage::of(outgoing.parts()))
        } else {
            RememberedPart::Nothing
        };
        let session = self.state().session_id.clone();
        let mut sent = self.post(&outgoing).await;
        let mut is_forgotten = false;
        if session.is_some() && noted != RememberedPart::Revision {
            (sent, is_forgotten) = self.session_is_forgotten(sent, id.as_ref()).await;
        }
        let status = sent.as_ref().ok().map(Response::status);
        if noted == RememberedPart::Revision {
            if status.is_some_and(|status| status.is_success()) {
                self.state().opening = Some(outgoing.frame.clone());
            }
        } else if let Some(lost) = session.filter(|_| is_forgotten) {
            match self.reopen(&lost, &outgoing.headers).await {
                // The server has said that it did not handle the request.
                Ok(()) => {
                    if status == Some(StatusCode::BAD_REQUEST) {
                        self.state().session_use = SessionUse::OpenedAnew;
                    }
                    sent = self.post(&outgoing).await;
                }
                Err(why) => {
                    tracing::warn!(%why, "the server does not know the session any more, and no other can be opened");
                }
            }
        }
        let OutgoingRequest {
            call,
            headers,
            delivery,
            ..
        } = outgoing;
        let answered = match sent {
            Ok(response) => {
                if response.status().is_success() {
                    self.tell_fate(delivery, Fate::Accepted, None);
                }
                self.answered(response, call, &headers, noted, id.as_ref(), delivery)
                    .await
            }
            Err(error) => {
                let fate = Fate::of_failure(&error, &self.url);
                let why = fate.why();
                self.tell_fate(delivery, fate, None);
                Err(why.into())
            }
        };
        if let Some(call) = call {
            self.forget(call);
        }
        if let (Err(trouble), Some(id), Some(session)) = (answered, id, self.session()) {
            let frame = failed(&id, &trouble.why);
            let frame = FrameBytes::Lent(frame.as_bytes());
            session.handle_server_challenged(call, frame, trouble.challenge.as_ref());
        }
    }

    /// Returns `true` if the server has answered that it does not know the session any more: with 404, or with 400,
    /// as the widely copied examples of servers do. A 400 counts if it is about a session or if it does not name the
    /// request, in a session that has worked, and once: if the next session gets 400 too, that is the answer.
    async fn session_is_forgotten(
        &self,
        sent: Result<Response, Unsent>,
        id: Option<&Id>,
    ) -> (Result<Response, Unsent>, bool) {
        let response = match sent {
            Ok(response) => response,
            Err(unsent) => return (Err(unsent), false),
        };
        let status = response.status();
        let used = self.state().session_use;
        if status.is_success() && id.is_some() {
            self.state().session_use = SessionUse::Works;
        }
        if status != StatusCode::BAD_REQUEST || used == SessionUse::OpenedAnew {
            return (Ok(response), status == StatusCode::NOT_FOUND);
        }
        let headers = response.headers().clone();
        let body = self.body(response).await.unwrap_or_default();
        let is_about_session = String::from_utf8_lossy(&body)
            .to_ascii_lowercase()
            .contains("session");
        let is_forgotten = is_about_session || (used == SessionUse::Works && !answers(&body, id));
        let mut same = http::Response::new(reqwest::Body::from(body));
        *same.status_mut() = status;
        *same.headers_mut() = headers;
        (Ok(same.into()), is_forgotten)
    }

    async fn answered(
        &self,
        response: Response,
        call: Option<CallId>,
        headers: &HeaderMap,
        noted: RememberedPart,
        id: Option<&Id>,
        delivery: Option<DeliveryId>,
    ) -> Result<(), ExchangeError> {
        let status = response.status();
        let challenge = ServerChallenge::of(status, response.headers());
        if noted == RememberedPart::Revision {
            if let Some(id) = response.headers().get(SESSION) {
                self.state().session_id = Some(id.clone());
            } else if let Some(session) = self.session().filter(|_| status.is_success()) {
                session.tell(Event::NoSession);
            }
        }
        if is_event_stream(&response) {
            return Ok(self.read_stream(response, call, headers, noted, id).await?);
        }
        let body = match self.body(response).await {
            Ok(body) => body,
            Err(why) => {
                self.tell_fate(delivery, Fate::of_status(status), None);
                return Err(why.into());
            }
        };
        if let Some((frame, index)) = response_to(&body, id) {
            // Already reported if the status was a success. An error without an id came before the request was read.
            if delivery.is_some() {
                let fate = if answers(&body, id) {
                    Fate::Accepted
                } else {
                    Fate::of_status(status)
                };
                self.tell_fate(delivery, fate, None);
            }
            let is_answer = id.is_none_or(|id| names(index.id_in(&frame), id));
            if noted != RememberedPart::Nothing && is_answer {
                self.note(noted, &frame, &index);
            }
            if let Some(session) = self.session() {
                session.handle_server_challenged(
                    call,
                    FrameBytes::Seen(&frame, &index),
                    challenge.as_ref(),
                );
            }
            if !is_answer {
                let why = "the server's answer has another id than the request".to_owned();
                return Err(ExchangeError { why, challenge });
            }
            return Ok(());
        }
        self.tell_fate(delivery, Fate::of_status(status), None);
        if status == StatusCode::NOT_FOUND && self.state().session_id.is_some() {
            if let Some(session) = self.session() {
                session.tell(Event::ServerGone(
                    "it does not know the session any more".to_owned(),
                ));
            }
            return Ok(());
        }
        let why = words_of(status);
        Err(ExchangeError { why, challenge })
    }

    async fn body(&self, response: Response) -> Result<Bytes, String> {
        let length = response.content_length().unwrap_or(0);
        let mut body = Vec::with_capacity(usize::try_from(length).unwrap_or(0).min(self.max_frame));
        let mut unfinished = UnfinishedMessage::of(self.url.as_str(), self.max_frame);
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| super::failure::words(&error, &self.url))?;
            body.extend_from_slice(&chunk);
            unfinished
                .set(body.len())
                .map_err(|error| too_long(&error))?;
        }
        let body = Bytes::from(body);
        Ok(one_line_of(body.slice_ref(without_mark(&body))))
    }

    /// Reads a call's stream to its response; a stream that is lost before is resumed, as often as the server closes it
    /// (2025-11-25, transports: polling).
    async fn read_stream(
        &self,
        response: Response,
        call: Option<CallId>,
        headers: &HeaderMap,
        noted: RememberedPart,
        id: Option<&Id>,
    ) -> Result<(), String> {
        let lost = || Err("the server's stream ended before its answer".to_owned());
        let mut thread = StreamCursor::default();
        let mut ended = self
            .read_events(response, call, &mut thread, noted, Reads::Request(id))
            .await?;
        loop {
            if ended == StreamEnd::Answered {
                return Ok(());
            }
            if thread.last_id.is_none() || !thread.goes_on(ended) {
                return lost();
            }
            tokio::time::sleep(thread.retry_pause()).await;
            ended = match self.listen(thread.last_id.as_deref(), headers).await {
                Ok(response) if response.status().is_success() => {
                    self.read_events(response, call, &mut thread, noted, Reads::Request(id))
                        .await?
                }
                // It does not know the stream, or no longer.
                Ok(response) if response.status().is_client_error() => return lost(),
                Ok(_) | Err(_) => StreamEnd::Empty,
            };
        }
    }

    /// Reads a stream to its end, or for a short time after its answer: the response to the request of its id, or any
    /// response if there is none.
    async fn read_events(
        &self,
        response: Response,
        call: Option<CallId>,
        thread: &mut StreamCursor,
        noted: RememberedPart,
        reads: Reads<'_>,
    ) -> Result<StreamEnd, String> {
        let mut reader = EventReader::default();
        let mut unfinished = UnfinishedMessage::of(self.url.as_str(), self.max_frame);
        let mut until = reads.until();
        let id = reads.id();
        let (mut answered, mut said) = (false, false);
        thread.idle = thread.idle.saturating_add(1);
        let since = clock::now();
        let mut chunks = response.bytes_stream();
        while let Some(Ok(chunk)) = next_until(&mut chunks, until).await {
            let Some(session) = self.session() else {
                return Ok(StreamEnd::Answered);
            };
            reader.read(&chunk, |event| {
                said |= event.id.is_none() || event.id != thread.last_id;
                if event.id.is_some() {
                    thread.last_id.clone_from(&event.id);
                }
                if event.data.is_empty() || !event.is_message {
                    return;
                }
                thread.idle = 0;
                let frame = one_line_of(Bytes::from(event.data));
                let index = FrameIndex::at(&frame).unwrap_or_default();
                let is_response = index.shape() == Some(Shape::Response);
                if is_response && id.is_none_or(|id| names(index.id_in(&frame), id)) {
                    answered = true;
                    if noted != RememberedPart::Nothing {
                        self.note(noted, &frame, &index);
                    }
                }
                session.handle_server(call, FrameBytes::Seen(&frame, &index));
            });
            if answered && reads.ends_with_answer() && until.is_none() {
                until = Some(Instant::now() + AFTER_ANSWER);
            }
            unfinished
                .set(reader.held())
                .map_err(|error| too_long(&error))?;
        }
        thread.retry = reader.retry().or(thread.retry);
        let said = said || clock::now().since(since) >= OPEN;
        Ok(match (answered, said) {
            (true, _) => StreamEnd::Answered,
            (false, true) => StreamEnd::Said,
            (false, false) => StreamEnd::Empty,
        })
    }

    fn note(&self, noted: RememberedPart, frame: &[u8], index: &FrameIndex) {
        let Some(frame) = wire::Frame::new(frame, index) else {
            return;
        };
        match noted {
            RememberedPart::Revision => self.note_revision(frame),
            RememberedPart::Tools(page) => self.state().params.learn(page, frame),
            RememberedPart::Nothing => {}
        }
    }

    /// Opens another session in place of one that the server no longer knows (2025-11-25, transports, session
    /// management), which the client on stdio does not see. Requests that lose it together open one.
    ///
    /// # Errors
    /// If there is none, in words.
    async fn reopen(&self, lost: &HeaderValue, headers: &HeaderMap) -> Result<(), String> {
        let _one_at_a_time = self.reopening.lock().await;
        let opening = {
            let state = self.state();
            if state.session_id.as_ref() != Some(lost) {
                return Ok(());
            }
            state.opening.clone()
        };
        let opening = opening.ok_or("it was not opened from here")?;
        tokio::time::timeout(ACCEPTS, self.open_again(opening, headers))
            .await
            .unwrap_or_else(|_| Err("the server did not answer in time".to_owned()))
    }

    async fn open_again(&self, opening: Bytes, headers: &HeaderMap) -> Result<(), String> {
        let words = |error: reqwest::Error| super::failure::words(&error, &self.url);
        let request = self
            .client
            .post(self.url.clone())
            .headers(self.authorized(headers.clone()).await?)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        let response = self
            .connections
            .connecting(request.body(opening).send())
            .await
            .map_err(words)?;
        if !response.status().is_success() {
            return Err(words_of(response.status()));
        }
        let session = response.headers().get(SESSION).cloned();
        let frame = self.response_in(response).await?;
        let index = FrameIndex::at(&frame).unwrap_or_default();
        let revision = wire::Frame::new(&frame, &index).and_then(revision_in);
        {
            let mut state = self.state();
            if revision.is_none() || revision != state.revision {
                return Err("it does not agree on the same revision again".to_owned());
            }
            state.session_id = session;
        }
        let initialized = json!({"jsonrpc": "2.0", "method": method::INITIALIZED}).to_string();
        let initialized = OutgoingRequest {
            index: FrameIndex::at(initialized.as_bytes()).unwrap_or_default(),
            frame: initialized.into(),
            call: None,
            headers: headers.clone(),
            delivery: None,
        };
        self.deliver_alone(&initialized).await;
        let mut state = self.state();
        if let (Some(listening), Some(me)) = (state.listening.take(), self.me.upgrade()) {
            listening.abort();
            let task = self.runtime.spawn(me.listen_for_session(headers.clone()));
            state.listening = Some(task.abort_handle());
        }
        Ok(())
    }

    /// Returns the one response of the server, from a body or a stream of events.
    async fn response_in(&self, response: Response) -> Result<Bytes, String> {
        if !is_event_stream(&response) {
            return self.body(response).await;
        }
        let (mut reader, mut found) = (EventReader::default(), None);
        let mut unfinished = UnfinishedMessage::of(self.url.as_str(), self.max_frame);
        let mut chunks = response.bytes_stream();
        while let Some(Ok(chunk)) = chunks.next().await {
            reader.read(&chunk, |event| {
                let frame = one_line_of(Bytes::from(event.data));
                let index = FrameIndex::at(&frame).unwrap_or_default();
                if event.is_message && index.shape() == Some(Shape::Response) {
                    found = Some(frame);
                }
            });
            if found.is_some() {
                break;
            }
            unfinished
                .set(reader.held())
                .map_err(|error| too_long(&error))?;
        }
        found.ok_or_else(|| "the server's stream ended before its answer".to_owned())
    }

    /// Records the negotiated revision, which every later request of the session names.
    fn note_revision(&self, frame: wire::Frame<'_>) {
        let revision = revision_in(frame);
        if revision.is_some() {
            self.state().revision = revision;
        }
    }

    async fn listen(&self, last_id: Option<&str>, headers: &HeaderMap) -> Result<Response, Unsent> {
        let headers = self.authorized(headers.clone()).await?;
        let mut request = self
            .client
            .get(self.url.clone())
            .headers(headers)
            .header(ACCEPT, "text/event-stream");
        for (name, value) in self.session_headers() {
            request = request.header(name, value);
        }
        if let Some(id) = last_id {
            request = request.header(LAST_EVENT, id);
        }
        Ok(self.connections.connecting(request.send()).await?)
    }

    /// Reads the stream on which a server of the pushed era sends messages that belong to no request, opened again as
    /// often as it is closed.
    pub(super) async fn listen_for_session(self: Arc<Self>, headers: HeaderMap) {
        let mut thread = StreamCursor::default();
        loop {
            let ended = match self.listen(thread.last_id.as_deref(), &headers).await {
                Ok(response) if response.status().is_success() => {
                    match self
                        .read_events(
                            response,
                            None,
                            &mut thread,
                            RememberedPart::Nothing,
                            Reads::Session,
                        )
                        .await
                    {
                        // A response belongs to a call, whose stream this may have become.
                        Ok(StreamEnd::Answered | StreamEnd::Said) => StreamEnd::Said,
                        Ok(StreamEnd::Empty) => StreamEnd::Empty,
                        Err(_) => return,
                    }
                }
                // A server need not have one.
                Ok(response) if response.status().is_client_error() => return,
                Ok(_) | Err(_) => StreamEnd::Empty,
            };
            if self.session().is_none() || !thread.goes_on(ended) {
                return;
            }
            tokio::time::sleep(thread.retry_pause()).await;
        }
    }
}

/// Returns the revision in the response to `initialize`.
fn revision_in(frame: wire::Frame<'_>) -> Option<HeaderValue> {
    let revision = frame.text_member(FramePart::Result, "protocolVersion")?;
    HeaderValue::from_str(&revision).ok()
}

/// Returns the body as the response to the request of this id. A server that rejects a request before reading it
/// responds with an error whose id is null.
fn response_to(body: &Bytes, id: Option<&Id>) -> Option<(Bytes, FrameIndex)> {
    let body = body.slice_ref(body.trim_ascii());
    let index = FrameIndex::at(&body).filter(|index| index.shape() == Some(Shape::Response))?;
    let told = index.id.clone()?;
    match id {
        Some(id) if &body[told.clone()] == b"null" => {
            let id = id.as_json().as_bytes();
            let named: Bytes = [&body[..told.start], id, &body[told.end..]].concat().into();
            let index = FrameIndex::at(&named)?;
            Some((named, index))
        }
        _ => Some((body, index)),
    }
}

/// Returns `true` if the response has the id of this request.
fn answers(body: &Bytes, id: Option<&Id>) -> bool {
    let body = body.trim_ascii();
    let index = FrameIndex::at(body).unwrap_or_default();
    id.is_some_and(|id| names(index.id_in(body), id))
}

/// Returns `true` if a response with the first id answers the request with the second, which some servers repeat in
/// another JSON type.
fn names(told: Option<Id>, id: &Id) -> bool {
    told.is_some_and(|told| told == *id || told.in_other_type().as_ref() == Some(id))
}

fn failed(id: &Id, why: &str) -> String {
    let error = members::raw_value(&json!({"code": -32603, "message": why}));
    message::error(Some(id), &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_not_opened_again_at_once_however_soon_the_server_wants_it() {
        let mut cursor = StreamCursor {
            retry: Some(Duration::ZERO),
            ..StreamCursor::default()
        };
        assert_eq!(cursor.retry_pause(), SHORTEST_RETRY_PAUSE);
        cursor.idle = 1_000;
        assert_eq!(cursor.retry_pause(), SHORTEST_RETRY_PAUSE * 16);
        cursor.retry = Some(Duration::from_secs(5));
        assert_eq!(cursor.retry_pause(), Duration::from_secs(5));
    }
}
