//! Reports of the transport: the server has accepted answers, has refused them, or it is unknown.

use crate::frame_edit::ErrorResponse;
use crate::parts::deliveries::Waiting;
use crate::{DeliveryId, Effect, Relay, Timestamp};

impl Relay {
    /// Handles answers that the server has refused and not taken: they are kept for the next call, unless no call can
    /// request them or this was the second time.
    pub(crate) fn refused(&mut self, now: Timestamp, key: DeliveryId, why: String) {
        let Some(delivery) = self.deliveries.end(key) else {
            // The transport has reported its end before: the first report counts.
            return;
        };
        let (waits, records) = (delivery.waits(), delivery.into_records());
        let next = if waits.is_some_and(Waiting::is_reusable) {
            "The answer is kept: make the call again to deliver it"
        } else {
            "The answer is not kept: make the call again, and the person is asked again"
        };
        let words = format!(
            "the server {} did not accept the person's answer: {why}. {next}",
            self.shown_server()
        );
        self.effects.push(Effect::DeliveryRefused { records, why });
        self.ends_waiting(now, waits, &words);
    }

    /// Handles answers whose delivery is unknown: they are not sent again.
    pub(crate) fn lost(&mut self, now: Timestamp, key: DeliveryId, why: String) {
        let Some(delivery) = self.deliveries.end(key) else {
            // The transport has reported its end before: the first report counts.
            return;
        };
        let (waits, records) = (delivery.waits(), delivery.into_records());
        let words = format!(
            "it is not known whether the server {} has the person's answer: {why}. \
             The answer is not sent again",
            self.shown_server()
        );
        self.effects.push(Effect::InDoubt { records, why });
        self.ends_waiting(now, waits, &words);
    }

    /// Ends a call that cannot continue at the server, with this message, and tells the server.
    fn ends_waiting(&mut self, now: Timestamp, waits: Option<Waiting>, words: &str) {
        if let Some(key) = waits.map(Waiting::call) {
            self.cancel_upstream(key);
            self.fail(now, key, &ErrorResponse::new(-32603, words));
        }
    }
}
