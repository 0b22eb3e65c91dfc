//! The reasons for a decline, and the comments of those who approved, as a rule passes them on.

use mcp_elicit_core::question::reason_line;
use mcp_elicit_policy::quorum::{QuorumEnd, QuorumState};

use super::{Comment, Decided};
use crate::store::Row;
use crate::{Record, RecordError};

impl Record {
    /// Returns the reasons and comments that the caller is told with a decision, by the rule.
    pub(crate) fn reasons_for_caller(&self, row: &Row) -> Result<Vec<String>, RecordError> {
        match row.team.as_deref() {
            Some(team) if team.reasons.caller => self.reasons(row),
            Some(_) | None => Ok(Vec::new()),
        }
    }

    /// Returns the reason of the decline that ended a question, or the comments of the people who approved its call,
    /// each on one line.
    ///
    /// # Errors
    /// If they were sealed with another key.
    pub fn reasons(&self, row: &Row) -> Result<Vec<String>, RecordError> {
        let Some(team) = row.team.as_deref() else {
            return Ok(Vec::new());
        };
        let is_told = |comment: &Comment| match (team.quorum.state(), comment.on) {
            (QuorumState::Ended(QuorumEnd::Declined { by }), Some(Decided::Declined)) => {
                comment.by == *by
            }
            (QuorumState::Ended(QuorumEnd::Answered { votes, .. }), Some(Decided::Agreed)) => {
                team.is_approval
                    && votes.contains(&comment.by)
                    && comment.version == team.quorum.version()
            }
            _ => false,
        };
        let comments = self.comments(row)?.into_iter().filter(is_told);
        Ok(comments
            .filter_map(|comment| reason_line(&comment.text))
            .collect())
    }
}
