//! Microsoft Teams: an adaptive card with a link, posted to a workflow's URL. Cards cannot be changed; an end is a
//! second card.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use crate::channel::{Channel, ChannelError, MessageRef, NotSentReason, SendFuture};
use crate::http::{ChannelHttp, ChannelHttpError, Networks, refused};
use crate::notice::{Notice, Recipient};
use crate::revealed::Revealed;
use crate::secret::SecretText;

/// The longest body, in bytes; Teams' limit is 28 KiB.
pub const BODY_LIMIT: usize = 24 * 1024;
/// The pause between two cards: a workflow accepts four per second.
const PAUSE: Duration = Duration::from_millis(334);
/// The time limit for Teams.
const LIMIT: Duration = Duration::from_secs(15);

/// The sender of cards.
pub struct MicrosoftTeams {
    groups: BTreeMap<String, Url>,
    http: ChannelHttp,
    zone: TimeZone,
    next: Mutex<Option<Instant>>,
}

/// Teams channels that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TeamsError {
    /// The URL of a group.
    #[error("the Teams URL of the group {0} must be https")]
    Url(String),
    /// The HTTP client.
    #[error(transparent)]
    Http(#[from] ChannelHttpError),
}

impl MicrosoftTeams {
    /// Creates the sender for groups and their workflow URLs.
    pub fn new(groups: &BTreeMap<String, SecretText>, zone: TimeZone) -> Result<Self, TeamsError> {
        let http = ChannelHttp::new(Networks::Any, LIMIT)?;
        let mut urls = BTreeMap::new();
        for (group, url) in groups {
            let url = Url::parse(url.reveal()).ok();
            let url = url.filter(|url| http.check(url).is_ok());
            let url = url.ok_or_else(|| TeamsError::Url(group.clone()))?;
            urls.insert(group.clone(), url);
        }
        Ok(Self {
            groups: urls,
            http,
            zone,
            next: Mutex::new(None),
        })
    }

    async fn post(&self, notice: &Notice) -> Result<MessageRef, ChannelError> {
        let url = match &notice.to {
            Recipient::Group(group) => self.groups.get(group),
            _ => None,
        };
        let url = url.ok_or(ChannelError::Permanent(NotSentReason::Address))?;
        let body = message(notice, &self.zone).to_string().into_bytes();
        {
            let mut next = self.next.lock().await;
            if let Some(at) = *next {
                tokio::time::sleep_until(at).await;
            }
            *next = Some(Instant::now() + PAUSE);
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let reply = self.http.post(url, headers, body).await?;
        match reply.status {
            200..=299 => Ok(MessageRef::default()),
            404 | 410 => Err(ChannelError::AddressGone),
            _ => Err(refused(&reply)),
        }
    }
}

/// Returns the message for Teams, at most [`BODY_LIMIT`] bytes: arguments are omitted first, then the server's message.
pub fn message(notice: &Notice, zone: &TimeZone) -> Value {
    let attempts = [(true, true), (false, true), (false, false)];
    let cards = attempts.map(|(arguments, message)| card(notice, zone, arguments, message));
    let messages = cards.map(|card| {
        json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "content": card,
            }],
        })
    });
    let [whole, shorter, shortest] = messages;
    [whole, shorter]
        .into_iter()
        .find(|message| message.to_string().len() <= BODY_LIMIT)
        .unwrap_or(shortest)
}

/// Returns a text that is shown literally: text runs have no Markdown, unlike text blocks and facts.
fn runs(name: &str, text: &str) -> Value {
    let mut inlines = Vec::new();
    if !name.is_empty() {
        inlines.push(json!({"type": "TextRun", "text": format!("{name}: "), "weight": "Bolder"}));
    }
    inlines.push(json!({"type": "TextRun", "text": text}));
    json!({"type": "RichTextBlock", "spacing": "Small", "inlines": inlines})
}

