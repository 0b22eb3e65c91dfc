//! The words of a question's page that differ between what a server asks and a call that waits for approval.

use super::page::Asked;

/// The words of one of the two.
pub(super) struct Phrases {
    /// Stands behind the server's name, above a form.
    pub verb: &'static str,
    /// Stands before the kind and name of the call.
    pub before_call: &'static str,
    /// The question before a decline, what it does, and the button.
    pub decline: [&'static str; 3],
    /// Stands in place of a form without fields.
    pub without_fields: &'static str,
    /// The button that accepts a form without fields.
    pub accept: &'static str,
    /// The button that agrees to what another person entered.
    pub confirm: &'static str,
    /// The heading of the review.
    pub review: &'static str,
    /// The button that sends what was reviewed.
    pub send: &'static str,
}

/// The words for what a server asks.
const QUESTION: Phrases = Phrases {
    verb: "asks",
    before_call: "To go on with the",
    decline: [
        "Decline this question?",
        "The server is told no.",
        "Decline the question",
    ],
    without_fields: "the server asks for your yes.",
    accept: "Accept",
    confirm: "Confirm exactly these answers",
    review: "This is what the server will get",
    send: "Send answers",
};

/// The words for a call that waits for approval.
const APPROVAL: Phrases = Phrases {
    verb: "is about to be called",
    before_call: "The",
    decline: [
        "Decline this call?",
        "Its server never hears of it.",
        "Decline the call",
    ],
    without_fields: "you approve the call as it stands, or decline it.",
    accept: "Approve",
    confirm: "Approve exactly this",
    review: "The call is made with these arguments",
    send: "Approve",
};

impl Phrases {
    /// Returns the words for an approval, or for any other question.
    pub(super) const fn of(is_approval: bool) -> &'static Self {
        if is_approval { &APPROVAL } else { &QUESTION }
    }
}

impl Asked {
    /// Returns the words of its page.
    pub(super) fn phrases(&self) -> &'static Phrases {
        Phrases::of(self.is_approval())
    }
}

/// The words for an act that the reader has just done.
pub(super) fn did(act: &str, is_approval: bool) -> Option<&'static str> {
    Some(match act {
        "claim" => "You have claimed the question.",
        "takeover" => "You have taken the question over.",
        "delegate" => "You have handed the question on.",
        "comment" => "Your comment was added.",
        "confirm" | "fill" if is_approval => {
            "You have approved the call. Others have to approve it, too."
        }
        "confirm" => "You have confirmed these answers. Others have to confirm them, too.",
        "fill" => "Your answers are entered. Others have to confirm them.",
        _ => return None,
    })
}
