//! The keys of a profile, and the result of all entries that match a client.

use std::time::Duration;

use mcp_elicit_core::form::{FieldKind, FieldKinds, Form};
use mcp_elicit_core::wire::Mode;
use serde::{Deserialize, Serialize};

/// A client's ability to show a mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shows {
    /// It shows the mode if it declares it.
    #[default]
    Declared,
    /// It does not show the mode, whatever it declares.
    No,
}

/// The one who answers in a client's dialog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialog {
    /// A person.
    #[default]
    Person,
    /// A program: its acts are nobody's.
    None,
}

/// The titles of options in a client's dialog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Titles {
    /// They are shown.
    #[default]
    Shown,
    /// Only the values are shown.
    Lost,
}

/// The place of a form without fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmptyForm {
    /// The client's dialog.
    #[default]
    Shown,
    /// The inbox.
    Inbox,
}

/// A client's ability to show views of MCP Apps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Apps {
    /// As it declares.
    #[default]
    Declared,
    /// It shows them, whatever it declares.
    Yes,
    /// It does not show them, whatever it declares.
    No,
}

/// A part of a message that a client passes on to a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PassedOn {
    /// It arrives.
    Kept,
    /// It does not arrive.
    Lost,
    /// Nobody has tried it.
    #[default]
    Unknown,
}

/// The effect of a view's message or context at a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageEffect {
    /// It reaches the model.
    Works,
    /// It is written into the input, and the person has to send it.
    Prefills,
    /// It is accepted, and lost.
    Lost,
    /// Nobody has tried it.
    #[default]
    Unknown,
}

/// A client's treatment of views of MCP Apps, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct View {
    /// The hiding of tools for views from the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<PassedOn>,
    /// The result's `_meta`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<PassedOn>,
    /// The result's `structuredContent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<PassedOn>,
    /// The notifications to the view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notices: Option<PassedOn>,
    /// A message of the view to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageEffect>,
    /// The context that the view gives the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<MessageEffect>,
    /// `true` if its sandbox lets a form be submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forms: Option<bool>,
    /// `true` if it opens links for a view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<bool>,
    /// `true` if it shows the view while the call is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during_call: Option<bool>,
    /// `true` if a view's calls do not wake the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<bool>,
    /// `false` if the view must not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<bool>,
}

/// Sets each member of a view that another view has.
macro_rules! each_of_view {
    ($target:ident, $other:ident: $($member:ident),*) => {
        $(if $other.$member.is_some() { $target.$member = $other.$member; })*
    };
}

impl View {
    /// Applies a later entry.
    pub(crate) fn apply(&mut self, later: &Self) {
        each_of_view!(self, later: visibility, meta, structured, notices, message, context, forms, links, during_call,
            quiet, answers);
    }
}

/// The result of all entries that match a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Form mode.
    pub form: Shows,
    /// Url mode.
    pub url: Shows,
    /// The one who answers in its dialog.
    pub dialog: Dialog,
    /// The kinds of field that it shows.
    pub kinds: FieldKinds,
    /// The titles of options.
    pub titles: Titles,
    /// A form without fields.
    pub empty_form: EmptyForm,
    /// The time within which no person can have answered; `None` if every answer counts.
    pub doubt: Option<Duration>,
    /// The time that it waits for a call.
    pub wait: Option<Duration>,
    /// `true` if progress makes it wait longer.
    pub progress_extends: bool,
    /// `true` if it shows one dialog at a time.
    pub one_at_a_time: bool,
    /// `true` if it needs the id of a question echoed.
    pub echo_id: bool,
    /// Views of MCP Apps.
    pub apps: Apps,
    /// Its treatment of views.
    pub view: View,
}

impl Default for Profile {
    /// Creates the profile of a client that no entry matches: its declarations count.
    fn default() -> Self {
        Self {
            form: Shows::Declared,
            url: Shows::Declared,
            dialog: Dialog::Person,
            kinds: FieldKinds::ALL,
            titles: Titles::Shown,
            empty_form: EmptyForm::Shown,
            doubt: None,
            wait: None,
            progress_extends: false,
            one_at_a_time: false,
            echo_id: false,
            apps: Apps::Declared,
            view: View::default(),
        }
    }
}

impl Profile {
    /// Returns the ability to show a mode.
    pub fn mode(&self, mode: Mode) -> Shows {
        match mode {
            Mode::Form => self.form,
            Mode::Url => self.url,
        }
    }

    /// Returns `true` if a person at the client can be shown this form as a whole, if it declares the mode.
    pub fn shows_form(&self, form: &Form) -> bool {
        let kinds = form.kinds();
        let shown = self.kinds.contains_all(kinds);
        shown && (self.empty_form == EmptyForm::Shown || !kinds.is_empty())
    }

    /// Returns the keys that differ from those of an unknown client, each with its value in words.
    pub fn in_words(&self) -> Vec<(&'static str, String)> {
        let mut words = Vec::new();
        let usual = Self::default();
        let mut add = |key, differs: bool, value: &dyn Fn() -> String| {
            if differs {
                words.push((key, value()));
            }
        };
        add("dialog", self.dialog != usual.dialog, &|| "none".to_owned());
        add("form", self.form != usual.form, &|| "no".to_owned());
        add("url", self.url != usual.url, &|| "no".to_owned());
        add("kinds", self.kinds != usual.kinds, &|| {
            let kinds: Vec<_> = self.kinds.iter().map(FieldKind::as_str).collect();
            kinds.join(" ")
        });
        add("empty-form", self.empty_form != usual.empty_form, &|| {
            "inbox".to_owned()
        });
        add("titles", self.titles != usual.titles, &|| "lost".to_owned());
        add("doubt", self.doubt.is_some(), &|| span(self.doubt));
        add("wait", self.wait.is_some(), &|| span(self.wait));
        add("progress-extends", self.progress_extends, &|| {
            "true".to_owned()
        });
        add("one-at-a-time", self.one_at_a_time, &|| "true".to_owned());
        add("echo-id", self.echo_id, &|| "true".to_owned());
        add("apps", self.apps != usual.apps, &|| match self.apps {
            Apps::Declared => "declared".to_owned(),
            Apps::Yes => "yes".to_owned(),
            Apps::No => "no".to_owned(),
        });
        if self.view != usual.view
            && let Ok(serde_json::Value::Object(view)) = serde_json::to_value(&self.view)
        {
            let members: Vec<_> = view
                .iter()
                .map(|(name, value)| format!("{name} {}", plain(value)))
                .collect();
            words.push(("view", members.join(", ")));
        }
        words
    }
}

fn plain(value: &serde_json::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns a duration as files spell it.
fn span(duration: Option<Duration>) -> String {
    let millis = duration.unwrap_or_default().as_millis();
    if millis.is_multiple_of(1_000) {
        format!("{}s", millis / 1_000)
    } else {
        format!("{millis}ms")
    }
}
