//! The course of a question that a rule speaks of: what happened to it, in order. It is kept in the question's row, so that it is written
//! in the transaction of each change, and messages to people are made of it afterwards: one that was not made before a crash is made
//! after it.

use mcp_elicit_core::lifecycle::{Phase, Timestamp};
use serde::{Deserialize, Serialize};

use crate::audit::Event;
use crate::store::Row;

/// The most events that are kept of one question. People are still told of its end.
const MAX_EVENTS: usize = 500;

/// Something that happened to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimelineKind {
    /// People were asked.
    Asked,
    /// Those who had not acted were reminded.
    Reminded,
    /// More people were asked.
    Escalated,
    /// A person took it on.
    Claimed,
    /// A person took it from another.
    TakenOver,
    /// A person handed it on.
    Delegated,
    /// A person entered answers.
    Filled,
    /// A person entered other answers than those that waited.
    Edited,
    /// A person agreed to the answers.
    Confirmed,
    /// It was answered.
    Answered,
    /// A person declined.
    Declined,
    /// A person cancelled.
    Cancelled,
    /// Nobody answered in time.
    TimedOut,
    /// It was taken back.
    Withdrawn,
    /// It failed.
    Failed,
}

impl TimelineKind {
    /// Returns the event of the course for one of the audit, where the course has it.
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

/// One event of a question's course.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEvent {
    /// The event.
    pub kind: TimelineKind,
    /// The time.
    pub at: Timestamp,
    /// The actor: `person:NAME`, `timer`, or as the audit says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The addressee: `person:NAME`, `group:NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The channel of an act outside the pages, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// JSON Pointers to the arguments that an approver changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<String>,
}

/// The events between the asking and the end, as they are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Timeline(Vec<TimelineEvent>);

impl Timeline {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an event that the audit tells with these members.
    pub(crate) fn add(&mut self, event: Event, at: Timestamp, members: &serde_json::Value) {
        let text = |name: &str| members[name].as_str().map(str::to_owned);
        if let Some(kind) = TimelineKind::from_audit(event)
            && self.0.len() < MAX_EVENTS
        {
            self.0.push(TimelineEvent {
                kind,
                at,
                by: text("by"),
                to: text("to"),
                through: text("channel"),
                edited: members["edited"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|pointer| pointer.as_str().map(str::to_owned))
                    .collect(),
            });
        }
    }
}

impl Row {
    /// Returns what happened to a question that a rule speaks of, from its asking to its end; nothing for any other.
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
            by: lifecycle.ended_by().map(str::to_owned),
            to: None,
            through: team.ended_through.clone(),
            edited: Vec::new(),
        });
        let between = team.timeline.0.iter().cloned();
        std::iter::once(asked).chain(between).chain(ended).collect()
    }
}
