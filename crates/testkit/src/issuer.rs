//! An issuer of tokens that a test controls: it signs any claims, changes its keys and its claims about people, and
//! stops answering. A real provider does none of this, so tests use it beside one, to play the attacker.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use axum::extract::{Form, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use data_encoding::BASE64URL_NOPAD;
use openidconnect::core::{CoreEdDsaPrivateSigningKey, CoreJwsSigningAlgorithm};
use openidconnect::{JsonWebKeyId, PrivateSigningKey as _};
use serde_json::{Value, json};

/// Two keys that are used in tests only.
const KEYS: [&str; 2] = [
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIN2l+LZGwKXlsM6W+QUlhqk+FP3/qR7thZBQRnyGdwn7\n-----END PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIMsIYZv9iSrJewoBs3MFzA5vSW569UdDWt6Bftvek70+\n-----END PRIVATE KEY-----",
];

/// An issuer on a port of this machine. It ends with the test's process.
#[derive(Debug, Clone)]
pub struct TestIssuer {
    url: String,
    state: Arc<IssuerState>,
}

#[derive(Debug, Default)]
struct IssuerState {
    url: Mutex<String>,
    /// The number of key changes.
    rotations: AtomicUsize,
    is_down: AtomicBool,
    is_silent: AtomicBool,
    key_requests: AtomicUsize,
    /// The introspection responses, by token.
    introspected: Mutex<HashMap<String, Value>>,
    /// The forms of token requests, with their `Authorization` headers.
    exchanges: Mutex<Vec<BTreeMap<String, String>>>,
    /// The subject of the person who signs in next.
    person: Mutex<String>,
    /// The claims of people, by subject.
    people: Mutex<HashMap<String, Value>>,
    /// The subject, the client and the nonce of each grant, by number.
    grants: Mutex<Vec<[String; 3]>>,
    /// `true` if responses have no refresh token.
    has_no_refresh: AtomicBool,
    /// `true` if the accounts of people have ended.
    has_ended: AtomicBool,
}

impl TestIssuer {
    /// Starts an issuer.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(IssuerState::default());
        state.url.lock().unwrap().clone_from(&url);
        let app = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/keys", get(keys))
            .route("/introspect", post(introspect))
            .route("/token", post(token))
            .route("/authorize", get(authorize))
            .route("/userinfo", get(userinfo))
            .layer(from_fn_with_state(state.clone(), hear))
            .with_state(state.clone());
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, app).await.unwrap();
            });
        });
        Self { url, state }
    }

    /// Returns its URL, which is its issuer identifier.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a token with these claims, signed with the present key.
    pub fn sign(&self, claims: &Value) -> String {
        let kid = self.kid();
        self.sign_under(
            &json!({"alg": "EdDSA", "typ": "at+jwt", "kid": kid}),
            claims,
        )
    }

    /// Returns a token with this header, signed with the present key even if the header names another.
    pub fn sign_under(&self, header: &Value, claims: &Value) -> String {
        signed(&self.state, header, claims)
    }

    /// Returns the id of the present key.
    pub fn kid(&self) -> String {
        kid(self.state.rotations.load(Ordering::SeqCst))
    }

    /// Replaces the key with another.
    pub fn rotate(&self) {
        self.state.rotations.fetch_add(1, Ordering::SeqCst);
    }

    /// Starts or stops answering every request with an error.
    pub fn set_down(&self, is_down: bool) {
        self.state.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Starts or stops accepting connections without answering.
    pub fn set_silent(&self, is_silent: bool) {
        self.state.is_silent.store(is_silent, Ordering::SeqCst);
    }

    /// Returns the number of requests for its keys.
    pub fn key_requests(&self) -> usize {
        self.state.key_requests.load(Ordering::SeqCst)
    }

    /// Sets the introspection response for a token; every other token is inactive.
    ///
    /// # Panics
    /// If a thread panicked while it held the lock.
    pub fn answer_about(&self, token: &str, answer: Value) {
        let mut known = self.state.introspected.lock().unwrap();
        known.insert(token.to_owned(), answer);
    }

    /// Sets the claims of a person, who is the next to sign in.
    ///
    /// # Panics
    /// If a thread panicked while it held the lock.
    pub fn sign_in_as(&self, subject: &str, claims: Value) {
        subject.clone_into(&mut self.state.person.lock().unwrap());
        let mut people = self.state.people.lock().unwrap();
        people.insert(subject.to_owned(), claims);
    }

    /// Sets for sign-ins from now on that responses have a refresh token, or have none.
    pub fn set_refreshes(&self, refreshes: bool) {
        self.state
            .has_no_refresh
            .store(!refreshes, Ordering::SeqCst);
    }

    /// Ends the accounts of all people, or opens them again. The tokens of an ended account are rejected.
    pub fn set_ended(&self, has_ended: bool) {
        self.state.has_ended.store(has_ended, Ordering::SeqCst);
    }

    /// Returns the forms of the token requests so far, with the header in the member `authorization`.
    ///
    /// # Panics
    /// If a thread panicked while it held the lock.
    pub fn exchanges(&self) -> Vec<BTreeMap<String, String>> {
        self.state.exchanges.lock().unwrap().clone()
    }
}

