//! The deletion of the oldest events. An event at the end of the chain says up to which event they were deleted, and
//! the hash of that one, so that the rest is still proved: without the key of the chain, no such event can be made.

use std::sync::Arc;

use mcp_elicit_core::lifecycle::{AuditEvent as Event, Timestamp};

use super::{AuditFilter, AuditedEvent, ChainCheck, ChainVerifier, EntryText, Member};
use crate::store::{AuditEntry, ChainKey, RecordStore, RecordStoreError, Write};
use crate::{Record, RecordError};

/// The number of links that are read at once.
const PAGE: usize = 1_000;
/// The most events that are deleted in one transaction, while other writes wait.
const MOST_AT_ONCE: usize = 20_000;
/// The interval at which a gateway looks for events that are older than it keeps them, in milliseconds.
const INTERVAL: u64 = 60 * 60 * 1_000;
/// The actor of what a gateway does by its settings.
const BY_SETTING: &str = "keep-audit";

/// A deletion of the oldest events, as an event of the audit says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPurge {
    /// The number of the last event that was deleted.
    pub number: u64,
    /// Its hash, from which the chain goes on.
    pub hash: String,
    /// Its time; `None` if it had none.
    pub until: Option<Timestamp>,
    /// The time of the deletion.
    pub at: Timestamp,
    /// The actor.
    pub by: String,
}

impl AuditPurge {
    /// Reads an entry; `None` if it is about something else.
    pub fn read(entry: &str) -> Option<Self> {
        // Most are not, and are not read.
        if !entry.contains(Event::AuditPurged.as_str()) {
            return None;
        }
        let entry = AuditedEvent::read(entry)?;
        if entry.event() != Some(Event::AuditPurged) {
            return None;
        }
        Some(Self {
            number: entry.number(Member::PurgedUpTo)?,
            hash: entry.text(Member::PurgedHash)?.to_owned(),
            until: entry.number(Member::PurgedAt).map(Timestamp::from_millis),
            at: entry.at().unwrap_or_default(),
            by: entry.text(Member::By).unwrap_or_default().to_owned(),
        })
    }

    fn into_write(self) -> Write {
        let until = self.until.map(Timestamp::as_millis);
        let entry = EntryText::new(Event::AuditPurged, self.at)
            .with(Member::By, self.by.as_str())
            .with(Member::PurgedUpTo, self.number)
            .with(Member::PurgedHash, self.hash.as_str())
            .with_some(Member::PurgedAt, until);
        Write::PurgeAudit {
            number: self.number,
            hash: self.hash,
            entry: entry.into_text(),
        }
    }
}

/// The result of a deletion of the oldest events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgedAudit {
    /// So many events were deleted.
    Deleted {
        /// The number of events.
        count: u64,
        /// `true` if there may be more: only so many are deleted at once.
        more: bool,
    },
    /// Nothing was deleted, because the chain is broken: the events are evidence of that.
    Broken(ChainCheck),
}

impl PurgedAudit {
    const NOTHING: Self = Self::Deleted {
        count: 0,
        more: false,
    };
}

/// The oldest events, of which the last one is followed by another.
struct Oldest {
    /// Their number.
    count: u64,
    /// The last one.
    last: AuditEntry,
    /// Its time.
    until: Option<Timestamp>,
}

/// Returns at most so many of the oldest events that happened before a moment; the first later one ends them. The last
/// event of the audit stays in any case.
async fn oldest(
    store: &dyn RecordStore,
    before: Timestamp,
    most: usize,
    mut check: impl FnMut(&AuditEntry) -> Result<(), ChainCheck>,
) -> Result<Result<Option<Oldest>, ChainCheck>, RecordStoreError> {
    let (mut count, mut next) = (0_u64, 0);
    let (mut last, mut until) = (None::<AuditEntry>, None);
    // The newest of the events that may go goes only if another one follows it.
    let mut pending: Option<(AuditEntry, Option<Timestamp>)> = None;
    let found = |count, last: Option<AuditEntry>, until| {
        Ok(Ok(last.map(|last| Oldest { count, last, until })))
    };
    loop {
        let page = store.audit(next, PAGE).await?;
        let is_end = page.len() < PAGE;
        for link in page {
            next = link.number.saturating_add(1);
            if let Err(broken) = check(&link) {
                return Ok(Err(broken));
            }
            if let Some((goes, at)) = pending.take() {
                count += 1;
                (last, until) = (Some(goes), at.or(until));
            }
            let at = AuditedEvent::read(&link.entry).and_then(|entry| entry.at());
            let is_full = usize::try_from(count).is_ok_and(|count| count >= most);
            if is_full || at.is_some_and(|at| at >= before) {
                return found(count, last, until);
            }
            pending = Some((link, at));
        }
        if is_end {
            return found(count, last, until);
        }
    }
}

