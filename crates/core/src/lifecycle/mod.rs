//! The life of one question, from its creation to its end, and its audit record.
//!
//! Pure: the time is an argument, every transition returns the next state or the reason for its refusal, and a version
//! makes each transition a compare-and-set, so that of two people, two tabs or two replicas exactly one wins. It never
//! contains a person's values.
//!
//! ```text
//!            show            act            deliver (once)
//!   asked ---------> shown -------> answered | declined | cancelled
//!     |                |
//!     +----------------+--> timed-out   (the deadline passed: no action)
//!     +----------------+--> withdrawn   (the server went away or withdrew it)  
//!     +----------------+--> failed      (one of the peers failed)
//! ```
//!
//! A question in a client's own dialog moves to people, once, if the client's response is not a person's act.
//!
//! A person's action never changes; the delivery of the answer is a separate state ([`Delivery`]):
//!
//! ```text
//!             deliver              the server refused it
//!   waiting ----------> delivered ----------------------> failed ---- deliver ---> delivered
//!      |                    |                                |
//!      |                    +--> in-doubt (unknown)          |
//!      +--> lapsed  <----------------------------------------+   (kept too long, or refused twice)
//! ```
//!
//! | file | contents |
//! | --- | --- |
//! | `delivery` | the delivery of an answer |
//! | `timestamp` | a point in time, passed as an argument |
//! | `moved` | the move of a question from a client's dialog to people |
//! | `phase` | the phases |
//! | `transition` | transitions, and the reasons to refuse one |
//! | `record` | one audit event of a question: who, which tool, which fields, what happened |
//! | `counters` | counts of events and open times, for monitoring |

mod audit_record;
mod counters;
mod delivery;
mod moved;
mod phase;
mod timestamp;
mod transition;

pub use audit_record::{AuditEvent, AuditRecord};
pub use counters::AuditCounters;
pub use delivery::{Delivery, Lapse};
pub use moved::{Moved, NotAPerson};
pub use phase::{Phase, UnknownPhase};
pub use timestamp::Timestamp;
pub use transition::{PersonAction, Transition, TransitionError, Withdrawal};

use std::time::Duration;

use delivery::{Lapsed, RefusedDelivery};
use serde::{Deserialize, Serialize};

use crate::fault::{Fault, LimitFault, PeerFault, PersonFault};

/// The state of one question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifecycle {
    version: u64,
    asked_at: Timestamp,
    deadline: Option<Timestamp>,
    shown_at: Option<Timestamp>,
    ending: Option<FinalState>,
    delivered_at: Option<Timestamp>,
    /// The number of milliseconds after the action in which the answer may be delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<RefusedDelivery>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lapsed: Option<Lapsed>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    in_doubt: bool,
    /// The reason why it is unknown whether the server has the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    doubt: Option<String>,
    /// The move from the client's own dialog to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moved: Option<Moved>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FinalState {
    phase: Phase,
    at: Timestamp,
    by: Option<String>,
    why: Option<String>,
}

impl Lifecycle {
    /// Creates a question that is asked now. Without a deadline it waits until it is answered or withdrawn.
    pub fn ask(now: Timestamp, deadline: Option<Timestamp>) -> Self {
        Self {
            version: 0,
            asked_at: now,
            deadline,
            shown_at: None,
            ending: None,
            delivered_at: None,
            keep: None,
            refused: None,
            lapsed: None,
            in_doubt: false,
            doubt: None,
            moved: None,
        }
    }

