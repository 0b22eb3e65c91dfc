//! Members of a question that are unknown to the gateway, which are passed on to a client of another era or revision.

use mcp_elicit_core::wire::ElicitRequest;
use mcp_elicit_core::wire::members::{Members, raw_text, raw_value};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::frame_edit::ErrorResponse;

/// The most unknown members of a question.
const MEMBERS: usize = 64;
/// The total size of their names and values, in bytes.
const BYTES: usize = 256 * 1024;

/// Unknown members of a question's params.
#[derive(Default)]
pub(crate) struct UnknownMembers {
    members: Vec<(String, Box<RawValue>)>,
}

impl UnknownMembers {
    /// Reads the unknown members of a question. In `_meta` it keeps everything but the protocol's own members.
    ///
    /// # Errors
    /// The refusal of a question that has too many, or too large ones.
    pub(crate) fn of(params: &Members<'_>) -> Result<Self, ErrorResponse> {
        let is_unknown = |name: &str| name == "_meta" || !ElicitRequest::MEMBERS.contains(&name);
        let unknown = || params.iter().filter(|(name, _)| is_unknown(name));
        let bytes: usize = unknown()
            .map(|(name, value)| name.len() + value.get().len())
            .sum();
        if bytes > BYTES || unknown().nth(MEMBERS).is_some() {
            let why = format!(
                "the question has too many members that the protocol does not name: at most {MEMBERS} and {BYTES} bytes are allowed"
            );
            return Err(ErrorResponse::new(-32602, why));
        }
        let members = unknown().filter_map(|(name, value)| {
            let value = match name {
                "_meta" => of_others(value)?,
                _ => value.to_owned(),
            };
            Some((name.to_owned(), value))
        });
        Ok(Self {
            members: members.collect(),
        })
    }

    /// Returns the size of their names and values, in bytes.
    pub(crate) fn size(&self) -> usize {
        let sizes = self.members.iter();
        sizes
            .map(|(name, value)| name.len() + value.get().len())
            .sum()
    }

    /// Returns the params with these members added, unless they are present.
    pub(crate) fn added_to(&self, params: &RawValue) -> Option<Box<RawValue>> {
        let all = Members::read(params, "params").ok()?;
        let mut text = params.get().trim_end().strip_suffix('}')?.to_owned();
        let mut is_first = all.iter().next().is_none();
        for (name, value) in &self.members {
            if all.get(name).is_some() {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                text.push(',');
            }
            text.push_str(raw_text(name).get());
            text.push(':');
            text.push_str(value.get());
        }
        text.push('}');
        RawValue::from_string(text).ok()
    }
}

/// Returns the members of `_meta` that are neither the protocol's nor about one message.
fn of_others(meta: &RawValue) -> Option<Box<RawValue>> {
    let mut meta: Map<String, Value> = serde_json::from_str(meta.get()).ok()?;
    meta.retain(|name, _| name != "progressToken" && !name.starts_with("io.modelcontextprotocol/"));
    (!meta.is_empty()).then(|| raw_value(&Value::Object(meta)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_goes_on_and_what_is_a_revisions_own_does_not() {
        let params = r#"{"mode":"form","message":"m","x-hint":{"a":1.0},"_meta":{"progressToken":1,"vendor/x":2,
            "io.modelcontextprotocol/related-task":{}},"requestedSchema":{}}"#;
        let unknown = read(params).unwrap();
        for (into, made) in [
            (
                r#"{"message":"m"}"#,
                r#"{"message":"m","x-hint":{"a":1.0},"_meta":{"vendor/x":2}}"#,
            ),
            (
                r#"{"x-hint":1, "a":2 }"#,
                r#"{"x-hint":1, "a":2 ,"_meta":{"vendor/x":2}}"#,
            ),
            ("{}", r#"{"x-hint":{"a":1.0},"_meta":{"vendor/x":2}}"#),
        ] {
            let into: Box<RawValue> = serde_json::from_str(into).unwrap();
            assert_eq!(unknown.added_to(&into).unwrap().get(), made);
        }
    }

    fn read(params: &str) -> Result<UnknownMembers, ErrorResponse> {
        UnknownMembers::of(&Members::read_text(params, "params").unwrap())
    }

    #[test]
    fn their_number_and_size_are_bounded() {
        let with = |count: usize, value: &str| {
            let members: Vec<String> = (0..count)
                .map(|at| format!(r#""x{at:03}":{value}"#))
                .collect();
            read(&format!(r#"{{"message":"m",{}}}"#, members.join(",")))
        };
        assert_eq!(with(MEMBERS, "1").unwrap().size(), MEMBERS * 5);
        assert!(with(MEMBERS + 1, "1").is_err());
        let text = |size: usize| format!("\"{}\"", "x".repeat(size - 6));
        assert_eq!(with(1, &text(BYTES)).unwrap().size(), BYTES);
        assert!(with(1, &text(BYTES + 1)).is_err());
    }
}
