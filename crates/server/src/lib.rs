//! Asks a person in one `.await`, from any rmcp server, on every revision of MCP.
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
//! **Decides**: the backend of a question, when a run of a handler is ended and repeated, whether a response counts,
//! the text of a refusal for the model. **Never**: hands an unchecked answer to a handler, turns silence into a
//! refusal, sends a mode the client did not declare, writes a person's value into a log.
//!
//! | module | contents |
//! | --- | --- |
//! | [`wrap`](ElicitingServer) | the wrapper around a server |
//! | `serve` | one request through the wrapper |
//! | [`elicit`](Elicit), [`ask`](Ask) | the API for authors |
//! | `ask_loop` | asking a question until it is decided |
//! | `backend` | the backends, one file each: pushed, rounds, task, cannot-ask, script |
//! | `running_step` | the check that a step asks nothing |
//! | `panicked` | the answer for a handler that panics |
//! | `journal`, `question` | the replay log; the digest that ties an answer to its question |
//! | `rmcp_schema` | forms in rmcp's type, for rounds and tasks |
//! | `multi_select_fallback` | lists of choices for 2025-06-18, which has none |
//! | [`seal`], `state` | protection of `requestState` |
//! | `bridge` | handlers that build their own rounds, for pushed-era clients |
//! | `guard` | questions that must not be asked |
//! | [`audit`] | one record per event |
//! | `connect` | pages behind url-mode questions (feature `connect`), also with sign-in elsewhere (feature `oauth`) |
//! | [`settings`](ServerSettings), [`error`](ElicitError) | an author's settings; the reasons why an ask returned no answer |
//! | [`stdio`](stdio()) | a transport over standard input and output that reads and writes in batches |
//! | [`testing`] | a scripted user |
//! | `replay` | a handler under test, run on either era |

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
mod panicked;
mod question;
mod replay;
mod rmcp_schema;
mod running_step;
pub mod seal;
mod serve;
mod settings;
mod state;
mod stdio;
pub mod testing;
mod wrap;

/// The crates whose types appear in this crate's signatures, so that an author needs no separate versions of them.
pub use {mcp_elicit_core as core, rmcp, schemars};

pub use ask::{Ask, AskOutcome, Reasons};
pub use elicit::Elicit;
pub use error::{CannotAsk, CannotAskReason, ElicitError, Refusal, RefusalKind};
pub use settings::ServerSettings;
pub use stdio::{Stdio, stdio};
pub use wrap::{ElicitingExt, ElicitingServer};
