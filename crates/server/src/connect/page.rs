//! The pages as HTTP: who may see them, what they say, what they take.

use askama::Template;
use axum::extract::{Form, Path, State};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::link::Ticket;
use super::{Connect, Inner, Secret};
use crate::seal::SealError;

const POLICY: &str =
    "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

pub(super) fn router(connect: Connect) -> axum::Router {
    axum::Router::new()
        .route("/{ticket}", get(show).post(take))
        .with_state(connect)
}

#[derive(Template)]
#[template(path = "connect.html")]
struct Said<'a> {
    title: &'a str,
    lines: &'a [&'a str],
    label: Option<&'a str>,
}

impl Said<'_> {
    fn answer(&self, status: StatusCode) -> Response {
        let Ok(html) = self.render() else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        let headers = [
            (CONTENT_SECURITY_POLICY, POLICY),
            (REFERRER_POLICY, "no-referrer"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (CACHE_CONTROL, "no-store"),
        ];
        (status, headers, Html(html)).into_response()
    }
}

fn say(status: StatusCode, title: &str, line: &str) -> Response {
    Said {
        title,
        lines: &[line],
        label: None,
    }
    .answer(status)
}

/// The ticket, if it is good and the visitor is who it was made for; otherwise the page that says why not.
fn admit(inner: &Inner, sealed: &str, parts: &Parts) -> Result<Ticket, Box<Response>> {
    let ticket =
        Ticket::open(&inner.keys, sealed, inner.now_ms()).map_err(|error| match error {
            SealError::Expired => Box::new(say(
                StatusCode::GONE,
                "This link has expired",
                "Go back and ask again for a new one.",
            )),
            _ => Box::new(say(
                StatusCode::BAD_REQUEST,
                "This link is not valid",
                "Nothing has happened.",
            )),
        })?;
    let Some(visitor) = (inner.visitor)(parts) else {
        let line = "Sign in to this site in the same browser, then open the link again.";
        return Err(Box::new(say(
            StatusCode::UNAUTHORIZED,
            "Please sign in first",
            line,
        )));
    };
    if visitor != ticket.principal {
        tracing::warn!(target: "mcp_elicit", purpose = ticket.purpose, "a connect link was opened by another principal");
        let line = "If somebody sent it to you, do not follow it: you would connect your account to theirs.";
        return Err(Box::new(say(
            StatusCode::FORBIDDEN,
            "This link was made for somebody else",
            line,
        )));
    }
    Ok(ticket)
}

async fn show(
    State(connect): State<Connect>,
    Path(sealed): Path<String>,
    parts: Parts,
) -> Response {
    let inner = &connect.inner;
    match admit(inner, &sealed, &parts) {
        Ok(ticket) => ask(inner, &ticket, None, StatusCode::OK),
        Err(response) => *response,
    }
}

/// The page with its form, and with what went wrong last time.
fn ask(inner: &Inner, ticket: &Ticket, wrong: Option<&str>, status: StatusCode) -> Response {
    let Some(page) = inner.pages.get(&ticket.purpose) else {
        return say(
            StatusCode::NOT_FOUND,
            "There is no such page",
            "Nothing has happened.",
        );
    };
    let who = format!(
        "{} asks you for this, signed in as {}:",
        inner.server, ticket.principal
    );
    let kept = format!(
        "It is kept by {} and shown to nobody, the assistant included.",
        inner.server
    );
    let mut lines = vec![who.as_str(), ticket.message.as_str(), kept.as_str()];
    lines.extend(wrong);
    let title = format!("Connect {}", ticket.purpose);
    Said {
        title: &title,
        lines: &lines,
        label: Some(&page.label),
    }
    .answer(status)
}

#[derive(Deserialize)]
struct Left {
    secret: String,
}

async fn take(
    State(connect): State<Connect>,
    Path(sealed): Path<String>,
    parts: Parts,
    Form(left): Form<Left>,
) -> Response {
    let inner = &connect.inner;
    if !is_from_here(&inner.base, &parts.headers) {
        return say(
            StatusCode::FORBIDDEN,
            "This came from another site",
            "Nothing has happened.",
        );
    }
    let ticket = match admit(inner, &sealed, &parts) {
        Ok(ticket) => ticket,
        Err(response) => return *response,
    };
    let Some(page) = inner.pages.get(&ticket.purpose) else {
        return say(
            StatusCode::NOT_FOUND,
            "There is no such page",
            "Nothing has happened.",
        );
    };
    let Some(turn) = inner
        .waiting
        .take(&ticket.id, inner.now_ms(), ticket.until_ms)
    else {
        return say(
            StatusCode::GONE,
            "This link has been used",
            "Go back and ask again for a new one.",
        );
    };
    match (page.save)(ticket.principal.clone(), Secret(left.secret)).await {
        Ok(()) => {
            turn.complete();
            say(
                StatusCode::OK,
                "Done",
                "You can close this window and go back.",
            )
        }
        Err(cannot) => {
            drop(turn);
            ask(
                inner,
                &ticket,
                Some(&cannot.to_string()),
                StatusCode::UNPROCESSABLE_ENTITY,
            )
        }
    }
}

/// Browsers say where a form was sent from; what says another place is a forgery.
fn is_from_here(base: &str, headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    let own = url::Url::parse(base).map(|base| base.origin().ascii_serialization());
    own.is_ok_and(|own| origin.as_bytes() == own.as_bytes())
}
