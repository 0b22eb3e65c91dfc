//! The rounds that a server has asked in a call, and what goes back to it when the call is made again.

use std::collections::HashMap;

use mcp_elicit_core::digest::{self, canonical};
use mcp_elicit_core::fault::LimitFault;
use mcp_elicit_core::wire::{ElicitRequest, InputRequest, InputResponses};

use crate::parts::retry_answers::RetryAnswers;
use crate::parts::url_demand::UrlDemand;

/// The number of answered rounds of a call that are remembered.
const REMEMBERED: usize = 64;

/// The rounds of a call.
#[derive(Default)]
pub(crate) struct CallRounds {
    count: u32,
    /// Records whose answers go to the server when the call is made again.
    delivers: Vec<String>,
    /// The server's last answer that required links to be visited (`-32042`).
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
    /// The answers, in one spelling.
    responses: String,
}

impl AnsweredRound {
    /// Returns the requests by their keys.
    pub(crate) fn requests(&self) -> &[(String, InputRequest)] {
        &self.requests
    }

    /// Returns whether these are the answers.
    fn has_answers(&self, responses: &InputResponses) -> bool {
        canonical(responses.to_raw().get()).is_ok_and(|given| given == self.responses)
    }
}

impl CallRounds {
    /// Counts a round.
    ///
    /// # Errors
    /// When it is one more than `most`.
    pub(crate) fn begin_round(&mut self, most: u32) -> Result<(), LimitFault> {
        self.count += 1;
        if self.count > most {
            let limit = usize::try_from(most).unwrap_or(usize::MAX);
            return Err(LimitFault::TooManyRounds { limit });
        }
        Ok(())
    }

    /// Returns how many were asked.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Forgets what the server required to be visited: it has asked in a round since.
    pub(super) fn drop_url_demand(&mut self) {
        self.url_demand = None;
    }

    /// Returns the server's last answer that required links to be visited.
    pub(crate) fn url_demand(&self) -> Option<&UrlDemand> {
        self.url_demand.as_ref()
    }

    /// Keeps an answer of the server that requires links to be visited.
    pub(crate) fn set_url_demand(&mut self, demand: UrlDemand) {
        self.url_demand = Some(demand);
    }

    /// Adds records whose answers go to the server when the call is made again.
    pub(crate) fn add_deliveries(&mut self, records: Option<String>) {
        self.delivers.extend(records);
    }

    /// Takes out the records whose answers go to the server when the call is made again.
    pub(crate) fn take_deliveries(&mut self) -> Vec<String> {
        std::mem::take(&mut self.delivers)
    }

    /// Notes the round that its client has.
    pub(crate) fn present(&mut self, requests: Vec<(String, InputRequest)>) {
        self.presented = requests;
    }

    /// Returns the rounds that its client has answered.
    pub(crate) fn answered(&self) -> &[AnsweredRound] {
        &self.answered
    }

    /// Remembers that its client has answered the round that it had.
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

    /// Returns whether the client gives the answers that it gave before to the last of this many rounds.
    pub(crate) fn repeats_answers(&self, repeated: usize, responses: &InputResponses) -> bool {
        let round = repeated
            .checked_sub(1)
            .and_then(|last| self.answered.get(last));
        round.is_some_and(|round| round.has_answers(responses))
    }

    /// Returns the size of the answers that it holds, in bytes.
    pub(super) fn size(&self) -> usize {
        let answered = self.answered.iter().map(|round| round.responses.len());
        answered.sum::<usize>() + self.retry_answers.as_ref().map_or(0, RetryAnswers::size)
    }

    /// Returns the answers that a retry brought for its questions, which are asked anew.
    pub(crate) fn retry_answers(&self) -> Option<&RetryAnswers> {
        self.retry_answers.as_ref()
    }

    /// Sets the answers that a retry brought for its questions, which are asked anew.
    pub(crate) fn set_retry_answers(&mut self, answers: Option<RetryAnswers>) {
        self.retry_answers = answers;
    }

    /// Returns the key of a question in `inputRequests`: the same whenever the same call asks the same question, as often as it
    /// asked that before.
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

/// Equal for two questions that ask the same, in whatever order and spelling of a form.
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
