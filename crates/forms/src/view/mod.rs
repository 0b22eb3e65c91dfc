//! The view model: texts and actions for a person, decided once for every frontend.
//!
//! The question itself is `core`'s [`view`](mcp_elicit_core::view), whose items are here as well.
//!
//! Nothing here reads, writes or knows the time: a face hands in what happened and shows what comes out.
//!
//! - [`Question`], [`Origin`], [`Call`], [`Ask`]: what is asked, by whom, for which call; [`Next`]: what waits behind it
//! - [`FieldView`], [`Control`], [`Pick`]: a field as a control with label, hints and default
//! - [`Sheet`], [`Event`], [`Effect`], [`Stage`]: the answer being given
//! - [`Warning`]: reasons to be careful, before anything is typed or opened
//! - [`words`]: the sentences both faces say
//! - [`inert`]: text from a peer made harmless to look at
//! - [`countdown`]: how much time is left, in words
//! - [`Reply`]: what the person did; [`NotAnswered`]: why a question ended without an action

mod control;
pub mod countdown;
pub(crate) mod date_time;
mod event;
mod hints;
mod outcome;
mod sheet;
pub(crate) mod validation;
pub mod words;

pub use mcp_elicit_core::view::{
    Ask, Call, CallKind, Next, Origin, Question, Warning, inert, warnings,
};

pub use control::{Control, FieldView, Pick};
pub use event::{Effect, Event, Stage};
pub use outcome::{NotAnswered, Reply};
pub use sheet::Sheet;
