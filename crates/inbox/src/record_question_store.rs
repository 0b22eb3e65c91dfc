//! The record as the pages of `forms` see it.

use std::sync::Arc;
use std::time::SystemTime;

use mcp_elicit_core::answer::{Draft, Outcome};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Phase;
use mcp_elicit_core::wire::{ElicitRequest, Mode};
use mcp_elicit_forms::view::{CallKind, CallView, Origin, QuestionView};
use mcp_elicit_forms::web::Viewer as _;
use mcp_elicit_forms::web::{
    Ended, Ending, ListFilter, QuestionId, QuestionList, QuestionStore, QuestionStoreError,
    QuestionSummary, StoredQuestion, SubmitResult,
};
use mcp_elicit_record::audit::Event;
use mcp_elicit_record::clock::system_time;
use mcp_elicit_record::store::{Filter, Page, Row};
use mcp_elicit_record::{Commit, Record, RecordError, Verdict};
use serde_json::Value;
use tokio::sync::watch;

use super::parsed_questions::{ParsedBody, ParsedQuestion, ParsedQuestions};
use super::viewer::Viewer;
use mcp_elicit_core::wire::CallKind as Calls;

/// The number of rows that are read for a list.
const MAX_ROWS_READ: usize = 10_000;

/// The form of a question of which a list shows the message only.
const NO_FIELDS: &str = r#"{"type":"object","properties":{}}"#;

/// The questions of one record.
pub struct RecordQuestionStore {
    record: Arc<Record>,
    parsed: ParsedQuestions,
}

/// A stored question as a person sees it, and what checks the answer to it.
pub struct Readable {
    /// The question as a frontend shows it.
    pub question: QuestionView,
    /// The question.
    pub request: ElicitRequest,
}

impl RecordQuestionStore {
    /// Creates a store over this record.
    pub fn new(record: Arc<Record>) -> Self {
        Self {
            record,
            parsed: ParsedQuestions::default(),
        }
    }

    /// Returns the row's question, parsed once; `None` when it cannot be read any more.
    pub(super) fn parsed(&self, row: &Row) -> Option<Arc<ParsedQuestion>> {
        self.parsed.get(row)
    }

    /// The row as a person sees it; `None` when it cannot be read any more.
    pub fn readable(&self, row: &Row) -> Option<Readable> {
        let parsed = self.parsed(row)?;
        let request = parsed.request.clone();
        let origin = origin(row);
        let message = parsed.request.message().to_owned();
        let question = match parsed.body.clone() {
            ParsedBody::Form(form) => QuestionView::form(origin, message, form),
            ParsedBody::Link(link) => QuestionView::url(origin, message, link),
        };
        let question = question.on_behalf_of(caller(row));
        let question = match client(row) {
            Some((name, version)) => question.through(&name, version.as_deref()),
            None => question,
        };
        let question = match self.call(row) {
            Some(call) => question.for_call(call),
            None => question,
        };
        let question = match row.lifecycle.deadline() {
            Some(deadline) => question.until(system_time(deadline)),
            None => question,
        };
        Some(Readable { question, request })
    }

    /// Writes into the audit that a form was accepted although it asks for a credential, where it was.
    pub(super) async fn note_credentials_allowed(&self, row: &Row, outcome: &Outcome, by: &str) {
        let asks_for_a_credential = matches!(outcome, Outcome::Accept(_))
            && self.readable(row).is_some_and(|readable| {
                let warnings = mcp_elicit_forms::view::warnings(&readable.question);
                warnings.iter().any(|warning| warning.asks_for_credential)
            });
        if !asks_for_a_credential {
            return;
        }
        let noted = self
            .record
            .audit_event(Event::Insisted, Some(&row.id), Some(by));
        if let Err(fault) = noted.await {
            tracing::error!(%fault, "an answer to a form that asks for a credential is not in the audit");
        }
    }

