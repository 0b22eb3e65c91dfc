//! The backends, one file each.
//!
//! | backend | when |
//! | --- | --- |
//! | [`pushed`] | 2025-06-18 and 2025-11-25: send `elicitation/create` and wait |
//! | [`rounds`] | 2026-07-28: end the run, send its questions, run again with the answers |
//! | [`task`] | inside a task: `tasks/get` shows the question, `tasks/update` answers it |
//! | [`cannot_ask`] | the client cannot be asked: an error before anything is sent |
//! | [`script`] | tests: answers given as values |
//!
//! `question_params` builds the parameters of a question as rmcp sends them, `run_state` is one run of a handler in
//! rounds. `call_wait` is their shared wait, and `tracked_waker` tells rounds that the handler waits for nothing else.
//! Only these files know how the eras differ; everything else asks through [`Backend::put`].

pub(crate) mod call_wait;
pub(crate) mod cannot_ask;
pub(crate) mod pushed;
mod question_params;
pub(crate) mod rounds;
mod run_state;
pub(crate) mod script;
pub(crate) mod task;
mod tracked_waker;

use std::sync::Arc;

use mcp_elicit_core::wire::Revision;

use serde_json::value::RawValue;

use crate::error::ElicitError;
use crate::journal::ReceivedAnswer;
use crate::question::OutgoingQuestion;

/// Called right before a question is sent for the first time. It checks that the question may be asked, and records it.
pub(crate) type AdmitFn<'a> = &'a (dyn Fn() -> Result<(), ElicitError> + Send + Sync);

/// The backend that takes this call's questions to a person.
#[derive(Debug, Clone)]
pub(crate) enum Backend {
    Pushed(Arc<pushed::Pushed>),
    Rounds(Arc<rounds::Rounds>),
    Task(Arc<task::InTask>),
    CannotAsk(cannot_ask::Unavailable),
    Script(Arc<script::AnswerScript>),
}

/// A response, with the facts that the backend needs when its answer is judged.
#[derive(Debug)]
pub(crate) struct AskResult {
    pub(crate) given: ReceivedAnswer,
    /// For [`Backend::wrong`]; only rounds uses it.
    slot: Option<crate::journal::OccurrenceKey>,
    /// The number of the answer in a test's script.
    number: Option<usize>,
    /// The time that the question was open, as far as this backend can tell.
    pub(crate) open_for: std::time::Duration,
    /// `true` if an earlier run already saw this response, so that it is not audited again.
    pub(crate) known: bool,
}

impl Backend {
    /// Asks `question` and waits for the response.
    pub(crate) async fn put(
        &self,
        question: &OutgoingQuestion,
        admit: AdmitFn<'_>,
    ) -> Result<AskResult, ElicitError> {
        match self {
            Self::Pushed(pushed) => pushed.put(question, admit).await,
            Self::Rounds(rounds) => rounds.put(question, admit).await,
            Self::Task(task) => task.put(question, admit).await,
            Self::CannotAsk(unavailable) => Err(unavailable.refuse(question.mode())),
            Self::Script(script) => script.put(question, admit).await,
        }
    }

    /// Fails if this backend cannot ask in the question's mode, before anything is sent.
    pub(crate) fn can_put(&self, question: &OutgoingQuestion) -> Result<(), ElicitError> {
        let capability = match self {
            Self::Pushed(pushed) => pushed.capability(),
            Self::Rounds(rounds) => rounds.capability(),
            Self::Task(task) => task.capability(),
            Self::CannotAsk(unavailable) => return Err(unavailable.refuse(question.mode())),
            Self::Script(script) => return script.can_put(question.mode()),
        };
        cannot_ask::declared(capability, question.mode(), self.revision())
    }

    /// Records that the response to a question broke its rules.
    pub(crate) fn wrong(&self, put: &AskResult, reasons: &str) {
        match (self, put.slot, put.number) {
            (Self::Rounds(rounds), Some(slot), _) => rounds.wrong(slot, reasons),
            (Self::Script(script), _, Some(number)) => script.wrong(number, reasons),
            _ => {}
        }
    }

    /// Records that the answer to a question passed the author's own check.
    pub(crate) fn passed(&self, put: &AskResult) {
        if let (Self::Rounds(rounds), Some(slot)) = (self, put.slot) {
            rounds.passed(slot);
        }
    }

    /// Returns the result of the step `name` from an earlier run, or permission to run it now.
    pub(crate) fn begin_step(&self, name: &str) -> StepTurn {
        match self {
            Self::Rounds(rounds) => rounds.begin_step(name),
            Self::Script(script) => StepTurn::Run(script.begin_step(name)),
            Self::Pushed(_) | Self::Task(_) | Self::CannotAsk(_) => {
                StepTurn::Run(StepMemory::Nowhere)
            }
        }
    }

    /// Returns the wait of this call, for work that is not a question. `None` in a task, whose caller polls it and
    /// needs no progress.
    pub(crate) fn call_wait(&self) -> Option<&call_wait::CallWait> {
        match self {
            Self::Pushed(pushed) => Some(pushed.call_wait()),
            Self::Rounds(rounds) => Some(rounds.call_wait()),
            Self::CannotAsk(unavailable) => unavailable.call_wait.as_deref(),
            Self::Task(_) | Self::Script(_) => None,
        }
    }

    pub(crate) fn revision(&self) -> Revision {
        match self {
            Self::Pushed(pushed) => pushed.revision(),
            Self::Rounds(rounds) => rounds.revision(),
            Self::Task(task) => task.revision(),
            Self::CannotAsk(unavailable) => unavailable.revision(),
            Self::Script(_) => Revision::LATEST,
        }
    }

    /// Returns `true` if a URL that must be visited first ends the call with an error: only in 2025-11-25.
    pub(crate) fn turns_away(&self) -> bool {
        matches!(self, Self::Pushed(pushed) if pushed.revision() == Revision::V2025_11_25)
    }

    /// Returns the backend's name in the audit.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Pushed(_) => "pushed",
            Self::Rounds(_) => "rounds",
            Self::Task(_) => "task",
            Self::CannotAsk(_) => "cannot-ask",
            Self::Script(_) => "script",
        }
    }
}

/// The result of a step that ran before, or permission to run it.
pub(crate) enum StepTurn {
    /// The step ran before, with this result.
    Remembered(Box<RawValue>),
    /// The step has to run now. In rounds, the run is not ended while the memory lives.
    Run(StepMemory),
}

/// The storage for the result of a step that runs now.
pub(crate) enum StepMemory {
    /// Not stored: the handler does not run again.
    Nowhere,
    /// Stored in the journal of the call.
    Journal(rounds::StepGuard),
    /// Stored in the log of a test.
    Log(script::StepLog),
}

impl StepMemory {
    /// Returns `true` if the result is stored at all.
    pub(crate) fn is_stored(&self) -> bool {
        !matches!(self, Self::Nowhere)
    }

    /// Stores the step's result for later runs.
    pub(crate) fn remember(self, value: Box<RawValue>) {
        match self {
            Self::Nowhere => {}
            Self::Journal(guard) => guard.remember(value),
            Self::Log(log) => log.remember(value),
        }
    }
}

impl AskResult {
    pub(crate) fn fresh(given: ReceivedAnswer, open_for: std::time::Duration) -> Self {
        Self {
            given,
            slot: None,
            number: None,
            open_for,
            known: false,
        }
    }

    /// Marks it as the answer of this number in a test's script.
    fn of_script(mut self, number: usize) -> Self {
        self.number = Some(number);
        self
    }
}
