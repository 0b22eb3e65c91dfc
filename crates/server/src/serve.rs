//! One request through the wrapper: it selects the backend, runs the handler, and returns the questions that it waits
//! for.

use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use mcp_elicit_core::digest::canonical_value;
use mcp_elicit_core::fault::LimitFault;
use mcp_elicit_core::wire::{Capability, Era, Revision};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse,
    InputRequests, InputRequiredResult, InputResponses, ReadResourceRequestParams,
    ReadResourceResponse,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

use crate::backend::Backend;
use crate::backend::call_wait::CallWait;
use crate::backend::cannot_ask::{self, Unavailable};
use crate::backend::pushed::Pushed;
use crate::backend::rounds::{RetryInput, Rounds, RunResult};
use crate::bridge;
use crate::elicit::{CallParts, Elicit};
use crate::error::{CannotAskReason, ElicitError, fault};
use crate::journal::Journal;
use crate::question::QuestionDigest;
use crate::seal::{AssociatedData, SealedState};
use crate::settings::SharedSettings;
use crate::state;

/// The method, name and argument digest of a call, for the seal and the audit.
pub(crate) struct CallTarget {
    method: &'static str,
    name: String,
    request: QuestionDigest,
}

impl CallTarget {
    pub(crate) fn tool(request: &CallToolRequestParams) -> Self {
        let arguments = request.arguments.as_ref();
        Self {
            method: "tools/call",
            name: request.name.to_string(),
            request: digest(&request.name, arguments),
        }
    }

    pub(crate) fn prompt(request: &GetPromptRequestParams) -> Self {
        let arguments = request.arguments.as_ref();
        Self {
            method: "prompts/get",
            name: request.name.clone(),
            request: digest(&request.name, arguments),
        }
    }

    pub(crate) fn resource(request: &ReadResourceRequestParams) -> Self {
        Self {
            method: "resources/read",
            name: request.uri.clone(),
            request: digest(&request.uri, None),
        }
    }
}

/// Returns a digest that does not depend on the order in which a client writes the arguments.
fn digest(name: &str, arguments: Option<&serde_json::Map<String, Value>>) -> QuestionDigest {
    let text = arguments.map_or_else(|| b"{}".to_vec(), canonical_value);
    QuestionDigest::of(&[name.as_bytes(), &text])
}

/// A request that may be retried with replies.
pub(crate) trait Retryable: Clone + Send {
    fn replies(&mut self) -> (&mut Option<InputResponses>, &mut Option<String>);
}

/// A result that may say that input is required.
pub(crate) trait MayRequire: From<InputRequiredResult> + Send {
    fn required(self) -> Result<InputRequiredResult, Self>;
}

macro_rules! request_that_may_ask {
    ($request:ty, $response:ident) => {
        impl Retryable for $request {
            fn replies(&mut self) -> (&mut Option<InputResponses>, &mut Option<String>) {
                (&mut self.input_responses, &mut self.request_state)
            }
        }

        impl MayRequire for $response {
            fn required(self) -> Result<InputRequiredResult, Self> {
                match self {
                    Self::InputRequired(required) => Ok(required),
                    other => Err(other),
                }
            }
        }
    };
}

request_that_may_ask!(CallToolRequestParams, CallToolResponse);
request_that_may_ask!(GetPromptRequestParams, GetPromptResponse);
request_that_may_ask!(ReadResourceRequestParams, ReadResourceResponse);

/// One request being served. Boxed at the size of its own backend: thousands may wait at once.
type Served<'a, R> = Pin<Box<dyn Future<Output = Result<R, ErrorData>> + Send + 'a>>;

/// Serves one request with `run`, the handler of the wrapped server.
pub(crate) fn serve<'a, Q, R, F, Fut>(
    shared: &'a Arc<SharedSettings>,
    asked: CallTarget,
    request: Q,
    context: RequestContext<RoleServer>,
    run: F,
) -> Served<'a, R>
where
    Q: Retryable + 'a,
    R: MayRequire + 'a,
    F: Fn(Q, RequestContext<RoleServer>) -> Fut + Send + 'a,
    Fut: Future<Output = Result<R, ErrorData>> + Send + 'a,
{
    // Wrapped twice: the outer wrapper asks, with its settings, and this one does nothing.
    if context.extensions.get::<Elicit>().is_some() {
        warn_of_second_wrapper();
        return Box::pin(run(request, context));
    }
    let principal = shared
        .settings
        .principal
        .as_ref()
        .and_then(|principal| principal(&context));
    let call = RequestInfo {
        shared,
        asked,
        principal,
    };
    match BackendReach::of(&context, &call) {
        BackendReach::Rounds(revision, capability) => {
            Box::pin(call.by_rounds(revision, capability, request, context, run))
        }
        BackendReach::Pushed(revision, capability) => {
            let pushed = Arc::new(Pushed::new(
                revision,
                capability,
                &context,
                call_wait(shared, &context),
            ));
            Box::pin(call.by_pushing(pushed, capability, request, context, run))
        }
        BackendReach::Unavailable(unavailable) => {
            let context = call.lend(Backend::CannotAsk(unavailable), Capability::NONE, context);
            Box::pin(run(request, context))
        }
    }
}

