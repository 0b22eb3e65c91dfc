//! A frame's members by their place, found in one scan without reading the values.
//!
//! This is all that a frame without elicitation costs: strings and values are skipped, so a megabyte of text is passed
//! at the speed of `memchr`. A frame whose members two readers could understand differently is a [`FrameDefect`]: a
//! member that decides something must stand once, spelled without escapes, and no other member may look like it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::ops::Range;

use serde_json::value::RawValue;

use super::id::Id;

/// The members of a JSON-RPC frame, as byte ranges into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameIndex {
    /// The id with its quotes, if it is a string.
    pub id: Option<Range<usize>>,
    /// The method without its quotes.
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
}

/// The kind of a message, as its members show.
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
    /// The text is not one JSON object.
    #[error("the message is not one JSON object")]
    NotOneObject,
    /// A member stands twice, so that two readers could take different values.
    #[error("{place} has a member twice: write each member once")]
    Duplicate {
        /// The object that has it.
        place: &'static str,
    },
    /// The name of a member is written with escapes or in other letter case, so that two readers could see different
    /// members.
    #[error(
        "{place} has a member whose name is spelled unusually: write names without escapes and in their own case"
    )]
    Spelling {
        /// The object that has it.
        place: &'static str,
    },
    /// The method is not a string, or is written with escapes.
    #[error("`method` must be a string without escapes")]
    Method,
}

impl FrameDefect {
    /// The JSON-RPC error code: the text cannot be read, or what it says is not a request.
    pub const fn code(self) -> i32 {
        match self {
            Self::NotOneObject => -32700,
            Self::Duplicate { .. } | Self::Spelling { .. } | Self::Method => -32600,
        }
    }
}

/// A member of an object of a frame that decides what the frame is: it must stand once and be spelled as it is.
trait Deciding: Copy + 'static {
    /// The names of all members of this object that decide.
    const NAMES: &'static [&'static [u8]];

    /// Returns the member with this name.
    fn named(key: &[u8]) -> Option<Self>;

    /// Returns a bit of its own.
    fn bit(self) -> u8;
}

/// Members of a frame that say what it is.
#[derive(Clone, Copy)]
enum FrameMember {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
}

impl Deciding for FrameMember {
    const NAMES: &'static [&'static [u8]] =
        &[b"jsonrpc", b"id", b"method", b"params", b"result", b"error"];

    fn named(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"jsonrpc" => Self::Jsonrpc,
            b"id" => Self::Id,
            b"method" => Self::Method,
            b"params" => Self::Params,
            b"result" => Self::Result,
            b"error" => Self::Error,
            _ => return None,
        })
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Members of `params` that say what is called and what an answer belongs to.
#[derive(Clone, Copy)]
enum CallMember {
    Name,
    Uri,
    Arguments,
    Meta,
    RequestState,
    InputResponses,
}

impl Deciding for CallMember {
    const NAMES: &'static [&'static [u8]] = &[
        b"name",
        b"uri",
        b"arguments",
        b"_meta",
        b"requestState",
        b"inputResponses",
    ];

    fn named(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"name" => Self::Name,
            b"uri" => Self::Uri,
            b"arguments" => Self::Arguments,
            b"_meta" => Self::Meta,
            b"requestState" => Self::RequestState,
            b"inputResponses" => Self::InputResponses,
            _ => return None,
        })
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A member of `params._meta`: none of them decides, and none may stand twice.
#[derive(Clone, Copy)]
enum MetaMember {}

impl Deciding for MetaMember {
    const NAMES: &'static [&'static [u8]] = &[];

    fn named(_: &[u8]) -> Option<Self> {
        None
    }

    fn bit(self) -> u8 {
        match self {}
    }
}

/// Methods that call something a person may be asked about.
const CALLS: [&[u8]; 3] = [b"tools/call", b"prompts/get", b"resources/read"];

