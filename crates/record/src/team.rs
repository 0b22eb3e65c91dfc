//! The people whom a rule asks: their actions on one question, its reminders and escalations. [`Quorum`] decides about
//! an action; here its result is sealed, written by compare-and-set, and reported.
//!
//! A plan is stored with its question, and does not change. The membership of people and groups is evaluated at each
//! action, with the current directory of the caller of [`Record::act`].

mod judge;
mod rules_event;

use std::time::Duration;

use data_encoding::HEXLOWER;
use mcp_elicit_core::answer::Answers;
use mcp_elicit_core::lifecycle::{Timestamp, Transition};
use mcp_elicit_core::question::NewQuestion;
use mcp_elicit_policy::people::Addressee;
use mcp_elicit_policy::quorum::{Actor, Denied, Digest, Membership, Notice, Quorum};
use mcp_elicit_policy::rules::{OnTimeout, Plan, Reveal};
use mcp_elicit_policy::schedule::{Due, Schedule};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

pub use self::rules_event::RulesEvent;
use super::audit::{Entry, Event};
use super::commit::{Durability, Effect};
use super::timeline::Timeline;
use super::{Record, RecordError, TRIES, associated_data};
use crate::store::{Change, Crash, Row, StoreError, Write};

/// The prefix of an actor who is a person of the rule.
const PERSON: &str = "person:";
/// The text between people who acted together. No subject contains it, so that one person is never taken for two.
pub const AND_PERSON: &str = ", person:";

/// Returns the people of an actor's word, such as `person:ada, person:bob`; `None` for an actor who is not a person of
/// a rule.
pub fn people_of(by: &str) -> Option<impl Iterator<Item = &str>> {
    Some(by.strip_prefix(PERSON)?.split(AND_PERSON))
}

/// The longest comment or note, in characters.
pub const MAX_COMMENT: usize = 2_000;
/// The most comments of one person on a question.
pub const MAX_COMMENTS: usize = 50;
/// The most notes of one person who delegates a question.
pub const MAX_NOTES: usize = 20;

/// The most people who are recorded as having seen a question.
const MAX_SEEN: usize = 100;

/// The associated data of entered answers.
const ENTERED: &str = "entered";
/// The associated data of comments.
const COMMENT: &str = "comment";

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
    schedule: Schedule,
    /// The number of steps of the schedule that are done.
    done: usize,
    quorum: Quorum,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entered: Option<Sealed>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    comments: Vec<Sealed>,
    /// The events between creation and end.
    #[serde(default, skip_serializing_if = "Timeline::is_empty")]
    pub(crate) timeline: Timeline,
    /// The channel of the decline or dismissal that ended the question, if outside the pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_through: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    seen: Vec<Seen>,
}

/// A person who has seen a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The person.
    pub by: String,
    /// The time at which the person first saw it.
    pub at: Timestamp,
}

/// A sealed text of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sealed {
    by: String,
    at: Timestamp,
    /// The sealed text in hex.
    text: String,
    /// `true` for the note of a delegation or the reason of a decline.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_note: bool,
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
    pub digest: Digest,
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
        digest: Digest,
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

