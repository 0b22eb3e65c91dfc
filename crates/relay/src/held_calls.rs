//! Calls that wait for a person: kept alive with progress, handed back after a time limit, resumed when made again.

use crate::RelaySettings;
use crate::call_tasks::stopped_frame;
use crate::era::Client;
use std::time::Duration;

use mcp_elicit_core::wire::ProgressNotification;
use serde_json::Number;

use crate::decisions::VoteProgress;
use crate::frame_edit::ErrorResponse;
use crate::hand_back::{self, WaitsFor};
use crate::parts::asks::Ask;
use crate::parts::calls::Call;
use crate::{AskId, CallId, ClientFrame, Effect, Relay, StreamId, Timer, Timestamp};

/// Keep-alive progress increases in steps this small, so that the server's own progress stays ahead.
const STEP: f64 = 0.001;
/// The shortest timeout of a client that is believed.
const LEAST_WAIT: Duration = Duration::from_millis(500);

/// The least time after which a call is looked at for which no client has come back.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

impl Relay {
    /// Handles a timeout of the client. If the call waits for a person, it keeps waiting, to be made again; otherwise
    /// returns `false`.
    pub(crate) fn client_timed_out(&mut self, now: Timestamp, key: CallId) -> bool {
        let call = self.calls.get(key);
        let waits = call.and_then(|call| Some((call.waits_for_person_since()?, call.is_queued())));
        let Some((since, queued)) = waits else {
            return false;
        };
        let waited = now.since(since);
        learn_wait(&self.settings, &self.client, waited);
        if queued {
            self.end_in_time(now, key);
        }
        self.detach(now, key);
        self.gives_up(key);
        true
    }

    /// Records that the client of this call, which is detached, has given it up: other calls do not wait for it.
    pub(crate) fn gives_up(&mut self, key: CallId) {
        if let Some(call) = self.calls.get_mut(key) {
            call.give_up();
            self.turns.queue_mut().recheck();
        }
    }

    /// Sets the end of a call that is handed back while it waits for its turn: the server does not know of it, so
    /// nothing else ends it.
    pub(crate) fn end_in_time(&mut self, now: Timestamp, key: CallId) {
        let at = now.after(self.settings.open_for);
        self.timers.set(at, Timer::DropUnattended(key));
    }

    /// Holds the call, which has a question open to people.
    pub(crate) fn hold(&mut self, now: Timestamp, key: CallId) {
        self.own_tasks.touch_of(self.calls.get(key));
        let Some(call) = self.calls.get(key) else {
            // It has ended, so no client waits for it.
            return;
        };
        let hold = hold_time(&self.settings, &self.client, now, call);
        if call.stream().is_none() || !self.holds.begin(now, key, hold, &mut self.timers) {
            return;
        }
        self.calls.learn_token(key, &self.progress_seen);
        self.learn_output_schema(now, key);
        self.waiting_calls.add_call(key, self.calls.get_mut(key));
        self.keep_alive(now, key);
    }

    /// Holds the call, which has this question open to people, and every other call that the question may belong to.
    pub(crate) fn hold_all(&mut self, now: Timestamp, question: AskId, call: CallId) {
        self.hold(now, call);
        let question = self.asks.get(question);
        for other in question.map_or_else(Vec::new, |question| question.others().to_vec()) {
            if self.calls.may_ask(other) {
                self.hold(now, other);
            }
        }
    }

    /// Handles the end of a question: calls that it belonged to, or may have belonged to, are no longer held if it was
    /// their last open to people.
    pub(crate) fn hold_ends(&mut self, question: &Ask) {
        for key in question.candidates() {
            self.own_tasks.touch_of(self.calls.get(key));
            if self.holds.is_held(key) && !self.asks.waits_for_people(self.calls.get(key)) {
                self.holds.end(key, &mut self.timers);
            }
        }
    }

    /// Tells the client that the call is still in progress, if the client gave a progress token.
    pub(crate) fn keep_alive(&mut self, now: Timestamp, key: CallId) {
        let text = match (self.approval_progress(key), self.link_of(key)) {
            (Some((_, progress)), _) => hand_back::waiting_words(&progress),
            (None, Some(link)) => format!("Waiting for a person to answer at {link}"),
            (None, None) => "Waiting for a person to answer".to_owned(),
        };
        let is_held = self.holds.is_held(key) && !self.calls.is_of_task(key);
        let call = self.calls.get_mut(key).filter(|_| is_held);
        let sign = call.and_then(|call| {
            let (stream, token) = (call.stream()?, call.progress().token()?.clone());
            let progress = call.progress_mut().step(STEP).and_then(Number::from_f64)?;
            let message = Some(text);
            let sign = ProgressNotification {
                token,
                progress,
                total: None,
                message,
            };
            Some((stream, sign))
        });
        let Some((stream, sign)) = sign else {
            // The client has named no token, is gone, or was told of the highest number that there is.
            return;
        };
        self.effects.tell_client(stream, sign.to_message(), false);
        self.holds.keep_alive_again(now, key, &mut self.timers);
    }

