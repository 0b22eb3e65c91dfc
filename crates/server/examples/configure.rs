//! Configuration: a form whose fields propose what is usual, with a rule of the author's own.

mod listen;

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, Reasons, ServerSettings};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

/// A server that starts development environments, on ports that are free.
#[derive(Clone)]
struct Environments {
    taken: Arc<BTreeSet<u16>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Environment {
    /// The editor to open
    #[schemars(title = "Preferred editor")]
    editor: Editor,
    /// The port of the development server
    #[schemars(title = "Development port", range(min = 1024, max = 65535))]
    #[serde(default = "usual_port")]
    port: u16,
    #[schemars(title = "Enable hot reload")]
    #[serde(default = "usually")]
    hot_reload: bool,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Editor {
    /// VS Code
    Vscode,
    /// Vim
    Vim,
    /// Emacs
    Emacs,
}

fn usual_port() -> u16 {
    3000
}

fn usually() -> bool {
    true
}

#[tool_router]
impl Environments {
    #[tool(description = "Configure the development environment; the person is asked how")]
    async fn configure(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let taken = Arc::clone(&self.taken);
        let free = move |environment: &Environment| {
            if taken.contains(&environment.port) {
                return Err(Reasons::from(("port", "another program listens there")));
            }
            Ok(())
        };
        let environment = elicit
            .form::<Environment>("Configure your development environment")
            .check(free)
            .await?;
        let Environment {
            editor,
            port,
            hot_reload,
        } = environment;
        let reload = if hot_reload { "with" } else { "without" };
        Ok(format!("{editor:?} on port {port}, {reload} hot reload"))
    }
}

#[tool_handler(name = "environments", version = "1.0.0")]
impl ServerHandler for Environments {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let environments = Environments {
        taken: Arc::new([8080].into()),
    };
    let settings = ServerSettings::default().audience("environments");
    listen::serve(std::env::args().skip(1), move || {
        environments.clone().eliciting(settings.clone())
    })
    .await
}

#[cfg(test)]
mod tests {
    use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
    use serde_json::{Value, json};

    use super::*;

    async fn configure(
        answers: impl IntoIterator<Item = Value>,
    ) -> (Result<String, ElicitError>, ScriptedUser) {
        let environments = Environments {
            taken: Arc::new([8080].into()),
        };
        let person = ScriptedUser::answering(answers.into_iter().map(ScriptedAnswer::accept));
        let result = person.run(|elicit| environments.configure(elicit)).await;
        (result.unwrap(), person)
    }

    #[tokio::test]
    async fn what_is_left_out_is_as_usual() {
        let (said, person) = configure([json!({ "editor": "vim" })]).await;
        assert_eq!(said.unwrap(), "Vim on port 3000, with hot reload");
        let schema = person.asked()[0].schema.clone().unwrap();
        assert_eq!(schema["properties"]["port"]["default"], 3000);
        assert_eq!(schema["required"], json!(["editor"]));
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_asked_for_again() {
        let on = |port: u16| json!({ "editor": "emacs", "port": port, "hot_reload": false });
        let (said, person) = configure([on(80), on(8080), on(8081)]).await;
        assert_eq!(said.unwrap(), "Emacs on port 8081, without hot reload");
        let again = &person.asked()[2].message;
        assert!(
            again.ends_with("- port: another program listens there"),
            "{again}"
        );
    }
}
