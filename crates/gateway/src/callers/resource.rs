//! A server as an OAuth 2 resource (RFC 9728).

use axum::response::{IntoResponse as _, Response};
use serde_json::json;

/// The well-known path of a resource's metadata, before the path of the resource (RFC 9728, 3.1).
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// A server under one of its paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resource {
    /// Its address for callers, which is also its name.
    pub(crate) url: String,
    /// The address of its metadata.
    pub(crate) metadata: String,
}

impl Resource {
    /// Creates the server at this path, such as `/mcp/deploy`, of this origin.
    pub(crate) fn new(origin: &str, path: &str) -> Self {
        Self {
            url: format!("{origin}{path}"),
            metadata: format!("{origin}{}", Self::metadata_path(path)),
        }
    }

    /// Returns the path of the metadata of the server at this path.
    pub(crate) fn metadata_path(path: &str) -> String {
        format!("{WELL_KNOWN}{path}")
    }

    /// Returns the metadata (RFC 9728, 2), which name this issuer of tokens with these scopes.
    pub(crate) fn document(&self, server: &str, scopes: &[String], issuer: &str) -> Response {
        let mut document = json!({
            "resource": self.url,
            "resource_name": server,
            "authorization_servers": [issuer],
            "bearer_methods_supported": ["header"],
        });
        let scopes: Vec<&String> = scopes
            .iter()
            .filter(|scope| *scope != "offline_access")
            .collect();
        if !scopes.is_empty() {
            document["scopes_supported"] = json!(scopes);
        }
        axum::Json(document).into_response()
    }
}
