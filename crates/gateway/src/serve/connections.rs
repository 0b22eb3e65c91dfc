//! The listener's connections: how many there are, and how long a client may take to say what it wants.

use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Bounds on connections.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at once; more wait to be accepted.
    pub connections: usize,
    /// Connections at once from one address of another machine; more are closed.
    pub of_address: usize,
    /// The time that the head of a request may take, also of the next one on a connection that is kept.
    pub head: Duration,
    /// The most bytes of a request's head.
    pub head_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 2_048,
            of_address: 256,
            head: Duration::from_mins(1),
            head_bytes: 64 * 1024,
        }
    }
}

/// The time to wait when no connection can be taken, as when the process has no file descriptors left.
const BREATH: Duration = Duration::from_millis(100);

/// Connections by the machine that they come from.
#[derive(Default)]
struct Addresses(Mutex<HashMap<IpAddr, usize>>);

/// One counted connection.
struct Counted {
    of: Arc<Addresses>,
    from: IpAddr,
}

impl Addresses {
    fn counts(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection; `None` where its machine has too many.
    fn count(self: &Arc<Self>, from: IpAddr, most: usize) -> Option<Counted> {
        let mut counts = self.counts();
        let count = counts.entry(from).or_default();
        if *count >= most && !from.is_loopback() {
            return None;
        }
        *count += 1;
        drop(counts);
        let of = self.clone();
        Some(Counted { of, from })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.of.counts();
        if let Some(count) = counts.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.from);
            }
        }
    }
}

/// Serves `app` at `listener` until `stop` is done, then drops what is still connected.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    bounds: Bounds,
    stop: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(bounds.connections));
    let addresses = Arc::new(Addresses::default());
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
        let Ok((stream, from)) = accepted else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        let Some(counted) = addresses.count(from.ip(), bounds.of_address) else {
            continue;
        };
        let app = app.clone();
        connections.spawn(async move {
            let (_place, _counted) = (place, counted);
            // A question on a stream must not wait for company; a socket that cannot do this still works.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection keeps its delay");
            }
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(bounds.head)
                .max_buf_size(bounds.head_bytes);
            // How a client leaves is told by its streams.
            let _ = http
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app))
                .await;
        });
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    async fn served(bounds: Bounds) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let app = Router::new().route("/", get(|| async { "here" }));
        tokio::spawn(serve(listener, app, bounds, std::future::pending()));
        at
    }

    async fn rest(mut stream: TcpStream) -> String {
        let mut said = String::new();
        let read = tokio::time::timeout(Duration::from_mins(1), stream.read_to_string(&mut said));
        read.await.expect("the connection ends").unwrap();
        said
    }

    #[tokio::test]
    async fn a_head_that_does_not_come_ends_the_connection() {
        let head = Duration::from_millis(50);
        let at = served(Bounds {
            head,
            ..Bounds::default()
        })
        .await;
        let mut slow = TcpStream::connect(at).await.unwrap();
        slow.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
        let said = rest(slow).await;
        assert!(!said.contains("here"), "{said}");
    }

    #[tokio::test]
    async fn a_connection_beyond_the_bound_waits_until_another_ends() {
        let connections = 1;
        let at = served(Bounds {
            connections,
            ..Bounds::default()
        })
        .await;
        let first = TcpStream::connect(at).await.unwrap();
        let mut second = TcpStream::connect(at).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
        second.write_all(request).await.unwrap();
        drop(first);
        assert!(rest(second).await.ends_with("here"));
    }

    #[test]
    fn a_machine_has_so_many_connections_and_this_one_all() {
        let addresses = Arc::new(Addresses::default());
        let far: IpAddr = "192.0.2.1".parse().unwrap();
        let first = addresses.count(far, 1);
        assert!(first.is_some() && addresses.count(far, 1).is_none());
        drop(first);
        assert!(addresses.counts().is_empty());
        let here: IpAddr = "127.0.0.1".parse().unwrap();
        let both = [addresses.count(here, 1), addresses.count(here, 1)];
        assert!(both.iter().all(Option::is_some));
    }
}
