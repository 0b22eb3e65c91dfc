//! The redirect to a provider, and the callback.

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, HeaderValue, LOCATION, REFERRER_POLICY, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use mcp_elicit_forms::theme::Tone;
use mcp_elicit_oidc::{AuthorizationResponse, Grant, OidcError, Provider};

use super::super::link::LinkToken;
use super::super::pending_visits::VisitEnd;
use super::super::templates::{NoticeTemplate, Onward};
use super::super::{Behind, Connect, ConnectParts};
use super::SignInProvider;
use super::error::FlowError;
use super::flow::{FlowPurpose, FlowState, forget_many};
use crate::seal;

pub(in super::super) fn on(router: axum::Router<Connect>) -> axum::Router<Connect> {
    router
        .route("/{ticket}/go", get(go))
        .route("/{ticket}/sign-in", get(sign_in))
        .route("/back/{purpose}", get(back))
        .route("/signed-in", get(signed_in))
}

/// Returns the redirect to the visitor's sign-in, if there is one.
pub(in super::super) fn sign_in_first(
    inner: &ConnectParts,
    ticket: &LinkToken,
) -> Option<Response> {
    inner.sign_in.as_ref()?;
    let onward = Onward::to(format!("{}/sign-in", inner.address(ticket)?), "Sign in");
    let lines = [
        "This link is for one person only. Sign in to show that it is you; then you see what it is about.",
    ];
    let notice = NoticeTemplate::new(inner.site(), Tone::Locked, "Please sign in first", &lines);
    Some(notice.onward(Some(onward)).page(StatusCode::UNAUTHORIZED))
}

/// Returns the page about an error, and logs it for the operator of this server.
pub(in super::super) fn tell(
    inner: &ConnectParts,
    ticket: Option<&LinkToken>,
    trouble: &FlowError,
) -> Response {
    let purpose = ticket.map_or("the provider", |ticket| ticket.purpose.as_str());
    tracing::warn!(target: "mcp_elicit", purpose, %trouble, "a sign-in for a connect page failed");
    let onward = ticket.and_then(|ticket| Onward::again(inner, ticket));
    trouble.page(inner, purpose, onward)
}

/// Redirects the person to the provider that grants access.
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

/// Redirects the visitor to the provider's sign-in. The link has to be valid, and may belong to another principal.
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
    inner: &ConnectParts,
    provider: &Provider,
    purpose: FlowPurpose,
    redirect: String,
    ticket: &LinkToken,
) -> Result<Response, FlowError> {
    let metadata = provider.metadata(inner.now_ms()).await?;
    let random = || seal::unguessable().map_err(|error| OidcError::Unreachable(error.to_string()));
    let (state, nonce) = (random()?, random()?);
    let (url, verifier) = provider.authorization_url(&metadata, &redirect, &state, &nonce, &[])?;
    let flow = FlowState {
        purpose,
        state,
        verifier,
        nonce,
        ticket: ticket.cut(),
    };
    let cookie = flow.set_cookie(inner);
    let cookie = cookie.map_err(|error| OidcError::Unreachable(error.to_string()))?;
    redirect_to(&url, cookie)
        .ok_or_else(|| OidcError::Setup("its address fits no header".to_owned()).into())
}

/// Handles the callback of a grant.
async fn back(
    State(connect): State<Connect>,
    Path(purpose): Path<String>,
    Query(answer): Query<AuthorizationResponse>,
    parts: Parts,
) -> Response {
    let inner = &connect.inner;
    let Some(flow) = flow_of(inner, &parts, FlowPurpose::Grant, &answer) else {
        return tell(inner, None, &FlowError::NoFlow);
    };
    // Each purpose has its own redirect URI: another provider's response does not count here.
    if flow.ticket.purpose != purpose {
        return tell(inner, Some(&flow.ticket), &OidcError::WrongIssuer.into());
    }
    let mut response = arrive(inner, &parts, &flow, answer).await;
    forget(inner, &flow, response.headers_mut());
    response
}

