//! A guard for the terminal: raw mode, the alternate screen, and painting. Dropping it restores the terminal, also
//! after a panic.

use std::io::{self, Write};
use std::time::Duration;

use crossterm::event::{self, Event};
use crossterm::style::{Attribute, Color, Print, ResetColor, SetAttribute, SetForegroundColor};
use crossterm::{cursor, queue, terminal};

use super::page::{ScreenFrame, SpanStyle};

/// The size if the terminal does not report one.
const USUAL: (u16, u16) = (80, 24);

/// The terminal while a question is on the screen; dropping it restores the terminal.
pub(super) struct TerminalGuard<'a> {
    out: &'a mut (dyn Write + Send),
    color: bool,
    /// Restored after the screen.
    _keys: KeysOnly,
}

/// The keys only, one by one; the text on the terminal stays.
pub(super) struct KeysOnly(());

impl KeysOnly {
    /// Takes the keys: raw mode on the controlling terminal. Earlier keys are dropped, so that none answers a question
    /// that was not visible.
    pub(super) fn take() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let keys = Self(());
        Self::drop_typed()?;
        Ok(keys)
    }

    fn drop_typed() -> io::Result<()> {
        while event::poll(Duration::ZERO)? {
            event::read()?;
        }
        Ok(())
    }
}

impl Drop for KeysOnly {
    fn drop(&mut self) {
        // An error cannot be reported here.
        let _ = terminal::disable_raw_mode();
    }
}

impl<'a> TerminalGuard<'a> {
    /// Takes over the terminal: raw mode on the controlling terminal, the alternate screen on `out`. Keys typed before
    /// the question was visible are dropped, so that none answers it.
    pub(super) fn take(out: &'a mut (dyn Write + Send), color: bool) -> io::Result<Self> {
        let keys = KeysOnly::take()?;
        let guard = Self {
            out,
            color,
            _keys: keys,
        };
        let mut bytes = Vec::new();
        queue!(
            bytes,
            terminal::EnterAlternateScreen,
            event::EnableBracketedPaste,
            terminal::DisableLineWrap
        )?;
        guard.out.write_all(&bytes)?;
        guard.out.flush()?;
        KeysOnly::drop_typed()?;
        Ok(guard)
    }

    /// Shows a complete frame.
    pub(super) fn show(&mut self, frame: &ScreenFrame) -> io::Result<()> {
        // Written at once, because a frame in pieces flickers.
        let mut bytes = Vec::new();
        queue!(bytes, terminal::BeginSynchronizedUpdate, cursor::Hide)?;
        for (row, line) in (0..).zip(&frame.rows) {
            queue!(bytes, cursor::MoveTo(0, row))?;
            for span in &line.spans {
                span_bytes(&mut bytes, &span.text, span.style, self.color)?;
            }
            queue!(bytes, terminal::Clear(terminal::ClearType::UntilNewLine))?;
        }
        if let Some((column, row)) = frame.cursor {
            let cell = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
            queue!(bytes, cursor::MoveTo(cell(column), cell(row)), cursor::Show)?;
        }
        queue!(bytes, terminal::EndSynchronizedUpdate)?;
        self.out.write_all(&bytes)?;
        self.out.flush()
    }
}

/// Returns columns and rows.
pub(super) fn size() -> (usize, usize) {
    let (width, height) = match terminal::size() {
        Ok((width, height)) if width > 0 && height > 0 => (width, height),
        _ => USUAL,
    };
    (width.into(), height.into())
}

/// Returns the next key, paste or change of size; `None` if none came within `wait`.
pub(super) fn next(wait: Duration) -> io::Result<Option<Event>> {
    if event::poll(wait)? {
        event::read().map(Some)
    } else {
        Ok(None)
    }
}

fn span_bytes(bytes: &mut Vec<u8>, text: &str, style: SpanStyle, colorful: bool) -> io::Result<()> {
    let (attributes, color): (&[Attribute], _) = match style {
        SpanStyle::Plain => (&[], None),
        SpanStyle::Strong => (&[Attribute::Bold], None),
        SpanStyle::Dim => (&[Attribute::Dim], None),
        SpanStyle::Accent => (&[], Some(Color::Cyan)),
        SpanStyle::Chosen => (&[Attribute::Bold], Some(Color::Cyan)),
        SpanStyle::Warn => (&[], Some(Color::Yellow)),
        SpanStyle::Bad => (&[Attribute::Bold], Some(Color::Red)),
        SpanStyle::Pressed => (&[Attribute::Reverse, Attribute::Bold], None),
    };
    for attribute in attributes {
        queue!(bytes, SetAttribute(*attribute))?;
    }
    let color = color.filter(|_| colorful);
    if let Some(color) = color {
        queue!(bytes, SetForegroundColor(color))?;
    }
    queue!(bytes, Print(text))?;
    if color.is_some() {
        queue!(bytes, ResetColor)?;
    }
    if !attributes.is_empty() {
        queue!(bytes, SetAttribute(Attribute::Reset))?;
    }
    Ok(())
}

impl Drop for TerminalGuard<'_> {
    fn drop(&mut self) {
        // Each step is tried even if another fails; an error cannot be reported here.
        let mut bytes = Vec::new();
        let _ = queue!(
            bytes,
            terminal::EnableLineWrap,
            event::DisableBracketedPaste,
            terminal::LeaveAlternateScreen,
            cursor::Show
        );
        let _ = self.out.write_all(&bytes);
        let _ = self.out.flush();
    }
}
