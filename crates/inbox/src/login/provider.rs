//! The login at an OpenID provider: the authorization-code flow with PKCE, and logout.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_oidc::{
    AccessTokenError, AuthorizationResponse, Grant, Metadata, OidcError, Provider, Subject,
    TokenVerifier,
};
use mcp_elicit_record::audit::{Details, Event};
use mcp_elicit_record::encryption::random_id;
use mcp_elicit_record::{IdentityKey, UsedKind};
use serde_json::{Map, Value};

use super::OidcLogin;
use super::flow::{FLOW_LIFE, Flow, Flows};
use super::pages::{after_login, go, value_of};
use super::request_session::{Gate, cookie, cookie_names};
use super::table::devices::Device;
use super::table::{LoginError, LoginIdentity};
use crate::viewer::SignedIn;

/// The provider as an actor in the audit.
const PROVIDER: &str = "provider";
/// The number of grants above which those of ended sessions are dropped.
const MANY_GRANTS: usize = 1_024;
/// The most concurrent logins of one browser.
const MOST_FLOWS: usize = 8;
/// The time for which no login waits for a provider that another could not reach.
const FAIL_FAST: Duration = Duration::from_secs(5);
/// The age at which a provider's metadata are requested again before a browser is sent there.
const RECENT_MS: u64 = 5_000;
/// The time that a login waits for the provider's response.
const ANSWERS: Duration = Duration::from_secs(3);
/// The time after which an unreachable provider is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// The client of the provider.
pub(crate) struct ProviderClient {
    provider: Provider,
    /// The verifier of logout tokens, with separate keys.
    verifier: TokenVerifier,
    name: String,
    groups_claim: String,
    trust_mail: bool,
    flows: Flows,
    /// The grants of logged-in people, by session. In memory only: after a restart claims count until they are stale.
    grants: Mutex<HashMap<String, Arc<tokio::sync::Mutex<HeldGrant>>>>,
    /// The time of the last failure to reach it for a login.
    failed_at: Mutex<Option<Timestamp>>,
}

/// The grant of a logged-in person, for asking the provider about them again.
struct HeldGrant {
    subject: Subject,
    access: String,
    /// The time at which the access token expires, if the provider gives it.
    access_until: Option<Timestamp>,
    refresh: Option<String>,
    id_token: Option<String>,
    /// `true` once the claims of a person have contained groups: if they are absent later, there are none.
    shows_groups: bool,
    /// The time of the last failure to ask the provider.
    failed_at: Option<Timestamp>,
}

impl HeldGrant {
    fn of(grant: &Grant, subject: Subject, now: Timestamp) -> Self {
        Self {
            subject,
            access: grant.access_token().to_owned(),
            access_until: grant.expires_in().map(|time| now.after(time)),
            refresh: grant.refresh_token().map(str::to_owned),
            id_token: grant.id_token().map(str::to_owned),
            shows_groups: false,
            failed_at: None,
        }
    }

    /// Takes the tokens of a renewed grant.
    fn renew(&mut self, grant: &Grant, now: Timestamp) {
        grant.access_token().clone_into(&mut self.access);
        self.access_until = grant.expires_in().map(|time| now.after(time));
        if let Some(token) = grant.refresh_token() {
            self.refresh = Some(token.to_owned());
        }
        if let Some(token) = grant.id_token() {
            self.id_token = Some(token.to_owned());
        }
    }
}

/// The result of asking a provider about a person again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rechecked {
    /// The person still has every group, as far as is known.
    Same,
    /// The person has left a group.
    LeftGroup,
    /// The provider no longer admits the person, and the session has ended.
    Ended,
}

