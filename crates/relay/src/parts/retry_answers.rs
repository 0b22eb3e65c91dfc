//! The answers in a retry of a call that no longer runs, which starts again.

use std::time::Duration;

use mcp_elicit_core::wire::InputResponses;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::parts::indexed_frame::IndexedFrame;

/// The most bytes of unused answers in a state.
const CARRIED: usize = 64 * 1024;

/// The answers of a retry, and its questions.
pub(crate) struct RetryAnswers {
    responses: InputResponses,
    /// The questions under the retry's state: keys with the records of the questions.
    asked: Vec<(String, String)>,
    /// The answers of earlier retries, to questions that have not come up again.
    earlier: Vec<(CarriedAnswer, InputResponses)>,
    /// The size of the retry in bytes, including the answers, which are kept.
    size: usize,
    /// The time from the questions to the retry.
    after: Duration,
    /// The retry as the client wrote it, while its call waits for its turn.
    retry: Option<IndexedFrame>,
}

/// An answer of a client whose question has not come up again since the call was started again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CarriedAnswer {
    #[serde(rename = "k")]
    key: String,
    #[serde(rename = "r")]
    record: String,
    /// The response, JSON.
    #[serde(rename = "v")]
    response: String,
}

impl std::fmt::Debug for CarriedAnswer {
    /// Hides the response, which has a person's values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("CarriedAnswer");
        shown.field("record", &self.record).finish_non_exhaustive()
    }
}

impl CarriedAnswer {
    /// Returns the record of its question.
    pub(crate) fn record(&self) -> &str {
        &self.record
    }

    /// Returns it as the only response of a retry; `None` if it cannot be read.
    fn responses(&self) -> Option<InputResponses> {
        let mut responses = InputResponses::default();
        let response = RawValue::from_string(self.response.clone()).ok()?;
        responses.insert(&self.key, response);
        Some(responses)
    }
}

impl RetryAnswers {
    /// Creates the answers of this retry, to these questions: keys with their records. The client was asked this long
    /// before.
    pub(crate) fn new(
        responses: InputResponses,
        asked: Vec<(String, String)>,
        retry: IndexedFrame,
        after: Duration,
    ) -> Self {
        Self {
            responses,
            asked,
            earlier: Vec::new(),
            size: retry.size(),
            after,
            retry: Some(retry),
        }
    }

    /// Adds answers of earlier retries.
    pub(crate) fn with_earlier(self, earlier: &[CarriedAnswer]) -> Self {
        let read = |answer: &CarriedAnswer| Some((answer.clone(), answer.responses()?));
        let earlier = earlier.iter().filter_map(read).collect();
        Self { earlier, ..self }
    }

    /// Returns the time from the questions to the retry.
    pub(crate) fn after(&self) -> Duration {
        self.after
    }

    /// Returns the bytes that it holds.
    pub(crate) fn size(&self) -> usize {
        self.size + self.retry.as_ref().map_or(0, IndexedFrame::size)
    }

    /// Returns the retry as the client wrote it, while its call waits for its turn.
    pub(crate) fn retry(&self) -> Option<&IndexedFrame> {
        self.retry.as_ref()
    }

    /// Forgets the retry as the client wrote it: its call goes to the server.
    pub(crate) fn forget_retry(&mut self) {
        self.retry = None;
    }

    /// Returns the answers, if the client was asked the question of this record under this key.
    pub(crate) fn to(&self, entry: &str, record: Option<&str>) -> Option<&InputResponses> {
        let is_it = |(key, of): &(String, String)| key == entry && Some(of.as_str()) == record;
        if self.asked.iter().any(is_it) {
            return Some(&self.responses);
        }
        let is_it =
            |answer: &CarriedAnswer| answer.key == entry && Some(answer.record.as_str()) == record;
        let mut earlier = self.earlier.iter();
        earlier.find_map(|(answer, responses)| is_it(answer).then_some(responses))
    }

    /// Forgets the answer to the question of this record, which has come up.
    pub(crate) fn used(&mut self, record: &str) {
        self.asked.retain(|(_, of)| of != record);
        self.earlier.retain(|(answer, _)| answer.record != record);
    }

    /// Returns the answers whose questions have not come up, for the next state; none if they are too large.
    pub(crate) fn unused(&self) -> Vec<CarriedAnswer> {
        let own = self.asked.iter().filter_map(|(key, record)| {
            let response = self.responses.get(key).filter(|_| !record.is_empty())?;
            Some(CarriedAnswer {
                key: key.clone(),
                record: record.clone(),
                response: response.get().to_owned(),
            })
        });
        let earlier = self.earlier.iter().map(|(answer, _)| answer.clone());
        let unused: Vec<CarriedAnswer> = own.chain(earlier).collect();
        let size =
            |answer: &CarriedAnswer| answer.key.len() + answer.record.len() + answer.response.len();
        if unused.iter().map(size).sum::<usize>() > CARRIED {
            return Vec::new();
        }
        unused
    }
}
