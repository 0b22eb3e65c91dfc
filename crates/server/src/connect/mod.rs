//! Pages behind url-mode questions: the person leaves a secret with this server, or lets it into an account elsewhere,
//! and no client, model or log sees what was given.
//!
//! A connect link is sealed, short-lived, good for one completion, and bound to the principal who was asked. The
//! visitor who opens it must be that principal, as the server's own login says: a link that was sent to another person
//! opens a page that says so and does nothing (2025-11-25, "Phishing"). The page names the server and the reason, and
//! takes the secret or leads to the provider's sign-in; when it is stored, the question that waits goes on, and a
//! client of 2025-11-25 gets `notifications/elicitation/complete`. A person who says no on the page ends the question
//! too.
//!
//! - [`Connect`]: the links, the pages, and the waiting
//! - [`Session`], [`from_cookie`]: who visits, by a cookie
//! - `oauth` (feature `oauth`): the authorization-code flow behind a page, and signing visitors in with it
//! - `link`: what a link carries
//! - `page`: the pages as HTTP; `templates`: as a person sees them, in the theme of the forms crate; `cookie`: how they
//!   remember
//! - `pending_visits`: how visits end, and which questions wait for them

mod cookie;
mod link;
#[cfg(feature = "oauth")]
pub mod oauth;
mod page;
mod pending_visits;
mod session;
mod templates;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::request::Parts;

use crate::elicit::Elicit;
use crate::error::{ElicitError, RefusalKind};
use crate::seal::{KeyError, Keys};
use link::LinkToken;
use pending_visits::{End, Waiting};

pub use session::{Session, SessionError, from_cookie};

type VisitorHook = dyn Fn(&Parts) -> Option<String> + Send + Sync;
type Clock = dyn Fn() -> SystemTime + Send + Sync;
type Saved = Pin<Box<dyn Future<Output = Result<(), CannotSave>> + Send>>;
type Save = dyn Fn(String, Secret) -> Saved + Send + Sync;

/// A secret entered on a page; masked in `Debug`.
///
/// ```
/// use mcp_elicit_server::connect::{CannotSave, Secret};
///
/// async fn save(principal: String, token: Secret) -> Result<(), CannotSave> {
///     assert_eq!(format!("{token:?}"), "Secret(***)");
///     if !token.reveal().starts_with("tok_") {
///         return Err(CannotSave("A token begins with tok_".to_owned()));
///     }
///     // Store it for this principal.
///     Ok(())
/// }
/// ```
pub struct Secret(String);

impl Secret {
    /// The secret, for the code that stores it.
    ///
    /// ```
    /// use mcp_elicit_server::connect::Secret;
    ///
    /// fn is_token(given: &Secret) -> bool {
    ///     given.reveal().starts_with("tok_")
    /// }
    /// ```
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
///
/// ```
/// use mcp_elicit_server::connect::CannotSave;
///
/// let reason = CannotSave("The service does not know this token".to_owned());
/// assert_eq!(reason.to_string(), "The service does not know this token");
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct CannotSave(pub String);

/// Links and pages of one server. Cheap to clone.
///
/// ```
/// use mcp_elicit_server::connect::{Connect, Session};
/// use mcp_elicit_server::seal::Keys;
/// use mcp_elicit_server::{Elicit, ElicitError};
///
/// let keys = Keys::per_process()?;
/// let base = "https://mcp.example.com/connect";
/// let session = Session::new(keys.clone(), base);
/// let connect = Connect::builder("Calendar", base, session.visitor())?
///     .keys(keys)
///     .secret("token", "API token", |principal, token| async move { Ok(()) })
///     .build();
/// let app: axum::Router = axum::Router::new().nest("/connect", connect.router());
///
/// async fn events(connect: &Connect, elicit: &Elicit) -> Result<(), ElicitError> {
///     connect.visit(elicit, "token", "Calendar needs your API token").await
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    pages: HashMap<String, Behind>,
    waiting: Waiting,
    #[cfg(feature = "oauth")]
    sign_in: Option<oauth::SignIn>,
}

/// The purpose of a page.
enum Behind {
    Secret {
        label: String,
        save: Box<Save>,
    },
    #[cfg(feature = "oauth")]
    Grant {
        provider: Box<oauth::Provider>,
        save: Box<oauth::SaveGrant>,
    },
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect")
            .field("base", &self.inner.base)
            .finish_non_exhaustive()
    }
}

/// Puts a [`Connect`] together.
///
/// ```
/// use std::time::Duration;
/// use mcp_elicit_server::connect::{Connect, ConnectBuilder};
/// use mcp_elicit_server::seal::Keys;
///
/// let builder: ConnectBuilder = Connect::builder("Calendar", "https://mcp.example.com/connect", |_| None)?;
/// let connect = builder.keys(Keys::per_process()?).lifetime(Duration::from_secs(5 * 60)).build();
/// # let _ = connect;
/// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
/// ```
pub struct ConnectBuilder(Inner);

