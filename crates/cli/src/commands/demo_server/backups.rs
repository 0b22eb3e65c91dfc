//! A server whose tools ask nothing, for gateways that ask before a call.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

/// The server. It keeps no backups: its tools only say what they would have done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Backups;

/// A backup.
#[derive(Debug, Deserialize, JsonSchema)]
struct Backup {
    /// The day of the backup
    #[schemars(length(max = 40))]
    name: String,
    /// Write it into the archive first
    #[serde(default)]
    archive: bool,
}

#[tool_router]
impl Backups {
    #[tool(
        description = "List the backups",
        annotations(read_only_hint = true, open_world_hint = false)
    )]
    async fn list_backups(&self) -> String {
        "2026-11-01, 2026-11-08, 2026-11-15".to_owned()
    }

    #[tool(
        description = "Delete one backup",
        annotations(destructive_hint = true, open_world_hint = false)
    )]
    async fn delete_backup(&self, Parameters(backup): Parameters<Backup>) -> String {
        let how = if backup.archive {
            "archived and deleted"
        } else {
            "deleted"
        };
        format!("{how} the backup of {}", backup.name)
    }
}

#[tool_handler]
impl ServerHandler for Backups {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.server_info =
            Implementation::new("mcp-elicit-demo-backups", env!("CARGO_PKG_VERSION"));
        config
    }
}
