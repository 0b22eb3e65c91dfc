//! A client's message in a request body, read and scanned once.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::response::Response;
use futures::StreamExt as _;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};
use mcp_elicit_core::wire::frame::{Frame, FrameIndex, Shape};
use mcp_elicit_core::wire::{Envelope, FrameDefect, method};
use mcp_elicit_relay::{ByteLimit, is_batch};

use super::header_checks::refusal;
use crate::frame::one_line_of;
use crate::listener::call_memory::{self, ArrivingMessage, Handover};
use mcp_elicit_core::text::without_mark;

/// The largest initial buffer for a body, in bytes.
const AT_FIRST: usize = 4 * 1024 * 1024;

/// The time limit for a body.
const BODY: Duration = Duration::from_secs(60);

/// The body of a request.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every body is one message, which should not cost an allocation"
)]
pub(super) enum Arrived {
    /// One message.
    One(ClientMessage),
    /// A list of messages, which is not read yet.
    Batch(Bytes, ArrivingMessage),
}

/// A scanned message of a client.
pub(super) struct ClientMessage {
    pub(super) frame: Bytes,
    pub(super) index: FrameIndex,
    pub(super) shape: Shape,
    /// Its bytes in its caller's account; `None` for an item of a list, which is counted as a whole.
    arriving: Option<ArrivingMessage>,
}

impl ClientMessage {
    /// Reads the body of a request; the response if it is not a message, or longer than `most` bytes.
    pub(super) async fn read(
        headers: &HeaderMap,
        body: Body,
        most: usize,
        mut arriving: ArrivingMessage,
    ) -> Result<Arrived, Box<Response>> {
        let refused = |status, why: &str| Box::new(refusal(status, -32700, why));
        let whole = tokio::time::timeout(BODY, whole(headers, body, most, &mut arriving));
        let frame =
            whole
                .await
                .unwrap_or(Err(UnreadRequest::TooSlow))
                .map_err(|fault| match fault {
                    UnreadRequest::TooSlow => refused(
                        StatusCode::REQUEST_TIMEOUT,
                        "the message took too long to arrive",
                    ),
                    UnreadRequest::TooLong => {
                        refused(StatusCode::PAYLOAD_TOO_LARGE, "the message is too long")
                    }
                    UnreadRequest::Broken => {
                        refused(StatusCode::BAD_REQUEST, "the body was cut off")
                    }
                    UnreadRequest::OverLimit(limit) => Box::new(call_memory::refusal(limit)),
                })?;
        let text = without_mark(&frame);
        let frame = one_line_of(without_rest(&frame, text.trim_ascii()));
        if is_batch(&frame) && std::str::from_utf8(&frame).is_ok() {
            return Ok(Arrived::Batch(frame, arriving));
        }
        let mut message = Self::of(frame)?;
        message.arriving = Some(arriving);
        Ok(Arrived::One(message))
    }

    /// Reads a message; the response if it is none.
    pub(super) fn of(frame: Bytes) -> Result<Self, Box<Response>> {
        let refused = |status, why: &str| Box::new(refusal(status, -32700, why));
        let most = frame.len();
        let index = FrameIndex::read(&frame).map_err(|defect| match defect {
            FrameDefect::NotOneObject => refused(StatusCode::BAD_REQUEST, &unread(&frame, most)),
            defect => Box::new(refusal(
                StatusCode::BAD_REQUEST,
                defect.code(),
                &defect.to_string(),
            )),
        })?;
        let is_text = std::str::from_utf8(&frame).is_ok();
        let Some(shape) = index.shape().filter(|_| is_text) else {
            return Err(refused(StatusCode::BAD_REQUEST, &unread(&frame, most)));
        };
        Ok(Self {
            frame,
            index,
            shape,
            arriving: None,
        })
    }
}

/// Describes the error of a body that is not a message.
fn unread(frame: &[u8], most: usize) -> String {
    match Envelope::parse_within(frame, most) {
        Ok(_) => "the message is not a request, a notification or a response".to_owned(),
        Err(defect) => defect.to_string(),
    }
}

impl ClientMessage {
    /// Returns `true` if it has this method.
    pub(super) fn has_method(&self, name: &str) -> bool {
        self.parts().method() == Some(name)
    }

    /// Returns `true` if the method is that of a notification.
    pub(super) fn is_notice(&self) -> bool {
        let method = self.parts().method();
        method.is_some_and(method::is_notification)
    }

    /// Returns the state with which it retries a call.
    pub(super) fn request_state(&self) -> Option<String> {
        if self.shape != Shape::Request {
            return None;
        }
        let state = self.index.request_state.clone()?;
        serde_json::from_str(self.parts().text().get(state)?).ok()
    }

