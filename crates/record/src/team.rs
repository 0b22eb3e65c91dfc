//! The people whom a rule asks: their actions on one question, its reminders and escalations. [`Quorum`] decides about
//! an action; here its result is sealed, written by compare-and-set, and reported.
//!
//! A plan is stored with its question, and does not change. The membership of people and groups is evaluated at each
//! action, with the current directory of the caller of [`Record::act`].

mod judge;
mod progress;
mod reasons;
mod retained;
mod rules_event;

use std::time::Duration;

use data_encoding::HEXLOWER;
use mcp_elicit_core::answer::Answers;
use mcp_elicit_core::lifecycle::{Timestamp, Transition};
use mcp_elicit_core::question::{NewQuestion, ToolClaims, reason_line};
use mcp_elicit_policy::people::{Addressee, mail_key};
use mcp_elicit_policy::quorum::{
    ActingPerson, AnswersDigest, Denied, Membership, Quorum, QuorumNotice,
};
use mcp_elicit_policy::rules::{OnTimeout, Plan, ReasonsReach, Reveal};
use mcp_elicit_policy::schedule::{Due, Schedule};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use self::judge::NotJudged;
pub use self::progress::VoteProgress;
use self::retained::Retained;
pub use self::retained::RetainedCall;
pub(crate) use self::retained::RetainedReads;
pub use self::rules_event::RulesEvent;
use super::audit::{self, ActEvent, EntryText, Event, Member};
use super::commit::{CommitEffect, Durability};
use super::timeline::Timeline;
use super::{Record, RecordError, TRIES, associated_data};
use crate::store::{Change, Crash, RecordStoreError, Row, Write};

/// The longest comment or note, in characters.
pub const MAX_COMMENT: usize = 2_000;
/// The most comments of one person on a question.
pub const MAX_COMMENTS: usize = 50;
/// The most notes of one person who delegates a question.
pub const MAX_NOTES: usize = 20;

/// The most people who are recorded as having seen a question.
const MAX_SEEN: usize = 100;

/// The associated data of entered answers.
pub(crate) const ENTERED: &str = "entered";
/// The associated data of comments.
pub(crate) const COMMENT: &str = "comment";

/// The caller of a question's call, as it was known when the question was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TeamCaller {
    /// The name of the person in the people file who makes the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// The issuer of the subject; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub issuer: String,
    /// The subject; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// The name for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The digest of the person's mail address in the people file when the call was made; empty if there was none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mail_digest: String,
    /// The person's subject in the people file at that time; empty if there was none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file_subject: String,
    /// `true` if it is a program that works by itself, so that no person makes the call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_nobody: bool,
}

/// The team of a question that a rule applies to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Team {
    /// The rule by name.
    pub rule: String,
    /// The digest of the rule.
    pub rule_digest: String,
    /// The caller.
    pub caller: TeamCaller,
    /// `true` if the gateway asks for approval of a call, and no server has asked.
    #[serde(default)]
    pub is_approval: bool,
    /// The end of the call if it is not answered in time.
    pub on_timeout: OnTimeout,
    /// The details that messages outside the gateway may contain.
    pub reveal: Reveal,
    /// The places that reasons and comments on decisions reach, besides the history.
    #[serde(default)]
    pub reasons: ReasonsReach,
    /// The operator's explanation for those who are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explain: Option<String>,
    /// The address of a page with more of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The time for which an approval applies to the same call made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good_for: Option<Duration>,
    /// The server's claims about the tool of a call that waits for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Box<ToolClaims>>,
    /// The names of the arguments that the rule's condition may read; `None` if it may read all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Vec<String>>,
    /// The people who are missing after the latest action, in words, if they must come from different groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
    schedule: Schedule,
    /// The number of steps of the schedule that are done.
    done: usize,
    quorum: Quorum,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entered: Option<SealedText>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    comments: Vec<SealedText>,
    /// The events between creation and end.
    #[serde(default, skip_serializing_if = "Timeline::is_empty")]
    pub(crate) timeline: Timeline,
    /// The channel of the decline or dismissal that ended the question, if outside the pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_through: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    seen: Vec<SeenBy>,
    /// The time after the end for which the values of the call are kept for auditors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep_arguments: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retained: Option<Retained>,
}

