//! The delivery of answers: each is taken out of the record once and sent to the server; and the end of questions
//! without one.

use std::time::Duration;

use mcp_elicit_core::fault::{LimitFault, PeerFault};
use mcp_elicit_core::wire::{Cancelled, Id, message};
use serde_json::value::RawValue;

use crate::frame_edit::ErrorResponse;
use crate::parts::asks::{Ask, ClientReply, Origin};
use crate::parts::deliveries::Waiting;
use crate::{AskId, CallId, Effect, Ending, Relay, TakenAnswer, Timer, Timestamp};

/// The time after which an answer is taken out again, if the record could not be written.
const DELIVER_AGAIN: Duration = Duration::from_secs(5);

impl Relay {
    /// Handles an answer in the record, which is the first one.
    pub(crate) fn answered(&mut self, now: Timestamp, key: AskId) {
        if self.asks.get_mut(key).is_some_and(Ask::answered) {
            self.deliver_answer(now, key);
        }
    }

    /// Delivers an answer in the record, or collects it with the others of its round.
    fn deliver_answer(&mut self, now: Timestamp, key: AskId) {
        let Some(question) = self.asks.get(key).filter(|ask| ask.is_answered()) else {
            // It has ended meanwhile, or its answer is being taken out of the record already.
            return;
        };
        let origin = question.origin().clone();
        if let Some(id) = question.open_dialog().cloned() {
            let stream = self.calls.stream_in_session(self.asks.call_of(key));
            self.effects
                .withdraw_dialog(stream, &id, "answered elsewhere");
        }
        match origin {
            Origin::Round { call, .. } => self.collect_round(now, call),
            Origin::Url { call } => self.collect_urls(call),
            // Answered elsewhere before the client's retry, which will use that answer.
            Origin::PassedRound { round, .. } if !self.passed_rounds.is_back(round) => {}
            Origin::Pushed { .. }
            | Origin::PassedRound { .. }
            | Origin::Approval { .. }
            | Origin::Task { .. } => {
                self.asks
                    .begin_delivery(vec![key], &self.calls, &mut self.effects);
            }
        }
    }

    /// Handles answers that were taken out of the record for this delivery. Those that nobody waits for any more, because
    /// their question was withdrawn or their call ended meanwhile, go back to the record.
    pub(crate) fn delivery_begun(&mut self, now: Timestamp, answers: Vec<TakenAnswer>) {
        let mut rounds: Vec<CallId> = Vec::new();
        let mut visits: Vec<(CallId, bool)> = Vec::new();
        let mut decided = Vec::new();
        let mut unsent = Vec::new();
        for answer in answers {
            let TakenAnswer {
                question: key,
                record,
                reply,
            } = answer;
            let Some(question) = self.take_question(key) else {
                unsent.push(record);
                continue;
            };
            match question.origin() {
                Origin::Pushed { id } => {
                    let waits = question
                        .call()
                        .map(|call| Waiting::new(call, question.is_reusable()));
                    let delivery = self.deliveries.begin(vec![record], waits);
                    let frame = reply_frame(id, &reply, question.own_reply(&reply));
                    self.effects.send_to_server(frame, None, delivery);
                }
                Origin::Round { call, .. } => {
                    let waits = self.calls.get_mut(*call);
                    let waits = waits.filter(|call| call.round().is_some());
                    let Some(waits) = waits else {
                        unsent.push(record);
                        continue;
                    };
                    waits.rounds_mut().add_deliveries(Some(record));
                    if let Some(round) = waits.round_mut() {
                        let own = question.own_reply(&reply);
                        let said = own.map(|own| own.result().to_owned()).unwrap_or(reply);
                        round.answer(key, said);
                        rounds.push(*call);
                    }
                }
                Origin::Url { call } => match self.calls.get_mut(*call) {
                    Some(waits) => {
                        waits.rounds_mut().add_deliveries(Some(record));
                        visits.push((*call, is_accept(&reply)));
                    }
                    None => unsent.push(record),
                },
                Origin::PassedRound { entry, round } => {
                    if self.passed_rounds.is_back(*round) {
                        self.retry_goes_on(*round, entry, reply, record);
                    } else {
                        unsent.push(record);
                    }
                }
                Origin::Task { task, entry } => {
                    let (task, entry) = (task.clone(), entry.clone());
                    self.answer_task(task, entry, question.request(), &reply, record);
                }
                Origin::Approval { call } => decided.push((*call, reply, record)),
            }
            self.hold_ends(&question);
        }
        rounds.dedup();
        for call in rounds {
            self.collect_round(now, call);
        }
        self.urls_answered(now, visits);
        for (call, reply, record) in decided {
            self.approval_decided(now, call, &reply, record);
        }
        self.effects.return_unsent(unsent);
    }

