//! The rules and people of a running gateway: replaced completely on reload, and current at each decision. Longer-lived
//! approvals are cached here for decisions, and stored in the record.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use data_encoding::HEXLOWER;
use jiff::tz::TimeZone;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_inbox::login::table::Logins;
use mcp_elicit_policy::rules::Decision;
use mcp_elicit_policy::{CallingPerson, Now, People, Rules};
use mcp_elicit_record::clock::now;
use mcp_elicit_record::grants::ApprovalGrant;
use mcp_elicit_record::principal::Principal;
use mcp_elicit_record::refusals::{A_MINUTE, Refusals};
use mcp_elicit_record::team::RulesEvent;
use mcp_elicit_record::{IdentityKey, Record, RecordError};
use mcp_elicit_relay::decisions::Decisions;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use crate::bind::{Binding, ServerOfCalls, approval_digest, is_asked_by};
use crate::callers::{ProvenCaller, SessionCaller};
use crate::config::zone_of;

/// The most longer-lived approvals.
const MAX_GRANTS: usize = 10_000;
/// The most uses of approvals by one caller and rule that are recorded per minute. Refusals have [`A_MINUTE`].
const USES_A_MINUTE: usize = 600;
/// The most callers and rules whose events are counted separately; further callers of a rule are counted together.
const MAX_COUNTED: usize = 4_096;

/// The rules and people of a running gateway.
#[derive(Debug)]
pub(crate) struct CurrentRules {
    current: RwLock<Current>,
    /// By their keys.
    grants: Mutex<HashMap<String, HeldApproval>>,
    key: IdentityKey,
    /// The record, once the gateway runs.
    record: OnceLock<Weak<Record>>,
    /// The subjects to which people are bound.
    logins: Arc<Logins>,
    /// Actions of people and of the owner, and rate-limited events of callers: none is dropped.
    unwritten: mpsc::UnboundedSender<RulesChange>,
    /// The events of each caller and rule.
    caused: Mutex<HashMap<Cause, Refusals>>,
}

/// A longer-lived approval.
#[derive(Debug)]
struct HeldApproval {
    grant: ApprovalGrant,
    /// `true` once it is in the record: from then on it counts as long as it is there.
    is_written: bool,
}

/// The events that are counted together: their kind, rule and caller. Unauthenticated callers choose their name, so
/// those of one rule count as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Cause {
    is_refusal: bool,
    rule: String,
    principal: String,
}

#[derive(Clone, Debug)]
struct Current {
    rules: Arc<Rules>,
    zone: TimeZone,
}

/// A change to be written to the record.
#[derive(Debug)]
pub(crate) enum RulesChange {
    /// An event for the audit, and the number of omitted similar ones before it.
    Event(RulesEvent, u64),
    /// A longer-lived approval.
    Grant(Box<ApprovalGrant>),
    /// The keys of approvals that became void.
    VoidGrants(Vec<String>),
}

impl RulesChange {
    /// Returns the longer-lived approval, if it is one.
    pub(crate) fn grant(&self) -> Option<&ApprovalGrant> {
        match self {
            Self::Grant(grant) => Some(grant),
            Self::Event(..) | Self::VoidGrants(_) => None,
        }
    }

    /// Writes the change. Returns `false` if it is an approval that applies to one call only, because a person has ended
    /// another for the same call since it was given.
    pub(crate) async fn write(self, record: &Record) -> Result<bool, RecordError> {
        match self {
            Self::Event(event, left_out) => record.note_rules(&event, left_out).await?,
            Self::Grant(grant) => return record.keep_grant(&grant).await,
            Self::VoidGrants(keys) => record.drop_grants(keys).await?,
        }
        Ok(true)
    }
}

impl CurrentRules {
    /// Creates the rules of a configuration; `key` is the key of identities, and `logins` has the subjects of people.
    /// Also returns the changes for the record.
    pub(crate) fn new(
        rules: Arc<Rules>,
        key: IdentityKey,
        logins: Arc<Logins>,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<RulesChange>) {
        let (unwritten, changes) = mpsc::unbounded_channel();
        let teams = Self {
            current: RwLock::new(Current::new(rules)),
            grants: Mutex::default(),
            record: OnceLock::new(),
            key,
            logins,
            unwritten,
            caused: Mutex::default(),
        };
        (Arc::new(teams), changes)
    }

    /// Creates the rules for tests, without logins.
    #[cfg(all(test, feature = "teams"))]
    pub(crate) fn without_logins(
        rules: Arc<Rules>,
        key: IdentityKey,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<RulesChange>) {
        let nowhere = mcp_elicit_inbox::state_folder::StateFolder::at("/nonexistent".as_ref());
        Self::new(rules, key, Arc::new(nowhere.logins()))
    }

