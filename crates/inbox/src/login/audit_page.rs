//! The page of the audit, for auditors and administrators, and its exports.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::stream;
use mcp_elicit_forms::web::{
    self, AuditChoice, AuditFilters, AuditLine, AuditPage, AuditQuestion, AuditRows, OutcomeTone,
    SiteNotice,
};
use mcp_elicit_policy::access::{self, AccessAction};
use mcp_elicit_record::audit::{self, AuditFilter, AuditedEvent, AuditedQuestion, Member};
use mcp_elicit_record::store::AuditEntry;
use serde::Deserialize;
use serde_json::{Value, json};

use super::pages::go;
use super::request_session::Gate;
use crate::api_tokens::ApiTokens;
use crate::audit_selection::{
    AuditSelection, call_in_words, details_in_words, name_key, outcome_in_words,
};
use crate::viewer::{InboxViewer, SignedIn};

/// The most events on a page.
const EVENTS: usize = 100;
/// The most questions on a page.
const QUESTIONS: usize = 50;
/// The number of links that an export reads at once.
const READ_AT_ONCE: u64 = 1_000;

/// The query of the page.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct AuditPageQuery {
    /// Only events with smaller numbers.
    before: Option<u64>,
    view: String,
    event: String,
    outcome: String,
    server: String,
    question: String,
    person: String,
    caller: String,
    since: String,
    until: String,
}

/// The query of an export.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ExportQuery {
    format: String,
}

impl AuditPageQuery {
    fn selection(&self) -> AuditSelection {
        AuditSelection {
            event: self.event.clone(),
            outcome: self.outcome.clone(),
            server: self.server.clone(),
            question: self.question.clone(),
            person: self.person.clone(),
            caller: self.caller.clone(),
            since: self.since.clone(),
            until: self.until.clone(),
        }
    }

    /// Returns `true` if a row is an event; an event can only be selected there.
    fn shows_events(&self) -> bool {
        self.view == "events" || !self.event.is_empty()
    }

    /// Returns the query with these members before its filters.
    fn with(&self, first: &[(&str, &str)]) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(first);
        let filters = [
            ("event", &self.event),
            ("outcome", &self.outcome),
            ("server", &self.server),
            ("question", &self.question),
            ("person", &self.person),
            ("caller", &self.caller),
            ("since", &self.since),
            ("until", &self.until),
        ];
        query.extend_pairs(filters.iter().filter(|(_, value)| !value.is_empty()));
        query.finish()
    }

    /// Returns the query of the rows before this number.
    fn before(&self, number: u64) -> String {
        let number = number.to_string();
        let mut first = vec![("before", number.as_str())];
        if self.shows_events() {
            first.push(("view", "events"));
        }
        self.with(&first)
    }
}

/// Returns the reader, or the response to one who may not read the audit.
fn reader<'v>(gate: &Gate, viewer: Option<&'v InboxViewer>) -> Result<&'v SignedIn, Box<Response>> {
    let Some(viewer) = viewer else {
        let login = format!("{}/login?next=/audit", gate.site.outer_path());
        return Err(Box::new(go(&login)));
    };
    let Some(signed_in) = viewer.person() else {
        return Err(Box::new(StatusCode::FORBIDDEN.into_response()));
    };
    if access::may(gate.people().role(viewer), AccessAction::Audit).is_ok() {
        return Ok(signed_in);
    }
    let line = "Only auditors and administrators read the audit.";
    let notice = SiteNotice {
        head: "Not yours to read".to_owned(),
        lines: vec![line.to_owned()],
        links: vec![(
            format!("{}/", gate.site.path()),
            "Questions for you".to_owned(),
        )],
        ..SiteNotice::default()
    };
    Err(Box::new(web::notice(
        &gate.site,
        StatusCode::FORBIDDEN,
        notice,
    )))
}