/// A person who has seen a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenBy {
    /// The person.
    pub by: String,
    /// The time at which the person first saw it.
    pub at: Timestamp,
}

/// A sealed text of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SealedText {
    by: String,
    at: Timestamp,
    /// The sealed text in hex.
    text: String,
    /// `true` for a text with an action, which is not a comment alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_note: bool,
    /// The decision that the text is about, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    on: Option<Decided>,
    /// The version of the entered answers after that decision.
    #[serde(default)]
    version: u32,
}

/// A decision that a person's text is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decided {
    /// The person entered or confirmed answers: approved, if a call waits for approval.
    Agreed,
    /// The person declined.
    Declined,
}

/// A person's text on a question: a comment, the note of a delegation, or the reason of a decline.
#[derive(Clone, PartialEq, Eq)]
pub struct Comment {
    /// The person.
    pub by: String,
    /// The time.
    pub at: Timestamp,
    /// The text, which must be sanitized before it is shown.
    pub text: String,
    /// The decision that it is about, if any.
    pub on: Option<Decided>,
    /// The version of the entered answers after that decision; see [`Quorum::version`].
    pub version: u32,
}

impl std::fmt::Debug for Comment {
    /// Formats everything but the text.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { by, at, .. } = self;
        f.debug_struct("Comment")
            .field("by", by)
            .field("at", at)
            .finish_non_exhaustive()
    }
}

/// Answers that a person entered, and that wait for the confirmation of others.
#[derive(Clone, PartialEq, Eq)]
pub struct Entered {
    /// The person who entered them.
    pub by: String,
    /// The time.
    pub at: Timestamp,
    /// The digest that a person confirms.
    pub digest: AnswersDigest,
    /// The answers as JSON; `None` if the question has none (a link).
    pub content: Option<String>,
}

impl std::fmt::Debug for Entered {
    /// Formats everything but the answers.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { by, at, .. } = self;
        f.debug_struct("Entered")
            .field("by", by)
            .field("at", at)
            .finish_non_exhaustive()
    }
}

/// A person's action on a question that a rule addresses to people.
#[derive(Clone, Debug)]
pub enum TeamAct<'a> {
    /// Enter answers, or visit a link (`None`). `version` is that of the page.
    Fill {
        /// The answers.
        answers: Option<&'a Answers>,
        /// See [`Quorum::version`].
        version: u32,
    },
    /// Confirm exactly the answers that were shown.
    Confirm {
        /// Their digest.
        digest: AnswersDigest,
    },
    /// Decline, for all.
    Decline {
        /// The reason, if the person gave one.
        note: Option<&'a str>,
    },
    /// Dismiss the question.
    Cancel,
    /// Claim the question.
    Claim,
    /// Take over another person's claim.
    TakeOver,
    /// Delegate the question.
    Delegate {
        /// A person or a group.
        to: Addressee,
        /// The note for them.
        note: &'a str,
    },
    /// Comment.
    Comment {
        /// The text.
        text: &'a str,
    },
}

/// The circumstances of an action.
#[derive(Clone, Copy, Default)]
pub struct ActDetails<'a> {
    /// The channel, if it was outside the pages.
    pub channel: Option<&'a str>,
    /// The person's comment on what they approve, or agree to.
    pub comment: Option<&'a str>,
}

impl std::fmt::Debug for ActDetails<'_> {
    /// Formats everything but the comment.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActDetails")
            .field("channel", &self.channel)
            .finish_non_exhaustive()
    }
}

