//! The page of the audit: a row per question, or a row per event.

use std::time::{Duration, SystemTime};

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::clock::{Moment, moment};
use super::page::Shell;
use super::router::page;
use super::site::Site;
use super::site_pages::signed_in;
use crate::theme;
use crate::view::sanitize;

/// One event of the audit.
#[derive(Clone, Debug)]
pub struct AuditLine {
    /// Its number in the chain.
    pub number: u64,
    /// Its kind, in words.
    pub event: String,
    /// Its details, in words.
    pub text: String,
    /// The time, in milliseconds since 1970.
    pub at: u64,
    /// The id of its question.
    pub question: Option<String>,
}

/// The tone of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeTone {
    /// Accepted or approved.
    Good,
    /// Declined or failed.
    Bad,
    /// Without an answer.
    Plain,
}

/// One question of the audit.
#[derive(Clone, Debug)]
pub struct AuditQuestion {
    /// Its id.
    pub id: String,
    /// Its tool and server.
    pub call: String,
    /// Its outcome, in words.
    pub outcome: String,
    /// The tone of the outcome.
    pub tone: OutcomeTone,
    /// Further details, in words: actor, caller, rule, delivery.
    pub details: Vec<String>,
    /// The time at which it was asked, or else of its latest event, in milliseconds since 1970.
    pub at: u64,
    /// `true` if that is the time at which it was asked.
    pub is_asked_at: bool,
    /// The number of its events.
    pub events: u64,
}

/// The rows of the page, the latest first.
#[derive(Clone, Debug)]
pub enum AuditRows {
    /// A row per question.
    Questions(Vec<AuditQuestion>),
    /// A row per event.
    Events(Vec<AuditLine>),
}

/// A choice of a filter.
#[derive(Clone, Debug)]
pub struct AuditChoice {
    /// Its value in the address.
    pub value: String,
    /// Its label.
    pub label: String,
    /// `true` if it is chosen.
    pub is_chosen: bool,
}

/// The filters of the page, as entered.
#[derive(Clone, Debug, Default)]
pub struct AuditFilters {
    /// The outcomes.
    pub outcomes: Vec<AuditChoice>,
    /// The kinds of events.
    pub events: Vec<AuditChoice>,
    /// A person.
    pub person: String,
    /// A caller.
    pub caller: String,
    /// The server.
    pub server: String,
    /// The beginning of the question's id.
    pub question: String,
    /// The first day or time.
    pub since: String,
    /// The last day or time.
    pub until: String,
    /// The reason why a time cannot be used.
    pub wrong_time: Option<String>,
}

/// The page of the audit.
#[derive(Clone, Debug)]
pub struct AuditPage {
    /// The reader's name.
    pub name: String,
    /// The rows.
    pub rows: AuditRows,
    /// The filters.
    pub filters: AuditFilters,
    /// `true` if any filter is used.
    pub is_filtered: bool,
    /// The query of this page without its place, for exports and the other view; empty for none.
    pub query: String,
    /// The query of the rows before these; `None` if there are none.
    pub older: Option<String>,
}

#[derive(Clone, Debug)]
struct EventRow {
    number: u64,
    event: String,
    text: String,
    at: Option<Moment>,
    question: Option<String>,
}

#[derive(Clone, Debug)]
struct QuestionRow {
    id: String,
    call: String,
    outcome: String,
    tone: &'static str,
    details: Vec<String>,
    at: Option<Moment>,
    is_asked_at: bool,
    events: u64,
}

/// Returns the beginning of a question's id, as the command shows it.
fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

impl EventRow {
    fn short_id(&self) -> String {
        short(self.question.as_deref().unwrap_or_default())
    }
}

impl QuestionRow {
    fn short_id(&self) -> String {
        short(&self.id)
    }
}

/// The audit, the latest first.
#[derive(Template)]
#[template(path = "audit.html")]
struct AuditTemplate {
    shell: Shell,
    events: Vec<EventRow>,
    questions: Vec<QuestionRow>,
    by_question: bool,
    filters: AuditFilters,
    /// The addresses of the other view, and of the exports.
    other_view: String,
    csv: String,
    json: String,
    older: Option<String>,
    is_filtered: bool,
}

