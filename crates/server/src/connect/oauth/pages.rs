//! Leaving for a provider, and coming back.

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, HeaderValue, LOCATION, REFERRER_POLICY, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use mcp_elicit_forms::theme::Tone;
use oauth2::{CsrfToken, PkceCodeChallenge, Scope};
use serde::Deserialize;

use super::super::link::LinkToken;
use super::super::pending_visits::End;
use super::super::templates::{Notice, Onward};
use super::super::{Behind, Connect, Inner};
use super::SignIn;
use super::error::FlowError;
use super::flow::{FlowPurpose, FlowState, forget_many};
use super::provider::{Known, Provider};
use super::token;
use crate::seal;

pub(in super::super) fn on(router: axum::Router<Connect>) -> axum::Router<Connect> {
    router
        .route("/{ticket}/go", get(go))
        .route("/{ticket}/sign-in", get(sign_in))
        .route("/back/{purpose}", get(back))
        .route("/signed-in", get(signed_in))
}

/// The parameters with which a provider redirects a browser (RFC 6749, 4.1.2; RFC 9207).
#[derive(Deserialize)]
struct Answer {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    iss: Option<String>,
}

/// Returns the redirect to the sign-in of a visitor, where there is one.
pub(in super::super) fn sign_in_first(inner: &Inner, ticket: &LinkToken) -> Option<Response> {
    inner.sign_in.as_ref()?;
    let onward = Onward::to(format!("{}/sign-in", inner.address(ticket)?), "Sign in");
    let lines = [
        "This link is for one person only. Sign in to show that it is you; then you see what it is about.",
    ];
    let notice = Notice::new(inner.site(), Tone::Locked, "Please sign in first", &lines);
    Some(notice.onward(Some(onward)).page(StatusCode::UNAUTHORIZED))
}

/// The page about an error, and a line in the log for the operator of this server.
pub(in super::super) fn tell(
    inner: &Inner,
    ticket: Option<&LinkToken>,
    trouble: &FlowError,
) -> Response {
    let purpose = ticket.map_or("the provider", |ticket| ticket.purpose.as_str());
    tracing::warn!(target: "mcp_elicit", purpose, %trouble, "a sign-in for a connect page failed");
    let onward = ticket.and_then(|ticket| Onward::again(inner, ticket));
    trouble.page(inner, purpose, onward)
}

/// Off to let this server in.
async fn go(State(connect): State<Connect>, Path(sealed): Path<String>, parts: Parts) -> Response {
    let inner = &connect.inner;
    let ticket = match inner.admit(&sealed, &parts) {
        Ok(ticket) => ticket,
        Err(response) => return *response,
    };
    let Some(Behind::Grant { provider, .. }) = inner.pages.get(&ticket.purpose) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let redirect = inner.redirect_uri(&ticket.purpose);
    leave(inner, provider, FlowPurpose::Grant, redirect, &ticket)
        .await
        .map_or_else(
            |trouble| tell(inner, Some(&ticket), &trouble),
            |response| lightened(inner, &parts, response),
        )
}

/// Off to say who the visitor is. The link has to be good, and can be anybody's.
async fn sign_in(
    State(connect): State<Connect>,
    Path(sealed): Path<String>,
    parts: Parts,
) -> Response {
    let inner = &connect.inner;
    let Some(sign_in) = &inner.sign_in else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let ticket = match inner.ticket_in(&sealed) {
        Ok(ticket) => ticket,
        Err(response) => return *response,
    };
    let redirect = inner.sign_in_redirect_uri();
    leave(
        inner,
        &sign_in.provider,
        FlowPurpose::SignIn,
        redirect,
        &ticket,
    )
    .await
    .map_or_else(
        |trouble| tell_of_sign_in(inner, &ticket, &trouble),
        |response| lightened(inner, &parts, response),
    )
}

async fn leave(
    inner: &Inner,
    provider: &Provider,
    errand: FlowPurpose,
    redirect: String,
    ticket: &LinkToken,
) -> Result<Response, FlowError> {
    let known = provider.known(inner.now_ms()).await?;
    let random = || seal::unguessable().map_err(|error| FlowError::Unreachable(error.to_string()));
    let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
    let flow = FlowState {
        errand,
        state: random()?,
        verifier: verifier.secret().clone(),
        nonce: random()?,
        ticket: ticket.cut(),
    };
    let client = token::client(provider, &known, redirect)?;
    let state = || CsrfToken::new(flow.state.clone());
    let mut request = client.authorize_url(state).set_pkce_challenge(challenge);
    for scope in provider.scopes_asked() {
        request = request.add_scope(Scope::new(scope.clone()));
    }
    if provider.asks_who() {
        request = request.add_extra_param("nonce", flow.nonce.clone());
    }
    for (name, value) in provider.parameters() {
        request = request.add_extra_param(name, value);
    }
    let (url, _) = request.url();
    let cookie = flow.set_cookie(inner);
    let cookie = cookie.map_err(|error| FlowError::Unreachable(error.to_string()))?;
    redirect_to(url.as_str(), cookie)
        .ok_or_else(|| FlowError::Setup("its address fits no header".to_owned()))
}

