//! The wait while the person visits a page in their browser.

use std::io::{self, Write};
use std::time::Duration;

use crossterm::event::{Event as Input, KeyCode, KeyEventKind, KeyModifiers};

use super::charset::Charset;
use super::echo::Echo;
use super::handle::QuestionHandle;
use super::lines::{TimedLines, Waited};
use super::page::{ScreenBody, ScreenLine, ScreenPage, SpanStyle, wrap};
use super::plain::EARLY;
use super::tty_guard::{self, KeysOnly, TerminalGuard};
use super::{keys, widgets};
use crate::view::{FrontendError, phrases};

/// The interval at which the handle is checked.
const TICK: Duration = Duration::from_millis(100);

/// Waits for Enter on a separate screen.
pub(super) fn on_screen(
    out: &mut (dyn Write + Send),
    (color, charset): (bool, Charset),
    hosts: &[String],
    handle: &QuestionHandle,
) -> Result<(), FrontendError> {
    let ended = at_keys(
        &mut TerminalGuard::take(out, color)?,
        charset,
        hosts,
        handle,
    );
    if let Err(FrontendError::Withdrawn { why }) = &ended {
        writeln!(out, "{}", phrases::visit_over(why))?;
    }
    ended
}

fn at_keys(
    guard: &mut TerminalGuard<'_>,
    charset: Charset,
    hosts: &[String],
    handle: &QuestionHandle,
) -> Result<(), FrontendError> {
    let mut drawn = None;
    until_back(handle, || {
        let size = tty_guard::size();
        if drawn != Some(size) {
            let page = page(hosts, size.0).spelled(charset, size.0);
            guard.show(&page.fit(size.0, size.1))?;
            drawn = Some(size);
        }
        Ok(())
    })
}

/// Waits for Enter below the current text of the terminal, so that an address to copy stays visible.
pub(super) fn below(
    out: &mut (dyn Write + Send),
    hosts: &[String],
    handle: &QuestionHandle,
) -> Result<(), FrontendError> {
    writeln!(out, "{}", phrases::visiting(hosts))?;
    write!(
        out,
        "Press Enter when you are done, or Ctrl-C to stop waiting: "
    )?;
    out.flush()?;
    let ended = {
        let _keys = KeysOnly::take()?;
        until_back(handle, || Ok(()))
    };
    writeln!(out)?;
    if let Err(FrontendError::Withdrawn { why }) = &ended {
        writeln!(out, "{}", phrases::visit_over(why))?;
    }
    ended
}

/// Waits for Enter, Ctrl-C or the handle; `show` is called at least ten times a second.
fn until_back(
    handle: &QuestionHandle,
    mut show: impl FnMut() -> io::Result<()>,
) -> Result<(), FrontendError> {
    loop {
        if let Some(why) = handle.withdrawn() {
            return Err(FrontendError::Withdrawn { why });
        }
        show()?;
        if let Some(Input::Key(key)) = tty_guard::next(TICK)?
            && key.kind != KeyEventKind::Release
        {
            let control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Enter => return Ok(()),
                KeyCode::Char('c') if control => return Err(FrontendError::Interrupted),
                _ => {}
            }
        }
    }
}

fn page(hosts: &[String], width: usize) -> ScreenPage {
    let width = width.min(widgets::READABLE);
    let mut body = ScreenBody::default();
    body.push(ScreenLine::of(
        "  Your turn, in the browser",
        SpanStyle::Chosen,
    ));
    body.gap();
    let column = width.saturating_sub(4);
    body.extend(
        wrap(&phrases::visiting(hosts), column, SpanStyle::Plain)
            .into_iter()
            .map(widgets::indent),
    );
    ScreenPage {
        body,
        foot: keys::visiting(width),
        ..ScreenPage::default()
    }
}

/// Waits for a line that a person types, at this terminal if it is one; without a person it waits for the handle only.
pub(super) fn by_lines(
    lines: &mut TimedLines,
    out: &mut (dyn Write + Send),
    typed: Option<&Echo>,
    hosts: &[String],
    handle: &QuestionHandle,
) -> Result<(), FrontendError> {
    if let Some(terminal) = typed {
        lines.discard_typed(terminal);
    }
    writeln!(out, "{}", phrases::visiting(hosts))?;
    let prompt = |lines: &mut TimedLines, out: &mut (dyn Write + Send)| {
        if let Some(terminal) = typed {
            write!(out, "Press Enter when you are done: ")?;
            out.flush()?;
            lines.have_shown(terminal);
        }
        out.flush()
    };
    prompt(lines, out)?;
    loop {
        if let Some(why) = handle.withdrawn() {
            writeln!(out, "\n{}", phrases::visit_over(&why))?;
            return Err(FrontendError::Withdrawn { why });
        }
        let Some(terminal) = typed else {
            std::thread::sleep(TICK);
            continue;
        };
        match lines.next(TICK)? {
            Waited::Line(_) | Waited::Cut(_) => return Ok(()),
            Waited::Early => {
                writeln!(out, "{EARLY}")?;
                lines.discard_typed(terminal);
                prompt(lines, out)?;
            }
            Waited::End => return Err(FrontendError::EndOfInput { field: None }),
            Waited::NotYet => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_from_a_person_ends_the_wait_and_a_pipe_is_left_alone() {
        let hosts = ["example.org".to_owned()];
        let mut lines = TimedLines::new(io::Cursor::new(b"\nnext answer\n".to_vec())).unwrap();
        by_lines(
            &mut lines,
            &mut io::sink(),
            Some(&Echo::default()),
            &hosts,
            &QuestionHandle::new(),
        )
        .unwrap();
        let handle = QuestionHandle::new();
        handle.withdraw("the server says it is done");
        let ended = by_lines(&mut lines, &mut io::sink(), None, &hosts, &handle);
        assert!(matches!(ended, Err(FrontendError::Withdrawn { .. })));
        assert!(
            matches!(lines.next(Duration::from_secs(5)), Ok(Waited::Line(line)) if line == "next answer")
        );
    }
}
