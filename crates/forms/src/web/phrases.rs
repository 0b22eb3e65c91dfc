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
    /// The act that a claim of somebody else keeps others from.
    pub while_claimed: &'static str,
    /// The button that agrees to what another person entered.
    pub confirm: &'static str,
    /// The heading of the form, and `true` where it is for the eye, too.
    pub fields: (&'static str, bool),
    /// The sentence below that heading; empty for none.
    pub about_fields: &'static str,
    /// The heading of the form beside what another person entered, and what entering others does.
    pub other: [&'static str; 2],
    /// The summary that opens the form again for somebody who has agreed: with fields, and without.
    pub again: [&'static str; 2],
    /// Stands in place of a form without fields for somebody who has agreed, and for others where somebody has.
    pub agreed: [&'static str; 2],
    /// The button that leads to the review; on a narrow screen, its first word.
    pub look: [&'static str; 2],
    /// The heading of the review.
    pub review: &'static str,
    /// The first sentence of the review.
    pub unsent: &'static str,
    /// The event that follows once so many others agree, the verb for that, and its object.
    pub as_soon: [&'static str; 3],
    /// The button that sends what was reviewed, where others must agree, too.
    pub send_first: &'static str,
    /// The link back from the review.
    pub change: &'static str,
    /// Stands in place of a value where there is none.
    pub none: &'static str,
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
    while_claimed: "enter answers",
    confirm: "Confirm exactly these answers",
    fields: ("Your answers", false),
    about_fields: "",
    other: [
        "Other answers",
        "Entering others drops the agreement so far: everybody who agreed has to look again.",
    ],
    again: ["Enter other answers, or decline", "Decline after all"],
    agreed: [
        "You have agreed. Others have to agree, too.",
        "Agree above, or decline.",
    ],
    look: ["Review", " answers"],
    review: "This is what the server will get",
    unsent: "Nothing has been sent yet.",
    as_soon: [
        "The server gets this as soon as",
        "confirm",
        "exactly these answers.",
    ],
    send_first: "Confirm",
    change: "Change answers",
    none: "no answer",
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
    while_claimed: "approve",
    confirm: "Approve exactly this",
    fields: ("Arguments that you may change", true),
    about_fields: "You approve on the next page, with these arguments as they are then.",
    other: [
        "Other arguments",
        "The fields start from the call as it was made. Approving other arguments drops the approvals so far: everybody who approved has to look again.",
    ],
    again: ["Approve other arguments, or decline", "Decline after all"],
    agreed: [
        "You have approved. Others have to approve, too.",
        "Approve above, or decline.",
    ],
    look: ["Review", " to approve"],
    review: "The call is made with these arguments",
    unsent: "Nothing is approved yet.",
    as_soon: [
        "The call is made as soon as",
        "approve",
        "exactly these arguments.",
    ],
    send_first: "Approve",
    change: "Change arguments",
    none: "left out",
    send: "Approve",
};

impl Phrases {
    /// Returns the words for an approval, or for any other question.
    pub(super) const fn of(is_approval: bool) -> &'static Self {
        if is_approval { &APPROVAL } else { &QUESTION }
    }

    /// Returns what happens as soon as so many others agree.
    pub(super) fn as_soon(&self, others: u8) -> String {
        let [before, agree, after] = self.as_soon;
        if others == 1 {
            format!("{before} one more person {agree}s {after}")
        } else {
            format!("{before} {others} more people {agree} {after}")
        }
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
