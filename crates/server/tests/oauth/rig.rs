//! A server with pages, a real provider, and the project's client.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::routing::get;
use http::header::SET_COOKIE;
use mcp_elicit_client::responder::Callback;
use mcp_elicit_client::{
    CallError, CallOptions, ClientSettings as Answers, ConnectOptions, Connection,
    ElicitingClient as Answering, Target,
};
use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::wire::{Capability, Revision};
use mcp_elicit_server::connect::oauth::{Grant, Provider};
use mcp_elicit_server::connect::{CannotSave, Connect, VisitorSession};
use mcp_elicit_server::seal::Keys;
use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, ServerSettings};
use mcp_elicit_testkit::peers::{self, Listening};
use rmcp::model::{
    CallToolResult, ClientCapabilities, ClientConfig, Implementation, ServerCapabilities,
    ServerConfig,
};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ClientHandler, ServerHandler, tool, tool_handler, tool_router};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The way in which visitors of the pages sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Login {
    /// At the server itself, which seals a session cookie.
    Cookie,
    /// At the provider.
    OpenId,
}

type Vault = Arc<Mutex<Vec<(String, Grant)>>>;

/// A call under way.
type Called = JoinHandle<Result<CallToolResult, CallError>>;

pub(crate) struct Rig {
    pub(crate) at: String,
    pub(crate) connect: Connect,
    pub(crate) provider: Listening,
    pub(crate) vault: Vault,
    later: Arc<AtomicU64>,
}

#[derive(Clone)]
struct Calendar {
    connect: Connect,
    vault: Vault,
}

impl Calendar {
    fn has(&self, user: &str) -> bool {
        let vault = self.vault.lock().unwrap();
        vault.iter().any(|(owner, _)| owner == user)
    }
}

#[tool_router]
impl Calendar {
    #[tool(description = "Waits in the call until the account is connected")]
    async fn visit(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let why = "So that I can read what is in it";
        self.connect.visit(&elicit, "Calendar", why).await?;
        Ok("nothing until noon".into())
    }

    #[tool(description = "Waits in the call until a key is left")]
    async fn secret(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let why = "So that I can read your notes";
        self.connect.visit(&elicit, "Notes", why).await?;
        Ok("noted".into())
    }

    #[tool(description = "Turns the call away until the account is connected")]
    async fn require(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let user = elicit.principal().unwrap().to_owned();
        if !elicit.step("has", || async { self.has(&user) }).await? {
            let why = "So that I can read what is in it";
            self.connect.require(&elicit, "Calendar", why).await?;
        }
        Ok("nothing until noon".into())
    }
}

#[tool_handler]
impl ServerHandler for Calendar {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

impl Rig {
    /// Returns `None`, and reports the skip, if there is no node for the provider.
    pub(crate) async fn start(login: Login) -> Option<Self> {
        Self::with(login, |provider| provider.secret("connect-secret")).await
    }

    pub(crate) async fn with(login: Login, change: impl Fn(Provider) -> Provider) -> Option<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = format!("http://{}", listener.local_addr().unwrap());
        let base = format!("{at}/connect");
        let redirects = [
            format!("{base}/back/Calendar"),
            format!("{base}/back/The%20others"),
            format!("{base}/signed-in"),
        ];
        let starting = tokio::task::spawn_blocking(move || peers::openid_provider(&redirects));
        let provider = starting.await.unwrap()?;
        let here = || {
            let provider = Provider::issuer(provider.url(), "connect").unwrap();
            change(provider.scopes(["openid", "calendar.read"]))
        };
        let (vault, later) = (Vault::default(), Arc::new(AtomicU64::new(0)));
        let keys = Keys::per_process().unwrap();
        let session = VisitorSession::new(keys.clone(), &base);
        let visitor = session.visitor();
        let (store, clock) = (Arc::clone(&vault), Arc::clone(&later));
        let connect = Connect::builder("Planner", &base, move |parts| {
            if login == Login::Cookie {
                visitor(parts)
            } else {
                None
            }
        })
        .unwrap()
        .keys(keys)
        .clock(move || now() + Duration::from_secs(clock.load(Ordering::SeqCst)))
        .grant("Calendar", here(), move |user, grant| {
            let full = store.lock().unwrap().len() >= 2;
            if !full {
                store.lock().unwrap().push((user, grant));
            }
            let full = full.then(|| CannotSave("There is no room for a third account".into()));
            std::future::ready(full.map_or(Ok(()), Err))
        })
        .grant("The others", here(), |_, _| {
            std::future::ready(Err(CannotSave("never".into())))
        })
        .secret("Notes", "API key", |_, secret| {
            let known = secret.reveal() == "right";
            let wrong = CannotSave("Notes does not know this key".into());
            std::future::ready(known.then_some(()).ok_or(wrong))
        });
        let connect = match login {
            Login::Cookie => connect,
            Login::OpenId => connect
                .sign_in(here(), |subject| Some(subject.subject().to_owned()))
                .unwrap(),
        }
        .build();
        assert_eq!(
            connect.redirect_uri("The others"),
            format!("{base}/back/The%20others")
        );
        let rig = Self {
            at,
            connect,
            provider,
            vault,
            later,
        };
        rig.serve(listener, session);
        Some(rig)
    }

