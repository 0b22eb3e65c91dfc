//! Testing a handler without a client: answers are given as values.
//!
//! ```
//! use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
//! use mcp_elicit_server::{Elicit, ElicitError};
//!
//! async fn greet(elicit: Elicit) -> Result<String, ElicitError> {
//!     let name = elicit.choose("Who are you?", ["Ada", "Grace"]).await?;
//!     elicit.confirm(format!("Greet {name}?")).await?;
//!     Ok(format!("Hello, {name}"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let person = ScriptedUser::who([ScriptedAnswer::pick("Ada"), ScriptedAnswer::yes()]);
//! assert_eq!(greet(person.elicit()).await.unwrap(), "Hello, Ada");
//! assert_eq!(person.asked()[1].message, "Greet Ada?");
//!
//! let person = ScriptedUser::who([ScriptedAnswer::Decline]);
//! assert!(matches!(greet(person.elicit()).await, Err(ElicitError::Refused(_))));
//!
//! // As on every revision: once, and again from the top for each round of answers.
//! let person = ScriptedUser::who([ScriptedAnswer::pick("Ada"), ScriptedAnswer::Decline]);
//! let result = person.run(greet).await.unwrap();
//! assert!(matches!(result, Err(ElicitError::Refused(_))));
//! # }
//! ```

use std::sync::Arc;

use mcp_elicit_core::wire::Capability;
use serde_json::{Value, json};

use crate::backend::Backend;
use crate::backend::script::Script;
use crate::elicit::Elicit;
use crate::replay;
use crate::settings::ServerSettings;

pub use crate::replay::Difference;

/// The scripted person's action on one question.
#[derive(Clone)]
pub enum ScriptedAnswer {
    /// Submits the form with this content, which is checked like any other.
    Accept(Value),
    /// Agrees to visit the URL.
    Visit,
    /// Says no.
    Decline,
    /// Dismisses the question.
    Cancel,
    /// Says nothing: the ask times out, at once.
    Silence,
}

impl ScriptedAnswer {
    /// Submits the form with this content.
    pub fn accept(content: impl Into<Value>) -> Self {
        Self::Accept(content.into())
    }

    /// Says yes to a [`confirm`](Elicit::confirm).
    pub fn yes() -> Self {
        Self::accept(json!({ "confirm": true }))
    }

    /// Says no to a [`confirm`](Elicit::confirm), in its form. [`Decline`](Self::Decline) is a no to being asked.
    pub fn no() -> Self {
        Self::accept(json!({ "confirm": false }))
    }

    /// Picks a value of a [`choose`](Elicit::choose).
    pub fn pick(value: impl Into<String>) -> Self {
        Self::accept(json!({ "choice": value.into() }))
    }

    /// Picks values of a [`choose_many`](Elicit::choose_many).
    pub fn picks<V: Into<String>>(values: impl IntoIterator<Item = V>) -> Self {
        let values: Vec<String> = values.into_iter().map(Into::into).collect();
        Self::accept(json!({ "choices": values }))
    }
}

impl std::fmt::Debug for ScriptedAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Accept(_) => "Accept",
            Self::Visit => "Visit",
            Self::Decline => "Decline",
            Self::Cancel => "Cancel",
            Self::Silence => "Silence",
        })
    }
}

/// A question as the scripted person saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedQuestion {
    /// The message.
    pub message: String,
    /// The form's schema, in form mode.
    pub schema: Option<Value>,
    /// The URL, in url mode.
    pub url: Option<String>,
}

/// A person who answers by script.
#[derive(Debug, Clone)]
pub struct ScriptedUser {
    script: Arc<Script>,
    settings: ServerSettings,
}

impl ScriptedUser {
    /// A person who gives these answers, in order. A question too many is an error.
    pub fn who(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        Self {
            script: Arc::new(Script::new(Capability::BOTH, answers)),
            settings: ServerSettings::default(),
        }
    }

    /// Nobody: the client cannot ask.
    pub fn nobody() -> Self {
        Self {
            script: Arc::new(Script::new(Capability::NONE, [])),
            settings: ServerSettings::default(),
        }
    }

    /// The same person, asked by a server with these settings.
    #[must_use]
    pub fn under(mut self, settings: ServerSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Returns what the handler under test takes.
    pub fn elicit(&self) -> Elicit {
        Elicit::by(
            self.settings.clone().shared(),
            Backend::Script(Arc::clone(&self.script)),
        )
    }

    /// Runs `handler` as on every revision, with the same answers: once, as on 2025-06-18 and 2025-11-25, and then again from
    /// the top for each round of answers, as on 2026-07-28. Gives its result, or what it does differently the second time.
    ///
    /// A step runs once in both together: the second time its first result is given. What is outside of a step happens in
    /// every run, as on 2026-07-28. So a test that counts what was done sees an effect that belongs in a step, and one that
    /// compares results or questions finds what changes from run to run. A question inside a step is an error both times.
    ///
    /// # Errors
    /// When the handler ends or asks differently.
    pub async fn run<R, F, Fut>(&self, handler: F) -> Result<R, Difference>
    where
        R: std::fmt::Debug,
        F: Fn(Elicit) -> Fut,
        Fut: Future<Output = R>,
    {
        replay::on_both_eras(&self.script, &self.settings, handler).await
    }

    /// Every question so far.
    pub fn asked(&self) -> Vec<AskedQuestion> {
        self.script.asked()
    }
}
