//! One question for a responder: its view and its protocol data.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use mcp_elicit_core::answer::{Outcome, Violations, check_asked};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::secrecy::{self, Confidence, Suspicion};
use mcp_elicit_core::view;
use mcp_elicit_core::wire::{ElicitRequest, Mode, Revision};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::dispatch::QuestionQueue;

/// A question that waits for an answer.
///
/// [`shown`](Self::shown) is the view for people; the rest is for programs that answer.
///
/// ```
/// use mcp_elicit_client::answer::{Answer, cancel};
/// use mcp_elicit_client::Question;
///
/// /// Answers the one question that this host knows.
/// fn answer(question: &Question) -> Answer {
///     println!("{} asks: {}", question.server(), question.message());
///     match question.form() {
///         Some(form) if form.fields().len() == 1 => {
///             question.accept(serde_json::json!({ "environment": "staging" })).unwrap_or_else(|_| cancel())
///         }
///         _ => cancel(),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Question {
    pub(crate) id: u64,
    pub(crate) shown: view::QuestionView,
    pub(crate) request: ElicitRequest,
    pub(crate) revision: Revision,
    pub(crate) suspicions: Vec<Suspicion>,
    /// The violations of the previous answer.
    pub(crate) violations: Violations,
    pub(crate) withdrawal: WithdrawHandle,
    pub(crate) queue: QuestionQueue,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Returns a number that no other question of this process has.
