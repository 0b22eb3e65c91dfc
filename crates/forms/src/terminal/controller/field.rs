//! Keys in a field: typing, choosing, and moving between fields.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use mcp_elicit_core::answer::DraftValue;

use super::{CHOOSE, Controller, FieldInput, NO_MATCH, SEND_NO, SEND_YES};
use crate::terminal::editor::Editor;
use crate::view::{AnswerEvent, AnswerStage, Control, EventEffect, date_time};

/// Shown when the zone was proposed.
const ZONE: &str = "Is this the time zone you mean? Change it, or press Enter to go on.";

impl Controller {
    pub(super) fn at_field(&mut self, index: usize, key: KeyEvent, control: bool) -> EventEffect {
        match key.code {
            KeyCode::Tab if self.wide => self.forth(index),
            KeyCode::BackTab if self.wide => self.fro(index),
            KeyCode::Tab => self.state.handle(AnswerEvent::Next),
            KeyCode::BackTab => self.state.handle(AnswerEvent::Back),
            KeyCode::Char('s') if control => self.state.handle(AnswerEvent::Review),
            _ => match self.inputs.get(index) {
                Some(FieldInput::Editor(_)) => self.at_editor(index, key, control),
                Some(FieldInput::Picker(_)) => self.at_picker(index, key, control),
                None => EventEffect::Show,
            },
        }
    }

