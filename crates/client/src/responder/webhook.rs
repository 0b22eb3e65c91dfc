//! A responder that asks a web service, with signed requests (Standard Webhooks).

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use hmac::{Hmac, Mac as _};
use http::StatusCode;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use mcp_elicit_core::fault::with_causes;
use mcp_elicit_core::wire::Capability;
use sha2::Sha256;
use thiserror::Error;

use super::program::{QuestionProgram, answer_of};
use super::{RespondFuture, Responder, ResponderError};
use crate::question::Question;

/// The longest answer that is read, in bytes.
const ANSWER_LIMIT: usize = 1024 * 1024;
/// The pause before the service is asked again, if it names none.
const USUAL_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A web service that receives each question by POST and answers `{"action", "content"}`.
///
/// Requests are signed as Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`). `200` carries the
/// answer; `202` means that there is none yet, and the same message is sent again, with the same id, after
/// `Retry-After`; `204` means that the service cannot show the question. Invalid content is returned to it with every
/// violation, up to twice.
///
/// ```
/// use mcp_elicit_client::ClientSettings;
/// use mcp_elicit_client::core::wire::Capability;
/// use mcp_elicit_client::responder::Webhook;
///
/// let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// let webhook = Webhook::new("https://answers.example.com/mcp", secret)?.showing(Capability::FORM);
/// let settings = ClientSettings::default().responder(webhook);
/// # Ok::<(), mcp_elicit_client::responder::WebhookError>(())
/// ```
#[derive(Clone)]
pub struct Webhook {
    client: reqwest::Client,
    url: reqwest::Url,
    key: Vec<u8>,
    modes: Capability,
}

/// A webhook that cannot be used.
///
/// ```
/// use mcp_elicit_client::responder::{Webhook, WebhookError};
///
/// let insecure = Webhook::new("http://answers.example.com/", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
/// assert!(matches!(insecure, Err(WebhookError::Url)));
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// The URL is not usable.
    #[error("the webhook must be an https URL, or an http URL of this machine")]
    Url,
    /// The secret is not usable.
    #[error("the webhook's secret must be `whsec_` and 24 to 64 bytes in base64")]
    Secret,
    /// The HTTP client cannot be created.
    #[error("cannot set up HTTP")]
    Setup(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Webhook {
    /// Creates a responder for the service at `url`, which shares `secret` (`whsec_…`) with this client.
    ///
    /// ```
    /// use mcp_elicit_client::responder::Webhook;
    ///
    /// let webhook = Webhook::new("https://answers.example.com/mcp", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
    /// # Ok::<(), mcp_elicit_client::responder::WebhookError>(())
    /// ```
    pub fn new(url: &str, secret: &str) -> Result<Self, WebhookError> {
        let url = reqwest::Url::parse(url).map_err(|_| WebhookError::Url)?;
        if url.scheme() != "https" && !is_of_this_machine(&url) {
            return Err(WebhookError::Url);
        }
        let encoded = secret.strip_prefix("whsec_").ok_or(WebhookError::Secret)?;
        let key = STANDARD.decode(encoded).map_err(|_| WebhookError::Secret)?;
        if !(24..=64).contains(&key.len()) {
            return Err(WebhookError::Secret);
        }
        // A redirect would send the question to an address that is not configured, and accept its answer.
        let client = crate::tls::client()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| WebhookError::Setup(error.into()))?;
        Ok(Self {
            client,
            url,
            key,
            modes: Capability::BOTH,
        })
    }

    /// Sets the modes that the service can show.
    ///
    /// ```
    /// use mcp_elicit_client::core::wire::Capability;
    /// use mcp_elicit_client::responder::Webhook;
    ///
    /// fn forms_only(webhook: Webhook) -> Webhook {
    ///     webhook.showing(Capability::FORM)
    /// }
    /// ```
    #[must_use]
    pub fn showing(mut self, modes: Capability) -> Self {
        self.modes = modes;
        self
    }

    async fn post(&self, id: &str, body: &str) -> Result<reqwest::Response, ResponderError> {
        let timestamp = seconds_now();
        let signature = self.sign(id, timestamp, body)?;
        self.client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", signature)
            .body(body.to_owned())
            .send()
            .await
            .map_err(unreachable)
    }

    fn sign(&self, id: &str, timestamp: u64, body: &str) -> Result<String, ResponderError> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key)
            .map_err(|_| ResponderError::failed("the webhook's secret cannot sign"))?;
        mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
        Ok(format!(
            "v1,{}",
            STANDARD.encode(mac.finalize().into_bytes())
        ))
    }
}

