//! Answers in delivery to the server: each is delivered when the transport reports that the server has accepted it.

use rustc_hash::FxHashMap;

use crate::parts::effect_queue::EffectQueue;
use crate::{CallId, DeliveryId, Effect};

/// Answers that were sent in one frame.
pub(crate) struct Delivery {
    records: Vec<String>,
    waits: Option<Waiting>,
}

/// A call that waits at the server for the answers.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    call: CallId,
    reusable: bool,
}

impl Waiting {
    /// Creates a waiting call; `reusable` if the answers are kept for the next call when the server refuses them.
    pub(crate) const fn new(call: CallId, reusable: bool) -> Self {
        Self { call, reusable }
    }

    /// Returns the call.
    pub(crate) const fn call(self) -> CallId {
        self.call
    }

    /// Returns `true` if the answers are kept for the next call when the server refuses them.
    pub(crate) const fn is_reusable(self) -> bool {
        self.reusable
    }
}

impl Delivery {
    /// Returns the call that waits for the answers at the server; `None` if the frame makes the call again, which gets
    /// its own response.
    pub(crate) const fn waits(&self) -> Option<Waiting> {
        self.waits
    }

    /// Returns the records of the answers.
    pub(crate) fn into_records(self) -> Vec<String> {
        self.records
    }
}

/// The frames with answers whose acceptance was not reported yet.
#[derive(Default)]
pub(crate) struct Deliveries {
    by_key: FxHashMap<DeliveryId, Delivery>,
    last: u64,
}

impl Deliveries {
    /// Begins the delivery of these records' answers in a frame; `None` if there are none.
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

    /// Records that the server has accepted the answers, or that no call can request them: they count as delivered.
    pub(crate) fn accepted(&mut self, delivery: DeliveryId, effects: &mut EffectQueue) {
        if let Some(delivery) = self.end(delivery) {
            let records = delivery.into_records();
            effects.push(Effect::Delivered { records });
        }
    }

    /// Ends the delivery of an approval that was not sent, if there is one: it is kept for the same call made again.
    pub(crate) fn end_unsent(&mut self, delivery: Option<DeliveryId>, effects: &mut EffectQueue) {
        if let Some(delivery) = delivery.and_then(|delivery| self.end(delivery)) {
            let why = "the call ended before it was made".to_owned();
            let records = delivery.into_records();
            effects.push(Effect::DeliveryRefused { records, why });
        }
    }

    /// Ends a delivery whose outcome was reported. Returns `None` if it was ended before.
    pub(crate) fn end(&mut self, delivery: DeliveryId) -> Option<Delivery> {
        self.by_key.remove(&delivery)
    }
}
