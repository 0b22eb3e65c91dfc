use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::sanitize;
use crate::wire::CallKind;

/// The call that the question interrupts.
#[derive(Clone, PartialEq)]
pub struct CallView {
    kind: CallKind,
    name: String,
    others: Vec<String>,
    /// The other possible calls, with their arguments.
    candidates: Vec<CallView>,
    /// JSON text as sent.
    arguments: Option<String>,
}

/// The most calls that are named if any of them may be meant.
const NAMED: usize = 4;

impl CallView {
    /// Creates a call of the tool, prompt or resource `name`.
    pub fn new(kind: CallKind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            others: Vec::new(),
            candidates: Vec::new(),
            arguments: None,
        }
    }

    /// Adds the names of other calls that the question may belong to, because its server does not say which.
    #[must_use]
    pub fn or_one_of(mut self, others: Vec<String>) -> Self {
        self.others = others;
        self
    }

    /// Adds other calls that the question may belong to, which are shown with their arguments.
    #[must_use]
    pub fn or_one_of_calls(mut self, others: Vec<Self>) -> Self {
        self.others = others.iter().map(|other| other.name.clone()).collect();
        self.candidates = others;
        self
    }

    /// Creates a call of the tool `name`.
    pub fn tool(name: impl Into<String>) -> Self {
        Self::new(CallKind::Tool, name)
    }

    /// Adds the arguments of the call.
    #[must_use]
    pub fn with(self, arguments: Value) -> Self {
        match arguments {
            Value::Null => self,
            other => self.with_json(other.to_string()),
        }
    }

    /// Adds the arguments as the JSON text that was sent. Every member is shown, duplicates included, and every number
    /// as written; text that is not JSON is shown as it is.
    #[must_use]
    pub fn with_json(mut self, arguments: impl Into<String>) -> Self {
        self.arguments = Some(arguments.into());
        self
    }

    /// Returns the kind of call.
    pub fn kind(&self) -> CallKind {
        self.kind
    }

    /// Returns the name of the tool or prompt, or the resource's URI, safe to show; several names if any of them may be
    /// meant.
    pub fn name(&self) -> String {
        self.names(sanitize::LABEL)
    }

    /// Returns the complete [`name`](Self::name).
    pub fn name_in_full(&self) -> String {
        self.names(sanitize::ARGUMENTS)
    }

    fn names(&self, most: usize) -> String {
        let mut names = vec![sanitize::name(&self.name, most)];
        for other in &self.others {
            let name = sanitize::name(other, most);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.len() > NAMED {
            names.truncate(NAMED);
            names.push("another".to_owned());
        }
        match names.split_last() {
            Some((last, first)) if !first.is_empty() => {
                format!("{} or {last}", first.join(", "))
            }
            _ => names.concat(),
        }
    }

    /// Returns the additional text if any of several calls may be meant.
    pub fn doubt(&self) -> Option<&'static str> {
        let unsure = !self.others.is_empty();
        unsure.then_some("one of several calls, and the server does not say which")
    }

    /// Returns the arguments as pairs of name and value, each safe to show on one line and shortened if long. The name
    /// is empty if the arguments are not an object.
    pub fn arguments(&self) -> Vec<(String, String)> {
        self.shown_members(sanitize::LABEL, sanitize::line)
    }

    /// Returns the arguments as pairs of name and value, complete for arguments of at most [`sanitize::ARGUMENTS`]
    /// characters. Each value is safe to show and may have several lines; the name is empty if the arguments are not an
    /// object.
    pub fn arguments_in_full(&self) -> Vec<(String, String)> {
        self.shown_members(sanitize::ARGUMENTS, sanitize::exact)
    }

    /// Returns the arguments with names of at most `most` characters on one line, and values formatted by `shown`.
    fn shown_members(
        &self,
        most: usize,
        shown: impl Fn(&str, usize) -> String,
    ) -> Vec<(String, String)> {
        let shown_label = |name: String| match name.as_str() {
            // Arguments that are not an object have no names.
            "" => quoted(""),
            _ => sanitize::name(&name, most),
        };
        let member = |(name, value): (Option<String>, ArgumentMember)| {
            let name = name.map_or_else(String::new, shown_label);
            (name, shown(&value.text(), most))
        };
        self.members().into_iter().map(member).collect()
    }

    /// Returns `true` if [`title`](Self::title) omits parts of the arguments, so that a frontend must offer them in
    /// full.
    pub fn is_shortened(&self) -> bool {
        let (short, full) = (self.arguments(), self.arguments_in_full());
        !self.candidates.is_empty()
            || short != full
            || self.joined(short).chars().count() > sanitize::LABEL * 2
    }

    /// Returns the number of arguments; `None` if any of several calls may be meant, each with arguments of its own.
    pub fn argument_count(&self) -> Option<usize> {
        self.candidates.is_empty().then(|| self.own_members().len())
    }

    fn members(&self) -> Vec<(Option<String>, ArgumentMember)> {
        if self.candidates.is_empty() {
            return self.own_members();
        }
        let all = std::iter::once(self).chain(&self.candidates);
        let named = all.zip(1_u32..).flat_map(|(call, number)| {
            let call_name = if call.name.contains(": ") {
                // The name of an argument may follow.
                format!("call {number}, {}", quoted(&call.name))
            } else {
                format!("call {number}, {}", call.name)
            };
            let members = call.own_members();
            if members.is_empty() {
                // Shown as text; strings are always quoted here.
                let none = ArgumentMember("\"no arguments\"".to_owned());
                return vec![(Some(call_name), none)];
            }
            let member = |(name, value): (Option<String>, ArgumentMember)| {
                let label = match name {
                    None => call_name.clone(),
                    Some(name) => format!("{call_name}: {name}"),
                };
                (Some(label), value)
            };
            members.into_iter().map(member).collect()
        });
        named.collect()
    }

    /// Returns the arguments by name; one without a name if they are not an object.
    fn own_members(&self) -> Vec<(Option<String>, ArgumentMember)> {
        let Some(text) = self.arguments.as_deref() else {
            return Vec::new();
        };
        match serde_json::from_str::<ArgumentMembers>(text) {
            Ok(ArgumentMembers(members)) => {
                let named = |(name, value)| (Some(name), value);
                members.into_iter().map(named).collect()
            }
            Err(_) => vec![(None, ArgumentMember(text.trim().to_owned()))],
        }
    }

    /// Returns the call on one line: `deploy (build: latest, dry: true)`.
    pub fn title(&self) -> String {
        sanitize::line(&self.joined(self.arguments()), sanitize::LABEL * 2)
    }

    fn joined(&self, arguments: Vec<(String, String)>) -> String {
        if arguments.is_empty() || !self.candidates.is_empty() {
            return self.name();
        }
        let list: Vec<_> = arguments
            .into_iter()
            .map(|(name, value)| {
                if name.is_empty() {
                    value
                } else {
                    format!("{name}: {value}")
                }
            })
            .collect();
        format!("{} ({})", self.name(), list.join(", "))
    }
}