    /// Returns the current rules.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.current().rules
    }

    /// Returns the digest of the current rules.
    pub(crate) fn digest(&self) -> String {
        digest_of_rules(&self.rules())
    }

    /// Replaces the rules. Open questions keep their plan; approvals whose rule has changed are void.
    pub(crate) fn replace(&self, rules: Arc<Rules>) {
        let approving = approval_digests(&rules);
        let before = approval_digests(&self.rules());
        let next = Current::new(rules);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        let is_void = |grant: &ApprovalGrant| {
            before.contains(&grant.rule_digest) && !approving.contains(&grant.rule_digest)
        };
        let mut by_rule: BTreeMap<String, usize> = BTreeMap::new();
        let mut keys = Vec::new();
        for (key, held) in self.grants().extract_if(|_, held| is_void(&held.grant)) {
            *by_rule.entry(held.grant.rule).or_default() += 1;
            keys.push(key);
        }
        for (rule, grants) in by_rule {
            self.tell(RulesEvent::GrantVoid { rule, grants });
        }
        if !keys.is_empty() {
            self.queue(RulesChange::VoidGrants(keys));
        }
    }

    /// Returns `true` if the current rule of this name would ask about a call made now, with this digest.
    pub(crate) fn is_asked_by(&self, rule: &str, digest: &str) -> bool {
        let rules = self.rules();
        let rule = rules.rule(rule);
        rule.is_some_and(|rule| is_asked_by(rule, digest))
    }

    fn current(&self) -> Current {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the rules with the time for conditions.
    pub(crate) fn rules_at(&self, at: Timestamp) -> (Arc<Rules>, Now) {
        let Current { rules, zone } = self.current();
        (rules, now_in(zone, at))
    }

    /// Returns the decisions about the calls of a caller at a server; `usual` is the time for which its questions are
    /// open.
    pub(crate) fn decisions(
        self: &Arc<Self>,
        server: ServerOfCalls,
        caller: Arc<SessionCaller>,
        usual: Duration,
    ) -> Arc<dyn Decisions> {
        Arc::new(Binding::new(self.clone(), server, caller, usual))
    }

    /// Sends an event to the audit. A caller's own events are limited per minute, with a count of omitted ones,
    /// separately for each caller.
    pub(crate) fn tell(&self, event: RulesEvent) {
        let left_out = match &event {
            RulesEvent::Refused {
                rule, principal, ..
            } => self.count(true, rule, principal, now()),
            RulesEvent::GrantUsed {
                rule, principal, ..
            } => self.count(false, rule, principal, now()),
            RulesEvent::Loaded { .. }
            | RulesEvent::Rejected { .. }
            | RulesEvent::Approved { .. }
            | RulesEvent::GrantVoid { .. } => Some(0),
        };
        if let Some(left_out) = left_out {
            self.queue(RulesChange::Event(event, left_out));
        }
    }

    /// Counts one event of this kind. Returns the number of omitted ones before it; `None` if it is omitted.
    fn count(&self, is_refusal: bool, rule: &str, principal: &str, at: Timestamp) -> Option<u64> {
        let mut caused = self.caused.lock().unwrap_or_else(PoisonError::into_inner);
        let is_verified = Principal::parse(principal).is_some_and(|caller| caller.is_verified());
        let principal = if is_verified { principal } else { "" };
        let mut cause = Cause {
            is_refusal,
            rule: rule.to_owned(),
            principal: principal.to_owned(),
        };
        if caused.len() >= MAX_COUNTED && !caused.contains_key(&cause) {
            caused.retain(|_, rate| !rate.is_forgettable(at));
            if caused.len() >= MAX_COUNTED {
                cause.principal.clear();
            }
        }
        let most = if is_refusal { A_MINUTE } else { USES_A_MINUTE };
        let rate = caused.entry(cause);
        rate.or_insert_with(|| Refusals::at_most(most)).count(at)
    }

    fn queue(&self, change: RulesChange) {
        let _nobody_writes_while_the_process_ends = self.unwritten.send(change);
    }

    /// Returns the facts that match a caller to these people. A subject is the person who logs in with it: the owner of
    /// a mailbox whose person is bound to another subject is not that person. If the logins cannot be read, anyone may
    /// be the caller.
    pub(crate) fn person_of(&self, caller: &ProvenCaller, people: &People) -> CallingPerson {
        let CallingPerson::Subject = caller.person() else {
            return caller.person().clone();
        };
        let table = match self.logins.table() {
            Ok(table) => table,
            Err(error) => {
                tracing::error!(%error, "the logins cannot be read, so callers are not matched to people");
                return CallingPerson::Unknown;
            }
        };
        let mail = Some(caller.mail()).filter(|mail| !mail.is_empty());
        let mut person = table.person_of(caller.issuer(), caller.subject(), mail, people);
        if !people.people.contains_key(&person) {
            person.clear();
        }
        CallingPerson::Known(person)
    }

    /// Sets the record, which has the votes on open questions.
    pub(crate) fn set_record(&self, record: &Arc<Record>) {
        let _set_once = self.record.set(Arc::downgrade(record));
    }

    /// Returns the record, once the gateway runs.
    pub(crate) fn record(&self) -> Option<Arc<Record>> {
        self.record.get()?.upgrade()
    }

    /// Returns the key of identities.
    pub(crate) fn key(&self) -> &IdentityKey {
        &self.key
    }

    fn grants(&self) -> MutexGuard<'_, HashMap<String, HeldApproval>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores an approval until its expiry. If there are too many, it applies to one call only.
    pub(crate) fn grant(&self, grant: ApprovalGrant, now: Timestamp) {
        let mut grants = self.grants();
        grants.retain(|_, held| now < held.grant.until);
        if grants.len() < MAX_GRANTS || grants.contains_key(&grant.key) {
            let held = HeldApproval {
                grant: grant.clone(),
                is_written: false,
            };
            grants.insert(grant.key.clone(), held);
            drop(grants);
            self.queue(RulesChange::Grant(Box::new(grant)));
        }
    }

    /// Returns the currently valid approval of this key. One that is not written yet is valid for its own call only: a person
    /// may have ended another since it was given.
    pub(crate) fn granted(&self, key: &str, now: Timestamp) -> Option<ApprovalGrant> {
        let grants = self.grants();
        let held = grants.get(key).filter(|held| held.is_written);
        let grant = held.map(|held| &held.grant);
        grant.filter(|grant| grant.is_good(now)).cloned()
    }

    /// Notes that an approval was written. One that could not be is not valid for further calls: nobody could end it.
    pub(crate) fn grant_written(&self, grant: &ApprovalGrant, is_written: bool) {
        let mut grants = self.grants();
        // A later approval of the same call is written by itself.
        let Some(held) = grants
            .get_mut(&grant.key)
            .filter(|held| held.grant == *grant)
        else {
            return;
        };
        if is_written {
            held.is_written = true;
        } else {
            grants.remove(&grant.key);
        }
    }

    /// Returns `true` if approvals of a rule are valid for a while.
    pub(crate) fn keeps_grants(&self) -> bool {
        let keeps = |decision: &Decision| matches!(decision, Decision::Approve(approval) if approval.good_for.is_some());
        let rules = self.rules();
        rules.rules().iter().any(|rule| keeps(rule.decision()))
    }

    /// Adds the approvals in the record: those of this gateway before a restart, and those of other gateways. Removes
    /// those that are no longer there, because a person ended them.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub(crate) async fn recall_grants(&self, record: &Record) -> Result<(), RecordError> {
        // One that is written while the record is read may not be found there.
        let written: HashSet<String> = {
            let grants = self.grants();
            let written = grants.iter().filter(|(_, held)| held.is_written);
            written.map(|(key, _)| key.clone()).collect()
        };
        let stored = record.grants().await?;
        let known: HashSet<&str> = stored.iter().map(|grant| grant.key.as_str()).collect();
        let mut grants = self.grants();
        grants.retain(|key, _| known.contains(key.as_str()) || !written.contains(key));
        for grant in stored {
            // Another gateway may have replaced one that had ended: what its people approved counts. One that is not written
            // yet is newer.
            let is_replaced = written.contains(&grant.key);
            let is_new = !grants.contains_key(&grant.key) && grants.len() < MAX_GRANTS;
            if is_replaced || is_new {
                let held = HeldApproval {
                    grant,
                    is_written: true,
                };
                grants.insert(held.grant.key.clone(), held);
            }
        }
        Ok(())
    }
}