/// Returns the oldest events like [`oldest`], after a check of each with the key of the chain: one that was changed, and
/// one that is missing, is evidence.
async fn checked(
    store: &dyn RecordStore,
    key: &ChainKey,
    before: Timestamp,
    most: usize,
) -> Result<Result<Option<Oldest>, ChainCheck>, RecordStoreError> {
    loop {
        let first = first_number(store).await?;
        let mut chain = ChainVerifier::new(Some(key));
        if let Some(first) = first.filter(|&first| first > 1) {
            match latest_purge(store).await? {
                Some(purge) if purge.number + 1 == first => {
                    chain = ChainVerifier::after(Some(key), &purge);
                }
                Some(_) | None => return Ok(Err(ChainCheck::Missing { number: first - 1 })),
            }
        }
        let check = |link: &AuditEntry| chain.add(link).and_then(|()| chain.check_first());
        let found = oldest(store, before, most, check).await?;
        let is_missing = matches!(found, Err(ChainCheck::Missing { .. }));
        if !is_missing || first_number(store).await? == first {
            return Ok(found);
        }
        // Another gateway has deleted events in between.
    }
}

/// Returns the number of the first event; 0 if it is a row that no gateway writes.
async fn first_number(store: &dyn RecordStore) -> Result<Option<u64>, RecordStoreError> {
    Ok(store.audit(0, 1).await?.first().map(|link| link.number))
}

/// Returns how many events [`Record::purge_audit`] would delete in all, if the whole chain is intact, up to its end.
///
/// # Errors
/// If the store fails.
pub async fn purgeable(
    store: &dyn RecordStore,
    key: &ChainKey,
    before: Timestamp,
) -> Result<PurgedAudit, RecordStoreError> {
    let count = match checked(store, key, before, usize::MAX).await? {
        Err(broken) => return Ok(PurgedAudit::Broken(broken)),
        Ok(found) => found.map_or(0, |oldest| oldest.count),
    };
    let mut chain = ChainVerifier::new(Some(key));
    let mut next = 0;
    loop {
        let page = store.audit(next, PAGE).await?;
        for link in &page {
            if let Err(broken) = chain.add(link) {
                return Ok(PurgedAudit::Broken(broken));
            }
            next = link.number.saturating_add(1);
        }
        if page.len() < PAGE {
            break;
        }
    }
    Ok(match chain.finish() {
        ChainCheck::Whole { .. } => PurgedAudit::Deleted { count, more: false },
        broken => PurgedAudit::Broken(broken),
    })
}

/// Returns the latest deletion of events that the audit has.
///
/// # Errors
/// If the store fails.
pub async fn latest_purge(store: &dyn RecordStore) -> Result<Option<AuditPurge>, RecordStoreError> {
    let filter = AuditFilter {
        events: vec![Event::AuditPurged.as_str().to_owned()],
        ..AuditFilter::default()
    };
    let end = store.audit_end().await?.saturating_add(1);
    let found = store.audit_matching(filter, 1..end, 1).await?;
    Ok(found.first().and_then(|link| AuditPurge::read(&link.entry)))
}

impl Record {
    /// Deletes the oldest events of the audit that happened before a moment, at most 20,000 of them, up to the first
    /// later one. The last event stays. An event of the audit says up to where, and by whom; it is written in the same
    /// transaction. Of several gateways that do it at once, one does.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn purge_audit(
        &self,
        before: Timestamp,
        by: &str,
    ) -> Result<PurgedAudit, RecordError> {
        let store = &self.store;
        let key = self.keys.chain();
        let found = checked(store, &key, before, MOST_AT_ONCE).await?;
        let oldest = match found {
            Err(broken) => return Ok(PurgedAudit::Broken(broken)),
            Ok(None) => return Ok(PurgedAudit::NOTHING),
            Ok(Some(oldest)) => oldest,
        };
        let purge = AuditPurge {
            number: oldest.last.number,
            hash: oldest.last.hash,
            until: oldest.until,
            at: self.now(),
            by: by.to_owned(),
        };
        let made = store.write(Arc::new(vec![purge.into_write()])).await?;
        if made != [true] {
            // Another gateway was first.
            return Ok(PurgedAudit::NOTHING);
        }
        let more = usize::try_from(oldest.count).is_ok_and(|count| count >= MOST_AT_ONCE);
        Ok(PurgedAudit::Deleted {
            count: oldest.count,
            more,
        })
    }

    /// Deletes the events that are older than the setting says, at most once an hour unless there are more of them.
    pub(crate) async fn purge_audit_when_due(&self) -> Result<(), RecordError> {
        let Some(span) = self.retention().audit else {
            return Ok(());
        };
        let now = self.now();
        if !self.audit_purged.is_due(now) {
            return Ok(());
        }
        let span = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let before = Timestamp::from_millis(now.as_millis().saturating_sub(span));
        match self.purge_audit(before, BY_SETTING).await? {
            PurgedAudit::Deleted { more: true, .. } => return Ok(()),
            PurgedAudit::Deleted { .. } => {}
            PurgedAudit::Broken(_) => tracing::warn!(
                "no event of the audit was deleted, although `keep-audit` is over for some: the chain is broken; `mcp-elicit audit --verify` says where"
            ),
        }
        self.audit_purged.set(now);
        Ok(())
    }
}

/// The time at which a gateway last looked for events that it no longer keeps.
#[derive(Debug, Default)]
pub(crate) struct LastPurge(std::sync::atomic::AtomicU64);

impl LastPurge {
    /// Returns `true` an hour later, and if the clock was set back.
    fn is_due(&self, now: Timestamp) -> bool {
        let last = self.0.load(std::sync::atomic::Ordering::Relaxed);
        last == 0 || now.as_millis().abs_diff(last) >= INTERVAL
    }

    fn set(&self, now: Timestamp) {
        self.0
            .store(now.as_millis(), std::sync::atomic::Ordering::Relaxed);
    }
}
