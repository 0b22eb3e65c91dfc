//! The person's hands on a sheet: what each key does, given where they are.

mod field;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use mcp_elicit_core::answer::Typed;

use super::editor::Editor;
use super::picker::Picker;
use crate::view::{Effect, Event, Next, Sheet, Stage};

/// What a field is answered with.
pub(super) enum Tool {
    Editor(Editor),
    Picker(Picker),
}

/// Something to press, and what it does.
#[derive(Debug)]
pub(super) struct Button {
    pub(super) label: &'static str,
    pub(super) does: Event,
}

/// A sheet, the tools its fields are answered with, and where the person's hands are.
pub(super) struct Desk {
    pub(super) sheet: Sheet,
    pub(super) tools: Vec<Tool>,
    /// The row in the review, fields first and then the buttons; or the button elsewhere. `None` where no
    /// button may be pressed by a stray Enter.
    pub(super) at: Option<usize>,
    /// First row of the full text being read, while it is.
    pub(super) reading: Option<usize>,
    /// Said once, until the next key.
    pub(super) notice: Option<&'static str>,
    /// Whether all fields are on the screen at once, so that Tab and arrows go between them.
    pub(super) wide: bool,
    /// The questions that wait behind this one.
    pub(super) pending: Vec<Next>,
    /// Esc was pressed once.
    leaving: bool,
    /// Ctrl-R was pressed once.
    refusing: bool,
}

const SURE: &str = "Press Esc again to cancel, or go on.";
const ALWAYS: &str = "Press Ctrl-R again to decline this and every later question of this server.";
const CHOOSE: &str = "Choose with the arrow keys first, then press Enter.";

impl Desk {
    pub(super) fn new(sheet: Sheet) -> Self {
        let tools = sheet
            .fields()
            .iter()
            .enumerate()
            .map(
                |(index, field)| match Picker::of(field, sheet.typed(index)) {
                    Some(picker) => Tool::Picker(picker),
                    None => Tool::Editor(Editor::suggesting(
                        text_of(sheet.typed(index)),
                        field.control.takes_lines(),
                    )),
                },
            )
            .collect();
        let pending = sheet.question().pending().to_vec();
        let mut desk = Self {
            sheet,
            tools,
            at: None,
            reading: None,
            notice: None,
            wide: false,
            pending,
            leaving: false,
            refusing: false,
        };
        desk.settle();
        desk
    }

    /// What can be pressed at this stage.
    pub(super) fn buttons(&self) -> Vec<Button> {
        let button = |label, does| Button { label, does };
        let link = self.sheet.question().as_link().is_some();
        match self.sheet.stage() {
            Stage::Field(_) if !self.wide => Vec::new(),
            Stage::Caution => vec![
                button("Answer anyway", Event::Insist),
                button("Decline", Event::Decline),
                button("Cancel", Event::Cancel),
            ],
            Stage::Confirm if link => vec![
                button("Yes, open it", Event::Accept),
                button("No, decline", Event::Decline),
                button("Cancel", Event::Cancel),
            ],
            Stage::Confirm => {
                vec![
                    button("Yes", Event::Accept),
                    button("No", Event::Decline),
                    button("Cancel", Event::Cancel),
                ]
            }
            Stage::Field(_) | Stage::Review => vec![
                button("Send", Event::Accept),
                button("Decline", Event::Decline),
                button("Cancel", Event::Cancel),
            ],
        }
    }

    /// Takes in one key.
    pub(super) fn press(&mut self, mut key: KeyEvent) -> Effect {
        // What programs that type send for Enter.
        if key.code == KeyCode::Char('j') && key.modifiers == KeyModifiers::CONTROL {
            key = KeyEvent::from(KeyCode::Enter);
        }
        self.notice = None;
        let before = self.sheet.stage();
        let effect = self.understand(key);
        if self.sheet.stage() != before {
            self.settle();
        }
        effect
    }

    /// Takes in pasted text, which never presses anything.
    pub(super) fn paste(&mut self, text: &str) -> Effect {
        self.notice = None;
        self.leaving = false;
        if let Stage::Field(index) = self.sheet.stage()
            && let Some(Tool::Editor(editor)) = self.tools.get_mut(index)
        {
            editor.insert(text);
            return self.typed(index);
        }
        Effect::Show
    }

