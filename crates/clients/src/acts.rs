//! The answers of a client in which a program decides. They are for playing a client to a server under test, never for
//! answering in a person's name.

use serde::{Deserialize, Serialize};

use crate::profile::{Profile, Shows};
use mcp_elicit_core::form::Form;

/// An answer of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramAct {
    /// It accepts, with the content `{}` for a form.
    AcceptEmpty,
    /// It declines.
    Decline,
    /// It cancels.
    Cancel,
    /// It responds with `-32601`.
    NoMethod,
    /// It responds with `-32602`.
    InvalidParams,
    /// It responds with `-32603`.
    InternalError,
}

impl ProgramAct {
    /// Returns the word in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AcceptEmpty => "accept-empty",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
            Self::NoMethod => "no-method",
            Self::InvalidParams => "invalid-params",
            Self::InternalError => "internal-error",
        }
    }
}

/// The answers of a client to the questions that it does not show to a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProgramActs {
    /// To every form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<ProgramAct>,
    /// To a form without fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_form: Option<ProgramAct>,
    /// To a form with a kind of field that it does not show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_kinds: Option<ProgramAct>,
    /// To every link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<ProgramAct>,
}

impl ProgramActs {
    /// Returns the answer to a form, or to a link (`None`). Returns `None` if a person decides. A client that does not
    /// show the mode answers with an error, if nothing else was seen: it has no such method, or not this mode of it
    /// (-32602, elicitation, "Error Handling").
    pub fn to(&self, form: Option<&Form>, profile: &Profile) -> Option<ProgramAct> {
        let Some(form) = form else {
            let shows_none = profile.url == Shows::No;
            return self.url.or(shows_none.then_some(ProgramAct::InvalidParams));
        };
        let kinds = form.kinds();
        let of_kind = if kinds.is_empty() {
            self.empty_form
        } else if profile.kinds.contains_all(kinds) {
            None
        } else {
            self.other_kinds
        };
        let shows_none = profile.form == Shows::No;
        of_kind
            .or(self.form)
            .or(shows_none.then_some(ProgramAct::NoMethod))
    }

    /// Applies a later entry.
    pub(crate) fn apply(&mut self, later: Self) {
        self.form = later.form.or(self.form);
        self.empty_form = later.empty_form.or(self.empty_form);
        self.other_kinds = later.other_kinds.or(self.other_kinds);
        self.url = later.url.or(self.url);
    }
}