    /// Returns the address at which a person can answer the question that the call waits for: its own, that of an earlier
    /// call, or that of the same call in another session.
    pub(crate) fn link_of(&self, key: CallId) -> Option<String> {
        let link = |key| {
            self.asks
                .of_call(self.calls.get(key))
                .find_map(|question| question.link().map(str::to_owned))
        };
        if self.calls.get(key).is_some_and(Call::is_queued) {
            return self.calls.asking().map(|(key, _)| key).min().and_then(link);
        }
        link(key).or_else(|| self.unattended.followed_link(key))
    }

    /// Hands back a call that a person has not answered yet: the client gets a result with the address for answers, and
    /// the call waits for it.
    pub(crate) fn hand_back(&mut self, now: Timestamp, key: CallId) {
        if self.calls.is_of_task(key) || self.hand_back_as_task(now, key) {
            return;
        }
        let Some((stream, frame)) = self.hand_back_frame(key) else {
            // Its client is gone, or the call cannot be shown: then it goes on to wait.
            return;
        };
        if self.calls.get(key).is_some_and(Call::is_queued) {
            self.end_in_time(now, key);
        }
        self.detach(now, key);
        self.effects.tell_client(stream, frame, true);
    }

    /// Hands back every held call at once, to be made again by the same caller.
    pub(crate) fn hand_back_all(&mut self, now: Timestamp) {
        for key in self.holds.all() {
            self.hand_back(now, key);
        }
    }

    /// Detaches the client from the call. The same call made again finds it, in another session of the caller too.
    pub(crate) fn detach(&mut self, now: Timestamp, key: CallId) {
        if self.leave_approval(key) {
            return;
        }
        if self.leave_unattended(now, key) {
            self.keep_call(key);
        }
    }

    /// Leaves the call waiting for its client; the same call made again in this session finds it. Returns `false` if
    /// nothing can find it.
    pub(crate) fn leave_unattended(&mut self, now: Timestamp, key: CallId) -> bool {
        self.holds.end(key, &mut self.timers);
        self.turns.queue_mut().leave(key);
        self.calls.detach(key);
        let call = self.calls.get_mut(key);
        let Some(digest) = call
            .and_then(Call::summary)
            .map(|calling| calling.digest.clone())
        else {
            return false;
        };
        self.unattended.add(digest, key);
        self.timers.cancel(Timer::Quiet(key));
        self.look_later(now, key);
        true
    }

    /// Looks at a call without a waiting client after the time for which its result would be kept, or longer.
    fn look_later(&mut self, now: Timestamp, key: CallId) {
        let at = now.after(self.settings.keep_results.max(ABANDONED));
        self.timers.set(at, Timer::Quiet(key));
    }

    /// Ends a call at the server for which no client has come back, and in which nothing was asked for a while: its server may
    /// never end it, and it holds the room of other calls. Nobody would get its result either.
    pub(crate) fn end_if_quiet(&mut self, now: Timestamp, key: CallId) {
        let call = self.calls.get(key);
        let Some(call) = call.filter(|call| call.is_upstream() && call.stream().is_none()) else {
            // Its client is back, or another timer ends it.
            return;
        };
        let asks = call.may_wait_for_answer() || self.approvals.has(key);
        let was_quiet = self.unattended.set_quiet(key, !asks);
        if asks || !was_quiet {
            self.look_later(now, key);
            return;
        }
        tracing::info!(server = %self.settings.server, "a call for which no client came back was ended");
        self.cancel_upstream(key);
        self.drop_unattended(now, key);
    }

    /// Hands back every held call at once, because the gateway is about to stop. A call whose answer is on its way to the
    /// server may still end.
    pub(crate) fn drain(&mut self, now: Timestamp) {
        for key in self.holds.all() {
            if !self.has_answer_coming(key) {
                self.hand_back_before_stop(now, key);
            }
        }
    }

    /// Returns `true` if all questions of a call are answered, and it had some.
    fn has_answer_coming(&self, key: CallId) -> bool {
        let waits = |ask: &Ask| ask.is_open() || ask.is_recording();
        let mut asks = self.asks.of_call(self.calls.get(key)).peekable();
        asks.peek().is_some() && !asks.any(waits)
    }

    /// Hands back every call that is still held, and ends every other one, because the gateway stops.
    pub(crate) fn stop(&mut self, now: Timestamp) {
        for key in self.holds.all() {
            self.hand_back_before_stop(now, key);
        }
        self.end_waiting("the gateway was stopped");
    }

