//! `call --sign-in` at a server that accepts only tokens of a real OpenID provider: a person goes through the
//! provider's pages step by step, and later calls reuse the tokens.
//!
//! Without node, the tests report a skip and test nothing.
#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not there"
)]

#[expect(dead_code, reason = "not every step is needed here")]
#[path = "../../server/tests/oauth/http_browser.rs"]
mod http_browser;

#[path = "call_sign_in/gateway.rs"]
mod gateway;
#[path = "call_sign_in/hostile.rs"]
mod hostile;
#[path = "call_sign_in/mixed_up.rs"]
mod mixed_up;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use axum::routing::get;
use http_browser::HttpBrowser;
use mcp_elicit_testkit::peers::{self, Listening};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};

#[derive(Clone)]
struct Calendar;

impl ServerHandler for Calendar {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text("nothing until noon")]).into())
    }
}

/// The server, and every token that it accepted.
struct Served {
    url: String,
    tokens: Arc<Mutex<Vec<String>>>,
    /// `true` while no token is accepted.
    is_shut: Arc<AtomicBool>,
    /// `true` while a tool call requires the scope `calendar.write`.
    wants_more: Arc<AtomicBool>,
    /// A token that is no longer accepted.
    revoked: Arc<Mutex<Option<String>>>,
}

/// Serves the calendar to clients whose token the provider knows.
async fn serve(provider: &Listening) -> Served {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let url = format!("{base}/mcp");
    let tokens: Arc<Mutex<Vec<String>>> = Arc::default();
    let (issuer, known) = (provider.url().to_owned(), Arc::clone(&tokens));
    let challenge =
        format!("Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource\"");
    let (is_shut, wants_more) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (shut, more) = (Arc::clone(&is_shut), Arc::clone(&wants_more));
    let revoked: Arc<Mutex<Option<String>>> = Arc::default();
    let ended = Arc::clone(&revoked);
    let guard = move |request: Request, next: Next| {
        let (issuer, known, challenge) = (issuer.clone(), Arc::clone(&known), challenge.clone());
        let shut = shut.load(Ordering::SeqCst);
        let more = more.load(Ordering::SeqCst);
        let ended = ended.lock().unwrap().clone();
        async move {
            let token = request.headers().get(AUTHORIZATION);
            let token = token.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
            let token = token.map(str::to_owned);
            let (request, is_call) = look_for_call(request).await;
            let more = more && is_call;
            let scopes = match &token {
                Some(token) if !shut && ended.as_ref() != Some(token) => {
                    scopes_of(&issuer, token).await
                }
                _ => None,
            };
            match (token, scopes) {
                (Some(_), Some(scopes)) if more && !scopes.contains("calendar.write") => {
                    let lacking = "Bearer error=\"insufficient_scope\", scope=\"calendar.write\"";
                    (StatusCode::FORBIDDEN, [(WWW_AUTHENTICATE, lacking)]).into_response()
                }
                (Some(token), Some(_)) => {
                    known.lock().unwrap().push(token);
                    next.run(request).await
                }
                _ => (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)]).into_response(),
            }
        }
    };
    let mcp = StreamableHttpService::new(
        || Ok(Calendar),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default(),
    );
    let metadata = json!({
        "resource": url, "authorization_servers": [provider.url()], "scopes_supported": ["calendar.read"]});
    let app = axum::Router::new()
        .nest_service("/mcp", mcp)
        .layer(from_fn(guard))
        .route(
            "/.well-known/oauth-protected-resource",
            get(move || std::future::ready(axum::Json(metadata.clone()))),
        );
    tokio::spawn(async move { axum::serve(listener, app).await });
    Served {
        url,
        tokens,
        is_shut,
        wants_more,
        revoked,
    }
}

/// Returns the request, and `true` if it calls a tool.
async fn look_for_call(request: Request) -> (Request, bool) {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let is_call = message["method"] == "tools/call";
    (Request::from_parts(head, body.into()), is_call)
}

