//! A question as a record stores it: its params in the newest revision, and the text that distinguishes it from others;
//! and the question that is parsed from the params.

use std::borrow::Cow;
use std::sync::Arc;

use super::NewQuestion;
use crate::form::Form;
use crate::link::Link;
use crate::wire::members::quoted;
use crate::wire::{ElicitRequest, Revision};

/// A stored question, parsed.
#[derive(Clone, Debug)]
pub struct ParsedQuestion {
    /// The question in the newest revision.
    pub request: ElicitRequest,
    /// The form or the link.
    pub body: ParsedBody,
}

/// The form or the link of a question.
#[derive(Clone, Debug)]
pub enum ParsedBody {
    /// A form.
    Form(Arc<Form>),
    /// A link to visit.
    Link(Box<Link>),
}

impl ParsedQuestion {
    /// Reads the stored params of a question (JSON), whose form may already be parsed. Returns `None` if they can no
    /// longer be read.
    pub fn read(params: &str, form: Option<Arc<Form>>) -> Option<Self> {
        let params = serde_json::from_str(params).ok()?;
        let request = ElicitRequest::parse(params, Revision::LATEST).ok()?;
        let body = match &request {
            ElicitRequest::Form { schema, .. } => ParsedBody::Form(match form {
                // Another program shows it.
                Some(form) if form.is_unread() => return None,
                Some(form) => form,
                None => Arc::new(Form::parse_leniently(schema.get()).ok()?),
            }),
            ElicitRequest::Url { url, .. } => ParsedBody::Link(Box::new(Link::parse(url).ok()?)),
        };
        Some(Self { request, body })
    }

    /// Returns the form, if it is not a link.
    pub fn form(&self) -> Option<&Form> {
        match &self.body {
            ParsedBody::Form(form) => Some(form),
            ParsedBody::Link(_) => None,
        }
    }
}

impl NewQuestion {
    /// Returns the params in the newest revision, as JSON. They are the stored part of the question.
    pub fn stored_params(&self) -> String {
        let params = self.request.to_params_text(Revision::LATEST);
        params.unwrap_or_else(|_| String::from("{}"))
    }

    /// Returns the members of the question in the order of their names, without those that differ each time the same
    /// question is asked.
    pub fn identity_text(&self) -> String {
        identity_text(&self.request)
    }

    /// Returns the id that the server gave a link.
    pub fn elicitation_id(&self) -> Option<&str> {
        match &self.request {
            ElicitRequest::Url { elicitation_id, .. } => elicitation_id.as_deref(),
            ElicitRequest::Form { .. } => None,
        }
    }
}

fn identity_text(request: &ElicitRequest) -> String {
    let (message, mode) = (quoted(request.message()), quoted(request.mode().as_str()));
    let (asked, value) = match request {
        ElicitRequest::Form { schema, .. } => ("requestedSchema", Cow::Borrowed(schema.get())),
        ElicitRequest::Url { url, .. } => ("url", Cow::Owned(quoted(url))),
    };
    let mut text = String::with_capacity(message.len() + value.len() + 64);
    for part in ["message", &message, "mode", &mode, asked, &value] {
        text.push_str(&part.len().to_string());
        text.push(':');
        text.push_str(part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_link_is_the_same_question_under_another_id() {
        let url = |id: &str, url: &str| {
            let params = serde_json::json!({"mode": "url", "message": "Go", "url": url, "elicitationId": id});
            let request = ElicitRequest::from_value(&params, Revision::LATEST_PUSHED).unwrap();
            identity_text(&request)
        };
        assert_eq!(
            url("1", "https://a.example/"),
            url("2", "https://a.example/")
        );
        assert_ne!(
            url("1", "https://a.example/"),
            url("1", "https://b.example/")
        );
    }

    /// A question that was asked under another spelling of the parts would not be found again.
    #[test]
    fn a_question_keeps_its_spelling() {
        let params = serde_json::json!({"message": "W\"ho?", "requestedSchema": {"type": "object", "properties": {}}});
        let form = ElicitRequest::from_value(&params, Revision::V2025_06_18).unwrap();
        assert_eq!(
            identity_text(&form),
            "7:message8:\"W\\\"ho?\"4:mode6:\"form\"15:requestedSchema33:{\"type\":\"object\",\"properties\":{}}"
        );
        let params =
            serde_json::json!({"mode": "url", "message": "Go", "url": "https://a.example/"});
        let link = ElicitRequest::from_value(&params, Revision::LATEST).unwrap();
        assert_eq!(
            identity_text(&link),
            "7:message4:\"Go\"4:mode5:\"url\"3:url20:\"https://a.example/\""
        );
    }
}