    /// Hands back a call. The same call made again finds its questions at another gateway, also before this one has ended.
    fn hand_back_before_stop(&mut self, now: Timestamp, key: CallId) {
        let is_of_task = self.calls.is_of_task(key);
        let told = if is_of_task {
            self.calls.get(key).and_then(stopped_frame)
        } else {
            self.hand_back_frame(key)
        };
        let Some((stream, frame)) = told else {
            return;
        };
        self.holds.end(key, &mut self.timers);
        self.turns.queue_mut().leave(key);
        self.calls.detach(key);
        let asks = self
            .calls
            .get(key)
            .is_some_and(|call| !call.asks().is_empty());
        if !is_of_task && asks && !self.leave_approval(key) {
            self.leave_questions_of(now, key);
            self.cancel_upstream(key);
            self.remove_call(key);
        }
        self.effects.tell_client(stream, frame, true);
    }

    /// Tells waiting clients that no answer will come. Questions stay for the same call made again.
    pub(crate) fn end_waiting(&mut self, what: &str) {
        let why = format!("{what} while the server worked on this");
        for key in self.calls.keys(|call| call.stream().is_some()) {
            self.holds.end(key, &mut self.timers);
            self.turns.queue_mut().leave(key);
            if let Some(stream) = self.calls.detach(key)
                && let Some(call) = self.calls.get(key)
            {
                let frame = ErrorResponse::new(-32603, why.clone()).to_response(call.client_id());
                self.effects.tell_client(stream, frame, true);
            }
        }
        self.reject_waiting(&format!("was left: {what}"));
    }

    pub(crate) fn hand_back_frame(&mut self, key: CallId) -> Option<(StreamId, String)> {
        let link = self.link_of(key);
        let waiting = self.approval_progress(key);
        let server = self.shown_server();
        let call = self.calls.get_mut(key)?;
        let (stream, id, kind) = (call.stream()?, call.client_id().clone(), call.kind()?);
        let target = call.summary()?.target.clone();
        let waits = if call.is_queued() {
            WaitsFor::OtherCall
        } else if call.asks().is_empty() {
            WaitsFor::PossibleQuestion
        } else {
            WaitsFor::OwnQuestion
        };
        let may_have_schema = self.catalog.may_have_output_schema(&target);
        let text = match &waiting {
            Some((question, progress)) => {
                let mark = hand_back::waiting_mark(question, progress);
                let text = hand_back::approval_words(kind, &target, progress, link.as_deref());
                let frame = self
                    .client
                    .handed_back(&id, kind, text, may_have_schema, Some(mark));
                return Some((stream, frame));
            }
            None => hand_back::words(&server, kind, &target, waits, link.as_deref()),
        };
        let frame = self
            .client
            .handed_back(&id, kind, text, may_have_schema, None);
        Some((stream, frame))
    }

    /// Returns the question in which people approve this call, and the state of their vote; `None` if it is not known.
    pub(crate) fn approval_progress(&self, key: CallId) -> Option<(String, VoteProgress)> {
        if !self.approvals.has(key) {
            return None;
        }
        let decisions = self.settings.decisions.as_ref()?;
        let question = self
            .asks
            .of_call(self.calls.get(key))
            .find_map(Ask::record)?;
        Some((question.to_owned(), decisions.progress(question)?))
    }

    /// Resumes a call that the client has made again.
    pub(crate) fn resume(&mut self, key: CallId, frame: ClientFrame<'_>) {
        let (id, now) = (frame.id(), frame.at());
        self.learn_from_retry(key, *frame);
        if !self.calls.attach(key, now, frame.stream(), id) {
            return;
        }
        self.describe_client(key, frame);
        self.timers.cancel(Timer::DropUnattended(key));
        self.effects.push(Effect::DropCall { call: key });
        if self.calls.get(key).is_some_and(Call::is_finished) {
            self.deliver_finished(key);
        } else if self.calls.get(key).is_some_and(Call::is_queued) {
            self.turns.queue_mut().come_back(key);
            self.hold_queued(now, key);
        } else {
            // The client is asked again at once, even if other people are asked too.
            self.present_round(now, key);
            if self.asks.waits_for_people(self.calls.get(key)) || self.unattended.follows(key) {
                self.hold(now, key);
            }
        }
    }
}

/// Returns the time that a call is held for a person from now on. It ends before the client's known timeout, which runs
/// from the call and not from the question.
pub(crate) fn hold_time(
    settings: &RelaySettings,
    client: &Client,
    now: Timestamp,
    call: &Call,
) -> Duration {
    let name = client.name().unwrap_or_default();
    let known = client.profile_wait();
    let Some(end) = settings.client_waits.before_end(&name, known) else {
        return settings.hold;
    };
    let waited = call.waited_for_since().map(|since| now.since(since));
    let left = end.saturating_sub(waited.unwrap_or_default());
    left.min(settings.hold)
}

/// Records that the client gives up after this time. A shorter one is not believed.
pub(crate) fn learn_wait(settings: &RelaySettings, client: &Client, waited: Duration) {
    if waited >= LEAST_WAIT {
        let name = client.name().unwrap_or_default();
        settings.client_waits.learn(&name, waited);
    }
}
