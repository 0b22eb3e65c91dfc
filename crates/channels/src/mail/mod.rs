//! Mail: plain text and HTML with one link. Mails cannot be changed; an end is reported if the question was sent by
//! mail.

mod render;

use std::time::Duration;

use jiff::tz::TimeZone;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use url::Url;

use crate::channel::{Channel, ChannelError, MessageRef, NotSentReason, SendFuture};
use crate::config::{MailConfig, SmtpSecurity};
use crate::http::is_of_tls;
use crate::notice::{Notice, NotificationId, Recipient};
use crate::revealed::Template;
use crate::secret::SecretText;

/// The most questions listed in a digest.
const DIGEST_ENTRIES: usize = 50;

/// The time limit for one command of the mail server, and half of that for one mail.
const COMMAND_LIMIT: Duration = Duration::from_secs(15);

/// The sender of mails.
pub struct Mail {
    transport: AsyncSmtpTransport<Tokio1Executor>,
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
    Tls(#[source] SmtpError),
}

impl Mail {
    /// Creates the sender of a configuration with its password.
    pub fn new(config: &MailConfig, password: Option<&SecretText>) -> Result<Self, MailError> {
        let _chosen_already = rustls::crypto::ring::default_provider().install_default();
        let tls = match config.security {
            SmtpSecurity::Plain => Tls::None,
            SmtpSecurity::Tls => Tls::Wrapper(parameters(config)?),
            SmtpSecurity::StartTls => Tls::Required(parameters(config)?),
        };
        let builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&config.host)
            .port(config.port)
            .tls(tls)
            .timeout(Some(COMMAND_LIMIT));
        let builder = match password {
            Some(password) => {
                let user = config.user.clone();
                let user = user.unwrap_or_else(|| config.from.email.to_string());
                builder.credentials(Credentials::new(user, password.reveal().to_owned()))
            }
            None => builder,
        };
        Ok(Self {
            transport: builder.build(),
            from: config.from.clone(),
            template: config.text.clone(),
            zone: TimeZone::UTC,
            preferences: None,
            limit: COMMAND_LIMIT * 2,
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
        self.deliver(id, message).await
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
        self.deliver(&notice.id, message).await
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
        message: Message,
    ) -> Result<MessageRef, ChannelError> {
        let sent = tokio::time::timeout(self.limit, self.transport.send(message)).await;
        match sent {
            Err(_) => Err(ChannelError::retry(NotSentReason::TimedOut)),
            Ok(Err(error)) => Err(failed(&error)),
            Ok(Ok(_)) => Ok(MessageRef(format!("{id}@{}", self.from.email.domain()))),
        }
    }
}

fn parameters(config: &MailConfig) -> Result<TlsParameters, MailError> {
    let mut builder = TlsParameters::builder(config.host.clone());
    if let Some(path) = &config.ca {
        let text = std::fs::read(path).map_err(MailError::Ca)?;
        let certificate = Certificate::from_pem(&text).map_err(MailError::Tls)?;
        builder = builder.add_root_certificate(certificate);
    }
    builder.build_rustls().map_err(MailError::Tls)
}

/// Converts an error of the mail server, without its text.
fn failed(error: &SmtpError) -> ChannelError {
    if let Some(status) = error.status() {
        let code = u16::from(status);
        return match code {
            530 | 534 | 535 | 538 => ChannelError::Permanent(NotSentReason::Credentials),
            552 => ChannelError::Permanent(NotSentReason::TooLarge),
            500.. => ChannelError::Permanent(NotSentReason::Refused(code)),
            _ => ChannelError::retry(NotSentReason::Refused(code)),
        };
    }
    ChannelError::retry(if error.is_timeout() {
        NotSentReason::TimedOut
    } else if error.is_tls() || is_of_tls(error) {
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
