use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;

use mcp_elicit_core::answer::{Draft, Outcome};
use tokio::sync::watch;

use super::markdown::MarkdownMessage;
use super::team::{MemberAct, TeamResult, TeamView};
use super::viewer::Viewer;
use crate::view::{CallView, QuestionView, sanitize};

/// The longest name of a question, in characters.
const LONGEST_ID: usize = 128;

/// The name of a question in the address of its page.
///
/// The code that creates it makes it unguessable. At most 128 letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuestionId(String);

impl QuestionId {
    /// Creates a name from `text`, or `None` if it is not valid.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let fits = !text.is_empty()
            && text.len() <= LONGEST_ID
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        fits.then_some(Self(text))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The end of a question. Only the first four are a person's action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// The person sent answers, or agreed to a form without fields.
    Answered,
    /// The person agreed to open the link.
    Visited,
    /// The person said no.
    Declined,
    /// The person made no choice.
    Cancelled,
    /// The deadline passed without an answer.
    TimedOut,
    /// The question was withdrawn, for this reason.
    Withdrawn(String),
    /// The question failed, for this reason.
    Failed(String),
}

impl From<&Outcome> for EndKind {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Accept(_) => Self::Answered,
            Outcome::Visit => Self::Visited,
            Outcome::Decline => Self::Declined,
            Outcome::Cancel => Self::Cancelled,
        }
    }
}

/// The end of a question: how, when and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The kind of end.
    pub how: EndKind,
    /// The time at which it ended.
    pub at: SystemTime,
    /// The person or program that ended it, in words; `None` if no one did.
    pub by: Option<String>,
}

/// The summary of a question for a list. It contains no answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionSummary {
    /// Its name.
    pub id: QuestionId,
    /// The server that asks, by the name shown to people.
    pub server: String,
    /// The tool, prompt or resource whose call asks.
    pub call: Option<String>,
    /// The person or program that made the call, if several may.
    pub caller: Option<String>,
    /// The rule by which it is asked, if there is one.
    pub rule: Option<String>,
    /// `true` if a call waits for approval, and no server has asked.
    pub is_approval: bool,
    /// The beginning of the message, without markup.
    pub excerpt: String,
    /// The arguments of the call on one line, if the viewer may see them and they distinguish calls.
    pub arguments: Option<String>,
    /// The time at which it was asked.
    pub asked: SystemTime,
    /// The time until which it can be answered.
    pub deadline: Option<SystemTime>,
    /// The end; `None` while it waits.
    pub ended: Option<Ended>,
}

impl QuestionSummary {
    /// The longest kept beginning of a message, in characters.
    pub const EXCERPT: usize = 240;
    /// The longest kept arguments, in characters.
    pub const ARGUMENTS: usize = 2_000;

    /// Summarizes `question` while it is pending.
    pub fn from_question(id: QuestionId, question: &QuestionView, asked: SystemTime) -> Self {
        // Twice the kept length is read, as markup and line breaks are dropped.
        let start: String = question
            .raw_message()
            .chars()
            .take(2 * Self::EXCERPT)
            .collect();
        let excerpt = MarkdownMessage::read(&sanitize::text(&start, 2 * Self::EXCERPT)).words();
        Self {
            id,
            server: question.origin().name(),
            call: question.call().map(CallView::name),
            caller: question.caller(),
            rule: None,
            is_approval: false,
            excerpt: shortened(&excerpt),
            arguments: None,
            asked,
            deadline: question.deadline(),
            ended: None,
        }
    }

    /// Returns the summary with the rule that asks.
    #[must_use]
    pub fn by_rule(mut self, rule: &str) -> Self {
        self.rule = Some(rule.to_owned());
        self
    }

    /// Returns the summary, marked as one of a call that waits for approval if `is_approval`.
    #[must_use]
    pub fn for_approval(mut self, is_approval: bool) -> Self {
        self.is_approval = is_approval;
        self
    }

    /// Returns the summary with the beginning of each argument of its call. No arguments if any of several calls may be
    /// meant.
    #[must_use]
    pub fn with_arguments(mut self, call: &CallView) -> Self {
        if call.doubt().is_some() {
            return self;
        }
        let arguments = call.arguments().into_iter();
        let listed: Vec<String> = arguments
            .map(|(name, value)| match name.as_str() {
                "" => value,
                _ => format!("{name}: {value}"),
            })
            .collect();
        if !listed.is_empty() {
            self.arguments = Some(sanitize::line(&listed.join(", "), Self::ARGUMENTS));
        }
        self
    }

