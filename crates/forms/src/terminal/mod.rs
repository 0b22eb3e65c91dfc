//! Asks in a terminal: on a screen, step by step, or line by line where there is none.
//!
//! ```no_run
//! use mcp_elicit_core::form::Form;
//! use mcp_elicit_forms::terminal::Face;
//! use mcp_elicit_forms::view::{Call, Origin, Question};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let form = Form::parse(r#"{"type":"object","properties":{"note":{"type":"string"}}}"#)?;
//! let origin = Origin::new("files").claiming("files", "1.2.0").connected("over stdio");
//! let question = Question::form(origin, "What should the note say?", form).for_call(Call::tool("add_note"));
//! let outcome = Face::detect()?.ask(&question)?;
//! # let _ = outcome;
//! # Ok(())
//! # }
//! ```
//!
//! - [`Face`]: the entry; finds out what the terminal can do
//! - [`Handle`]: takes a question back while it is shown
//! - [`Charset`]: what it can draw, from the locale
//! - `plain`: line mode; `lines` reads them, and `echo` keeps secrets among them off the terminal
//! - `screen`: the loop of the screen mode; `desk` knows what keys do, `steps` and `wide` lay out pages made of `parts` and `keys`,
//!   `editor` and `picker` are what fields are answered with, `page` is styled text, and `glass` owns the
//!   terminal and gives it back; `visit` waits while the person is at a page

mod charset;
mod desk;
mod echo;
mod editor;
mod face;
mod glass;
mod handle;
mod keys;
mod lines;
mod page;
mod parts;
mod picker;
mod plain;
mod screen;
mod steps;
mod visit;
mod wide;

pub use charset::Charset;
pub use face::Face;
pub use handle::Handle;
