//! A small OpenID provider for the demo, on this machine only and for the duration of one demo. The person chooses who
//! they are, without a password.
//!
//! It supports the authorization-code flow with PKCE (RFC 6749, RFC 7636, OpenID Connect Core 1.0), one client, and ID
//! tokens signed with Ed25519. It keeps no session: each login asks again, so that one person can take every part in
//! turn.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Form, Query, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, LOCATION,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER};
use mcp_elicit_forms::theme;
use mcp_elicit_record::clock::now;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The id of the only key.
const KEY_ID: &str = "demo";
/// The time that a login may take, and for which its code is valid.
const LOGIN_SECONDS: u64 = 600;
/// The validity of an ID token.
const TOKEN_SECONDS: u64 = 300;
/// The largest number of unfinished logins. The oldest is dropped to make room.
const MOST_LOGINS: usize = 64;

const POLICY: &str =
    "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'";

/// A person who can sign in.
#[derive(Clone, Copy, Debug)]
pub(super) struct IssuerPerson {
    /// The subject.
    pub(super) subject: &'static str,
    /// The name, without characters that are special in HTML.
    pub(super) name: &'static str,
    /// The mail address.
    pub(super) mail: &'static str,
    /// The person's part in the demo, for the button, without characters that are special in HTML.
    pub(super) part: &'static str,
}

/// The client that may send people here.
#[derive(Clone, Debug)]
pub(super) struct IssuerClient {
    /// Its id.
    pub(super) id: &'static str,
    /// Its secret.
    pub(super) secret: String,
    /// The only address to which people are sent back.
    pub(super) redirect_uri: String,
}

/// The state of the issuer.
pub(super) struct DemoIssuer {
    address: String,
    client: IssuerClient,
    people: &'static [IssuerPerson],
    key: Ed25519KeyPair,
    random: SystemRandom,
    logins: Mutex<HashMap<String, StartedLogin>>,
    refresh: Mutex<HashMap<String, usize>>,
}

/// An unfinished login, under a random name that is first in the page and is then replaced by the code.
struct StartedLogin {
    nonce: Option<String>,
    challenge: String,
    state: Option<String>,
    started: u64,
    /// The person, once known: the login's name is a code from then on.
    person: Option<usize>,
}

#[derive(Deserialize)]
struct AuthorizationRequest {
    client_id: String,
    redirect_uri: String,
    response_type: String,
    code_challenge: Option<String>,
    code_challenge_method: Option<String>,
    state: Option<String>,
    nonce: Option<String>,
    prompt: Option<String>,
}

#[derive(Deserialize)]
struct PersonChoice {
    login: String,
    person: usize,
}

#[derive(Deserialize)]
struct TokenRequest {
    grant_type: String,
    code: Option<String>,
    redirect_uri: Option<String>,
    code_verifier: Option<String>,
    refresh_token: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
}

/// The error that the system gave no randomness.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the system gives no randomness")]
pub(super) struct NoRandomness;

impl DemoIssuer {
    /// Creates an issuer with a new key, to be served at this address (`http://127.0.0.1:PORT`).
    pub(super) fn new(
        address: String,
        client: IssuerClient,
        people: &'static [IssuerPerson],
    ) -> Result<Self, NoRandomness> {
        let random = SystemRandom::new();
        let key = Ed25519KeyPair::generate_pkcs8(&random).map_err(|_| NoRandomness)?;
        let key = Ed25519KeyPair::from_pkcs8(key.as_ref()).map_err(|_| NoRandomness)?;
        Ok(Self {
            address,
            client,
            people,
            key,
            random,
            logins: Mutex::default(),
            refresh: Mutex::default(),
        })
    }

    /// Returns the pages and endpoints.
    pub(super) fn router(self) -> Router {
        Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/jwks", get(keys))
            .route("/authorize", get(authorize).post(choose))
            .route("/token", post(token))
            .route("/style.css", get(style))
            .with_state(Arc::new(self))
    }

    fn logins(&self) -> MutexGuard<'_, HashMap<String, StartedLogin>> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refresh(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.refresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns 256 random bits in hexadecimal.
    fn random(&self) -> Result<String, NoRandomness> {
        let mut bytes = [0; 32];
        self.random.fill(&mut bytes).map_err(|_| NoRandomness)?;
        Ok(HEXLOWER.encode(&bytes))
    }

    /// Stores a login and returns its name.
    fn begin(&self, login: StartedLogin) -> Result<String, NoRandomness> {
        let name = self.random()?;
        let mut logins = self.logins();
        let limit = seconds().saturating_sub(LOGIN_SECONDS);
        logins.retain(|_, login| login.started >= limit);
        if logins.len() >= MOST_LOGINS
            && let Some(oldest) = logins
                .iter()
                .min_by_key(|(_, login)| login.started)
                .map(|(name, _)| name.clone())
        {
            logins.remove(&oldest);
        }
        logins.insert(name.clone(), login);
        Ok(name)
    }

