//! The API over a record that no gateway serves, for commands: what was asked can be read, and answered for the call that
//! comes next.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;

use super::api::{self, Access};
use super::desk::BookDesk;
use super::place::StateFolder;
use crate::record::{Book, Keys, Lease};
use crate::serve::clock;
use crate::store::Sqlite;

/// How often what gateways without an inbox do is looked for.
const HEARING: Duration = Duration::from_millis(400);

/// The API over this folder's record. This process counts as one of the gateways that share it, for as long as it runs.
pub(super) async fn api(folder: &StateFolder) -> Result<Router, Box<dyn Error + Send + Sync>> {
    let keys = Keys::kept(&folder.seal(), &folder.identity())?;
    let store = Sqlite::at(&folder.record()).keyed(keys.chain());
    store.ready().await?;
    let lease = Lease::take(&folder.leases())?;
    let book = Arc::new(Book::new(Arc::new(store), keys, lease, clock::now));
    let hears = Arc::clone(&book);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(HEARING).await;
            if let Err(fault) = hears.hear_others().await {
                tracing::warn!(%fault, "other gateways' answers could not be looked for");
            }
        }
    });
    let desk = Arc::new(BookDesk::new(Arc::clone(&book)));
    Ok(api::router(book, desk, folder.clone(), Access::Owner(None)))
}
