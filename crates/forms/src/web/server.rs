use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The most connections at once. Browsers hold a handful.
const CONNECTIONS: usize = 256;

/// The time that the head of a request may take to arrive.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// The most bytes of a request's head.
const HEAD_BYTES: usize = 32 * 1024;

/// The time to wait when no connection can be taken, as when the process has no file descriptors left.
const BREATH: Duration = Duration::from_millis(100);

/// Serves `app` at `listener` until `stop` is done, then drops what is still connected.
///
/// Slow and idle clients are cut off: the head of a request must arrive within 10 seconds and 32 KiB, and 256
/// connections are served at once; more wait.
pub async fn serve(listener: TcpListener, app: Router, stop: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = &mut stop => return,
            accepted = accepted => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        let app = app.clone();
        connections.spawn(async move {
            let _place = place;
            // Small answers should not wait for company; a socket that cannot do this still works.
            let _ = stream.set_nodelay(true);
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_buf_size(HEAD_BYTES);
            // How a browser leaves is of no interest; what it asked for has been dealt with.
            let _ = http
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app))
                .await;
        });
    }
}
