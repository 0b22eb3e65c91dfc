//! A store in memory: for tests, and for operators who want nothing on disk. Gone with the process.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use futures::FutureExt as _;
use mcp_elicit_core::exchange::Moment;

use super::{Audited, Change, Page, Row, Store, Stored, Which, chained};

#[derive(Default)]
struct Inner {
    rows: BTreeMap<String, Row>,
    audit: Vec<Audited>,
}

/// A store in memory.
#[derive(Default)]
pub struct Memory {
    inner: Mutex<Inner>,
}

impl Memory {
    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        // A panic elsewhere leaves whole rows: every change is made of moves.
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Inner {
    fn append(&mut self, entry: String) {
        let before = self.audit.last().map_or("", |last| last.hash.as_str());
        let hash = chained(before, &entry);
        self.audit.push(Audited {
            number: self.audit.len() as u64 + 1,
            entry,
            hash,
        });
    }
}

/// Where a row stands on a list: by time, and by id among those of the same time.
fn place(which: Which, row: &Row) -> (i128, String) {
    let millis = |moment: Option<Moment>| moment.map_or(0, |moment| i128::from(moment.as_millis()));
    let time = match which {
        Which::Open => millis(Some(row.exchange.asked_at())),
        Which::Ended => -millis(row.exchange.ended_at()),
    };
    (time, row.id.clone())
}

impl Store for Memory {
    fn insert(&self, row: Row, audit: String) -> Stored<'_, ()> {
        self.with(|inner| {
            inner.rows.insert(row.id.clone(), row);
            inner.append(audit);
        });
        async { Ok(()) }.boxed()
    }

    fn find(&self, id: String) -> Stored<'_, Option<Row>> {
        let found = self.with(|inner| inner.rows.get(&id).cloned());
        async { Ok(found) }.boxed()
    }

    fn same(&self, same: String) -> Stored<'_, Vec<Row>> {
        let mut found = self.with(|inner| {
            let fits = |row: &&Row| row.same == same && row.exchange.delivered_at().is_none();
            inner
                .rows
                .values()
                .filter(fits)
                .cloned()
                .collect::<Vec<_>>()
        });
        found.sort_by_key(|row| row.exchange.asked_at());
        async { Ok(found) }.boxed()
    }

    fn list(&self, which: Which, page: Page) -> Stored<'_, Vec<Row>> {
        let found = self.with(|inner| {
            let after = match &page.after {
                None => None,
                Some(id) => match inner.rows.get(id) {
                    Some(row) => Some(place(which, row)),
                    None => return Vec::new(),
                },
            };
            let mut rows: Vec<&Row> = inner
                .rows
                .values()
                .filter(|row| row.exchange.is_open() == (which == Which::Open))
                .filter(|row| {
                    after
                        .as_ref()
                        .is_none_or(|after| place(which, row) > *after)
                })
                .collect();
            rows.sort_by_key(|row| place(which, row));
            rows.into_iter().take(page.most).cloned().collect()
        });
        async { Ok(found) }.boxed()
    }

    fn waiting(&self) -> Stored<'_, usize> {
        let count = self.with(|inner| {
            inner
                .rows
                .values()
                .filter(|row| row.exchange.is_open())
                .count()
        });
        async move { Ok(count) }.boxed()
    }

    fn change(&self, changes: Vec<Change>) -> Stored<'_, bool> {
        let done = self.with(|inner| {
            let current = |change: &Change| {
                inner
                    .rows
                    .get(&change.row.id)
                    .map(|row| row.exchange.version())
            };
            if changes
                .iter()
                .any(|change| current(change) != Some(change.seen))
            {
                return false;
            }
            for change in changes {
                inner.rows.insert(change.row.id.clone(), change.row);
                if let Some(entry) = change.audit {
                    inner.append(entry);
                }
            }
            true
        });
        async move { Ok(done) }.boxed()
    }

    fn audit(&self, from: u64, most: usize) -> Stored<'_, Vec<Audited>> {
        let found = self.with(|inner| {
            inner
                .audit
                .iter()
                .filter(|link| link.number >= from)
                .take(most)
                .cloned()
                .collect::<Vec<_>>()
        });
        async { Ok(found) }.boxed()
    }
}
