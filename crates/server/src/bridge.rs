//! Pushed-era clients for handlers that build their own rounds by returning `InputRequiredResult`: each of their
//! requests is pushed, and the handler is called again with the responses, as a client of 2026-07-28 would.

use std::sync::Arc;

use futures::future::try_join_all;
use mcp_elicit_core::answer::CheckError;
use mcp_elicit_core::fault::Finding;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::wire::{ElicitRequest, ElicitResult, Mode, method};
use rmcp::ErrorData;
use rmcp::model::{
    ClientResult, ElicitRequestParams, ErrorCode, InputRequest, InputRequiredResult, InputResponses,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

use crate::backend::cannot_ask;
use crate::backend::pushed::Pushed;
use crate::error::ElicitError;
use crate::settings::SharedSettings;

/// Pushes all requests of `required` at once. Returns the responses and the handler's own state.
pub(crate) async fn push(
    pushed: &Arc<Pushed>,
    context: &RequestContext<RoleServer>,
    shared: &SharedSettings,
    required: InputRequiredResult,
) -> Result<(Option<InputResponses>, Option<String>), ErrorData> {
    let Some(requests) = required.input_requests else {
        return Ok((None, required.request_state));
    };
    let mut under_way = Vec::with_capacity(requests.len());
    for (key, request) in requests {
        under_way.push(async move {
            Ok::<_, ErrorData>((key, push_one(pushed, context, shared, request).await?))
        });
    }
    let replies = try_join_all(under_way).await?;
    Ok((Some(replies.into_iter().collect()), required.request_state))
}

async fn push_one(
    pushed: &Pushed,
    context: &RequestContext<RoleServer>,
    shared: &SharedSettings,
    request: InputRequest,
) -> Result<Value, ErrorData> {
    let timeout = shared.settings.timeout;
    let (method, params, form) = match request {
        InputRequest::Elicitation(elicit) => {
            let (request, form) = question(elicit.params)?;
            cannot_ask::declared(pushed.capability(), request.mode(), pushed.revision())?;
            let params = request.to_params(pushed.revision());
            (
                method::CREATE,
                params.map_err(|unaskable| ElicitError::Author(unaskable.to_string()))?,
                form,
            )
        }
        InputRequest::CreateMessage(sampling) => {
            ensure(context, "sampling", |declared| declared.sampling.is_some())?;
            (
                "sampling/createMessage",
                serde_json::to_value(sampling.params).map_err(|error| cannot_emit(&error))?,
                None,
            )
        }
        InputRequest::ListRoots(_) => {
            ensure(context, "roots", |declared| declared.roots.is_some())?;
            ("roots/list", Value::Object(serde_json::Map::new()), None)
        }
        _ => {
            return Err(ErrorData::internal_error(
                "this kind of input request cannot be pushed",
                None,
            ));
        }
    };
    let result: ClientResult = pushed.send(method, params, timeout).await?;
    let value = serde_json::to_value(result).map_err(|error| cannot_emit(&error))?;
    if method == method::CREATE {
        check(&value, form.as_ref())?;
    }
    Ok(value)
}

/// Returns the handler's own question in the revision-neutral form, and the form to check the response against.
fn question(params: ElicitRequestParams) -> Result<(ElicitRequest, Option<Form>), ErrorData> {
    match params {
        ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } => {
            let schema =
                serde_json::to_value(requested_schema).map_err(|error| cannot_emit(&error))?;
            let form = Form::from_value(&schema)
                .map_err(|defects| ElicitError::Author(defects.to_string()))?;
            Ok((ElicitRequest::form(message, &schema), Some(form)))
        }
        ElicitRequestParams::UrlElicitationParams {
            message,
            url,
            elicitation_id,
            ..
        } => {
            // 2025-11-25 needs an id; a handler written for 2026-07-28 has none.
            let id = if elicitation_id.is_empty() {
                url.clone()
            } else {
                elicitation_id
            };
            Ok((
                ElicitRequest::Url {
                    message,
                    url,
                    elicitation_id: Some(id),
                },
                None,
            ))
        }
        _ => Err(ErrorData::internal_error(
            "this mode of elicitation cannot be pushed",
            None,
        )),
    }
}

/// Checks the response here as well, so that the handler never sees content that breaks the form's rules.
fn check(value: &Value, form: Option<&Form>) -> Result<(), ErrorData> {
    let mode = if form.is_some() {
        Mode::Form
    } else {
        Mode::Url
    };
    let reply = ElicitResult::from_value(value, mode)
        .map_err(|defect| ElicitError::Peer(defect.to_string()))?;
    let Err(error) = reply.outcome(form) else {
        return Ok(());
    };
    Err(match &error {
        CheckError::Violations(violations) => ElicitError::Wrong {
            attempts: 1,
            reasons: violations.to_string(),
            findings: Finding::from_check(&error),
        },
        CheckError::Broken(_) | CheckError::TooLarge { .. } => ElicitError::Peer(error.to_string()),
    }
    .into())
}

fn ensure(
    context: &RequestContext<RoleServer>,
    name: &str,
    has: impl Fn(&rmcp::model::ClientCapabilities) -> bool,
) -> Result<(), ErrorData> {
    if context.client_capabilities().as_ref().is_some_and(has) {
        return Ok(());
    }
    Err(ErrorData::new(
        ErrorCode::METHOD_NOT_FOUND,
        format!("{name}: the client did not declare it"),
        None,
    ))
}

fn cannot_emit(error: &serde_json::Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