impl TeamAct<'_> {
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
    Done(Box<Team>, Vec<Notice>),
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
            schedule: plan.schedule(usual),
            done: 0,
            quorum: Quorum::new(plan, asked),
            entered: None,
            comments: Vec::new(),
            timeline: Timeline::default(),
            ended_through: None,
            seen: Vec::new(),
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

    /// Returns the plan in the relay's form.
    ///
    /// # Errors
    /// Never for a team created by this crate.
    pub fn to_plan(&self) -> serde_json::Result<mcp_elicit_core::question::TeamPlan> {
        Ok(mcp_elicit_core::question::TeamPlan {
            rule_digest: self.rule_digest.clone(),
            text: serde_json::to_string(self)?.into(),
        })
    }

    /// Returns the team of a new question, if it has one.
    pub(super) fn of(asked: &NewQuestion) -> Result<Option<Box<Self>>, StoreError> {
        let plan = asked.team.as_ref();
        let read = plan.map(|plan| serde_json::from_str(&plan.text));
        Ok(read.transpose()?)
    }

    /// Returns the actions so far.
    pub fn quorum(&self) -> &Quorum {
        &self.quorum
    }

    /// Returns the people who have seen the question, the earliest first.
    pub fn seen(&self) -> &[Seen] {
        &self.seen
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
pub fn digest_of(content: Option<&str>) -> Digest {
    let mut hash = Sha256::new();
    hash.update(if content.is_some() { b"form" } else { b"link" });
    hash.update(content.unwrap_or_default());
    hash.finalize().into()
}

/// Returns the digest of a mail address, which identifies two names of one person: the record stores no address.
pub fn mail_digest(mail: &str) -> String {
    let digest = Sha256::digest(format!("mail {}", mail.to_ascii_lowercase()));
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
        by: Actor<'_>,
        people: &dyn Membership,
    ) -> Result<Acted, RecordError> {
        self.act_through(id, act, by, people, None).await
    }

    /// Like [`act`](Self::act), outside the pages: the audit names the channel.
    ///
    /// # Errors
    /// The same as [`act`](Self::act).
    pub async fn act_through(
        &self,
        id: &str,
        act: TeamAct<'_>,
        by: Actor<'_>,
        people: &dyn Membership,
        channel: Option<&str>,
    ) -> Result<Acted, RecordError> {
        let is_empty = |text: &str| text.trim().is_empty() || text.chars().count() > MAX_COMMENT;
        if act.text().is_some_and(is_empty) {
            return Ok(Acted::UnusableText);
        }
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
                self.judge(&row, team, &act, by, people, channel)?
            } else {
                Err(Denied::Ended)
            };
            let judged = match judged {
                Ok(judged) => judged,
                Err(denied) => {
                    let by = format!("person:{}", by.person);
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
                Effect::Acted
            } else {
                Effect::Changed
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
            team.seen.push(Seen {
                by: person.to_owned(),
                at: now,
            });
            let seen = row.lifecycle.version();
            row.lifecycle = row.lifecycle.renewed();
            let shown = Entry::new(Event::Shown, now).about(&row);
            let shown = shown.with("to", &*format!("person:{person}")).into_text();
            let change = Change {
                row,
                seen,
                audit: vec![shown],
                survives: Crash::Process,
            };
            if self
                .commit_team(id, change, Effect::Changed, || ())
                .await?
                .is_some()
            {
                return Ok(());
            }
        }
        Err(RecordError::Contended)
    }

    /// Releases a question: the same call made again finds it, or its answer, in any session.
    pub fn release(&self, id: &str) {
        if let Some(live) = self.live().remove(id) {
            self.presence.may_hold(&live.binding);
        }
        self.changed();
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
            .map_err(StoreError::from)?;
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
            })
        });
        opened.collect()
    }

    fn opened(&self, id: &str, place: &str, sealed: &Sealed) -> Result<String, RecordError> {
        let bytes = HEXLOWER.decode(sealed.text.as_bytes()).unwrap_or_default();
        Ok(self
            .keys
            .encryption
            .open(&associated_data(id, place), &bytes)?)
    }

    fn sealed(&self, id: &str, place: &str, by: &str, text: &str) -> Result<Sealed, RecordError> {
        let bytes = self
            .keys
            .encryption
            .seal(&associated_data(id, place), text)?;
        Ok(Sealed {
            by: by.to_owned(),
            at: self.now(),
            text: HEXLOWER.encode(&bytes),
            is_note: false,
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
        by: &str,
        reason: &str,
        channel: Option<&str>,
    ) -> Result<(), RecordError> {
        let Some(left_out) = self.refused.count(by, self.now()) else {
            return Ok(());
        };
        let entry = Entry::new(Event::ActRefused, self.now())
            .about(row)
            .with("by", by)
            .with("act", act)
            .with("reason", reason)
            .with_some("channel", channel)
            .with_some("leftOut", (left_out > 0).then_some(left_out));
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
        let entry = |event, members: &Value| {
            Entry::new(event, now)
                .about(row)
                .with_all(members)
                .into_text()
        };
        for due in due {
            match due {
                Due::Remind => {
                    let members = json!({"by": "timer"});
                    next.timeline.add(Event::Reminded, now, &members);
                    audit.push(entry(Event::Reminded, &members));
                }
                Due::Escalate(to) => {
                    next.quorum = next.quorum.escalate(to.clone());
                    let members = json!({"by": "timer", "to": to.to_string()});
                    next.timeline.add(Event::Escalated, now, &members);
                    audit.push(entry(Event::Escalated, &members));
                }
                // The lifecycle handles the deadline.
                Due::TimeOut => return Ok(()),
            }
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
        self.commit_team(&row.id, change, Effect::Changed, || ())
            .await?;
        Ok(())
    }

    /// Commits a change of a question of a rule, before anyone sees it.
    async fn commit_team(
        &self,
        id: &str,
        change: Change,
        effect: Effect,
        follow: impl FnOnce(),
    ) -> Result<Option<()>, RecordError> {
        let write = Write::Change(vec![change]);
        let effects = [(id, effect)];
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
            mail_digest("kim@EXAMPLE.com")
        );
        // The lower case of the kelvin sign is `k`.
        assert_ne!(
            mail_digest("\u{212a}im@example.com"),
            mail_digest("kim@example.com")
        );
    }
}