    fn call(&self, row: &Row) -> Option<CallView> {
        let kind = kind_of(row.body.kind?);
        let mut candidates = self.record.candidates(row).into_iter().map(|one| {
            let call = CallView::new(kind_of(one.kind), one.target);
            match one.arguments {
                Some(arguments) => call.with_json(arguments),
                None => call,
            }
        });
        if let Some(likeliest) = candidates.next() {
            return Some(likeliest.or_one_of_calls(candidates.collect()));
        }
        let call = CallView::new(kind, row.body.target.clone()?).or_one_of(row.body.others.clone());
        Some(match self.record.arguments(row) {
            Some(arguments) => call.with_json(arguments),
            None => call,
        })
    }

    fn summary(&self, row: &Row) -> Option<QuestionSummary> {
        let id = QuestionId::new(row.id.clone())?;
        // A list reads the beginning of the message and no form.
        let message = row.body.message.clone();
        let question = QuestionView::form(origin(row), message, Form::parse(NO_FIELDS).ok()?);
        let question = match self.call(row) {
            Some(call) => question.for_call(call),
            None => question,
        };
        let question = match row.lifecycle.deadline() {
            Some(deadline) => question.until(system_time(deadline)),
            None => question,
        };
        let summary =
            QuestionSummary::from_question(id, &question, system_time(row.lifecycle.asked_at()));
        Some(match ended(row) {
            Some(ended) => summary.ended(ended),
            None => summary,
        })
    }

    async fn summaries(
        &self,
        which: Filter,
        filter: &ListFilter,
    ) -> Result<Vec<QuestionSummary>, QuestionStoreError> {
        let most = if filter.text.is_empty() {
            filter.most
        } else {
            MAX_ROWS_READ
        };
        let rows = self
            .record
            .list(which, Page::first(most))
            .await
            .map_err(fault)?;
        let summaries = rows
            .iter()
            .filter(|row| may_match(row, &filter.text))
            .filter_map(|row| self.summary(row));
        Ok(summaries
            .filter(|summary| summary.matches(&filter.text))
            .take(filter.most)
            .collect())
    }
}

fn kind_of(kind: Calls) -> CallKind {
    match kind {
        Calls::Prompt => CallKind::Prompt,
        Calls::Resource => CallKind::Resource,
        Calls::Tool => CallKind::Tool,
    }
}

