//! Tools that build their own rounds, because they need sampling and roots as well as elicitation. The wrapper passes
//! the rounds on to clients of 2026-07-28 and pushes their requests to clients of the pushed era.

#![expect(deprecated, reason = "the suite still tests sampling and roots")]

use rmcp::handler::server::tool::InputResponses;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResponse, ClientCapabilities, CreateMessageRequest, CreateMessageRequestParams,
    ElicitRequest, ElicitRequestParams, InputRequest, InputRequests, InputRequiredResult,
    ListRootsRequest, SamplingMessage,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, tool, tool_router};
use serde_json::{Value, json};

use super::{Conformance, text};

fn sampling(prompt: &str, tokens: u32) -> InputRequest {
    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], tokens);
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

fn asking(params: Value) -> Result<InputRequest, ErrorData> {
    let params: ElicitRequestParams = serde_json::from_value(params)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(InputRequest::Elicitation(ElicitRequest::new(params)))
}

fn name() -> Result<InputRequest, ErrorData> {
    asking(json!({
        "mode": "form",
        "message": "What is your name?",
        "requestedSchema": {
            "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"]
        }
    }))
}

/// Requires `requests` until all of them have been answered.
fn gather(requests: InputRequests, InputResponses(responses): InputResponses) -> CallToolResponse {
    let responses = responses.unwrap_or_default();
    if requests.keys().all(|key| responses.contains_key(key)) {
        return text(format!("got {}", json!(responses))).into();
    }
    InputRequiredResult::new(Some(requests), Some("gathering".into())).into()
}

/// Returns a form with a choice in every spelling, including the oldest: `Form` would write `enumNames` as `oneOf`,
/// which is newer.
fn choices() -> Result<InputRequest, ErrorData> {
    let options = json!(["option1", "option2", "option3"]);
    let titled = json!([
        { "const": "value1", "title": "First Option" },
        { "const": "value2", "title": "Second Option" },
        { "const": "value3", "title": "Third Option" }
    ]);
    asking(json!({
        "mode": "form",
        "message": "Please choose",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "untitledSingle": { "type": "string", "enum": options },
                "titledSingle": { "type": "string", "oneOf": titled },
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"]
                },
                "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
                "titledMulti": { "type": "array", "items": { "anyOf": titled } }
            }
        }
    }))
}

#[tool_router(router = by_hand_tools, vis = "pub(crate)")]
impl Conformance {
    #[tool(
        name = "test_input_required_result_sampling",
        description = "Asks the model"
    )]
    async fn by_hand_sampling(
        &self,
        responses: InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        let question = sampling("What is the capital of France?", 100);
        Ok(gather(
            InputRequests::from([("capital_question".into(), question)]),
            responses,
        ))
    }

    #[tool(
        name = "test_input_required_result_list_roots",
        description = "Asks for the roots"
    )]
    async fn by_hand_roots(
        &self,
        responses: InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        let roots = InputRequest::ListRoots(ListRootsRequest::default());
        Ok(gather(
            InputRequests::from([("client_roots".into(), roots)]),
            responses,
        ))
    }

    #[tool(
        name = "test_input_required_result_multiple_inputs",
        description = "Asks three parties at once"
    )]
    async fn by_hand_many(&self, responses: InputResponses) -> Result<CallToolResponse, ErrorData> {
        let requests = InputRequests::from([
            ("user_name".into(), name()?),
            ("greeting".into(), sampling("Generate a greeting", 50)),
            (
                "client_roots".into(),
                InputRequest::ListRoots(ListRootsRequest::default()),
            ),
        ]);
        Ok(gather(requests, responses))
    }

    #[tool(
        name = "test_input_required_result_capabilities",
        description = "Asks whom the client declared"
    )]
    async fn by_hand_capabilities(
        &self,
        responses: InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let declared: ClientCapabilities = context.client_capabilities().unwrap_or_default();
        let mut requests = InputRequests::new();
        if declared.elicitation.is_some() {
            requests.insert("user_name".into(), name()?);
        }
        if declared.sampling.is_some() {
            requests.insert("greeting".into(), sampling("Generate a greeting", 50));
        }
        if requests.is_empty() {
            return Ok(text("nobody to ask").into());
        }
        Ok(gather(requests, responses))
    }

    #[tool(name = "test_missing_capability", description = "Needs sampling")]
    async fn missing_capability(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let declared = context.client_capabilities().unwrap_or_default();
        if declared.sampling.is_some() {
            return Ok(text("sampling is there").into());
        }
        let required = ClientCapabilities::builder().enable_sampling().build();
        Err(ErrorData::missing_required_client_capability(required))
    }

    #[tool(
        name = "test_sampling",
        description = "Asks the model, as the pushed era does"
    )]
    async fn pushed_sampling(
        &self,
        Parameters(Prompt { prompt }): Parameters<Prompt>,
        InputResponses(responses): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        // A round of the handler's own, in the form of 2026-07-28; the wrapper pushes it.
        let Some(response) = responses
            .as_ref()
            .and_then(|responses| responses.get("sample"))
        else {
            let requests = InputRequests::from([("sample".into(), sampling(&prompt, 100))]);
            return Ok(InputRequiredResult::from_input_requests(requests).into());
        };
        let words = response["content"]["text"].as_str().unwrap_or_default();
        Ok(text(format!("LLM response: {words}")).into())
    }

    #[tool(
        name = "test_elicitation_sep1330_enums",
        description = "Asks with choices of every spelling"
    )]
    async fn by_hand_choices(
        &self,
        InputResponses(responses): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(reply) = responses
            .as_ref()
            .and_then(|responses| responses.get("choices"))
        else {
            let requests = InputRequests::from([("choices".into(), choices()?)]);
            return Ok(InputRequiredResult::from_input_requests(requests).into());
        };
        let (action, content) = (
            reply["action"].as_str().unwrap_or_default(),
            &reply["content"],
        );
        Ok(text(format!(
            "Elicitation completed: action={action}, content={content}"
        ))
        .into())
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Prompt {
    prompt: String,
}
