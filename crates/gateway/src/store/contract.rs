//! What every store must do, run against each.

use std::time::Duration;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::exchange::{Exchange, Moment, Step};

use super::{Body, Change, Memory, Page, Row, Sqlite, Store, Which, chained};

fn row(id: &str, at: u64) -> Row {
    let asked = Moment::from_millis(at);
    Row {
        id: id.to_owned(),
        same: "same".to_owned(),
        owner: "me".to_owned(),
        exchange: Exchange::ask(asked, Some(asked.after(Duration::from_mins(1)))),
        body: Body {
            server: "s".to_owned(),
            principal: "local".to_owned(),
            server_info: None,
            client_info: None,
            kind: Some("tool".to_owned()),
            target: Some("deploy".to_owned()),
            params: "{}".to_owned(),
            fields: vec!["name".to_owned()],
            cautions: Vec::new(),
            at_client: false,
        },
        arguments: Some(vec![1, 2]),
        content: None,
    }
}

fn acted(row: &Row) -> Row {
    let step = Step::acted(&Outcome::Visit, "inbox");
    let mut next = row.clone();
    next.exchange = row
        .exchange
        .step(&step, Moment::from_millis(2_000))
        .unwrap();
    next.content = Some(vec![7]);
    next
}

fn change(row: Row, seen: u64) -> Change {
    Change {
        row,
        seen,
        audit: Some("changed".to_owned()),
    }
}

async fn keeps_the_contract(store: &dyn Store) {
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
        .list(Which::Open, Page::first(10))
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.id)
        .collect();
    assert_eq!(open, ["b", "a"], "the longest waiting first");
    assert_eq!(
        store.list(Which::Open, Page::first(1)).await.unwrap().len(),
        1
    );

    // The first wins, the second sees that it was not.
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
            .exchange
            .is_open()
    );
    assert_eq!(
        (
            store.waiting().await.unwrap(),
            store
                .list(Which::Ended, Page::first(10))
                .await
                .unwrap()
                .len()
        ),
        (1, 1)
    );

    // Delivered rows are not found as the same question any more.
    assert_eq!(store.same("same".to_owned()).await.unwrap().len(), 2);
    let mut told = first.clone();
    told.exchange = first
        .exchange
        .step(&Step::Deliver, Moment::from_millis(3_000))
        .unwrap();
    assert!(store.change(vec![change(told, 1)]).await.unwrap());
    assert_eq!(store.same("same".to_owned()).await.unwrap().len(), 1);

    // The audit is a chain without gaps, and what failed left no trace in it.
    let links = store.audit(1, 100).await.unwrap();
    let entries: Vec<&str> = links.iter().map(|link| link.entry.as_str()).collect();
    assert_eq!(entries, ["asked b", "asked a", "changed", "changed"]);
    let mut before = String::new();
    for (at, link) in links.iter().enumerate() {
        assert_eq!(link.number, at as u64 + 1);
        assert_eq!(link.hash, chained(&before, &link.entry));
        before.clone_from(&link.hash);
    }
    assert_eq!(store.audit(4, 100).await.unwrap().len(), 1);
}

/// Rows are read page by page: each once, in order, also when the row a page starts behind has left the list.
async fn gives_pages(store: &dyn Store) {
    for number in 0..7 {
        // Several of one time.
        let row = row(&format!("q{number}"), 1_000 + number / 3);
        store.insert(row, "asked".to_owned()).await.unwrap();
    }
    let all = ids(store, Which::Open, Page::first(100)).await;
    let first = ids(store, Which::Open, Page::first(3)).await;
    assert_eq!(first, all[..3]);
    let last = store.find(first[2].clone()).await.unwrap().unwrap();
    assert!(store.change(vec![change(acted(&last), 0)]).await.unwrap());
    let second = ids(store, Which::Open, Page::after(first[2].clone(), 3)).await;
    let third = ids(store, Which::Open, Page::after(second[2].clone(), 3)).await;
    assert_eq!([second, third].concat(), all[3..]);
    assert!(
        ids(store, Which::Open, Page::after("nobody".to_owned(), 3))
            .await
            .is_empty()
    );
    for id in &all[3..6] {
        let row = store.find(id.clone()).await.unwrap().unwrap();
        assert!(store.change(vec![change(acted(&row), 0)]).await.unwrap());
    }
    let ended = ids(store, Which::Ended, Page::first(100)).await;
    assert_eq!(ended.len(), 4);
    assert_eq!(
        ids(store, Which::Ended, Page::after(ended[1].clone(), 100)).await,
        ended[2..]
    );
}

async fn ids(store: &dyn Store, which: Which, page: Page) -> Vec<String> {
    let rows = store.list(which, page).await.unwrap();
    rows.into_iter().map(|row| row.id).collect()
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    keeps_the_contract(&Memory::default()).await;
    gives_pages(&Memory::default()).await;
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
            .list(Which::Open, Page::first(10))
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(again.audit(1, 100).await.unwrap().len(), 4);
}
