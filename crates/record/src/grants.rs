//! Approvals that are valid for a while: the same call, made again, needs no second approval until then. They are
//! stored with their expiry, so that a restart neither forgets nor prolongs one.

use std::fmt;
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use tokio::sync::watch;

use super::audit::{Details, Event};
use super::{Record, RecordError, associated_data};
use crate::store::{RecordStore as _, StoredGrant};

/// An approval that is valid for a while.
#[derive(Clone, PartialEq, Eq)]
pub struct ApprovalGrant {
    /// The keyed hash of the caller, the server, the call and the rule
    /// ([`IdentityKey::grant_key`](super::IdentityKey::grant_key)).
    pub key: String,
    /// The question in which people approved the call, if it is in the record.
    pub question: Option<String>,
    /// The rule by name.
    pub rule: String,
    /// The digest of the rule: a grant of another rule is void.
    pub rule_digest: String,
    /// The approvers' answers, JSON.
    pub answers: String,
    /// The time of the approval.
    pub at: Timestamp,
    /// The time of its expiry.
    pub until: Timestamp,
}

impl ApprovalGrant {
    /// Returns `true` from the approval until its expiry. A clock that was set back prolongs no grant.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.at <= now && now < self.until
    }
}

impl fmt::Debug for ApprovalGrant {
    /// Formats everything but the answers and the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApprovalGrant")
            .field("rule", &self.rule)
            .field("at", &self.at)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// The answers of a grant that a person has ended, which stays as a mark: an approval given before it begins no other. A
/// person's answers are an object.
const ENDED: &str = "\"ended\"";
/// The time for which the mark stays at least: no answer waits longer for its call.
const MARK_TIME: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// The member of a grant that is sealed.
pub(crate) const MEMBER: &str = "grant";

/// Returns the associated data of a grant's answers, which do not open with changed times.
pub(crate) fn bound_to(key: &str, at: Timestamp, until: Timestamp) -> String {
    let id = format!("{key}.{}.{}", at.as_millis(), until.as_millis());
    associated_data(&id, MEMBER)
}

impl Record {
    /// Stores a grant, replacing one of the same key. People may have approved its question before a person ended another
    /// grant for the same call: then nothing is stored. Returns `true` if it is stored.
    ///
    /// # Errors
    /// If the store fails, or the answers cannot be sealed.
    pub async fn keep_grant(&self, grant: &ApprovalGrant) -> Result<bool, RecordError> {
        let row = match &grant.question {
            Some(question) => self.find(question).await?,
            None => None,
        };
        let given = row.and_then(|row| row.lifecycle.ended_at());
        self.store_grant(grant, given.unwrap_or(grant.at)).await
    }

    async fn store_grant(
        &self,
        grant: &ApprovalGrant,
        given: Timestamp,
    ) -> Result<bool, RecordError> {
        let place = bound_to(&grant.key, grant.at, grant.until);
        let stored = StoredGrant {
            key: grant.key.clone(),
            question: grant.question.clone(),
            rule: grant.rule.clone(),
            rule_digest: grant.rule_digest.clone(),
            answers: self.keys.encryption.seal(&place, &grant.answers)?,
            at: grant.at,
            until: grant.until,
        };
        Ok(self.store.keep_grant(stored, given).await?)
    }

    /// Returns the grants that are valid now, and deletes expired ones. A grant that was sealed with a lost key is
    /// ignored: people are asked again.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn grants(&self) -> Result<Vec<ApprovalGrant>, RecordError> {
        let now = self.now();
        let stored = self.store.grants(now).await?;
        let opened = stored.into_iter().filter_map(|stored| {
            let place = bound_to(&stored.key, stored.at, stored.until);
            let answers = self.keys.encryption.open(&place, &stored.answers).ok()?;
            Some(ApprovalGrant {
                key: stored.key,
                question: stored.question,
                rule: stored.rule,
                rule_digest: stored.rule_digest,
                answers,
                at: stored.at,
                until: stored.until,
            })
        });
        let valid = opened.filter(|grant| grant.answers != ENDED && grant.is_good(now));
        Ok(valid.collect())
    }

    /// Ends grants before their time, each with an entry in the audit under this actor.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn end_grants(&self, grants: &[ApprovalGrant], by: &str) -> Result<(), RecordError> {
        let now = self.now();
        for grant in grants {
            let ended = ApprovalGrant {
                answers: ENDED.to_owned(),
                at: now,
                until: grant.until.max(now.after(MARK_TIME)),
                ..grant.clone()
            };
            self.store_grant(&ended, Timestamp::from_millis(u64::MAX))
                .await?;
        }
        self.ended_grants.send_modify(|count| *count += 1);
        for grant in grants {
            let details = Details {
                question: grant.question.as_deref(),
                reason: Some("ended"),
                ..Details::by(by)
            };
            self.audit_details(Event::GrantVoid, &details).await?;
        }
        self.flush().await
    }

    /// Returns a counter that increases when people end grants through this record.
    pub fn ended_grants(&self) -> watch::Receiver<u64> {
        self.ended_grants.subscribe()
    }

    /// Deletes grants.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn drop_grants(&self, keys: Vec<String>) -> Result<(), RecordError> {
        Ok(self.store.drop_grants(keys).await?)
    }
}
