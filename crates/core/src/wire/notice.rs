//! Notifications about a waiting call: cancellation and progress. The same in both eras.

use serde_json::Number;
use serde_json::value::RawValue;

use super::error::WireError;
use super::id::Id;
use super::members::{self, Members, raw_text};
use super::{message, method};

/// `notifications/cancelled`: a request is withdrawn by its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// The request. 2025-11-25 omits it for tasks.
    pub request_id: Option<Id>,
    /// The reason, for the log.
    pub reason: Option<String>,
}

impl Cancelled {
    /// Reads the params.
    pub fn parse(params: &RawValue) -> Result<Self, WireError> {
        let members = Members::read(params, "params")?;
        Ok(Self {
            request_id: members
                .get("requestId")
                .map(|id| read_id(id, "requestId"))
                .transpose()?,
            reason: members.text("reason")?.map(Into::into),
        })
    }

    /// Returns the whole notification.
    pub fn to_message(&self) -> String {
        let id = self.request_id.as_ref().map(Id::to_raw);
        let reason = self.reason.as_deref().map(raw_text);
        let params = [
            id.as_deref().map(|id| ("requestId", id)),
            reason.as_deref().map(|r| ("reason", r)),
        ];
        let params = members::object(params.into_iter().flatten());
        message::notification(method::CANCELLED, Some(&params))
    }
}

/// `notifications/progress`: a request is still being processed.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressNotification {
    /// The token of the request, as the caller wrote it.
    pub token: Id,
    /// The progress; must increase with each notification.
    pub progress: Number,
    /// The total, if known.
    pub total: Option<Number>,
    /// The current activity, for the person.
    pub message: Option<String>,
}

impl ProgressNotification {
    /// Creates the `count`th progress notification while a person decides, without the total, which is unknown.
    pub fn waiting(token: Id, count: u64, message: impl Into<String>) -> Self {
        Self {
            token,
            progress: count.into(),
            total: None,
            message: Some(message.into()),
        }
    }

    /// Reads the params.
    pub fn parse(params: &RawValue) -> Result<Self, WireError> {
        let members = Members::read(params, "params")?;
        Ok(Self {
            token: read_id(members.need("progressToken")?, "progressToken")?,
            progress: number(members.need("progress")?, "progress")?,
            total: members
                .get("total")
                .filter(|total| !members::is_null(total))
                .map(|total| number(total, "total"))
                .transpose()?,
            message: members.text("message")?.map(Into::into),
        })
    }

    /// Returns the whole notification.
    pub fn to_message(&self) -> String {
        let token = self.token.to_raw();
        let progress = raw_number(&self.progress);
        let total = self.total.as_ref().map(raw_number);
        let message = self.message.as_deref().map(raw_text);
        let params = [
            Some(("progressToken", &*token)),
            Some(("progress", &*progress)),
            total.as_deref().map(|total| ("total", total)),
            message.as_deref().map(|message| ("message", message)),
        ];
        let params = members::object(params.into_iter().flatten());
        message::notification(method::PROGRESS, Some(&params))
    }
}

fn read_id(raw: &RawValue, member: &'static str) -> Result<Id, WireError> {
    Id::read(raw).ok_or(WireError::Type {
        member,
        expected: "a string or a number",
    })
}

fn number(raw: &RawValue, member: &'static str) -> Result<Number, WireError> {
    serde_json::from_str(raw.get()).map_err(|_| WireError::Type {
        member,
        expected: "a number",
    })
}

fn raw_number(number: &Number) -> Box<RawValue> {
    members::raw_value(&serde_json::Value::Number(number.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Envelope;

    #[test]
    fn cancellation_reads_what_it_writes() {
        let cancelled = Cancelled {
            request_id: Some(Id::text("a")),
            reason: Some("gone".into()),
        };
        let text = cancelled.to_message();
        assert_eq!(
            text,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","reason":"gone"}}"#
        );
        let envelope = Envelope::parse(text.as_bytes()).unwrap();
        assert_eq!(
            Cancelled::parse(envelope.params().unwrap()).unwrap(),
            cancelled
        );
    }

    #[test]
    fn progress_keeps_the_token_as_written() {
        let params =
            RawValue::from_string(r#"{"progressToken":1.0,"progress":3,"total":null}"#.into())
                .unwrap();
        let progress = ProgressNotification::parse(&params).unwrap();
        assert_eq!(
            progress.to_message(),
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1.0,"progress":3}}"#
        );
        let waiting = ProgressNotification::waiting(Id::number(7), 2, "waiting for an answer");
        let text = waiting.to_message();
        let envelope = Envelope::parse(text.as_bytes()).unwrap();
        assert_eq!(
            ProgressNotification::parse(envelope.params().unwrap()).unwrap(),
            waiting
        );
    }
}
