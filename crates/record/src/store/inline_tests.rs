//! Writes that the calling thread makes itself, alone and through the writer.

use std::collections::HashSet;
use std::sync::Arc;

use super::contract::{SingleWrites as _, acted, change, row};
use super::{Crash, RecordStore as _, Sqlite, Write, Writer, chained};

/// An inline write is made at once. A write that would wait for the disk or for another process is not made.
#[tokio::test]
async fn a_write_inline_waits_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let store = Sqlite::at(&path);
    let insert = |id: &str| {
        [Write::Insert {
            row: Box::new(row(id, 1_000)),
            audit: vec![format!("asked {id}")],
        }]
    };
    assert!(store.write_inline(&insert("early")).is_none(), "not open");
    store.ready().await.unwrap();
    assert_eq!(store.write_inline(&insert("a")).unwrap().unwrap(), [true]);
    let mut flushed = change(acted(&row("a", 1_000)), 0);
    flushed.survives = Crash::Machine;
    assert!(
        store
            .write_inline(&[Write::Change(vec![flushed.clone()])])
            .is_none(),
        "the disk is to be waited for"
    );
    flushed.survives = Crash::Process;
    flushed.seen = 7;
    let changed = store.write_inline(&[Write::Change(vec![flushed])]);
    assert_eq!(changed.unwrap().unwrap(), [false], "another version");

    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(store.write_inline(&insert("b")).is_none(), "busy");
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(store.write_inline(&insert("c")).unwrap().unwrap(), [true]);
    let found = async |id: &str| store.find(id.to_owned()).await.unwrap().is_some();
    assert_eq!(
        [found("a").await, found("b").await, found("c").await],
        [true, false, true]
    );
    assert_eq!(store.audit_end().await.unwrap(), 2);
}

/// The log of a file that is only written inline is still moved into the main file.
#[tokio::test]
async fn an_inline_writer_keeps_the_log_short() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let store = Sqlite::open(&path).await.unwrap();
    let writer = Writer::new(Arc::new(store));
    for number in 0..2_000 {
        let row = row(&format!("row {number}"), 1_000);
        writer.insert(row, "asked".to_owned()).await.unwrap();
    }
    let log = std::fs::metadata(folder.path().join("record.sqlite-wal")).unwrap();
    assert!(log.len() < 16 << 20, "{} bytes", log.len());
    assert_eq!(writer.audit_end().await.unwrap(), 2_000);
    assert_eq!(writer.waiting().await.unwrap(), 2_000);
}

/// Many threads write at once through one queue: each write is made once, and each thread's writes in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_at_once_write_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let writer = Arc::new(Writer::new(Arc::new(Sqlite::open(&path).await.unwrap())));
    let tasks = (0..8).map(|task| {
        let writer = writer.clone();
        tokio::spawn(async move {
            for number in 0..50 {
                let id = format!("{task}/{number}");
                let new = row(&id, 1_000);
                writer
                    .insert(new.clone(), format!("asked {id}"))
                    .await
                    .unwrap();
                if number % 3 == 0 {
                    writer.queue_behind(Write::Note(format!("note {id}")));
                }
                let changed = writer.change(vec![change(acted(&new), 0)]).await.unwrap();
                assert!(changed, "{id}");
                let again = writer.change(vec![change(acted(&new), 0)]).await.unwrap();
                assert!(!again, "{id} twice");
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let links = writer.audit(1, 10_000).await.unwrap();
    let entries: HashSet<_> = links.iter().map(|link| &link.entry).collect();
    // 400 questions, each asked and answered, and 17 notes of each of eight tasks.
    assert_eq!(links.len(), 800 + 8 * 17);
    assert!(entries.contains(&"note 7/48".to_owned()));
    let mut before = String::new();
    for (link, number) in links.iter().zip(1..) {
        assert_eq!(link.number, number);
        assert_eq!(link.hash, chained(None, &before, &link.entry));
        before.clone_from(&link.hash);
    }
}
