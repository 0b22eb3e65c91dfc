//! Forms that ask for one yes or no, which are answered by one press of one of two buttons.

use mcp_elicit_core::answer::DraftValue;

use super::page::AskedParts;
use crate::view::{Control, FieldView};

/// Labels that say nothing besides the question.
const SAYING_NOTHING: [&str; 5] = ["value", "answer", "confirm", "confirmed", "confirmation"];

/// The longest description, in characters, all of which is in sight.
const ABOUT: usize = 300;

/// The two buttons, and the texts above them.
#[derive(Clone, Debug)]
pub(super) struct YesNoPart {
    /// The label of the button for yes.
    pub yes: String,
    /// The field's label, if it says more than the question and the buttons.
    pub label: Option<String>,
    /// The field's description.
    pub about: Option<String>,
    /// The button to which the form's default leads; `None` if there is a warning.
    pub main: Option<bool>,
    /// `true` if the form can be sent without an answer.
    pub is_optional: bool,
}

/// Returns the field of a form that asks for one yes or no, and for nothing else.
pub(super) fn only_field(views: &[FieldView]) -> Option<&FieldView> {
    match views {
        [view] if view.control == Control::YesNo => Some(view),
        _ => None,
    }
}

impl YesNoPart {
    /// Returns the buttons for a form with one yes or no. `None` for other forms, and where a press would not be the
    /// whole answer: others must agree to it, an approval changes an argument, a warning must be confirmed, or a text is so
    /// long that its end is out of sight.
    pub(super) fn of(views: &[FieldView], asked: &AskedParts) -> Option<Self> {
        let view = only_field(views)?;
        // Nobody agrees with one press while the end of a text is out of sight.
        let about = view.description.as_deref().unwrap_or_default();
        let is_folded = asked.message.long || about.chars().count() > ABOUT;
        let needs_more = is_folded
            || asked.is_approval()
            || asked.must_allow
            || asked.others_needed() > 0
            || asked.has_entered()
            || asked.has_agreed();
        if needs_more {
            return None;
        }
        let says_yes = {
            let mut words = view.label.split(|letter: char| !letter.is_alphanumeric());
            let first = words.next().unwrap_or_default();
            first.eq_ignore_ascii_case("yes") && view.label.len() > first.len()
        };
        let says_nothing = SAYING_NOTHING.contains(&view.label.to_lowercase().as_str());
        Some(Self {
            yes: if says_yes {
                view.label.clone()
            } else {
                "Yes".to_owned()
            },
            label: (!says_yes && !says_nothing).then(|| view.label.clone()),
            about: view.description.clone(),
            main: asked
                .warnings
                .is_empty()
                .then_some(view.default != DraftValue::Flag(false)),
            is_optional: !view.required,
        })
    }
}
