//! The handle that a handler asks with.

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

use crate::ask::{
    Ask, Askable, ChoiceItem, Choose, ChooseAmong, ChooseMany, Confirm, TypedForm, Visit,
};
use crate::ask_loop;
use crate::backend::pushed::elicitation_id;
use crate::backend::task::InTask;
use crate::backend::{Backend, StepTurn};
use crate::error::{ElicitError, Refusal, RefusalKind};
use crate::guard;
use crate::question::{OutgoingBody, OutgoingQuestion};
use crate::running_step::{self, CallIdentity, RunningStep};
use crate::settings::SharedSettings;

/// Asks the person behind a call, on every revision.
///
/// Take it as an argument of a `#[tool]` or `#[prompt]` handler, or build it with [`Elicit::from_context`] from any
/// [`RequestContext`]. The server has to be wrapped with [`eliciting`](crate::ElicitingExt::eliciting).
///
/// On 2026-07-28 the handler runs again from the top for each round of answers; every effect that must happen once
/// belongs in a [`step`](Self::step).
///
/// ```
/// use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
/// use mcp_elicit_server::{Elicit, ElicitError};
///
/// async fn delete(elicit: Elicit, branch: &str) -> Result<String, ElicitError> {
///     elicit.confirm(format!("Delete {branch}?")).await?;
///     let left: u32 = elicit.step("delete", || async { 3 }).await?;
///     Ok(format!("{left} branches are left"))
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ElicitError> {
/// let user = ScriptedUser::answering([ScriptedAnswer::yes()]);
/// assert_eq!(delete(user.elicit(), "old").await?, "3 branches are left");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Elicit {
    call: Arc<CallParts>,
}

/// The parts of a call that its asks need.
#[derive(Debug)]
pub(crate) struct CallParts {
    pub(crate) shared: Arc<SharedSettings>,
    pub(crate) backend: Backend,
    pub(crate) method: &'static str,
    pub(crate) name: String,
    pub(crate) principal: Option<String>,
    pub(crate) capability: Capability,
    /// Shared by every `Elicit` of one call, also inside its task.
    identity: Arc<CallIdentity>,
    questions: AtomicU32,
}

impl CallParts {
    pub(crate) fn new(
        shared: Arc<SharedSettings>,
        backend: Backend,
        method: &'static str,
        name: String,
        principal: Option<String>,
        capability: Capability,
    ) -> Self {
        Self {
            shared,
            backend,
            method,
            name,
            principal,
            capability,
            identity: Arc::default(),
            questions: AtomicU32::new(0),
        }
    }

    /// Fails inside a step of this call.
    pub(crate) fn not_inside_a_step(&self) -> Result<(), ElicitError> {
        running_step::may_ask(&self.identity)
    }

    /// Counts a question against the limit of this call.
    pub(crate) fn count(&self) -> Result<(), ElicitError> {
        let limit = self.shared.settings.questions_per_call;
        if self.questions.fetch_add(1, Ordering::Relaxed) < limit {
            return Ok(());
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Err(ElicitError::Limit(LimitFault::TooManyQuestions { limit }))
    }
}

impl Elicit {
    pub(crate) fn new(call: CallParts) -> Self {
        Self {
            call: Arc::new(call),
        }
    }

    pub(crate) fn by(shared: Arc<SharedSettings>, backend: Backend) -> Self {
        Self::new(CallParts::new(
            shared,
            backend,
            "tools/call",
            "test".into(),
            None,
            Capability::BOTH,
        ))
    }

    pub(crate) fn call(&self) -> &CallParts {
        &self.call
    }

    /// Returns the `Elicit` of the call behind `context`.
    ///
    /// Fails with an internal error if the server is not wrapped, or if the request is not `tools/call`, `prompts/get`
    /// or `resources/read`.
    ///
    /// ```
    /// use mcp_elicit_server::Elicit;
    /// use rmcp::model::{ReadResourceRequestParams, ReadResourceResult, ResourceContents};
    /// use rmcp::service::{RequestContext, RoleServer};
    /// use rmcp::ErrorData;
    ///
    /// async fn read(
    ///     request: ReadResourceRequestParams,
    ///     context: RequestContext<RoleServer>,
    /// ) -> Result<ReadResourceResult, ErrorData> {
    ///     let elicit = Elicit::from_context(&context)?;
    ///     elicit.confirm(format!("Show {} to the model?", request.uri)).await?;
    ///     Ok(ReadResourceResult::new(vec![ResourceContents::text("the text", request.uri)]))
    /// }
    /// ```
    pub fn from_context(context: &RequestContext<RoleServer>) -> Result<Self, ErrorData> {
        context.extensions.get::<Self>().cloned().ok_or_else(|| {
            ErrorData::internal_error(
                "this server cannot ask: it is not wrapped with `.eliciting(settings)`",
                None,
            )
        })
    }

