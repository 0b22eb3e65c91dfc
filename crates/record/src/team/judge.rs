//! The effect of an action on a question: the next row, and the audit entries.

use mcp_elicit_core::answer::{Answers, Outcome};
use mcp_elicit_core::argument::changed_names;
use mcp_elicit_core::lifecycle::Transition;
use mcp_elicit_policy::quorum::{Act, Actor, Denied, Ending, Membership, Notice, Quorum, State};
use serde_json::{Value, json};

use super::{AND_PERSON, COMMENT, ENTERED, PERSON, Sealed, Team, TeamAct, digest_of};
use crate::audit::{Entry, Event};
use crate::row::{RowChange, Stepped};
use crate::store::{Change, Crash, Row, StoreError};
use crate::{Record, RecordError, associated_data};

/// The effect of an action: the next row.
pub(super) struct Judged {
    /// `None` if the action changes nothing, such as a repeated claim.
    pub(super) change: Option<Change>,
    pub(super) team: Team,
    pub(super) notices: Vec<Notice>,
    pub(super) has_ended: bool,
}

impl Record {
    /// Returns the row after the action, or the reason why it is refused.
    pub(super) fn judge(
        &self,
        row: &Row,
        team: &Team,
        act: &TeamAct<'_>,
        by: Actor<'_>,
        people: &dyn Membership,
        channel: Option<&str>,
    ) -> Result<Result<Judged, Denied>, RecordError> {
        let now = self.now();
        let content = match act {
            TeamAct::Fill { answers, .. } => answers.map(|answers| answers.to_value().to_string()),
            _ => None,
        };
        let own = digest_of(content.as_deref());
        let step = match act {
            TeamAct::Fill { version, .. } => Act::Fill {
                digest: own,
                version: *version,
            },
            TeamAct::Confirm { digest } => Act::Confirm { digest: *digest },
            TeamAct::Decline { .. } => Act::Decline,
            TeamAct::Cancel => Act::Cancel,
            TeamAct::Claim => Act::Claim,
            TeamAct::TakeOver => Act::TakeOver,
            TeamAct::Delegate { to, .. } => Act::Delegate { to: to.clone() },
            TeamAct::Comment { .. } => Act::Comment,
        };
        let (quorum, notices) = match team.quorum.act(by, step, now, people) {
            Ok(stepped) => stepped,
            Err(denied) => return Ok(Err(denied)),
        };
        let mut next = team.clone();
        let is_claim = matches!(act, TeamAct::Claim | TeamAct::TakeOver);
        if is_claim && quorum == team.quorum {
            return Ok(Ok(Judged {
                change: None,
                team: next,
                notices,
                has_ended: false,
            }));
        }
        if let Some(text) = act.text() {
            let sealed = self.sealed(&row.id, COMMENT, by.person, text)?;
            let is_note = !matches!(act, TeamAct::Comment { .. });
            next.comments.push(Sealed { is_note, ..sealed });
        }
        let is_new = matches!(act, TeamAct::Fill { .. })
            && quorum.version() != team.quorum.version()
            && *quorum.state() != State::Open;
        if is_new {
            let text = serde_json::to_string(&content).map_err(StoreError::from)?;
            next.entered = Some(self.sealed(&row.id, ENTERED, by.person, &text)?);
        }
        let mut audit = events_of(act, is_new, &quorum, &team.quorum, &notices);
        if let (TeamAct::Fill { answers, .. }, true) = (act, is_new)
            && let Some((_, members)) = audit.first_mut()
        {
            let fields = names_of(*answers);
            if !fields.is_empty() {
                members["fields"] = fields.into();
            }
            let edited = self.edited_arguments(row, *answers);
            if team.is_approval && !edited.is_empty() {
                members["edited"] = edited.into();
            }
        }
        for (_, members) in &mut audit {
            // A dropped vote names its person: it was not dropped by an action.
            if members["person"].is_null() {
                members["by"] = format!("person:{}", by.person).into();
            }
        }
        if let Some(channel) = channel {
            for (_, members) in &mut audit {
                members["channel"] = channel.into();
            }
            if matches!(act, TeamAct::Decline { .. } | TeamAct::Cancel) {
                next.ended_through = Some(channel.to_owned());
            }
        }
        for (event, members) in &audit {
            next.timeline.add(*event, now, members);
        }
        let audit = audit.into_iter().map(|(event, members)| {
            Entry::new(event, now)
                .about(row)
                .with_all(&members)
                .into_text()
        });
        let mut audit: Vec<String> = audit.collect();
        let ending = match quorum.state() {
            State::Open => {
                next.erase();
                None
            }
            State::Filled { .. } => None,
            State::Ended(ending) => ended(ending),
        };
        next.quorum = quorum;
        let mut after = row.clone();
        let (change, has_ended) = if let Some((outcome, by)) = ending {
            let content = match (outcome, next.entered.as_ref()) {
                (Outcome::Visit, Some(entered)) => {
                    let text = self.opened(&row.id, ENTERED, entered)?;
                    serde_json::from_str::<Option<String>>(&text).map_err(StoreError::from)?
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
                content: sealed.transpose()?,
            };
            next.erase();
            let Ok(Stepped {
                row: after,
                seen,
                audit: ends,
                survives,
            }) = after.step_judged(&step, now)
            else {
                return Ok(Err(Denied::Ended));
            };
            let named = |entry: String| match channel {
                Some(channel) => Entry::continued(entry).with("channel", channel).into_text(),
                None => entry,
            };
            audit.extend(ends.into_iter().map(named));
            let row = Row {
                team: Some(Box::new(next.clone())),
                ..after
            };
            (
                Change {
                    row,
                    seen,
                    audit,
                    survives,
                },
                true,
            )
        } else {
            let seen = after.lifecycle.version();
            after.lifecycle = after.lifecycle.renewed();
            after.team = Some(Box::new(next.clone()));
            // What a person entered or agreed to survives a loss of power.
            let survives = Crash::Machine;
            (
                Change {
                    row: after,
                    seen,
                    audit,
                    survives,
                },
                false,
            )
        };
        Ok(Ok(Judged {
            change: Some(change),
            team: next,
            notices,
            has_ended,
        }))
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

/// Returns the person's outcome with which the row ends, and its actor. Answers are represented by their content, which
/// was checked when it was entered.
fn ended(ending: &Ending) -> Option<(&'static Outcome, String)> {
    let person = |name: &String| format!("{PERSON}{name}");
    match ending {
        Ending::Answered { votes, .. } => Some((
            &Outcome::Visit,
            format!("{PERSON}{}", votes.join(AND_PERSON)),
        )),
        Ending::Declined { by } => Some((&Outcome::Decline, person(by))),
        Ending::Cancelled { by } => Some((&Outcome::Cancel, person(by))),
        // Not caused by an action.
        Ending::TimedOut | Ending::Withdrawn => None,
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

/// Returns the audit events of an action, without the end of the question.
fn events_of(
    act: &TeamAct<'_>,
    is_new: bool,
    quorum: &Quorum,
    before: &Quorum,
    notices: &[Notice],
) -> Vec<(Event, Value)> {
    let mut events = Vec::new();
    match act {
        TeamAct::Fill { .. } if is_new && matches!(before.state(), State::Filled { .. }) => {
            events.push((Event::Edited, json!({})));
        }
        TeamAct::Fill { .. } if is_new => events.push((Event::Filled, json!({}))),
        TeamAct::Fill { .. } | TeamAct::Confirm { .. } => {
            events.push((
                Event::Confirmed,
                json!({"votes": quorum.votes().len(), "need": quorum.need()}),
            ));
        }
        TeamAct::Decline { .. } | TeamAct::Cancel => {}
        TeamAct::Claim => events.push((Event::Claimed, json!({}))),
        TeamAct::TakeOver => events.push((Event::TakenOver, json!({}))),
        TeamAct::Delegate { to, .. } => {
            events.push((Event::Delegated, json!({"to": to.to_string()})));
        }
        TeamAct::Comment { .. } => events.push((Event::Commented, json!({}))),
    }
    for notice in notices {
        if let Notice::VoteDropped(person) = notice {
            events.push((
                Event::VoteDropped,
                json!({"person": person, "reason": "not-eligible"}),
            ));
        }
    }
    events
}
