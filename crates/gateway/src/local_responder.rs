//! The responder that is asked at once, beside the inbox: the person at the operator's terminal, or a program of the
//! operator's.
//!
//! A question is in the record before it comes here. It is put before one responder of the client crate, one question at
//! a time, and whatever the responder brings goes through the record like any other answer: the first valid act wins. A
//! responder that breaks is not an answer of a person's: the question stays in the inbox, or fails where there is none.

use mcp_elicit_core::answer::{Outcome, OutcomeMisfit};
use mcp_elicit_core::question::Ending;
use mcp_elicit_core::wire::Revision;
use mcp_elicit_inbox::record_question_store::RecordQuestionStore;
use mcp_elicit_record::{Commit, Record, RecordEvent, SessionKey};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_elicit_client::QuestionQueue;
use mcp_elicit_client::answer::{Answer, AnswerMisfit};
use mcp_elicit_client::question::Question;
use mcp_elicit_client::responder::{Responder, ResponderError};
use tokio::sync::{RwLock, mpsc, watch};

/// Questions of the record, put before a responder on this machine.
pub(crate) struct LocalResponses {
    record: Arc<Record>,
    store: RecordQuestionStore,
    responder: Arc<dyn Responder>,
    queue: QuestionQueue,
    /// `true` if there is no inbox that a question could wait in.
    alone: bool,
    /// The servers whose every later question the person declined, as long as this gateway runs.
    declined: Mutex<BTreeSet<String>>,
    /// `true` as soon as the gateway stops.
    stopping: watch::Sender<bool>,
    /// Shared by the questions that are before the responder.
    asking: RwLock<()>,
}

/// The longest time that the responder may take to put its things away at the end.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Why a question was not answered here.
enum NoAnswer {
    /// It is answered elsewhere, taken back, or waited for by nobody.
    Gone,
    /// The responder could not.
    Failed(ResponderError),
}

impl LocalResponses {
    /// Puts questions of this record before the responder; `alone` when there is no inbox beside it.
    pub(crate) fn new(
        record: Arc<Record>,
        responder: Arc<dyn Responder>,
        alone: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            store: RecordQuestionStore::new(record.clone()),
            record,
            responder,
            queue: QuestionQueue::new(),
            alone,
            declined: Mutex::default(),
            stopping: watch::Sender::new(false),
            asking: RwLock::new(()),
        })
    }

    /// Takes every question away from the responder, and gives it the time to leave a terminal as it was.
    pub(crate) async fn stop(&self) {
        self.stopping.send_replace(true);
        let ended = tokio::time::timeout(END_WITHIN, self.asking.write()).await;
        if ended.is_err() {
            tracing::warn!(responder = %self.responder.name(), "a question could not be taken away in time");
        }
    }

    /// Asks, on a task of its own. `tell` hears when the question fails.
    pub(crate) fn ask(
        self: &Arc<Self>,
        record: String,
        question: SessionKey,
        tell: mpsc::UnboundedSender<RecordEvent>,
    ) {
        let this = self.clone();
        tokio::spawn(async move {
            let _asking = this.asking.read().await;
            match this.put(&record).await {
                Ok(()) | Err(NoAnswer::Gone) => {}
                Err(NoAnswer::Failed(why)) => this.failed(&record, question, &tell, &why).await,
            }
        });
    }

    /// Puts the question before the responder, and its answer into the record.
    async fn put(&self, record: &str) -> Result<(), NoAnswer> {
        let broken = |why: &str| NoAnswer::Failed(ResponderError::failed(why));
        let row = match self.record.find(record).await {
            Ok(Some(row)) => row,
            Ok(None) => return Err(NoAnswer::Gone),
            Err(_) => return Err(broken("the record cannot be read")),
        };
        let Ok(Some(readable)) = self.store.readable(&row) else {
            return Err(broken("the question cannot be read"));
        };
        let (question, withdrawal) = Question::from_record(
            readable.question,
            readable.request,
            Revision::LATEST,
            self.queue.clone(),
        );
        // Pinned out here, so that the reason is known before the responder is dropped.
        let mut stopping = self.stopping.subscribe();
        let mut answering = std::pin::pin!(self.in_turn(record, &question));
        let answer = tokio::select! {
            answer = &mut answering => answer.map_err(NoAnswer::Failed)?,
            why = self.gone(record) => {
                withdrawal.withdraw(why);
                return Err(NoAnswer::Gone);
            }
            _ = stopping.wait_for(|stopping| *stopping) => {
                withdrawal.withdraw("the gateway has ended");
                return Err(NoAnswer::Gone);
            }
        };
        let outcome = checked(&question, &answer).map_err(NoAnswer::Failed)?;
        match self
            .record
            .submit(record, &outcome, &self.responder.name(), Commit::Awaited)
            .await
        {
            // Whether it won or came late, the record has told whoever waits.
            Ok(_) => Ok(()),
            Err(_) => Err(broken("the answer could not be recorded")),
        }
    }

    async fn in_turn(&self, record: &str, question: &Question) -> Result<Answer, ResponderError> {
        let entry = self.queue.enter(question);
        let _turn = entry.turn().await;
        let server = question.shown().origin().server();
        // What the person said to a question before was said to this one too, so it is not shown.
        if self.declined().contains(&server) {
            return Ok(Outcome::Decline.into());
        }
        if let Err(fault) = self.record.mark_shown(record).await {
            tracing::warn!(%fault, "the record does not know that a question was shown");
        }
        let answer = self.responder.respond(question).await?;
        if answer.is_always() {
            self.declined().insert(server.clone());
            tracing::warn!(
                server,
                "every later question of this server is declined until this gateway ends"
            );
        }
        Ok(answer)
    }

    fn declined(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.declined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes when the question is no longer to be asked here, with the reason in words for a person.
    async fn gone(&self, record: &str) -> &'static str {
        let mut changes = self.record.changes();
        loop {
            match self.record.find(record).await {
                Ok(Some(row)) if !row.lifecycle.is_open() => {
                    return "it was answered elsewhere or withdrawn";
                }
                Ok(Some(row)) if !self.record.is_waited_for(&row) => {
                    return "no call waits for the answer any more";
                }
                Ok(None) => return "it is not in the record any more",
                Ok(Some(_)) | Err(_) => {}
            }
            if changes.changed().await.is_err() {
                return "the gateway has ended";
            }
        }
    }

    async fn failed(
        &self,
        record: &str,
        question: SessionKey,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        why: &ResponderError,
    ) {
        let responder = self.responder.name();
        if !self.alone {
            tracing::warn!(%responder, %why, "no answer; the question stays in the inbox");
            return;
        }
        tracing::warn!(%responder, %why, "no answer");
        let ending = Ending::AnswererFailed;
        if let Err(fault) = self.record.end(record, ending).await {
            tracing::error!(%fault, "the record could not be kept");
        }
        // A session that is gone asks no more.
        let _ = tell.send(RecordEvent::Ended { question, ending });
    }
}

/// The outcome, checked again.
fn checked(question: &Question, answer: &Answer) -> Result<Outcome, ResponderError> {
    answer.check_again(question).map_err(|misfit| match misfit {
        AnswerMisfit::Outcome(OutcomeMisfit::OtherMode) => {
            ResponderError::failed(misfit.to_string())
        }
        AnswerMisfit::Outcome(OutcomeMisfit::Violations(violations)) => {
            ResponderError::Refused { violations }
        }
        AnswerMisfit::CredentialNotAllowed { .. } => ResponderError::cannot_show(
            "it asks for a credential, which was not explicitly allowed",
        ),
    })
}
