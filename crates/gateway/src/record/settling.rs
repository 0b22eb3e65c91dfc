//! A question moves on: seen, acted on, or ended without an act. By compare-and-set, so the first wins.

use std::sync::atomic::Ordering;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::exchange::{Phase, Refused, Step, Withdrawal};

use super::{Book, BookFault, Settling, TRIES, audit, place};
use crate::relay::{Ending, Event};
use crate::store::Row;

enum Stepped {
    Done,
    Refused(Box<Row>),
    Gone,
}

impl Book {
    /// Notes that a person has seen the question.
    pub async fn shown(&self, id: &str) -> Result<(), BookFault> {
        self.step(id, &Step::Show, None).await.map(|_| ())
    }

    /// A person acted; the first act wins.
    pub async fn settle(
        &self,
        id: &str,
        outcome: &Outcome,
        by: &str,
    ) -> Result<Settling, BookFault> {
        let content = outcome
            .answers()
            .map(|answers| answers.to_value().to_string());
        let sealed = content
            .map(|text| self.seal.close(&place(id, "content"), &text))
            .transpose()?;
        let step = Step::acted(outcome, by);
        match self.step(id, &step, sealed).await? {
            Stepped::Done => {
                self.counts.acted.fetch_add(1, Ordering::Relaxed);
                self.drop_draft(id);
                self.tell_settled(id);
                Ok(Settling::Won)
            }
            Stepped::Refused(row) => Ok(Settling::Late(row)),
            Stepped::Gone => Ok(Settling::Gone),
        }
    }

    pub(super) fn tell_settled(&self, id: &str) {
        if let Some(live) = self.live().get(id) {
            // A session that is gone has let go of its questions, or will.
            let _ = live.tell.send(Event::Settled {
                question: live.question,
            });
        }
    }

    /// The question ended without an action.
    pub async fn end(&self, id: &str, ending: Ending) -> Result<(), BookFault> {
        let step = match ending {
            Ending::WithdrawnByServer => Step::Withdraw {
                why: Withdrawal::ByAsker,
            },
            Ending::WithdrawnByClient => Step::Withdraw {
                why: Withdrawal::CallCancelled,
            },
            Ending::CallEnded => Step::Withdraw {
                why: Withdrawal::CallEnded,
            },
            Ending::ServerGone => Step::Withdraw {
                why: Withdrawal::AskerGone,
            },
            Ending::TimedOut => Step::Expire,
            Ending::ClientFailed => Step::Fail {
                why: "the client could not be asked".to_owned(),
            },
            Ending::AnswererFailed => Step::Fail {
                why: "nobody could be asked".to_owned(),
            },
        };
        self.live().remove(id);
        self.drop_draft(id);
        if matches!(self.step(id, &step, None).await?, Stepped::Done) {
            self.counts.ended.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn step(
        &self,
        id: &str,
        step: &Step,
        content: Option<Vec<u8>>,
    ) -> Result<Stepped, BookFault> {
        for _ in 0..TRIES {
            let Some(row) = self.find_or_recall(id).await? else {
                return Ok(Stepped::Gone);
            };
            let seen = row.exchange.version();
            let exchange = match row.exchange.step(step, self.now()) {
                Ok(next) => next,
                Err(Refused::Late) => {
                    self.expire(&row).await?;
                    continue;
                }
                Err(
                    Refused::Ended { .. }
                    | Refused::NotDue
                    | Refused::Open
                    | Refused::Delivered
                    | Refused::Changed { .. },
                ) => {
                    return Ok(Stepped::Refused(Box::new(row)));
                }
            };
            if exchange.version() == seen {
                return Ok(Stepped::Done);
            }
            let content = content.clone().or_else(|| row.content.clone());
            let next = Row {
                exchange,
                content,
                ..row
            };
            let entry = audit::entry(next.exchange.phase().as_str(), &next, self.now());
            if self.put(next.clone(), seen, Some(entry)).await? {
                self.remember(next);
                self.changed();
                return Ok(Stepped::Done);
            }
        }
        Err(BookFault::Contended)
    }

    pub(super) async fn expire(&self, row: &Row) -> Result<(), BookFault> {
        let Ok(exchange) = row.exchange.step(&Step::Expire, self.now()) else {
            return Ok(());
        };
        let next = Row {
            exchange,
            ..row.clone()
        };
        let entry = audit::entry(Phase::TimedOut.as_str(), &next, self.now());
        let seen = row.exchange.version();
        if self.put(next, seen, Some(entry)).await? {
            self.counts.ended.fetch_add(1, Ordering::Relaxed);
            self.changed();
        }
        Ok(())
    }
}