impl QuestionProgram for Webhook {
    async fn exchange(&self, body: &str) -> Result<String, ResponderError> {
        let id = message_id()?;
        loop {
            let response = self.post(&id, body).await?;
            match response.status() {
                StatusCode::OK => return text_of(response).await,
                StatusCode::NO_CONTENT => return Ok(String::new()),
                StatusCode::ACCEPTED => tokio::time::sleep(pause(&response)).await,
                status => {
                    return Err(ResponderError::failed(format!(
                        "the webhook answered HTTP {status}"
                    )));
                }
            }
        }
    }
}

fn is_of_this_machine(url: &reqwest::Url) -> bool {
    url.scheme() == "http" && matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

fn unreachable(error: reqwest::Error) -> ResponderError {
    ResponderError::failed(format!(
        "the webhook cannot be reached: {}",
        with_causes(&error.without_url())
    ))
}

fn pause(response: &reqwest::Response) -> Duration {
    let seconds = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.parse().ok());
    seconds
        .map_or(USUAL_PAUSE, Duration::from_secs)
        .min(LONGEST_PAUSE)
}

async fn text_of(response: reqwest::Response) -> Result<String, ResponderError> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk.map_err(unreachable)?);
        if body.len() > ANSWER_LIMIT {
            return Err(ResponderError::failed("the webhook's answer is too long"));
        }
    }
    String::from_utf8(body).map_err(|_| ResponderError::failed("the webhook's answer is not UTF-8"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a message's id must not be guessed"
)]
fn message_id() -> Result<String, ResponderError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| ResponderError::failed("the system gives no randomness"))?;
    Ok(bytes
        .iter()
        .fold("msg_".to_owned(), |id, byte| format!("{id}{byte:02x}")))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a signature says when it was made"
)]
fn seconds_now() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// Hides the key and the URL, which may contain one, from logs.
impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook")
            .field("host", &self.url.host_str())
            .finish_non_exhaustive()
    }
}

impl Responder for Webhook {
    fn name(&self) -> Cow<'static, str> {
        "webhook".into()
    }

    fn modes(&self) -> Capability {
        self.modes
    }

    /// Returns the service lists waiting questions itself.
    fn has_own_queue(&self) -> bool {
        true
    }

    fn respond<'a>(&'a self, question: &'a Question) -> RespondFuture<'a> {
        Box::pin(answer_of(self, question))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_standard_webhooks() {
        // The example of the Standard Webhooks reference libraries.
        let webhook = Webhook::new(
            "https://example.com/hook",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        )
        .unwrap();
        let signature = webhook
            .sign(
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                "{\"test\": 2432232314}",
            )
            .unwrap();
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(!format!("{webhook:?}").contains("hook\""));
    }

    #[test]
    fn questions_leave_this_machine_only_under_tls() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        for (url, usable) in [
            ("https://example.com/", true),
            ("http://127.0.0.1:9/", true),
            ("http://localhost:9/", true),
            ("http://example.com/", false),
            ("http://localhost.example.com/", false),
            ("ftp://127.0.0.1/", false),
        ] {
            assert_eq!(Webhook::new(url, secret).is_ok(), usable, "{url}");
        }
        assert!(matches!(
            Webhook::new("https://example.com/", "secret"),
            Err(WebhookError::Secret)
        ));
    }
}
