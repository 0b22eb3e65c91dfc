//! One question, from its texts to its answer.

mod askable;
mod choices;
mod reasons;
mod single_field;

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use crate::ask_loop::{self, AskDecision};
use crate::elicit::Elicit;
use crate::error::{ElicitError, RefusalKind};
use crate::question::OutgoingQuestion;

// Types in hidden methods, which only this crate implements.
#[doc(hidden)]
pub use askable::{AcceptedContent, AskBody, ReadResult};
pub use askable::{Askable, TypedForm, Visit};
pub use choices::{ChoiceItem, Choose, ChooseAmong, ChooseMany};
pub use reasons::Reasons;
pub(crate) use reasons::on_one_line;
pub use single_field::Confirm;

/// A question, sent when it is awaited.
///
/// `.await` returns the answer or an [`ElicitError`]; [`outcome`](Self::outcome) is for handlers that continue after a
/// refusal.
///
/// ```
/// use std::time::Duration;
/// use mcp_elicit_server::{Elicit, ElicitError};
///
/// async fn retention(elicit: Elicit) -> Result<String, ElicitError> {
///     elicit
///         .choose("How long should logs be kept?", ["a week", "a month"])
///         .key("retention")
///         .timeout(Duration::from_secs(2 * 60))
///         .attempts(1)
///         .or("a week".to_owned())
///         .await
/// }
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
/// # let user = mcp_elicit_server::testing::ScriptedUser::unavailable();
/// # assert_eq!(runtime.block_on(retention(user.elicit())).unwrap(), "a week");
/// ```
#[must_use = "a question is put when it is awaited"]
pub struct Ask<W: Askable> {
    elicit: Elicit,
    message: String,
    what: W,
    key: Option<String>,
    timeout: Option<Duration>,
    attempts: Option<u32>,
    instead: Option<Box<dyn FnOnce() -> W::Answer + Send>>,
    check: Option<Box<AnswerCheck<W::Answer>>>,
}

/// An author's own check of an answer.
type AnswerCheck<T> = dyn Fn(&T) -> Result<(), Reasons> + Send + Sync;

/// A person's action on a question, with the answer if there is one.
///
/// ```
/// use mcp_elicit_server::{AskOutcome, Elicit, ElicitError};
///
/// async fn send(elicit: Elicit) -> Result<&'static str, ElicitError> {
///     Ok(match elicit.confirm("Send a copy by mail?").outcome().await? {
///         AskOutcome::Accept(()) => "sent, with a copy by mail",
///         AskOutcome::Decline | AskOutcome::Cancel => "sent",
///     })
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskOutcome<T> {
    /// The person answered.
    Accept(T),
    /// The person said no: to being asked, or to a confirmation.
    Decline,
    /// The person made no choice.
    Cancel,
}

impl<W: Askable> Ask<W> {
    pub(crate) fn new(elicit: &Elicit, message: impl Into<String>, what: W) -> Self {
        Self {
            elicit: elicit.clone(),
            message: message.into(),
            what,
            key: None,
            timeout: None,
            attempts: None,
            instead: None,
            check: None,
        }
    }

