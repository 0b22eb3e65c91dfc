//! The trait of a channel, and its errors.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::notice::Notice;

/// The future of a message in transit.
pub type SendFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ChannelError>> + Send + 'a>>;

/// A channel to people. It never acts on a question.
pub trait Channel: Send + Sync {
    /// Returns the channel's name: `mail`, `slack`, `teams`, `webhook.NAME`, `push`.
    fn name(&self) -> &str;

    /// Returns `true` if the channel can reach this recipient.
    fn reaches(&self, notice: &Notice) -> bool;

    /// Sends a message. A repetition has the same id.
    fn send<'a>(&'a self, notice: &'a Notice) -> SendFuture<'a, MessageRef>;

    /// Updates a sent message, because its question has ended or changed. Most channels cannot change a sent message.
    fn update<'a>(&'a self, _sent: &'a MessageRef, _notice: &'a Notice) -> SendFuture<'a, Updated> {
        Box::pin(async { Ok(Updated::CannotChange) })
    }
}

/// The channel's id of a sent message; empty if the channel has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageRef(pub String);

/// The result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updated {
    /// The message shows the new state.
    Changed,
    /// The channel cannot change messages: a second message reports the end.
    CannotChange,
}

/// A message that was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// It may be sent later.
    #[error("not sent yet: {why}")]
    Retry {
        /// The time that the receiver asks to wait.
        after: Option<Duration>,
        /// The reason.
        why: NotSentReason,
    },
    /// It cannot be sent.
    #[error("cannot be sent: {0}")]
    Permanent(NotSentReason),
    /// The address no longer exists: nothing more is sent there.
    #[error("the address no longer exists")]
    AddressGone,
}

impl ChannelError {
    /// Creates an error after which the message is sent again.
    pub(crate) const fn retry(why: NotSentReason) -> Self {
        Self::Retry { after: None, why }
    }
}

/// The reason why a message was not sent. It contains no text of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSentReason {
    /// The receiver cannot be reached.
    Unreachable,
    /// TLS failed, or is not offered.
    Tls,
    /// The receiver did not answer in time.
    TimedOut,
    /// The receiver refused with this status or reply code.
    Refused(u16),
    /// The receiver refused the credentials.
    Credentials,
    /// The credentials lack a right that the message needs.
    MissingScope,
    /// The sender is not a member of the channel.
    NotInChannel,
    /// The receiver accepts no more messages for now.
    TooMany,
    /// The recipient has no usable address on this channel.
    Address,
    /// The address leads to a private network.
    PrivateAddress,
    /// The message is larger than the channel takes.
    TooLarge,
    /// The receiver's reply is invalid.
    Reply,
    /// The channel's own configuration is wrong.
    Configuration,
}

impl NotSentReason {
    /// Returns the word for programs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Tls => "tls",
            Self::TimedOut => "timed-out",
            Self::Refused(_) => "refused",
            Self::Credentials => "credentials",
            Self::MissingScope => "missing-scope",
            Self::NotInChannel => "not-in-channel",
            Self::TooMany => "too-many",
            Self::Address => "address",
            Self::PrivateAddress => "private-address",
            Self::TooLarge => "too-large",
            Self::Reply => "reply",
            Self::Configuration => "configuration",
        }
    }
}

impl fmt::Display for NotSentReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "the receiver cannot be reached",
            Self::Tls => "TLS could not be agreed on",
            Self::TimedOut => "the receiver did not answer in time",
            Self::Refused(code) => return write!(f, "the receiver refused with {code}"),
            Self::Credentials => "the receiver refused the credentials",
            Self::MissingScope => "the app lacks a scope: add it and install the app again",
            Self::NotInChannel => "the app is not in the channel: invite it",
            Self::TooMany => "the receiver takes no more messages for now",
            Self::Address => "the recipient has no usable address on this channel",
            Self::PrivateAddress => "the address leads to a private network",
            Self::TooLarge => "the message is larger than the channel takes",
            Self::Reply => "the receiver's reply cannot be understood",
            Self::Configuration => "the channel's configuration is at fault",
        })
    }
}
