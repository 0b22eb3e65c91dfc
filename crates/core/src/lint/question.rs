//! Finds the questions in a text: a requestedSchema alone, params with one in them, a request, or a result with
//! several. Texts are kept as written, so that the parser sees what a client would.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::pointer::token;

/// One question and its location.
#[derive(Debug)]
pub(super) struct LocatedQuestion<'a> {
    /// The pointer of the params; empty if they, or the schema alone, are the whole text.
    params: String,
    /// The message; `None` if only a schema was given.
    pub(super) message: Option<String>,
    pub(super) asked: LintedQuestion<'a>,
    /// The member in place of `requestedSchema`.
    pub(super) slip: Option<Slip>,
}

/// A form without `requestedSchema`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slip {
    /// The schema is called `schema`.
    OtherKey,
    /// There is no schema.
    Missing,
}

/// The question.
#[derive(Debug)]
pub(super) enum LintedQuestion<'a> {
    /// A form: the schema's text.
    Form { schema: &'a str },
    /// A visit: the URL, and whether there is an `elicitationId`.
    Url { url: String, has_id: bool },
}

/// The reason why there is no question.
#[derive(Debug)]
pub(super) struct NotAQuestion {
    pub(super) pointer: String,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) help: &'static str,
}

type QuestionMembers<'a> = HashMap<Cow<'a, str>, &'a RawValue>;

impl LocatedQuestion<'_> {
    /// Returns a pointer into the whole text for one into the schema.
    pub(super) fn at(&self, in_schema: &str) -> String {
        if self.message.is_none() {
            return in_schema.to_owned();
        }
        let key = match self.slip {
            Some(Slip::OtherKey) => "schema",
            Some(Slip::Missing) | None => "requestedSchema",
        };
        format!("{}/{key}{in_schema}", self.params)
    }

    /// Returns the pointer of the params.
    pub(super) fn params(&self) -> String {
        self.params.clone()
    }

    /// Returns the pointer of a field.
    pub(super) fn field(&self, name: &str) -> String {
        self.at(&format!("/properties/{}", token(name)))
    }

    /// Returns the pointer of the message.
    pub(super) fn message_pointer(&self) -> String {
        self.member("message")
    }

    /// Returns the pointer of one of the params.
    pub(super) fn member(&self, name: &str) -> String {
        format!("{}/{name}", self.params)
    }
}

/// Returns the questions in a text; at least one.
pub(super) fn find(text: &str) -> Result<Vec<LocatedQuestion<'_>>, NotAQuestion> {
    let members = match serde_json::from_str::<QuestionMembers<'_>>(text) {
        Ok(members) => members,
        // Not an object: the form parser reports it in its own words, unless it is not JSON at all.
        Err(error) if error.is_data() => return Ok(vec![alone(text)]),
        Err(error) => {
            let message = format!("the text is not JSON: {error}");
            return Err(NotAQuestion {
                pointer: String::new(),
                code: "not-json",
                message,
                help: "",
            });
        }
    };
    if let Some(requests) = ["result", ""]
        .iter()
        .find_map(|outer| requests_of(&members, outer))
    {
        return requests;
    }
    if let Some(question) = from_request(&members, "") {
        return Ok(vec![question?]);
    }
    if is_params(&members) {
        return Ok(vec![from_params(&members, String::new())?]);
    }
    Ok(vec![alone(text)])
}

fn alone(schema: &str) -> LocatedQuestion<'_> {
    LocatedQuestion {
        params: String::new(),
        message: None,
        asked: LintedQuestion::Form { schema },
        slip: None,
    }
}

/// Returns the `inputRequests` of a result, alone or in its response.
fn requests_of<'a>(
    members: &QuestionMembers<'a>,
    outer: &str,
) -> Option<Result<Vec<LocatedQuestion<'a>>, NotAQuestion>> {
    let (inner, at) = if outer.is_empty() {
        (None, String::new())
    } else {
        (Some(object(members.get(outer)?)?), format!("/{outer}"))
    };
    let requests = object(inner.as_ref().unwrap_or(members).get("inputRequests")?)?;
    let mut keys: Vec<_> = requests.keys().cloned().collect();
    keys.sort();
    let questions: Result<Vec<_>, _> = keys
        .iter()
        .filter_map(|key| {
            from_request(
                &object(requests.get(key)?)?,
                &format!("{at}/inputRequests/{}", token(key)),
            )
        })
        .collect();
    match questions {
        Ok(questions) if questions.is_empty() => None,
        other => Some(other),
    }
}

