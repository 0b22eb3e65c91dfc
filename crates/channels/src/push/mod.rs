//! Web push: encrypted messages (RFC 8291) to the push services of browsers, which see neither question nor answer. The
//! gateway identifies itself with VAPID (RFC 8292).

mod encrypt;
mod vapid;

use std::fmt;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use jiff::tz::TimeZone;
use reqwest::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

pub use self::vapid::{VapidError, VapidKey};
use crate::channel::{Channel, ChannelError, MessageRef, NotSentReason, SendFuture, Updated};
use crate::config::PushConfig;
use crate::http::{ChannelHttp, ChannelHttpError, Networks, refused};
use crate::notice::{Notice, QuestionEvent, Recipient};
use crate::revealed::Revealed;

/// The longest content, in bytes: it fits into one record of every push service.
const CONTENT_LIMIT: usize = 3_000;
/// The longest endpoint, in bytes.
const ENDPOINT_LIMIT: usize = 2_048;
/// The longest time that a push service keeps a message.
const LONGEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// The time limit for a push service.
const LIMIT: Duration = Duration::from_secs(15);

/// The push services of Chrome, Edge, Firefox and Safari.
const SERVICES: [&str; 5] = [
    "fcm.googleapis.com",
    "*.notify.windows.com",
    "updates.push.services.mozilla.com",
    "*.push.services.mozilla.com",
    "*.push.apple.com",
];

/// A browser that a person subscribed.
#[derive(Clone, PartialEq, Eq)]
pub struct Subscription {
    endpoint: Url,
    public_key: [u8; 65],
    auth: [u8; 16],
}

impl fmt::Debug for Subscription {
    /// Formats the host: the rest of the endpoint grants permission to send.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("host", &self.endpoint.host_str())
            .finish_non_exhaustive()
    }
}

/// A subscription that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscriptionError {
    /// The endpoint.
    #[error("the endpoint must be an https URL of a browser's push service")]
    Endpoint,
    /// A key.
    #[error("p256dh must be an uncompressed P-256 point and auth 16 bytes, in base64url")]
    Key,
}

impl Subscription {
    /// Reads a browser's `PushSubscription`. It comes from a signed-in user, so everything is checked.
    pub fn new(endpoint: &str, p256dh: &str, auth: &str) -> Result<Self, SubscriptionError> {
        let url = (endpoint.len() <= ENDPOINT_LIMIT)
            .then(|| Url::parse(endpoint).ok())
            .flatten()
            .filter(|url| url.host().is_some() && url.fragment().is_none())
            .ok_or(SubscriptionError::Endpoint)?;
        let decode = |text: &str| {
            let engine = if text.contains('=') {
                &URL_SAFE
            } else {
                &URL_SAFE_NO_PAD
            };
            engine.decode(text).map_err(|_| SubscriptionError::Key)
        };
        let public_key: [u8; 65] = decode(p256dh)?
            .try_into()
            .map_err(|_| SubscriptionError::Key)?;
        let auth = decode(auth)?
            .try_into()
            .map_err(|_| SubscriptionError::Key)?;
        if public_key[0] != 4 {
            return Err(SubscriptionError::Key);
        }
        Ok(Self {
            endpoint: url,
            public_key,
            auth,
        })
    }

    /// Returns the endpoint.
    pub const fn endpoint(&self) -> &Url {
        &self.endpoint
    }
}

/// The sender of web push messages.
pub struct Push {
    key: VapidKey,
    contact: String,
    hosts: Vec<String>,
    http: ChannelHttp,
    /// `true` if endpoints must be in public networks.
    is_public: bool,
    zone: TimeZone,
}

impl Push {
    /// Creates the sender. Endpoints must be in public networks; `networks` is for custom push services.
    pub fn new(
        config: &PushConfig,
        key: VapidKey,
        networks: Networks,
        zone: TimeZone,
    ) -> Result<Self, ChannelHttpError> {
        Ok(Self {
            key,
            contact: config.contact.clone(),
            hosts: config.hosts.clone(),
            http: ChannelHttp::new(networks, LIMIT)?,
            is_public: networks == Networks::Public,
            zone,
        })
    }

