//! The visitor's identity, in a cookie that only this server can write.

use std::time::{Duration, SystemTime};

use http::HeaderValue;
use http::request::Parts;
use serde::{Deserialize, Serialize};

use super::{cookie, wall_clock};
use crate::seal::{self, AssociatedData, Keys};

/// A signed-in visitor in a sealed cookie: for servers with their own sign-in and without a session store.
///
/// Respond to your sign-in with [`set_cookie`](Self::set_cookie), and pass [`visitor`](Self::visitor) to
/// [`Connect::builder`](super::Connect::builder):
///
/// ```
/// use mcp_elicit_server::connect::{Connect, VisitorSession};
/// use mcp_elicit_server::seal::Keys;
///
/// let base = "https://mcp.example.com/connect";
/// let session = VisitorSession::new(Keys::per_process()?, base);
/// let cookie = session.set_cookie("ada")?; // in the response of your sign-in
/// let connect = Connect::builder("Calendar", base, session.visitor())?.build();
/// # let _ = (cookie, connect);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The cookie is `HttpOnly` and `SameSite=Lax`; on https it is also `Secure` and limited to this host (`__Host-`).
#[derive(Debug, Clone)]
pub struct VisitorSession {
    keys: Keys,
    base: String,
    lifetime: Duration,
    name: String,
}

/// A session cookie cannot be made: the system has no randomness.
///
/// ```
/// use http::HeaderValue;
/// use mcp_elicit_server::connect::{VisitorSession, SessionError};
///
/// fn signed_in(session: &VisitorSession, user: &str) -> Result<HeaderValue, SessionError> {
///     session.set_cookie(user)
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[error("the session cannot be sealed: {0}")]
pub struct SessionError(String);

#[derive(Serialize, Deserialize)]
struct Visitor {
    #[serde(rename = "p")]
    principal: String,
    #[serde(rename = "x")]
    until_ms: u64,
}

impl VisitorSession {
    /// Creates sessions for pages that browsers reach at `base`, sealed with `keys`. They last one hour by default.
    ///
    /// ```
    /// use mcp_elicit_server::connect::VisitorSession;
    /// use mcp_elicit_server::seal::Keys;
    ///
    /// let session = VisitorSession::new(Keys::per_process()?, "https://mcp.example.com/connect");
    /// # let _ = session;
    /// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
    /// ```
    pub fn new(keys: Keys, base: impl Into<String>) -> Self {
        let base = base.into().trim_end_matches('/').to_owned();
        let name = cookie::name_at(&base, "visitor");
        Self {
            keys,
            base,
            lifetime: Duration::from_secs(60 * 60),
            name,
        }
    }

    /// Sets how long a sign-in lasts.
    ///
    /// ```
    /// # use mcp_elicit_server::connect::VisitorSession;
    /// # fn of_a_day(session: VisitorSession) -> VisitorSession {
    /// session.lifetime(std::time::Duration::from_secs(24 * 60 * 60))
    /// # }
    /// ```
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Returns the `Set-Cookie` for a visitor who has just signed in as `principal`.
    ///
    /// ```
    /// use mcp_elicit_server::connect::VisitorSession;
    /// use mcp_elicit_server::seal::Keys;
    ///
    /// let session = VisitorSession::new(Keys::per_process()?, "https://mcp.example.com/connect");
    /// let cookie = session.set_cookie("ada")?;
    /// assert!(cookie.to_str()?.contains("HttpOnly"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_cookie(&self, principal: &str) -> Result<HeaderValue, SessionError> {
        self.set_cookie_at(principal, wall_clock())
    }

    /// Returns the hook that names a request's principal, for [`Connect::builder`](super::Connect::builder).
    ///
    /// ```
    /// use mcp_elicit_server::connect::VisitorSession;
    /// use mcp_elicit_server::seal::Keys;
    ///
    /// let session = VisitorSession::new(Keys::per_process()?, "https://mcp.example.com/connect");
    /// let (request, ()) = http::Request::new(()).into_parts();
    /// assert_eq!(session.visitor()(&request), None);
    /// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
    /// ```
    pub fn visitor(&self) -> impl Fn(&Parts) -> Option<String> + Send + Sync + use<> {
        let session = self.clone();
        move |parts| session.visitor_at(parts, wall_clock())
    }

    pub(super) fn set_cookie_at(
        &self,
        principal: &str,
        now: SystemTime,
    ) -> Result<HeaderValue, SessionError> {
        let visitor = Visitor {
            principal: principal.to_owned(),
            until_ms: super::ms(now).saturating_add(super::ms_of(self.lifetime)),
        };
        let sealed = seal::seal_json(&self.keys, &self.bound(), &visitor)
            .map_err(|error| SessionError(error.to_string()))?;
        cookie::set(&self.base, &self.name, &sealed, self.lifetime)
            .ok_or_else(|| SessionError("it fits no header".into()))
    }

    pub(super) fn visitor_at(&self, parts: &Parts, now: SystemTime) -> Option<String> {
        cookie::values(&parts.headers, &self.name)
            .filter_map(|sealed| seal::open_json(&self.keys, &self.bound(), sealed).ok())
            .find(|visitor: &Visitor| super::ms(now) < visitor.until_ms)
            .map(|visitor| visitor.principal)
    }

    /// Binds sessions to their kind and server: a session is not a link or a state.
    fn bound(&self) -> AssociatedData {
        AssociatedData::outside_calls(&self.base, "connect/visitor")
    }
}

