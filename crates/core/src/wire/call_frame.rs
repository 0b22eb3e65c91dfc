//! The call of a request: parsed once, digested in a canonical spelling, and rejected if it cannot be shown to a person
//! in full.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::frame::FrameIndex;
use super::members::token_text;
use crate::digest::{MAX_ARGUMENT_DEPTH, canonical};

/// The name and arguments of a `tools/call`, `prompts/get` or `resources/read`.
#[derive(Clone, PartialEq, Eq)]
pub struct CallFrame<'a> {
    /// The name, or the resource's URI.
    pub target: Cow<'a, str>,
    /// The arguments as the client wrote them, JSON.
    pub arguments: Option<&'a str>,
}

/// The reason why a call cannot be shown to a person in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallDefect {
    /// The name or URI is missing or is not text.
    #[error("the name of the called item cannot be read")]
    Target,
    /// The name is longer than [`CallFrame::MAX_NAME`] bytes, or the URI than [`CallFrame::MAX_URI`].
    #[error(
        "the called item cannot be named like this: the name of a tool or prompt may have {} bytes, and a URI {}",
        CallFrame::MAX_NAME,
        CallFrame::MAX_URI
    )]
    TargetTooLong,
    /// The arguments are not JSON, or hold text that is not Unicode.
    #[error("the arguments are not JSON text that can be shown")]
    Unreadable,
    /// An object in the arguments has a member with a name of [`RESERVED`].
    #[error(
        "the arguments have a member named __proto__, constructor or prototype, which a server in JavaScript may take for something else: leave it out, and call again"
    )]
    Reserved,
    /// An object in the arguments has a duplicate member.
    #[error("the arguments have a member twice: write each once, and call again")]
    Duplicate,
    /// The arguments are nested deeper than [`MAX_ARGUMENT_DEPTH`] levels.
    #[error("the arguments are nested deeper than {MAX_ARGUMENT_DEPTH} levels")]
    TooDeep,
    /// A number in the arguments is larger than any number that can be shown.
    #[error("the arguments have a number that is too large to be shown")]
    Number,
}

/// The names of members that a program in JavaScript may take for the prototype of the object: it then sees members that a
/// reader of the arguments does not.
pub const RESERVED: [&str; 3] = ["__proto__", "constructor", "prototype"];

impl fmt::Debug for CallFrame<'_> {
    /// Hides the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallFrame")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl<'a> CallFrame<'a> {
    /// The longest name of a tool or a prompt, in bytes.
    pub const MAX_NAME: usize = 4_096;
    /// The longest URI of a resource, in bytes.
    pub const MAX_URI: usize = 65_536;

    /// Reads the call of a request whose members are in `index`.
    pub fn read(frame: &'a str, index: &FrameIndex) -> Result<Self, CallDefect> {
        let method = index.method.clone().map(|range| &frame[range]);
        let (target, most) = match method {
            Some("tools/call" | "prompts/get") => (&index.name, Self::MAX_NAME),
            Some("resources/read") => (&index.uri, Self::MAX_URI),
            _ => (&None, 0),
        };
        let target = target.clone().ok_or(CallDefect::Target)?;
        let target = token_text(&frame[target]).ok_or(CallDefect::Target)?;
        if target.len() > most {
            return Err(CallDefect::TargetTooLong);
        }
        Ok(Self {
            target,
            arguments: index.arguments.clone().map(|range| &frame[range]),
        })
    }

    /// Checks that no object in the arguments has a member with a name of [`RESERVED`].
    ///
    /// # Errors
    /// [`CallDefect::Reserved`]; [`CallDefect::Unreadable`] if the arguments are not JSON.
    pub fn check_reserved(&self) -> Result<(), CallDefect> {
        let Some(arguments) = self.arguments else {
            return Ok(());
        };
        // Without a backslash, each name is spelled as it is.
        let may_have =
            arguments.contains('\\') || RESERVED.iter().any(|name| arguments.contains(name));
        if !may_have {
            return Ok(());
        }
        match serde_json::from_str(arguments) {
            Ok(MemberNames {
                has_reserved: false,
            }) => Ok(()),
            Ok(MemberNames { has_reserved: true }) => Err(CallDefect::Reserved),
            Err(_) => Err(CallDefect::Unreadable),
        }
    }

    /// Returns the arguments in canonical spelling: members sorted by name, numbers as written. Empty without
    /// arguments.
    pub fn canonical_arguments(&self) -> Result<String, CallDefect> {
        self.arguments.map_or(Ok(String::new()), canonical)
    }
}