    /// Handles answers that could not be taken out, because the record cannot be written: a question that is open again
    /// waits for another answer, and a given answer is taken out later. The calls keep waiting.
    pub(crate) fn delivery_not_written(&mut self, now: Timestamp, questions: &[(AskId, bool)]) {
        for (key, is_open) in questions {
            let Some(question) = self.asks.get_mut(*key) else {
                continue;
            };
            question.not_delivered(*is_open);
            self.timers.cancel(Timer::DeliverAgain(*key));
            if !is_open {
                let at = now.after(DELIVER_AGAIN);
                self.timers.set(at, Timer::DeliverAgain(*key));
            }
        }
    }

    /// Takes an answer out of the record that could not be taken out before.
    pub(crate) fn deliver_again(&mut self, now: Timestamp, key: AskId) {
        self.deliver_answer(now, key);
    }

    /// Handles answers that cannot be taken out of the record.
    pub(crate) fn no_delivery(&mut self, now: Timestamp, keys: &[AskId]) {
        let refusal = ErrorResponse::new(
            -32603,
            "the answer was delivered to another call or ended in the record",
        );
        for key in keys {
            self.question_fails(now, *key, Ending::CallEnded, &refusal);
        }
    }

    /// Handles the end of a question without an action: it expired here (`tell` the record) or in the record.
    pub(crate) fn ended(&mut self, now: Timestamp, key: AskId, ending: Ending, tell: bool) {
        let revision = self.server.revision_or_latest();
        if self.asks.get(key).is_none_or(Ask::has_answer) {
            self.drop_unclaimed(key, ending);
            return;
        }
        let after = self.asks.get(key).map(Ask::open_for);
        let refusal = match ending {
            Ending::TimedOut => {
                let fault = LimitFault::TimedOut {
                    after: after.unwrap_or(self.settings.open_for),
                    seen: false,
                };
                ErrorResponse::fault(fault, revision)
            }
            Ending::ClientFailed => ErrorResponse::new(-32603, "the client could not be asked"),
            Ending::ResponderFailed => ErrorResponse::new(-32603, "nobody could be asked"),
            Ending::WithdrawnByServer
            | Ending::WithdrawnByClient
            | Ending::CallEnded
            | Ending::ServerGone
            | Ending::CallerGone => ErrorResponse::fault(PeerFault::Withdrawn, revision),
        };
        if let Some(ask) = self.end_ask(key, ending, tell) {
            self.report_failure(now, &ask, ending, &refusal);
        }
    }

    /// Handles a question that the same call has taken over at another gateway. The call here ends, unless a client waits for
    /// it: no client comes back for it, and made again it is found there.
    pub(crate) fn taken_over(&mut self, now: Timestamp, key: AskId) {
        if !self.leave_to_retry(now, key) {
            self.ended(now, key, Ending::CallEnded, false);
        }
    }

    /// Leaves a question to the same call that starts again, here or at another gateway. Its call here ends, with its other
    /// questions, which may be next. Returns `false` if a client waits for the call.
    pub(crate) fn leave_to_retry(&mut self, now: Timestamp, key: AskId) -> bool {
        let Some(question) = self.asks.get(key) else {
            return true;
        };
        let is_at_client = matches!(question.origin(), Origin::PassedRound { round, .. } if !self.passed_rounds.is_back(*round));
        let call = question.call();
        let left = call.filter(|call| {
            let call = self.calls.get(*call);
            call.is_some_and(|call| call.stream().is_none())
        });
        let asks = match left {
            Some(call) => self.calls.get(call).map(|call| call.asks().to_vec()),
            None if is_at_client && call.is_none() => Some(vec![key]),
            None => return false,
        };
        for ask in asks.unwrap_or_default() {
            let Some(question) = self.take_question(ask) else {
                continue;
            };
            if let Origin::Pushed { id } = question.origin() {
                let revision = self.server.revision_or_latest();
                let refusal = ErrorResponse::fault(PeerFault::Withdrawn, revision);
                self.effects.tell_server(refusal.to_response(id), None);
            }
            if let Some(record) = question.record() {
                let record = record.to_owned();
                self.effects.push(Effect::Leave { record });
            }
        }
        if let Some(call) = left {
            self.cancel_upstream(call);
            self.drop_unattended(now, call);
        }
        true
    }

    /// Drops a question of a client's round whose answer was not requested; it stays in the record, for the same call
    /// made again.
    fn drop_unclaimed(&mut self, key: AskId, ending: Ending) {
        let unclaimed = self.asks.get(key).is_some_and(|question| {
            question.is_answered()
                && matches!(question.origin(), Origin::PassedRound { round, .. } if !self.passed_rounds.is_back(*round))
        });
        if unclaimed
            && ending == Ending::TimedOut
            && let Some(record) = self
                .take_question(key)
                .and_then(|question| question.record().map(str::to_owned))
        {
            self.effects.push(Effect::End { record, ending });
        }
    }