/// Returns the scopes of a token, if the provider knows it.
async fn scopes_of(issuer: &str, token: &str) -> Option<String> {
    let asked = reqwest::Client::new()
        .post(format!("{issuer}/token/introspection"))
        .basic_auth("connect", Some("connect-secret"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("token={token}"))
        .send()
        .await
        .unwrap();
    let told: Value = serde_json::from_str(&asked.text().await.unwrap()).unwrap();
    let scopes = told["scope"].as_str().unwrap_or_default().to_owned();
    (told["active"] == true).then_some(scopes)
}

/// A call under way.
struct Called {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
}

fn call(served: &Served, state: &Path, more: &[&str]) -> Called {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .args([
            "call",
            "today",
            "--decline",
            "--sign-in",
            "--url",
            &served.url,
        ])
        .arg("--state")
        .arg(state)
        .args(more)
        // No browser can be found from here.
        .env("PATH", "/nonexistent")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    Called {
        child,
        stderr,
        said: String::new(),
    }
}

impl Called {
    /// Returns the link to the provider, and the address to which the provider redirects.
    fn link(&mut self) -> (String, String) {
        loop {
            let mut line = String::new();
            assert_ne!(
                self.stderr.read_line(&mut line).unwrap(),
                0,
                "{}",
                self.said
            );
            self.said.push_str(&line);
            if let Some(link) = line.trim().strip_prefix("sign in here: ") {
                let parsed = url::Url::parse(link).unwrap();
                let parameter = |name: &str| {
                    let mut pairs = parsed.query_pairs();
                    pairs
                        .find(|(known, _)| known == name)
                        .unwrap()
                        .1
                        .into_owned()
                };
                assert_eq!(parameter("code_challenge_method"), "S256");
                return (link.to_owned(), parameter("redirect_uri"));
            }
        }
    }

    /// Returns the exit code, stdout and stderr.
    fn ended(mut self) -> (Option<i32>, String, String) {
        self.stderr.read_to_string(&mut self.said).unwrap();
        let mut stdout = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        (self.child.wait().unwrap().code(), stdout, self.said)
    }
}

/// Runs a call that needs no person.
async fn call_alone(served: &Served, state: &Path) -> (Option<i32>, String, String) {
    let called = call(served, state, &[]);
    tokio::task::spawn_blocking(move || called.ended())
        .await
        .unwrap()
}

async fn provider(redirects: &[String]) -> Option<Listening> {
    let redirects = redirects.to_vec();
    let starting = tokio::task::spawn_blocking(move || peers::resource_provider(&redirects));
    starting.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_in_once_and_later_calls_are_let_in() {
    let somewhere = ["http://127.0.0.1/callback".to_owned()];
    let Some(provider) = provider(&somewhere).await else {
        return;
    };
    let mut walker = HttpBrowser::new();
    let served = serve(&provider).await;
    let state = tempfile::tempdir().unwrap();
    let mut called = call(&served, state.path(), &[]);
    let (link, back) = tokio::task::block_in_place(|| called.link());
    assert!(back.starts_with("http://127.0.0.1:"), "{back}");

    // A page that guesses has no effect, and the sign-in continues.
    let guess = walker.get(&format!("{back}?code=x&state=y")).await;
    assert_eq!(guess.status, StatusCode::BAD_REQUEST);
    let page = walker.get(&link).await;
    let came_back = walker.agree(page, "ana", &back).await;
    let page = walker.get(came_back.as_str()).await;
    assert!(page.body.contains("go back to the terminal"), "{page:?}");
    let (code, stdout, stderr) = tokio::task::block_in_place(|| called.ended());
    assert_eq!(
        (code, &*stdout),
        (Some(0), "nothing until noon\n"),
        "{stderr}"
    );

    let first = served.tokens.lock().unwrap().last().unwrap().clone();
    let kept = std::fs::read_dir(state.path().join("sign-in")).unwrap();
    let kept = kept.map(|entry| entry.unwrap().path());
    let kept: Vec<_> = kept
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&kept[0]).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(std::fs::read_to_string(&kept[0]).unwrap().contains(&first));

    // Tokens last 20 seconds, which counts as almost expired: the second call refreshes them without a person.
    let (code, stdout, again) = call_alone(&served, state.path()).await;
    assert_eq!(
        (code, &*stdout),
        (Some(0), "nothing until noon\n"),
        "{again}"
    );
    assert!(!again.contains("sign in here"), "{again}");
    let last = served.tokens.lock().unwrap().last().unwrap().clone();
    assert_ne!(first, last, "the token was refreshed");
    for said in [stderr, again] {
        assert!(!said.contains(&first) && !said.contains(&last), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_that_is_declined_is_no_error() {
    let somewhere = ["http://127.0.0.1/callback".to_owned()];
    let Some(provider) = provider(&somewhere).await else {
        return;
    };
    let mut walker = HttpBrowser::new();
    let served = serve(&provider).await;
    let state = tempfile::tempdir().unwrap();
    let mut called = call(&served, state.path(), &[]);
    let (link, back) = tokio::task::block_in_place(|| called.link());
    let page = walker.get(&link).await;
    let came_back = walker.refuse(page, &back).await;
    walker.get(came_back.as_str()).await;
    let (code, _, stderr) = tokio::task::block_in_place(|| called.ended());
    assert_eq!(code, Some(5), "{stderr}");
    assert!(
        stderr.contains("declined: the sign-in was declined"),
        "{stderr}"
    );
    assert!(served.tokens.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_registered_already_signs_in_by_its_id() {
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    };
    let registered = format!("http://127.0.0.1:{port}/callback");
    let Some(provider) = provider(std::slice::from_ref(&registered)).await else {
        return;
    };
    let mut walker = HttpBrowser::new();
    let served = serve(&provider).await;
    let state = tempfile::tempdir().unwrap();
    let port = port.to_string();
    let options = ["--client-id", "connect-public", "--callback-port", &port];
    let mut called = call(&served, state.path(), &options);
    let (link, back) = tokio::task::block_in_place(|| called.link());
    assert_eq!(back, registered);
    assert!(link.contains("client_id=connect-public"), "{link}");
    let page = walker.get(&link).await;
    let came_back = walker.agree(page, "ana", &back).await;
    walker.get(came_back.as_str()).await;
    let (code, stdout, stderr) = tokio::task::block_in_place(|| called.ended());
    assert_eq!(
        (code, &*stdout),
        (Some(0), "nothing until noon\n"),
        "{stderr}"
    );
}

/// Goes through the provider's pages until the call continues.
async fn agree_to(called: &mut Called, walker: &mut HttpBrowser) -> String {
    let (link, back) = tokio::task::block_in_place(|| called.link());
    let page = walker.get(&link).await;
    let came_back = walker.agree(page, "ana", &back).await;
    walker.get(came_back.as_str()).await;
    link
}

/// Makes a first call that signs in.
async fn signed_in(served: &Served, walker: &mut HttpBrowser, state: &Path) {
    let mut called = call(served, state, &["--scope", "calendar.read"]);
    agree_to(&mut called, walker).await;
    let (code, _, stderr) = tokio::task::block_in_place(|| called.ended());
    assert_eq!(code, Some(0), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_tokens_that_the_server_takes_no_more_are_forgotten() {
    let Some(provider) = provider(&["http://127.0.0.1/callback".to_owned()]).await else {
        return;
    };
    let mut walker = HttpBrowser::new();
    let served = serve(&provider).await;
    let state = tempfile::tempdir().unwrap();
    signed_in(&served, &mut walker, state.path()).await;
    let before = served.tokens.lock().unwrap().last().unwrap().clone();

    served.is_shut.store(true, Ordering::SeqCst);
    let mut called = call(&served, state.path(), &[]);
    let (link, back) = tokio::task::block_in_place(|| called.link());
    served.is_shut.store(false, Ordering::SeqCst);
    let page = walker.get(&link).await;
    let came_back = walker.agree(page, "ana", &back).await;
    walker.get(came_back.as_str()).await;
    let (code, stdout, stderr) = tokio::task::block_in_place(|| called.ended());
    assert_eq!(
        (code, &*stdout),
        (Some(0), "nothing until noon\n"),
        "{stderr}"
    );
    let now = served.tokens.lock().unwrap().last().unwrap().clone();
    assert_ne!(before, now);
    assert!(
        !stderr.contains(&before) && !stderr.contains(&now),
        "{stderr}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_another_scope_for_one_tool_gets_it() {
    let Some(provider) = provider(&["http://127.0.0.1/callback".to_owned()]).await else {
        return;
    };
    let mut walker = HttpBrowser::new();
    let served = serve(&provider).await;
    let state = tempfile::tempdir().unwrap();
    signed_in(&served, &mut walker, state.path()).await;

    served.wants_more.store(true, Ordering::SeqCst);
    let mut called = call(&served, state.path(), &[]);
    let link = agree_to(&mut called, &mut walker).await;
    let asked = url::Url::parse(&link).unwrap();
    let (_, scopes) = asked
        .query_pairs()
        .find(|(name, _)| name == "scope")
        .unwrap();
    for scope in ["calendar.read", "calendar.write"] {
        assert!(scopes.split(' ').any(|known| known == scope), "{scopes}");
    }
    let (code, stdout, stderr) = tokio::task::block_in_place(|| called.ended());
    assert_eq!(
        (code, &*stdout),
        (Some(0), "nothing until noon\n"),
        "{stderr}"
    );
    assert!(
        stderr.contains("requires more for this than was granted: calendar.write"),
        "{stderr}"
    );

    // The next call has the scope already.
    let (code, _, stderr) = call_alone(&served, state.path()).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!stderr.contains("sign in here"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_that_was_not_granted_is_asked_for_again() {
    let Some(provider) = provider(&["http://127.0.0.1/callback".to_owned()]).await else {
        return;
    };
    let mut walker = HttpBrowser::new();
    let served = serve(&provider).await;
    let state = tempfile::tempdir().unwrap();
    signed_in(&served, &mut walker, state.path()).await;
    let mut called = call(&served, state.path(), &["--scope", "calendar.write"]);
    let link = agree_to(&mut called, &mut walker).await;
    assert!(link.contains("calendar.write"), "{link}");
    let (code, _, stderr) = tokio::task::block_in_place(|| called.ended());
    assert_eq!(code, Some(0), "{stderr}");
}