/// The names of all members in a value.
struct MemberNames {
    has_reserved: bool,
}

impl<'de> Deserialize<'de> for MemberNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NamesVisitor)
    }
}

struct NamesVisitor;

const NONE: MemberNames = MemberNames {
    has_reserved: false,
};

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = MemberNames;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<MemberNames, E> {
        Ok(NONE)
    }

    fn visit_bool<E>(self, _: bool) -> Result<MemberNames, E> {
        Ok(NONE)
    }

    fn visit_i64<E>(self, _: i64) -> Result<MemberNames, E> {
        Ok(NONE)
    }

    fn visit_u64<E>(self, _: u64) -> Result<MemberNames, E> {
        Ok(NONE)
    }

    fn visit_f64<E>(self, _: f64) -> Result<MemberNames, E> {
        Ok(NONE)
    }

    fn visit_str<E>(self, _: &str) -> Result<MemberNames, E> {
        Ok(NONE)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<MemberNames, A::Error> {
        let mut all = NONE;
        while let Some(item) = items.next_element::<MemberNames>()? {
            all.has_reserved |= item.has_reserved;
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<MemberNames, A::Error> {
        let mut all = NONE;
        while let Some((name, value)) = members.next_entry::<Cow<'de, str>, MemberNames>()? {
            all.has_reserved |= value.has_reserved || RESERVED.contains(&&*name);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_javascript_takes_for_a_prototype_is_found_however_spelled() {
        let check = |arguments: &str| {
            CallFrame {
                target: Cow::Borrowed("t"),
                arguments: Some(arguments),
            }
            .check_reserved()
        };
        for reserved in [
            r#"{"__proto__":{"path":"/etc"}}"#,
            r#"{"\u005f_proto__":1}"#,
            r#"{"a":[{"b":{"constructor":{"prototype":{"x":1}}}}]}"#,
            r#"{"prototyp\u0065":null}"#,
        ] {
            assert_eq!(check(reserved), Err(CallDefect::Reserved), "{reserved}");
        }
        for good in [
            "{}",
            r#"{"path":"__proto__","list":["constructor","prototype"],"n":1.5,"m":-2,"t":true,"z":null}"#,
            r#"{"constructors":1,"__proto":2,"_prototype_":3,"\"prototype\"":4}"#,
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn a_call_says_what_it_calls() {
        let read = |frame: &'static str| {
            let index = FrameIndex::read(frame.as_bytes()).unwrap();
            CallFrame::read(frame, &index)
        };
        let call = read(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":"secret"}}}"#,
        )
        .unwrap();
        assert_eq!(call.target, "t");
        assert_eq!(call.arguments, Some(r#"{"a":"secret"}"#));
        assert!(!format!("{call:?}").contains("secret"));
        let resource =
            read(r#"{"id":1,"method":"resources/read","params":{"name":"no","uri":"a:\u0062"}}"#);
        assert_eq!(resource.unwrap().target, "a:b");
        let long = |method: &str, member: &str, bytes: usize| {
            let frame = format!(
                r#"{{"id":1,"method":"{method}","params":{{"{member}":"{}"}}}}"#,
                "x".repeat(bytes)
            );
            let index = FrameIndex::read(frame.as_bytes()).unwrap();
            CallFrame::read(&frame, &index).map(|_| ())
        };
        for (method, member, most) in [
            ("tools/call", "name", 4_096),
            ("prompts/get", "name", 4_096),
            ("resources/read", "uri", 65_536),
        ] {
            assert_eq!(long(method, member, most), Ok(()));
            assert_eq!(
                long(method, member, most + 1),
                Err(CallDefect::TargetTooLong)
            );
        }
        for nameless in [
            r#"{"id":1,"method":"tools/call","params":{"name":7}}"#,
            r#"{"id":1,"method":"tools/call","params":{"uri":"a"}}"#,
            r#"{"id":1,"method":"tools/call","params":["name"]}"#,
            r#"{"id":1,"method":"tools/list","params":{"name":"t"}}"#,
        ] {
            assert_eq!(read(nameless), Err(CallDefect::Target), "{nameless}");
        }
    }
}
