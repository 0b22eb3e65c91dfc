//! Takes changes back: a file that is as it was left gets its earlier bytes, any other loses the gateway only.

use std::path::Path;

use crate::clients::ClientFiles;
use crate::document::{Document, LeftAlone, ReadError, Wish};
use crate::journal::{JournalEntry, SetupJournal, Undo, hash};
use crate::servers::{ServerEntry, SetupState};
use crate::write::{WriteError, replace};

/// The planned undoing of a file.
pub struct UndoPlan {
    /// The bytes before.
    pub before: Vec<u8>,
    /// The bytes afterwards; the same if nothing is to be undone.
    pub after: Vec<u8>,
    /// `true` if the file becomes what it was, byte for byte.
    pub is_exact: bool,
    /// The names of the servers that lose the gateway.
    pub servers: Vec<String>,
    /// The servers that keep it, each with the reason.
    pub left_alone: Vec<LeftAlone>,
    /// The entries of the journal that have no use afterwards.
    done: Vec<JournalEntry>,
}

/// Plans to undo the changes of a file. `entries` are those of this file, the newest first; `only` are the names of the
/// servers, if not all are meant.
pub fn plan(
    client: &'static ClientFiles,
    bytes: Vec<u8>,
    entries: &[JournalEntry],
    only: Option<&[String]>,
) -> Result<UndoPlan, ReadError> {
    let mut done = Vec::new();
    let mut now = bytes.clone();
    if only.is_none() {
        for entry in entries {
            let of_now = hash(&now);
            if of_now == entry.after_hash {
                now = entry.before.clone().into_bytes();
            } else if of_now != entry.before_hash {
                break;
            }
            done.push(entry.clone());
        }
    }
    let rest = &entries[done.len()..];
    let is_exact = rest.is_empty() && !entries.is_empty() && only.is_none();
    let document = match Document::read(client, &now) {
        // The bytes of the journal need no reading.
        Err(_) if is_exact => None,
        other => Some(other?),
    };
    let mut left_alone = Vec::new();
    if let (Some(document), false) = (&document, is_exact) {
        let wishes = wishes(document, entries, rest, only);
        let plan = document.plan(&wishes);
        left_alone = plan.left_alone;
        now = plan.after;
    }
    let lost = |bytes: &[u8]| -> Vec<String> {
        Document::read(client, bytes)
            .map(|document| wrapped(&document))
            .unwrap_or_default()
    };
    let still = lost(&now);
    let mut servers = lost(&bytes);
    servers.retain(|name| !still.contains(name));
    let is_done =
        |entry: &&JournalEntry| !entry.servers.iter().any(|undo| still.contains(&undo.name));
    done.extend(rest.iter().filter(is_done).cloned());
    Ok(UndoPlan {
        before: bytes,
        after: now,
        is_exact,
        servers,
        left_alone,
        done,
    })
}

fn wrapped(document: &Document) -> Vec<String> {
    let servers = document.servers().iter();
    let wrapped = servers.filter(|server| matches!(server.state(), SetupState::Wrapped { .. }));
    wrapped.map(|server| server.name().to_owned()).collect()
}

/// Returns what is to be undone: the changes of the journal; without a journal, whatever has the gateway before it.
fn wishes<'a>(
    document: &'a Document,
    entries: &[JournalEntry],
    rest: &[JournalEntry],
    only: Option<&[String]>,
) -> Vec<(&'a ServerEntry, Wish)> {
    let mut wishes: Vec<(&ServerEntry, Wish)> = Vec::new();
    let is_meant = |server: &ServerEntry| {
        only.is_none_or(|names| names.iter().any(|name| name == server.name()))
    };
    let undos: Vec<&Undo> = rest.iter().flat_map(|entry| &entry.servers).collect();
    for undo in undos {
        let Some(server) = document.find(undo).filter(|server| is_meant(server)) else {
            continue;
        };
        let is_known = wishes.iter().any(|(_, wish)| matches!(wish, Wish::Unwrap { undo: Some(known) } if known.path == undo.path && overlaps(known, undo)));
        if !is_known {
            wishes.push((
                server,
                Wish::Unwrap {
                    undo: Some(undo.clone()),
                },
            ));
        }
    }
    for server in document.servers() {
        let by_hand = entries.is_empty() || only.is_some();
        let is_known = wishes.iter().any(|(known, _)| known.path == server.path);
        if by_hand && !is_known && is_meant(server) {
            wishes.push((server, Wish::Unwrap { undo: None }));
        }
    }
    wishes
}

/// Returns `true` if both change one member: the newer change counts.
fn overlaps(one: &Undo, other: &Undo) -> bool {
    one.ops
        .iter()
        .any(|op| other.ops.iter().any(|old| op.target() == old.target()))
}

/// Writes a plan to its file, and drops the entries that it makes useless.
pub fn write(journal: &SetupJournal, path: &Path, plan: &UndoPlan) -> Result<(), WriteError> {
    if plan.after != plan.before {
        replace(path, &plan.before, &plan.after, &mut |_| Ok(()))?;
    }
    for entry in &plan.done {
        journal
            .remove(entry)
            .map_err(|error| WriteError::Io("writing the journal", error))?;
    }
    Ok(())
}