    /// Returns the summary with the end of the question.
    #[must_use]
    pub fn ended(mut self, ended: Ended) -> Self {
        self.ended = Some(ended);
        self
    }

    /// Returns `true` if every word of `text` occurs in the listed parts, the arguments, the id or the rule; letter
    /// case does not matter.
    pub fn matches(&self, text: &str) -> bool {
        let known = [&self.call, &self.caller, &self.rule, &self.arguments];
        let known = known.into_iter().flatten().map(String::as_str);
        let by = self.ended.as_ref().and_then(|ended| ended.by.as_deref());
        let all = [self.id.as_str(), &self.server, &self.excerpt];
        let all = all.into_iter().chain(known).chain(by);
        let hay = all.collect::<Vec<_>>().join(" ").to_lowercase();
        text.to_lowercase()
            .split_whitespace()
            .all(|word| hay.contains(word))
    }
}

fn shortened(line: &str) -> String {
    if line.chars().count() <= QuestionSummary::EXCERPT {
        return line.to_owned();
    }
    let mut short: String = line.chars().take(QuestionSummary::EXCERPT - 1).collect();
    short.push('…');
    short
}

/// A part of the questions that a viewer may see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListView {
    /// Everything that the viewer may see.
    #[default]
    All,
    /// The questions addressed to the viewer in person.
    Mine,
    /// The questions addressed to a group of the viewer.
    Groups,
}

impl ListView {
    pub(super) const EVERY: [Self; 3] = [Self::All, Self::Mine, Self::Groups];

    /// Returns the name in an address.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Mine => "mine",
            Self::Groups => "groups",
        }
    }

    /// Returns the view of this name, or the default one.
    pub fn from_name(name: &str) -> Self {
        let mut every = Self::EVERY.into_iter();
        every.find(|view| view.name() == name).unwrap_or_default()
    }

    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::All => "All",
            Self::Mine => "Mine",
            Self::Groups => "My groups",
        }
    }
}

/// The selection of questions for a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListFilter {
    /// Words that must occur; empty for no search.
    pub text: String,
    /// The view.
    pub view: ListView,
    /// The most waiting, and the most ended, questions to return. If more wait, half of them
    /// are those asked first, and half those asked last; an odd one is among the first.
    pub most: usize,
}

/// The questions of a store, for a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionList {
    /// The waiting questions, the longest waiting first.
    pub pending: Vec<QuestionSummary>,
    /// The number of waiting questions in total, matching or not.
    pub pending_total: usize,
    /// The number of waiting questions in the view, matching or not.
    pub pending_in_view: usize,
    /// `true` if more questions wait than the store counted: the numbers are then minimums.
    pub is_cut: bool,
    /// `true` if the viewer sees questions of others.
    pub has_others: bool,
    /// The ended questions, the latest first.
    pub recent: Vec<QuestionSummary>,
}

/// A question that was found by its id.
#[derive(Clone, Debug)]
pub enum StoredQuestion {
    /// It waits for an answer.
    Open {
        /// The question.
        question: Arc<QuestionView>,
        /// The time at which it was asked.
        asked: SystemTime,
        /// The draft so far; `None` before anything was saved.
        draft: Option<Draft>,
    },
    /// It has ended; [`QuestionSummary::ended`] has the details.
    Ended(QuestionSummary),
    /// The viewer may know that it exists, but not its content: the summary has no text of the message.
    Outline(QuestionSummary),
    /// It is no longer the viewer's, for this reason: a whole sentence.
    NoLonger(String),
}

/// The result of submitting an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitResult {
    /// It is the question's outcome.
    Won,
    /// The question had already ended, in this way; the outcome was dropped.
    Late(Ended),
    /// There is no such question.
    Gone,
    /// It is stored, and others have to confirm it.
    Waits,
    /// It is refused, for this reason: a whole sentence. The draft is kept.
    Refused(String),
    /// The login is too old for the action: a fresh one is needed.
    LoginTooOld,
}

