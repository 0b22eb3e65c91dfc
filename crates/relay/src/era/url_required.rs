//! `-32042`: visits to links that a person must make before a call can be made again (2025-11-25).

use std::time::Duration;

use mcp_elicit_core::wire::{Complete, Frame, Mode, UrlRequired};
use serde_json::value::RawValue;

use crate::asking_frames::wants_links;
use crate::decisions::Planned;
use crate::frame_edit::ErrorResponse;
use crate::parts::asks::{Ask, Attribution, Origin};
use crate::parts::url_demand::UrlDemand;
use crate::question_plan::Passed;
use crate::{Audience, CallId, Effect, Relay, ServerForward, Timer, Timestamp};

/// The time after which a call is made again if the visit was accepted but its completion not announced.
const COMPLETION_WAIT: Duration = Duration::from_secs(5);

impl Relay {
    /// Handles a server's requirement of visits. A client of its revision that declared the mode gets the error as it
    /// is; for any other the gateway asks, and makes the call again.
    pub(crate) fn urls_required(
        &mut self,
        now: Timestamp,
        key: CallId,
        frame: Frame<'_>,
    ) -> ServerForward {
        let declared = self.client.capability(self.calls.get(key));
        // A refusal is reported when it is asked.
        if !matches!(self.judge_urls(now, &key.into(), frame), Passed::Callers) {
            return self.take_urls(now, key, frame);
        }
        let shown = self.client.shown(self.settings.answer_with);
        let client_can = self.client.knows_url_required() && shown.has(Mode::Url);
        if client_can
            || matches!(self.settings.answer_with, Audience::Client) && !declared.has(Mode::Url)
        {
            return self.finish(now, key, frame);
        }
        self.take_urls(now, key, frame)
    }

    /// Checks the links in a response to a request in which the gateway does not ask. `Err` if they are not the
    /// caller's.
    pub(crate) fn judge_links(
        &mut self,
        now: Timestamp,
        key: CallId,
        frame: Frame<'_>,
    ) -> Result<(), ErrorResponse> {
        let is_asked_in = self
            .calls
            .get(key)
            .is_some_and(|call| call.kind().is_some());
        if self.settings.decisions.is_none() || is_asked_in || !wants_links(frame, true) {
            return Ok(());
        }
        // A task belongs to a call that has ended here.
        let refused = match self.judge_urls(now, &Attribution::default(), frame) {
            Passed::Callers => return Ok(()),
            Passed::Others(plan) => match plan.planned {
                Planned::Refuse(refusal) => Some((plan.refused_in, refusal)),
                _ => None,
            },
            Passed::Unjudged => None,
        };
        if let Some((call, refusal)) = refused
            && self.limits.admit_report(now)
        {
            self.settings.tell_not_asked(call.as_ref(), &refusal);
        }
        let why = "the server wants links visited, and the rules leave none of them to the caller of such a request";
        Err(ErrorResponse::new(-32000, why))
    }

    /// Checks the visits that the client would be asked for without a change.
    fn judge_urls(&mut self, now: Timestamp, asking: &Attribution, frame: Frame<'_>) -> Passed {
        if self.settings.decisions.is_none() {
            return Passed::Callers;
        }
        let required = frame
            .error()
            .and_then(|error| UrlRequired::parse(error).ok());
        // An unreadable requirement cannot be checked, and a lenient client may read it.
        required.map_or(Passed::Unjudged, |required| {
            self.judge_passed(now, asking, &required.elicitations)
        })
    }

    /// Asks for the visits.
    fn take_urls(&mut self, now: Timestamp, key: CallId, frame: Frame<'_>) -> ServerForward {
        let Some(required) = self.next_round(now, key, frame.error(), UrlRequired::parse) else {
            return ServerForward::Handled;
        };
        let Some(call) = self.calls.get_mut(key) else {
            return ServerForward::Handled;
        };
        let demand = UrlDemand::new(&required);
        let is_new = call.rounds_mut().demands_urls(demand);
        call.recount();
        if !is_new {
            // The person agreed, but the server has not seen the visit yet: it announces it, or is asked again after a
            // wait.
            let wait = COMPLETION_WAIT.saturating_mul(call.rounds().count().min(12));
            self.timers.set(now.after(wait), Timer::Retry(key));
            return ServerForward::Handled;
        }
        for request in required.elicitations {
            let origin = Origin::Url { call: key };
            if let Err(refusal) = self.open_ask(now, key.into(), origin, request, None, None) {
                self.fail(now, key, &refusal);
                break;
            }
        }
        ServerForward::Handled
    }

    /// Collects the answers once all links of a call were answered.
    pub(crate) fn collect_urls(&mut self, key: CallId) {
        let Some(call) = self.calls.get(key) else {
            // It has ended, and with it the questions about its links.
            return;
        };
        let all = call
            .asks()
            .iter()
            .all(|question| self.asks.get(*question).is_some_and(Ask::is_answered));
        if all {
            let questions = call.asks().to_vec();
            self.asks
                .begin_delivery(questions, &self.calls, &mut self.effects);
        }
    }

    /// Handles the answers about every link: the call is made again if all were accepted.
    pub(crate) fn urls_answered(&mut self, now: Timestamp, visits: Vec<(CallId, bool)>) {
        let mut calls: Vec<(CallId, bool)> = Vec::new();
        for (key, agreed) in visits {
            match calls.iter_mut().find(|(known, _)| *known == key) {
                Some((_, all)) => *all &= agreed,
                None => calls.push((key, agreed)),
            }
        }
        for (key, all) in calls {
            if all {
                self.retry_upstream(now, key);
            } else {
                // The server is not told, so the client gets the server's message.
                self.url_declined(now, key);
            }
        }
    }

    fn url_declined(&mut self, now: Timestamp, key: CallId) {
        if self.calls.get(key).is_some() {
            // The server is not involved in a visit that was not agreed to.
            let records = self.calls.take_deliveries(key);
            self.effects.push(Effect::Delivered { records });
        }
        let refusal = ErrorResponse::new(
            -32603,
            "the person did not agree to visit the required links",
        );
        self.fail(now, key, &refusal);
    }

    /// Handles the server's notice that a visit is done: calls that wait for it are made again.
    pub(crate) fn url_completed(
        &mut self,
        now: Timestamp,
        via: Option<CallId>,
        params: &RawValue,
    ) -> ServerForward {
        let complete = Complete::parse(params).ok();
        let again: Vec<CallId> = self
            .timers
            .retries()
            .into_iter()
            .filter(|key| {
                let id = complete
                    .as_ref()
                    .map(|complete| complete.elicitation_id.as_str());
                let demand = self
                    .calls
                    .get(*key)
                    .and_then(|call| call.rounds().url_demand());
                matches!((id, demand), (Some(id), Some(demand)) if demand.wants_visit(id))
            })
            .collect();
        for key in again {
            self.timers.cancel(Timer::Retry(key));
            self.retry_upstream(now, key);
        }
        self.forward_complete(via, complete.is_some())
    }
}
