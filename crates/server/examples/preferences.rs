//! Preferences: a form known at run time, which shows the present settings. Declining or closing it changes nothing.

mod listen;

use std::sync::{Arc, Mutex, PoisonError};

use mcp_elicit_core::form::Form;
use mcp_elicit_server::{AskOutcome, Elicit, ElicitError, ElicitingExt, ServerSettings};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The preferences of a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Preferences {
    notifications: bool,
    theme: String,
    max_file_size: f64,
}

#[derive(Clone)]
struct Workflow(Arc<Mutex<Preferences>>);

/// Builds the form, filled in with the present settings.
fn form(now: &Preferences) -> Result<Form, ElicitError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "notifications": {
                "type": "boolean", "title": "Enable notifications", "default": now.notifications,
                "description": "Desktop notifications for important events"
            },
            "theme": {
                "type": "string", "title": "Color theme", "default": now.theme,
                "oneOf": [
                    { "const": "light", "title": "Light" },
                    { "const": "dark", "title": "Dark" },
                    { "const": "auto", "title": "Auto (system)" }
                ]
            },
            "max_file_size": {
                "type": "number", "title": "Max file size (MB)", "default": now.max_file_size,
                "minimum": 1, "maximum": 100
            }
        },
        "required": ["notifications", "theme", "max_file_size"]
    });
    Form::from_value(&schema).map_err(|defects| ElicitError::Author(defects.to_string()))
}

#[tool_router]
impl Workflow {
    #[tool(description = "Let the person change their preferences")]
    async fn preferences(&self, elicit: Elicit) -> Result<String, ElicitError> {
        // In a step, so that the same form is shown in every run, even if the settings change in the meantime.
        let now = elicit.step("look up", async || self.current()).await?;
        let asked = elicit.ask("Customize your workflow preferences", form(&now)?);
        let answers = match asked.outcome().await? {
            AskOutcome::Accept(answers) => answers,
            AskOutcome::Decline | AskOutcome::Cancel => return Ok("Nothing was changed".into()),
        };
        let wanted: Preferences = answers
            .deserialize()
            .map_err(|misfit| ElicitError::Author(misfit.to_string()))?;
        if wanted == now {
            return Ok("Nothing was changed".into());
        }
        let theme = wanted.theme.clone();
        elicit.step("save", async || self.save(wanted)).await?;
        Ok(format!("Saved; the theme is {theme}"))
    }

    fn current(&self) -> Preferences {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn save(&self, wanted: Preferences) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
    }
}

#[tool_handler(name = "workflow", version = "1.0.0")]
impl ServerHandler for Workflow {}

/// Returns the initial preferences.
fn usual() -> Preferences {
    Preferences {
        notifications: false,
        theme: "auto".to_owned(),
        max_file_size: 10.0,
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workflow = Workflow(Arc::new(Mutex::new(usual())));
    let settings = ServerSettings::default().audience("workflow");
    listen::serve(std::env::args().skip(1), move || {
        workflow.clone().eliciting(settings.clone())
    })
    .await
}

#[cfg(test)]
mod tests {
    use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};

    use super::*;

    async fn change(person: &ScriptedUser, workflow: &Workflow) -> String {
        let said = person.run(|elicit| workflow.preferences(elicit)).await;
        said.unwrap().unwrap()
    }

    #[tokio::test]
    async fn what_is_set_is_shown_and_what_is_changed_is_kept() {
        let workflow = Workflow(Arc::new(Mutex::new(usual())));
        let dark = json!({ "notifications": true, "theme": "dark", "max_file_size": 10 });
        let person = || ScriptedUser::answering([ScriptedAnswer::accept(dark.clone())]);
        let (first, second) = (person(), person());
        assert_eq!(change(&first, &workflow).await, "Saved; the theme is dark");
        assert_eq!(change(&second, &workflow).await, "Nothing was changed");
        let theme = |person: &ScriptedUser| {
            let schema = person.asked()[0].schema.clone().unwrap();
            schema["properties"]["theme"]["default"].clone()
        };
        assert_eq!(
            (theme(&first), theme(&second)),
            (json!("auto"), json!("dark"))
        );
        assert!(workflow.current().notifications);
    }

    #[tokio::test]
    async fn whoever_says_no_keeps_everything_as_it_is() {
        for answer in [ScriptedAnswer::Decline, ScriptedAnswer::Cancel] {
            let workflow = Workflow(Arc::new(Mutex::new(usual())));
            let person = ScriptedUser::answering([answer]);
            assert_eq!(change(&person, &workflow).await, "Nothing was changed");
            assert_eq!(workflow.current(), usual());
        }
    }
}
