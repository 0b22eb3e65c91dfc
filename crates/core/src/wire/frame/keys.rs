//! The keys of one object, checked for names that two readers could understand differently.

use std::borrow::Cow;
use std::collections::HashSet;
use std::marker::PhantomData;

use super::FrameDefect;
use super::scan::{each_key, skip_value};
use crate::wire::meta;
use crate::wire::spelling::{is_nearly_ascii, is_nearly_bytes, is_nearly_unicode};

/// A significant member of an object of a frame: it must occur once, in its exact spelling.
pub(super) trait Deciding: Copy + 'static {
    /// The names of all significant members of this object.
    const NAMES: &'static [&'static [u8]];

    /// `true` if the name of such a member is never written with escapes.
    const IS_ALWAYS_PLAIN: bool = true;

    /// Returns the member with this name.
    fn named(key: &[u8]) -> Option<Self>;

    /// Returns a unique bit.
    fn bit(self) -> u8;
}

/// The members that determine the kind of a frame.
#[derive(Clone, Copy)]
pub(super) enum FrameMember {
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

/// The members of `params` that determine the call, or the question that an answer belongs to.
#[derive(Clone, Copy)]
pub(super) enum CallMember {
    Name,
    Uri,
    Arguments,
    Meta,
    RequestState,
    InputResponses,
    Task,
    TaskId,
}

impl Deciding for CallMember {
    const NAMES: &'static [&'static [u8]] = &[
        b"name",
        b"uri",
        b"arguments",
        b"_meta",
        b"requestState",
        b"inputResponses",
        b"task",
        b"taskId",
    ];

    fn named(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"name" => Self::Name,
            b"uri" => Self::Uri,
            b"arguments" => Self::Arguments,
            b"_meta" => Self::Meta,
            b"requestState" => Self::RequestState,
            b"inputResponses" => Self::InputResponses,
            b"task" => Self::Task,
            b"taskId" => Self::TaskId,
            _ => return None,
        })
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A member of `params._meta`: none may occur twice. Significant ones are read elsewhere.
#[derive(Clone, Copy)]
enum MetaMember {}

impl Deciding for MetaMember {
    const NAMES: &'static [&'static [u8]] = &[
        meta::PROTOCOL_VERSION.as_bytes(),
        meta::CLIENT_INFO.as_bytes(),
        meta::CLIENT_CAPABILITIES.as_bytes(),
        meta::LOG_LEVEL.as_bytes(),
        meta::PROGRESS_TOKEN.as_bytes(),
        meta::RELATED_TASK.as_bytes(),
    ];
    const IS_ALWAYS_PLAIN: bool = false;

    fn named(_: &[u8]) -> Option<Self> {
        None
    }

    fn bit(self) -> u8 {
        match self {}
    }
}

/// The most ordinary keys that are kept in the array before a set is used.
const MAX_KEYS: usize = 8;

/// The keys of one object seen so far.
pub(super) struct SeenKeys<'a, M> {
    /// The bits of the significant members.
    deciding: u8,
    /// `true` if a key nearly matches a significant one.
    pub(super) unusual: bool,
    /// The used length of `kept`.
    count: usize,
    kept: [&'a [u8]; MAX_KEYS],
    /// The keys that do not fit into `kept`, and those written with escapes.
    more: Option<HashSet<Cow<'a, [u8]>>>,
    members: PhantomData<M>,
}

impl<'a, M: Deciding> SeenKeys<'a, M> {
    pub(super) const fn new() -> Self {
        Self {
            deciding: 0,
            unusual: false,
            count: 0,
            kept: [&[]; MAX_KEYS],
            more: None,
            members: PhantomData,
        }
    }

    /// Adds a key, as written, with the significant member that it names.
    #[inline]
    pub(super) fn add(
        &mut self,
        key: &'a [u8],
        member: Option<M>,
        location: &'static str,
    ) -> Result<(), FrameDefect> {
        if let Some(member) = member {
            let known = self.deciding & member.bit() != 0;
            self.deciding |= member.bit();
            return if known {
                Err(FrameDefect::Duplicate { location })
            } else {
                Ok(())
            };
        }
        // One pass without branches: most keys are short and have neither.
        let unusual = |byte: &u8| u8::from(!byte.is_ascii()) | u8::from(*byte == b'\\');
        let unusual_bytes = key.iter().fold(0, |any, byte| any | unusual(byte)) != 0;
        if unusual_bytes && key.contains(&b'\\') {
            return self.add_escaped(key, location);
        }
        if unusual_bytes {
            self.unusual |= is_nearly_unicode(key, M::NAMES);
        } else {
            self.unusual |= is_nearly_ascii(key, M::NAMES);
        }
        let known = self.kept[..self.count].contains(&key)
            || self.more.as_ref().is_some_and(|more| more.contains(key));
        if known {
            return Err(FrameDefect::Duplicate { location });
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

    /// Adds a key that is written with escapes.
    #[cold]
    fn add_escaped(&mut self, key: &[u8], location: &'static str) -> Result<(), FrameDefect> {
        let name = unescaped(key).ok_or(FrameDefect::Spelling { location })?;
        let is_near = is_nearly_bytes(&name, M::NAMES);
        self.unusual |= is_near;
        if M::IS_ALWAYS_PLAIN && (is_near || M::NAMES.contains(&name.as_slice())) {
            return Err(FrameDefect::Spelling { location });
        }
        let plain = self.kept[..self.count].contains(&name.as_slice());
        if plain || !self.more.get_or_insert_default().insert(Cow::Owned(name)) {
            return Err(FrameDefect::Duplicate { location });
        }
        Ok(())
    }
}

/// Returns `true` if this key, as written, has the same letters as one of these names and is not one of them.
pub(super) fn is_nearly_written(key: &[u8], names: &[&[u8]]) -> bool {
    if memchr::memchr(b'\\', key).is_none() {
        return is_nearly_bytes(key, names);
    }
    unescaped(key).is_some_and(|name| is_nearly_bytes(&name, names))
}

/// Returns the text of a key that is written with escapes.
pub(in crate::wire) fn unescaped(key: &[u8]) -> Option<Vec<u8>> {
    let quoted = [b"\"", key, b"\""].concat();
    let text: String = serde_json::from_slice(&quoted).ok()?;
    Some(text.into_bytes())
}

/// Returns the position after the `_meta` that starts at `at`, which must not have a duplicate member if it is an
/// object, and whether a name nearly matches a significant one.
pub(super) fn unambiguous_meta(text: &[u8], at: usize) -> Result<(usize, bool), FrameDefect> {
    let location = "`_meta`";
    if text.get(at) != Some(&b'{') {
        let end = skip_value(text, at).ok_or(FrameDefect::NotOneObject)?;
        return Ok((end, false));
    }
    let mut keys = SeenKeys::<MetaMember>::new();
    let mut defect = None;
    let end = each_key(text, at, |key, at| {
        if let Err(found) = keys.add(key, None, location) {
            defect.get_or_insert(found);
        }
        skip_value(text, at)
    });
    match (end, defect) {
        (None, _) => Err(FrameDefect::NotOneObject),
        (Some(_), Some(defect)) => Err(defect),
        (Some(end), None) => Ok((end, keys.unusual)),
    }
}