async fn arrive(
    inner: &ConnectParts,
    parts: &Parts,
    flow: &FlowState,
    answer: AuthorizationResponse,
) -> Response {
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
        let grant = exchange(inner, provider, &redirect, flow, answer).await?;
        let saved = save(ticket.principal.clone(), grant).await;
        saved.map_err(|cannot| FlowError::Unsaved(cannot.to_string()))
    };
    match stored.await {
        Ok(()) => inner.end(turn, VisitEnd::Done),
        Err(trouble) => {
            drop(turn);
            tell(inner, Some(ticket), &trouble)
        }
    }
}

/// Exchanges the code of a flow for a grant.
async fn exchange(
    inner: &ConnectParts,
    provider: &Provider,
    redirect: &str,
    flow: &FlowState,
    answer: AuthorizationResponse,
) -> Result<Grant, OidcError> {
    let metadata = provider.metadata(inner.now_ms()).await?;
    let code = answer.code(&metadata)?;
    let verifier = flow.verifier.clone();
    provider
        .exchange_code(&metadata, redirect, code, verifier, &flow.nonce)
        .await
}

/// Handles the callback of a sign-in.
async fn signed_in(
    State(connect): State<Connect>,
    Query(answer): Query<AuthorizationResponse>,
    parts: Parts,
) -> Response {
    let inner = &connect.inner;
    let Some(flow) = flow_of(inner, &parts, FlowPurpose::SignIn, &answer) else {
        return tell(inner, None, &FlowError::NoFlow);
    };
    let mut response = recognise(inner, &flow, answer)
        .await
        .unwrap_or_else(|trouble| tell_of_sign_in(inner, &flow.ticket, &trouble));
    forget(inner, &flow, response.headers_mut());
    response
}

async fn recognise(
    inner: &ConnectParts,
    flow: &FlowState,
    answer: AuthorizationResponse,
) -> Result<Response, FlowError> {
    if inner.now_ms() >= flow.ticket.until_ms {
        return Ok(inner.expired());
    }
    let Some(sign_in) = &inner.sign_in else {
        return Ok(StatusCode::NOT_FOUND.into_response());
    };
    let redirect = inner.sign_in_redirect_uri();
    let grant = exchange(inner, &sign_in.provider, &redirect, flow, answer).await?;
    let odd = |why: &str| FlowError::from(OidcError::Odd(why.to_owned()));
    let subject = grant.subject().ok_or_else(|| odd("nobody signed in"))?;
    let Some(principal) = (sign_in.name)(subject) else {
        return Ok(inner.say(
            StatusCode::FORBIDDEN,
            Tone::Locked,
            "You are not known here",
            "You signed in, but this server does not know that account. Nothing has happened.",
        ));
    };
    let session = SignInProvider::session(inner);
    let cookie = session.set_cookie_at(&principal, (inner.clock)());
    let cookie = cookie.map_err(|error| OidcError::Unreachable(error.to_string()))?;
    let here = inner.address(&flow.ticket);
    here.and_then(|here| redirect_to(&here, cookie))
        .ok_or_else(|| odd("the way back fits no header"))
}

fn tell_of_sign_in(inner: &ConnectParts, ticket: &LinkToken, trouble: &FlowError) -> Response {
    tracing::warn!(target: "mcp_elicit", %trouble, "a visitor could not sign in");
    let again = inner
        .address(ticket)
        .map(|here| Onward::to(here, "Try again"));
    trouble.page(inner, "The sign-in", again)
}

fn flow_of(
    inner: &ConnectParts,
    parts: &Parts,
    purpose: FlowPurpose,
    answer: &AuthorizationResponse,
) -> Option<FlowState> {
    FlowState::back(inner, parts, purpose, answer.state()?)
}

/// Returns the response with headers that delete old flows.
fn lightened(inner: &ConnectParts, parts: &Parts, mut response: Response) -> Response {
    for cookie in forget_many(inner, parts) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

fn forget(inner: &ConnectParts, flow: &FlowState, headers: &mut HeaderMap) {
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
