//! The rounds of a call, and the contents of its next retry at the server.

use std::collections::HashMap;

use mcp_elicit_core::digest::{self, canonical};
use mcp_elicit_core::fault::LimitFault;
use mcp_elicit_core::wire::{ElicitRequest, InputRequest, InputResponses};

use crate::parts::retry_answers::RetryAnswers;
use crate::parts::server_round::size_of_other;
use crate::parts::url_demand::UrlDemand;

/// The number of answered rounds of a call that are remembered.
const REMEMBERED: usize = 64;

/// The rounds of a call.
#[derive(Default)]
pub(crate) struct CallRounds {
    count: u32,
    /// Records whose answers go to the server with the next retry.
    delivers: Vec<String>,
    /// The server's last answer that required visits (`-32042`).
    url_demand: Option<UrlDemand>,
    /// The round that its client has.
    presented: Vec<(String, InputRequest)>,
    /// The rounds that its client has answered.
    answered: Vec<AnsweredRound>,
    retry_answers: Option<RetryAnswers>,
    /// The keys that its questions have had in `inputRequests`, and how often each was asked.
    asked_keys: HashMap<String, u32>,
}

/// A round that a client has answered.
pub(crate) struct AnsweredRound {
    requests: Vec<(String, InputRequest)>,
    /// The answers, in canonical spelling.
    responses: String,
}

impl AnsweredRound {
    /// Returns the requests by their keys.
    pub(crate) fn requests(&self) -> &[(String, InputRequest)] {
        &self.requests
    }

    /// Returns `true` if these are the answers.
    fn has_answers(&self, responses: &InputResponses) -> bool {
        canonical(responses.to_raw().get()).is_ok_and(|given| given == self.responses)
    }
}

impl CallRounds {
    /// Records that a retry carries these answers to its questions, which are asked again.
    pub(super) fn retried_with(&mut self, answers: Option<RetryAnswers>) {
        self.retry_answers = answers;
    }

    /// Counts a round.
    ///
    /// # Errors
    /// If there are more than `most` rounds.
    pub(crate) fn begin_round(&mut self, most: u32) -> Result<(), LimitFault> {
        self.count += 1;
        if self.count > most {
            let limit = usize::try_from(most).unwrap_or(usize::MAX);
            return Err(LimitFault::TooManyRounds { limit });
        }
        Ok(())
    }

    /// Returns the number of rounds.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Forgets the required visits, because the server has asked in a round since.
    pub(super) fn drop_url_demand(&mut self) {
        self.url_demand = None;
    }

    /// Returns the server's last answer that required visits.
    pub(crate) fn url_demand(&self) -> Option<&UrlDemand> {
        self.url_demand.as_ref()
    }

    /// Records that the server requires visits to links. Returns `false` if they are the same as in its last answer.
    pub(crate) fn demands_urls(&mut self, demand: UrlDemand) -> bool {
        let is_new = self.url_demand.as_ref() != Some(&demand);
        self.url_demand = Some(demand);
        is_new
    }

    /// Adds records whose answers go to the server with the next retry.
    pub(crate) fn add_deliveries(&mut self, records: Option<String>) {
        self.delivers.extend(records);
    }

    /// Takes out the records whose answers go to the server with the next retry.
    pub(crate) fn take_deliveries(&mut self) -> Vec<String> {
        std::mem::take(&mut self.delivers)
    }

    /// Records the round that its client has.
    pub(crate) fn present(&mut self, requests: Vec<(String, InputRequest)>) {
        self.presented = requests;
    }

    /// Returns the rounds that its client has answered.
    pub(crate) fn answered(&self) -> &[AnsweredRound] {
        &self.answered
    }

    /// Records that its client has answered the round that it had.
    pub(crate) fn answer_presented(&mut self, responses: &InputResponses) {
        if self.answered.len() < REMEMBERED
            && let Ok(responses) = canonical(responses.to_raw().get())
        {
            let requests = std::mem::take(&mut self.presented);
            self.answered.push(AnsweredRound {
                requests,
                responses,
            });
        }
    }

    /// Returns `true` if the client repeats its earlier answers to the last of this many rounds.
    pub(crate) fn repeats_answers(&self, repeated: usize, responses: &InputResponses) -> bool {
        let round = repeated
            .checked_sub(1)
            .and_then(|last| self.answered.get(last));
        round.is_some_and(|round| round.has_answers(responses))
    }

    /// Returns the size of the answers that it holds, of the rounds that its client has, and of required visits, in bytes.
    pub(super) fn size(&self) -> usize {
        let requests = |all: &[(String, InputRequest)]| {
            let size = |(key, request): &(String, InputRequest)| key.len() + size_of_other(request);
            all.iter().map(size).sum::<usize>()
        };
        let answered = self.answered.iter();
        let answered = answered.map(|round| round.responses.len() + requests(&round.requests));
        answered.sum::<usize>()
            + requests(&self.presented)
            + self.url_demand.as_ref().map_or(0, UrlDemand::size)
            + self.retry_answers.as_ref().map_or(0, RetryAnswers::size)
    }

    /// Returns the answers in a retry to its questions, which are asked again.
    pub(crate) fn retry_answers(&self) -> Option<&RetryAnswers> {
        self.retry_answers.as_ref()
    }

    /// Forgets the retry as the client wrote it.
    pub(super) fn forget_retry(&mut self) {
        if let Some(answers) = &mut self.retry_answers {
            answers.forget_retry();
        }
    }

    /// Forgets the answer in a retry to the question of this record, which has been asked again.
    pub(crate) fn retry_answer_used(&mut self, record: &str) {
        if let Some(answers) = &mut self.retry_answers {
            answers.used(record);
        }
    }

    /// Returns the key of a question in `inputRequests`: the same whenever the same call asks the same question for the
    /// same number of times.
    pub(crate) fn entry_key(&mut self, request: &ElicitRequest) -> String {
        let digest = digest(request);
        let count = self.asked_keys.entry(digest.clone()).or_default();
        *count += 1;
        match *count {
            1 => format!("ask-{digest}"),
            again => format!("ask-{digest}-{again}"),
        }
    }
}

/// Returns a digest that is equal for two equal questions, in any order and spelling of a form.
fn digest(request: &ElicitRequest) -> String {
    let parts = match request {
        ElicitRequest::Form { message, schema } => {
            let schema = canonical(schema.get()).unwrap_or_else(|_| schema.get().to_owned());
            ["form".to_owned(), message.clone(), schema]
        }
        ElicitRequest::Url { message, url, .. } => ["url".to_owned(), message.clone(), url.clone()],
    };
    digest::hex(&digest::of_parts(parts), 8)
}
