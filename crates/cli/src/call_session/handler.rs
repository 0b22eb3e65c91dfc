//! The server's notifications: progress, shown to people.

use std::sync::{Mutex, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{ClientConfig, Implementation, ProgressNotificationParam};
use rmcp::service::NotificationContext;

use crate::output;

/// The handler around which question handling is wrapped.
pub(crate) struct Handler {
    quiet: bool,
    /// The progress that was shown last: a server may repeat it while it waits.
    last: Mutex<String>,
}

impl Handler {
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            last: Mutex::default(),
        }
    }
}

impl Handler {
    /// Records the message and returns `true` if it differs from the last one shown.
    fn is_new(&self, message: &str) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *last != message;
        if is_new {
            message.clone_into(&mut last);
        }
        is_new
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
            let message = mcp_elicit_forms::view::sanitize::line(&message, 200);
            if self.is_new(&message) {
                output::say(format_args!("  {message}"));
            }
        }
    }

    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.client_info = Implementation::new("mcp-elicit", env!("CARGO_PKG_VERSION"));
        info
    }
}

#[cfg(test)]
mod tests {
    use super::Handler;

    #[test]
    fn what_a_server_repeats_is_shown_once() {
        let handler = Handler::new(false);
        let shown = ["a", "a", "b", "b", "a"].map(|message| handler.is_new(message));
        assert_eq!(shown, [true, false, true, false, true]);
    }
}
