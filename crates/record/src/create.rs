//! The creation of a question, which is found again if the same call of the same principal has asked it before.

use crate::{RecordEvent, SessionKey};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::{Delivery, Lifecycle};
use mcp_elicit_core::question::{AskedVia, Ending, NewQuestion};
use std::collections::hash_map::Entry;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::apply::ChangeAttempt;
use super::approval_values;
use super::commit::CommitEffect;
use super::known::{KnownRow, Live};
use super::row::RowChange;
use super::team::{Team, VoteProgress};
use super::{
    Applied, Durability, Record, RecordError, RecordedQuestion, SessionIdentity, TRIES, audit,
    encryption,
};
use crate::store::{Body, RecordStore as _, Row, Write};

impl Record {
    /// Writes a question for the call that waits at `tell`, or finds the same question of the same call of the same
    /// principal that no call waits for any more.
    ///
    /// An authenticated caller has at most [`MAX_OPEN_OF_CALLER`](crate::caller_bound::MAX_OPEN_OF_CALLER) open
    /// questions, and at most [`MAX_OPEN_OF_SERVER`](crate::caller_bound::MAX_OPEN_OF_SERVER) of one server. The bytes of
    /// all questions are limited, too ([`stored_bytes`](crate::stored_bytes)), and so is the whole record
    /// ([`whole_record`](crate::whole_record)).
    ///
    /// With [`Durability::Behind`], a question that is certainly new belongs exclusively to this gateway, because its
    /// answer is expected in this process. If others may share the record, or the writer is full, it is written first.
    pub fn create(
        self: &Arc<Self>,
        who: &SessionIdentity,
        asked: &NewQuestion,
        question: SessionKey,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        durability: Durability,
    ) -> Applied<RecordedQuestion> {
        let row = match self.new_row(who, asked) {
            Ok(row) => row,
            Err(fault) => return Err(fault).into(),
        };
        let mut live = Live::new(question, tell, &row.binding);
        live.progress = VoteProgress::of(&row);
        let is_of_task = asked.task.is_some();
        let is_at_once = durability == Durability::Behind
            && !is_of_task
            && self.store.has_room()
            && self.is_new(&row.binding);
        if is_at_once
            && self.admit_to_whole_at_once(&row)
            && self.admit_at_once(&row)
            && self.admit_bytes_at_once(&row).is_ok()
        {
            return Applied::Now(self.create_exclusive(row, live));
        }
        let can_be_found = asked.call.is_some() && !asked.is_ambiguous();
        // A client's own dialog shows its question; people read theirs on pages.
        let form = asked.form.clone().filter(|_| asked.via == AskedVia::People);
        let record = self.clone();
        let call = asked.call.as_ref().filter(|_| row.team.is_some());
        let evidence = call.map(|call| self.keys.identity.evidence(&call.digest));
        Applied::pending(async move {
            if is_of_task {
                return record.create_in_task(row, form, live, evidence).await;
            }
            let created = record.create_awaited(row, form, live, can_be_found, evidence);
            created.await
        })
    }

    fn create_exclusive(&self, mut row: Row, mut live: Live) -> RecordedQuestion {
        row.exclusive = true;
        let recorded = RecordedQuestion::new(&row);
        live.known = Some(Box::new(KnownRow {
            audit: vec![audit::step_entry(audit::Event::Asked, &row, self.now())],
            row,
            written: None,
            answer: None,
        }));
        self.live().insert(recorded.id.clone(), live);
        self.commit_behind(None, &[(&recorded.id, CommitEffect::Asked)], || ());
        recorded
    }

    async fn create_awaited(
        &self,
        row: Row,
        form: Option<Arc<Form>>,
        live: Live,
        can_be_found: bool,
        evidence: Option<String>,
    ) -> Result<RecordedQuestion, RecordError> {
        if can_be_found
            && !self.is_new(&row.binding)
            && let Some(found) = self.adopt_left_over(&live).await?
        {
            return Ok(found);
        }
        // If another gateway was first, the question is asked again, beside it.
        self.insert_awaited(row, form, live, evidence).await
    }

