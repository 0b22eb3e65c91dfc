//! The handle with which a handler asks.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mcp_elicit_core::fault::LimitFault;
use mcp_elicit_core::wire::{Capability, ElicitRequest, Mode, UrlRequired};
use rmcp::ErrorData;
use rmcp::handler::server::common::{AsRequestContext, FromContextPart};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskContext, TaskManager};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ask::{Ask, Choose, ChooseMany, Confirm, Pick, Typed, Visit, What};
use crate::exchange;
use crate::guard;
use crate::question::{Question, Subject};
use crate::running_step::{self, CallIdentity, RunningStep};
use crate::settings::Shared;
use crate::unanswered::{Refusal, RefusalAct, Unanswered};
use crate::way::pushed::elicitation_id;
use crate::way::task::InTask;
use crate::way::{StepTurn, Way};

/// Asks the person behind a call, on every revision.
///
/// Take it as an argument of a `#[tool]` or `#[prompt]` handler, or with [`Elicit::of`] from any [`RequestContext`]. The
/// server has to be wrapped with [`eliciting`](crate::ElicitingExt::eliciting).
///
/// On 2026-07-28 the handler runs again from the top for each round of answers; everything that must happen once belongs
/// in a [`step`](Self::step).
#[derive(Debug, Clone)]
pub struct Elicit {
    call: Arc<Call>,
}

/// One call, as its asks need to know it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) way: Way,
    pub(crate) method: &'static str,
    pub(crate) name: String,
    pub(crate) principal: Option<String>,
    pub(crate) capability: Capability,
    /// The same for every asker of one call, also inside its task.
    identity: Arc<CallIdentity>,
    questions: AtomicU32,
}

impl Call {
    pub(crate) fn new(
        shared: Arc<Shared>,
        way: Way,
        method: &'static str,
        name: String,
        principal: Option<String>,
        capability: Capability,
    ) -> Self {
        Self {
            shared,
            way,
            method,
            name,
            principal,
            capability,
            identity: Arc::default(),
            questions: AtomicU32::new(0),
        }
    }

    /// Fails inside a step of this call.
    pub(crate) fn not_inside_a_step(&self) -> Result<(), Unanswered> {
        running_step::may_ask(&self.identity)
    }

    /// Counts a question against the limit of this call.
    pub(crate) fn count(&self) -> Result<(), Unanswered> {
        let limit = self.shared.settings.questions_per_call;
        if self.questions.fetch_add(1, Ordering::Relaxed) < limit {
            return Ok(());
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Err(Unanswered::Limit(LimitFault::TooManyQuestions { limit }))
    }
}

impl Elicit {
    pub(crate) fn new(call: Call) -> Self {
        Self {
            call: Arc::new(call),
        }
    }

    pub(crate) fn by(shared: Arc<Shared>, way: Way) -> Self {
        Self::new(Call::new(
            shared,
            way,
            "tools/call",
            "test".into(),
            None,
            Capability::BOTH,
        ))
    }

    pub(crate) fn call(&self) -> &Call {
        &self.call
    }

    /// The asker of the call behind `context`.
    ///
    /// Fails with an internal error if the server is not wrapped, or if the request is none of `tools/call`,
    /// `prompts/get` and `resources/read`.
    pub fn of(context: &RequestContext<RoleServer>) -> Result<Self, ErrorData> {
        context.extensions.get::<Self>().cloned().ok_or_else(|| {
            ErrorData::internal_error(
                "this server cannot ask: it is not wrapped with `.eliciting(settings)`",
                None,
            )
        })
    }

    /// Asks for a form made from the fields of `T`, and gives its answers as a `T`.
    ///
    /// The fields are those of `T`'s JSON schema: text, numbers, booleans, dates, unit enums, and lists of unit enums, each
    /// also as an `Option`. Doc comments become descriptions.
    pub fn form<T>(&self, message: impl Into<String>) -> Ask<Typed<T>>
    where
        T: schemars::JsonSchema + DeserializeOwned + Send + 'static,
    {
        Ask::new(self, message, Typed::new())
    }

