//! Effects on the record: results that are known at once are reported at once, all others by the driver.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::{AskedVia, FoundCall, FoundTask};
use mcp_elicit_record::stored_bytes::StorageLimit;
use mcp_elicit_record::whole_record::WholeRecordLimit;
use mcp_elicit_record::{Applied, Durability, RecordError, RecordedQuestion, SessionKey, Verdict};
use mcp_elicit_relay::{
    AccessNumber, AskId, ByteLimit, CallId, Effect, Event, QuestionLimit, TakenAnswer,
    ended_without_result, result_not_stored,
};

use super::{Session, stored_results};

/// The continuation of a change of the record, which returns the relay's event, if any.
type Continuation = Box<dyn FnOnce(&Session) -> Option<Event> + Send>;

/// A change of the record that has to wait.
pub(super) struct PendingChange {
    /// Its questions. One that is being written has no id yet.
    records: Vec<String>,
    /// `true` if it is about a call without a waiting client: such changes are made in order.
    is_of_a_call: bool,
    change: BoxFuture<'static, Continuation>,
}

impl PendingChange {
    /// Returns `true` if the two must be made in order.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let same = |record| other.records.contains(record);
        self.is_of_a_call && other.is_of_a_call || self.records.iter().any(same)
    }

    /// Returns `true` if it may be made before `others` unmade changes, about which nothing else is known.
    pub(super) fn follows_none_of(&self, others: usize) -> bool {
        others == 0 || self.records.is_empty() && !self.is_of_a_call
    }

    /// Makes the change if it need not wait, and returns the relay's event. Otherwise returns the begun change, which goes
    /// on in a task of its own until the driver comes to it.
    pub(super) fn make_now(mut self, session: &Session) -> Result<Option<Event>, Self> {
        if let Some(then) = (&mut self.change).now_or_never() {
            return Ok(then(session));
        }
        // It may hold a lock or a connection that the driver's current change waits for.
        let begun = session.runtime.spawn(self.change);
        let change = async move {
            match begun.await {
                Ok(then) => then,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // The process ends.
                    Err(_cancelled) => std::future::pending().await,
                },
            }
        };
        Err(Self {
            change: change.boxed(),
            ..self
        })
    }

    /// Makes the change, and tells the session.
    pub(super) async fn make(self, session: &Session) {
        let then = self.change.await;
        if let Some(event) = then(session) {
            session.tell(event);
        }
    }
}

/// The result of an effect.
pub(super) enum Executed {
    /// Done on the record; with the relay's event.
    Now(Option<Event>),
    /// Done on the record once this change is made.
    Pending(PendingChange),
    /// Not an effect on the record.
    Other(Effect),
}

/// A question to be written after the frames are sent, unless its delivery is.
pub(super) struct ToWrite {
    pub(super) question: Option<AskId>,
    pub(super) record: String,
}

