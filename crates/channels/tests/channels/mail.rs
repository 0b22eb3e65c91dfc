//! Mails to a real mail server (`aiosmtpd`): TLS, STARTTLS, AUTH, refusals, silence, replies without an end, and replies
//! that somebody adds before TLS.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp_elicit_channels::config::{MailConfig, SmtpSecurity};
use mcp_elicit_channels::mail::Mail;
use mcp_elicit_channels::{
    Channel as _, ChannelError, NotSentReason, Notice, NotificationId, QuestionEvent, Updated,
};
use mcp_elicit_policy::rules::Reveal;
use mcp_elicit_testkit::peers::{self, Listening};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

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
        config(self.port(), security, ca)
    }

    fn port(&self) -> u16 {
        let port = self.listening.url().rsplit(':').next().unwrap();
        port.parse().unwrap()
    }

    fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    fn mails(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("mails"));
        let text = text.unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn config(port: u16, security: SmtpSecurity, ca: Option<&Path>) -> MailConfig {
    MailConfig {
        host: "localhost".to_owned(),
        port,
        security,
        from: "gateway@example.com".parse().unwrap(),
        user: Some("gateway".to_owned()),
        password: None,
        ca: ca.map(Path::to_owned),
        text: None,
    }
}

fn asked(to: &str) -> Notice {
    notice(
        "n-1",
        person(to),
        QuestionEvent::Asked,
        Reveal::Question,
        summary("{}"),
    )
}

fn retry(why: NotSentReason) -> ChannelError {
    ChannelError::Retry { after: None, why }
}

/// A listener at a port of its own, on `localhost`.
async fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Passes one connection on to the mail server, and adds `extra` to its reply to `STARTTLS`: in one write with it, or
/// in a write of its own.
async fn add_before_tls(listener: &TcpListener, server: u16, extra: &[u8], in_one_write: bool) {
    let (mut client, _) = listener.accept().await.unwrap();
    let mut server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
    let (mut from_client, mut from_server) = ([0; 1024], [0; 1024]);
    let mut is_asked = false;
    while !is_asked {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let command = &from_client[..read.unwrap()];
                is_asked = command == b"STARTTLS\r\n";
                server.write_all(command).await.unwrap();
            }
            read = server.read(&mut from_server) => {
                client.write_all(&from_server[..read.unwrap()]).await.unwrap();
            }
        }
    }
    let read = server.read(&mut from_server).await.unwrap();
    let reply = &from_server[..read];
    assert!(reply.starts_with(b"220 "), "{reply:?}");
    if in_one_write {
        client.write_all(&[reply, extra].concat()).await.unwrap();
    } else {
        client.write_all(reply).await.unwrap();
        client.write_all(extra).await.unwrap();
    }
    let _until_either_ends = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

#[tokio::test]
async fn replies_that_somebody_adds_before_tls_are_no_replies_within_it() {
    let Some(server) = Server::start("starttls", "gateway:hunter2") else {
        return;
    };
    let extra = b"250-x\r\n250-8BITMIME\r\n250 AUTH PLAIN\r\n235 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n250 queued\r\n";
    let ca = server.ca();
    // Without the addition, the server refuses the mail.
    let refused = asked("status-550@example.com");
    for (extra, in_one_write, expected) in [
        (&extra[..], true, retry(NotSentReason::Tls)),
        (&extra[..], false, retry(NotSentReason::Tls)),
        (
            b"",
            true,
            ChannelError::Permanent(NotSentReason::Refused(550)),
        ),
    ] {
        let (listener, port) = listener().await;
        let between = add_before_tls(&listener, server.port(), extra, in_one_write);
        let config = config(port, SmtpSecurity::StartTls, Some(&ca));
        let mail = Mail::new(&config, Some(&secret("hunter2"))).unwrap();
        let (sent, ()) = tokio::join!(mail.send(&refused), between);
        assert_eq!(sent, Err(expected));
    }
    assert_eq!(server.mails().len(), 0);
}

/// Greets one connection without an end, and returns how many bytes were taken.
async fn greet_without_an_end(listener: &TcpListener) -> usize {
    let (mut client, _) = listener.accept().await.unwrap();
    let part = vec![b'2'; 65536];
    let mut taken = 0;
    while let Ok(written) = client.write(&part).await {
        taken += written;
    }
    taken
}

