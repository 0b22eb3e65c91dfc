//! Rounds era (2026-07-28, multi round-trip requests): `input_required`, `inputResponses` and the retry.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

use super::error::WireError;
use super::members::{self, Members, raw_text};
use super::method;
use super::request::{ElicitRequest, UnsupportedQuestion};
use super::result::ElicitResult;
use super::revision::{Mode, Revision};

/// The `resultType` of a result that asks.
pub const INPUT_REQUIRED: &str = "input_required";
/// The `resultType` of a final result, also if `resultType` is absent.
pub const COMPLETE: &str = "complete";

/// `InputRequiredResult`: the questions that a server must have answered before it can respond.
#[derive(Clone, PartialEq, Eq)]
pub struct InputRequired {
    /// `inputRequests` by the server's keys, in the server's order; `None` when the member is absent.
    pub requests: Option<Vec<(String, InputRequest)>>,
    /// `requestState`: opaque, to be returned exactly.
    pub state: Option<String>,
}

/// One of the `inputRequests`.
#[derive(Clone, Debug)]
pub enum InputRequest {
    /// A question for the person.
    Elicit(ElicitRequest),
    /// Sampling, roots, or something newer: the whole request object as written.
    Other {
        /// Its method.
        method: String,
        /// The request object.
        raw: Box<RawValue>,
    },
}

impl InputRequired {
    /// Creates a result with these questions by key.
    pub fn asking(
        questions: impl IntoIterator<Item = (String, ElicitRequest)>,
        state: Option<String>,
    ) -> Self {
        let requests = questions
            .into_iter()
            .map(|(key, request)| (key, InputRequest::Elicit(request)));
        Self {
            requests: Some(requests.collect()),
            state,
        }
    }

    /// Reads the `result` of a response whose `resultType` is `input_required`.
    ///
    /// A malformed elicitation makes the whole result an error, because the client could not answer it. Other requests
    /// are kept as they are.
    pub fn parse(result: &RawValue) -> Result<Self, WireError> {
        let members = Members::read(result, "result")?;
        let requests = members
            .get("inputRequests")
            .filter(|requests| !members::is_null(requests))
            .map(read_requests)
            .transpose()?;
        let state = members.text("requestState")?.map(Cow::into_owned);
        if requests.is_none() && state.is_none() {
            return Err(WireError::NothingRequired);
        }
        Ok(Self { requests, state })
    }

    /// Returns the questions for a person, by key.
    pub fn questions(&self) -> impl Iterator<Item = (&str, &ElicitRequest)> {
        self.requests
            .iter()
            .flatten()
            .filter_map(|(key, request)| match request {
                InputRequest::Elicit(request) => Some((key.as_str(), request)),
                InputRequest::Other { .. } => None,
            })
    }

    /// Returns the requests that are not elicitation, by key.
    pub fn others(&self) -> impl Iterator<Item = (&str, &str, &RawValue)> {
        self.requests
            .iter()
            .flatten()
            .filter_map(|(key, request)| match request {
                InputRequest::Elicit(_) => None,
                InputRequest::Other { method, raw } => {
                    Some((key.as_str(), method.as_str(), &**raw))
                }
            })
    }

    /// Returns the result object, including `resultType`.
    pub fn to_result(&self) -> Result<Box<RawValue>, UnsupportedQuestion> {
        let kind = raw_text(INPUT_REQUIRED);
        let requests = self.requests.as_deref().map(write_requests).transpose()?;
        let state = self.state.as_deref().map(raw_text);
        let parts = [
            Some(("resultType", &*kind)),
            requests
                .as_deref()
                .map(|requests| ("inputRequests", requests)),
            state.as_deref().map(|state| ("requestState", state)),
        ];
        Ok(members::object(parts.into_iter().flatten()))
    }
}

impl fmt::Debug for InputRequired {
    /// Hides the state, which may contain a person's earlier answers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputRequired")
            .field("requests", &self.requests)
            .field("state_bytes", &self.state.as_ref().map(String::len))
            .finish()
    }
}

impl PartialEq for InputRequest {
    /// Compares other requests byte for byte.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Elicit(one), Self::Elicit(two)) => one == two,
            (
                Self::Other { method, raw },
                Self::Other {
                    method: method2,
                    raw: raw2,
                },
            ) => method == method2 && raw.get() == raw2.get(),
            (Self::Elicit(_), Self::Other { .. }) | (Self::Other { .. }, Self::Elicit(_)) => false,
        }
    }
}

impl Eq for InputRequest {}

/// Reads an `inputRequests` object. The tasks extension has the same object in `tasks/get`.
pub fn read_requests(requests: &RawValue) -> Result<Vec<(String, InputRequest)>, WireError> {
    Members::read(requests, "inputRequests")?
        .iter()
        .map(|(key, request)| Ok((key.to_owned(), read_request(request)?)))
        .collect()
}

