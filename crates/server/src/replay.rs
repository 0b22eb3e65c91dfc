//! A handler under test, run on either era: once, with the answers given during the run, and again from the top for
//! each round of answers.

use std::fmt;
use std::sync::Arc;

use mcp_elicit_core::wire::{Capability, Revision};
use rmcp::model::InputResponses;
use serde_json::{Value, json};

use crate::backend::Backend;
use crate::backend::call_wait::CallWait;
use crate::backend::rounds::{ChangedQuestion, RetryInput, Rounds, RunResult};
use crate::backend::script::{AnswerScript, Logged, RunLog};
use crate::elicit::{CallParts, Elicit};
use crate::journal::{Journal, OccurrenceKey, SentQuestion};
use crate::settings::{ServerSettings, SharedSettings};
use crate::testing::{RunError, ScriptedAnswer};

/// A difference between a handler that runs once and the same handler run again from the top for each round of answers,
/// as on 2026-07-28.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use mcp_elicit_server::testing::{Difference, RunError, ScriptedAnswer, ScriptedUser};
/// use mcp_elicit_server::{Elicit, ElicitError};
///
/// let runs = AtomicU32::new(0);
/// let handler = async |elicit: Elicit| {
///     // Not in a step, so each run counts.
///     let run = runs.fetch_add(1, Ordering::Relaxed);
///     elicit.confirm("Go on?").await?;
///     Ok::<_, ElicitError>(run)
/// };
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// let user = ScriptedUser::answering([ScriptedAnswer::yes()]);
/// let found = user.run(handler);
/// # let found = runtime.block_on(found);
/// assert!(matches!(found, Err(RunError::Difference(Difference::Result { .. }))));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Difference {
    /// The handler ends differently.
    #[error(
        "run once, the handler ends with {once}; run again for each round of answers, it ends with {again}: what must \
         happen once, or may change from run to run, belongs in a step"
    )]
    Result {
        /// The result of a single run (2025-06-18, 2025-11-25).
        once: String,
        /// The result of repeated runs (2026-07-28).
        again: String,
    },
    /// The handler asks something else.
    #[error(
        "the handler asks {now:?} where it asked {was:?}: a question is the same in every run; put what changes into a step"
    )]
    Question {
        /// The question of the previous run.
        was: String,
        /// The question that is asked instead.
        now: String,
    },
    /// The handler asks one question more than in a single run.
    #[error(
        "run again for each round of answers, the handler asks {question:?}, which it does not ask otherwise"
    )]
    Added {
        /// The question.
        question: String,
    },
    /// The handler does not ask a question that it asks in a single run.
    #[error(
        "run again for each round of answers, the handler does not ask {question:?}, which it asks otherwise"
    )]
    Missing {
        /// The question.
        question: String,
    },
    /// The handler does not come to an end.
    #[error("run again for each round of answers, the handler does not end in {rounds} rounds")]
    Endless {
        /// The number of rounds it was given.
        rounds: u32,
    },
}

/// Runs `handler` on both eras with the same answers. Returns its result, which must be the same.
pub(crate) async fn on_both_eras<R, F, Fut>(
    script: &AnswerScript,
    settings: &ServerSettings,
    handler: F,
) -> Result<R, RunError>
where
    R: fmt::Debug,
    F: Fn(Elicit) -> Fut,
    Fut: Future<Output = R>,
{
    let log = RunLog::default();
    let backend = Backend::Script(Arc::new(script.logged(log.clone())));
    let once = handler(Elicit::by(settings.clone().shared(), backend)).await;
    if let Some(fault) = script.fault() {
        return Err(fault.into());
    }
    let questions = log.questions();
    // Without a question it runs once on every revision.
    if questions.is_empty() {
        return Ok(once);
    }
    let replay = RunReplay {
        shared: settings.clone().for_replay().shared(),
        capability: script.capability(),
        log,
        questions,
        sent: Vec::new(),
    };
    let again = replay.run(handler).await?;
    let (once_said, again_said) = (format!("{once:?}"), format!("{again:?}"));
    if once_said == again_said {
        return Ok(once);
    }
    Err(Difference::Result {
        once: once_said,
        again: again_said,
    }
    .into())
}