/// Returns whether the words may stand in what a list shows of the row: a look at its text, since reading a form takes longer. Marks
/// that a list leaves out, and characters that JSON spells otherwise, are not looked at.
fn may_match(row: &Row, words: &str) -> bool {
    let plain = |text: &str| {
        text.chars()
            .filter(|letter| letter.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    if words.is_empty() {
        return true;
    }
    let target = row.body.target.as_deref().unwrap_or_default();
    let text = plain(&format!(
        "{} {target} {}",
        row.body.server, row.body.message
    ));
    words
        .split_whitespace()
        .all(|word| text.contains(&plain(word)))
}

/// Returns who asks: by the operator's name first, and what the server says of itself apart from it.
fn origin(row: &Row) -> Origin {
    let origin = match &row.body.address {
        Some(address) => Origin::unnamed(address.clone()),
        None => Origin::new(row.body.server.clone()),
    };
    let origin = origin.connected("through the gateway");
    let info: Option<Value> = row
        .body
        .server_info
        .as_deref()
        .and_then(|info| serde_json::from_str(info).ok());
    let word = |name: &str| {
        info.as_ref()
            .and_then(|info| info.get(name)?.as_str())
            .map(str::to_owned)
    };
    match (word("name"), word("version")) {
        (Some(name), version) => origin.claiming(name, version.unwrap_or_default()),
        (None, _) => origin,
    }
}

/// On whose behalf the call was made, in words for a person.
pub fn caller(row: &Row) -> String {
    match row.body.principal.as_str() {
        "local" => "the user of this computer".to_owned(),
        "anonymous" => "a client that did not say who it is".to_owned(),
        principal => match principal.strip_prefix("bearer-") {
            Some(token) => format!("whoever has the token {token}"),
            None => verified(principal).unwrap_or_else(|| principal.to_owned()),
        },
    }
}

/// A verified caller in words: the holder of an API key, or a subject of an issuer.
fn verified(principal: &str) -> Option<String> {
    if let Some(id) = principal.strip_prefix("key-") {
        return Some(format!("the holder of the API key {id}"));
    }
    let (issuer, subject): (String, String) = serde_json::from_str(principal).ok()?;
    Some(format!("{subject} ({issuer})"))
}

/// The client that made the call, by the name and version it gave for itself.
pub fn client(row: &Row) -> Option<(String, Option<String>)> {
    let info: Value = serde_json::from_str(row.body.client_info.as_deref()?).ok()?;
    let word = |name: &str| info.get(name)?.as_str().map(str::to_owned);
    Some((word("name")?, word("version")))
}

fn ended(row: &Row) -> Option<Ended> {
    let exchange = &row.lifecycle;
    let reason = || exchange.reason().unwrap_or_default().to_owned();
    let url = row.body.mode == Mode::Url;
    let how = match (exchange.phase(), exchange.delivery_reason()) {
        (Phase::Asked | Phase::Shown, _) => return None,
        (Phase::Answered | Phase::Declined | Phase::Cancelled, Some(why)) => Ending::Failed(why),
        (Phase::Answered, None) if url => Ending::Visited,
        (Phase::Answered, None) => Ending::Answered,
        (Phase::Declined, None) => Ending::Declined,
        (Phase::Cancelled, None) => Ending::Cancelled,
        (Phase::TimedOut, _) => Ending::TimedOut,
        (Phase::Withdrawn, _) => Ending::Withdrawn(reason()),
        (Phase::Failed, _) => Ending::Failed(reason()),
    };
    let at = exchange
        .ended_at()
        .map_or(SystemTime::UNIX_EPOCH, system_time);
    Some(Ended {
        how,
        at,
        by: exchange.ended_by().map(str::to_owned),
    })
}

/// Returns what a person should know where no call waits for the question; `None` where one does.
fn waiting_note(record: &Record, row: &Row) -> Option<String> {
    let exchange = &row.lifecycle;
    if record.is_waited_for(row) {
        return None;
    }
    if exchange.is_open() && !row.can_be_found() {
        return Some(
            "No call waits for this question, and none can come for it: it is not known which call asked. Nobody gets an answer to it."
                .to_owned(),
        );
    }
    if exchange.is_open() {
        let kept = minutes(record.answer_retention());
        return Some(format!(
            "No call waits for this question now. The same call made again gets your answer, up to {kept} after you gave it."
        ));
    }
    let until = exchange.valid_until()?.as_millis();
    let left = until
        .checked_sub(record.now().as_millis())
        .filter(|left| *left > 0)?;
    let acted = exchange.phase().action().is_some();
    (acted && exchange.delivered_at().is_none() && exchange.delivery_reason().is_none()).then(|| {
        if !row.can_be_found() {
            return "No call has taken the answer, and none can come for it: it is not known which call asked.".to_owned();
        }
        let left = minutes(std::time::Duration::from_millis(left));
        format!("No call has taken the answer yet. The same call made again gets it, for {left} from now.")
    })
}

/// A span in whole minutes, rounded up.
fn minutes(span: std::time::Duration) -> String {
    match span.as_secs().div_ceil(60) {
        1 => "1 minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    }
}

fn fault(fault: RecordError) -> QuestionStoreError {
    QuestionStoreError(Box::new(fault))
}

impl QuestionStore for RecordQuestionStore {
    type Viewer = Viewer;

    async fn list(
        &self,
        _viewer: &Viewer,
        filter: &ListFilter,
    ) -> Result<QuestionList, QuestionStoreError> {
        Ok(QuestionList {
            pending: self.summaries(Filter::Open, filter).await?,
            pending_total: self
                .record
                .store()
                .waiting()
                .await
                .map_err(|error| fault(error.into()))?,
            recent: self.summaries(Filter::Ended, filter).await?,
        })
    }

    async fn find(
        &self,
        _viewer: &Viewer,
        id: &QuestionId,
    ) -> Result<Option<StoredQuestion>, QuestionStoreError> {
        let Some(row) = self.record.find(id.as_str()).await.map_err(fault)? else {
            return Ok(None);
        };
        if row.lifecycle.is_open()
            && let Some(readable) = self.readable(&row)
        {
            return Ok(Some(StoredQuestion::Open {
                question: Arc::new(readable.question),
                asked: system_time(row.lifecycle.asked_at()),
                draft: self.record.draft(&row.id),
            }));
        }
        Ok(self.summary(&row).map(StoredQuestion::Ended))
    }

    async fn note(&self, id: &QuestionId) -> Result<Option<String>, QuestionStoreError> {
        let row = self.record.find(id.as_str()).await.map_err(fault)?;
        Ok(row.and_then(|row| waiting_note(&self.record, &row)))
    }

    async fn shown(&self, _viewer: &Viewer, id: &QuestionId) -> Result<(), QuestionStoreError> {
        self.record.mark_shown(id.as_str()).await.map_err(fault)
    }

    async fn keep(
        &self,
        _viewer: &Viewer,
        id: &QuestionId,
        draft: Draft,
    ) -> Result<(), QuestionStoreError> {
        self.record.keep_draft(id.as_str(), draft);
        Ok(())
    }

    async fn submit(
        &self,
        viewer: &Viewer,
        id: &QuestionId,
        outcome: Outcome,
    ) -> Result<SubmitResult, QuestionStoreError> {
        let by = viewer.by();
        let row = self.record.find(id.as_str()).await.map_err(fault)?;
        match self
            .record
            .submit(id.as_str(), &outcome, &by, Commit::Awaited)
            .await
            .map_err(fault)?
        {
            Verdict::Won => {
                if let Some(row) = row {
                    self.note_credentials_allowed(&row, &outcome, &by).await;
                }
                Ok(SubmitResult::Won)
            }
            Verdict::Gone => Ok(SubmitResult::Gone),
            Verdict::Late(row) => Ok(ended(&row).map_or(SubmitResult::Gone, SubmitResult::Late)),
        }
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.record.changes()
    }
}

#[cfg(test)]
mod tests {
    use mcp_elicit_core::lifecycle::Timestamp;

    use super::*;
    use crate::sample;
    use mcp_elicit_record::store::Memory;
    use mcp_elicit_record::{Keys, LockFile};

    #[tokio::test]
    async fn an_answer_is_promised_to_a_later_call_only_where_one_can_find_it() {
        let store = Arc::new(Memory::default());
        let record = || {
            let keys = Keys::random().unwrap();
            let lease = LockFile::unshared().unwrap();
            let record = Record::new(store.clone(), keys, lease, || Timestamp::from_millis(1_000));
            Arc::new(record)
        };
        let first = record();
        let sure = sample::raised(&first, Vec::new()).await.unwrap();
        let other = vec!["plan".to_owned()];
        let unsure = sample::raised(&first, other).await.unwrap();
        // The gateway whose calls asked has ended.
        first.flush().await.unwrap();
        let second = record();
        let note = async |id: &str| {
            let row = second.find(id).await.unwrap().unwrap();
            waiting_note(&second, &row).unwrap_or_default()
        };
        assert!(note(&sure).await.contains("made again gets your answer"));
        let said = note(&unsure).await;
        assert!(said.contains("Nobody gets an answer"), "{said}");
        for id in [&sure, &unsure] {
            let won = second
                .submit(id, &Outcome::Decline, "a test", Commit::Awaited)
                .await;
            assert_eq!(won.unwrap(), Verdict::Won);
        }
        assert!(note(&sure).await.contains("made again gets it"));
        let said = note(&unsure).await;
        assert!(!said.contains("made again"), "{said}");
    }
}
