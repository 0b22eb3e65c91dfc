use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;

use mcp_elicit_core::answer::{Draft, Outcome};
use tokio::sync::watch;

use super::markdown::Message;
use super::team::{TeamAct, TeamResult, TeamView};
use super::viewer::Viewer;
use crate::view::{CallView, QuestionView, sanitize};

/// Longest name of a question, in characters.
const LONGEST_ID: usize = 128;

/// The name of a question in the address of its page.
///
/// The code that makes one makes it unguessable. At most 128 letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuestionId(String);

impl QuestionId {
    /// The name `text`, or `None` when it cannot be one.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let fits = !text.is_empty()
            && text.len() <= LONGEST_ID
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        fits.then_some(Self(text))
    }

    /// The name as text.
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
pub enum Ending {
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
    /// The question could not be brought to its end, for this reason.
    Failed(String),
}

impl From<&Outcome> for Ending {
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
    /// The phase in which it ended.
    pub how: Ending,
    /// When it ended.
    pub at: SystemTime,
    /// The person or program that ended it, in words; `None` if no one did.
    pub by: Option<String>,
}

/// The summary of a question, as a list shows it. It holds no answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionSummary {
    /// Its name.
    pub id: QuestionId,
    /// The server that asks, by the name a person knows it by.
    pub server: String,
    /// The tool, prompt or resource it is asked for.
    pub call: Option<String>,
    /// The person or program whose call it is, where several may call.
    pub caller: Option<String>,
    /// The rule by which it is asked, where there is one.
    pub rule: Option<String>,
    /// `true` if a call waits for approval, and no server has asked.
    pub is_approval: bool,
    /// The beginning of the message, its words alone.
    pub excerpt: String,
    /// The arguments of the call on one line, where the viewer may see them and they tell calls apart.
    pub arguments: Option<String>,
    /// When it was asked.
    pub asked: SystemTime,
    /// Until when it can be answered.
    pub deadline: Option<SystemTime>,
    /// The ending; `None` while it waits.
    pub ended: Option<Ended>,
}

impl QuestionSummary {
    /// Longest beginning of a message that is kept, in characters.
    pub const EXCERPT: usize = 240;
    /// Most of the arguments that is kept, in characters.
    pub const ARGUMENTS: usize = 2_000;

    /// Summarizes `question` while it is pending.
    pub fn from_question(id: QuestionId, question: &QuestionView, asked: SystemTime) -> Self {
        // Twice as much is read as is kept, as markup and line breaks are dropped.
        let start: String = question
            .raw_message()
            .chars()
            .take(2 * Self::EXCERPT)
            .collect();
        let excerpt = Message::read(&sanitize::text(&start, 2 * Self::EXCERPT)).words();
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

    /// The same question, asked by this rule.
    #[must_use]
    pub fn by_rule(mut self, rule: &str) -> Self {
        self.rule = Some(rule.to_owned());
        self
    }

    /// The same question, about a call that waits for approval.
    #[must_use]
    pub fn for_approval(mut self, is_approval: bool) -> Self {
        self.is_approval = is_approval;
        self
    }

    /// The same question with the arguments of its call, the beginning of each. None where any of several calls may be meant.
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

    /// The same question after its end.
    #[must_use]
    pub fn ended(mut self, ended: Ended) -> Self {
        self.ended = Some(ended);
        self
    }

    /// Returns `true` if every word of `text` occurs in what a list shows of it, its arguments, its id or its rule;
    /// letter case does not matter.
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
    /// Those that are addressed to the viewer in person.
    Mine,
    /// Those that are addressed to a group of the viewer's.
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

    /// Returns the view of this name, or the usual one.
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

/// Which questions a list should show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListFilter {
    /// Words that must occur; empty for all.
    pub text: String,
    /// The part of what the viewer may see.
    pub view: ListView,
    /// The most waiting, and the most ended, questions to give: of more that wait, the half that was asked first, which is the greater one, and
    /// the half that was asked last.
    pub most: usize,
}

/// The questions of a store, as a list shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionList {
    /// Waiting, the longest waiting first.
    pub pending: Vec<QuestionSummary>,
    /// The number of questions that wait in all, matched or not.
    pub pending_total: usize,
    /// The number of questions that wait in the view, matched or not.
    pub pending_in_view: usize,
    /// `true` if more questions wait than the store looked at: the numbers are the least, and the questions between those that were asked
    /// first and those that were asked last are left out.
    pub is_cut: bool,
    /// `true` if the viewer sees questions that are for others.
    pub has_others: bool,
    /// Ended, the latest first.
    pub recent: Vec<QuestionSummary>,
}

