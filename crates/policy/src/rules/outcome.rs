//! The outcome of both decisions about a call, for previews: includes people who cannot be asked.

use super::decide::{Admit, PlannedQuestion, Preview};
use super::{ApprovalPlan, Plan};
use crate::facts::KnownCall;

/// The outcome for a call, with the deciding rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome<'p> {
    /// It is refused, or its question is, for this reason.
    Refused(&'p str, String),
    /// People are asked before the call.
    Approve(&'p str, &'p ApprovalPlan),
    /// These people are asked its server's questions; the caller, if no rule says otherwise.
    Ask(Option<&'p str>, &'p Plan),
}

impl Preview<'_> {
    /// Returns the outcome; `unmatched` is the reason if the caller cannot be compared with each person.
    pub fn outcome(
        &self,
        call: Option<&KnownCall<'_>>,
        unmatched: Option<&str>,
    ) -> Option<CallOutcome<'_>> {
        let (rule, plan, otherwise) = match (&self.admit, &self.planned) {
            (Admit::Refuse(rule, refusal), _)
            | (Admit::Free(_), Some(PlannedQuestion::Refuse(rule, refusal))) => {
                return Some(CallOutcome::Refused(rule, refusal.reason.clone()));
            }
            (Admit::Approve(rule, approval), _) => {
                (*rule, &approval.plan, CallOutcome::Approve(rule, approval))
            }
            (Admit::Free(_), Some(PlannedQuestion::Ask(Some(rule), plan)))
                if !plan.ask.is_caller() =>
            {
                (*rule, plan, CallOutcome::Ask(Some(rule), plan))
            }
            (Admit::Free(_), Some(PlannedQuestion::Ask(rule, plan))) => {
                return Some(CallOutcome::Ask(*rule, plan));
            }
            (Admit::Free(_), None) => return None,
        };
        Some(match plan.reason_not_to_ask(call, unmatched) {
            Some(reason) => CallOutcome::Refused(rule, reason),
            None => otherwise,
        })
    }
}