    /// Asks for what is only known at run time: a [`Form`](mcp_elicit_core::form::Form), or a [`Link`](mcp_elicit_core::link::Link) to visit. The mode
    /// follows from it.
    pub fn ask<W: What>(&self, message: impl Into<String>, what: W) -> Ask<W> {
        Ask::new(self, message, what)
    }

    /// Asks for a yes. Anything else, an accepted "no" included, is a refusal.
    pub fn confirm(&self, message: impl Into<String>) -> Ask<Confirm> {
        Ask::new(self, message, Confirm::default())
    }

    /// Asks for one of `options`, given as values or as `(value, title)` pairs, and gives its value.
    pub fn choose<P: Into<Pick>>(
        &self,
        message: impl Into<String>,
        options: impl IntoIterator<Item = P>,
    ) -> Ask<Choose> {
        Ask::new(self, message, Choose::among(options))
    }

    /// Asks for any number of `options`, and gives their values in the order of the answer.
    ///
    /// 2025-06-18 has no lists: there, each option is shown as a yes or no of its own, and the values come in the order of
    /// `options`. The same goes for lists in the forms of [`form`](Self::form) and [`ask`](Self::ask).
    pub fn choose_many<P: Into<Pick>>(
        &self,
        message: impl Into<String>,
        options: impl IntoIterator<Item = P>,
    ) -> Ask<ChooseMany> {
        Ask::new(self, message, ChooseMany::among(options))
    }

    /// Asks the person to visit a URL. The answer says that they agreed to open it, not that they are done there.
    ///
    /// The URL must be the same in each run of the handler: one that is drawn anew belongs in a [`step`](Self::step).
    pub fn visit(&self, message: impl Into<String>, url: impl Into<String>) -> Ask<Visit> {
        Ask::new(self, message, Visit::new(url))
    }

    /// Goes on only if the person has visited `url`. For when the tool has found that they have not yet.
    ///
    /// On 2025-11-25 this ends the call with the error -32042, which tells the client to have the URL visited and to call
    /// again; on 2026-07-28 it is a [`visit`](Self::visit).
    pub async fn require_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<(), Unanswered> {
        let (message, url) = (message.into(), url.into());
        if !self.call.way.turns_away() {
            return self.visit(message, url).await;
        }
        Err(self.url_required(&message, &url, elicitation_id(None)?)?)
    }

    /// Returns what ends a call of 2025-11-25 until `url` has been visited; the error is for what must not or cannot be asked.
    pub(crate) fn url_required(
        &self,
        message: &str,
        url: &str,
        id: String,
    ) -> Result<Unanswered, Unanswered> {
        let question = Question {
            message: message.to_owned(),
            subject: Subject::Url {
                url: url.to_owned(),
                id: None,
            },
            key: None,
            timeout: self.call.shared.settings.timeout,
        };
        self.call.not_inside_a_step()?;
        self.call.way.can_put(&question)?;
        guard::may_ask(&question)?;
        self.call.count()?;
        exchange::count(&self.call, &question)?;
        let elicitations = vec![ElicitRequest::Url {
            message: message.to_owned(),
            url: url.to_owned(),
            elicitation_id: Some(id),
        }];
        Ok(Unanswered::UrlRequired(UrlRequired {
            message: message.to_owned(),
            elicitations,
        }))
    }

    /// Runs `work` once in the life of the call, however often the handler runs, and gives its result each time.
    ///
    /// `name` tells steps apart; the same name used again is the next step of that name. The run is not given up while a
    /// step runs, and the caller gets progress as while a person thinks. The result travels in the sealed state, so it
    /// should be small, and it is remembered when the round ends: if the process dies between the work and the end of the
    /// round, a retry of the client does the work again. Work that must not happen twice even then needs a key of its own
    /// at the service that does it.
    ///
    /// A question inside `work` is the author's error ([`Unanswered::Author`]): ask before the step.
    pub async fn step<T, Fut>(
        &self,
        name: &str,
        work: impl FnOnce() -> Fut,
    ) -> Result<T, Unanswered>
    where
        T: Serialize + DeserializeOwned,
        Fut: Future<Output = T>,
    {
        self.try_step(name, || async { Ok(work().await) }).await
    }

