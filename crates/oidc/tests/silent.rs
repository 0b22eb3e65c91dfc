//! Providers that accept connections and send nothing, too little or too much.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's")]

use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_oidc::{AccessTokenError, OidcError, Provider, TokenVerifier};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

/// Longer than any one request may take.
const LONG: Duration = Duration::from_secs(25);

/// The way in which a provider responds to a request that is not for its metadata.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// No response.
    Silent,
    /// A byte of the head now and then.
    TricklesHead,
    /// A byte of the body now and then.
    TricklesBody,
    /// A body that never ends.
    Endless,
}

const MANNERS: [Manner; 4] = [
    Manner::Silent,
    Manner::TricklesHead,
    Manner::TricklesBody,
    Manner::Endless,
];

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

/// Starts a provider that serves only its metadata, if that. Returns its issuer.
async fn provider(manner: Manner, has_metadata: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let name = issuer.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(respond(stream, manner, has_metadata, name.clone()));
        }
    });
    issuer
}

async fn respond(mut stream: TcpStream, manner: Manner, has_metadata: bool, issuer: String) {
    let mut request = vec![0; 4_096];
    let read = stream.read(&mut request).await.unwrap_or(0);
    let is_for_metadata = String::from_utf8_lossy(&request[..read]).contains("/.well-known/");
    let _gone = if is_for_metadata && has_metadata {
        let at = |path: &str| format!("{issuer}/{path}");
        let metadata = json!({
            "issuer": issuer, "authorization_endpoint": at("authorize"), "token_endpoint": at("token"), "jwks_uri": at("keys"),
            "introspection_endpoint": at("about"), "userinfo_endpoint": at("who"),
        });
        let metadata = metadata.to_string();
        let length = metadata.len();
        let response =
            format!("{HEAD}Connection: close\r\nContent-Length: {length}\r\n\r\n{metadata}");
        stream.write_all(response.as_bytes()).await
    } else {
        respond_badly(&mut stream, manner).await
    };
}

async fn respond_badly(stream: &mut TcpStream, manner: Manner) -> std::io::Result<()> {
    match manner {
        Manner::Silent => std::future::pending().await,
        Manner::TricklesHead => {
            stream.write_all(HEAD.as_bytes()).await?;
            loop {
                sleep(Duration::from_secs(1)).await;
                stream.write_all(b"X: y\r\n").await?;
            }
        }
        Manner::TricklesBody => {
            let head = format!("{HEAD}Content-Length: 100000\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            loop {
                sleep(Duration::from_secs(1)).await;
                stream.write_all(b" ").await?;
            }
        }
        Manner::Endless => {
            let head = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
            loop {
                stream.write_all(chunk.as_bytes()).await?;
            }
        }
    }
}

fn at(issuer: &str) -> Provider {
    Provider::issuer(issuer, "gateway").unwrap().secret("s")
}

fn now() -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000)
}

#[tokio::test(start_paused = true)]
async fn many_that_wait_for_the_metadata_of_a_silent_provider_wait_once() {
    for manner in MANNERS {
        let provider = at(&provider(manner, false).await);
        let asked = (0..20).map(|_| provider.metadata(0));
        let all = timeout(LONG, futures::future::join_all(asked)).await;
        let all = all.unwrap_or_else(|_| panic!("{manner:?}: one waited for the others"));
        for found in all {
            assert!(
                matches!(found, Err(OidcError::Unreachable(_))),
                "{manner:?}: {found:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_request_to_a_provider_that_says_nothing_ends() {
    for manner in MANNERS {
        let issuer = provider(manner, true).await;
        let verifier = TokenVerifier::new(at(&issuer));
        let about = timeout(LONG, verifier.introspect("opaque", &["r"], now())).await;
        assert!(
            matches!(about, Ok(Err(AccessTokenError::Unavailable { .. }))),
            "introspection, {manner:?}: {about:?}"
        );
        // {"alg":"RS256"}, of this issuer.
        let claims = json!({"iss": issuer, "aud": "r", "sub": "s", "exp": 1_800_000_300_u64});
        let part = |text: String| data_encoding::BASE64URL_NOPAD.encode(text.as_bytes());
        let token = format!(
            "{}.{}.{}",
            part(json!({"alg": "RS256"}).to_string()),
            part(claims.to_string()),
            part("signature".to_owned())
        );
        let keys = timeout(LONG, verifier.verify(&token, &["r"], now())).await;
        assert!(
            matches!(keys, Ok(Err(AccessTokenError::Unavailable { .. }))),
            "keys, {manner:?}: {keys:?}"
        );
        let provider = at(&issuer);
        let exchanged = timeout(LONG, provider.exchange_token("t", "r", &[], now())).await;
        assert!(
            matches!(exchanged, Ok(Err(OidcError::Unreachable(_)))),
            "token, {manner:?}: {exchanged:?}"
        );
    }
}
