//! Pushed era: the pushed question, the error that requires visits first, and the notice that a visit is done.

use serde_json::value::RawValue;

use super::error::WireError;
use super::id::Id;
use super::members::{self, Members, raw_text, raw_value};
use super::request::{ElicitRequest, UnsupportedQuestion, need_elicitation_id};
use super::revision::{Mode, Revision};
use super::{message, method};

/// `URLElicitationRequiredError` (2025-11-25 only; 2026-07-28 forbids it).
pub const URL_REQUIRED_CODE: i64 = -32042;

/// Returns a question as the pushed request `elicitation/create`.
pub fn create(
    id: &Id,
    request: &ElicitRequest,
    revision: Revision,
) -> Result<String, UnsupportedQuestion> {
    let params = request.to_raw_params(revision)?;
    Ok(message::request(id, method::CREATE, Some(&params)))
}

/// The error -32042: these URLs must be visited before the call can be made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlRequired {
    /// The reason, for the caller.
    pub message: String,
    /// The links to visit, all in url mode.
    pub elicitations: Vec<ElicitRequest>,
}

impl UrlRequired {
    /// Reads the error object of a response. An elicitation in another mode, or without its id, is an error.
    pub fn parse(error: &RawValue) -> Result<Self, WireError> {
        let members = Members::read(error, "error")?;
        members.refuse_like(&["code", "message", "data"], "error")?;
        let data = Members::read(members.need("data")?, "data")?;
        data.refuse_like(&["elicitations"], "data")?;
        let listed: Vec<&RawValue> = serde_json::from_str(data.need("elicitations")?.get())
            .map_err(|_| WireError::Type {
                member: "elicitations",
                expected: "a list",
            })?;
        Ok(Self {
            message: members.text("message")?.unwrap_or_default().into_owned(),
            elicitations: listed.into_iter().map(read_url).collect::<Result<_, _>>()?,
        })
    }

    /// Returns the error object. Fails for a form among the elicitations, and for a URL without an id.
    pub fn to_error(&self) -> Result<Box<RawValue>, UnsupportedQuestion> {
        let listed: Vec<Box<RawValue>> = self
            .elicitations
            .iter()
            .map(|request| match request.mode() {
                Mode::Url => request.to_raw_params(Revision::V2025_11_25),
                Mode::Form => Err(UnsupportedQuestion::FormInUrlRequired),
            })
            .collect::<Result<_, _>>()?;
        let listed = serde_json::value::to_raw_value(&listed)
            .map_err(|_| UnsupportedQuestion::FormInUrlRequired)?;
        let data = members::object([("elicitations", &*listed)]);
        let code = raw_value(&URL_REQUIRED_CODE.into());
        let message = raw_text(&self.message);
        Ok(members::object([
            ("code", &*code),
            ("message", &*message),
            ("data", &*data),
        ]))
    }
}

fn read_url(params: &RawValue) -> Result<ElicitRequest, WireError> {
    let request = ElicitRequest::parse(params, Revision::V2025_11_25)?;
    match request.mode() {
        Mode::Url => Ok(request),
        Mode::Form => Err(WireError::Type {
            member: "mode",
            expected: "\"url\" here",
        }),
    }
}

/// `notifications/elicitation/complete`: the visit of a url question is done. Unknown ids must be ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    /// The id of the question.
    pub elicitation_id: String,
}

impl Complete {
    /// Reads the params.
    pub fn parse(params: &RawValue) -> Result<Self, WireError> {
        let members = Members::read(params, "params")?;
        Ok(Self {
            elicitation_id: need_elicitation_id(&members)?,
        })
    }

