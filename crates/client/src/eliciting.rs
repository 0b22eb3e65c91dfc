//! The client handler that rmcp calls when a server asks, in either era.

use std::sync::Arc;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::view;
use mcp_elicit_core::wire::{Capability, Revision, method};
use rmcp::model::{
    ClientConfig, ClientResult, CustomResult, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, Implementation, ServerNotification, ServerRequest,
    TASKS_EXTENSION_ID,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, Service};
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::connection_state::ConnectionState;
use crate::consent::Consent;
use crate::dispatch::{
    CALL_OVER, ClientSettings, Dispatcher, Incoming, QuestionError, QuestionQueue,
};
use crate::{exact_content, raw_params};

/// A client handler whose server's questions are answered by a responder.
///
/// It declares exactly the modes that the responder can show and the policy allows, and nothing without a responder.
/// Everything else is passed to the wrapped handler. Clones share one server's state: give each server its own handler.
///
/// ```
/// use mcp_elicit_client::responder::Script;
/// use mcp_elicit_client::{ClientSettings, ElicitingClient};
///
/// // `()` stands for your own `rmcp::ClientHandler`.
/// let settings = ClientSettings::default().responder(Script::decline());
/// let eliciting = ElicitingClient::new((), "calendar", settings);
/// assert_eq!(eliciting.inner(), &());
/// assert!(eliciting.queue().pending().is_empty());
/// ```
pub struct ElicitingClient<H> {
    inner: Arc<H>,
    dispatcher: Arc<Dispatcher>,
    line: ConnectionState,
    connected: Option<Arc<str>>,
    /// `true` if the server is known only by its command or address.
    unnamed: bool,
    follows_tasks: bool,
}

impl<H> Clone for ElicitingClient<H> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            dispatcher: Arc::clone(&self.dispatcher),
            line: self.line.clone(),
            connected: self.connected.clone(),
            unnamed: self.unnamed,
            follows_tasks: self.follows_tasks,
        }
    }
}

impl<H> std::fmt::Debug for ElicitingClient<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ElicitingClient")
            .field("server", &self.dispatcher.server())
            .finish_non_exhaustive()
    }
}

impl<H> ElicitingClient<H> {
    /// Creates a handler that answers the questions of the server that the client calls `server`.
    pub fn new(inner: H, server: impl Into<String>, settings: ClientSettings) -> Self {
        Self {
            inner: Arc::new(inner),
            dispatcher: Arc::new(Dispatcher::new(server.into(), settings)),
            line: ConnectionState::default(),
            connected: None,
            unnamed: false,
            follows_tasks: false,
        }
    }

    /// Sets the description of the connection, written for the person: `over stdio: npx some-server`.
    ///
    /// ```
    /// use mcp_elicit_client::{ClientSettings, ElicitingClient};
    ///
    /// let eliciting = ElicitingClient::new((), "calendar", ClientSettings::default())
    ///     .connected("over stdio: npx calendar-server");
    /// ```
    #[must_use]
    pub fn connected(mut self, how: impl Into<Arc<str>>) -> Self {
        self.connected = Some(how.into());
        self
    }

    /// Marks the server as known only by the command or address passed to [`new`](Self::new). The person is then shown
    /// the name that the server reports, with the command beside it.
    ///
    /// ```
    /// use mcp_elicit_client::{ClientSettings, ElicitingClient};
    ///
    /// let eliciting = ElicitingClient::new((), "npx calendar-server", ClientSettings::default()).unnamed();
    /// ```
    #[must_use]
    pub fn unnamed(mut self) -> Self {
        self.unnamed = true;
        self
    }

    /// Declares the tasks extension, for calls made with [`Connection`](crate::Connection), which follow a task to its
    /// result and answer its questions.
    ///
    /// ```
    /// use mcp_elicit_client::{ClientSettings, ElicitingClient};
    ///
    /// let eliciting = ElicitingClient::new((), "calendar", ClientSettings::default()).following_tasks();
    /// ```
    #[must_use]
    pub fn following_tasks(mut self) -> Self {
        self.follows_tasks = true;
        self
    }

    /// Returns the wrapped handler.
    pub fn inner(&self) -> &H {
        &self.inner
    }

    /// Returns the queue for this server's questions.
    pub fn queue(&self) -> &QuestionQueue {
        self.dispatcher.queue()
    }

    /// Permanently declines this server's questions. Returns the updated policy, for the code that stores it.
    ///
    /// ```
    /// use mcp_elicit_client::{ClientSettings, ElicitingClient};
    ///
    /// let eliciting = ElicitingClient::new((), "calendar", ClientSettings::default());
    /// let to_be_kept = eliciting.decline_always().to_toml()?;
    /// assert!(to_be_kept.contains("calendar"));
    /// # Ok::<(), mcp_elicit_client::consent::ConsentError>(())
    /// ```
    pub fn decline_always(&self) -> Consent {
        self.dispatcher.decline_always()
    }

    pub(crate) fn dispatcher(&self) -> &Dispatcher {
        &self.dispatcher
    }

    pub(crate) fn line(&self) -> &ConnectionState {
        &self.line
    }

    pub(crate) fn will_speak(&self, revision: Option<Revision>, ended: CancellationToken) {
        self.line.will_speak(revision, ended);
    }