    fn understand(&mut self, key: KeyEvent) -> Effect {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return self.sheet.handle(Event::Interrupt);
        }
        if self.reading.is_some() {
            self.read_on(key, control);
            return Effect::Show;
        }
        if key.code == KeyCode::Esc {
            return self.leave();
        }
        self.leaving = false;
        let refusing = std::mem::take(&mut self.refusing);
        match key.code {
            KeyCode::Char('r') if control && self.sheet.offers_from_now_on() => {
                if refusing {
                    return self.sheet.handle(Event::DeclineFromNowOn);
                }
                self.refusing = true;
                self.notice = Some(ALWAYS);
                Effect::Show
            }
            KeyCode::Char('x') if control => self.sheet.handle(Event::Decline),
            KeyCode::Char('o') if control => {
                self.reading = Some(0);
                Effect::Show
            }
            KeyCode::Char('d') if control && !self.is_editing_text() => {
                self.sheet.handle(Event::End)
            }
            _ => match self.sheet.stage() {
                Stage::Field(index) => self.at_field(index, key, control),
                Stage::Review => self.at_review(key),
                Stage::Confirm | Stage::Caution => self.at_buttons(key),
            },
        }
    }

    /// Esc: cancels at once, or on the second press where typed work would be lost.
    fn leave(&mut self) -> Effect {
        if self.sheet.is_touched() && !self.leaving {
            self.leaving = true;
            self.notice = Some(SURE);
            return Effect::Show;
        }
        self.sheet.handle(Event::Cancel)
    }

    fn read_on(&mut self, key: KeyEvent, control: bool) {
        let Some(row) = self.reading else { return };
        self.reading = match key.code {
            KeyCode::Up => Some(row.saturating_sub(1)),
            KeyCode::Down => Some(row + 1),
            KeyCode::PageUp => Some(row.saturating_sub(10)),
            KeyCode::PageDown | KeyCode::Char(' ') => Some(row + 10),
            KeyCode::Home => Some(0),
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') => None,
            KeyCode::Char('o') if control => None,
            _ => Some(row),
        };
    }

    fn is_editing_text(&self) -> bool {
        matches!(self.sheet.stage(), Stage::Field(index)
            if matches!(self.tools.get(index), Some(Tool::Editor(editor)) if !editor.text().is_empty()))
    }

    fn at_review(&mut self, key: KeyEvent) -> Effect {
        let fields = self.sheet.fields().len();
        let last = fields + self.buttons().len() - 1;
        let at = self.at.unwrap_or(fields);
        if self.wide && matches!(key.code, KeyCode::Up | KeyCode::BackTab) {
            return self.sheet.handle(Event::Goto(fields.saturating_sub(1)));
        }
        self.at = Some(match key.code {
            KeyCode::Up if at >= fields => fields.saturating_sub(1),
            KeyCode::Up | KeyCode::Left => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Right | KeyCode::Tab => (at + 1).min(last),
            KeyCode::BackTab => return self.sheet.handle(Event::Back),
            KeyCode::Enter if at < fields => return self.sheet.handle(Event::Goto(at)),
            KeyCode::Enter => return self.push(at - fields),
            _ => at,
        });
        Effect::Show
    }

    fn at_buttons(&mut self, key: KeyEvent) -> Effect {
        let count = self.buttons().len();
        let confirm = self.sheet.stage() == Stage::Confirm;
        match (key.code, self.at) {
            (KeyCode::Char('y' | 'Y'), _) if confirm => return self.push(0),
            (KeyCode::Char('n' | 'N'), _) if confirm => return self.push(1),
            (KeyCode::Enter | KeyCode::Char(' '), Some(at)) => return self.push(at),
            (KeyCode::Enter, None) => self.notice = Some(CHOOSE),
            (KeyCode::Left | KeyCode::Up | KeyCode::BackTab, at) => {
                self.at = Some(at.map_or(count - 1, |at| (at + count - 1) % count));
            }
            (KeyCode::Right | KeyCode::Down | KeyCode::Tab, at) => {
                self.at = Some(at.map_or(0, |at| (at + 1) % count));
            }
            _ => {}
        }
        Effect::Show
    }

    fn push(&mut self, button: usize) -> Effect {
        match self.buttons().into_iter().nth(button) {
            Some(button) => self.sheet.handle(button.does),
            None => Effect::Show,
        }
    }

    /// Puts the hands where they belong at a new stage.
    fn settle(&mut self) {
        self.at = match self.sheet.stage() {
            Stage::Review => Some(self.sheet.fields().len()),
            // A plain question is answered by Enter; a link or a warning is not.
            Stage::Confirm if self.sheet.question().as_form().is_some() => Some(0),
            Stage::Confirm | Stage::Caution | Stage::Field(_) => None,
        };
    }
}

fn text_of(typed: &Typed) -> &str {
    match typed {
        Typed::Text(text) => text,
        Typed::Nothing | Typed::Picked(_) | Typed::Flag(_) => "",
    }
}
