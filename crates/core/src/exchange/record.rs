//! What is kept of a question: who asked whom what, and how it ended. Names of fields, never values.

use serde::{Deserialize, Serialize};

use super::{Exchange, Moment, Phase};
use crate::wire::{Mode, Revision};

/// What a question is about: known when it is asked, and the same for as long as it lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// This side's own id for the question, not to be guessed. Never the JSON-RPC id.
    pub id: String,
    /// The server that asks, as this side knows it.
    pub server: String,
    /// The call that it belongs to, such as `tools/call deploy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Who is asked; `None` when this side cannot tell people apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The revision in which it was asked.
    pub revision: Revision,
    /// Form or url.
    pub mode: Mode,
    /// The names of the form's fields, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// The host of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// One question as records, audits and metrics tell it. Serializes to one flat JSON object; times are milliseconds
/// since the epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// What it is about.
    #[serde(flatten)]
    pub about: About,
    /// Where it stands.
    pub phase: Phase,
    /// When it was asked.
    pub asked_at: Moment,
    /// When a person first saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_at: Option<Moment>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Moment>,
    /// Who ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why it was withdrawn or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the asker was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Moment>,
}

impl Record {
    /// What is to be kept of a question now.
    pub fn of(about: &About, exchange: &Exchange) -> Self {
        Self {
            about: about.clone(),
            phase: exchange.phase(),
            asked_at: exchange.asked_at(),
            shown_at: exchange.shown_at(),
            ended_at: exchange.ended_at(),
            by: exchange.ended_by().map(Into::into),
            reason: exchange.reason().map(Into::into),
            delivered_at: exchange.delivered_at(),
        }
    }
}
