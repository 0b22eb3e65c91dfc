//! One thing at a time: the layout for terminals of any size.

use std::time::SystemTime;

use super::desk::{Desk, Tool};
use super::page::{Body, Line, Page, Style, break_anywhere, wrap};
use super::parts;
use crate::view::{Stage, words};

/// The widest that text runs, in columns: longer rows are hard to read.
const READABLE: usize = 80;
/// Rows of a message or description shown before it must be opened to be read on.
const OPENING: usize = 10;

/// The page for where the person is, for a screen of `width` by `height`.
pub(super) fn page(
    desk: &Desk,
    width: usize,
    height: usize,
    now: SystemTime,
    pending: usize,
) -> Page {
    let width = width.min(READABLE);
    let head = parts::head(desk.sheet.question(), width, now, pending);
    if let Some(row) = desk.reading {
        return Page {
            head,
            body: parts::reading(desk, width, row),
            foot: parts::reading_keys(width),
        };
    }
    let mut body = Body::default();
    let opening = if height < 24 { OPENING / 2 } else { OPENING };
    body.extend(parts::opening(
        &desk.sheet.question().message(),
        width,
        opening,
        Style::Plain,
    ));
    body.gap();
    match desk.sheet.stage() {
        Stage::Caution => caution(desk, width, &mut body),
        Stage::Confirm => confirm(desk, width, &mut body),
        Stage::Review => review(desk, width, &mut body),
        Stage::Field(index) => field(desk, index, width, height, &mut body),
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
    Page {
        head,
        body,
        foot: parts::keys(desk, width),
    }
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
    if let Some(link) = desk.sheet.question().as_link() {
        let shown = link.shown();
        let address = Line::of(shown.before, Style::Plain)
            .and(shown.domain, Style::Chosen)
            .and(shown.after, Style::Plain);
        body.extend(
            break_anywhere(&address, width.saturating_sub(4))
                .into_iter()
                .map(parts::indent),
        );
        body.gap();
        body.extend(
            wrap(
                &words::goes_to(link),
                width.saturating_sub(2),
                Style::Strong,
            )
            .into_iter()
            .map(parts::indent),
        );
        body.gap();
    }
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
    body.push(Line::of("  Your answer", Style::Strong));
    body.gap();
    let labels = parts::label_column(fields, width);
    for (index, field) in fields.iter().enumerate() {
        let here = desk.at == Some(index);
        let first = body.lines.len();
        let (text, style) = match desk.sheet.shown(index) {
            Some(shown) => (shown, Style::Plain),
            None => (words::EMPTY.to_owned(), Style::Dim),
        };
        body.extend(parts::row(
            &field.label,
            labels,
            here,
            &wrap(&text, width.saturating_sub(labels + 6), style),
        ));
        if here {
            body.focus = Some((first, body.lines.len() - 1));
        }
    }
    body.gap();
    parts::buttons(desk, fields.len(), width, body);
}

fn field(desk: &Desk, index: usize, width: usize, height: usize, body: &mut Body) {
    let (Some(field), Some(tool)) = (desk.sheet.fields().get(index), desk.tools.get(index)) else {
        return;
    };
    if !desk.sheet.warnings().is_empty() {
        parts::warnings(desk.sheet.warnings(), width, body);
        body.gap();
    }
    let first = body.lines.len();
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
    match tool {
        Tool::Editor(editor) => parts::editor(editor, width, body),
        Tool::Picker(picker) => parts::picker(picker, width, (height / 2).clamp(3, 12), body),
    }
    body.gap();
    let from = body.lines.len();
    body.extend(parts::complaints(desk, index, width));
    let last = body.lines.len().max(from + 1) - 1;
    body.focus = Some((first, last.min(body.lines.len().saturating_sub(1))));
}