/// The result of storing a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum DraftResult {
    /// The draft is stored, if the store has room.
    Done,
    /// The draft is not stored, for this reason: a whole sentence. The viewer may not answer the question.
    Refused(String),
}

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum QuestionStoreError {
    /// The questions cannot be reached. It is unrelated to any single question.
    #[error("the questions cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The question is there, and its values cannot be decrypted. Trying again does not help.
    #[error("the question cannot be decrypted")]
    Sealed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A store of questions, which the pages show and submit answers to.
///
/// The pages are stateless. A store decides who may see and answer each question, and which outcome comes first;
/// everything else about an answer is decided by the form's own check before it reaches the store.
pub trait QuestionStore: Send + Sync + 'static {
    /// The viewer type of this store.
    type Viewer: Viewer;

    /// Returns the questions of this viewer, for a list.
    fn list(
        &self,
        viewer: &Self::Viewer,
        filter: &ListFilter,
    ) -> impl Future<Output = Result<QuestionList, QuestionStoreError>> + Send;

    /// Returns the question named `id`; `None` if there is none, or none of this viewer's.
    fn find(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
    ) -> impl Future<Output = Result<Option<StoredQuestion>, QuestionStoreError>> + Send;

    /// Returns a note about the question besides its own text, such as that no call waits for it: a sentence or two.
    fn note(
        &self,
        id: &QuestionId,
    ) -> impl Future<Output = Result<Option<String>, QuestionStoreError>> + Send {
        let _ = id;
        async { Ok(None) }
    }

    /// Records that the viewer has the question on the screen.
    fn shown(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
    ) -> impl Future<Output = Result<(), QuestionStoreError>> + Send;

    /// Stores the viewer's draft. A draft is not an answer and is dropped when the question ends; none is stored for a
    /// question that has ended, or of a viewer who may not answer it.
    fn keep(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
        draft: Draft,
    ) -> impl Future<Output = Result<DraftResult, QuestionStoreError>> + Send;

    /// Submits the viewer's outcome. The first for a pending question wins, and no other does; if several people have
    /// to agree, it is stored for them. `version` is the [`TeamView::version`] that the page showed.
    fn submit(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
        outcome: Outcome,
        version: u32,
    ) -> impl Future<Output = Result<SubmitResult, QuestionStoreError>> + Send;

    /// Returns `true` if the store passes on a person's reason for a decline, and comment on an approval.
    fn takes_reasons(&self) -> bool {
        false
    }

    /// Like [`submit`](Self::submit), with a reason for a decline or a comment on an approval: one line, of at most
    /// [`MAX_REASON`](mcp_elicit_core::question::MAX_REASON) characters. A store that takes none drops it.
    fn submit_with_reason(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
        outcome: Outcome,
        version: u32,
        reason: Option<String>,
    ) -> impl Future<Output = Result<SubmitResult, QuestionStoreError>> + Send {
        let _ = reason;
        self.submit(viewer, id, outcome, version)
    }

    /// Returns the team's view of the question for this viewer; `None` if only one person answers it.
    fn team(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
    ) -> impl Future<Output = Result<Option<TeamView>, QuestionStoreError>> + Send {
        let _ = (viewer, id);
        async { Ok(None) }
    }

    /// Performs an action of a team member other than answering.
    fn act(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
        act: MemberAct,
    ) -> impl Future<Output = Result<TeamResult, QuestionStoreError>> + Send {
        let _ = (viewer, id, act);
        async { Ok(TeamResult::Gone) }
    }

    /// Returns the reason why an action of the viewer is refused, as a whole sentence, if [`find`](Self::find) returns
    /// nothing to act on, and records the refusal. `act` is the name of its button. `None` if there is no such
    /// question, or none of this viewer's.
    fn refuse(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
        act: &str,
    ) -> impl Future<Output = Result<Option<String>, QuestionStoreError>> + Send {
        let _ = (viewer, id, act);
        async { Ok(None) }
    }

    /// Returns `true` if the person can also decline every later question of this server.
    fn offers_from_now_on(&self, id: &QuestionId) -> bool {
        let _ = id;
        false
    }

    /// Records that the decline which follows also applies to every later question of the server. The caller enforces
    /// it.
    fn decline_from_now_on(
        &self,
        id: &QuestionId,
    ) -> impl Future<Output = Result<(), QuestionStoreError>> + Send {
        let _ = id;
        async { Ok(()) }
    }

    /// Returns a counter that increases whenever a question is asked, ends or changes.
    fn changes(&self) -> watch::Receiver<u64>;
}
