//! An operator's decision about a question: by the call that asks, or by all that may have asked.
//!
//! A question of which several calls may be the one that asks is decided about for each of them, also for those that have ended here and
//! that the server may still be at work on. The strictest counts: a refusal, then the people whom a rule asks; where rules ask different
//! people, nobody is asked.

use std::collections::HashSet;
use std::time::Duration;

use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::secrecy;
use mcp_elicit_core::wire::ElicitRequest;

use crate::decisions::{PeopleAsked, Planned, QuestionParts, RuleRefusal};
use crate::new_asks::check;
use crate::parts::asks::Attribution;
use crate::parts::calls::Call;
use crate::{CallId, CallSummary, Relay};

/// The decision about a question, with the calls that have ended here and for which it may be.
pub(crate) struct QuestionPlan {
    /// The decision.
    pub(crate) planned: Planned,
    /// Those of the calls for which a rule decides otherwise than for the caller.
    pub(crate) past: Vec<CallSummary>,
}

impl From<Planned> for QuestionPlan {
    fn from(planned: Planned) -> Self {
        let past = Vec::new();
        Self { planned, past }
    }
}

/// The strictest of several decisions.
#[derive(Default)]
struct Strictest {
    open_for: Option<Duration>,
    people: Option<Box<PeopleAsked>>,
    refusal: Option<RuleRefusal>,
    /// The rule that asks other people than the first.
    other_rule: Option<String>,
}

impl Strictest {
    fn add(&mut self, planned: Planned) {
        match planned {
            Planned::Caller { open_for } => {
                let shortest = self.open_for.into_iter().chain(open_for).min();
                self.open_for = shortest;
            }
            Planned::People(asked) => match &self.people {
                None => self.people = Some(asked),
                Some(known) => {
                    if known.rule != asked.rule || known.team.rule_digest != asked.team.rule_digest
                    {
                        self.other_rule.get_or_insert(asked.rule);
                    }
                }
            },
            Planned::Refuse(refusal) => {
                self.refusal.get_or_insert(refusal);
            }
        }
    }

    fn is_callers(&self) -> bool {
        self.refusal.is_none() && self.people.is_none()
    }

    fn into_planned(self) -> Planned {
        match (self.refusal, self.people, self.other_rule) {
            (Some(refusal), _, _) => Planned::Refuse(refusal),
            (None, Some(asked), Some(other)) => Planned::Refuse(RuleRefusal {
                reason: format!(
                    "several calls may have asked, and the rule `{other}` asks other people about one of them; make \
                     one call at a time"
                ),
                rule: asked.rule,
            }),
            (None, Some(asked), None) => Planned::People(asked),
            (None, None, _) => Planned::Caller {
                open_for: self.open_for,
            },
        }
    }
}

impl Relay {
    /// Returns the operator's decision about a question of the server.
    pub(crate) fn planned(
        &mut self,
        now: Timestamp,
        attribution: &Attribution,
        request: &ElicitRequest,
        form: Option<&Form>,
    ) -> QuestionPlan {
        if self.settings.decisions.is_none() {
            return Planned::Caller { open_for: None }.into();
        }
        if !attribution.is_certain() {
            return self.planned_for_all(now, request, form);
        }
        let call = attribution.call();
        let call = call.and_then(|call| self.calls.get_mut(call)?.summary().cloned());
        self.planned_for(now, call.as_ref(), request, form).into()
    }

    /// Returns the strictest decision for all calls that may have asked. Where none of them is known to have, rules about calls
    /// cannot be judged.
    fn planned_for_all(
        &mut self,
        now: Timestamp,
        request: &ElicitRequest,
        form: Option<&Form>,
    ) -> QuestionPlan {
        let mut strictest = Strictest::default();
        let mut is_known = !self.past_calls.is_incomplete();
        let mut seen = HashSet::new();
        let mut past = Vec::new();
        let asking: Vec<CallId> = self.calls.asking().map(|(key, _)| key).collect();
        for key in &asking {
            let Some(call) = self.calls.get_mut(*key).and_then(Call::summary).cloned() else {
                is_known = false;
                continue;
            };
            if seen.insert(call.digest.clone()) {
                strictest.add(self.planned_for(now, Some(&call), request, form));
            }
        }
        let ended: Vec<CallSummary> = self.past_calls.all().cloned().collect();
        for call in ended {
            if seen.insert(call.digest.clone()) {
                let planned = self.planned_for(now, Some(&call), request, form);
                if !matches!(planned, Planned::Caller { .. }) {
                    past.push(call);
                }
                strictest.add(planned);
            }
        }
        if !is_known || (asking.is_empty() && strictest.is_callers()) {
            strictest.add(self.planned_for(now, None, request, form));
        }
        let planned = strictest.into_planned();
        QuestionPlan { planned, past }
    }

    /// Returns the operator's decision about a question in this call; `None` where it is not known for which call it is.
    pub(crate) fn planned_for(
        &self,
        now: Timestamp,
        call: Option<&CallSummary>,
        request: &ElicitRequest,
        form: Option<&Form>,
    ) -> Planned {
        let Some(decisions) = &self.settings.decisions else {
            return Planned::Caller { open_for: None };
        };
        let question = QuestionParts {
            request,
            form,
            has_credentials: form
                .is_some_and(|form| !secrecy::inspect_request(request, form).is_empty()),
        };
        let call = call.map(|call| (call, self.catalog.facts_of(call.kind, &call.target)));
        decisions.plan(now, call, question)
    }

    /// Returns `true` if no rule gives any of these questions to others than the caller, or refuses it.
    pub(crate) fn all_for_caller<'q>(
        &mut self,
        now: Timestamp,
        asking: &Attribution,
        mut questions: impl Iterator<Item = &'q ElicitRequest>,
    ) -> bool {
        self.settings.decisions.is_none()
            || questions.all(|request| {
                // One that is illegal is refused when it is asked.
                let form = check(request).ok().and_then(|checked| checked.form);
                let plan = self.planned(now, asking, request, form.as_ref());
                matches!(plan.planned, Planned::Caller { .. })
            })
    }
}