    /// Like [`step`](Self::step), for work that can fail. A failure is not remembered.
    pub async fn try_step<T, E, Fut>(&self, name: &str, work: impl FnOnce() -> Fut) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<Unanswered>,
        Fut: Future<Output = Result<T, E>>,
    {
        let memory = match self.call.way.begin_step(name) {
            StepTurn::Remembered(value) => {
                return serde_json::from_str(value.get()).map_err(|_| {
                    Unanswered::Author(format!("the result of step {name:?} cannot be read back"))
                        .into()
                });
            }
            StepTurn::Run(memory) => memory,
        };
        let step = RunningStep::new(&self.call.identity, name);
        let value = match self.call.way.patience() {
            Some(patience) => patience.during(step.run(work)).await,
            None => step.run(work).await,
        };
        step.question_inside()?;
        let value = value?;
        if memory.is_kept() {
            let kept = serde_json::value::to_raw_value(&value).map_err(|_| {
                Unanswered::Author(format!(
                    "the result of step {name:?} cannot be written down"
                ))
            })?;
            memory.remember(kept);
        }
        Ok(value)
    }

    /// Returns who is asked, as [`Settings::principal`](crate::Settings::principal) says.
    pub fn principal(&self) -> Option<&str> {
        self.call.principal.as_deref()
    }

    /// Returns whether a URL that has to be visited first ends the call.
    #[cfg(feature = "connect")]
    pub(crate) fn turns_away(&self) -> bool {
        self.call.way.turns_away()
    }

    /// A refusal of `question`, in the author's words.
    pub(crate) fn refused(&self, act: RefusalAct, question: &str) -> Unanswered {
        let mut refusal = Refusal::new(act, question);
        if let Some(text) = &self.call.shared.settings.refusals {
            refusal.said = text(&refusal);
        }
        Unanswered::Refused(refusal)
    }

    /// Waits for something that a person does outside of MCP.
    #[cfg(feature = "connect")]
    pub(crate) async fn wait_outside<T>(
        &self,
        done: impl Future<Output = T> + Send,
        at_most: std::time::Duration,
    ) -> Result<T, Unanswered> {
        if let Some(patience) = self.call.way.patience() {
            return patience.wait(done, at_most).await;
        }
        // A task has a cancellation of its own, which ends what it waits for.
        let waited = tokio::time::timeout(at_most, done).await;
        waited.map_err(|_| Unanswered::TimedOut { after: at_most })
    }

    /// Tells a client of 2025-11-25 that the visit it was asked for is done. Others find out by going on.
    #[cfg(feature = "connect")]
    pub(crate) async fn tell_complete(&self, id: &str) {
        if let Way::Pushed(pushed) = &self.call.way {
            pushed.tell_complete(id).await;
        }
    }

    /// Returns whether the client can be asked to fill in a form.
    pub fn can_fill_in(&self) -> bool {
        self.call.capability.has(Mode::Form)
    }

    /// Returns whether the client can be asked to visit a URL.
    pub fn can_visit(&self) -> bool {
        self.call.capability.has(Mode::Url)
    }

    /// Returns whether a form can show a list of choices as one field. On 2025-06-18 it is shown as a yes or no for each option.
    pub fn can_choose_many(&self) -> bool {
        self.call.way.revision().has_several_choices()
    }

    /// The same asker inside a task of `manager`: its questions show in `tasks/get` and are answered by `tasks/update`.
    #[must_use]
    pub fn in_task(&self, manager: &TaskManager, task: &TaskContext) -> Self {
        let way = Way::Task(Arc::new(InTask::new(
            self.call.way.revision(),
            self.call.capability,
            manager.clone(),
            task.clone(),
        )));
        let call = Call::new(
            Arc::clone(&self.call.shared),
            way,
            self.call.method,
            self.call.name.clone(),
            self.call.principal.clone(),
            self.call.capability,
        );
        Self::new(Call {
            identity: Arc::clone(&self.call.identity),
            ..call
        })
    }
}

impl<C: AsRequestContext> FromContextPart<C> for Elicit {
    fn from_context_part(context: &mut C) -> Result<Self, ErrorData> {
        Self::of(context.as_request_context())
    }
}
