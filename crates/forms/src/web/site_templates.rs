//! The templates of pages that an application shows beside the questions.

use askama::Template;

use super::page::Shell;
use crate::theme;

/// One session on the page of sessions.
#[derive(Clone, Debug)]
pub(super) struct SessionRow {
    pub id: String,
    pub of: Option<String>,
    pub browser: String,
    pub signed_in: String,
    pub last_used: String,
    pub is_this: bool,
}

/// Sessions under one heading.
#[derive(Clone, Debug)]
pub(super) struct SessionPart {
    pub anchor: &'static str,
    pub head: &'static str,
    pub may_end: bool,
    pub sessions: Vec<SessionRow>,
}

/// A browser that is notified of questions.
#[derive(Clone, Debug)]
pub(super) struct DeviceRow {
    pub id: String,
    pub browser: String,
    pub added: String,
    pub reached: String,
    pub failed: Option<String>,
    pub is_this: bool,
}

/// Web push, and the devices of a person.
#[derive(Clone, Debug)]
pub(super) struct PushPart {
    pub key: String,
    pub devices: Vec<DeviceRow>,
}

impl PushPart {
    /// Returns `true` if the reader's browser is among the devices.
    pub(super) fn has_this(&self) -> bool {
        self.devices.iter().any(|device| device.is_this)
    }
}

/// The sessions of a person and, for those who may see them, of all.
#[derive(Template)]
#[template(path = "account.html")]
pub(super) struct AccountTemplate {
    pub shell: Shell,
    pub name: String,
    pub known_as: Option<String>,
    pub csrf: String,
    pub push: Option<PushPart>,
    pub may_audit: bool,
    pub parts: Vec<SessionPart>,
}

/// An approval that applies for a while.
#[derive(Clone, Debug)]
pub(super) struct GrantRow {
    pub id: String,
    pub question: Option<String>,
    /// The beginning of the question's id.
    pub short: Option<String>,
    pub call: String,
    pub server: Option<String>,
    pub called_by: Option<String>,
    /// The rule and the times, in words.
    pub facts: String,
    pub may_end: bool,
}

/// The approvals that apply for a while.
#[derive(Template)]
#[template(path = "grants.html")]
pub(super) struct GrantsTemplate {
    pub shell: Shell,
    pub csrf: String,
    pub told: Option<String>,
    pub grants: Vec<GrantRow>,
}