    /// Names the question in `inputRequests` (2026-07-28), where clients and logs can see it. By default, the name is
    /// derived from the question's digest.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn name(elicit: Elicit) -> Result<String, ElicitError> {
    /// elicit.choose("Who are you?", ["Ada", "Grace"]).key("name").await
    /// # }
    /// ```
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets how long this question may stay open.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn name(elicit: Elicit) -> Result<String, ElicitError> {
    /// elicit.choose("Who are you?", ["Ada", "Grace"]).timeout(std::time::Duration::from_secs(30)).await
    /// # }
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how often to ask when the answers break the form's rules, the first time included.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn name(elicit: Elicit) -> Result<String, ElicitError> {
    /// elicit.choose("Who are you?", ["Ada", "Grace"]).attempts(1).await
    /// # }
    /// ```
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts.max(1));
        self
    }

    /// Sets the answer to use when the client cannot ask. It is never used when a person refused or did not answer.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn region(elicit: Elicit) -> Result<String, ElicitError> {
    /// // Without a person to ask, "eu"; a person who refuses still ends the call.
    /// elicit.choose("Which region?", ["eu", "us"]).or("eu".to_owned()).await
    /// # }
    /// ```
    pub fn or(self, answer: W::Answer) -> Self {
        self.or_else(move || answer)
    }

    /// Like [`or`](Self::or), with an answer that is computed only when it is needed.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn region(elicit: Elicit) -> Result<String, ElicitError> {
    /// elicit.choose("Which region?", ["eu", "us"]).or_else(|| std::env::var("REGION").unwrap_or("eu".into())).await
    /// # }
    /// ```
    pub fn or_else(mut self, answer: impl FnOnce() -> W::Answer + Send + 'static) -> Self {
        self.instead = Some(Box::new(answer));
        self
    }

    /// Checks an answer that has passed the form's rules. `Err` holds the reasons, written for the person, who is asked
    /// again with them as after any wrong answer ([`attempts`](Self::attempts)).
    ///
    /// An answer that passed stays valid for the rest of the call, even when the handler runs again. The reasons are
    /// shown to the person and sent to the client, and are in no record of this crate.
    ///
    /// The check is `'static`, since the question may be kept and awaited anywhere: it cannot borrow `self` or an
    /// argument of the tool. Clone what it needs, and move that in.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # #[derive(schemars::JsonSchema, serde::Deserialize)] struct Stay { from: String, to: String }
    /// # async fn stay(elicit: Elicit) -> Result<Stay, ElicitError> {
    /// elicit
    ///     .form::<Stay>("When do you come?")
    ///     .check(|stay| if stay.from < stay.to { Ok(()) } else { Err(("to", "must be after the day of arrival")) })
    ///     .await
    /// # }
    /// ```
    pub fn check<R: Into<Reasons>>(
        mut self,
        check: impl Fn(&W::Answer) -> Result<(), R> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Box::new(move |answer| check(answer).map_err(Into::into)));
        self
    }

    pub(crate) fn change(mut self, change: impl FnOnce(W) -> W) -> Self {
        self.what = change(self.what);
        self
    }

    /// Asks the question and returns the person's action. Fails for everything that is not a person's action.
    ///
    /// ```
    /// # use mcp_elicit_server::{AskOutcome, Elicit, ElicitError};
    /// # async fn wants_mail(elicit: Elicit) -> Result<bool, ElicitError> {
    /// let outcome = elicit.confirm("Send a copy by mail?").outcome().await?;
    /// Ok(matches!(outcome, AskOutcome::Accept(())))
    /// # }
    /// ```
    pub async fn outcome(self) -> Result<AskOutcome<W::Answer>, ElicitError> {
        Ok(match self.decide().await? {
            AskDecision::Answer(answer) => AskOutcome::Accept(answer),
            AskDecision::Not(RefusalKind::AnsweredNo | RefusalKind::Declined) => {
                AskOutcome::Decline
            }
            AskDecision::Not(RefusalKind::Dismissed) => AskOutcome::Cancel,
        })
    }

    async fn answer(self) -> Result<W::Answer, ElicitError> {
        let elicit = self.elicit.clone();
        let question = self.message.clone();
        let act = match self.decide().await? {
            AskDecision::Answer(answer) => return Ok(answer),
            AskDecision::Not(act) => act,
        };
        Err(elicit.refused(act, &question))
    }

    async fn decide(self) -> Result<AskDecision<W::Answer>, ElicitError> {
        let call = self.elicit.call();
        let settings = &call.shared.settings;
        let what = self.what;
        let question = OutgoingQuestion {
            subject: what.asking()?.0,
            message: self.message,
            key: self.key,
            timeout: self.timeout.unwrap_or(settings.timeout),
        };
        let attempts = self.attempts.unwrap_or(settings.attempts);
        let check = self.check;
        let own_check = check.is_some();
        let read = move |accepted: AcceptedContent| {
            let unchecked = !accepted.passed;
            match (what.read(accepted), &check) {
                (ReadResult::Answer(answer), Some(check)) if unchecked => match check(&answer) {
                    Ok(()) => ReadResult::Answer(answer),
                    Err(reasons) => ReadResult::Refused(reasons),
                },
                (reading, _) => reading,
            }
        };
        let settled = ask_loop::exchange(call, question, attempts, own_check, read).await;
        match (settled, self.instead) {
            (Err(ElicitError::CannotAsk(_)), Some(instead)) => Ok(AskDecision::Answer(instead())),
            (settled, _) => settled,
        }
    }
}

impl<W: Askable> IntoFuture for Ask<W> {
    type Output = Result<W::Answer, ElicitError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.answer())
    }
}
