//! A person's permissions for each server, as data.
//!
//! ```toml
//! # For every server that has no table of its own, and for what its table leaves out.
//! [default]
//! answer = "ask"            # or "decline": the person has said no, once and for all
//! modes = ["form", "url"]   # what may be asked at all
//! credentials = "warn"      # or "refuse": forms that seem to ask for a credential
//! per-minute = 30
//! pending = 16
//!
//! [server.deployer]
//! fields = ["environment", "note"]   # a form with any other field is refused
//! hosts = ["example.com"]            # urls to these hosts and those below them
//! ```
//!
//! `decline` sends a decline, because it is the person's own decision. Everything else that a rule forbids is an error
//! for the server, because no person declined.

use std::collections::BTreeMap;

use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::wire::{Capability, Mode};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::dispatch::QuestionLimits;

/// A person's permissions for every server.
///
/// ```
/// use mcp_elicit_client::core::wire::Capability;
/// use mcp_elicit_client::{ClientSettings, Consent};
///
/// let consent = Consent::from_toml("[server.deployer]\nmodes = ['form']\nfields = ['environment']")?;
/// assert_eq!(consent.rule("deployer").modes(), Capability::FORM);
/// let settings = ClientSettings::default().consent(consent);
/// # Ok::<(), mcp_elicit_client::consent::ConsentError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consent {
    /// The rule for the parts that a server's own rule omits.
    #[serde(default, skip_serializing_if = "ConsentRule::is_empty")]
    pub default: ConsentRule,
    /// The rules of servers, by the name that the client gave each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server: BTreeMap<String, ConsentRule>,
}

/// A person's permissions for one server; absent parts come from the default rule.
///
/// ```
/// use mcp_elicit_client::consent::{AllowedMode, Credentials, ConsentRule};
/// use mcp_elicit_client::core::link::Link;
///
/// let mut rule = ConsentRule::default();
/// rule.modes = Some(vec![AllowedMode::Url]);
/// rule.hosts = Some(vec!["example.com".to_owned()]);
/// rule.credentials = Some(Credentials::Refuse);
/// assert!(rule.allows_link(&Link::parse("https://pay.example.com/7")?).is_ok());
/// assert!(rule.allows_link(&Link::parse("https://example.org/7")?).is_err());
/// # Ok::<(), mcp_elicit_client::core::link::LinkError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct ConsentRule {
    /// A standing answer in place of asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<StandingAnswer>,
    /// The modes that may be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes: Option<Vec<AllowedMode>>,
    /// The fields that a form may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<String>>,
    /// The hosts that a URL may lead to, each with its subdomains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// The treatment of a form that seems to ask for a credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// The most questions in any minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<usize>,
    /// The most questions that wait at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<usize>,
}

/// A person's standing answer.
///
/// ```
/// use mcp_elicit_client::Consent;
/// use mcp_elicit_client::consent::StandingAnswer;
///
/// let mut consent = Consent::default();
/// consent.decline_always("ads");
/// assert_eq!(consent.rule("ads").answer, Some(StandingAnswer::Decline));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StandingAnswer {
    /// Ask each time.
    #[default]
    Ask,
    /// Decline without asking.
    Decline,
}

/// A mode as the policy spells it.
///
/// ```
/// use mcp_elicit_client::Consent;
/// use mcp_elicit_client::consent::AllowedMode;
///
/// let consent = Consent::from_toml("[default]\nmodes = ['form']")?;
/// assert_eq!(consent.default.modes, Some(vec![AllowedMode::Form]));
/// # Ok::<(), mcp_elicit_client::consent::ConsentError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AllowedMode {
    /// Fill in a form.
    Form,
    /// Visit a URL.
    Url,
}

