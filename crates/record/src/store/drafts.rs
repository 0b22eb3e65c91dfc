//! Drafts that gateways share: what people have typed into pages and not sent.

use mcp_elicit_core::lifecycle::Timestamp;

use super::RecordFuture;

/// The most drafts of one person, and of all.
pub const MOST_DRAFTS: (usize, usize) = (100, 5_000);
/// The most bytes in the drafts of one person, and of all.
pub const MOST_DRAFT_BYTES: (usize, usize) = (4 * 1024 * 1024, 64 * 1024 * 1024);

/// A draft as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDraft {
    /// The id of the question.
    pub question: String,
    /// The person; empty for the owner of an inbox without people.
    pub person: String,
    /// The draft, sealed.
    pub sealed: Vec<u8>,
    /// The time of its last change.
    pub at: Timestamp,
}

/// A store of drafts, which ends each with its question.
pub trait DraftStore: Send + Sync {
    /// Stores a draft, which replaces the person's earlier one of the question, unless the question has ended. Deletes
    /// those that were last changed before `oldest`, and the person's and then everyone's least recently changed ones
    /// beyond [`MOST_DRAFTS`] and [`MOST_DRAFT_BYTES`].
    fn keep_draft(&self, draft: StoredDraft, oldest: Timestamp) -> RecordFuture<'_, ()>;
    /// Returns the person's sealed draft of a question, unless it was last changed before `oldest`.
    fn draft(
        &self,
        question: String,
        person: String,
        oldest: Timestamp,
    ) -> RecordFuture<'_, Option<Vec<u8>>>;
    /// Deletes the drafts that do not begin with these bytes, the name of the newest key.
    fn drop_drafts_of_other_keys(&self, newest: Vec<u8>) -> RecordFuture<'_, ()>;
}