    fn at_editor(&mut self, index: usize, key: KeyEvent, control: bool) -> EventEffect {
        let lines = self
            .state
            .fields()
            .get(index)
            .is_some_and(|field| field.control.takes_lines());
        let alt = key
            .modifiers
            .intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        let Some(FieldInput::Editor(editor)) = self.inputs.get_mut(index) else {
            return EventEffect::Show;
        };
        if !matches!(key.code, KeyCode::Char(_) | KeyCode::Enter) {
            editor.keep();
        }
        let word = control || key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter if alt && lines => editor.insert("\n"),
            KeyCode::Enter => {
                if self.propose_zone(index) {
                    return self.typed(index);
                }
                return self.state.handle(AnswerEvent::Next);
            }
            KeyCode::Left if word => editor.word_left(),
            KeyCode::Right if word => editor.word_right(),
            KeyCode::Left => editor.left(),
            KeyCode::Right => editor.right(),
            KeyCode::Home => editor.home(),
            KeyCode::End => editor.end(),
            KeyCode::Char('a') if control => editor.home(),
            KeyCode::Char('e') if control => editor.end(),
            KeyCode::Char('u') if control => editor.delete_to_home(),
            KeyCode::Char('k') if control => editor.delete_to_end(),
            KeyCode::Char('w') if control => editor.delete_word(),
            KeyCode::Char('d') if control => editor.delete(),
            KeyCode::Backspace if word => editor.delete_word(),
            KeyCode::Backspace => editor.backspace(),
            KeyCode::Delete => editor.delete(),
            KeyCode::Up | KeyCode::Down => {
                let up = key.code == KeyCode::Up;
                let moved = if up { editor.up() } else { editor.down() };
                if !moved && self.wide {
                    return if up {
                        self.fro(index)
                    } else {
                        self.forth(index)
                    };
                }
                if !moved && !editor.has_lines() {
                    return self.step(index, up);
                }
            }
            KeyCode::Char(c) if !control => editor.insert(c.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        self.typed(index)
    }

    /// Appends this machine's zone to a date and time without one, for the person to see and change. Returns `true` if
    /// it did.
    fn propose_zone(&mut self, index: usize) -> bool {
        let is_moment = self
            .state
            .fields()
            .get(index)
            .is_some_and(|field| field.control == Control::DateTime);
        let Some(FieldInput::Editor(editor)) = self.inputs.get_mut(index) else {
            return false;
        };
        if !is_moment || !date_time::lacks_zone(editor.text()) {
            return false;
        }
        *editor = Editor::new(&format!("{} {}", editor.text().trim(), self.zone), false);
        self.notice = Some(ZONE);
        true
    }

    /// Counts up or down in a whole number; does nothing in other fields.
    fn step(&mut self, index: usize, up: bool) -> EventEffect {
        if let Some(field) = self.state.fields().get(index)
            && let Control::Number {
                whole: true,
                minimum,
                step,
                ..
            } = &field.control
            && let Some(FieldInput::Editor(editor)) = self.inputs.get_mut(index)
        {
            let step = step
                .as_ref()
                .and_then(serde_json::Number::as_i64)
                .unwrap_or(1);
            let start = minimum.as_ref().and_then(serde_json::Number::as_i64);
            let now = editor.text().trim();
            let next = if now.is_empty() {
                Some(start.unwrap_or(0))
            } else {
                now.parse::<i64>().ok().and_then(|now| {
                    if up {
                        now.checked_add(step)
                    } else {
                        now.checked_sub(step)
                    }
                })
            };
            if let Some(next) = next {
                *editor = Editor::new(&next.to_string(), false);
            }
        }
        self.typed(index)
    }

    /// Updates the answer state with the field's current value.
    pub(super) fn typed(&mut self, index: usize) -> EventEffect {
        let typed = match self.inputs.get(index) {
            Some(FieldInput::Editor(editor)) if editor.text().is_empty() => DraftValue::Nothing,
            Some(FieldInput::Editor(editor)) => DraftValue::Text(editor.text().to_owned()),
            Some(FieldInput::Picker(picker)) => picker.chosen(),
            None => DraftValue::Nothing,
        };
        self.state.handle(AnswerEvent::Edit(index, typed))
    }

    /// Moves to the next field, or to the buttons after the last.
    fn forth(&mut self, index: usize) -> EventEffect {
        let last = index + 1 == self.state.fields().len();
        self.state.handle(if last {
            AnswerEvent::Review
        } else {
            AnswerEvent::Goto(index + 1)
        })
    }

    /// Moves to the previous field.
    fn fro(&mut self, index: usize) -> EventEffect {
        self.state
            .handle(AnswerEvent::Goto(index.saturating_sub(1)))
    }

    /// Sends the choice of a form that only asks yes or no.
    fn send_choice(&mut self, index: usize) -> EventEffect {
        let Some(FieldInput::Picker(picker)) = self.inputs.get_mut(index) else {
            return EventEffect::Show;
        };
        if !picker.is_somewhere() {
            self.notice = Some(CHOOSE);
            return EventEffect::Show;
        }
        picker.press();
        self.typed(index);
        self.state.handle(AnswerEvent::Next);
        match self.state.stage() {
            AnswerStage::Review => self.state.handle(AnswerEvent::Accept),
            AnswerStage::Warnings | AnswerStage::Field(_) | AnswerStage::Confirm => {
                EventEffect::Show
            }
        }
    }

    fn at_picker(&mut self, index: usize, key: KeyEvent, control: bool) -> EventEffect {
        let sends = self.sends_at_once();
        let Some(FieldInput::Picker(picker)) = self.inputs.get_mut(index) else {
            return EventEffect::Show;
        };
        match key.code {
            KeyCode::Enter if sends => return self.send_choice(index),
            KeyCode::Char(c @ ('y' | 'Y' | 'n' | 'N'))
                if !control && picker.go_to_flag(matches!(c, 'y' | 'Y')) =>
            {
                let is_yes = matches!(c, 'y' | 'Y');
                let sent = if is_yes { SEND_YES } else { SEND_NO };
                self.notice = sends.then_some(sent);
            }
            KeyCode::Up if self.wide && picker.is_first() => return self.fro(index),
            KeyCode::Down if self.wide && picker.is_last() => return self.forth(index),
            KeyCode::Up => picker.up(),
            KeyCode::Down => picker.down(),
            KeyCode::Char('p') if control => picker.up(),
            KeyCode::Char('n') if control => picker.down(),
            KeyCode::Home | KeyCode::PageUp => picker.first(),
            KeyCode::End | KeyCode::PageDown => picker.last(),
            KeyCode::Backspace => {
                picker.widen();
            }
            KeyCode::Char('u') if control => picker.clear(),
            KeyCode::Char(' ') if picker.is_several() || picker.typed().is_empty() => {
                picker.press();
                return self.typed(index);
            }
            KeyCode::Enter => {
                if !picker.is_several() && picker.is_somewhere() {
                    picker.press();
                }
                picker.clear();
                self.typed(index);
                return self.state.handle(AnswerEvent::Next);
            }
            KeyCode::Char(c) if !control && !picker.type_ahead(c) => {
                self.notice = Some(NO_MATCH);
            }
            _ => {}
        }
        EventEffect::Show
    }
}
