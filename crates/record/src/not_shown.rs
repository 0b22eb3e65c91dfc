//! Questions that were refused because no person could be shown their form: they have no row, only an event of the audit.

use std::sync::Arc;

use mcp_elicit_core::question::CallSummary;

use crate::audit::{EntryText, Event, Member};
use crate::{Applied, Record, SessionIdentity};

impl Record {
    /// Adds to the audit that a question of this session was refused: its server, its call if known, the beginning of its
    /// message, and the reason. A server can cause this at will, so only a [number per minute](crate::refusals) is
    /// recorded.
    pub fn note_not_shown(
        self: &Arc<Self>,
        who: &SessionIdentity,
        call: Option<&CallSummary>,
        message: &str,
        why: &str,
    ) -> Applied<()> {
        let now = self.now();
        let Some(left_out) = self.not_shown.count(now) else {
            return Applied::Now(());
        };
        let entry = EntryText::new(Event::Refused, now)
            .with(Member::Server, who.server.name.as_str())
            .with(Member::Principal, who.caller.as_str())
            .with_call(call.map(|call| (call.kind, call.target.as_str())))
            .with(Member::Message, message)
            .with(Member::Reason, why)
            .with_some(Member::LeftOut, Some(left_out).filter(|&count| count > 0));
        let record = Arc::clone(self);
        Applied::pending(async move { record.note(entry).await })
    }
}
