//! The mapping from keys to answer-state events.

mod field;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use mcp_elicit_core::answer::DraftValue;

use super::charset::Charset;
use super::editor::Editor;
use super::page::ScreenFrame;
use super::picker::Picker;
use crate::view::{AnswerEvent, AnswerStage, AnswerState, Control, EventEffect, PendingView};

/// The input of a field.
pub(super) enum FieldInput {
    Editor(Editor),
    Picker(Picker),
}

/// A button and its effect.
#[derive(Debug)]
pub(super) struct Button {
    pub(super) label: &'static str,
    pub(super) does: AnswerEvent,
}

/// An answer state, the inputs of its fields, and the position of the cursor.
pub(super) struct Controller {
    pub(super) state: AnswerState,
    pub(super) inputs: Vec<FieldInput>,
    /// The selected row of the review, fields first and then the buttons; elsewhere the selected button. `None` if a
    /// stray Enter must not press a button.
    pub(super) at: Option<usize>,
    /// The first row of the full text, while it is open.
    pub(super) reading: Option<usize>,
    /// Shown once, until the next key.
    pub(super) notice: Option<&'static str>,
    /// `true` if the question has only just appeared, so that keys do not count yet.
    pub(super) is_unread: bool,
    /// `true` if all fields are on the screen at once, so that Tab and arrows move between them.
    pub(super) wide: bool,
    /// The questions that wait behind this one.
    pub(super) pending: Vec<PendingView>,
    /// The characters that the terminal can draw.
    pub(super) charset: Charset,
    /// The first row of a link's page.
    pub(super) scroll: usize,
    /// The zone that is proposed for a time without one.
    zone: String,
    /// The part of a link's page that has been visible.
    looked: RowsSeen,
    /// The choice that the person has to confirm.
    unsure: Option<Confirmation>,
}

/// An action that must be confirmed. Repeating its own key does not confirm it, because a key may be held down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Confirmation {
    Cancel,
    Decline,
    DeclineFromNowOn,
}

impl Confirmation {
    /// Returns the text of the confirmation; `typed` if work would be lost.
    fn question(self, typed: bool) -> &'static str {
        match (self, typed) {
            (Self::Cancel, true) => "Cancel and drop what you typed? Press y, or n to stay.",
            (Self::Cancel, false) => "Cancel, without a choice? Press y, or n to stay.",
            (Self::Decline, true) => "Decline and drop what you typed? Press y, or n to stay.",
            (Self::Decline, false) => "Decline? Press y, or n to stay.",
            (Self::DeclineFromNowOn, _) => {
                "Decline this and every later question of this server? Press y, or n to stay."
            }
        }
    }

    fn event(self) -> AnswerEvent {
        match self {
            Self::Cancel => AnswerEvent::Cancel,
            Self::Decline => AnswerEvent::Decline,
            Self::DeclineFromNowOn => AnswerEvent::DeclineFromNowOn,
        }
    }
}

/// The part of a link's page that has been visible.
#[derive(Clone, Copy, Default)]
struct RowsSeen {
    /// The columns of the page for which these rows were counted.
    width: usize,
    /// Every row before this one was visible.
    rows: usize,
    /// The number of visible rows, by which Page Up and Page Down move.
    step: usize,
    /// `true` if there are more rows than are visible.
    longer: bool,
    /// `true` if the last row was visible, and all before it.
    whole: bool,
}

const CHOOSE: &str = "Choose with the arrow keys first, then press Enter.";
const CHOOSE_SEND: &str = "Nothing is sent yet: choose Send with y, then press Enter.";
const PRESS: &str = "Press Enter to confirm.";
const SEND_YES: &str = "Press Enter to send Yes.";
const SEND_NO: &str = "Press Enter to send No.";
const NO_MATCH: &str = "No option matches this letter.";
const READ_FIRST: &str = "Read the address to its end first, with the down arrow.";

