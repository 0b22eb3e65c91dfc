//! Gateways of a record in a real PostgreSQL database, and strangers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use http::{HeaderMap, Method, StatusCode};
use mcp_elicit_record::IdentityKey;
use mcp_elicit_record::store::{PostgresDatabase, PostgresReplica, PostgresSettings};
use mcp_elicit_testkit::postgres::PostgresServer;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::forward::{FORWARDED, ForwardRequest};
use super::keys::PeerKey;
use super::opening::OpeningKey;
use super::{Joining, Peers};
use crate::callers::ProvenCaller;
use crate::config::PeerSettings;

/// The interval at which something is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Longer than anything here takes, so that a hanging test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Joins the gateways of this database, with this key of identities.
async fn join(address: &str, identity: &IdentityKey) -> (Arc<Peers>, String) {
    let settings = PeerSettings {
        listen: "127.0.0.1:0".parse().unwrap(),
        address: None,
    };
    let joining = Joining::bind(&settings, identity).unwrap();
    let offer = joining.offer();
    let at = offer.address.clone();
    let database = PostgresDatabase::new(PostgresSettings::read(address).unwrap()).unwrap();
    let replica = PostgresReplica::join(database, Some(offer), None)
        .await
        .unwrap();
    (Arc::new(joining.among(Arc::new(replica))), at)
}

/// Forwards a request. Returns the status and the body of the response.
async fn forward(from: &Arc<Peers>, to: &str) -> (StatusCode, String) {
    let caller = ProvenCaller::of_subject("https://id.example", "ada", None);
    let request = ForwardRequest {
        method: Method::POST,
        path: "/mcp",
        headers: &HeaderMap::new(),
        credentials: &[],
        caller: &caller,
        body: Some("{}".into()),
    };
    let sent = from.forward(to, request).await;
    let response = sent.unwrap_or_else(|fault| fault.response());
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await;
    (status, String::from_utf8_lossy(&body.unwrap()).into_owned())
}

