//! Findings about a form that asks for a credential: the confidence, the credential, and the evidence.

use std::fmt;

use super::words::is_invisible;

/// The confidence that a credential is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Confidence {
    /// Probable: the person is warned.
    Suspicious,
    /// Certain: servers must not send the form, and clients show a strong warning.
    Certain,
}

impl Confidence {
    /// Returns the level's stable name, for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Suspicious => "suspicious",
            Self::Certain => "certain",
        }
    }

    pub(super) fn lower(self) -> Option<Self> {
        match self {
            Self::Suspicious => None,
            Self::Certain => Some(Self::Suspicious),
        }
    }
}

/// The kind of credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CredentialKind {
    /// A password or passphrase.
    Password,
    /// An API key or client secret.
    ApiKey,
    /// An access token or session.
    Token,
    /// A private key.
    PrivateKey,
    /// The words that restore a wallet.
    SeedPhrase,
    /// A code for a single login.
    OneTimeCode,
    /// A PIN.
    Pin,
    /// A payment card's number.
    Card,
    /// A payment card's security code.
    CardCode,
    /// A number that identifies a person.
    NationalId,
    /// A bank account's number.
    BankAccount,
    /// The answer to a security question.
    SecurityAnswer,
}

impl CredentialKind {
    /// Returns a stable name, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::ApiKey => "api-key",
            Self::Token => "token",
            Self::PrivateKey => "private-key",
            Self::SeedPhrase => "seed-phrase",
            Self::OneTimeCode => "one-time-code",
            Self::Pin => "pin",
            Self::Card => "card-number",
            Self::CardCode => "card-security-code",
            Self::NationalId => "national-id",
            Self::BankAccount => "bank-account",
            Self::SecurityAnswer => "security-answer",
        }
    }

    /// Returns its name, with the article.
    fn noun(self) -> &'static str {
        match self {
            Self::Password => "a password",
            Self::ApiKey => "an API key or secret",
            Self::Token => "an access token",
            Self::PrivateKey => "a private key",
            Self::SeedPhrase => "a wallet's recovery phrase",
            Self::OneTimeCode => "a one-time login code",
            Self::Pin => "a PIN",
            Self::Card => "a payment card number",
            Self::CardCode => "a card's security code",
            Self::NationalId => "a national identity number",
            Self::BankAccount => "a bank account number",
            Self::SecurityAnswer => "the answer to a security question",
        }
    }

    /// Returns `true` if it can be a number.
    pub(super) fn is_numeric(self) -> bool {
        match self {
            Self::Password
            | Self::OneTimeCode
            | Self::Pin
            | Self::Card
            | Self::CardCode
            | Self::NationalId
            | Self::BankAccount => true,
            Self::ApiKey
            | Self::Token
            | Self::PrivateKey
            | Self::SeedPhrase
            | Self::SecurityAnswer => false,
        }
    }
}

/// A text of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TextSource {
    /// The field's name.
    Name,
    /// The field's title.
    Title,
    /// The field's description.
    Description,
    /// The field's pattern.
    Pattern,
    /// The field's format, which forms do not have.
    Format,
    /// The title of one of the field's options.
    Option,
    /// The message above the form.
    Message,
}

impl TextSource {
    /// Returns a stable name, for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Title => "title",
            Self::Description => "description",
            Self::Pattern => "pattern",
            Self::Format => "format",
            Self::Option => "option",
            Self::Message => "message",
        }
    }
}

/// One reason to think that a form asks for a credential. `Display` is a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspicion {
    pub(super) field: Option<String>,
    pub(super) secret: CredentialKind,
    pub(super) level: Confidence,
    pub(super) source: TextSource,
}

impl Suspicion {
    /// Returns the field; `None` if only the message asks.
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// Returns the kind of credential.
    pub fn secret(&self) -> CredentialKind {
        self.secret
    }

    /// Returns the confidence.
    pub fn level(&self) -> Confidence {
        self.level
    }

    /// Returns the text that contains the evidence.
    pub fn source(&self) -> TextSource {
        self.source
    }
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "The field \"{}\"", printable(field))?,
            None => f.write_str("The message")?,
        }
        f.write_str(match self.level {
            Confidence::Certain => " asks for ",
            Confidence::Suspicious => " may ask for ",
        })?;
        f.write_str(self.secret.noun())?;
        match (&self.field, self.source) {
            (None, _) | (Some(_), TextSource::Name) => f.write_str("."),
            (Some(_), TextSource::Message) => f.write_str(": the message says so."),
            (Some(_), source) => write!(f, ": its {} says so.", source.as_str()),
        }
    }
}

/// Returns a peer's name, short and on one line.
fn printable(name: &str) -> String {
    name.chars()
        .filter(|c| !c.is_control() && !is_invisible(*c))
        .take(60)
        .collect()
}
