//! The contract of every store, run against each implementation.

mod api_tokens;
mod audit;
mod lists;
mod outbox;
#[cfg(all(unix, feature = "postgres"))]
mod postgres;
mod sealed;
mod shared_rows;
mod used;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::{Lifecycle, Timestamp, Transition};
use mcp_elicit_core::question::Ending;
use mcp_elicit_core::wire::{CallKind, Mode};
use mcp_elicit_policy::people::Addressee;
use mcp_elicit_policy::rules::{Decision, Rules};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use super::fault_injection::Failing;
use crate::team::{Team, TeamCaller};

use super::{
    Body, Change, Crash, Filter, ListKeys, ListQuery, Memory, OpenFigures, Page, Purge,
    RecordContents, RecordStore, RecordStoreError, Row, SERVERS_LEARNED, Sqlite, StoredGrant,
    Write, Writer, chained,
};

pub(super) fn row(id: &str, at: u64) -> Row {
    let asked = Timestamp::from_millis(at);
    Row {
        id: id.to_owned(),
        binding: "same".to_owned(),
        owner: "me".to_owned(),
        exclusive: false,
        lifecycle: Lifecycle::ask(asked, Some(asked.after(Duration::from_secs(60)))),
        body: Arc::new(Body {
            server: "s".to_owned(),
            principal: "local".to_owned(),
            server_info: None,
            client_info: None,
            kind: Some(CallKind::Tool),
            others: Vec::new(),
            target: Some("deploy".to_owned()),
            address: None,
            mode: Mode::Form,
            message: "Who?".to_owned(),
            elicitation_id: None,
            fields: vec!["name".to_owned()],
            cautions: Vec::new(),
            at_client: false,
            unchecked: None,
            arguments_left_out: None,
            trace: None,
        }),
        arguments: Some(vec![1, 2]),
        content: None,
        params: Some("{}".to_owned()),
        team: None,
    }
}

pub(super) fn acted(row: &Row) -> Row {
    let step = Transition::acted(&Outcome::Visit, "inbox");
    let mut next = row.clone();
    next.lifecycle = row
        .lifecycle
        .step(&step, Timestamp::from_millis(2_000))
        .unwrap();
    next.content = Some(vec![7]);
    next
}

pub(super) fn change(row: Row, seen: u64) -> Change {
    Change {
        row,
        seen,
        audit: vec!["changed".to_owned()],
        survives: Crash::Machine,
    }
}

/// Single writes.
pub(super) trait SingleWrites: RecordStore {
    /// Writes a new row, and its audit entry.
    async fn insert(&self, row: Row, audit: String) -> Result<(), RecordStoreError> {
        let (row, audit) = (Box::new(row), vec![audit]);
        let insert = Write::Insert { row, audit };
        self.write(Arc::new(vec![insert])).await.map(drop)
    }

    /// Makes all changes, or none if any row has another version than was read (`false`).
    async fn change(&self, changes: Vec<Change>) -> Result<bool, RecordStoreError> {
        let wanted = Arc::new(vec![Write::Change(changes)]);
        Ok(self.write(wanted).await? == [true])
    }
}

impl<S: RecordStore + ?Sized> SingleWrites for S {}

