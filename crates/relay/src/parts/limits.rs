//! Limits on the questions of one session: size, number and rate.

use mcp_elicit_core::fault::LimitFault;
use mcp_elicit_core::rate::RateWindow;
use mcp_elicit_core::wire::{ElicitRequest, Revision};

use crate::Timestamp;
use crate::frame_edit::ErrorResponse;
use crate::parts::asks::{Asks, NewAsk};
use crate::settings::RelaySettings;

/// The limits, and the times of the last questions.
pub(crate) struct Limits {
    pending: Option<usize>,
    per_minute: Option<u32>,
    message_bytes: usize,
    pending_bytes: usize,
    asked: RateWindow<Timestamp>,
    /// The reported refusals of questions that bypass these limits.
    reported: RateWindow<Timestamp>,
}

impl Limits {
    /// Creates the limits of these settings.
    pub(crate) fn new(settings: &RelaySettings) -> Self {
        Self {
            pending: settings.pending,
            per_minute: settings.per_minute,
            message_bytes: settings.message_bytes,
            pending_bytes: settings.pending_bytes,
            asked: RateWindow::default(),
            reported: RateWindow::default(),
        }
    }

    /// Admits and counts a question with a readable message, beside the open ones.
    pub(crate) fn admit(
        &mut self,
        now: Timestamp,
        request: &ElicitRequest,
        open: &Asks,
        revision: Revision,
    ) -> Result<(), ErrorResponse> {
        let (message, limit) = (request.message().len(), self.message_bytes);
        if message > limit {
            let why = format!(
                "the message of a question has {message} bytes and at most {limit} are allowed"
            );
            return Err(ErrorResponse::new(-32602, why));
        }
        self.admit_number(now, open)
            .map_err(|fault| ErrorResponse::fault(fault, revision))
    }

    /// Admits a question with the size of its kept parts, beside the open ones.
    pub(crate) fn admit_size(&self, ask: &NewAsk, open: &Asks) -> Result<(), ErrorResponse> {
        let limit = self.pending_bytes;
        if open.bytes().saturating_add(ask.size()) > limit {
            let why =
                format!("the questions that are pending have too many bytes: {limit} are allowed");
            return Err(ErrorResponse::new(-32000, why));
        }
        Ok(())
    }

    /// Returns `true` if the refusal of a question that was not admitted here may be reported: reports have the same
    /// limit per minute as questions.
    pub(crate) fn admit_report(&mut self, now: Timestamp) -> bool {
        let Some(limit) = self.limit() else {
            return true;
        };
        let since = |at| now.since(at);
        self.reported.admit(limit, now, since).is_ok()
    }

    fn limit(&self) -> Option<usize> {
        let limit = self.per_minute?;
        Some(usize::try_from(limit).unwrap_or(usize::MAX))
    }

    fn admit_number(&mut self, now: Timestamp, open: &Asks) -> Result<(), LimitFault> {
        if let Some(limit) = self.pending
            && open.len() >= limit
        {
            return Err(LimitFault::TooManyPending { limit });
        }
        let Some(limit) = self.limit() else {
            return Ok(());
        };
        self.asked
            .admit(limit, now, |at| now.since(at))
            .map_err(|retry_after| LimitFault::RateLimited { retry_after })
    }
}
