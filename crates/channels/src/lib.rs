//! The ways in which people learn of a question: mail, Slack, Teams, webhooks and web push.
//!
//! A channel shows what the record says. It decides nothing: only Slack takes acts, and hands them to [`slack::Acts`], which asks
//! the record and the table of roles. The time is handed in; what is rendered is rendered by pure functions; only sending waits.
//!
//! | module | contents |
//! | --- | --- |
//! | [`notice`] | a message about a question, before any channel has given it a form |
//! | [`channel`] | the trait of a channel, and its errors |
//! | [`reveal`] | the parts of a question that may leave the gateway, and templates |
//! | [`timing`] | quiet hours, the limit for each person, digests, retries |
//! | [`addressing`] | who is told, on which channel |
//! | [`config`] | the tables `[channels.*]`, with the place of each mistake |
//! | [`open`] | the channels of a configuration, ready to send |
//! | [`secret`] | secrets from the environment and from files |
//! | [`http`] | requests without redirects, to public addresses only |
//! | [`mail`], [`webhook`], [`teams`], [`slack`], [`push`] | one module for each channel |

pub mod addressing;
pub mod channel;
pub mod config;
pub mod http;
pub mod mail;
pub mod notice;
pub mod open;
pub mod push;
pub mod reveal;
pub mod secret;
pub mod slack;
pub mod teams;
pub mod timing;
pub mod webhook;

pub use channel::{Channel, ChannelError, MessageRef, Reason, SendFuture, Updated};
pub use notice::{CallerSummary, Ending, Event, Notice, NotificationId, Recipient, Summary};
pub use open::{Channels, OpenError, Surroundings};
