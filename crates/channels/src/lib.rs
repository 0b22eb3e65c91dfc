//! The channels that notify people of questions: mail, Slack, Teams, webhooks and web push.
//!
//! A channel shows the record's content and decides nothing: only Slack accepts actions, and passes them to
//! [`slack::SlackInteractions`], which checks the record and the table of roles. The time is an argument; rendering is pure; only
//! sending waits.
//!
//! | module | contents |
//! | --- | --- |
//! | [`notice`] | a message about a question, in no channel's format |
//! | [`channel`] | the trait of a channel, and its errors |
//! | [`revealed`] | the parts of a question that may leave the gateway, and templates |
//! | [`timing`] | quiet hours, the limit for each person, digests, retries |
//! | [`addressing`] | the recipients and their channels |
//! | [`config`] | the tables `[channels.*]`, with the position of each error |
//! | [`configured_channels`] | the channels of a configuration, ready to send |
//! | [`secret`] | secrets from the environment and from files |
//! | [`http`] | requests without redirects, to public addresses only |
//! | [`mail`], [`webhook`], [`microsoft_teams`], [`slack`], [`push`] | one module per channel |

pub mod addressing;
pub mod channel;
pub mod config;
pub mod configured_channels;
pub mod http;
pub mod mail;
pub mod microsoft_teams;
pub mod notice;
pub mod push;
pub mod revealed;
pub mod secret;
pub mod slack;
pub mod timing;
pub mod webhook;

pub use channel::{Channel, ChannelError, MessageRef, NotSentReason, SendFuture, Updated};
pub use configured_channels::{ChannelContext, ChannelOpenError, Channels};
pub use notice::{
    CallerSummary, ChannelSummary, EndSummary, Notice, NotificationId, QuestionEvent, Recipient,
};
