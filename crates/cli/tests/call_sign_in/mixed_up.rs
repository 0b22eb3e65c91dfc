//! Servers that mix up authorization servers, so that one gets what belongs to another.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;

use super::gateway::{Gateway, error_of};
use super::hostile::come_back;
use super::*;

/// A host with documents, a token endpoint, a registration endpoint, and a server at `/mcp`.
#[derive(Clone, Default)]
struct Site {
    base: String,
    /// The documents by path.
    documents: Arc<Mutex<BTreeMap<String, Value>>>,
    /// The requests to the endpoints: path, `Authorization` and body.
    posted: Arc<Mutex<Vec<String>>>,
}

const PROTECTED: &str = "/.well-known/oauth-protected-resource";
const PUBLISHED: &str = "/.well-known/oauth-authorization-server";
/// An address that belongs to no issuer.
const ELSEWHERE: &str = "/x/.well-known/z";

impl Site {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = Self {
            base: format!("http://{}", listener.local_addr().unwrap()),
            ..Self::default()
        };
        let mcp = StreamableHttpService::new(
            || Ok(Calendar),
            LocalSessionManager::default().into(),
            StreamableHttpServerConfig::default(),
        );
        let guard = |request: Request, next: Next| async move {
            if request.headers().contains_key(AUTHORIZATION) {
                return next.run(request).await;
            }
            (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")]).into_response()
        };
        let other = site.clone();
        let app = axum::Router::new()
            .nest_service("/mcp", mcp)
            .layer(from_fn(guard))
            .fallback(
                move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
                    std::future::ready(other.answer(&method, uri.path(), &headers, &body))
                },
            );
        tokio::spawn(async move { axum::serve(listener, app).await });
        site
    }

    fn answer(&self, method: &Method, path: &str, headers: &HeaderMap, body: &Bytes) -> Response {
        if method == Method::POST {
            let body = String::from_utf8_lossy(body);
            let sent = headers.get(AUTHORIZATION);
            let posted = format!("{path} {sent:?} {body}");
            self.posted.lock().unwrap().push(posted);
        }
        let base = &self.base;
        match (method, path) {
            (&Method::POST, "/register") => {
                let client = json!({"client_id": format!("client-of-{base}"), "redirect_uris": []});
                (StatusCode::CREATED, axum::Json(client)).into_response()
            }
            // They have expired at once.
            (&Method::POST, "/token") => axum::Json(json!({
                "access_token": "t", "token_type": "Bearer", "expires_in": 0, "refresh_token": format!("refresh-of-{base}")}))
            .into_response(),
            _ => match self.documents.lock().unwrap().get(path) {
                Some(document) => axum::Json(document.clone()).into_response(),
                None => StatusCode::NOT_FOUND.into_response(),
            },
        }
    }

    /// Returns metadata of this site as the issuer, with a path.
    fn metadata(&self, path: &str) -> Value {
        let base = &self.base;
        json!({
            "issuer": format!("{base}{path}"),
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        })
    }

    fn publish(&self, path: &str, document: Value) {
        self.documents
            .lock()
            .unwrap()
            .insert(path.to_owned(), document);
    }

    /// Names an authorization server for the server of this site.
    fn name(&self, authorization_server: &str) {
        let resource = format!("{}/mcp", self.base);
        self.publish(
            PROTECTED,
            json!({"resource": resource, "authorization_servers": [authorization_server]}),
        );
    }

    fn posted(&self) -> String {
        self.posted.lock().unwrap().join("\n")
    }

    fn served(&self) -> Served {
        Served {
            url: format!("{}/mcp", self.base),
            tokens: Arc::default(),
            is_shut: Arc::default(),
            wants_more: Arc::default(),
            revoked: Arc::default(),
        }
    }
}

/// A server, an authorization server with metadata, and a site that claims to be it: with the other's issuer and page, and
/// its own token endpoint.
async fn three() -> (Site, Site, Site) {
    let (server, honest, thief) = (
        Site::start().await,
        Site::start().await,
        Site::start().await,
    );
    honest.publish(PUBLISHED, honest.metadata(""));
    let mut claimed = honest.metadata("");
    claimed["token_endpoint"] = json!(format!("{}/token", thief.base));
    thief.publish(ELSEWHERE, claimed);
    server.name(&honest.base);
    (server, honest, thief)
}

async fn ended(called: Called) -> (Option<i32>, String, String) {
    tokio::task::spawn_blocking(move || called.ended())
        .await
        .unwrap()
}