impl TeamAct<'_> {
    /// Returns the decision of the action, if it is one that a text may be about.
    const fn decided(&self) -> Option<Decided> {
        match self {
            Self::Fill { .. } | Self::Confirm { .. } => Some(Decided::Agreed),
            Self::Decline { .. } => Some(Decided::Declined),
            Self::Cancel
            | Self::Claim
            | Self::TakeOver
            | Self::Delegate { .. }
            | Self::Comment { .. } => None,
        }
    }

    /// Returns the word for the audit.
    const fn word(&self) -> &'static str {
        match self {
            Self::Fill { .. } => "fill",
            Self::Confirm { .. } => "confirm",
            Self::Decline { .. } => "decline",
            Self::Cancel => "cancel",
            Self::Claim => "claim",
            Self::TakeOver => "take-over",
            Self::Delegate { .. } => "delegate",
            Self::Comment { .. } => "comment",
        }
    }

    /// Returns the text that the person wrote.
    const fn text(&self) -> Option<&str> {
        match self {
            Self::Decline { note } => *note,
            Self::Delegate { note, .. } => Some(note),
            Self::Comment { text } => Some(text),
            Self::Fill { .. }
            | Self::Confirm { .. }
            | Self::Cancel
            | Self::Claim
            | Self::TakeOver => None,
        }
    }
}

/// The result of an action.
#[derive(Clone, Debug, PartialEq)]
pub enum Acted {
    /// The action was done. Contains the updated team, and the notices to send.
    Done(Box<Team>, Vec<QuorumNotice>),
    /// The action was refused.
    Denied(Denied),
    /// The text is empty, too long, or beyond the person's limit.
    UnusableText,
    /// No rule applies to the question: [`Record::submit`] takes its answer.
    NoPlan,
    /// There is no such question.
    Gone,
}

impl Team {
    /// Returns `true` if people have voted, or entered an answer.
    pub(crate) fn has_acts(&self) -> bool {
        self.entered.is_some() || !self.quorum.votes().is_empty()
    }

    /// Creates the team of a question that is about to be asked. `asked` are the people whom the plan addresses now,
    /// and `usual` is the deadline if the rule has none.
    pub fn new(
        rule: &str,
        rule_digest: &str,
        caller: TeamCaller,
        plan: &Plan,
        asked: Vec<String>,
        usual: Duration,
    ) -> Self {
        Self {
            rule: rule.to_owned(),
            rule_digest: rule_digest.to_owned(),
            caller,
            is_approval: false,
            on_timeout: plan.on_timeout,
            reveal: plan.reveal,
            reasons: plan.reasons,
            explain: plan.explain.clone(),
            link: plan.link.clone(),
            good_for: None,
            tool: None,
            reads: None,
            missing: None,
            schedule: plan.schedule(usual),
            done: 0,
            quorum: Quorum::new(plan, asked),
            entered: None,
            comments: Vec::new(),
            timeline: Timeline::default(),
            ended_through: None,
            seen: Vec::new(),
            keep_arguments: plan.keep_arguments,
            retained: None,
        }
    }

    /// Returns the team of an approval, which the gateway asks for.
    #[must_use]
    pub fn for_approval(self) -> Self {
        Self {
            is_approval: true,
            ..self
        }
    }

    /// Returns the team of an approval that applies for this time to the same call made again.
    #[must_use]
    pub fn with_good_for(self, good_for: Option<Duration>) -> Self {
        Self { good_for, ..self }
    }

    /// Returns the team of a rule whose condition may read these arguments ([`Team::reads`]).
    #[must_use]
    pub fn with_reads(self, reads: Option<Vec<String>>) -> Self {
        Self { reads, ..self }
    }

    /// Returns the plan in the relay's form.
    ///
    /// # Errors
    /// Never for a team created by this crate.
    pub fn to_plan(&self) -> serde_json::Result<mcp_elicit_core::question::TeamPlan> {
        Ok(mcp_elicit_core::question::TeamPlan {
            rule_digest: self.rule_digest.clone(),
            text: serde_json::to_string(self)?.into(),
            tool: None,
        })
    }

    /// Returns the team of a new question, if it has one.
    pub(super) fn of(asked: &NewQuestion) -> Result<Option<Box<Self>>, RecordStoreError> {
        let Some(plan) = &asked.team else {
            return Ok(None);
        };
        let mut team: Box<Self> = serde_json::from_str(&plan.text)?;
        if plan.tool.is_some() {
            team.tool.clone_from(&plan.tool);
        }
        Ok(Some(team))
    }

