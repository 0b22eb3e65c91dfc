//! The texts of a question's page that differ between a server's question and a call that waits for approval.

use super::page::AskedParts;

/// The texts of one of the two.
pub(super) struct Phrases {
    /// Follows the server's name, above a form.
    pub verb: &'static str,
    /// Precedes the kind and name of the call.
    pub before_call: &'static str,
    /// The confirmation of a decline, its effect, and the button.
    pub decline: [&'static str; 3],
    /// Replaces a form without fields.
    pub without_fields: &'static str,
    /// The button that accepts a form without fields.
    pub accept: &'static str,
    /// The action that another person's claim prevents.
    pub while_claimed: &'static str,
    /// The button that confirms another person's answers.
    pub confirm: &'static str,
    /// The heading of the form, and `true` if it is visible.
    pub fields: (&'static str, bool),
    /// The sentence below that heading; empty for none.
    pub about_fields: &'static str,
    /// The heading of the form beside another person's answers, and the effect of entering others.
    pub other: [&'static str; 2],
    /// The summary that opens the form again for a person who has confirmed: with fields, and without.
    pub again: [&'static str; 2],
    /// Replaces a form without fields if another person has confirmed.
    pub agreed: &'static str,
    /// The button that leads to the review; on a narrow screen, its first word.
    pub look: [&'static str; 2],
    /// The heading of the review.
    pub review: &'static str,
    /// The first sentence of the review.
    pub unsent: &'static str,
    /// The button that sends the reviewed answers, if others must confirm too.
    pub send_first: &'static str,
    /// The link back from the review.
    pub change: &'static str,
    /// The action of the others after that, and its object.
    pub then: [&'static str; 2],
    /// The button that sends the reviewed answers in place of another person's.
    pub send_instead: &'static str,
    /// The parts, before and after a name, of the sentence about the answers that are then dropped.
    pub dropped: [&'static str; 2],
    /// The effect of a decline if several people must confirm.
    pub declined_for_all: &'static str,
    /// Replaces a missing value.
    pub none: &'static str,
    /// The option that leaves a field without a value.
    pub no_choice: &'static str,
    /// The button that sends the reviewed answers.
    pub send: &'static str,
}

/// The texts of a server's question.
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
    agreed: "Agree above, or decline.",
    look: ["Review", " answers"],
    review: "This is what the server will get",
    unsent: "Nothing has been sent yet.",
    send_first: "Enter these answers",
    then: ["confirm", "exactly the same answers"],
    send_instead: "Enter these answers instead",
    dropped: ["Agreement with what", "entered then no longer counts."],
    declined_for_all: "The server is told no, and the question ends for everyone.",
    change: "Change answers",
    none: "no answer",
    no_choice: "No answer",
    send: "Send answers",
};

/// The texts of a call that waits for approval.
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
    agreed: "Approve above, or decline.",
    look: ["Review", " to approve"],
    review: "The arguments that can change, as you approve them",
    unsent: "Nothing is approved yet.",
    send_first: "Approve",
    then: ["approve", "exactly the same arguments"],
    send_instead: "Approve these arguments instead",
    dropped: ["Approvals of what", "approved then no longer count."],
    declined_for_all: "The call ends for everyone, and its server never hears of it.",
    change: "Change arguments",
    none: "left out",
    no_choice: "Left out",
    send: "Approve",
};

impl Phrases {
    /// Returns the texts of an approval, or of any other question.
    pub(super) const fn of(is_approval: bool) -> &'static Self {
        if is_approval { &APPROVAL } else { &QUESTION }
    }

    /// Returns the effect of the button with this label, and the next step of this many others. `by` has entered the
    /// answers that it replaces.
    pub(super) fn next_step(&self, send: &str, by: Option<&str>, others: u8) -> String {
        let [agree, same] = self.then;
        let people = match others {
            1 => "One more person".to_owned(),
            others => format!("{others} more people"),
        };
        let [before, after] = self.dropped;
        let dropped = by.map(|by| format!(" {before} {by} {after}"));
        let dropped = dropped.unwrap_or_default();
        format!("Press “{send}”.{dropped} {people} must then {agree} {same}.")
    }
}

impl AskedParts {
    /// Returns the texts of its page.
    pub(super) fn phrases(&self) -> &'static Phrases {
        Phrases::of(self.is_approval())
    }
}

/// Returns the text for an action that the reader has just done.
pub(super) fn did(act: &str, is_approval: bool) -> Option<&'static str> {
    Some(match act {
        "claim" => "You have claimed the question.",
        "takeover" => "You have taken the question over.",
        "delegate" => "You have handed the question on.",
        "comment" => "Your comment was added.",
        "confirm" | "fill" if is_approval => "Your approval is recorded.",
        "confirm" => "Your confirmation is recorded.",
        "fill" => "Your answers are entered.",
        _ => return None,
    })
}
