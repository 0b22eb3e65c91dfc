//! The audit: the events of every question, as a chain that reveals changed or removed links.

mod by_question;
mod entry;
mod export;
mod filter;
mod purge;
mod spelling;
mod words;

pub use mcp_elicit_core::lifecycle::AuditEvent as Event;

pub(crate) use self::by_question::ENDS;
pub use self::by_question::{AuditedQuestion, LatestQuestions, latest_questions};
pub use self::entry::Details;
pub(crate) use self::entry::{ActEvent, EntryText, doubt_entry, step_entry};
pub use self::export::{CSV_HEADER, csv_line};
pub use self::filter::{AuditFilter, LatestEvents, OUTCOMES, events_of_outcome, latest_events};
pub(crate) use self::purge::LastPurge;
pub use self::purge::{AuditPurge, PurgedAudit, latest_purge, purgeable};
pub use self::spelling::{Actor, AuditedEvent, Member};
pub use self::words::{event_in_words, event_named, in_words};
use crate::store::{AuditEntry, ChainKey, RecordStore, RecordStoreError, chained, is_keyed};

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
        /// The number of the first one. Those before it were deleted, as an event of the audit says.
        since: u64,
    },
    /// The first link that does not match.
    BrokenAt {
        /// Its number.
        number: u64,
    },
    /// Links are missing, and no event of the audit says that they were deleted.
    Missing {
        /// The number of the last one.
        number: u64,
    },
}

/// Reads every link, in order.
pub async fn read(store: &dyn RecordStore) -> Result<Vec<AuditEntry>, RecordStoreError> {
    let mut all: Vec<AuditEntry> = Vec::new();
    loop {
        let from = all.last().map_or(0, |last| last.number + 1);
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
///
/// A chain whose first links were deleted goes on from a hash that is not there any more. A later event says which one
/// it was ([`AuditPurge`]); until it comes, the first link is unproved. Links that are deleted while the chain is read
/// are left out in the same way.
pub struct ChainVerifier<'k> {
    key: Option<&'k ChainKey>,
    before: String,
    /// The number of the next link.
    next: u64,
    links: u64,
    /// The number of the first link.
    since: u64,
    is_keyed: bool,
    /// The first link, if nothing that was read proves it yet.
    unproved: Option<AuditEntry>,
    purge: Option<AuditPurge>,
}

impl<'k> ChainVerifier<'k> {
    /// Begins with the first link.
    pub fn new(key: Option<&'k ChainKey>) -> Self {
        Self {
            key,
            before: String::new(),
            next: 1,
            links: 0,
            since: 1,
            is_keyed: false,
            unproved: None,
            purge: None,
        }
    }

    /// Begins after the links that were deleted.
    pub(crate) fn after(key: Option<&'k ChainKey>, purge: &AuditPurge) -> Self {
        let next = purge.number.saturating_add(1);
        Self {
            before: purge.hash.clone(),
            next,
            since: next,
            is_keyed: is_keyed(&purge.hash),
            ..Self::new(key)
        }
    }

    /// Checks the next link.
    ///
    /// # Errors
    /// If it does not match the one before.
    pub fn add(&mut self, link: &AuditEntry) -> Result<(), ChainCheck> {
        let broken = ChainCheck::BrokenAt { number: self.next };
        if link.number < self.next {
            return Err(broken);
        }
        self.is_keyed |= is_keyed(&link.hash);
        if self.key.is_none() && self.is_keyed {
            return Err(broken);
        }
        if link.number > self.next {
            self.links = 0;
            self.since = link.number;
            self.purge = None;
            self.unproved = Some(link.clone());
        } else if link.hash != chained(self.link_key(), &self.before, &link.entry) {
            return Err(broken);
        }
        self.links += 1;
        self.next = link.number.saturating_add(1);
        self.before.clone_from(&link.hash);
        if self.since > 1 && (self.key.is_none() || is_keyed(&link.hash)) {
            self.prove_first(&link.entry);
        }
        Ok(())
    }

    /// Returns the key of the next link.
    fn link_key(&self) -> Option<&'k ChainKey> {
        self.key.filter(|_| self.is_keyed)
    }

    /// Looks whether an entry says what was deleted before the first link.
    fn prove_first(&mut self, entry: &str) {
        let Some(purge) = AuditPurge::read(entry) else {
            return;
        };
        if purge.number.checked_add(1) != Some(self.since) {
            return;
        }
        if let Some(first) = &self.unproved {
            let key = self.key.filter(|_| is_keyed(&first.hash));
            if chained(key, &purge.hash, &first.entry) != first.hash {
                return;
            }
        }
        self.unproved = None;
        self.purge = Some(purge);
    }

    /// Returns what was deleted before the first link, if the links so far say it.
    pub fn purge(&self) -> Option<&AuditPurge> {
        self.purge.as_ref()
    }

    /// Checks that nothing is missing before the first link.
    ///
    /// # Errors
    /// If links are, and none that was read says that they were deleted.
    pub(crate) fn check_first(&self) -> Result<(), ChainCheck> {
        match self.unproved {
            None => Ok(()),
            Some(_) => Err(ChainCheck::Missing {
                number: self.since.saturating_sub(1),
            }),
        }
    }

    /// Returns the result after the last link.
    pub fn finish(&self) -> ChainCheck {
        if self.key.is_some() && !self.is_keyed && self.links > 0 {
            // The whole chain was rewritten without the key.
            return ChainCheck::BrokenAt { number: self.since };
        }
        if let Err(missing) = self.check_first() {
            return missing;
        }
        ChainCheck::Whole {
            links: self.links,
            since: self.since,
        }
    }
}