fn card(notice: &Notice, zone: &TimeZone, with_arguments: bool, with_message: bool) -> Value {
    let revealed = Revealed::new(notice);
    let mut body = vec![json!({
        "type": "RichTextBlock",
        "inlines": [{"type": "TextRun", "text": revealed.opening(), "weight": "Bolder", "size": "Medium"}],
    })];
    if let Some(message) = revealed.message() {
        if with_message {
            body.push(runs("", &message));
        } else {
            body.push(runs(
                "",
                "The message is too long for this card: open the question.",
            ));
        }
    }
    let facts = [
        ("Ended", revealed.ending(zone)),
        ("Server", Some(revealed.server())),
        ("Tool", revealed.tool()),
        ("Caller", revealed.caller()),
        ("Deadline", revealed.deadline(zone)),
        (
            "Address asked to open",
            revealed.address().filter(|_| with_message),
        ),
    ];
    for (name, value) in facts {
        body.extend(value.map(|value| runs(name, &value)));
    }
    let plan = revealed.plan_facts();
    body.extend(plan.iter().map(|(name, value)| runs(name, value)));
    let arguments = revealed.arguments();
    if with_arguments && !arguments.is_empty() {
        // An argument may have any name: the heading separates it from the gateway's own lines.
        let mut heading = runs("Arguments of the call", "");
        heading["separator"] = true.into();
        body.push(heading);
        let shown = arguments.iter().map(|(name, value)| runs(name, value));
        body.extend(shown);
    } else if !arguments.is_empty() {
        body.push(runs(
            "",
            "The arguments are too long for this card: open the question.",
        ));
    }
    json!({
        "type": "AdaptiveCard",
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "version": "1.4",
        "body": body,
        "actions": [{"type": "Action.OpenUrl", "title": "Open", "url": notice.summary.link}],
    })
}

impl Channel for MicrosoftTeams {
    fn name(&self) -> &'static str {
        "teams"
    }

    fn reaches(&self, notice: &Notice) -> bool {
        matches!(&notice.to, Recipient::Group(group) if self.groups.contains_key(group))
    }

    fn send<'a>(&'a self, notice: &'a Notice) -> SendFuture<'a, MessageRef> {
        Box::pin(self.post(notice))
    }
}

#[cfg(test)]
mod tests {
    use mcp_elicit_policy::rules::Reveal;

    use super::*;
    use crate::notice::QuestionEvent;
    use crate::notice::tests::{approved, assert_says_what_became_of_it, notice, summary};

    #[test]
    fn the_last_message_says_what_became_of_the_call() {
        assert_says_what_became_of_it(&message(&approved(), &TimeZone::UTC).to_string());
    }

    #[test]
    fn cards_stay_within_the_limit() {
        let mut long = summary("{}");
        long.message = "\u{1f600}".repeat(4_000);
        let size = |summary, reveal| {
            let message = message(
                &notice(summary, QuestionEvent::Asked, reveal),
                &TimeZone::UTC,
            );
            message.to_string().len()
        };
        let arguments = json!({"text": "x".repeat(100_000)}).to_string();
        let mut both = long.clone();
        both.arguments = Some(arguments.clone());
        let mut wide = summary("{}");
        wide.arguments = Some(arguments);
        wide.message = "\u{1}".repeat(4_000);
        wide.address = Some("\u{1}".repeat(4_000));
        for summary in [long, both, wide] {
            for reveal in [Reveal::Minimal, Reveal::Question, Reveal::Arguments] {
                assert!(size(summary.clone(), reveal) <= BODY_LIMIT);
            }
        }
    }

    #[test]
    fn no_text_of_a_server_is_markdown() {
        let mut hostile = summary("{}");
        hostile.message = "[Approve](https://evil.example) **now**".to_owned();
        let message = message(
            &notice(hostile, QuestionEvent::Asked, Reveal::Arguments),
            &TimeZone::UTC,
        );
        let text = message.to_string();
        assert!(
            !text.contains("TextBlock\"") || text.contains("RichTextBlock"),
            "{text}"
        );
        assert!(
            !text.contains("\"type\":\"TextBlock\"") && !text.contains("FactSet"),
            "{text}"
        );
        assert_eq!(text.matches("\"url\":").count(), 1, "{text}");
    }
}
