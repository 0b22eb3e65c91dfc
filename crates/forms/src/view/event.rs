use std::time::SystemTime;

use mcp_elicit_core::answer::{DraftValue, Outcome};

use super::FrontendError;

/// The stage that the person has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// At warnings that must be confirmed before the form can be filled in.
    Warnings,
    /// At the field with this index.
    Field(usize),
    /// At the whole answer, before it is sent.
    Review,
    /// At a question that takes a plain yes: a form without fields, or a link.
    Confirm,
}

/// The event.
#[derive(Clone, Debug)]
pub enum Event {
    /// The field with this index now holds this.
    Edit(usize, DraftValue),
    /// On to the next field, or to the review after the last; refused while the field is wrong.
    Next,
    /// Back to the field before, or out of the review; nothing is lost.
    Back,
    /// To the field with this index, from anywhere.
    Goto(usize),
    /// To the review; refused while any field is wrong.
    Review,
    /// The person has read the warnings and allows credentials to be sent.
    AllowCredentials,
    /// Send the answer, or agree. Refused while any field is wrong or the warnings stand.
    Accept,
    /// The person says no.
    Decline,
    /// The person says no to this and to every later question of this server. A plain decline where that was
    /// not [offered](super::AnswerState::offering_from_now_on).
    DeclineFromNowOn,
    /// The person makes no choice.
    Cancel,
    /// It is now this moment.
    Time(SystemTime),
    /// The question was withdrawn, for this reason.
    Withdrawn(String),
    /// The person stopped the program.
    Interrupt,
    /// There is no more input.
    End,
}

/// The effect.
#[derive(Debug)]
pub enum Effect {
    /// Show the state as it is now.
    Show,
    /// The person acted; the question is over.
    Done(Outcome),
    /// The question is over without an action.
    Over(FrontendError),
}