    /// Returns the actions so far.
    pub fn quorum(&self) -> &Quorum {
        &self.quorum
    }

    /// Returns the people who have seen the question, the earliest first.
    pub fn seen(&self) -> &[SeenBy] {
        &self.seen
    }

    /// Returns the coming reminders and escalations and the end, with their times.
    pub fn upcoming(&self, asked_at: Timestamp) -> Vec<(Timestamp, Due)> {
        let coming = (self.done..).map(|done| self.schedule.next(asked_at, done));
        coming.map_while(|due| due).collect()
    }

    /// Returns the number of completed reminders and escalations.
    pub fn steps_done(&self) -> usize {
        self.done
    }

    /// Returns `true` if the person has reached the limit of texts with this action. A decline has one reason.
    fn has_no_room_for(&self, act: &TeamAct<'_>, person: &str) -> bool {
        let (is_note, most) = match act {
            TeamAct::Comment { .. } => (false, MAX_COMMENTS),
            TeamAct::Delegate { .. } => (true, MAX_NOTES),
            _ => return false,
        };
        let texts = self.comments.iter();
        let own = texts.filter(|text| text.by == person && text.is_note == is_note);
        own.count() >= most
    }

    /// Returns the time of the next reminder or escalation.
    pub(crate) fn next_step_at(&self, asked_at: Timestamp) -> Option<Timestamp> {
        match self.schedule.next(asked_at, self.done)? {
            (_, Due::TimeOut) => None,
            (at, Due::Remind | Due::Escalate(_)) => Some(at),
        }
    }

    /// Drops entered answers, because the question has ended.
    pub(crate) fn erase(&mut self) {
        self.entered = None;
    }
}

/// Returns the digest of answers, which people confirm.
pub fn digest_of(content: Option<&str>) -> AnswersDigest {
    let mut hash = Sha256::new();
    hash.update(if content.is_some() { b"form" } else { b"link" });
    hash.update(content.unwrap_or_default());
    hash.finalize().into()
}

/// Returns the digest of a mail address, which identifies two names of one person: the record stores no address.
pub fn mail_digest(mail: &str) -> String {
    let digest = Sha256::digest(format!("mail {}", mail_key(mail)));
    HEXLOWER.encode(&digest)
}

impl Record {
    /// Performs a person's action on a question that a rule addresses to people. `people` is the current directory.
    ///
    /// # Errors
    /// If the store fails, a value cannot be sealed, or the question keeps changing.
    pub async fn act(
        &self,
        id: &str,
        act: TeamAct<'_>,
        by: ActingPerson<'_>,
        people: &dyn Membership,
    ) -> Result<Acted, RecordError> {
        self.act_with(id, act, by, people, ActDetails::default())
            .await
    }

    /// Like [`act`](Self::act), with the circumstances of the action.
    ///
    /// # Errors
    /// The same as [`act`](Self::act).
    pub async fn act_with(
        &self,
        id: &str,
        act: TeamAct<'_>,
        by: ActingPerson<'_>,
        people: &dyn Membership,
        details: ActDetails<'_>,
    ) -> Result<Acted, RecordError> {
        let is_unusable = match (&act, act.text()) {
            (TeamAct::Decline { .. }, Some(reason)) => reason_line(reason).is_none(),
            (_, Some(text)) => text.trim().is_empty() || text.chars().count() > MAX_COMMENT,
            (_, None) => details
                .comment
                .is_some_and(|comment| reason_line(comment).is_none()),
        };
        if is_unusable {
            return Ok(Acted::UnusableText);
        }
        let ActDetails { channel, .. } = details;
        for _ in 0..TRIES {
            let Some(row) = self.find(id).await? else {
                return Ok(Acted::Gone);
            };
            let Some(team) = row.team.as_deref() else {
                return Ok(Acted::NoPlan);
            };
            if row.lifecycle.is_due(self.now()) {
                self.end_due(&row, Transition::Expire).await?;
                continue;
            }
            if team.has_no_room_for(&act, by.person) {
                return Ok(Acted::UnusableText);
            }
            // A call whose arguments cannot be shown cannot be confirmed.
            if matches!(act, TeamAct::Fill { .. } | TeamAct::Confirm { .. }) {
                self.opened_arguments(&row)?;
            }
            let judged = if row.lifecycle.is_open() {
                self.judge(&row, team, &act, by, people, details)
            } else {
                Err(NotJudged::Denied(Denied::Ended))
            };
            let judged = match judged {
                Ok(judged) => judged,
                Err(NotJudged::Failed(error)) => return Err(error),
                Err(NotJudged::Denied(denied)) => {
                    let by = audit::Actor::person(by.person);
                    self.note_refused(&row, act.word(), &by, denied.word(), channel)
                        .await?;
                    return Ok(Acted::Denied(denied));
                }
            };
            let Some(change) = judged.change else {
                return Ok(Acted::Done(Box::new(judged.team), judged.notices));
            };
            let follow = || {
                if judged.has_ended {
                    self.notify_answered(id, None);
                }
            };
            let effect = if judged.has_ended {
                CommitEffect::Acted
            } else {
                CommitEffect::Changed
            };
            if self
                .commit_team(id, change, effect, follow)
                .await?
                .is_some()
            {
                return Ok(Acted::Done(Box::new(judged.team), judged.notices));
            }
        }
        Err(RecordError::Contended)
    }

