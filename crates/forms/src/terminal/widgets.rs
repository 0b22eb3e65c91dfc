//! The parts of layouts.

use std::time::SystemTime;

use mcp_elicit_core::link::WarningLevel;
use unicode_width::UnicodeWidthStr;

use super::controller::Controller;
use super::editor::Editor;
use super::page::{ScreenBody, ScreenLine, SpanStyle, wrap};
use super::picker::Picker;
use crate::view::{AnswerStage, CallView, FieldView, Warning, countdown, phrases};

/// The widest text, in columns: longer rows are hard to read.
pub(super) const READABLE: usize = 80;
/// The most waiting questions that are listed.
const LISTED: usize = 50;

pub(super) fn indent(line: ScreenLine) -> ScreenLine {
    ScreenLine::of("  ", SpanStyle::Plain).followed_by(line)
}

/// Returns a horizontal line.
pub(super) fn rule(width: usize) -> ScreenLine {
    ScreenLine::of("─".repeat(width), SpanStyle::Dim)
}

/// The rows above a page: the question, who asks it for which call, and the time left.
pub(super) struct QuestionHead {
    pub(super) lines: Vec<ScreenLine>,
    /// The number of rows of the question, with which it begins.
    pub(super) question: usize,
}

/// Returns the head, with at most `most` rows of the question.
pub(super) fn head(
    controller: &Controller,
    width: usize,
    most: usize,
    now: SystemTime,
) -> QuestionHead {
    let mut lines = question_rows(controller, width, most);
    let question = lines.len();
    lines.extend(who(controller, width, now));
    lines.extend(queue(controller, width));
    lines.push(rule(width));
    QuestionHead { lines, question }
}

/// Returns the beginning of the question, its first paragraph as the strongest text of the page.
fn question_rows(controller: &Controller, width: usize, most: usize) -> Vec<ScreenLine> {
    let message = controller.state.question().message();
    let (first, rest) = message.split_once('\n').unwrap_or((&message, ""));
    let column = width.saturating_sub(4);
    let mut rows = wrap(first, column, SpanStyle::Strong);
    rows.extend(wrap(rest, column, SpanStyle::Plain));
    let rows = rows.into_iter().map(indent).collect();
    shortened(rows, most)
}

/// Returns the number of rows of the whole question.
pub(super) fn question_length(controller: &Controller, width: usize) -> usize {
    question_rows(controller, width, usize::MAX).len()
}

/// Returns one line: who asks, for which call, and the time left. What does not fit is opened by a key, which is named on
/// a line of its own if a part of the call is not shown.
fn who(controller: &Controller, width: usize, now: SystemTime) -> Vec<ScreenLine> {
    let question = controller.state.question();
    let origin = question.origin();
    let left = question.remaining(now);
    let clock = left.map(countdown::left).unwrap_or_default();
    let room = width.saturating_sub(clock.width() + 3);
    let mut line = ScreenLine::of("  ", SpanStyle::Plain).and(origin.title(), SpanStyle::Accent);
    let call = question.call();
    if let Some(call) = call {
        line = line.and(format!(" · {}", phrases::for_call(call)), SpanStyle::Dim);
    }
    let is_cut = line.width() > room;
    let more = [phrases::on_behalf_of(question), origin.connection_line()];
    for fact in more.into_iter().flatten() {
        let longer = line.clone().and(format!(" · {fact}"), SpanStyle::Dim);
        if longer.width() <= room {
            line = longer;
        }
    }
    let line = line.cut(room);
    let gap = width.saturating_sub(line.width() + clock.width() + 1);
    let hurry = if left.is_some_and(countdown::is_short) {
        SpanStyle::Bad
    } else {
        SpanStyle::Dim
    };
    let mut lines = vec![
        line.and(" ".repeat(gap), SpanStyle::Plain)
            .and(clock, hurry),
    ];
    if is_cut || call.is_some_and(CallView::is_shortened) {
        lines.push(ScreenLine::of("  … all of it: Ctrl-O", SpanStyle::Warn));
    }
    lines
}

/// Returns a line about waiting questions: the next one, and the key that lists the others.
fn queue(controller: &Controller, width: usize) -> Option<ScreenLine> {
    let first = phrases::next(controller.pending.first()?);
    let line = match controller.pending.len() {
        1 => format!("Next: {first}"),
        many => format!("{many} more, Ctrl-O lists them. Next: {first}"),
    };
    Some(indent(
        ScreenLine::of(line, SpanStyle::Dim).cut(width.saturating_sub(3)),
    ))
}

/// Returns the beginning of a longer text, with the key that opens all of it.
pub(super) fn opening(text: &str, width: usize, most: usize, style: SpanStyle) -> Vec<ScreenLine> {
    let rows = wrap(text, width.saturating_sub(4), style);
    shortened(rows.into_iter().map(indent).collect(), most)
}