/// The treatment of a form that seems to ask for a credential.
///
/// ```
/// use mcp_elicit_client::Consent;
/// use mcp_elicit_client::consent::Credentials;
///
/// let consent = Consent::from_toml("[default]\ncredentials = 'refuse'")?;
/// assert_eq!(consent.rule("any server").credentials, Some(Credentials::Refuse));
/// # Ok::<(), mcp_elicit_client::consent::ConsentError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Credentials {
    /// Shown with a warning; an acceptance counts only if the person allows the credential to be sent.
    #[default]
    Warn,
    /// Rejected with an error.
    Refuse,
}

/// A policy that cannot be read or written.
///
/// ```
/// use mcp_elicit_client::Consent;
/// use mcp_elicit_client::consent::ConsentError;
///
/// let misspelt = Consent::from_toml("[default]\nmode = ['form']");
/// assert!(matches!(misspelt, Err(ConsentError::Unreadable(_))));
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConsentError {
    /// The text is not a policy.
    #[error("the consent policy cannot be read: {0}")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It contains a value that TOML cannot hold: a limit of 2^63 or more.
    #[error("the consent policy cannot be written: {0}")]
    Unwritable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The part of a question that a rule forbids.
///
/// ```
/// use mcp_elicit_client::consent::{PolicyViolation, ConsentRule};
/// use mcp_elicit_client::core::form::{FieldBuilder, Form};
///
/// let mut rule = ConsentRule::default();
/// rule.fields = Some(vec!["name".to_owned()]);
/// let form = Form::builder().field("age", FieldBuilder::integer()).build()?;
/// assert_eq!(rule.allows_form(&form, &[]), Err(PolicyViolation::Fields(vec!["age".to_owned()])));
/// # Ok::<(), mcp_elicit_client::core::form::Defects>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PolicyViolation {
    /// The mode.
    #[error("the policy allows no {0} questions from this server")]
    Mode(Mode),
    /// Fields of the form.
    #[error("the policy does not let this server ask for {}", .0.join(", "))]
    Fields(Vec<String>),
    /// The host of the url.
    #[error("the policy does not let this server send people to {0}")]
    Host(String),
    /// A form that seems to ask for a credential.
    #[error("the form seems to ask for a credential ({}), which form mode must not carry", .0.join(", "))]
    Credential(Vec<String>),
}

impl std::str::FromStr for Consent {
    type Err = ConsentError;

    /// Reads a policy with [`Consent::from_toml`].
    fn from_str(text: &str) -> Result<Self, ConsentError> {
        Self::from_toml(text)
    }
}

impl Consent {
    /// Reads a policy.
    ///
    /// ```
    /// use mcp_elicit_client::Consent;
    ///
    /// let consent = Consent::from_toml("[default]\nper-minute = 10")?;
    /// assert_eq!(consent.rule("any server").limits().per_minute, 10);
    /// # Ok::<(), mcp_elicit_client::consent::ConsentError>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, ConsentError> {
        toml::from_str(text).map_err(|error| ConsentError::Unreadable(error.into()))
    }

    /// Returns the policy in the format that [`from_toml`](Self::from_toml) reads, for the code that stores it.
    ///
    /// ```
    /// use mcp_elicit_client::Consent;
    ///
    /// let mut consent = Consent::default();
    /// consent.decline_always("ads");
    /// let kept = consent.to_toml()?;
    /// assert_eq!(Consent::from_toml(&kept)?, consent);
    /// # Ok::<(), mcp_elicit_client::consent::ConsentError>(())
    /// ```
    pub fn to_toml(&self) -> Result<String, ConsentError> {
        toml::to_string(self).map_err(|error| ConsentError::Unwritable(error.into()))
    }

    /// Returns the complete rule for the server that the client calls `name`.
    ///
    /// ```
    /// use mcp_elicit_client::Consent;
    ///
    /// let consent = Consent::from_toml("[default]\npending = 4\n[server.deployer]\nper-minute = 5")?;
    /// let rule = consent.rule("deployer");
    /// assert_eq!((rule.per_minute, rule.pending), (Some(5), Some(4)));
    /// # Ok::<(), mcp_elicit_client::consent::ConsentError>(())
    /// ```
    pub fn rule(&self, name: &str) -> ConsentRule {
        match self.server.get(name) {
            Some(own) => own.clone().over(&self.default),
            None => self.default.clone(),
        }
    }

    /// Permanently declines this server's questions.
    ///
    /// ```
    /// use mcp_elicit_client::Consent;
    ///
    /// let mut consent = Consent::default();
    /// consent.decline_always("ads");
    /// assert!(consent.to_toml()?.contains("decline"));
    /// # Ok::<(), mcp_elicit_client::consent::ConsentError>(())
    /// ```
    pub fn decline_always(&mut self, name: &str) {
        self.server.entry(name.to_owned()).or_default().answer = Some(StandingAnswer::Decline);
    }
}

