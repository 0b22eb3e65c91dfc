//! The server by the name that people see elsewhere: the operator's, else the one that it reports, else its program's or host's.

use crate::Relay;

impl Relay {
    /// Returns the server's name for a message that a person may read.
    pub(crate) fn shown_server(&self) -> String {
        if self.settings.is_named {
            return self.settings.server.clone();
        }
        let reported = self.reported_name.now(self.server.info().as_deref());
        reported.unwrap_or_else(|| self.settings.server.clone())
    }
}
