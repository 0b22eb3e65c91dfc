//! Connection failures of a server over HTTP, in words for a person: the address, the failure, and the fix.

use std::error::Error;
use std::io;

use mcp_elicit_core::fault::chain;
use reqwest::Url;

/// Returns the failure, with only the origin of the address.
pub(super) fn words(error: &reqwest::Error, at: &Url) -> String {
    let at = at.origin().ascii_serialization();
    let causes: Vec<&(dyn Error + 'static)> = chain(error).skip(1).collect();
    let deepest = causes.last().map_or_else(String::new, ToString::to_string);
    if !error.is_connect() {
        return if error.is_timeout() {
            format!(
                "{at} did not answer in time. Look whether the server is at work, then make the call again"
            )
        } else {
            format!(
                "the connection with {at} broke ({deepest}). Look whether the server runs, then make the call again"
            )
        };
    }
    let says = |word: &str| causes.iter().any(|cause| cause.to_string().contains(word));
    let kind = causes
        .iter()
        .find_map(|cause| cause.downcast_ref::<io::Error>())
        .map(io::Error::kind);
    let (what, next) = if says("dns error") || says("failed to lookup address") {
        (
            "its name is not found (DNS)".to_owned(),
            "Correct the address, or look at the network",
        )
    } else if says("certificate")
        || says("TLS")
        || says("tls")
        || says("InvalidContentType")
        || says("corrupt message")
    {
        (
            format!("no encrypted connection can be made (TLS: {deepest})"),
            "Look at its certificate, and whether it is an https address",
        )
    } else if kind == Some(io::ErrorKind::ConnectionRefused) {
        (
            "the connection is refused".to_owned(),
            "Start the server, or correct its address",
        )
    } else if error.is_timeout() || kind == Some(io::ErrorKind::TimedOut) {
        (
            "nothing answers there in time".to_owned(),
            "Look at the network, or correct the address",
        )
    } else {
        (deepest, "Correct the address, or look at the network")
    };
    format!("{at} cannot be reached: {what}. {next}")
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    async fn failure_at(at: &str) -> String {
        mcp_elicit_client::tls::ready();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = Url::parse(at).unwrap();
        let error = client.get(url.clone()).send().await.unwrap_err();
        words(&error, &url)
    }

    #[tokio::test]
    async fn a_failure_says_where_what_and_what_to_do() {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let refused =
            failure_at(&format!("http://me:secret@127.0.0.1:{port}/mcp?key=secret")).await;
        assert_eq!(
            refused,
            format!(
                "http://127.0.0.1:{port} cannot be reached: the connection is refused. Start the server, or correct its address"
            )
        );
        let unknown = failure_at("http://nothing.invalid/mcp").await;
        assert!(
            unknown
                .contains("http://nothing.invalid cannot be reached: its name is not found (DNS)"),
            "{unknown}"
        );
    }

    #[tokio::test]
    async fn a_server_without_tls_and_one_that_hangs_up_are_told_apart() {
        for (scheme, expected) in [("https", "TLS"), ("http", "broke")] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = listener.local_addr().unwrap();
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    let mut head = [0; 512];
                    if stream.read(&mut head).await.is_ok() && head[0] == 0x16 {
                        stream
                            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                            .await
                            .ok();
                    }
                }
            });
            let said = failure_at(&format!("{scheme}://{at}")).await;
            assert!(said.contains(expected), "{said}");
        }
    }
}
