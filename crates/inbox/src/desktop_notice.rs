//! A desktop notification when a question waits: its server and tool, and nothing else.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_forms::view::sanitize;

use mcp_elicit_record::Record;
use mcp_elicit_record::store::{Filter, Page, Row};

/// The longest name in a notification, in characters.
const NAME: usize = 60;
/// The minimum interval between notifications; questions in between share one.
const APART: Duration = Duration::from_secs(3);
/// The number of questions read at once.
const PAGE: usize = 200;
/// The number of questions in clients' dialogs that are watched, because they may move to people; the newest count.
const DIALOGS: usize = 16;
/// The text of the notification.
const BODY: &str = "Answer on the inbox page: mcp-elicit inbox open";

/// Notifies the desktop of each new question, unless there is no desktop.
pub fn start(record: Arc<Record>) {
    if is_desktop() {
        tokio::spawn(watch(record));
    }
}

async fn watch(record: Arc<Record>) {
    let mut changes = record.changes();
    // Questions that already wait are not announced.
    let mut last = None;
    let mut dialogs = VecDeque::new();
    if new(&record, &mut last).await.is_none() {
        return;
    }
    while changes.changed().await.is_ok() {
        let Some(rows) = new(&record, &mut last).await else {
            return;
        };
        let moved = moved(&record, &mut dialogs).await;
        let (at_client, asked): (Vec<Row>, Vec<Row>) =
            rows.into_iter().partition(Row::is_at_client);
        dialogs.extend(at_client.into_iter().map(|row| row.id));
        while dialogs.len() > DIALOGS {
            dialogs.pop_front();
        }
        let asked: Vec<&Row> = asked.iter().chain(&moved).collect();
        let Some(title) = title(&asked) else { continue };
        let shown = tokio::task::spawn_blocking(move || show(&title)).await;
        if let Ok(Err(error)) = shown {
            tracing::debug!(%error, "this desktop shows no notices");
            return;
        }
        tokio::time::sleep(APART).await;
    }
}

/// Returns the questions of these client's dialogs that have moved to people. Those that have moved or ended are removed.
async fn moved(record: &Record, dialogs: &mut VecDeque<String>) -> Vec<Row> {
    let mut found = Vec::new();
    let mut left = VecDeque::new();
    for id in dialogs.drain(..) {
        match record.find(&id).await {
            Ok(Some(row)) if !row.lifecycle.is_open() => {}
            Ok(Some(row)) if !row.is_at_client() => found.push(row),
            // It may be written later.
            Ok(Some(_) | None) | Err(_) => left.push_back(id),
        }
    }
    *dialogs = left;
    found
}

/// Returns the questions after `last`, which is updated; `None` if the record cannot be read.
async fn new(record: &Record, last: &mut Option<String>) -> Option<Vec<Row>> {
    let mut found = Vec::new();
    loop {
        let page = Page {
            after: last.clone(),
            most: PAGE,
        };
        let rows = record.list(Filter::Open, page).await.ok()?;
        let full = rows.len() == PAGE;
        if let Some(row) = rows.last() {
            *last = Some(row.id.clone());
        }
        found.extend(rows);
        if !full {
            return Some(found);
        }
    }
}

/// Returns the title for these questions; `None` for none.
fn title(asked: &[&Row]) -> Option<String> {
    match asked {
        [] => None,
        [only] => {
            let server = sanitize::line(&only.body.server, NAME);
            Some(match &only.body.target {
                Some(target) => format!("{server} asks for {}", sanitize::line(target, NAME)),
                None => format!("{server} asks"),
            })
        }
        several => Some(format!("{} questions wait", several.len())),
    }
}

/// Returns `true` if this process runs in the session of a desktop.
pub fn is_desktop() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "macos")
        || (cfg!(unix)
            && ["DBUS_SESSION_BUS_ADDRESS", "WAYLAND_DISPLAY", "DISPLAY"]
                .into_iter()
                .any(is_set))
}

/// Shows the notification with the system's own program. Every text is a separate argument, read as text only.
fn show(title: &str) -> io::Result<()> {
    let (program, arguments) = command(title);
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{program} ended with {status}")))
    }
}

fn command(title: &str) -> (&'static str, Vec<OsString>) {
    let words: &[&str] = if cfg!(target_os = "macos") {
        &[
            "-e",
            "on run argv",
            "-e",
            "display notification (item 2 of argv) with title (item 1 of argv)",
            "-e",
            "end run",
            "--",
        ]
    } else {
        &["--app-name=mcp-elicit", "--"]
    };
    let program = if cfg!(target_os = "macos") {
        "osascript"
    } else {
        "notify-send"
    };
    let words = words.iter().copied().chain([title, BODY]);
    (program, words.map(OsString::from).collect())
}
