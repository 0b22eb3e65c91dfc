//! The audit's view of a question: one record per event, with names of fields and never their values. The server and
//! the client each fill in the parts that they know, in the same format.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Phase, Timestamp};
use crate::wire::Mode;

/// An event in an audit, about a question or its surroundings. Where a [`Phase`] means the same, the word is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AuditEvent {
    /// A server sent it; a client admitted it.
    Asked,
    /// It was shown to a person.
    Shown,
    /// It was accepted, and the answer obeys the form's rules; in url mode, the person agreed to visit.
    Answered,
    /// It was accepted with an answer that breaks the form's rules.
    Wrong,
    /// The person said no.
    Declined,
    /// The person dismissed it.
    Cancelled,
    /// The deadline passed without an answer.
    TimedOut,
    /// The server withdrew it, its call ended, or the connection closed.
    Withdrawn,
    /// It was rejected before being shown: it is forbidden or too frequent, or the client cannot ask.
    Refused,
    /// No responder was available.
    #[serde(rename = "nobody")]
    NoResponder,
    /// The response was not an answer, or a component failed.
    Failed,
    /// The server accepted the answer.
    Delivered,
    /// The server refused the answer.
    DeliveryFailed,
    /// It is unknown whether the server has the answer.
    InDoubt,
    /// The answer was erased: no call requested it in time, or it was refused twice.
    Lapsed,
    /// The client's response is not a person's act.
    ClientNotAPerson,
    /// A person proposed an answer that others have to confirm.
    Filled,
    /// A person replaced a proposed answer.
    Edited,
    /// A person confirmed the proposed answer.
    Confirmed,
    /// The vote of a person who may no longer act does not count any more.
    VoteDropped,
    /// A person's action was refused.
    ActRefused,
    /// A person claimed the question.
    Claimed,
    /// A person took over another's claim.
    TakenOver,
    /// A person delegated the question to others.
    Delegated,
    /// A person commented on the question.
    Commented,
    /// The people who are asked were reminded.
    Reminded,
    /// More people are asked.
    Escalated,
    /// A message to a person was sent.
    Notified,
    /// A message to a person could not be sent.
    NotificationFailed,
    /// An operator retried a message that could not be sent.
    NotificationRetried,
    /// Rules were loaded.
    RulesLoaded,
    /// Changed rules have errors, and were not loaded.
    RulesRejected,
    /// A rule refused a call or a question.
    RefusedByRule,
    /// People approved later calls like this one.
    ApprovalGranted,
    /// A call used an approval that had been granted before.
    GrantUsed,
    /// Granted approvals became void, because their rule was changed.
    GrantVoid,
    /// A person read the arguments of a call that a rule keeps for auditors.
    ArgumentsRead,
    /// A person logged in to the inbox.
    Login,
    /// A person ended sessions of the inbox.
    SessionsRevoked,
    /// A person accepted a form although it asks for a credential.
    #[serde(rename = "insisted")]
    CredentialAllowed,
    /// A key or token was changed.
    Rotated,
    /// Values were sealed anew with the newest key.
    Resealed,
    /// An API token was created for a program.
    TokenMade,
    /// An API token was revoked.
    TokenRevoked,
    /// A subject of an issuer was blocked as a caller.
    CallerBlocked,
    /// A subject of an issuer may call again.
    CallerUnblocked,
    /// A request without a valid proof of its caller was rejected.
    CallerRefused,
    /// A person logged in to an inbox of several people.
    SignIn,
    /// A person's login was refused.
    SignInRefused,
    /// A person in the people file was bound to the subject of their first login.
    PersonBound,
    /// A person was unbound from the subject of their first login.
    PersonUnbound,
    /// A person's session was ended before it expired.
    SessionEnded,
    /// A provider's logout token was received.
    LogoutToken,
    /// A person's browser was registered for notifications.
    DeviceAdded,
    /// A person's browser was unregistered.
    DeviceRemoved,
    /// The state folder was restored from a backup.
    Restored,
    /// Ended questions were deleted by a command, before their time.
    Purged,
    /// The record was moved from the state folder into a database, or back.
    RecordMoved,
    /// The oldest events of the audit were deleted.
    AuditPurged,
}

impl AuditEvent {
    /// The events of a server that asks and of a client that answers.
    pub const OF_PEERS: [Self; 11] = [
        Self::Asked,
        Self::Shown,
        Self::Answered,
        Self::Wrong,
        Self::Declined,
        Self::Cancelled,
        Self::TimedOut,
        Self::Withdrawn,
        Self::Refused,
        Self::NoResponder,
        Self::Failed,
    ];

