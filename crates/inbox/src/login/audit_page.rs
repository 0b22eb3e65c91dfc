//! The page of the audit, for auditors and administrators.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use mcp_elicit_forms::web::{self, Audit, AuditLine, Notice};
use mcp_elicit_policy::access::{self, Action};
use mcp_elicit_record::audit;
use mcp_elicit_record::store::{AuditEntry, Store, StoreError};
use serde::Deserialize;
use serde_json::Value;

use super::pages::go;
use super::request_session::Gate;
use crate::viewer::Viewer;

/// The most events on a page.
const EVENTS: usize = 100;

/// The number of links read at once.
const READ_AT_ONCE: u64 = 1_000;

/// The most links read for one page, because matches may be rare.
const MAX_READ: u64 = 50_000;

/// The selection of events.
#[derive(Default, Deserialize)]
pub(super) struct AuditQuery {
    /// Only events with smaller numbers.
    before: Option<u64>,
    #[serde(default)]
    event: String,
    #[serde(default)]
    server: String,
    #[serde(default)]
    question: String,
}

impl AuditQuery {
    fn fits(&self, entry: &Value) -> bool {
        let is = |value: &str, name: &str| value.is_empty() || entry[name] == value;
        let begins = entry["id"].as_str().unwrap_or_default();
        is(&self.event, "event") && is(&self.server, "server") && begins.starts_with(&self.question)
    }

    /// Returns the query of the events before this number.
    fn before(&self, number: u64) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("before", &number.to_string());
        for (name, value) in [
            ("event", &self.event),
            ("server", &self.server),
            ("question", &self.question),
        ] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        query.finish()
    }
}

pub(super) async fn audit(
    State(gate): State<Arc<Gate>>,
    viewer: Option<Extension<Viewer>>,
    query: Result<Query<AuditQuery>, QueryRejection>,
) -> Response {
    let Some(Extension(viewer)) = viewer else {
        return go(&format!("{}/login?next=/audit", gate.site.path()));
    };
    let Some(signed_in) = viewer.person() else {
        return StatusCode::FORBIDDEN.into_response();
    };
    if access::may(gate.people().role(&viewer), Action::Audit).is_err() {
        let line = "Only auditors and administrators read the audit.";
        let notice = Notice {
            head: "Not yours to read".to_owned(),
            lines: vec![line.to_owned()],
            links: vec![(
                format!("{}/", gate.site.path()),
                "Questions for you".to_owned(),
            )],
            ..Notice::default()
        };
        return web::notice(&gate.site, StatusCode::FORBIDDEN, notice);
    }
    let query = query.map(|Query(query)| query).unwrap_or_default();
    let (lines, older) = match latest(gate.record.store(), &query).await {
        Ok(found) => found,
        Err(fault) => {
            tracing::error!(%fault, "the audit cannot be read");
            let line = "The record cannot be read. Try again later.";
            return gate.notice(StatusCode::SERVICE_UNAVAILABLE, "Not now", line);
        }
    };
    let mut events: Vec<_> = audit::events()
        .map(|event| (event, event == query.event))
        .collect();
    events.sort_unstable();
    web::audit(
        &gate.site,
        Audit {
            name: signed_in.name.clone(),
            lines,
            events,
            older: older.map(|number| query.before(number)),
            question: query.question,
            server: query.server,
        },
    )
}

/// Returns the latest matching events, and the number before which there may be older ones.
async fn latest(
    store: &dyn Store,
    query: &AuditQuery,
) -> Result<(Vec<AuditLine>, Option<u64>), StoreError> {
    let end = store.audit_end().await?;
    // The number after the last link to be read.
    let mut until = query.before.unwrap_or(u64::MAX).min(end.saturating_add(1));
    let last_read = until.saturating_sub(MAX_READ).max(1);
    let mut lines = Vec::new();
    while until > last_read {
        let from = until.saturating_sub(READ_AT_ONCE).max(last_read);
        let most = usize::try_from(until - from).unwrap_or(0);
        let read = store.audit(from, most).await?;
        for link in read.iter().rev() {
            lines.extend(line(link, query));
            if lines.len() == EVENTS {
                return Ok((lines, (link.number > 1).then_some(link.number)));
            }
        }
        until = from;
    }
    Ok((lines, (until > 1).then_some(until)))
}

/// Returns the event of a link, if it matches.
fn line(link: &AuditEntry, query: &AuditQuery) -> Option<AuditLine> {
    let entry: Value = serde_json::from_str(&link.entry).ok()?;
    if !query.fits(&entry) {
        return None;
    }
    let moment = |millis: i64| {
        jiff::Timestamp::from_millisecond(millis).map_or_else(
            |_| String::new(),
            |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        )
    };
    let question = entry["id"].as_str();
    let is_id = |id: &&str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some(AuditLine {
        number: link.number,
        event: entry["event"].as_str().unwrap_or("-").to_owned(),
        text: audit::in_words(&entry, moment).trim().replace("  ", " · "),
        at: entry["at"].as_u64().unwrap_or_default(),
        question: question.filter(is_id).map(str::to_owned),
    })
}