fn from_request<'a>(
    members: &QuestionMembers<'a>,
    at: &str,
) -> Option<Result<LocatedQuestion<'a>, NotAQuestion>> {
    let params = object(members.get("params")?)?;
    let asks =
        text(members.get("method").copied()).is_some_and(|method| method == "elicitation/create");
    (asks || is_params(&params)).then(|| from_params(&params, format!("{at}/params")))
}

fn is_params(members: &QuestionMembers<'_>) -> bool {
    let is_schema = members.contains_key("type") || members.contains_key("properties");
    members.contains_key("requestedSchema")
        || (text(members.get("message").copied()).is_some() && !is_schema)
        || text(members.get("mode").copied()).is_some_and(|mode| mode == "url" || mode == "form")
}

fn from_params<'a>(
    members: &QuestionMembers<'a>,
    at: String,
) -> Result<LocatedQuestion<'a>, NotAQuestion> {
    let need = |name: &str, what: &str| NotAQuestion {
        pointer: at.clone(),
        code: "params",
        message: format!("`{name}` is missing or is not {what}"),
        help: "see the parameters of elicitation/create",
    };
    let message = text(members.get("message").copied()).ok_or_else(|| need("message", "a text"))?;
    let mut slip = None;
    let asked = if text(members.get("mode").copied()).is_some_and(|mode| mode == "url") {
        let url = text(members.get("url").copied()).ok_or_else(|| need("url", "a text"))?;
        LintedQuestion::Url {
            url,
            has_id: members.contains_key("elicitationId"),
        }
    } else {
        let schema = members.get("requestedSchema").or_else(|| {
            let other = members
                .get("schema")
                .filter(|schema| schema.get().starts_with('{'));
            slip = Some(other.map_or(Slip::Missing, |_| Slip::OtherKey));
            other
        });
        LintedQuestion::Form {
            schema: schema.map_or("null", |schema| schema.get()),
        }
    };
    Ok(LocatedQuestion {
        params: at,
        message: Some(message),
        asked,
        slip,
    })
}

fn object<'a>(value: &&'a RawValue) -> Option<QuestionMembers<'a>> {
    serde_json::from_str(value.get()).ok()
}

fn text(value: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(value?.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointers(text: &str) -> Vec<String> {
        find(text)
            .expect(text)
            .iter()
            .map(|question| question.field("a/b"))
            .collect()
    }

    #[test]
    fn questions_are_found_in_every_wrapping() {
        let schema = r#"{"type":"object","properties":{}}"#;
        let params = format!(r#"{{"message":"m","requestedSchema":{schema}}}"#);
        for (text, expected) in [
            (schema.to_owned(), vec!["/properties/a~1b"]),
            (params.clone(), vec!["/requestedSchema/properties/a~1b"]),
            (
                format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{params}}}"#
                ),
                vec!["/params/requestedSchema/properties/a~1b"],
            ),
            (
                format!(r#"{{"params":{params}}}"#),
                vec!["/params/requestedSchema/properties/a~1b"],
            ),
            (
                format!(
                    r#"{{"resultType":"input_required","inputRequests":{{"y":{{"params":{params}}},"x":{{"params":{params}}},"s":{{"method":"sampling/createMessage","params":{{}}}}}}}}"#
                ),
                vec![
                    "/inputRequests/x/params/requestedSchema/properties/a~1b",
                    "/inputRequests/y/params/requestedSchema/properties/a~1b",
                ],
            ),
            (
                format!(r#"{{"result":{{"inputRequests":{{"x":{{"params":{params}}}}}}}}}"#),
                vec!["/result/inputRequests/x/params/requestedSchema/properties/a~1b"],
            ),
            ("[]".to_owned(), vec!["/properties/a~1b"]),
            ("{}".to_owned(), vec!["/properties/a~1b"]),
        ] {
            assert_eq!(pointers(&text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_question_is_told() {
        for (text, code) in [
            ("", "not-json"),
            ("{", "not-json"),
            (r#"{"requestedSchema":{}}"#, "params"),
            (r#"{"mode":"url","message":"m"}"#, "params"),
            (
                r#"{"method":"elicitation/create","params":{"message":3}}"#,
                "params",
            ),
        ] {
            assert_eq!(find(text).expect_err(text).code, code, "{text}");
        }
    }
}