fn signed(state: &IssuerState, header: &Value, claims: &Value) -> String {
    let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let signed = format!("{}.{}", part(header), part(claims));
    let key = key(state.rotations.load(Ordering::SeqCst));
    let signature = key
        .sign(&CoreJwsSigningAlgorithm::EdDsa, signed.as_bytes())
        .unwrap();
    format!("{signed}.{}", BASE64URL_NOPAD.encode(&signature))
}

fn kid(rotations: usize) -> String {
    format!("key-{rotations}")
}

fn key(rotations: usize) -> CoreEdDsaPrivateSigningKey {
    let id = JsonWebKeyId::new(kid(rotations));
    CoreEdDsaPrivateSigningKey::from_ed25519_pem(KEYS[rotations % KEYS.len()], Some(id)).unwrap()
}

/// Processes a request, unless the issuer is silent.
async fn hear(State(state): State<Arc<IssuerState>>, request: Request, next: Next) -> Response {
    if state.is_silent.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    next.run(request).await
}

fn down(state: &IssuerState) -> Option<Response> {
    let is_down = state.is_down.load(Ordering::SeqCst);
    is_down.then(|| StatusCode::SERVICE_UNAVAILABLE.into_response())
}

async fn metadata(State(state): State<Arc<IssuerState>>) -> Response {
    if let Some(down) = down(&state) {
        return down;
    }
    let url = state.url.lock().unwrap().clone();
    Json(json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
        "jwks_uri": format!("{url}/keys"),
        "introspection_endpoint": format!("{url}/introspect"),
        "userinfo_endpoint": format!("{url}/userinfo"),
    }))
    .into_response()
}

async fn keys(State(state): State<Arc<IssuerState>>) -> Response {
    state.key_requests.fetch_add(1, Ordering::SeqCst);
    if let Some(down) = down(&state) {
        return down;
    }
    let key = key(state.rotations.load(Ordering::SeqCst)).as_verification_key();
    Json(json!({"keys": [key]})).into_response()
}

async fn introspect(
    State(state): State<Arc<IssuerState>>,
    Form(form): Form<BTreeMap<String, String>>,
) -> Response {
    if let Some(down) = down(&state) {
        return down;
    }
    let known = state.introspected.lock().unwrap();
    let answer = form.get("token").and_then(|token| known.get(token));
    Json(answer.cloned().unwrap_or_else(|| json!({"active": false}))).into_response()
}

/// The authorization endpoint: redirects back immediately, as the person who is next to sign in.
async fn authorize(
    State(state): State<Arc<IssuerState>>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let asked = |name: &str| query.get(name).cloned().unwrap_or_default();
    let person = state.person.lock().unwrap().clone();
    let mut grants = state.grants.lock().unwrap();
    grants.push([person, asked("client_id"), asked("nonce")]);
    let (back, number) = (asked("redirect_uri"), grants.len());
    let to = format!("{back}?code={number}&state={}", asked("state"));
    (StatusCode::FOUND, [("location", to)]).into_response()
}

