//! Facts about clients beyond their declarations, which the shell knows: the questions that a client really shows, and
//! whether a person is at it.

use std::fmt;
use std::time::Duration;

use mcp_elicit_core::form::{FieldKinds, Form};
use mcp_elicit_core::lifecycle::NotAPerson;
use mcp_elicit_core::wire::{Action, Capability, Mode};

/// The part of a client's messages by which it is recognized.
#[derive(Clone, Copy, Debug)]
pub struct SeenClient<'a> {
    /// `clientInfo`, JSON.
    pub info: Option<&'a str>,
    /// The modes that it declared.
    pub declares: Capability,
    /// `true` if it declared views of MCP Apps.
    pub declares_apps: bool,
    /// `_meta` of the call in which it is asked, JSON.
    pub call_meta: Option<&'a str>,
}

/// The abilities of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientProfile {
    /// The modes that it can show, if it declares them.
    pub modes: Capability,
    /// `true` unless a program alone answers in its dialog.
    pub has_person: bool,
    /// The kinds of field that it shows.
    pub kinds: FieldKinds,
    /// `true` if it shows a form without fields.
    pub shows_empty_forms: bool,
    /// The time within which no person can have answered; `None` if every answer counts.
    pub doubt: Option<Duration>,
    /// The time that it waits for a call, until a shorter one is observed.
    pub wait: Option<Duration>,
}

impl Default for ClientProfile {
    /// Creates the profile of a client about which nothing is known: its declarations count.
    fn default() -> Self {
        Self {
            modes: Capability::BOTH,
            has_person: true,
            kinds: FieldKinds::ALL,
            shows_empty_forms: true,
            doubt: None,
            wait: None,
        }
    }
}

impl ClientProfile {
    /// Returns `true` if a person at the client can be shown a question in this mode.
    pub(crate) fn shows_mode(&self, mode: Mode) -> bool {
        self.has_person && self.modes.has(mode)
    }

    /// Returns the evidence if an act of the client is not a person's. It came so long after the client was asked, if
    /// that is known.
    pub(crate) fn doubts(&self, act: Action, after: Option<Duration>) -> Option<NotAPerson> {
        if !self.has_person {
            return Some(NotAPerson::NoPerson { act });
        }
        let after = after?;
        (after < self.doubt?).then(|| NotAPerson::TooFast {
            act,
            after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Returns `true` if a person at the client can be shown this form, as a whole.
    pub(crate) fn shows_form(&self, form: &Form) -> bool {
        let kinds = form.kinds();
        self.kinds.contains_all(kinds) && (self.shows_empty_forms || !kinds.is_empty())
    }
}

/// The facts about clients, which the shell provides.
pub trait ClientFacts: fmt::Debug + Send + Sync {
    /// Returns the profile of a client.
    fn profile(&self, seen: &SeenClient<'_>) -> ClientProfile;
}
