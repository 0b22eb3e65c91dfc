//! Parses a transcript's text.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Side, Transcript, TranscriptEvent, TranscriptLine};

/// An error in a transcript, with its place and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptError {
    path: Option<PathBuf>,
    number: usize,
    why: String,
}

impl TranscriptError {
    fn at(number: usize, why: impl Into<String>) -> Self {
        Self {
            path: None,
            number,
            why: why.into(),
        }
    }

    pub(super) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::at(0, error.to_string()).within(path)
    }

    pub(super) fn within(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }
}

impl fmt::Display for TranscriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}:", path.display())?;
        }
        write!(f, "{}: {}", self.number, self.why)
    }
}

impl std::error::Error for TranscriptError {}

pub(super) fn transcript(text: &str) -> Result<Transcript, TranscriptError> {
    let title = text
        .lines()
        .find_map(|line| line.strip_prefix('#'))
        .map(str::trim);
    let mut revision = None;
    let mut lines = Vec::new();
    for (number, entry) in entries(text)? {
        match entry.strip_prefix("revision:") {
            Some(value) => revision = Some(value.trim().to_owned()),
            None => lines.push(TranscriptLine {
                number,
                event: event(number, &entry)?,
            }),
        }
    }
    Ok(Transcript {
        title: title
            .ok_or_else(|| TranscriptError::at(1, "the first line must be a title: `# ...`"))?
            .to_owned(),
        revision: revision.ok_or_else(|| TranscriptError::at(1, "there is no `revision:`"))?,
        lines,
    })
}

/// Returns the entries with the numbers of their first lines. Indented lines continue an entry.
fn entries(text: &str) -> Result<Vec<(usize, String)>, TranscriptError> {
    let mut entries: Vec<(usize, String)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with([' ', '\t']) {
            let (_, entry) = entries.last_mut().ok_or_else(|| {
                TranscriptError::at(at + 1, "an indented line goes on with nothing")
            })?;
            entry.push('\n');
            entry.push_str(line);
        } else {
            entries.push((at + 1, line.to_owned()));
        }
    }
    Ok(entries)
}

fn event(number: usize, entry: &str) -> Result<TranscriptEvent, TranscriptError> {
    for side in [Side::Client, Side::Server] {
        if let Some(rest) = entry.strip_prefix(side.arrow()) {
            let (optional, json) = rest
                .strip_prefix('?')
                .map_or((false, rest), |json| (true, json));
            return Ok(TranscriptEvent::Says {
                side,
                optional,
                pattern: value(number, json)?,
            });
        }
    }
    let (word, rest) = entry
        .split_once(':')
        .ok_or_else(|| TranscriptError::at(number, "no such kind of line"))?;
    match word {
        "person" => person(number, rest.trim()),
        "time" => {
            let seconds = rest
                .trim()
                .parse()
                .map_err(|_| TranscriptError::at(number, "`time:` takes whole seconds"))?;
            Ok(TranscriptEvent::Time { seconds })
        }
        "outcome" => Ok(TranscriptEvent::Outcome {
            phase: rest.trim().to_owned(),
        }),
        _ => Err(TranscriptError::at(number, "no such kind of line")),
    }
}

fn person(number: usize, rest: &str) -> Result<TranscriptEvent, TranscriptError> {
    let (action, content) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if !["accept", "decline", "cancel"].contains(&action) {
        return Err(TranscriptError::at(
            number,
            "a person can accept, decline or cancel",
        ));
    }
    let content = (!content.trim().is_empty())
        .then(|| value(number, content))
        .transpose()?;
    Ok(TranscriptEvent::Person {
        action: action.to_owned(),
        content,
    })
}

fn value(number: usize, json: &str) -> Result<Value, TranscriptError> {
    serde_json::from_str(json).map_err(|error| TranscriptError::at(number, error.to_string()))
}

pub(super) fn collect(folder: &Path, into: &mut Vec<PathBuf>) -> Result<(), TranscriptError> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| TranscriptError::file(folder, &error))?;
    for entry in entries {
        let path = entry
            .map_err(|error| TranscriptError::file(folder, &error))?
            .path();
        if path.is_dir() {
            collect(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            into.push(path);
        }
    }
    Ok(())
}