async fn keeps_the_contract(store: &dyn RecordStore) {
    store
        .insert(row("b", 1_000), "asked b".to_owned())
        .await
        .unwrap();
    store
        .insert(row("a", 1_001), "asked a".to_owned())
        .await
        .unwrap();
    assert_eq!(
        store.find("a".to_owned()).await.unwrap(),
        Some(row("a", 1_001))
    );
    assert_eq!(store.find("z".to_owned()).await.unwrap(), None);
    let open: Vec<String> = store
        .list(ListQuery::new(Filter::Open, Page::first(10)))
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.id)
        .collect();
    assert_eq!(open, ["b", "a"], "the longest waiting first");
    assert_eq!(
        store
            .list(ListQuery::new(Filter::Open, Page::first(1)))
            .await
            .unwrap()
            .len(),
        1
    );

    // The first change wins; the second finds another version.
    let first = acted(&row("a", 1_001));
    assert!(store.change(vec![change(first.clone(), 0)]).await.unwrap());
    assert!(!store.change(vec![change(first.clone(), 0)]).await.unwrap());
    assert_eq!(
        store.find("a".to_owned()).await.unwrap(),
        Some(first.clone())
    );

    // All or none.
    let both = vec![change(acted(&row("b", 1_000)), 0), change(first.clone(), 0)];
    assert!(!store.change(both).await.unwrap());
    assert!(
        store
            .find("b".to_owned())
            .await
            .unwrap()
            .unwrap()
            .lifecycle
            .is_open()
    );
    assert_eq!(
        (
            store.waiting().await.unwrap(),
            store
                .list(ListQuery::new(Filter::Ended, Page::first(10)))
                .await
                .unwrap()
                .len()
        ),
        (1, 1)
    );

    // Delivered rows are no longer found as the same question.
    assert_eq!(store.by_binding("same".to_owned()).await.unwrap().len(), 2);
    let mut told = first.clone();
    told.lifecycle = first
        .lifecycle
        .step(&Transition::Deliver, Timestamp::from_millis(3_000))
        .unwrap();
    assert!(store.change(vec![change(told, 1)]).await.unwrap());
    assert_eq!(store.by_binding("same".to_owned()).await.unwrap().len(), 1);

    // Many writes at once: each is independent, and each sees the writes before it.
    let c = row("c", 1_002);
    let many = vec![
        Write::Insert {
            row: Box::new(c.clone()),
            audit: vec!["asked c".to_owned(), "shown c".to_owned()],
        },
        Write::Insert {
            row: Box::new(row("d", 1_003)),
            audit: vec!["asked d".to_owned()],
        },
        Write::Change(vec![change(acted(&c), 5)]),
        Write::Change(vec![
            change(acted(&row("b", 1_000)), 0),
            change(acted(&c), 9),
        ]),
        Write::Change(vec![change(acted(&c), 0)]),
        Write::Change(Vec::new()),
    ];
    let done = store.write(Arc::new(many)).await.unwrap();
    assert_eq!(done, [true, true, false, false, true, true]);
    assert_eq!(store.find("c".to_owned()).await.unwrap(), Some(acted(&c)));
    let d = store.find("d".to_owned()).await.unwrap();
    assert_eq!(d, Some(row("d", 1_003)));
    let b = store.find("b".to_owned()).await.unwrap().unwrap();
    assert!(b.lifecycle.is_open(), "all or none");
    assert_eq!(
        store.left_over().await.unwrap(),
        ["same", "same", "same"],
        "b and d wait, c was not delivered"
    );

    // The audit is a chain without gaps, and failed writes left no trace in it.
    let links = store.audit(1, 100).await.unwrap();
    let entries: Vec<&str> = links.iter().map(|link| link.entry.as_str()).collect();
    assert_eq!(
        entries,
        [
            "asked b", "asked a", "changed", "changed", "asked c", "shown c", "asked d", "changed"
        ]
    );
    let mut before = String::new();
    for (at, link) in links.iter().enumerate() {
        assert_eq!(link.number, at as u64 + 1);
        assert_eq!(link.hash, chained(None, &before, &link.entry));
        before.clone_from(&link.hash);
    }
    assert_eq!(store.audit(8, 100).await.unwrap().len(), 1);
}

/// Rows are read page by page: each once, in order, even if the row at which a page starts has left the list.
async fn counts_open_rows(store: &dyn RecordStore) {
    let none = store.open_figures().await.unwrap();
    assert_eq!(none, OpenFigures::default());
    for (id, at) in [("a", 1_500), ("b", 1_200), ("c", 1_900)] {
        store.insert(row(id, at), "asked".to_owned()).await.unwrap();
    }
    let next = acted(&row("b", 1_200));
    assert!(store.change(vec![change(next, 0)]).await.unwrap());
    let open = store.open_figures().await.unwrap();
    let server = row("a", 1).body.server.clone();
    assert_eq!(open.by_server, [(server, 2)]);
    assert_eq!(open.oldest, Some(Timestamp::from_millis(1_500)));
}

