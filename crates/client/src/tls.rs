//! HTTP clients with TLS. The only file that names the cryptography provider.

/// Installs a cryptography provider for the HTTP clients of this process.
///
/// ```
/// // Once, before the first HTTP client of the program is made.
/// mcp_elicit_client::tls::ready();
/// ```
pub fn ready() {
    // A provider that is already installed stays: the host may have chosen its own.
    let _chosen_already = rustls::crypto::ring::default_provider().install_default();
}

/// Returns a builder of HTTP clients.
pub(crate) fn client() -> reqwest::ClientBuilder {
    ready();
    reqwest::Client::builder().user_agent(concat!("mcp-elicit/", env!("CARGO_PKG_VERSION")))
}
