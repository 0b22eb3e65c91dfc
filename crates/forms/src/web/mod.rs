//! Questions in a browser.
//!
//! This room decides what a question looks like as a page, and who may see and answer it. It never decides whether an
//! answer is right (`Form::check` does), which of two answers came first (the [`Desk`] does), or that a person acted
//! when none did: closing a page, losing the connection and running out of time send nothing.
//!
//! - [`router`]: the pages over any [`Desk`], to merge into an application of one's own
//! - [`Desk`]: where the questions lie; [`Found`], [`Settled`], [`Brief`] and the rest are what is said to it and by it
//! - [`Site`]: where the pages are served, and who may reach them; [`SessionStore`]: where its sessions are kept
//! - [`Browser`]: a desk in memory with a server of its own, for programs that ask one person on this machine
//! - [`serve`]: a small server for loopback, with limits
//!
//! The pages work without JavaScript. What every page is made of comes from [`view`](crate::view), the same as in the
//! terminal; what a browser sends is read back in one place, and no string of a server's choosing is ever part of an
//! address, a control's name or a script.
//!
//! ```no_run
//! # async fn f(question: mcp_elicit_forms::view::Question) -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_elicit_forms::web::Browser;
//!
//! let browser = Browser::start().await?;
//! eprintln!("answer at {}", browser.login_link()?);
//! let outcome = browser.ask(question, std::future::pending()).await?;
//! # Ok(()) }
//! ```

mod answering;
mod asking;
mod browser;
mod clock;
mod desk;
mod field;
mod login;
mod memory;
mod news;
mod notices;
mod page;
mod prose;
mod reading;
mod router;
mod server;
mod sessions;
mod show;
mod site;
mod step;

pub use browser::Browser;
pub use desk::{Brief, Desk, DeskFault, Docket, Ended, Ending, Found, QuestionId, Settled, Wanted};
pub use router::router;
pub use server::serve;
pub use sessions::{MemorySessions, NewSession, Session, SessionStore, SessionTable};
pub use site::Site;
