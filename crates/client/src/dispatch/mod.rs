//! The pipeline of a question, in every era: from the server's request to its response.
//!
//! Read, limits, policy, queue, responder, check, record: in this order, each step in its own file.

mod error;
mod limit;
mod observer;
mod queue;
mod settings;

use std::time::{Duration, SystemTime};

use mcp_elicit_core::answer::{Outcome, OutcomeMisfit, Violations};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::secrecy;
use mcp_elicit_core::view;
use mcp_elicit_core::wire::{Capability, ElicitRequest, Mode, Revision};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use error::{Blame, QuestionError};
pub use limit::{LimitReached, QuestionLimits};
pub use observer::Observer;
pub use queue::{Pending, QuestionQueue, QueueEntry};
pub use settings::ClientSettings;

use crate::answer::{Answer, AnswerMisfit};
use crate::connection_state::ConnectionState;
use crate::consent::{Consent, ConsentRule, StandingAnswer};
use crate::question::{self, Question, WithdrawHandle};
use crate::responder::ResponderError;
use limit::RateLimiter;

/// The reason given when a question is withdrawn because its call no longer waits for it.
pub(crate) const CALL_OVER: &str = "its call is over";

/// A received question, with the connection's data about it.
pub(crate) struct Incoming<'a> {
    pub(crate) params: &'a RawValue,
    pub(crate) revision: Revision,
    pub(crate) origin: view::Origin,
    pub(crate) call: Option<view::CallView>,
    /// Each of these tokens withdraws the question for its reason when it is cancelled.
    pub(crate) ends: Vec<(CancellationToken, &'static str)>,
    pub(crate) line: &'a ConnectionState,
}

/// The dispatcher of one server.
pub(crate) struct Dispatcher {
    server: String,
    settings: ClientSettings,
    limiter: RateLimiter,
}

/// The characters of a message that an error repeats.
const SHOWN: usize = 60;

