//! Questions in a browser.
//!
//! This module decides how a question is shown as a page, and who may see and answer it. It never decides whether an
//! answer is right (`Form::check` does), which of two answers came first (the [`QuestionStore`] does), or that a person
//! acted when none did: closing a page, losing the connection and running out of time send nothing.
//!
//! - [`router`]: the pages over any [`QuestionStore`], to merge into an application
//! - [`QuestionStore`]: the source of questions; [`StoredQuestion`], [`SubmitResult`], [`QuestionSummary`] and the rest
//!   are the arguments and results of its methods, and [`Viewer`] is the reader
//! - [`Site`]: the address of the pages and the access to them; [`SessionStore`]: the storage of its sessions
//! - [`BrowserFrontend`]: a store in memory with its own server, for programs that ask one person on this machine
//! - [`serve`]: an HTTP server for an axum router, within [`ConnectionBounds`]
//!
//! The pages work without JavaScript. Their contents come from [`view`](crate::view), as in the terminal; a browser's
//! input is decoded in one place, and no string from a server is ever part of an address, a control's name or a script.
//!
//! ```no_run
//! # async fn f(question: mcp_elicit_forms::view::QuestionView) -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_elicit_forms::web::BrowserFrontend;
//!
//! let browser = BrowserFrontend::start().await?;
//! eprintln!("answer at {}", browser.login_link()?);
//! let outcome = browser.ask(question, std::future::pending()).await?;
//! # Ok(()) }
//! ```

mod audit_page;
mod browser;
mod clock;
mod connections;
mod desktop_sign_in;
mod field;
mod form_decode;
mod get_handlers;
mod login;
mod markdown;
mod memory;
mod notices;
mod page;
mod page_model;
mod phrases;
mod post_handlers;
mod question_store;
mod router;
mod sessions;
mod site;
mod site_pages;
mod site_templates;
mod sse;
mod stepper;
mod streams;
mod team;
mod user_agent;
mod viewer;
mod write_timeout;
mod yes_no;

pub use audit_page::{
    AuditChoice, AuditFilters, AuditLine, AuditPage, AuditQuestion, AuditRows, OutcomeTone, audit,
};
pub use browser::BrowserFrontend;
pub use connections::{ConnectionBounds, serve};
pub use desktop_sign_in::OpenedPage;
pub use question_store::{
    DraftResult, EndKind, Ended, ListFilter, ListView, QuestionId, QuestionList, QuestionStore,
    QuestionStoreError, QuestionSummary, StoredQuestion, SubmitResult,
};
pub use router::{router, with_headers};
pub use sessions::{BrowserSession, MemorySessions, NewSession, SessionStore, SessionTable};
pub use site::Site;
pub use site_pages::{
    Account, DeviceLine, GrantLine, Grants, PushAccount, SessionLine, SiteNotice, account, grants,
    not_taken, notice,
};
pub use streams::{EventStream, EventStreams, LoginCheck};
pub use team::{
    ClaimView, CommentView, EnteredView, HistoryLine, MemberAct, TeamResult, TeamView, ToolView,
};
pub use viewer::{OnlyViewer, Viewer};