impl Connect {
    /// Pages of the server called `server`, which browsers reach at `base`, such as `https://mcp.example.com/connect`.
    ///
    /// `visitor` says who sends a request to a page, by the server's own login (a session cookie, a proxy's header); it
    /// must name people as [`ServerSettings::principal`](crate::ServerSettings::principal) does. Holding a link is not
    /// enough.
    ///
    /// ```
    /// use mcp_elicit_server::connect::Connect;
    ///
    /// // A proxy in front of this server has signed the visitor in.
    /// let visitor = |request: &http::request::Parts| {
    ///     let name = request.headers.get("x-forwarded-user")?;
    ///     name.to_str().ok().map(str::to_owned)
    /// };
    /// let connect = Connect::builder("Calendar", "https://mcp.example.com/connect", visitor)?.build();
    /// # let _ = connect;
    /// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
    /// ```
    pub fn builder(
        server: impl Into<String>,
        base: impl Into<String>,
        visitor: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    ) -> Result<ConnectBuilder, KeyError> {
        Ok(ConnectBuilder(Inner {
            server: server.into(),
            base: base.into().trim_end_matches('/').to_owned(),
            keys: Keys::per_process()?,
            lifetime: Duration::from_secs(10 * 60),
            visitor: Box::new(visitor),
            clock: Box::new(wall_clock),
            pages: HashMap::new(),
            waiting: Waiting::default(),
            #[cfg(feature = "oauth")]
            sign_in: None,
        }))
    }

    /// The pages, to be nested where `base` points.
    ///
    /// ```
    /// # use mcp_elicit_server::connect::Connect;
    /// # fn app(connect: &Connect) -> axum::Router {
    /// axum::Router::new().nest("/connect", connect.router())
    /// # }
    /// ```
    pub fn router(&self) -> axum::Router {
        page::router(self.clone())
    }

    /// Sends the person to the page of `purpose` and waits until the visit ends there.
    ///
    /// `message` says why, to the client and on the page. Fails like any ask, a "no" on the page included; and as the
    /// author's error when the purpose has no page, or the server does not know who is asked.
    ///
    /// ```
    /// # use mcp_elicit_server::connect::Connect;
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn events(connect: &Connect, elicit: &Elicit) -> Result<(), ElicitError> {
    /// connect.visit(elicit, "token", "Calendar needs your API token").await?;
    /// // The token is stored.
    /// # Ok(()) }
    /// ```
    pub async fn visit(
        &self,
        elicit: &Elicit,
        purpose: &str,
        message: &str,
    ) -> Result<(), ElicitError> {
        // In a step: each run of the handler has to ask for the same link.
        let made = async || self.link(elicit, purpose, message);
        let (id, url): (String, String) =
            elicit.try_step(&format!("connect {purpose}"), made).await?;
        elicit
            .visit(message, url)
            .elicitation_id(id.clone())
            .await?;
        let waited = async || {
            let ended = self.inner.ended(&id);
            let end = elicit.wait_outside(ended, self.inner.lifetime).await?;
            if end == End::Done {
                elicit.tell_complete(&id).await;
            }
            Ok(end)
        };
        let end = elicit
            .try_step::<_, ElicitError, _>(&format!("connected {purpose}"), waited)
            .await?;
        match end {
            End::Done => Ok(()),
            End::Declined => Err(elicit.refused(RefusalKind::Declined, message)),
        }
    }

    /// Returns only after the person has completed the page of `purpose`: for a tool that has found nothing stored.
    ///
    /// On 2025-11-25 this ends the call with the error -32042; the client has the person visit the page and calls
    /// again, and gets `notifications/elicitation/complete` when the visit is done. Elsewhere it is
    /// [`visit`](Self::visit), and fails like it.
    ///
    /// ```
    /// # use mcp_elicit_server::connect::Connect;
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn events(connect: &Connect, elicit: &Elicit, token: Option<String>) -> Result<(), ElicitError> {
    /// if token.is_none() {
    ///     connect.require(elicit, "token", "Calendar needs your API token").await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn require(
        &self,
        elicit: &Elicit,
        purpose: &str,
        message: &str,
    ) -> Result<(), ElicitError> {
        if !elicit.turns_away() {
            return self.visit(elicit, purpose, message).await;
        }
        let (id, url) = self.link(elicit, purpose, message)?;
        let required = elicit.url_required(message, &url, id.clone())?;
        let (ended, lifetime) = (self.inner.ended(&id), self.inner.lifetime);
        let elicit = elicit.clone();
        // The call is over by then; its connection is not.
        tokio::spawn(async move {
            if let Ok(End::Done) = tokio::time::timeout(lifetime, ended).await {
                elicit.tell_complete(&id).await;
            }
        });
        Err(required)
    }

    /// A fresh link for the person who is asked: its id and URL.
    fn link(
        &self,
        elicit: &Elicit,
        purpose: &str,
        message: &str,
    ) -> Result<(String, String), ElicitError> {
        if !self.inner.pages.contains_key(purpose) {
            return Err(ElicitError::Author(format!(
                "there is no connect page for {purpose:?}"
            )));
        }
        let principal = elicit.principal().map(str::to_owned);
        let principal = principal.ok_or_else(|| {
            ElicitError::Author(
                "a connect link needs a principal: set ServerSettings::principal".into(),
            )
        })?;
        self.inner.ticket(principal, purpose, message)
    }
}

impl ConnectBuilder {
    /// The keys that seal links. Replicas need the same ones.
    ///
    /// ```
    /// use mcp_elicit_server::connect::Connect;
    /// use mcp_elicit_server::seal::Keys;
    ///
    /// let keys = Keys::per_process()?; // the same on each replica: Keys::from_env
    /// let connect = Connect::builder("Calendar", "https://mcp.example.com/connect", |_| None)?.keys(keys);
    /// # let _ = connect;
    /// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
    /// ```
    #[must_use]
    pub fn keys(mut self, keys: Keys) -> Self {
        self.0.keys = keys;
        self
    }

