//! Mail: plain text and HTML with one link. Mails cannot be changed; an end is reported if the question was sent by
//! mail.

mod render;
mod server;

use std::time::Duration;

use jiff::tz::TimeZone;
use lettre::Message;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::AsyncSmtpConnection;
use rustls::pki_types::InvalidDnsNameError;
use url::Url;

use self::server::MailServer;
use crate::channel::{Channel, ChannelError, MessageRef, NotSentReason, SendFuture};
use crate::config::MailConfig;
use crate::http::is_of_tls;
use crate::notice::{Notice, NotificationId, Recipient};
use crate::revealed::Template;
use crate::secret::SecretText;

/// The most questions listed in a digest.
const DIGEST_ENTRIES: usize = 50;

/// The time limit for one mail.
const MAIL_LIMIT: Duration = Duration::from_secs(30);

/// The time limit for the end of a connection, after the server has taken the mail.
const QUIT_LIMIT: Duration = Duration::from_secs(1);

/// The sender of mails.
pub struct Mail {
    server: MailServer,
    credentials: Option<Credentials>,
    from: Mailbox,
    template: Option<Template>,
    zone: TimeZone,
    preferences: Option<Url>,
    limit: Duration,
}

/// A mail server that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The file of root certificates.
    #[error("cannot read the certificates in `ca`")]
    Ca(#[source] std::io::Error),
    /// The parameters of TLS.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The server's name, which no certificate can have.
    #[error("no certificate can have the name in `smtp`")]
    Name(#[from] InvalidDnsNameError),
}

impl Mail {
    /// Creates the sender of a configuration with its password.
    pub fn new(config: &MailConfig, password: Option<&SecretText>) -> Result<Self, MailError> {
        let credentials = password.map(|password| {
            let user = config.user.clone();
            let user = user.unwrap_or_else(|| config.from.email.to_string());
            Credentials::new(user, password.reveal().to_owned())
        });
        Ok(Self {
            server: MailServer::new(config)?,
            credentials,
            from: config.from.clone(),
            template: config.text.clone(),
            zone: TimeZone::UTC,
            preferences: None,
            limit: MAIL_LIMIT,
        })
    }

    /// Sets the time zone of times in mails.
    #[must_use]
    pub fn zone(mut self, zone: TimeZone) -> Self {
        self.zone = zone;
        self
    }

    /// Sets the page on which people configure their messages.
    #[must_use]
    pub fn preferences(mut self, page: Url) -> Self {
        self.preferences = Some(page);
        self
    }

    /// Sets the time limit for one mail.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sends a digest of messages to one person. Each of the first 50 has its own link.
    pub async fn send_digest(
        &self,
        id: &NotificationId,
        mail: &str,
        notices: &[Notice],
    ) -> Result<MessageRef, ChannelError> {
        let named = &notices[..notices.len().min(DIGEST_ENTRIES)];
        let more = notices.len() - named.len();
        let subject = render::digest_subject(notices.len());
        let text = render::digest_text(named, more, &self.zone);
        let html = render::digest_html(named, more, &self.zone);
        let message = self.message(id, None, mail, subject, text, html)?;
        self.deliver(id, &message).await
    }

    async fn send_notice(&self, notice: &Notice) -> Result<MessageRef, ChannelError> {
        let Recipient::Person {
            mail: Some(mail), ..
        } = &notice.to
        else {
            return Err(ChannelError::Permanent(NotSentReason::Address));
        };
        let content = render::MailContent::new(notice, self.template.as_ref(), &self.zone);
        let message = self.message(
            &notice.id,
            Some(&notice.summary.question),
            mail,
            content.subject(),
            content.text(),
            content.html(),
        )?;
        self.deliver(&notice.id, &message).await
    }

    fn message(
        &self,
        id: &NotificationId,
        question: Option<&str>,
        to: &str,
        subject: String,
        text: String,
        html: String,
    ) -> Result<Message, ChannelError> {
        let address = to
            .parse()
            .map_err(|_| ChannelError::Permanent(NotSentReason::Address))?;
        let host = self.from.email.domain();
        let mut builder = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, address))
            .subject(subject)
            .message_id(Some(format!("<{id}@{host}>")));
        // Mail programs group the messages of one question by this id.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if let Some(question) = question.filter(|text| text.bytes().all(plain)) {
            builder = builder.references(format!("<{question}@{host}>"));
        }
        let message = builder.multipart(MultiPart::alternative_plain_html(text, html));
        let mut message =
            message.map_err(|_| ChannelError::Permanent(NotSentReason::Configuration))?;
        let mut header = |name: HeaderName, value: String| {
            message
                .headers_mut()
                .insert_raw(HeaderValue::new(name, value));
        };
        header(
            HeaderName::new_from_ascii_str("Auto-Submitted"),
            "auto-generated".to_owned(),
        );
        header(
            HeaderName::new_from_ascii_str("X-Auto-Response-Suppress"),
            "All".to_owned(),
        );
        if let Some(page) = &self.preferences {
            header(
                HeaderName::new_from_ascii_str("List-Unsubscribe"),
                format!("<{page}>"),
            );
        }
        Ok(message)
    }

    async fn deliver(
        &self,
        id: &NotificationId,
        message: &Message,
    ) -> Result<MessageRef, ChannelError> {
        let sent = tokio::time::timeout(self.limit, self.deliver_once(message)).await;
        let mut connection = sent.unwrap_or(Err(ChannelError::retry(NotSentReason::TimedOut)))?;
        // The server has the mail, whatever it says now.
        let _left = tokio::time::timeout(QUIT_LIMIT, connection.quit()).await;
        Ok(MessageRef(format!("{id}@{}", self.from.email.domain())))
    }

    async fn deliver_once(&self, message: &Message) -> Result<AsyncSmtpConnection, ChannelError> {
        let mut connection = self.server.connect().await?;
        if let Some(credentials) = &self.credentials {
            let login = connection.auth(DEFAULT_MECHANISMS, credentials).await;
            login.map_err(|error| failed(&error))?;
        }
        let text = message.formatted();
        let sent = connection.send(message.envelope(), &text).await;
        sent.map_err(|error| failed(&error))?;
        Ok(connection)
    }
}

/// Converts an error of the mail server, without its text.
fn failed(error: &SmtpError) -> ChannelError {
    if let Some(status) = error.status() {
        return refused(status.into());
    }
    ChannelError::retry(if error.is_timeout() {
        NotSentReason::TimedOut
    } else if is_of_tls(error) {
        NotSentReason::Tls
    } else if error.is_client() {
        // The server offers no STARTTLS, or no supported authentication.
        NotSentReason::Configuration
    } else if error.is_response() {
        NotSentReason::Reply
    } else {
        NotSentReason::Unreachable
    })
}

/// Returns the error for a reply that is a refusal.
fn refused(code: u16) -> ChannelError {
    match code {
        530 | 534 | 535 | 538 => ChannelError::Permanent(NotSentReason::Credentials),
        552 => ChannelError::Permanent(NotSentReason::TooLarge),
        500.. => ChannelError::Permanent(NotSentReason::Refused(code)),
        _ => ChannelError::retry(NotSentReason::Refused(code)),
    }
}

impl Channel for Mail {
    fn name(&self) -> &'static str {
        "mail"
    }

    fn reaches(&self, notice: &Notice) -> bool {
        matches!(&notice.to, Recipient::Person { mail: Some(_), .. })
    }

    fn send<'a>(&'a self, notice: &'a Notice) -> SendFuture<'a, MessageRef> {
        Box::pin(self.send_notice(notice))
    }
}