    /// Asks for a form made from the fields of `T`, and returns its answers as a `T`.
    ///
    /// The fields are those of `T`'s JSON schema: text, numbers, booleans, dates, unit enums, and lists of unit enums,
    /// each also as an `Option`. Doc comments become descriptions.
    ///
    /// ```
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// #[derive(schemars::JsonSchema, serde::Deserialize)]
    /// struct Person {
    ///     /// Your name, as it should appear on the badge
    ///     name: String,
    ///     age: Option<u8>,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), mcp_elicit_server::ElicitError> {
    /// # let elicit = ScriptedUser::answering([ScriptedAnswer::accept(serde_json::json!({ "name": "Ada" }))]).elicit();
    /// let person = elicit.form::<Person>("Who comes?").await?;
    /// assert_eq!((person.name.as_str(), person.age), ("Ada", None));
    /// # Ok(()) }
    /// ```
    pub fn form<T>(&self, message: impl Into<String>) -> Ask<TypedForm<T>>
    where
        T: schemars::JsonSchema + DeserializeOwned + Send + 'static,
    {
        Ask::new(self, message, TypedForm::new())
    }

    /// Asks for something known only at run time: a [`Form`](mcp_elicit_core::form::Form), or a
    /// [`Link`](mcp_elicit_core::link::Link) to visit. Its type decides the mode.
    ///
    /// ```
    /// use mcp_elicit_server::core::form::{FieldBuilder, Form};
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let form = Form::builder().field("age", FieldBuilder::integer().minimum(18).required()).build()?;
    /// # let elicit = ScriptedUser::answering([ScriptedAnswer::accept(serde_json::json!({ "age": 36 }))]).elicit();
    /// let answers = elicit.ask("How old are you?", form).await?;
    /// assert_eq!(answers.get("age"), Some(&36.into()));
    /// # Ok(()) }
    /// ```
    pub fn ask<W: Askable>(&self, message: impl Into<String>, what: W) -> Ask<W> {
        Ask::new(self, message, what)
    }

    /// Asks for a confirmation. Anything but a yes, an accepted "no" included, is a refusal.
    ///
    /// ```
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), mcp_elicit_server::ElicitError> {
    /// # let elicit = ScriptedUser::answering([ScriptedAnswer::yes()]).elicit();
    /// elicit.confirm("Delete the branch?").await?;
    /// // Only a yes comes here.
    /// # Ok(()) }
    /// ```
    pub fn confirm(&self, message: impl Into<String>) -> Ask<Confirm> {
        Ask::new(self, message, Confirm::default())
    }

    /// Asks for one of `options`, given as values or as `(value, title)` pairs, and returns its value.
    ///
    /// ```
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), mcp_elicit_server::ElicitError> {
    /// # let elicit = ScriptedUser::answering([ScriptedAnswer::pick("eu")]).elicit();
    /// let region = elicit.choose("Which region?", [("eu", "Europe"), ("us", "United States")]).await?;
    /// assert_eq!(region, "eu");
    /// # Ok(()) }
    /// ```
    pub fn choose<P: Into<ChoiceItem>>(
        &self,
        message: impl Into<String>,
        options: impl IntoIterator<Item = P>,
    ) -> Ask<Choose> {
        Ask::new(self, message, Choose::among(options))
    }

    /// Asks for one of `items`, each shown as the option that `option` returns for it, and returns the item. The values
    /// of the options must differ.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// #[derive(Clone)]
    /// struct Flight {
    ///     number: String,
    ///     price: u32,
    /// }
    ///
    /// async fn book(elicit: Elicit, found: Vec<Flight>) -> Result<u32, ElicitError> {
    ///     let flight = elicit
    ///         .choose_among("Which flight?", found, |flight| {
    ///             (flight.number.clone(), format!("{} for {} EUR", flight.number, flight.price))
    ///         })
    ///         .await?;
    ///     Ok(flight.price)
    /// }
    /// # let found = vec![Flight { number: "A1".into(), price: 90 }, Flight { number: "B2".into(), price: 70 }];
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// # let user = ScriptedUser::answering([ScriptedAnswer::pick("B2")]);
    /// # assert_eq!(runtime.block_on(book(user.elicit(), found)).unwrap(), 70);
    /// ```
    pub fn choose_among<T: Clone + Send + 'static, P: Into<ChoiceItem>>(
        &self,
        message: impl Into<String>,
        items: impl IntoIterator<Item = T>,
        option: impl Fn(&T) -> P,
    ) -> Ask<ChooseAmong<T>> {
        Ask::new(self, message, ChooseAmong::new(items, option))
    }

