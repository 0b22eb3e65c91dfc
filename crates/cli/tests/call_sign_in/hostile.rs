//! Servers that name pages and authorization servers that a person must not be sent to.

use axum::extract::State;
use axum::routing::post;

use super::*;

/// A server whose own metadata says what the test wants, and the bodies that its token endpoint got.
struct Hostile {
    url: String,
    issuer: String,
    tokens_asked: Arc<Mutex<Vec<String>>>,
}

/// Serves metadata with this authorization endpoint; `{base}` in it is the issuer.
async fn hostile(authorization: &str) -> Hostile {
    hostile_with(authorization, &json!({})).await
}

/// Serves such metadata with these members; `null` leaves one out. With the member `repeats`, the token endpoint refuses
/// with all that it was sent.
async fn hostile_with(authorization: &str, members: &Value) -> Hostile {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let tokens_asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut metadata = json!({
        "issuer": base,
        "authorization_endpoint": authorization.replace("{base}", &base),
        "token_endpoint": format!("{base}/token"),
        "registration_endpoint": format!("{base}/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
    });
    for (name, value) in members.as_object().unwrap() {
        let metadata = metadata.as_object_mut().unwrap();
        match value {
            Value::Null => metadata.remove(name),
            value => metadata.insert(name.clone(), value.clone()),
        };
    }
    let resource = json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]});
    let challenge =
        format!("Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource\"");
    let repeats = members["repeats"] == true;
    let token = move |State(asked): State<Arc<Mutex<Vec<String>>>>,
                      headers: http::HeaderMap,
                      body: String| async move {
        let why = format!("was {headers:?} {body}");
        asked.lock().unwrap().push(body);
        if repeats {
            let refusal = json!({"error": "invalid_grant", "error_description": why});
            return (StatusCode::BAD_REQUEST, axum::Json(refusal));
        }
        let tokens = json!({"access_token": "t", "token_type": "Bearer", "expires_in": 3600});
        (StatusCode::OK, axum::Json(tokens))
    };
    let app = axum::Router::new()
        .route(
            "/mcp",
            post(
                move || async move { (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)]) },
            ),
        )
        .route("/token", post(token))
        .route(
            "/register",
            post(|| async {
                (
                    StatusCode::CREATED,
                    axum::Json(json!({"client_id": "new", "redirect_uris": []})),
                )
            }),
        )
        .route(
            "/.well-known/oauth-protected-resource",
            get(move || async move { axum::Json(resource) }),
        )
        .route(
            "/.well-known/oauth-authorization-server",
            get(move || async move { axum::Json(metadata) }),
        )
        .with_state(Arc::clone(&tokens_asked));
    tokio::spawn(async move { axum::serve(listener, app).await });
    Hostile {
        url: format!("{base}/mcp"),
        issuer: base,
        tokens_asked,
    }
}

/// A folder with an opener that writes down its arguments.
fn opener() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("xdg-open");
    std::fs::write(
        &path,
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >> \"$(dirname \"$0\")/opened\"\n",
    )
    .unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

fn opened(folder: &tempfile::TempDir) -> String {
    std::fs::read_to_string(folder.path().join("opened")).unwrap_or_default()
}

