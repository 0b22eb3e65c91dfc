//! The replay log of one call: answers, results of steps, and questions that have been sent.
//!
//! Pure: no clocks, no seals, no rmcp. A journal travels inside the sealed `requestState`; the client carries it and
//! cannot read it. An answer is stored under the digest of the question that the person saw and the question's
//! occurrence (the first, second, ... time that it is asked in one run), never under its position. Branches that finish
//! in another order on the next run therefore find their own answers, and a changed question finds none.

use mcp_elicit_core::wire::{self, Action};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::question::QuestionDigest;

/// A question's digest and occurrence: the same question asked twice in one run is two questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct OccurrenceKey {
    #[serde(rename = "q")]
    pub(crate) digest: QuestionDigest,
    #[serde(rename = "n")]
    pub(crate) occurrence: u32,
}

/// The response to one question.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum ReceivedAnswer {
    /// The client's response, not checked: each run checks it against the form.
    #[serde(rename = "r")]
    Result(StoredResult),
    /// The client's response, which passed the author's own check in an earlier run. The form's rules are checked each
    /// time.
    #[serde(rename = "p")]
    Passed(StoredResult),
    /// The response broke the form's rules. Only the reasons are kept, so that the next run asks again in the same
    /// words.
    #[serde(rename = "w")]
    Wrong(String),
    /// The response came after the deadline.
    #[serde(rename = "t")]
    Late,
    /// The response was not an answer at all.
    #[serde(rename = "b")]
    Broken(String),
}

/// An `ElicitResult`, unchecked. `content` keeps the client's bytes.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct StoredResult {
    #[serde(rename = "a")]
    pub(crate) action: ActionWord,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Box<RawValue>>,
}

impl std::fmt::Debug for StoredResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A person's values stay out of debug output.
        f.debug_struct("StoredResult")
            .field("action", &self.action)
            .finish_non_exhaustive()
    }
}

impl From<&wire::ElicitResult> for StoredResult {
    fn from(reply: &wire::ElicitResult) -> Self {
        Self {
            action: reply.action().into(),
            content: reply.content().map(ToOwned::to_owned),
        }
    }
}

/// [`Action`] as the journal spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ActionWord {
    #[serde(rename = "a")]
    Accept,
    #[serde(rename = "d")]
    Decline,
    #[serde(rename = "c")]
    Cancel,
}

impl From<Action> for ActionWord {
    fn from(action: Action) -> Self {
        match action {
            Action::Accept => Self::Accept,
            Action::Decline => Self::Decline,
            Action::Cancel => Self::Cancel,
        }
    }
}

impl From<ActionWord> for Action {
    fn from(word: ActionWord) -> Self {
        match word {
            ActionWord::Accept => Self::Accept,
            ActionWord::Decline => Self::Decline,
            ActionWord::Cancel => Self::Cancel,
        }
    }
}

/// A question that was sent with the last round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentQuestion {
    #[serde(rename = "k")]
    pub(crate) key: String,
    #[serde(rename = "o")]
    pub(crate) slot: OccurrenceKey,
    /// The beginning of its message, for an error about a question that changes.
    #[serde(rename = "m", default)]
    pub(crate) message: String,
    /// `true` for a URL to visit, `false` for a form.
    #[serde(rename = "u", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) url: bool,
    /// The time of its first sending, in milliseconds since 1970.
    #[serde(rename = "s")]
    pub(crate) since_ms: u64,
    /// The time in which it may be answered, in milliseconds.
    #[serde(rename = "f")]
    pub(crate) for_ms: u64,
}

impl SentQuestion {
    /// Returns `true` if an answer that comes at `now_ms` still counts.
    pub(crate) fn in_time(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.since_ms) <= self.for_ms
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct AnsweredOccurrence(OccurrenceKey, ReceivedAnswer);

/// The name, occurrence and result of a step that ran.
#[derive(Clone, Serialize, Deserialize)]
struct StoredStep(String, u32, Box<RawValue>);

impl std::fmt::Debug for StoredStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A step's result may contain a person's values.
        f.debug_tuple("StoredStep")
            .field(&self.0)
            .field(&self.1)
            .finish_non_exhaustive()
    }
}

/// The replay log of one call. See the [module](self).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Journal {
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    answered: Vec<AnsweredOccurrence>,
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<StoredStep>,
    #[serde(rename = "o", default, skip_serializing_if = "Vec::is_empty")]
    out: Vec<SentQuestion>,
    /// `true` if the last run used none of the responses that had just come.
    #[serde(rename = "z", default, skip_serializing_if = "std::ops::Not::not")]
    unused: bool,
}

impl Journal {
    /// Returns `true` if nothing is stored: such a call needs no state of ours.
    pub(crate) fn is_blank(&self) -> bool {
        self.answered.is_empty() && self.steps.is_empty() && self.out.is_empty()
    }

    /// Returns the stored response for `slot`.
    pub(crate) fn given(&self, slot: OccurrenceKey) -> Option<&ReceivedAnswer> {
        self.answered
            .iter()
            .find(|entry| entry.0 == slot)
            .map(|entry| &entry.1)
    }

    /// Returns the question that was sent for `slot`.
    pub(crate) fn out(&self, slot: OccurrenceKey) -> Option<&SentQuestion> {
        self.out.iter().find(|out| out.slot == slot)
    }

    /// Stores the response for `slot`. The question is no longer open.
    pub(crate) fn resolve(&mut self, slot: OccurrenceKey, given: ReceivedAnswer) {
        self.out.retain(|out| out.slot != slot);
        match self.answered.iter_mut().find(|entry| entry.0 == slot) {
            Some(entry) => entry.1 = given,
            None => self.answered.push(AnsweredOccurrence(slot, given)),
        }
    }