    /// The events of a gateway.
    pub const OF_GATEWAY: [Self; 57] = [
        Self::Asked,
        Self::Shown,
        Self::Answered,
        Self::Declined,
        Self::Cancelled,
        Self::TimedOut,
        Self::Withdrawn,
        Self::Refused,
        Self::Failed,
        Self::Delivered,
        Self::DeliveryFailed,
        Self::InDoubt,
        Self::Lapsed,
        Self::ClientNotAPerson,
        Self::Filled,
        Self::Edited,
        Self::Confirmed,
        Self::VoteDropped,
        Self::ActRefused,
        Self::Claimed,
        Self::TakenOver,
        Self::Delegated,
        Self::Commented,
        Self::Reminded,
        Self::Escalated,
        Self::Notified,
        Self::NotificationFailed,
        Self::NotificationRetried,
        Self::RulesLoaded,
        Self::RulesRejected,
        Self::RefusedByRule,
        Self::ApprovalGranted,
        Self::GrantUsed,
        Self::GrantVoid,
        Self::ArgumentsRead,
        Self::Login,
        Self::SessionsRevoked,
        Self::CredentialAllowed,
        Self::Rotated,
        Self::Resealed,
        Self::TokenMade,
        Self::TokenRevoked,
        Self::CallerBlocked,
        Self::CallerUnblocked,
        Self::CallerRefused,
        Self::SignIn,
        Self::SignInRefused,
        Self::PersonBound,
        Self::PersonUnbound,
        Self::SessionEnded,
        Self::LogoutToken,
        Self::DeviceAdded,
        Self::DeviceRemoved,
        Self::Restored,
        Self::Purged,
        Self::RecordMoved,
        Self::AuditPurged,
    ];

    /// Returns the event in words, for pages and terminals.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Shown => "shown",
            Self::Answered => "accepted",
            Self::Wrong => "accepted wrongly",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed out",
            Self::Withdrawn => "withdrawn",
            Self::Refused => "refused",
            Self::NoResponder => "no responder",
            Self::Failed => "failed",
            Self::Delivered => "delivered",
            Self::DeliveryFailed => "answer refused by the server",
            Self::InDoubt => "delivery in doubt",
            Self::Lapsed => "answer erased",
            Self::ClientNotAPerson => "no person at the client",
            Self::Filled => "answer entered",
            Self::Edited => "answer changed",
            Self::Confirmed => "confirmed",
            Self::VoteDropped => "vote dropped",
            Self::ActRefused => "action refused",
            Self::Claimed => "claimed",
            Self::TakenOver => "claim taken over",
            Self::Delegated => "delegated",
            Self::Commented => "commented",
            Self::Reminded => "reminded",
            Self::Escalated => "escalated",
            Self::Notified => "message sent",
            Self::NotificationFailed => "message failed",
            Self::NotificationRetried => "message sent again",
            Self::RulesLoaded => "rules loaded",
            Self::RulesRejected => "rules rejected",
            Self::RefusedByRule => "refused by a rule",
            Self::ApprovalGranted => "call approved",
            Self::GrantUsed => "earlier approval used",
            Self::GrantVoid => "earlier approval void",
            Self::ArgumentsRead => "kept arguments read",
            Self::Login => "owner signed in",
            Self::SessionsRevoked => "sessions ended",
            Self::CredentialAllowed => "credential accepted",
            Self::Rotated => "key changed",
            Self::Resealed => "values sealed anew",
            Self::TokenMade => "token made",
            Self::TokenRevoked => "token revoked",
            Self::CallerBlocked => "caller blocked",
            Self::CallerUnblocked => "caller unblocked",
            Self::CallerRefused => "caller refused",
            Self::SignIn => "signed in",
            Self::SignInRefused => "sign-in refused",
            Self::PersonBound => "person bound",
            Self::PersonUnbound => "person released",
            Self::SessionEnded => "session ended",
            Self::LogoutToken => "provider signed out",
            Self::DeviceAdded => "browser registered",
            Self::DeviceRemoved => "browser removed",
            Self::Restored => "restored from a backup",
            Self::Purged => "ended questions deleted",
            Self::RecordMoved => "record moved",
            Self::AuditPurged => "oldest events deleted",
        }
    }

    /// Returns the word in records, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asked => Phase::Asked.as_str(),
            Self::Shown => Phase::Shown.as_str(),
            Self::Answered => Phase::Answered.as_str(),
            Self::Wrong => "wrong",
            Self::Declined => Phase::Declined.as_str(),
            Self::Cancelled => Phase::Cancelled.as_str(),
            Self::TimedOut => Phase::TimedOut.as_str(),
            Self::Withdrawn => Phase::Withdrawn.as_str(),
            Self::Refused => "refused",
            Self::NoResponder => "nobody",
            Self::Failed => Phase::Failed.as_str(),
            Self::Delivered => "delivered",
            Self::DeliveryFailed => "delivery-failed",
            Self::InDoubt => "in-doubt",
            Self::Lapsed => "lapsed",
            Self::ClientNotAPerson => "client-not-a-person",
            Self::Filled => "filled",
            Self::Edited => "edited",
            Self::Confirmed => "confirmed",
            Self::VoteDropped => "vote-dropped",
            Self::ActRefused => "act-refused",
            Self::Claimed => "claimed",
            Self::TakenOver => "taken-over",
            Self::Delegated => "delegated",
            Self::Commented => "commented",
            Self::Reminded => "reminded",
            Self::Escalated => "escalated",
            Self::Notified => "notified",
            Self::NotificationFailed => "notification-failed",
            Self::NotificationRetried => "notification-retried",
            Self::RulesLoaded => "rules-loaded",
            Self::RulesRejected => "rules-rejected",
            Self::RefusedByRule => "refused-by-rule",
            Self::ApprovalGranted => "approval-granted",
            Self::GrantUsed => "grant-used",
            Self::GrantVoid => "grant-void",
            Self::ArgumentsRead => "arguments-read",
            Self::Login => "login",
            Self::SessionsRevoked => "sessions-revoked",
            Self::CredentialAllowed => "insisted",
            Self::Rotated => "rotated",
            Self::Resealed => "resealed",
            Self::TokenMade => "token-made",
            Self::TokenRevoked => "token-revoked",
            Self::CallerBlocked => "caller-blocked",
            Self::CallerUnblocked => "caller-unblocked",
            Self::CallerRefused => "caller-refused",
            Self::SignIn => "sign-in",
            Self::SignInRefused => "sign-in-refused",
            Self::PersonBound => "person-bound",
            Self::PersonUnbound => "person-unbound",
            Self::SessionEnded => "session-ended",
            Self::LogoutToken => "logout-token",
            Self::DeviceAdded => "device-added",
            Self::DeviceRemoved => "device-removed",
            Self::Restored => "restored",
            Self::Purged => "purged",
            Self::RecordMoved => "record-moved",
            Self::AuditPurged => "audit-purged",
        }
    }
}

