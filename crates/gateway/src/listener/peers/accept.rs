//! Connections of other gateways. Nothing of one is read before its key is found in the row of a running gateway.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use mcp_elicit_record::peers::Peer;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::handshakes::{FINISH, Handshake, Handshakes, OPEN};
use super::{HEAD, Peers};

/// The most connections of gateways at once; more wait to be accepted.
const CONNECTIONS: usize = 4_096;
/// The time limit for the head of the request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// The pause after an error of the listener.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

impl Peers {
    /// Serves the connections of other gateways, until it is dropped.
    ///
    /// # Errors
    /// If TLS cannot be used.
    pub(crate) async fn serve(self: Arc<Self>, app: Router) -> Result<(), rustls::Error> {
        let Some(listener) = self.take_listener() else {
            return Ok(());
        };
        let server = Arc::new(Acceptor {
            tls: TlsAcceptor::from(Arc::new(self.key.server()?)),
            peers: self,
            app,
            connections: Semaphore::new(CONNECTIONS),
            looked: Mutex::default(),
        });
        let handshakes = Arc::new(Handshakes::default());
        let mut connections = JoinSet::new();
        loop {
            // What has been accepted may take it first, and then waits.
            let Ok(_room) = server.connections.acquire().await.map(drop) else {
                return Ok(());
            };
            match listener.accept().await {
                Ok((stream, from)) => {
                    let server = server.clone();
                    let handshake = handshakes.begin(from.ip());
                    connections.spawn(async move { server.serve_one(stream, handshake).await });
                }
                Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
            }
            // Removes finished tasks from the set.
            while connections.try_join_next().is_some() {}
        }
    }
}

struct Acceptor {
    peers: Arc<Peers>,
    tls: TlsAcceptor,
    app: Router,
    /// The free connections of gateways.
    connections: Semaphore,
    /// Held while the record is looked at for an unknown key.
    looked: Mutex<()>,
}

impl Acceptor {
    async fn serve_one(&self, stream: TcpStream, handshake: Handshake) {
        let opened = handshake.within(OPEN, self.opened(stream)).await;
        let known = match opened {
            Some(stream) => {
                handshake.has_opened();
                handshake.within(FINISH, self.known(stream)).await
            }
            None => None,
        };
        drop(handshake);
        let Some((peer, stream)) = known else {
            self.peers.counts.refused();
            tracing::debug!("a connection that is not another gateway's was closed");
            return;
        };
        let Ok(_counted) = self.connections.acquire().await else {
            return;
        };
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(HEAD)
            .keep_alive(false);
        let service = TowerToHyperService::new(self.app.clone());
        // An error only means that the other gateway, or its client, has disconnected.
        tokio::select! {
            _ = http.serve_connection(TokioIo::new(stream), service) => {}
            () = self.peers.ended(peer.name()) => {}
        }
    }

    /// Returns the stream if its other end has a key that only gateways have.
    async fn opened(&self, mut stream: TcpStream) -> Option<TcpStream> {
        stream.set_nodelay(true).ok()?;
        let own = self.peers.key.public();
        let is_opened = self.peers.opening.is_opened(&mut stream, own);
        is_opened.await.ok()?.then_some(stream)
    }

    /// Returns the gateway at the other end; `None` for any other.
    async fn known(&self, stream: TcpStream) -> Option<(Peer, TlsStream<TcpStream>)> {
        let stream = self.tls.accept(stream).await.ok()?;
        let key = stream.get_ref().1.peer_certificates()?.first()?;
        let peer = self.peer(key.as_ref()).await?;
        Some((peer, stream))
    }

    /// Returns the running gateway with this key.
    async fn peer(&self, key: &[u8]) -> Option<Peer> {
        let gateways = &self.peers.gateways;
        let find = || {
            let peers = gateways.peers();
            peers.iter().find(|peer| peer.key() == key).cloned()
        };
        if let Some(peer) = find() {
            return Some(peer);
        }
        // It may have just joined. Strangers share one look at a time.
        let _one_at_a_time = self.looked.lock().await;
        if let Some(peer) = find() {
            return Some(peer);
        }
        gateways.refresh().await;
        find()
    }
}
