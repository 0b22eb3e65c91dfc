//! The members of a frame by position, found in one scan without parsing the values.
//!
//! For a frame without elicitation this is the only cost: strings and values are skipped at the speed of `memchr`. A
//! frame whose members two readers could understand differently is a [`FrameDefect`]: a significant member must occur
//! once, spelled without escapes, and no other member may have the same letters.

mod keys;
mod scan;

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;
use serde_json::value::RawValue;

use super::id::Id;
use super::members;
use super::spelling::is_nearly_bytes;
pub(super) use keys::unescaped;
use keys::{CallMember, Deciding as _, FrameMember, SeenKeys, is_nearly_written, unambiguous_meta};
pub use scan::Unclear;
pub(super) use scan::{each_item, each_key, skip_string};
use scan::{member, sole_member};
pub(crate) use scan::{skip_space, skip_value};

/// The members of a JSON-RPC frame, as byte ranges into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameIndex {
    /// The id, with its quotes if it is a string.
    pub id: Option<Range<usize>>,
    /// The method, without its quotes.
    pub method: Option<Range<usize>>,
    /// The value of `params`.
    pub params: Option<Range<usize>>,
    /// The value of `params._meta`.
    pub meta: Option<Range<usize>>,
    /// The value of `params.name`.
    pub name: Option<Range<usize>>,
    /// The value of `params.uri`.
    pub uri: Option<Range<usize>>,
    /// The value of `params.arguments`.
    pub arguments: Option<Range<usize>>,
    /// The value of `params.requestState`.
    pub request_state: Option<Range<usize>>,
    /// The value of `params.inputResponses`.
    pub input_responses: Option<Range<usize>>,
    /// The value of `result`.
    pub result: Option<Range<usize>>,
    /// The value of `error`.
    pub error: Option<Range<usize>>,
    /// `true` if `result` has, or may have for some reader, a `resultType` or `inputRequests`, which are members of
    /// 2026-07-28.
    pub has_rounds_member: bool,
}

/// The kind of a message, according to its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `method` and `id`.
    Request,
    /// `method` without `id`.
    Notification,
    /// `id` with `result` or `error`.
    Response,
}

/// The reason why a frame is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameDefect {
    /// The text is not a single JSON object.
    #[error("the message is not one JSON object")]
    NotOneObject,
    /// A member occurs twice, so that two readers could use different values.
    #[error("{location} has a member twice: write each member once")]
    Duplicate {
        /// The object that contains it.
        location: &'static str,
    },
    /// A member's name is written with escapes, or has the same letters as a significant one in another spelling
    /// (`input_responses`), so that two readers could see different members.
    #[error(
        "{location} has a member whose name is spelled unusually: write names without escapes and as the protocol does"
    )]
    Spelling {
        /// The object that contains it.
        location: &'static str,
    },
    /// The method is not a string, or is written with escapes.
    #[error("`method` must be a string without escapes")]
    Method,
    /// A response with `result` and `error`, so that two readers could use different ones. One of them may be `null`.
    #[error("the message has `result` and `error`: a response has one of them")]
    TwoOutcomes,
}

impl FrameDefect {
    /// Returns the JSON-RPC error code: the text cannot be read, or is not a request.
    pub const fn code(self) -> i32 {
        match self {
            Self::NotOneObject => -32700,
            Self::Duplicate { .. } | Self::Spelling { .. } | Self::Method | Self::TwoOutcomes => {
                -32600
            }
        }
    }
}

/// Members of `result` with which a server of 2026-07-28 asks.
const ROUND_MEMBERS: [&[u8]; 3] = [b"resultType", b"inputRequests", b"requestState"];

/// The member of `error` with which a server of 2025-11-25 asks.
const ERROR_MEMBERS: [&[u8]; 1] = [b"code"];

/// Methods of calls that may need a person's approval.
const CALLS: [&[u8]; 3] = [b"tools/call", b"prompts/get", b"resources/read"];

/// The prefix of methods about a task, which may ask a person in turn.
const TASKS: &[u8] = b"tasks/";

