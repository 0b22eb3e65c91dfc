//! Arguments that approvers changed, put in place of the client's; the others stay byte for byte.

use mcp_elicit_core::wire::call_frame::canonical;
use mcp_elicit_core::wire::frame::FrameIndex;
use mcp_elicit_core::wire::members::Members;
use serde_json::value::RawValue;

use crate::frame_edit;

/// The changes of approvers to the arguments of a call.
pub(super) struct Edits {
    frame: String,
    pointers: Vec<String>,
}

impl Edits {
    /// Reads the approvers' answers, JSON by JSON Pointers, to the request `text`. `None` where they differ from none of its arguments.
    pub(super) fn read(text: &str, answers: &str) -> Option<Self> {
        let index = FrameIndex::at(text.as_bytes())?;
        let range = index.arguments.clone()?;
        let mut arguments: Box<RawValue> = serde_json::from_str(&text[range.clone()]).ok()?;
        let mut pointers = Vec::new();
        for (pointer, answer) in Members::read_text(answers, "answers").ok()?.iter() {
            let changed =
                names_of(pointer).and_then(|names| edited_member(&arguments, &names, answer));
            if let Some(changed) = changed {
                arguments = changed;
                pointers.push(pointer.to_owned());
            }
        }
        (!pointers.is_empty()).then(|| Self {
            frame: frame_edit::spliced(text, &range, arguments.get()),
            pointers,
        })
    }

    /// Returns the request with the answers in place of the arguments that they differ from.
    pub(super) fn frame(&self) -> &str {
        &self.frame
    }

    /// Returns JSON Pointers to the arguments that were changed.
    pub(super) fn pointers(&self) -> &[String] {
        &self.pointers
    }

    /// Returns the changed request, and JSON Pointers to the arguments that were changed.
    pub(super) fn into_parts(self) -> (String, Vec<String>) {
        (self.frame, self.pointers)
    }
}

/// Returns the names in a JSON Pointer.
pub(super) fn names_of(pointer: &str) -> Option<Vec<String>> {
    let names = pointer.strip_prefix('/')?.split('/');
    Some(
        names
            .map(|name| name.replace("~1", "/").replace("~0", "~"))
            .collect(),
    )
}

/// Returns the object with another value for the member of this path, where it has that member and the value is another.
fn edited_member(object: &RawValue, names: &[String], value: &RawValue) -> Option<Box<RawValue>> {
    let (name, rest) = names.split_first()?;
    let all = Members::read(object, "arguments").ok()?;
    let before = all.get(name)?;
    if rest.is_empty() {
        let is_other = canonical(before.get()) != canonical(value.get())
            && !is_same_moment(before.get(), value.get());
        return is_other.then(|| all.with(name, Some(value)));
    }
    let changed = edited_member(before, rest, value)?;
    Some(all.with(name, Some(&changed)))
}

/// Returns whether two strings, JSON, are one date with time in two spellings: a page says `+00:00` for `Z`.
fn is_same_moment(one: &str, other: &str) -> bool {
    let (one, other) = (moment(one), moment(other));
    one.is_some() && one == other
}

/// Returns a date with time (RFC 3339) in one of its spellings; `None` for any other value.
fn moment(text: &str) -> Option<String> {
    let text: String = serde_json::from_str(text).ok()?;
    let (start, rest) = text.split_at_checked(19)?;
    let as_zero = |c: char| {
        if c.is_ascii_digit() {
            '0'
        } else {
            c.to_ascii_uppercase()
        }
    };
    let form: String = start.chars().map(as_zero).collect();
    let fraction = rest.strip_prefix('.').unwrap_or("");
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    let offset = if digits > 0 {
        &fraction[digits..]
    } else {
        rest
    };
    let offset_form: String = offset.chars().map(as_zero).collect();
    let is_time = ["0000-00-00T00:00:00", "0000-00-00 00:00:00"].contains(&form.as_str());
    if !is_time || !["Z", "+00:00", "-00:00"].contains(&offset_form.as_str()) {
        return None;
    }
    let time = text[..text.len() - offset.len()].to_ascii_uppercase();
    let offset = match offset {
        "z" | "+00:00" | "-00:00" => "Z",
        other => other,
    };
    Some(format!("{}{offset}", time.replacen(' ', "T", 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_in_another_spelling_is_no_change() {
        let call = CALL.replace("/tmp/a", "2026-02-28t10:00:00z");
        assert!(Edits::read(&call, r#"{"/path":"2026-02-28T10:00:00+00:00"}"#).is_none());
        assert!(Edits::read(&call, r#"{"/path":"2026-02-28T10:00:01Z"}"#).is_some());
        assert!(Edits::read(&call, r#"{"/path":"2026-02-28T10:00:00+02:00"}"#).is_some());
        assert!(Edits::read(CALL, r#"{"/path":"/TMP/A"}"#).is_some());
        for (before, after) in [
            ("2026-02-28 prod.txt", "2026-02-28 PROD.txt"),
            ("2026-02-28T10:00:00.5z", "2026-02-28T10:00:00.6z"),
            ("20260228-- report", "20260228--TREPORT"),
            ("2026-02-28t10:00:00zé", "2026-02-28T10:00:00ZÉ"),
        ] {
            let call = CALL.replace("/tmp/a", before);
            let answers = format!(r#"{{"/path":"{after}"}}"#);
            assert!(Edits::read(&call, &answers).is_some(), "{before}");
        }
        let call = CALL.replace("/tmp/a", "2026-02-28T10:00:00.5z");
        assert!(Edits::read(&call, r#"{"/path":"2026-02-28T10:00:00.5-00:00"}"#).is_none());
    }

    const CALL: &str = r#"{"id":1,"method":"tools/call","params":{"name":"rm","arguments":{"path":"/tmp/a", "n":12345678901234567890,"deep":{"on":true}}}}"#;

    #[test]
    fn only_what_differs_is_changed_and_the_rest_stays_byte_for_byte() {
        assert!(Edits::read(CALL, "{}").is_none());
        assert!(Edits::read(CALL, r#"{"/path":"/tmp/\u0061"}"#).is_none());
        let edits = Edits::read(CALL, r#"{"/path":"/tmp/b","/deep/on":false}"#).unwrap();
        let (sent, edited) = edits.into_parts();
        assert_eq!(edited, ["/path", "/deep/on"]);
        assert!(
            sent.contains("12345678901234567890") && sent.contains(r#""/tmp/b""#),
            "{sent}"
        );
        assert!(sent.contains(r#"{"on":false}"#), "{sent}");
        assert!(Edits::read(CALL, r#"{"/absent":1}"#).is_none());
    }
}