fn read_request(raw: &RawValue) -> Result<InputRequest, WireError> {
    let members = Members::read(raw, "an input request")?;
    members.refuse_like(&["method", "params"], "an input request")?;
    let method = members.need_text("method")?;
    if method::is_like_create(&method) {
        return Err(WireError::Type {
            member: "method",
            expected: "spelled as the protocol spells it",
        });
    }
    if method == method::CREATE {
        let params = members.need("params")?;
        return ElicitRequest::parse(params, Revision::V2026_07_28).map(InputRequest::Elicit);
    }
    Ok(InputRequest::Other {
        method: method.into_owned(),
        raw: raw.to_owned(),
    })
}

/// Writes an `inputRequests` object.
pub fn write_requests(
    requests: &[(String, InputRequest)],
) -> Result<Box<RawValue>, UnsupportedQuestion> {
    let written: Vec<(&str, Box<RawValue>)> = requests
        .iter()
        .map(|(key, request)| match request {
            InputRequest::Elicit(request) => Ok((
                key.as_str(),
                request.to_input_request(Revision::V2026_07_28)?,
            )),
            InputRequest::Other { raw, .. } => Ok((key.as_str(), raw.clone())),
        })
        .collect::<Result<_, _>>()?;
    Ok(members::object(
        written.iter().map(|(key, raw)| (*key, &**raw)),
    ))
}

/// `inputResponses`: the client's responses with the retry, by the server's keys, each as written.
#[derive(Clone, Default)]
pub struct InputResponses {
    responses: Vec<(String, Box<RawValue>)>,
}

impl InputResponses {
    /// Reads an `inputResponses` object. Its values are read on demand.
    pub fn parse(responses: &RawValue) -> Result<Self, WireError> {
        let members = Members::read(responses, "inputResponses")?;
        Ok(Self {
            responses: members
                .iter()
                .map(|(key, raw)| (key.to_owned(), raw.to_owned()))
                .collect(),
        })
    }

    /// Reads them from a request's params; `None` if the request is not a retry with responses.
    pub fn from_params(params: &RawValue) -> Result<Option<Self>, WireError> {
        members::only_member(params, "inputResponses", "params")?
            .filter(|responses| !members::is_null(responses))
            .map(Self::parse)
            .transpose()
    }

    /// Adds or replaces the response for a key.
    pub fn insert(&mut self, key: impl Into<String>, response: Box<RawValue>) {
        let key = key.into();
        match self.responses.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = response,
            None => self.responses.push((key, response)),
        }
    }

    /// Adds or replaces a person's result for a key.
    pub fn reply(&mut self, key: impl Into<String>, reply: &ElicitResult) {
        self.insert(key, reply.to_raw());
    }

    /// Returns the response for a key, as written.
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.responses
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, raw)| &**raw)
    }

    /// Returns the result of the question of this mode under this key; `None` if it was not answered.
    pub fn reply_to(&self, key: &str, mode: Mode) -> Option<Result<ElicitResult, WireError>> {
        self.get(key).map(|raw| ElicitResult::parse(raw, mode))
    }

    /// Returns the keys, in the client's order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.responses.iter().map(|(key, _)| key.as_str())
    }

    /// Returns `true` if there are no responses.
    pub fn is_empty(&self) -> bool {
        self.responses.is_empty()
    }

    /// Returns the `inputResponses` object.
    pub fn to_raw(&self) -> Box<RawValue> {
        members::object(
            self.responses
                .iter()
                .map(|(key, raw)| (key.as_str(), &**raw)),
        )
    }
}

impl fmt::Debug for InputResponses {
    /// Shows the keys only: the responses are a person's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.keys()).finish()
    }
}

/// Returns the `requestState` in a request's params.
pub fn state_of_params(params: &RawValue) -> Result<Option<String>, WireError> {
    match members::only_member(params, "requestState", "params")?
        .filter(|state| !members::is_null(state))
    {
        None => Ok(None),
        Some(state) => members::text(state)
            .map(|state| Some(state.into_owned()))
            .ok_or(WireError::Type {
                member: "requestState",
                expected: "a string",
            }),
    }
}

/// Returns the params of the retry: those of the request that got `required`, with the responses and the returned
/// state. The data of the earlier round are removed; every other byte is unchanged. The retry needs a new id.
pub fn retry_params(
    params: Option<&RawValue>,
    required: &InputRequired,
    responses: &InputResponses,
) -> Result<Box<RawValue>, WireError> {
    let answers = required.requests.is_some().then(|| responses.to_raw());
    let state = required.state.as_deref().map(raw_text);
    let params = Members::read_text(params.map_or("{}", RawValue::get), "params")?;
    let answered = params.with("inputResponses", answers.as_deref());
    Ok(Members::read(&answered, "params")?.with("requestState", state.as_deref()))
}

#[cfg(test)]
mod tests;