/// Returns these rules with the time for their conditions.
pub(crate) fn rules_with_time(rules: Arc<Rules>, at: Timestamp) -> (Arc<Rules>, Now) {
    let Current { rules, zone } = Current::new(rules);
    (rules, now_in(zone, at))
}

/// Returns the time for conditions.
pub(crate) fn now_in(zone: TimeZone, at: Timestamp) -> Now {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    let at = at.to_zoned(zone);
    Now {
        unix: at.timestamp().as_second(),
        hour: i64::from(at.hour()),
        minute: i64::from(at.minute()),
        weekday: i64::from(at.weekday().to_monday_one_offset()),
        date: at.date().to_string(),
    }
}

/// Returns the digests of the rules that ask for approval.
fn approval_digests(rules: &Rules) -> HashSet<String> {
    let approving = rules.rules().iter();
    let approving = approving.filter(|rule| matches!(rule.decision(), Decision::Approve(_)));
    approving.map(approval_digest).collect()
}

/// Returns the digest of all rules and people, which identifies them in the audit.
pub(crate) fn digest_of_rules(rules: &Rules) -> String {
    let mut hash = Sha256::new();
    for rule in rules.rules() {
        hash.update(rule.canonical_text());
        hash.update("\n");
    }
    hash.update(rules.people().canonical_text());
    HEXLOWER.encode(&hash.finalize()[..16])
}

