//! The reports about responses whose id is not that of their request: a few per session, so that no server fills the log.

/// The most reports about ids that no request has.
const REPORTS: u32 = 8;

/// The reports so far.
#[derive(Default)]
pub(crate) struct OddIds {
    respelled: bool,
    unmatched: u32,
}

impl OddIds {
    /// Returns `true` for the first id that is written in another JSON type.
    pub(crate) fn is_first_respelled(&mut self) -> bool {
        !std::mem::replace(&mut self.respelled, true)
    }

    /// Returns `true` if an id that no request has is to be reported.
    pub(crate) fn reports_unmatched(&mut self) -> bool {
        self.unmatched = self.unmatched.saturating_add(1);
        self.unmatched <= REPORTS
    }
}
