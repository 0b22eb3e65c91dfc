//! A client's message in a request body, read and scanned once.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::StreamExt as _;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};
use mcp_elicit_core::wire::frame::{Frame, FrameIndex, Shape};
use mcp_elicit_core::wire::{Envelope, FrameDefect, method};

use super::header_checks::refusal;
use crate::frame::one_line_of;

/// The largest initial buffer for a body, in bytes.
const AT_FIRST: usize = 4 * 1024 * 1024;

/// The time limit for a body.
const BODY: Duration = Duration::from_secs(60);

/// A scanned message of a client.
pub(super) struct Message {
    pub(super) frame: Bytes,
    pub(super) index: FrameIndex,
    pub(super) shape: Shape,
}

impl Message {
    /// Reads the body of a request; the response if it is not a message, or longer than `most` bytes.
    pub(super) async fn read(
        headers: &HeaderMap,
        body: Body,
        most: usize,
    ) -> Result<Self, Box<Response>> {
        let refused = |status, why: &str| Box::new(refusal(status, -32700, why));
        let whole = tokio::time::timeout(BODY, whole(headers, body, most));
        let frame = whole
            .await
            .unwrap_or(Err(Unread::TooSlow))
            .map_err(|fault| match fault {
                Unread::TooSlow => refused(
                    StatusCode::REQUEST_TIMEOUT,
                    "the message took too long to arrive",
                ),
                Unread::TooLong => {
                    refused(StatusCode::PAYLOAD_TOO_LARGE, "the message is too long")
                }
                Unread::Broken => refused(StatusCode::BAD_REQUEST, "the body was cut off"),
            })?;
        let frame = one_line_of(frame.slice_ref(frame.trim_ascii()));
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

impl Message {
    /// Returns `true` if it has this method.
    pub(super) fn has_method(&self, name: &str) -> bool {
        self.parts().method() == Some(name)
    }

    /// Returns `true` if the method is that of a notification.
    pub(super) fn is_notice(&self) -> bool {
        let method = self.parts().method();
        method.is_some_and(method::is_notification)
    }

    /// Returns its parts.
    pub(super) fn parts(&self) -> Frame<'_> {
        // It is text, since anything else is rejected.
        let text = std::str::from_utf8(&self.frame).unwrap_or_default();
        Frame::of_text(text, &self.index)
    }
}

enum Unread {
    TooSlow,
    TooLong,
    Broken,
}

/// Reads the whole body. Each part is copied as soon as it arrives, while it is in the processor's cache and its buffer
/// can be reused.
async fn whole(headers: &HeaderMap, body: Body, most: usize) -> Result<Bytes, Unread> {
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|text| text.to_str().ok());
    let length = length
        .and_then(|text| text.parse::<usize>().ok())
        .unwrap_or(0);
    if length > most {
        return Err(Unread::TooLong);
    }
    let mut whole = Vec::with_capacity(length.min(AT_FIRST));
    let mut parts = body.into_data_stream();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|_| Unread::Broken)?;
        if whole.len() + part.len() > most {
            return Err(Unread::TooLong);
        }
        whole.extend_from_slice(&part);
    }
    Ok(Bytes::from(whole))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    async fn status(body: Body) -> StatusCode {
        match Message::read(&HeaderMap::new(), body, 100).await {
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
        let long = Body::from(" ".repeat(101));
        assert_eq!(status(long).await, StatusCode::PAYLOAD_TOO_LARGE);
    }
}