pub(crate) fn number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Question {
    /// Creates a question that did not come over a connection of this crate, such as one from a gateway's record. It is
    /// shown by a responder, in this person's queue. The second value withdraws it.
    ///
    /// ```
    /// use mcp_elicit_client::core::view::{self, Origin};
    /// use mcp_elicit_client::core::link::Link;
    /// use mcp_elicit_client::core::wire::{ElicitRequest, Mode, Revision};
    /// use mcp_elicit_client::{Question, QuestionQueue};
    ///
    /// let (message, url) = ("Please read the terms".to_owned(), "https://example.com/terms".to_owned());
    /// let shown = view::QuestionView::url(Origin::new("calendar"), message.as_str(), Link::parse(&url)?);
    /// let request = ElicitRequest::Url { message, url, elicitation_id: None };
    /// let (question, withdrawal) = Question::from_record(shown, request, Revision::LATEST, QuestionQueue::new());
    /// assert_eq!((question.mode(), question.url()), (Mode::Url, Some("https://example.com/terms")));
    /// assert_eq!(question.withdrawal(), None);
    /// withdrawal.withdraw("answered elsewhere");
    /// assert_eq!(question.withdrawal(), Some("answered elsewhere"));
    /// # Ok::<(), mcp_elicit_client::core::link::LinkError>(())
    /// ```
    pub fn from_record(
        shown: view::QuestionView,
        request: ElicitRequest,
        revision: Revision,
        queue: QuestionQueue,
    ) -> (Self, WithdrawHandle) {
        let suspicions = match shown.as_form() {
            Some(form) => secrecy::inspect(form, request.message()),
            None => Vec::new(),
        };
        let withdrawal = WithdrawHandle::default();
        let question = Self {
            id: number(),
            shown,
            request,
            revision,
            suspicions,
            violations: Violations::default(),
            withdrawal: withdrawal.clone(),
            queue,
        };
        (question, withdrawal)
    }

    /// Returns a number that no other question of this process has.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn heading(question: &Question) -> String {
    ///     format!("Question {}", question.id())
    /// }
    /// ```
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the name of the server that asks, safe to show: the one given to
    /// [`ElicitingClient::new`](crate::ElicitingClient::new), or for a client that is
    /// [unnamed](crate::ElicitingClient::unnamed) the name that the server claims.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn line(question: &Question) -> String {
    ///     format!("{} asks: {}", question.server(), question.message())
    /// }
    /// ```
    pub fn server(&self) -> String {
        self.shown.origin().name()
    }

    /// Returns the violations of the previous answer, if this question is asked again because that did not fit; empty
    /// when it is asked for the first time.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn hint(question: &Question, field: &str) -> Option<String> {
    ///     let violation = question.violations().for_field(field).next()?;
    ///     Some(violation.message())
    /// }
    /// ```
    pub fn violations(&self) -> &Violations {
        &self.violations
    }

    /// Returns the same question, asked again after an answer with these violations.
    pub(crate) fn again(&self, violations: Violations) -> Self {
        Self {
            violations,
            ..self.clone()
        }
    }

    /// Returns the view for people: origin, call, message, form or link, deadline, number of waiting questions.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn heading(question: &Question) -> String {
    ///     let shown = question.shown();
    ///     match shown.call() {
    ///         Some(call) => format!("{} asks for {}", shown.origin().title(), call.title()),
    ///         None => format!("{} asks", shown.origin().title()),
    ///     }
    /// }
    /// ```
    pub fn shown(&self) -> &view::QuestionView {
        &self.shown
    }

    /// Returns the server's message as received.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn is_long(question: &Question) -> bool {
    ///     question.message().lines().count() > 20
    /// }
    /// ```
    pub fn message(&self) -> &str {
        self.request.message()
    }

    /// Returns the mode: form or url.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// use mcp_elicit_client::core::wire::Mode;
    ///
    /// fn verb(question: &Question) -> &'static str {
    ///     match question.mode() {
    ///         Mode::Form => "fill in",
    ///         Mode::Url => "visit",
    ///     }
    /// }
    /// ```
    pub fn mode(&self) -> Mode {
        self.request.mode()
    }

    /// Returns the form, in form mode.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn names(question: &Question) -> Vec<&str> {
    ///     question.form().map(|form| form.fields().iter().map(|field| field.name()).collect()).unwrap_or_default()
    /// }
    /// ```
    pub fn form(&self) -> Option<&Form> {
        self.shown.as_form()
    }

    /// Returns the link, in url mode.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn host(question: &Question) -> Option<&str> {
    ///     Some(question.link()?.host().ascii())
    /// }
    /// ```
    pub fn link(&self) -> Option<&Link> {
        self.shown.as_link()
    }

    /// Returns `requestedSchema` as the server wrote it, in form mode.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn schema_text(question: &Question) -> Option<&str> {
    ///     question.schema().map(|schema| schema.get())
    /// }
    /// ```
    pub fn schema(&self) -> Option<&RawValue> {
        match &self.request {
            ElicitRequest::Form { schema, .. } => Some(schema),
            ElicitRequest::Url { .. } => None,
        }
    }

    /// Returns the URL as the server wrote it, in url mode.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn address(question: &Question) -> &str {
    ///     question.url().unwrap_or("no URL")
    /// }
    /// ```
    pub fn url(&self) -> Option<&str> {
        match &self.request {
            ElicitRequest::Form { .. } => None,
            ElicitRequest::Url { url, .. } => Some(url),
        }
    }

    /// Returns the id by which the server announces the end of a visit (2025-11-25 only).
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn will_be_told(question: &Question) -> bool {
    ///     question.elicitation_id().is_some()
    /// }
    /// ```
    pub fn elicitation_id(&self) -> Option<&str> {
        match &self.request {
            ElicitRequest::Form { .. } => None,
            ElicitRequest::Url { elicitation_id, .. } => elicitation_id.as_deref(),
        }
    }

    /// Returns the revision that the server speaks.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// use mcp_elicit_client::core::wire::Revision;
    ///
    /// fn is_newest(question: &Question) -> bool {
    ///     question.revision() == Revision::LATEST
    /// }
    /// ```
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the reasons why the form seems to ask for a credential, which form mode must not do (every revision,
    /// security considerations). The person is warned of each; [`asks_for_credential`](Self::asks_for_credential) tells
    /// when a warning is not enough.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn warnings(question: &Question) -> Vec<String> {
    ///     question.suspicions().iter().map(ToString::to_string).collect()
    /// }
    /// ```
    pub fn suspicions(&self) -> &[Suspicion] {
        &self.suspicions
    }

    /// Returns `true` if the form certainly asks for a credential: an acceptance then counts only if the person
    /// [allowed it](Answer::allow_credentials).
    ///
    /// ```
    /// # use mcp_elicit_client::{Answer, Question};
    /// fn confirmed(question: &Question, answer: Answer, person_allows: bool) -> Option<Answer> {
    ///     match question.asks_for_credential() {
    ///         false => Some(answer),
    ///         true => person_allows.then(|| answer.allow_credentials()),
    ///     }
    /// }
    /// ```
    pub fn asks_for_credential(&self) -> bool {
        let certain = |suspicion: &Suspicion| suspicion.level() == Confidence::Certain;
        self.suspicions.iter().any(certain)
    }

    /// Returns the names of the fields that seem to ask for a credential; `message` stands for the message.
    pub(crate) fn suspicious_fields(&self) -> Vec<String> {
        let name = |suspicion: &Suspicion| suspicion.field().unwrap_or("message").to_owned();
        self.suspicions.iter().map(name).collect()
    }

    /// Returns an acceptance with this content, or every violation in it. A value that the form does not ask for is a
    /// violation: it would be lost. In url mode the content is ignored: the person agreed to open the link.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn problems(question: &Question) -> Option<String> {
    ///     let answer = question.accept(serde_json::json!({ "environment": "staging" }));
    ///     answer.err().map(|violations| violations.to_string())
    /// }
    /// ```
    pub fn accept(&self, content: Value) -> Result<Answer, Violations> {
        match self.form() {
            Some(form) => Ok(Outcome::Accept(check_asked(form, content)?).into()),
            None => Ok(Outcome::Visit.into()),
        }
    }

    /// Completes when the question is withdrawn, with the reason written for a person. Needed only by responders that
    /// work in a thread or process of their own; others have their future dropped.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// async fn close_window_when_withdrawn(question: &Question) {
    ///     let why = question.withdrawn().await;
    ///     println!("The question was taken back: {why}");
    /// }
    /// ```
    pub fn withdrawn(&self) -> impl Future<Output = String> + Send + use<> {
        let withdrawal = self.withdrawal.clone();
        async move {
            withdrawal.token.cancelled().await;
            withdrawal.reason().to_owned()
        }
    }

    /// Returns the number of questions that wait for the same person, including this one. It is updated as
    /// questions come and go.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn badge(question: &Question) -> String {
    ///     format!("1 of {}", *question.waiting().borrow())
    /// }
    /// ```
    pub fn waiting(&self) -> watch::Receiver<usize> {
        self.queue.watch()
    }

    /// Returns the questions that wait behind this one for the same person, in order, as a frontend shows them.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn next_server(question: &Question) -> Option<String> {
    ///     Some(question.behind().first()?.server().to_owned())
    /// }
    /// ```
    pub fn behind(&self) -> Vec<view::PendingView> {
        self.queue.behind(self.id)
    }

    /// Returns the reason for the question's withdrawal, if it was withdrawn.
    ///
    /// ```
    /// # use mcp_elicit_client::Question;
    /// fn is_open(question: &Question) -> bool {
    ///     question.withdrawal().is_none()
    /// }
    /// ```
    pub fn withdrawal(&self) -> Option<&str> {
        self.withdrawal
            .token
            .is_cancelled()
            .then(|| self.withdrawal.reason())
    }
}

/// Shows the server's message and form; a question contains nothing that a person entered.
impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("id", &self.id)
            .field("origin", self.shown.origin())
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// A handle that withdraws a question.
///
/// ```
/// use mcp_elicit_client::question::WithdrawHandle;
///
/// let withdrawal = WithdrawHandle::default();
/// withdrawal.withdraw("answered elsewhere");
/// ```
#[derive(Debug, Clone, Default)]
pub struct WithdrawHandle {
    token: CancellationToken,
    reason: Arc<OnceLock<String>>,
}

impl WithdrawHandle {
    /// Withdraws the question. The first reason is kept.
    ///
    /// ```
    /// use mcp_elicit_client::question::WithdrawHandle;
    ///
    /// fn answered_elsewhere(withdrawal: &WithdrawHandle) {
    ///     withdrawal.withdraw("answered elsewhere");
    /// }
    /// ```
    pub fn withdraw(&self, reason: impl Into<String>) {
        let _first = self.reason.set(reason.into());
        self.token.cancel();
    }

    fn reason(&self) -> &str {
        self.reason
            .get()
            .map_or("it is no longer needed", String::as_str)
    }
}