    /// Records the first time that a person who may act on a question of a rule has seen it.
    ///
    /// # Errors
    /// If the store fails, or the question keeps changing.
    pub async fn mark_seen_by(&self, id: &str, person: &str) -> Result<(), RecordError> {
        for _ in 0..TRIES {
            let Some(mut row) = self.find(id).await? else {
                return Ok(());
            };
            let (now, is_open) = (self.now(), row.lifecycle.is_open());
            let Some(team) = row.team.as_deref_mut().filter(|_| is_open) else {
                return Ok(());
            };
            if team.seen.len() >= MAX_SEEN || team.seen.iter().any(|seen| seen.by == person) {
                return Ok(());
            }
            team.seen.push(SeenBy {
                by: person.to_owned(),
                at: now,
            });
            let seen = row.lifecycle.version();
            row.lifecycle = row.lifecycle.renewed();
            let shown = EntryText::new(Event::Shown, now).about(&row);
            let shown = shown
                .with(Member::To, &audit::Actor::person(person))
                .into_text();
            let change = Change {
                row,
                seen,
                audit: vec![shown],
                survives: Crash::Process,
            };
            if self
                .commit_team(id, change, CommitEffect::Changed, || ())
                .await?
                .is_some()
            {
                return Ok(());
            }
        }
        Err(RecordError::Contended)
    }

    /// Returns the entered answers that wait for confirmation.
    ///
    /// # Errors
    /// If they were sealed with another key.
    pub fn entered(&self, row: &Row) -> Result<Option<Entered>, RecordError> {
        let Some(sealed) = row.team.as_ref().and_then(|team| team.entered.as_ref()) else {
            return Ok(None);
        };
        let content: Option<String> = serde_json::from_str(&self.opened(&row.id, ENTERED, sealed)?)
            .map_err(RecordStoreError::from)?;
        Ok(Some(Entered {
            by: sealed.by.clone(),
            at: sealed.at,
            digest: digest_of(content.as_deref()),
            content,
        }))
    }

    /// Returns people's texts on the question, the oldest first.
    ///
    /// # Errors
    /// If it was sealed with another key.
    pub fn comments(&self, row: &Row) -> Result<Vec<Comment>, RecordError> {
        let comments = row.team.iter().flat_map(|team| &team.comments);
        let opened = comments.map(|sealed| {
            Ok(Comment {
                by: sealed.by.clone(),
                at: sealed.at,
                text: self.opened(&row.id, COMMENT, sealed)?,
                on: sealed.on,
                version: sealed.version,
            })
        });
        opened.collect()
    }

    fn opened(&self, id: &str, place: &str, sealed: &SealedText) -> Result<String, RecordError> {
        let bytes = HEXLOWER.decode(sealed.text.as_bytes()).unwrap_or_default();
        Ok(self
            .keys
            .encryption
            .open(&associated_data(id, place), &bytes)?)
    }