impl FrameIndex {
    /// Finds the members of a frame.
    pub fn read(frame: &[u8]) -> Result<Self, FrameDefect> {
        let mut index = Self::default();
        let mut defect = None;
        let mut keys = SeenKeys::<FrameMember>::new();
        let mut params_spelling = false;
        let end = each_key(frame, 0, |key, at| {
            let member = FrameMember::named(key);
            if let Err(found) = keys.add(key, member, "the message") {
                defect.get_or_insert(found);
            } else if keys.unusual {
                defect.get_or_insert(FrameDefect::Spelling {
                    location: "the message",
                });
            }
            if let Some(FrameMember::Params) = member {
                return match index.read_params(frame, at) {
                    Ok((end, spelling)) => {
                        params_spelling |= spelling;
                        Some(end)
                    }
                    Err(found) => {
                        defect.get_or_insert(found);
                        skip_value(frame, at)
                    }
                };
            }
            let mut spelling = None;
            let end = match member {
                Some(FrameMember::Result) => each_name(frame, at, |key| {
                    index.has_rounds_member |= matches!(key, b"resultType" | b"inputRequests")
                        || memchr::memchr(b'\\', key).is_some();
                    if is_nearly_written(key, &ROUND_MEMBERS) {
                        spelling = Some("`result`");
                    }
                })?,
                Some(FrameMember::Error) => each_name(frame, at, |key| {
                    if is_nearly_written(key, &ERROR_MEMBERS) {
                        spelling = Some("`error`");
                    }
                })?,
                _ => skip_value(frame, at)?,
            };
            if let Some(location) = spelling {
                defect.get_or_insert(FrameDefect::Spelling { location });
            }
            let place = match member {
                Some(FrameMember::Id) => &mut index.id,
                Some(FrameMember::Method) => &mut index.method,
                Some(FrameMember::Result) => &mut index.result,
                Some(FrameMember::Error) => &mut index.error,
                _ => return Some(end),
            };
            *place = Some(at..end);
            Some(end)
        });
        let whole = end.is_some_and(|end| skip_space(frame, end) == frame.len());
        if !whole {
            return Err(FrameDefect::NotOneObject);
        }
        if let Some(defect) = defect {
            return Err(defect);
        }
        let is_meant =
            |part: &Option<Range<usize>>| part.clone().is_some_and(|part| &frame[part] != b"null");
        if is_meant(&index.result) && is_meant(&index.error) {
            return Err(FrameDefect::TwoOutcomes);
        }
        if let Some(method) = &mut index.method {
            let text = &frame[method.clone()];
            if text[0] != b'"' || memchr::memchr(b'\\', text).is_some() {
                return Err(FrameDefect::Method);
            }
            *method = method.start + 1..method.end - 1;
            let text = &frame[method.clone()];
            if params_spelling && (CALLS.contains(&text) || text.starts_with(TASKS)) {
                return Err(FrameDefect::Spelling {
                    location: "`params`",
                });
            }
        }
        Ok(index)
    }

    /// Finds the members of a frame; `None` if [`FrameIndex::read`] returns a defect.
    pub fn at(frame: &[u8]) -> Option<Self> {
        Self::read(frame).ok()
    }

    /// Finds the members of the `params` that start at `at`. Returns the position after them, and whether the name of a
    /// member, or of one in `_meta`, nearly matches a significant one.
    fn read_params(&mut self, frame: &[u8], at: usize) -> Result<(usize, bool), FrameDefect> {
        let end = |end: Option<usize>| end.ok_or(FrameDefect::NotOneObject);
        self.params = None;
        if frame.get(at) != Some(&b'{') {
            let end = end(skip_value(frame, at))?;
            self.params = Some(at..end);
            return Ok((end, false));
        }
        let mut defect = None;
        let mut meta_spelling = false;
        let mut keys = SeenKeys::<CallMember>::new();
        let walked = each_key(frame, at, |key, at| {
            let member = CallMember::named(key);
            if let Err(found) = keys.add(key, member, "`params`") {
                defect.get_or_insert(found);
            }
            let location = match member {
                Some(CallMember::Meta) => {
                    let end = match unambiguous_meta(frame, at) {
                        Ok((end, spelling)) => {
                            meta_spelling = spelling;
                            end
                        }
                        Err(found) => {
                            defect.get_or_insert(found);
                            skip_value(frame, at)?
                        }
                    };
                    self.meta = Some(at..end);
                    return Some(end);
                }
                Some(CallMember::Name) => &mut self.name,
                Some(CallMember::Uri) => &mut self.uri,
                Some(CallMember::Arguments) => &mut self.arguments,
                Some(CallMember::RequestState) => &mut self.request_state,
                Some(CallMember::InputResponses) => &mut self.input_responses,
                Some(CallMember::Task | CallMember::TaskId) | None => {
                    return skip_value(frame, at);
                }
            };
            let end = skip_value(frame, at)?;
            *location = Some(at..end);
            Some(end)
        });
        let end = end(walked)?;
        self.params = Some(at..end);
        match defect {
            Some(defect) => Err(defect),
            None => Ok((end, keys.unusual | meta_spelling)),
        }
    }

