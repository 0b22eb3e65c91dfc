//! The audit: what happened to every question, as a chain that shows when a link was changed or taken out.

use mcp_elicit_core::exchange::Moment;
use serde::Serialize;

use crate::relay::CallKind;
use crate::store::{Audited, Row, Store, StoreFault, chained};

/// How many links are read at once.
const PAGE: usize = 1_000;

/// One event as the audit says it: who, which server and tool, fields' names, outcome and time. Never a value.
#[derive(Serialize)]
struct Entry<'a> {
    at: u64,
    event: &'a str,
    id: &'a str,
    server: &'a str,
    principal: &'a str,
    mode: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    others: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    fields: &'a [String],
}

/// What the audit says of one event, JSON.
pub(crate) fn entry(event: &str, row: &Row, now: Moment) -> String {
    let body = &row.body;
    let delivery = row.exchange.delivery_reason();
    let entry = Entry {
        at: now.as_millis(),
        event,
        id: &row.id,
        server: &body.server,
        principal: &body.principal,
        mode: body.mode.as_str(),
        kind: body.kind.map(CallKind::word),
        target: body.target.as_deref(),
        others: &body.others,
        by: row.exchange.ended_by(),
        reason: delivery.as_deref().or_else(|| row.exchange.reason()),
        fields: &body.fields,
    };
    serde_json::to_string(&entry).expect("texts and a number, written to memory")
}

/// What a look at the whole chain found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every link fits the one before.
    Whole {
        /// How many links.
        links: u64,
    },
    /// The first link that does not.
    BrokenAt {
        /// Its number.
        number: u64,
    },
}

/// Reads every link, in order.
pub async fn read(store: &dyn Store) -> Result<Vec<Audited>, StoreFault> {
    let mut all: Vec<Audited> = Vec::new();
    loop {
        let from = all.last().map_or(1, |last| last.number + 1);
        let page = store.audit(from, PAGE).await?;
        let done = page.len() < PAGE;
        all.extend(page);
        if done {
            return Ok(all);
        }
    }
}

/// Whether the chain is whole. A chain that was cut off at its end is whole: keep the last hash elsewhere to see that.
pub fn verify(links: &[Audited]) -> Verdict {
    let mut before = "";
    for (at, link) in links.iter().enumerate() {
        let expected = at as u64 + 1;
        if link.number != expected || link.hash != chained(before, &link.entry) {
            return Verdict::BrokenAt { number: expected };
        }
        before = &link.hash;
    }
    Verdict::Whole {
        links: links.len() as u64,
    }
}
