//! Answers on their way to the server: each is delivered when the transport says that the server has accepted it.

use std::collections::HashMap;

use crate::frame_edit::ErrorResponse;
use crate::{CallId, DeliveryId, Timestamp};
use crate::{Effect, Relay};

/// Answers that went out in one frame.
struct Delivery {
    /// Their records.
    records: Vec<String>,
    /// The call that waits for them at the server; `None` where the frame makes the call again, whose response comes by
    /// itself.
    waits: Option<Waiting>,
}

/// A call that waits at the server for the answers.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) call: CallId,
    /// `true` if the answers are for the next call when the server refuses them.
    pub(crate) reusable: bool,
}

/// The frames with answers whose acceptance was not reported yet.
#[derive(Default)]
pub(crate) struct Deliveries {
    by_key: HashMap<DeliveryId, Delivery>,
    last: u64,
}

impl Deliveries {
    /// Notes that a frame is about to carry the answers of these records; `None` where there are none.
    pub(crate) fn begin(
        &mut self,
        records: Vec<String>,
        waits: Option<Waiting>,
    ) -> Option<DeliveryId> {
        if records.is_empty() {
            return None;
        }
        self.last += 1;
        let key = DeliveryId(self.last);
        self.by_key.insert(key, Delivery { records, waits });
        Some(key)
    }
}

impl Relay {
    /// The server has accepted the answers.
    pub(crate) fn accepted(&mut self, key: DeliveryId) {
        if let Some(Delivery { records, .. }) = self.deliveries.by_key.remove(&key) {
            self.effects.push_back(Effect::Delivered { records });
        }
    }

    /// The server has refused the answers, and has not taken them: they are kept for the next call, unless none can have
    /// them or this was the second time.
    pub(crate) fn refused(&mut self, now: Timestamp, key: DeliveryId, why: String) {
        let Some(Delivery { records, waits }) = self.deliveries.by_key.remove(&key) else {
            return;
        };
        let next = if waits.is_some_and(|waits| waits.reusable) {
            "The answer is kept: make the call again to deliver it"
        } else {
            "The answer is not kept: make the call again, and the person is asked again"
        };
        let words = format!(
            "the server {} did not accept the person's answer: {why}. {next}",
            self.shown_server()
        );
        self.effects
            .push_back(Effect::DeliveryRefused { records, why });
        self.ends_waiting(now, waits, &words);
    }

    /// Nobody can say whether the server has the answers: they are not sent again.
    pub(crate) fn lost(&mut self, now: Timestamp, key: DeliveryId, why: String) {
        let Some(Delivery { records, waits }) = self.deliveries.by_key.remove(&key) else {
            return;
        };
        let words = format!(
            "it is not known whether the server {} has the person's answer: {why}. \
             The answer is not sent again",
            self.shown_server()
        );
        self.effects.push_back(Effect::InDoubt { records, why });
        self.ends_waiting(now, waits, &words);
    }

    /// The call cannot go on at the server, which is told, and ends with these words.
    fn ends_waiting(&mut self, now: Timestamp, waits: Option<Waiting>, words: &str) {
        let call = waits.map(|waits| waits.call);
        let Some(key) = call.filter(|key| self.calls.get(*key).is_some()) else {
            return;
        };
        self.cancel_upstream(key);
        self.fail(now, key, &ErrorResponse::new(-32603, words));
    }
}
