//! The arguments of a call that a rule keeps for auditors (`keep`): sealed, in the question's row, until their own time
//! ends. Every outcome is treated alike: without `keep`, nothing of the call is left.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use data_encoding::HEXLOWER;
use mcp_elicit_core::lifecycle::Timestamp;
use serde::{Deserialize, Serialize};

use super::Team;
use crate::audit::{Details, Event};
use crate::commit::CommitEffect;
use crate::store::{Change, Crash, Row};
use crate::{Record, RecordError, associated_data};

/// Values of a call that a rule keeps for auditors, sealed, in hex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Retained {
    /// The arguments as the call was made.
    arguments: String,
    /// The answers to an approval, which may change them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    until: Timestamp,
}

/// The arguments of a call that a rule keeps for auditors.
#[derive(Clone, PartialEq, Eq)]
pub struct RetainedCall {
    /// The arguments as the call was made, JSON.
    pub arguments: String,
    /// The answers to an approval, JSON: values by JSON Pointer, some of which may be changes. Those to a question of the
    /// server are never kept.
    pub answers: Option<String>,
    /// The time at which they are erased.
    pub until: Timestamp,
}

impl std::fmt::Debug for RetainedCall {
    /// Formats the time only.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RetainedCall")
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

impl RetainedCall {
    /// Returns the kept values in words: the arguments as called, and the answers of the approvers.
    pub fn in_words(&self) -> String {
        match self.answers.as_deref().filter(|answers| *answers != "{}") {
            Some(answers) => format!("called with {}, approved with {answers}", self.arguments),
            None => format!("called with {}", self.arguments),
        }
    }
}

impl Team {
    /// Keeps sealed values of the call for auditors, if the rule says so.
    pub(crate) fn retain_values(
        &mut self,
        arguments: Option<Vec<u8>>,
        content: Option<Vec<u8>>,
        now: Timestamp,
    ) {
        if let (Some(time), Some(arguments), None) =
            (self.keep_arguments, arguments, &self.retained)
        {
            self.retained = Some(Retained {
                arguments: HEXLOWER.encode(&arguments),
                content: content.map(|content| HEXLOWER.encode(&content)),
                until: now.after(time),
            });
        }
    }

    /// Returns the time until which values of the call are kept for auditors, if they are.
    pub(crate) fn retained_until(&self) -> Option<Timestamp> {
        self.retained.as_ref().map(|kept| kept.until)
    }
}

impl Row {
    /// Returns `true` if values were kept for auditors until this time or an earlier one.
    pub(crate) fn has_retained_until(&self, now: Timestamp) -> bool {
        let until = self.team.as_ref().and_then(|team| team.retained_until());
        until.is_some_and(|until| until <= now)
    }
}

/// The readings of kept arguments that are in the audit: a page that renews itself is one reading.
#[derive(Default)]
pub(crate) struct RetainedReads(Mutex<HashMap<(String, String), Timestamp>>);

/// The time for which a further reading of the same person is not another entry, and the most readings that are
/// remembered.
const REPEAT_TIME: Duration = Duration::from_secs(60);
const MAX_READS: usize = 1_000;

impl RetainedReads {
    /// Returns `true` if this reading needs an entry.
    fn is_new(&self, id: &str, by: &str, now: Timestamp) -> bool {
        let mut reads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reads.retain(|_, at| *at <= now && now.since(*at) < REPEAT_TIME);
        let key = (id.to_owned(), by.to_owned());
        if reads.contains_key(&key) {
            return false;
        }
        if reads.len() < MAX_READS {
            reads.insert(key, now);
        }
        true
    }
}

impl Record {
    /// Returns the arguments that a rule keeps for auditors ([`retained_call`](Self::retained_call)) for this reader,
    /// whose reading is an entry of the audit. Readings within a minute are one.
    ///
    /// # Errors
    /// If they were sealed with another key, or the entry cannot be written.
    pub async fn read_retained_call(
        &self,
        row: &Row,
        by: &str,
    ) -> Result<Option<RetainedCall>, RecordError> {
        let kept = self.retained_call(row)?;
        if kept.is_some() && self.retained_reads.is_new(&row.id, by, self.now()) {
            let details = Details {
                question: Some(&row.id),
                server: Some(&row.body.server),
                ..Details::by(by)
            };
            self.audit_details(Event::ArgumentsRead, &details).await?;
        }
        Ok(kept)
    }

    /// Returns the arguments of an ended question's call that its rule keeps for auditors; `None` if it keeps none.
    ///
    /// # Errors
    /// If they were sealed with another key.
    pub fn retained_call(&self, row: &Row) -> Result<Option<RetainedCall>, RecordError> {
        let Some(kept) = row.team.as_ref().and_then(|team| team.retained.as_ref()) else {
            return Ok(None);
        };
        let open = |place: &str, text: &str| {
            let bytes = HEXLOWER.decode(text.as_bytes()).unwrap_or_default();
            let data = associated_data(&row.id, place);
            Ok::<_, RecordError>(self.keys.encryption.open(&data, &bytes)?)
        };
        let answers = kept.content.as_deref().filter(|_| row.is_approval());
        Ok(Some(RetainedCall {
            arguments: open("arguments", &kept.arguments)?,
            answers: answers.map(|text| open("content", text)).transpose()?,
            until: kept.until,
        }))
    }

    /// Erases the values that were kept for auditors, after their time.
    pub(crate) async fn drop_retained(&self, row: &Row) -> Result<(), RecordError> {
        let mut after = row.clone();
        if let Some(team) = after.team.as_mut() {
            team.retained = None;
        }
        let seen = row.lifecycle.version();
        after.lifecycle = after.lifecycle.renewed();
        let change = Change {
            row: after,
            seen,
            audit: Vec::new(),
            survives: Crash::Process,
        };
        self.commit_team(&row.id, change, CommitEffect::Changed, || ())
            .await?;
        Ok(())
    }
}
