//! The transitions of one row, pure: the next row, its audit entries, and the failure that the write must survive.
//! Nothing here reads the store, a clock or a key.

use mcp_elicit_core::lifecycle::{
    Delivery, Lapse, NotAPerson, Timestamp, Transition, TransitionError,
};

use super::audit::{self, Event};
use crate::store::{Change, Crash, Row};

/// A change of one row.
#[derive(Clone, Debug)]
pub(crate) enum RowChange {
    /// A transition up to the delivery.
    Step {
        /// The transition.
        transition: Transition,
        /// The sealed content of the answer, if a person acted.
        content: Option<Vec<u8>>,
    },
    /// The server accepted the answer: its values are erased.
    Confirm,
    /// The server refused the answer, which is kept for the same call made again; a second refusal, or one of an answer
    /// that no call can request, ends it.
    Refuse {
        /// The reason, in words for a person and a log.
        why: String,
        /// The values, if the store does not have them.
        restored: Option<SealedValues>,
    },
    /// The answer may have reached the server: its values are erased, and it is never sent again.
    Doubt {
        /// The reason, in words for a person and a log.
        why: String,
    },
    /// The client's response is not a person's act: the question moves from its dialog to people.
    MoveToPeople {
        /// The evidence.
        why: NotAPerson,
        /// The calls that it may belong to, sealed: the client's dialog showed none. `None` if the call is known.
        candidates: Option<Vec<u8>>,
    },
    /// A call of the gateway of this name now waits for the question.
    Adopt {
        /// The gateway.
        owner: String,
    },
    /// No call of its gateway waits for the question any more: any gateway may adopt it for the same call made again.
    Leave,
}

/// The sealed values of an answer in delivery.
#[derive(Clone, Debug)]
pub(crate) struct SealedValues {
    /// The answer's content.
    pub(crate) content: Option<Vec<u8>>,
    /// The call's arguments.
    pub(crate) arguments: Option<Vec<u8>>,
}

/// A row after a change.
#[derive(Clone, Debug)]
pub(crate) struct Stepped {
    /// The next row.
    pub(crate) row: Row,
    /// The version of the previous row.
    pub(crate) seen: u64,
    /// The audit entries, in order.
    pub(crate) audit: Vec<String>,
    /// The crash that the write must survive.
    pub(crate) survives: Crash,
}

impl Stepped {
    /// Returns `true` if the row has changed.
    pub(crate) fn is_changed(&self) -> bool {
        self.row.lifecycle.version() != self.seen
    }

    /// Returns the write for the store.
    pub(crate) fn into_write(self) -> Change {
        let Self {
            row,
            seen,
            audit,
            survives,
        } = self;
        Change {
            row,
            seen,
            audit,
            survives,
        }
    }
}

/// The reason why a change is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// The question has expired, which its row does not show yet.
    Late,
    /// The row no longer allows the change.
    Over,
}

impl From<TransitionError> for Rejected {
    fn from(error: TransitionError) -> Self {
        match error {
            TransitionError::Late => Self::Late,
            TransitionError::Ended { .. }
            | TransitionError::NotDue
            | TransitionError::Open
            | TransitionError::Delivered
            | TransitionError::NotDelivered
            | TransitionError::Lapsed
            | TransitionError::Changed { .. } => Self::Over,
        }
    }
}

impl RowChange {
    /// Returns `true` for an action that ends the question by itself.
    const fn is_act(&self) -> bool {
        matches!(
            self,
            Self::Step {
                transition: Transition::Act { .. },
                ..
            }
        )
    }

    /// Creates a transition without content.
    pub(crate) const fn step(transition: Transition) -> Self {
        Self::Step {
            transition,
            content: None,
        }
    }
}

impl Row {
    /// Returns `true` if the question is the gateway's, whether a call may be made.
    pub(crate) fn is_approval(&self) -> bool {
        self.team.as_ref().is_some_and(|team| team.is_approval)
    }

