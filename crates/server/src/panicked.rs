//! A handler that panics is answered at once. Without this its request would have no answer, and its client would wait
//! until its own time limit.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use rmcp::ErrorData;

/// The whole message: what a panic says may hold a person's value. It stays in the server's own stderr.
const PANICKED: &str = "the handler panicked";

/// Runs a handler to its end, or to its panic, which becomes error -32603.
pub(crate) async fn answered<T, F>(handler: impl FnOnce() -> F + Send) -> Result<T, ErrorData>
where
    F: Future<Output = Result<T, ErrorData>>,
{
    // A handler may also panic before it returns its future.
    let Ok(handler) = catch_unwind(AssertUnwindSafe(handler)) else {
        return Err(error());
    };
    let mut handler = pin!(handler);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(context)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(error())))
    })
    .await
}

fn error() -> ErrorData {
    tracing::error!(target: "mcp_elicit", "a handler panicked; its request is answered with an error");
    ErrorData::internal_error(PANICKED, None)
}
