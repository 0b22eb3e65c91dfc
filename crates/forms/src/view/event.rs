use std::time::SystemTime;

use mcp_elicit_core::answer::{DraftValue, Outcome};

use super::FrontendError;

/// The stage of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerStage {
    /// Warnings that must be confirmed before the form can be filled in.
    Warnings,
    /// The field with this index.
    Field(usize),
    /// The review of the whole answer before it is sent.
    Review,
    /// A question that needs only a yes: a form without fields, or a link.
    Confirm,
}

/// An event of an answer.
#[derive(Clone, Debug)]
pub enum AnswerEvent {
    /// The field with this index has this new value.
    Edit(usize, DraftValue),
    /// Go to the next field, or to the review after the last; refused while the field is invalid.
    Next,
    /// Go back to the previous field, or out of the review; nothing is lost.
    Back,
    /// Go to the field with this index, from anywhere.
    Goto(usize),
    /// Go to the review; refused while any field is invalid.
    Review,
    /// The person has read the warnings and allows credentials to be sent.
    AllowCredentials,
    /// Send the answer, or agree. Refused while any field is invalid or warnings are unconfirmed.
    Accept,
    /// The person declines.
    Decline,
    /// The person declines this and every later question of this server. A plain decline unless it was
    /// [offered](super::AnswerState::offering_from_now_on).
    DeclineFromNowOn,
    /// The person cancels.
    Cancel,
    /// The current time.
    Time(SystemTime),
    /// The question was withdrawn, for this reason.
    Withdrawn(String),
    /// The person stopped the program.
    Interrupt,
    /// The input ended.
    End,
}

/// The effect of an event.
#[derive(Debug)]
pub enum EventEffect {
    /// Show the updated state.
    Show,
    /// The person acted; the question is over.
    Done(Outcome),
    /// The question is over without an action.
    Over(FrontendError),
}
