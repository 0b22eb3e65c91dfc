//! Observers of questions: logs, records, screens, or programs that read events.

use super::error::QuestionError;
use crate::answer::Answer;
use crate::consent::Consent;
use crate::question::Question;

/// An observer of questions, called in order for each question. It must not block.
///
/// `answered` is the only method that receives a person's values. An observer that stores them does so deliberately.
///
/// ```
/// use mcp_elicit_client::dispatch::Observer;
/// use mcp_elicit_client::{Answer, ClientSettings, Consent, Question, QuestionError};
///
/// /// Prints the progress of each question on stderr, without the person's answers.
/// struct Progress;
///
/// impl Observer for Progress {
///     fn asked(&self, question: &Question) {
///         eprintln!("{} asks", question.shown().origin().name());
///     }
///
///     fn answered(&self, _question: &Question, answer: &Answer) {
///         eprintln!("answered by {}", answer.by().unwrap_or("a person"));
///     }
///
///     fn refused(&self, _question: Option<&Question>, why: &QuestionError) {
///         eprintln!("not answered: {why}");
///     }
///
///     fn consent_changed(&self, consent: &Consent) {
///         eprintln!("to be kept: {:?}", consent.to_toml());
///     }
/// }
///
/// let settings = ClientSettings::default().observer(Progress);
/// ```
pub trait Observer: Send + Sync + 'static {
    /// Called when a question was admitted.
    fn asked(&self, question: &Question) {
        let _ = question;
    }

    /// Called when a person has answered, and the answer goes to the server.
    fn answered(&self, question: &Question, answer: &Answer) {
        let _ = (question, answer);
    }

    /// Called when the server gets no answer. `question` is absent if it could not be read.
    fn refused(&self, question: Option<&Question>, why: &QuestionError) {
        let _ = (question, why);
    }

    /// Called with the updated policy to store when the person permanently declined a server. `consent` includes every
    /// other server declined in the same [`QuestionQueue`](super::QuestionQueue). Called for one change at a time.
    fn consent_changed(&self, consent: &Consent) {
        let _ = consent;
    }
}

impl<O: Observer + ?Sized> Observer for std::sync::Arc<O> {
    fn asked(&self, question: &Question) {
        (**self).asked(question);
    }

    fn answered(&self, question: &Question, answer: &Answer) {
        (**self).answered(question, answer);
    }

    fn refused(&self, question: Option<&Question>, why: &QuestionError) {
        (**self).refused(question, why);
    }

    fn consent_changed(&self, consent: &Consent) {
        (**self).consent_changed(consent);
    }
}