    /// Ends a question without an answer, and tells the waiting party.
    pub(crate) fn question_fails(
        &mut self,
        now: Timestamp,
        key: AskId,
        ending: Ending,
        refusal: &ErrorResponse,
    ) {
        if let Some(ask) = self.end_ask(key, ending, true) {
            self.report_failure(now, &ask, ending, refusal);
        }
    }

    /// Tells the party that waits for a question that it has ended without an answer.
    fn report_failure(
        &mut self,
        now: Timestamp,
        ask: &Ask,
        ending: Ending,
        refusal: &ErrorResponse,
    ) {
        match ask.origin() {
            Origin::Pushed { id } => self.effects.tell_server(refusal.to_response(id), None),
            Origin::Round { call, .. } | Origin::Url { call } => self.fail(now, *call, refusal),
            Origin::PassedRound { round, .. } => {
                self.retry_fails(*round, refusal);
                if let Some(call) = ask.call() {
                    self.fail(now, call, refusal);
                }
            }
            Origin::Approval { call } => {
                self.approval_fails(*call, ending, refusal.message());
            }
            Origin::Task { task, entry } => {
                self.task_questions.failed(task, entry, refusal.message());
            }
        }
    }

    /// Ends a question, and tells only the record, and the client if it was asked.
    pub(crate) fn drop_question(&mut self, key: AskId, ending: Ending) -> Option<Ask> {
        self.end_ask(key, ending, true)
    }

    /// Ends a question, and tells the record if `tell` is set.
    pub(crate) fn end_ask(&mut self, key: AskId, ending: Ending, tell: bool) -> Option<Ask> {
        let stream = self.calls.stream_in_session(self.asks.call_of(key));
        let question = self.take_question(key)?;
        if let Some(id) = question.open_dialog() {
            let notice = Cancelled {
                request_id: Some(id.clone()),
                reason: None,
            };
            self.effects.tell_client(stream, notice.to_message(), false);
        }
        if let Some(record) = question.record().filter(|_| tell) {
            let record = record.to_owned();
            self.effects.push(Effect::End { record, ending });
        }
        self.hold_ends(&question);
        Some(question)
    }

    /// Ends every question of a call that ends. One that may belong to another call is reassigned to it. If the server
    /// ended the call, its remaining questions were asked outside any call: the server is told, so that it does not
    /// wait forever. After a call that the client gave up, the server has to clean up itself; it is told about a
    /// question that may, although not likely, be of another call.
    pub(crate) fn end_questions_of(&mut self, now: Timestamp, call: CallId, ending: Ending) {
        let (open, left) = match self.calls.get_mut(call) {
            Some(call) => (call.asks().to_vec(), call.take_left_questions()),
            None => return,
        };
        for record in left {
            self.effects.push(Effect::End { record, ending });
        }
        for key in open {
            // The other calls wait for answers of their own, so the question is hardly theirs.
            let is_left = ending == Ending::WithdrawnByClient
                && self.asks.get(key).is_some_and(Ask::is_likely_of_its_call)
                && self
                    .asks
                    .get(key)
                    .is_some_and(|ask| !ask.others().is_empty());
            if !is_left && self.reassign(now, key, call) {
                continue;
            }
            let question = self.drop_question(key, ending);
            if (is_left || ending == Ending::CallEnded)
                && let Some(Origin::Pushed { id }) =
                    question.map(|question| question.origin().clone())
            {
                let revision = self.server.revision_or_latest();
                let refusal = ErrorResponse::fault(PeerFault::Withdrawn, revision);
                self.effects.tell_server(refusal.to_response(&id), None);
            }
        }
    }

    pub(crate) fn take_question(&mut self, key: AskId) -> Option<Ask> {
        let question = self.asks.remove(key)?;
        if let Origin::PassedRound { round, .. } = question.origin() {
            self.passed_rounds.remove_ask(*round, key);
        }
        self.timers.cancel(Timer::AskExpired(key));
        self.timers.cancel(Timer::DeliverAgain(key));
        if let Some(call) = question.call().and_then(|call| self.calls.get_mut(call)) {
            call.remove_ask(key);
        }
        for other in question.others() {
            if let Some(call) = self.calls.get_mut(*other) {
                call.remove_possible_ask(key);
            }
        }
        Some(question)
    }
}

/// Returns the response with the recorded answer: in the client's own spelling, if the client was the first.
fn reply_frame(id: &Id, reply: &str, own: Option<&ClientReply>) -> String {
    if let Some(frame) = own.and_then(ClientReply::as_it_came) {
        return frame.to_owned();
    }
    let result = own.map_or(reply, ClientReply::result);
    match serde_json::from_str::<&RawValue>(result) {
        Ok(result) => message::result(id, result),
        Err(_) => {
            ErrorResponse::new(-32603, "the recorded answer could not be read").to_response(id)
        }
    }
}

fn is_accept(reply: &str) -> bool {
    let reply: Result<serde_json::Value, _> = serde_json::from_str(reply);
    reply.is_ok_and(|reply| reply["action"] == "accept")
}
