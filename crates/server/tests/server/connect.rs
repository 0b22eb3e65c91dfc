//! A secret that only the right person can enter, and the question that waits for it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::body::Body;
use http::{Request, Response, StatusCode};
use mcp_elicit_server::connect::{CannotSave, Connect};
use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, ElicitingServer, ServerSettings};
use rmcp::model::{CallToolRequestParams, CallToolResult, ServerCapabilities, ServerConfig};
use rmcp::service::ServiceError;
use rmcp::{ErrorData, ServerHandler, tool, tool_handler, tool_router};
use tower::ServiceExt;

use crate::harness::{Act, Clock, ScriptedUser, said};

type Stored = Arc<Mutex<Vec<(String, String)>>>;

#[derive(Clone)]
struct Accounts(Connect);

#[tool_router]
impl Accounts {
    #[tool(description = "Wants a connected account before anything else")]
    async fn require(&self, elicit: Elicit) -> Result<String, ElicitError> {
        self.0
            .require(&elicit, "Example", "So that I can read your calendar")
            .await?;
        Ok("connected".into())
    }

    #[tool(description = "Connects an account, then asks something else")]
    async fn connect(&self, elicit: Elicit) -> Result<String, ElicitError> {
        self.0
            .visit(&elicit, "Example", "So that I can read your calendar")
            .await?;
        elicit.confirm("Go on?").await?;
        Ok("connected".into())
    }
}

#[tool_handler]
impl ServerHandler for Accounts {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

fn pages(clock: &Clock, stored: &Stored) -> Connect {
    let (clock, stored) = (clock.clone(), Arc::clone(stored));
    Connect::builder("Calendar", "https://mcp.example.org/connect/", |parts| {
        parts
            .headers
            .get("x-user")
            .and_then(|user| user.to_str().ok())
            .map(str::to_owned)
    })
    .unwrap()
    .clock(move || clock.now())
    .secret("Example", "API key", move |principal, secret| {
        let stored = Arc::clone(&stored);
        async move {
            if secret.reveal() == "wrong" {
                return Err(CannotSave("Example does not know this key".into()));
            }
            stored
                .lock()
                .unwrap()
                .push((principal, secret.reveal().to_owned()));
            Ok(())
        }
    })
    .build()
}

fn server(connect: &Connect, clock: &Clock) -> ElicitingServer<Accounts> {
    let settings: ServerSettings = clock
        .settings()
        .principal(|context| context.client_info().map(|info| info.name));
    Accounts(connect.clone()).eliciting(settings)
}

/// Opens the page at `url` as `user`, and enters `secret` if there is one. Returns the response.
async fn open(
    connect: &Connect,
    url: &str,
    user: Option<&str>,
    secret: Option<&str>,
) -> (StatusCode, String) {
    let path = url.strip_prefix("https://mcp.example.org/connect").unwrap();
    let mut request = Request::builder().uri(path);
    if let Some(user) = user {
        request = request.header("x-user", user);
    }
    let request = match secret {
        None => request.body(Body::empty()),
        Some(secret) => request
            .method("POST")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Body::from(format!("secret={secret}"))),
    };
    let response: Response<Body> = connect.router().oneshot(request.unwrap()).await.unwrap();
    let status = response.status();
    assert!(
        response.headers()["content-security-policy"]
            .to_str()
            .unwrap()
            .contains("default-src 'none'")
    );
    let body = axum::body::to_bytes(response.into_body(), 1 << 20)
        .await
        .unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// Pages, the secrets entered on them, and a person who is asked to visit one.
struct Scene {
    clock: Clock,
    stored: Stored,
    connect: Connect,
    person: ScriptedUser,
}

impl Scene {
    /// Lets `name` agree to the visit, and then runs `then` with the link.
    fn of<F, Fut>(revision: &'static str, name: &'static str, then: F) -> Self
    where
        F: Fn(Connect, Clock, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let (clock, stored) = (Clock::new(), Stored::default());
        let connect = pages(&clock, &stored);
        let (at, time) = (connect.clone(), clock.clone());
        let then = move |url| then(at.clone(), time.clone(), url);
        Self {
            person: visitor(revision, name, &clock, then),
            clock,
            stored,
            connect,
        }
    }

    async fn call(&self) -> Result<CallToolResult, ErrorData> {
        let server = server(&self.connect, &self.clock);
        self.person.call_under(server, "connect").await
    }

