//! An issuer of tokens that does what a test says: it signs anything, changes its keys, and stops answering. A real provider does none of it,
//! so it stands beside one, and takes the part of those who attack.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use axum::extract::{Form, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use data_encoding::BASE64URL_NOPAD;
use openidconnect::core::{CoreEdDsaPrivateSigningKey, CoreJwsSigningAlgorithm};
use openidconnect::{JsonWebKeyId, PrivateSigningKey as _};
use serde_json::{Value, json};

/// Two keys that protect nothing but tests.
const KEYS: [&str; 2] = [
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIN2l+LZGwKXlsM6W+QUlhqk+FP3/qR7thZBQRnyGdwn7\n-----END PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIMsIYZv9iSrJewoBs3MFzA5vSW569UdDWt6Bftvek70+\n-----END PRIVATE KEY-----",
];

/// An issuer on a port of this machine. It ends with the test's process.
#[derive(Debug, Clone)]
pub struct Issuer {
    url: String,
    state: Arc<IssuerState>,
}

#[derive(Debug, Default)]
struct IssuerState {
    url: Mutex<String>,
    /// The number of times that it took another key.
    rotations: AtomicUsize,
    is_down: AtomicBool,
    key_requests: AtomicUsize,
    /// The answers about tokens, by their texts.
    introspected: Mutex<HashMap<String, Value>>,
    /// The forms of token requests, with their `Authorization`.
    exchanges: Mutex<Vec<BTreeMap<String, String>>>,
}

impl Issuer {
    /// Starts one.
    ///
    /// # Panics
    /// When no port is free.
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

    /// Returns its address, which is its name.
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

    /// Returns a token with this header, signed with the present key whatever the header says.
    ///
    /// # Panics
    /// Never: the keys are sound.
    pub fn sign_under(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let signed = format!("{}.{}", part(header), part(claims));
        let key = key(self.state.rotations.load(Ordering::SeqCst));
        let signature = key
            .sign(&CoreJwsSigningAlgorithm::EdDsa, signed.as_bytes())
            .unwrap();
        format!("{signed}.{}", BASE64URL_NOPAD.encode(&signature))
    }

    /// Returns the id of the present key.
    pub fn kid(&self) -> String {
        kid(self.state.rotations.load(Ordering::SeqCst))
    }

    /// Takes another key, and forgets the one before.
    pub fn rotate(&self) {
        self.state.rotations.fetch_add(1, Ordering::SeqCst);
    }

    /// Answers nothing but errors from now on, or answers again.
    pub fn set_down(&self, is_down: bool) {
        self.state.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Returns how often its keys were asked for.
    pub fn key_requests(&self) -> usize {
        self.state.key_requests.load(Ordering::SeqCst)
    }

    /// Sets the answer about a token; every other one is not active.
    ///
    /// # Panics
    /// When another thread has.
    pub fn answer_about(&self, token: &str, answer: Value) {
        let mut known = self.state.introspected.lock().unwrap();
        known.insert(token.to_owned(), answer);
    }

    /// Returns the forms of the token requests so far, with the member `authorization` for the header.
    ///
    /// # Panics
    /// When another thread has.
    pub fn exchanges(&self) -> Vec<BTreeMap<String, String>> {
        self.state.exchanges.lock().unwrap().clone()
    }
}

fn kid(rotations: usize) -> String {
    format!("key-{rotations}")
}

fn key(rotations: usize) -> CoreEdDsaPrivateSigningKey {
    let id = JsonWebKeyId::new(kid(rotations));
    CoreEdDsaPrivateSigningKey::from_ed25519_pem(KEYS[rotations % KEYS.len()], Some(id)).unwrap()
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

/// The token endpoint: a token that names the one that was exchanged and for what.
async fn token(
    State(state): State<Arc<IssuerState>>,
    headers: HeaderMap,
    Form(mut form): Form<BTreeMap<String, String>>,
) -> Response {
    if let Some(down) = down(&state) {
        return down;
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
