//! The team's view of a question that several people may answer, for its page.

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
    /// Whole sentences about the people who are asked, and the number who must confirm.
    pub lines: Vec<String>,
    /// The places that a reason for a decline or a comment on an approval reaches: a whole sentence.
    pub reasons_reach: String,
    /// The operator's explanation of the rule.
    pub explain: Option<String>,
    /// The address of a page with more of it.
    pub link: Option<String>,
    /// The later calls that an approval also lets through: a whole sentence.
    pub good_for: Option<String>,
    /// The reason or the comments that people gave with the end.
    pub reasons: Vec<String>,
    /// `true` if the reader may end an approval that applies for a while, on the page of these.
    pub may_end_grant: bool,
    /// The server's claims about the tool of a call that waits for approval.
    pub tool: Option<ToolView>,
    /// The names of the arguments that the rule's condition may read; `None` if it may read all of them.
    pub reads: Option<Vec<String>>,
    /// The version of the entered answers, which an action on them names.
    pub version: u32,
    /// The answers that wait for the confirmation of others.
    pub entered: Option<EnteredView>,
    /// `true` if the reader may answer.
    pub may_act: bool,
    /// `true` if dismissing the question is offered.
    pub may_cancel: bool,
    /// `true` if the reader may claim the question.
    pub may_claim: bool,
    /// Another person's claim, which the reader may take over.
    pub claim: Option<ClaimView>,
    /// `true` if the reader has confirmed the entered answers.
    pub has_agreed: bool,
    /// `true` if the reader has delegated the question, and a line says so.
    pub has_handed_on: bool,
    /// The person or group to whom the reader has delegated it last, in words.
    pub handed_on_to: Option<String>,
    /// The number of people who must confirm, besides the person who enters answers.
    pub others_needed: u8,
    /// The people to whom the reader may delegate the question: value and label.
    pub delegates: Vec<(String, String)>,
    /// `true` if the reader may comment.
    pub may_comment: bool,
    /// The comments of people, the oldest first.
    pub comments: Vec<CommentView>,
    /// The history of the question, the earliest first.
    pub history: Vec<HistoryLine>,
}

/// A server's claims about a tool, which nothing checks. The page sanitizes its texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolView {
    /// The description.
    pub description: Option<String>,
    /// The hints, in words.
    pub hints: Vec<String>,
    /// The arguments that the call leaves out, each with the default in the tool's schema (JSON), if it has one.
    pub absent: Vec<(String, Option<String>)>,
    /// The number of further ones.
    pub more_absent: usize,
}

/// The claim of a person, which keeps others from entering answers.
#[derive(Clone, Debug)]
pub struct ClaimView {
    /// The person.
    pub by: String,
    /// The time at which it expires.
    pub until: SystemTime,
}

/// Answers that wait for the confirmation of others.
#[derive(Clone)]
pub struct EnteredView {
    /// The person who entered them.
    pub by: String,
    /// The answers by field; empty for a link.
    pub content: Map<String, Value>,
    /// The digest of exactly these answers.
    pub digest: String,
    /// `true` if the confirmation of the reader is missing.
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

/// A comment on a question.
#[derive(Clone)]
pub struct CommentView {
    /// The person.
    pub by: String,
    /// The time.
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

/// An entry in the history of a question.
#[derive(Clone, Debug)]
pub struct HistoryLine {
    /// The time, if known.
    pub at: Option<SystemTime>,
    /// The event, without a value.
    pub text: String,
    /// `true` for an action or a change, which the page announces to its readers.
    pub is_announced: bool,
}

/// An action of a team member, other than answering and leaving.
#[derive(Clone, PartialEq, Eq)]
pub enum MemberAct {
    /// Confirm exactly the answers of this digest.
    Confirm {
        /// The digest.
        digest: String,
        /// The person's comment on it.
        comment: Option<String>,
    },
    /// Claim the question.
    Claim,
    /// Take over another person's claim.
    TakeOver,
    /// Delegate the question.
    Delegate {
        /// The value of one of [`TeamView::delegates`].
        to: String,
        /// The note for them.
        note: String,
    },
    /// Comment on the question.
    Comment {
        /// The text.
        text: String,
    },
}

impl fmt::Debug for MemberAct {
    /// Formats the name of the action only.
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

/// The result of a team member's action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TeamResult {
    /// The action was done.
    Done,
    /// The action was refused, for this reason: a whole sentence. Typed text is kept.
    Refused(String),
    /// The login is too old for the action: a fresh one is needed.
    LoginTooOld,
    /// There is no such question for this viewer.
    Gone,
}
