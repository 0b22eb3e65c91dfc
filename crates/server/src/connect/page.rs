//! The pages over HTTP: who may see them, what they accept, how they end.

use axum::extract::{Form, Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use http::header::ORIGIN;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use mcp_elicit_forms::theme::Tone;
use serde::Deserialize;

use super::link::LinkToken;
use super::pending_visits::{VisitClaim, VisitEnd};
#[cfg(feature = "oauth")]
use super::templates::ShownHost;
use super::templates::{NoticeTemplate, PageBody, TokenPage, style};
use super::{Behind, Connect, ConnectParts, Secret};
use crate::seal::SealError;

pub(super) fn router(connect: Connect) -> axum::Router {
    let router = axum::Router::new()
        .route("/style.css", get(style))
        .route("/{ticket}", get(show).post(take))
        .route("/{ticket}/decline", post(decline));
    #[cfg(feature = "oauth")]
    let router = super::oauth::pages::on(router);
    router.with_state(connect)
}

impl ConnectParts {
    pub(super) fn say(&self, status: StatusCode, tone: Tone, head: &str, line: &str) -> Response {
        NoticeTemplate::new(self.site(), tone, head, &[line]).page(status)
    }

    /// Returns the link's token if it is valid and the visitor is its principal; otherwise the page that gives the
    /// reason.
    pub(super) fn admit(&self, sealed: &str, parts: &Parts) -> Result<LinkToken, Box<Response>> {
        let ticket = self.ticket_in(sealed)?;
        self.check_visitor(&ticket, parts)?;
        Ok(ticket)
    }

    /// Returns the token of a link, for any visitor.
    pub(super) fn ticket_in(&self, sealed: &str) -> Result<LinkToken, Box<Response>> {
        let ticket = LinkToken::open(&self.keys, sealed, self.now_ms()).map_err(|error| {
            Box::new(match error {
                SealError::Expired => self.expired(),
                _ => self.say(
                    StatusCode::BAD_REQUEST,
                    Tone::Bad,
                    "This link is not valid",
                    "Nothing has happened. Check that it was copied whole, or ask your assistant again for a new one.",
                ),
            })
        })?;
        Ok(ticket)
    }

    /// Checks the specification's phishing case: the visitor who follows a link must be the person who was asked.
    pub(super) fn check_visitor(
        &self,
        ticket: &LinkToken,
        parts: &Parts,
    ) -> Result<(), Box<Response>> {
        let Some(visitor) = self.visitor(parts) else {
            return Err(Box::new(self.sign_in_first(ticket)));
        };
        if visitor == ticket.principal {
            return Ok(());
        }
        tracing::warn!(target: "mcp_elicit", purpose = ticket.purpose, "a connect link was opened by another principal");
        let signed_in = format!("You are signed in as {visitor}.");
        let lines = [
            "If somebody sent it to you, do not follow it: you would connect your account to theirs. Nothing has happened.",
            &signed_in,
        ];
        Err(Box::new(
            NoticeTemplate::new(
                self.site(),
                Tone::Locked,
                "This link was made for another person",
                &lines,
            )
            .page(StatusCode::FORBIDDEN),
        ))
    }

    fn sign_in_first(&self, ticket: &LinkToken) -> Response {
        #[cfg(feature = "oauth")]
        if let Some(page) = super::oauth::pages::sign_in_first(self, ticket) {
            return page;
        }
        #[cfg(not(feature = "oauth"))]
        let _ = ticket;
        self.say(
            StatusCode::UNAUTHORIZED,
            Tone::Locked,
            "Please sign in first",
            "Sign in to this site in the same browser, then open the link again.",
        )
    }

    pub(super) fn expired(&self) -> Response {
        self.say(
            StatusCode::GONE,
            Tone::Warn,
            "This link has expired",
            "Nothing has happened. Ask your assistant again for a new one.",
        )
    }

    fn no_such_page(&self) -> Response {
        self.say(
            StatusCode::NOT_FOUND,
            Tone::Bad,
            "There is no such page",
            "Nothing has happened.",
        )
    }

    /// Returns the page about a visit that has ended, also for a visitor who comes back to it.
    fn leave(&self, end: VisitEnd) -> Response {
        let (tone, head, line) = match end {
            VisitEnd::Done => (
                Tone::Good,
                "Connected",
                "You can close this window and go back to your assistant.",
            ),
            VisitEnd::Declined => (
                Tone::Plain,
                "Not connected",
                "Nothing has been stored, and the assistant is told that you said no. You can close this window.",
            ),
        };
        self.say(StatusCode::OK, tone, head, line)
    }

    /// Claims the end of a visit, or returns the page that says why that is impossible.
    pub(super) fn turn(&self, ticket: &LinkToken) -> Result<VisitClaim<'_>, Box<Response>> {
        let turn = self
            .waiting
            .take(&ticket.id, self.now_ms(), ticket.until_ms);
        turn.ok_or_else(|| {
            Box::new(self.say(
                StatusCode::GONE,
                Tone::Warn,
                "This link has been used",
                "If there is more to connect, ask your assistant again for a new one.",
            ))
        })
    }

    pub(super) fn end(&self, turn: VisitClaim<'_>, end: VisitEnd) -> Response {
        turn.end(end);
        self.leave(end)
    }

    /// Returns the page of a token, with the error of the last attempt.
    #[cfg_attr(
        not(feature = "oauth"),
        expect(clippy::unused_async, reason = "a provider may have to be asked")
    )]
    async fn ask(&self, ticket: &LinkToken, wrong: Option<&str>, status: StatusCode) -> Response {
        let (Some(behind), Some(here)) = (self.pages.get(&ticket.purpose), self.address(ticket))
        else {
            return self.no_such_page();
        };
        let page = |what| {
            TokenPage {
                site: self.site(),
                purpose: &ticket.purpose,
                principal: &ticket.principal,
                message: &ticket.message,
                here: &here,
                what,
            }
            .page(status)
        };
        match behind {
            Behind::Secret { label, .. } => page(PageBody::Secret { label, wrong }),
            #[cfg(feature = "oauth")]
            Behind::Grant { provider, .. } => match provider.metadata(self.now_ms()).await {
                Ok(metadata) => page(PageBody::SignIn {
                    host: &ShownHost::of(metadata.authorization_endpoint()),
                    scopes: provider.scopes_asked(),
                }),
                Err(trouble) => super::oauth::pages::tell(self, Some(ticket), &trouble.into()),
            },
        }
    }
}

