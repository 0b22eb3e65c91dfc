//! The rounds that a server has asked in a call, and what goes back to it when the call is made again.

use std::collections::HashMap;

use mcp_elicit_core::wire::InputRequest;

use crate::repeated_rounds::AnsweredRound;
use crate::retries::RetryAnswers;
use crate::url_demand::UrlDemand;

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

impl CallRounds {
    /// Counts a round. Returns how many were asked.
    pub(crate) fn count_one(&mut self) -> u32 {
        self.count += 1;
        self.count
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

    /// Notes that its client has answered the round that it had.
    pub(crate) fn answer_presented(&mut self, responses: String) {
        let requests = std::mem::take(&mut self.presented);
        self.answered.push(AnsweredRound {
            requests,
            responses,
        });
    }

    /// Returns the answers that a retry brought for its questions, which are asked anew.
    pub(crate) fn retry_answers(&self) -> Option<&RetryAnswers> {
        self.retry_answers.as_ref()
    }

    /// Sets the answers that a retry brought for its questions, which are asked anew.
    pub(crate) fn set_retry_answers(&mut self, answers: Option<RetryAnswers>) {
        self.retry_answers = answers;
    }

    /// Counts a question by its digest. Returns how often it was asked.
    pub(crate) fn count_ask(&mut self, digest: &str) -> u32 {
        let count = self.asked_keys.entry(digest.to_owned()).or_default();
        *count += 1;
        *count
    }
}
