//! Each channel with a real receiver: a mail server, a verifier of webhooks, a browser's decryption, Slack's own
//! models, a renderer.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod mail;
mod microsoft_teams;
mod push;
#[path = "../../src/notice/sample.rs"]
mod sample;
mod slack;
mod webhook;

use std::sync::Arc;

use mcp_elicit_channels::secret::SecretText;
use mcp_elicit_channels::{
    CallerSummary, ChannelSummary, Notice, NotificationId, QuestionEvent, Recipient,
};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_policy::rules::Reveal;
use serde_json::Value;

/// A question with a form, a tool and arguments, open for a long time, for one person.
fn summary(properties: &str) -> ChannelSummary {
    ChannelSummary {
        need: 1,
        deadline: Timestamp::from_millis(4_102_444_800_000),
        ..sample::summary(properties)
    }
}

fn person(mail: &str) -> Recipient {
    Recipient::Person {
        name: "ops-1".to_owned(),
        mail: Some(mail.to_owned()),
    }
}

fn notice(
    id: &str,
    to: Recipient,
    event: QuestionEvent,
    reveal: Reveal,
    summary: ChannelSummary,
) -> Notice {
    Notice {
        id: NotificationId::new(id).unwrap(),
        event,
        at: summary.asked_at,
        to,
        summary: Arc::new(summary),
        reveal,
        waiting: Some(2),
    }
}

fn secret(text: &str) -> SecretText {
    SecretText::new(text)
}

/// Sends a request to a stand-in over HTTP.
async fn ask(url: &str, body: Option<Value>) -> Value {
    let client = reqwest::Client::new();
    let request = match body {
        Some(body) => client.post(url).body(body.to_string()),
        None => client.get(url),
    };
    let reply = request.send().await.unwrap();
    let text = reply.text().await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{url} said {text}"))
}