    /// Returns the method of `frame`, whose index this is, without reading the rest.
    pub fn method_in<'a>(&self, frame: &'a [u8]) -> Option<&'a str> {
        std::str::from_utf8(frame.get(self.method.clone()?)?).ok()
    }

    /// Returns the id of `frame`, whose index this is, without reading the rest; `None` if it has none or an invalid
    /// one.
    pub fn id_in(&self, frame: &[u8]) -> Option<Id> {
        let raw: &RawValue = serde_json::from_slice(frame.get(self.id.clone()?)?).ok()?;
        Id::read(raw)
    }

    /// Returns the kind of the message; `None` if its members do not form one.
    pub fn shape(&self) -> Option<Shape> {
        match (
            &self.method,
            &self.id,
            self.result.is_some() || self.error.is_some(),
        ) {
            (Some(_), Some(_), false) => Some(Shape::Request),
            (Some(_), None, false) => Some(Shape::Notification),
            (None, Some(_), true) => Some(Shape::Response),
            _ => None,
        }
    }
}

/// One raw frame with the positions of its members: the only reader of raw frames. A copy is two references.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    text: &'a str,
    index: &'a FrameIndex,
}

/// An object in a frame whose members can be read separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramePart {
    /// `params`.
    Params,
    /// `params._meta`.
    Meta,
    /// `result`.
    Result,
    /// `error`.
    Error,
}

impl<'a> Frame<'a> {
    /// Combines a frame with the positions of its members; `None` if it is not UTF-8.
    #[inline]
    pub fn new(frame: &'a [u8], index: &'a FrameIndex) -> Option<Self> {
        let text = std::str::from_utf8(frame).ok()?;
        Some(Self { text, index })
    }

    /// Combines the text of a frame with the positions of its members.
    #[inline]
    pub const fn of_text(text: &'a str, index: &'a FrameIndex) -> Self {
        Self { text, index }
    }