    pub(crate) fn speaks(&self, agreed: &str, server: Option<Implementation>) {
        self.line.speaks(agreed, server);
    }

    /// Answers one question, in either era, from `params` as the server wrote them.
    pub(crate) async fn ask(
        &self,
        params: &RawValue,
        call: Option<view::CallView>,
        mut ends: Vec<(CancellationToken, &'static str)>,
    ) -> Result<Answer, QuestionError> {
        ends.push((self.line.ended(), "the connection to the server ended"));
        let _open = self.line.question_opens();
        let incoming = Incoming {
            params,
            revision: self.line.revision(),
            origin: self.line.origin(
                self.dispatcher.server(),
                self.unnamed,
                self.connected.as_deref(),
            ),
            call,
            ends,
            line: &self.line,
        };
        self.dispatcher.ask(incoming).await
    }

    /// Answers a question that rmcp passed on: pushed, or from a round that rmcp itself drives.
    async fn handed_over(
        &self,
        params: &RawValue,
        context: &RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let mut ends = vec![(context.ct.clone(), "the server withdrew it")];
        let stream = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
            Some(InboundStreamOrigin::Unassociated) | None => None,
        };
        let interruption = self.line.interruption(stream);
        let call = self.line.call_of(stream).map(|(call, over)| {
            ends.push((over, CALL_OVER));
            call
        });
        match self.ask(params, call, ends).await {
            Ok(answer) => Ok(result_of(answer)),
            Err(refusal) => {
                let error = refusal.to_error(self.line.revision());
                if let Some(interruption) = interruption {
                    let ends = match &refusal {
                        QuestionError::TooMuch(_) => interruption.is_over_the_limit_too_often(),
                        other => other.ends_the_call(),
                    };
                    if ends {
                        interruption.interrupt(refusal);
                    }
                }
                Err(error)
            }
        }
    }
}

/// Returns the answer in rmcp's type.
pub(crate) fn result_of(answer: Answer) -> ElicitResult {
    match answer.into_outcome() {
        Outcome::Accept(answers) => {
            let mut result = ElicitResult::new(ElicitationAction::Accept);
            exact_content::keep(&mut result, &answers);
            result.with_content(answers.into_value())
        }
        Outcome::Visit => ElicitResult::new(ElicitationAction::Accept),
        Outcome::Decline => ElicitResult::new(ElicitationAction::Decline),
        Outcome::Cancel => ElicitResult::new(ElicitationAction::Cancel),
    }
}

/// Returns the parameters that [`raw_params`] preserved or, over a foreign transport, those that rmcp understood.
fn params_of(
    meta: &serde_json::Map<String, Value>,
    understood: &impl serde::Serialize,
) -> Result<Box<RawValue>, ErrorData> {
    let unreadable = |_| ErrorData::invalid_params("the question cannot be read", None);
    match raw_params::extract(meta) {
        Some(kept) => RawValue::from_string(kept.params).map_err(unreadable),
        None => to_raw_value(understood).map_err(unreadable),
    }
}

impl<H: ClientHandler> Service<RoleClient> for ElicitingClient<H> {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        self.line.saw_activity();
        match request {
            ServerRequest::ElicitRequest(request) => {
                let params = params_of(&context.meta, &request.params)?;
                self.handed_over(&params, &context)
                    .await
                    .map(ClientResult::ElicitResult)
            }
            // A question that rmcp's types cannot read, over a foreign transport.
            ServerRequest::CustomRequest(request) if request.method == method::CREATE => {
                let params = params_of(&context.meta, &request.params)?;
                let result = self.handed_over(&params, &context).await?;
                let written = serde_json::to_value(result)
                    .map_err(|_| ErrorData::internal_error("the answer cannot be written", None))?;
                Ok(ClientResult::CustomResult(CustomResult::new(written)))
            }
            other => Service::handle_request(&*self.inner, other, context).await,
        }
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        context: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        self.line.saw_activity();
        if let ServerNotification::CustomNotification(custom) = &notification
            && custom.method == method::COMPLETE
        {
            let id = custom
                .params
                .as_ref()
                .and_then(|params| params.get("elicitationId"))
                .and_then(Value::as_str);
            if !id.is_some_and(|id| self.line.visit_done(id)) {
                tracing::debug!("the server announced the end of an unknown visit");
            }
        }
        Service::handle_notification(&*self.inner, notification, context).await
    }

    fn get_info(&self) -> ClientConfig {
        let mut info = ClientHandler::get_info(&*self.inner);
        info.capabilities.elicitation = declared(self.dispatcher.modes(), self.line.revision());
        if let Some(pinned) = self.line.pinned() {
            let version = serde_json::from_value(pinned.as_str().into());
            info.protocol_version = version.unwrap_or(info.protocol_version);
        }
        if self.follows_tasks {
            let extensions = info.capabilities.extensions.get_or_insert_default();
            extensions.entry(TASKS_EXTENSION_ID.to_owned()).or_default();
        }
        info
    }
}

/// Returns the capability as the revision spells it, in rmcp's type.
fn declared(modes: Capability, revision: Revision) -> Option<ElicitationCapability> {
    serde_json::from_value(modes.to_value(revision)?).ok()
}
