//! Pages behind url-mode questions: the person enters a secret for this server, or grants it access to an account
//! elsewhere, and no client, model or log sees the secret or the grant.
//!
//! A connect link is sealed, short-lived, usable for one completion, and bound to the principal who was asked. The
//! visitor who opens it must be that principal, according to the server's own login: a link that reaches another person
//! opens a page that says so and does nothing (2025-11-25, "Phishing"). The page names the server and the reason, and
//! takes the secret or leads to the provider's sign-in. When the value is stored, the waiting question continues, and a
//! client of 2025-11-25 gets `notifications/elicitation/complete`. A person who declines on the page ends the question
//! too.
//!
//! - [`Connect`]: the links, the pages, and the wait for visits
//! - [`VisitorSession`], [`from_cookie`]: the visitor's identity, from a cookie
//! - `oauth` (feature `oauth`): the authorization-code flow behind a page, and sign-in of visitors with it
//! - `link`: the content of a link
//! - `page`: the pages over HTTP; `templates`: their HTML, in the theme of the forms crate; `cookie`: their cookies
//! - `pending_visits`: the ends of visits, and the questions that wait for them

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
use pending_visits::{PendingVisits, VisitEnd};

pub use session::{SessionError, VisitorSession, from_cookie};

type VisitorHook = dyn Fn(&Parts) -> Option<String> + Send + Sync;
type ConnectClock = dyn Fn() -> SystemTime + Send + Sync;
type SaveFuture = Pin<Box<dyn Future<Output = Result<(), CannotSave>> + Send>>;
type Save = dyn Fn(String, Secret) -> SaveFuture + Send + Sync;

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
    /// Returns the secret, for the code that stores it.
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

/// The reason why a secret was not stored, written for the person who entered it. The person may try again.
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

/// The links and pages of one server. Cheap to clone.
///
/// ```
/// use mcp_elicit_server::connect::{Connect, VisitorSession};
/// use mcp_elicit_server::seal::Keys;
/// use mcp_elicit_server::{Elicit, ElicitError};
///
/// let keys = Keys::per_process()?;
/// let base = "https://mcp.example.com/connect";
/// let session = VisitorSession::new(keys.clone(), base);
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
    inner: Arc<ConnectParts>,
}

struct ConnectParts {
    server: String,
    base: String,
    keys: Keys,
    lifetime: Duration,
    visitor: Box<VisitorHook>,
    clock: Box<ConnectClock>,
    pages: HashMap<String, Behind>,
    waiting: PendingVisits,
    #[cfg(feature = "oauth")]
    sign_in: Option<oauth::SignInProvider>,
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

/// A builder of [`Connect`].
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
pub struct ConnectBuilder(ConnectParts);

impl Connect {
    /// Creates a builder of the pages of the server called `server`, which browsers reach at `base`, such as
    /// `https://mcp.example.com/connect`.
    ///
    /// `visitor` returns the principal behind a request to a page, by the server's own login (a session cookie, a
    /// proxy's header); it must name people as [`ServerSettings::principal`](crate::ServerSettings::principal) does.
    /// Holding a link is not enough.
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
        Ok(ConnectBuilder(ConnectParts {
            server: server.into(),
            base: base.into().trim_end_matches('/').to_owned(),
            keys: Keys::per_process()?,
            lifetime: Duration::from_secs(10 * 60),
            visitor: Box::new(visitor),
            clock: Box::new(wall_clock),
            pages: HashMap::new(),
            waiting: PendingVisits::default(),
            #[cfg(feature = "oauth")]
            sign_in: None,
        }))
    }

    /// Returns the pages, to be nested at the path of `base`.
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

    /// Sends the person to the page of `purpose` and waits until the visit ends.
    ///
    /// `message` gives the reason, to the client and on the page. Fails like any ask, also when the person declines on
    /// the page; and with the author's error when the purpose has no page, or the server does not know who is asked.
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
        // In a step, because each run of the handler has to ask for the same link.
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
            if end == VisitEnd::Done {
                elicit.tell_complete(&id).await;
            }
            Ok(end)
        };
        let end = elicit
            .try_step::<_, ElicitError, _>(&format!("connected {purpose}"), waited)
            .await?;
        match end {
            VisitEnd::Done => Ok(()),
            VisitEnd::Declined => Err(elicit.refused(RefusalKind::Declined, message)),
        }
    }

    /// Returns only after the person has completed the page of `purpose`. For tools that have found nothing stored.
    ///
    /// On 2025-11-25 this ends the call with the error -32042; the client has the person visit the page and calls
    /// again, and gets `notifications/elicitation/complete` when the visit is done. On other revisions it is
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
        // The call is over by then; its connection may still be open.
        tokio::spawn(async move {
            if let Ok(VisitEnd::Done) = tokio::time::timeout(lifetime, ended).await {
                elicit.tell_complete(&id).await;
            }
        });
        Err(required)
    }

    /// Returns the id and URL of a fresh link for the person who is asked.
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
    /// Sets the keys that seal links. All replicas need the same ones.
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

    /// Sets how long a link works. Defaults to 10 minutes.
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

    /// Sets another wall clock, for tests.
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

    /// Adds a page that asks for one secret, called `label`, and passes it to `save` with its principal.
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
            Box::new(move |principal, secret| -> SaveFuture { Box::pin(save(principal, secret)) });
        let label = label.into();
        self.0
            .pages
            .insert(purpose.into(), Behind::Secret { label, save });
        self
    }

    /// Builds the pages, ready to serve.
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

impl ConnectParts {
    fn now_ms(&self) -> u64 {
        ms((self.clock)())
    }

    /// Returns the principal that a request comes from.
    fn visitor(&self, parts: &Parts) -> Option<String> {
        let visitor = (self.visitor)(parts);
        #[cfg(feature = "oauth")]
        let visitor = visitor.or_else(|| {
            self.sign_in.as_ref()?;
            oauth::SignInProvider::session(self).visitor_at(parts, (self.clock)())
        });
        visitor
    }

    /// Waits for the end of the visit `id`.
    fn ended(&self, id: &str) -> impl Future<Output = VisitEnd> + Send + use<> {
        self.waiting.ended(id, self.now_ms(), self.until_ms())
    }

    fn until_ms(&self) -> u64 {
        self.now_ms().saturating_add(ms_of(self.lifetime))
    }

    /// Returns the id and URL of a fresh link.
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

    /// Returns the address of a token's page. `None` if the system has no randomness.
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
