//! The callers of requests: who they are, which credentials their requests pass to the server, and the end of those that
//! may no longer be served.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::response::Response;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::McpEndpoint;
use super::client_session::SessionName;
#[cfg(feature = "teams")]
use super::eviction::Evictable as _;
use super::header_checks::{RequestCredentials, from_elsewhere, with_credentials_of};
use crate::callers::resource::Resource;
use crate::callers::{EndedTokens, ProvenCaller, SessionCaller, SessionStanding, Unauthenticated};
use crate::config::UpstreamCredentials;
use crate::listener::peers::forwarded::{NotTaken, taken};

/// The interval of checks that callers may still be served.
const REVOCATION_CHECK: Duration = Duration::from_secs(1);

impl McpEndpoint {
    /// Returns the caller of a request; the refusal if it comes from a page elsewhere, or has no valid caller.
    pub(super) async fn caller(
        &self,
        headers: &HeaderMap,
        from: Option<IpAddr>,
        resource: &Resource,
    ) -> Result<ProvenCaller, Box<Response>> {
        if !self.origin_guard.admits(headers) {
            return Err(Box::new(from_elsewhere()));
        }
        let callers = &self.runtime.callers;
        // Without authentication, callers are told apart by the credentials that they send to the server.
        let named = match self.credentials() {
            RequestCredentials::Passed(header) if callers.forwards_credentials() => {
                with_credentials_of(headers, &header)
            }
            RequestCredentials::Passed(_)
            | RequestCredentials::Withheld
            | RequestCredentials::Exchanged => Cow::Borrowed(headers),
        };
        let resources = self.resources.get();
        match callers.identify(&named, from, &resources).await {
            Ok(caller) => Ok(caller),
            Err(refused) => Err(Box::new(self.refusal(refused, resource).await)),
        }
    }

    /// Returns the caller of a request that another gateway has forwarded to this one, and that may still be served; the
    /// refusal if there is none.
    pub(super) async fn forwarded_caller(
        &self,
        headers: &HeaderMap,
        resource: &Resource,
    ) -> Result<ProvenCaller, Box<Response>> {
        let callers = &self.runtime.callers;
        let Some(peers) = &self.runtime.peers else {
            return Err(Box::new(NotTaken::OtherGateway.response()));
        };
        let caller = match taken(headers, peers.name(), callers.logs_in()) {
            Ok(caller) => caller,
            Err(refused) => {
                peers.counts().refused();
                tracing::warn!(%refused, "a request of another gateway was refused");
                return Err(Box::new(refused.response()));
            }
        };
        peers.counts().taken();
        match callers.forwarded(caller, headers) {
            Ok(caller) => Ok(caller),
            Err(refused) => Err(Box::new(self.refusal(refused, resource).await)),
        }
    }

    /// Returns and records the response to a request without a valid caller.
    pub(super) async fn refusal(&self, refused: Unauthenticated, resource: &Resource) -> Response {
        let callers = &self.runtime.callers;
        let server = &self.server().settings.server;
        let noted = callers.note_refused(&self.runtime.record, server, refused);
        noted.await;
        refused.response(resource, callers.issuer())
    }

    /// Returns the credentials that are forwarded to the server.
    pub(super) fn credentials(&self) -> RequestCredentials {
        match &self.server().credentials {
            UpstreamCredentials::Usual if self.runtime.callers.forwards_credentials() => {
                RequestCredentials::Passed(AUTHORIZATION)
            }
            UpstreamCredentials::Usual | UpstreamCredentials::Operator => {
                RequestCredentials::Withheld
            }
            UpstreamCredentials::Pass(header) => RequestCredentials::Passed(header.clone()),
            UpstreamCredentials::Exchange { .. } => RequestCredentials::Exchanged,
        }
    }

    /// Returns the digest of the credentials that a request passes to the server, of a caller that may serve several users:
    /// their questions, answers and results are kept apart. Empty for a caller who is one person, whose credentials may be
    /// renewed, and without authentication, where the caller's name has it.
    pub(super) fn passed_by(&self, caller: &ProvenCaller, headers: &HeaderMap) -> String {
        if caller.may_serve_several() {
            self.credentials().digest(headers)
        } else {
            String::new()
        }
    }

    /// Asks the issuer again about the tokens of waiting or listening callers, if it may have revoked them.
    #[cfg(feature = "teams")]
    pub(super) async fn ask_again(&self) {
        // Under the lock: a session held here would count as being served, and could not be evicted.
        let sessions = self
            .sessions()
            .values()
            .filter(|held| held.has_work() || held.client.is_listened_to())
            .map(|held| (held.caller.clone(), held.pool.accesses()))
            .collect();
        self.runtime.callers.ask_again(sessions).await;
    }

    /// Ends the sessions of callers that may no longer be served, and in the others the calls that came with tokens that have
    /// ended. Their questions stay in the record until they expire.
    pub(super) fn end_revoked(&self) {
        let callers = &self.runtime.callers;
        // Every request waits for the lock, and the record may be slow or away, so it is asked before. A session held here
        // would count as being served, and could not be evicted.
        let sessions: Vec<_> = self
            .sessions()
            .iter()
            .map(|(name, held)| (name.clone(), held.caller.clone()))
            .collect();
        let mut known = HashMap::new();
        let standings: HashMap<SessionName, (Arc<SessionCaller>, SessionStanding)> = sessions
            .into_iter()
            .map(|(name, caller)| {
                let standing = callers.standing_of_session(&caller, &mut known);
                (name, (caller, standing))
            })
            .collect();
        let (mut expired, mut ended, mut in_part) = (Vec::new(), Vec::new(), Vec::new());
        self.sessions().retain(|name, held| {
            let of_this = standings.get(name);
            let of_this = of_this.filter(|(caller, _)| Arc::ptr_eq(caller, &held.caller));
            match of_this.map(|(_, standing)| *standing) {
                Some(SessionStanding::Valid | SessionStanding::Unknown) => {
                    let tokens = callers.take_ended_tokens(&held.caller, &held.pool.accesses());
                    if tokens != EndedTokens::default() {
                        in_part.push((held.clone(), tokens));
                    }
                }
                Some(SessionStanding::MayComeBack) => expired.push(held.clone()),
                Some(SessionStanding::Ended) => {
                    ended.push(held.clone());
                    return false;
                }
                // It was opened meanwhile.
                None => {}
            }
            true
        });
        for held in expired {
            // The same caller collects the results with its next token, and opens the session's stream with it.
            held.pool.hand_back();
            held.client.hang_up();
        }
        for (held, tokens) in in_part {
            held.pool.end_tokens(&tokens);
            if !tokens.revoked.is_empty() {
                held.client.hang_up();
            }
        }
        for held in ended {
            held.end();
        }
    }
}

/// Ends the sessions of revoked callers while the endpoint exists.
pub(super) async fn end_revoked_callers(endpoint: Weak<McpEndpoint>) {
    loop {
        tokio::time::sleep(REVOCATION_CHECK).await;
        let Some(endpoint) = endpoint.upgrade() else {
            return;
        };
        #[cfg(feature = "teams")]
        endpoint.ask_again().await;
        // Ending a session may wait for its driver.
        let ended = tokio::task::spawn_blocking(move || endpoint.end_revoked()).await;
        if let Err(error) = ended {
            tracing::error!(%error, "sessions of revoked callers could not be ended");
        }
    }
}
