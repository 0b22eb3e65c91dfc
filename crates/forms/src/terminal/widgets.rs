//! The parts of layouts.

use std::time::SystemTime;

use mcp_elicit_core::link::WarningLevel;
use unicode_width::UnicodeWidthStr;

use super::controller::Controller;
use super::editor::Editor;
use super::page::{Body, Line, Style, wrap};
use super::picker::Picker;
use crate::view::{CallView, FieldView, Stage, Warning, countdown, phrases};

/// The widest text, in columns: longer rows are hard to read.
pub(super) const READABLE: usize = 80;
/// The most waiting questions that are listed.
const LISTED: usize = 50;

pub(super) fn indent(line: Line) -> Line {
    Line::of("  ", Style::Plain).followed_by(line)
}

/// Returns a horizontal line.
pub(super) fn rule(width: usize) -> Line {
    Line::of("─".repeat(width), Style::Dim)
}

/// The rows above a page: the question, who asks it for which call, and the time left.
pub(super) struct Head {
    pub(super) lines: Vec<Line>,
    /// The number of rows of the question, with which it begins.
    pub(super) question: usize,
}

/// Returns the head, with at most `most` rows of the question.
pub(super) fn head(controller: &Controller, width: usize, most: usize, now: SystemTime) -> Head {
    let mut lines = question_rows(controller, width, most);
    let question = lines.len();
    lines.extend(who(controller, width, now));
    lines.extend(queue(controller, width));
    lines.push(rule(width));
    Head { lines, question }
}

/// Returns the beginning of the question, its first paragraph as the strongest text of the page.
fn question_rows(controller: &Controller, width: usize, most: usize) -> Vec<Line> {
    let message = controller.state.question().message();
    let (first, rest) = message.split_once('\n').unwrap_or((&message, ""));
    let column = width.saturating_sub(4);
    let mut rows = wrap(first, column, Style::Strong);
    rows.extend(wrap(rest, column, Style::Plain));
    let rows = rows.into_iter().map(indent).collect();
    shortened(rows, most)
}

/// Returns the number of rows of the whole question.
pub(super) fn question_length(controller: &Controller, width: usize) -> usize {
    question_rows(controller, width, usize::MAX).len()
}

/// Returns one line: who asks, for which call, and the time left. What does not fit is opened by a key, which is named on
/// a line of its own if a part of the call is not shown.
fn who(controller: &Controller, width: usize, now: SystemTime) -> Vec<Line> {
    let question = controller.state.question();
    let origin = question.origin();
    let left = question.remaining(now);
    let clock = left.map(countdown::left).unwrap_or_default();
    let room = width.saturating_sub(clock.width() + 3);
    let mut line = Line::of("  ", Style::Plain).and(origin.title(), Style::Accent);
    let call = question.call();
    if let Some(call) = call {
        line = line.and(format!(" · {}", phrases::for_call(call)), Style::Dim);
    }
    let is_cut = line.width() > room;
    let more = [phrases::on_behalf_of(question), origin.connection_line()];
    for fact in more.into_iter().flatten() {
        let longer = line.clone().and(format!(" · {fact}"), Style::Dim);
        if longer.width() <= room {
            line = longer;
        }
    }
    let line = line.cut(room);
    let gap = width.saturating_sub(line.width() + clock.width() + 1);
    let hurry = if left.is_some_and(countdown::is_short) {
        Style::Bad
    } else {
        Style::Dim
    };
    let mut lines = vec![line.and(" ".repeat(gap), Style::Plain).and(clock, hurry)];
    if is_cut || call.is_some_and(CallView::is_shortened) {
        lines.push(Line::of("  … all of it: Ctrl-O", Style::Warn));
    }
    lines
}

/// Returns a line about waiting questions: the next one, and the key that lists the others.
fn queue(controller: &Controller, width: usize) -> Option<Line> {
    let first = phrases::next(controller.pending.first()?);
    let line = match controller.pending.len() {
        1 => format!("Next: {first}"),
        many => format!("{many} more, Ctrl-O lists them. Next: {first}"),
    };
    Some(indent(
        Line::of(line, Style::Dim).cut(width.saturating_sub(3)),
    ))
}

/// Returns the beginning of a longer text, with the key that opens all of it.
pub(super) fn opening(text: &str, width: usize, most: usize, style: Style) -> Vec<Line> {
    let rows = wrap(text, width.saturating_sub(4), style);
    shortened(rows.into_iter().map(indent).collect(), most)
}

/// Returns at most `most` rows, the last of which says how many more there are, if there are.
fn shortened(mut rows: Vec<Line>, most: usize) -> Vec<Line> {
    if rows.len() <= most {
        return rows;
    }
    let more = rows.len() + 1 - most;
    rows.truncate(most.saturating_sub(1).max(1));
    if most > 1 {
        let more = format!("  … {more} more lines, Ctrl-O to read");
        rows.push(Line::of(more, Style::Dim));
    } else if let Some(first) = rows.pop() {
        rows.push(first.and(" …", Style::Dim));
    }
    rows
}

