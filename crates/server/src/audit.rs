//! One record per turn in the life of a question: who was asked, by which tool, for which fields; never a value.

use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// What happened to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turn {
    /// It went to the client.
    Asked,
    /// It was accepted, and the answer keeps the form's rules.
    Answered,
    /// It was accepted with an answer that breaks the form's rules.
    Wrong,
    /// The person declined.
    Declined,
    /// The person dismissed it.
    Dismissed,
    /// Nobody answered in time.
    TimedOut,
    /// The call was cancelled, or the connection closed.
    Withdrawn,
    /// It was not sent: the client cannot ask, or it must not be asked.
    Refused,
    /// The client answered with something else than an answer.
    Broken,
}

/// A line of the audit.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// What happened.
    pub turn: Turn,
    /// `tools/call`, `prompts/get` or `resources/read`.
    pub method: &'static str,
    /// The tool or prompt, or the resource's URI.
    pub name: String,
    /// `form` or `url`.
    pub mode: &'static str,
    /// Which way it went: `pushed`, `rounds`, `task`.
    pub way: &'static str,
    /// Who was asked, where the server knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The fields of the form, without values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// How long the question had been open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_ms: Option<u64>,
    /// Why, for those that were not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where records go. It is called while a handler waits: it should be quick, and must not fail loudly.
pub trait Audit: Send + Sync + 'static {
    /// Takes one record.
    fn record(&self, record: &Record);
}

impl<F: Fn(&Record) + Send + Sync + 'static> Audit for F {
    fn record(&self, record: &Record) {
        self(record);
    }
}

/// Writes each record as a line of JSON.
pub struct JsonLines<W>(Mutex<W>);

impl<W: Write + Send + 'static> JsonLines<W> {
    /// Writes to `writer`, flushing after each line.
    pub fn new(writer: W) -> Self {
        Self(Mutex::new(writer))
    }
}

impl<W> fmt::Debug for JsonLines<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLines").finish_non_exhaustive()
    }
}

impl<W: Write + Send + 'static> Audit for JsonLines<W> {
    fn record(&self, record: &Record) {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = serde_json::to_writer(&mut *writer, record)
            .map_err(std::io::Error::from)
            .and_then(|()| writer.write_all(b"\n"))
            .and_then(|()| writer.flush());
        if let Err(error) = written {
            tracing::error!(%error, "a record of the audit could not be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_a_line_of_json() {
        let lines = JsonLines::new(Vec::new());
        let record = Record {
            at_ms: 5,
            turn: Turn::TimedOut,
            method: "tools/call",
            name: "deploy".into(),
            mode: "form",
            way: "pushed",
            principal: None,
            fields: vec!["environment".into()],
            open_ms: Some(300_000),
            reason: None,
        };
        lines.record(&record);
        lines.record(&record);
        let text = String::from_utf8(lines.0.into_inner().unwrap()).unwrap();
        assert_eq!(text.lines().count(), 2);
        let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(line["turn"], "timed-out");
        assert_eq!(line["fields"][0], "environment");
        assert!(line.get("principal").is_none());
    }
}
