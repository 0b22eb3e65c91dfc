//! The layout for terminals of any size: one field at a time.

use std::time::SystemTime;

use mcp_elicit_core::link::Link;

use super::controller::{Controller, FieldInput};
use super::page::{ScreenBody, ScreenLine, ScreenPage, SpanStyle, break_anywhere, wrap};
use super::widgets::QuestionHead;
use super::{keys, widgets};
use crate::view::{AnswerStage, phrases};

/// Rows of a message or description that are shown before it must be opened.
const OPENING: usize = 10;
/// Rows that a message or list keeps on the smallest screen.
const LEAST: usize = 3;
/// The rows of a screen below which a field shows only its label and its input.
const LOW: usize = 9;
/// Rows for the marks above and below a list that is shown in part.
const MARKS: usize = 2;

/// Returns the page of the current stage, for a screen of `width` by `height`.
pub(super) fn page(
    controller: &Controller,
    width: usize,
    height: usize,
    now: SystemTime,
) -> ScreenPage {
    let width = width.min(widgets::READABLE);
    if let Some(row) = controller.reading {
        let head = widgets::head(controller, width, 1, now);
        return ScreenPage {
            head: head.lines,
            question: head.question,
            body: widgets::reader(controller, width, row),
            foot: keys::reader(width, controller.charset),
            ..ScreenPage::default()
        };
    }
    let foot = keys::here(controller, width);
    if let (AnswerStage::Confirm, Some(link)) = (
        controller.state.stage(),
        controller.state.question().as_link(),
    ) {
        let head = widgets::head(controller, width, LEAST, now);
        return link_page(controller, link, head, foot, width);
    }
    let mut opening = OPENING;
    let mut head = widgets::head(controller, width, opening, now);
    let room = |head: &QuestionHead, pinned: usize| {
        height.saturating_sub(head.lines.len() + foot.len() + pinned)
    };
    let mut list = room(&head, 0).max(LEAST);
    let mut body = laid_out(controller, width, list, Space::Enough);
    let mut pinned = widgets::pinned(controller, width, height, true);
    // The list is shortened first, then the question: both can be scrolled.
    let over = body.lines.len().saturating_sub(room(&head, pinned.len()));
    if over > 0 {
        pinned = widgets::pinned(controller, width, height, false);
        let listed = listed(controller).min(list);
        list = listed.saturating_sub(over + MARKS).max(LEAST);
        let saved = listed.saturating_sub(list);
        opening = head
            .question
            .saturating_sub(over.saturating_sub(saved))
            .max(LEAST);
        head = widgets::head(controller, width, opening, now);
        let space = if height < LOW {
            Space::Low
        } else {
            Space::Scrolled
        };
        body = laid_out(controller, width, list, space);
    }
    ScreenPage {
        head: head.lines,
        question: head.question,
        body,
        pinned,
        foot,
        ..ScreenPage::default()
    }
}

/// Returns the page of a link: its texts can be scrolled, and the buttons stay visible.
fn link_page(
    controller: &Controller,
    link: &Link,
    head: QuestionHead,
    foot: Vec<ScreenLine>,
    width: usize,
) -> ScreenPage {
    let mut body = ScreenBody::default();
    // What the head leaves out has to be seen before the link is agreed to.
    if widgets::question_length(controller, width) > head.question {
        let message = controller.state.question().message();
        body.extend(widgets::opening(&message, width, OPENING, SpanStyle::Plain));
        body.gap();
    }
    let shown = link.shown();
    let address = ScreenLine::of(shown.before, SpanStyle::Plain)
        .and(shown.domain, SpanStyle::Chosen)
        .and(shown.after, SpanStyle::Plain);
    let column = width.saturating_sub(4);
    body.extend(
        break_anywhere(&address, column)
            .into_iter()
            .map(widgets::indent),
    );
    body.gap();
    body.extend(
        wrap(&phrases::goes_to(link), column, SpanStyle::Strong)
            .into_iter()
            .map(widgets::indent),
    );
    body.gap();
    widgets::warnings(controller.state.warnings(), width, &mut body);
    let mut buttons = ScreenBody::default();
    let say = controller
        .notice
        .unwrap_or_else(|| phrases::confirm(controller.state.question()));
    let style = if controller.notice.is_some() {
        SpanStyle::Warn
    } else {
        SpanStyle::Strong
    };
    buttons.extend(wrap(say, column, style).into_iter().map(widgets::indent));
    widgets::buttons(controller, 0, width, &mut buttons);
    ScreenPage {
        head: head.lines,
        question: head.question,
        body,
        pinned: buttons.lines,
        foot,
        scroll: Some(controller.scroll),
    }
}