/// Returns the full text: the message, the field's description, origin and caller, the call with all its arguments, and
/// the waiting questions.
fn readable(controller: &Controller, width: usize) -> Vec<Line> {
    let width = width.min(READABLE);
    let mut body = Body::default();
    let question = controller.state.question();
    let column = width.saturating_sub(4);
    let say = |body: &mut Body, text: &str, style| {
        body.extend(wrap(text, column, style).into_iter().map(indent));
    };
    say(&mut body, &question.message(), Style::Plain);
    if let Stage::Field(index) = controller.state.stage()
        && let Some(field) = controller.state.fields().get(index)
    {
        body.gap();
        say(&mut body, &field.label, Style::Strong);
        say(
            &mut body,
            field.description.as_deref().unwrap_or_default(),
            Style::Plain,
        );
        say(&mut body, &field.hint(), Style::Dim);
    }
    body.gap();
    say(&mut body, &phrases::asks(question.origin()), Style::Strong);
    if let Some(whom) = phrases::on_behalf_of(question) {
        say(&mut body, &whom, Style::Plain);
    }
    if let Some(call) = question.call() {
        body.gap();
        let called = format!("Called: {} {}", call.kind().word(), call.name());
        say(&mut body, &called, Style::Strong);
        say(&mut body, call.doubt().unwrap_or_default(), Style::Plain);
        for (name, value) in call.arguments_in_full() {
            let text = if name.is_empty() {
                value
            } else {
                format!("{name}: {value}")
            };
            say(&mut body, &text, Style::Plain);
        }
    }
    if let Some(waiting) = phrases::pending(&controller.pending) {
        body.gap();
        say(&mut body, &format!("{waiting}:"), Style::Strong);
        for next in controller.pending.iter().take(LISTED) {
            say(&mut body, &phrases::next(next), Style::Plain);
        }
    }
    body.lines
}

/// Returns the last row to which the full text scrolls.
pub(super) fn last_to_read(controller: &Controller, width: usize) -> usize {
    readable(controller, width).len().saturating_sub(1)
}

/// Returns the full text from `row` on.
pub(super) fn reader(controller: &Controller, width: usize, row: usize) -> Body {
    let mut body = Body::default();
    body.extend(readable(controller, width).into_iter().skip(row));
    body
}

/// Adds the warnings.
pub(super) fn warnings(warnings: &[Warning], width: usize, body: &mut Body) {
    for warning in warnings {
        let style = if warning.level == WarningLevel::Danger {
            Style::Bad
        } else {
            Style::Warn
        };
        body.extend(signed(
            "  ! ",
            wrap(&warning.text, width.saturating_sub(6), style),
            style,
        ));
    }
}

/// Returns the progress of the person.
pub(super) fn progress(index: usize, of: usize) -> Line {
    let mut line = Line::of("  ", Style::Plain);
    if of > 1 && of <= 12 {
        line = line
            .and("● ".repeat(index), Style::Dim)
            .and("● ", Style::Accent)
            .and("○ ".repeat(of - index - 1), Style::Dim)
            .and(" ", Style::Plain);
    }
    line.and(format!("{} of {of}", index + 1), Style::Dim)
}

/// Adds the typed text, with its cursor.
pub(super) fn editor(editor: &Editor, width: usize, body: &mut Body) {
    let first = body.lines.len();
    let shown = editor.rows(width.saturating_sub(6));
    body.cursor = Some((first + shown.cursor.0, shown.cursor.1 + 4));
    let style = if editor.is_suggested() {
        Style::Pressed
    } else {
        Style::Plain
    };
    for row in shown.rows {
        body.push(Line::of("  ┃ ", Style::Accent).and(row, style));
    }
}

/// Adds the list of choices, at most `most` entries of it.
pub(super) fn picker(picker: &Picker, width: usize, most: usize, body: &mut Body) {
    let (all, matching) = picker.counts();
    if !picker.typed().is_empty() {
        let sought = Line::of("  / ", Style::Accent)
            .and(picker.typed(), Style::Strong)
            .and(format!("   {matching} of {all}"), Style::Dim);
        body.push(sought);
    }
    let (before, shown, after) = picker.window(most);
    if before > 0 {
        body.push(Line::of(format!("    ↑ {before} more"), Style::Dim));
    }
    for entry in shown {
        let sign = match (picker.is_several(), entry.chosen) {
            (true, true) => "[x] ",
            (true, false) => "[ ] ",
            (false, true) => "● ",
            (false, false) => "○ ",
        };
        let style = if entry.here {
            Style::Chosen
        } else {
            Style::Plain
        };
        let here = if entry.here { "  ❯ " } else { "    " };
        let sign_style = if entry.chosen {
            Style::Accent
        } else {
            Style::Dim
        };
        let line = Line::of(here, Style::Accent)
            .and(sign, sign_style)
            .and(entry.label, style);
        if entry.here {
            body.here = Some(body.lines.len());
        }
        body.push(line.cut(width));
    }
    if after > 0 {
        body.push(Line::of(format!("    ↓ {after} more"), Style::Dim));
    }
}

