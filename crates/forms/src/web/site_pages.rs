//! Pages that an application shows beside the questions: notices, sessions and the audit.

use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use axum::response::Response;

use super::clock::{ago, moment};
use super::page::{
    AccountTemplate, Act, AuditRow, AuditTemplate, DeviceRow, NoticePage, PushPart, SessionPart,
    SessionRow, Shell,
};
use super::router::{other_method, page};
use super::site::Site;
use super::user_agent::browser_name;
use crate::theme::Tone;
use crate::view::sanitize;

/// A notice.
#[derive(Clone, Debug, Default)]
pub struct Notice {
    /// The heading.
    pub head: String,
    /// Whole sentences.
    pub lines: Vec<String>,
    /// Links at the foot: address and label.
    pub links: Vec<(String, String)>,
    /// The address of an automatic redirect.
    pub forward: Option<String>,
    /// `true` for a success; otherwise the page is about a failure.
    pub is_good: bool,
}

/// Returns a page of this site with a notice.
pub fn notice(site: &Site, status: StatusCode, notice: Notice) -> Response {
    let acts = notice.links.into_iter();
    let template = NoticePage {
        shell: Shell {
            base: site.prefix.clone(),
            ..Shell::default()
        },
        tone: if notice.is_good {
            Tone::Good
        } else {
            Tone::Locked
        },
        head: notice.head,
        lines: notice.lines,
        acts: acts.map(|(href, label)| Act { href, label }).collect(),
        forward: notice.forward,
        enter: None,
        history: Vec::new(),
        comments: Vec::new(),
    };
    page(status, &template)
}

/// Returns the page for a method that the address does not accept, for an application's other pages.
pub fn not_taken(site: &Site) -> Response {
    other_method(site)
}

/// A session on the page of sessions.
#[derive(Clone, Debug)]
pub struct SessionLine {
    /// Its public name.
    pub id: String,
    /// The person, if the list has several.
    pub of: Option<String>,
    /// The browser's own name.
    pub browser: String,
    /// The time of the sign-in, in seconds since 1970.
    pub signed_in: u64,
    /// The time of the last use, in seconds since 1970.
    pub last_used: u64,
    /// `true` if it is the reader's.
    pub is_this: bool,
}

/// A browser that is notified of questions, on the page of sessions.
#[derive(Clone, Debug)]
pub struct DeviceLine {
    /// Its public name.
    pub id: String,
    /// The browser's own name.
    pub browser: String,
    /// The time at which it was added, in seconds since 1970.
    pub added: u64,
    /// The time of the last notification, in seconds since 1970; `None` if there was none lately.
    pub reached: Option<u64>,
    /// The time of a later notification that failed, in seconds since 1970, and the reason.
    pub failed: Option<(u64, String)>,
    /// `true` if it is the reader's.
    pub is_this: bool,
}

/// Web push, on the page of sessions.
#[derive(Clone, Debug)]
pub struct PushAccount {
    /// The public key of the gateway, in base64url.
    pub key: String,
    /// The person's devices.
    pub devices: Vec<DeviceLine>,
}

/// The page of a person's sessions.
#[derive(Clone, Debug)]
pub struct Account {
    /// The person's name.
    pub name: String,
    /// Another name under which the person is known.
    pub known_as: Option<String>,
    /// The token of its forms.
    pub token: String,
    /// The person's sessions.
    pub own: Vec<SessionLine>,
    /// The sessions of others; `None` for readers who may not see them.
    pub others: Option<Vec<SessionLine>>,
    /// `true` if the reader may end the sessions of others.
    pub may_end_others: bool,
    /// The person's devices; `None` if none are notified.
    pub push: Option<PushAccount>,
    /// `true` if the reader may read the audit.
    pub may_audit: bool,
}

/// One event of the audit.
#[derive(Clone, Debug)]
pub struct AuditLine {
    /// Its number in the chain.
    pub number: u64,
    /// Its kind.
    pub event: String,
    /// Its details, in words.
    pub text: String,
    /// The time, in milliseconds since 1970.
    pub at: u64,
    /// The id of its question.
    pub question: Option<String>,
}

/// The page of the audit.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The reader's name.
    pub name: String,
    /// The latest events that match, the latest first.
    pub lines: Vec<AuditLine>,
    /// The kinds of events, and whether one is chosen.
    pub events: Vec<(&'static str, bool)>,
    /// The beginning of the id of the question; empty for all.
    pub question: String,
    /// The server; empty for all.
    pub server: String,
    /// The query of the events before these; `None` if there are none.
    pub older: Option<String>,
}

/// Returns the frame of a page beside the questions, for the person of this name.
fn signed_in(site: &Site, name: &str) -> Shell {
    Shell {
        base: site.base.clone(),
        inside: true,
        pending: 0,
        name: Some(sanitize::line(name, sanitize::LABEL)),
    }
}

