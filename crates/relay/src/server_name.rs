//! The name of the server in messages: the operator's, else the reported one, else that of its program or host.

use crate::Relay;

impl Relay {
    /// Returns `serverInfo` as JSON, without the operator's credentials.
    pub(crate) fn server_info(&self) -> Option<String> {
        let info = self.server.info()?;
        Some(self.settings.masked(&info))
    }

    /// Returns the server's name for a message that a person may read.
    pub(crate) fn shown_server(&self) -> String {
        if self.settings.is_named {
            return self.settings.server.clone();
        }
        let reported = self.reported_name.now(self.server_info().as_deref());
        reported.unwrap_or_else(|| self.settings.server.clone())
    }
}