#[tokio::test]
async fn every_store_counts_open_rows_and_a_file_has_a_size() {
    counts_open_rows(&Memory::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = Sqlite::open(&folder.path().join("record")).await.unwrap();
    counts_open_rows(&file).await;
    let size = file.size().await.unwrap().unwrap();
    assert!(size.used > 4_096, "{size:?}");
    assert_eq!(Memory::default().size().await.unwrap(), None);
}

async fn gives_pages(store: &dyn RecordStore) {
    for number in 0..7 {
        // Several rows have the same time.
        let row = row(&format!("q{number}"), 1_000 + number / 3);
        store.insert(row, "asked".to_owned()).await.unwrap();
    }
    let all = ids(store, Filter::Open, Page::first(100)).await;
    let mut latest = ids(store, Filter::OpenLatest, Page::first(3)).await;
    let rest = Page::after(latest[2].clone(), 100);
    latest.extend(ids(store, Filter::OpenLatest, rest).await);
    latest.reverse();
    assert_eq!(latest, all);
    let first = ids(store, Filter::Open, Page::first(3)).await;
    assert_eq!(first, all[..3]);
    let last = store.find(first[2].clone()).await.unwrap().unwrap();
    assert!(store.change(vec![change(acted(&last), 0)]).await.unwrap());
    let second = ids(store, Filter::Open, Page::after(first[2].clone(), 3)).await;
    let third = ids(store, Filter::Open, Page::after(second[2].clone(), 3)).await;
    assert_eq!([second, third].concat(), all[3..]);
    assert!(
        ids(store, Filter::Open, Page::after("nobody".to_owned(), 3))
            .await
            .is_empty()
    );
    for id in &all[3..6] {
        let row = store.find(id.clone()).await.unwrap().unwrap();
        assert!(store.change(vec![change(acted(&row), 0)]).await.unwrap());
    }
    let ended = ids(store, Filter::Ended, Page::first(100)).await;
    assert_eq!(ended.len(), 4);
    assert_eq!(
        ids(store, Filter::Ended, Page::after(ended[1].clone(), 100)).await,
        ended[2..]
    );
}

async fn ids(store: &dyn RecordStore, filter: Filter, page: Page) -> Vec<String> {
    let rows = store.list(ListQuery::new(filter, page)).await.unwrap();
    rows.into_iter().map(|row| row.id).collect()
}

/// Reports rows that are due, and deletes those that ended long ago.
async fn sweeps(store: &dyn RecordStore) {
    let at = Timestamp::from_millis;
    let keep = Duration::from_secs(10);
    let insert = async |row: Row| store.insert(row, "asked".to_owned()).await.unwrap();
    // NewQuestion at 1 s, with a deadline of a minute, and answers kept for 10 s.
    let of = |id: &str| {
        let row = row(id, 1_000);
        let lifecycle = row.lifecycle.clone().deliverable_within(keep);
        Row { lifecycle, ..row }
    };
    let answered = |row: &Row| acted(row);
    insert(of("open")).await;
    insert(of("answered")).await;
    let waits = answered(&of("answered"));
    assert!(store.change(vec![change(waits.clone(), 0)]).await.unwrap());
    let mut lost = of("lost");
    Arc::make_mut(&mut lost.body).target = None;
    insert(lost).await;
    insert(of("taken")).await;
    let mut taken = answered(&of("taken"));
    taken.lifecycle = taken
        .lifecycle
        .step(&Transition::Deliver, at(3_000))
        .unwrap();
    assert!(store.change(vec![change(taken.clone(), 0)]).await.unwrap());
    let due = async |now: u64| {
        let rows = store.due(at(now), 100).await.unwrap();
        let mut ids: Vec<String> = rows.into_iter().map(|row| row.id).collect();
        ids.sort();
        ids
    };
    assert_eq!(due(2_500).await, ["lost", "taken"]);
    assert_eq!(due(12_000).await, ["answered", "lost", "taken"]);
    assert_eq!(due(61_000).await, ["answered", "lost", "open", "taken"]);
    // Rows without a time keep none with one from being reached.
    let first = store.due(at(12_000), 1).await.unwrap();
    assert_eq!(
        first.iter().map(|row| &row.id).collect::<Vec<_>>(),
        ["answered"]
    );
    let erased = Row {
        content: None,
        arguments: None,
        ..taken.clone()
    };
    let done = change(erased, taken.lifecycle.version());
    assert!(store.change(vec![done]).await.unwrap());
    assert_eq!(due(2_500).await, ["lost"]);
    let contents = store.contents().await.unwrap();
    let expected = RecordContents {
        waiting: 2,
        undelivered: 1,
        ended: 1,
        oldest_ended: taken.lifecycle.ended_at(),
        links: contents.links,
        ..RecordContents::default()
    };
    assert_eq!(contents, expected);
    assert_eq!(contents.links, store.audit_end().await.unwrap());
    let count = async |purge: Purge| store.purgeable(purge).await.unwrap();
    assert_eq!(count(Purge::before(at(9_000))).await, 1);
    assert_eq!(count(Purge::of("local".to_owned())).await, 1);
    let other = Purge::of("locals".to_owned());
    assert_eq!(count(other.clone()).await, 0);
    assert_eq!(store.purge(other).await.unwrap(), 0, "another caller's");
    assert_eq!(
        store.purge(Purge::before(at(2_000))).await.unwrap(),
        0,
        "not old enough"
    );
    assert_eq!(
        store.purge(Purge::before(at(9_000))).await.unwrap(),
        1,
        "what waits stays"
    );
    assert!(store.find("taken".to_owned()).await.unwrap().is_none());
    let found = store.find("open".to_owned()).await.unwrap().unwrap();
    let listed = store
        .list(ListQuery::new(Filter::Open, Page::first(1)))
        .await
        .unwrap();
    assert_eq!(found.params.as_deref(), Some("{}"));
    assert_eq!(
        listed[0].params, None,
        "a list does not read what was asked"
    );
}

/// A result is kept for its time, and returned once.
/// Adds up bytes by caller and server, and deletes the ended questions of one server on which nobody acted.
async fn makes_room(store: &dyn RecordStore) {
    let withdrawn = |row: &Row| {
        let step = Ending::WithdrawnByServer.transition();
        let at = Timestamp::from_millis(2_000);
        let lifecycle = row.lifecycle.step(&step, at).unwrap();
        Row {
            lifecycle,
            ..row.clone()
        }
    };
    let of = |id: &str, server: &str, caller: &str| {
        let mut row = row(id, 1_000);
        let body = Arc::make_mut(&mut row.body);
        body.address = Some(server.to_owned());
        body.principal = caller.to_owned();
        row
    };
    let with_rule = |id: &str, is_approval| {
        let mut row = team_row(id, 1_000, "ops", "ann");
        row.team.as_mut().unwrap().is_approval = is_approval;
        Row {
            body: of(id, "a", "key-1").body,
            params: Some(" ".repeat(20_000)),
            ..row
        }
    };
    let large = Row {
        params: Some(" ".repeat(20_000)),
        ..of("large", "c", "key-3")
    };
    for (row, ended) in [
        (of("open", "a", "key-1"), None),
        (of("declined", "a", "key-1"), Some(true)),
        (of("taken back", "a", "key-1"), Some(false)),
        (of("taken back too", "a", "key-2"), Some(false)),
        (of("of another server", "b", "key-1"), Some(false)),
        (with_rule("approval", true), Some(false)),
        (with_rule("of a rule", false), Some(false)),
        (large.clone(), Some(false)),
        (
            Row {
                id: "large, declined".to_owned(),
                ..large
            },
            Some(true),
        ),
    ] {
        store.insert(row.clone(), "asked".to_owned()).await.unwrap();
        let next = match ended {
            None => continue,
            Some(false) => withdrawn(&row),
            Some(true) => {
                let mut row = acted(&row);
                let given = Timestamp::from_millis(3_000);
                row.lifecycle = row.lifecycle.step(&Transition::Deliver, given).unwrap();
                row
            }
        };
        assert!(store.change(vec![change(next, 0)]).await.unwrap());
    }
    let mut stored = store.stored_bytes().await.unwrap();
    stored.sort_by_key(|of| (of.caller.clone(), of.server.clone()));
    let of_whom: Vec<_> = stored
        .iter()
        .map(|of| (of.caller.as_str(), of.server.as_deref(), of.bytes >= 1_024))
        .collect();
    assert_eq!(
        of_whom,
        [
            ("key-1", None, true),
            ("key-1", Some("a"), true),
            ("key-1", Some("b"), true),
            ("key-2", Some("a"), true),
            ("key-3", Some("c"), true),
        ]
    );
    let params = async |id: &str| {
        let row = store.find(id.to_owned()).await.unwrap().unwrap();
        row.params.map(|params| params.len())
    };
    assert_eq!(params("large").await, None, "nobody will answer it");
    assert_eq!(params("taken back").await, Some(2));
    for id in ["large, declined", "approval"] {
        assert_eq!(params(id).await, Some(20_000), "{id}");
    }
    assert!(stored[1].bytes >= 3 * 1_024, "{stored:?}");
    let unanswered = |principal: Option<&str>| Purge {
        principal: principal.map(str::to_owned),
        unanswered_of: Some("a".to_owned()),
        ..Purge::before(Timestamp::from_millis(9_000))
    };
    let count = async |purge: Purge| store.purgeable(purge).await.unwrap();
    assert_eq!(count(unanswered(None)).await, 2);
    assert_eq!(count(unanswered(Some("key-1"))).await, 1);
    assert_eq!(store.purge(unanswered(Some("key-1"))).await.unwrap(), 1);
    for (id, is_there) in [
        ("open", true),
        ("declined", true),
        ("taken back", false),
        ("taken back too", true),
        ("of another server", true),
        ("approval", true),
        ("of a rule", true),
    ] {
        let found = store.find(id.to_owned()).await.unwrap();
        assert_eq!(found.is_some(), is_there, "{id}");
    }
}

async fn keeps_results(store: &dyn RecordStore) {
    let at = Timestamp::from_millis;
    let call = |id: &str, until: u64| super::FinishedCall {
        id: id.to_owned(),
        binding: "same".to_owned(),
        result: vec![1, 2],
        until: at(until),
    };
    store.keep_call(call("a", 5_000)).await.unwrap();
    store.keep_call(call("b", 9_000)).await.unwrap();
    let ids = async |binding: Option<&str>, now: u64| {
        let calls = store.calls(binding.map(str::to_owned), at(now));
        let mut calls = calls.await.unwrap();
        calls.sort_by(|one, other| one.id.cmp(&other.id));
        let state = |call: super::UnattendedCall| (call.id, call.running.is_some());
        calls.into_iter().map(state).collect::<Vec<_>>()
    };
    let finished = |id: &str| (id.to_owned(), false);
    assert_eq!(ids(None, 4_999).await, [finished("a"), finished("b")]);
    assert_eq!(ids(None, 5_000).await, [finished("b")]);
    store.expire_calls(at(5_000)).await.unwrap();
    assert_eq!(store.take_call("a".to_owned()).await.unwrap(), None);
    let begin = async |id: &str| {
        let running = super::RunningCall {
            owner: "me".to_owned(),
            link: Some("http://inbox/q/1".to_owned()),
        };
        let begun = store.begin_call(id.to_owned(), "other".to_owned(), running, at(9_000));
        begun.await.unwrap();
    };
    begin("c").await;
    begin("d").await;
    begin("b").await;
    let running = |id: &str| (id.to_owned(), true);
    assert_eq!(
        ids(None, 5_000).await,
        [finished("b"), running("c"), running("d")],
        "a finished call does not run again"
    );
    assert_eq!(ids(Some("same"), 5_000).await, [finished("b")]);
    let of = store.calls(Some("other".to_owned()), at(0)).await.unwrap();
    assert_eq!(
        of[0]
            .running
            .as_ref()
            .map(|call| (call.owner.as_str(), call.link.as_deref())),
        Some(("me", Some("http://inbox/q/1")))
    );
    store.end_call("c".to_owned()).await.unwrap();
    let done = super::FinishedCall {
        binding: "other".to_owned(),
        ..call("d", 9_000)
    };
    store.keep_call(done).await.unwrap();
    assert_eq!(ids(Some("other"), 5_000).await, [finished("d")]);
    assert_eq!(ids(None, 9_000).await, []);
    let b = Some(call("b", 9_000));
    assert_eq!(store.take_call("b".to_owned()).await.unwrap(), b);
    assert_eq!(store.take_call("b".to_owned()).await.unwrap(), None);
}

/// Facts about servers are kept: the latest value of each.
async fn keeps_what_was_learned(store: &dyn RecordStore) {
    let learned = |server: &str| store.learned(server.to_owned());
    assert_eq!(learned("s0").await.unwrap(), None);
    for number in 0..=SERVERS_LEARNED as u64 {
        let (server, now) = (format!("s{number}"), Timestamp::from_millis(number));
        store
            .keep_learned(server, "one".to_owned(), now)
            .await
            .unwrap();
    }
    assert_eq!(
        learned("s0").await.unwrap(),
        None,
        "the oldest is forgotten"
    );
    assert_eq!(learned("s1").await.unwrap().as_deref(), Some("one"));
    let now = Timestamp::from_millis(9_000);
    store
        .keep_learned("s1".to_owned(), "two".to_owned(), now)
        .await
        .unwrap();
    assert_eq!(learned("s1").await.unwrap().as_deref(), Some("two"));
}

#[tokio::test]
async fn every_store_keeps_what_was_learned() {
    keeps_what_was_learned(&Memory::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    keeps_what_was_learned(&Sqlite::open(&path).await.unwrap()).await;
    let again = Sqlite::open(&path).await.unwrap();
    assert!(again.learned("s1".to_owned()).await.unwrap().is_some());
}

/// Groups of any size are written whole and in order. If another writer changed a row, only the write of that row is
/// refused.
async fn writes_groups(store: &dyn RecordStore) {
    let (mut count, mut links) = (0_u64, Vec::new());
    for size in [1, 2, 3, 31, 64, 65, 150, 300] {
        let rows: Vec<Row> = (0..size)
            .map(|at| row(&format!("g{size}-{at}"), 1_000))
            .collect();
        let new = rows.iter().map(|row| Write::Insert {
            row: Box::new(row.clone()),
            audit: vec![format!("asked {}", row.id)],
        });
        let mut wanted: Vec<Write> = new.collect();
        // Every third row was changed by another writer.
        let seen = |at: usize| u64::from(at % 3 == 2);
        wanted.extend(rows.iter().enumerate().map(|(at, row)| {
            let mut change = change(acted(row), seen(at));
            change.audit = vec![format!("answered {}", row.id)];
            Write::Change(vec![change])
        }));
        wanted.push(Write::Note(format!("group {size}")));
        let done = store.write(Arc::new(wanted.clone())).await.unwrap();
        let is_written = |at: usize| at < size || at == 2 * size || seen(at - size) == 0;
        let expected: Vec<bool> = (0..wanted.len()).map(is_written).collect();
        assert_eq!(done, expected, "of {size}");
        for (write, _) in wanted.iter().zip(&done).filter(|(_, done)| **done) {
            match write {
                Write::Insert { audit, .. } => links.extend(audit.clone()),
                Write::Change(changes) => links.extend(changes[0].audit.clone()),
                Write::Note(entry) | Write::PurgeAudit { entry, .. } => links.push(entry.clone()),
            }
        }
        let audit = store.audit(count + 1, 2_000).await.unwrap();
        let end = audit.last().map(|link| link.number);
        assert_eq!(Some(store.audit_end().await.unwrap()), end);
        let found: Vec<&str> = audit.iter().map(|link| link.entry.as_str()).collect();
        assert_eq!(found, links, "of {size}");
        count += links.len() as u64;
        links.clear();
        for (at, row) in rows.iter().enumerate() {
            let found = store.find(row.id.clone()).await.unwrap().unwrap();
            assert_eq!(found.lifecycle.version(), u64::from(seen(at) == 0));
        }
    }
}

#[tokio::test]
async fn every_store_writes_groups() {
    writes_groups(&Memory::default()).await;
    let folder = tempfile::tempdir().unwrap();
    writes_groups(&Sqlite::at(&folder.path().join("groups.sqlite"))).await;
}

#[tokio::test]
async fn every_store_keeps_results() {
    keeps_results(&Memory::default()).await;
    keeps_results(&Writer::new(Arc::new(Memory::default()))).await;
    let folder = tempfile::tempdir().unwrap();
    keeps_results(&Sqlite::at(&folder.path().join("calls.sqlite"))).await;
}

#[tokio::test]
async fn every_store_is_swept() {
    sweeps(&Memory::default()).await;
    sweeps(&Writer::new(Arc::new(Memory::default()))).await;
    let folder = tempfile::tempdir().unwrap();
    sweeps(&Sqlite::at(&folder.path().join("sweep.sqlite"))).await;
}

#[tokio::test]
async fn every_store_makes_room() {
    makes_room(&Memory::default()).await;
    makes_room(&Writer::new(Arc::new(Memory::default()))).await;
    let folder = tempfile::tempdir().unwrap();
    makes_room(&Sqlite::at(&folder.path().join("room.sqlite"))).await;
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    keeps_the_contract(&Memory::default()).await;
    gives_pages(&Memory::default()).await;
}

#[tokio::test]
async fn a_journal_keeps_the_contract() {
    keeps_the_contract(&Writer::new(Arc::new(Memory::default()))).await;
    gives_pages(&Writer::new(Arc::new(Memory::default()))).await;
    let folder = tempfile::tempdir().unwrap();
    let contract = Sqlite::at(&folder.path().join("contract.sqlite"));
    keeps_the_contract(&Writer::new(Arc::new(contract))).await;
    let pages = Sqlite::at(&folder.path().join("pages.sqlite"));
    gives_pages(&Writer::new(Arc::new(pages))).await;
}

#[tokio::test]
async fn sqlite_keeps_the_contract_and_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    keeps_the_contract(&Sqlite::open(&path).await.unwrap()).await;
    gives_pages(
        &Sqlite::open(&folder.path().join("pages.sqlite"))
            .await
            .unwrap(),
    )
    .await;
    let again = Sqlite::open(&path).await.unwrap();
    assert_eq!(
        again
            .list(ListQuery::new(Filter::Open, Page::first(10)))
            .await
            .unwrap()
            .len(),
        2
    );
    assert_eq!(again.audit(1, 100).await.unwrap().len(), 8);
}

/// A write without a waiter is done in order: before any later write with a waiter, and before any read.
#[tokio::test]
async fn what_is_left_behind_is_written_before_what_comes_after() {
    let below: Arc<Memory> = Arc::default();
    let writer = Writer::new(below.clone());
    let asked = |id: &str| Write::Insert {
        row: Box::new(row(id, 1_000)),
        audit: vec![format!("asked {id}")],
    };
    writer.queue_behind(asked("a"));
    writer.queue_behind(asked("b"));
    // It becomes part of the row that waits to be written.
    writer.queue_behind(Write::Change(vec![change(acted(&row("a", 1_000)), 0)]));
    assert_eq!(below.waiting().await.unwrap(), 0, "nobody has waited yet");
    writer
        .insert(row("c", 1_000), "asked c".to_owned())
        .await
        .unwrap();
    let entries = |links: Vec<super::AuditEntry>| -> Vec<String> {
        links.into_iter().map(|link| link.entry).collect()
    };
    assert_eq!(
        entries(below.audit(1, 100).await.unwrap()),
        ["asked a", "changed", "asked b", "asked c"]
    );
    writer.queue_behind(Write::Change(vec![change(acted(&row("b", 1_000)), 0)]));
    let b = writer.find("b".to_owned()).await.unwrap().unwrap();
    assert_eq!(
        b,
        acted(&row("b", 1_000)),
        "a read sees what was queued before it"
    );
    writer.queue_behind(asked("d"));
    drop(writer);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(
        below.find("d".to_owned()).await.unwrap().is_some(),
        "written as it closes"
    );
}

/// No new question is accepted while the writer is full; writes that have begun are still completed.
#[tokio::test]
async fn a_full_journal_has_no_room_until_it_is_written() {
    let below: Arc<Memory> = Arc::default();
    let writer = Writer::new(below.clone());
    for number in 0..super::writer::CAPACITY {
        assert!(writer.has_room());
        writer.queue_behind(Write::Insert {
            row: Box::new(row(&format!("q{number}"), 1_000)),
            audit: Vec::new(),
        });
    }
    assert!(!writer.has_room());
    writer.flush().await.unwrap();
    assert!(writer.has_room());
    assert_eq!(below.waiting().await.unwrap(), super::writer::CAPACITY);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_is_told_to_who_waits_and_else_tried_again() {
    let below = Arc::new(Failing {
        writes: AtomicUsize::new(3),
        ..Failing::default()
    });
    let writer = Writer::new(below.clone());
    writer.queue_behind(Write::Insert {
        row: Box::new(row("a", 1_000)),
        audit: vec!["asked a".to_owned()],
    });
    // Three failures: one of the group, and one of each write by itself.
    let waited = writer.insert(row("b", 1_000), "asked b".to_owned()).await;
    assert!(waited.is_err());
    assert!(!writer.has_room(), "nothing new is begun meanwhile");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(writer.has_room());
    assert!(below.find("a".to_owned()).await.unwrap().is_some());
    assert!(below.find("b".to_owned()).await.unwrap().is_none());
}

/// Returns a question of a rule that asks a group, in the call of a person.
fn team_row(id: &str, at: u64, group: &str, caller: &str) -> Row {
    let rules = format!(
        "[groups]\n{group} = {{ claim = \"c\" }}\n[[rules]]\nname = \"r\"\nask = {{ group = \"{group}\" }}\n"
    );
    let rules = Rules::parse(&rules).unwrap();
    let Decision::Ask(plan) = rules.rules()[0].decision() else {
        panic!("the rule asks");
    };
    let caller = TeamCaller {
        person: Some(caller.to_owned()),
        issuer: "https://id".to_owned(),
        subject: format!("s-{caller}"),
        ..TeamCaller::default()
    };
    let team = Team::new(
        "r",
        "d",
        caller,
        plan,
        Vec::new(),
        Duration::from_secs(60 * 60),
    );
    Row {
        team: Some(Box::new(team)),
        ..row(id, at)
    }
}

/// A person's list contains the questions addressed to them and those of their own calls, and nothing else.
async fn lists_by_person(store: &dyn RecordStore) {
    let principal = r#"["https://id","s-cy"]"#.to_owned();
    let mut own = row("own", 5);
    Arc::make_mut(&mut own.body)
        .principal
        .clone_from(&principal);
    let own_server = own.body.server_address().to_owned();
    let rows = [
        team_row("ops", 1, "ops", "ada"),
        team_row("leads", 2, "leads", "ada"),
        team_row("ops-2", 3, "ops", "cy"),
        row("local", 4),
        own,
    ];
    for row in rows {
        store.insert(row, "asked".to_owned()).await.unwrap();
    }
    let server = own_server;
    let waiting = async |principal: &str, server: Option<&str>| {
        let count = store.waiting_of(principal.to_owned(), server.map(str::to_owned));
        let count = count.await.unwrap();
        [count.of_caller, count.of_server]
    };
    assert_eq!(waiting(&principal, None).await, [1, 0]);
    assert_eq!(waiting(&principal, Some(&server)).await, [1, 1]);
    assert_eq!(waiting(&principal, Some("elsewhere")).await, [1, 0]);
    assert_eq!(waiting("nobody", Some(&server)).await, [0, 0]);
    let listed = async |filter, keys: &ListKeys, most| {
        let rows = store
            .list(ListQuery::new(filter, Page::first(most)).under(Some(keys.clone())))
            .await
            .unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    let mut ops = ListKeys::default();
    ops.add_addressee(&Addressee::Person("bob".to_owned()));
    ops.add_addressee(&Addressee::Group("ops".to_owned()));
    assert_eq!(listed(Filter::Open, &ops, 9).await, ["ops", "ops-2"]);
    assert_eq!(listed(Filter::Open, &ops, 1).await, ["ops"]);
    assert_eq!(listed(Filter::OpenLatest, &ops, 1).await, ["ops-2"]);
    let mut cy = ListKeys::default();
    cy.add_subject("https://id", "s-cy");
    assert_eq!(listed(Filter::Open, &cy, 9).await, ["ops-2", "own"]);
    assert_eq!(listed(Filter::OpenLatest, &cy, 9).await, ["own", "ops-2"]);
    let mut ada = ListKeys::default();
    ada.add_caller("ada");
    assert_eq!(listed(Filter::Open, &ada, 9).await, ["ops", "leads"]);
    assert_eq!(listed(Filter::Open, &ListKeys::default(), 9).await, [""; 0]);
    // Other people are asked too, and then it ends.
    let mut more = team_row("leads", 2, "ops", "ada");
    more.lifecycle = more.lifecycle.renewed();
    assert!(store.change(vec![change(more.clone(), 0)]).await.unwrap());
    assert_eq!(
        listed(Filter::Open, &ops, 9).await,
        ["ops", "leads", "ops-2"]
    );
    let seen = more.lifecycle.version();
    assert!(
        store
            .change(vec![change(acted(&more), seen)])
            .await
            .unwrap()
    );
    assert_eq!(listed(Filter::Open, &ops, 9).await, ["ops", "ops-2"]);
    assert_eq!(listed(Filter::Ended, &ops, 9).await, ["leads"]);
    assert_eq!(listed(Filter::Ended, &cy, 9).await, [""; 0]);
    // An approval is not a question of its server.
    let approval = team_row("approval", 6, "ops", "ada");
    let asks = approval.body.principal.clone();
    let before = waiting(&asks, Some(&server)).await;
    let team = approval.team.clone().unwrap().for_approval();
    let approval = Row {
        team: Some(Box::new(team)),
        ..approval
    };
    store
        .insert(approval.clone(), "asked".to_owned())
        .await
        .unwrap();
    assert_eq!(
        waiting(&asks, Some(&server)).await,
        [before[0] + 1, before[1]]
    );
}

#[tokio::test]
async fn sqlite_leaves_out_of_lists_what_it_cannot_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let store = Sqlite::open(&path).await.unwrap();
    lists::leaves_out_what_it_cannot_read(&store, |change| {
        let beside = rusqlite::Connection::open(&path).unwrap();
        let change = format!("UPDATE question {change}");
        beside.execute(&change, []).unwrap().to_string()
    })
    .await;
}

#[tokio::test]
async fn every_store_lists_by_person() {
    lists_by_person(&Memory::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    lists_by_person(&Sqlite::open(&path).await.unwrap()).await;
}

/// Approvals are kept until their end, each replacing an earlier one with its key.
async fn keeps_grants(store: &dyn RecordStore) {
    let at = Timestamp::from_millis;
    let grant = |key: &str, until: u64| StoredGrant {
        key: key.to_owned(),
        question: Some("q".to_owned()),
        rule: "careful".to_owned(),
        rule_digest: "d".to_owned(),
        answers: vec![7, 8],
        at: at(1_000),
        until: at(until),
    };
    for (key, until) in [("a", 2_000), ("b", 3_000), ("c", 4_000), ("b", 5_000)] {
        let is_stored = store.keep_grant(grant(key, until), at(1_000));
        assert!(is_stored.await.unwrap());
    }
    let sorted = async |now| {
        let mut grants = store.grants(at(now)).await.unwrap();
        grants.sort_by(|a, b| a.key.cmp(&b.key));
        grants
    };
    assert_eq!(
        sorted(1_999).await,
        [grant("a", 2_000), grant("b", 5_000), grant("c", 4_000)]
    );
    assert_eq!(sorted(2_000).await, [grant("b", 5_000), grant("c", 4_000)]);
    assert_eq!(sorted(0).await.len(), 2, "one that has ended is gone");
    store
        .drop_grants(vec!["b".to_owned(), "z".to_owned()])
        .await
        .unwrap();
    assert_eq!(sorted(0).await, [grant("c", 4_000)]);
    // One that was given before another of its key began does not replace it.
    let earlier = grant("c", 6_000);
    assert!(!store.keep_grant(earlier, at(999)).await.unwrap());
    assert_eq!(sorted(0).await, [grant("c", 4_000)]);
    // The same one may be stored twice: after the first time, the connection may break.
    let again = store.keep_grant(grant("c", 4_000), at(999));
    assert!(again.await.unwrap());
}

#[tokio::test]
async fn every_store_keeps_grants() {
    keeps_grants(&Memory::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    keeps_grants(&Sqlite::open(&path).await.unwrap()).await;
    let again = Sqlite::open(&path).await.unwrap();
    assert_eq!(
        again.grants(Timestamp::from_millis(0)).await.unwrap().len(),
        1
    );
}

/// A file of the first version: its questions, answers and audit entries are preserved, as data.
#[tokio::test]
async fn a_file_of_an_older_version_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(include_str!("schema.sql")).unwrap();
    old.execute_batch(include_str!("fixture.sql")).unwrap();
    old.close().unwrap();
    let store = Sqlite::open(&path).await.unwrap();
    let open = store.find("open".to_owned()).await.unwrap().unwrap();
    assert_eq!(
        (open.body.mode, open.body.message.as_str()),
        (Mode::Url, "Sign in")
    );
    assert_eq!(open.body.kind, Some(CallKind::Tool));
    assert!(open.params.unwrap().contains("https://a.example/"));
    let listed = store
        .list(ListQuery::new(Filter::Open, Page::first(9)))
        .await
        .unwrap();
    assert_eq!((listed.len(), listed[0].params.as_deref()), (1, None));
    let answered = store.find("answered".to_owned()).await.unwrap().unwrap();
    assert_eq!(
        answered.body.mode,
        Mode::Form,
        "an unknown keyword is not a mode"
    );
    let at = Timestamp::from_millis;
    assert_eq!(answered.lifecycle.valid_until(), Some(at(2_000 + 900_000)));
    let due = store.due(at(902_000), 9).await.unwrap();
    assert_eq!(
        due.len(),
        2,
        "the open one's deadline, and the answer's end"
    );
    assert_eq!(store.audit(1, 9).await.unwrap().len(), 1);
    assert_eq!(store.grants(at(0)).await.unwrap(), []);
    keeps_grants(&store).await;
    assert!(
        store
            .change(vec![change(acted(&listed[0]), 0)])
            .await
            .unwrap()
    );
    assert_eq!(
        store
            .waiting_of("local".to_owned(), None)
            .await
            .unwrap()
            .of_caller,
        0
    );
    drop(store);
    let file = rusqlite::Connection::open(&path).unwrap();
    let text = format!("EXPLAIN QUERY PLAN {}", super::sqlite::WAITING_OF);
    let plan: String = file
        .query_row(&text, ["local", "s"], |row| row.get("detail"))
        .unwrap();
    assert!(plan.contains("USING INDEX question_open_of"), "{plan}");
}
