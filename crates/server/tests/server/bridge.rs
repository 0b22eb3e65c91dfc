//! Handlers written by hand for rounds serve clients of the pushed era through the wrapper.

use rmcp::handler::server::tool::{InputResponses, RequestState};
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, InputRequest, InputRequests,
    InputRequiredResult, ServerCapabilities, ServerConfig,
};
use rmcp::{ErrorData, ServerHandler, tool, tool_handler, tool_router};
use serde_json::json;

use crate::harness::{Act, REVISIONS, ScriptedUser, said};

#[derive(Clone)]
struct ByHand;

fn ask(message: &str) -> InputRequest {
    let params = json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object", "properties": { "age": { "type": "integer", "minimum": 18 } }, "required": ["age"]
        }
    });
    InputRequest::Elicitation(ElicitRequest::new(serde_json::from_value(params).unwrap()))
}

#[tool_router]
impl ByHand {
    #[tool(description = "Two rounds by hand, the first with two questions")]
    async fn ages(
        &self,
        RequestState(state): RequestState,
        InputResponses(replies): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        let age = |key: &str| {
            replies.as_ref().map_or_else(Default::default, |replies| {
                replies[key]["content"]["age"].to_string()
            })
        };
        match state.as_deref() {
            None => {
                let requests =
                    InputRequests::from([("a".into(), ask("A?")), ("b".into(), ask("B?"))]);
                Ok(InputRequiredResult::new(Some(requests), Some("second".into())).into())
            }
            Some("second") => {
                let requests = InputRequests::from([("c".into(), ask("C?"))]);
                let state = format!("{},{}", age("a"), age("b"));
                Ok(InputRequiredResult::new(Some(requests), Some(state)).into())
            }
            Some(state) => {
                let words = format!("{state},{}", age("c"));
                Ok(CallToolResult::success(vec![ContentBlock::text(words)]).into())
            }
        }
    }
}

#[tool_handler]
impl ServerHandler for ByHand {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

fn answer(message: &str) -> serde_json::Value {
    json!({ "age": match message { "A?" => 20, "B?" => 30, _ => 40 } })
}

#[tokio::test(start_paused = true)]
async fn the_same_result_on_every_revision() {
    for revision in REVISIONS {
        let person = ScriptedUser::answering(
            revision,
            [Act::Sees(answer), Act::Sees(answer), Act::Sees(answer)],
        );
        assert_eq!(
            said(&person.call(ByHand, "ages").await.unwrap()),
            ("20,30,40".into(), false),
            "{revision}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_breaks_the_form_never_reaches_the_handler() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let wrong = |_: &str| json!({ "age": 7 });
        let person = ScriptedUser::answering(revision, [Act::Sees(wrong), Act::Sees(wrong)]);
        let error = person.call(ByHand, "ages").await.unwrap_err();
        assert_eq!(error.code.0, -32602, "{revision}: {error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_ask_hears_so() {
    let person = ScriptedUser::answering("2025-11-25", []).declaring(json!({}));
    assert_eq!(
        person.call(ByHand, "ages").await.unwrap_err().code.0,
        -32601
    );
    assert!(person.asked().is_empty());
}
