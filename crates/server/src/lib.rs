//! Ask a person in one straight line, from any rmcp server, on every revision of MCP.
//!
//! ```
//! use mcp_elicit_server::{Elicit, ElicitingExt, ServerSettings, ElicitError};
//! use rmcp::{ServerHandler, tool, tool_handler, tool_router};
//!
//! #[derive(schemars::JsonSchema, serde::Deserialize)]
//! struct Target {
//!     /// The environment to run the build in
//!     environment: Environment,
//! }
//!
//! #[derive(schemars::JsonSchema, serde::Deserialize, Debug, PartialEq)]
//! #[serde(rename_all = "lowercase")]
//! enum Environment {
//!     Staging,
//!     Production,
//! }
//!
//! struct Deployer;
//!
//! #[tool_router]
//! impl Deployer {
//!     #[tool(description = "Deploy the current build")]
//!     async fn deploy(&self, elicit: Elicit) -> Result<String, ElicitError> {
//!         let target = elicit.form::<Target>("Which environment should I deploy to?").await?;
//!         if target.environment == Environment::Production {
//!             elicit.confirm("Deploy to production?").await?;
//!         }
//!         let release: u32 = elicit.step("start", || async { 7 }).await?;
//!         Ok(format!("release {release} is going to {:?}", target.environment))
//!     }
//! }
//!
//! #[tool_handler(name = "deployer", version = "1.0.0")]
//! impl ServerHandler for Deployer {}
//!
//! let server = Deployer.eliciting(ServerSettings::default());
//! # let _ = server;
//! ```
//!
//! **Decides**: which way a question goes, when a run of a handler is given up and run again, whether what comes back
//! counts, what a refusal becomes for the model. **Never**: hands an unchecked answer to a handler, turns silence into
//! a refusal, sends a mode the client did not declare, writes a person's value into a log.
//!
//! | module | contents |
//! | --- | --- |
//! | [`wrap`](ElicitingServer) | the wrapper around a server |
//! | `serve` | one request through the wrapper |
//! | [`elicit`](Elicit), [`ask`](Ask) | what authors write |
//! | `ask_loop` | putting a question until it is settled |
//! | `backend` | the ways to an answer, one file each: pushed, rounds, task, cannot-ask, script |
//! | `running_step` | that a step asks nothing |
//! | `journal`, `question` | what rounds have established; the digest that ties an answer to its question |
//! | `rmcp_schema` | forms in rmcp's type, for rounds and tasks |
//! | `multi_select_fallback` | lists of choices for 2025-06-18, which has none |
//! | [`seal`], `state` | protecting `requestState` |
//! | `bridge` | handlers that build their own rounds, for pushed-era clients |
//! | `guard` | what must not be asked |
//! | [`audit`] | one record per turn |
//! | `connect` | pages behind url-mode questions (feature `connect`), sign-ins elsewhere too (feature `oauth`) |
//! | [`settings`](ServerSettings), [`error`](ElicitError) | an author's settings; why an ask brought no answer |
//! | [`testing`] | a person who answers by script |
//! | `replay` | a handler under test, run as on either era |

pub mod ask;
mod ask_loop;
pub mod audit;
mod backend;
mod bridge;
#[cfg(feature = "connect")]
pub mod connect;
mod elicit;
mod error;
mod guard;
mod journal;
mod multi_select_fallback;
mod question;
mod replay;
mod rmcp_schema;
mod running_step;
pub mod seal;
mod serve;
mod settings;
mod state;
pub mod testing;
mod wrap;

/// The crates whose types are in this one's signatures: an author needs no version of them beside this one's.
pub use {mcp_elicit_core as core, rmcp, schemars};

pub use ask::{Ask, AskOutcome, Reasons};
pub use elicit::Elicit;
pub use error::{CannotAsk, CannotAskReason, ElicitError, Refusal, RefusalKind};
pub use settings::ServerSettings;
pub use wrap::{ElicitingExt, ElicitingServer};
