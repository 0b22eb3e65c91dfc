//! Screen mode: shows the page, waits for a key, and repeats until the question is over.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use mcp_elicit_core::answer::Outcome;

use super::charset::Charset;
use super::controller::Controller;
use super::handle::QuestionHandle;
use super::key_guard::KeyGuard;
use super::tty_guard::{self, TerminalGuard};
use super::{layout_full, layout_single, lines, widgets};
use crate::view::{
    AnswerEvent, AnswerState, EventEffect, FrontendError, QuestionView, Submission, phrases,
};

/// The interval at which the handle and the clock are checked while no key comes.
const TICK: Duration = Duration::from_millis(100);

/// The settings of screen mode.
pub(super) struct Screen<'a> {
    pub(super) out: &'a mut (dyn Write + Send),
    pub(super) color: bool,
    pub(super) charset: Charset,
    /// The zone that is proposed for a time without one.
    pub(super) zone: &'a str,
    /// `true` if the host prints the line about the person's action.
    pub(super) no_outcome_line: bool,
    pub(super) handle: &'a QuestionHandle,
    pub(super) clock: &'a (dyn Fn() -> SystemTime + Send + Sync),
    /// Opens a link after the person agreed.
    pub(super) open: &'a dyn Fn(&str) -> io::Result<()>,
    /// `true` to offer declining every later question too.
    pub(super) offer_always: bool,
}

impl Screen<'_> {
    /// Asks the question and waits for the action. The screen is restored before this returns, and one line about the
    /// result remains.
    pub(super) fn ask(mut self, question: &QuestionView) -> Result<Submission, FrontendError> {
        let ended = self.converse(question);
        let asker = question.origin().name();
        match &ended {
            Ok(reply) => self.done(question, &reply.outcome, &asker)?,
            Err(why) => writeln!(self.out, "{asker}: {}", phrases::over(why))?,
        }
        self.out.flush()?;
        ended
    }

    fn converse(&mut self, question: &QuestionView) -> Result<Submission, FrontendError> {
        let state = AnswerState::new(question.clone());
        let state = if self.offer_always {
            state.offering_from_now_on()
        } else {
            state
        };
        let mut controller = Controller::new(state, self.zone);
        controller.charset = self.charset;
        let mut guard = TerminalGuard::take(self.out, self.color)?;
        // The size, the second and the pause for which the screen was drawn.
        let mut drawn = None;
        let mut pause = None;
        loop {
            let now = (self.clock)();
            if let Some(over) = over(&mut controller, self.handle, now) {
                return Err(over);
            }
            let (width, height) = tty_guard::size();
            if let Some(pending) = self.handle.pending()
                && pending != controller.pending
            {
                controller.pending = pending;
                drawn = None;
            }
            let left = question.remaining(now).map(|left| left.as_secs());
            controller.is_unread = pause
                .as_mut()
                .is_none_or(|pause: &mut KeyGuard| pause.lasts(lines::now()));
            let current = Some((width, height, left, controller.is_unread));
            if drawn != current {
                controller.reading = controller
                    .reading
                    .map(|row| row.min(widgets::last_to_read(&controller, width)));
                controller.wide = layout_full::fits(&controller, width, height);
                let layout = if controller.wide {
                    layout_full::page
                } else {
                    layout_single::page
                };
                let page = layout(&controller, width, height, now).spelled(self.charset, width);
                let frame = page.fit(width, height);
                guard.show(&frame)?;
                controller.looked_at(&frame, width);
                drawn = current;
            }
            let pause = pause.get_or_insert_with(|| KeyGuard::begin(lines::now()));
            let effect = match tty_guard::next(TICK)? {
                Some(Input::Key(key)) if key.kind == KeyEventKind::Release => EventEffect::Show,
                Some(Input::Key(key)) if !is_interrupt(key) && !pause.lets_press(lines::now()) => {
                    continue;
                }
                Some(Input::Paste(_)) if !pause.lets_press(lines::now()) => continue,
                Some(Input::Key(key)) => controller.press(key),
                Some(Input::Paste(text)) => controller.paste(&text),
                Some(_) => EventEffect::Show,
                None => continue,
            };
            match effect {
                EventEffect::Show => drawn = None,
                EventEffect::Done(outcome) => return Ok(controller.state.submission(outcome)),
                EventEffect::Over(why) => return Err(why),
            }
        }
    }

    fn done(&mut self, question: &QuestionView, outcome: &Outcome, asker: &str) -> io::Result<()> {
        match (outcome, question.as_link()) {
            (Outcome::Visit, Some(link)) => match (self.open)(link.as_str()) {
                Ok(()) => writeln!(
                    self.out,
                    "{asker}: opened {} in your browser.",
                    link.host().ascii()
                ),
                Err(_) => writeln!(
                    self.out,
                    "{asker}: no browser could be opened. The address you agreed to:\n{}",
                    phrases::address(link)
                ),
            },
            _ if self.no_outcome_line => Ok(()),
            (outcome, _) => writeln!(self.out, "{asker}: {}", phrases::done(outcome)),
        }
    }
}

/// Returns `true` for Ctrl-C, which ends the program and answers nothing.
fn is_interrupt(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

/// Returns the reason if the question ended by itself.
fn over(
    controller: &mut Controller,
    handle: &QuestionHandle,
    now: SystemTime,
) -> Option<FrontendError> {
    let event = handle
        .withdrawn()
        .map_or(AnswerEvent::Time(now), AnswerEvent::Withdrawn);
    match controller.state.handle(event) {
        EventEffect::Over(why) => Some(why),
        EventEffect::Show | EventEffect::Done(_) => None,
    }
}