/// Makes a request with this key at the gateway with that one, and opens the connection as one of these gateways. Returns all
/// that comes back; empty if nothing does.
async fn stranger(at: &str, own: &PeerKey, of: &[u8], opened: (&OpeningKey, &[u8])) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let (opening, opened) = opened;
    opening.open(&mut stream, opened).await.unwrap();
    let tls = TlsConnector::from(Arc::new(own.client(of).unwrap()));
    let name = ServerName::try_from("gateway").unwrap();
    let Ok(mut stream) = tls.connect(name, stream).await else {
        return String::new();
    };
    let request = b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";
    let _refused = stream.write_all(request).await;
    let mut said = Vec::new();
    let _closed = stream.read_to_end(&mut said).await;
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_key_in_the_right_row_of_a_running_gateway_is_accepted() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let (identity, other) = (IdentityKey::random(), IdentityKey::random());
    let (identity, other) = (identity.unwrap(), other.unwrap());
    let (a, at_a) = join(&database.address, &identity).await;
    let taken = Router::new().fallback(|| async { "taken" });
    let serving = tokio::spawn(a.clone().serve(taken));
    // One that has joined since.
    let (b, _) = join(&database.address, &identity).await;
    let answered = forward(&b, a.name()).await;
    assert_eq!(answered, (StatusCode::OK, "taken".to_owned()));
    // One whose row was not made with the key of the gateways: neither goes to the other.
    let (false_one, _) = join(&database.address, &other).await;
    assert_eq!(forward(&false_one, a.name()).await.0, StatusCode::NOT_FOUND);
    assert_eq!(forward(&a, false_one.name()).await.0, StatusCode::NOT_FOUND);
    let refused = a.counts().received()[1].1;
    let of_a = a.key.public();
    for own in [&false_one.key, &PeerKey::new().unwrap()] {
        let said = stranger(&at_a, own, of_a, (&b.opening, of_a)).await;
        assert_eq!(said, "");
    }
    // One that listens at the address of another.
    let of_b = b.key.public();
    let said = stranger(&at_a, &b.key, of_b, (&b.opening, of_a)).await;
    assert_eq!(said, "");
    // The right key, but the answer of another record's gateway, or for another gateway.
    for opened in [(&false_one.opening, of_a), (&b.opening, of_b)] {
        assert_eq!(stranger(&at_a, &b.key, of_a, opened).await, "");
    }
    let counted = async {
        while a.counts().received()[1].1 < refused + 5 {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.unwrap();
    let right = stranger(&at_a, &b.key, of_a, (&b.opening, of_a)).await;
    assert!(right.ends_with("taken"), "{right}");
    // One that has ended.
    serving.abort();
    let name = a.name().to_owned();
    drop(a);
    let _ended = serving.await;
    assert_eq!(forward(&b, &name).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_that_connect_and_say_nothing_keep_no_gateway_out() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let identity = IdentityKey::random().unwrap();
    let (a, at_a) = join(&database.address, &identity).await;
    let taken = Router::new().fallback(|| async { "taken" });
    let serving = tokio::spawn(a.clone().serve(taken));
    let (b, _) = join(&database.address, &identity).await;
    // The other gateway is at the same address as they are.
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(TcpStream::connect(&at_a).await.unwrap());
    }
    let more = tokio::spawn(async move {
        loop {
            idle.push(TcpStream::connect(&at_a).await.unwrap());
            tokio::time::sleep(Duration::from_millis(10)).await;
            let oldest = idle.len().saturating_sub(300);
            idle.drain(..oldest);
        }
    });
    for _ in 0..5 {
        assert_eq!(forward(&b, a.name()).await.0, StatusCode::OK);
    }
    // Many requests at once wait for their turn to connect.
    let all = (0..60).map(|_| forward(&b, a.name()));
    let all = futures::future::join_all(all).await;
    assert!(
        all.iter().all(|(status, _)| *status == StatusCode::OK),
        "{all:?}"
    );
    more.abort();
    serving.abort();
}

/// An answer of the right length, and the beginning of a handshake of TLS.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_that_send_what_they_like_keep_no_gateway_out() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let identity = IdentityKey::random().unwrap();
    let (a, at_a) = join(&database.address, &identity).await;
    let taken = Router::new().fallback(|| async { "taken" });
    let serving = tokio::spawn(a.clone().serve(taken));
    let (b, _) = join(&database.address, &identity).await;
    let flood = async |at: String| {
        let mut open = VecDeque::new();
        for number in 0_usize.. {
            let mut stream = TcpStream::connect(&at).await.unwrap();
            // As many as the gateway accepts, and no more, however slow this machine is.
            let _closed = stream.read_exact(&mut [0; 16]).await;
            let sent = [&[0x16, 3, 1, 0, 200][..], &[7; 48]][number % 2];
            let _closed = stream.write_all(sent).await;
            open.push_back(stream);
            if open.len() > 50 {
                open.pop_front();
            }
        }
    };
    let mut floods = tokio::task::JoinSet::new();
    for _ in 0..8 {
        floods.spawn(flood(at_a.clone()));
    }
    for _ in 0..5 {
        let all = (0..100).map(|_| forward(&b, a.name()));
        let all = futures::future::join_all(all).await;
        assert!(
            all.iter().all(|(status, _)| *status == StatusCode::OK),
            "{all:?}"
        );
    }
    assert!(floods.try_join_next().is_none(), "they go on");
    floods.abort_all();
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_ends_its_forwarded_request() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let identity = IdentityKey::random().unwrap();
    let (a, _) = join(&database.address, &identity).await;
    let (begun, mut beginning) = tokio::sync::mpsc::unbounded_channel();
    // Each request waits until its client leaves, which closes its half of the channel.
    let waits = Router::new().fallback(move || {
        let begun = begun.clone();
        async move {
            let (held, ends) = tokio::sync::oneshot::channel::<()>();
            begun.send(ends).unwrap();
            let _held = held;
            std::future::pending::<()>().await;
        }
    });
    let serving = tokio::spawn(a.clone().serve(waits));
    let (b, _) = join(&database.address, &identity).await;
    let (from, to) = (b.clone(), a.name().to_owned());
    let forwarding = tokio::spawn(async move { forward(&from, &to).await });
    let ends = beginning.recv().await.unwrap();
    assert_eq!(b.forwarding(), 1);
    forwarding.abort();
    assert!(ends.await.is_err(), "its handler was dropped");
    assert!(forwarding.await.is_err());
    assert_eq!(b.forwarding(), 0);
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_connection_breaks_is_not_sent_again_and_too_many_are_not_sent() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let identity = IdentityKey::random().unwrap();
    let (a, _) = join(&database.address, &identity).await;
    let times = Arc::new(AtomicUsize::new(0));
    let counted = times.clone();
    let breaks = Router::new().fallback(move || {
        let counted = counted.clone();
        async move {
            let before = counted.fetch_add(1, Ordering::Relaxed);
            assert!(before > 9, "the task of the connection ends here");
        }
    });
    let serving = tokio::spawn(a.clone().serve(breaks));
    let (b, _) = join(&database.address, &identity).await;
    let (status, said) = forward(&b, a.name()).await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    assert!(
        said.contains("not known if the request was handled"),
        "{said}"
    );
    assert_eq!(times.load(Ordering::Relaxed), 1);
    let most = u32::try_from(FORWARDED).unwrap();
    let all = b.forwarding.clone().acquire_many_owned(most).await;
    let (status, said) = forward(&b, a.name()).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(said.contains("too many requests"), "{said}");
    assert_eq!(times.load(Ordering::Relaxed), 1);
    drop(all);
    let ended: Vec<_> = b
        .counts()
        .by_result()
        .filter(|(_, count)| *count > 0)
        .collect();
    assert_eq!(ended, [("too-many", 1), ("failed", 1)]);
    serving.abort();
}
