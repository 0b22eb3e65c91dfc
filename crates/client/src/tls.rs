//! HTTP clients with TLS. The only file that names the cryptography provider.

/// The most redirects of one request.
const MOST_REDIRECTS: usize = 5;

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

/// Returns the redirects of an MCP server that are followed: those within one origin that repeat the request (307 and 308,
/// RFC 9110, 15.4), such as `/mcp` to `/mcp/`. Method, headers and body stay. Arguments and headers are meant for one server
/// only, so another origin is never followed.
///
/// ```
/// # fn main() -> Result<(), reqwest::Error> {
/// use mcp_elicit_client::tls;
///
/// tls::ready();
/// let client = reqwest::Client::builder().redirect(tls::redirects_within_origin()).build()?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
pub fn redirects_within_origin() -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(|attempt| {
        let repeats = matches!(
            attempt.status(),
            http::StatusCode::TEMPORARY_REDIRECT | http::StatusCode::PERMANENT_REDIRECT
        );
        let from = attempt.previous().last().map(reqwest::Url::origin);
        let is_within = from.is_some_and(|from| from == attempt.url().origin());
        let is_known = attempt.previous().contains(attempt.url());
        if repeats && is_within && !is_known && attempt.previous().len() <= MOST_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// Returns a builder of HTTP clients.
pub(crate) fn client() -> reqwest::ClientBuilder {
    ready();
    reqwest::Client::builder().user_agent(concat!("mcp-elicit/", env!("CARGO_PKG_VERSION")))
}
