//! The facts about one call and one question that rules are matched with. Their `Debug` output contains no values of a
//! person.

use std::collections::BTreeMap;
use std::fmt;

use mcp_elicit_core::view::sanitize;
use mcp_elicit_core::wire::CallKind;
use serde::Deserialize;

/// The kind of a caller's proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallerKind {
    /// The operating system's user, over stdio.
    Local,
    /// A verified token, or a trusted proxy's header.
    #[default]
    Subject,
    /// An API key.
    Key,
}

impl CallerKind {
    /// Returns the word that conditions compare with.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Subject => "subject",
            Self::Key => "key",
        }
    }
}

/// The verified identity of a call's caller. Unknown parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Caller {
    /// The issuer of the token.
    pub issuer: String,
    /// The subject, as the issuer knows it.
    pub subject: String,
    /// The name for people.
    pub name: String,
    /// The mail address, verified.
    pub mail: String,
    /// The client program, as the token names it.
    pub client: String,
    /// The name of the caller's person in the file.
    #[serde(skip)]
    pub person: String,
    /// The kind of proof.
    pub kind: CallerKind,
}

/// A tool's annotations, with the specification's defaults if a tool has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the specification has these four"
)]
pub struct Annotations {
    /// `readOnlyHint`
    #[serde(rename = "readOnly", alias = "readOnlyHint")]
    pub read_only: bool,
    /// `destructiveHint`
    #[serde(alias = "destructiveHint")]
    pub destructive: bool,
    /// `idempotentHint`
    #[serde(alias = "idempotentHint")]
    pub idempotent: bool,
    /// `openWorldHint`
    #[serde(rename = "openWorld", alias = "openWorldHint")]
    pub open_world: bool,
}

impl Default for Annotations {
    fn default() -> Self {
        Self {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        }
    }
}

/// A call that is known exactly.
#[derive(Clone, Copy)]
pub struct KnownCall<'a> {
    /// Tool, prompt or resource.
    pub kind: CallKind,
    /// The name, or the resource's URI.
    pub target: &'a str,
    /// The arguments as the client wrote them, as JSON; `None` for none.
    pub arguments: Option<&'a str>,
    /// The tool's annotations.
    pub annotations: Annotations,
}

impl KnownCall<'_> {
    /// Returns the reason why no person can be asked about the call, if no page can show all of it.
    pub fn unshown(&self) -> Option<String> {
        let is_longer = |text: &str, most: usize| text.chars().nth(most).is_some();
        let (part, most) = if is_longer(self.arguments.unwrap_or_default(), sanitize::ARGUMENTS) {
            ("arguments have", sanitize::ARGUMENTS)
        } else if is_longer(self.target, sanitize::DESCRIPTION) {
            ("name has", sanitize::DESCRIPTION)
        } else {
            return None;
        };
        Some(format!(
            "people cannot be shown all of it, since its {part} more than {most} characters"
        ))
    }
}

impl fmt::Debug for KnownCall<'_> {
    /// Formats everything but the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownCall")
            .field("kind", &self.kind)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// The time, in the zone of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Now {
    /// Seconds since the epoch.
    pub unix: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 1 for Monday to 7 for Sunday.
    pub weekday: i64,
    /// `2026-11-22`
    pub date: String,
}

/// The facts about one call.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The caller's groups, from the file and from the claim.
    pub groups: &'a [String],
    /// The server's name in the configuration.
    pub server: &'a str,
    /// The call; `None` if the server did not name the one in which it asks. Conditions that read the call are then
    /// errors.
    pub call: Option<KnownCall<'a>>,
    /// The time.
    pub now: &'a Now,
}

/// One field of a form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FieldFacts {
    /// `string`, `number`, `integer`, `boolean`, `choice` or `choices`.
    pub kind: String,
    /// `email`, `uri`, `date`, `date-time`, or empty.
    pub format: String,
    /// `true` if it is required.
    pub required: bool,
    /// The number of options.
    pub options: i64,
}

/// The facts about one question.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuestionFacts {
    /// `form` or `url`.
    pub mode: String,
    /// The message.
    pub message: String,
    /// The host of the address, for `url`; empty for `form`.
    pub host: String,
    /// `true` if the form seems to ask for a credential.
    pub credentials: bool,
    /// The fields of the form, by name.
    pub fields: BTreeMap<String, FieldFacts>,
}

impl fmt::Debug for QuestionFacts {
    /// Formats everything but the message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuestionFacts")
            .field("mode", &self.mode)
            .field("host", &self.host)
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}
