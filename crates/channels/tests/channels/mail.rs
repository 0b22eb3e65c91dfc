//! Mails to a real mail server (`aiosmtpd`): STARTTLS, AUTH, refusals, silence.

use std::path::Path;
use std::time::Duration;

use mcp_elicit_channels::config::{MailConfig, SmtpSecurity};
use mcp_elicit_channels::mail::Mail;
use mcp_elicit_channels::{
    Channel as _, ChannelError, NotSentReason, NotificationId, QuestionEvent, Updated,
};
use mcp_elicit_policy::rules::Reveal;
use mcp_elicit_testkit::peers::{self, Listening};
use serde_json::Value;
use tempfile::TempDir;

use crate::{notice, person, secret, summary};

struct Server {
    listening: Listening,
    folder: TempDir,
}

impl Server {
    fn start(mode: &str, auth: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let program = peers::channel_script("mail.py")?
            .env("MODE", mode)
            .env("AUTH", auth)
            .env("MAILS", path("mails"))
            .env("CERTIFICATE", path("ca.pem"));
        Some(Self {
            listening: program.listen(),
            folder,
        })
    }

    fn config(&self, security: SmtpSecurity, ca: Option<&Path>) -> MailConfig {
        let port = self.listening.url().rsplit(':').next().unwrap();
        MailConfig {
            host: "localhost".to_owned(),
            port: port.parse().unwrap(),
            security,
            from: "gateway@example.com".parse().unwrap(),
            user: Some("gateway".to_owned()),
            password: None,
            ca: ca.map(Path::to_owned),
            text: None,
        }
    }

    fn mails(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("mails"));
        let text = text.unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

#[tokio::test]
async fn mails_are_sent_under_tls_with_a_name_and_a_password() {
    let Some(server) = Server::start("starttls", "gateway:hunter2") else {
        return;
    };
    let ca = server.folder.path().join("ca.pem");
    let config = server.config(SmtpSecurity::StartTls, Some(&ca));
    let mail = Mail::new(&config, Some(&secret("hunter2"))).unwrap();
    let mail = mail.preferences("https://ask.example.com/preferences".parse().unwrap());
    let asked = notice(
        "n-1",
        person("ops-1@example.com"),
        QuestionEvent::Asked,
        Reveal::Arguments,
        summary("{}"),
    );
    let sent = mail.send(&asked).await.unwrap();
    assert_eq!(mail.update(&sent, &asked).await, Ok(Updated::CannotChange));

    let mails = server.mails();
    assert_eq!(mails.len(), 1);
    let got = &mails[0];
    assert_eq!(
        (&got["tls"], &got["user"]),
        (&true.into(), &"gateway".into())
    );
    assert_eq!(got["to"], serde_json::json!(["ops-1@example.com"]));
    let text = got["text"].as_str().unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let head = head.replace("\r\n ", " ");
    for header in [
        "Message-ID: <n-1@example.com>",
        "References: <5f2c8a@example.com>",
        "Subject: [gateway] deploy: decision needed by",
        "Auto-Submitted: auto-generated",
        "X-Auto-Response-Suppress: All",
        "List-Unsubscribe: <https://ask.example.com/preferences>",
        "Content-Type: multipart/alternative",
    ] {
        assert!(head.contains(header), "{header} is not in {head}");
    }
    assert!(!head.contains("version 4"), "{head}");
    assert!(
        body.contains("text/plain") && body.contains("text/html"),
        "{body}"
    );
    assert!(!body.contains("<img"), "{body}");

    let wrong = Mail::new(&config, Some(&secret("wrong"))).unwrap();
    let refused = ChannelError::Permanent(NotSentReason::Credentials);
    assert_eq!(wrong.send(&asked).await, Err(refused));
    assert_eq!(server.mails().len(), 1);
}

#[tokio::test]
async fn a_server_without_tls_or_with_a_foreign_certificate_gets_nothing() {
    let (Some(plain), Some(foreign)) = (Server::start("plain", ""), Server::start("starttls", ""))
    else {
        return;
    };
    let asked = notice(
        "n-1",
        person("ops-1@example.com"),
        QuestionEvent::Asked,
        Reveal::Question,
        summary("{}"),
    );
    for (server, why) in [
        (&plain, NotSentReason::Configuration),
        (&foreign, NotSentReason::Tls),
    ] {
        let mail = Mail::new(&server.config(SmtpSecurity::StartTls, None), None).unwrap();
        let sent = mail.send(&asked).await;
        assert_eq!(sent, Err(ChannelError::Retry { after: None, why }));
        assert_eq!(server.mails().len(), 0);
    }
}

#[tokio::test]
async fn refusals_and_silence_are_told_apart() {
    let Some(server) = Server::start("plain", "") else {
        return;
    };
    let config = server.config(SmtpSecurity::Plain, None);
    let mail = Mail::new(&config, None).unwrap();
    let to = |address: &str| {
        notice(
            "n-1",
            person(address),
            QuestionEvent::Asked,
            Reveal::Question,
            summary("{}"),
        )
    };
    let retry = |why| ChannelError::Retry { after: None, why };
    for (address, expected) in [
        ("status-451@example.com", retry(NotSentReason::Refused(451))),
        (
            "status-550@example.com",
            ChannelError::Permanent(NotSentReason::Refused(550)),
        ),
        (
            "status-552@example.com",
            ChannelError::Permanent(NotSentReason::TooLarge),
        ),
        ("nobody", ChannelError::Permanent(NotSentReason::Address)),
        (
            "a@b\r\nBcc: c@example.com",
            ChannelError::Permanent(NotSentReason::Address),
        ),
    ] {
        assert_eq!(mail.send(&to(address)).await, Err(expected), "{address:?}");
    }
    let hasty = Mail::new(&config, None)
        .unwrap()
        .limit(Duration::from_millis(500));
    let stalled = hasty.send(&to("stall@example.com")).await;
    assert_eq!(stalled, Err(retry(NotSentReason::TimedOut)));

    let id = NotificationId::new("d-1").unwrap();
    let notices = vec![to("ops-1@example.com"); 60];
    mail.send_digest(&id, "ops-1@example.com", &notices)
        .await
        .unwrap();
    let mails = server.mails();
    assert_eq!(mails.len(), 1);
    let text = mails[0]["text"].as_str().unwrap();
    assert!(text.contains("Subject: [gateway] 60 questions"), "{text}");
    assert!(text.contains("and 10 more in the inbox"), "{text}");
}