pub(super) async fn audit(
    State(gate): State<Arc<Gate>>,
    viewer: Option<Extension<InboxViewer>>,
    query: Result<Query<AuditPageQuery>, QueryRejection>,
) -> Response {
    let viewer = viewer.map(|Extension(viewer)| viewer);
    let signed_in = match reader(&gate, viewer.as_ref()) {
        Ok(signed_in) => signed_in,
        Err(response) => return *response,
    };
    let query = query.map(|Query(query)| query).unwrap_or_default();
    let keys = gate.directory.keys();
    let selection = query.selection();
    let (filter, wrong_time) = match selection.filter(keys, (gate.clock)()) {
        Ok(filter) => (filter, None),
        // Nothing is shown rather than too much.
        Err(wrong) => (nothing(), Some(format!("{wrong}."))),
    };
    let found = match rows(&gate, &query, &filter, keys).await {
        Ok(found) => found,
        Err(fault) => {
            tracing::error!(%fault, "the audit cannot be read");
            let line = "The record cannot be read. Try again later.";
            return gate.notice(StatusCode::SERVICE_UNAVAILABLE, "Not now", line);
        }
    };
    let (rows, older) = found;
    web::audit(
        &gate.site,
        AuditPage {
            name: signed_in.name.clone(),
            rows,
            older: older
                .filter(|_| wrong_time.is_none())
                .map(|number| query.before(number)),
            filters: filters(&query, wrong_time),
            is_filtered: selection != AuditSelection::default(),
            query: query.with(&[]),
        },
    )
}

/// Returns a filter that selects no event.
fn nothing() -> AuditFilter {
    AuditFilter {
        events: vec![String::new()],
        ..AuditFilter::default()
    }
}

async fn rows(
    gate: &Gate,
    query: &AuditPageQuery,
    filter: &AuditFilter,
    keys: Option<&ApiTokens>,
) -> Result<(AuditRows, Option<u64>), mcp_elicit_record::store::RecordStoreError> {
    let store = gate.record.store();
    if query.shows_events() {
        let page = audit::latest_events(store, filter, query.before, EVENTS).await?;
        let lines = page.links.iter().filter_map(|link| line(link, keys));
        return Ok((AuditRows::Events(lines.collect()), page.older));
    }
    let page = audit::latest_questions(store, filter, query.before, QUESTIONS).await?;
    let lines = page.questions.iter().map(|found| question(found, keys));
    Ok((AuditRows::Questions(lines.collect()), page.older))
}

fn filters(query: &AuditPageQuery, wrong_time: Option<String>) -> AuditFilters {
    let choice = |value: &str, label: &str, chosen: &str| AuditChoice {
        value: value.to_owned(),
        label: label.to_owned(),
        is_chosen: value == chosen,
    };
    let outcomes = audit::OUTCOMES
        .iter()
        .map(|(name, event)| choice(name, event.in_words(), &query.outcome));
    let mut events: Vec<_> = audit::events()
        .map(|event| choice(event, audit::event_in_words(event), &query.event))
        .collect();
    events.sort_unstable_by(|one, other| one.label.cmp(&other.label));
    AuditFilters {
        outcomes: outcomes.collect(),
        events,
        person: query.person.clone(),
        caller: query.caller.clone(),
        server: query.server.clone(),
        question: query.question.clone(),
        since: query.since.clone(),
        until: query.until.clone(),
        wrong_time,
    }
}