impl ConsentRule {
    /// Returns `true` if the rule sets nothing.
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn over(self, below: &Self) -> Self {
        Self {
            answer: self.answer.or(below.answer),
            modes: self.modes.or_else(|| below.modes.clone()),
            fields: self.fields.or_else(|| below.fields.clone()),
            hosts: self.hosts.or_else(|| below.hosts.clone()),
            credentials: self.credentials.or(below.credentials),
            per_minute: self.per_minute.or(below.per_minute),
            pending: self.pending.or(below.pending),
        }
    }

    /// Returns the limits on the rate and the number of the server's questions.
    ///
    /// ```
    /// use mcp_elicit_client::consent::ConsentRule;
    ///
    /// let mut rule = ConsentRule::default();
    /// rule.pending = Some(2);
    /// assert_eq!(rule.limits().pending, 2);
    /// ```
    pub fn limits(&self) -> QuestionLimits {
        let usual = QuestionLimits::default();
        QuestionLimits {
            per_minute: self.per_minute.unwrap_or(usual.per_minute),
            pending: self.pending.unwrap_or(usual.pending),
        }
    }

    /// Returns the modes that the server may ask in.
    ///
    /// ```
    /// use mcp_elicit_client::consent::{AllowedMode, ConsentRule};
    ///
    /// let mut rule = ConsentRule::default();
    /// rule.modes = Some(vec![AllowedMode::Form]);
    /// assert!(rule.modes().form && !rule.modes().url);
    /// ```
    pub fn modes(&self) -> Capability {
        let Some(modes) = &self.modes else {
            return Capability::BOTH;
        };
        Capability {
            form: modes.contains(&AllowedMode::Form),
            url: modes.contains(&AllowedMode::Url),
        }
    }

    /// Checks that the form may be shown. `suspicious` names the fields that seem to ask for a credential.
    ///
    /// ```
    /// use mcp_elicit_client::consent::ConsentRule;
    /// use mcp_elicit_client::core::form::{FieldBuilder, Form};
    ///
    /// let form = Form::builder().field("age", FieldBuilder::integer()).build()?;
    /// assert!(ConsentRule::default().allows_form(&form, &[]).is_ok());
    /// # Ok::<(), mcp_elicit_client::core::form::Defects>(())
    /// ```
    pub fn allows_form(&self, form: &Form, suspicious: &[String]) -> Result<(), PolicyViolation> {
        if !self.modes().form {
            return Err(PolicyViolation::Mode(Mode::Form));
        }
        if !suspicious.is_empty() && self.credentials == Some(Credentials::Refuse) {
            return Err(PolicyViolation::Credential(suspicious.to_vec()));
        }
        let Some(allowed) = &self.fields else {
            return Ok(());
        };
        let names = form.fields().iter().map(mcp_elicit_core::form::Field::name);
        let others: Vec<_> = names
            .filter(|name| !allowed.iter().any(|allowed| allowed == name))
            .map(str::to_owned)
            .collect();
        if others.is_empty() {
            Ok(())
        } else {
            Err(PolicyViolation::Fields(others))
        }
    }

