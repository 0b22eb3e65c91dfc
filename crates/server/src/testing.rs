//! Tests of a handler without a client: answers are given as values.
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
//! let person = ScriptedUser::answering([ScriptedAnswer::pick("Ada"), ScriptedAnswer::yes()]);
//! assert_eq!(greet(person.elicit()).await.unwrap(), "Hello, Ada");
//! assert_eq!(person.asked()[1].message, "Greet Ada?");
//!
//! let person = ScriptedUser::answering([ScriptedAnswer::Decline]);
//! assert!(matches!(greet(person.elicit()).await, Err(ElicitError::Refused(_))));
//!
//! // As on every revision: once, and again from the top for each round of answers.
//! let person = ScriptedUser::answering([ScriptedAnswer::pick("Ada"), ScriptedAnswer::Decline]);
//! let result = person.run(greet).await.unwrap();
//! assert!(matches!(result, Err(ElicitError::Refused(_))));
//! # }
//! ```

use std::sync::Arc;

use mcp_elicit_core::wire::Capability;
use serde_json::{Value, json};

use crate::backend::Backend;
use crate::backend::script::AnswerScript;
use crate::elicit::Elicit;
use crate::replay;
use crate::settings::ServerSettings;

pub use crate::replay::Difference;

/// The reason why a test with [`ScriptedUser::run`] fails, whatever its handler returned.
///
/// ```
/// use mcp_elicit_server::testing::{RunError, ScriptedAnswer, ScriptedUser};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// // A script that does not fit the handler is no result of the handler.
/// let user = ScriptedUser::answering([ScriptedAnswer::pick("yes")]);
/// let wrong = user.run(|elicit| async move { elicit.confirm("Deploy?").await }).await;
/// assert!(matches!(wrong, Err(RunError::Script(_))));
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The handler does not do the same on every revision.
    #[error(transparent)]
    Difference(#[from] Difference),
    /// The script does not fit the handler.
    #[error(transparent)]
    Script(#[from] ScriptedUserError),
}

/// A fault of a script.
///
/// ```
/// use mcp_elicit_server::testing::ScriptedUserError;
///
/// let fault = ScriptedUserError::Unused { left: 1 };
/// assert_eq!(fault.to_string(), "answers of the script that no question took: 1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptedUserError {
    /// It has no answer to a question.
    #[error("the script has no answer to question {question}, {message:?}")]
    TooShort {
        /// The number of the question, from 1.
        question: usize,
        /// The beginning of its message.
        message: String,
    },
    /// An answer does not fit its form, so its question was asked again, and the script had no further answer.
    #[error("answer {answer} does not fit: {why}")]
    Misfit {
        /// The number of the answer, from 1.
        answer: usize,
        /// The violations, without the values.
        why: String,
    },
    /// It has more answers than there were questions.
    #[error("answers of the script that no question took: {left}")]
    Unused {
        /// The number of unused answers.
        left: usize,
    },
}

/// The scripted user's action on one question.
///
/// ```
/// use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
/// use serde_json::json;
///
/// let user = ScriptedUser::answering([
///     ScriptedAnswer::accept(json!({ "environment": "staging" })),
///     ScriptedAnswer::Visit,
///     ScriptedAnswer::Cancel,
///     ScriptedAnswer::Silence,
/// ]);
/// # let _ = user;
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum ScriptedAnswer {
    /// Submits the form with this content, which is checked like any other.
    Accept(Value),
    /// Agrees to visit the URL.
    Visit,
    /// Declines.
    Decline,
    /// Dismisses the question.
    Cancel,
    /// Does not answer: the ask times out at once.
    Silence,
}

impl ScriptedAnswer {
    /// Submits the form with this content.
    ///
    /// ```
    /// use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// use serde_json::json;
    ///
    /// #[derive(schemars::JsonSchema, serde::Deserialize)]
    /// struct Target {
    ///     environment: String,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), mcp_elicit_server::ElicitError> {
    /// let user = ScriptedUser::answering([ScriptedAnswer::accept(json!({ "environment": "staging" }))]);
    /// let target = user.elicit().form::<Target>("Where to?").await?;
    /// assert_eq!(target.environment, "staging");
    /// # Ok(()) }
    /// ```
    pub fn accept(content: impl Into<Value>) -> Self {
        Self::Accept(content.into())
    }

    /// Says yes to a [`confirm`](Elicit::confirm).
    ///
    /// ```
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let user = ScriptedUser::answering([ScriptedAnswer::yes()]);
    /// assert!(user.elicit().confirm("Deploy?").await.is_ok());
    /// # }
    /// ```
    pub fn yes() -> Self {
        Self::accept(json!({ "confirm": true }))
    }

    /// Answers a [`confirm`](Elicit::confirm) with "no", in its form. [`Decline`](Self::Decline) refuses to be asked.
    ///
    /// ```
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let user = ScriptedUser::answering([ScriptedAnswer::no()]);
    /// assert!(user.elicit().confirm("Deploy?").await.is_err());
    /// # }
    /// ```
    pub fn no() -> Self {
        Self::accept(json!({ "confirm": false }))
    }

