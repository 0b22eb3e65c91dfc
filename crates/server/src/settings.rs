//! Settings for the author of a server, with safe defaults.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rmcp::service::{RequestContext, RoleServer};

use crate::audit::Audit;
use crate::error::Refusal;
use crate::guard::rate::Rates;
use crate::seal::{Keys, SealError, Store};

type PrincipalHook = dyn Fn(&RequestContext<RoleServer>) -> Option<String> + Send + Sync;
type RefusalText = dyn Fn(&Refusal) -> String + Send + Sync;
type Clock = dyn Fn() -> SystemTime + Send + Sync;

/// The settings of a wrapped server. Cheap to clone; clones share their keys, store and counters.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use mcp_elicit_server::ServerSettings;
/// use mcp_elicit_server::seal::{Keys, MemoryStore};
///
/// let settings = ServerSettings::new()
///     .timeout(Duration::from_secs(2 * 60))
///     .attempts(2)
///     .keep_alive(Some(Duration::from_secs(10)))
///     .keys(Keys::per_process()?)
///     .audience("billing")
///     .state_lifetime(Duration::from_secs(30 * 60))
///     .state_limit(16 * 1024)
///     .store(Arc::new(MemoryStore::new()))
///     .single_use(true)
///     .questions_per_call(10)
///     .questions_per_minute(Some(30))
///     .stateless_answers(false);
/// # let _ = settings;
/// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
/// ```
#[derive(Clone)]
pub struct ServerSettings {
    pub(crate) timeout: Duration,
    pub(crate) attempts: u32,
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) keys: Option<Keys>,
    pub(crate) audience: String,
    pub(crate) state_lifetime: Duration,
    pub(crate) state_limit: usize,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) single_use: bool,
    pub(crate) questions_per_call: u32,
    pub(crate) rates: Option<Arc<Rates>>,
    pub(crate) principal: Option<Arc<PrincipalHook>>,
    pub(crate) refusal_text: Option<Arc<RefusalText>>,
    pub(crate) audit: Option<Arc<dyn Audit>>,
    pub(crate) stateless_answers: bool,
    pub(crate) clock: Arc<Clock>,
}

/// Settings as the wrapper holds them, with the keys in place.
#[derive(Debug)]
pub(crate) struct SharedSettings {
    pub(crate) settings: ServerSettings,
    pub(crate) keys: Result<Keys, SealError>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5 * 60),
            attempts: 3,
            keep_alive: Some(Duration::from_secs(15)),
            keys: None,
            audience: String::new(),
            state_lifetime: Duration::from_secs(60 * 60),
            state_limit: 64 * 1024,
            store: None,
            single_use: true,
            questions_per_call: 50,
            rates: Some(Arc::new(Rates::per_minute(120))),
            principal: None,
            refusal_text: None,
            audit: None,
            stateless_answers: true,
            clock: Arc::new(wall_clock),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where this crate reads the wall clock"
)]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}

impl ServerSettings {
    /// Returns the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long a question may stay open, unless the question sets its own timeout. Defaults to 5 minutes.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how often a person is asked when the answers break the form's rules. Defaults to 3; at least 1.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// Sets how often progress tells the caller that its call is alive while a person thinks. Defaults to every 15
    /// seconds; use `None` for a server that reports its own progress on the same token.
    #[must_use]
    pub fn keep_alive(mut self, period: Option<Duration>) -> Self {
        self.keep_alive = period.filter(|period| !period.is_zero());
        self
    }

    /// Sets the keys that seal `requestState`. By default a key is generated for the life of the process, and the log
    /// says so.
    #[must_use]
    pub fn keys(mut self, keys: Keys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Sets the name of this server inside the seal. Two servers with the same keys need different ones.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = audience.into();
        self
    }

    /// Sets how long a `requestState` can be opened, counted from the round that sealed it. Defaults to 1 hour. A
    /// question's own timeout applies as well.
    #[must_use]
    pub fn state_lifetime(mut self, lifetime: Duration) -> Self {
        self.state_lifetime = lifetime;
        self
    }

    /// Sets the largest `requestState` to send, in bytes. Defaults to 64 KiB. With a [`store`](Self::store), larger
    /// ones are stored there; without one, the call fails with an error that says so.
    #[must_use]
    pub fn state_limit(mut self, bytes: usize) -> Self {
        self.state_limit = bytes;
        self
    }

    /// Sets the store for used states and for large ones. Without a store, this process remembers the states that were
    /// used in it.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets whether each state counts once. Defaults to `true`: a state that is sent again is rejected, so that a
    /// handler finishes once. Without a [`store`](Self::store) this holds within one process.
    ///
    /// Single use has a cost: a client that lost the response to its retry and sends it again is rejected. With
    /// `false`, the same state and answers can be sent again until the state expires, and the handler finishes again.
    #[must_use]
    pub fn single_use(mut self, once: bool) -> Self {
        self.single_use = once;
        self
    }

