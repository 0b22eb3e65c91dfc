//! The rules and people of a running gateway: replaced as a whole when the configuration is read again, and current at each
//! decision. Approvals that are good for a while are kept here, in memory: after a restart people are asked again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use jiff::tz::TimeZone;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_policy::{Now, Rules};
use mcp_elicit_record::team::RulesEvent;
use mcp_elicit_relay::decisions::Decisions;
use tokio::sync::mpsc;

use crate::bind::Binding;
use crate::callers::CurrentCaller;
use crate::config::zone_of;

/// The most approvals that are good for a while.
const MAX_GRANTS: usize = 10_000;
/// The most events that wait to be written into the audit.
const MAX_EVENTS: usize = 4_096;

/// The rules and people of a running gateway.
#[derive(Debug)]
pub(crate) struct Teams {
    current: RwLock<Current>,
    grants: Mutex<HashMap<GrantKey, Grant>>,
    events: mpsc::Sender<RulesEvent>,
}

#[derive(Clone, Debug)]
struct Current {
    rules: Arc<Rules>,
    zone: TimeZone,
}

/// The call for which an approval is good.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GrantKey {
    /// The caller, as the record tells it apart.
    pub(crate) caller: String,
    /// The server by the operator's name.
    pub(crate) server: String,
    /// The digest of the call as its client made it.
    pub(crate) call: String,
    /// The digest of the rule: a grant of another rule is void.
    pub(crate) rule: String,
}

/// An approval that is good for a while.
struct Grant {
    /// The approver's answers, JSON.
    answers: String,
    until: Timestamp,
}

impl std::fmt::Debug for Grant {
    /// Formats everything but the answers.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant")
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

impl Teams {
    /// The rules of a configuration. Returns the events for the audit too.
    pub(crate) fn new(rules: Arc<Rules>) -> (Arc<Self>, mpsc::Receiver<RulesEvent>) {
        let (events, told) = mpsc::channel(MAX_EVENTS);
        let teams = Self {
            current: RwLock::new(Current::new(rules)),
            grants: Mutex::default(),
            events,
        };
        (Arc::new(teams), told)
    }

    /// Returns the rules as they are now.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.current().rules
    }

    /// Replaces the rules. Open questions keep the plan that they were asked by.
    pub(crate) fn replace(&self, rules: Arc<Rules>) {
        let next = Current::new(rules);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
    }

    fn current(&self) -> Current {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the rules with the time as conditions see it.
    pub(crate) fn rules_at(&self, at: Timestamp) -> (Arc<Rules>, Now) {
        let Current { rules, zone } = self.current();
        let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
        let at = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
        let at = at.to_zoned(zone);
        let now = Now {
            unix: at.timestamp().as_second(),
            hour: i64::from(at.hour()),
            minute: i64::from(at.minute()),
            weekday: i64::from(at.weekday().to_monday_one_offset()),
            date: at.date().to_string(),
        };
        (rules, now)
    }

    /// Returns the decisions about the calls of a caller at a server; `usual` is the time for which its questions are open.
    pub(crate) fn decisions(
        self: &Arc<Self>,
        server: &str,
        caller: Arc<CurrentCaller>,
        usual: Duration,
    ) -> Arc<dyn Decisions> {
        Arc::new(Binding::new(self.clone(), server, caller, usual))
    }

    /// Has the audit tell of an event, once it can be written.
    pub(crate) fn tell(&self, event: RulesEvent) {
        if self.events.try_send(event).is_err() {
            tracing::error!(
                "an event of the rules is missing in the audit: too many wait to be written"
            );
        }
    }

    fn grants(&self) -> MutexGuard<'_, HashMap<GrantKey, Grant>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an approval for a while. Where there are too many, it serves one call only.
    pub(crate) fn grant(&self, key: GrantKey, answers: &str, now: Timestamp, good_for: Duration) {
        let mut grants = self.grants();
        grants.retain(|_, grant| grant.until > now);
        if grants.len() < MAX_GRANTS || grants.contains_key(&key) {
            let answers = answers.to_owned();
            let until = now.after(good_for);
            grants.insert(key, Grant { answers, until });
        }
    }

    /// Returns the answers with which this call was approved a short while ago, JSON.
    pub(crate) fn granted(&self, key: &GrantKey, now: Timestamp) -> Option<String> {
        let grants = self.grants();
        let grant = grants.get(key).filter(|grant| grant.until > now)?;
        Some(grant.answers.clone())
    }
}

impl Current {
    fn new(rules: Arc<Rules>) -> Self {
        // The configuration was refused where the zone is not known.
        let zone = zone_of(rules.time_zone()).unwrap_or(TimeZone::UTC);
        Self { rules, zone }
    }
}