struct RunReplay {
    shared: Arc<SharedSettings>,
    capability: Capability,
    log: RunLog,
    questions: Vec<Logged>,
    /// The questions sent so far.
    sent: Vec<OccurrenceKey>,
}

impl RunReplay {
    async fn run<R, F, Fut>(mut self, handler: F) -> Result<R, Difference>
    where
        F: Fn(Elicit) -> Fut,
        Fut: Future<Output = R>,
    {
        let limit = self.shared.settings.questions_per_call;
        let mut journal = Journal::default();
        let mut responses = InputResponses::default();
        for _ in 0..=limit {
            let brought = RetryInput {
                journal,
                had_state: true,
                responses,
            };
            let now_ms = self.shared.settings.now_ms();
            let call_wait = Arc::new(CallWait::without_client());
            let (rounds, _) = Rounds::new(
                Revision::LATEST,
                self.capability,
                now_ms,
                call_wait,
                brought,
            );
            let rounds = Arc::new(rounds.with_log(self.log.clone()));
            let elicit = self.elicit(&rounds);
            match rounds.drive(std::pin::pin!(handler(elicit))).await {
                RunResult::Finished(result) => return self.all_sent().map(|()| result),
                RunResult::Changed(ChangedQuestion { was, now }) => {
                    return Err(Difference::Question { was, now });
                }
                RunResult::Waiting(_) => {
                    (journal, responses) = self.answer(carried(&rounds.take_journal()))?;
                }
            }
        }
        Err(Difference::Endless { rounds: limit })
    }

    fn elicit(&self, rounds: &Arc<Rounds>) -> Elicit {
        Elicit::new(CallParts::new(
            Arc::clone(&self.shared),
            Backend::Rounds(Arc::clone(rounds)),
            "tools/call",
            "test".into(),
            None,
            self.capability,
        ))
    }

    /// Answers the open questions as in the first run.
    fn answer(&mut self, mut journal: Journal) -> Result<(Journal, InputResponses), Difference> {
        let mut responses = InputResponses::default();
        for mut out in journal.take_out() {
            let logged = self.questions.iter().find(|logged| logged.slot == out.slot);
            let Some(answer) = logged.and_then(|logged| logged.answer.clone()) else {
                return Err(self.not_logged(&out));
            };
            self.sent.push(out.slot);
            if let ScriptedAnswer::Silence = answer {
                (out.since_ms, out.for_ms) = (0, 0);
            }
            responses.insert(out.key.clone(), response(answer));
            journal.send_out(out);
        }
        Ok((journal, responses))
    }

    /// Returns the difference for a question that the first run did not ask: in place of the next expected one, or
    /// after all of them.
    fn not_logged(&self, out: &SentQuestion) -> Difference {
        let now = out.message.clone();
        match self.to_come() {
            Some(logged) => Difference::Question {
                was: logged.message.clone(),
                now,
            },
            None => Difference::Added { question: now },
        }
    }

    fn to_come(&self) -> Option<&Logged> {
        let mut logged = self.questions.iter();
        logged.find(|logged| !self.sent.contains(&logged.slot))
    }

    fn all_sent(&self) -> Result<(), Difference> {
        self.to_come().map_or(Ok(()), |logged| {
            Err(Difference::Missing {
                question: logged.message.clone(),
            })
        })
    }
}

/// Returns the journal as it comes back in the state.
fn carried(journal: &Journal) -> Journal {
    let text = serde_json::to_string(journal);
    let read = text.and_then(|text| serde_json::from_str(&text));
    // The text was just written, so it is readable; otherwise the run starts again, and the difference is reported.
    read.unwrap_or_default()
}

fn response(answer: ScriptedAnswer) -> Value {
    match answer {
        ScriptedAnswer::Accept(content) => json!({ "action": "accept", "content": content }),
        // A late difference is not reported.
        ScriptedAnswer::Visit | ScriptedAnswer::Silence => json!({ "action": "accept" }),
        ScriptedAnswer::Decline => json!({ "action": "decline" }),
        ScriptedAnswer::Cancel => json!({ "action": "cancel" }),
    }
}
