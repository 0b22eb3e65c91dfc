use crate::link::WarningLevel;
use crate::secrecy::{self, Confidence};

use super::{QuestionBody, QuestionView, sanitize};

/// A reason to be careful, shown before anything is typed or opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The reason, in a sentence for a person.
    pub text: String,
    /// The level of the warning.
    pub level: WarningLevel,
    /// `true` if the form asks for a credential: the person must allow that explicitly before an answer can be sent.
    pub asks_for_credential: bool,
}

/// Returns every reason to be careful with this question: a form that asks for a credential, or suspicious parts of a
/// link. Empty if there is none.
pub fn warnings(question: &QuestionView) -> Vec<Warning> {
    match question.ask() {
        QuestionBody::Form(form) => secrecy::inspect(form, question.raw_message())
            .iter()
            .map(|suspicion| {
                let certain = suspicion.level() == Confidence::Certain;
                Warning {
                    text: sanitize::line(&suspicion.to_string(), sanitize::LABEL * 2),
                    level: if certain {
                        WarningLevel::Danger
                    } else {
                        WarningLevel::Careful
                    },
                    asks_for_credential: certain,
                }
            })
            .collect(),
        QuestionBody::Url(link) => link
            .distinct_warnings()
            .map(|caution| Warning {
                text: sanitize::line(&caution.to_string(), sanitize::LABEL * 2),
                level: caution.level(),
                asks_for_credential: false,
            })
            .collect(),
    }
}
