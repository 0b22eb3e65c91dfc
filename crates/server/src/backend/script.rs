//! Answers given as values, for testing handlers without a transport. See [`crate::testing`].

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use mcp_elicit_core::wire::{Capability, Mode, Revision};
use serde_json::value::RawValue;

use super::question_params::beginning;
use super::{AdmitFn, AskResult, StepMemory, cannot_ask};
use crate::error::ElicitError;
use crate::journal::{ActionWord, OccurrenceKey, ReceivedAnswer, StoredResult};
use crate::question::{OutgoingBody, OutgoingQuestion, QuestionDigest};
use crate::testing::{AskedQuestion, ScriptedAnswer, ScriptedUserError};

/// The scripted user's answers, in order, and the questions so far.
#[derive(Debug)]
pub(crate) struct AnswerScript {
    capability: Capability,
    stand: Arc<Mutex<ScriptState>>,
    /// The log of this run, if the run is to be repeated.
    log: Option<RunLog>,
}

#[derive(Debug, Default)]
struct ScriptState {
    answers: VecDeque<ScriptedAnswer>,
    asked: Vec<AskedQuestion>,
    /// The number of the last answer that did not fit its form, with the reasons.
    misfit: Option<(usize, String)>,
    /// The first fault of the script.
    fault: Option<ScriptedUserError>,
}

impl AnswerScript {
    pub(crate) fn new(
        capability: Capability,
        answers: impl IntoIterator<Item = ScriptedAnswer>,
    ) -> Self {
        let stand = ScriptState {
            answers: answers.into_iter().collect(),
            ..ScriptState::default()
        };
        Self {
            capability,
            stand: Arc::new(Mutex::new(stand)),
            log: None,
        }
    }

    /// Returns the same user, whose answers are written to `log` in this run.
    pub(crate) fn logged(&self, log: RunLog) -> Self {
        Self {
            capability: self.capability,
            stand: Arc::clone(&self.stand),
            log: Some(log),
        }
    }

    pub(crate) fn capability(&self) -> Capability {
        self.capability
    }

    pub(crate) fn asked(&self) -> Vec<AskedQuestion> {
        self.lock().asked.clone()
    }

    pub(crate) fn can_put(&self, mode: Mode) -> Result<(), ElicitError> {
        cannot_ask::declared(self.capability, mode, Revision::LATEST)
    }

    pub(crate) async fn put(
        &self,
        question: &OutgoingQuestion,
        admit: AdmitFn<'_>,
    ) -> Result<AskResult, ElicitError> {
        admit()?;
        let (number, answer) = {
            let mut stand = self.lock();
            stand.asked.push(asked(question)?);
            (stand.asked.len(), stand.answers.pop_front())
        };
        if let Some(log) = &self.log {
            log.question(question, answer.as_ref());
            // As with a client, concurrent questions are all asked before any is answered.
            yield_once().await;
        }
        let Some(answer) = answer else {
            return Err(ElicitError::Author(self.too_short(number).to_string()));
        };
        match answer.given()? {
            Some(given) => Ok(AskResult::fresh(given, Duration::ZERO).of_script(number)),
            None => Err(ElicitError::TimedOut {
                after: question.timeout,
            }),
        }
    }

    /// Records that this answer did not fit its form.
    pub(crate) fn wrong(&self, number: usize, reasons: &str) {
        let reasons = crate::ask::on_one_line(reasons);
        self.lock().misfit = Some((number, reasons));
    }

    /// Returns the fault of a script without an answer to this question.
    fn too_short(&self, number: usize) -> ScriptedUserError {
        let mut stand = self.lock();
        let fault = match stand.misfit.take() {
            Some((answer, why)) => ScriptedUserError::Misfit { answer, why },
            None => ScriptedUserError::TooShort {
                question: number,
                message: stand
                    .asked
                    .get(number - 1)
                    .map(|asked| beginning(&asked.message))
                    .unwrap_or_default(),
            },
        };
        stand.fault.get_or_insert(fault).clone()
    }