fn moment(millis: i64) -> String {
    jiff::Timestamp::from_millisecond(millis).map_or_else(
        |_| String::new(),
        |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

/// Returns a time in RFC 3339 format, in UTC.
fn iso(millis: i64) -> String {
    jiff::Timestamp::from_millisecond(millis).map_or_else(|_| String::new(), |at| at.to_string())
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the event of a link; `None` if it cannot be read.
fn line(link: &AuditEntry, keys: Option<&ApiTokens>) -> Option<AuditLine> {
    let mut entry = AuditedEvent::read(&link.entry)?;
    name_key(&mut entry, keys);
    let text = audit::in_words(&entry, moment);
    let question = entry.question().filter(|id| is_id(id));
    Some(AuditLine {
        number: link.number,
        event: audit::event_in_words(entry.text(Member::Event).unwrap_or("-")).to_owned(),
        text: text.trim().replace("  ", " · "),
        at: entry.at().unwrap_or_default().as_millis(),
        question: question.map(str::to_owned),
    })
}

fn question(found: &AuditedQuestion, keys: Option<&ApiTokens>) -> AuditQuestion {
    let outcome = outcome_in_words(found);
    AuditQuestion {
        id: Some(found.id.clone())
            .filter(|id| is_id(id))
            .unwrap_or_default(),
        call: call_in_words(found),
        tone: match outcome {
            "approved" | "accepted" => OutcomeTone::Good,
            "declined" | "failed" => OutcomeTone::Bad,
            _ => OutcomeTone::Plain,
        },
        outcome: outcome.to_owned(),
        details: details_in_words(found, keys),
        at: found.asked_at.unwrap_or(found.last_at).as_millis(),
        is_asked_at: found.asked_at.is_some(),
        events: found.events,
    }
}

/// Returns the events that match as a file: comma-separated values, or JSON lines. The file is written while the audit is
/// read, the oldest event first.
pub(super) async fn export(
    State(gate): State<Arc<Gate>>,
    viewer: Option<Extension<InboxViewer>>,
    format: Result<Query<ExportQuery>, QueryRejection>,
    query: Result<Query<AuditPageQuery>, QueryRejection>,
) -> Response {
    let viewer = viewer.map(|Extension(viewer)| viewer);
    if let Err(response) = reader(&gate, viewer.as_ref()) {
        return *response;
    }
    let unusable = |line: &str| gate.notice(StatusCode::BAD_REQUEST, "Not exported", line);
    let is_csv = match format.as_ref().map(|Query(query)| query.format.as_str()) {
        Ok("csv") => true,
        Ok("json") => false,
        _ => return unusable("The format is csv or json."),
    };
    let Ok(Query(query)) = query else {
        return unusable("The address of the export cannot be read.");
    };
    let filter = match query
        .selection()
        .filter(gate.directory.keys(), (gate.clock)())
    {
        Ok(filter) => filter,
        Err(wrong) => return unusable(&format!("{wrong}.")),
    };
    let end = match gate.record.store().audit_end().await {
        Ok(end) => end,
        Err(fault) => {
            tracing::error!(%fault, "the audit cannot be read");
            let line = "The record cannot be read. Try again later.";
            return gate.notice(StatusCode::SERVICE_UNAVAILABLE, "Not now", line);
        }
    };
    let (media_type, name) = if is_csv {
        ("text/csv; charset=utf-8; header=present", "audit.csv")
    } else {
        ("application/x-ndjson", "audit.jsonl")
    };
    let head = is_csv.then(|| Bytes::from_static(audit::CSV_HEADER.as_bytes()));
    let parts = stream::unfold(
        PageExport {
            gate,
            filter,
            is_csv,
            next: 1,
            end,
            head,
        },
        PageExport::next,
    );
    let headers = [
        (CONTENT_TYPE, media_type.to_owned()),
        (
            CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}\""),
        ),
    ];
    (headers, Body::from_stream(parts)).into_response()
}

/// An export in progress.
struct PageExport {
    gate: Arc<Gate>,
    filter: AuditFilter,
    is_csv: bool,
    /// The number of the next link to be read.
    next: u64,
    /// The number of the last link when the export began.
    end: u64,
    head: Option<Bytes>,
}

impl PageExport {
    async fn next(mut self) -> Option<(Result<Bytes, std::io::Error>, Self)> {
        if let Some(head) = self.head.take() {
            return Some((Ok(head), self));
        }
        while self.next <= self.end {
            let until = self.next.saturating_add(READ_AT_ONCE).min(self.end + 1);
            let most = usize::try_from(until - self.next).unwrap_or(0);
            let store = self.gate.record.store();
            let found = store.audit_matching(self.filter.clone(), self.next..until, most);
            let links = match found.await {
                Ok(links) => links,
                // The file ends without its last part, which the browser reports.
                Err(fault) => {
                    tracing::error!(%fault, "the audit cannot be read");
                    self.next = u64::MAX;
                    return Some((Err(std::io::Error::other("the audit cannot be read")), self));
                }
            };
            self.next = until;
            if links.is_empty() {
                continue;
            }
            let part: String = links.iter().rev().map(|link| self.line(link)).collect();
            return Some((Ok(Bytes::from(part)), self));
        }
        None
    }

    fn line(&self, link: &AuditEntry) -> String {
        if self.is_csv {
            return audit::csv_line(link, iso);
        }
        let entry: Value = serde_json::from_str(&link.entry).unwrap_or_default();
        let record = json!({"number": link.number, "hash": link.hash, "entry": entry});
        format!("{record}\n")
    }
}
