//! Missing parameter: what the model left out, the person is asked for; what it gave is not asked again.

mod listen;

use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, ServerSettings};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Clone, Copy)]
struct Tables;

/// Arguments that the model may give.
#[derive(Deserialize, JsonSchema)]
struct Wish {
    /// The number of people
    people: Option<u8>,
    /// Which evening, as YYYY-MM-DD
    evening: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct People {
    /// The number of people
    #[schemars(title = "People", range(min = 1, max = 12))]
    people: u8,
}

#[derive(Deserialize, JsonSchema)]
struct Evening {
    /// Which evening
    #[schemars(title = "Evening", extend("format" = "date"))]
    evening: String,
}

#[tool_router]
impl Tables {
    #[tool(description = "Book a table; asks for what is missing")]
    async fn reserve(
        &self,
        elicit: Elicit,
        Parameters(wish): Parameters<Wish>,
    ) -> Result<String, ElicitError> {
        // Both at once: a client of 2026-07-28 gets them in one round.
        let (people, evening) = tokio::join!(
            async {
                match wish.people {
                    Some(people) => Ok(people),
                    None => elicit
                        .form::<People>("How many of you are there?")
                        .await
                        .map(|given| given.people),
                }
            },
            async {
                match wish.evening {
                    Some(evening) => Ok(evening),
                    None => elicit
                        .form::<Evening>("When would you like to come?")
                        .await
                        .map(|given| given.evening),
                }
            },
        );
        Ok(format!("A table for {} on {}", people?, evening?))
    }
}

#[tool_handler(name = "tables", version = "1.0.0")]
impl ServerHandler for Tables {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = ServerSettings::default().audience("tables");
    listen::serve(std::env::args().skip(1), move || {
        Tables.eliciting(settings.clone())
    })
    .await
}
