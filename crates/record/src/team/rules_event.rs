//! Events of the rules for the audit: files that were loaded or rejected, refusals, and approvals.

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::wire::CallKind;

use crate::audit::{EntryText, Event, Member};
use crate::{Record, RecordError};

/// An event of the rules for the audit, besides those of questions.
#[derive(Clone, Debug)]
pub enum RulesEvent {
    /// The rules of a file were loaded: the gateway was started, or its owner sent SIGHUP.
    Loaded {
        /// The digest of the rules.
        digest: String,
        /// The digest of the previous rules, if there were any.
        before: Option<String>,
        /// The number of rules.
        rules: usize,
        /// The other settings that differ from those before, and took effect.
        settings: Vec<String>,
        /// The gateway: its machine and its state folder.
        gateway: String,
    },
    /// A file that was read again has errors: the previous rules stay in force.
    Rejected {
        /// The digest of the rules that stay in force.
        digest: String,
        /// The settings of the file that need a restart, if it was rejected because of them.
        need_restart: Vec<String>,
        /// The gateway: its machine and its state folder.
        gateway: String,
    },
    /// A rule refused a call or a question.
    Refused {
        /// The rule.
        rule: String,
        /// The server.
        server: String,
        /// The caller.
        principal: String,
        /// The call, if known.
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
        /// The question in which they approved it.
        question: Option<String>,
        /// JSON Pointers to the arguments that were changed.
        edited: Vec<String>,
        /// The evidence of the call as it was made ([`IdentityKey::evidence`](crate::IdentityKey::evidence)).
        evidence: String,
        /// The time until which the approval applies to the same call made again.
        until: Option<Timestamp>,
    },
    /// A call was made by a recent approval of the same call.
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
    /// Granted approvals became void: their rule was changed or removed.
    GrantVoid {
        /// The rule.
        rule: String,
        /// The number of approvals.
        grants: usize,
    },
}

/// The actor for the owner of the state folder, who starts the gateway and lets it read its file again.
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

    /// Returns the audit entry; `approved_by` are the people who acted on the event's question.
    fn entry(&self, now: Timestamp, approved_by: Option<&str>) -> EntryText {
        let entry = EntryText::new(self.event(), now);
        let entry = match self {
            Self::Loaded {
                digest,
                before,
                rules,
                settings,
                gateway,
            } => {
                let settings = Some(settings.as_slice()).filter(|list| !list.is_empty());
                entry
                    .with(Member::Digest, digest.as_str())
                    .with_some(Member::Before, before.as_deref())
                    .with(Member::Rules, *rules)
                    .with_some(Member::Settings, settings)
                    .with(Member::Gateway, gateway.as_str())
                    .with(Member::By, OWNER)
            }
            Self::Rejected {
                digest,
                need_restart,
                gateway,
            } => {
                let need_restart = Some(need_restart.as_slice()).filter(|list| !list.is_empty());
                entry
                    .with(Member::Digest, digest.as_str())
                    .with_some(Member::Restart, need_restart)
                    .with(Member::Gateway, gateway.as_str())
                    .with(Member::By, OWNER)
            }
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
                evidence,
                until,
                ..
            } => of_call(entry, [rule, server, principal], Some(call))
                .with(Member::Edited, edited.as_slice())
                .with(Member::Call, evidence.as_str())
                .with_some(Member::Until, until.map(Timestamp::as_millis)),
            Self::GrantUsed {
                rule,
                server,
                principal,
                call,
                ..
            } => of_call(entry, [rule, server, principal], Some(call)),
            Self::GrantVoid { rule, grants } => entry
                .with(Member::Rule, rule.as_str())
                .with(Member::Grants, *grants)
                .with(Member::By, OWNER),
        };
        entry
            .with_some(Member::Id, self.question())
            .with_some(Member::By, approved_by)
    }
}

fn of_call(
    entry: EntryText,
    [rule, server, principal]: [&String; 3],
    call: Option<&(CallKind, String)>,
) -> EntryText {
    entry
        .with(Member::Server, server.as_str())
        .with(Member::Principal, principal.as_str())
        .with(Member::Rule, rule.as_str())
        .with_call(call.map(|(kind, target)| (*kind, target.as_str())))
}

impl Record {
    /// Adds an event of the rules to the audit, with the people who approved its call, and the number of omitted
    /// similar events before it.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn note_rules(&self, event: &RulesEvent, left_out: u64) -> Result<(), RecordError> {
        let question = match event.question() {
            Some(id) => self.find(id).await?,
            None => None,
        };
        let by = question.as_ref().and_then(|row| row.lifecycle.ended_by());
        let left_out = Some(left_out).filter(|&count| count > 0);
        let entry = event.entry(self.now(), by);
        self.note(entry.with_some(Member::LeftOut, left_out)).await
    }
}