/// Returns the value to send, if it differs from the typed text.
pub(super) fn understood(controller: &Controller, index: usize, width: usize) -> Vec<Line> {
    let Some(understood) = controller.state.understood(index) else {
        return Vec::new();
    };
    let rows = wrap(&understood, width.saturating_sub(6), Style::Warn);
    signed("  → ", rows, Style::Warn).collect()
}

/// Returns the rows that stay above the foot: a question that a key has to answer, or else on a screen on which the page
/// does not fit, the errors that stopped the person.
pub(super) fn pinned(
    controller: &Controller,
    width: usize,
    height: usize,
    fits: bool,
) -> Vec<Line> {
    if let Some(notice) = controller.notice {
        let rows = wrap(notice, width.saturating_sub(4), Style::Warn);
        return rows.into_iter().map(indent).collect();
    }
    let Stage::Field(index) = controller.state.stage() else {
        return Vec::new();
    };
    if fits || !controller.state.was_tried(index) {
        return Vec::new();
    }
    let most = if height < 10 { 2 } else { 3 };
    let mut rows = complaints(controller, index, width);
    if rows.len() > most {
        rows.truncate(most);
        if let Some(last) = rows.pop() {
            rows.push(last.and(" …", Style::Dim));
        }
    }
    rows
}

/// Returns the errors of the field: gently during input, plainly after the person tried to continue.
pub(super) fn complaints(controller: &Controller, index: usize, width: usize) -> Vec<Line> {
    let tried = controller.state.was_tried(index);
    let (sign, style) = if tried {
        ("  ✗ ", Style::Bad)
    } else {
        ("  · ", Style::Warn)
    };
    let mut lines = Vec::new();
    for error in controller.state.errors(index) {
        lines.extend(signed(
            sign,
            wrap(error, width.saturating_sub(6), style),
            style,
        ));
    }
    lines
}

/// Returns rows with a sign before the first and space before the others.
fn signed(sign: &str, rows: Vec<Line>, style: Style) -> impl Iterator<Item = Line> {
    let room = " ".repeat(sign.width());
    rows.into_iter().enumerate().map(move |(index, row)| {
        let start = if index == 0 {
            Line::of(sign, style)
        } else {
            Line::of(room.clone(), style)
        };
        start.followed_by(row)
    })
}

/// Returns the width of the column of labels in a list of answers.
pub(super) fn label_column(fields: &[FieldView], width: usize) -> usize {
    let widest = fields
        .iter()
        .map(|field| field.label.width())
        .max()
        .unwrap_or(0);
    widest.min(width / 3).max(4)
}

/// Returns one labelled answer of one or more rows.
pub(super) fn row(label: &str, column: usize, here: bool, value: &[Line]) -> Vec<Line> {
    let empty = Line::new();
    let first = value.first().unwrap_or(&empty);
    let label = Line::of(label, if here { Style::Chosen } else { Style::Dim }).cut(column);
    let sign = Line::of(if here { "❯ " } else { "  " }, Style::Accent);
    let mut lines = vec![
        sign.followed_by(label)
            .padded(column + 4)
            .followed_by(first.clone()),
    ];
    lines.extend(
        value
            .iter()
            .skip(1)
            .map(|more| Line::new().padded(column + 4).followed_by(more.clone())),
    );
    lines
}

/// Adds the buttons of this stage, side by side or below each other. `before` is the number of rows before them in the
/// order of the arrow keys.
pub(super) fn buttons(controller: &Controller, before: usize, width: usize, body: &mut Body) {
    let buttons = controller.buttons();
    let total: usize = buttons.iter().map(|button| button.label.width() + 6).sum();
    let first = body.lines.len();
    let mut line = Line::of("  ", Style::Plain);
    for (index, button) in buttons.iter().enumerate() {
        let here = controller.at == Some(before + index);
        let style = if here { Style::Pressed } else { Style::Plain };
        let (open, close) = if here { ("▸ ", " ") } else { ("  ", " ") };
        line = line
            .and(format!("{open}{}{close}", button.label), style)
            .and("   ", Style::Plain);
        if total > width {
            body.push(std::mem::replace(&mut line, Line::of("  ", Style::Plain)));
        }
    }
    if total <= width {
        body.push(line);
    }
    let last = body.lines.len().saturating_sub(1);
    if controller.at.is_none_or(|at| at >= before) {
        body.focus = Some((first, last));
    }
}