/// Returns a hook that reads the visitor from a cookie of your own: `principal` receives the value of the cookie called
/// `name`, looks up its session, and returns the principal, or `None` if the visitor is not signed in.
///
/// ```
/// use std::collections::HashMap;
/// use mcp_elicit_server::connect::{Connect, from_cookie};
///
/// let sessions = HashMap::from([("unguessable".to_owned(), "ada".to_owned())]);
/// let visitor = from_cookie("session", move |value| sessions.get(value).cloned());
/// let connect = Connect::builder("Calendar", "https://mcp.example.com/connect", visitor)?.build();
/// # let _ = connect;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_cookie(
    name: impl Into<String>,
    principal: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> impl Fn(&Parts) -> Option<String> + Send + Sync + 'static {
    let name = name.into();
    move |parts: &Parts| cookie::values(&parts.headers, &name).find_map(&principal)
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http::header::COOKIE;

    use super::*;
    use crate::seal::Key;

    fn keys(byte: u8) -> Keys {
        Keys::new(Key::new("k", [byte; 32]).unwrap())
    }

    fn carrying(cookie: &str) -> Parts {
        Request::builder()
            .header(COOKIE, cookie)
            .body(())
            .unwrap()
            .into_parts()
            .0
    }

    #[test]
    fn a_session_is_believed_only_where_and_as_long_as_it_was_made_for() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(500_000 * 60 * 60);
        let session = VisitorSession::new(keys(1), "https://a.example/connect/")
            .lifetime(Duration::from_secs(10 * 60));
        let set = session.set_cookie_at("ada@home", now).unwrap();
        let cookie = set.to_str().unwrap().split(';').next().unwrap().to_owned();
        assert!(!cookie.contains("ada@home"));
        let parts = carrying(&format!("x=y; {cookie}"));
        assert_eq!(session.visitor_at(&parts, now).as_deref(), Some("ada@home"));
        assert_eq!(
            session.visitor_at(&parts, now + Duration::from_secs(10 * 60)),
            None
        );
        let elsewhere = VisitorSession::new(keys(1), "https://b.example/connect");
        assert_eq!(elsewhere.visitor_at(&parts, now), None);
        let other_keys = VisitorSession::new(keys(2), "https://a.example/connect");
        assert_eq!(other_keys.visitor_at(&parts, now), None);
        let forged = carrying(&format!("{cookie}A"));
        assert_eq!(session.visitor_at(&forged, now), None);
    }

    #[test]
    fn a_cookie_of_the_authors_own_is_looked_up() {
        let visitor = from_cookie("sid", |value| {
            (value == "42").then(|| "ada@home".to_owned())
        });
        assert_eq!(
            visitor(&carrying("sid=41; sid=42")).as_deref(),
            Some("ada@home")
        );
        assert_eq!(visitor(&carrying("sid=41; side=42")), None);
    }
}
