//! Pages that an application shows beside the questions: notices and sessions.

use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use axum::response::Response;
use mcp_elicit_core::text::beginning;

use super::clock::ago;
use super::page::{NoticeLink, NoticePage, Shell};
use super::router::{other_method, page};
use super::site::Site;
use super::site_templates::{
    AccountTemplate, DeviceRow, GrantRow, GrantsTemplate, PushPart, SessionPart, SessionRow,
};
use super::user_agent::browser_name;
use crate::theme::Tone;
use crate::view::{countdown, sanitize};

/// A notice.
#[derive(Clone, Debug, Default)]
pub struct SiteNotice {
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
pub fn notice(site: &Site, status: StatusCode, notice: SiteNotice) -> Response {
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
        acts: acts
            .map(|(href, label)| NoticeLink { href, label })
            .collect(),
        close: None,
        forward: notice.forward,
        enter: None,
        desktop_next: None,
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

/// Returns the frame of a page beside the questions, for the person of this name.
pub(super) fn signed_in(site: &Site, name: &str) -> Shell {
    Shell {
        base: site.base.clone(),
        inside: true,
        pending: 0,
        name: Some(sanitize::line(name, sanitize::LABEL)),
    }
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

/// An approval that applies for a while, on the page of these.
#[derive(Clone, Debug)]
pub struct GrantLine {
    /// Its id.
    pub id: String,
    /// The call that was approved.
    pub call: String,
    /// The id of the question in which it was approved, if that is stored.
    pub question: Option<String>,
    /// The server, if known.
    pub server: Option<String>,
    /// The caller, if known.
    pub caller: Option<String>,
    /// The rule by name.
    pub rule: String,
    /// The time of the approval.
    pub approved: SystemTime,
    /// The time until which it applies.
    pub until: SystemTime,
    /// `true` if the reader may end it.
    pub may_end: bool,
}

/// The page of approvals that apply for a while.
#[derive(Clone, Debug)]
pub struct Grants {
    /// The reader's name.
    pub name: String,
    /// The token of its forms.
    pub token: String,
    /// The reader's last action, in words.
    pub told: Option<String>,
    /// The approvals.
    pub grants: Vec<GrantLine>,
}

/// The characters of an id that a list shows.
const SHORT: usize = 8;

/// Returns the page of approvals that apply for a while.
pub fn grants(site: &Site, grants: Grants) -> Response {
    let now = (site.clock)();
    let line = |text: &str| sanitize::line(text, sanitize::LABEL);
    let row = |grant: GrantLine| {
        let left = grant.until.duration_since(now).unwrap_or_default();
        GrantRow {
            facts: format!(
                "approved {} under the rule {}, {}",
                ago(grant.approved, now),
                line(&grant.rule),
                match left.as_secs() {
                    0 => "over".to_owned(),
                    _ => format!("{} left", countdown::left(left)),
                }
            ),
            id: grant.id,
            short: grant
                .question
                .as_deref()
                .map(|id| beginning(id, SHORT).to_owned()),
            question: grant.question,
            call: line(&grant.call),
            server: grant.server.as_deref().map(line),
            called_by: grant.caller.as_deref().map(line),
            may_end: grant.may_end,
        }
    };
    let template = GrantsTemplate {
        shell: signed_in(site, &grants.name),
        csrf: grants.token,
        told: grants.told,
        grants: grants.grants.into_iter().map(row).collect(),
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
}