    /// Returns the public key, for `pushManager.subscribe` on pages.
    pub fn public_key(&self) -> String {
        self.key.public_key()
    }

    /// Checks a new subscription: messages may go to its endpoint, and can be encrypted for its key. Its host is
    /// resolved and checked again for every message.
    ///
    /// # Errors
    /// If the endpoint is not a push service's, or the key is not a point of the curve.
    pub fn check(&self, subscription: &Subscription) -> Result<(), SubscriptionError> {
        self.permits(&subscription.endpoint)
            .map_err(|_| SubscriptionError::Endpoint)?;
        if encrypt::is_point(&subscription.public_key) {
            Ok(())
        } else {
            Err(SubscriptionError::Key)
        }
    }

    /// Permits the push services of the usual browsers, and those in the configuration: a signed-in person chooses the
    /// endpoint, and must not be able to make the gateway send elsewhere.
    fn permits(&self, endpoint: &Url) -> Result<(), ChannelError> {
        self.http.check(endpoint)?;
        // Push services of browsers use the default port; others would allow port scans of their hosts.
        if self.is_public && endpoint.port().is_some() {
            return Err(ChannelError::Permanent(NotSentReason::Address));
        }
        let host = endpoint.host_str().unwrap_or_default();
        let mut known = SERVICES
            .iter()
            .copied()
            .chain(self.hosts.iter().map(String::as_str));
        let is_known = known.any(|known| match known.strip_prefix('*') {
            Some(below) => host.ends_with(below) && host.len() > below.len(),
            None => host == known,
        });
        if is_known {
            Ok(())
        } else {
            Err(ChannelError::Permanent(NotSentReason::Address))
        }
    }

    async fn post(&self, notice: &Notice) -> Result<MessageRef, ChannelError> {
        let Recipient::Device(device) = &notice.to else {
            return Err(ChannelError::Permanent(NotSentReason::Address));
        };
        self.permits(&device.endpoint)?;
        let content = content(notice, &self.zone);
        let body = encrypt::encrypt(&content, &device.public_key, &device.auth)
            .ok_or(ChannelError::Permanent(NotSentReason::Address))?;
        let seconds = seconds_now();
        let authorization = self
            .key
            .authorization(&device.endpoint, &self.contact, seconds)
            .ok_or(ChannelError::Permanent(NotSentReason::Configuration))?;
        let mut headers = HeaderMap::new();
        let fixed = HeaderValue::from_static;
        headers.insert(CONTENT_TYPE, fixed("application/octet-stream"));
        headers.insert(CONTENT_ENCODING, fixed("aes128gcm"));
        headers.insert(
            HeaderName::from_static("urgency"),
            fixed(if notice.event == QuestionEvent::Escalated {
                "high"
            } else {
                "normal"
            }),
        );
        let deadline = notice.summary.deadline.as_millis() / 1000;
        let ttl = deadline.saturating_sub(seconds).min(LONGEST_TTL.as_secs());
        for (name, value) in [
            (AUTHORIZATION, authorization),
            (HeaderName::from_static("ttl"), ttl.to_string()),
            (
                HeaderName::from_static("topic"),
                topic(&notice.summary.question),
            ),
        ] {
            let value = HeaderValue::from_str(&value);
            let value = value.map_err(|_| ChannelError::Permanent(NotSentReason::Configuration))?;
            headers.insert(name, value);
        }
        let reply = self.http.post(&device.endpoint, headers, body).await?;
        match reply.status {
            200..=299 => Ok(MessageRef::default()),
            404 | 410 => Err(ChannelError::AddressGone),
            413 => Err(ChannelError::Permanent(NotSentReason::TooLarge)),
            401 | 403 => Err(ChannelError::Permanent(NotSentReason::Credentials)),
            _ => Err(refused(&reply)),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the push service compares it with its clock"
)]
fn seconds_now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// Returns 32 characters for a question: a later message replaces an earlier one that was not shown yet.
fn topic(question: &str) -> String {
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(question));
    hash[..32].to_owned()
}

