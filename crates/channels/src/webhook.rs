//! Webhooks for programs, as Standard Webhooks 1.0.0: signed JSON, with the same id for each repetition.

use std::fmt;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use mcp_elicit_core::lifecycle::Timestamp;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use url::Url;

use crate::channel::{Channel, ChannelError, MessageRef, NotSentReason, SendFuture};
use crate::config::WebhookConfig;
use crate::http::{ChannelHttp, ChannelHttpError, Networks, refused};
use crate::notice::{Notice, QuestionEvent, Recipient};
use crate::revealed::{Revealed, instant};
use crate::secret::SecretText;

/// The time limit for a receiver.
const LIMIT: Duration = Duration::from_secs(15);

/// A receiver of webhooks.
pub struct WebhookChannel {
    name: String,
    url: Url,
    keys: Vec<SigningKey>,
    events: Vec<QuestionEvent>,
    http: ChannelHttp,
}

/// A webhook that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WebhookChannelError {
    /// The secret.
    #[error("the webhook's secret must be `whsec_` and 24 to 64 bytes in base64")]
    Secret,
    /// The HTTP client.
    #[error(transparent)]
    Http(#[from] ChannelHttpError),
}

/// A signing key of Standard Webhooks.
#[derive(Clone)]
pub struct SigningKey(Vec<u8>);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl SigningKey {
    /// Reads a secret, `whsec_…`.
    pub fn new(secret: &SecretText) -> Result<Self, WebhookChannelError> {
        let encoded = secret.reveal().strip_prefix("whsec_");
        let key = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
        key.filter(|key| (24..=64).contains(&key.len()))
            .map(Self)
            .ok_or(WebhookChannelError::Secret)
    }

    /// Returns the signature of a body: `v1,BASE64`.
    pub fn sign(&self, id: &str, seconds: u64, body: &[u8]) -> Option<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        Some(format!(
            "v1,{}",
            STANDARD.encode(mac.finalize().into_bytes())
        ))
    }
}

impl WebhookChannel {
    /// Creates a receiver. With two secrets, requests carry two signatures.
    pub fn new(
        name: &str,
        config: &WebhookConfig,
        secrets: &[SecretText],
    ) -> Result<Self, WebhookChannelError> {
        let keys = secrets.iter().map(SigningKey::new);
        let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err(WebhookChannelError::Secret);
        }
        let networks = if config.allow_private {
            Networks::Any
        } else {
            Networks::Public
        };
        Ok(Self {
            name: format!("webhook.{name}"),
            url: config.url.clone(),
            keys,
            events: config.events.clone(),
            http: ChannelHttp::new(networks, LIMIT)?,
        })
    }

    async fn post(&self, notice: &Notice) -> Result<MessageRef, ChannelError> {
        let body = body(notice).to_string().into_bytes();
        let seconds = seconds_now();
        let signatures = self.keys.iter();
        let signatures = signatures.filter_map(|key| key.sign(notice.id.as_str(), seconds, &body));
        let signatures = signatures.collect::<Vec<_>>().join(" ");
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in [
            ("webhook-id", notice.id.to_string()),
            ("webhook-timestamp", seconds.to_string()),
            ("webhook-signature", signatures),
        ] {
            let value = HeaderValue::from_str(&value);
            let value = value.map_err(|_| ChannelError::Permanent(NotSentReason::Configuration))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        let reply = self.http.post(&self.url, headers, body).await?;
        match reply.status {
            200..=299 => Ok(MessageRef(notice.id.to_string())),
            410 => Err(ChannelError::AddressGone),
            // A receiver that refuses now may be fixed later: all but 410 is sent again.
            status => match refused(&reply) {
                ChannelError::Permanent(_) => Err(ChannelError::Retry {
                    after: reply.retry_after,
                    why: NotSentReason::Refused(status),
                }),
                error => Err(error),
            },
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a signature says when it was made"
)]
fn seconds_now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// Returns the body. It contains no text of the server; with `minimal`, only the question and its link.
pub fn body(notice: &Notice) -> Value {
    let summary = &*notice.summary;
    let revealed = Revealed::new(notice);
    let mut data = Map::new();
    data.insert("question".to_owned(), json!(summary.question));
    if revealed.has_question() {
        data.insert("server".to_owned(), json!(summary.server));
        let mut optional = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                data.insert(name.to_owned(), value);
            }
        };
        optional("tool", revealed.tool().map(Value::from));
        optional("rule", revealed.rule().map(Value::from));
        let caller = &summary.caller;
        let is_known = !caller.subject.is_empty();
        let caller = json!({"issuer": caller.issuer, "subject": caller.subject});
        optional("caller", is_known.then_some(caller));
        optional("addressed", Some(json!(summary.addressed)));
        optional("need", Some(json!(summary.need)));
        optional("deadline", Some(json!(rfc3339(summary.deadline))));
        let by = summary.ending.as_ref().and_then(|end| end.by.as_deref());
        optional("by", by.map(Value::from));
        let why = summary.ending.as_ref().map(|end| json!(end.why));
        optional("reasons", why.filter(|why| *why != json!([])));
        optional("missing", summary.missing.clone().map(Value::from));
        optional("good-for", summary.good_for.clone().map(Value::from));
    }
    data.insert("url".to_owned(), json!(summary.link));
    json!({
        "type": notice.event.name(),
        "timestamp": rfc3339(notice.at),
        "data": data,
    })
}