impl FrameIndex {
    /// Finds the members of a frame.
    pub fn read(frame: &[u8]) -> Result<Self, FrameDefect> {
        let mut index = Self::default();
        let mut defect = None;
        let mut keys = Keys::<FrameMember>::new();
        let mut params_spelling = false;
        let end = each_key(frame, 0, |key, at| {
            let member = FrameMember::named(key);
            if let Err(found) = keys.add(key, member, "the message") {
                defect.get_or_insert(found);
            } else if keys.unusual {
                defect.get_or_insert(FrameDefect::Spelling {
                    place: "the message",
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
            let end = skip_value(frame, at)?;
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
        if let Some(method) = &mut index.method {
            let text = &frame[method.clone()];
            if text[0] != b'"' || memchr::memchr(b'\\', text).is_some() {
                return Err(FrameDefect::Method);
            }
            *method = method.start + 1..method.end - 1;
            if params_spelling && CALLS.contains(&&frame[method.clone()]) {
                return Err(FrameDefect::Spelling { place: "`params`" });
            }
        }
        Ok(index)
    }

    /// Finds the members of a frame; `None` where [`FrameIndex::read`] gives a defect.
    pub fn at(frame: &[u8]) -> Option<Self> {
        Self::read(frame).ok()
    }

    /// Finds the members of the `params` that start at `at`. Returns the position behind them, and whether the name of
    /// a member is like one of a call without being it.
    fn read_params(&mut self, frame: &[u8], at: usize) -> Result<(usize, bool), FrameDefect> {
        let end = |end: Option<usize>| end.ok_or(FrameDefect::NotOneObject);
        self.params = None;
        if frame.get(at) != Some(&b'{') {
            let end = end(skip_value(frame, at))?;
            self.params = Some(at..end);
            return Ok((end, false));
        }
        let mut defect = None;
        let mut keys = Keys::<CallMember>::new();
        let walked = each_key(frame, at, |key, at| {
            let member = CallMember::named(key);
            if let Err(found) = keys.add(key, member, "`params`") {
                defect.get_or_insert(found);
            }
            let place = match member {
                Some(CallMember::Meta) => {
                    let end = match unambiguous(frame, at, "`_meta`") {
                        Ok(end) => end,
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
                None => return skip_value(frame, at),
            };
            let end = skip_value(frame, at)?;
            *place = Some(at..end);
            Some(end)
        });
        let end = end(walked)?;
        self.params = Some(at..end);
        match defect {
            Some(defect) => Err(defect),
            None => Ok((end, keys.unusual)),
        }
    }

    /// Returns the kind of the message, `None` when its members do not make one.
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

/// One raw frame with the positions of its members: the only reader of raw frames. Copying it copies two references.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    text: &'a str,
    index: &'a FrameIndex,
}

/// An object of a frame whose members can be read without reading the rest of it.
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
    /// Joins a frame with the positions of its members; `None` where it is not text.
    #[inline]
    pub fn new(frame: &'a [u8], index: &'a FrameIndex) -> Option<Self> {
        let text = std::str::from_utf8(frame).ok()?;
        Some(Self { text, index })
    }

    /// Joins the text of a frame with the positions of its members.
    #[inline]
    pub const fn of_text(text: &'a str, index: &'a FrameIndex) -> Self {
        Self { text, index }
    }

    /// Returns the frame as it was written.
    #[inline]
    pub const fn text(self) -> &'a str {
        self.text
    }

    /// Returns the positions of the members.
    #[inline]
    pub const fn index(self) -> &'a FrameIndex {
        self.index
    }

    /// Returns the kind of the message, `None` when its members do not make one.
    #[inline]
    pub fn shape(self) -> Option<Shape> {
        self.index.shape()
    }

    /// Returns the frame's own id; `None` where it has none or one that is not an id.
    #[inline]
    pub fn id(self) -> Option<Id> {
        self.id_at(self.index.id.as_ref()?)
    }

    /// Returns the method, if it has one.
    #[inline]
    pub fn method(self) -> Option<&'a str> {
        self.text.get(self.index.method.clone()?)
    }

    /// Returns `params`; `None` where there are none, or where they are not JSON.
    #[inline]
    pub fn params(self) -> Option<&'a RawValue> {
        self.raw(FramePart::Params)
    }

    /// Returns `result`; `None` where there is none, or where it is not JSON.
    #[inline]
    pub fn result(self) -> Option<&'a RawValue> {
        self.raw(FramePart::Result)
    }

    /// Returns `error`; `None` where there is none, or where it is not JSON.
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

    /// Returns a part as it was written; `None` where there is none.
    #[inline]
    pub fn part(self, part: FramePart) -> Option<&'a str> {
        self.text.get(self.range(part)?.clone())
    }

    /// Returns the JSON of the first member of a part with this name, which has no characters that JSON escapes.
    #[inline]
    pub fn member(self, part: FramePart, name: &str) -> Option<&'a str> {
        self.text.get(self.member_range(part, name)?)
    }

    /// Returns the position of what [`Frame::member`] returns.
    #[inline]
    pub fn member_range(self, part: FramePart, name: &str) -> Option<Range<usize>> {
        member(self.text.as_bytes(), self.range(part)?, name)
    }

    /// Returns the JSON of the only member of a part with this name; `None` when it certainly has none.
    #[inline]
    pub fn sole_member(self, part: FramePart, name: &str) -> Result<Option<&'a str>, Unclear> {
        let Some(range) = self.range(part) else {
            return Ok(None);
        };
        let value = sole_member(self.text.as_bytes(), range, name)?;
        Ok(value.and_then(|value| self.text.get(value)))
    }

    /// Returns the id that stands in `range`.
    fn id_at(self, range: &Range<usize>) -> Option<Id> {
        let raw: &RawValue = serde_json::from_str(self.text.get(range.clone())?).ok()?;
        Id::read(raw)
    }

    fn raw(self, part: FramePart) -> Option<&'a RawValue> {
        serde_json::from_str(self.part(part)?).ok()
    }
}

