//! The inbox: the pages of `forms` over the record, and a small JSON API for scripts.
//!
//! | file | contents |
//! | --- | --- |
//! | [`record_question_store`] | the record as a question store of the pages, with answers checked by the form |
//! | [`api`] | the same as JSON, protected by a token; `openapi.json` describes it |
//! | [`client`] | a client of the API |
//! | [`state_folder`] | the state folder: the inbox's address and access data |
//! | [`audit_selection`] | the selection of audit events, as people write it |
//! | [`backup`] | a backup of the state folder, its check, and the restore |
//! | [`api_tokens`] | tokens of programs: scoped, hashed, revocable |
//! | `shared_table` | a value of the record that several processes change |
//! | [`login`] | people who log in, where there are several |
//! | [`sessions`] | the signed-in browsers |
//! | [`team_view`] | the team's view of a question, and the team's actions |
//! | [`viewer`] | the person or program that views questions and acts on them |
//! | `socket` | the API for commands of the same user |
//! | [`direct_record`] | the record and its API for commands, if no gateway serves them |
//! | [`desktop_notice`] | a desktop notification when a question waits |

pub mod api;
pub mod api_tokens;
pub mod audit_selection;
pub mod backup;
pub mod client;
#[cfg(test)]
mod concurrent_starts;
pub mod desktop_notice;
pub mod direct_record;
mod drafts;
mod list_turns;
pub mod login;
#[cfg(test)]
mod lost_keys;
#[cfg(test)]
mod people_tests;
pub mod record_question_store;
#[cfg(any(test, fuzzing))]
pub mod sample;
pub mod seen_audit;
pub mod sessions;
mod shared_table;
#[cfg(unix)]
mod socket;
pub mod state_folder;
pub mod team_view;
pub mod viewer;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use mcp_elicit_forms::web::{self, ConnectionBounds, OpenedPage, QuestionId, Site};
use tokio::net::TcpListener;

use api::RequestAccess;
use login::directory::Directory;
use login::{Gate, LoginMode, Teams};
use mcp_elicit_record::Record;
use mcp_elicit_record::audit::Event;
use mcp_elicit_record::clock;
use record_question_store::RecordQuestionStore;
use state_folder::{InboxLock, LogInBy, PeopleInbox, StateFolder};

/// The lifetime of an unused login link.
const LOGIN_LIFE: Duration = Duration::from_secs(60 * 60);

/// Limits on browsers' connections. Behind a proxy all of them come from its address, so one address may have most of
/// them.
const BOUNDS: ConnectionBounds = ConnectionBounds {
    connections: 512,
    of_address: 384,
    of_loopback: 384,
    head: Duration::from_secs(10),
    head_bytes: 32 * 1024,
    body: Duration::from_secs(30),
    unread: Duration::from_secs(60),
};

/// The sign-in page's text without a desktop, and with one.
const SIGN_IN_BY_COMMAND: &str =
    "On the computer where the gateway runs, `mcp-elicit inbox open` signs a browser in.";
const SIGN_IN_BY_BUTTON: &str = "The button opens this page, signed in, in the browser of the computer where the gateway runs. \
    `mcp-elicit inbox open` in a terminal there does the same.";

/// Opens a login link in the browser of this machine, without showing its key to other users.
pub type OpenLink = fn(&str) -> io::Result<OpenedPage>;

/// A running inbox.
#[derive(Clone)]
pub struct Inbox {
    site: Site,
    folder: StateFolder,
    /// Held while this serves the state folder's inbox.
    lock: Option<Arc<InboxLock>>,
}

