//! Where people answer: the pages of `forms` over the book, and a small JSON API for scripts beside them.
//!
//! | file | what it serves |
//! | --- | --- |
//! | [`desk`] | the book as the pages see it: one question after another, answers checked by the form |
//! | [`api`] | the same as JSON, behind a token; `openapi.json` describes it |
//! | [`client`] | the API from the other side |
//! | [`place`] | where the inbox is and with which token, written down for other commands |

pub mod api;
pub mod client;
pub mod desk;
pub mod place;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use mcp_elicit_forms::web::{self, QuestionId, Secret, Site};
use tokio::net::TcpListener;

use crate::record::Book;
use desk::BookDesk;

/// A running inbox.
#[derive(Clone)]
pub struct Inbox {
    site: Site,
}

impl Inbox {
    /// Serves the inbox at this address until `stop` is done. A loopback address only: another is reached through a
    /// proxy of the operator's.
    ///
    /// # Errors
    /// When the listener has no address, or the token is too short to be a secret.
    pub fn serve(
        book: Arc<Book>,
        listener: TcpListener,
        token: &str,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<Self> {
        let at = listener.local_addr()?;
        let secret =
            Secret::kept(token).ok_or_else(|| io::Error::other("the inbox token is too short"))?;
        let site = Site::loopback(at, secret);
        let desk = Arc::new(BookDesk::new(book.clone()));
        let app: Router = Router::new()
            .nest("/api", api::router(book, desk.clone(), site.clone()))
            .merge(web::router(desk, site.clone()));
        tokio::spawn(web::serve(listener, app, stop));
        Ok(Self { site })
    }

    /// The address that signs a person in. It holds the secret: for the person only.
    pub fn login_link(&self) -> String {
        self.site.login_link()
    }

    /// The address of a question's page, for somebody who is signed in.
    pub fn deep_link(&self, id: &str) -> Option<String> {
        QuestionId::new(id).map(|id| self.site.deep_link(&id))
    }
}

/// Whether this address is on this machine only.
pub fn is_loopback(at: SocketAddr) -> bool {
    at.ip().is_loopback()
}
