//! Events of the rules for the audit: files that are in force or were rejected, refusals, and approvals.

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::wire::CallKind;

use crate::audit::{Entry, Event};
use crate::{Record, RecordError};

/// An event of the rules for the audit, beside those of questions.
#[derive(Clone, Debug)]
pub enum RulesEvent {
    /// The rules of a file are in force: the gateway was started, or its owner sent SIGHUP.
    Loaded {
        /// The digest of the rules.
        digest: String,
        /// The digest of the rules before, where the gateway had some.
        before: Option<String>,
        /// The number of rules.
        rules: usize,
        /// The settings of the file that differ from those in force, and need a restart.
        need_restart: Vec<String>,
    },
    /// A file that was read again has mistakes: the rules before stay in force.
    Rejected {
        /// The digest of the rules that stay in force.
        digest: String,
    },
    /// A rule refused a call or a question.
    Refused {
        /// The rule.
        rule: String,
        /// The server.
        server: String,
        /// The caller.
        principal: String,
        /// The call, where it is known.
        call: Option<(CallKind, String)>,
    },
    /// People have approved a call.
    Approved {
        /// The rule.
        rule: String,
        /// The server.
        server: String,
        /// The caller.
        principal: String,
        /// The call.
        call: (CallKind, String),
        /// The question in which they did.
        question: Option<String>,
        /// JSON Pointers to the arguments that were changed.
        edited: Vec<String>,
        /// Until when the approval serves the same call made again.
        until: Option<Timestamp>,
    },
    /// A call was made by an approval of the same call a short while ago.
    GrantUsed {
        /// The rule.
        rule: String,
        /// The server.
        server: String,
        /// The caller.
        principal: String,
        /// The call.
        call: (CallKind, String),
        /// The question in which people approved it.
        question: Option<String>,
    },
    /// Approvals that were good for a while count no more: their rule was changed or is gone.
    GrantVoid {
        /// The rule.
        rule: String,
        /// The number of approvals.
        grants: usize,
    },
}

/// The actor of what the owner of the state folder does: starts the gateway, and has it read its file again.
const OWNER: &str = "owner";

impl RulesEvent {
    /// Returns the event of the audit.
    const fn event(&self) -> Event {
        match self {
            Self::Loaded { .. } => Event::RulesLoaded,
            Self::Rejected { .. } => Event::RulesRejected,
            Self::Refused { .. } => Event::RefusedByRule,
            Self::Approved { .. } => Event::ApprovalGranted,
            Self::GrantUsed { .. } => Event::GrantUsed,
            Self::GrantVoid { .. } => Event::GrantVoid,
        }
    }

    /// Returns the question that the event is about.
    fn question(&self) -> Option<&str> {
        match self {
            Self::Approved { question, .. } | Self::GrantUsed { question, .. } => {
                question.as_deref()
            }
            Self::Loaded { .. }
            | Self::Rejected { .. }
            | Self::Refused { .. }
            | Self::GrantVoid { .. } => None,
        }
    }

    /// Returns what the audit says; `approved_by` are the people who acted on the event's question.
    fn entry(&self, now: Timestamp, approved_by: Option<&str>) -> Entry {
        let entry = Entry::new(self.event(), now);
        let entry = match self {
            Self::Loaded {
                digest,
                before,
                rules,
                need_restart,
            } => {
                let need_restart = Some(need_restart.as_slice()).filter(|list| !list.is_empty());
                entry
                    .with("digest", digest.as_str())
                    .with_some("before", before.as_deref())
                    .with("rules", *rules)
                    .with_some("restart", need_restart)
                    .with("by", OWNER)
            }
            Self::Rejected { digest } => entry.with("digest", digest.as_str()).with("by", OWNER),
            Self::Refused {
                rule,
                server,
                principal,
                call,
            } => of_call(entry, [rule, server, principal], call.as_ref()),
            Self::Approved {
                rule,
                server,
                principal,
                call,
                edited,
                until,
                ..
            } => of_call(entry, [rule, server, principal], Some(call))
                .with("edited", edited.as_slice())
                .with_some("until", until.map(Timestamp::as_millis)),
            Self::GrantUsed {
                rule,
                server,
                principal,
                call,
                ..
            } => of_call(entry, [rule, server, principal], Some(call)),
            Self::GrantVoid { rule, grants } => entry
                .with("rule", rule.as_str())
                .with("grants", *grants)
                .with("by", OWNER),
        };
        entry
            .with_some("id", self.question())
            .with_some("by", approved_by)
    }
}

fn of_call(
    entry: Entry,
    [rule, server, principal]: [&String; 3],
    call: Option<&(CallKind, String)>,
) -> Entry {
    entry
        .with("server", server.as_str())
        .with("principal", principal.as_str())
        .with("rule", rule.as_str())
        .with_call(call.map(|(kind, target)| (*kind, target.as_str())))
}

impl Record {
    /// Writes an event of the rules into the audit, with those who approved the call that it is about, and the number of events like it
    /// that were left out before it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn note_rules(&self, event: &RulesEvent, left_out: u64) -> Result<(), RecordError> {
        let question = match event.question() {
            Some(id) => self.find(id).await?,
            None => None,
        };
        let by = question.as_ref().and_then(|row| row.lifecycle.ended_by());
        let left_out = Some(left_out).filter(|&count| count > 0);
        let entry = event.entry(self.now(), by);
        self.note(entry.with_some("leftOut", left_out)).await
    }
}
