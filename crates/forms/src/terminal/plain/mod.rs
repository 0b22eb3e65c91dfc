//! Line mode: for pipes, screen readers and terminals that cannot move their cursor.
//!
//! One line answers one field. Nothing is redrawn, and nothing depends on colour or position.

mod parse_line;

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use mcp_elicit_core::answer::{DraftValue, Outcome};

use self::parse_line::ParsedLine;
use super::echo::{Echo, Hidden};
use super::handle::QuestionHandle;
use super::lines::{TimedLines, Waited};
use crate::view::{
    AnswerEvent, AnswerStage, AnswerState, Control, EventEffect, FieldView, FrontendError,
    QuestionView, Submission, date_time, phrases,
};

/// The interval at which the handle and the deadline are checked while a line is awaited.
const TICK: Duration = Duration::from_millis(100);
/// The number of consecutive useless lines after which input that is not from a person is abandoned.
const TRIES: u32 = 20;
/// The columns; a pipe has none of its own.
const WIDTH: usize = 78;
/// The most waiting questions that are listed.
const LISTED: usize = 5;
/// The mark before each line of the server's own texts, so that none looks like a line of this program.
const QUOTED: &str = "> ";
/// Shown if a pipe ends in the middle of a line.
const CUT: &str =
    "The last line has no line end, so it may be cut short: it is not taken as an answer.";

/// Shown where a line came before anybody can have read what it would answer.
pub(super) const EARLY: &str = "! That came before you could read this: type it again.";

/// The settings of line mode.
pub(super) struct Plain<'a> {
    pub(super) lines: &'a mut TimedLines,
    pub(super) out: &'a mut (dyn Write + Send),
    /// Hides secrets while they are typed.
    pub(super) echo: &'a Echo,
    /// The zone that is proposed to a person for a time without one.
    pub(super) zone: &'a str,
    pub(super) handle: &'a QuestionHandle,
    pub(super) clock: &'a (dyn Fn() -> SystemTime + Send + Sync),
    /// Opens a link after the person agreed.
    pub(super) open: &'a dyn Fn(&str) -> io::Result<()>,
    /// `true` to offer declining every later question too.
    pub(super) offer_always: bool,
    /// `true` if a person types the lines: the answer is then reviewed before it is sent, and attempts are not counted.
    pub(super) person: bool,
    /// `true` if a line of this question was an answer, and the input did not end in the middle of one.
    pub(super) answered: bool,
}

/// The result of waiting for a line.
enum LineRead {
    /// The line.
    Line(String),
    /// A line that came too early.
    Early,
    /// The event that came first.
    Event(AnswerEvent),
}

