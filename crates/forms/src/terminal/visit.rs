//! Waiting while the person is at a page in their browser.

use std::io::{self, Write};
use std::time::Duration;

use crossterm::event::{Event as Input, KeyCode, KeyEventKind, KeyModifiers};

use super::charset::Charset;
use super::glass::{self, Glass, Keys};
use super::handle::Handle;
use super::lines::{Lines, Waited};
use super::page::{Body, Line, Page, Style, wrap};
use super::{keys, parts};
use crate::view::{NotAnswered, words};

/// The interval at which the handle is read.
const TICK: Duration = Duration::from_millis(100);

/// Waits for Enter on a screen of its own.
pub(super) fn on_screen(
    out: &mut (dyn Write + Send),
    (color, charset): (bool, Charset),
    hosts: &[String],
    handle: &Handle,
) -> Result<(), NotAnswered> {
    let ended = at_keys(&mut Glass::take(out, color)?, charset, hosts, handle);
    if let Err(NotAnswered::Withdrawn { why }) = &ended {
        writeln!(out, "{}", words::visit_over(why))?;
    }
    ended
}

fn at_keys(
    glass: &mut Glass<'_>,
    charset: Charset,
    hosts: &[String],
    handle: &Handle,
) -> Result<(), NotAnswered> {
    let mut drawn = None;
    until_back(handle, || {
        let size = glass::size();
        if drawn != Some(size) {
            let page = page(hosts, size.0).spelled(charset, size.0);
            glass.show(&page.fit(size.0, size.1))?;
            drawn = Some(size);
        }
        Ok(())
    })
}

/// Waits for Enter below what stands on the terminal: an address that the person has to copy stays in sight.
pub(super) fn below(
    out: &mut (dyn Write + Send),
    hosts: &[String],
    handle: &Handle,
) -> Result<(), NotAnswered> {
    writeln!(out, "{}", words::visiting(hosts))?;
    write!(
        out,
        "Press Enter when you are done, or Ctrl-C to stop waiting: "
    )?;
    out.flush()?;
    let ended = {
        let _keys = Keys::take()?;
        until_back(handle, || Ok(()))
    };
    writeln!(out)?;
    if let Err(NotAnswered::Withdrawn { why }) = &ended {
        writeln!(out, "{}", words::visit_over(why))?;
    }
    ended
}

/// Waits for Enter, Ctrl-C or the handle; `show` is called at least ten times a second.
fn until_back(
    handle: &Handle,
    mut show: impl FnMut() -> io::Result<()>,
) -> Result<(), NotAnswered> {
    loop {
        if let Some(why) = handle.withdrawn() {
            return Err(NotAnswered::Withdrawn { why });
        }
        show()?;
        if let Some(Input::Key(key)) = glass::next(TICK)?
            && key.kind != KeyEventKind::Release
        {
            let control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Enter => return Ok(()),
                KeyCode::Char('c') if control => return Err(NotAnswered::Interrupted),
                _ => {}
            }
        }
    }
}

fn page(hosts: &[String], width: usize) -> Page {
    let width = width.min(parts::READABLE);
    let mut body = Body::default();
    body.push(Line::of("  Your turn, in the browser", Style::Chosen));
    body.gap();
    let column = width.saturating_sub(4);
    body.extend(
        wrap(&words::visiting(hosts), column, Style::Plain)
            .into_iter()
            .map(parts::indent),
    );
    Page {
        body,
        foot: keys::visiting(width),
        ..Page::default()
    }
}

/// Waits for a line from a person; input that nobody types only waits for the handle.
pub(super) fn by_lines(
    lines: &mut Lines,
    out: &mut (dyn Write + Send),
    person: bool,
    hosts: &[String],
    handle: &Handle,
) -> Result<(), NotAnswered> {
    writeln!(out, "{}", words::visiting(hosts))?;
    if person {
        write!(out, "Press Enter when you are done: ")?;
    }
    out.flush()?;
    loop {
        if let Some(why) = handle.withdrawn() {
            writeln!(out, "\n{}", words::visit_over(&why))?;
            return Err(NotAnswered::Withdrawn { why });
        }
        if person {
            match lines.next(TICK)? {
                Waited::Line(_) => return Ok(()),
                Waited::End => return Err(NotAnswered::EndOfInput { field: None }),
                Waited::NotYet => {}
            }
        } else {
            std::thread::sleep(TICK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_from_a_person_ends_the_wait_and_a_pipe_is_left_alone() {
        let hosts = ["example.org".to_owned()];
        let mut lines = Lines::new(io::Cursor::new(b"\nnext answer\n".to_vec())).unwrap();
        by_lines(&mut lines, &mut io::sink(), true, &hosts, &Handle::new()).unwrap();
        let handle = Handle::new();
        handle.withdraw("the server says it is done");
        let ended = by_lines(&mut lines, &mut io::sink(), false, &hosts, &handle);
        assert!(matches!(ended, Err(NotAnswered::Withdrawn { .. })));
        assert!(
            matches!(lines.next(Duration::from_secs(5)), Ok(Waited::Line(line)) if line == "next answer")
        );
    }
}
