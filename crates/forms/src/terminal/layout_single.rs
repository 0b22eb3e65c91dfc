//! The layout for terminals of any size: one field at a time.

use std::time::SystemTime;

use mcp_elicit_core::link::Link;

use super::controller::{Controller, FieldInput};
use super::page::{Body, Line, Page, Style, break_anywhere, wrap};
use super::{keys, widgets};
use crate::view::{Stage, phrases};

/// Rows of a message or description that are shown before it must be opened.
const OPENING: usize = 10;
/// Rows that a message or list keeps on the smallest screen.
const LEAST: usize = 3;
/// Rows for the marks above and below a list that is shown in part.
const MARKS: usize = 2;

/// Returns the page of the current stage, for a screen of `width` by `height`.
pub(super) fn page(controller: &Controller, width: usize, height: usize, now: SystemTime) -> Page {
    let width = width.min(widgets::READABLE);
    let head = widgets::head(controller, width, now);
    if let Some(row) = controller.reading {
        return Page {
            head,
            body: widgets::reader(controller, width, row),
            foot: keys::reader(width, controller.charset),
            ..Page::default()
        };
    }
    let foot = keys::here(controller, width);
    if let (Stage::Confirm, Some(link)) = (
        controller.state.stage(),
        controller.state.question().as_link(),
    ) {
        return link_page(controller, link, head, foot, width);
    }
    let room = height.saturating_sub(head.len() + foot.len());
    let mut rows = Rows {
        opening: OPENING,
        list: room.max(LEAST),
    };
    let mut body = laid_out(controller, width, rows);
    // The list is shortened first, then the message: both can be scrolled.
    let over = body.lines.len().saturating_sub(room);
    if over > 0 {
        let (list, opening) = (
            listed(controller).min(rows.list),
            rows.opening.min(opening_rows(controller, width)),
        );
        rows.list = list.saturating_sub(over + MARKS).max(LEAST);
        let saved = list.saturating_sub(rows.list);
        rows.opening = opening
            .saturating_sub(over.saturating_sub(saved))
            .max(LEAST);
        body = laid_out(controller, width, rows);
    }
    Page {
        head,
        body,
        foot,
        ..Page::default()
    }
}

/// Returns the page of a link: its texts can be scrolled, and the buttons stay visible.
fn link_page(
    controller: &Controller,
    link: &Link,
    head: Vec<Line>,
    foot: Vec<Line>,
    width: usize,
) -> Page {
    let mut body = Body::default();
    let message = controller.state.question().message();
    body.extend(widgets::opening(&message, width, OPENING, Style::Plain));
    body.gap();
    let shown = link.shown();
    let address = Line::of(shown.before, Style::Plain)
        .and(shown.domain, Style::Chosen)
        .and(shown.after, Style::Plain);
    let column = width.saturating_sub(4);
    body.extend(
        break_anywhere(&address, column)
            .into_iter()
            .map(widgets::indent),
    );
    body.gap();
    body.extend(
        wrap(&phrases::goes_to(link), column, Style::Strong)
            .into_iter()
            .map(widgets::indent),
    );
    body.gap();
    widgets::warnings(controller.state.warnings(), width, &mut body);
    let mut buttons = Body::default();
    let say = controller
        .notice
        .unwrap_or_else(|| phrases::confirm(controller.state.question()));
    let style = if controller.notice.is_some() {
        Style::Warn
    } else {
        Style::Strong
    };
    buttons.extend(wrap(say, column, style).into_iter().map(widgets::indent));
    widgets::buttons(controller, 0, width, &mut buttons);
    Page {
        head,
        body,
        pinned: buttons.lines,
        foot,
        scroll: Some(controller.scroll),
    }
}

/// The rows for the parts that can be shortened.
#[derive(Clone, Copy)]
struct Rows {
    opening: usize,
    list: usize,
}

/// Returns the number of entries in the list of this stage, if there is one.
fn listed(controller: &Controller) -> usize {
    match controller.state.stage() {
        Stage::Field(index) => match controller.inputs.get(index) {
            Some(FieldInput::Picker(picker)) => picker.counts().1,
            Some(FieldInput::Editor(_)) | None => 0,
        },
        Stage::Warnings | Stage::Review | Stage::Confirm => 0,
    }
}

