//! The people's side of a question that several may answer, as its page shows it.

use std::fmt;
use std::time::SystemTime;

use serde_json::{Map, Value};

/// The state of a question among several people, for one of them.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each act is offered or not, by itself"
)]
pub struct TeamView {
    /// `true` if a call waits for approval, and no server has asked.
    pub is_approval: bool,
    /// Whole sentences: who is asked, and how many must agree.
    pub lines: Vec<String>,
    /// The version of the entered answers, which an act on them names.
    pub version: u32,
    /// The answers that wait for the agreement of others.
    pub entered: Option<EnteredView>,
    /// `true` if the reader may answer.
    pub may_act: bool,
    /// `true` if dismissing the question is offered.
    pub may_cancel: bool,
    /// `true` if the reader may keep others from answering for a while.
    pub may_claim: bool,
    /// The claim of somebody else, which the reader may take over.
    pub claim: Option<ClaimView>,
    /// `true` if the reader has agreed to the entered answers.
    pub has_agreed: bool,
    /// `true` if the reader has handed the question on, and a line says so.
    pub has_handed_on: bool,
    /// The number of people who must agree beside the one who enters answers.
    pub others_needed: u8,
    /// Those to whom the reader may hand the question on: value and label.
    pub delegates: Vec<(String, String)>,
    /// `true` if the reader may comment.
    pub may_comment: bool,
    /// The comments of people, the oldest first.
    pub comments: Vec<CommentView>,
    /// The course of the question, the earliest first.
    pub history: Vec<HistoryLine>,
}

/// The claim of a person, which keeps others from entering answers.
#[derive(Clone, Debug)]
pub struct ClaimView {
    /// The person.
    pub by: String,
    /// The time at which it ends by itself.
    pub until: SystemTime,
}

/// Answers that wait for the agreement of others.
#[derive(Clone)]
pub struct EnteredView {
    /// The person who entered them.
    pub by: String,
    /// The answers by field; empty for a link.
    pub content: Map<String, Value>,
    /// The digest of exactly these answers.
    pub digest: String,
    /// `true` if the agreement of the reader is missing.
    pub may_confirm: bool,
}

impl fmt::Debug for EnteredView {
    /// Formats everything but the answers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnteredView")
            .field("by", &self.by)
            .finish_non_exhaustive()
    }
}

/// A text that a person wrote on a question.
#[derive(Clone)]
pub struct CommentView {
    /// The person.
    pub by: String,
    /// When.
    pub at: SystemTime,
    /// The text.
    pub text: String,
}

impl fmt::Debug for CommentView {
    /// Formats everything but the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommentView")
            .field("by", &self.by)
            .finish_non_exhaustive()
    }
}

/// A step in the course of a question.
#[derive(Clone, Debug)]
pub struct HistoryLine {
    /// When, where that is known.
    pub at: Option<SystemTime>,
    /// The event, without a value.
    pub text: String,
    /// `true` for an act or a change, of which readers of the page are told as it comes.
    pub is_announced: bool,
}

/// An act of one of several people, beside answering and leaving.
#[derive(Clone, PartialEq, Eq)]
pub enum TeamAct {
    /// Agree to exactly the answers of this digest.
    Confirm {
        /// The digest.
        digest: String,
    },
    /// Keep others from answering for a while.
    Claim,
    /// Take the claim of somebody else.
    TakeOver,
    /// Hand the question on.
    Delegate {
        /// The value of one of [`TeamView::delegates`].
        to: String,
        /// The note for them.
        note: String,
    },
    /// Comment.
    Comment {
        /// The text.
        text: String,
    },
}

impl fmt::Debug for TeamAct {
    /// Formats the name of the act only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Confirm { .. } => "Confirm",
            Self::Claim => "Claim",
            Self::TakeOver => "TakeOver",
            Self::Delegate { .. } => "Delegate",
            Self::Comment { .. } => "Comment",
        })
    }
}

/// The result of an act of one of several people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TeamResult {
    /// It is done.
    Done,
    /// It is refused, for this reason: a whole sentence. What was typed is kept.
    Refused(String),
    /// The login is too old for the act: a fresh one is needed.
    LoginTooOld,
    /// There is no such question for this viewer.
    Gone,
}
