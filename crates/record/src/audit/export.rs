//! Audit events as comma-separated values (RFC 4180), for spreadsheets.

use std::borrow::Cow;

use mcp_elicit_core::view::sanitize::hides_or_reorders;
use serde_json::Value;

use super::spelling::{AuditedEvent, Member};
use crate::store::AuditEntry;

/// The members of an entry that have a column each, in order, after number, time and event.
const MEMBERS: [Member; 16] = [
    Member::Id,
    Member::Server,
    Member::Kind,
    Member::Target,
    Member::Principal,
    Member::Rule,
    Member::By,
    Member::Person,
    Member::To,
    Member::Channel,
    Member::Mode,
    Member::Reason,
    Member::Fields,
    Member::Edited,
    Member::Session,
    Member::Device,
];

/// The first line.
pub const CSV_HEADER: &str = "number,time,event,question,server,kind,target,caller,rule,by,person,to,channel,mode,reason,fields,edited,session,device,hash\r\n";

/// Returns the line of an event; `moment` formats a time given in milliseconds since 1970. A cell that a spreadsheet
/// would take for a formula begins with an apostrophe.
pub fn csv_line(link: &AuditEntry, moment: impl Fn(i64) -> String) -> String {
    let entry = AuditedEvent::read(&link.entry).unwrap_or_default();
    let mut cells = link.number.to_string();
    let mut push = |value: &str| {
        cells.push(',');
        push_cell(&mut cells, value);
    };
    let at = entry.number(Member::At);
    let at = at.and_then(|at| i64::try_from(at).ok());
    push(&at.map(moment).unwrap_or_default());
    push(entry.text(Member::Event).unwrap_or_default());
    for member in MEMBERS {
        push(&entry.get(member).map(text).unwrap_or_default());
    }
    push(&link.hash);
    cells.push_str("\r\n");
    cells
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let texts: Vec<String> = list.iter().map(text).collect();
            texts.join("; ")
        }
        other => other.to_string(),
    }
}

/// Adds a cell. Spreadsheets take a cell that begins with `=`, `+`, `-`, `@`, a tab or a line break for a formula, also
/// if it is in quotes. A character that a terminal would obey, that is invisible or that reorders its neighbours is
/// spelled out.
fn push_cell(line: &mut String, value: &str) {
    let spelled = spelled_out(value);
    let value = spelled.as_ref();
    let is_formula = value.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let needs_quotes = is_formula || value.contains([',', '"', '\r', '\n']);
    if !needs_quotes {
        line.push_str(value);
        return;
    }
    line.push('"');
    if is_formula {
        line.push('\'');
    }
    for part in value.chars() {
        if part == '"' {
            line.push('"');
        }
        line.push(part);
    }
    line.push('"');
}

fn spelled_out(value: &str) -> Cow<'_, str> {
    let is_plain = |c: char| {
        matches!(c, '\t' | '\r' | '\n')
            || !(c.is_control()
                || hides_or_reorders(c)
                || matches!(
                    c,
                    '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
                ))
    };
    if value.chars().all(is_plain) {
        return Cow::Borrowed(value);
    }
    let mut out = String::with_capacity(value.len() + 8);
    for c in value.chars() {
        if is_plain(c) {
            out.push(c);
        } else {
            out.extend(c.escape_unicode());
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_no_formula_and_keeps_its_text() {
        for (value, cell) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("=1+1", "\"'=1+1\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("\t=1", "\"'\t=1\""),
            ("a\r\nb", "\"a\r\nb\""),
            ("a\u{202e}b\u{2028}é\u{ad}", "a\\u{202e}b\\u{2028}é\\u{ad}"),
            ("a\u{1b}]0;x\u{7},", "\"a\\u{1b}]0;x\\u{7},\""),
            ("", ""),
        ] {
            let mut line = String::new();
            push_cell(&mut line, value);
            assert_eq!(line, cell);
        }
    }

    #[test]
    fn a_line_has_a_cell_for_each_column() {
        let link = AuditEntry {
            number: 7,
            entry: r#"{"at":0,"event":"answered","id":"q","target":"=cmd","fields":["a","b"]}"#
                .to_owned(),
            hash: "k1:0".to_owned(),
        };
        let cells = csv_line(&link, |at| format!("at {at}"));
        assert_eq!(
            cells,
            "7,at 0,answered,q,,,\"'=cmd\",,,,,,,,,a; b,,,,k1:0\r\n"
        );
        let columns = CSV_HEADER.matches(',').count();
        assert_eq!(cells.matches(',').count(), columns);
    }
}
