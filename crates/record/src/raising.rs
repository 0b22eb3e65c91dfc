//! A question is written, or found written: the same call of the same principal is not asked twice.

use crate::{RecordEvent, SessionKey};
use mcp_elicit_core::lifecycle::{Delivery, Lifecycle};
use mcp_elicit_core::question::{AskedVia, NewQuestion};
use mcp_elicit_core::wire::ElicitRequest;
use std::collections::hash_map::Entry;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;

use super::identity::params_of;
use super::{Book, BookFault, Known, Live, Raised, SessionIdentity, TRIES, audit, seal};
use crate::store::{Body, Row, Store as _};

impl Book {
    /// Writes a question for the call that waits at `tell`, or finds the same question of the same call of the same
    /// principal that nobody waits for any more.
    pub async fn raise(
        &self,
        who: &SessionIdentity,
        asked: &NewQuestion,
        question: SessionKey,
        tell: &mpsc::UnboundedSender<RecordEvent>,
    ) -> Result<Raised, BookFault> {
        let same = who.same(&self.keys.identity, asked)?;
        let live = || Live {
            question,
            tell: tell.clone(),
            same: same.clone(),
            known: Known::Nothing,
        };
        if asked.call.is_some()
            && !asked.is_ambiguous()
            && !self.is_new(&same)
            && let Some(row) = self.left_over(&same, &live()).await?
        {
            let id = row.id.clone();
            match self.take_over(row).await {
                Ok(Some(taken)) => return Ok(taken),
                // Another gateway was first: it is asked once more, beside it.
                Ok(None) => drop(self.live().remove(&id)),
                Err(fault) => {
                    self.live().remove(&id);
                    return Err(fault);
                }
            }
        }
        let row = self.new_row(who, asked, same.clone())?;
        let id = row.id.clone();
        // Known before it is written: an answer from another process must find who waits.
        self.live().insert(id.clone(), live());
        let entry = audit::entry("asked", &row, self.now());
        let written = row.body.at_client.then(|| row.clone());
        if let Err(fault) = self.store.insert(row, entry).await {
            // It may be there all the same.
            self.company.left_behind(&same);
            self.live().remove(&id);
            return Err(fault.into());
        }
        if let Some(row) = written {
            self.remember(row);
        }
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        self.changed();
        Ok(Raised {
            id,
            answered: false,
            refused: false,
        })
    }

    pub(super) fn new_row(
        &self,
        who: &SessionIdentity,
        asked: &NewQuestion,
        same: String,
    ) -> Result<Row, BookFault> {
        let id = seal::unguessable()?;
        let calling = asked.call.as_ref();
        let arguments = self.sealed_arguments(&id, asked)?;
        Ok(Row {
            same,
            owner: self.lease.name().to_owned(),
            claimed: false,
            exchange: Lifecycle::ask(self.now(), Some(asked.until))
                .keeping_answer(self.retention.answers),
            body: Body {
                server: who.server.shown_name(asked.server_info.as_deref()),
                address: (!who.server.is_named).then(|| who.server.address.clone()),
                principal: who.caller.clone(),
                mode: asked.request.mode(),
                message: Body::beginning_of(asked.request.message()),
                elicitation_id: elicitation_id(&asked.request),
                server_info: asked.server_info.clone(),
                client_info: asked.client_info.clone(),
                kind: calling.map(|calling| calling.kind),
                target: calling.map(|calling| calling.target.clone()),
                others: asked.others.clone(),
                fields: asked.fields.clone(),
                cautions: asked.cautions.clone(),
                at_client: asked.via == AskedVia::Client,
            },
            arguments,
            content: None,
            params: Some(params_of(&asked.request)),
            id,
        })
    }

    /// The oldest row of the same question that was answered, else that waits, and that no running call waits for; from
    /// here on, the call that is `live` waits for it.
    async fn left_over(&self, same: &str, live: &Live) -> Result<Option<Row>, BookFault> {
        let mark = self.company.mark_of(same);
        let mut rows = self.store.same(same.to_owned()).await?;
        rows.retain(|row| row.exchange.is_open() || row.exchange.is_deliverable(self.now()));
        if let Some(mark) = mark.filter(|_| rows.is_empty()) {
            self.company.nothing_left(same, mark);
        }
        rows.sort_by_key(|row| row.exchange.is_open());
        for row in rows {
            let elsewhere = !self.lease.is_mine(&row.owner) && self.lease.is_held(&row.owner);
            if elsewhere || row.exchange.is_due(self.now()) {
                continue;
            }
            // Looked at and taken in one step: two calls that come at once must not both have it.
            if let Entry::Vacant(free) = self.live().entry(row.id.clone()) {
                free.insert(live.clone());
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Returns whether no running gateway has a call that waits for it, and something can still come of it.
    fn may_take_over(&self, row: &Row) -> bool {
        let elsewhere = !self.lease.is_mine(&row.owner) && self.lease.is_held(&row.owner);
        let open = row.exchange.is_open() && !row.exchange.is_due(self.now());
        !elsewhere && (open || row.exchange.is_deliverable(self.now()))
    }

    /// The row is this gateway's from now on, so that others see that it is waited for.
    pub(super) async fn take_over(&self, mut row: Row) -> Result<Option<Raised>, BookFault> {
        let id = row.id.clone();
        for _ in 0..TRIES {
            let answered = !row.exchange.is_open();
            let refused = row.exchange.delivery() == Some(Delivery::Failed);
            let seen = row.exchange.version();
            let next = Row {
                owner: self.lease.name().to_owned(),
                claimed: false,
                // Of two gateways that take it over at once, the second must see that it was.
                exchange: row.exchange.renewed(),
                ..row
            };
            if self.put(next, seen, Vec::new()).await? {
                self.counts.found.fetch_add(1, Ordering::Relaxed);
                self.changed();
                return Ok(Some(Raised {
                    id,
                    answered,
                    refused,
                }));
            }
            // Somebody saw, answered or took it over meanwhile.
            match self.find(&id).await? {
                Some(now) if self.may_take_over(&now) => row = now,
                Some(_) | None => return Ok(None),
            }
        }
        Err(BookFault::Contended)
    }
}

fn elicitation_id(request: &ElicitRequest) -> Option<String> {
    match request {
        ElicitRequest::Url { elicitation_id, .. } => elicitation_id.clone(),
        ElicitRequest::Form { .. } => None,
    }
}