fn rfc3339(at: Timestamp) -> String {
    instant(at).map_or_else(String::new, |at| {
        at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    })
}

impl Channel for WebhookChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn reaches(&self, notice: &Notice) -> bool {
        notice.to == Recipient::Endpoint && self.events.contains(&notice.event)
    }

    fn send<'a>(&'a self, notice: &'a Notice) -> SendFuture<'a, MessageRef> {
        Box::pin(self.post(notice))
    }
}

#[cfg(test)]
mod tests {
    use mcp_elicit_policy::rules::Reveal;

    use super::*;
    use crate::notice::tests::{approved, notice, summary};

    #[test]
    fn the_last_message_says_what_became_of_the_call() {
        let body = body(&approved());
        assert_eq!(body["type"], "question.answered");
        let data = &body["data"];
        assert_eq!([&data["tool"], &data["by"]], ["deploy_app", "Ada"]);
        assert_eq!(data["reasons"], json!(["looks fine"]));
        assert_eq!(
            data["good-for"],
            "The caller may make this same call again until noon."
        );
    }

    #[test]
    fn signatures_are_those_of_standard_webhooks() {
        // The example of the Standard Webhooks reference libraries.
        let secret = SecretText::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let key = SigningKey::new(&secret).unwrap();
        assert_eq!(
            key.sign(
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                b"{\"test\": 2432232314}"
            ),
            Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".to_owned())
        );
        for secret in [
            "",
            "whsec_",
            "whsec_MfKQ9r8",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ] {
            assert!(
                SigningKey::new(&SecretText::new(secret)).is_err(),
                "{secret}"
            );
        }
    }

    #[test]
    fn bodies_have_the_parts_that_may_leave() {
        let body = |reveal| body(&notice(summary("{}"), QuestionEvent::Asked, reveal));
        assert_eq!(
            body(Reveal::Question),
            json!({
                "type": "question.asked",
                "timestamp": "2026-11-22T10:00:00Z",
                "data": {
                    "question": "5f2c8a", "server": "deploy", "tool": "deploy_app", "rule": "deploy-production",
                    "caller": {"issuer": "https://id.example.com", "subject": "248289761001"},
                    "addressed": ["group:ops"], "need": 2, "deadline": "2026-11-22T10:30:00Z",
                    "url": "https://ask.example.com/q/5f2c8a",
                },
            })
        );
        assert_eq!(
            body(Reveal::Minimal)["data"],
            json!({"question": "5f2c8a", "url": "https://ask.example.com/q/5f2c8a"})
        );
        assert!(!body(Reveal::Arguments).to_string().contains("environment"));
    }
}