    /// Sets how long after the action the answer may be delivered. By default, there is no limit.
    #[must_use]
    pub fn deliverable_within(mut self, span: Duration) -> Self {
        self.keep = Some(u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Returns the version, which grows by one with each change: a store compares it before it writes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the question's phase.
    pub fn phase(&self) -> Phase {
        match (&self.ending, self.shown_at) {
            (Some(ending), _) => ending.phase,
            (None, Some(_)) => Phase::Shown,
            (None, None) => Phase::Asked,
        }
    }

    /// Returns the time at which the question was asked.
    pub fn asked_at(&self) -> Timestamp {
        self.asked_at
    }

    /// Returns the time at which it expires.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// Returns the time at which a person first saw it.
    pub fn shown_at(&self) -> Option<Timestamp> {
        self.shown_at
    }

    /// Returns its move from the client's own dialog to people, if it was moved.
    pub fn moved(&self) -> Option<Moved> {
        self.moved
    }

    /// Returns the time at which it ended.
    pub fn ended_at(&self) -> Option<Timestamp> {
        self.ending.as_ref().map(|ending| ending.at)
    }

    /// Returns the principal or frontend that ended it. `None` if no person acted.
    pub fn ended_by(&self) -> Option<&str> {
        self.ending.as_ref()?.by.as_deref()
    }

    /// Returns the reason of a withdrawal or failure, safe for a log.
    pub fn reason(&self) -> Option<&str> {
        self.ending.as_ref()?.why.as_deref()
    }

    /// Returns the reason in words for people.
    pub fn reason_in_words(&self) -> Option<&str> {
        let reason = self.reason()?;
        Some(Withdrawal::of_word(reason).map_or(reason, |withdrawal| withdrawal.words()))
    }

    /// Returns the time at which its end was delivered to the server.
    pub fn delivered_at(&self) -> Option<Timestamp> {
        self.delivered_at
    }

    /// Returns the delivery state of the answer; `None` if no person has acted.
    pub fn delivery(&self) -> Option<Delivery> {
        self.phase().action()?;
        Some(match (&self.lapsed, self.delivered_at, &self.refused) {
            (Some(_), _, _) => Delivery::Lapsed,
            (None, Some(_), _) if self.in_doubt => Delivery::InDoubt,
            (None, Some(_), _) => Delivery::Delivered,
            (None, None, Some(_)) => Delivery::Failed,
            (None, None, None) => Delivery::Waiting,
        })
    }

    /// Returns the reason why the answer was not delivered, in words for a person; `None` while nothing went wrong.
    pub fn delivery_reason(&self) -> Option<String> {
        if let Some(lapsed) = &self.lapsed {
            let refused = self.refused.as_ref().map(|refused| refused.why.as_str());
            return Some(match refused {
                Some(refused) => format!("{}: {refused}", lapsed.why.as_str()),
                None => lapsed.why.as_str().to_owned(),
            });
        }
        if self.in_doubt {
            let why = self.doubt.as_deref();
            let why = why.unwrap_or("it is not known whether the answer arrived");
            return Some(why.to_owned());
        }
        let refused = self.refused.as_ref()?;
        self.delivered_at.is_none().then(|| refused.why.clone())
    }

    /// Returns the time until which a person's answer may be delivered; `None` if no person has acted, or if there is
    /// no limit.
    pub fn valid_until(&self) -> Option<Timestamp> {
        self.phase().action()?;
        let acted_at = self.ended_at()?;
        Some(acted_at.after(Duration::from_millis(self.keep?)))
    }

    /// Returns `true` if nothing more can happen to the question: it is not open, and no answer waits for delivery.
    pub fn is_over(&self) -> bool {
        match self.delivery() {
            None => !self.is_open(),
            Some(Delivery::Waiting | Delivery::Failed) => false,
            Some(Delivery::Delivered | Delivery::Lapsed | Delivery::InDoubt) => true,
        }
    }

    /// Returns `true` while the answer can be delivered: a person has acted, and the answer was neither delivered nor
    /// has it lapsed.
    pub fn is_deliverable(&self, now: Timestamp) -> bool {
        matches!(self.delivery(), Some(Delivery::Waiting | Delivery::Failed))
            && self.valid_until().is_none_or(|until| now < until)
    }

    /// Returns `true` while the question can be answered.
    pub fn is_open(&self) -> bool {
        self.phase().is_open()
    }

    /// Returns `true` if the deadline has passed.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.is_open() && self.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// Returns the state after `step`; `self` is unchanged. A store writes the result if the stored version is still
    /// [`Lifecycle::version`] of `self`, and otherwise reads again and repeats the transition.
    ///
    /// Showing a question that is already shown changes nothing and keeps the version.
    pub fn step(&self, step: &Transition, now: Timestamp) -> Result<Self, TransitionError> {
        let mut next = self.clone();
        if next.take(step, now)? {
            next.version += 1;
        }
        Ok(next)
    }

    /// Returns the same state with the next version: a writer that read the earlier version can no longer change it.
    #[must_use]
    pub fn renewed(&self) -> Self {
        Self {
            version: self.version + 1,
            ..self.clone()
        }
    }

    /// Applies [`Lifecycle::step`] in place if the version is still `seen`.
    pub fn compare_and_step(
        &mut self,
        seen: u64,
        step: &Transition,
        now: Timestamp,
    ) -> Result<(), TransitionError> {
        if self.version != seen {
            return Err(TransitionError::Changed {
                phase: self.phase(),
            });
        }
        *self = self.step(step, now)?;
        Ok(())
    }

    /// Applies a transition. Returns `true` if anything changed.
    fn take(&mut self, step: &Transition, now: Timestamp) -> Result<bool, TransitionError> {
        match step {
            Transition::Deliver => self.deliver(now),
            Transition::Refuse { why } => self.refuse(why, now),
            Transition::Doubt { why } => self.doubt(why),
            Transition::Lapse { why } => self.lapse(*why, now),
            Transition::Show
            | Transition::MoveToPeople { .. }
            | Transition::Act { .. }
            | Transition::Expire
            | Transition::Withdraw { .. }
            | Transition::Fail { .. }
                if !self.is_open() =>
            {
                Err(TransitionError::Ended {
                    phase: self.phase(),
                })
            }
            Transition::Show | Transition::MoveToPeople { .. } | Transition::Act { .. }
                if self.is_due(now) =>
            {
                Err(TransitionError::Late)
            }
            Transition::Show => Ok(self.show(now)),
            Transition::MoveToPeople { why } => Ok(self.move_to_people(*why, now)),
            Transition::Act { act, by } => {
                Ok(self.end(Phase::from_action(act.action()), now, Some(by), None))
            }
            Transition::Expire if !self.is_due(now) => Err(TransitionError::NotDue),
            Transition::Expire => Ok(self.end(Phase::TimedOut, now, None, None)),
            Transition::Withdraw { why } => {
                Ok(self.end(Phase::Withdrawn, now, None, Some(why.as_str())))
            }
            Transition::Fail { why } => Ok(self.end(Phase::Failed, now, None, Some(why))),
        }
    }

    fn show(&mut self, now: Timestamp) -> bool {
        let first = self.shown_at.is_none();
        self.shown_at.get_or_insert(now);
        first
    }

    /// Records the first move to people; a later one changes nothing.
    fn move_to_people(&mut self, why: NotAPerson, at: Timestamp) -> bool {
        let first = self.moved.is_none();
        self.moved.get_or_insert(Moved { at, why });
        first
    }

    fn end(&mut self, phase: Phase, at: Timestamp, by: Option<&str>, why: Option<&str>) -> bool {
        let owned = |text: &str| text.to_owned();
        self.ending = Some(FinalState {
            phase,
            at,
            by: by.map(owned),
            why: why.map(owned),
        });
        true
    }

    fn deliver(&mut self, now: Timestamp) -> Result<bool, TransitionError> {
        if self.is_open() {
            return Err(TransitionError::Open);
        }
        if self.delivered_at.is_some() {
            return Err(TransitionError::Delivered);
        }
        if self.phase().action().is_some() && !self.is_deliverable(now) {
            return Err(TransitionError::Lapsed);
        }
        self.delivered_at = Some(now);
        Ok(true)
    }

    /// Records that the server refused the answer, which may be delivered once more.
    fn refuse(&mut self, why: &str, now: Timestamp) -> Result<bool, TransitionError> {
        if self.delivery() != Some(Delivery::Delivered) {
            return Err(TransitionError::NotDelivered);
        }
        let times = self.refused.as_ref().map_or(0, |refused| refused.times) + 1;
        self.delivered_at = None;
        self.refused = Some(RefusedDelivery {
            times,
            at: now,
            why: why.to_owned(),
        });
        if times >= delivery::MAX_REFUSALS {
            self.lapsed = Some(Lapsed {
                at: now,
                why: Lapse::RefusedTwice,
            });
        }
        Ok(true)
    }

    fn doubt(&mut self, why: &str) -> Result<bool, TransitionError> {
        if self.delivery() != Some(Delivery::Delivered) {
            return Err(TransitionError::NotDelivered);
        }
        self.in_doubt = true;
        self.doubt = Some(why.to_owned());
        Ok(true)
    }

    fn lapse(&mut self, why: Lapse, now: Timestamp) -> Result<bool, TransitionError> {
        match self.delivery() {
            None => return Err(TransitionError::Open),
            Some(Delivery::Lapsed) => return Ok(false),
            Some(Delivery::Delivered | Delivery::InDoubt) => {
                return Err(TransitionError::Delivered);
            }
            Some(Delivery::Waiting | Delivery::Failed) => {}
        }
        if why == Lapse::Expired && self.is_deliverable(now) {
            return Err(TransitionError::NotDue);
        }
        self.lapsed = Some(Lapsed { at: now, why });
        Ok(true)
    }

    /// Returns the fault for the server if the question ended without an answer; `None` while it is open and after an
    /// answer. `failed` has its own fault, which the code that saw the failure holds.
    pub fn fault(&self) -> Option<Fault> {
        match self.phase() {
            Phase::Asked | Phase::Shown | Phase::Answered | Phase::Failed => None,
            Phase::Declined => Some(PersonFault::Declined.into()),
            Phase::Cancelled => Some(PersonFault::Cancelled.into()),
            Phase::TimedOut => Some(self.timed_out().into()),
            Phase::Withdrawn => Some(PeerFault::Withdrawn.into()),
        }
    }

    fn timed_out(&self) -> LimitFault {
        let until = self.deadline.or(self.ended_at()).unwrap_or(self.asked_at);
        LimitFault::TimedOut {
            after: until.since(self.asked_at),
            seen: self.shown_at.is_some(),
        }
    }
}

#[cfg(test)]
mod tests;