/// Returns the beginning of a digest of rules, as the audit shows it to people.
pub(crate) fn short_digest(digest: &str) -> &str {
    digest.get(..8).unwrap_or(digest)
}

impl Current {
    fn new(rules: Arc<Rules>) -> Self {
        // A configuration with an unknown zone was rejected.
        let zone = zone_of(rules.time_zone()).unwrap_or(TimeZone::UTC);
        Self { rules, zone }
    }
}

#[cfg(all(test, feature = "teams"))]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_causes_many_refusals_takes_no_other_entry_from_the_audit() {
        let key = IdentityKey::random().unwrap();
        let (teams, mut changes) =
            CurrentRules::without_logins(Arc::new(Rules::parse("").unwrap()), key);
        let refused = |principal: &str| RulesEvent::Refused {
            rule: "never".to_owned(),
            server: "s".to_owned(),
            principal: principal.to_owned(),
            call: None,
        };
        for _ in 0..10_000 {
            teams.tell(refused("key-1"));
        }
        teams.tell(refused("key-2"));
        teams.tell(RulesEvent::Rejected {
            digest: "d".to_owned(),
            need_restart: Vec::new(),
            gateway: "m1:/srv/a".to_owned(),
        });
        let mut of_first = 0;
        let mut last = Vec::new();
        while let Ok(change) = changes.try_recv() {
            match change {
                RulesChange::Event(RulesEvent::Refused { principal, .. }, 0)
                    if principal == "key-1" =>
                {
                    of_first += 1;
                }
                other => last.push(other),
            }
        }
        assert_eq!(of_first, A_MINUTE);
        assert!(
            matches!(
                &last[..],
                [
                    RulesChange::Event(RulesEvent::Refused { .. }, 0),
                    RulesChange::Event(RulesEvent::Rejected { .. }, 0)
                ]
            ),
            "{last:?}"
        );
    }

    #[test]
    fn callers_who_prove_nothing_take_no_entry_of_others_whatever_they_are_named() {
        let key = IdentityKey::random().unwrap();
        let (teams, _changes) =
            CurrentRules::without_logins(Arc::new(Rules::parse("").unwrap()), key);
        let at = Timestamp::from_millis(1_000_000);
        let count = |rule: &str, principal: &str| teams.count(true, rule, principal, at);
        for number in 0..2 * MAX_COUNTED {
            let written = count("never", &format!("{number:064x}")).is_some();
            assert_eq!(written, number < A_MINUTE, "{number}");
        }
        assert_eq!(count("never", "anonymous"), None);
        assert_eq!(count("other", "anonymous"), Some(0));
        assert_eq!(count("never", "key-1"), Some(0));
        assert_eq!(teams.caused.lock().unwrap().len(), 3);
    }

    #[test]
    fn causes_that_were_quiet_make_room_for_new_ones() {
        let key = IdentityKey::random().unwrap();
        let (teams, _changes) =
            CurrentRules::without_logins(Arc::new(Rules::parse("").unwrap()), key);
        let count = |principal: &str, millis: u64| {
            let at = Timestamp::from_millis(millis);
            teams.count(true, "never", principal, at)
        };
        for _ in 0..=A_MINUTE {
            count("key-left-out", 1_000);
        }
        for number in 1..MAX_COUNTED {
            assert_eq!(count(&format!("key-{number}"), 1_000), Some(0));
        }
        // There is no room: further callers of the rule share one count.
        let shared =
            (0..=A_MINUTE).filter(|number| count(&format!("key-x{number}"), 2_000) == Some(0));
        assert_eq!(shared.count(), A_MINUTE);
        assert_eq!(count("key-new", 60_999), None);
        assert_eq!(count("key-1", 60_999), Some(0));
        // One minute after all but one and the shared one were idle.
        assert_eq!(count("key-y", 62_000), Some(0));
        for _ in 1..A_MINUTE {
            assert_eq!(count("key-y", 62_000), Some(0));
        }
        assert_eq!(count("key-y", 62_000), None);
        assert_eq!(count("key-left-out", 62_000), Some(1));
        assert!(teams.caused.lock().unwrap().len() < 10);
    }
}
