//! Webhooks, verified by the `standardwebhooks` package.

use std::time::Duration;

use mcp_elicit_channels::config::WebhookConfig;
use mcp_elicit_channels::secret::SecretSource;
use mcp_elicit_channels::webhook::WebhookChannel;
use mcp_elicit_channels::{
    Channel as _, ChannelError, NotSentReason, Notice, QuestionEvent, Recipient,
};
use mcp_elicit_policy::rules::Reveal;
use mcp_elicit_testkit::peers;

use crate::{ask, notice, secret, summary};

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

fn webhook(url: &str, allow_private: bool, secrets: &[&str]) -> WebhookChannel {
    let config = WebhookConfig {
        url: url.parse().unwrap(),
        secret: SecretSource::Env("A".to_owned()),
        old_secret: None,
        events: vec![QuestionEvent::Asked],
        allow_private,
    };
    let secrets: Vec<_> = secrets.iter().map(|text| secret(text)).collect();
    WebhookChannel::new("siem", &config, &secrets).unwrap()
}

fn asked(id: &str) -> Notice {
    notice(
        id,
        Recipient::Endpoint,
        QuestionEvent::Asked,
        Reveal::Question,
        summary("{}"),
    )
}

#[tokio::test]
async fn receivers_verify_both_signatures_and_know_repetitions() {
    let Some(receiver) = peers::channel_script("webhook.py") else {
        return;
    };
    let receiver = receiver.env("SECRETS", format!("{OLD} {NEW}")).listen();
    let url = receiver.url();
    let both = webhook(&format!("{url}/in"), true, &[NEW, OLD]);
    for id in ["n-1", "n-1", "n-2"] {
        both.send(&asked(id)).await.unwrap();
    }
    let got = ask(&format!("{url}/got"), None).await;
    let ids: Vec<_> = got
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["n-1", "n-1", "n-2"]);
    assert_eq!(got[0]["body"], got[1]["body"]);
    assert_eq!(got[0]["body"]["type"], "question.asked");

    // Signed with one of the two secrets only, so that the receiver that requires both rejects it.
    let one = webhook(&format!("{url}/in"), true, &[NEW]);
    assert!(one.send(&asked("n-3")).await.is_err());
}

#[tokio::test]
async fn statuses_decide_what_becomes_of_a_message() {
    let Some(receiver) = peers::channel_script("webhook.py") else {
        return;
    };
    let receiver = receiver.env("SECRETS", OLD).listen();
    let url = receiver.url();
    let after = Some(Duration::from_secs(7));
    let retry = |why| Err(ChannelError::Retry { after, why });
    for (path, expected) in [
        ("/status/410", Err(ChannelError::AddressGone)),
        ("/status/429", retry(NotSentReason::TooMany)),
        ("/status/503", retry(NotSentReason::Refused(503))),
        ("/status/404", retry(NotSentReason::Refused(404))),
        (
            "/redirect",
            Err(ChannelError::Retry {
                after: None,
                why: NotSentReason::Refused(302),
            }),
        ),
    ] {
        let sent = webhook(&format!("{url}{path}"), true, &[OLD])
            .send(&asked("n-1"))
            .await;
        assert_eq!(sent.map(|_| ()), expected, "{path}");
    }
    let got = ask(&format!("{url}/got"), None).await;
    assert_eq!(got.as_array().unwrap().len(), 0, "no redirect was followed");

    let private = webhook(&format!("{url}/in"), false, &[OLD]);
    let sent = private.send(&asked("n-1")).await;
    assert!(matches!(sent, Err(ChannelError::Permanent(_))), "{sent:?}");
    drop(receiver);
    let gone = webhook(
        &format!("http://127.0.0.1:{}/in", peers::free_port()),
        true,
        &[OLD],
    );
    let sent = gone.send(&asked("n-1")).await;
    assert_eq!(
        sent,
        Err(ChannelError::Retry {
            after: None,
            why: NotSentReason::Unreachable
        })
    );
}