    /// Picks a value of a [`choose`](Elicit::choose).
    ///
    /// ```
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), mcp_elicit_server::ElicitError> {
    /// let user = ScriptedUser::answering([ScriptedAnswer::pick("eu")]);
    /// assert_eq!(user.elicit().choose("Which region?", ["eu", "us"]).await?, "eu");
    /// # Ok(()) }
    /// ```
    pub fn pick(value: impl Into<String>) -> Self {
        Self::accept(json!({ "choice": value.into() }))
    }

    /// Picks values of a [`choose_many`](Elicit::choose_many).
    ///
    /// ```
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), mcp_elicit_server::ElicitError> {
    /// let user = ScriptedUser::answering([ScriptedAnswer::picks(["eu", "us"])]);
    /// assert_eq!(user.elicit().choose_many("Which regions?", ["eu", "us"]).await?, ["eu", "us"]);
    /// # Ok(()) }
    /// ```
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

/// A question as the scripted user saw it.
///
/// ```
/// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), mcp_elicit_server::ElicitError> {
/// let user = ScriptedUser::answering([ScriptedAnswer::pick("eu")]);
/// user.elicit().choose("Which region?", ["eu", "us"]).await?;
/// let asked = user.asked().remove(0);
/// assert_eq!(asked.message, "Which region?");
/// assert_eq!(asked.schema.unwrap()["properties"]["choice"]["enum"][0], "eu");
/// assert_eq!(asked.url, None);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AskedQuestion {
    /// The message.
    pub message: String,
    /// The form's schema, in form mode.
    pub schema: Option<Value>,
    /// The URL, in url mode.
    pub url: Option<String>,
}

/// A user who answers by script.
///
/// ```
/// use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
/// use mcp_elicit_server::{Elicit, ElicitError};
///
/// async fn deploy(elicit: Elicit) -> Result<&'static str, ElicitError> {
///     elicit.confirm("Deploy to production?").await?;
///     Ok("deployed")
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let user = ScriptedUser::answering([ScriptedAnswer::yes()]);
/// assert_eq!(deploy(user.elicit()).await.unwrap(), "deployed");
/// assert_eq!(user.asked()[0].message, "Deploy to production?");
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ScriptedUser {
    script: Arc<AnswerScript>,
    settings: ServerSettings,
}

impl ScriptedUser {
    /// Creates a user who gives these answers, in order. A question without an answer is an error.
    ///
    /// ```
    /// use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    ///
    /// let user = ScriptedUser::answering([ScriptedAnswer::pick("eu"), ScriptedAnswer::yes()]);
    /// # let _ = user;
    /// ```
    pub fn answering(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        Self {
            script: Arc::new(AnswerScript::new(Capability::BOTH, answers)),
            settings: ServerSettings::default(),
        }
    }

    /// Creates a client that cannot be asked.
    ///
    /// ```
    /// # use mcp_elicit_server::testing::ScriptedUser;
    /// use mcp_elicit_server::ElicitError;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let asked = ScriptedUser::unavailable().elicit().confirm("Deploy?").await;
    /// assert!(matches!(asked, Err(ElicitError::CannotAsk(_))));
    /// # }
    /// ```
    pub fn unavailable() -> Self {
        Self {
            script: Arc::new(AnswerScript::new(Capability::NONE, [])),
            settings: ServerSettings::default(),
        }
    }

    /// Returns the same user, asked by a server with these settings.
    ///
    /// ```
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// use mcp_elicit_server::{ElicitError, ServerSettings};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let settings = ServerSettings::default().questions_per_call(0);
    /// let user = ScriptedUser::answering([ScriptedAnswer::yes()]).under(settings);
    /// assert!(matches!(user.elicit().confirm("Deploy?").await, Err(ElicitError::Limit(_))));
    /// # }
    /// ```
    #[must_use]
    pub fn under(mut self, settings: ServerSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Returns the `Elicit` for the handler under test.
    ///
    /// ```
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let elicit = ScriptedUser::answering([ScriptedAnswer::yes()]).elicit();
    /// assert!(elicit.confirm("Deploy?").await.is_ok());
    /// # }
    /// ```
    pub fn elicit(&self) -> Elicit {
        Elicit::by(
            self.settings.clone().shared(),
            Backend::Script(Arc::clone(&self.script)),
        )
    }

    /// Runs `handler` as on every revision, with the same answers: once, as on 2025-06-18 and 2025-11-25, and then
    /// again from the top for each round of answers, as on 2026-07-28. Returns its result, or the difference between
    /// the two. The script must fit: each question has an answer, and each answer is used.
    ///
    /// A step runs once in both together: the second time its first result is returned. Effects outside of a step
    /// happen in every run, as on 2026-07-28. So a test that counts effects sees one that belongs in a step, and a test
    /// that compares results or questions finds those that change between runs. A question inside a step is an error
    /// both times.
    ///
    /// # Errors
    /// If the handler ends or asks differently, or the script does not fit it.
    ///
    /// ```
    /// use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// use mcp_elicit_server::{Elicit, ElicitError};
    ///
    /// async fn publish(elicit: Elicit) -> Result<u32, ElicitError> {
    ///     let draft: u32 = elicit.step("draft", || async { 7 }).await?;
    ///     elicit.confirm(format!("Publish draft {draft}?")).await?;
    ///     Ok(draft)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let user = ScriptedUser::answering([ScriptedAnswer::yes()]);
    /// assert_eq!(user.run(publish).await.unwrap().unwrap(), 7);
    /// # }
    /// ```
    pub async fn run<R, F, Fut>(&self, handler: F) -> Result<R, RunError>
    where
        R: std::fmt::Debug,
        F: Fn(Elicit) -> Fut,
        Fut: Future<Output = R>,
    {
        replay::on_both_eras(&self.script, &self.settings, handler).await
    }

    /// Returns every question so far.
    ///
    /// ```
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), mcp_elicit_server::ElicitError> {
    /// let user = ScriptedUser::answering([ScriptedAnswer::Visit]);
    /// user.elicit().visit("Read the terms", "https://example.com/terms").await?;
    /// assert_eq!(user.asked()[0].url.as_deref(), Some("https://example.com/terms"));
    /// # Ok(()) }
    /// ```
    pub fn asked(&self) -> Vec<AskedQuestion> {
        self.script.asked()
    }
}
