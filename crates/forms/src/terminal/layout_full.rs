//! The layout for wide terminals: the whole form at once, with each field's description and errors beside it.

use std::time::SystemTime;

use super::controller::{Controller, FieldInput};
use super::page::{ScreenBody, ScreenLine, ScreenPage, SpanStyle, wrap};
use super::{keys, widgets};
use crate::view::{AnswerStage, FieldView};

/// The columns and rows from which the whole form is shown.
const WIDE: (usize, usize) = (100, 20);
/// The maximum width of the form, in columns.
const WIDEST: usize = 130;

/// Returns `true` if this stage is shown whole on a screen of this size: a form of several fields that is being filled
/// in.
pub(super) fn fits(controller: &Controller, width: usize, height: usize) -> bool {
    controller.reading.is_none()
        && width >= WIDE.0
        && height >= WIDE.1
        && controller.state.fields().len() > 1
        && matches!(
            controller.state.stage(),
            AnswerStage::Field(_) | AnswerStage::Review
        )
}

/// The columns of a field: its label, its value, and texts about it.
struct Columns {
    label: usize,
    value: usize,
    beside: usize,
}

/// Returns the page with every field.
pub(super) fn page(
    controller: &Controller,
    width: usize,
    height: usize,
    now: SystemTime,
) -> ScreenPage {
    let width = width.min(WIDEST);
    let fields = controller.state.fields();
    let head = widgets::head(controller, width, height / 4, now);
    let mut body = ScreenBody::default();
    widgets::warnings(controller.state.warnings(), width, &mut body);
    body.gap();
    let label = widgets::label_column(fields, width / 2) + 2;
    let value = (width * 3 / 5).saturating_sub(label + 2);
    let columns = Columns {
        label,
        value,
        beside: width.saturating_sub(label + value + 6),
    };
    let mut focus = None;
    for (index, field) in fields.iter().enumerate() {
        if controller.state.stage() == AnswerStage::Field(index) {
            body.gap();
        }
        let first = body.lines.len();
        block(controller, index, field, &columns, height, &mut body);
        if controller.state.stage() == AnswerStage::Field(index) {
            focus = Some((first, body.lines.len() - 1));
        }
    }
    body.gap();
    let mut row = ScreenBody::default();
    widgets::buttons(controller, fields.len(), width, &mut row);
    let pad = ScreenLine::of(" ".repeat(columns.label + 2), SpanStyle::Plain);
    body.extend(
        row.lines
            .into_iter()
            .map(|line| pad.clone().followed_by(line)),
    );
    let last = body.lines.len() - 1;
    body.focus = focus.or(Some((last, last)));
    ScreenPage {
        head: head.lines,
        question: head.question,
        body,
        pinned: widgets::pinned(controller, width, height, true),
        foot: keys::here(controller, width),
        ..ScreenPage::default()
    }
}

/// Lays out one field: a row, or several while it is selected.
fn block(
    controller: &Controller,
    index: usize,
    field: &FieldView,
    columns: &Columns,
    height: usize,
    body: &mut ScreenBody,
) {
    let here = controller.state.stage() == AnswerStage::Field(index);
    let held = if here {
        being_answered(controller, index, columns, height)
    } else {
        answered(controller, index, columns)
    };
    let beside = if here {
        about(controller, index, field, columns)
    } else {
        wrong(controller, index, columns)
    };
    if let Some((row, column)) = held.cursor {
        body.cursor = Some((body.lines.len() + row, column + columns.label + 2));
    }
    if let Some(row) = held.here {
        body.here = Some(body.lines.len() + row);
    }
    let rows = held.lines.len().max(beside.len()).max(1);
    let label = ScreenLine::of(if here { "❯ " } else { "  " }, SpanStyle::Accent)
        .and(
            &field.label,
            if here {
                SpanStyle::Chosen
            } else {
                SpanStyle::Plain
            },
        )
        .and(if field.required { " *" } else { "" }, SpanStyle::Accent)
        .cut(columns.label + 2);
    for row in 0..rows {
        let start = if row == 0 {
            label.clone()
        } else {
            ScreenLine::new()
        };
        let value = held.lines.get(row).cloned().unwrap_or_default();
        let say = beside.get(row).cloned().unwrap_or_default();
        let bar = ScreenLine::of(if here { " │ " } else { "   " }, SpanStyle::Dim);
        let line = start
            .padded(columns.label + 2)
            .followed_by(value.cut(columns.value).padded(columns.value));
        body.push(line.followed_by(bar).followed_by(say));
    }
    if here {
        body.push(ScreenLine::new());
    }
}

fn being_answered(
    controller: &Controller,
    index: usize,
    columns: &Columns,
    height: usize,
) -> ScreenBody {
    let mut held = ScreenBody::default();
    match controller.inputs.get(index) {
        Some(FieldInput::Editor(editor)) => widgets::editor(editor, columns.value + 2, &mut held),
        Some(FieldInput::Picker(picker)) => {
            widgets::picker(picker, columns.value, (height / 3).clamp(3, 10), &mut held);
        }
        None => {}
    }
    held
}

fn answered(controller: &Controller, index: usize, columns: &Columns) -> ScreenBody {
    let mut held = ScreenBody::default();
    let text = match controller.state.sent(index) {
        Some(sent) => sent.join(", "),
        None => controller
            .state
            .shown(index)
            .unwrap_or_else(|| "·".to_owned()),
    };
    let rows = wrap(&text, columns.value.saturating_sub(4), SpanStyle::Dim);
    let more = rows.len() > 1;
    if let Some(first) = rows.into_iter().next() {
        let first = ScreenLine::of("    ", SpanStyle::Plain).followed_by(first);
        held.push(if more {
            first.and(" …", SpanStyle::Dim)
        } else {
            first
        });
    }
    held
}

/// Returns the description of the selected field, its limits, and its errors.
fn about(
    controller: &Controller,
    index: usize,
    field: &FieldView,
    columns: &Columns,
) -> Vec<ScreenLine> {
    let mut lines = widgets::complaints(controller, index, columns.beside + 2);
    lines.extend(widgets::understood(controller, index, columns.beside + 2));
    lines.push(ScreenLine::of(
        field.need(),
        if field.required {
            SpanStyle::Accent
        } else {
            SpanStyle::Dim
        },
    ));
    if let Some(description) = &field.description {
        lines.extend(
            wrap(description, columns.beside, SpanStyle::Plain)
                .into_iter()
                .take(8),
        );
    }
    if !field.hints.is_empty() {
        lines.extend(wrap(&field.hint(), columns.beside, SpanStyle::Dim));
    }
    lines
}

fn wrong(controller: &Controller, index: usize, columns: &Columns) -> Vec<ScreenLine> {
    let complaints = widgets::complaints(controller, index, columns.beside + 2);
    let understood = widgets::understood(controller, index, columns.beside + 2);
    complaints.into_iter().chain(understood).take(2).collect()
}