    /// Returns the fault of the script after a run, if it has one.
    pub(crate) fn fault(&self) -> Option<ScriptedUserError> {
        let stand = self.lock();
        let unused = || match stand.answers.len() {
            0 => None,
            left => Some(ScriptedUserError::Unused { left }),
        };
        stand.fault.clone().or_else(unused)
    }

    /// Returns the storage for the result of the step `name`.
    pub(crate) fn begin_step(&self, name: &str) -> StepMemory {
        match &self.log {
            Some(log) => StepMemory::Log(log.begin_step(name)),
            None => StepMemory::Nowhere,
        }
    }

    fn lock(&self) -> MutexGuard<'_, ScriptState> {
        self.stand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScriptedAnswer {
    /// Returns the response as it is received; `None` if there is none.
    fn given(&self) -> Result<Option<ReceivedAnswer>, ElicitError> {
        let (action, content) = match self {
            Self::Accept(content) => {
                let content = serde_json::value::to_raw_value(content);
                let content = content.map_err(|error| ElicitError::Author(error.to_string()))?;
                (ActionWord::Accept, Some(content))
            }
            Self::Visit => (ActionWord::Accept, None),
            Self::Decline => (ActionWord::Decline, None),
            Self::Cancel => (ActionWord::Cancel, None),
            Self::Silence => return Ok(None),
        };
        Ok(Some(ReceivedAnswer::Result(StoredResult {
            action,
            content,
        })))
    }
}

/// The log of a handler's first run: questions with their answers, and the results of steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunLog(Arc<Mutex<LogEntries>>);

#[derive(Default)]
struct LogEntries {
    questions: Vec<Logged>,
    asked: HashMap<QuestionDigest, u32>,
    steps: HashMap<String, u32>,
    results: HashMap<(String, u32), Box<RawValue>>,
}

impl std::fmt::Debug for LogEntries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogEntries").finish_non_exhaustive()
    }
}

/// A question of the first run. The answer is absent if the script had none.
#[derive(Clone)]
pub(crate) struct Logged {
    pub(crate) slot: OccurrenceKey,
    pub(crate) message: String,
    pub(crate) answer: Option<ScriptedAnswer>,
}

impl RunLog {
    fn question(&self, question: &OutgoingQuestion, answer: Option<&ScriptedAnswer>) {
        let digest = question.digest();
        let mut entries = self.lock();
        let count = entries.asked.entry(digest).or_default();
        let occurrence = *count;
        *count += 1;
        entries.questions.push(Logged {
            slot: OccurrenceKey { digest, occurrence },
            message: beginning(&question.message),
            answer: answer.cloned(),
        });
    }

    pub(crate) fn questions(&self) -> Vec<Logged> {
        self.lock().questions.clone()
    }

    fn begin_step(&self, name: &str) -> StepLog {
        let mut entries = self.lock();
        let count = entries.steps.entry(name.to_owned()).or_default();
        let occurrence = *count;
        *count += 1;
        StepLog {
            log: self.clone(),
            name: name.to_owned(),
            occurrence,
        }
    }

    /// Returns the result of the step `name` in its `occurrence`th call.
    pub(crate) fn step(&self, name: &str, occurrence: u32) -> Option<Box<RawValue>> {
        let entries = self.lock();
        entries.results.get(&(name.to_owned(), occurrence)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, LogEntries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running step of the first run.
pub(crate) struct StepLog {
    log: RunLog,
    name: String,
    occurrence: u32,
}

impl StepLog {
    pub(crate) fn remember(self, value: Box<RawValue>) {
        let key = (self.name, self.occurrence);
        self.log.lock().results.insert(key, value);
    }
}

/// Yields once, on any runtime.
async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn asked(question: &OutgoingQuestion) -> Result<AskedQuestion, ElicitError> {
    let message = question.message.clone();
    Ok(match &question.subject {
        OutgoingBody::Form(form) => AskedQuestion {
            message,
            schema: Some(form.schema(Revision::LATEST)?),
            url: None,
        },
        OutgoingBody::Url { url, .. } => AskedQuestion {
            message,
            schema: None,
            url: Some(url.clone()),
        },
    })
}