    /// Returns the server that asked ([`Body::server_address`](crate::store::Body::server_address)); `None` if the gateway
    /// did.
    pub(crate) fn asking_server(&self) -> Option<&str> {
        (!self.is_approval()).then(|| self.body.server_address())
    }

    /// Returns `true` if a person's action ended the question.
    pub(crate) fn has_acted(&self) -> bool {
        self.lifecycle.phase().action().is_some()
    }

    /// Returns `true` if a server's question ended without a person's action. Nobody answers it any more, and of a large one
    /// only the beginning stays ([`PARAMS_AFTER_END`](crate::stored_bytes::PARAMS_AFTER_END)).
    pub(crate) fn ended_unanswered(&self) -> bool {
        !self.lifecycle.is_open() && !self.has_acted() && !self.is_approval()
    }

    /// Returns the row after this change.
    pub(crate) fn step(self, change: &RowChange, now: Timestamp) -> Result<Stepped, Rejected> {
        self.refuse_unjudged(change)?;
        self.step_judged(change, now)
    }

    /// Returns the row after an action that its plan permits, if a rule applies to the question.
    pub(crate) fn step_judged(
        mut self,
        change: &RowChange,
        now: Timestamp,
    ) -> Result<Stepped, Rejected> {
        let seen = self.lifecycle.version();
        let StepEffects { audit, survives } = self.change(change, now)?;
        Ok(Stepped {
            row: self,
            seen,
            audit,
            survives,
        })
    }

    /// Changes the row, and returns the audit entries; a rejected change leaves it unchanged.
    pub(crate) fn make_step(
        &mut self,
        change: &RowChange,
        now: Timestamp,
    ) -> Result<Vec<String>, Rejected> {
        self.refuse_unjudged(change)?;
        Ok(self.change(change, now)?.audit)
    }

    /// Refuses an action on a question of a rule: people answer those, and the plan decides about each action.
    fn refuse_unjudged(&self, change: &RowChange) -> Result<(), Rejected> {
        if self.team.is_some() && change.is_act() {
            return Err(Rejected::Over);
        }
        Ok(())
    }

    fn change(&mut self, change: &RowChange, now: Timestamp) -> Result<StepEffects, Rejected> {
        let mut next = RowStep {
            row: self,
            effects: StepEffects::default(),
        };
        match change {
            RowChange::Step {
                transition,
                content,
            } => next.transition(transition, content.as_ref(), now)?,
            RowChange::Confirm => {
                if next.row.lifecycle.delivery() != Some(Delivery::Delivered) {
                    // It may have been asked again already.
                    return Err(Rejected::Over);
                }
                next.row.lifecycle = next.row.lifecycle.renewed();
                next.erase(now);
                next.tell(Event::Delivered, now);
            }
            RowChange::Refuse { why, restored } => {
                let why = why.clone();
                next.advance(&Transition::Refuse { why }, now)?;
                next.row.exclusive = false;
                next.tell(Event::DeliveryFailed, now);
                next.keep_or_lapse(restored.as_ref(), now);
                next.effects.survives = Crash::Machine;
            }
            RowChange::Doubt { why } => {
                let why = why.clone();
                next.advance(&Transition::Doubt { why }, now)?;
                next.row.exclusive = false;
                next.erase(now);
                next.tell(Event::InDoubt, now);
                next.effects.survives = Crash::Machine;
            }
            RowChange::MoveToPeople { why, candidates } => {
                let seen = next.row.lifecycle.version();
                let why = *why;
                next.advance(&Transition::MoveToPeople { why }, now)?;
                if next.row.lifecycle.version() != seen {
                    if candidates.is_some() {
                        next.row.arguments.clone_from(candidates);
                    }
                    next.tell(Event::ClientNotAPerson, now);
                }
            }
            RowChange::Adopt { owner } => {
                next.row.owner.clone_from(owner);
                next.row.exclusive = false;
                // Of two gateways that adopt it at once, the second must detect the first.
                next.row.lifecycle = next.row.lifecycle.renewed();
            }
            RowChange::Leave => {
                next.row.owner.clear();
                next.row.lifecycle = next.row.lifecycle.renewed();
            }
        }
        Ok(next.effects)
    }
}