fn path_with(folder: &tempfile::TempDir) -> String {
    format!("{}:/usr/bin:/bin", folder.path().display())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_of_another_kind_is_shown_or_opened() {
    for address in [
        "file:///etc/passwd",
        "javascript:alert(1)//",
        "data:text/html,x",
        "vscode://x/y",
        "ssh://-oProxyCommand=x/",
        "ms-settings:privacy",
        "https://accounts.google.com@127.0.0.1:9/",
        "http://e.test/authorize",
        "http://10.0.0.1/authorize",
        "/authorize",
    ] {
        let server = hostile(address).await;
        let (state, opener) = (tempfile::tempdir().unwrap(), opener());
        let ended = tokio::task::block_in_place(|| {
            Command::new(env!("CARGO_BIN_EXE_mcp-elicit"))
                .args([
                    "call",
                    "t",
                    "--sign-in",
                    "--decline",
                    "--url",
                    &server.url,
                    "--state",
                ])
                .arg(state.path())
                .env("PATH", path_with(&opener))
                .stdin(Stdio::null())
                .output()
                .unwrap()
        });
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(3), "{address}: {said}");
        assert!(!said.contains("sign in here"), "{address}: {said}");
        assert_eq!(opened(&opener), "", "{address}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_endpoint_of_another_kind_gets_a_code_or_a_secret() {
    for name in ["token_endpoint", "registration_endpoint", "issuer"] {
        for address in [
            "file:///etc/passwd",
            "http://e.test/token",
            "http://10.0.0.1/token",
            "https://accounts.google.com@127.0.0.1:9/",
        ] {
            let server = hostile_with("{base}/authorize", &json!({name: address})).await;
            let state = tempfile::tempdir().unwrap();
            let refused = registered(&server, state.path(), &[]);
            let (code, _, said) = tokio::task::block_in_place(|| refused.ended());
            assert_eq!(code, Some(3), "{name} {address}: {said}");
            assert!(!said.contains("sign in here"), "{name} {address}: {said}");
            assert!(server.tokens_asked.lock().unwrap().is_empty());
        }
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_opened_only_after_the_person_agreed() {
    use mcp_elicit_testkit::pty::{TestTerminal, command};

    for (before, answer, expected) in [
        ("", "y\r", true),
        ("", "n\r", false),
        ("", "\r", false),
        ("", "yess\r", false),
        ("y\r", "n\r", false),
    ] {
        let server = hostile("{base}/authorize").await;
        let (state, opener) = (tempfile::tempdir().unwrap(), opener());
        tokio::task::block_in_place(|| {
            let mut called = command(env!("CARGO_BIN_EXE_mcp-elicit"));
            called.args(["call", "t", "--sign-in", "--url", &server.url, "--state"]);
            called.arg(state.path());
            called.env("PATH", path_with(&opener));
            let mut terminal = TestTerminal::start(called, 100, 30);
            // What is typed before the address is shown answers nothing.
            terminal.press(before);
            terminal.wait_for("open it in the browser?");
            let shown = terminal.seen();
            assert!(shown.contains("sign in here: http://127.0.0.1:"), "{shown}");
            assert!(shown.contains(&server.issuer), "{shown}");
            assert_eq!(opened(&opener), "", "it was not opened unasked");
            if expected {
                terminal.type_line(answer, "continue in the browser");
                assert!(opened(&opener).starts_with(&format!("{}/authorize?", server.issuer)));
            } else {
                terminal.type_line(answer, "not opened");
                assert_eq!(opened(&opener), "", "{answer:?}");
            }
        });
    }
}

/// A call with a registered client, and the page to which it sends the person, if any.
fn registered(server: &Hostile, state: &Path, more: &[&str]) -> Called {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .args(["call", "t", "--sign-in", "--decline", "--url", &server.url])
        .args([
            "--client-id",
            "corp",
            "--client-secret-env",
            "CORP_SECRET",
            "--state",
        ])
        .arg(state)
        .args(more)
        .env("CORP_SECRET", "corp-secret")
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

/// Returns from the page as an authorization server does.
pub(super) async fn come_back(called: &mut Called) {
    let (link, back) = tokio::task::block_in_place(|| called.link());
    let parsed = url::Url::parse(&link).unwrap();
    let state = parsed
        .query_pairs()
        .find(|(name, _)| name == "state")
        .unwrap()
        .1;
    let answer = format!("{back}?code=code-hunter2&state={state}");
    HttpBrowser::new().get(&answer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_authorization_server_repeats_of_a_request_is_not_shown() {
    let server = hostile_with("{base}/authorize", &json!({"repeats": true})).await;
    let state = tempfile::tempdir().unwrap();
    let mut called = registered(&server, state.path(), &[]);
    come_back(&mut called).await;
    let (code, out, said) = tokio::task::block_in_place(|| called.ended());
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("invalid_grant"), "{said}");
    let sent = server.tokens_asked.lock().unwrap().remove(0);
    let sent: std::collections::BTreeMap<_, _> = url::form_urlencoded::parse(sent.as_bytes())
        .into_owned()
        .collect();
    assert_eq!(sent["code"], "code-hunter2");
    for secret in ["corp-secret", "code-hunter2", &sent["code_verifier"]] {
        assert!(!out.contains(secret) && !said.contains(secret), "{said}");
    }
    // The secret of the client is in the header, in Base64.
    assert!(!said.contains("Y29ycDpjb3JwLXNlY3JldA"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_s_secret_stays_with_the_issuer_of_its_first_use() {
    let (own, other) = (hostile("{base}/a").await, hostile("{base}/a").await);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    let mut first = registered(&own, state, &[]);
    come_back(&mut first).await;
    tokio::task::block_in_place(|| first.ended());
    assert!(own.tokens_asked.lock().unwrap().len() == 1);

    // A server that was never used before names its own issuer.
    let refused = registered(&other, state, &[]);
    let (code, _, said) = tokio::task::block_in_place(|| refused.ended());
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("belongs to") && said.contains(&own.issuer),
        "{said}"
    );
    assert!(said.contains("--issuer"), "{said}");
    // A person who names another issuer than the server is told so.
    let refused = registered(&other, state, &["--issuer", &own.issuer]);
    let (code, _, said) = tokio::task::block_in_place(|| refused.ended());
    assert_eq!(code, Some(3), "{said}");
    assert!(other.tokens_asked.lock().unwrap().is_empty());

    // A person may say that the client is registered there, too.
    let mut confirmed = registered(&other, state, &["--issuer", &other.issuer]);
    come_back(&mut confirmed).await;
    tokio::task::block_in_place(|| confirmed.ended());
    assert_eq!(other.tokens_asked.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorization_server_that_does_not_say_that_it_supports_pkce_is_refused() {
    for methods in [json!(null), json!([]), json!(["plain"])] {
        let members = json!({"code_challenge_methods_supported": methods});
        let server = hostile_with("{base}/authorize", &members).await;
        let state = tempfile::tempdir().unwrap();
        let refused = registered(&server, state.path(), &[]);
        let (code, _, said) = tokio::task::block_in_place(|| refused.ended());
        assert_eq!(code, Some(3), "{methods}: {said}");
        assert!(
            said.contains("PKCE") && said.contains(&server.issuer),
            "{said}"
        );
        assert!(!said.contains("sign in here"), "{said}");

        // A person may name an authorization server that does not publish its methods, but not one without S256.
        let mut named = registered(&server, state.path(), &["--issuer", &server.issuer]);
        if methods.is_null() {
            come_back(&mut named).await;
        }
        let (code, _, said) = tokio::task::block_in_place(|| named.ended());
        let asked = server.tokens_asked.lock().unwrap();
        if methods.is_null() {
            assert!(asked[0].contains("code_verifier="), "{said}");
        } else {
            assert_eq!((code, asked.len()), (Some(3), 0), "{methods}: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cautions_about_the_page_of_a_sign_in_that_say_the_same_are_one() {
    let server = hostile("https://раураl.com/authorize").await;
    let state = tempfile::tempdir().unwrap();
    let mut called = registered(&server, state.path(), &[]);
    come_back(&mut called).await;
    let (_, _, said) = tokio::task::block_in_place(|| called.ended());
    assert_eq!(said.matches("caution:").count(), 1, "{said}");
    assert!(said.contains("The host looks like paypal.com"), "{said}");
}