impl Inbox {
    /// Serves the pages of this record until the process ends: to the folder's owner at a loopback address, or to
    /// people who log in. With the lock of the state folder, it also records the address and serves the folder's
    /// commands. With `open` and a desktop, its owner can sign in from the sign-in page. `beside` is served at the same address to everyone, without a login, and must check its requests
    /// itself.
    ///
    /// # Errors
    /// If the listener has no address, or the state folder cannot be used.
    pub fn serve(
        record: &Arc<Record>,
        listener: TcpListener,
        folder: &StateFolder,
        lock: Option<InboxLock>,
        teams: Option<&Teams>,
        open: Option<OpenLink>,
        beside: Router,
    ) -> io::Result<Self> {
        let at = listener.local_addr()?;
        // Created before anyone can use it.
        folder.token()?;
        let address = teams.and_then(|teams| teams.login.address.as_deref());
        let site = match address {
            Some(address) => Site::public(address)?,
            None => Site::loopback(at)?,
        };
        let site = site.with_sessions(Arc::new(folder.sessions()))?;
        let (site, questions, gate) = match teams {
            None => {
                let site = site
                    .with_login_life(LOGIN_LIFE)
                    .naming_sessions()
                    .on_login(note_logins(record));
                let open = open.filter(|_| desktop_notice::is_desktop());
                let site = match open {
                    Some(open) => site
                        .signed_in_by(SIGN_IN_BY_BUTTON)
                        .signing_in_on_desktop(open),
                    None => site.signed_in_by(SIGN_IN_BY_COMMAND),
                };
                (site, RecordQuestionStore::new(record.clone()), None)
            }
            Some(teams) => {
                let site = match teams.login.mode {
                    // The proxy says who asks, each time: its cookie alone is worth nothing.
                    LoginMode::Proxy(_) => site.with_logins(),
                    #[cfg(feature = "teams")]
                    LoginMode::Oidc(_) => site.with_hidden_logins(),
                };
                let site = site.signed_in_by(teams.login.mode.how());
                let (directory, gate) = gate(record, folder, teams, &site)?;
                let questions = RecordQuestionStore::new(record.clone())
                    .for_people(directory)
                    .checking_rules(teams.is_asked_by.clone());
                (site, questions, Some(Arc::new(gate)))
            }
        };
        let questions = Arc::new(questions.naming_keys(Arc::new(folder.api_tokens())));
        let api = |access| api::router(record.clone(), questions.clone(), folder.clone(), access);
        let pages = web::router(questions.clone(), site.clone());
        let pages = match gate {
            None => pages,
            Some(gate) => pages
                .merge(login::router(gate.clone()))
                .layer(axum::middleware::from_fn_with_state(gate, login::identify)),
        };
        let app: Router = Router::new()
            .nest("/api", api(RequestAccess::Token(Box::new(site.clone()))))
            .merge(pages)
            .merge(beside);
        tokio::spawn(web::serve(listener, app, BOUNDS, std::future::pending()));
        if lock.is_some() {
            folder.write_inbox(at)?;
            let people = teams.map(|teams| PeopleInbox {
                address: site.address(),
                by: match teams.login.mode {
                    LoginMode::Proxy(_) => LogInBy::Proxy,
                    #[cfg(feature = "teams")]
                    LoginMode::Oidc(_) => LogInBy::Provider,
                },
            });
            folder.write_people_inbox(people.as_ref())?;
            #[cfg(unix)]
            serve_commands(folder, api(RequestAccess::Owner(Some(site.address()))));
        }
        Ok(Self {
            site,
            folder: folder.clone(),
            lock: lock.map(Arc::new),
        })
    }

    /// Removes the stored address of the state folder's inbox, if this serves it, before the process ends.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn forget(&self) -> io::Result<()> {
        match &self.lock {
            Some(lock) => self.folder.forget_inbox(lock),
            None => Ok(()),
        }
    }

    /// Creates an address that signs a browser in, once: for the person only.
    pub fn login_link(&self) -> io::Result<String> {
        self.site.login_link()
    }

    /// Returns the address of the pages, which signs no one in.
    pub fn address(&self) -> String {
        self.site.address()
    }

    /// Returns the address of a question's page, which signs no one in.
    pub fn deep_link(&self, id: &str) -> Option<String> {
        QuestionId::new(id).map(|id| self.site.deep_link(&id))
    }
}

/// Creates the login of an inbox of several people.
fn gate(
    record: &Arc<Record>,
    folder: &StateFolder,
    teams: &Teams,
    site: &Site,
) -> io::Result<(Arc<Directory>, Gate)> {
    let logins = Arc::new(folder.logins());
    let directory = Directory::new(
        teams.rules.clone(),
        logins.clone(),
        teams.login.issuer().to_owned(),
        teams.login.stale,
        clock::now,
    );
    let directory = Arc::new(directory.with_keys(Arc::new(folder.api_tokens())));
    let gate = Gate::new(
        teams.login.clone(),
        teams.rules.clone(),
        directory.clone(),
        logins,
        record.clone(),
        site.clone(),
        clock::now,
    )?;
    Ok((directory, gate.with_push(teams.push.clone())))
}

/// Audits each login before the browser is signed in.
fn note_logins(
    record: &Arc<Record>,
) -> impl Fn(&str) -> BoxFuture<'static, ()> + Send + Sync + 'static + use<> {
    let record = Arc::clone(record);
    move |session: &str| {
        let (record, by) = (
            Arc::clone(&record),
            format!("in the browser, session {session}"),
        );
        async move {
            if let Err(fault) = record.audit_event(Event::Login, None, Some(&by)).await {
                tracing::error!(%fault, "a login could not be written into the audit");
            }
        }
        .boxed()
    }
}

/// Serves commands of the same user. If no socket can be created, the pages still work.
#[cfg(unix)]
fn serve_commands(folder: &StateFolder, api: Router) {
    let app = Router::new().nest("/api", api);
    if let Err(error) = socket::serve(&folder.socket(), app) {
        tracing::error!(%error, "`mcp-elicit inbox` will not find this gateway: its socket cannot be made");
    }
}

/// Returns `true` if this address is on this machine only.
pub fn is_loopback(at: SocketAddr) -> bool {
    at.ip().is_loopback()
}
