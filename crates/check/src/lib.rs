//! The check of an MCP server that asks: every act, every wrong content and every broken round, each before a fresh server,
//! with a verdict and its clause of the specification.
//!
//! The first call of a tool answers every question with valid content, and so learns what the tool asks. All other cells
//! follow from these questions. A cell speaks raw JSON-RPC, because it sends what no client of an SDK would. It reaches
//! its server through a [`CheckConnection`], which the caller provides; this crate has no process, socket or clock.
//!
//! ```text
//! CheckJob ──> observe(Accept) ──> LearnedQuestions ──> cells(..) ──> observe(cell) each ──> judge(..) ──> CellResult ──> report
//! ```
//!
//! | file | contents |
//! | --- | --- |
//! | `cell` | the cells of the matrix, as data |
//! | `finding` | the codes of findings, with their clauses |
//! | `contents` | contents for a form: valid, least, and one violation per rule |
//! | `connection` | the connection that the caller provides |
//! | `session` | a session of either era over a connection, with its frames |
//! | `call` | one call, whose questions are answered by a plan |
//! | `observe` | the script of each cell |
//! | `observation` | the facts that a cell saw |
//! | `judge` | verdicts from these facts |
//! | [`report`] | text, JSON lines, JUnit and Markdown |

mod call;
mod cell;
mod connection;
mod contents;
mod finding;
mod judge;
mod observation;
mod observe;
pub mod report;
mod session;

pub use cell::{Cell, CellGroup};
pub use connection::{CheckConnection, ReceivedText};
pub use finding::{CellFinding, CellVerdict, Code};
pub use judge::{CellResult, judge};
pub use observation::{
    CallEffects, CallEnd, LearnedQuestions, Observation, ObservedQuestion, SentFrame,
};
pub use observe::{CheckJob, OtherTool, cells, observe};
pub use session::{CheckSession, ServerTool, SessionOpenError};