    /// Returns the whole notification.
    pub fn to_message(&self) -> String {
        let id = raw_text(&self.elicitation_id);
        message::notification(
            method::COMPLETE,
            Some(&members::object([("elicitationId", &*id)])),
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::wire::{ElicitationMessage, Envelope};

    fn visit(id: Option<&str>) -> ElicitRequest {
        ElicitRequest::Url {
            message: "m".into(),
            url: "https://a.example/".into(),
            elicitation_id: id.map(Into::into),
        }
    }

    #[test]
    fn urls_required_reads_what_it_writes() {
        let required = UrlRequired {
            message: "Connect first".into(),
            elicitations: vec![visit(Some("1")), visit(Some("2"))],
        };
        let error = required.to_error().unwrap();
        assert_eq!(UrlRequired::parse(&error).unwrap(), required);
        let text = message::error(Some(&Id::number(1)), &error);
        let envelope = Envelope::parse(text.as_bytes()).unwrap();
        assert_eq!(
            envelope.elicitation(),
            Some(ElicitationMessage::UrlRequired)
        );
    }

    #[test]
    fn only_urls_with_ids_may_be_required() {
        let form = ElicitRequest::form("m", &json!({"type": "object", "properties": {}}));
        let wrong = UrlRequired {
            message: String::new(),
            elicitations: vec![form],
        };
        assert_eq!(
            wrong.to_error().unwrap_err(),
            UnsupportedQuestion::FormInUrlRequired
        );
        let nameless = UrlRequired {
            message: String::new(),
            elicitations: vec![visit(None)],
        };
        assert!(nameless.to_error().is_err());

        let reads = |data: Value| {
            let error = json!({"code": -32042, "message": "m", "data": data});
            UrlRequired::parse(&raw_value(&error))
        };
        assert!(reads(json!({"elicitations": [{"mode": "url", "message": "m", "url": "u", "elicitationId": "1"}]})).is_ok());
        assert!(reads(json!({"elicitations": [{"message": "m", "requestedSchema": {}}]})).is_err());
        assert!(
            reads(json!({"elicitations": [{"mode": "url", "message": "m", "url": "u"}]})).is_err()
        );
        assert!(reads(json!({"elicitations": {}})).is_err());
        assert!(reads(json!({})).is_err());
    }

    #[test]
    fn an_id_of_a_visit_longer_than_the_limit_is_refused_wherever_it_is_read() {
        let reads = |bytes: usize| {
            let id = "e".repeat(bytes);
            let visit = json!({"mode": "url", "message": "m", "url": "u", "elicitationId": id});
            let listed = json!({"code": -32042, "message": "m", "data": {"elicitations": [visit]}});
            let asked = ElicitRequest::parse(&raw_value(&visit), Revision::V2025_11_25);
            let listed = UrlRequired::parse(&raw_value(&listed));
            let complete = Complete::parse(&raw_value(&json!({"elicitationId": id})));
            [asked.err(), listed.err(), complete.err()]
        };
        assert_eq!(reads(1_024), [None, None, None]);
        for refused in reads(1_025) {
            let refused = refused.unwrap().to_string();
            assert_eq!(
                refused,
                "`elicitationId` must be a string of at most 1,024 bytes"
            );
        }
    }

    #[test]
    fn completion_reads_what_it_writes() {
        let complete = Complete {
            elicitation_id: "id \"1\"".into(),
        };
        let text = complete.to_message();
        let envelope = Envelope::parse(text.as_bytes()).unwrap();
        assert_eq!(envelope.elicitation(), Some(ElicitationMessage::Complete));
        assert_eq!(
            Complete::parse(envelope.params().unwrap()).unwrap(),
            complete
        );
    }

    #[test]
    fn a_pushed_question_is_a_request() {
        let text = create(&Id::text("q-1"), &visit(Some("e")), Revision::V2025_11_25).unwrap();
        let envelope = Envelope::parse(text.as_bytes()).unwrap();
        assert_eq!(envelope.elicitation(), Some(ElicitationMessage::Create));
        assert_eq!(
            ElicitRequest::parse(envelope.params().unwrap(), Revision::V2025_11_25).unwrap(),
            visit(Some("e"))
        );
        assert!(create(&Id::text("q-1"), &visit(None), Revision::V2025_06_18).is_err());
    }
}