    /// Begins to hand it to its session, which counts the bytes that it keeps until this is dropped.
    pub(super) fn hand_over(&self) -> Option<Handover<'_>> {
        self.arriving.as_ref().map(ArrivingMessage::hand_over)
    }

    /// Returns its parts.
    pub(super) fn parts(&self) -> Frame<'_> {
        // It is text, since anything else is rejected.
        let text = std::str::from_utf8(&self.frame).unwrap_or_default();
        Frame::of_text(text, &self.index)
    }
}

enum UnreadRequest {
    TooSlow,
    TooLong,
    Broken,
    OverLimit(ByteLimit),
}

/// Returns a part of a body without the memory of the rest, if that is large: whoever keeps the part would keep all.
fn without_rest(body: &Bytes, part: &[u8]) -> Bytes {
    if body.len() - part.len() > call_memory::FREE {
        Bytes::copy_from_slice(part)
    } else {
        body.slice_ref(part)
    }
}

/// Reads the rest of a body without storing it, so that its client, which reads no response before it has written
/// everything, gets the reason. Returns the error.
async fn discarded(mut parts: BodyDataStream, mut most: usize, limit: ByteLimit) -> UnreadRequest {
    while let Some(Ok(part)) = parts.next().await {
        match most.checked_sub(part.len()) {
            Some(rest) => most = rest,
            None => return UnreadRequest::TooLong,
        }
    }
    UnreadRequest::OverLimit(limit)
}

/// Reads the whole body. Each part is copied as soon as it arrives, while it is in the processor's cache and its buffer
/// can be reused.
async fn whole(
    headers: &HeaderMap,
    body: Body,
    most: usize,
    arriving: &mut ArrivingMessage,
) -> Result<Bytes, UnreadRequest> {
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|text| text.to_str().ok());
    let length = length
        .and_then(|text| text.parse::<usize>().ok())
        .unwrap_or(0);
    if length > most {
        return Err(UnreadRequest::TooLong);
    }
    let mut whole = Vec::with_capacity(length.min(AT_FIRST));
    let mut parts = body.into_data_stream();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|_| UnreadRequest::Broken)?;
        if whole.len() + part.len() > most {
            return Err(UnreadRequest::TooLong);
        }
        if let Err(limit) = arriving.add(part.len()) {
            arriving.end();
            let rest = most - whole.len();
            drop(whole);
            return Err(discarded(parts, rest, limit).await);
        }
        whole.extend_from_slice(&part);
    }
    Ok(Bytes::from(whole))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use mcp_elicit_relay::ByteAccounts;

    use super::*;

    fn uncounted() -> ArrivingMessage {
        ArrivingMessage::new(ByteAccounts::default())
    }

    async fn status(body: Body) -> StatusCode {
        match ClientMessage::read(&HeaderMap::new(), body, 100, uncounted()).await {
            Ok(_) => StatusCode::OK,
            Err(refused) => refused.status(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_given_up() {
        let begun = futures::stream::iter([Ok::<_, Infallible>("{")]);
        let never = begun.chain(futures::stream::pending());
        assert_eq!(
            status(Body::from_stream(never)).await,
            StatusCode::REQUEST_TIMEOUT
        );
        let trickle = futures::stream::unfold((), |()| async {
            tokio::time::sleep(BODY / 4).await;
            Some((Ok::<_, Infallible>(" "), ()))
        });
        let trickle = Body::from_stream(trickle);
        assert_eq!(status(trickle).await, StatusCode::REQUEST_TIMEOUT);
        let in_time = Body::from(r#"{"id":1,"method":"m"}"#);
        assert_eq!(status(in_time).await, StatusCode::OK);
        for marked in [
            "\u{feff}{\"id\":1,\"method\":\"m\"}",
            "\u{feff}\r\n{\"id\":1,\r\n\"method\":\"m\"}\n",
        ] {
            assert_eq!(status(Body::from(marked)).await, StatusCode::OK);
        }
        let twice = Body::from("\u{feff}\u{feff}{\"id\":1,\"method\":\"m\"}");
        assert_eq!(status(twice).await, StatusCode::BAD_REQUEST);
        let long = Body::from(" ".repeat(101));
        assert_eq!(status(long).await, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[tokio::test]
    async fn a_small_message_in_a_large_body_does_not_keep_the_body() {
        let padded = format!("{}{{\"id\":1,\"method\":\"m\"}}", " ".repeat(1_000_000));
        let body = Body::from(padded);
        let read = ClientMessage::read(&HeaderMap::new(), body, 2_000_000, uncounted()).await;
        let Ok(Arrived::One(message)) = read else {
            panic!("it was refused");
        };
        // Bytes that nothing else shares can be taken without a copy, with the capacity of their buffer.
        let buffer = Vec::from(message.frame.try_into_mut().unwrap());
        assert!(buffer.capacity() < 100, "{}", buffer.capacity());
    }
}