impl Controller {
    pub(super) fn new(state: AnswerState, zone: &str) -> Self {
        let inputs = state
            .fields()
            .iter()
            .enumerate()
            .map(
                |(index, field)| match Picker::from_field(field, state.typed(index)) {
                    Some(picker) => FieldInput::Picker(picker),
                    None => FieldInput::Editor(
                        Editor::suggesting(
                            text_of(state.typed(index)),
                            field.control.takes_lines(),
                        )
                        .masked(field.is_secret),
                    ),
                },
            )
            .collect();
        let pending = state.question().pending().to_vec();
        let mut controller = Self {
            state,
            inputs,
            at: None,
            reading: None,
            notice: None,
            is_unread: false,
            wide: false,
            pending,
            charset: Charset::Unicode,
            scroll: 0,
            zone: zone.to_owned(),
            looked: RowsSeen::default(),
            unsure: None,
        };
        if controller.sends_at_once()
            && let Some(FieldInput::Picker(picker)) = controller.inputs.first_mut()
        {
            picker.leave();
        }
        controller.reset_focus(None);
        controller
    }

    /// Returns `true` if the form only asks yes or no: the choice is the whole answer, so it is sent without a review.
    pub(super) fn sends_at_once(&self) -> bool {
        matches!(self.state.fields(), [field] if field.control == Control::YesNo)
    }

    /// Returns the buttons of this stage.
    pub(super) fn buttons(&self) -> Vec<Button> {
        let button = |label, does| Button { label, does };
        let link = self.state.question().as_link().is_some();
        match self.state.stage() {
            AnswerStage::Field(_) if !self.wide => Vec::new(),
            AnswerStage::Warnings => vec![
                button("Answer anyway", AnswerEvent::AllowCredentials),
                button("Decline", AnswerEvent::Decline),
                button("Cancel", AnswerEvent::Cancel),
            ],
            AnswerStage::Confirm if link => vec![
                button("Yes, open it", AnswerEvent::Accept),
                button("No, decline", AnswerEvent::Decline),
                button("Cancel", AnswerEvent::Cancel),
            ],
            AnswerStage::Confirm => {
                vec![
                    button("Yes", AnswerEvent::Accept),
                    button("No", AnswerEvent::Decline),
                    button("Cancel", AnswerEvent::Cancel),
                ]
            }
            AnswerStage::Field(_) | AnswerStage::Review => vec![
                button("Send", AnswerEvent::Accept),
                button("Decline", AnswerEvent::Decline),
                button("Cancel", AnswerEvent::Cancel),
            ],
        }
    }

    /// Handles one key.
    pub(super) fn press(&mut self, mut key: KeyEvent) -> EventEffect {
        // The code that typing programs send for Enter.
        if key.code == KeyCode::Char('j') && key.modifiers == KeyModifiers::CONTROL {
            key = KeyEvent::from(KeyCode::Enter);
        }
        // On terminals that distinguish held keys: only typing and moving repeats.
        let decides = key.modifiers.contains(KeyModifiers::CONTROL)
            || matches!(key.code, KeyCode::Enter | KeyCode::Esc);
        if key.kind == KeyEventKind::Repeat && decides {
            return EventEffect::Show;
        }
        self.notice = None;
        let before = self.state.stage();
        let effect = self.understand(key);
        if self.state.stage() != before {
            self.reset_focus(Some(key.code));
        }
        effect
    }

    /// Records the visible part of the page: a link can be accepted only after all of it was visible.
    pub(super) fn looked_at(&mut self, frame: &ScreenFrame, width: usize) {
        if self.state.stage() != AnswerStage::Confirm || self.reading.is_some() {
            return;
        }
        let looked = &mut self.looked;
        if looked.width != width && !looked.whole {
            (looked.width, looked.rows) = (width, 0);
        }
        // One row overlaps, since the marks above and below take one each.
        looked.step = frame.seen.len().saturating_sub(1).max(1);
        looked.longer = frame.seen.len() < frame.total;
        self.scroll = frame.start;
        if frame.seen.start <= looked.rows {
            looked.rows = looked.rows.max(frame.seen.end);
        }
        looked.whole |= looked.rows >= frame.total && frame.total > 0;
    }

