//! The state of the vote on a question, for the caller who waits. It is remembered while a call of this process waits, so
//! that the relay can read it at once.

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_policy::people::Addressee;

use crate::Record;
use crate::store::Row;

/// The state of the vote on a question of a rule, for the caller who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoteProgress {
    /// The people who are missing, in words: `2 of platform, security`.
    pub missing: String,
    /// The number of people who have confirmed.
    pub votes: usize,
    /// The number of people who must confirm.
    pub need: u8,
    /// The time of the question.
    pub asked_at: Timestamp,
    /// The time at which it ends unanswered.
    pub until: Option<Timestamp>,
}

impl VoteProgress {
    /// Returns the state of the vote in a row; `None` if no rule applies to it.
    pub(crate) fn of(row: &Row) -> Option<Self> {
        let team = row.team.as_deref()?;
        let quorum = &team.quorum;
        let names = |to: &[Addressee]| {
            let names = to.iter().map(|to| match to {
                Addressee::Caller => "the caller",
                Addressee::Person(name) | Addressee::Group(name) => name.as_str(),
            });
            names.collect::<Vec<_>>().join(", ")
        };
        let missing = match &team.missing {
            Some(missing) => missing.clone(),
            None if quorum.parts().is_empty() => {
                format!("{} of {}", quorum.missing(), names(quorum.addressees()))
            }
            None => {
                let parts = quorum.parts().iter();
                let parts = parts.map(|part| format!("{} of {}", part.need, names(&part.to)));
                parts.collect::<Vec<_>>().join(" and ")
            }
        };
        Some(Self {
            missing,
            votes: quorum.votes().len(),
            need: quorum.need().get(),
            asked_at: row.lifecycle.asked_at(),
            until: row.lifecycle.deadline(),
        })
    }
}

impl Record {
    /// Returns the state of the vote on a question that a call of this process waits for; `None` if no rule asks it.
    pub fn progress(&self, id: &str) -> Option<VoteProgress> {
        self.live().get(id)?.progress.clone()
    }

    /// Remembers the state of the vote on a question that a call of this process waits for.
    pub(crate) fn note_progress(&self, row: &Row) {
        if let Some(live) = self.live().get_mut(&row.id) {
            live.progress = VoteProgress::of(row);
        }
    }
}
