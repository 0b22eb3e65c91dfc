//! Web push to a stand-in that checks the token and decrypts as a browser does.

use base64::Engine as _;
use jiff::tz::TimeZone;
use mcp_elicit_channels::config::PushConfig;
use mcp_elicit_channels::http::Networks;
use mcp_elicit_channels::push::{Push, Subscription, SubscriptionError, VapidKey};
use mcp_elicit_channels::{
    Channel as _, ChannelError, NotSentReason, Notice, QuestionEvent, Recipient,
};
use mcp_elicit_policy::rules::Reveal;
use mcp_elicit_testkit::peers;
use serde_json::Value;

use crate::{ask, notice, summary};

fn push(networks: Networks, key: &[u8]) -> Push {
    let config = PushConfig {
        contact: "mailto:gateway@example.com".to_owned(),
        hosts: vec!["127.0.0.1".to_owned(), "*.push.example.com".to_owned()],
        allow_private: false,
    };
    let key = VapidKey::from_pkcs8(key).unwrap();
    Push::new(&config, key, networks, TimeZone::UTC).unwrap()
}

fn to(endpoint: &str, keys: &Value, event: QuestionEvent) -> Notice {
    let text = |name: &str| keys[name].as_str().unwrap();
    let device = Subscription::new(endpoint, text("p256dh"), text("auth")).unwrap();
    notice(
        "n-1",
        Recipient::Device(Box::new(device)),
        event,
        Reveal::Question,
        summary("{}"),
    )
}

#[tokio::test]
async fn browsers_read_what_was_sent() {
    let Some(service) = peers::channel_script("push.py") else {
        return;
    };
    let service = service.listen();
    let url = service.url();
    let key = VapidKey::generate().unwrap();
    let sender = push(Networks::Any, &key);
    let subscription = ask(&format!("{url}/subscription"), None).await;
    let endpoint = subscription["endpoint"].as_str().unwrap();
    for event in [QuestionEvent::Asked, QuestionEvent::Escalated] {
        let notice = to(endpoint, &subscription["keys"], event);
        sender.send(&notice).await.unwrap();
    }
    let got = ask(&format!("{url}/got"), None).await;
    let first = &got[0];
    assert_eq!(first["key"], *sender.public_key());
    assert_eq!(first["claims"]["sub"], "mailto:gateway@example.com");
    assert_eq!(
        (&first["urgency"], &first["ttl"]),
        (&"normal".into(), &"86400".into())
    );
    assert_eq!(got[1]["urgency"], "high");
    assert_eq!(first["topic"], got[1]["topic"]);
    let content: Value = serde_json::from_str(first["content"].as_str().unwrap()).unwrap();
    assert_eq!(content["kind"], "question.asked");
    assert_eq!(content["body"], "Deploy version 4 to production?");
    assert_eq!(
        (&content["path"], &content["count"]),
        (&"/q/5f2c8a".into(), &2.into())
    );

    // The same key after a restart.
    assert_eq!(push(Networks::Any, &key).public_key(), sender.public_key());
    let gone = to(
        &format!("{url}/gone"),
        &subscription["keys"],
        QuestionEvent::Asked,
    );
    assert_eq!(sender.send(&gone).await, Err(ChannelError::AddressGone));
    assert!(VapidKey::from_pkcs8(b"damaged").is_err());
}

#[tokio::test]
async fn endpoints_in_private_networks_are_refused() {
    let sender = push(Networks::Public, &VapidKey::generate().unwrap());
    let keys = serde_json::json!({
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    });
    for (endpoint, why) in [
        ("https://127.0.0.1/x", NotSentReason::PrivateAddress),
        ("https://[fd00::1]/x", NotSentReason::PrivateAddress),
        ("https://169.254.169.254/x", NotSentReason::PrivateAddress),
        ("http://push.example.com/x", NotSentReason::Address),
        // A public host that is not a browser's push service, and is not in the configuration.
        ("https://push.example.com/x", NotSentReason::Address),
        ("https://evil-fcm.googleapis.com/x", NotSentReason::Address),
        (
            "https://fcm.googleapis.com.example.com/x",
            NotSentReason::Address,
        ),
        ("https://fcm.googleapis.com:8443/x", NotSentReason::Address),
        ("https://fcm.googleapis.com:22/x", NotSentReason::Address),
    ] {
        let notice = to(endpoint, &keys, QuestionEvent::Asked);
        let sent = sender.send(&notice).await;
        assert_eq!(sent, Err(ChannelError::Permanent(why)), "{endpoint}");
        let Recipient::Device(device) = &notice.to else {
            unreachable!()
        };
        assert!(sender.check(device).is_err(), "{endpoint}");
    }
    for endpoint in [
        "https://fcm.googleapis.com/fcm/send/x",
        "https://fcm.googleapis.com:443/fcm/send/x",
        "https://web.push.apple.com/x",
        "https://wns2-par02p.notify.windows.com/x",
        "https://updates.push.services.mozilla.com/wpush/v2/x",
        "https://a.push.example.com/x",
    ] {
        let notice = to(endpoint, &keys, QuestionEvent::Asked);
        let Recipient::Device(device) = &notice.to else {
            unreachable!()
        };
        assert_eq!(sender.check(device), Ok(()), "{endpoint}");
    }
    // Sixty-five bytes that begin as a point does, but are not one.
    let bytes = [&[4][..], &[7; 64]].concat();
    let no_point = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
    let auth = keys["auth"].as_str().unwrap();
    let device = Subscription::new("https://web.push.apple.com/x", &no_point, auth).unwrap();
    assert_eq!(sender.check(&device), Err(SubscriptionError::Key));
}
