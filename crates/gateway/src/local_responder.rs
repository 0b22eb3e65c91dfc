//! A responder besides the inbox: the person at the operator's terminal, or a program of the operator.
//!
//! A question is in the record before it comes here. It is shown by one responder of the client crate, and the
//! responder's answer goes through the record like any other: the first valid action wins. A failed responder is not a
//! person's answer: the question stays in the inbox, or fails if there is none.
//!
//! A person at the terminal is asked one question at a time. Programs run side by side, up to [`MOST_PROGRAMS`]: one that
//! does not end keeps no other question waiting. It is killed when its question ends or no call waits any more.

use mcp_elicit_core::answer::{Outcome, OutcomeMisfit};
use mcp_elicit_core::question::Ending;
use mcp_elicit_core::wire::Revision;
use mcp_elicit_inbox::record_question_store::RecordQuestionStore;
use mcp_elicit_record::{Durability, Record, RecordEvent, SessionKey};
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_elicit_client::QuestionQueue;
use mcp_elicit_client::answer::{Answer, AnswerMisfit};
use mcp_elicit_client::question::Question;
use mcp_elicit_client::responder::{Command, Responder, ResponderError, Terminal};
use tokio::sync::{RwLock, Semaphore, mpsc, watch};

use crate::transports::process::Program;
use crate::transports::server_stderr::StderrReader;

/// Questions of the record, asked by a responder on this machine.
pub(crate) struct LocalResponses {
    record: Arc<Record>,
    store: RecordQuestionStore,
    responder: Arc<dyn Responder>,
    queue: QuestionQueue,
    /// The questions that may be asked at once.
    turns: Semaphore,
    /// `true` if there is no inbox in which a question could wait.
    alone: bool,
    /// The servers that the person declined permanently, while this gateway runs.
    declined: Mutex<BTreeSet<String>>,
    /// `true` once the gateway stops.
    stopping: watch::Sender<bool>,
    /// Read-locked by the questions at the responder.
    asking: RwLock<()>,
}

/// The time that the responder has to clean up at the end.
const END_WITHIN: Duration = Duration::from_secs(2);

/// The most programs that are asked about the questions of one server at once.
const MOST_PROGRAMS: usize = 16;

/// The reason why a question was not answered here.
enum NoAnswer {
    /// It is answered elsewhere, withdrawn, or its call no longer waits.
    Gone,
    /// The responder failed.
    Failed(ResponderError),
}

impl LocalResponses {
    /// Creates the responses of the person at this terminal; `alone` if there is no inbox.
    pub(crate) fn of_terminal(record: Arc<Record>, terminal: Terminal, alone: bool) -> Arc<Self> {
        Self::new(record, Arc::new(terminal), 1, alone)
    }

    /// Creates the responses of this program to the questions of a server, with its stderr in the log; `alone` if there
    /// is no inbox.
    pub(crate) fn of_program(
        record: Arc<Record>,
        program: &Program,
        server: &str,
        alone: bool,
    ) -> io::Result<Arc<Self>> {
        let (stderr, writer) = io::pipe()?;
        StderrReader::start(stderr, &format!("{server} (answer-command)"))?;
        let command = Command::new(&program.program, &program.arguments)
            .environment(program.variables())
            .stderr(writer);
        Ok(Self::new(record, Arc::new(command), MOST_PROGRAMS, alone))
    }

    fn new(
        record: Arc<Record>,
        responder: Arc<dyn Responder>,
        at_once: usize,
        alone: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            store: RecordQuestionStore::new(record.clone()),
            record,
            responder,
            queue: QuestionQueue::new(),
            turns: Semaphore::new(at_once),
            alone,
            declined: Mutex::default(),
            stopping: watch::Sender::new(false),
            asking: RwLock::new(()),
        })
    }

    /// Withdraws every question from the responder, and lets it restore the terminal.
    pub(crate) async fn stop(&self) {
        self.stopping.send_replace(true);
        let ended = tokio::time::timeout(END_WITHIN, self.asking.write()).await;
        if ended.is_err() {
            tracing::warn!(responder = %self.responder.name(), "a question could not be taken away in time");
        }
    }

    /// Asks in a separate task. `tell` receives the failure of the question.
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

    /// Shows the question with the responder, and submits its answer to the record.
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
        // Pinned here, so that the reason is known before the responder is dropped.
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
            .submit(
                record,
                &outcome,
                &self.responder.name(),
                Durability::WithDelivery,
            )
            .await
        {
            // In either case (won or late), the record has notified the waiting call.
            Ok(_) => Ok(()),
            Err(_) => Err(broken("the answer could not be recorded")),
        }
    }

    async fn in_turn(&self, record: &str, question: &Question) -> Result<Answer, ResponderError> {
        let _entry = self.queue.enter(question);
        let _turn = self.turns.acquire().await;
        let server = question.shown().origin().server();
        // The answer to an earlier question covers this one too, so it is not shown.
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
        let ending = Ending::ResponderFailed;
        if let Err(fault) = self.record.end(record, ending).await {
            tracing::error!(%fault, "the record could not be kept");
        }
        // A session that has ended asks no further questions.
        let _ = tell.send(RecordEvent::Ended { question, ending });
    }
}

/// Returns the outcome, checked again: a responder may hold the answers of another form, and a form that asks for a
/// credential is accepted only if the person allows it.
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
