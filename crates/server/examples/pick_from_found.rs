//! Pick from what was found: the tool searches, and when it finds several the person says which one is meant.

mod listen;

use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, ServerSettings};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy)]
struct Contacts;

#[derive(Clone, Serialize, Deserialize)]
struct Contact {
    id: String,
    name: String,
    city: String,
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// The person to call
    name: String,
}

/// Stands for a search that takes time and whose results may change.
async fn search(name: &str) -> Vec<Contact> {
    tokio::task::yield_now().await;
    let all = [
        ("1", "Ada Lovelace", "London"),
        ("2", "Ada Yonath", "Jerusalem"),
        ("3", "Grace Hopper", "New York"),
    ];
    let contact = |(id, name, city): (&str, &str, &str)| Contact {
        id: id.into(),
        name: name.into(),
        city: city.into(),
    };
    all.into_iter()
        .filter(|found| found.1.contains(name))
        .map(contact)
        .collect()
}

#[tool_router]
impl Contacts {
    #[tool(description = "Call somebody; asks whom, if there are several of that name")]
    async fn call(
        &self,
        elicit: Elicit,
        Parameters(Search { name }): Parameters<Search>,
    ) -> Result<String, ElicitError> {
        // In a step, so that the person picks from the list that was shown, whatever a later search would find.
        let found = elicit.step("search", || search(&name)).await?;
        let id = match &found[..] {
            [] => return Ok(format!("Nobody is called {name}")),
            [only] => only.id.clone(),
            several => {
                let options = several.iter().map(|contact| {
                    (
                        contact.id.clone(),
                        format!("{}, {}", contact.name, contact.city),
                    )
                });
                elicit
                    .choose(format!("Which {name} do you mean?"), options)
                    .title("Contact")
                    .await?
            }
        };
        let called = found
            .iter()
            .find(|contact| contact.id == id)
            .map(|contact| contact.name.as_str());
        Ok(format!("Calling {}", called.unwrap_or("nobody")))
    }
}

#[tool_handler(name = "contacts", version = "1.0.0")]
impl ServerHandler for Contacts {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = ServerSettings::default().audience("contacts");
    listen::serve(std::env::args().skip(1), move || {
        Contacts.eliciting(settings.clone())
    })
    .await
}
