//! Asks in a terminal: step by step on a screen, or line by line.
//!
//! ```no_run
//! use mcp_elicit_core::form::Form;
//! use mcp_elicit_forms::terminal::Frontend;
//! use mcp_elicit_forms::view::{CallView, Origin, QuestionView};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let form = Form::parse(r#"{"type":"object","properties":{"note":{"type":"string"}}}"#)?;
//! let origin = Origin::new("files").claiming("files", "1.2.0").connected("over stdio");
//! let question = QuestionView::form(origin, "What should the note say?", form).for_call(CallView::tool("add_note"));
//! let outcome = Frontend::detect()?.ask(&question)?;
//! # let _ = outcome;
//! # Ok(())
//! # }
//! ```
//!
//! - [`Frontend`]: the entry point; detects the terminal's capabilities
//! - [`QuestionHandle`]: withdraws a question while it is shown
//! - [`Charset`]: the characters of the terminal, from the locale
//! - `plain`: line mode; `lines` reads lines, and `echo` hides secrets while they are typed
//! - `screen`: the loop of screen mode; `key_guard` lets no key count at first; `controller` maps keys to events,
//!   `layout_single` and `layout_full` lay out pages made of `widgets` and `keys`, `editor` and `picker` are the inputs
//!   of fields, `page` is styled text, and `tty_guard` owns the terminal and restores it; `visit` waits while the person
//!   visits a page

mod charset;
mod controller;
mod echo;
mod editor;
mod frontend;
mod handle;
mod key_guard;
mod keys;
mod layout_full;
mod layout_single;
mod lines;
mod page;
mod picker;
mod plain;
mod screen;
mod tty_guard;
mod visit;
mod widgets;

pub use charset::Charset;
pub use frontend::Frontend;
pub use handle::QuestionHandle;
