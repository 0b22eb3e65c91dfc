//! A progress line on stderr while a server starts: a package manager may have to download it first.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

const FRAMES: [&str; 4] = ["|", "/", "-", "\\"];
const BEAT: Duration = Duration::from_millis(120);
/// The delay before the progress line: a fast server needs none.
const SHOW_AFTER: Duration = Duration::from_millis(300);
/// The width to assume for a terminal that does not report its width.
const WIDTH: u16 = 80;

/// A progress line, shown until it is dropped.
pub(super) struct ProgressLine {
    task: Option<tokio::task::JoinHandle<()>>,
}

/// Shows `what` with a moving mark, if stderr is a terminal.
pub(super) fn show(what: String, quiet: bool) -> ProgressLine {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressLine { task: None };
    }
    let task = tokio::spawn(async move {
        tokio::time::sleep(SHOW_AFTER).await;
        let started = tokio::time::Instant::now();
        for frame in FRAMES.iter().cycle() {
            let width = crossterm::terminal::size().map_or(WIDTH, |(columns, _)| columns);
            let line = line(frame, &what, started.elapsed().as_secs(), width.into());
            let _closed = write!(std::io::stderr(), "\r{line}\x1b[K");
            tokio::time::sleep(BEAT).await;
        }
    });
    ProgressLine { task: Some(task) }
}

/// Formats a line that leaves the last column free: a full line would wrap, and `\r` would return to the start of its
/// second half only.
fn line(frame: &str, what: &str, seconds: u64, width: usize) -> String {
    let time = format!(" ({seconds} s)");
    let room = width.saturating_sub(frame.len() + 1 + time.len() + 1);
    let whole = textwrap::core::display_width(what) <= room;
    if whole {
        return format!("{frame} {what}{time}");
    }
    let mut cut = String::new();
    for c in what.chars() {
        if textwrap::core::display_width(&cut)
            + textwrap::core::display_width(c.encode_utf8(&mut [0; 4]))
            + 2
            > room
        {
            break;
        }
        cut.push(c);
    }
    if cut.is_empty() {
        return frame.to_owned();
    }
    format!("{frame} {cut}..{time}")
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            let _closed = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn the_sign_of_life_never_fills_a_line() {
        let what = "connecting to npx -y 例え-server --with many --options";
        for width in 0..100 {
            let line = line("|", what, 125, width);
            let shown = textwrap::core::display_width(&line);
            assert!(shown < width.max(2), "{width}: {line}");
        }
        assert_eq!(
            line("|", "connecting to x", 3, 80),
            "| connecting to x (3 s)"
        );
    }
}
