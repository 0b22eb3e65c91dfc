//! Breaches of the protocol that a connection survived.

use std::fmt;

use mcp_elicit_core::misfit::Misfit;

/// Something that a server sent and that is not as the protocol has it, although the connection goes on.
///
/// ```
/// use mcp_elicit_client::Connection;
///
/// fn report(connection: &Connection<()>) {
///     for finding in connection.findings() {
///         eprintln!("{finding} (at {})", finding.pointer().unwrap_or("no member"));
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolFinding {
    of: Option<String>,
    pointer: Option<String>,
    text: String,
}

impl ProtocolFinding {
    pub(super) fn misfit(of: String, misfit: &Misfit) -> Self {
        Self {
            of: Some(of),
            pointer: Some(misfit.pointer().to_owned()),
            text: misfit.to_string(),
        }
    }

    pub(super) fn general(text: String) -> Self {
        Self {
            of: None,
            pointer: None,
            text,
        }
    }

    /// Returns the finding with its texts changed.
    pub(super) fn with_texts(self, change: impl Fn(&str) -> String) -> Self {
        Self {
            of: self.of,
            pointer: self.pointer.as_deref().map(&change),
            text: change(&self.text),
        }
    }

    /// Returns the JSON Pointer of the member, if the finding is about one.
    pub fn pointer(&self) -> Option<&str> {
        self.pointer.as_deref()
    }
}

/// Writes the finding as one line, which may contain text of the server.
impl fmt::Display for ProtocolFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.of {
            Some(of) => write!(f, "{of}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}