    fn serve(&self, listener: tokio::net::TcpListener, session: VisitorSession) {
        let calendar = Calendar {
            connect: self.connect.clone(),
            vault: Arc::clone(&self.vault),
        };
        // The principal is the name that the client reports: a test has no tokens.
        let settings = ServerSettings::default()
            .principal(|context| context.client_info().map(|client| client.name));
        let mcp = StreamableHttpService::new(
            move || Ok(calendar.clone().eliciting(settings.clone())),
            LocalSessionManager::default().into(),
            StreamableHttpServerConfig::default(),
        );
        let app = axum::Router::new()
            .route("/login/{name}", get(sign_in))
            .with_state(session)
            .nest("/connect", self.connect.router())
            .nest_service("/mcp", mcp);
        tokio::spawn(async move { axum::serve(listener, app).await });
    }

    /// Advances the time for links and sessions.
    pub(crate) fn wait(&self, seconds: u64) {
        self.later.fetch_add(seconds, Ordering::SeqCst);
    }

    /// Returns the address to which the provider redirects browsers.
    pub(crate) fn back(&self) -> String {
        self.connect.redirect_uri("Calendar")
    }

    /// Calls `tool` here, see [`call_at`].
    pub(crate) async fn call(
        &self,
        user: &str,
        revision: Revision,
        tool: &'static str,
    ) -> (Called, String) {
        call_at(&self.at, user, revision, tool).await
    }

    /// Checks that the only stored token belongs to `user`, and that the provider accepts it.
    pub(crate) async fn has_token_of(&self, user: &str) {
        let token = {
            let vault = self.vault.lock().unwrap();
            let [(owner, grant)] = vault.as_slice() else {
                panic!("{vault:?}");
            };
            assert_eq!(owner, user);
            assert_eq!(grant.subject().unwrap().subject(), user);
            assert_eq!(grant.subject().unwrap().issuer(), self.provider.url());
            assert_eq!(grant.scopes(), ["openid", "calendar.read"]);
            grant.access_token().to_owned()
        };
        let client = reqwest::Client::new();
        let me = client
            .get(format!("{}/me", self.provider.url()))
            .bearer_auth(&token)
            .send()
            .await
            .unwrap();
        let me: serde_json::Value = serde_json::from_slice(&me.bytes().await.unwrap()).unwrap();
        assert_eq!(me["sub"], user);
        assert!(!format!("{:?}", self.vault).contains(&token));
    }

    pub(crate) fn has_nothing(&self) {
        let vault = self.vault.lock().unwrap();
        assert!(vault.is_empty(), "{vault:?}");
    }
}

/// Calls `tool` of the server at `at` as `user`, with the project's client. Returns the call, and the link that it asks
/// to open.
pub(crate) async fn call_at(
    at: &str,
    user: &str,
    revision: Revision,
    tool: &'static str,
) -> (Called, String) {
    let (sender, mut links) = mpsc::unbounded_channel();
    let browse = Callback::new(Capability::URL, move |question| {
        sender.send(question.url().unwrap().to_owned()).unwrap();
        std::future::ready(Ok(Outcome::Visit.into()))
    });
    let answering = Answering::new(
        Caller(user.to_owned()),
        "planner",
        Answers::default().responder(browse),
    );
    let options = ConnectOptions::default().revision(revision);
    let target = Target::Url(format!("{at}/mcp"));
    let connection = Connection::open(&target, answering, &options)
        .await
        .unwrap();
    let call = tokio::spawn(async move {
        let options = CallOptions::default();
        let result = connection
            .call_tool(tool, serde_json::Map::new(), &options)
            .await;
        connection.close().await;
        result
    });
    let link = links.recv().await.unwrap();
    (call, link)
}

/// The author's own sign-in, as short as possible.
async fn sign_in(
    State(session): State<VisitorSession>,
    Path(name): Path<String>,
) -> impl IntoResponse {
    let cookie = session.set_cookie(&name).unwrap();
    ([(SET_COOKIE, cookie)], "signed in")
}

#[expect(clippy::disallowed_methods, reason = "a test of real time")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns the text of a call's result, and `true` if it is an error.
pub(crate) fn said(result: &CallToolResult) -> (String, bool) {
    let texts = result
        .content
        .iter()
        .filter_map(|content| content.as_text());
    let text = texts.map(|text| text.text.clone()).collect();
    (text, result.is_error.unwrap_or(false))
}

struct Caller(String);

impl ClientHandler for Caller {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new(self.0.clone(), "1");
        ClientConfig::new(ClientCapabilities::default(), name)
    }
}