impl Plain<'_> {
    /// Asks the question and waits for the action.
    pub(super) fn ask(mut self, question: &QuestionView) -> Result<Submission, FrontendError> {
        let mut state = AnswerState::new(question.clone());
        if self.offer_always {
            state = state.offering_from_now_on();
        }
        self.introduce(&state)?;
        self.discard_typed();
        let mut tries = 0;
        let mut fresh = true;
        // `true` if the next line has to answer what is only shown now. The lines of further fields may be typed ahead.
        let mut unread = true;
        loop {
            // Before the prompt, so that the text typed after it stays hidden.
            let _hidden = self.hide(&state)?;
            self.prompt(&state, fresh)?;
            if unread && self.person {
                self.lines.have_shown(self.echo);
            }
            let before = state.stage();
            let effect = match self.line(question)? {
                LineRead::Line(line) => self.hear(&mut state, &line)?,
                LineRead::Early => {
                    self.indented(EARLY)?;
                    self.discard_typed();
                    fresh = false;
                    continue;
                }
                LineRead::Event(AnswerEvent::End) if self.may_end_here(&state) => {
                    writeln!(self.out)?;
                    state.handle(AnswerEvent::Review)
                }
                LineRead::Event(event) => state.handle(event),
            };
            match effect {
                EventEffect::Show => {}
                EventEffect::Done(outcome) => {
                    self.done(question, &outcome)?;
                    return Ok(state.submission(outcome));
                }
                EventEffect::Over(why) => {
                    writeln!(self.out)?;
                    self.say(&phrases::over(&why))?;
                    return Err(why);
                }
            }
            fresh = state.stage() != before;
            unread = fresh && !matches!(state.stage(), AnswerStage::Field(_));
            tries = if fresh { 0 } else { tries + 1 };
            if tries == TRIES && !self.person {
                return Err(FrontendError::Refused {
                    tries,
                    field: state.field_name(),
                });
            }
            if state.stage() == AnswerStage::Review && !self.person {
                self.review(&state)?;
                if let EventEffect::Done(outcome) = state.handle(AnswerEvent::Accept) {
                    return Ok(state.submission(outcome));
                }
            }
        }
    }

    /// Returns `true` if the end of a pipe may complete the answer: something was answered, and only optional fields
    /// are left, which an empty line would skip.
    fn may_end_here(&self, state: &AnswerState) -> bool {
        let AnswerStage::Field(here) = state.stage() else {
            return false;
        };
        let fields = state.fields().iter().enumerate();
        self.answered
            && !self.person
            && fields.into_iter().all(|(index, field)| {
                state.problems(index).is_empty() && (index < here || !field.required)
            })
    }

    /// Hides typed text in a field that asks for a credential, and says so.
    fn hide(&mut self, state: &AnswerState) -> io::Result<Option<Hidden>> {
        let AnswerStage::Field(index) = state.stage() else {
            return Ok(None);
        };
        let is_secret = state
            .fields()
            .get(index)
            .is_some_and(|field| field.is_secret);
        if !is_secret || !self.person {
            return Ok(None);
        }
        let hidden = self.echo.hide();
        self.indented(if hidden.is_some() {
            "(what you type now is not shown)"
        } else {
            "(what you type now can be seen on the screen)"
        })?;
        Ok(hidden)
    }

    fn introduce(&mut self, state: &AnswerState) -> io::Result<()> {
        let question = state.question();
        writeln!(self.out)?;
        self.say(&phrases::asks(question.origin()))?;
        if let Some(whom) = phrases::on_behalf_of(question) {
            self.say(&whom)?;
        }
        if let Some(call) = question.call() {
            self.say(&phrases::for_call(call))?;
            if call.is_shortened() {
                self.say("called with, in full:")?;
                for (name, value) in call.arguments_in_full() {
                    self.indented(&format!("{name}: {value}"))?;
                }
            }
        }
        let pending = self.handle.pending();
        let pending = pending.as_deref().unwrap_or(question.pending());
        if let Some(waiting) = phrases::pending(pending) {
            self.say(&format!("{waiting}:"))?;
            for next in pending.iter().take(LISTED) {
                self.say(&format!("- {}", phrases::next(next)))?;
            }
        }
        if let Some(left) = question.remaining((self.clock)()) {
            self.say(&phrases::time_left(left))?;
        }
        writeln!(self.out)?;
        self.quoted("", &question.message())?;
        if let Some(link) = question.as_link() {
            writeln!(self.out)?;
            self.say("It asks you to open this address:")?;
            // Never wrapped, so that the address can be copied whole.
            writeln!(self.out, "  {}", phrases::address(link))?;
            self.say(&phrases::goes_to(link))?;
        }
        if !state.warnings().is_empty() {
            writeln!(self.out)?;
        }
        for warning in state.warnings() {
            self.say(&format!("Careful: {}", warning.text))?;
        }
        if state.must_allow_credentials() {
            self.say(phrases::NO_CREDENTIALS_IN_FORMS)?;
        }
        writeln!(self.out)?;
        self.say("(? for help, :decline to say no, :cancel to leave without choosing)")
    }

    /// Discards what a person typed before this was shown: it cannot be meant for it.
    fn discard_typed(&mut self) {
        if self.person {
            self.lines.discard_typed(self.echo);
        }
    }

    fn prompt(&mut self, state: &AnswerState, fresh: bool) -> io::Result<()> {
        // The lines of fields may be typed ahead: the review comes after them.
        if fresh && matches!(state.stage(), AnswerStage::Warnings | AnswerStage::Confirm) {
            self.discard_typed();
        }
        match state.stage() {
            AnswerStage::Warnings => write!(self.out, "Type allow to answer anyway: ")?,
            AnswerStage::Confirm => write!(
                self.out,
                "{} (yes, no): ",
                phrases::confirm(state.question())
            )?,
            AnswerStage::Review => {
                if fresh {
                    self.review(state)?;
                    self.discard_typed();
                }
                write!(
                    self.out,
                    "Send this? (yes, or a number to change that answer): "
                )?;
            }
            AnswerStage::Field(index) => self.prompt_field(state, index, fresh)?,
        }
        self.out.flush()
    }

    fn prompt_field(&mut self, state: &AnswerState, index: usize, fresh: bool) -> io::Result<()> {
        let Some(field) = state.fields().get(index) else {
            return Ok(());
        };
        if fresh {
            writeln!(self.out)?;
            self.describe(state, index, field)?;
        }
        for problem in state
            .errors(index)
            .iter()
            .filter(|_| state.was_tried(index))
        {
            writeln!(self.out, "  ! {problem}")?;
        }
        match state
            .shown(index)
            .filter(|_| state.problems(index).is_empty())
        {
            Some(now) => write!(self.out, "{} [{}]: ", field.label, now.replace('\n', " / ")),
            None => write!(self.out, "{}: ", field.label),
        }
    }

    fn describe(&mut self, state: &AnswerState, index: usize, field: &FieldView) -> io::Result<()> {
        self.say(&format!(
            "{} ({}, {} of {})",
            field.label,
            field.need(),
            index + 1,
            state.fields().len()
        ))?;
        if let Some(description) = &field.description {
            self.quoted("  ", description)?;
        }
        if !field.hints.is_empty() {
            self.indented(&field.hint())?;
        }
        if field.control == Control::YesNo {
            self.indented("yes or no")?;
        }
        for (number, pick) in (1..).zip(field.control.options()) {
            self.indented(&format!("{number}) {}", pick.label))?;
        }
        if field.is_list {
            self.indented("here on one line: commas between the values, or a JSON list")?;
        }
        if matches!(field.control, Control::Several { .. }) {
            self.indented("numbers or words, with commas between them")?;
        }
        Ok(())
    }

    fn review(&mut self, state: &AnswerState) -> io::Result<()> {
        writeln!(self.out)?;
        self.say("Your answer, as it will be sent:")?;
        for (index, field) in state.fields().iter().enumerate() {
            let sent = state
                .sent(index)
                .map_or_else(|| phrases::EMPTY.to_owned(), |sent| sent.join(", "));
            let typed = phrases::typed_as(state, index);
            let typed = typed.map(|typed| format!(" ({typed})")).unwrap_or_default();
            self.indented(&format!("{}. {}: {sent}{typed}", index + 1, field.label))?;
        }
        Ok(())
    }

    /// Reads a line, or returns the event that came first.
    fn line(&mut self, question: &QuestionView) -> Result<LineRead, FrontendError> {
        loop {
            let waited = self.lines.next(TICK)?;
            if let Some(why) = self.handle.withdrawn() {
                return Ok(LineRead::Event(AnswerEvent::Withdrawn(why)));
            }
            let now = (self.clock)();
            if question.is_over(now) {
                return Ok(LineRead::Event(AnswerEvent::Time(now)));
            }
            match waited {
                Waited::Cut(_) if !self.person => {
                    self.answered = false;
                    writeln!(self.out)?;
                    self.say(CUT)?;
                    return Ok(LineRead::Event(AnswerEvent::End));
                }
                Waited::Line(line) | Waited::Cut(line) => {
                    // Input that was not typed was not echoed either, so the prompt's line is still open.
                    if !self.person {
                        writeln!(self.out)?;
                    }
                    return Ok(LineRead::Line(line));
                }
                Waited::Early => return Ok(LineRead::Early),
                Waited::End => return Ok(LineRead::Event(AnswerEvent::End)),
                Waited::NotYet => {}
            }
        }
    }

    fn hear(&mut self, state: &mut AnswerState, line: &str) -> io::Result<EventEffect> {
        Ok(match parse_line::parse(state, line) {
            ParsedLine::Event(event) => state.handle(event),
            ParsedLine::Answer(index, typed) => {
                if let Some(proposal) = self.with_zone(state, index, &typed) {
                    self.indented("! Is this the time zone you mean? An empty line takes it.")?;
                    return Ok(state.handle(AnswerEvent::Edit(index, proposal)));
                }
                let said = !line.trim().is_empty() && !matches!(typed, DraftValue::Nothing);
                state.handle(AnswerEvent::Edit(index, typed));
                let effect = state.handle(AnswerEvent::Next);
                self.answered |= said && state.stage() != AnswerStage::Field(index);
                effect
            }
            ParsedLine::Help => {
                self.help(state)?;
                EventEffect::Show
            }
            ParsedLine::Unclear(why) => {
                self.indented(&format!("! {why}"))?;
                EventEffect::Show
            }
        })
    }

    /// Appends this machine's zone to a date and time without one; only a person is asked about it.
    fn with_zone(
        &self,
        state: &AnswerState,
        index: usize,
        typed: &DraftValue,
    ) -> Option<DraftValue> {
        let field = state.fields().get(index)?;
        let DraftValue::Text(text) = typed else {
            return None;
        };
        let proposed =
            self.person && field.control == Control::DateTime && date_time::lacks_zone(text);
        proposed.then(|| DraftValue::Text(format!("{} {}", text.trim(), self.zone)))
    }

    fn help(&mut self, state: &AnswerState) -> io::Result<()> {
        if let AnswerStage::Field(index) = state.stage()
            && let Some(field) = state.fields().get(index)
        {
            self.describe(state, index, field)?;
        }
        for line in [
            "An empty line keeps what stands in brackets, or leaves an optional answer empty.",
            ":back     to the answer before",
            ":skip     leave this answer empty",
            ":=text    answer with text that looks like a command",
            ":decline  say no to the whole question",
            ":cancel   leave without choosing",
        ] {
            self.indented(line)?;
        }
        if state.offers_from_now_on() {
            self.indented(":never    say no to this and to every later question of this server")?;
        }
        Ok(())
    }

    /// Opens the link that was accepted.
    fn done(&mut self, question: &QuestionView, outcome: &Outcome) -> io::Result<()> {
        match (outcome, question.as_link()) {
            (Outcome::Visit, Some(link)) => match (self.open)(link.as_str()) {
                Ok(()) => self.say("Opened in your browser."),
                Err(_) => self.say("No browser could be opened; copy the address above into one."),
            },
            _ => Ok(()),
        }
    }

    /// Says a text of this program. What continues a long line stands below it, indented.
    fn say(&mut self, text: &str) -> io::Result<()> {
        let options = textwrap::Options::new(WIDTH).subsequent_indent("    ");
        for line in text.lines() {
            writeln!(self.out, "{}", textwrap::fill(line, &options))?;
        }
        Ok(())
    }

    /// Says a text of the server, each row with a mark.
    fn quoted(&mut self, indent: &str, text: &str) -> io::Result<()> {
        let mark = format!("{indent}{QUOTED}");
        let options = textwrap::Options::new(WIDTH)
            .initial_indent(&mark)
            .subsequent_indent(&mark);
        for line in text.lines() {
            let rows = textwrap::fill(line, &options);
            writeln!(self.out, "{}", rows.trim_end())?;
        }
        Ok(())
    }

    fn indented(&mut self, text: &str) -> io::Result<()> {
        let options = textwrap::Options::new(WIDTH)
            .initial_indent("  ")
            .subsequent_indent("  ");
        for line in text.lines() {
            writeln!(self.out, "{}", textwrap::fill(line, &options))?;
        }
        Ok(())
    }
}
