//! Callers with the access tokens of a real OpenID provider, at the real program. Without node, the tests report a skip
//! and test nothing.

#[expect(dead_code, reason = "not every step is needed here")]
#[path = "../../../server/tests/oauth/http_browser.rs"]
mod http_browser;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use http_browser::HttpBrowser;
use mcp_elicit_testkit::peers::{self, Listening};
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use crate::gateway::{Gateway, REVISION};
use crate::oidc::{accept, before, calling, open, post};
use crate::raw::{PROGRAM, initialize, text};

/// The address to which the provider redirects a browser; nothing listens there.
const BACK: &str = "http://127.0.0.1/callback";
/// The public client of the provider.
const CLIENT: &str = "connect-public";
/// A code verifier and its challenge (RFC 7636, appendix B).
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
/// The interval of checks.
const PAUSE: Duration = Duration::from_millis(500);

fn provider(format: &str, seconds: u32) -> Option<Listening> {
    peers::token_provider(&[BACK.to_owned()], format, seconds)
}

fn blocking<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

fn encoded(parameters: &[(&str, &str)]) -> String {
    Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish()
}

/// Posts a form to an endpoint of the provider. Returns the response.
fn request(url: &str, client: Option<&str>, form: &[(&str, &str)]) -> Value {
    let body = encoded(form);
    blocking(async move {
        let _chosen_already = rustls::crypto::ring::default_provider().install_default();
        let mut request = reqwest::Client::new()
            .post(url)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        if let Some(client) = client {
            request = request.basic_auth(client, Some(format!("{client}-secret")));
        }
        let response = request.send().await.unwrap();
        let (status, body) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{url}: {status} {body}");
        serde_json::from_str(&body).unwrap_or_default()
    })
}

/// The tokens of a person for one resource.
struct Tokens {
    access: String,
    refresh: String,
}

impl Tokens {
    fn of(said: &Value) -> Self {
        let word = |name: &str| said[name].as_str().unwrap().to_owned();
        Self {
            access: word("access_token"),
            refresh: word("refresh_token"),
        }
    }

    /// Gets the tokens of a person who signs in and lets the client call this resource.
    fn of_person(provider: &Listening, person: &str, resource: &str) -> Self {
        let query = encoded(&[
            ("client_id", CLIENT),
            ("response_type", "code"),
            ("redirect_uri", BACK),
            ("scope", "openid mcp"),
            ("resource", resource),
            ("state", "s"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ]);
        let came_back = blocking(async {
            let mut browser = HttpBrowser::new();
            let page = browser
                .get(&format!("{}/auth?{query}", provider.url()))
                .await;
            browser.agree(page, person, BACK).await
        });
        let mut pairs = came_back.query_pairs();
        let (_, code) = pairs.find(|(name, _)| name == "code").unwrap();
        let form = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", BACK),
            ("client_id", CLIENT),
            ("code_verifier", VERIFIER),
        ];
        Self::of(&request(&format!("{}/token", provider.url()), None, &form))
    }

    fn refreshed(&self, provider: &Listening) -> Self {
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", &self.refresh),
            ("client_id", CLIENT),
        ];
        Self::of(&request(&format!("{}/token", provider.url()), None, &form))
    }

    /// Ends the tokens at the provider.
    fn revoke(&self, provider: &Listening) {
        let form = [("token", self.access.as_str()), ("client_id", CLIENT)];
        let url = format!("{}/token/revocation", provider.url());
        request(&url, None, &form);
    }
}

/// Gets the token of a program without a person.
fn of_program(provider: &Listening, resource: &str) -> String {
    let form = [
        ("grant_type", "client_credentials"),
        ("resource", resource),
        ("scope", "mcp"),
    ];
    let said = request(&format!("{}/token", provider.url()), Some("program"), &form);
    said["access_token"].as_str().unwrap().to_owned()
}

/// Returns the lines of `[auth.oidc]` with which the gateway asks the provider about tokens.
fn asking(secrets: &Path) -> String {
    let secret = secrets.join("secret");
    std::fs::write(&secret, "gateway-secret\n").unwrap();
    let secret = secret.display();
    format!(
        "tokens = \"introspection\"\nclient-id = \"gateway\"\nclient-secret = {{ file = \"{secret}\" }}"
    )
}

