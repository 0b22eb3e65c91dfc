//! The audit: what happened to every question, as a chain that shows when a link was changed or taken out.

mod entry;
mod words;

pub use mcp_elicit_core::lifecycle::AuditEvent as Event;

pub use self::entry::Details;
pub(crate) use self::entry::{Entry, step_entry};
pub use self::words::in_words;
use crate::store::{AuditEntry, ChainKey, Store, StoreError, chained, is_keyed};

/// The number of links that are read at once.
const PAGE: usize = 1_000;

/// Returns the words of all events that the audit tells of.
pub fn events() -> impl Iterator<Item = &'static str> {
    Event::OF_GATEWAY.into_iter().map(Event::as_str)
}

/// The result of checking the whole chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainCheck {
    /// Every link fits the one before.
    Whole {
        /// The number of links.
        links: u64,
    },
    /// The first link that does not.
    BrokenAt {
        /// Its number.
        number: u64,
    },
}

/// Reads every link, in order.
pub async fn read(store: &dyn Store) -> Result<Vec<AuditEntry>, StoreError> {
    let mut all: Vec<AuditEntry> = Vec::new();
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

/// Returns whether the chain is whole, by its key. Links of older versions have none; none such follows one that has, and the last
/// one has. A chain that was cut off at its end is whole: keep the last hash elsewhere to see that.
pub fn verify(links: &[AuditEntry], key: Option<&ChainKey>) -> ChainCheck {
    let mut before = "";
    let mut keyed = false;
    for (at, link) in links.iter().enumerate() {
        let expected = at as u64 + 1;
        keyed |= is_keyed(&link.hash);
        let key = key.filter(|_| keyed);
        let fits = (key.is_some() || !keyed) && link.hash == chained(key, before, &link.entry);
        if link.number != expected || !fits {
            return ChainCheck::BrokenAt { number: expected };
        }
        before = &link.hash;
    }
    if key.is_some() && !keyed && !links.is_empty() {
        // Somebody without the key has written all of it anew.
        return ChainCheck::BrokenAt { number: 1 };
    }
    ChainCheck::Whole {
        links: links.len() as u64,
    }
}
