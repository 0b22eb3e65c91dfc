//! The foot of a page: which keys work here.

use unicode_width::UnicodeWidthStr;

use super::desk::{Desk, Tool};
use super::page::{Line, Style};
use super::parts;
use crate::view::{Control, Stage};

/// The keys that work here; the ways out always on the last row.
pub(super) fn here(desk: &Desk, width: usize) -> Vec<Line> {
    let mut lines = vec![parts::rule(width)];
    let here: &[_] = match desk.sheet.stage() {
        Stage::Field(index) if desk.wide => match desk.tools.get(index) {
            Some(Tool::Picker(picker)) if picker.is_several() => &[
                ("Tab ↑↓", "move"),
                ("Space", "mark"),
                ("a-z", "search"),
                ("Enter", "next"),
            ],
            Some(Tool::Picker(_)) => &[
                ("Tab ↑↓", "move"),
                ("Space", "choose"),
                ("a-z", "search"),
                ("Enter", "choose, next"),
            ],
            _ => &[
                ("Tab ↑↓", "move"),
                ("Enter", "next"),
                ("Ctrl-S", "to the end"),
            ],
        },
        Stage::Review if desk.wide => &[
            ("Enter", "press"),
            ("←→", "move"),
            ("↑", "back to the form"),
        ],
        Stage::Field(index) => match (desk.tools.get(index), desk.sheet.fields().get(index)) {
            (Some(Tool::Picker(picker)), _) if picker.is_several() => &[
                ("Space", "mark"),
                ("↑↓", "move"),
                ("a-z", "search"),
                ("Enter", "next"),
                ("Shift-Tab", "back"),
            ],
            (Some(Tool::Picker(_)), _) => &[
                ("↑↓", "move"),
                ("a-z", "search"),
                ("Enter", "choose"),
                ("Shift-Tab", "back"),
            ],
            (_, Some(field)) if matches!(field.control, Control::Text { long: true }) => &[
                ("Enter", "next"),
                ("Alt-Enter", "new line"),
                ("Shift-Tab", "back"),
            ],
            _ => &[("Enter", "next"), ("Shift-Tab", "back")],
        },
        Stage::Review => &[
            ("Enter", "send, or change the marked answer"),
            ("↑↓", "move"),
        ],
        Stage::Confirm => &[
            ("y", "yes"),
            ("n", "no"),
            ("←→", "move"),
            ("Enter", "press"),
        ],
        Stage::Caution => &[("←→", "move"), ("Enter", "press")],
    };
    lines.extend(hints(here, width));
    lines.push(ways_out(desk, width));
    lines
}

/// How to say no and how to leave: always on one row, always the last.
fn ways_out(desk: &Desk, width: usize) -> Line {
    let always: &[_] = if desk.sheet.offers_from_now_on() {
        &[("Ctrl-R", "decline always")]
    } else {
        &[]
    };
    let out = [("Ctrl-X", "decline"), ("Esc", "cancel")];
    let line = hints(&[&out, always].concat(), width)
        .into_iter()
        .next()
        .unwrap_or_default();
    if width >= 32 {
        return line;
    }
    Line::of(" ^X", Style::Strong)
        .and(" decline", Style::Dim)
        .and(" Esc", Style::Strong)
        .and(" cancel", Style::Dim)
}

fn hints(keys: &[(&str, &str)], width: usize) -> Vec<Line> {
    let mut lines = vec![Line::of(" ", Style::Plain)];
    for (key, does) in keys {
        let columns = key.width() + does.width() + 4;
        let full = lines
            .last()
            .is_some_and(|line| line.width() > 1 && line.width() + columns > width);
        if full {
            lines.push(Line::of(" ", Style::Plain));
        }
        if let Some(line) = lines.pop() {
            lines.push(
                line.and(" ", Style::Plain)
                    .and(*key, Style::Strong)
                    .and(format!(" {does}  "), Style::Dim),
            );
        }
    }
    lines
}

/// The keys while a visit is waited for.
pub(super) fn visiting(width: usize) -> Vec<Line> {
    let mut lines = vec![parts::rule(width)];
    lines.extend(hints(
        &[("Enter", "I am done there"), ("Ctrl-C", "stop waiting")],
        width,
    ));
    lines
}

/// The keys while reading.
pub(super) fn reading(width: usize) -> Vec<Line> {
    let mut lines = vec![parts::rule(width)];
    lines.extend(hints(
        &[("↑↓ PgUp PgDn", "read"), ("Esc", "back to the question")],
        width,
    ));
    lines
}