/// Returns the page of the audit.
pub fn audit(site: &Site, audit: AuditPage) -> Response {
    let time = |at: u64| {
        SystemTime::UNIX_EPOCH
            .checked_add(Duration::from_millis(at))
            .and_then(moment)
    };
    let line = |text: &str| sanitize::line(text, sanitize::ARGUMENTS);
    let (mut events, mut questions) = (Vec::new(), Vec::new());
    let by_question = matches!(audit.rows, AuditRows::Questions(_));
    match audit.rows {
        AuditRows::Events(lines) => events.extend(lines.into_iter().map(|event| EventRow {
            number: event.number,
            event: sanitize::line(&event.event, sanitize::LABEL),
            text: line(&event.text),
            at: time(event.at),
            question: event.question,
        })),
        AuditRows::Questions(lines) => {
            questions.extend(lines.into_iter().map(|question| QuestionRow {
                call: line(&question.call),
                outcome: sanitize::line(&question.outcome, sanitize::LABEL),
                tone: match question.tone {
                    OutcomeTone::Good => "good",
                    OutcomeTone::Bad => "bad",
                    OutcomeTone::Plain => "",
                },
                details: question.details.iter().map(|text| line(text)).collect(),
                at: time(question.at),
                is_asked_at: question.is_asked_at,
                events: question.events,
                id: question.id,
            }));
        }
    }
    let address = |path: &str, more: &str| {
        let and = if audit.query.is_empty() || more.is_empty() {
            ""
        } else {
            "&"
        };
        let query = format!("{more}{and}{}", audit.query);
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}{path}{mark}{query}", site.base)
    };
    let template = AuditTemplate {
        shell: signed_in(site, &audit.name),
        other_view: address("/audit", if by_question { "view=events" } else { "" }),
        csv: address("/audit/export", "format=csv"),
        json: address("/audit/export", "format=json"),
        older: audit
            .older
            .map(|query| format!("{}/audit?{query}", site.base)),
        is_filtered: audit.is_filtered,
        filters: audit.filters,
        events,
        questions,
        by_question,
    };
    page(StatusCode::OK, &template)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shown(rows: AuditRows, is_filtered: bool, older: Option<&str>) -> String {
        let site = Site::loopback(([127, 0, 0, 1], 7878).into()).unwrap();
        let page = audit(
            &site,
            AuditPage {
                name: "Ada".to_owned(),
                rows,
                filters: AuditFilters::default(),
                is_filtered,
                query: "person=ada".to_owned(),
                older: older.map(str::to_owned),
            },
        );
        let page = axum::body::to_bytes(page.into_body(), usize::MAX).await;
        String::from_utf8(page.unwrap().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn an_empty_audit_says_so_and_a_search_without_a_hit_says_that() {
        let events = || AuditRows::Events(Vec::new());
        for (rows, is_filtered, older, says) in [
            (events(), false, None, "Nothing has happened yet."),
            (events(), true, None, "Nothing matches."),
            (events(), true, Some("before=7"), "There are older ones."),
            (
                AuditRows::Questions(Vec::new()),
                false,
                None,
                "No question has been asked yet.",
            ),
        ] {
            let page = shown(rows, is_filtered, older).await;
            assert!(page.contains(says), "{page}");
            assert!(
                page.contains("/audit/export?format=csv&#38;person=ada")
                    || page.contains("/audit/export?format=csv&amp;person=ada"),
                "{page}"
            );
        }
    }

    #[tokio::test]
    async fn a_question_is_one_row_without_hidden_characters() {
        let question = AuditQuestion {
            id: "0123456789abcdef".to_owned(),
            call: "deploy\u{202e} on demo".to_owned(),
            outcome: "approved".to_owned(),
            tone: OutcomeTone::Good,
            details: vec!["by <b>ada</b>".to_owned(), "rule ops".to_owned()],
            at: 0,
            is_asked_at: true,
            events: 1,
        };
        let page = shown(AuditRows::Questions(vec![question]), false, None).await;
        for part in [
            "deploy‹U+202E› on demo",
            "tag good\">approved",
            "1 event</a>",
            "asked <time",
            "view=events&amp;question=0123456789abcdef",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<b>ada"), "{page}");
    }
}