impl ProviderClient {
    /// Creates the client of this provider.
    ///
    /// # Errors
    /// If the provider cannot be used as configured.
    pub(super) fn new(login: &OidcLogin, identity: &IdentityKey) -> io::Result<Self> {
        let wrong = |error: mcp_elicit_oidc::ProviderError| {
            io::Error::new(io::ErrorKind::InvalidInput, error)
        };
        let scopes = login.scopes.iter().map(String::as_str);
        let provider = Provider::issuer(&login.issuer, &login.client_id)
            .map_err(wrong)?
            .scopes(std::iter::once("openid").chain(scopes.filter(|scope| *scope != "openid")));
        let verifier = Provider::issuer(&login.issuer, &login.client_id).map_err(wrong)?;
        Ok(Self {
            verifier: TokenVerifier::new(verifier),
            provider: match &login.client_secret {
                Some(secret) => provider.secret(secret),
                None => provider,
            },
            name: login.client_id.clone(),
            groups_claim: login.groups_claim.clone(),
            trust_mail: login.trust_mail,
            flows: Flows::new(identity),
            grants: Mutex::default(),
            failed_at: Mutex::default(),
        })
    }

    fn grants(&self) -> MutexGuard<'_, HashMap<String, Arc<tokio::sync::Mutex<HeldGrant>>>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the grant of a session.
    fn hold(&self, session: &str, grant: HeldGrant, live: impl Fn(&str) -> bool) {
        let mut grants = self.grants();
        if grants.len() >= MANY_GRANTS {
            grants.retain(|session, _| live(session));
        }
        grants.insert(session.to_owned(), Arc::new(tokio::sync::Mutex::new(grant)));
    }