    /// Returns the frame as written.
    #[inline]
    pub const fn text(self) -> &'a str {
        self.text
    }

    /// Returns the positions of the members.
    #[inline]
    pub const fn index(self) -> &'a FrameIndex {
        self.index
    }

    /// Returns the kind of the message; `None` if its members do not form one.
    #[inline]
    pub fn shape(self) -> Option<Shape> {
        self.index.shape()
    }

    /// Returns the frame's id; `None` if it has none or an invalid one.
    #[inline]
    pub fn id(self) -> Option<Id> {
        self.index.id_in(self.text.as_bytes())
    }

    /// Returns the method, if it has one.
    #[inline]
    pub fn method(self) -> Option<&'a str> {
        self.text.get(self.index.method.clone()?)
    }

    /// Returns `params`; `None` if absent or not JSON.
    #[inline]
    pub fn params(self) -> Option<&'a RawValue> {
        self.raw(FramePart::Params)
    }

    /// Returns `result`; `None` if absent or not JSON.
    #[inline]
    pub fn result(self) -> Option<&'a RawValue> {
        self.raw(FramePart::Result)
    }

    /// Returns `error`; `None` if absent or not JSON.
    #[inline]
    pub fn error(self) -> Option<&'a RawValue> {
        self.raw(FramePart::Error)
    }

    /// Returns the position of a part.
    #[inline]
    pub const fn range(self, part: FramePart) -> Option<&'a Range<usize>> {
        match part {
            FramePart::Params => self.index.params.as_ref(),
            FramePart::Meta => self.index.meta.as_ref(),
            FramePart::Result => self.index.result.as_ref(),
            FramePart::Error => self.index.error.as_ref(),
        }
    }

    /// Returns a part as written; `None` if absent.
    #[inline]
    pub fn part(self, part: FramePart) -> Option<&'a str> {
        self.text.get(self.range(part)?.clone())
    }

    /// Returns the JSON of the first member of a part with this name, which has no characters that JSON escapes.
    #[inline]
    pub fn member(self, part: FramePart, name: &str) -> Option<&'a str> {
        self.text.get(self.member_range(part, name)?)
    }

    /// Returns the position of the value of [`Frame::member`].
    #[inline]
    pub fn member_range(self, part: FramePart, name: &str) -> Option<Range<usize>> {
        member(self.text.as_bytes(), self.range(part)?, name)
    }

    /// Returns the text of the member that [`Frame::member`] finds; `None` if it is not a string.
    pub fn text_member(self, part: FramePart, name: &str) -> Option<Cow<'a, str>> {
        members::read_string(self.member(part, name)?)
    }

    /// Returns the member that [`Frame::member`] finds, as a value; `None` if it is not JSON.
    pub fn value_member(self, part: FramePart, name: &str) -> Option<Value> {
        serde_json::from_str(self.member(part, name)?).ok()
    }

    /// Returns `error.code`; `None` if it is not a whole number.
    pub fn error_code(self) -> Option<i64> {
        serde_json::from_str(self.member(FramePart::Error, "code")?).ok()
    }

    /// Returns the JSON of the only member of a part with this name; `None` if it certainly has none.
    #[inline]
    pub fn sole_member(self, part: FramePart, name: &str) -> Result<Option<&'a str>, Unclear> {
        let Some(range) = self.range(part) else {
            return Ok(None);
        };
        let value = sole_member(self.text.as_bytes(), range, name)?;
        Ok(value.and_then(|value| self.text.get(value)))
    }

    fn raw(self, part: FramePart) -> Option<&'a RawValue> {
        serde_json::from_str(self.part(part)?).ok()
    }
}

/// Calls `each` with the name of every member, as written, of the value that starts at `at`. Returns the position after
/// the value; a value that is not an object has no names, and is skipped like any other.
fn each_name(frame: &[u8], at: usize, mut each: impl FnMut(&[u8])) -> Option<usize> {
    let walked = each_key(frame, at, |key, at| {
        each(key);
        skip_value(frame, at)
    });
    walked.or_else(|| skip_value(frame, at))
}

/// Returns the id of a message that cannot be passed on, if it has exactly one, so that its sender can get an error.
pub fn only_id(frame: &[u8]) -> Option<Id> {
    let mut found = Vec::new();
    let end = each_key(frame, 0, |key, at| {
        let end = skip_value(frame, at)?;
        if key == b"id" || is_nearly_bytes(key, &[b"id"]) {
            found.push(at..end);
        }
        Some(end)
    })?;
    if skip_space(frame, end) != frame.len() {
        return None;
    }
    let [only] = found.as_slice() else {
        return None;
    };
    let raw: &RawValue = serde_json::from_slice(frame.get(only.clone())?).ok()?;
    Id::read(raw)
}

/// Returns `true` if a message that cannot be passed on has a method, or a member that some reader takes for one: its
/// id is then not that of a request of the peer.
pub fn has_method(frame: &[u8]) -> bool {
    let mut found = false;
    // The search stops at the first byte that cannot be scanned.
    let _end = each_key(frame, 0, |key, at| {
        let is_method = |key: &[u8]| key == b"method" || is_nearly_written(key, &[b"method"]);
        found |= is_method(key) || unescaped(key).is_some_and(|key| is_method(&key));
        skip_value(frame, at)
    });
    found
}

#[cfg(test)]
mod tests;
