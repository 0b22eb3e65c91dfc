//! The server's notifications: progress, shown to people.

use rmcp::ClientHandler;
use rmcp::model::{ClientConfig, Implementation, ProgressNotificationParam};
use rmcp::service::NotificationContext;

use crate::output;

/// The handler that is wrapped to answer questions.
pub(crate) struct Handler {
    quiet: bool,
}

impl Handler {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet }
    }
}

impl ClientHandler for Handler {
    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<rmcp::RoleClient>,
    ) {
        if self.quiet {
            return;
        }
        if let Some(message) = progress.message {
            output::say(format_args!(
                "  {}",
                mcp_elicit_forms::view::sanitize::line(&message, 200)
            ));
        }
    }

    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.client_info = Implementation::new("mcp-elicit", env!("CARGO_PKG_VERSION"));
        info
    }
}
