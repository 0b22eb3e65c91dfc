//! A set-up wizard: what is asked next depends on what was answered, nothing is made before the last yes, and what is
//! made is made once.

mod listen;

use std::sync::{Arc, Mutex, PoisonError};

use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, ServerSettings};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

/// The projects that were made.
#[derive(Clone, Default)]
struct Projects(Arc<Mutex<Vec<String>>>);

#[derive(Deserialize, JsonSchema)]
struct Project {
    #[schemars(title = "Project name", length(min = 1, max = 50))]
    name: String,
    #[schemars(title = "Framework")]
    framework: Framework,
    #[schemars(title = "License")]
    license: Option<License>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Framework {
    /// React
    React,
    /// Vue.js
    Vue,
    /// No framework
    None,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum License {
    /// MIT
    Mit,
    /// Apache 2.0
    Apache,
}

#[derive(Deserialize, JsonSchema)]
struct Language {
    #[schemars(title = "Use TypeScript")]
    #[serde(default = "usually")]
    typescript: bool,
}

fn usually() -> bool {
    true
}

#[tool_router]
impl Projects {
    #[tool(description = "Set up a new project, step by step with the person")]
    async fn set_up(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let project = elicit.form::<Project>("Create a new project").await?;
        let Project {
            name,
            framework,
            license,
        } = project;
        // Only where there is something to choose.
        let typescript = match framework {
            Framework::None => false,
            Framework::React | Framework::Vue => {
                let message = format!("In which language should {name} be written?");
                elicit.form::<Language>(message).await?.typescript
            }
        };
        let language = if typescript {
            "TypeScript"
        } else {
            "JavaScript"
        };
        let plan = format!("{name}: {framework:?}, {language}, license {license:?}");
        elicit
            .confirm(format!("Create it like this?\n\n{plan}"))
            .await?;
        // In a step: whatever is asked after this, the project is made once.
        let number = elicit.step("create", async || self.create(plan)).await?;
        Ok(format!("{name} is project {number}"))
    }

    fn create(&self, plan: String) -> usize {
        let mut projects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        projects.push(plan);
        projects.len()
    }
}

#[tool_handler(name = "projects", version = "1.0.0")]
impl ServerHandler for Projects {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let projects = Projects::default();
    let settings = ServerSettings::default().audience("projects");
    listen::serve(std::env::args().skip(1), move || {
        projects.clone().eliciting(settings.clone())
    })
    .await
}

#[cfg(test)]
mod tests {
    use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    use serde_json::json;

    use super::*;

    /// Sets a project up; gives what was said, what was made and how often the person was asked.
    async fn set_up(
        answers: impl IntoIterator<Item = ScriptedAnswer>,
    ) -> (Result<String, ElicitError>, Vec<String>, usize) {
        let projects = Projects::default();
        let person = ScriptedUser::answering(answers);
        let said = person.run(|elicit| projects.set_up(elicit)).await.unwrap();
        let made = projects.0.lock().unwrap().clone();
        (said, made, person.asked().len())
    }

    fn project(framework: &str) -> ScriptedAnswer {
        ScriptedAnswer::accept(json!({ "name": "atlas", "framework": framework, "license": "mit" }))
    }

    fn confirm(yes: bool) -> ScriptedAnswer {
        ScriptedAnswer::accept(json!({ "confirm": yes }))
    }

    #[tokio::test]
    async fn each_answer_leads_to_the_next_question() {
        let language = ScriptedAnswer::accept(json!({ "typescript": true }));
        let (said, made, asked) = set_up([project("vue"), language, confirm(true)]).await;
        assert_eq!(said.unwrap(), "atlas is project 1");
        assert_eq!(made, ["atlas: Vue, TypeScript, license Some(Mit)"]);
        assert_eq!(asked, 3);
        let (_, made, asked) = set_up([project("none"), confirm(true)]).await;
        assert_eq!(made, ["atlas: None, JavaScript, license Some(Mit)"]);
        assert_eq!(asked, 2);
    }

    #[tokio::test]
    async fn nothing_is_made_without_the_last_yes() {
        for answers in [
            vec![ScriptedAnswer::Decline],
            vec![project("vue"), ScriptedAnswer::Cancel],
            vec![project("none"), confirm(false)],
            vec![project("none"), ScriptedAnswer::Silence],
        ] {
            let (said, made, _) = set_up(answers).await;
            assert!(said.is_err());
            assert!(made.is_empty());
        }
    }
}