/// Back from letting this server in.
async fn back(
    State(connect): State<Connect>,
    Path(purpose): Path<String>,
    Query(answer): Query<Answer>,
    parts: Parts,
) -> Response {
    let inner = &connect.inner;
    let Some(flow) = flow_of(inner, &parts, FlowPurpose::Grant, &answer) else {
        return tell(inner, None, &FlowError::NoTrip);
    };
    // Each purpose has a redirect URI of its own: another provider's answer does not count here.
    if flow.ticket.purpose != purpose {
        return tell(inner, Some(&flow.ticket), &FlowError::WrongIssuer);
    }
    let mut response = arrive(inner, &parts, &flow, answer).await;
    forget(inner, &flow, response.headers_mut());
    response
}

async fn arrive(inner: &Inner, parts: &Parts, flow: &FlowState, answer: Answer) -> Response {
    let ticket = &flow.ticket;
    if inner.now_ms() >= ticket.until_ms {
        return inner.expired();
    }
    if let Err(response) = inner.check_visitor(ticket, parts) {
        return *response;
    }
    let Some(Behind::Grant { provider, save }) = inner.pages.get(&ticket.purpose) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let turn = match inner.turn(ticket) {
        Ok(turn) => turn,
        Err(response) => return *response,
    };
    let redirect = inner.redirect_uri(&ticket.purpose);
    let stored = async {
        let known = provider.known(inner.now_ms()).await?;
        let code = code(&known, answer)?;
        let grant = token::exchange(provider, &known, redirect, flow, code).await?;
        let saved = save(ticket.principal.clone(), grant).await;
        saved.map_err(|cannot| FlowError::Unsaved(cannot.to_string()))
    };
    match stored.await {
        Ok(()) => inner.end(turn, End::Done),
        Err(trouble) => {
            drop(turn);
            tell(inner, Some(ticket), &trouble)
        }
    }
}

/// Back from saying who the visitor is.
async fn signed_in(
    State(connect): State<Connect>,
    Query(answer): Query<Answer>,
    parts: Parts,
) -> Response {
    let inner = &connect.inner;
    let Some(flow) = flow_of(inner, &parts, FlowPurpose::SignIn, &answer) else {
        return tell(inner, None, &FlowError::NoTrip);
    };
    let mut response = recognise(inner, &flow, answer)
        .await
        .unwrap_or_else(|trouble| tell_of_sign_in(inner, &flow.ticket, &trouble));
    forget(inner, &flow, response.headers_mut());
    response
}

async fn recognise(inner: &Inner, flow: &FlowState, answer: Answer) -> Result<Response, FlowError> {
    if inner.now_ms() >= flow.ticket.until_ms {
        return Ok(inner.expired());
    }
    let Some(sign_in) = &inner.sign_in else {
        return Ok(StatusCode::NOT_FOUND.into_response());
    };
    let known = sign_in.provider.known(inner.now_ms()).await?;
    let code = code(&known, answer)?;
    let redirect = inner.sign_in_redirect_uri();
    let grant = token::exchange(&sign_in.provider, &known, redirect, flow, code).await?;
    let odd = |why: &str| FlowError::Odd(why.to_owned());
    let subject = grant.subject().ok_or_else(|| odd("nobody signed in"))?;
    let Some(principal) = (sign_in.name)(subject) else {
        return Ok(inner.say(
            StatusCode::FORBIDDEN,
            Tone::Locked,
            "You are not known here",
            "You signed in, but this server does not know that account. Nothing has happened.",
        ));
    };
    let session = SignIn::session(inner);
    let cookie = session.set_cookie_at(&principal, (inner.clock)());
    let cookie = cookie.map_err(|error| FlowError::Unreachable(error.to_string()))?;
    let here = inner.address(&flow.ticket);
    here.and_then(|here| redirect_to(&here, cookie))
        .ok_or_else(|| odd("the way back fits no header"))
}

fn tell_of_sign_in(inner: &Inner, ticket: &LinkToken, trouble: &FlowError) -> Response {
    tracing::warn!(target: "mcp_elicit", %trouble, "a visitor could not sign in");
    let again = inner
        .address(ticket)
        .map(|here| Onward::to(here, "Try again"));
    trouble.page(inner, "The sign-in", again)
}

fn flow_of(
    inner: &Inner,
    parts: &Parts,
    errand: FlowPurpose,
    answer: &Answer,
) -> Option<FlowState> {
    FlowState::back(inner, parts, errand, answer.state.as_deref()?)
}

/// The code of an answer that comes from whom it should (RFC 9207, 2.4), or why there is none.
fn code(known: &Known, answer: Answer) -> Result<String, FlowError> {
    let promised = known.authorization_response_iss_parameter_supported;
    match (&known.issuer, &answer.iss) {
        (Some(issuer), Some(iss)) if issuer != iss => return Err(FlowError::WrongIssuer),
        (_, None) if promised => return Err(FlowError::WrongIssuer),
        _ => {}
    }
    if let Some(error) = answer.error {
        return Err(FlowError::from_code(&error));
    }
    answer
        .code
        .ok_or_else(|| FlowError::Odd("neither a code nor an error".to_owned()))
}

/// Returns the response that also deletes old flows.
fn lightened(inner: &Inner, parts: &Parts, mut response: Response) -> Response {
    for cookie in forget_many(inner, parts) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

fn forget(inner: &Inner, flow: &FlowState, headers: &mut HeaderMap) {
    if let Some(cookie) = flow.forget(inner) {
        headers.append(SET_COOKIE, cookie);
    }
}

fn redirect_to(url: &str, cookie: HeaderValue) -> Option<Response> {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_str(url).ok()?);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.append(SET_COOKIE, cookie);
    Some(response)
}