/// Hides the arguments, which may contain a person's values, from logs.
impl fmt::Debug for CallView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallView")
            .field("kind", &self.kind)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Returns an argument for a person who decides about it: two different values look different.
pub fn exact_argument(value: &Value) -> String {
    sanitize::exact(
        &ArgumentMember(value.to_string()).text(),
        sanitize::ARGUMENTS,
    )
}

/// One value of the arguments, as JSON text.
struct ArgumentMember(String);

impl ArgumentMember {
    /// Returns a string's characters, and any other value as written. A string that would look like another value, or
    /// like a shorter string, is quoted.
    fn text(&self) -> String {
        match serde_json::from_str::<String>(&self.0) {
            Ok(text) if is_unmistakable(&text) => text,
            Ok(text) => quoted(&text),
            Err(_) => self.0.clone(),
        }
    }
}

/// Returns `true` if this string cannot be confused with another value or string.
fn is_unmistakable(text: &str) -> bool {
    let edges = text.trim_matches('\n');
    edges.trim() == edges
        && !text.is_empty()
        && !text.starts_with('"')
        && serde_json::from_str::<IgnoredAny>(text).is_err()
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The members of an object in order, duplicates included. Values are scanned only to find their end.
struct ArgumentMembers(Vec<(String, ArgumentMember)>);

impl<'de> Deserialize<'de> for ArgumentMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = ArgumentMembers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ArgumentMembers, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    members.push((name, ArgumentMember(value.get().to_owned())));
                }
                Ok(ArgumentMembers(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_told_on_one_line_and_kept_out_of_debug() {
        let call = CallView::tool("deploy").with(json!({"build": "la\ntest", "dry": true}));
        assert_eq!(call.title(), "deploy (build: la test, dry: true)");
        assert!(!format!("{call:?}").contains("dry"));
    }

    #[test]
    fn all_calls_that_may_be_meant_are_shown_with_their_arguments() {
        let call = CallView::tool("deploy")
            .with(json!({"to": "moon"}))
            .or_one_of_calls(vec![
                CallView::tool("deploy").with(json!({"to": "mars", "dry": true})),
                CallView::tool("notes"),
            ]);
        assert_eq!(call.name(), "deploy or notes");
        assert_eq!(call.title(), "deploy or notes");
        assert!(call.doubt().is_some() && call.is_shortened());
        let full = call.arguments_in_full();
        let pairs: Vec<_> = full
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("call 1, deploy: to", "moon"),
                ("call 2, deploy: to", "mars"),
                ("call 2, deploy: dry", "true"),
                ("call 3, notes", "no arguments"),
            ]
        );
        let shown = format!("{call:?}");
        assert!(!shown.contains("mars"), "{shown}");
    }

    #[test]
    fn arguments_are_whole_however_long_they_are() {
        let script = format!("{}\nrm -rf /", "echo harmless; ".repeat(2_000));
        let call = CallView::tool("run").with(json!({"script": script, "empty": ""}));
        let full = call.arguments_in_full();
        assert_eq!(full[0], ("script".to_owned(), script.replace('\n', "␊\n")));
        assert_eq!(full[1].1, "\"\"");
        assert!(call.is_shortened());
        assert!(!CallView::tool("run").with(json!({"a": 1})).is_shortened());
    }

    #[test]
    fn different_arguments_look_different() {
        let shown = |arguments: &str| CallView::tool("x").with_json(arguments).arguments_in_full();
        for (one, other) in [
            (r#"{"a":false}"#, r#"{"a":"false"}"#),
            (r#"{"a":[1,2]}"#, r#"{"a":"[1, 2]"}"#),
            (r#"{"a":[1,2]}"#, r#"{"a":"[1,2]"}"#),
            (r#"{"a":"x"}"#, r#"{"a":"x\u200e"}"#),
            (r#"{"a":"x"}"#, r#"{"a":" x"}"#),
            (r#"{"a":1}"#, r#"{"a\u200e":1}"#),
            (r#"{"a":1}"#, r#"{"a ":1}"#),
            (r#"{"a":1}"#, r#"{"\"a\"":1}"#),
            (r#"{"a":""}"#, r#"{"a":"\"\""}"#),
            (r#"{"a":"x\ny"}"#, r#"{"a":"x\u2028y"}"#),
            (r#"{"a":"x\ny"}"#, r#"{"a":"x\r\ny"}"#),
            (r#"{"a":"x\ty"}"#, r#"{"a":"x    y"}"#),
            (r#"{"a":null}"#, r#"{"a":"null"}"#),
            (r#""x""#, r#"{"":"x"}"#),
            (r#"{"":"x"}"#, r#"{"\"\"":"x"}"#),
        ] {
            assert_ne!(shown(one), shown(other), "{one} {other}");
            let either = |arguments: &str| {
                let other = CallView::tool("y").with_json(arguments);
                let either = CallView::tool("x").or_one_of_calls(vec![other]);
                either.arguments_in_full()
            };
            assert_ne!(either(one), either(other), "{one} {other}");
        }
        let one = CallView::tool("y: a").with_json(r#""x""#);
        let other = CallView::tool("y").with_json(r#"{"a":"x"}"#);
        let [one, other] = [one, other].map(|call| {
            let either = CallView::tool("x").or_one_of_calls(vec![call]);
            either.arguments_in_full()
        });
        assert_ne!(one, other);
        let plain = shown(r#"{"path":"/tmp/a b","n":1}"#);
        let values: Vec<_> = plain.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["/tmp/a b", "1"]);
    }

    #[test]
    fn what_other_readers_refuse_is_shown_as_it_was_sent() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let sent = format!(
            r#"{{"deep":{deep},"big":1e999,"force":true,"force":false,"id":12345678901234567890123}}"#
        );
        let full = CallView::tool("x").with_json(sent).arguments_in_full();
        let pairs: Vec<_> = full
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("deep", deep.as_str()),
                ("big", "1e999"),
                ("force", "true"),
                ("force", "false"),
                ("id", "12345678901234567890123")
            ]
        );
        for broken in ["{\"a\": tr\u{1b}[2Jue", "[1, 2]", "\"\\ud800\""] {
            let full = CallView::tool("x").with_json(broken).arguments_in_full();
            assert_eq!(
                full,
                [(String::new(), sanitize::text(broken, sanitize::ARGUMENTS))]
            );
        }
    }

    #[test]
    fn every_call_that_may_be_meant_is_named() {
        let named = |others: &[&str]| {
            let others = others.iter().map(|&other| other.to_owned()).collect();
            let call = CallView::tool("deploy").or_one_of(others);
            (call.name(), call.doubt().is_some())
        };
        assert_eq!(named(&[]), ("deploy".to_owned(), false));
        assert_eq!(named(&["deploy"]), ("deploy".to_owned(), true));
        assert_eq!(named(&["plan"]), ("deploy or plan".to_owned(), true));
        assert_eq!(named(&["a", "deploy", "b"]).0, "deploy, a or b");
        assert_eq!(
            named(&["a", "b", "c", "d", "e"]).0,
            "deploy, a, b, c or another"
        );
    }
}