    /// Returns the provider's metadata for a new login. The provider must respond, so that no one is sent to an
    /// unreachable one. After a recent failure, no login waits again.
    async fn metadata_for_login(
        &self,
        clock: fn() -> Timestamp,
    ) -> Result<Arc<Metadata>, OidcError> {
        let failed_at = || {
            self.failed_at
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let now = clock();
        let known = *failed_at();
        if known.is_some_and(|at| now.since(at) < FAIL_FAST) {
            return Err(OidcError::Unreachable(
                "it could not be a moment ago".to_owned(),
            ));
        }
        let asked = self.provider.metadata_since(now.as_millis(), RECENT_MS);
        let metadata = tokio::time::timeout(ANSWERS, asked).await;
        let metadata = metadata.unwrap_or_else(|_| {
            Err(OidcError::Unreachable(
                "it did not answer in time".to_owned(),
            ))
        });
        if matches!(metadata, Err(OidcError::Unreachable(_))) {
            *failed_at() = Some(clock());
        }
        metadata
    }

    /// Asks the provider about the person of a grant; `None` if it does not say.
    async fn ask(
        &self,
        held: &mut HeldGrant,
        known: &SignedIn,
        now: Timestamp,
    ) -> Result<Option<LoginIdentity>, OidcError> {
        let metadata = self.provider.metadata(now.as_millis()).await?;
        if let Some(refresh) = held.refresh.clone() {
            let refreshed = self.provider.refresh(&metadata, &refresh, &held.subject);
            let grant = refreshed.await?;
            held.renew(&grant, now);
            if let Some(claims) = grant.claims() {
                let subject = &held.subject;
                let claims = self.completed(&metadata, &held.access, subject, claims);
                return Ok(Some(self.identity_now(&claims.await?, known)));
            }
        } else if held.access_until.is_none_or(|until| now >= until) {
            // An expired token says nothing about the person.
            return Ok(None);
        }
        let asked = self
            .provider
            .userinfo(&metadata, &held.access, &held.subject);
        let Some(claims) = asked.await? else {
            return Ok(None);
        };
        held.shows_groups |= claims.contains_key(&self.groups_claim);
        Ok(held.shows_groups.then(|| self.identity_now(&claims, known)))
    }

    /// Returns the known person with these claims.
    fn identity_now(&self, claims: &Map<String, Value>, known: &SignedIn) -> LoginIdentity {
        let told = self.identity_of(&known.issuer, &known.subject, claims);
        LoginIdentity {
            name: if told.name.is_empty() {
                known.name.clone()
            } else {
                told.name
            },
            mail: told.mail.or_else(|| known.mail.clone()),
            ..told
        }
    }

    /// Returns the person of a grant; `None` if it has no ID token.
    async fn identity(&self, grant: &Grant, now: u64) -> Result<Option<LoginIdentity>, OidcError> {
        let (Some(subject), Some(claims)) = (grant.subject(), grant.claims()) else {
            return Ok(None);
        };
        let metadata = self.provider.metadata(now).await?;
        let claims = match self
            .completed(&metadata, grant.access_token(), subject, claims)
            .await
        {
            Ok(completed) => Cow::Owned(completed),
            // Without them the person has fewer rights, never more.
            Err(error) => {
                tracing::warn!(%error, "the provider says no more of a person than its ID token");
                Cow::Borrowed(claims)
            }
        };
        let identity = self.identity_of(subject.issuer(), subject.subject(), &claims);
        Ok(Some(identity))
    }

    /// Adds claims that the provider returns at its UserInfo endpoint only (OpenID Connect Core 1.0, 5.4), as some do
    /// with mail, name and groups. Claims of the ID token take precedence.
    async fn completed(
        &self,
        metadata: &Metadata,
        access_token: &str,
        subject: &Subject,
        claims: &Map<String, Value>,
    ) -> Result<Map<String, Value>, OidcError> {
        let mut all = claims.clone();
        let wanted = [
            self.groups_claim.as_str(),
            "name",
            "email",
            "email_verified",
        ];
        if wanted.into_iter().all(|name| all.contains_key(name)) {
            return Ok(all);
        }
        let asked = self.provider.userinfo(metadata, access_token, subject);
        let mut more = asked.await?.unwrap_or_default();
        // The verification of an address applies to that address only.
        if !all.contains_key("email") {
            all.remove("email_verified");
        }
        if all
            .get("email")
            .is_some_and(|mail| more.get("email") != Some(mail))
        {
            more.remove("email_verified");
        }
        for name in wanted.into_iter().chain(["preferred_username"]) {
            if let Some(value) = more.remove(name) {
                all.entry(name).or_insert(value);
            }
        }
        Ok(all)
    }

    fn identity_of(
        &self,
        issuer: &str,
        subject: &str,
        claims: &Map<String, Value>,
    ) -> LoginIdentity {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let is_verified =
            self.trust_mail || claims.get("email_verified") == Some(&Value::Bool(true));
        let names = ["name", "preferred_username", "email"];
        LoginIdentity {
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            name: names
                .into_iter()
                .find_map(text)
                .unwrap_or_default()
                .to_owned(),
            mail: text("email").filter(|_| is_verified).map(str::to_owned),
            claims: groups(claims, &self.groups_claim),
            sid: text("sid").map(str::to_owned),
            auth_at: claims.get("auth_time").map(auth_time),
        }
    }
}

/// Asks the provider about a person again, if the data are too old for an action. An unreachable provider revokes
/// nothing.
///
/// # Errors
/// If the logins cannot be read or written.
pub(super) async fn recheck(gate: &Arc<Gate>, known: &Arc<SignedIn>) -> io::Result<Rechecked> {
    let (gate, known) = (gate.clone(), known.clone());
    // Runs to its end even if the browser disconnects: a used refresh token must not be lost.
    let checked = tokio::spawn(async move { rechecked(&gate, &known).await });
    checked.await.map_err(io::Error::other)?
}

async fn rechecked(gate: &Gate, known: &SignedIn) -> io::Result<Rechecked> {
    let Some(client) = &gate.provider else {
        return Ok(Rechecked::Same);
    };
    let held = client.grants().get(&known.session).cloned();
    let Some(held) = held else {
        return Ok(Rechecked::Same);
    };
    let mut held = held.lock().await;
    let now = (gate.clock)();
    let recheck = gate.settings.recheck;
    // Another request may have asked meanwhile.
    let claims_at = gate.logins.table()?.claims_at(&known.person);
    let is_fresh = claims_at.is_some_and(|at| now.since(at) < recheck);
    let has_failed = |at: Timestamp| now.since(at) < ASK_AGAIN.min(recheck);
    if is_fresh || held.failed_at.is_some_and(has_failed) {
        return Ok(Rechecked::Same);
    }
    match client.ask(&mut held, known, now).await {
        Ok(Some(identity)) => {
            held.failed_at = None;
            gate.logins.refresh(&known.person, &identity, now)?;
            let has = |group: &String| identity.claims.contains(group);
            Ok(if known.claims.iter().all(has) {
                Rechecked::Same
            } else {
                Rechecked::LeftGroup
            })
        }
        Ok(None) => {
            held.failed_at = Some(now);
            Ok(Rechecked::Same)
        }
        Err(error) if error.ends_grant() => {
            client.grants().remove(&known.session);
            let ended = gate.logins.end(|session| session.id() == known.session)?;
            note_devices(gate, &ended.devices).await;
            note_session(gate, &known.person, &known.session).await;
            Ok(Rechecked::Ended)
        }
        Err(error) => {
            tracing::warn!(%error, "the provider could not be asked again who a person is");
            held.failed_at = Some(now);
            Ok(Rechecked::Same)
        }
    }
}

/// Audits that the provider has ended these devices.
async fn note_devices(gate: &Gate, devices: &[Device]) {
    for device in devices {
        let details = Details {
            person: Some(device.person()),
            device: Some(device.id()),
            ..Details::by(PROVIDER)
        };
        gate.note(Event::DeviceRemoved, details).await;
    }
}

/// Audits that the provider has ended the session of a person.
async fn note_session(gate: &Gate, person: &str, session: &str) {
    let details = Details {
        person: Some(person),
        session: Some(session),
        ..Details::by(PROVIDER)
    };
    gate.note(Event::SessionEnded, details).await;
}

/// Audits the result of a logout token.
async fn note_token(gate: &Gate, result: &str, left_out: u64) {
    let details = Details {
        reason: Some(result),
        left_out,
        ..Details::by(PROVIDER)
    };
    gate.note(Event::LogoutToken, details).await;
}

/// Returns the values of the claim of groups: a list of texts, or one text.
fn groups(claims: &Map<String, Value>, name: &str) -> Vec<String> {
    match claims.get(name) {
        Some(Value::Array(all)) => {
            let texts = all.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        }
        Some(Value::String(one)) => vec![one.clone()],
        _ => Vec::new(),
    }
}

/// Returns the prefix of flow cookies. With `__Host-`, no other host can set one.
fn flow_cookies(gate: &Gate) -> &'static str {
    if gate.site.is_secure() {
        "__Host-mcp-elicit-flow-"
    } else {
        "mcp-elicit-flow-"
    }
}