impl Session {
    /// Carries out an effect on the record. Questions to be written behind are added to `to_write`.
    pub(super) fn execute(&self, effect: Effect, to_write: &mut Vec<ToWrite>) -> Executed {
        let record = &self.record;
        let who = &self.who.identity;
        let mut write = |question: Option<AskId>, records: &[String]| {
            to_write.extend(records.iter().map(|record| ToWrite {
                question,
                record: record.clone(),
            }));
        };
        match effect {
            Effect::Record { question, asked } => {
                let durability = if asked.outlives {
                    Durability::BeforeSeen
                } else {
                    Durability::Behind
                };
                let key = SessionKey(question.0);
                let created = record.create(who, &asked, key, &self.tell, durability);
                if let Applied::Now(created) = &created {
                    write(None, std::slice::from_ref(&created.id));
                }
                // The people of a rule answer as themselves, in the inbox.
                let asks_responder = asked.via == AskedVia::People && asked.team.is_none();
                self.then(Vec::new(), created, move |session, created| match created {
                    Ok(created) => Some(session.recorded(question, created, asks_responder)),
                    Err(fault) => Some(session.not_recorded(question, &fault)),
                })
            }
            Effect::Submit {
                question,
                record: id,
                outcome,
            } => {
                let settled = record.submit(&id, &outcome, "client", Durability::Behind);
                if let Applied::Now(Verdict::Won) = &settled {
                    write(Some(question), std::slice::from_ref(&id));
                }
                self.then(vec![id], settled, move |session, settled| match settled {
                    Ok(Verdict::Won) => Some(Event::Answered { question }),
                    // The first answer has been reported.
                    Ok(Verdict::Late(_) | Verdict::Gone) => None,
                    Err(fault) => {
                        session.could_not("an answer could not be recorded", &fault);
                        Some(Event::NotRecorded { question })
                    }
                })
            }
            Effect::MoveToPeople {
                question,
                record: id,
                why,
                calls,
            } => {
                let moved = record.move_to_people(&id, why, &calls);
                self.then(vec![id], moved, move |session, moved| match moved {
                    // What ended it was reported.
                    Ok(Verdict::Won | Verdict::Late(_) | Verdict::Gone) => None,
                    Err(fault) => {
                        session.could_not("a question could not be moved to the inbox", &fault);
                        Some(Event::NotRecorded { question })
                    }
                })
            }
            Effect::DoubtAct { record: id, why } => {
                tracing::warn!(server = %self.who.server, %why, "nobody else can be asked, so the act counts");
                let doubted = record.doubt_act(&id, why);
                self.then(vec![id], doubted, noted)
            }
            Effect::NotShown { call, message, why } => {
                let noted = record.note_not_shown(who, call.as_ref(), &message, &why);
                self.then(Vec::new(), noted, self::noted)
            }
            // The answer stays in the record, for the same call made again.
            Effect::BeginDelivery { questions, .. } if !self.server.is_up() => {
                Executed::Now(Some(Event::NoDelivery { questions }))
            }
            // A proof that has ended meanwhile collects no answers.
            Effect::BeginDelivery {
                questions,
                accesses,
                ..
            } if !self.who.callers.may_collect(&self.who.caller, &accesses) => {
                Executed::Now(Some(Event::NoDelivery { questions }))
            }
            Effect::BeginDelivery {
                questions,
                records,
                accesses,
            } if self.who.callers.asks_before_delivery() => {
                self.deliver_if_valid(questions, records, accesses)
            }
            Effect::BeginDelivery {
                questions, records, ..
            } => {
                let taken = record.deliver(&records);
                match &taken {
                    Applied::Now(_) => write(None, &records),
                    // Held questions are written together with the delivery.
                    Applied::Pending(_) => to_write.retain(|held| !records.contains(&held.record)),
                }
                let ids = records.clone();
                self.then(records, taken, move |session, taken| {
                    Some(session.delivery_begun(questions, &ids, taken))
                })
            }
            Effect::End { record: id, ending } => {
                let ended = record.end(&id, ending);
                self.then(vec![id], ended, noted)
            }
            Effect::Delivered { records } => {
                let confirmed = record.confirm(&records);
                if let Applied::Now(()) = &confirmed {
                    write(None, &records);
                }
                self.then(records, confirmed, noted)
            }
            Effect::DeliveryRefused { records, why } => {
                tracing::warn!(server = %self.who.server, %why, "an answer was not accepted, or not sent");
                let refused = record.delivery_refused(&records, &why);
                self.then(records, refused, noted)
            }
            Effect::InDoubt { records, why } => {
                tracing::warn!(server = %self.who.server, %why, "it is not known whether an answer was accepted");
                let doubted = record.delivery_in_doubt(&records, &why);
                self.then(records, doubted, noted)
            }
            Effect::Leave { record } => {
                let released = self.record.release(&record);
                self.then(vec![record], released, noted)
            }
            Effect::ClientReturned { records } => {
                record.client_returned(&records);
                Executed::Now(None)
            }
            Effect::FindCall {
                lookup,
                digest,
                server_info,
            } => {
                let found = record.find_call(who, server_info.as_deref(), &digest);
                self.then_of_a_call(found, move |session, found| {
                    let found = found.unwrap_or_else(|fault| {
                        session.note(Err(fault));
                        FoundCall::Nothing
                    });
                    Some(Event::CallFound { lookup, found })
                })
            }
            Effect::KeepCall {
                call,
                digest,
                server_info,
                link,
            } => {
                let (info, call) = (server_info.as_deref(), SessionKey(call.0));
                let kept = record.keep_call(who, info, &digest, &self.tell, call, link);
                self.then_of_a_call(kept, noted)
            }
            Effect::FollowCall {
                call,
                digest,
                server_info,
            } => {
                let (info, call) = (server_info.as_deref(), SessionKey(call.0));
                record.follow_call(who, info, &digest, &self.tell, call);
                Executed::Now(None)
            }
            Effect::KeepResult {
                call,
                result,
                until,
            } => self.keep_result(call, result, until),
            Effect::DropCall { call } => {
                self.results.end(&who.caller, call);
                let dropped = record.drop_call(&self.tell, SessionKey(call.0));
                self.then_of_a_call(dropped, noted)
            }
            Effect::BeginTask {
                task,
                state,
                until,
                server_info,
            } => {
                let (info, key) = (server_info.as_deref(), SessionKey(task.0));
                let begun = record.begin_task(who, info, &self.tell, key, state, until);
                self.then_of_a_call(begun, move |session, begun| {
                    let id = begun.map_err(|fault| session.note(Err(fault))).ok();
                    Some(Event::TaskBegun { task, id })
                })
            }
            Effect::UpdateTask { task, state } => {
                let updated = record.update_task(&self.tell, SessionKey(task.0), state);
                self.then_of_a_call(updated, noted)
            }
            Effect::EndTask { task, ended, until } => {
                let bytes = ended.len();
                let counted = stored_results::count(&who.caller, bytes, record.now(), until);
                let ended = match counted {
                    Ok(_) => ended,
                    Err(_) => ended_without_result(&ended),
                };
                let ended = record.end_task(&self.tell, SessionKey(task.0), ended, until);
                self.then_of_a_call(ended, noted)
            }
            Effect::FindTask {
                lookup,
                id,
                server_info,
            } => {
                let found = record.find_task(who, server_info.as_deref(), id);
                self.then_of_a_call(found, move |session, found| {
                    let found = found.unwrap_or_else(|fault| {
                        session.note(Err(fault));
                        FoundTask::Nothing
                    });
                    Some(Event::TaskFound { lookup, found })
                })
            }
            Effect::CancelTask { id, server_info } => {
                let cancelled = record.cancel_task(who, server_info.as_deref(), id);
                self.then_of_a_call(cancelled, noted)
            }
            Effect::FollowTask { call, id } => {
                record.follow_task(&id, &self.tell, SessionKey(call.0));
                Executed::Now(None)
            }
            other @ (Effect::ToClient { .. }
            | Effect::ToServer { .. }
            | Effect::Abandon { .. }
            | Effect::LeaveSession
            | Effect::Restart) => Executed::Other(other),
        }
    }

