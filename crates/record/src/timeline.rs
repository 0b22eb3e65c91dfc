//! The timeline of a question that a rule applies to: its events in order. It is stored in the question's row, so that
//! it is written in the transaction of each change, and messages to people are derived from it afterwards: a message
//! that was missed in a crash is created later.

use mcp_elicit_core::lifecycle::{Phase, Timestamp};
use serde::{Deserialize, Serialize};

use crate::audit::{ActEvent, Actor, Event};
use crate::store::Row;

/// The most stored events of one question. People are still told of its end.
const MAX_EVENTS: usize = 500;

/// The kind of an event of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimelineKind {
    /// People were asked.
    Asked,
    /// People who had not acted were reminded.
    Reminded,
    /// More people were asked.
    Escalated,
    /// A person claimed it.
    Claimed,
    /// A person took over another's claim.
    TakenOver,
    /// A person delegated it.
    Delegated,
    /// A person entered answers.
    Filled,
    /// A person replaced waiting answers.
    Edited,
    /// A person confirmed the answers.
    Confirmed,
    /// It was answered.
    Answered,
    /// A person declined.
    Declined,
    /// A person cancelled.
    Cancelled,
    /// It was not answered in time.
    TimedOut,
    /// It was withdrawn.
    Withdrawn,
    /// It failed.
    Failed,
}

impl TimelineKind {
    /// Returns the kind for an audit event, if the timeline has it.
    const fn from_audit(event: Event) -> Option<Self> {
        Some(match event {
            Event::Reminded => Self::Reminded,
            Event::Escalated => Self::Escalated,
            Event::Claimed => Self::Claimed,
            Event::TakenOver => Self::TakenOver,
            Event::Delegated => Self::Delegated,
            Event::Filled => Self::Filled,
            Event::Edited => Self::Edited,
            Event::Confirmed => Self::Confirmed,
            _ => return None,
        })
    }

    const fn from_phase(phase: Phase) -> Option<Self> {
        match phase {
            Phase::Asked | Phase::Shown => None,
            Phase::Answered => Some(Self::Answered),
            Phase::Declined => Some(Self::Declined),
            Phase::Cancelled => Some(Self::Cancelled),
            Phase::TimedOut => Some(Self::TimedOut),
            Phase::Withdrawn => Some(Self::Withdrawn),
            Phase::Failed => Some(Self::Failed),
        }
    }
}

/// One event of a question's timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEvent {
    /// The event.
    pub kind: TimelineKind,
    /// The time.
    pub at: Timestamp,
    /// The actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// The addressee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Actor>,
    /// The channel of an act outside the pages, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// JSON Pointers to the arguments that an approver changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<String>,
}

/// The events between creation and end, as stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Timeline(Vec<TimelineEvent>);

impl Timeline {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an event of a person's action or of the schedule, if the timeline has its kind.
    pub(crate) fn add(&mut self, event: &ActEvent, at: Timestamp) {
        if let Some(kind) = TimelineKind::from_audit(event.event)
            && self.0.len() < MAX_EVENTS
        {
            self.0.push(TimelineEvent {
                kind,
                at,
                by: event.by.clone(),
                to: event.to.clone(),
                through: event.channel.clone(),
                edited: event.edited.clone(),
            });
        }
    }
}

impl Row {
    /// Returns the events of a question that a rule applies to, from creation to end; none for any other.
    pub fn timeline(&self) -> Vec<TimelineEvent> {
        let Some(team) = &self.team else {
            return Vec::new();
        };
        let lifecycle = &self.lifecycle;
        let asked = TimelineEvent {
            kind: TimelineKind::Asked,
            at: lifecycle.asked_at(),
            by: None,
            to: None,
            through: None,
            edited: Vec::new(),
        };
        let ended = TimelineKind::from_phase(lifecycle.phase()).map(|kind| TimelineEvent {
            kind,
            at: lifecycle.ended_at().unwrap_or_default(),
            by: lifecycle.ended_by().map(Actor::read),
            to: None,
            through: team.ended_through.clone(),
            edited: Vec::new(),
        });
        let between = team.timeline.0.iter().cloned();
        std::iter::once(asked).chain(between).chain(ended).collect()
    }
}