/// A question that was found by its id.
#[derive(Clone, Debug)]
pub enum StoredQuestion {
    /// It waits for an answer.
    Open {
        /// The question.
        question: Arc<QuestionView>,
        /// When it was asked.
        asked: SystemTime,
        /// The values that a person has typed so far; `None` before anything was saved.
        draft: Option<Draft>,
    },
    /// It has ended; [`QuestionSummary::ended`] says how.
    Ended(QuestionSummary),
    /// The viewer may know that it exists, and what of it is no content: the summary has no words of the message.
    Outline(QuestionSummary),
    /// It was the viewer's and is not any more, for this reason: a whole sentence.
    NoLonger(String),
}

/// The result of submitting an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitResult {
    /// It is the question's outcome.
    Won,
    /// The question had ended before, like this; the outcome was dropped.
    Late(Ended),
    /// There is no such question.
    Gone,
    /// It is kept, and others have to agree.
    Waits,
    /// It is refused, for this reason: a whole sentence. What was typed is kept.
    Refused(String),
    /// The login is too old for the act: a fresh one is needed.
    LoginTooOld,
}

/// The result of keeping a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum DraftResult {
    /// It is kept, as far as the store has room.
    Done,
    /// It is not, for this reason: a whole sentence. The viewer may not answer the question.
    Refused(String),
}

/// The store could not be read or written. Says nothing about any question.
#[derive(Debug, thiserror::Error)]
#[error("the questions cannot be reached")]
pub struct QuestionStoreError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// The store of questions, which the pages show and submit answers to.
///
/// The pages hold no state of their own. A store decides who may see and answer what, and which outcome comes first;
/// everything else about an answer is decided by the form's own check before it gets here.
pub trait QuestionStore: Send + Sync + 'static {
    /// The viewers of this store.
    type Viewer: Viewer;

    /// The questions of this viewer, for a list.
    fn list(
        &self,
        viewer: &Self::Viewer,
        filter: &ListFilter,
    ) -> impl Future<Output = Result<QuestionList, QuestionStoreError>> + Send;

    /// The question named `id`; `None` when there is none, or none of this viewer's.
    fn find(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
    ) -> impl Future<Output = Result<Option<StoredQuestion>, QuestionStoreError>> + Send;

    /// Returns what a person should know about the question besides its own text, such as that no call waits for it: a
    /// sentence or two.
    fn note(
        &self,
        id: &QuestionId,
    ) -> impl Future<Output = Result<Option<String>, QuestionStoreError>> + Send {
        let _ = id;
        async { Ok(None) }
    }

    /// Notes that the viewer has the question on the screen.
    fn shown(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
    ) -> impl Future<Output = Result<(), QuestionStoreError>> + Send;

    /// Stores what the viewer has typed so far. A draft is not an answer and is dropped when the question ends; none is
    /// stored for a question that has ended, nor of a viewer who may not answer it.
    fn keep(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
        draft: Draft,
    ) -> impl Future<Output = Result<DraftResult, QuestionStoreError>> + Send;

    /// Submits the viewer's outcome. The first for a pending question wins, and no other does; where several have to agree, it is
    /// kept for them. `version` is the [`TeamView::version`] that the page showed.
    fn submit(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
        outcome: Outcome,
        version: u32,
    ) -> impl Future<Output = Result<SubmitResult, QuestionStoreError>> + Send;

    /// Returns the people's side of the question for this viewer; `None` if no more than one person answers it.
    fn team(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
    ) -> impl Future<Output = Result<Option<TeamView>, QuestionStoreError>> + Send {
        let _ = (viewer, id);
        async { Ok(None) }
    }

    /// Does what one of several people does beside answering.
    fn act(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
        act: TeamAct,
    ) -> impl Future<Output = Result<TeamResult, QuestionStoreError>> + Send {
        let _ = (viewer, id, act);
        async { Ok(TeamResult::Gone) }
    }

    /// Returns why an act of the viewer is refused, as a whole sentence, where [`find`](Self::find) has nothing for them to act on, and notes
    /// the refusal. `act` is the name of its button. `None` if there is no such question, or none of this viewer's.
    fn refuse(
        &self,
        viewer: &Self::Viewer,
        id: &QuestionId,
        act: &str,
    ) -> impl Future<Output = Result<Option<String>, QuestionStoreError>> + Send {
        let _ = (viewer, id, act);
        async { Ok(None) }
    }

    /// Returns `true` if the person is offered to decline every later question of this server too.
    fn offers_from_now_on(&self, id: &QuestionId) -> bool {
        let _ = id;
        false
    }

    /// Notes that the decline which follows is meant for every later question of the server too. The caller enforces
    /// it.
    fn decline_from_now_on(
        &self,
        id: &QuestionId,
    ) -> impl Future<Output = Result<(), QuestionStoreError>> + Send {
        let _ = id;
        async { Ok(()) }
    }

    /// Counts up whenever a question comes, ends or is changed.
    fn changes(&self) -> watch::Receiver<u64>;
}