/// Returns at most `most` rows, the last of which says how many more there are, if there are.
fn shortened(mut rows: Vec<ScreenLine>, most: usize) -> Vec<ScreenLine> {
    if rows.len() <= most {
        return rows;
    }
    let more = rows.len() + 1 - most;
    rows.truncate(most.saturating_sub(1).max(1));
    if most > 1 {
        let more = format!("  … {more} more lines, Ctrl-O to read");
        rows.push(ScreenLine::of(more, SpanStyle::Dim));
    } else if let Some(first) = rows.pop() {
        rows.push(first.and(" …", SpanStyle::Dim));
    }
    rows
}

/// Returns the full text: the message, the field's description, origin and caller, the call with all its arguments, and
/// the waiting questions.
fn readable(controller: &Controller, width: usize) -> Vec<ScreenLine> {
    let width = width.min(READABLE);
    let mut body = ScreenBody::default();
    let question = controller.state.question();
    let column = width.saturating_sub(4);
    let say = |body: &mut ScreenBody, text: &str, style| {
        body.extend(wrap(text, column, style).into_iter().map(indent));
    };
    say(&mut body, &question.message(), SpanStyle::Plain);
    if let AnswerStage::Field(index) = controller.state.stage()
        && let Some(field) = controller.state.fields().get(index)
    {
        body.gap();
        say(&mut body, &field.label, SpanStyle::Strong);
        say(
            &mut body,
            field.description.as_deref().unwrap_or_default(),
            SpanStyle::Plain,
        );
        say(&mut body, &field.hint(), SpanStyle::Dim);
    }
    body.gap();
    say(
        &mut body,
        &phrases::asks(question.origin()),
        SpanStyle::Strong,
    );
    if let Some(whom) = phrases::on_behalf_of(question) {
        say(&mut body, &whom, SpanStyle::Plain);
    }
    if let Some(call) = question.call() {
        body.gap();
        let called = format!("Called: {} {}", call.kind().word(), call.name());
        say(&mut body, &called, SpanStyle::Strong);
        say(
            &mut body,
            call.doubt().unwrap_or_default(),
            SpanStyle::Plain,
        );
        for (name, value) in call.arguments_in_full() {
            let text = if name.is_empty() {
                value
            } else {
                format!("{name}: {value}")
            };
            say(&mut body, &text, SpanStyle::Plain);
        }
    }
    if let Some(waiting) = phrases::pending(&controller.pending) {
        body.gap();
        say(&mut body, &format!("{waiting}:"), SpanStyle::Strong);
        for next in controller.pending.iter().take(LISTED) {
            say(&mut body, &phrases::next(next), SpanStyle::Plain);
        }
    }
    body.lines
}

/// Returns the last row to which the full text scrolls.
pub(super) fn last_to_read(controller: &Controller, width: usize) -> usize {
    readable(controller, width).len().saturating_sub(1)
}

/// Returns the full text from `row` on.
pub(super) fn reader(controller: &Controller, width: usize, row: usize) -> ScreenBody {
    let mut body = ScreenBody::default();
    body.extend(readable(controller, width).into_iter().skip(row));
    body
}

/// Adds the warnings.
pub(super) fn warnings(warnings: &[Warning], width: usize, body: &mut ScreenBody) {
    for warning in warnings {
        let style = if warning.level == WarningLevel::Danger {
            SpanStyle::Bad
        } else {
            SpanStyle::Warn
        };
        body.extend(signed(
            "  ! ",
            wrap(&warning.text, width.saturating_sub(6), style),
            style,
        ));
    }
}

/// Returns the progress of the person.
pub(super) fn progress(index: usize, of: usize) -> ScreenLine {
    let mut line = ScreenLine::of("  ", SpanStyle::Plain);
    if of > 1 && of <= 12 {
        line = line
            .and("● ".repeat(index), SpanStyle::Dim)
            .and("● ", SpanStyle::Accent)
            .and("○ ".repeat(of - index - 1), SpanStyle::Dim)
            .and(" ", SpanStyle::Plain);
    }
    line.and(format!("{} of {of}", index + 1), SpanStyle::Dim)
}

/// Adds the typed text, with its cursor.
pub(super) fn editor(editor: &Editor, width: usize, body: &mut ScreenBody) {
    let first = body.lines.len();
    let shown = editor.rows(width.saturating_sub(6));
    body.cursor = Some((first + shown.cursor.0, shown.cursor.1 + 4));
    let style = if editor.is_suggested() {
        SpanStyle::Pressed
    } else {
        SpanStyle::Plain
    };
    for row in shown.rows {
        body.push(ScreenLine::of("  ┃ ", SpanStyle::Accent).and(row, style));
    }
}

