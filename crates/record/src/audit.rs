//! The audit: the events of every question, as a chain that reveals changed or removed links.

mod by_question;
mod entry;
mod export;
mod filter;
mod spelling;
mod words;

pub use mcp_elicit_core::lifecycle::AuditEvent as Event;

pub use self::by_question::{AuditedQuestion, LatestQuestions, latest_questions};
pub use self::entry::Details;
pub(crate) use self::entry::{ActEvent, Entry, doubt_entry, step_entry};
pub use self::export::{CSV_HEADER, csv_line};
pub use self::filter::{AuditFilter, LatestEvents, OUTCOMES, events_of_outcome, latest_events};
pub use self::spelling::{Actor, AuditedEvent, Member};
pub use self::words::{event_in_words, event_named, in_words};
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
    let mut chain = ChainVerifier::new(key);
    for link in links {
        if let Err(broken) = chain.add(link) {
            return broken;
        }
    }
    chain.finish()
}

/// The check of a chain, link by link.
pub struct ChainVerifier<'k> {
    key: Option<&'k ChainKey>,
    before: String,
    links: u64,
    is_keyed: bool,
}

impl<'k> ChainVerifier<'k> {
    /// Begins with the first link.
    pub fn new(key: Option<&'k ChainKey>) -> Self {
        Self {
            key,
            before: String::new(),
            links: 0,
            is_keyed: false,
        }
    }

    /// Checks the next link.
    ///
    /// # Errors
    /// If it does not match the one before.
    pub fn add(&mut self, link: &AuditEntry) -> Result<(), ChainCheck> {
        self.links += 1;
        self.is_keyed |= is_keyed(&link.hash);
        let key = self.key.filter(|_| self.is_keyed);
        let fits = (key.is_some() || !self.is_keyed)
            && link.hash == chained(key, &self.before, &link.entry);
        if link.number != self.links || !fits {
            return Err(ChainCheck::BrokenAt { number: self.links });
        }
        self.before.clone_from(&link.hash);
        Ok(())
    }

    /// Returns the result after the last link.
    pub fn finish(self) -> ChainCheck {
        if self.key.is_some() && !self.is_keyed && self.links > 0 {
            // The whole chain was rewritten without the key.
            return ChainCheck::BrokenAt { number: 1 };
        }
        ChainCheck::Whole { links: self.links }
    }
}
