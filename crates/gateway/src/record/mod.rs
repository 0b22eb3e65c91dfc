//! The book of questions: written before anyone sees them, settled by the first valid answer, taken out at most once.
//!
//! Pages, scripts, clients and relays all come here; the [`Store`] below keeps what they did. Answers are checked
//! before they come in (`Form::check` by the desk, by the relay for clients), sealed while they wait, and dropped once
//! they are delivered; the audit keeps who, what and when, never a value.

pub mod audit;
mod lease;
pub mod seal;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_elicit_core::answer::{Draft, Outcome};
use mcp_elicit_core::exchange::{Exchange, Moment, Phase, Refused, Step, Withdrawal};
use mcp_elicit_core::wire::{Action, Request, Revision};
use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, watch};

use crate::relay::{Asked, Ending, Event, Place, QuestionKey};
use crate::store::{Body, Change, Row, Store, StoreFault, Which};
pub use lease::Lease;
use seal::Seal;

/// Why the book could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum BookFault {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// No randomness, or a value too long to seal.
    #[error("a value could not be sealed")]
    Seal(#[from] io::Error),
    /// What is sealed was sealed with another key.
    #[error(transparent)]
    Broken(#[from] seal::Broken),
    /// Others changed the same question again and again.
    #[error("the question keeps changing")]
    Contended,
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Settling {
    /// It is the question's answer.
    Won,
    /// The question had ended before.
    Late(Box<Row>),
    /// There is no such question.
    Gone,
}

/// A question that was written, or found written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raised {
    /// The record's id.
    pub id: String,
    /// Whether an answer is there already.
    pub answered: bool,
}

/// Numbers for the metrics.
#[derive(Debug, Default)]
pub struct Counts {
    /// Questions written.
    pub asked: AtomicU64,
    /// Questions found again instead of being asked twice.
    pub found: AtomicU64,
    /// Answers by a person, of any action.
    pub acted: AtomicU64,
    /// Answers taken to a server.
    pub delivered: AtomicU64,
    /// Questions that ended without an action.
    pub ended: AtomicU64,
}

struct Live {
    question: QuestionKey,
    tell: mpsc::UnboundedSender<Event>,
}

/// The book of questions.
pub struct Book {
    store: Arc<dyn Store>,
    seal: Seal,
    lease: Lease,
    clock: fn() -> Moment,
    live: Mutex<HashMap<String, Live>>,
    drafts: Mutex<HashMap<String, Draft>>,
    changes: watch::Sender<u64>,
    counts: Counts,
}

/// How often a change is tried against others' changes.
const TRIES: usize = 8;

impl Book {
    /// A book over this store. The lease says that this gateway runs.
    pub fn new(store: Arc<dyn Store>, seal: Seal, lease: Lease, clock: fn() -> Moment) -> Self {
        Self {
            store,
            seal,
            lease,
            clock,
            live: Mutex::default(),
            drafts: Mutex::default(),
            changes: watch::channel(0).0,
            counts: Counts::default(),
        }
    }

    /// The store below.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The time by this book's clock.
    pub fn now(&self) -> Moment {
        (self.clock)()
    }

    /// Counts up with every change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Numbers for the metrics.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    fn live(&self) -> MutexGuard<'_, HashMap<String, Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Writes a question for the call that waits at `tell`, or finds the same question of the same call of the same
    /// principal that nobody waits for any more.
    pub async fn raise(
        &self,
        server: &str,
        principal: &str,
        asked: &Asked,
        question: QuestionKey,
        tell: &mpsc::UnboundedSender<Event>,
    ) -> Result<Raised, BookFault> {
        let params = params_of(&asked.request);
        let same = sameness(server, principal, asked, &params);
        let live = || Live {
            question,
            tell: tell.clone(),
        };
        if asked.calling.is_some()
            && let Some(row) = self.left_over(&same).await?
        {
            let answered = !row.exchange.is_open();
            let id = row.id.clone();
            self.live().insert(id.clone(), live());
            let seen = row.exchange.version();
            let row = Row {
                owner: self.lease.name().to_owned(),
                ..row
            };
            self.store
                .change(vec![Change {
                    row,
                    seen,
                    audit: None,
                }])
                .await?;
            self.counts.found.fetch_add(1, Ordering::Relaxed);
            self.changed();
            return Ok(Raised { id, answered });
        }
        let row = self.new_row(server, principal, asked, params, same)?;
        let id = row.id.clone();
        // Known before it is written: an answer from another process must find who waits.
        self.live().insert(id.clone(), live());
        let entry = audit::entry("asked", &row, self.now());
        if let Err(fault) = self.store.insert(row, entry).await {
            self.live().remove(&id);
            return Err(fault.into());
        }
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        self.changed();
        Ok(Raised {
            id,
            answered: false,
        })
    }

    fn new_row(
        &self,
        server: &str,
        principal: &str,
        asked: &Asked,
        params: String,
        same: String,
    ) -> Result<Row, BookFault> {
        let id = seal::unguessable()?;
        let calling = asked.calling.as_ref();
        let arguments = calling.and_then(|calling| calling.arguments.as_deref());
        let arguments = arguments
            .map(|text| self.seal.close(&place(&id, "arguments"), text))
            .transpose()?;
        Ok(Row {
            same,
            owner: self.lease.name().to_owned(),
            exchange: Exchange::ask(self.now(), Some(asked.until)),
            body: Body {
                server: server.to_owned(),
                principal: principal.to_owned(),
                server_info: asked.server_info.clone(),
                client_info: asked.client_info.clone(),
                kind: calling.map(|calling| calling.kind.word().to_owned()),
                target: calling.map(|calling| calling.target.clone()),
                params,
                fields: asked.fields.clone(),
                cautions: asked.cautions.clone(),
                at_client: asked.place == Place::Client,
            },
            arguments,
            content: None,
            id,
        })
    }

    /// The oldest row of the same question that was answered, else that waits, and that no running call waits for.
    async fn left_over(&self, same: &str) -> Result<Option<Row>, BookFault> {
        let mut rows = self.store.same(same.to_owned()).await?;
        rows.sort_by_key(|row| row.exchange.is_open());
        for row in rows {
            let wanted = row.exchange.is_open() || row.exchange.phase().action().is_some();
            let waited_for = if self.lease.is_mine(&row.owner) {
                self.live().contains_key(&row.id)
            } else {
                self.lease.is_held(&row.owner)
            };
            if wanted && !waited_for && !row.exchange.is_due(self.now()) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// The row of this id.
    pub async fn find(&self, id: &str) -> Result<Option<Row>, BookFault> {
        Ok(self.store.find(id.to_owned()).await?)
    }

    /// Rows, at most so many.
    pub async fn list(&self, which: Which, most: usize) -> Result<Vec<Row>, BookFault> {
        Ok(self.store.list(which, most).await?)
    }

    /// The arguments of the call that a question came up in, JSON.
    pub fn arguments(&self, row: &Row) -> Option<String> {
        let sealed = row.arguments.as_deref()?;
        self.seal.open(&place(&row.id, "arguments"), sealed).ok()
    }

    /// What somebody typed so far. It lives in this process only and ends with the question.
    pub fn draft(&self, id: &str) -> Option<Draft> {
        self.drafts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(id)
            .cloned()
    }

    /// Keeps what somebody typed so far.
    pub fn keep_draft(&self, id: &str, draft: Draft) {
        self.drafts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id.to_owned(), draft);
    }

    fn drop_draft(&self, id: &str) {
        self.drafts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
    }

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

    fn tell_settled(&self, id: &str) {
        if let Some(live) = self.live().get(id) {
            // A session that is gone has let go of its questions, or will.
            let _ = live.tell.send(Event::Settled {
                question: live.question,
            });
        }
    }

    /// Takes answers out, all or none and only once; `None` when any is not there to be taken.
    pub async fn take(&self, ids: &[String]) -> Result<Option<Vec<String>>, BookFault> {
        let mut changes = Vec::new();
        let mut replies = Vec::new();
        for id in ids {
            let Some(row) = self.find(id).await? else {
                return Ok(None);
            };
            let Some(action) = row.exchange.phase().action() else {
                return Ok(None);
            };
            let Ok(exchange) = row.exchange.step(&Step::Deliver, self.now()) else {
                return Ok(None);
            };
            let content = row
                .content
                .as_deref()
                .map(|sealed| self.seal.open(&place(id, "content"), sealed))
                .transpose()?;
            replies.push(reply(action, content.as_deref()));
            let seen = row.exchange.version();
            let row = Row { exchange, ..row };
            changes.push(Change {
                audit: Some(audit::entry("delivered", &row, self.now())),
                row,
                seen,
            });
        }
        if !self.store.change(changes).await? {
            return Ok(None);
        }
        self.counts
            .delivered
            .fetch_add(ids.len() as u64, Ordering::Relaxed);
        let mut live = self.live();
        for id in ids {
            live.remove(id);
        }
        drop(live);
        self.changed();
        Ok(Some(replies))
    }

    /// The answers reached the server: their values and the call's arguments are dropped.
    pub async fn confirm(&self, ids: &[String]) -> Result<(), BookFault> {
        for id in ids {
            if let Some(row) = self.find(id).await? {
                let seen = row.exchange.version();
                let row = Row {
                    arguments: None,
                    content: None,
                    ..row
                };
                self.store
                    .change(vec![Change {
                        row,
                        seen,
                        audit: None,
                    }])
                    .await?;
            }
        }
        Ok(())
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

    /// The session that waited is gone: its questions stay, for the same call made again.
    pub fn let_go(&self, tell: &mpsc::UnboundedSender<Event>) {
        self.live().retain(|_, live| !live.tell.same_channel(tell));
        self.changed();
    }

    /// Whether a call waits for this question right now, here or in another running gateway.
    pub fn is_waited_for(&self, row: &Row) -> bool {
        if self.lease.is_mine(&row.owner) {
            self.live().contains_key(&row.id)
        } else {
            self.lease.is_held(&row.owner)
        }
    }

    async fn step(
        &self,
        id: &str,
        step: &Step,
        content: Option<Vec<u8>>,
    ) -> Result<Stepped, BookFault> {
        for _ in 0..TRIES {
            let Some(row) = self.find(id).await? else {
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
            if self
                .store
                .change(vec![Change {
                    row: next,
                    seen,
                    audit: Some(entry),
                }])
                .await?
            {
                self.changed();
                return Ok(Stepped::Done);
            }
        }
        Err(BookFault::Contended)
    }

    async fn expire(&self, row: &Row) -> Result<(), BookFault> {
        let Ok(exchange) = row.exchange.step(&Step::Expire, self.now()) else {
            return Ok(());
        };
        let next = Row {
            exchange,
            ..row.clone()
        };
        let entry = audit::entry(Phase::TimedOut.as_str(), &next, self.now());
        let seen = row.exchange.version();
        if self
            .store
            .change(vec![Change {
                row: next,
                seen,
                audit: Some(entry),
            }])
            .await?
        {
            self.counts.ended.fetch_add(1, Ordering::Relaxed);
            self.changed();
        }
        Ok(())
    }

    /// Ends what is due, and passes on what other gateways' pages did to questions that are waited for here.
    pub async fn look_around(&self) -> Result<(), BookFault> {
        for row in self.store.list(Which::Open, 10_000).await? {
            if row.exchange.is_due(self.now()) {
                self.expire(&row).await?;
            }
        }
        Ok(())
    }

    /// Tells the sessions here what happened to their questions in other processes.
    pub async fn hear_others(&self) -> Result<(), BookFault> {
        if !self.lease.has_company() {
            return Ok(());
        }
        let ids: Vec<String> = self.live().keys().cloned().collect();
        for id in ids {
            let Some(row) = self.find(&id).await? else {
                continue;
            };
            let phase = row.exchange.phase();
            if phase.action().is_some() && row.exchange.delivered_at().is_none() {
                self.tell_settled(&id);
            } else if !phase.is_open() && phase.action().is_none() {
                self.tell_ended(&id, phase);
            }
        }
        Ok(())
    }

    fn tell_ended(&self, id: &str, phase: Phase) {
        let ending = if phase == Phase::TimedOut {
            Ending::TimedOut
        } else {
            Ending::CallEnded
        };
        if let Some(live) = self.live().remove(id) {
            let _ = live.tell.send(Event::Ended {
                question: live.question,
                ending,
            });
        }
    }
}

enum Stepped {
    Done,
    Refused(Box<Row>),
    Gone,
}

fn place(id: &str, column: &str) -> String {
    format!("{id}.{column}")
}

fn reply(action: Action, content: Option<&str>) -> String {
    match content {
        Some(content) => format!(r#"{{"action":"{action}","content":{content}}}"#),
        None => format!(r#"{{"action":"{action}"}}"#),
    }
}

/// The params as the newest revision says them, which is how a question is kept.
fn params_of(request: &Request) -> String {
    match request.to_raw_params(Revision::LATEST) {
        Ok(params) => params.get().to_owned(),
        Err(_) => String::from("{}"),
    }
}

fn sameness(server: &str, principal: &str, asked: &Asked, params: &str) -> String {
    let call = asked
        .calling
        .as_ref()
        .map_or("", |calling| calling.digest.as_str());
    let mut hash = Sha256::new();
    for part in [server, principal, call, params] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    crate::hex::text(&hash.finalize())
}

#[cfg(test)]
mod tests;
