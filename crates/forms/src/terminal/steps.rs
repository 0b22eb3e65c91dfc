//! One thing at a time: the layout for terminals of any size.

use std::time::SystemTime;

use mcp_elicit_core::link::Link;

use super::desk::{Desk, Tool};
use super::page::{Body, Line, Page, Style, break_anywhere, wrap};
use super::{keys, parts};
use crate::view::{Stage, words};

/// Rows of a message or description shown before it must be opened to be read on.
const OPENING: usize = 10;
/// Rows that a message or list keeps on the lowest screen.
const LEAST: usize = 3;
/// Rows for the marks above and below a list of which only a part is shown.
const MARKS: usize = 2;

/// The page for where the person is, for a screen of `width` by `height`.
pub(super) fn page(desk: &Desk, width: usize, height: usize, now: SystemTime) -> Page {
    let width = width.min(parts::READABLE);
    let head = parts::head(desk, width, now);
    if let Some(row) = desk.reading {
        return Page {
            head,
            body: parts::reading(desk, width, row),
            foot: keys::reading(width, desk.charset),
            ..Page::default()
        };
    }
    let foot = keys::here(desk, width);
    if let (Stage::Confirm, Some(link)) = (desk.sheet.stage(), desk.sheet.question().as_link()) {
        return link_page(desk, link, head, foot, width);
    }
    let room = height.saturating_sub(head.len() + foot.len());
    let mut rows = Rows {
        opening: OPENING,
        list: room.max(LEAST),
    };
    let mut body = laid_out(desk, width, rows);
    // What does not fit is taken from the list first, then from the message: both can be moved through.
    let over = body.lines.len().saturating_sub(room);
    if over > 0 {
        let (list, opening) = (
            listed(desk).min(rows.list),
            rows.opening.min(opening_rows(desk, width)),
        );
        rows.list = list.saturating_sub(over + MARKS).max(LEAST);
        let saved = list.saturating_sub(rows.list);
        rows.opening = opening
            .saturating_sub(over.saturating_sub(saved))
            .max(LEAST);
        body = laid_out(desk, width, rows);
    }
    Page {
        head,
        body,
        foot,
        ..Page::default()
    }
}

/// The page of a link: everything about it can be scrolled through, and the buttons stay in sight.
fn link_page(desk: &Desk, link: &Link, head: Vec<Line>, foot: Vec<Line>, width: usize) -> Page {
    let mut body = Body::default();
    let message = desk.sheet.question().message();
    body.extend(parts::opening(&message, width, OPENING, Style::Plain));
    body.gap();
    let shown = link.shown();
    let address = Line::of(shown.before, Style::Plain)
        .and(shown.domain, Style::Chosen)
        .and(shown.after, Style::Plain);
    let column = width.saturating_sub(4);
    body.extend(
        break_anywhere(&address, column)
            .into_iter()
            .map(parts::indent),
    );
    body.gap();
    body.extend(
        wrap(&words::goes_to(link), column, Style::Strong)
            .into_iter()
            .map(parts::indent),
    );
    body.gap();
    parts::warnings(desk.sheet.warnings(), width, &mut body);
    let mut buttons = Body::default();
    let say = desk
        .notice
        .unwrap_or_else(|| words::confirm(desk.sheet.question()));
    let style = if desk.notice.is_some() {
        Style::Warn
    } else {
        Style::Strong
    };
    buttons.extend(wrap(say, column, style).into_iter().map(parts::indent));
    parts::buttons(desk, 0, width, &mut buttons);
    Page {
        head,
        body,
        pinned: buttons.lines,
        foot,
        scroll: Some(desk.scroll),
    }
}

/// The rows for the parts that can be shown in part.
#[derive(Clone, Copy)]
struct Rows {
    opening: usize,
    list: usize,
}