fn warn_of_second_wrapper() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        tracing::warn!(
            "this server is wrapped with `.eliciting(..)` twice: the settings of the outer wrapper hold, and those of the \
             inner one are not used"
        );
    });
}

/// The backend that reaches the client of a request.
enum BackendReach {
    Rounds(Revision, Capability),
    Pushed(Revision, Capability),
    Unavailable(Unavailable),
}

impl BackendReach {
    fn of(context: &RequestContext<RoleServer>, call: &RequestInfo<'_>) -> Self {
        let unavailable = |why, revision| {
            Self::Unavailable(Unavailable {
                why,
                revision,
                call_wait: Some(call_wait(call.shared, context)),
            })
        };
        let revision = context
            .protocol_version()
            .and_then(|version| Revision::from_str(version.as_str()).ok());
        let Some(revision) = revision else {
            return unavailable(CannotAskReason::TooOld, Revision::V2025_06_18);
        };
        let capability = cannot_ask::capability(context.client_capabilities().as_ref(), revision);
        match revision.era() {
            Era::Rounds => Self::Rounds(revision, capability),
            Era::Pushed if has_no_session(context) => {
                unavailable(CannotAskReason::NoSession, revision)
            }
            Era::Pushed => Self::Pushed(revision, capability),
        }
    }
}

/// Returns `true` if pushed questions cannot reach the client: over HTTP they need a session. Other transports have no
/// parts.
fn has_no_session(context: &RequestContext<RoleServer>) -> bool {
    context
        .extensions
        .get::<http::request::Parts>()
        .is_some_and(|parts| !parts.headers.contains_key("mcp-session-id"))
}

fn call_wait(shared: &SharedSettings, context: &RequestContext<RoleServer>) -> Arc<CallWait> {
    Arc::new(CallWait::new(context, shared.settings.keep_alive))
}

struct RequestInfo<'a> {
    shared: &'a Arc<SharedSettings>,
    asked: CallTarget,
    principal: Option<String>,
}

