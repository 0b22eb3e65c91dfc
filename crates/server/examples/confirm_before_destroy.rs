//! Confirm before destroy: the tool says what it is about to do, and does nothing without a yes.

mod listen;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, ServerSettings};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Clone)]
struct Branches(Arc<Mutex<BTreeSet<String>>>);

#[derive(Deserialize, JsonSchema)]
struct Branch {
    /// The branch to delete
    name: String,
}

#[tool_router]
impl Branches {
    #[tool(description = "Delete a branch, after asking")]
    async fn delete_branch(
        &self,
        elicit: Elicit,
        Parameters(Branch { name }): Parameters<Branch>,
    ) -> Result<String, ElicitError> {
        elicit
            .confirm(format!(
                "Delete the branch \"{name}\"? This cannot be undone."
            ))
            .title(format!("Yes, delete {name}"))
            .await?;
        // In a step: whatever is asked after this, the branch is deleted once.
        let was_there = elicit
            .step("delete", || async {
                let mut branches = self
                    .0
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                branches.remove(&name)
            })
            .await?;
        Ok(if was_there {
            format!("Deleted {name}")
        } else {
            format!("There is no branch {name}")
        })
    }
}

#[tool_handler(name = "branches", version = "1.0.0")]
impl ServerHandler for Branches {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let branches = Branches(Arc::new(Mutex::new(
        ["old", "older", "oldest"].map(str::to_owned).into(),
    )));
    let settings = ServerSettings::default().audience("branches");
    listen::serve(std::env::args().skip(1), move || {
        branches.clone().eliciting(settings.clone())
    })
    .await
}

#[cfg(test)]
mod tests {
    use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    use serde_json::json;

    use super::*;

    async fn delete(person: &ScriptedUser) -> (Result<String, ElicitError>, usize) {
        let branches = Branches(Arc::new(Mutex::new([("old".to_owned())].into())));
        let branch = Parameters(Branch { name: "old".into() });
        let result = branches.delete_branch(person.elicit(), branch).await;
        let left = branches.0.lock().unwrap().len();
        (result, left)
    }

    #[tokio::test]
    async fn only_a_yes_deletes() {
        let (said, left) = delete(&ScriptedUser::answering([ScriptedAnswer::accept(
            json!({ "confirm": true }),
        )]))
        .await;
        assert_eq!((said.unwrap().as_str(), left), ("Deleted old", 0));
        for answer in [
            ScriptedAnswer::accept(json!({ "confirm": false })),
            ScriptedAnswer::Decline,
            ScriptedAnswer::Cancel,
            ScriptedAnswer::Silence,
        ] {
            let (said, left) = delete(&ScriptedUser::answering([answer])).await;
            assert!(said.is_err());
            assert_eq!(left, 1);
        }
    }
}