impl Dispatcher {
    pub(crate) fn new(server: String, settings: ClientSettings) -> Self {
        Self {
            server,
            settings,
            limiter: RateLimiter::default(),
        }
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    pub(crate) fn queue(&self) -> &QuestionQueue {
        &self.settings.queue
    }

    pub(crate) fn rounds(&self) -> usize {
        self.settings.rounds
    }

    /// Returns the modes to declare to the server: those that the responder can show and the policy allows.
    pub(crate) fn modes(&self) -> Capability {
        match &self.settings.responder {
            Some(responder) => responder.modes().and(self.rule().modes()),
            None => Capability::NONE,
        }
    }

    fn rule(&self) -> ConsentRule {
        let mut rule = self.settings.consent.rule(&self.server);
        if self.settings.queue.has_declined(&self.server) {
            rule.answer = Some(StandingAnswer::Decline);
        }
        rule
    }

    /// Shows the question to the person and returns the answer for the server.
    pub(crate) async fn ask(&self, incoming: Incoming<'_>) -> Result<Answer, QuestionError> {
        let question = match self.read(incoming.params, &incoming) {
            Ok(question) => question,
            Err(refusal) => {
                self.refused(None, &refusal);
                return Err(refusal);
            }
        };
        let mut unfinished = UnfinishedQuestion {
            dispatcher: self,
            question: &question,
            ended: false,
        };
        // On the heap: it is the largest part of every call.
        let outcome = Box::pin(self.answer(&question, &incoming)).await;
        unfinished.ended = true;
        match &outcome {
            Ok(answer) => {
                for observer in &self.settings.observers {
                    observer.answered(&question, answer);
                }
            }
            Err(refusal) => self.refused(Some(&question), refusal),
        }
        outcome
    }

    fn refused(&self, question: Option<&Question>, refusal: &QuestionError) {
        for observer in &self.settings.observers {
            observer.refused(question, refusal);
        }
    }

    fn read(&self, params: &RawValue, incoming: &Incoming<'_>) -> Result<Question, QuestionError> {
        let revision = incoming.revision;
        let request = ElicitRequest::parse(params, revision)?;
        let mode = request.mode();
        let responder = self
            .settings
            .responder
            .as_ref()
            .filter(|responder| responder.modes().has(mode));
        if responder.is_none() {
            return Err(QuestionError::Undeclared {
                mode,
                declared: self.modes(),
            });
        }
        let (ask, suspicions) = match &request {
            ElicitRequest::Form { message, schema } => {
                let limits = &self.settings.form_limits;
                let form = Form::parse_leniently_with(schema.get(), limits).map_err(|defects| {
                    QuestionError::IllegalForm {
                        message: message.chars().take(SHOWN).collect(),
                        defects,
                    }
                })?;
                let suspicions = secrecy::inspect(&form, message);
                (view::QuestionBody::Form(form), suspicions)
            }
            ElicitRequest::Url { url, .. } => {
                (view::QuestionBody::Url(Link::parse(url)?), Vec::new())
            }
        };
        let mut shown = view::QuestionView::new(incoming.origin.clone(), request.message(), ask);
        if let Some(call) = &incoming.call {
            shown = shown.for_call(call.clone());
        }
        let id = question::number();
        Ok(Question {
            id,
            shown,
            request,
            revision,
            suspicions,
            violations: Violations::default(),
            withdrawal: WithdrawHandle::default(),
            queue: self.settings.queue.clone(),
        })
    }

    async fn answer(
        &self,
        question: &Question,
        incoming: &Incoming<'_>,
    ) -> Result<Answer, QuestionError> {
        let rule = self.rule();
        match question.shown.ask() {
            view::QuestionBody::Form(form) => {
                rule.allows_form(form, &question.suspicious_fields())?;
            }
            view::QuestionBody::Url(link) => rule.allows_link(link)?,
        }
        let _pass = self.limiter.admit(rule.limits(), Instant::now())?;
        for observer in &self.settings.observers {
            observer.asked(question);
        }
        if let Some(answer) = rule.standing_answer() {
            return Ok(answer);
        }
        // Registered before the question is shown: a server may announce the end of a visit before the person has come
        // back.
        if let Some(id) = question.elicitation_id() {
            incoming.line.knows_visit(id);
        }
        // Withdraws the question if this future ends early.
        let _gone = TakeBack(&question.withdrawal);
        // Pinned here, so that the reason is known before the responder is dropped.
        let mut answering = std::pin::pin!(self.in_turn(question));
        tokio::select! {
            answer = &mut answering => answer,
            why = first_of(&incoming.ends) => {
                question.withdrawal.withdraw(why);
                Err(QuestionError::Withdrawn { why: why.to_owned() })
            }
        }
    }

    async fn in_turn(&self, question: &Question) -> Result<Answer, QuestionError> {
        let place = self.settings.queue.enter(question);
        let has_own_queue = self
            .settings
            .responder
            .as_ref()
            .is_some_and(|responder| responder.has_own_queue());
        let _turn = if has_own_queue {
            None
        } else {
            place.turn().await
        };
        // The answer to the previous question may also have covered this one.
        if let Some(answer) = self.rule().standing_answer() {
            return Ok(answer);
        }
        let mut question = question.clone();
        question.shown = question.shown.clone().with_pending(question.behind());
        match self.settings.answer_within {
            None => self.responded(&question).await,
            Some(within) => {
                question.shown = until(question.shown, within);
                let mut responding = std::pin::pin!(self.responded(&question));
                tokio::select! {
                    // A frontend has the same deadline, and may notice first that it has passed.
                    answer = &mut responding => answer.map_err(|refusal| match refusal {
                        QuestionError::NoResponder { why: ResponderError::Expired, .. } => QuestionError::TimedOut { after: within },
                        other => other,
                    }),
                    () = tokio::time::sleep(within) => {
                        question.withdrawal.withdraw("the time to answer ran out");
                        Err(QuestionError::TimedOut { after: within })
                    }
                }
            }
        }
    }

    /// Asks, and checks the answer again: a responder may return the answer to another form.
    async fn responded(&self, question: &Question) -> Result<Answer, QuestionError> {
        let Some(responder) = &self.settings.responder else {
            return Err(QuestionError::Undeclared {
                mode: question.mode(),
                declared: Capability::NONE,
            });
        };
        let nobody = |why| QuestionError::NoResponder {
            mode: question.mode(),
            why,
        };
        let answer = responder.respond(question).await.map_err(nobody)?;
        answer
            .check_again(question)
            .map_err(|misfit| match misfit {
                AnswerMisfit::Outcome(OutcomeMisfit::OtherMode) => {
                    nobody(ResponderError::failed(misfit.to_string()))
                }
                AnswerMisfit::Outcome(OutcomeMisfit::Violations(violations)) => {
                    QuestionError::WrongAnswer(violations)
                }
                AnswerMisfit::CredentialNotAllowed { fields } => {
                    QuestionError::CredentialNotAllowed { fields }
                }
            })?;
        if answer.is_always() {
            self.decline_always();
        }
        Ok(answer.with_responder(responder.name()))
    }

    /// Completes when the person says that the agreed visits are done.
    pub(crate) async fn visited(&self, hosts: &[String]) -> Result<(), QuestionError> {
        let Some(responder) = &self.settings.responder else {
            return std::future::pending().await;
        };
        responder
            .visited(hosts)
            .await
            .map_err(|why| QuestionError::NoResponder {
                mode: Mode::Url,
                why,
            })
    }

    /// Records that the person permanently declined this server.
    pub(crate) fn decline_always(&self) -> Consent {
        let policy = self.settings.consent.clone();
        let queue = &self.settings.queue;
        queue.decline_always(&self.server, policy, |changed| {
            for observer in &self.settings.observers {
                observer.consent_changed(changed);
            }
        })
    }
}

impl ConsentRule {
    /// Returns the answer that the person's policy gives, if any.
    fn standing_answer(&self) -> Option<Answer> {
        (self.answer == Some(StandingAnswer::Decline))
            .then(|| Answer::from(Outcome::Decline).with_responder("policy".into()))
    }
}

struct TakeBack<'q>(&'q WithdrawHandle);

impl Drop for TakeBack<'_> {
    fn drop(&mut self) {
        self.0.withdraw(CALL_OVER);
    }
}

/// A question whose end has not been reported. If its answer is no longer waited for, as when another question of its
/// round got none, the observers are still notified of its withdrawal.
struct UnfinishedQuestion<'d> {
    dispatcher: &'d Dispatcher,
    question: &'d Question,
    ended: bool,
}

impl Drop for UnfinishedQuestion<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let why = CALL_OVER.to_owned();
            self.dispatcher
                .refused(Some(self.question), &QuestionError::Withdrawn { why });
        }
    }
}

async fn first_of(ends: &[(CancellationToken, &'static str)]) -> &'static str {
    let waits = ends.iter().map(|(token, why)| {
        Box::pin(async move {
            token.cancelled().await;
            *why
        })
    });
    let waits: Vec<_> = waits.collect();
    if waits.is_empty() {
        return std::future::pending().await;
    }
    futures::future::select_all(waits).await.0
}

#[expect(
    clippy::disallowed_methods,
    reason = "this shell tells the frontend when the time is over"
)]
fn until(shown: view::QuestionView, within: Duration) -> view::QuestionView {
    shown.until(SystemTime::now() + within)
}