    /// Returns the login of a code, and uses the code up.
    fn redeem(&self, request: &TokenRequest) -> Option<StartedLogin> {
        let login = self.logins().remove(request.code.as_deref()?)?;
        let verifier = request.code_verifier.as_deref()?;
        let challenge = BASE64URL_NOPAD.encode(&Sha256::digest(verifier.as_bytes()));
        let is_good = login.person.is_some()
            && login.started + LOGIN_SECONDS >= seconds()
            && challenge == login.challenge
            && request.redirect_uri.as_deref() == Some(self.client.redirect_uri.as_str());
        is_good.then_some(login)
    }

    fn is_client(&self, headers: &HeaderMap, request: &TokenRequest) -> bool {
        let shown = match headers.get(AUTHORIZATION) {
            Some(value) => basic(value),
            None => request.client_id.clone().zip(request.client_secret.clone()),
        };
        shown.is_some_and(|(id, secret)| {
            id == self.client.id && secret.as_bytes() == self.client.secret.as_bytes()
        })
    }

    /// Returns a signed ID token.
    fn id_token(&self, person: &IssuerPerson, nonce: Option<&str>) -> String {
        let now = seconds();
        let header = json!({ "alg": "EdDSA", "typ": "JWT", "kid": KEY_ID });
        let mut claims = json!({
            "iss": self.address, "aud": self.client.id, "sub": person.subject, "iat": now, "exp": now + TOKEN_SECONDS,
            "auth_time": now, "name": person.name, "email": person.mail, "email_verified": true,
        });
        if let Some(nonce) = nonce {
            claims["nonce"] = json!(nonce);
        }
        let encoded = |part: &Value| BASE64URL_NOPAD.encode(part.to_string().as_bytes());
        let text = format!("{}.{}", encoded(&header), encoded(&claims));
        let signature = BASE64URL_NOPAD.encode(self.key.sign(text.as_bytes()).as_ref());
        format!("{text}.{signature}")
    }

    fn tokens(&self, person: usize, nonce: Option<&str>) -> Response {
        let Some(who) = self.people.get(person) else {
            return oauth_error(StatusCode::BAD_REQUEST, "invalid_grant");
        };
        let (Ok(access), Ok(refresh)) = (self.random(), self.random()) else {
            return oauth_error(StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable");
        };
        self.refresh().insert(refresh.clone(), person);
        let body = json!({
            "access_token": access, "token_type": "Bearer", "expires_in": TOKEN_SECONDS, "refresh_token": refresh,
            "id_token": self.id_token(who, nonce),
        });
        ([(CACHE_CONTROL, "no-store")], Json(body)).into_response()
    }
}

async fn metadata(State(issuer): State<Arc<DemoIssuer>>) -> Json<Value> {
    let at = |path: &str| format!("{}{path}", issuer.address);
    Json(json!({
        "issuer": issuer.address,
        "authorization_endpoint": at("/authorize"),
        "token_endpoint": at("/token"),
        "jwks_uri": at("/jwks"),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["EdDSA"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "authorization_response_iss_parameter_supported": true,
        "scopes_supported": ["openid", "profile", "email", "offline_access"],
    }))
}

async fn keys(State(issuer): State<Arc<DemoIssuer>>) -> Json<Value> {
    let public = BASE64URL_NOPAD.encode(issuer.key.public_key().as_ref());
    Json(json!({ "keys": [
        { "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": KEY_ID, "x": public },
    ] }))
}

async fn style() -> Response {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], theme::STYLE).into_response()
}

/// Shows the page on which the person signs in.
async fn authorize(
    State(issuer): State<Arc<DemoIssuer>>,
    Query(request): Query<AuthorizationRequest>,
) -> Response {
    let client = &issuer.client;
    if request.client_id != client.id || request.redirect_uri != client.redirect_uri {
        return refused("This login was not started by the demo's inbox.");
    }
    let state = request.state.as_deref();
    let challenge = match (request.code_challenge, request.code_challenge_method) {
        (Some(challenge), Some(method)) if method == "S256" => challenge,
        _ => return issuer.send_back("error", "invalid_request", state),
    };
    if request.response_type != "code" {
        return issuer.send_back("error", "unsupported_response_type", state);
    }
    if request.prompt.as_deref() == Some("none") {
        // This issuer keeps no sessions.
        return issuer.send_back("error", "login_required", state);
    }
    let login = StartedLogin {
        nonce: request.nonce,
        challenge,
        state: request.state,
        started: seconds(),
        person: None,
    };
    match issuer.begin(login) {
        Ok(name) => page(&issuer.choices(&name)),
        Err(NoRandomness) => refused("The system gives no randomness."),
    }
}

