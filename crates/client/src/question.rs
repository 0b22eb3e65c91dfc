//! One question on its way to a responder: what a face shows, with what the protocol needs to know beside it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use mcp_elicit_core::answer::{Outcome, Violations};
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
/// What a person sees is in [`shown`](Self::shown); the rest is for programs that answer.
#[derive(Clone)]
pub struct Question {
    pub(crate) id: u64,
    pub(crate) shown: view::QuestionView,
    pub(crate) request: ElicitRequest,
    pub(crate) revision: Revision,
    pub(crate) suspicions: Vec<Suspicion>,
    pub(crate) withdrawal: Withdrawal,
    pub(crate) person: QuestionQueue,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A number that no other question of this process has.
pub(crate) fn number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Question {
    /// A question that did not come over a connection of this crate's: a gateway puts what its record keeps so before a
    /// responder, in this person's queue. The second value takes it back.
    pub fn from_record(
        shown: view::QuestionView,
        request: ElicitRequest,
        revision: Revision,
        person: QuestionQueue,
    ) -> (Self, Withdrawal) {
        let suspicions = match shown.as_form() {
            Some(form) => secrecy::inspect(form, request.message()),
            None => Vec::new(),
        };
        let withdrawal = Withdrawal::default();
        let question = Self {
            id: number(),
            shown,
            request,
            revision,
            suspicions,
            withdrawal: withdrawal.clone(),
            person,
        };
        (question, withdrawal)
    }

    /// A number that no other question of this process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The question as a person sees it: origin, call, message, form or link, deadline, how many wait behind it.
    pub fn shown(&self) -> &view::QuestionView {
        &self.shown
    }

    /// The server's message as it came.
    pub fn message(&self) -> &str {
        self.request.message()
    }

    /// Returns whether it asks for a form or for a visit.
    pub fn mode(&self) -> Mode {
        self.request.mode()
    }

    /// The form, in form mode.
    pub fn form(&self) -> Option<&Form> {
        self.shown.as_form()
    }

    /// The link, in url mode.
    pub fn link(&self) -> Option<&Link> {
        self.shown.as_link()
    }

    /// `requestedSchema` as the server wrote it, in form mode.
    pub fn schema(&self) -> Option<&RawValue> {
        match &self.request {
            ElicitRequest::Form { schema, .. } => Some(schema),
            ElicitRequest::Url { .. } => None,
        }
    }

    /// The URL as the server wrote it, in url mode.
    pub fn url(&self) -> Option<&str> {
        match &self.request {
            ElicitRequest::Form { .. } => None,
            ElicitRequest::Url { url, .. } => Some(url),
        }
    }

    /// The id by which the server will say that a visit is done (2025-11-25 only).
    pub fn elicitation_id(&self) -> Option<&str> {
        match &self.request {
            ElicitRequest::Form { .. } => None,
            ElicitRequest::Url { elicitation_id, .. } => elicitation_id.as_deref(),
        }
    }

    /// The revision the server speaks.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Why the form seems to ask for a credential, which form mode never carries (every revision, security
    /// considerations). The person is warned of each; [`asks_for_credential`](Self::asks_for_credential) says when that is not enough.
    pub fn suspicions(&self) -> &[Suspicion] {
        &self.suspicions
    }

    /// Returns whether the form certainly asks for a credential: an acceptance then counts only when the person
    /// [insisted](Answer::allow_credentials).
    pub fn asks_for_credential(&self) -> bool {
        let certain = |suspicion: &Suspicion| suspicion.level() == Confidence::Certain;
        self.suspicions.iter().any(certain)
    }

    /// The fields that seem to ask for a credential, by name; `message` where the message itself does.
    pub(crate) fn suspicious_fields(&self) -> Vec<String> {
        let name = |suspicion: &Suspicion| suspicion.field().unwrap_or("message").to_owned();
        self.suspicions.iter().map(name).collect()
    }

    /// An acceptance with this content, or everything that is wrong with it. In url mode the content is ignored: the
    /// answer is that the person agreed to open the link.
    pub fn accept(&self, content: Value) -> Result<Answer, Violations> {
        Ok(Answer::from(match self.form() {
            Some(form) => Outcome::Accept(form.check(content)?),
            None => Outcome::Visit,
        }))
    }

    /// Completes when the question is taken back, with the reason in words for a person. A responder whose future is
    /// dropped needs no more than its `Drop`; this is for those that work in a thread or process of their own.
    pub fn withdrawn(&self) -> impl Future<Output = String> + Send + use<> {
        let withdrawal = self.withdrawal.clone();
        async move {
            withdrawal.token.cancelled().await;
            withdrawal.reason().to_owned()
        }
    }

    /// Returns how many questions wait for the same person, this one included; changes as they come and go.
    pub fn waiting(&self) -> watch::Receiver<usize> {
        self.person.watch()
    }

    /// The questions that wait behind this one for the same person, in their order, as a face shows them.
    pub fn behind(&self) -> Vec<view::PendingView> {
        self.person.behind(self.id)
    }

    /// Why the question was taken back, once it was.
    pub fn withdrawal(&self) -> Option<&str> {
        self.withdrawal
            .token
            .is_cancelled()
            .then(|| self.withdrawal.reason())
    }
}

/// The message and form are the server's; nothing a person said is in here.
impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("id", &self.id)
            .field("origin", self.shown.origin())
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// The taking back of a question, with the reason.
#[derive(Debug, Clone, Default)]
pub struct Withdrawal {
    token: CancellationToken,
    reason: Arc<OnceLock<String>>,
}

impl Withdrawal {
    /// Takes the question back. The first reason stays.
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