    fn sealed(
        &self,
        id: &str,
        place: &str,
        by: &str,
        text: &str,
    ) -> Result<SealedText, RecordError> {
        let bytes = self
            .keys
            .encryption
            .seal(&associated_data(id, place), text)?;
        Ok(SealedText {
            by: by.to_owned(),
            at: self.now(),
            text: HEXLOWER.encode(&bytes),
            is_note: false,
            on: None,
            version: 0,
        })
    }

    /// Audits a refused action on a question, with its channel if it was not on a page. A limited number per person and
    /// minute is recorded ([`refusals`](crate::refusals)).
    ///
    /// # Errors
    /// If the store fails.
    pub async fn note_refused(
        &self,
        row: &Row,
        act: &str,
        by: &audit::Actor,
        reason: &str,
        channel: Option<&str>,
    ) -> Result<(), RecordError> {
        let Some(left_out) = self.refused.count(&by.to_string(), self.now()) else {
            return Ok(());
        };
        let entry = EntryText::new(Event::ActRefused, self.now())
            .about(row)
            .with(Member::By, by)
            .with(Member::Act, act)
            .with(Member::Reason, reason)
            .with_some(Member::Channel, channel)
            .with_some(Member::LeftOut, (left_out > 0).then_some(left_out));
        self.note(entry).await
    }

    /// Performs the due steps of an open question's plan: reminders are recorded, escalations add people. Of several
    /// gateways one does it.
    pub(super) async fn take_due_steps(&self, row: &Row) -> Result<(), RecordError> {
        let Some(team) = row.team.as_deref() else {
            return Ok(());
        };
        let (now, asked_at) = (self.now(), row.lifecycle.asked_at());
        let due = team.schedule.due(asked_at, team.done, now);
        let mut next = team.clone();
        while next.next_step_at(asked_at).is_some_and(|at| at <= now) {
            next.done += 1;
        }
        let mut audit = Vec::new();
        for due in due {
            let event = match due {
                Due::Remind => ActEvent::new(Event::Reminded),
                Due::Escalate(to) => {
                    next.quorum = next.quorum.escalate(to.clone());
                    ActEvent {
                        to: Some(audit::Actor::from(&to)),
                        ..ActEvent::new(Event::Escalated)
                    }
                }
                // The lifecycle handles the deadline.
                Due::TimeOut => return Ok(()),
            };
            let event = ActEvent {
                by: Some(audit::Actor::timer()),
                ..event
            };
            next.timeline.add(&event, now);
            audit.push(event.entry(row, now).into_text());
        }
        if next.done == team.done {
            return Ok(());
        }
        let seen = row.lifecycle.version();
        let mut after = row.clone();
        after.lifecycle = after.lifecycle.renewed();
        after.team = Some(Box::new(next));
        let change = Change {
            row: after,
            seen,
            audit,
            survives: Crash::Process,
        };
        // If another change was first, the next sweep handles the rest.
        self.commit_team(&row.id, change, CommitEffect::Changed, || ())
            .await?;
        Ok(())
    }

    /// Commits a change of a question of a rule, before anyone sees it.
    async fn commit_team(
        &self,
        id: &str,
        change: Change,
        effect: CommitEffect,
        follow: impl FnOnce(),
    ) -> Result<Option<()>, RecordError> {
        let after = change.row.clone();
        let write = Write::Change(vec![change]);
        let effects = [(id, effect)];
        let follow = || {
            self.note_progress(&after);
            follow();
        };
        self.commit(Some(write), Durability::BeforeSeen, &effects, follow)
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::mail_digest;

    #[test]
    fn a_letter_that_only_looks_alike_is_of_another_mailbox() {
        assert_eq!(
            mail_digest("Kim@example.com"),
            mail_digest("kim@EXAMPLE.com.")
        );
        // The lower case of the kelvin sign is `k`.
        assert_ne!(
            mail_digest("\u{212a}im@example.com"),
            mail_digest("kim@example.com")
        );
    }
}
