//! Audit events as comma-separated values (RFC 4180), for spreadsheets.

use std::borrow::Cow;

use mcp_elicit_core::view::sanitize::acts_on_a_screen;
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

/// Returns the line of an event; `moment` formats a time given in milliseconds since 1970. Text that a
/// spreadsheet would take for a formula has an apostrophe before it.
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
/// if it is in quotes. Many separate cells at `;` or tabs, and know no quotes within such a cell: the text after each of
/// these and after each line break counts as a cell of its own. A character that a terminal would obey, that is
/// invisible or that reorders its neighbours is spelled out.
fn push_cell(line: &mut String, value: &str) {
    let spelled = spelled_out(value);
    let value = spelled.as_ref();
    let guarded = guarded(value);
    let needs_quotes = value.contains([',', ';', '\t', '"', '\r', '\n']) || guarded != value;
    if !needs_quotes {
        line.push_str(value);
        return;
    }
    line.push('"');
    for part in guarded.chars() {
        if part == '"' {
            line.push('"');
        }
        line.push(part);
    }
    line.push('"');
}

/// Returns the text with an apostrophe before each character that begins a formula, if only spaces and quotes are
/// between it and the beginning, or a separator before it.
fn guarded(value: &str) -> Cow<'_, str> {
    let mut out = String::with_capacity(value.len() + 8);
    if value.starts_with(['\t', '\r', '\n']) {
        out.push('\'');
    }
    let mut at_begin = true;
    for c in value.chars() {
        match c {
            ';' | '\t' | '\r' | '\n' => at_begin = true,
            '=' | '+' | '-' | '@' | '\u{ff1d}' | '\u{ff0b}' | '\u{ff0d}' | '\u{ff20}'
                if at_begin =>
            {
                out.push('\'');
                at_begin = false;
            }
            '"' => {}
            c if c.is_whitespace() => {}
            _ => at_begin = false,
        }
        out.push(c);
    }
    if out.len() == value.len() {
        return Cow::Borrowed(value);
    }
    Cow::Owned(out)
}

fn spelled_out(value: &str) -> Cow<'_, str> {
    // A terminal writes over the line after `\r`.
    let is_plain = |c: char| matches!(c, '\t' | '\n') || !acts_on_a_screen(c);
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
            ("\t=1", "\"'\t'=1\""),
            (" =1", "\" '=1\""),
            ("\u{ff1d}1", "\"'\u{ff1d}1\""),
            ("\u{ff0b}1", "\"'\u{ff0b}1\""),
            ("\u{ff0d}1", "\"'\u{ff0d}1\""),
            ("\u{ff20}1", "\"'\u{ff20}1\""),
            ("a;=1+1;b", "\"a;'=1+1;b\""),
            ("a; @b;c-d", "\"a; '@b;c-d\""),
            ("a\t+1", "\"a\t'+1\""),
            ("a\r\n-1", "\"a\\u{d}\n'-1\""),
            ("a;\"=1", "\"a;\"\"'=1\""),
            ("a=1-2@b", "a=1-2@b"),
            ("a\r\nb", "\"a\\u{d}\nb\""),
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
            "7,at 0,answered,q,,,\"'=cmd\",,,,,,,,,\"a; b\",,,,k1:0\r\n"
        );
        let columns = CSV_HEADER.matches(',').count();
        assert_eq!(cells.matches(',').count(), columns);
    }
}
