//! Effects on the record: executed at once where nothing has to be waited for, else by the driver.

use super::Session;
use mcp_elicit_core::question::{AskedVia, FoundCall};
use mcp_elicit_record::{RecordError, Recorded, SessionKey, Verdict, clock};
use mcp_elicit_relay::{AskId, Effect, Event, Relay};

/// Records that are to be written when the frames are on their way.
#[derive(Default)]
pub(super) struct DeferredEffects {
    /// Those that nobody waits for.
    pub(super) noted: Vec<String>,
    /// Those whose answer is in hand, and not taken at once.
    pub(super) in_hand: Vec<(AskId, String)>,
}

impl Session {
    /// Changes of the record that need not be waited for are made here and now, and the relay is told; gives back
    /// everything else.
    pub(super) fn at_once(
        &self,
        effect: Effect,
        relay: &mut Relay,
        later: &mut DeferredEffects,
    ) -> Option<Effect> {
        let event = match effect {
            Effect::Record { question, asked } if !asked.outlives => {
                let who = &self.who;
                let raised = self.record.create_behind(
                    &who.identity,
                    &asked,
                    SessionKey(question.0),
                    &self.tell,
                );
                match raised {
                    Ok(None) => return Some(Effect::Record { question, asked }),
                    Ok(Some(raised)) => {
                        later.noted.push(raised.id.clone());
                        self.recorded(question, raised)
                    }
                    Err(fault) => self.not_recorded(question, &fault),
                }
            }
            Effect::Submit {
                question,
                record,
                outcome,
            } => match self.record.submit_behind(&record, &outcome, "client") {
                None if self
                    .record
                    .submit_with_delivery(&record, &outcome, "client") =>
                {
                    later.in_hand.push((question, record));
                    Event::Answered { question }
                }
                None => {
                    return Some(Effect::Submit {
                        question,
                        record,
                        outcome,
                    });
                }
                // Whoever was first has told.
                Some(Verdict::Late(_) | Verdict::Gone) => return None,
                Some(Verdict::Won) => {
                    later.noted.push(record);
                    Event::Answered { question }
                }
            },
            // The answer stays in the record, for the same call made again.
            Effect::BeginDelivery { questions, .. } if !self.server.is_up() => {
                Event::NoDelivery { questions }
            }
            Effect::BeginDelivery { questions, records } => {
                match self.record.deliver_behind(&records) {
                    None => {
                        // What is in hand is written together with its being taken.
                        later
                            .in_hand
                            .retain(|(_, record)| !records.contains(record));
                        return Some(Effect::BeginDelivery { questions, records });
                    }
                    Some(replies) => {
                        later.noted.extend(records);
                        let replies = questions.into_iter().zip(replies).collect();
                        Event::DeliveryBegun { replies }
                    }
                }
            }
            Effect::End { record, ending } => match self.record.end_behind(&record, ending) {
                Ok(true) => return None,
                Ok(false) => return Some(Effect::End { record, ending }),
                Err(fault) => {
                    self.note(Err(fault));
                    return None;
                }
            },
            // Their values never were in the store.
            Effect::Delivered { records } if self.record.confirm_in_transit(&records) => {
                later.noted.extend(records);
                return None;
            }
            Effect::Leave { record } => {
                self.record.release(&record);
                return None;
            }
            Effect::FindCall {
                stream,
                frame,
                digest,
                server_info,
            } => {
                let info = server_info.as_deref();
                if self.record.knows_call(&self.who.identity, info, &digest) {
                    return Some(Effect::FindCall {
                        stream,
                        frame,
                        digest,
                        server_info,
                    });
                }
                let found = FoundCall::Nothing;
                Event::CallFound {
                    stream,
                    frame,
                    found,
                }
            }
            Effect::KeepCall {
                call,
                digest,
                server_info,
            } => {
                let (who, info) = (&self.who.identity, server_info.as_deref());
                self.note(self.record.keep_call(
                    who,
                    info,
                    &digest,
                    &self.tell,
                    SessionKey(call.0),
                ));
                return None;
            }
            Effect::FollowCall {
                call,
                digest,
                server_info,
            } => {
                let (who, info) = (&self.who.identity, server_info.as_deref());
                self.record
                    .follow_call(who, info, &digest, &self.tell, SessionKey(call.0));
                return None;
            }
            other => return Some(other),
        };
        relay.handle(clock::now(), event);
        None
    }