    /// Stores the result of a call that no client waits for until this time, or, if the caller has no room for it, an error
    /// with the reason.
    fn keep_result(&self, call: CallId, result: String, until: Timestamp) -> Executed {
        let (bytes, now) = (result.len(), self.record.now());
        let counted = stored_results::count(&self.who.identity.caller, bytes, now, until);
        let key = SessionKey(call.0);
        let limit = match counted {
            Ok(counted) => {
                self.results.add(call, counted);
                let kept = self.record.keep_result(&self.tell, key, result);
                return self.then_of_a_call(kept, noted);
            }
            Err(limit) => limit,
        };
        tracing::info!(server = %self.who.server, bytes, most = limit.most, "a result that no client waits for is too large to be stored");
        let error = result_not_stored(limit, bytes);
        let kept = self.record.keep_result(&self.tell, key, error);
        if let Executed::Pending(change) = self.then_of_a_call(kept, noted) {
            self.later(change);
        }
        Executed::Now(Some(Event::ResultNotStored { call, limit, bytes }))
    }

    /// Begins a delivery after the issuer has confirmed that the tokens of its calls are still valid.
    fn deliver_if_valid(
        &self,
        questions: Vec<AskId>,
        records: Vec<String>,
        accesses: Vec<AccessNumber>,
    ) -> Executed {
        let (callers, caller) = (self.who.callers.clone(), self.who.caller.clone());
        let (record, asked) = (self.record.clone(), records.clone());
        let taken = async move {
            if !callers.may_collect_now(&caller, &accesses).await {
                return Ok((None, false));
            }
            Ok(match record.deliver(&asked) {
                Applied::Now(replies) => (replies, true),
                Applied::Pending(change) => (change.await?, false),
            })
        };
        let held = records.clone();
        let taken = Applied::Pending(taken.boxed());
        self.then(records, taken, move |session, taken| {
            let is_held = matches!(taken, Ok((_, true)));
            let replies = taken.map(|(replies, _)| replies);
            let begun = session.delivery_begun(questions, &held, replies);
            session.write_behind(held.into_iter().filter(|_| is_held).map(|record| ToWrite {
                question: None,
                record,
            }));
            Some(begun)
        })
    }

    /// Returns the result of starting a delivery.
    fn delivery_begun(
        &self,
        questions: Vec<AskId>,
        records: &[String],
        taken: Result<Option<Vec<String>>, RecordError>,
    ) -> Event {
        match taken {
            Ok(Some(replies)) => {
                let replies = replies.into_iter().zip(records);
                let answers = questions.into_iter().zip(replies);
                let answers = answers.map(|(question, (reply, record))| TakenAnswer {
                    question,
                    record: record.clone(),
                    reply,
                });
                Event::DeliveryBegun {
                    answers: answers.collect(),
                }
            }
            Ok(None) => Event::NoDelivery { questions },
            Err(fault) => {
                self.could_not("an answer could not be taken out of the record", &fault);
                let reopened = match fault {
                    RecordError::DeliveryNotWritten { reopened, .. } => reopened,
                    RecordError::Store(_) | RecordError::NotWritten | RecordError::Contended => {
                        Vec::new()
                    }
                    RecordError::Encryption(_)
                    | RecordError::Open(_)
                    | RecordError::AskedElsewhere
                    | RecordError::TooManyOpen { .. }
                    | RecordError::TooLarge(_)
                    | RecordError::Full(_) => return Event::NoDelivery { questions },
                };
                let is_open = |id: &String| reopened.contains(id);
                let questions = questions.into_iter().zip(records);
                Event::DeliveryNotWritten {
                    questions: questions
                        .map(|(question, id)| (question, is_open(id)))
                        .collect(),
                }
            }
        }
    }