    /// Writes a question of a task, unless another session of its caller has asked it: people answer it there, once.
    async fn create_in_task(
        self: &Arc<Self>,
        row: Row,
        form: Option<Arc<Form>>,
        live: Live,
        evidence: Option<String>,
    ) -> Result<RecordedQuestion, RecordError> {
        if let Some(found) = self.adopt_left_over(&live).await? {
            return Ok(found);
        }
        let (id, binding) = (row.id.clone(), row.binding.clone());
        if self.is_asked_elsewhere(&id, &binding).await? {
            return Err(RecordError::AskedElsewhere);
        }
        let created = self.insert_awaited(row, form, live, evidence).await?;
        // Another one may have been written meanwhile. Each of both yields if it sees the other: the next status asks again.
        if self.is_asked_elsewhere(&id, &binding).await? {
            self.end_awaited(&id, Ending::CallEnded).await?;
            return Err(RecordError::AskedElsewhere);
        }
        Ok(created)
    }

    /// Returns `true` if the record has the same question in another row, which is open or whose answer waits for the server.
    async fn is_asked_elsewhere(&self, id: &str, binding: &str) -> Result<bool, RecordError> {
        let rows = self.store.by_binding(binding.to_owned()).await?;
        let now = self.now();
        let counts = |row: &Row| row.id != id && !row.lifecycle.is_due(now);
        Ok(rows.iter().any(counts))
    }

    async fn adopt_left_over(&self, live: &Live) -> Result<Option<RecordedQuestion>, RecordError> {
        let Some(row) = self.left_over(live).await? else {
            return Ok(None);
        };
        let id = row.id.clone();
        let adopted = self.adopt(row).await;
        if let Ok(Some(_)) = &adopted {
            if let Some(live) = self.live().get_mut(&id) {
                live.is_adopting = false;
            }
        } else {
            self.live().remove(&id);
        }
        adopted
    }

    async fn insert_awaited(
        &self,
        row: Row,
        form: Option<Arc<Form>>,
        live: Live,
        evidence: Option<String>,
    ) -> Result<RecordedQuestion, RecordError> {
        self.admit_to_whole(&row).await?;
        self.admit(&row).await?;
        self.admit_bytes(&row).await?;
        if let Some(form) = form.filter(|form| !form.is_unread()) {
            self.parsed.keep_form(&row, form);
        }
        let recorded = RecordedQuestion::new(&row);
        let binding = row.binding.clone();
        // Registered before the write: an answer from another process must find the waiting call.
        self.live().insert(row.id.clone(), live);
        let entry = audit::step_entry(audit::Event::Asked, &row, self.now());
        let entry =
            audit::EntryText::continued(entry).with_some(audit::Member::Call, evidence.as_deref());
        let entry = entry.into_text();
        let written = row.is_at_client().then(|| row.clone());
        let write = Write::Insert {
            row: Box::new(row),
            audit: vec![entry],
        };
        let follow = || {
            if let Some(row) = written {
                self.remember(row);
            }
        };
        let effects = [(recorded.id.as_str(), CommitEffect::Asked)];
        let made = self.commit(Some(write), Durability::BeforeSeen, &effects, follow);
        if let Err(fault) = made.await {
            // The same question may exist anyway.
            self.presence.may_hold(&binding);
            self.live().remove(&recorded.id);
            return Err(fault);
        }
        Ok(recorded)
    }

    fn new_row(&self, who: &SessionIdentity, asked: &NewQuestion) -> Result<Row, RecordError> {
        let key = &self.keys.identity;
        let scope = self.scopes.of(key, who, asked.server_info.as_deref());
        let binding = scope.binding(key, asked)?;
        let id = encryption::random_id()?;
        let calling = asked.call.as_ref();
        let team = Team::of(asked)?;
        let is_approval = team.as_ref().is_some_and(|team| team.is_approval);
        let (arguments, arguments_left_out) = self.sealed_arguments(&id, asked, is_approval)?;
        Ok(Row {
            binding,
            owner: self.lock_file.name().to_owned(),
            exclusive: false,
            lifecycle: Lifecycle::ask(self.now(), Some(asked.until))
                .deliverable_within(self.retention().answers),
            body: Arc::new(Body {
                server: scope.server_name.clone(),
                address: (!who.server.is_named).then(|| who.server.address.clone()),
                principal: who.caller.clone(),
                mode: asked.request.mode(),
                message: Body::beginning_of(asked.request.message()),
                elicitation_id: asked.elicitation_id().map(str::to_owned),
                server_info: asked.server_info.as_deref().and_then(Body::short_info),
                client_info: asked.client_info.as_deref().and_then(Body::short_info),
                kind: calling.map(|calling| calling.kind),
                target: calling.map(|calling| calling.target.clone()),
                others: asked.others.clone(),
                fields: Body::short_names(&asked.fields),
                cautions: Body::short_sentences(&asked.warnings),
                at_client: asked.via == AskedVia::Client,
                unchecked: asked
                    .form
                    .as_deref()
                    .filter(|_| asked.via == AskedVia::Client)
                    .and_then(Form::unchecked),
                arguments_left_out,
                trace: asked.trace.clone(),
            }),
            arguments,
            content: None,
            params: Some(stored_params(asked, is_approval)),
            team,
            id,
        })
    }