    /// Records that the response for `slot` passed the author's own check.
    pub(crate) fn pass(&mut self, slot: OccurrenceKey) {
        let entry = self.answered.iter_mut().find(|entry| entry.0 == slot);
        if let Some(AnsweredOccurrence(_, given)) = entry
            && let ReceivedAnswer::Result(reply) = given
        {
            *given = ReceivedAnswer::Passed(reply.clone());
        }
    }

    /// Records that this run used a response that had just come.
    pub(crate) fn used_replies(&mut self) {
        self.unused = false;
    }

    /// Records that this run used none of the responses that had just come. Returns `true` if the previous run did not
    /// either.
    pub(crate) fn unused_replies(&mut self) -> bool {
        std::mem::replace(&mut self.unused, true)
    }

    /// Takes the questions that have been sent, to look for their responses.
    pub(crate) fn take_out(&mut self) -> Vec<SentQuestion> {
        std::mem::take(&mut self.out)
    }

    /// Records that a question is sent with this round.
    pub(crate) fn send_out(&mut self, out: SentQuestion) {
        self.out.push(out);
    }

    /// Returns the result of the step `name` in its `occurrence`th call.
    pub(crate) fn step(&self, name: &str, occurrence: u32) -> Option<&RawValue> {
        self.steps
            .iter()
            .find(|step| step.1 == occurrence && step.0 == name)
            .map(|step| &*step.2)
    }

    /// Stores the result of a step.
    pub(crate) fn remember(&mut self, name: &str, occurrence: u32, value: Box<RawValue>) {
        if self.step(name, occurrence).is_none() {
            self.steps
                .push(StoredStep(name.to_owned(), occurrence, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(text: &str, occurrence: u32) -> OccurrenceKey {
        OccurrenceKey {
            digest: QuestionDigest::of(&[text.as_bytes()]),
            occurrence,
        }
    }

    fn reply(content: &str) -> ReceivedAnswer {
        let content = Some(RawValue::from_string(content.to_owned()).unwrap());
        ReceivedAnswer::Result(StoredResult {
            action: ActionWord::Accept,
            content,
        })
    }

    fn round_trip(journal: &Journal) -> Journal {
        serde_json::from_str(&serde_json::to_string(journal).unwrap()).unwrap()
    }

    #[test]
    fn an_answer_is_found_under_its_question_and_occurrence_only() {
        let mut journal = Journal::default();
        journal.resolve(slot("name?", 0), reply(r#"{"name":"Ada"}"#));
        let journal = round_trip(&journal);
        assert!(journal.given(slot("name?", 0)).is_some());
        assert!(journal.given(slot("name?", 1)).is_none());
        assert!(journal.given(slot("name!", 0)).is_none());
    }

    #[test]
    fn the_bytes_of_an_answer_survive_the_journal() {
        let mut journal = Journal::default();
        journal.resolve(slot("n?", 0), reply(r#"{"n":12345678901234567890.10}"#));
        let Some(ReceivedAnswer::Result(reply)) =
            round_trip(&journal).given(slot("n?", 0)).cloned()
        else {
            panic!("no reply")
        };
        assert_eq!(
            reply.content.unwrap().get(),
            r#"{"n":12345678901234567890.10}"#
        );
    }

    #[test]
    fn a_wrong_answer_leaves_its_reasons_and_not_its_values() {
        let mut journal = Journal::default();
        journal.resolve(slot("age?", 0), reply(r#"{"age":7}"#));
        journal.resolve(
            slot("age?", 0),
            ReceivedAnswer::Wrong("age: at least 18".into()),
        );
        let text = serde_json::to_string(&journal).unwrap();
        assert!(
            text.contains("at least 18") && !text.contains(r#""age":7"#),
            "{text}"
        );
        assert_eq!(journal.answered.len(), 1);
    }

    #[test]
    fn a_settled_question_is_no_longer_out() {
        let mut journal = Journal::default();
        let out = SentQuestion {
            key: "k".into(),
            slot: slot("a?", 0),
            message: "a?".into(),
            url: false,
            since_ms: 1_000,
            for_ms: 500,
        };
        journal.send_out(out.clone());
        assert_eq!(round_trip(&journal).out(slot("a?", 0)), Some(&out));
        assert!(out.in_time(1_500) && !out.in_time(1_501));
        journal.resolve(slot("a?", 0), reply("{}"));
        assert!(journal.out(slot("a?", 0)).is_none());
    }

    #[test]
    fn a_step_keeps_its_first_result() {
        let mut journal = Journal::default();
        journal.remember("start", 0, RawValue::from_string("7".into()).unwrap());
        journal.remember("start", 0, RawValue::from_string("8".into()).unwrap());
        assert_eq!(round_trip(&journal).step("start", 0).unwrap().get(), "7");
        assert!(journal.step("start", 1).is_none() && journal.step("stop", 0).is_none());
    }

    #[test]
    fn debug_prints_show_no_values() {
        let mut journal = Journal::default();
        journal.resolve(slot("name?", 0), reply(r#"{"name":"Ada"}"#));
        journal.remember(
            "look up",
            0,
            RawValue::from_string("\"Lovelace\"".into()).unwrap(),
        );
        let debug = format!("{journal:?}");
        assert!(
            !debug.contains("Ada") && !debug.contains("Lovelace"),
            "{debug}"
        );
    }
}
