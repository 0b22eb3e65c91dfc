//! The audit: the events of every question, as a chain that reveals changed or removed links.

mod entry;
mod words;

pub use mcp_elicit_core::lifecycle::AuditEvent as Event;

pub use self::entry::Details;
pub(crate) use self::entry::{Entry, step_entry};
pub use self::words::in_words;
use crate::store::{AuditEntry, ChainKey, Store, StoreError, chained, is_keyed};

/// The number of links that are read at once.
const PAGE: usize = 1_000;

/// Returns the words of all events in the audit.
pub fn events() -> impl Iterator<Item = &'static str> {
    Event::OF_GATEWAY.into_iter().map(Event::as_str)
}

/// The result of checking the whole chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainCheck {
    /// Every link matches the one before.
    Whole {
        /// The number of links.
        links: u64,
    },
    /// The first link that does not match.
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

/// Checks the chain with its key. Links of older versions have no key; none may follow one that has, and the last one
/// must have it. A chain that was truncated at its end still passes: store the last hash elsewhere to detect that.
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
        // The whole chain was rewritten without the key.
        return ChainCheck::BrokenAt { number: 1 };
    }
    ChainCheck::Whole {
        links: links.len() as u64,
    }
}
