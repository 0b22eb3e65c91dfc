//! The body of a response that holds something until it has ended: a permit, a connection.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// Returns the body, which holds `held` until it has ended or is dropped.
pub(crate) fn with_held<H: Send + Unpin + 'static>(body: Body, held: H) -> Body {
    Body::new(HeldBody {
        body,
        held: Some(held),
    })
}

struct HeldBody<H> {
    body: Body,
    /// `None` once the body has ended.
    held: Option<H>,
}

impl<H: Unpin> HttpBody for HeldBody<H> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.held = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