/// Returns the number of entries in the list of this stage, if there is one.
fn listed(controller: &Controller) -> usize {
    match controller.state.stage() {
        AnswerStage::Field(index) => match controller.inputs.get(index) {
            Some(FieldInput::Picker(picker)) => picker.counts().1,
            Some(FieldInput::Editor(_)) | None => 0,
        },
        AnswerStage::Warnings | AnswerStage::Review | AnswerStage::Confirm => 0,
    }
}

/// The room for a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    /// All of it is in sight.
    Enough,
    /// It is scrolled, and errors that stopped the person are pinned.
    Scrolled,
    /// So few rows that a field shows only its label and its input.
    Low,
}

/// Lays out the stage, with at most `list` entries of a list.
fn laid_out(controller: &Controller, width: usize, list: usize, space: Space) -> ScreenBody {
    let mut body = ScreenBody::default();
    match controller.state.stage() {
        AnswerStage::Warnings => warnings(controller, width, &mut body),
        AnswerStage::Confirm => confirm(controller, width, &mut body),
        AnswerStage::Review => review(controller, width, &mut body),
        AnswerStage::Field(index) => field(controller, index, width, list, space, &mut body),
    }
    body
}

fn warnings(controller: &Controller, width: usize, body: &mut ScreenBody) {
    widgets::warnings(controller.state.warnings(), width, body);
    body.gap();
    body.extend(
        wrap(
            phrases::NO_CREDENTIALS_IN_FORMS,
            width.saturating_sub(4),
            SpanStyle::Plain,
        )
        .into_iter()
        .map(widgets::indent),
    );
    body.gap();
    widgets::buttons(controller, 0, width, body);
}

fn confirm(controller: &Controller, width: usize, body: &mut ScreenBody) {
    widgets::warnings(controller.state.warnings(), width, body);
    body.gap();
    body.push(ScreenLine::of(
        format!("  {}", phrases::confirm(controller.state.question())),
        SpanStyle::Strong,
    ));
    body.gap();
    widgets::buttons(controller, 0, width, body);
}

fn review(controller: &Controller, width: usize, body: &mut ScreenBody) {
    let fields = controller.state.fields();
    body.push(ScreenLine::of(
        "  Your answer, as it will be sent",
        SpanStyle::Strong,
    ));
    body.gap();
    let labels = widgets::label_column(fields, width);
    for (index, field) in fields.iter().enumerate() {
        let here = controller.at == Some(index);
        let first = body.lines.len();
        let column = width.saturating_sub(labels + 6);
        let mut value = match controller.state.sent(index) {
            Some(sent) => wrap(&sent.join("\n"), column, SpanStyle::Plain),
            None => wrap(phrases::EMPTY, column, SpanStyle::Dim),
        };
        if let Some(typed) = phrases::typed_as(&controller.state, index) {
            value.extend(wrap(&typed, column, SpanStyle::Warn));
        }
        body.extend(widgets::row(&field.label, labels, here, &value));
        if here {
            body.focus = Some((first, body.lines.len() - 1));
        }
    }
    body.gap();
    widgets::buttons(controller, fields.len(), width, body);
}

fn field(
    controller: &Controller,
    index: usize,
    width: usize,
    list: usize,
    space: Space,
    body: &mut ScreenBody,
) {
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
    let is_low = space == Space::Low;
    if !controller.sends_at_once() && !is_low {
        body.push(widgets::progress(index, controller.state.fields().len()));
        body.gap();
    }
    let need = if field.required {
        SpanStyle::Accent
    } else {
        SpanStyle::Dim
    };
    body.push(
        ScreenLine::of("  ", SpanStyle::Plain)
            .and(&field.label, SpanStyle::Strong)
            .and(format!("  {}", field.need()), need),
    );
    if let Some(description) = field.description.as_ref().filter(|_| !is_low) {
        body.extend(widgets::opening(
            description,
            width,
            OPENING / 2,
            SpanStyle::Plain,
        ));
    }
    if !field.hints.is_empty() && !is_low {
        body.extend(
            wrap(&field.hint(), width.saturating_sub(4), SpanStyle::Dim)
                .into_iter()
                .map(widgets::indent),
        );
    }
    if !is_low {
        body.gap();
    }
    // Above the typed text, so that a low screen shows both.
    let complaints = widgets::complaints(controller, index, width);
    let is_pinned = space != Space::Enough && controller.state.was_tried(index);
    if !complaints.is_empty() && !is_pinned {
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
