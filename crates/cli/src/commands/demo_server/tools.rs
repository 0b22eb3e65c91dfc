//! The four tools.

use std::fmt;

use mcp_elicit_core::form::Form;
use mcp_elicit_server::{Elicit, ElicitError};
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The demo server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demo;

/// The target of a build.
#[derive(Debug, Deserialize, JsonSchema)]
struct BuildTarget {
    /// Staging is for trying, production is what everybody sees
    #[schemars(title = "Environment")]
    environment: BuildEnvironment,
    /// Goes into the log of the release
    #[schemars(title = "Note", length(max = 200))]
    note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum BuildEnvironment {
    Staging,
    Production,
}

impl fmt::Display for BuildEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Staging => "staging",
            Self::Production => "production",
        })
    }
}

/// The destination of a trip, on which the second question depends.
#[derive(Debug, Deserialize, JsonSchema)]
struct Destination {
    /// Each has its own places to see
    #[schemars(title = "City")]
    city: City,
    /// Length of the stay in days
    #[serde(default = "a_weekend")]
    #[schemars(title = "Days", range(min = 1, max = 30))]
    days: u8,
}

fn a_weekend() -> u8 {
    2
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum City {
    /// Lisbon
    Lisbon,
    /// Kyoto
    Kyoto,
    /// Oslo
    Oslo,
}

impl City {
    fn name(self) -> &'static str {
        match self {
            Self::Lisbon => "Lisbon",
            Self::Kyoto => "Kyoto",
            Self::Oslo => "Oslo",
        }
    }

    fn sights(self) -> [(&'static str, &'static str); 3] {
        match self {
            Self::Lisbon => [
                ("tram", "Tram 28"),
                ("tower", "Belém Tower"),
                ("fado", "An evening of fado"),
            ],
            Self::Kyoto => [
                ("temple", "The Golden Pavilion"),
                ("gates", "Fushimi Inari"),
                ("tea", "A tea ceremony"),
            ],
            Self::Oslo => [
                ("opera", "The opera's roof"),
                ("fjord", "A boat on the fjord"),
                ("ships", "The ships"),
            ],
        }
    }
}

/// Builds a form with one field of every kind, with titles, limits and defaults. 2025-06-18 has no list of choices.
fn profile(with_list: bool) -> Result<Form, ElicitError> {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "name": {
                "type": "string", "title": "Display name", "description": "As it should be shown to others",
                "minLength": 2, "maxLength": 40
            },
            "email": { "type": "string", "title": "E-mail", "description": "Only used to answer you", "format": "email" },
            "homepage": { "type": "string", "title": "Web page", "format": "uri" },
            "birthday": { "type": "string", "title": "Birthday", "description": "Year, month and day", "format": "date" },
            "call_at": { "type": "string", "title": "Call me at", "description": "With time zone", "format": "date-time" },
            "age": { "type": "integer", "title": "Age", "minimum": 18, "maximum": 130 },
            "height": { "type": "number", "title": "Height", "description": "In metres", "minimum": 0.5, "maximum": 2.5 },
            "newsletter": { "type": "boolean", "title": "Newsletter", "default": true },
            "colour": {
                "type": "string", "title": "Colour", "description": "How the pages look", "default": "blue",
                "oneOf": [
                    { "const": "red", "title": "Deep red" },
                    { "const": "green", "title": "Forest green" },
                    { "const": "blue", "title": "Sky blue" }
                ]
            }
        },
        "required": ["name", "email", "age"]
    });
    if with_list {
        schema["properties"]["interests"] = json!({
            "type": "array", "title": "Interests", "description": "Up to three", "maxItems": 3, "default": ["books"],
            "items": { "anyOf": [
                { "const": "music", "title": "Music" },
                { "const": "sports", "title": "Sports" },
                { "const": "books", "title": "Reading" },
                { "const": "food", "title": "Cooking" }
            ] }
        });
    }
    Form::from_value(&schema).map_err(|defects| ElicitError::Author(defects.to_string()))
}

#[tool_router]
impl Demo {
    #[tool(description = "Deploy the current build; asks where to, and again before production")]
    async fn deploy(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let target = elicit
            .form::<BuildTarget>("Which environment should I deploy to?")
            .key("target")
            .await?;
        if target.environment == BuildEnvironment::Production {
            elicit
                .confirm("Deploy to production?")
                .title("Yes, deploy to production")
                .key("sure")
                .await?;
        }
        let note = target
            .note
            .filter(|note| !note.is_empty())
            .map(|note| format!(" ({note})"));
        Ok(format!(
            "Deployed to {}{}",
            target.environment,
            note.unwrap_or_default()
        ))
    }

    #[tool(description = "Fill in a profile; asks for one field of every kind")]
    async fn profile(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let form = profile(elicit.can_choose_many())?;
        let answers = elicit
            .ask("Tell us about yourself", form)
            .key("profile")
            .await?;
        Ok(format!("Saved {}", answers.into_value()))
    }

    #[tool(
        name = "connect-account",
        description = "Connect an account; asks the person to visit a web page"
    )]
    async fn connect_account(&self, elicit: Elicit) -> Result<String, ElicitError> {
        elicit
            .visit("Sign in to Example to connect your account", CONNECT_PAGE)
            .key("connect")
            .await?;
        Ok(
            "You agreed to open the page; the account is connected once you have signed in there"
                .into(),
        )
    }

    #[tool(
        name = "plan-trip",
        description = "Plan a trip; the second question depends on the first answer"
    )]
    async fn plan(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let chosen = elicit
            .form::<Destination>("Where would you like to go?")
            .key("trip")
            .await?;
        let city = chosen.city.name();
        let sight = elicit
            .choose(
                format!("What must you see in {city}?"),
                chosen.city.sights(),
            )
            .key("sight")
            .await?;
        Ok(format!(
            "{} days in {city}, beginning with: {sight}",
            chosen.days
        ))
    }
}

/// A page that exists only in this demo.
const CONNECT_PAGE: &str = "https://accounts.example.com/connect/demo";

#[tool_handler]
impl ServerHandler for Demo {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.server_info = Implementation::new("mcp-elicit-demo", env!("CARGO_PKG_VERSION"));
        config
    }
}