    fn stored(&self) -> Vec<(String, String)> {
        self.stored.lock().unwrap().clone()
    }
}

fn visitor<F, Fut>(
    revision: &'static str,
    name: &'static str,
    clock: &Clock,
    then: F,
) -> ScriptedUser
where
    F: Fn(String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let mut person = ScriptedUser::answering(revision, []).called(name);
    person.clock = clock.clone();
    let seen = person.clone();
    person.always(move |message| {
        if message == "Go on?" {
            return Act::Accept(serde_json::json!({ "confirm": true }));
        }
        let url = seen.asked().last().unwrap()["url"]
            .as_str()
            .unwrap()
            .to_owned();
        tokio::spawn(then(url));
        Act::Bare
    })
}

#[tokio::test(start_paused = true)]
async fn the_call_goes_on_when_the_secret_is_stored() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let scene = Scene::of(revision, "ada", |connect, _, url| async move {
            tokio::time::sleep(Duration::from_secs(2 * 60)).await;
            let (status, page) = open(&connect, &url, Some("ada"), None).await;
            assert_eq!(status, StatusCode::OK);
            for words in [
                "Calendar</bdi>",
                "asks you to connect",
                "signed in as <bdi dir=\"auto\">ada",
                "So that I can read your calendar",
                "API key",
            ] {
                assert!(page.contains(words), "{words}: {page}");
            }
            assert_eq!(
                open(&connect, &url, Some("ada"), Some("wrong")).await.0,
                StatusCode::UNPROCESSABLE_ENTITY
            );
            assert_eq!(
                open(&connect, &url, Some("ada"), Some("s3cret")).await.0,
                StatusCode::OK
            );
            let (status, page) = open(&connect, &url, Some("ada"), Some("other")).await;
            assert_eq!(status, StatusCode::GONE, "{page}");
        });
        let result = scene.call().await.unwrap();
        assert_eq!(said(&result), ("connected".into(), false), "{revision}");
        assert_eq!(scene.stored(), [("ada".to_owned(), "s3cret".to_owned())]);
        let told = scene.person.told();
        if revision == "2025-11-25" {
            let (method, params) = &told[0];
            assert_eq!(method, "notifications/elicitation/complete");
            assert_eq!(
                params["elicitationId"],
                scene.person.asked()[0]["elicitationId"]
            );
        } else {
            assert!(told.is_empty(), "{told:?}");
        }
    }
}

/// A "no" on the page is a person's action, and the call ends with it.
#[tokio::test(start_paused = true)]
async fn the_call_ends_when_the_person_says_no_on_the_page() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let scene = Scene::of(revision, "ada", |connect, _, url| async move {
            let no = format!("{url}/decline");
            let (status, page) = open(&connect, &no, Some("eve"), Some("")).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{page}");
            let (status, page) = open(&connect, &no, Some("ada"), Some("")).await;
            assert_eq!(status, StatusCode::OK, "{page}");
            let (status, page) = open(&connect, &url, Some("ada"), None).await;
            assert_eq!(status, StatusCode::OK);
            assert!(page.contains("Not connected"), "{page}");
            let (status, page) = open(&connect, &url, Some("ada"), Some("late")).await;
            assert_eq!(status, StatusCode::GONE, "{page}");
        });
        let result = scene.call().await.unwrap();
        let (words, is_error) = said(&result);
        assert!(is_error && words.contains("declined"), "{words}");
        assert!(scene.person.told().is_empty(), "nothing was completed");
        assert!(scene.stored().is_empty());
    }
}

/// On 2025-11-25, the call is rejected with -32042; when the visit is done, the client gets a notification.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_turned_away_is_told_when_the_visit_is_done() {
    let (clock, stored) = (Clock::new(), Stored::default());
    let connect = pages(&clock, &stored);
    let mut ada = ScriptedUser::answering("2025-11-25", []).called("ada");
    ada.clock = clock.clone();
    let client = ada.meet(server(&connect, &clock)).await;
    let other = ScriptedUser::answering("2025-11-25", []).called("eve");
    let _other = other.meet(server(&connect, &clock)).await;
    let refused = client
        .call_tool(CallToolRequestParams::new("require"))
        .await;
    let Err(ServiceError::McpError(error)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(error.code.0, -32042, "{error:?}");
    let listed = &error.data.unwrap()["elicitations"][0];
    let url = listed["url"].as_str().unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(ada.told().is_empty());
    let (status, page) = open(&connect, url, Some("ada"), Some("s3cret")).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let told = ada.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, "notifications/elicitation/complete");
    assert_eq!(told[0].1["elicitationId"], listed["elicitationId"]);
    assert!(other.told().is_empty(), "only who was asked hears of it");
}

/// The specification's phishing case: Eve requests a link and sends it to Ada, who is signed in.
#[tokio::test(start_paused = true)]
async fn a_link_that_was_sent_to_somebody_else_does_nothing() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let scene = Scene::of(revision, "eve", |connect, _, url| async move {
            for secret in [None, Some("adas-key")] {
                let (status, page) = open(&connect, &url, Some("ada"), secret).await;
                assert_eq!(status, StatusCode::FORBIDDEN);
                assert!(page.contains("made for another person"), "{page}");
            }
        });
        let error = scene.call().await.unwrap_err();
        assert_eq!(
            error.code.0, -32000,
            "nobody came, which is not a refusal: {error:?}"
        );
        assert!(scene.stored().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_needs_a_login_time_and_its_seal() {
    let scene = Scene::of("2026-07-28", "ada", |connect, clock, url| async move {
        assert_eq!(
            open(&connect, &url, None, Some("s")).await.0,
            StatusCode::UNAUTHORIZED
        );
        let forged = format!("{}A", &url[..url.len() - 1]);
        let forged = if forged == url {
            format!("{}B", &url[..url.len() - 1])
        } else {
            forged
        };
        assert_eq!(
            open(&connect, &forged, Some("ada"), Some("s")).await.0,
            StatusCode::BAD_REQUEST
        );
        clock.advance(Duration::from_secs(10 * 60));
        assert_eq!(
            open(&connect, &url, Some("ada"), Some("s")).await.0,
            StatusCode::GONE
        );
    });
    scene.call().await.unwrap_err();
    assert!(scene.stored().is_empty());
    assert!(scene.clock.now() > SystemTime::UNIX_EPOCH);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_know_whom_it_asks_gives_no_link() {
    let (clock, stored) = (Clock::new(), Stored::default());
    let person = ScriptedUser::answering("2026-07-28", []);
    let error = person
        .call(Accounts(pages(&clock, &stored)), "connect")
        .await
        .unwrap_err();
    assert!(error.message.contains("principal"), "{error:?}");
}