    /// Asks for any number of `options`, and returns their values in the order of the answer.
    ///
    /// 2025-06-18 has no lists: there, each option is shown as a separate checkbox, and the values come in the order of
    /// `options`. The same applies to lists in the forms of [`form`](Self::form) and [`ask`](Self::ask).
    ///
    /// ```
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), mcp_elicit_server::ElicitError> {
    /// # let elicit = ScriptedUser::answering([ScriptedAnswer::picks(["Monday", "Friday"])]).elicit();
    /// let days = elicit.choose_many("On which days?", ["Monday", "Tuesday", "Friday"]).at_least(1).await?;
    /// assert_eq!(days, ["Monday", "Friday"]);
    /// # Ok(()) }
    /// ```
    pub fn choose_many<P: Into<ChoiceItem>>(
        &self,
        message: impl Into<String>,
        options: impl IntoIterator<Item = P>,
    ) -> Ask<ChooseMany> {
        Ask::new(self, message, ChooseMany::among(options))
    }

    /// Asks the person to visit a URL. Success means that the person agreed to open it, not that they are done there.
    ///
    /// The URL must be the same in each run of the handler: a URL generated in each run belongs in a
    /// [`step`](Self::step).
    ///
    /// ```
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), mcp_elicit_server::ElicitError> {
    /// # let elicit = ScriptedUser::answering([ScriptedAnswer::Visit]).elicit();
    /// elicit.visit("Please read the terms", "https://example.com/terms").await?;
    /// # Ok(()) }
    /// ```
    pub fn visit(&self, message: impl Into<String>, url: impl Into<String>) -> Ask<Visit> {
        Ask::new(self, message, Visit::new(url))
    }

    /// Returns only if the person has visited `url`. For tools that have found that the person has not yet.
    ///
    /// On 2025-11-25 this ends the call with the error -32042, which asks the client to have the URL visited and to
    /// call again; on 2026-07-28 it is a [`visit`](Self::visit).
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// async fn pay(elicit: Elicit, is_paid: bool) -> Result<&'static str, ElicitError> {
    ///     if !is_paid {
    ///         elicit.require_url("Pay on our page first", "https://shop.example.com/orders/7").await?;
    ///     }
    ///     Ok("paid")
    /// }
    /// ```
    pub async fn require_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<(), ElicitError> {
        let (message, url) = (message.into(), url.into());
        if !self.call.backend.turns_away() {
            return self.visit(message, url).await;
        }
        Err(self.url_required(&message, &url, elicitation_id(None)?)?)
    }

    /// Returns the error that ends a call of 2025-11-25 until `url` has been visited. Fails if the visit must not or
    /// cannot be asked for.
    pub(crate) fn url_required(
        &self,
        message: &str,
        url: &str,
        id: String,
    ) -> Result<ElicitError, ElicitError> {
        let question = OutgoingQuestion {
            message: message.to_owned(),
            subject: OutgoingBody::Url {
                url: url.to_owned(),
                id: None,
            },
            key: None,
            timeout: self.call.shared.settings.timeout,
        };
        self.call.not_inside_a_step()?;
        self.call.backend.can_put(&question)?;
        guard::may_ask(&question)?;
        self.call.count()?;
        ask_loop::count(&self.call, &question)?;
        let elicitations = vec![ElicitRequest::Url {
            message: message.to_owned(),
            url: url.to_owned(),
            elicitation_id: Some(id),
        }];
        Ok(ElicitError::UrlRequired(UrlRequired {
            message: message.to_owned(),
            elicitations,
        }))
    }

    /// Runs `work` once in the life of the call, however often the handler runs, and returns its result each time.
    ///
    /// `name` identifies the step; the second use of a name is the second step of that name. The run is not ended while
    /// a step runs, and the caller gets progress as while a person thinks. The result travels in the sealed state, so
    /// it should be small. It is stored when the round ends: if the process dies between the work and the end of the
    /// round, a retry of the client does the work again. Work that must not happen twice even then needs an idempotency
    /// key at the service that does it.
    ///
    /// A question inside `work` is the author's error ([`ElicitError::Author`]): ask before the step.
    ///
    /// ```
    /// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), mcp_elicit_server::ElicitError> {
    /// # let elicit = ScriptedUser::answering([ScriptedAnswer::yes()]).elicit();
    /// let draft: String = elicit.step("draft", || async { "draft 7".to_owned() }).await?;
    /// // On 2026-07-28 the handler runs again for the answer, and the draft is the same.
    /// elicit.confirm(format!("Publish {draft}?")).await?;
    /// # Ok(()) }
    /// ```
    pub async fn step<T, Fut>(
        &self,
        name: &str,
        work: impl FnOnce() -> Fut,
    ) -> Result<T, ElicitError>
    where
        T: Serialize + DeserializeOwned,
        Fut: Future<Output = T>,
    {
        self.try_step(name, || async { Ok(work().await) }).await
    }

    /// Like [`step`](Self::step), for work that can fail. A failure is not stored.
    ///
    /// ```
    /// # use mcp_elicit_server::testing::ScriptedUser;
    /// use mcp_elicit_server::{Elicit, ElicitError};
    ///
    /// #[derive(Debug)]
    /// enum BookingError {
    ///     Ask(ElicitError),
    ///     SoldOut,
    /// }
    ///
    /// impl From<ElicitError> for BookingError {
    ///     fn from(error: ElicitError) -> Self {
    ///         Self::Ask(error)
    ///     }
    /// }
    ///
    /// async fn book(elicit: Elicit) -> Result<u32, BookingError> {
    ///     elicit.try_step("book", || async { Err(BookingError::SoldOut) }).await
    /// }
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// # let booked = runtime.block_on(book(ScriptedUser::unavailable().elicit()));
    /// # assert!(matches!(booked, Err(BookingError::SoldOut)));
    /// ```
    pub async fn try_step<T, E, Fut>(&self, name: &str, work: impl FnOnce() -> Fut) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<ElicitError>,
        Fut: Future<Output = Result<T, E>>,
    {
        let memory = match self.call.backend.begin_step(name) {
            StepTurn::Remembered(value) => {
                return serde_json::from_str(value.get()).map_err(|_| {
                    ElicitError::Author(format!("the result of step {name:?} cannot be read back"))
                        .into()
                });
            }
            StepTurn::Run(memory) => memory,
        };
        let step = RunningStep::new(&self.call.identity, name);
        let value = match self.call.backend.call_wait() {
            Some(call_wait) => call_wait.during(step.run(work)).await,
            None => step.run(work).await,
        };
        step.question_inside()?;
        let value = value?;
        if memory.is_stored() {
            let kept = serde_json::value::to_raw_value(&value).map_err(|_| {
                ElicitError::Author(format!(
                    "the result of step {name:?} cannot be written down"
                ))
            })?;
            memory.remember(kept);
        }
        Ok(value)
    }

    /// Returns the principal that is asked, from [`ServerSettings::principal`](crate::ServerSettings::principal).
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn greet(elicit: Elicit) -> Result<String, ElicitError> {
    /// let name = elicit.principal().unwrap_or("whoever you are").to_owned();
    /// elicit.confirm(format!("Hello, {name}. Go on?")).await?;
    /// # Ok(name) }
    /// ```
    pub fn principal(&self) -> Option<&str> {
        self.call.principal.as_deref()
    }

    /// Returns `true` if a URL that must be visited first ends the call.
    #[cfg(feature = "connect")]
    pub(crate) fn turns_away(&self) -> bool {
        self.call.backend.turns_away()
    }

    /// Returns the refusal of `question`, in the author's words.
    pub(crate) fn refused(&self, act: RefusalKind, question: &str) -> ElicitError {
        let mut refusal = Refusal::new(act, question);
        if let Some(text) = &self.call.shared.settings.refusal_text {
            refusal.reply = text(&refusal);
        }
        ElicitError::Refused(refusal)
    }

    /// Waits for a person's action outside of MCP.
    #[cfg(feature = "connect")]
    pub(crate) async fn wait_outside<T>(
        &self,
        done: impl Future<Output = T> + Send,
        at_most: std::time::Duration,
    ) -> Result<T, ElicitError> {
        if let Some(call_wait) = self.call.backend.call_wait() {
            return call_wait.wait(done, at_most).await;
        }
        // A task has its own cancellation, which also ends this wait.
        let waited = tokio::time::timeout(at_most, done).await;
        waited.map_err(|_| ElicitError::TimedOut { after: at_most })
    }

    /// Tells a client of 2025-11-25 that the visit it was asked for is done. On other revisions it does nothing.
    #[cfg(feature = "connect")]
    pub(crate) async fn tell_complete(&self, id: &str) {
        if let Backend::Pushed(pushed) = &self.call.backend {
            pushed.tell_complete(id).await;
        }
    }

    /// Returns `true` if the client can be asked to fill in a form.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn region(elicit: Elicit) -> Result<String, ElicitError> {
    /// if !elicit.can_fill_in() {
    ///     return Ok("eu".to_owned());
    /// }
    /// elicit.choose("Which region?", ["eu", "us"]).await
    /// # }
    /// ```
    pub fn can_fill_in(&self) -> bool {
        self.call.capability.has(Mode::Form)
    }

    /// Returns `true` if the client can be asked to visit a URL.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn pay(elicit: Elicit, page: &str) -> Result<String, ElicitError> {
    /// if !elicit.can_visit() {
    ///     return Ok(format!("Tell the user to open {page}"));
    /// }
    /// elicit.visit("Pay on our page", page).await?;
    /// # Ok(String::new()) }
    /// ```
    pub fn can_visit(&self) -> bool {
        self.call.capability.has(Mode::Url)
    }

    /// Returns `true` if a form can show a list of choices as one field. On 2025-06-18 each option is shown as a
    /// checkbox.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn days(elicit: Elicit) -> Result<Vec<String>, ElicitError> {
    /// if elicit.can_choose_many() {
    ///     return elicit.choose_many("On which days?", ["Monday", "Tuesday", "Friday"]).await;
    /// }
    /// // A form with three yes or no fields would be shown: one day will do.
    /// Ok(vec![elicit.choose("On which day?", ["Monday", "Tuesday", "Friday"]).await?])
    /// # }
    /// ```
    pub fn can_choose_many(&self) -> bool {
        self.call.backend.revision().has_several_choices()
    }

    /// Returns the same `Elicit` inside a task of `manager`: its questions are shown by `tasks/get` and answered by
    /// `tasks/update`.
    ///
    /// ```
    /// use mcp_elicit_server::{Elicit, ElicitError};
    /// use rmcp::model::{CallToolResult, ContentBlock};
    /// use rmcp::task_manager::{TaskContext, TaskExit, TaskManager};
    ///
    /// async fn delete(elicit: Elicit, tasks: TaskManager, task: TaskContext) -> Result<CallToolResult, TaskExit> {
    ///     match elicit.in_task(&tasks, &task).confirm("Delete the file?").await {
    ///         Ok(()) => Ok(CallToolResult::success(vec![ContentBlock::text("deleted")])),
    ///         Err(error) => error.into_task_result(),
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn in_task(&self, manager: &TaskManager, task: &TaskContext) -> Self {
        let backend = Backend::Task(Arc::new(InTask::new(
            self.call.backend.revision(),
            self.call.capability,
            manager.clone(),
            task.clone(),
        )));
        let call = CallParts::new(
            Arc::clone(&self.call.shared),
            backend,
            self.call.method,
            self.call.name.clone(),
            self.call.principal.clone(),
            self.call.capability,
        );
        Self::new(CallParts {
            identity: Arc::clone(&self.call.identity),
            ..call
        })
    }
}

impl<C: AsRequestContext> FromContextPart<C> for Elicit {
    fn from_context_part(context: &mut C) -> Result<Self, ErrorData> {
        Self::from_context(context.as_request_context())
    }
}