impl RequestInfo<'_> {
    /// Adds the call's `Elicit` to the request's extensions, where the handler finds it.
    fn lend(
        &self,
        backend: Backend,
        capability: Capability,
        mut context: RequestContext<RoleServer>,
    ) -> RequestContext<RoleServer> {
        let CallTarget { method, name, .. } = &self.asked;
        let shared = Arc::clone(self.shared);
        let call = CallParts::new(
            shared,
            backend,
            method,
            name.clone(),
            self.principal.clone(),
            capability,
        );
        context.extensions.insert(Elicit::new(call));
        context
    }

    async fn by_pushing<Q, R, F, Fut>(
        self,
        pushed: Arc<Pushed>,
        capability: Capability,
        request: Q,
        context: RequestContext<RoleServer>,
        run: F,
    ) -> Result<R, ErrorData>
    where
        Q: Retryable,
        R: MayRequire,
        F: Fn(Q, RequestContext<RoleServer>) -> Fut,
        Fut: Future<Output = Result<R, ErrorData>>,
    {
        // A task that the handler spawned may still ask after the handler has returned.
        let _returns = pushed.call_wait().returns_with_guard();
        let context = self.lend(Backend::Pushed(Arc::clone(&pushed)), capability, context);
        let mut response = run(request.clone(), context.clone()).await?;
        for _ in 0..self.shared.settings.questions_per_call {
            let required = match response.required() {
                Ok(required) => required,
                Err(complete) => return Ok(complete),
            };
            let (replies, state) = bridge::push(&pushed, &context, self.shared, required).await?;
            let mut retry = request.clone();
            let (its_replies, its_state) = retry.replies();
            *its_replies = replies;
            *its_state = state;
            response = run(retry, context.clone()).await?;
        }
        let limit = usize::try_from(self.shared.settings.questions_per_call).unwrap_or(usize::MAX);
        Err(fault(
            LimitFault::TooManyRounds { limit },
            pushed.revision(),
        ))
    }

    async fn by_rounds<Q, R, F, Fut>(
        self,
        revision: Revision,
        capability: Capability,
        mut request: Q,
        context: RequestContext<RoleServer>,
        run: F,
    ) -> Result<R, ErrorData>
    where
        Q: Retryable,
        R: MayRequire,
        F: Fn(Q, RequestContext<RoleServer>) -> Fut,
        Fut: Future<Output = Result<R, ErrorData>>,
    {
        let bound = AssociatedData {
            principal: self.principal.clone().unwrap_or_default(),
            audience: self.shared.settings.audience.clone(),
            method: self.asked.method,
            request: self.asked.request,
        };
        let (responses, request_state) = request.replies();
        let opened = state::open(self.shared, &bound, request_state).await?;
        let (round, journal, had_state) = match opened {
            Some(state) => (state.round, state.journal, true),
            None => (0, Journal::default(), request_state.is_some()),
        };
        let had_state = had_state || !self.shared.settings.stateless_answers;
        let brought = RetryInput {
            journal,
            had_state,
            responses: responses.take().unwrap_or_default(),
        };
        let now_ms = self.shared.settings.now_ms();
        let (rounds, by_hand) = Rounds::new(
            revision,
            capability,
            now_ms,
            call_wait(self.shared, &context),
            brought,
        );
        *responses = (!by_hand.is_empty()).then_some(by_hand);
        let rounds = Arc::new(rounds);
        let context = self.lend(Backend::Rounds(Arc::clone(&rounds)), capability, context);
        let ended = rounds.drive(std::pin::pin!(run(request, context))).await;
        let journal = rounds.take_journal();
        let (requests, inner_state) = match ended {
            RunResult::Waiting(requests) => (Some(requests), None),
            RunResult::Changed(changed) => {
                tracing::error!(
                    target: "mcp_elicit",
                    method = bound.method,
                    "a question changes from run to run: put what changes into a step"
                );
                return Err(ElicitError::from(changed).into());
            }
            RunResult::Finished(response) => match response?.required() {
                Err(complete) => return Ok(complete),
                // The handler built this round, and there is no state of ours to add: it is passed on unchanged.
                Ok(required) if journal.is_blank() => return Ok(required.into()),
                Ok(required) => (required.input_requests, required.request_state),
            },
        };
        let state = self.next_state(round + 1, journal, inner_state)?;
        let sealed = state::seal(self.shared, &bound, &state, now_ms).await?;
        Ok(required(requests, sealed).into())
    }

    fn next_state(
        &self,
        round: u32,
        journal: Journal,
        by_hand: Option<String>,
    ) -> Result<SealedState, ErrorData> {
        let settings = &self.shared.settings;
        if round > settings.questions_per_call {
            let limit = usize::try_from(settings.questions_per_call).unwrap_or(usize::MAX);
            return Err(fault(LimitFault::TooManyRounds { limit }, Revision::LATEST));
        }
        let lifetime = u64::try_from(settings.state_lifetime.as_millis()).unwrap_or(u64::MAX);
        Ok(SealedState {
            id: state::fresh_id()?,
            until_ms: settings.now_ms().saturating_add(lifetime),
            round,
            journal,
            by_hand,
        })
    }
}

fn required(requests: Option<InputRequests>, state: String) -> InputRequiredResult {
    InputRequiredResult::new(requests, Some(state))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(arguments: &Value) -> QuestionDigest {
        digest("deploy", arguments.as_object())
    }

    #[test]
    fn the_order_of_arguments_does_not_matter_and_everything_else_does() {
        assert_eq!(
            of(&json!({"a": 1, "b": {"c": 2, "d": [3]}})),
            of(&json!({"b": {"d": [3], "c": 2}, "a": 1}))
        );
        let others = [
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"a": [1]}),
            json!({"a": {"b": 1}}),
            json!({"b": 1}),
            json!({}),
        ];
        for (index, one) in others.iter().enumerate() {
            for other in &others[index + 1..] {
                assert_ne!(of(one), of(other), "{one} {other}");
            }
        }
        assert_ne!(of(&json!({})), digest("destroy", json!({}).as_object()));
        assert_eq!(of(&json!({})), digest("deploy", None));
    }
}