#[expect(clippy::disallowed_methods, reason = "a token ends at a time of day")]
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_secs()
}

/// Returns the tokens of the grant with this number, with the person's present claims.
fn tokens_of(state: &IssuerState, number: &str, is_first: bool) -> Response {
    let grant = number.parse::<usize>().ok().and_then(|number| {
        let grants = state.grants.lock().unwrap();
        grants.get(number.checked_sub(1)?).cloned()
    });
    let grant = grant.filter(|_| !state.has_ended.load(Ordering::SeqCst));
    let Some([person, client, nonce]) = grant else {
        let refusal = Json(json!({"error": "invalid_grant"}));
        return (StatusCode::BAD_REQUEST, refusal).into_response();
    };
    let people = state.people.lock().unwrap();
    let mut claims = people.get(&person).cloned().unwrap_or_else(|| json!({}));
    claims["iss"] = state.url.lock().unwrap().as_str().into();
    claims["aud"] = client.into();
    set_subject(&mut claims, person);
    if claims.get("iat").is_none() {
        claims["iat"] = now().into();
    }
    claims["exp"] = (now() + 300).into();
    if is_first {
        claims["nonce"] = nonce.into();
    }
    let kid = kid(state.rotations.load(Ordering::SeqCst));
    let header = json!({"alg": "EdDSA", "typ": "JWT", "kid": kid});
    let mut tokens = json!({
        "access_token": format!("access-{number}"), "token_type": "Bearer", "expires_in": 300,
        "id_token": signed(state, &header, &claims),
    });
    if !state.has_no_refresh.load(Ordering::SeqCst) {
        tokens["refresh_token"] = format!("refresh-{number}").into();
    }
    Json(tokens).into_response()
}

/// Sets the person as the subject, unless the claims already name one.
fn set_subject(claims: &mut Value, person: String) {
    if claims.get("sub").is_none() {
        claims["sub"] = person.into();
    }
}

/// Returns the claims of the person to whom the access token belongs.
async fn userinfo(State(state): State<Arc<IssuerState>>, headers: HeaderMap) -> Response {
    if let Some(down) = down(&state) {
        return down;
    }
    let token = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer access-"));
    let person = token.and_then(|number| {
        let grants = state.grants.lock().unwrap();
        let number = number.parse::<usize>().ok()?.checked_sub(1)?;
        grants.get(number).map(|[person, ..]| person.clone())
    });
    let person = person.filter(|_| !state.has_ended.load(Ordering::SeqCst));
    let Some(person) = person else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let people = state.people.lock().unwrap();
    let mut claims = people.get(&person).cloned().unwrap_or_else(|| json!({}));
    set_subject(&mut claims, person);
    Json(claims).into_response()
}

/// The token endpoint: returns the tokens of a person who signs in, or a token that names the exchanged one and its
/// audience.
async fn token(
    State(state): State<Arc<IssuerState>>,
    headers: HeaderMap,
    Form(mut form): Form<BTreeMap<String, String>>,
) -> Response {
    if let Some(down) = down(&state) {
        return down;
    }
    match form.get("grant_type").map(String::as_str) {
        Some("authorization_code") => {
            let code = form.get("code").map_or("", String::as_str);
            return tokens_of(&state, code, true);
        }
        Some("refresh_token") => {
            let token = form.get("refresh_token").map_or("", String::as_str);
            return tokens_of(&state, token.trim_start_matches("refresh-"), false);
        }
        _ => {}
    }
    let authorization = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    form.insert(
        "authorization".to_owned(),
        authorization.unwrap_or_default().to_owned(),
    );
    let mut exchanges = state.exchanges.lock().unwrap();
    exchanges.push(form);
    let number = exchanges.len();
    Json(json!({
        "access_token": format!("exchanged-{number}"),
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "token_type": "Bearer",
        "expires_in": 300,
    }))
    .into_response()
}
