//! The time for which a call waits for its turn: none, if its question can be asked with all calls that may have asked it.

use std::collections::BTreeSet;

use mcp_elicit_core::wire::Capability;

use crate::parts::calls::Call;
use crate::parts::turns::{Rule, Sharing, TurnWait};
use crate::{Audience, CallId, Relay, Timestamp};

/// The groups of calls that are decided alike for every question, of all calls in which the server may be asking now.
#[derive(Default)]
pub(crate) struct Groups {
    /// At most two of them.
    known: BTreeSet<String>,
    /// `true` if the group of a call is unknown.
    has_unknown: bool,
}

impl Groups {
    fn add(&mut self, group: &str) {
        if self.known.len() < 2 {
            self.known.insert(group.to_owned());
        }
    }

    /// Returns `true` if every question is decided for a call of this group as for all others.
    fn are_all(&self, group: &str) -> bool {
        !self.has_unknown && self.known.iter().all(|known| known == group)
    }
}

impl Relay {
    /// Returns the groups of the calls in which the server may be asking, without `key`. They are only read if an
    /// operator decides about questions.
    pub(crate) fn groups_beside(&mut self, now: Timestamp, key: Option<CallId>) -> Groups {
        let mut groups = Groups::default();
        let Some(decisions) = self.settings.decisions.clone() else {
            return groups;
        };
        let decisions = decisions.at(now);
        self.calls.read_asking();
        for (_, call) in self.calls.asking().filter(|(other, _)| Some(*other) != key) {
            match call.known_summary() {
                Some(summary) => groups.add(&decisions.group_of(summary)),
                None => groups.has_unknown = true,
            }
        }
        for summary in self.past_calls.all() {
            groups.add(&decisions.group_of(summary));
        }
        groups.has_unknown |= self.past_calls.is_incomplete();
        groups
    }

    /// Returns the time that a call of the queue has waited, and the times after which it shares the turn of others.
    pub(crate) fn turn_wait_of(
        &mut self,
        now: Timestamp,
        key: CallId,
        rule: Rule,
        groups: &Groups,
    ) -> TurnWait {
        let sharing = self.sharing_of(now, key, rule, groups);
        let since = self.calls.get(key).and_then(Call::queued_since);
        let mut since = since.unwrap_or(now);
        if sharing.waits_for_movement() {
            // It keeps its place as long as calls end or questions are answered.
            since = since.max(self.turns.queue().still_since());
        }
        TurnWait {
            waited: now.since(since),
            sharing,
        }
    }

    /// Returns the times after which a call shares the turn of others.
    ///
    /// A question of several possible calls is decided for all of them, and is never asked in the result of one. So the
    /// call waits if a rule could decide differently about the others, or if its own client would be asked in its
    /// result.
    pub(crate) fn sharing_of(
        &mut self,
        now: Timestamp,
        key: CallId,
        rule: Rule,
        groups: &Groups,
    ) -> Sharing {
        let exact = Sharing::after(self.settings.turn_wait);
        if self.is_decided_differently(now, key, groups) {
            return exact;
        }
        if rule != Rule::Single {
            return Sharing::AT_ONCE;
        }
        let call = self.calls.get(key);
        let is_asked = self.client.capability(call) != Capability::NONE;
        match self.settings.answer_with {
            Audience::Client if is_asked && self.settings.decisions.is_none() => Sharing::NEVER,
            Audience::Auto | Audience::Client if is_asked => exact,
            Audience::Auto | Audience::Client | Audience::People => {
                Sharing::AFTER_OTHER_CONNECTIONS
            }
        }
    }

    /// Returns `true` if an operator may decide differently about a question of this call than of the others.
    fn is_decided_differently(&mut self, now: Timestamp, key: CallId, groups: &Groups) -> bool {
        let Some(decisions) = self.settings.decisions.clone() else {
            return false;
        };
        let summary = self.calls.get_mut(key).and_then(Call::summary);
        summary.is_none_or(|summary| !groups.are_all(&decisions.at(now).group_of(summary)))
    }
}
