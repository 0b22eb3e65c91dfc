//! Reads one list of a server to its end, page by page, as far as its entries can be read.

use std::collections::BTreeSet;

use mcp_elicit_client::{CallError, Received};
use mcp_elicit_core::misfit::Misfit;
use mcp_elicit_core::wire::LenientMembers;
use serde_json::value::RawValue;

use super::events::one_line;

/// The largest number of pages and of entries that are read of one list. A server's list may never end.
const MAX_PAGES: usize = 100;
const MAX_ENTRIES: usize = 10_000;

/// One list of a server.
#[derive(Debug)]
pub(super) struct ServerList<T> {
    method: &'static str,
    entries: Vec<T>,
    raw: Vec<Box<RawValue>>,
    /// The misfits of each page, by its number from 1.
    misfits: Vec<(usize, Misfit)>,
    /// The page whose cursor is an empty string.
    empty_cursor: Option<usize>,
    unfinished: Option<UnfinishedList>,
}

/// The reason why a list was not read to its end.
#[derive(Debug)]
enum UnfinishedList {
    /// It has more pages or entries than are read.
    TooLong,
    /// A page names a cursor that an earlier page named.
    CursorAgain(usize),
    /// A page names a cursor that cannot be read, so the rest of the list is missing.
    CursorUnread(usize),
}

impl<T> Default for ServerList<T> {
    fn default() -> Self {
        Self::new("")
    }
}

impl<T> ServerList<T> {
    fn new(method: &'static str) -> Self {
        Self {
            method,
            entries: Vec::new(),
            raw: Vec::new(),
            misfits: Vec::new(),
            empty_cursor: None,
            unfinished: None,
        }
    }

    /// Returns the entries that can be read.
    pub(super) fn entries(&self) -> impl Iterator<Item = &T> {
        self.entries.iter()
    }

    pub(super) fn into_entries(self) -> Vec<T> {
        self.entries
    }

    /// Returns all entries as the server wrote them.
    pub(super) fn raw(&self) -> impl Iterator<Item = &RawValue> {
        self.raw.iter().map(|entry| &**entry)
    }

    /// Returns what is wrong with the list, each with its JSON Pointer.
    pub(super) fn warnings(&self) -> impl Iterator<Item = (String, Option<&str>)> {
        let misfits = self.misfits.iter().map(|(page, misfit)| {
            let text = format!(
                "the server's answer to {}{} breaks the protocol: {misfit}",
                self.method,
                of_page(*page)
            );
            (text, Some(misfit.pointer()))
        });
        let cursor = self.empty_cursor.map(|page| {
            let text = format!(
                "the server's answer to {}{} breaks the protocol: /nextCursor: \"\" is no cursor; it is read as the end of the list",
                self.method,
                of_page(page)
            );
            (text, Some("/nextCursor"))
        });
        misfits.chain(cursor)
    }

    /// Returns the reason why the list was not read to its end; `None` if it was.
    pub(super) fn unfinished(&self) -> Option<String> {
        let method = self.method;
        self.unfinished.as_ref().map(|why| match why {
            UnfinishedList::TooLong => format!(
                "the list of {method} does not end within {MAX_PAGES} pages or {MAX_ENTRIES} entries; the rest is not read"
            ),
            UnfinishedList::CursorUnread(page) => format!(
                "the list of {method} is cut after its page {page}: the cursor of the next page is not text"
            ),
            UnfinishedList::CursorAgain(page) => format!(
                "the list of {method} does not end: its page {page} names a cursor again that an earlier page named"
            ),
        })
    }
}

fn of_page(page: usize) -> String {
    match page {
        1 => String::new(),
        page => format!(", page {page},"),
    }
}

/// Reads one list, whose entries are in `member` of each page; `open` takes the entries and the cursor out of a page.
pub(super) async fn pages<T, P>(
    method: &'static str,
    member: &str,
    request: impl AsyncFn(Option<String>) -> Result<Received<P>, CallError>,
    open: impl Fn(P) -> (Vec<T>, Option<String>),
) -> Result<ServerList<T>, CallError> {
    let mut list = ServerList::new(method);
    let mut seen = BTreeSet::new();
    let mut cursor: Option<String> = None;
    for page in 1..=MAX_PAGES {
        let received = request(cursor.take()).await?;
        let misfits = received.misfits().iter().cloned();
        list.misfits.extend(misfits.map(|misfit| (page, misfit)));
        list.raw.extend(raw_entries(received.raw(), member));
        let has_cursor = has_cursor(received.raw());
        let (entries, next) = open(received.into_result());
        list.entries.extend(entries);
        list.raw.truncate(MAX_ENTRIES);
        let is_full = list.entries.len() > MAX_ENTRIES;
        list.entries.truncate(MAX_ENTRIES);
        match next {
            None if has_cursor => {
                list.unfinished = Some(UnfinishedList::CursorUnread(page));
                return Ok(list);
            }
            None if !is_full => return Ok(list),
            Some(next) if next.is_empty() && !is_full => {
                list.empty_cursor = Some(page);
                return Ok(list);
            }
            Some(next) if seen.contains(&next) => {
                list.unfinished = Some(UnfinishedList::CursorAgain(page));
                return Ok(list);
            }
            Some(next) if list.entries.len() < MAX_ENTRIES => {
                seen.insert(next.clone());
                cursor = Some(next);
            }
            None | Some(_) => break,
        }
    }
    list.unfinished = Some(UnfinishedList::TooLong);
    Ok(list)
}

/// Returns `true` if a page names a cursor, of whatever type.
fn has_cursor(page: &RawValue) -> bool {
    let members = LenientMembers::read(page.get());
    let cursor = members
        .as_ref()
        .and_then(|members| members.get("nextCursor"));
    cursor.is_some_and(|cursor| cursor.get() != "null")
}

fn raw_entries(page: &RawValue, member: &str) -> Vec<Box<RawValue>> {
    let entries = LenientMembers::read(page.get())
        .and_then(|members| serde_json::from_str(members.get(member)?.get()).ok());
    let entries: Vec<Box<RawValue>> = entries.unwrap_or_default();
    entries.iter().map(|entry| one_line(entry)).collect()
}
