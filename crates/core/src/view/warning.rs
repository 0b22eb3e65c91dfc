use crate::link::WarningLevel;
use crate::secrecy::{self, Confidence};

use super::{Ask, Question, inert};

/// A reason to be careful, shown before anything is typed or opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The reason, in a sentence a person can read.
    pub text: String,
    /// The level of the warning.
    pub weight: WarningLevel,
    /// `true` if the person must insist before an answer can be sent.
    pub needs_insisting: bool,
}

/// Every reason to be careful with this question: a form that asks for a credential, or what is odd about a
/// link. Empty when there is none.
pub fn warnings(question: &Question) -> Vec<Warning> {
    match question.ask() {
        Ask::Form(form) => secrecy::inspect(form, question.raw_message())
            .iter()
            .map(|suspicion| {
                let certain = suspicion.level() == Confidence::Certain;
                Warning {
                    text: inert::line(&suspicion.to_string(), inert::LABEL * 2),
                    weight: if certain {
                        WarningLevel::Danger
                    } else {
                        WarningLevel::Careful
                    },
                    needs_insisting: certain,
                }
            })
            .collect(),
        Ask::Url(link) => link
            .cautions()
            .iter()
            .map(|caution| Warning {
                text: inert::line(&caution.to_string(), inert::LABEL * 2),
                weight: caution.weight(),
                needs_insisting: false,
            })
            .collect(),
    }
}