    /// Inserts pasted text, which never presses a button.
    pub(super) fn paste(&mut self, text: &str) -> EventEffect {
        self.notice = None;
        self.unsure = None;
        if let AnswerStage::Field(index) = self.state.stage()
            && let Some(FieldInput::Editor(editor)) = self.inputs.get_mut(index)
        {
            editor.insert(text);
            return self.typed(index);
        }
        EventEffect::Show
    }

    fn understand(&mut self, key: KeyEvent) -> EventEffect {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return self.state.handle(AnswerEvent::Interrupt);
        }
        if self.reading.is_some() {
            self.read_on(key, control);
            return EventEffect::Show;
        }
        if let Some(unsure) = self.unsure.take() {
            match key.code {
                KeyCode::Char('y' | 'Y') if !control => return self.state.handle(unsure.event()),
                KeyCode::Char('n' | 'N' | 'r' | 'x') | KeyCode::Esc | KeyCode::Enter => {
                    return EventEffect::Show;
                }
                _ => {}
            }
        }
        // Also if nothing was typed: the key may be held down since the previous question.
        match key.code {
            KeyCode::Esc => self.ask_about(Confirmation::Cancel),
            KeyCode::Char('r') if control && self.state.offers_from_now_on() => {
                self.ask_about(Confirmation::DeclineFromNowOn)
            }
            KeyCode::Char('x') if control => self.ask_about(Confirmation::Decline),
            KeyCode::Char('o') if control => {
                self.reading = Some(0);
                EventEffect::Show
            }
            KeyCode::Char('d') if control && !self.is_editing_text() => {
                self.state.handle(AnswerEvent::End)
            }
            _ => match self.state.stage() {
                AnswerStage::Field(index) => self.at_field(index, key, control),
                AnswerStage::Review => self.at_review(key),
                AnswerStage::Confirm | AnswerStage::Warnings => self.at_buttons(key),
            },
        }
    }

    fn ask_about(&mut self, unsure: Confirmation) -> EventEffect {
        self.unsure = Some(unsure);
        self.notice = Some(unsure.question(self.state.is_touched()));
        EventEffect::Show
    }

    fn read_on(&mut self, key: KeyEvent, control: bool) {
        let Some(row) = self.reading else { return };
        self.reading = match key.code {
            KeyCode::Up => Some(row.saturating_sub(1)),
            KeyCode::Down => Some(row.saturating_add(1)),
            KeyCode::PageUp => Some(row.saturating_sub(10)),
            KeyCode::PageDown | KeyCode::Char(' ') => Some(row.saturating_add(10)),
            KeyCode::Home => Some(0),
            // The page limits it to its last row.
            KeyCode::End => Some(usize::MAX),
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') => None,
            KeyCode::Char('o') if control => None,
            _ => Some(row),
        };
    }

    fn is_editing_text(&self) -> bool {
        matches!(self.state.stage(), AnswerStage::Field(index)
            if matches!(self.inputs.get(index), Some(FieldInput::Editor(editor)) if !editor.text().is_empty()))
    }

    fn at_review(&mut self, key: KeyEvent) -> EventEffect {
        let fields = self.state.fields().len();
        let last = fields + self.buttons().len() - 1;
        if self.wide && matches!(key.code, KeyCode::Up | KeyCode::BackTab) {
            return self
                .state
                .handle(AnswerEvent::Goto(fields.saturating_sub(1)));
        }
        self.at = match (key.code, self.at) {
            (KeyCode::Char('y' | 'Y'), _) => {
                self.notice = Some(PRESS);
                Some(fields)
            }
            (KeyCode::BackTab, _) => return self.state.handle(AnswerEvent::Back),
            (KeyCode::Enter, None) => {
                self.notice = Some(CHOOSE_SEND);
                None
            }
            (KeyCode::Enter, Some(at)) if at < fields => {
                return self.state.handle(AnswerEvent::Goto(at));
            }
            (KeyCode::Enter, Some(at)) => return self.push(at - fields),
            (KeyCode::Up, None) => Some(fields.saturating_sub(1)),
            (KeyCode::Down | KeyCode::Right | KeyCode::Tab | KeyCode::Left, None) => Some(fields),
            (KeyCode::Up, Some(at)) if at >= fields => Some(fields.saturating_sub(1)),
            (KeyCode::Up | KeyCode::Left, Some(at)) => Some(at.saturating_sub(1)),
            (KeyCode::Down | KeyCode::Right | KeyCode::Tab, Some(at)) => Some((at + 1).min(last)),
            (_, at) => at,
        };
        EventEffect::Show
    }

    fn at_buttons(&mut self, key: KeyEvent) -> EventEffect {
        let count = self.buttons().len();
        let confirm = self.state.stage() == AnswerStage::Confirm;
        let scrolls = self.scrolls();
        match (key.code, self.at) {
            (KeyCode::Char('y' | 'Y'), _) | (KeyCode::Enter | KeyCode::Char(' '), Some(0))
                if confirm && self.must_read_on() =>
            {
                self.notice = Some(READ_FIRST);
            }
            (KeyCode::Char('y' | 'Y'), _) if confirm => {
                (self.at, self.notice) = (Some(0), Some(PRESS));
            }
            (KeyCode::Char('n' | 'N'), _) if confirm => {
                (self.at, self.notice) = (Some(1), Some(PRESS));
            }
            (KeyCode::Enter | KeyCode::Char(' '), Some(at)) => return self.push(at),
            (KeyCode::Enter, None) => self.notice = Some(CHOOSE),
            (KeyCode::Up, _) if scrolls => self.scroll = self.scroll.saturating_sub(1),
            (KeyCode::Down, _) if scrolls => self.scroll = self.scroll.saturating_add(1),
            (KeyCode::PageUp, _) if scrolls => {
                self.scroll = self.scroll.saturating_sub(self.looked.step);
            }
            (KeyCode::PageDown, _) if scrolls => {
                self.scroll = self.scroll.saturating_add(self.looked.step);
            }
            (KeyCode::Home, _) if scrolls => self.scroll = 0,
            (KeyCode::End, _) if scrolls => self.scroll = usize::MAX,
            (KeyCode::Left | KeyCode::Up | KeyCode::BackTab, at) => {
                self.at = Some(at.map_or(count - 1, |at| (at + count - 1) % count));
            }
            (KeyCode::Right | KeyCode::Down | KeyCode::Tab, at) => {
                self.at = Some(at.map_or(0, |at| (at + 1) % count));
            }
            _ => {}
        }
        EventEffect::Show
    }

    /// Returns `true` if the page is a link's and longer than the screen, so that arrow keys scroll it.
    pub(super) fn scrolls(&self) -> bool {
        self.state.stage() == AnswerStage::Confirm
            && self.state.question().as_link().is_some()
            && self.looked.longer
    }

    /// Returns `true` if a part of the link's page was not visible yet.
    fn must_read_on(&self) -> bool {
        self.state.question().as_link().is_some() && !self.looked.whole
    }

    fn push(&mut self, button: usize) -> EventEffect {
        match self.buttons().into_iter().nth(button) {
            Some(button) => self.state.handle(button.does),
            None => EventEffect::Show,
        }
    }

    /// Focuses the default button of a new stage, which `key` led to. After Enter, no answering button is focused,
    /// since Enter may still be held down.
    fn reset_focus(&mut self, key: Option<KeyCode>) {
        self.at = match self.state.stage() {
            AnswerStage::Review if key != Some(KeyCode::Enter) => Some(self.state.fields().len()),
            AnswerStage::Review
            | AnswerStage::Confirm
            | AnswerStage::Warnings
            | AnswerStage::Field(_) => None,
        };
    }
}

fn text_of(typed: &DraftValue) -> &str {
    match typed {
        DraftValue::Text(text) => text,
        DraftValue::Nothing | DraftValue::Picked(_) | DraftValue::Flag(_) => "",
    }
}
