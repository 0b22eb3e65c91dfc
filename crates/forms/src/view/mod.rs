//! The view model: texts and actions for a person, decided once for every frontend.
//!
//! The question itself is in `core`'s [`view`](mcp_elicit_core::view), whose items are re-exported here.
//!
//! Nothing here does input or output or reads a clock: a frontend passes events in and shows the resulting state.
//!
//! - [`QuestionView`], [`Origin`], [`CallView`], [`QuestionBody`]: the question, its server and its call;
//!   [`PendingView`]: a question that waits behind it
//! - [`FieldView`], [`Control`], [`Pick`]: a field as a control with label, hints and default
//! - [`AnswerState`], [`AnswerEvent`], [`EventEffect`], [`AnswerStage`]: the answer before it is submitted
//! - [`Warning`]: reasons to be careful, before anything is typed or opened
//! - [`phrases`]: the sentences that both frontends use
//! - [`sanitize`]: text from a peer, made safe to show
//! - [`countdown`]: the remaining time in words
//! - [`Submission`]: the person's action; [`FrontendError`]: the reason why a question ended without an action

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
pub use event::{AnswerEvent, AnswerStage, EventEffect};
pub use outcome::{FrontendError, Submission};
