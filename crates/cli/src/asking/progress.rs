//! A sign of life on stderr while a server starts: package managers may fetch it first.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

const FRAMES: [&str; 4] = ["|", "/", "-", "\\"];
const BEAT: Duration = Duration::from_millis(120);
/// A server that answers sooner than this needs no sign.
const PATIENCE: Duration = Duration::from_millis(300);

/// Shown until it is dropped.
pub(super) struct Waiting {
    task: Option<tokio::task::JoinHandle<()>>,
}

/// Shows `what` with a moving mark, where stderr is a terminal.
pub(super) fn show(what: String, quiet: bool) -> Waiting {
    if quiet || !std::io::stderr().is_terminal() {
        return Waiting { task: None };
    }
    let task = tokio::spawn(async move {
        tokio::time::sleep(PATIENCE).await;
        let started = tokio::time::Instant::now();
        for frame in FRAMES.iter().cycle() {
            let seconds = started.elapsed().as_secs();
            let _closed = write!(std::io::stderr(), "\r{frame} {what} ({seconds} s) \x1b[K");
            tokio::time::sleep(BEAT).await;
        }
    });
    Waiting { task: Some(task) }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            let _closed = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
