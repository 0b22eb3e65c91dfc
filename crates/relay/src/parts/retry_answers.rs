//! The answers in a retry of a call that no longer runs, which starts anew.

use mcp_elicit_core::wire::InputResponses;

/// The answers of a retry, and its questions.
pub(crate) struct RetryAnswers {
    responses: InputResponses,
    /// The questions under the retry's state: keys with the records of the questions.
    asked: Vec<(String, String)>,
    /// The size of the retry in bytes, including the answers.
    size: usize,
}

impl RetryAnswers {
    /// Creates the answers of a retry of this size in bytes, to these questions: keys with their records.
    pub(crate) fn new(
        responses: InputResponses,
        asked: Vec<(String, String)>,
        size: usize,
    ) -> Self {
        Self {
            responses,
            asked,
            size,
        }
    }

    /// Returns the size of the retry in bytes, including the answers.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Returns the answers, if the retry was asked the question of this record under this key.
    pub(crate) fn to(&self, entry: &str, record: Option<&str>) -> Option<&InputResponses> {
        let is_it = |(key, of): &(String, String)| key == entry && Some(of.as_str()) == record;
        self.asked.iter().any(is_it).then_some(&self.responses)
    }
}