fn opening_rows(controller: &Controller, width: usize) -> usize {
    widgets::opening(
        &controller.state.question().message(),
        width,
        OPENING,
        Style::Plain,
    )
    .len()
}

fn laid_out(controller: &Controller, width: usize, rows: Rows) -> Body {
    let mut body = Body::default();
    body.extend(widgets::opening(
        &controller.state.question().message(),
        width,
        rows.opening,
        Style::Plain,
    ));
    body.gap();
    match controller.state.stage() {
        Stage::Warnings => warnings(controller, width, &mut body),
        Stage::Confirm => confirm(controller, width, &mut body),
        Stage::Review => review(controller, width, &mut body),
        Stage::Field(index) => field(controller, index, width, rows.list, &mut body),
    }
    if let Some(notice) = controller.notice {
        body.gap();
        body.push(Line::of(format!("  {notice}"), Style::Warn));
        let last = body.lines.len() - 1;
        body.focus = body
            .focus
            .map(|(first, _)| (first, last))
            .or(Some((last, last)));
    }
    body
}

fn warnings(controller: &Controller, width: usize, body: &mut Body) {
    widgets::warnings(controller.state.warnings(), width, body);
    body.gap();
    body.extend(
        wrap(
            phrases::NO_CREDENTIALS_IN_FORMS,
            width.saturating_sub(4),
            Style::Plain,
        )
        .into_iter()
        .map(widgets::indent),
    );
    body.gap();
    widgets::buttons(controller, 0, width, body);
}

fn confirm(controller: &Controller, width: usize, body: &mut Body) {
    widgets::warnings(controller.state.warnings(), width, body);
    body.gap();
    body.push(Line::of(
        format!("  {}", phrases::confirm(controller.state.question())),
        Style::Strong,
    ));
    body.gap();
    widgets::buttons(controller, 0, width, body);
}

fn review(controller: &Controller, width: usize, body: &mut Body) {
    let fields = controller.state.fields();
    body.push(Line::of("  Your answer, as it will be sent", Style::Strong));
    body.gap();
    let labels = widgets::label_column(fields, width);
    for (index, field) in fields.iter().enumerate() {
        let here = controller.at == Some(index);
        let first = body.lines.len();
        let column = width.saturating_sub(labels + 6);
        let mut value = match controller.state.sent(index) {
            Some(sent) => wrap(&sent.join("\n"), column, Style::Plain),
            None => wrap(phrases::EMPTY, column, Style::Dim),
        };
        if let Some(typed) = phrases::typed_as(&controller.state, index) {
            value.extend(wrap(&typed, column, Style::Warn));
        }
        body.extend(widgets::row(&field.label, labels, here, &value));
        if here {
            body.focus = Some((first, body.lines.len() - 1));
        }
    }
    body.gap();
    widgets::buttons(controller, fields.len(), width, body);
}

fn field(controller: &Controller, index: usize, width: usize, list: usize, body: &mut Body) {
    let (Some(field), Some(tool)) = (
        controller.state.fields().get(index),
        controller.inputs.get(index),
    ) else {
        return;
    };
    if !controller.state.warnings().is_empty() {
        widgets::warnings(controller.state.warnings(), width, body);
        body.gap();
    }
    let mut first = body.lines.len();
    body.push(widgets::progress(index, controller.state.fields().len()));
    body.gap();
    let need = if field.required {
        Style::Accent
    } else {
        Style::Dim
    };
    body.push(
        Line::of("  ", Style::Plain)
            .and(&field.label, Style::Strong)
            .and(format!("  {}", field.need()), need),
    );
    if let Some(description) = &field.description {
        body.extend(widgets::opening(
            description,
            width,
            OPENING / 2,
            Style::Plain,
        ));
    }
    if !field.hints.is_empty() {
        body.extend(
            wrap(&field.hint(), width.saturating_sub(4), Style::Dim)
                .into_iter()
                .map(widgets::indent),
        );
    }
    body.gap();
    // Above the typed text, so that a low screen shows both.
    let complaints = widgets::complaints(controller, index, width);
    if !complaints.is_empty() {
        first = body.lines.len();
        body.extend(complaints);
    }
    match tool {
        FieldInput::Editor(editor) => widgets::editor(editor, width, body),
        FieldInput::Picker(picker) => widgets::picker(picker, width, list, body),
    }
    body.extend(widgets::understood(controller, index, width));
    body.focus = Some((first, body.lines.len() - 1));
}