#[tokio::test]
async fn a_reply_without_an_end_is_cut_off() {
    // A part of it is in the buffers of both ends.
    const MOST: usize = 32 * 1024 * 1024;
    let wrong = || Err(retry(NotSentReason::Reply));
    for security in [SmtpSecurity::Plain, SmtpSecurity::StartTls] {
        let (listener, port) = listener().await;
        let mail = Mail::new(&config(port, security, None), None).unwrap();
        let mail = mail.limit(Duration::from_secs(20));
        let to = asked("ops-1@example.com");
        let (sent, taken) = tokio::join!(mail.send(&to), greet_without_an_end(&listener));
        assert_eq!(sent, wrong());
        assert!(taken < MOST, "{taken} bytes");
    }
    for (mode, security) in [
        ("starttls", SmtpSecurity::StartTls),
        ("tls", SmtpSecurity::Tls),
    ] {
        let Some(server) = Server::start(mode, "") else {
            return;
        };
        let ca = server.ca();
        let mail = Mail::new(&server.config(security, Some(&ca)), None).unwrap();
        let mail = mail.limit(Duration::from_secs(20));
        assert_eq!(mail.send(&asked("flood@example.com")).await, wrong());
    }
}

#[tokio::test]
async fn a_mail_that_was_taken_is_sent_even_if_the_server_does_not_say_goodbye() {
    let Some(server) = Server::start("plain", "") else {
        return;
    };
    let mail = Mail::new(&server.config(SmtpSecurity::Plain, None), None).unwrap();
    let sent = mail.send(&asked("loiter@example.com")).await;
    assert!(sent.is_ok(), "{sent:?}");
    assert_eq!(server.mails().len(), 1);
}

#[tokio::test]
async fn mails_are_sent_under_tls_from_the_first_byte() {
    let Some(server) = Server::start("tls", "gateway:hunter2") else {
        return;
    };
    let ca = server.ca();
    let config = server.config(SmtpSecurity::Tls, Some(&ca));
    let mail = Mail::new(&config, Some(&secret("hunter2"))).unwrap();
    mail.send(&asked("ops-1@example.com")).await.unwrap();
    let mails = server.mails();
    assert_eq!(mails.len(), 1);
    let (tls, user) = (&mails[0]["tls"], &mails[0]["user"]);
    assert_eq!((tls, user), (&true.into(), &"gateway".into()));

    let foreign = Mail::new(&server.config(SmtpSecurity::Tls, None), None).unwrap();
    let sent = foreign.send(&asked("ops-1@example.com")).await;
    assert_eq!(sent, Err(retry(NotSentReason::Tls)));
    assert_eq!(server.mails().len(), 1);
}

#[tokio::test]
async fn mails_are_sent_under_tls_with_a_name_and_a_password() {
    let Some(server) = Server::start("starttls", "gateway:hunter2") else {
        return;
    };
    let ca = server.ca();
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
    let asked = asked("ops-1@example.com");
    for (server, why) in [
        (&plain, NotSentReason::Configuration),
        (&foreign, NotSentReason::Tls),
    ] {
        let mail = Mail::new(&server.config(SmtpSecurity::StartTls, None), None).unwrap();
        let sent = mail.send(&asked).await;
        assert_eq!(sent, Err(retry(why)));
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
        assert_eq!(
            mail.send(&asked(address)).await,
            Err(expected),
            "{address:?}"
        );
    }
    let hasty = Mail::new(&config, None)
        .unwrap()
        .limit(Duration::from_millis(500));
    let stalled = hasty.send(&asked("stall@example.com")).await;
    assert_eq!(stalled, Err(retry(NotSentReason::TimedOut)));

    let id = NotificationId::new("d-1").unwrap();
    let notices = vec![asked("ops-1@example.com"); 60];
    mail.send_digest(&id, "ops-1@example.com", &notices)
        .await
        .unwrap();
    let mails = server.mails();
    assert_eq!(mails.len(), 1);
    let text = mails[0]["text"].as_str().unwrap();
    assert!(text.contains("Subject: [gateway] 60 questions"), "{text}");
    assert!(text.contains("and 10 more in the inbox"), "{text}");
}
