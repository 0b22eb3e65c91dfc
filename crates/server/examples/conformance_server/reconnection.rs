//! A call whose event stream ends before its result is ready: the client reconnects with `Last-Event-ID` and gets the
//! result on the new stream (2025-11-25, "Streamable HTTP", resumability).
//!
//! A layer around rmcp's service ends the stream of one call and notices that the client has reconnected; the tool
//! finds the layer in the parts of the HTTP request. Without an event store, rmcp 3.9 forgets a stream together with
//! its result, so the tool waits for the client before it returns.

use std::collections::HashMap;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use futures::{Stream, StreamExt as _};
use http::header::{CONTENT_TYPE, HeaderValue};
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const SESSION: &str = "mcp-session-id";

/// The longest time to wait for a client to reconnect.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The number of reconnections of the client of each session.
type Returns = watch::Sender<HashMap<HeaderValue, u64>>;

/// The event stream of one HTTP request.
#[derive(Clone)]
struct CallStream {
    end: CancellationToken,
    returns: Returns,
}

/// Lets tools end the stream of their call.
pub(crate) fn with_streams_that_end(router: Router) -> Router {
    let returns = Returns::new(HashMap::new());
    router.layer(middleware::from_fn_with_state(returns, lend_stream))
}

/// Ends the stream of the call behind `context`, if it has one, and waits for the client to reconnect.
pub(crate) async fn until_client_is_back(context: &RequestContext<RoleServer>) {
    let parts = context.extensions.get::<http::request::Parts>();
    let stream = parts.and_then(|parts| parts.extensions.get::<CallStream>());
    let session = parts.and_then(|parts| parts.headers.get(SESSION));
    let (Some(CallStream { end, returns }), Some(session)) = (stream, session) else {
        return;
    };
    let mut returns = returns.subscribe();
    let times = |returns: &HashMap<_, _>| returns.get(session).copied().unwrap_or_default();
    let before = times(&returns.borrow());
    end.cancel();
    let back = returns.wait_for(|returns| times(returns) > before);
    // A client that does not reconnect loses the result, as it does if its connection breaks.
    let _back_or_gone = tokio::time::timeout(MAX_WAIT, back).await;
}

async fn lend_stream(State(returns): State<Returns>, mut request: Request, next: Next) -> Response {
    let end = CancellationToken::new();
    let session = request.headers().get(SESSION).cloned();
    let comes_back = request.headers().contains_key("last-event-id");
    request.extensions_mut().insert(CallStream {
        end: end.clone(),
        returns: returns.clone(),
    });
    let response = next.run(request).await;
    let kind = response.headers().get(CONTENT_TYPE);
    let streams = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if !streams {
        return response;
    }
    if let (true, Some(session)) = (comes_back, session) {
        returns.send_modify(|returns| *returns.entry(session).or_default() += 1);
    }
    response.map(|body| Body::from_stream(until_end(body.into_data_stream(), end)))
}

/// Passes the stream on until its end is requested. The first event always goes out: it has the id for the
/// reconnection.
fn until_end<S: Stream + Unpin>(stream: S, end: CancellationToken) -> impl Stream<Item = S::Item> {
    futures::stream::unfold((stream, false), move |(mut stream, begun)| {
        let end = end.clone();
        async move {
            let next = if begun {
                tokio::select! {
                    biased;
                    () = end.cancelled() => None,
                    next = stream.next() => next,
                }
            } else {
                stream.next().await
            };
            next.map(|item| (item, (stream, true)))
        }
    })
}
