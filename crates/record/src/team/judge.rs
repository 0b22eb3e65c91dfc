//! The effect of an action on a question: the next row, and the audit entries.

use mcp_elicit_core::answer::{Answers, Outcome};
use mcp_elicit_core::argument::changed_names;
use mcp_elicit_core::lifecycle::{Timestamp, Transition};
use mcp_elicit_core::question::reason_line;
use mcp_elicit_policy::people::Addressee;
use mcp_elicit_policy::quorum::{
    Act, ActingPerson, AnswersDigest, Denied, Membership, Quorum, QuorumEnd, QuorumNotice,
    QuorumState,
};
use serde_json::Value;

use super::{ActDetails, COMMENT, ENTERED, SealedText, Team, TeamAct, digest_of};
use crate::audit::{self, ActEvent, EntryText, Event, Member};
use crate::row::RowChange;
use crate::store::{Change, Crash, RecordStoreError, Row};
use crate::{Record, RecordError, associated_data};

/// The effect of an action: the next row.
pub(super) struct Judged {
    /// `None` if the action changes nothing, such as a repeated claim.
    pub(super) change: Option<Change>,
    pub(super) team: Team,
    pub(super) notices: Vec<QuorumNotice>,
    pub(super) has_ended: bool,
}

/// The reason why an action has no effect.
#[derive(Debug)]
pub(super) enum NotJudged {
    /// The person may not do it, or no longer.
    Denied(Denied),
    /// The record failed.
    Failed(RecordError),
}

impl From<Denied> for NotJudged {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl From<RecordError> for NotJudged {
    fn from(error: RecordError) -> Self {
        Self::Failed(error)
    }
}

impl Record {
    /// Returns the row after the action, or the reason why it is refused.
    pub(super) fn judge(
        &self,
        row: &Row,
        team: &Team,
        act: &TeamAct<'_>,
        by: ActingPerson<'_>,
        people: &dyn Membership,
        details: ActDetails<'_>,
    ) -> Result<Judged, NotJudged> {
        let now = self.now();
        let ActDetails { channel, comment } = details;
        let content = match act {
            TeamAct::Fill { answers, .. } => answers.map(|answers| answers.to_value().to_string()),
            _ => None,
        };
        let step = quorum_act(act, digest_of(content.as_deref()));
        // The plan decides first: of a refused action nothing is stored, not even its comment.
        let (quorum, notices) = team.quorum.act(by, step, now, people)?;
        let mut next = team.clone();
        let is_claim = matches!(act, TeamAct::Claim | TeamAct::TakeOver);
        if is_claim && quorum == team.quorum {
            return Ok(Judged {
                change: None,
                team: next,
                notices,
                has_ended: false,
            });
        }
        let decided = act.decided();
        let text = act.text().or(comment.filter(|_| decided.is_some()));
        if let Some(text) = text {
            let sealed = self.sealed(&row.id, COMMENT, by.person, text)?;
            next.comments.push(SealedText {
                is_note: !matches!(act, TeamAct::Comment { .. }),
                on: decided,
                version: quorum.version(),
                ..sealed
            });
        }
        // By the rule, the audit has the text of a decision.
        let in_audit = text.filter(|_| decided.is_some() && team.reasons.audit);
        let in_audit = in_audit.and_then(reason_line);
        let is_new = matches!(act, TeamAct::Fill { .. })
            && quorum.version() != team.quorum.version()
            && *quorum.state() != QuorumState::Open;
        if is_new {
            let text = serde_json::to_string(&content).map_err(unreadable)?;
            next.entered = Some(self.sealed(&row.id, ENTERED, by.person, &text)?);
        }
        let mut events = self.own_events(row, team, act, is_new, &quorum);
        for event in &mut events {
            event.by = Some(audit::Actor::person(by.person));
        }
        if let Some(own) = events.first_mut() {
            own.comment.clone_from(&in_audit);
        }
        // No action of theirs dropped the votes of these people.
        events.extend(notices.iter().filter_map(dropped_vote));
        for event in &mut events {
            event.channel = channel.map(str::to_owned);
        }
        if channel.is_some() && matches!(act, TeamAct::Decline { .. } | TeamAct::Cancel) {
            next.ended_through = channel.map(str::to_owned);
        }
        for event in &events {
            next.timeline.add(event, now);
        }
        let entries = events.iter().map(|event| event.entry(row, now).into_text());
        let mut audit: Vec<String> = entries.collect();
        let ending = match quorum.state() {
            QuorumState::Open => {
                next.erase();
                None
            }
            QuorumState::Filled { .. } => None,
            QuorumState::Ended(ending) => ended(ending),
        };
        next.missing = quorum.missing_parts(people).in_words(&addressee_name);
        next.quorum = quorum;
        let has_ended = ending.is_some();
        let mut change = match ending {
            Some((outcome, by)) => self.ended_change(row, &mut next, outcome, by, now)?,
            None => open_change(row, &next),
        };
        // The entries about the action come before those about the end that it brought.
        let reason = in_audit.filter(|_| matches!(act, TeamAct::Decline { .. }));
        audit.extend(change.audit.into_iter().map(|entry| {
            EntryText::continued(entry)
                .with_some(Member::Channel, channel)
                .with_some(Member::Comment, reason.as_deref())
                .into_text()
        }));
        change.audit = audit;
        Ok(Judged {
            change: Some(change),
            team: next,
            notices,
            has_ended,
        })
    }