    /// Continues after a change: at once if its result is known.
    fn then<T: Send + 'static>(
        &self,
        records: Vec<String>,
        applied: Applied<T>,
        then: impl FnOnce(&Self, Result<T, RecordError>) -> Option<Event> + Send + 'static,
    ) -> Executed {
        match applied {
            Applied::Now(done) => Executed::Now(then(self, Ok(done))),
            Applied::Pending(change) => {
                let change = async move {
                    let done = change.await;
                    Box::new(move |session: &Self| then(session, done)) as Continuation
                };
                Executed::Pending(PendingChange {
                    records,
                    is_of_a_call: false,
                    change: change.boxed(),
                })
            }
        }
    }

    fn then_of_a_call<T: Send + 'static>(
        &self,
        applied: Applied<T>,
        then: impl FnOnce(&Self, Result<T, RecordError>) -> Option<Event> + Send + 'static,
    ) -> Executed {
        let mut executed = self.then(Vec::new(), applied, then);
        if let Executed::Pending(change) = &mut executed {
            change.is_of_a_call = true;
        }
        executed
    }

    /// Writes these questions without being awaited: in the driver if the store has to be waited for.
    pub(super) fn write_behind(&self, questions: impl IntoIterator<Item = ToWrite>) {
        for ToWrite { question, record } in questions {
            let written = self.record.write_behind(&record);
            let executed = self.then(vec![record], written, move |session, written| {
                let fault = written.err()?;
                match question {
                    Some(question) => Some(session.answer_not_recorded(question, &fault)),
                    None => noted(session, Err(fault)),
                }
            });
            if let Executed::Pending(change) = executed {
                self.later(change);
            }
        }
    }

    fn recorded(&self, question: AskId, created: RecordedQuestion, asks_responder: bool) -> Event {
        let to_ask = asks_responder && !created.answered;
        if let Some(responder) = self.who.responder.as_ref().filter(|_| to_ask) {
            let key = SessionKey(question.0);
            responder.ask(created.id.clone(), key, self.tell.clone());
        }
        if let Some(traces) = &self.traces {
            traces.recorded(question, &created.id, created.trace.as_deref());
        }
        Event::Recorded {
            question,
            link: (self.who.link)(&created.id),
            record: created.id,
            answered: created.answered,
            refused: created.refused,
        }
    }

    fn not_recorded(&self, question: AskId, fault: &RecordError) -> Event {
        if matches!(fault, RecordError::AskedElsewhere) {
            return Event::AskedElsewhere { question };
        }
        let limit = match *fault {
            RecordError::TooManyOpen { limit, of_server } => Some(QuestionLimit::Open {
                most: limit,
                of_server,
            }),
            RecordError::TooLarge(StorageLimit { name, most, .. }) => {
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                Some(QuestionLimit::Bytes(ByteLimit { name, most }))
            }
            RecordError::Full(WholeRecordLimit::Bytes(most)) => {
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                let name = "max-record";
                Some(QuestionLimit::RecordBytes(ByteLimit { name, most }))
            }
            RecordError::Full(WholeRecordLimit::Open(most)) => Some(QuestionLimit::AllOpen {
                name: "max-open",
                most,
            }),
            RecordError::Store(_)
            | RecordError::Encryption(_)
            | RecordError::Open(_)
            | RecordError::NotWritten
            | RecordError::DeliveryNotWritten { .. }
            | RecordError::AskedElsewhere
            | RecordError::Contended => None,
        };
        if let Some(limit) = limit {
            tracing::debug!(server = %self.who.server, %fault, "a question was refused");
            return Event::NotAdmitted { question, limit };
        }
        self.could_not("a question could not be recorded", fault);
        Event::NotRecorded { question }
    }

    fn answer_not_recorded(&self, question: AskId, fault: &RecordError) -> Event {
        self.could_not("an answer could not be recorded", fault);
        // A client's answer stays in memory, and is written later.
        Event::DeliveryNotWritten {
            questions: vec![(question, false)],
        }
    }

    pub(super) fn note(&self, done: Result<(), RecordError>) {
        if let Err(fault) = done {
            self.could_not("the record could not be kept", &fault);
        }
    }

    fn could_not(&self, what: &str, fault: &RecordError) {
        tracing::error!(server = %self.who.server, %fault, "{what}");
    }
}

fn noted(session: &Session, done: Result<(), RecordError>) -> Option<Event> {
    session.note(done);
    None
}