/// Returns the path of the cookies of flows: that of the login, unless `__Host-` requires the whole host.
fn flow_path(gate: &Gate) -> String {
    if gate.site.is_secure() {
        "/".to_owned()
    } else {
        format!("{}/login", gate.site.outer_path())
    }
}

/// Returns the name of the cookie of one flow, so that two logins at once do not conflict.
fn flow_cookie(gate: &Gate, state: &str) -> String {
    format!("{}{}", flow_cookies(gate), state.get(..12).unwrap_or(state))
}

/// Returns the names of the flow cookies that a browser must drop when it gets a new one. Browsers send the oldest
/// first.
fn flows_to_end(headers: &HeaderMap, prefix: &str) -> Vec<String> {
    let is_name = |name: &str| {
        name.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let names = cookie_names(headers).filter(|name| name.starts_with(prefix) && is_name(name));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.truncate((names.len() + 1).saturating_sub(MOST_FLOWS));
    names
}

fn redirect_uri(gate: &Gate) -> String {
    format!("{}login/return", gate.site.address())
}

/// The login to request at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoginAgain {
    /// Any account that is logged in there.
    No,
    /// A fresh login of the person.
    Fresh,
    /// A choice of another account.
    Another,
}

/// Sends the browser to the provider.
pub(super) async fn start(
    gate: &Gate,
    headers: &HeaderMap,
    next: String,
    again: LoginAgain,
) -> Response {
    let Some(client) = &gate.provider else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let now = (gate.clock)().as_millis();
    let random = || random_id().and_then(|one| Ok(format!("{one}{}", random_id()?)));
    let (state, nonce) = match (random(), random_id()) {
        (Ok(state), Ok(nonce)) => (state, nonce),
        (Err(error), _) | (_, Err(error)) => return gate.failed(&error),
    };
    let address = async {
        let metadata = client.metadata_for_login(gate.clock).await?;
        let more: &[(&str, &str)] = match again {
            LoginAgain::No => &[],
            LoginAgain::Fresh => &[("max_age", "0"), ("prompt", "login")],
            LoginAgain::Another => &[("prompt", "select_account")],
        };
        client
            .provider
            .authorization_url(&metadata, &redirect_uri(gate), &state, &nonce, more)
    };
    let (address, verifier) = match address.await {
        Ok(address) => address,
        Err(error) => return failed(gate, &error),
    };
    let mut response = go(&address);
    let flow = Flow {
        nonce,
        verifier,
        next,
        began: now,
        is_fresh: again == LoginAgain::Fresh,
    };
    let sealed = match client.flows.seal(&state, &flow) {
        Ok(sealed) => sealed,
        Err(error) => return gate.failed(&error),
    };
    for name in flows_to_end(headers, flow_cookies(gate)) {
        if let Some(cookie) = gate.cookie_header(&name, "", 0, &flow_path(gate)) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
    }
    let age = FLOW_LIFE / 1_000;
    if let Some(cookie) =
        gate.cookie_header(&flow_cookie(gate, &state), &sealed, age, &flow_path(gate))
    {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// Handles the browser's return from the provider.
pub(super) async fn returned(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
    answer: Result<Query<AuthorizationResponse>, QueryRejection>,
) -> Response {
    let Some(client) = &gate.provider else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let now = (gate.clock)().as_millis();
    let answer = answer.ok().map(|Query(answer)| answer);
    let state = answer
        .as_ref()
        .and_then(|answer| answer.state())
        .map(str::to_owned);
    let flow = state.as_ref().and_then(|state| {
        let sealed = cookie(&headers, &flow_cookie(&gate, state));
        client.flows.open(state, sealed, now)
    });
    let (Some(answer), Some(state), Some(flow)) = (answer, state, flow) else {
        return begin_again(&gate);
    };
    // A code that was used is not sent again: the provider would end the grant that it was exchanged for.
    match gate.record.is_used(UsedKind::Login, state.as_bytes()).await {
        Ok(false) => {}
        Ok(true) => return begin_again(&gate),
        Err(fault) => return gate.failed(&io::Error::other(fault)),
    }
    let ends = Timestamp::from_millis(flow.ends());
    let grant = async {
        let metadata = client.provider.metadata(now).await?;
        // A response of another issuer ends here: its code goes to no token endpoint.
        let code = answer.code(&metadata)?;
        let redirect = redirect_uri(&gate);
        client
            .provider
            .exchange_code(&metadata, &redirect, code, flow.verifier, &flow.nonce)
            .await
    };
    let grant = match grant.await {
        Ok(grant) => grant,
        Err(error) => {
            if let Some(left_out) = gate.failed_logins.count((gate.clock)()) {
                log_failed(&error, left_out);
                let details = Details {
                    reason: Some(word(&error)),
                    left_out,
                    ..Details::by(PROVIDER)
                };
                gate.note(Event::SignInRefused, details).await;
            }
            return refused(&gate, &error);
        }
    };
    let mut identity = match client.identity(&grant, now).await {
        Ok(Some(identity)) => identity,
        Ok(None) => return failed(&gate, &OidcError::Odd("no ID token came".to_owned())),
        Err(error) => return failed(&gate, &error),
    };
    let used = gate
        .record
        .use_once(UsedKind::Login, state.as_bytes(), ends);
    match used.await {
        Ok(true) => {}
        Ok(false) => return begin_again(&gate),
        Err(fault) => return gate.failed(&io::Error::other(fault)),
    }
    if flow.is_fresh && identity.auth_at.is_none() {
        // The provider does not report the time, and was asked for a fresh login.
        identity.auth_at = Some(Timestamp::from_millis(flow.began));
    }
    let mut response = match gate.log_in(&identity, &headers).await {
        Ok((cookie, signed_in)) => {
            if let Some(subject) = grant.subject().cloned() {
                let held = HeldGrant::of(&grant, subject, Timestamp::from_millis(now));
                let table = gate.logins.table().unwrap_or_default();
                client.hold(&signed_in.session, held, |session| {
                    table.has_session(session)
                });
            }
            let mut response = go(&after_login(&gate, &flow.next));
            if let Some(cookie) = gate.set_cookie(&cookie) {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            response
        }
        Err(LoginError::Refused(refused)) => gate.refused(refused, &identity),
        Err(LoginError::File(error)) => gate.failed(&error),
    };
    if let Some(cookie) = gate.cookie_header(&flow_cookie(&gate, &state), "", 0, &flow_path(&gate))
    {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// Returns the page for a login that cannot go on.
fn begin_again(gate: &Gate) -> Response {
    let line = "This login was not begun in this browser, took too long, or is over already. Begin again from the inbox.";
    gate.try_again(StatusCode::BAD_REQUEST, "Log in again", line.to_owned())
}

fn word(error: &OidcError) -> &'static str {
    match error {
        OidcError::Denied => "denied",
        OidcError::WrongIssuer => "wrong-issuer",
        OidcError::Unreachable(_) => "unreachable",
        OidcError::Odd(_) | OidcError::OtherPerson => "untrusted",
        OidcError::Setup(_) => "setup",
    }
}

/// Logs a login that failed at the provider.
fn log_failed(error: &OidcError, left_out: u64) {
    if matches!(error, OidcError::Setup(_)) {
        tracing::warn!(%error, left_out, "a login failed at the provider: look at `client-id` and `client-secret` of [login], and at the redirect address there");
    } else {
        tracing::warn!(%error, left_out, "a login failed at the provider");
    }
}

/// Logs a login that failed at the provider, and returns the page for it.
fn failed(gate: &Gate, error: &OidcError) -> Response {
    if let Some(left_out) = gate.failed_logins.count((gate.clock)()) {
        log_failed(error, left_out);
    }
    refused(gate, error)
}

/// Returns the page for a login that failed at the provider.
fn refused(gate: &Gate, error: &OidcError) -> Response {
    let (status, head, line) = match error {
        OidcError::Denied => (
            StatusCode::FORBIDDEN,
            "Not logged in",
            "The provider did not let you in, or you said no there.",
        ),
        OidcError::Unreachable(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "The login is down",
            "The provider at which people log in cannot be reached. Browsers that are logged in stay so; questions wait. Try again later.",
        ),
        OidcError::WrongIssuer | OidcError::Odd(_) | OidcError::OtherPerson => (
            StatusCode::BAD_GATEWAY,
            "Not logged in",
            "The provider's answer cannot be trusted. Whoever runs this gateway finds the reason in its log.",
        ),
        OidcError::Setup(_) => (
            StatusCode::BAD_GATEWAY,
            "Not logged in",
            "The provider does not accept this inbox as it is set up. Whoever runs this gateway finds the reason in its log.",
        ),
    };
    gate.try_again(status, head, line.to_owned())
}

/// Returns the address at which the provider ends its own session (OpenID Connect RP-Initiated Logout 1.0), if it has
/// one.
pub(super) async fn end_session(gate: &Gate, session: &str) -> Option<String> {
    let client = gate.provider.as_ref()?;
    let held = client.grants().remove(session);
    let hint = match held {
        Some(held) => held.lock().await.id_token.clone(),
        None => None,
    };
    let metadata = client
        .provider
        .metadata((gate.clock)().as_millis())
        .await
        .ok()?;
    let endpoint = metadata.end_session_endpoint()?;
    let back = format!("{}logged-out", gate.site.address());
    let mut parameters = vec![
        ("client_id", client.name.as_str()),
        ("post_logout_redirect_uri", back.as_str()),
    ];
    // The provider then knows the session, and need not ask.
    parameters.extend(hint.as_deref().map(|token| ("id_token_hint", token)));
    let request = reqwest::Url::parse_with_params(endpoint, parameters);
    request.ok().map(String::from)
}

/// Handles the provider's notice that a person has logged out there (OpenID Connect Back-Channel Logout 1.0).
pub(super) async fn logout_token(
    State(gate): State<Arc<Gate>>,
    body: Result<axum::body::Bytes, BytesRejection>,
) -> Response {
    let Some(client) = &gate.provider else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let now = (gate.clock)();
    let refuse = |status: StatusCode, why: &str| {
        let body =
            axum::Json(serde_json::json!({"error": "invalid_request", "error_description": why}));
        (status, body).into_response()
    };
    let body = match body {
        Ok(body) => body,
        Err(rejected) => return refuse(rejected.status(), "the request is too large, or is cut"),
    };
    let text = String::from_utf8_lossy(&body);
    let token = value_of(&text, "logout_token").unwrap_or_default();
    let token = match client.verifier.verify_logout(&token, now).await {
        Ok(token) => token,
        Err(error) => {
            let is_down = matches!(error, AccessTokenError::Unavailable { .. });
            let why = error.to_string();
            // Anyone can send these.
            if let Some(left_out) = gate.refused_tokens.count(now) {
                tracing::warn!(%why, left_out, "a logout token was refused");
                if !is_down {
                    note_token(&gate, &why, left_out).await;
                }
            }
            return if is_down {
                refuse(StatusCode::SERVICE_UNAVAILABLE, &why)
            } else {
                refuse(StatusCode::BAD_REQUEST, &why)
            };
        }
    };
    let subject = token.subject.as_ref().map(Subject::subject);
    let issuer = gate.settings.issuer();
    let ended = gate
        .logins
        .end_by_token(issuer, subject, token.sid.as_deref(), &token.jti, now);
    let ended = match ended {
        Ok(Some(ended)) => ended,
        Ok(None) => {
            tracing::warn!("a logout token was used before");
            note_token(&gate, "used-before", 0).await;
            return refuse(StatusCode::BAD_REQUEST, "the token was used before");
        }
        Err(error) => return gate.failed(&error),
    };
    note_token(&gate, "accepted", 0).await;
    note_devices(&gate, &ended.devices).await;
    for session in &ended.sessions {
        note_session(&gate, session.person(), session.id()).await;
    }
    // Open pages notice it at their next check.
    StatusCode::OK.into_response()
}

/// Returns the time of a login from `auth_time`, which counts seconds since 1970, also in fractions. One that cannot be read
/// is no recent login.
fn auth_time(claim: &Value) -> Timestamp {
    let seconds = claim.as_f64().unwrap_or_default();
    let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    Timestamp::from_epoch(time)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::header::COOKIE;

    use super::*;

    #[test]
    fn the_oldest_logins_of_a_browser_end_for_a_further_one() {
        let to_end = |cookies: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_str(cookies).unwrap());
            flows_to_end(&headers, "p-")
        };
        let flows = |count: usize| {
            let all: Vec<String> = (0..count).map(|number| format!("p-{number}=x")).collect();
            all.join("; ")
        };
        assert!(to_end(&flows(MOST_FLOWS - 1)).is_empty());
        assert_eq!(to_end(&format!("q-1=y; {}", flows(MOST_FLOWS))), ["p-0"]);
        assert_eq!(to_end(&flows(MOST_FLOWS + 2)), ["p-0", "p-1", "p-2"]);
        // A name that a header cannot contain is not repeated.
        assert!(to_end(&format!("p-\u{e9}=x; {}", flows(MOST_FLOWS - 1))).is_empty());
    }
}