/// The id of a message that cannot be passed on, where it has exactly one, so that its sender can get an error.
pub fn only_id(frame: &[u8]) -> Option<Id> {
    let mut found = Vec::new();
    let end = each_key(frame, 0, |key, at| {
        let end = skip_value(frame, at)?;
        if key == b"id" || is_like(key, &[b"id"]) {
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

/// The number of keys without a meaning that are kept in place before a set takes them.
const MAX_KEYS: usize = 8;

/// The keys of one object that were seen so far.
struct Keys<'a, M> {
    /// The bits of the deciding members.
    deciding: u8,
    /// `true` if a key resembles a deciding one without being it.
    unusual: bool,
    /// The number of places of `kept` in use.
    count: usize,
    kept: [&'a [u8]; MAX_KEYS],
    /// The keys that `kept` has no place for, and those written with escapes.
    more: Option<HashSet<Cow<'a, [u8]>>>,
    members: PhantomData<M>,
}

impl<'a, M: Deciding> Keys<'a, M> {
    const fn new() -> Self {
        Self {
            deciding: 0,
            unusual: false,
            count: 0,
            kept: [&[]; MAX_KEYS],
            more: None,
            members: PhantomData,
        }
    }

    /// Takes a key in, as it is written, with the deciding member that it names.
    #[inline]
    fn add(
        &mut self,
        key: &'a [u8],
        member: Option<M>,
        place: &'static str,
    ) -> Result<(), FrameDefect> {
        if let Some(member) = member {
            let known = self.deciding & member.bit() != 0;
            self.deciding |= member.bit();
            return if known {
                Err(FrameDefect::Duplicate { place })
            } else {
                Ok(())
            };
        }
        // One pass without branches: most keys are short and have neither.
        let unusual = |byte: &u8| u8::from(!byte.is_ascii()) | u8::from(*byte == b'\\');
        let unusual_bytes = key.iter().fold(0, |any, byte| any | unusual(byte)) != 0;
        if unusual_bytes && key.contains(&b'\\') {
            return self.add_escaped(key, place);
        }
        if unusual_bytes {
            self.unusual |= is_like_folded(key, M::NAMES);
        } else {
            self.unusual |= is_like_ascii(key, M::NAMES);
        }
        let known = self.kept[..self.count].contains(&key)
            || self.more.as_ref().is_some_and(|more| more.contains(key));
        if known {
            return Err(FrameDefect::Duplicate { place });
        }
        match self.kept.get_mut(self.count) {
            Some(slot) => {
                *slot = key;
                self.count += 1;
            }
            None => {
                self.more.get_or_insert_default().insert(Cow::Borrowed(key));
            }
        }
        Ok(())
    }

    /// Takes a key in that is written with escapes.
    #[cold]
    fn add_escaped(&mut self, key: &[u8], place: &'static str) -> Result<(), FrameDefect> {
        let name = unescaped(key).ok_or(FrameDefect::Spelling { place })?;
        if M::NAMES.contains(&name.as_slice()) || is_like(&name, M::NAMES) {
            return Err(FrameDefect::Spelling { place });
        }
        let plain = self.kept[..self.count].contains(&name.as_slice());
        if plain || !self.more.get_or_insert_default().insert(Cow::Owned(name)) {
            return Err(FrameDefect::Duplicate { place });
        }
        Ok(())
    }
}

/// Returns whether a reader that does not mind letter case could take this key, given without escapes, for one of these
/// names.
fn is_like(key: &[u8], names: &[&[u8]]) -> bool {
    if key.is_ascii() {
        is_like_ascii(key, names)
    } else {
        is_like_folded(key, names)
    }
}

/// Does the work of [`is_like`] for a key within ASCII.
#[inline]
fn is_like_ascii(key: &[u8], names: &[&[u8]]) -> bool {
    names
        .iter()
        .any(|name| key.len() == name.len() && key.eq_ignore_ascii_case(name) && key != *name)
}

/// Does the work of [`is_like`] for a key with letters outside ASCII: the other case of two of them is within it.
#[cold]
fn is_like_folded(key: &[u8], names: &[&[u8]]) -> bool {
    let Ok(text) = std::str::from_utf8(key) else {
        return false;
    };
    let folded = text.replace('\u{17f}', "s").replace('\u{212a}', "k");
    names
        .iter()
        .any(|name| folded.as_bytes().eq_ignore_ascii_case(name))
}

/// The text of a key that is written with escapes.
fn unescaped(key: &[u8]) -> Option<Vec<u8>> {
    let quoted = [b"\"", key, b"\""].concat();
    let text: String = serde_json::from_slice(&quoted).ok()?;
    Some(text.into_bytes())
}

/// The position behind the value that starts at `at`, which has no member twice if it is an object.
fn unambiguous(text: &[u8], at: usize, place: &'static str) -> Result<usize, FrameDefect> {
    if text.get(at) != Some(&b'{') {
        return skip_value(text, at).ok_or(FrameDefect::NotOneObject);
    }
    let mut keys = Keys::<MetaMember>::new();
    let mut defect = None;
    let end = each_key(text, at, |key, at| {
        if let Err(found) = keys.add(key, None, place) {
            defect.get_or_insert(found);
        }
        skip_value(text, at)
    });
    match (end, defect) {
        (None, _) => Err(FrameDefect::NotOneObject),
        (Some(_), Some(defect)) => Err(defect),
        (Some(end), None) => Ok(end),
    }
}

/// The value of the first member of the object in `range` with this name (which has no characters that JSON escapes).
///
/// `None` when there is none, when its key is written with escapes, or when the text is not an object.
pub fn member(frame: &[u8], range: &Range<usize>, name: &str) -> Option<Range<usize>> {
    let mut found = None;
    // What stands behind it was looked at with the frame.
    let _stopped = each_member(&frame[..range.end], range.start, |key, value| {
        if key == name.as_bytes() {
            found = Some(value);
        }
        found.is_none()
    });
    found
}

/// A member of an object that cannot be read with certainty: the name stands in it twice, a key may spell it with
/// escapes, or the text is not an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclear;

/// The value of the only member of the object in `range` with this name; `None` when it certainly has none. For what is
/// decided by the member: two readers of what is unclear could see different values.
pub fn sole_member(
    frame: &[u8],
    range: &Range<usize>,
    name: &str,
) -> Result<Option<Range<usize>>, Unclear> {
    let mut found = None;
    let end = each_member(&frame[..range.end], range.start, |key, value| {
        let once = key != name.as_bytes() || found.replace(value).is_none();
        once && !key.contains(&b'\\')
    });
    end.map(|_| found).ok_or(Unclear)
}

/// Calls `each` with every key (without quotes, as written) and the range of its value; stops when it says `false`.
/// Gives the position behind the closing brace.
fn each_member<'a>(
    text: &'a [u8],
    from: usize,
    mut each: impl FnMut(&'a [u8], Range<usize>) -> bool,
) -> Option<usize> {
    each_key(text, from, |key, at| {
        let end = skip_value(text, at)?;
        each(key, at..end).then_some(end)
    })
}

/// Calls `skip` with every key (without quotes, as written) and the position of its value, for the position behind
/// that; stops where there is none. Gives the position behind the closing brace.
fn each_key<'a>(
    text: &'a [u8],
    from: usize,
    mut skip: impl FnMut(&'a [u8], usize) -> Option<usize>,
) -> Option<usize> {
    let mut at = skip_space(text, from);
    if text.get(at) != Some(&b'{') {
        return None;
    }
    at = skip_space(text, at + 1);
    if text.get(at) == Some(&b'}') {
        return Some(at + 1);
    }
    loop {
        let key_end = skip_string(text, at)?;
        let key = &text[at + 1..key_end - 1];
        at = skip_space(text, key_end);
        if text.get(at) != Some(&b':') {
            return None;
        }
        at = skip_space(text, at + 1);
        at = skip_space(text, skip(key, at)?);
        match text.get(at)? {
            b',' => at = skip_space(text, at + 1),
            b'}' => return Some(at + 1),
            _ => return None,
        }
    }
}

pub(super) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The position behind the string that starts at `at`.
fn skip_string(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        match text[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// The position behind the value that starts at `at`. Brackets are counted, not matched by kind: the peer parses.
pub(super) fn skip_value(text: &[u8], mut at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => return skip_string(text, at),
        b'{' | b'[' => {}
        _ => {
            let start = at;
            while !matches!(
                text.get(at),
                None | Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')
            ) {
                at += 1;
            }
            return (at > start).then_some(at);
        }
    }
    let mut depth = 0_usize;
    loop {
        match text.get(at)? {
            b'"' => {
                at = skip_string(text, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests;