/// Signs in at the authorization server that the server names.
async fn sign_in(server: &Site, state: &Path) {
    let mut first = call(&server.served(), state, &[]);
    come_back(&mut first).await;
    let (code, out, said) = ended(first).await;
    assert_eq!((code, &*out), (Some(0), "nothing until noon\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorization_server_that_claims_to_be_another_gets_no_code() {
    let (server, honest, thief) = three().await;
    let elsewhere = format!("{}{ELSEWHERE}", thief.base);
    server.name(&elsewhere);
    let of_thief = |name: &str, value: Value| {
        let mut claimed = honest.metadata("");
        claimed[name] = value;
        thief.publish(ELSEWHERE, claimed);
    };
    for (name, value) in [
        ("token_endpoint", json!(format!("{}/token", thief.base))),
        (
            "registration_endpoint",
            json!(format!("{}/register", thief.base)),
        ),
        (
            "authorization_endpoint",
            json!(format!("{}/authorize", thief.base)),
        ),
        ("issuer", Value::Null),
    ] {
        of_thief(name, value);
        for more in [
            &[][..],
            &["--issuer", &honest.base],
            &["--client-id", "corp"],
        ] {
            let state = tempfile::tempdir().unwrap();
            let (code, _, said) = ended(call(&server.served(), state.path(), more)).await;
            assert_eq!(code, Some(3), "{name}: {said}");
            assert!(!said.contains("sign in here"), "{name}: {said}");
            let expected = if name == "issuer" {
                "name no issuer"
            } else {
                "itself does not publish"
            };
            assert!(said.contains(expected), "{name}: {said}");
            assert!(said.contains("tell its operator"), "{name}: {said}");
        }
    }
    assert_eq!(
        (thief.posted(), honest.posted()),
        (String::new(), String::new())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorization_server_that_claims_to_be_another_gets_no_refresh_token() {
    let (server, honest, thief) = three().await;
    let state = tempfile::tempdir().unwrap();
    sign_in(&server, state.path()).await;
    assert!(honest.posted().contains("grant_type=refresh_token"));

    server.name(&format!("{}{ELSEWHERE}", thief.base));
    let (code, _, said) = call_alone(&server.served(), state.path()).await;
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("itself does not publish"), "{said}");
    let refused = tokio::task::block_in_place(|| {
        Gateway::start(&server.served(), state.path(), &[]).initialize()
    });
    let said = error_of(&refused);
    assert!(
        said.contains("itself does not publish") && said.contains("--check"),
        "{refused}"
    );
    assert_eq!(thief.posted(), "");

    // The tokens are kept: the server may name its authorization server again.
    server.name(&honest.base);
    let (code, _, said) = call_alone(&server.served(), state.path()).await;
    assert_eq!(code, Some(0), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_goes_only_to_the_issuer_that_issued_it() {
    let (server, honest, other) = three().await;
    other.publish(PUBLISHED, other.metadata(""));
    // A server that publishes nothing any more has the endpoints of 2025-03-26 itself; another names another issuer.
    for (named, asked) in [(None, &server), (Some(&other), &other)] {
        let state = tempfile::tempdir().unwrap();
        server.name(&honest.base);
        sign_in(&server, state.path()).await;
        match named {
            Some(named) => server.name(&named.base),
            None => server.documents.lock().unwrap().clear(),
        }
        let refused = tokio::task::block_in_place(|| {
            Gateway::start(&server.served(), state.path(), &[]).initialize()
        });
        let said = error_of(&refused);
        assert!(
            said.contains(&honest.base) && said.contains("must sign in again"),
            "{refused}"
        );
        assert!(said.contains("--check"), "{refused}");
        assert_eq!(asked.posted(), "");

        // The person signs in there, and its own tokens are refreshed there.
        sign_in(&server, state.path()).await;
        let (code, _, said) = call_alone(&server.served(), state.path()).await;
        assert_eq!(code, Some(0), "{said}");
        let posted = asked.posted();
        assert!(posted.contains("grant_type=refresh_token"), "{posted}");
        let of_other =
            url::form_urlencoded::byte_serialize(honest.base.as_bytes()).collect::<String>();
        assert!(
            !posted.contains(&of_other) && !posted.contains(&honest.base),
            "{posted}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_that_an_issuer_publishes_in_a_usual_place_are_used() {
    for (named, at, issuer) in [
        ("", "/.well-known/openid-configuration", "/"),
        ("/", PUBLISHED, ""),
        ("/a", "/.well-known/oauth-authorization-server/a", "/a"),
        ("/a/", "/.well-known/oauth-authorization-server/a", "/a/"),
        ("/a", "/a/.well-known/openid-configuration", "/a"),
        ("/a", PUBLISHED, "/a"),
        (
            "/a/.well-known/oauth-authorization-server",
            "/a/.well-known/oauth-authorization-server",
            "/a",
        ),
        (
            "/a/.well-known/openid-configuration",
            "/a/.well-known/openid-configuration",
            "/a",
        ),
    ] {
        let (server, issuing) = (Site::start().await, Site::start().await);
        issuing.publish(at, issuing.metadata(issuer));
        server.name(&format!("{}{named}", issuing.base));
        let state = tempfile::tempdir().unwrap();
        sign_in(&server, state.path()).await;
        let (code, _, said) = call_alone(&server.served(), state.path()).await;
        assert_eq!(code, Some(0), "{named} {at}: {said}");
    }
}
