//! One audit record per event in the life of a question: who was asked, by which tool, for which fields; never a value.
//! The client crate's audit writes the same [`AuditRecord`].

use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

pub use mcp_elicit_core::lifecycle::{AuditEvent, AuditRecord};

/// A receiver of audit records. It is called while a handler waits, so it should be quick, and it must not panic.
///
/// ```
/// use mcp_elicit_server::ServerSettings;
/// use mcp_elicit_server::audit::{Audit, AuditRecord};
///
/// /// Prints the event and the tool. A closure that takes an `&AuditRecord` does as well.
/// struct Printed;
///
/// impl Audit for Printed {
///     fn record(&self, record: &AuditRecord) {
///         println!("{:?} {:?}", record.event, record.name);
///     }
/// }
///
/// let settings = ServerSettings::default().audit(Printed);
/// ```
pub trait Audit: Send + Sync + 'static {
    /// Receives one record.
    ///
    /// ```
    /// use mcp_elicit_server::ServerSettings;
    /// use mcp_elicit_server::audit::AuditRecord;
    ///
    /// let settings = ServerSettings::default().audit(|record: &AuditRecord| println!("{:?}", record.event));
    /// ```
    fn record(&self, record: &AuditRecord);
}

impl<F: Fn(&AuditRecord) + Send + Sync + 'static> Audit for F {
    fn record(&self, record: &AuditRecord) {
        self(record);
    }
}

/// An audit that writes each record as a line of JSON.
///
/// ```
/// use mcp_elicit_server::ServerSettings;
/// use mcp_elicit_server::audit::JsonLines;
///
/// let settings = ServerSettings::default().audit(JsonLines::new(std::io::stderr()));
/// ```
pub struct JsonLines<W>(Mutex<W>);

impl<W: Write + Send + 'static> JsonLines<W> {
    /// Creates an audit that writes to `writer` and flushes after each line.
    ///
    /// ```
    /// use mcp_elicit_server::audit::JsonLines;
    ///
    /// let into_memory = JsonLines::new(Vec::new());
    /// # let _ = into_memory;
    /// ```
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
    fn record(&self, record: &AuditRecord) {
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
    use mcp_elicit_core::lifecycle::Timestamp;

    use super::*;

    #[test]
    fn a_record_is_a_line_of_json() {
        let lines = JsonLines::new(Vec::new());
        let mut record = AuditRecord::new(AuditEvent::TimedOut, Timestamp::from_millis(5));
        record.name = Some("deploy".into());
        lines.record(&record);
        lines.record(&record);
        let text = String::from_utf8(lines.0.into_inner().unwrap()).unwrap();
        assert_eq!(text.lines().count(), 2);
        let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(line["event"], "timed-out");
        assert_eq!(line["name"], "deploy");
    }
}
