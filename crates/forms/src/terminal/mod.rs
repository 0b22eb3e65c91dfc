//! Asks in a terminal: on a screen, step by step, or line by line where there is none.
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
//! - [`Frontend`]: the entry; finds out what the terminal can do
//! - [`QuestionHandle`]: withdraws a question while it is shown
//! - [`Charset`]: what it can draw, from the locale
//! - `plain`: line mode; `lines` reads them, and `echo` keeps secrets among them off the terminal
//! - `screen`: the loop of the screen mode; `controller` maps keys to events, `layout_single` and `layout_full` lay out
//!   pages made of `widgets` and `keys`, `editor` and `picker` are the inputs of fields, `page` is styled text, and
//!   `tty_guard` owns the terminal and restores it; `visit` waits while the person is at a page

mod charset;
mod controller;
mod echo;
mod editor;
mod frontend;
mod handle;
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
