//! Pages behind url-mode questions: the person leaves a secret with this server, and no client, model or log sees it.
//!
//! A connect link is sealed, short-lived, good for one completion, and bound to the principal who was asked. Whoever opens
//! it must be that principal, as the server's own login says: a link that was sent to somebody else opens a page that says
//! so and does nothing (2025-11-25, "Phishing"). The page names the server and the reason, and takes the secret; when it
//! is stored, the question that waits goes on, and a client of 2025-11-25 gets `notifications/elicitation/complete`.
//!
//! - [`Connect`]: the links, the pages, and the waiting
//! - `link`: what a link carries
//! - `page`: the pages as HTTP
//! - `waiting`: which questions wait for which link

mod link;
mod page;
mod waiting;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::request::Parts;

use crate::elicit::Elicit;
use crate::seal::{KeyError, Keys};
use crate::unanswered::Unanswered;
use link::Ticket;
use waiting::Waiting;

type VisitorHook = dyn Fn(&Parts) -> Option<String> + Send + Sync;
type Clock = dyn Fn() -> SystemTime + Send + Sync;
type Saved = Pin<Box<dyn Future<Output = Result<(), CannotSave>> + Send>>;
type Save = dyn Fn(String, Secret) -> Saved + Send + Sync;

/// What a person left on a page. It shows itself nowhere.
pub struct Secret(String);

impl Secret {
    /// The secret, for whoever stores it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// Why a secret was not stored, in words for the person who left it. The person may try again.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct CannotSave(pub String);

/// Links and pages of one server. Cheap to clone.
#[derive(Clone)]
pub struct Connect {
    inner: Arc<Inner>,
}

struct Inner {
    server: String,
    base: String,
    keys: Keys,
    lifetime: Duration,
    visitor: Box<VisitorHook>,
    clock: Box<Clock>,
    pages: HashMap<String, Page>,
    waiting: Waiting,
}

struct Page {
    label: String,
    save: Box<Save>,
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect")
            .field("base", &self.inner.base)
            .finish_non_exhaustive()
    }
}

/// Puts a [`Connect`] together.
pub struct ConnectBuilder(Inner);

impl Connect {
    /// Pages of the server called `server`, which browsers reach at `base`, such as `https://mcp.example.com/connect`.
    ///
    /// `visitor` says who sends a request to a page, by the server's own login (a session cookie, a proxy's header); it must
    /// name people as [`Settings::principal`](crate::Settings::principal) does. Nobody gets past it by holding a link.
    pub fn builder(
        server: impl Into<String>,
        base: impl Into<String>,
        visitor: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    ) -> Result<ConnectBuilder, KeyError> {
        Ok(ConnectBuilder(Inner {
            server: server.into(),
            base: base.into().trim_end_matches('/').to_owned(),
            keys: Keys::per_process()?,
            lifetime: Duration::from_mins(10),
            visitor: Box::new(visitor),
            clock: Box::new(wall_clock),
            pages: HashMap::new(),
            waiting: Waiting::default(),
        }))
    }

    /// The pages, to be nested where `base` points.
    pub fn router(&self) -> axum::Router {
        page::router(self.clone())
    }

    /// Sends the person to the page of `purpose` and waits until the secret is stored.
    ///
    /// `message` says why, to the client and on the page. Fails like any ask; and as the author's error when the purpose has
    /// no page, or the server does not know who is asked.
    pub async fn visit(
        &self,
        elicit: &Elicit,
        purpose: &str,
        message: &str,
    ) -> Result<(), Unanswered> {
        if !self.inner.pages.contains_key(purpose) {
            return Err(Unanswered::Author(format!(
                "there is no connect page for {purpose:?}"
            )));
        }
        let principal = elicit.principal().map(str::to_owned);
        let principal = principal.ok_or_else(|| {
            Unanswered::Author(
                "a connect link is for somebody: Settings::principal has to say whom".into(),
            )
        })?;
        // In a step: each run of the handler has to ask for the same link.
        let made = async || self.inner.ticket(principal, purpose, message);
        let (id, url): (String, String) =
            elicit.try_step(&format!("connect {purpose}"), made).await?;
        elicit
            .visit(message, url)
            .elicitation_id(id.clone())
            .await?;
        let waited = async || {
            elicit
                .wait_outside(&id, self.inner.done(&id), self.inner.lifetime)
                .await
        };
        elicit
            .try_step::<_, Unanswered, _>(&format!("connected {purpose}"), waited)
            .await
    }
}

impl ConnectBuilder {
    /// The keys that seal links. Replicas need the same ones.
    #[must_use]
    pub fn keys(mut self, keys: Keys) -> Self {
        self.0.keys = keys;
        self
    }

    /// How long a link works. 10 minutes by default.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.0.lifetime = lifetime;
        self
    }

    /// Another wall clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.0.clock = Box::new(clock);
        self
    }

    /// A page that asks for one secret, called `label`, and hands it to `save` with the principal it belongs to.
    #[must_use]
    pub fn secret<Fut>(
        mut self,
        purpose: impl Into<String>,
        label: impl Into<String>,
        save: impl Fn(String, Secret) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = Result<(), CannotSave>> + Send + 'static,
    {
        let save =
            Box::new(move |principal, secret| -> Saved { Box::pin(save(principal, secret)) });
        self.0.pages.insert(
            purpose.into(),
            Page {
                label: label.into(),
                save,
            },
        );
        self
    }

    /// The pages, ready to serve.
    pub fn build(self) -> Connect {
        Connect {
            inner: Arc::new(self.0),
        }
    }
}

impl Inner {
    fn now_ms(&self) -> u64 {
        let since = (self.clock)()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Ends when the visit `id` is done.
    fn done(&self, id: &str) -> impl Future<Output = ()> + use<> {
        self.waiting.done(id, self.now_ms(), self.until_ms())
    }

    fn until_ms(&self) -> u64 {
        self.now_ms()
            .saturating_add(u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX))
    }

    /// A fresh link: its id and URL.
    fn ticket(
        &self,
        principal: String,
        purpose: &str,
        message: &str,
    ) -> Result<(String, String), Unanswered> {
        let until_ms = self.until_ms();
        let ticket = Ticket::new(principal, purpose.to_owned(), message.to_owned(), until_ms)
            .and_then(|ticket| {
                Ok((
                    ticket.id.clone(),
                    format!("{}/{}", self.base, ticket.seal(&self.keys)?),
                ))
            });
        ticket.map_err(|error| Unanswered::Author(error.to_string()))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "links are short-lived by the wall clock"
)]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}
