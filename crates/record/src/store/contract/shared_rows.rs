//! The contract of every store of shared values.

use super::super::StateTables;
use super::super::shared_rows::{BROWSERS, LOGINS, RowChanges, RowKey, SharedRow, SharedRowStore};
use super::Memory;

fn key(kind: &str, id: &str) -> RowKey {
    (kind.to_owned(), id.to_owned())
}

fn row(kind: &str, id: &str, value: &str) -> SharedRow {
    SharedRow {
        key: key(kind, id),
        value: value.to_owned(),
    }
}

pub(super) fn shares_rows(store: &dyn SharedRowStore) {
    assert_eq!(store.version(LOGINS).unwrap(), 0);
    assert_eq!(store.rows(LOGINS).unwrap(), (0, Vec::new()));
    // Nothing is written without changes.
    for changes in [None, Some(RowChanges::default())] {
        let mut changes = Some(changes);
        let version = store.change(LOGINS, 0, &mut |_, _| changes.take().flatten());
        assert_eq!(version.unwrap(), 0);
    }
    let first = [row("b", "2", "x"), row("a", "1", "y"), row("a", "2", "z")];
    let mut changes = Some(RowChanges {
        written: first.to_vec(),
        removed: Vec::new(),
    });
    let one = store.change(LOGINS, 0, &mut |version, rows| {
        assert_eq!(
            (version, rows),
            (0, None),
            "the caller knows that there is none"
        );
        changes.take()
    });
    let one = one.unwrap();
    assert_eq!(store.version(LOGINS).unwrap(), one);
    assert_eq!(store.rows(LOGINS).unwrap(), (one, first.to_vec()));

    let mut changes = Some(RowChanges {
        written: vec![row("c", "1", "new"), row("b", "2", "changed")],
        removed: vec![key("a", "1"), key("a", "3")],
    });
    let two = store.change(LOGINS, one - 1, &mut |version, rows| {
        assert_eq!(version, one);
        assert_eq!(
            rows.as_deref(),
            Some(&first[..]),
            "another process changed it"
        );
        changes.take()
    });
    let two = two.unwrap();
    assert!(two > one);
    let expected = vec![
        row("b", "2", "changed"),
        row("a", "2", "z"),
        row("c", "1", "new"),
    ];
    assert_eq!(
        store.rows(LOGINS).unwrap(),
        (two, expected),
        "in the order of their making"
    );
    assert_eq!(
        store.rows(BROWSERS).unwrap(),
        (0, Vec::new()),
        "each value is by itself"
    );
}

#[test]
fn every_store_shares_rows() {
    let folder = tempfile::tempdir().unwrap();
    let tables = StateTables::at(&folder.path().join("record.sqlite"));
    shares_rows(&Memory::default());
    shares_rows(&tables);
}
