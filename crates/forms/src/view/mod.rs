//! The view model: texts and actions for a person, decided once for every frontend.
//!
//! The question itself is `core`'s [`view`](mcp_elicit_core::view), whose items are here as well.
//!
//! Nothing here reads, writes or knows the time: a frontend passes events in and shows the state that results.
//!
//! - [`QuestionView`], [`Origin`], [`CallView`], [`QuestionBody`]: what is asked, by whom, for which call; [`PendingView`]: what waits behind it
//! - [`FieldView`], [`Control`], [`Pick`]: a field as a control with label, hints and default
//! - [`AnswerState`], [`Event`], [`Effect`], [`Stage`]: the answer before it is submitted
//! - [`Warning`]: reasons to be careful, before anything is typed or opened
//! - [`phrases`]: the sentences that both frontends use
//! - [`sanitize`]: text from a peer made harmless to show
//! - [`countdown`]: how much time is left, in words
//! - [`Submission`]: what the person did; [`FrontendError`]: why a question ended without an action

mod answer_state;
mod control;
pub mod countdown;
pub(crate) mod date_time;
mod event;
mod hints;
mod outcome;
pub mod phrases;
pub(crate) mod validation;

pub use mcp_elicit_core::view::{
    CallKind, CallView, Origin, PendingView, QuestionBody, QuestionView, Warning, sanitize,
    warnings,
};

pub use answer_state::AnswerState;
pub use control::{Control, FieldView, Pick};
pub use event::{Effect, Event, Stage};
pub use outcome::{FrontendError, Submission};