/// Adds the list of choices, at most `most` entries of it.
pub(super) fn picker(picker: &Picker, width: usize, most: usize, body: &mut ScreenBody) {
    let (all, matching) = picker.counts();
    if !picker.typed().is_empty() {
        let sought = ScreenLine::of("  / ", SpanStyle::Accent)
            .and(picker.typed(), SpanStyle::Strong)
            .and(format!("   {matching} of {all}"), SpanStyle::Dim);
        body.push(sought);
    }
    let (before, shown, after) = picker.window(most);
    if before > 0 {
        body.push(ScreenLine::of(
            format!("    ↑ {before} more"),
            SpanStyle::Dim,
        ));
    }
    for entry in shown {
        let sign = match (picker.is_several(), entry.chosen) {
            (true, true) => "[x] ",
            (true, false) => "[ ] ",
            (false, true) => "● ",
            (false, false) => "○ ",
        };
        let style = if entry.here {
            SpanStyle::Chosen
        } else {
            SpanStyle::Plain
        };
        let here = if entry.here { "  ❯ " } else { "    " };
        let sign_style = if entry.chosen {
            SpanStyle::Accent
        } else {
            SpanStyle::Dim
        };
        let line = ScreenLine::of(here, SpanStyle::Accent)
            .and(sign, sign_style)
            .and(entry.label, style);
        if entry.here {
            body.here = Some(body.lines.len());
        }
        body.push(line.cut(width));
    }
    if after > 0 {
        body.push(ScreenLine::of(
            format!("    ↓ {after} more"),
            SpanStyle::Dim,
        ));
    }
}

/// Returns the value to send, if it differs from the typed text.
pub(super) fn understood(controller: &Controller, index: usize, width: usize) -> Vec<ScreenLine> {
    let Some(understood) = controller.state.understood(index) else {
        return Vec::new();
    };
    let rows = wrap(&understood, width.saturating_sub(6), SpanStyle::Warn);
    signed("  → ", rows, SpanStyle::Warn).collect()
}

/// Returns the rows that stay above the foot: a question that a key has to answer, or else on a screen on which the page
/// does not fit, the errors that stopped the person.
pub(super) fn pinned(
    controller: &Controller,
    width: usize,
    height: usize,
    fits: bool,
) -> Vec<ScreenLine> {
    if let Some(notice) = controller.notice {
        let rows = wrap(notice, width.saturating_sub(4), SpanStyle::Warn);
        return rows.into_iter().map(indent).collect();
    }
    let AnswerStage::Field(index) = controller.state.stage() else {
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
            rows.push(last.and(" …", SpanStyle::Dim));
        }
    }
    rows
}

/// Returns the errors of the field: gently during input, plainly after the person tried to continue.
pub(super) fn complaints(controller: &Controller, index: usize, width: usize) -> Vec<ScreenLine> {
    let tried = controller.state.was_tried(index);
    let (sign, style) = if tried {
        ("  ✗ ", SpanStyle::Bad)
    } else {
        ("  · ", SpanStyle::Warn)
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
fn signed(sign: &str, rows: Vec<ScreenLine>, style: SpanStyle) -> impl Iterator<Item = ScreenLine> {
    let room = " ".repeat(sign.width());
    rows.into_iter().enumerate().map(move |(index, row)| {
        let start = if index == 0 {
            ScreenLine::of(sign, style)
        } else {
            ScreenLine::of(room.clone(), style)
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
pub(super) fn row(label: &str, column: usize, here: bool, value: &[ScreenLine]) -> Vec<ScreenLine> {
    let empty = ScreenLine::new();
    let first = value.first().unwrap_or(&empty);
    let label = ScreenLine::of(
        label,
        if here {
            SpanStyle::Chosen
        } else {
            SpanStyle::Dim
        },
    )
    .cut(column);
    let sign = ScreenLine::of(if here { "❯ " } else { "  " }, SpanStyle::Accent);
    let mut lines = vec![
        sign.followed_by(label)
            .padded(column + 4)
            .followed_by(first.clone()),
    ];
    lines.extend(value.iter().skip(1).map(|more| {
        ScreenLine::new()
            .padded(column + 4)
            .followed_by(more.clone())
    }));
    lines
}

/// Adds the buttons of this stage, side by side or below each other. `before` is the number of rows before them in the
/// order of the arrow keys.
pub(super) fn buttons(controller: &Controller, before: usize, width: usize, body: &mut ScreenBody) {
    let buttons = controller.buttons();
    let total: usize = buttons.iter().map(|button| button.label.width() + 6).sum();
    let first = body.lines.len();
    let mut line = ScreenLine::of("  ", SpanStyle::Plain);
    for (index, button) in buttons.iter().enumerate() {
        let here = controller.at == Some(before + index);
        let style = if here {
            SpanStyle::Pressed
        } else {
            SpanStyle::Plain
        };
        let (open, close) = if here { ("▸ ", " ") } else { ("  ", " ") };
        line = line
            .and(format!("{open}{}{close}", button.label), style)
            .and("   ", SpanStyle::Plain);
        if total > width {
            body.push(std::mem::replace(
                &mut line,
                ScreenLine::of("  ", SpanStyle::Plain),
            ));
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