/// Starts a gateway before the demo server, whose callers have tokens of this provider.
fn gateway(state: &Path, provider: &Listening, oidc: &str) -> (Gateway, String) {
    let auth = "mode = \"oidc\"\nleeway = \"0s\"";
    let server = format!("command = [\"{PROGRAM}\", \"demo-server\"]");
    before(state, provider.url(), auth, oidc, &server)
}

fn resource(at: &str) -> String {
    format!("http://{at}/mcp/demo")
}

fn list() -> Value {
    json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"})
}

/// A person's client refreshes its token while a person thinks, until the token of the call has expired.
fn refreshes_while_a_person_thinks(provider: &Listening, oidc: &str) {
    let state = tempfile::tempdir().unwrap();
    let (gateway, at) = gateway(state.path(), provider, oidc);
    let first = Tokens::of_person(provider, "ada", &resource(&at));
    let session = open(&at, &first.access);
    let waits = calling(&at, &first.access, &session);
    let asked = gateway.wait_for(1);
    let behalf = asked[0]["onBehalfOf"].as_str().unwrap();
    assert!(
        behalf.contains("ada") && behalf.contains(provider.url()),
        "{behalf}"
    );
    let mut newest = first.refreshed(provider);
    assert_ne!(newest.access, first.access);
    while post(&at, Some(&first.access), Some(&session), &list()).status != 401 {
        let listed = post(&at, Some(&newest.access), Some(&session), &list());
        assert_eq!(listed.status, 200, "{listed:?}");
        thread::sleep(PAUSE);
        newest = newest.refreshed(provider);
    }
    let listed = post(&at, Some(&newest.access), Some(&session), &list());
    assert_eq!(listed.status, 200, "{listed:?}");
    accept(&gateway, asked[0]["id"].as_str().unwrap(), "on time");
    let done = waits.join().unwrap();
    assert!(text(&done.response()).contains("on time"), "{done:?}");
}

#[test]
fn a_json_web_token_is_refreshed_in_the_middle_of_a_question_and_its_answer_comes_to_the_call() {
    if let Some(provider) = provider("jwt", 8) {
        refreshes_while_a_person_thinks(&provider, "");
    }
}

#[test]
fn an_opaque_token_is_refreshed_in_the_middle_of_a_question_and_its_answer_comes_to_the_call() {
    let secrets = tempfile::tempdir().unwrap();
    if let Some(provider) = provider("opaque", 8) {
        refreshes_while_a_person_thinks(&provider, &asking(secrets.path()));
    }
}