    /// Sets how long a link works. 10 minutes by default.
    ///
    /// ```
    /// # use mcp_elicit_server::connect::ConnectBuilder;
    /// # fn short(builder: ConnectBuilder) -> ConnectBuilder {
    /// builder.lifetime(std::time::Duration::from_secs(2 * 60))
    /// # }
    /// ```
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.0.lifetime = lifetime;
        self
    }

    /// Another wall clock, for tests.
    ///
    /// ```
    /// # use mcp_elicit_server::connect::ConnectBuilder;
    /// # fn tested(builder: ConnectBuilder) -> ConnectBuilder {
    /// builder.clock(|| std::time::SystemTime::UNIX_EPOCH)
    /// # }
    /// ```
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.0.clock = Box::new(clock);
        self
    }

    /// A page that asks for one secret, called `label`, and hands it to `save` with the principal it belongs to.
    ///
    /// ```
    /// # use mcp_elicit_server::connect::{CannotSave, ConnectBuilder, Secret};
    /// async fn save(principal: String, token: Secret) -> Result<(), CannotSave> {
    ///     // Store `token.reveal()` for this principal.
    ///     Ok(())
    /// }
    ///
    /// # fn with_page(builder: ConnectBuilder) -> ConnectBuilder {
    /// builder.secret("token", "API token", save)
    /// # }
    /// ```
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
        let label = label.into();
        self.0
            .pages
            .insert(purpose.into(), Behind::Secret { label, save });
        self
    }

    /// The pages, ready to serve.
    ///
    /// ```
    /// use mcp_elicit_server::connect::Connect;
    ///
    /// let connect = Connect::builder("Calendar", "https://mcp.example.com/connect", |_| None)?.build();
    /// # let _ = connect;
    /// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
    /// ```
    pub fn build(self) -> Connect {
        Connect {
            inner: Arc::new(self.0),
        }
    }
}

impl Inner {
    fn now_ms(&self) -> u64 {
        ms((self.clock)())
    }

    /// Returns who a request comes from.
    fn visitor(&self, parts: &Parts) -> Option<String> {
        let visitor = (self.visitor)(parts);
        #[cfg(feature = "oauth")]
        let visitor = visitor.or_else(|| {
            self.sign_in.as_ref()?;
            oauth::SignIn::session(self).visitor_at(parts, (self.clock)())
        });
        visitor
    }

    /// Gives the end of the visit `id`.
    fn ended(&self, id: &str) -> impl Future<Output = End> + Send + use<> {
        self.waiting.ended(id, self.now_ms(), self.until_ms())
    }

    fn until_ms(&self) -> u64 {
        self.now_ms().saturating_add(ms_of(self.lifetime))
    }

    /// A fresh link: its id and URL.
    fn ticket(
        &self,
        principal: String,
        purpose: &str,
        message: &str,
    ) -> Result<(String, String), ElicitError> {
        let until_ms = self.until_ms();
        let ticket = LinkToken::new(principal, purpose.to_owned(), message.to_owned(), until_ms)
            .and_then(|ticket| {
                let sealed = ticket.seal(&self.keys)?;
                Ok((ticket.id, format!("{}/{sealed}", self.base)))
            });
        ticket.map_err(|error| ElicitError::Author(error.to_string()))
    }

    /// Returns where the page of a ticket is. None where the system has no randomness.
    fn address(&self, ticket: &LinkToken) -> Option<String> {
        let sealed = ticket.seal(&self.keys).ok()?;
        Some(format!("{}/{sealed}", self.base))
    }
}

fn ms(time: SystemTime) -> u64 {
    ms_of(
        time.duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

fn ms_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[expect(
    clippy::disallowed_methods,
    reason = "links are short-lived by the wall clock"
)]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}