    /// Returns the events of the action itself.
    fn own_events(
        &self,
        row: &Row,
        team: &Team,
        act: &TeamAct<'_>,
        is_new: bool,
        quorum: &Quorum,
    ) -> Vec<ActEvent> {
        let mut events = events_of(act, is_new, quorum, &team.quorum);
        if let (TeamAct::Fill { answers, .. }, true, Some(filled)) =
            (act, is_new, events.first_mut())
        {
            filled.fields = names_of(*answers);
            if team.is_approval {
                filled.edited = self.edited_arguments(row, *answers);
            }
        }
        events
    }

    /// Returns the row that ends with the action, and the entries about its end. The entered answers become its content.
    fn ended_change(
        &self,
        row: &Row,
        next: &mut Team,
        outcome: &Outcome,
        by: String,
        now: Timestamp,
    ) -> Result<Change, NotJudged> {
        let content = match (outcome, next.entered.as_ref()) {
            (Outcome::Visit, Some(entered)) => {
                let text = self.opened(&row.id, ENTERED, entered)?;
                serde_json::from_str::<Option<String>>(&text).map_err(unreadable)?
            }
            _ => None,
        };
        let sealed = content.map(|text| {
            self.keys
                .encryption
                .seal(&associated_data(&row.id, "content"), &text)
        });
        let step = RowChange::Step {
            transition: Transition::acted(outcome, by),
            content: sealed.transpose().map_err(RecordError::from)?,
        };
        // Only now: the content was read from the entered answers.
        next.erase();
        let Ok(stepped) = row.clone().step_judged(&step, now) else {
            return Err(Denied::Ended.into());
        };
        Ok(Change {
            row: Row {
                team: Some(Box::new(next.clone())),
                ..stepped.row
            },
            seen: stepped.seen,
            audit: stepped.audit,
            survives: stepped.survives,
        })
    }