/// The effects of a change besides the row.
#[derive(Default)]
struct StepEffects {
    /// The audit entries, in order.
    audit: Vec<String>,
    /// The crash that the write must survive.
    survives: Crash,
}

/// A change in progress. It is rejected before any part of the row has changed.
struct RowStep<'a> {
    row: &'a mut Row,
    effects: StepEffects,
}

impl RowStep<'_> {
    fn advance(&mut self, transition: &Transition, now: Timestamp) -> Result<(), Rejected> {
        self.row.lifecycle = self.row.lifecycle.step(transition, now)?;
        Ok(())
    }

    fn tell(&mut self, event: Event, now: Timestamp) {
        self.effects
            .audit
            .push(audit::step_entry(event, self.row, now));
    }

    /// Erases the values, except for those that the rule keeps for auditors.
    fn erase(&mut self, now: Timestamp) {
        let content = self.row.content.take();
        // Those of an approval change the call; others are a person's values for the server.
        let content = content.filter(|_| self.row.is_approval());
        let arguments = self.row.arguments.take();
        if let Some(team) = self.row.team.as_mut() {
            team.retain_values(arguments, content, now);
        }
    }

    fn transition(
        &mut self,
        transition: &Transition,
        content: Option<&Vec<u8>>,
        now: Timestamp,
    ) -> Result<(), Rejected> {
        let seen = self.row.lifecycle.version();
        self.advance(transition, now)?;
        if self.row.lifecycle.version() == seen {
            return Ok(());
        }
        match transition {
            // The values stay, and nothing is audited, until the result of the delivery is known.
            Transition::Deliver => {}
            // It is made by [`RowChange::MoveToPeople`].
            Transition::MoveToPeople { .. } => self.tell(Event::ClientNotAPerson, now),
            // Those who see the question of a rule are audited by name.
            Transition::Show if self.row.team.is_some() => {}
            Transition::Lapse { .. } => {
                self.erase(now);
                self.tell(Event::Lapsed, now);
            }
            Transition::Show
            | Transition::Act { .. }
            | Transition::Expire
            | Transition::Withdraw { .. }
            | Transition::Fail { .. }
            | Transition::Refuse { .. }
            | Transition::Doubt { .. } => {
                if content.is_some() {
                    self.row.content = content.cloned();
                }
                if let Some(team) = self
                    .row
                    .team
                    .as_mut()
                    .filter(|_| !self.row.lifecycle.is_open())
                {
                    team.erase();
                }
                // Every end of a question of a rule is treated alike: nothing of it is delivered.
                if self.row.team.is_some() && self.row.lifecycle.is_over() {
                    self.erase(now);
                }
                self.tell(self.row.lifecycle.phase().into(), now);
            }
        }
        // A person's answer, and its delivery, survive a loss of power.
        if self.row.lifecycle.delivery().is_some() {
            self.effects.survives = Crash::Machine;
        }
        Ok(())
    }

    /// Keeps a refused answer for the same call made again, or ends it if no such call can come.
    fn keep_or_lapse(&mut self, restored: Option<&SealedValues>, now: Timestamp) {
        if self.row.lifecycle.delivery() == Some(Delivery::Failed) && !self.row.can_be_found() {
            let why = Lapse::NoCall;
            // A failed delivery can lapse.
            let _lapsed = self.advance(&Transition::Lapse { why }, now);
        }
        match self.row.lifecycle.delivery() {
            Some(Delivery::Failed) => {
                if let Some(values) = restored {
                    self.row.content.clone_from(&values.content);
                    self.row.arguments.clone_from(&values.arguments);
                }
            }
            delivery => {
                self.erase(now);
                if delivery == Some(Delivery::Lapsed) {
                    self.tell(Event::Lapsed, now);
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use mcp_elicit_core::answer::Outcome;
    use mcp_elicit_core::lifecycle::Lifecycle;
    use mcp_elicit_core::wire::{CallKind, Mode};

    use super::*;
    use crate::store::Body;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// Returns an open question of a known call, with sealed arguments.
    pub(crate) fn open() -> Row {
        Row {
            id: "q".to_owned(),
            binding: "b".to_owned(),
            owner: "g1".to_owned(),
            lifecycle: Lifecycle::ask(at(1_000), Some(at(9_000))),
            exclusive: true,
            body: Arc::new(Body {
                server: "s".to_owned(),
                address: None,
                mode: Mode::Form,
                message: "Who?".to_owned(),
                elicitation_id: None,
                principal: "local".to_owned(),
                server_info: None,
                client_info: None,
                kind: Some(CallKind::Tool),
                target: Some("deploy".to_owned()),
                others: Vec::new(),
                fields: Vec::new(),
                cautions: Vec::new(),
                at_client: false,
                unchecked: None,
                arguments_left_out: None,
                trace: None,
            }),
            arguments: Some(vec![1]),
            content: None,
            params: None,
            team: None,
        }
    }

    fn acted(content: Option<Vec<u8>>) -> RowChange {
        let transition = Transition::acted(&Outcome::Decline, "inbox");
        RowChange::Step {
            transition,
            content,
        }
    }

    fn events(stepped: &Stepped) -> Vec<String> {
        let event = |entry: &String| {
            let entry: serde_json::Value = serde_json::from_str(entry).unwrap();
            entry["event"].as_str().unwrap_or_default().to_owned()
        };
        stepped.audit.iter().map(event).collect()
    }

    #[test]
    fn an_answer_survives_a_loss_of_power_and_keeps_its_values_until_it_is_confirmed() {
        let answered = open().step(&acted(Some(vec![2])), at(2_000)).unwrap();
        assert_eq!(events(&answered), ["declined"]);
        assert_eq!(answered.survives, Crash::Machine);
        let deliver = RowChange::step(Transition::Deliver);
        let sent = answered.row.step(&deliver, at(3_000)).unwrap();
        assert!(sent.audit.is_empty() && sent.survives == Crash::Machine);
        assert_eq!(sent.row.content, Some(vec![2]));
        assert_eq!(
            sent.row.clone().step(&deliver, at(3_000)).unwrap_err(),
            Rejected::Over,
            "at most once"
        );
        let confirmed = sent.row.step(&RowChange::Confirm, at(4_000)).unwrap();
        assert_eq!(events(&confirmed), ["delivered"]);
        assert!(confirmed.row.content.is_none() && confirmed.row.arguments.is_none());
    }

    #[test]
    fn an_act_after_the_time_is_late_and_one_after_the_end_is_rejected() {
        assert_eq!(
            open().step(&acted(None), at(9_000)).unwrap_err(),
            Rejected::Late
        );
        let answered = open().step(&acted(None), at(2_000)).unwrap().row;
        assert_eq!(
            answered.step(&acted(None), at(2_500)).unwrap_err(),
            Rejected::Over
        );
    }

    #[test]
    fn a_refused_answer_gets_its_values_back_and_one_in_doubt_loses_them() {
        let deliver = RowChange::step(Transition::Deliver);
        let answered = open().step(&acted(None), at(2_000)).unwrap().row;
        let sent = answered.step(&deliver, at(2_000)).unwrap().row;
        let values = SealedValues {
            content: Some(vec![2]),
            arguments: Some(vec![1]),
        };
        let refuse = RowChange::Refuse {
            why: "403".to_owned(),
            restored: Some(values),
        };
        let kept = sent.clone().step(&refuse, at(3_000)).unwrap();
        assert_eq!(events(&kept), ["delivery-failed"]);
        assert_eq!(kept.row.content, Some(vec![2]));
        assert!(!kept.row.exclusive);
        let why = "reset".to_owned();
        let doubt = sent.step(&RowChange::Doubt { why }, at(3_000)).unwrap();
        assert_eq!(events(&doubt), ["in-doubt"]);
        assert!(doubt.row.content.is_none() && doubt.row.arguments.is_none());
    }
}