    /// Sets how many questions one call may ask, including repeats after wrong answers. Defaults to 50.
    #[must_use]
    pub fn questions_per_call(mut self, questions: u32) -> Self {
        self.questions_per_call = questions;
        self
    }

    /// Sets how many questions one principal may be asked per minute. Defaults to 120; `None` for no limit. Without a
    /// [`principal`](Self::principal) callers are not identified, and nothing is counted.
    #[must_use]
    pub fn questions_per_minute(mut self, questions: Option<u32>) -> Self {
        self.rates = questions.map(|questions| Arc::new(Rates::per_minute(questions)));
        self
    }

    /// Sets the hook that names the principal of a request, from the server's own authentication.
    ///
    /// rmcp puts the `http::request::Parts` of the POST into the context's extensions, including everything that an
    /// authentication layer added. Without this hook a state is bound to the server and the request, not to a person.
    ///
    /// ```
    /// use mcp_elicit_server::ServerSettings;
    ///
    /// /// The user whom a layer of the HTTP server has authenticated.
    /// #[derive(Clone)]
    /// struct User {
    ///     id: String,
    /// }
    ///
    /// let settings = ServerSettings::new().principal(|context| {
    ///     let request = context.extensions.get::<http::request::Parts>()?;
    ///     request.extensions.get::<User>().map(|user| user.id.clone())
    /// });
    /// ```
    #[must_use]
    pub fn principal(
        mut self,
        principal: impl Fn(&RequestContext<RoleServer>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.principal = Some(Arc::new(principal));
        self
    }

    /// Sets the text for the model when a person refuses.
    ///
    /// ```
    /// use mcp_elicit_server::ServerSettings;
    ///
    /// let settings = ServerSettings::new().refusal_text(|refusal| format!("{} Do not ask again.", refusal.reply));
    /// ```
    #[must_use]
    pub fn refusal_text(
        mut self,
        text: impl Fn(&Refusal) -> String + Send + Sync + 'static,
    ) -> Self {
        self.refusal_text = Some(Arc::new(text));
        self
    }

    /// Sets the receiver of audit records.
    ///
    /// ```
    /// use mcp_elicit_server::ServerSettings;
    /// use mcp_elicit_server::audit::JsonLines;
    ///
    /// let settings = ServerSettings::new().audit(JsonLines::new(std::io::stderr()));
    /// ```
    #[must_use]
    pub fn audit(mut self, audit: impl Audit) -> Self {
        self.audit = Some(Arc::new(audit));
        self
    }

    /// Sets whether a response that comes without a `requestState` counts, under a [`key`](crate::Ask::key) that the
    /// author gave, for the first question of that key. Defaults to `true`: the response is checked like any other, and
    /// a client that invents one could also invent one after a question. Set `false` if it matters that the question
    /// was shown.
    #[must_use]
    pub fn stateless_answers(mut self, count: bool) -> Self {
        self.stateless_answers = count;
        self
    }

    /// Sets another wall clock, for tests.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use mcp_elicit_server::ServerSettings;
    ///
    /// let settings = ServerSettings::new().clock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(60 * 60));
    /// ```
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Returns the time in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        let since = (self.clock)()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the settings for a second run of a handler under test, which is recorded and counted once.
    pub(crate) fn for_replay(mut self) -> Self {
        self.audit = None;
        self.rates = None;
        self
    }

    pub(crate) fn shared(self) -> Arc<SharedSettings> {
        let keys = self.keys.clone().map_or_else(process_keys, Ok);
        Arc::new(SharedSettings {
            settings: self,
            keys,
        })
    }
}

/// Returns one key for all wrappers of this process: a stateless HTTP service creates a wrapper for each request.
fn process_keys() -> Result<Keys, SealError> {
    static KEYS: std::sync::LazyLock<Result<Keys, SealError>> = std::sync::LazyLock::new(|| {
        tracing::warn!(
            "requestState is sealed with a key that lives as long as this process: after a restart, or on another \
             replica, open questions cannot be answered. Settings::keys takes lasting ones."
        );
        Keys::per_process().map_err(|error| SealError::NoRandomness(error.to_string()))
    });
    KEYS.clone()
}

impl fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSettings")
            .field("timeout", &self.timeout)
            .field("attempts", &self.attempts)
            .field("keep_alive", &self.keep_alive)
            .field("keys", &self.keys)
            .field("audience", &self.audience)
            .field("state_lifetime", &self.state_lifetime)
            .field("state_limit", &self.state_limit)
            .field("store", &self.store)
            .field("single_use", &self.single_use)
            .field("questions_per_call", &self.questions_per_call)
            .finish_non_exhaustive()
    }
}