    /// Returns the oldest row of the same question, preferably an answered one, that no running call waits for; from
    /// here on, the call of `live` waits for it.
    async fn left_over(&self, live: &Live) -> Result<Option<Row>, RecordError> {
        let binding = live.binding.as_str();
        let mark = self.presence.mark_of(binding);
        let mut rows = self.reusable(binding).await?;
        if let Some(mark) = mark.filter(|_| rows.is_empty()) {
            self.presence.holds_none(binding, mark);
        }
        if !rows.is_empty() {
            // The call comes again at once after its gateway has ended, and people would be asked twice.
            let unsure = rows.iter().filter(|row| !self.has_returned(row));
            let owners = unsure.map(|row| row.owner.as_str());
            self.lock_file.decide(owners).await;
            if rows.iter().any(|row| self.is_elsewhere(row)) {
                // One that still runs may have left it meanwhile.
                rows = self.reusable(binding).await?;
            }
        }
        for row in rows {
            if self.is_elsewhere(&row) || row.lifecycle.is_due(self.now()) {
                continue;
            }
            // Checked and claimed in one step: two simultaneous calls must not both have it.
            if let Entry::Vacant(free) = self.live().entry(row.id.clone()) {
                let mut live = Live::new(live.question, &live.tell, binding);
                live.progress = VoteProgress::of(&row);
                live.is_adopting = true;
                free.insert(live);
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Returns the rows of the same question that are open or whose answer can still be delivered, answered ones first.
    async fn reusable(&self, binding: &str) -> Result<Vec<Row>, RecordError> {
        let mut rows = self.store.by_binding(binding.to_owned()).await?;
        rows.retain(|row| row.lifecycle.is_open() || row.lifecycle.is_deliverable(self.now()));
        rows.sort_by_key(|row| row.lifecycle.is_open());
        Ok(rows)
    }

    /// Returns `true` if no running gateway has a call that waits for it, and it can still be answered or delivered.
    fn may_adopt(&self, row: &Row) -> bool {
        let open = row.lifecycle.is_open() && !row.lifecycle.is_due(self.now());
        !self.is_elsewhere(row) && (open || row.lifecycle.is_deliverable(self.now()))
    }

    /// Makes this gateway the owner of the row, so that others see that a call waits for it.
    pub(super) async fn adopt(
        &self,
        mut row: Row,
    ) -> Result<Option<RecordedQuestion>, RecordError> {
        let (id, trace) = (row.id.clone(), row.body.trace.clone());
        let owner = self.lock_file.name().to_owned();
        let adopt = RowChange::Adopt { owner };
        for _ in 0..TRIES {
            let answered = !row.lifecycle.is_open();
            let refused = row.lifecycle.delivery() == Some(Delivery::Failed);
            if matches!(self.apply_to(&row, &adopt).await?, ChangeAttempt::Done) {
                return Ok(Some(RecordedQuestion {
                    id,
                    answered,
                    refused,
                    trace,
                }));
            }
            // Another gateway has shown, answered or adopted it meanwhile.
            let found = self.find(&id).await?;
            self.lock_file.refresh().await;
            match found {
                Some(now) if self.may_adopt(&now) => row = now,
                Some(_) | None => return Ok(None),
            }
        }
        Err(RecordError::Contended)
    }
}

impl RecordedQuestion {
    fn new(row: &Row) -> Self {
        Self {
            id: row.id.clone(),
            answered: false,
            refused: false,
            trace: row.body.trace.clone(),
        }
    }
}

/// Returns the params as they are stored: those of an approval without the values of its call's arguments.
fn stored_params(asked: &NewQuestion, is_approval: bool) -> String {
    let params = asked.stored_params();
    let without = is_approval
        .then(|| approval_values::without_values(&params))
        .flatten();
    without.unwrap_or(params)
}
