//! The foot of a page: the keys that work here.

use unicode_width::UnicodeWidthStr;

use super::charset::Charset;
use super::controller::{Controller, FieldInput};
use super::page::{ScreenLine, SpanStyle};
use super::widgets;
use crate::view::{AnswerStage, Control};

/// Returns the keys that work here; those that leave are always on the last row.
pub(super) fn here(controller: &Controller, width: usize) -> Vec<ScreenLine> {
    let mut lines = vec![widgets::rule(width)];
    let several = |index: usize| match controller.inputs.get(index) {
        Some(FieldInput::Picker(picker)) => Some(picker.is_several()),
        _ => None,
    };
    let mut here: Vec<(&str, &str)> = match controller.state.stage() {
        AnswerStage::Field(_) if controller.sends_at_once() => {
            vec![("y n", "choose"), ("↑↓", "move"), ("Enter", "send")]
        }
        AnswerStage::Field(index) if controller.wide => match several(index) {
            Some(true) => vec![
                ("Tab ↑↓", "move"),
                ("Space", "mark"),
                ("a-z", "search"),
                ("Enter", "next"),
            ],
            Some(false) => vec![
                ("Tab ↑↓", "move"),
                ("Space", "choose"),
                ("a-z", "search"),
                ("Enter", "choose, next"),
            ],
            None => vec![("Tab ↑↓", "move"), ("Enter", "next")],
        },
        AnswerStage::Review if controller.wide => vec![
            ("y", "choose Send"),
            ("←→", "move"),
            ("Enter", "press"),
            ("↑", "back to the form"),
        ],
        AnswerStage::Field(index) => match (several(index), controller.state.fields().get(index)) {
            (Some(true), _) => vec![
                ("Space", "mark"),
                ("↑↓", "move"),
                ("a-z", "search"),
                ("Enter", "next"),
                ("Shift-Tab", "back"),
            ],
            (Some(false), _) => vec![
                ("↑↓", "move"),
                ("a-z", "search"),
                ("Enter", "choose"),
                ("Shift-Tab", "back"),
            ],
            (None, Some(field)) if matches!(field.control, Control::Text { long: true }) => vec![
                ("Enter", "next"),
                ("Alt-Enter", "new line"),
                ("Shift-Tab", "back"),
            ],
            (None, _) => vec![("Enter", "next"), ("Shift-Tab", "back")],
        },
        AnswerStage::Review => vec![
            ("y", "choose Send"),
            ("↑↓", "move"),
            ("Enter", "press, or change the marked answer"),
        ],
        AnswerStage::Confirm => vec![("y n", "choose"), ("←→", "move"), ("Enter", "press")],
        AnswerStage::Warnings => vec![("←→", "move"), ("Enter", "press")],
    };
    if matches!(controller.state.stage(), AnswerStage::Field(_)) && !controller.sends_at_once() {
        here.push(("Ctrl-S", "to the review"));
    }
    if controller.scrolls() {
        here.push(("↑↓", "scroll"));
    }
    here.push(("Ctrl-O", "read all"));
    let here = &here[..];
    lines.extend(hints(here, width, controller.charset));
    lines.push(exit_keys(controller, width));
    lines
}

/// Returns the keys that decline and leave: always on one row, always the last. While no key counts yet, the row says so.
fn exit_keys(controller: &Controller, width: usize) -> ScreenLine {
    if controller.is_unread {
        let text = if width >= 48 {
            " Read first: keys count after a short pause."
        } else {
            " Read first."
        };
        return ScreenLine::of(text, SpanStyle::Dim);
    }
    let always: &[_] = if controller.state.offers_from_now_on() {
        &[("Ctrl-R", "decline always")]
    } else {
        &[]
    };
    let out = [("Ctrl-X", "decline"), ("Esc", "cancel")];
    let line = hints(&[&out, always].concat(), width, controller.charset)
        .into_iter()
        .next()
        .unwrap_or_default();
    if width >= 32 {
        return line;
    }
    ScreenLine::of(" ^X", SpanStyle::Strong)
        .and(" decline", SpanStyle::Dim)
        .and(" Esc", SpanStyle::Strong)
        .and(" cancel", SpanStyle::Dim)
}

fn hints(keys: &[(&str, &str)], width: usize, charset: Charset) -> Vec<ScreenLine> {
    let mut lines = vec![ScreenLine::of(" ", SpanStyle::Plain)];
    for (key, does) in keys {
        let key = match charset {
            Charset::Unicode => (*key).to_owned(),
            Charset::Ascii => key
                .replace("↑↓", "Up Down")
                .replace("←→", "Left Right")
                .replace('↑', "Up"),
        };
        let columns = key.width() + does.width() + 4;
        let full = lines
            .last()
            .is_some_and(|line| line.width() > 1 && line.width() + columns > width);
        if full {
            lines.push(ScreenLine::of(" ", SpanStyle::Plain));
        }
        if let Some(line) = lines.pop() {
            lines.push(
                line.and(" ", SpanStyle::Plain)
                    .and(key, SpanStyle::Strong)
                    .and(format!(" {does}  "), SpanStyle::Dim),
            );
        }
    }
    lines
}

/// Returns the keys during a visit.
pub(super) fn visiting(width: usize) -> Vec<ScreenLine> {
    let mut lines = vec![widgets::rule(width)];
    lines.extend(hints(
        &[("Enter", "I am done there"), ("Ctrl-C", "stop waiting")],
        width,
        Charset::Unicode,
    ));
    lines
}

/// Returns the keys of the full text.
pub(super) fn reader(width: usize, charset: Charset) -> Vec<ScreenLine> {
    let mut lines = vec![widgets::rule(width)];
    lines.extend(hints(
        &[("↑↓ PgUp PgDn", "read"), ("Esc", "back to the question")],
        width,
        charset,
    ));
    lines
}
