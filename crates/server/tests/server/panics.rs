//! A handler that panics: its request is answered at once, on every revision, and the server goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt as _};
use rmcp::model::{CallToolRequestParams, ErrorCode};
use rmcp::{ServerHandler, ServiceError, tool, tool_handler, tool_router};

use crate::harness::{Act, REVISIONS, ScriptedUser};

#[derive(Clone, Default)]
struct Clumsy {
    runs: Arc<AtomicU32>,
}

#[tool_router]
impl Clumsy {
    #[tool(description = "Panics before it asks")]
    async fn at_once(&self) -> String {
        let value: Option<u8> = "hunter2".parse().ok();
        value.expect("the person's value is hunter2").to_string()
    }

    #[tool(description = "Panics after the answer, which is a replay on 2026-07-28")]
    async fn after_the_answer(&self, elicit: Elicit) -> Result<String, ElicitError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        elicit.confirm("Go?").await?;
        panic!("hunter2 is too short");
    }

    #[tool(description = "Panics while a question is open")]
    async fn beside_a_question(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let ask = async { elicit.confirm("Go?").await.map(drop) };
        let fail = async { panic!("hunter2") };
        tokio::join!(fail, ask).1?;
        Ok("never".to_owned())
    }

    #[tool(description = "Panics in a step")]
    async fn in_a_step(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let done: u32 = elicit
            .step("work", || async {
                [7_u32; 1][usize::from(self.runs.load(Ordering::SeqCst) == 0)]
            })
            .await?;
        Ok(done.to_string())
    }

    #[tool(description = "Works")]
    async fn works(&self) -> String {
        "fine".to_owned()
    }
}

#[tool_handler(name = "clumsy", version = "1.0.0")]
impl ServerHandler for Clumsy {}

#[tokio::test]
async fn a_panic_is_an_error_at_once_that_says_nothing_of_its_message() {
    for revision in REVISIONS {
        for tool in [
            "at_once",
            "after_the_answer",
            "beside_a_question",
            "in_a_step",
        ] {
            let person = ScriptedUser::answering(
                revision,
                [Act::Accept(serde_json::json!({"confirm": true}))],
            );
            let server = Clumsy::default().eliciting(person.clock.settings());
            let client = person.meet(server).await;
            let called = client.call_tool(CallToolRequestParams::new(tool)).await;
            let Err(ServiceError::McpError(error)) = called else {
                panic!("{revision} {tool}: {called:?}");
            };
            assert_eq!(error.code, ErrorCode::INTERNAL_ERROR, "{revision} {tool}");
            assert_eq!(error.message, "the handler panicked", "{revision} {tool}");
            assert_eq!(error.data, None, "{revision} {tool}");
            // The next call of the same connection works.
            let works = client.call_tool(CallToolRequestParams::new("works")).await;
            assert!(works.is_ok(), "{revision} {tool}: {works:?}");
        }
    }
}