/// Returns the page of the audit.
pub fn audit(site: &Site, audit: Audit) -> Response {
    let rows = audit.lines.into_iter().map(|line| AuditRow {
        number: line.number,
        event: sanitize::line(&line.event, sanitize::LABEL),
        text: sanitize::line(&line.text, sanitize::ARGUMENTS),
        at: SystemTime::UNIX_EPOCH
            .checked_add(Duration::from_millis(line.at))
            .and_then(moment),
        question: line.question,
    });
    let is_chosen = audit.events.iter().any(|(_, is_chosen)| *is_chosen)
        || !audit.question.is_empty()
        || !audit.server.is_empty();
    let template = AuditTemplate {
        is_empty: rows.len() == 0 && audit.older.is_none() && !is_chosen,
        shell: signed_in(site, &audit.name),
        rows: rows.collect(),
        events: audit.events,
        question: audit.question,
        server: audit.server,
        older: audit
            .older
            .map(|query| format!("{}/audit?{query}", site.base)),
    };
    page(StatusCode::OK, &template)
}

/// Returns the page of a person's sessions.
pub fn account(site: &Site, account: Account) -> Response {
    let now = (site.clock)();
    let rows = |lines: Vec<SessionLine>| {
        lines
            .into_iter()
            .map(|line| SessionRow {
                id: line.id,
                of: line.of.map(|of| sanitize::line(&of, sanitize::LABEL)),
                browser: sanitize::line(&browser_name(&line.browser), sanitize::LABEL),
                signed_in: ago(at(line.signed_in), now),
                last_used: ago(at(line.last_used), now),
                is_this: line.is_this,
            })
            .collect()
    };
    let mut parts = vec![SessionPart {
        anchor: "own",
        head: "Your sessions",
        may_end: true,
        sessions: rows(account.own),
    }];
    if let Some(others) = account.others {
        parts.push(SessionPart {
            anchor: "others",
            head: "Sessions of others",
            may_end: account.may_end_others,
            sessions: rows(others),
        });
    }
    let template = AccountTemplate {
        shell: signed_in(site, &account.name),
        name: sanitize::line(&account.name, sanitize::LABEL),
        known_as: account
            .known_as
            .map(|known_as| sanitize::line(&known_as, 2 * sanitize::LABEL)),
        may_audit: account.may_audit,
        csrf: account.token,
        push: account.push.map(|push| PushPart {
            key: push.key,
            devices: push
                .devices
                .into_iter()
                .map(|device| DeviceRow {
                    id: device.id,
                    browser: sanitize::line(&browser_name(&device.browser), sanitize::LABEL),
                    added: ago(at(device.added), now),
                    reached: match device.reached {
                        Some(reached) => format!("last notified {}", ago(at(reached), now)),
                        None => "not notified lately".to_owned(),
                    },
                    failed: device.failed.map(|(failed, why)| {
                        let why = sanitize::line(&why, sanitize::LABEL);
                        format!("a notification failed {} ({why})", ago(at(failed), now))
                    }),
                    is_this: device.is_this,
                })
                .collect(),
        }),
        parts,
    };
    page(StatusCode::OK, &template)
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_at_the_head_of_pages_have_no_hidden_characters() {
        let site = Site::loopback(([127, 0, 0, 1], 7878).into()).unwrap();
        let hostile = format!("Ada\u{202e}\u{200b}{}", "x".repeat(1_000));
        let page = account(
            &site,
            Account {
                name: hostile.clone(),
                known_as: Some(format!("Known here as {hostile}")),
                token: String::new(),
                own: Vec::new(),
                others: None,
                may_end_others: false,
                push: None,
                may_audit: false,
            },
        );
        let page = axum::body::to_bytes(page.into_body(), usize::MAX).await;
        let page = String::from_utf8(page.unwrap().to_vec()).unwrap();
        assert!(page.contains("Ada‹U+202E›‹U+200B›x"), "{page}");
        assert!(!page.contains(['\u{202e}', '\u{200b}']), "{page}");
        assert!(!page.contains(&"x".repeat(500)), "{page}");
    }

    #[tokio::test]
    async fn an_empty_audit_says_so_and_a_search_without_a_hit_says_that() {
        let site = Site::loopback(([127, 0, 0, 1], 7878).into()).unwrap();
        for (server, older, says) in [
            ("", None, "Nothing has happened yet."),
            ("deploy", None, "There is no such event."),
            ("", Some("before=7"), "There is no such event."),
        ] {
            let page = audit(
                &site,
                Audit {
                    name: "Ada".to_owned(),
                    lines: Vec::new(),
                    events: vec![("sign-in", false)],
                    question: String::new(),
                    server: server.to_owned(),
                    older: older.map(str::to_owned),
                },
            );
            let page = axum::body::to_bytes(page.into_body(), usize::MAX).await;
            let page = String::from_utf8(page.unwrap().to_vec()).unwrap();
            assert!(page.contains(says), "{page}");
        }
    }
}