    /// Checks that the link may be shown.
    ///
    /// ```
    /// use mcp_elicit_client::consent::ConsentRule;
    /// use mcp_elicit_client::core::link::Link;
    ///
    /// let mut rule = ConsentRule::default();
    /// rule.hosts = Some(vec!["example.com".to_owned()]);
    /// assert!(rule.allows_link(&Link::parse("https://pay.example.com/")?).is_ok());
    /// # Ok::<(), mcp_elicit_client::core::link::LinkError>(())
    /// ```
    pub fn allows_link(&self, link: &Link) -> Result<(), PolicyViolation> {
        if !self.modes().url {
            return Err(PolicyViolation::Mode(Mode::Url));
        }
        let host = link.host().ascii();
        match &self.hosts {
            Some(allowed) if !allowed.iter().any(|allowed| is_at_or_below(host, allowed)) => {
                Err(PolicyViolation::Host(host.to_owned()))
            }
            _ => Ok(()),
        }
    }
}

/// Returns `true` if `host` is `allowed` or below it: `a.example.com` is below `example.com`, and `badexample.com` is
/// not.
fn is_at_or_below(host: &str, allowed: &str) -> bool {
    let allowed = on_the_wire(allowed.trim_end_matches('.'));
    let host = host.trim_end_matches('.');
    host.strip_suffix(allowed.as_str())
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Returns a host in the spelling of URLs, because people may write it in their own script. Anything else stays as it
/// is.
fn on_the_wire(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-');
    if name.is_ascii() || !name.chars().all(plain) {
        return name.to_ascii_lowercase();
    }
    match Link::parse(&format!("https://{name}/")) {
        Ok(link) => link.host().ascii().to_owned(),
        Err(_) => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_s_own_rule_goes_over_the_default() {
        let consent = Consent::from_toml(
            "[default]\nmodes = [\"form\"]\nper-minute = 3\n[server.a]\nper-minute = 9\nanswer = \"decline\"\n",
        )
        .unwrap();
        let own = consent.rule("a");
        assert_eq!(
            (own.limits().per_minute, own.answer),
            (9, Some(StandingAnswer::Decline))
        );
        assert_eq!(own.modes(), Capability::FORM);
        assert_eq!(consent.rule("b").limits().per_minute, 3);
        assert_eq!(consent.rule("b").answer, None);
    }

    #[test]
    fn a_misspelt_policy_is_refused_rather_than_ignored() {
        for text in [
            "[default]\nmode = [\"form\"]",
            "[servers.a]",
            "[default]\nanswer = \"accept\"",
        ] {
            assert!(Consent::from_toml(text).is_err(), "{text}");
        }
    }

    #[test]
    fn hosts_count_with_what_is_below_them() {
        let rule = ConsentRule {
            hosts: Some(vec![
                "Example.com".to_owned(),
                "Bücher.example".to_owned(),
                "dotted.example.".to_owned(),
            ]),
            ..ConsentRule::default()
        };
        for (url, allowed) in [
            // The dot of the root may end a name, in a URL and in a policy.
            ("https://example.com./", true),
            ("https://login.example.com./x", true),
            ("https://dotted.example/", true),
            ("https://a.dotted.example./", true),
            ("https://example.com.evil.net./", false),
            ("https://undotted.example/", false),
            ("https://example.com/", true),
            ("https://login.example.com/x", true),
            ("https://badexample.com/", false),
            ("https://example.com.evil.net/", false),
            ("https://bücher.example/", true),
            ("https://xn--bcher-kva.example/", true),
            ("https://bucher.example/", false),
        ] {
            assert_eq!(
                rule.allows_link(&Link::parse(url).unwrap()).is_ok(),
                allowed,
                "{url}"
            );
        }
    }

    #[test]
    fn what_a_person_said_once_is_kept_as_data() {
        let mut consent = Consent::default();
        consent.decline_always("pushy");
        let text = consent.to_toml().unwrap();
        assert_eq!(text, "[server.pushy]\nanswer = \"decline\"\n");
        assert_eq!(Consent::from_toml(&text).unwrap(), consent);
        assert_eq!(consent.rule("pushy").answer, Some(StandingAnswer::Decline));
    }
}