    /// Returns JSON Pointers to the arguments of the call that this approval changes.
    fn edited_arguments(&self, row: &Row, answers: Option<&Answers>) -> Vec<String> {
        let (Some(parsed), Some(answers)) = (self.parsed(row), answers) else {
            return Vec::new();
        };
        let answers = answers.to_value();
        let changed = parsed.form().zip(answers.as_object());
        changed
            .map(|(form, answers)| changed_names(form, answers))
            .unwrap_or_default()
    }
}

/// Returns the row of a question that stays open after the action.
fn open_change(row: &Row, next: &Team) -> Change {
    let mut after = row.clone();
    let seen = after.lifecycle.version();
    after.lifecycle = after.lifecycle.renewed();
    after.team = Some(Box::new(next.clone()));
    Change {
        row: after,
        seen,
        audit: Vec::new(),
        // What a person entered or agreed to survives a loss of power.
        survives: Crash::Machine,
    }
}

/// Returns the action as the plan knows it, with the digest of the entered answers.
fn quorum_act(act: &TeamAct<'_>, digest: AnswersDigest) -> Act {
    match act {
        TeamAct::Fill { version, .. } => Act::Fill {
            digest,
            version: *version,
        },
        TeamAct::Confirm { digest } => Act::Confirm { digest: *digest },
        TeamAct::Decline { .. } => Act::Decline,
        TeamAct::Cancel => Act::Cancel,
        TeamAct::Claim => Act::Claim,
        TeamAct::TakeOver => Act::TakeOver,
        TeamAct::Delegate { to, .. } => Act::Delegate { to: to.clone() },
        TeamAct::Comment { .. } => Act::Comment,
    }
}

fn addressee_name(to: &Addressee) -> String {
    match to {
        Addressee::Caller => "the caller".to_owned(),
        Addressee::Person(name) | Addressee::Group(name) => name.clone(),
    }
}

fn unreadable(error: serde_json::Error) -> RecordError {
    RecordStoreError::from(error).into()
}

/// Returns the person's outcome with which the row ends, and its actor. Answers are represented by their content, which
/// was checked when it was entered.
fn ended(ending: &QuorumEnd) -> Option<(&'static Outcome, String)> {
    match ending {
        QuorumEnd::Answered { votes, .. } => Some((
            &Outcome::Visit,
            audit::Actor::People(votes.clone()).to_string(),
        )),
        QuorumEnd::Declined { by } => {
            Some((&Outcome::Decline, audit::Actor::person(by).to_string()))
        }
        QuorumEnd::Cancelled { by } => {
            Some((&Outcome::Cancel, audit::Actor::person(by).to_string()))
        }
        // Not caused by an action.
        QuorumEnd::TimedOut | QuorumEnd::Withdrawn => None,
    }
}

/// Returns the names of the fields that were filled in, never their values.
fn names_of(answers: Option<&Answers>) -> Vec<String> {
    let answers = answers.map(Answers::to_value);
    let answers = answers.as_ref().and_then(Value::as_object);
    answers
        .map(|answers| answers.keys().cloned().collect())
        .unwrap_or_default()
}

/// Returns the events of an action, without the end of the question.
fn events_of(act: &TeamAct<'_>, is_new: bool, quorum: &Quorum, before: &Quorum) -> Vec<ActEvent> {
    let event = match act {
        TeamAct::Fill { .. } if is_new && matches!(before.state(), QuorumState::Filled { .. }) => {
            ActEvent::new(Event::Edited)
        }
        TeamAct::Fill { .. } if is_new => ActEvent::new(Event::Filled),
        TeamAct::Fill { .. } | TeamAct::Confirm { .. } => ActEvent {
            votes: Some((quorum.votes().len(), quorum.need().get())),
            ..ActEvent::new(Event::Confirmed)
        },
        TeamAct::Decline { .. } | TeamAct::Cancel => return Vec::new(),
        TeamAct::Claim => ActEvent::new(Event::Claimed),
        TeamAct::TakeOver => ActEvent::new(Event::TakenOver),
        TeamAct::Delegate { to, .. } => ActEvent {
            to: Some(audit::Actor::from(to)),
            ..ActEvent::new(Event::Delegated)
        },
        TeamAct::Comment { .. } => ActEvent::new(Event::Commented),
    };
    vec![event]
}

/// Returns the event of a vote that no longer counts, if the notice is about one.
fn dropped_vote(notice: &QuorumNotice) -> Option<ActEvent> {
    let QuorumNotice::VoteDropped(person) = notice else {
        return None;
    };
    Some(ActEvent {
        dropped: Some(person.clone()),
        ..ActEvent::new(Event::VoteDropped)
    })
}