    fn recorded(&self, question: AskId, raised: Recorded) -> Event {
        Event::Recorded {
            question,
            link: (self.who.link)(&raised.id),
            record: raised.id,
            answered: raised.answered,
            refused: raised.refused,
        }
    }

    fn not_recorded(&self, question: AskId, fault: &RecordError) -> Event {
        tracing::error!(server = %self.who.server, %fault, "a question could not be recorded");
        Event::NotRecorded { question }
    }

    pub(super) async fn execute(&self, effect: Effect) {
        match effect {
            Effect::Record { question, asked } => {
                let raised = self
                    .record
                    .create(
                        &self.who.identity,
                        &asked,
                        SessionKey(question.0),
                        &self.tell,
                    )
                    .await;
                self.tell(match raised {
                    Ok(raised) => {
                        let to_ask = asked.via == AskedVia::People && !raised.answered;
                        if let Some(answerer) = self.who.answerer.as_ref().filter(|_| to_ask) {
                            answerer.ask(
                                raised.id.clone(),
                                SessionKey(question.0),
                                self.tell.clone(),
                            );
                        }
                        self.recorded(question, raised)
                    }
                    Err(fault) => self.not_recorded(question, &fault),
                });
            }
            Effect::Submit {
                question,
                record,
                outcome,
            } => {
                let settled = self.record.submit(&record, &outcome, "client").await;
                self.tell_if_unsettled(question, settled.err());
            }
            Effect::BeginDelivery { questions, records } => {
                let taken = self.record.deliver(&records).await;
                self.tell(match taken {
                    Ok(Some(replies)) => Event::DeliveryBegun { replies: questions.into_iter().zip(replies).collect() },
                    Ok(None) => Event::NoDelivery { questions },
                    Err(fault) => {
                        tracing::error!(server = %self.who.server, %fault, "an answer could not be taken out of the record");
                        Event::NoDelivery { questions }
                    }
                });
            }
            Effect::End { record, ending } => self.note(self.record.end(&record, ending).await),
            Effect::Delivered { records } => self.note(self.record.confirm(&records).await),
            Effect::DeliveryRefused { records, why } => {
                tracing::warn!(server = %self.who.server, %why, "the server did not accept an answer");
                self.note(self.record.delivery_refused(&records, &why).await);
            }
            Effect::InDoubt { records, why } => {
                tracing::warn!(server = %self.who.server, %why, "it is not known whether an answer was accepted");
                self.note(self.record.delivery_in_doubt(&records, &why).await);
            }
            Effect::FindCall {
                stream,
                frame,
                digest,
                server_info,
            } => {
                let (who, info) = (&self.who.identity, server_info.as_deref());
                let found = self.record.find_call(who, info, &digest).await;
                let found = found.unwrap_or_else(|fault| {
                    self.note(Err(fault));
                    FoundCall::Nothing
                });
                self.tell(Event::CallFound {
                    stream,
                    frame,
                    found,
                });
            }
            Effect::KeepResult { call, result } => {
                self.note(
                    self.record
                        .keep_result(&self.tell, SessionKey(call.0), &result)
                        .await,
                );
            }
            Effect::DropCall { call } => {
                self.note(self.record.drop_call(&self.tell, SessionKey(call.0)).await);
            }
            Effect::Leave { .. }
            | Effect::KeepCall { .. }
            | Effect::FollowCall { .. }
            | Effect::ToClient { .. }
            | Effect::ToServer { .. }
            | Effect::Abandon { .. }
            | Effect::Restart => {}
        }
    }

    /// Writes the client's answer that is in hand.
    pub(super) async fn write_submitted(&self, question: AskId, record: &str) {
        let written = self.record.write_submitted(record).await;
        self.tell_if_unsettled(question, written.err());
    }

    fn tell_if_unsettled(&self, question: AskId, fault: Option<RecordError>) {
        if let Some(fault) = fault {
            tracing::error!(server = %self.who.server, %fault, "an answer could not be recorded");
            self.tell(Event::NotRecorded { question });
        }
    }

    pub(super) fn note(&self, done: Result<(), RecordError>) {
        if let Err(fault) = done {
            tracing::error!(server = %self.who.server, %fault, "the record could not be kept");
        }
    }
}