/// Returns the content for the page's service worker, at most 3,000 bytes.
fn content(notice: &Notice, zone: &TimeZone) -> Vec<u8> {
    let revealed = Revealed::new(notice);
    let title = revealed.subject(zone);
    let title = title.strip_prefix("[gateway] ").unwrap_or(&title);
    let link = Url::parse(&notice.summary.link);
    let path = link.map_or_else(|_| "/".to_owned(), |link| link.path().to_owned());
    // At the end, what became of it says more than what was asked.
    let text = revealed.ending(zone).or_else(|| revealed.message());
    let text = [text, revealed.good_for()].into_iter().flatten();
    let text = text.collect::<Vec<_>>().join("\n");
    let mut bound = 500;
    loop {
        let mut body: String = text.chars().take(bound).collect();
        if body.len() < text.len() {
            body.push('…');
        }
        let content = json!({
            "v": 1,
            "id": notice.summary.question,
            "kind": notice.event.name(),
            "title": title.chars().take(bound).collect::<String>(),
            "body": body,
            "path": path,
            "count": notice.waiting,
        });
        let content = content.to_string().into_bytes();
        if content.len() <= CONTENT_LIMIT || bound == 0 {
            return content;
        }
        bound /= 2;
    }
}

impl Channel for Push {
    fn name(&self) -> &'static str {
        "push"
    }

    fn reaches(&self, notice: &Notice) -> bool {
        matches!(notice.to, Recipient::Device(_))
    }

    fn send<'a>(&'a self, notice: &'a Notice) -> SendFuture<'a, MessageRef> {
        Box::pin(self.post(notice))
    }

    /// Sends the new state with the same topic and tag, so that it replaces the first message.
    fn update<'a>(&'a self, _: &'a MessageRef, notice: &'a Notice) -> SendFuture<'a, Updated> {
        Box::pin(async move { self.post(notice).await.map(|_| Updated::Changed) })
    }
}

#[cfg(test)]
mod tests {
    use mcp_elicit_policy::rules::Reveal;

    use super::*;
    use crate::notice::tests::{approved, assert_says_what_became_of_it, notice, summary};

    const KEY: &str =
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";

    #[test]
    fn the_last_message_says_what_became_of_the_call() {
        let content = content(&approved(), &TimeZone::UTC);
        let content: serde_json::Value = serde_json::from_slice(&content).unwrap();
        assert_says_what_became_of_it(content["body"].as_str().unwrap());
    }

    #[test]
    fn subscriptions_are_checked() {
        let read = |endpoint: &str, key: &str, auth: &str| Subscription::new(endpoint, key, auth);
        let endpoint = "https://push.example.com/send/abc";
        let sound = read(endpoint, KEY, AUTH).unwrap();
        assert!(!format!("{sound:?}").contains("abc"));
        assert!(read(endpoint, &format!("{KEY}="), &format!("{AUTH}==")).is_ok());
        for (endpoint, key, auth) in [
            ("push", KEY, AUTH),
            ("https://", KEY, AUTH),
            (endpoint, &KEY[1..], AUTH),
            (endpoint, &KEY.replacen("BC", "AC", 1), AUTH),
            (endpoint, KEY, "AAAA"),
            (endpoint, KEY, ""),
        ] {
            assert!(
                read(endpoint, key, auth).is_err(),
                "{endpoint} {key} {auth}"
            );
        }
        let long = format!("https://push.example.com/{}", "x".repeat(ENDPOINT_LIMIT));
        assert_eq!(read(&long, KEY, AUTH), Err(SubscriptionError::Endpoint));
    }

    #[test]
    fn contents_fit_and_say_no_more_than_they_may() {
        let mut long = summary("{}");
        long.message = "\u{1}\u{1f600}".repeat(4_000);
        long.server = "\u{1}".repeat(64);
        for reveal in [Reveal::Minimal, Reveal::Question, Reveal::Arguments] {
            let notice = notice(long.clone(), QuestionEvent::Asked, reveal);
            let content = content(&notice, &TimeZone::UTC);
            assert!(content.len() <= CONTENT_LIMIT);
            let content: serde_json::Value = serde_json::from_slice(&content).unwrap();
            assert_eq!(content["path"], "/q/5f2c8a");
            assert_eq!(content["body"] == "", reveal == Reveal::Minimal);
            assert!(content.get("arguments").is_none());
        }
        assert_eq!(topic("5f2c8a").len(), 32);
    }
}