/// Returns how many entries the list at this stage has, if there is one.
fn listed(desk: &Desk) -> usize {
    match desk.sheet.stage() {
        Stage::Field(index) => match desk.tools.get(index) {
            Some(Tool::Picker(picker)) => picker.counts().1,
            Some(Tool::Editor(_)) | None => 0,
        },
        Stage::Caution | Stage::Review | Stage::Confirm => 0,
    }
}

fn opening_rows(desk: &Desk, width: usize) -> usize {
    parts::opening(
        &desk.sheet.question().message(),
        width,
        OPENING,
        Style::Plain,
    )
    .len()
}

fn laid_out(desk: &Desk, width: usize, rows: Rows) -> Body {
    let mut body = Body::default();
    body.extend(parts::opening(
        &desk.sheet.question().message(),
        width,
        rows.opening,
        Style::Plain,
    ));
    body.gap();
    match desk.sheet.stage() {
        Stage::Caution => caution(desk, width, &mut body),
        Stage::Confirm => confirm(desk, width, &mut body),
        Stage::Review => review(desk, width, &mut body),
        Stage::Field(index) => field(desk, index, width, rows.list, &mut body),
    }
    if let Some(notice) = desk.notice {
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

fn caution(desk: &Desk, width: usize, body: &mut Body) {
    parts::warnings(desk.sheet.warnings(), width, body);
    body.gap();
    body.extend(
        wrap(
            words::NO_PLACE_FOR_SECRETS,
            width.saturating_sub(4),
            Style::Plain,
        )
        .into_iter()
        .map(parts::indent),
    );
    body.gap();
    parts::buttons(desk, 0, width, body);
}

fn confirm(desk: &Desk, width: usize, body: &mut Body) {
    parts::warnings(desk.sheet.warnings(), width, body);
    body.gap();
    body.push(Line::of(
        format!("  {}", words::confirm(desk.sheet.question())),
        Style::Strong,
    ));
    body.gap();
    parts::buttons(desk, 0, width, body);
}

fn review(desk: &Desk, width: usize, body: &mut Body) {
    let fields = desk.sheet.fields();
    body.push(Line::of("  Your answer, as it will be sent", Style::Strong));
    body.gap();
    let labels = parts::label_column(fields, width);
    for (index, field) in fields.iter().enumerate() {
        let here = desk.at == Some(index);
        let first = body.lines.len();
        let column = width.saturating_sub(labels + 6);
        let mut value = match desk.sheet.sent(index) {
            Some(sent) => wrap(&sent.join("\n"), column, Style::Plain),
            None => wrap(words::EMPTY, column, Style::Dim),
        };
        if let Some(typed) = words::typed_as(&desk.sheet, index) {
            value.extend(wrap(&typed, column, Style::Warn));
        }
        body.extend(parts::row(&field.label, labels, here, &value));
        if here {
            body.focus = Some((first, body.lines.len() - 1));
        }
    }
    body.gap();
    parts::buttons(desk, fields.len(), width, body);
}

fn field(desk: &Desk, index: usize, width: usize, list: usize, body: &mut Body) {
    let (Some(field), Some(tool)) = (desk.sheet.fields().get(index), desk.tools.get(index)) else {
        return;
    };
    if !desk.sheet.warnings().is_empty() {
        parts::warnings(desk.sheet.warnings(), width, body);
        body.gap();
    }
    let mut first = body.lines.len();
    body.push(parts::progress(index, desk.sheet.fields().len()));
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
        body.extend(parts::opening(
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
                .map(parts::indent),
        );
    }
    body.gap();
    // Above what is typed, so that a low screen has both in sight.
    let complaints = parts::complaints(desk, index, width);
    if !complaints.is_empty() {
        first = body.lines.len();
        body.extend(complaints);
    }
    match tool {
        Tool::Editor(editor) => parts::editor(editor, width, body),
        Tool::Picker(picker) => parts::picker(picker, width, list, body),
    }
    body.extend(parts::understood(desk, index, width));
    body.focus = Some((first, body.lines.len() - 1));
}