impl From<Phase> for AuditEvent {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Asked => Self::Asked,
            Phase::Shown => Self::Shown,
            Phase::Answered => Self::Answered,
            Phase::Declined => Self::Declined,
            Phase::Cancelled => Self::Cancelled,
            Phase::TimedOut => Self::TimedOut,
            Phase::Withdrawn => Self::Withdrawn,
            Phase::Failed => Self::Failed,
        }
    }
}

impl fmt::Display for AuditEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One event of one question: a line of the audit. Serializes to a flat JSON object without unknown members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AuditRecord {
    /// The time, in milliseconds since the epoch.
    pub at: Timestamp,
    /// The event.
    #[serde(alias = "turn")]
    pub event: AuditEvent,
    /// The server that asks, as the client knows it. Absent in a server's own audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The method of the call that asks, such as `tools/call`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The tool or prompt whose call asks, or the resource's URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The person who is asked, if people are identified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Form or url; absent if the question could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The backend of the question, such as `pushed`, `rounds` or `task`.
    #[serde(default, alias = "way", skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The responder that answered, such as `terminal` or `script`.
    #[serde(default, alias = "by", skip_serializing_if = "Option::is_none")]
    pub responder: Option<String>,
    /// The names of the form's fields, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// The names of the fields that seem to ask for a credential.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspicious: Vec<String>,
    /// `true` if the person chose to answer them anyway.
    #[serde(
        default,
        skip_serializing_if = "std::ops::Not::not",
        rename = "insisted"
    )]
    pub credential_allowed: bool,
    /// The host of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The time that the question had been open, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_ms: Option<u64>,
    /// The reason why it was not answered, or the person's reason for declining.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl AuditRecord {
    /// Creates a record with only its event and time.
    pub const fn new(event: AuditEvent, at: Timestamp) -> Self {
        Self {
            at,
            event,
            server: None,
            method: None,
            name: None,
            principal: None,
            mode: None,
            backend: None,
            responder: None,
            fields: Vec::new(),
            suspicious: Vec::new(),
            credential_allowed: false,
            host: None,
            open_ms: None,
            reason: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_is_one_flat_object_of_what_is_known() {
        let record = AuditRecord {
            name: Some("deploy".into()),
            mode: Some(Mode::Form),
            fields: vec!["environment".into()],
            open_ms: Some(300_000),
            ..AuditRecord::new(AuditEvent::TimedOut, Timestamp::from_millis(5))
        };
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(
            json,
            json!({
                "at": 5, "event": "timed-out", "name": "deploy", "mode": "form", "fields": ["environment"],
                "openMs": 300_000,
            })
        );
        assert_eq!(serde_json::from_value::<AuditRecord>(json).unwrap(), record);
    }

    #[test]
    fn names_of_before_are_read() {
        let line = json!({"at": 5, "turn": "answered", "way": "rounds", "by": "script"});
        let record: AuditRecord = serde_json::from_value(line).unwrap();
        assert_eq!(record.event, AuditEvent::Answered);
        assert_eq!(record.backend.as_deref(), Some("rounds"));
        assert_eq!(record.responder.as_deref(), Some("script"));
    }

    #[test]
    fn every_word_is_the_one_that_is_written() {
        let all = AuditEvent::OF_PEERS.iter().chain(&AuditEvent::OF_GATEWAY);
        for event in all {
            assert_eq!(serde_json::to_value(event).unwrap(), event.as_str());
        }
    }

    #[test]
    fn where_a_phase_means_the_same_the_word_is_the_same() {
        for phase in Phase::ALL {
            let event = AuditEvent::from(phase);
            assert_eq!(event.as_str(), phase.as_str());
            assert!(AuditEvent::OF_PEERS.contains(&event));
            assert!(AuditEvent::OF_GATEWAY.contains(&event));
        }
    }
}