async fn show(
    State(connect): State<Connect>,
    Path(sealed): Path<String>,
    parts: Parts,
) -> Response {
    let inner = &connect.inner;
    match inner.admit(&sealed, &parts) {
        Ok(ticket) => match inner.waiting.end_of(&ticket.id) {
            Some(end) => inner.leave(end),
            None => inner.ask(&ticket, None, StatusCode::OK).await,
        },
        Err(response) => *response,
    }
}

#[derive(Deserialize)]
struct EnteredSecret {
    secret: String,
}

async fn take(
    State(connect): State<Connect>,
    Path(sealed): Path<String>,
    parts: Parts,
    Form(left): Form<EnteredSecret>,
) -> Response {
    let inner = &connect.inner;
    let ticket = match posted(inner, &sealed, &parts) {
        Ok(ticket) => ticket,
        Err(response) => return *response,
    };
    let Some(Behind::Secret { save, .. }) = inner.pages.get(&ticket.purpose) else {
        return inner.no_such_page();
    };
    let turn = match inner.turn(&ticket) {
        Ok(turn) => turn,
        Err(response) => return *response,
    };
    match save(ticket.principal.clone(), Secret(left.secret)).await {
        Ok(()) => inner.end(turn, VisitEnd::Done),
        Err(cannot) => {
            drop(turn);
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            inner.ask(&ticket, Some(&cannot.to_string()), status).await
        }
    }
}

/// Declines, which is a person's action: the waiting question ends with it.
async fn decline(
    State(connect): State<Connect>,
    Path(sealed): Path<String>,
    parts: Parts,
) -> Response {
    let inner = &connect.inner;
    let ticket = match posted(inner, &sealed, &parts) {
        Ok(ticket) => ticket,
        Err(response) => return *response,
    };
    match inner.turn(&ticket) {
        Ok(turn) => inner.end(turn, VisitEnd::Declined),
        Err(response) => *response,
    }
}

/// Checks a submitted form. Returns the token of its link, or the error page.
fn posted(inner: &ConnectParts, sealed: &str, parts: &Parts) -> Result<LinkToken, Box<Response>> {
    if !is_from_here(&inner.base, &parts.headers) {
        return Err(Box::new(inner.say(
            StatusCode::FORBIDDEN,
            Tone::Bad,
            "This came from another site",
            "Nothing has happened.",
        )));
    }
    inner.admit(sealed, parts)
}

/// Returns `true` if the form was sent from here. Browsers name the origin; any other origin is a forgery.
fn is_from_here(base: &str, headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    let own = url::Url::parse(base).map(|base| base.origin().ascii_serialization());
    own.is_ok_and(|own| origin.as_bytes() == own.as_bytes())
}