#[test]
fn a_token_that_the_provider_revoked_collects_nothing() {
    let (state, secrets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(provider) = provider("opaque", 300) else {
        return;
    };
    let (gateway, at) = gateway(state.path(), &provider, &asking(secrets.path()));
    let ada = Tokens::of_person(&provider, "ada", &resource(&at));
    let session = open(&at, &ada.access);
    let waits = calling(&at, &ada.access, &session);
    let asked = gateway.wait_for(1);
    ada.revoke(&provider);
    accept(&gateway, asked[0]["id"].as_str().unwrap(), "hers");
    let ended = waits.join().unwrap();
    assert!(!ended.body.contains("hers"), "{ended:?}");
    // The provider's response about the token is not kept beyond that.
    let refused = post(&at, Some(&ada.access), Some(&session), &list());
    assert_ne!(refused.status, 200, "{refused:?}");
    // No other caller gets it; the same person gets it after signing in again.
    let bob = Tokens::of_person(&provider, "bob", &resource(&at));
    let bobs = calling(&at, &bob.access, &open(&at, &bob.access));
    let anew = gateway.wait_for(1);
    assert_ne!(anew[0]["id"], asked[0]["id"]);
    accept(&gateway, anew[0]["id"].as_str().unwrap(), "his");
    let done = bobs.join().unwrap();
    assert!(text(&done.response()).contains("his"), "{done:?}");
    let ada = Tokens::of_person(&provider, "ada", &resource(&at));
    let done = calling(&at, &ada.access, &open(&at, &ada.access)).join();
    let done = done.unwrap();
    assert!(text(&done.response()).contains("hers"), "{done:?}");
}

#[test]
fn the_provider_takes_another_key_and_a_program_goes_on_with_its_next_token() {
    let state = tempfile::tempdir().unwrap();
    let Some(provider) = provider("jwt", 300) else {
        return;
    };
    let (_gateway, at) = gateway(state.path(), &provider, "");
    let before = of_program(&provider, &resource(&at));
    let session = open(&at, &before);
    request(&format!("{}/rotate", provider.url()), None, &[]);
    let after = of_program(&provider, &resource(&at));
    // The keys are fetched again after half a minute at the earliest.
    let mut listed = post(&at, Some(&after), Some(&session), &list());
    for _ in 0..120 {
        if listed.status == 200 {
            break;
        }
        let challenge = listed.header("www-authenticate").unwrap();
        assert!(challenge.contains("no such key"), "{listed:?}");
        thread::sleep(PAUSE);
        listed = post(&at, Some(&after), Some(&session), &list());
    }
    assert_eq!(listed.status, 200, "{listed:?}");
    let gone = post(&at, Some(&before), Some(&session), &list());
    assert_eq!(gone.status, 401, "{gone:?}");
}

#[test]
fn a_token_is_exchanged_for_one_that_the_server_takes() {
    let (state, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let secrets = tempfile::tempdir().unwrap();
    let Some(provider) = provider("opaque", 300) else {
        return;
    };
    let oidc = asking(secrets.path());
    // The server over HTTP is a gateway too, which accepts only the provider's tokens for itself.
    let (_server, at_server) = gateway(other.path(), &provider, &oidc);
    let resource_there = resource(&at_server);
    let server = format!(
        "url = \"{resource_there}\"\n\
         auth = {{ mode = \"exchange\", resource = \"{resource_there}\", scopes = [\"mcp\"] }}"
    );
    let auth = "mode = \"oidc\"";
    let (gateway, at) = before(state.path(), provider.url(), auth, &oidc, &server);
    let ada = Tokens::of_person(&provider, "ada", &resource(&at));
    let opening = initialize(REVISION, &json!({}));
    let refused = post(&at_server, Some(&ada.access), None, &opening);
    assert_eq!(refused.status, 401, "{refused:?}");
    let waits = calling(&at, &ada.access, &open(&at, &ada.access));
    let asked = gateway.wait_for(1);
    accept(&gateway, asked[0]["id"].as_str().unwrap(), "through both");
    let done = waits.join().unwrap();
    assert!(text(&done.response()).contains("through both"), "{done:?}");
}

#[test]
fn call_signs_in_at_the_provider_that_the_gateway_names() {
    let (state, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(provider) = provider("jwt", 300) else {
        return;
    };
    let (_gateway, at) = gateway(state.path(), &provider, "");
    let called = |more: &[&str]| {
        Command::new(PROGRAM)
            .args(["call", "deploy", "--url", &resource(&at), "--sign-in"])
            .args(["--answer", "environment=staging", "--state"])
            .arg(home.path())
            .args(more)
            // No browser can be found from here.
            .env("PATH", "/nonexistent")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut child = called(&["--answer", "note=signed in"]);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    let link = loop {
        let mut line = String::new();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "{said}");
        said.push_str(&line);
        if let Some(link) = line.trim().strip_prefix("sign in here: ") {
            break link.to_owned();
        }
    };
    assert!(link.starts_with(provider.url()), "{link}");
    let parsed = url::Url::parse(&link).unwrap();
    let mut pairs = parsed.query_pairs();
    let (_, back) = pairs.find(|(name, _)| name == "redirect_uri").unwrap();
    blocking(async {
        let mut browser = HttpBrowser::new();
        let page = browser.get(&link).await;
        let came_back = browser.agree(page, "ada", &back).await;
        browser.get(came_back.as_str()).await;
    });
    stderr.read_to_string(&mut said).unwrap();
    let done = child.wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        done.status.success() && stdout.contains("signed in"),
        "{stdout}{said}"
    );
    // The next call needs no sign-in.
    let again = called(&["--answer", "note=again"])
        .wait_with_output()
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&again.stdout),
        String::from_utf8_lossy(&again.stderr),
    );
    assert!(
        stdout.contains("again") && !stderr.contains("sign in here"),
        "{stdout}{stderr}"
    );
}