/// Signs this person in.
async fn choose(
    State(issuer): State<Arc<DemoIssuer>>,
    Form(choice): Form<PersonChoice>,
) -> Response {
    let login = issuer.logins().remove(&choice.login);
    let login = login.filter(|login| login.person.is_none() && choice.person < issuer.people.len());
    let Some(login) = login else {
        return refused("This login has ended. Go back to the inbox and sign in again.");
    };
    let state = login.state.clone();
    // The code is a different secret from the name in the page.
    let code = issuer.begin(StartedLogin {
        person: Some(choice.person),
        ..login
    });
    match code {
        Ok(code) => issuer.send_back("code", &code, state.as_deref()),
        Err(NoRandomness) => refused("The system gives no randomness."),
    }
}

async fn token(
    State(issuer): State<Arc<DemoIssuer>>,
    headers: HeaderMap,
    Form(request): Form<TokenRequest>,
) -> Response {
    if !issuer.is_client(&headers, &request) {
        return oauth_error(StatusCode::UNAUTHORIZED, "invalid_client");
    }
    match request.grant_type.as_str() {
        "authorization_code" => match issuer.redeem(&request) {
            Some(StartedLogin {
                person: Some(person),
                nonce,
                ..
            }) => issuer.tokens(person, nonce.as_deref()),
            Some(_) | None => oauth_error(StatusCode::BAD_REQUEST, "invalid_grant"),
        },
        "refresh_token" => {
            let known = request.refresh_token.as_deref();
            let person = known.and_then(|token| issuer.refresh().remove(token));
            match person {
                Some(person) => issuer.tokens(person, None),
                None => oauth_error(StatusCode::BAD_REQUEST, "invalid_grant"),
            }
        }
        _ => oauth_error(StatusCode::BAD_REQUEST, "unsupported_grant_type"),
    }
}

impl DemoIssuer {
    /// Sends the browser back to the inbox.
    fn send_back(&self, name: &str, value: &str, state: Option<&str>) -> Response {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let mut to = format!(
            "{}?{name}={}&iss={}",
            self.client.redirect_uri,
            encoded(value),
            encoded(&self.address)
        );
        if let Some(state) = state {
            to.push_str("&state=");
            to.push_str(&encoded(state));
        }
        match HeaderValue::from_str(&to) {
            Ok(to) => (StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response(),
            Err(_) => refused("The address of the inbox cannot be written."),
        }
    }

    /// Returns a button for each person. None of it is outside input: the login's name is hexadecimal.
    fn choices(&self, login: &str) -> String {
        let mut buttons = String::new();
        for (number, person) in self.people.iter().enumerate() {
            let IssuerPerson { name, part, .. } = person;
            // Writing into a String cannot fail.
            let _ = write!(
                buttons,
                "<form class=\"acts\" method=\"post\" action=\"/authorize\">\
                 <input type=\"hidden\" name=\"login\" value=\"{login}\">\
                 <input type=\"hidden\" name=\"person\" value=\"{number}\">\
                 <button class=\"btn main\" type=\"submit\">Sign in as {name}</button> <span class=\"facts\">{part}</span></form>"
            );
        }
        format!(
            "<section class=\"card ask\" aria-labelledby=\"head\"><h1 id=\"head\">Who are you?</h1>\
             <p class=\"why\">This page stands for your company's login. It belongs to the demo, knows these people only, and asks \
             for no password.</p></section><div class=\"card\">{buttons}</div>"
        )
    }
}

/// Returns the id and secret of `Basic` credentials (RFC 6749, 2.3.1).
fn basic(value: &HeaderValue) -> Option<(String, String)> {
    let (scheme, encoded) = value.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(BASE64.decode(encoded.trim().as_bytes()).ok()?).ok()?;
    let (id, secret) = text.split_once(':')?;
    let decoded = |text: &str| {
        percent_decode_str(text)
            .decode_utf8()
            .ok()
            .map(String::from)
    };
    Some((decoded(id)?, decoded(secret)?))
}

fn oauth_error(status: StatusCode, error: &str) -> Response {
    let body = Json(json!({ "error": error }));
    (status, [(CACHE_CONTROL, "no-store")], body).into_response()
}

fn refused(why: &str) -> Response {
    let body = format!(
        "<section class=\"card notice bad\" aria-labelledby=\"head\"><h1 id=\"head\">No login</h1><p>{why}</p></section>"
    );
    (StatusCode::BAD_REQUEST, page(&body)).into_response()
}

fn page(main: &str) -> Response {
    let text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>Sign in to the demo</title>\
         <link rel=\"stylesheet\" href=\"/style.css\"></head>\
         <body><header class=\"top\"><span class=\"mark\">Demo login</span></header><main id=\"main\">{main}</main></body></html>"
    );
    let headers = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, Html(text)).into_response()
}

fn seconds() -> u64 {
    now().as_millis() / 1000
}

/// Returns a secret for a client: 256 random bits in hexadecimal.
pub(super) fn secret() -> Result<String, NoRandomness> {
    let mut bytes = [0; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| NoRandomness)?;
    Ok(HEXLOWER.encode(&bytes))
}
