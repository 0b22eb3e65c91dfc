//! Lists that are filtered, searched and paged: each store selects what [`Matching::admits`] says.

use std::sync::Arc;

use mcp_elicit_core::wire::{CallKind, Mode};
use mcp_elicit_policy::people::Addressee;

use super::super::{
    Body, Filter, ListKeys, ListQuery, Matching, Memory, Page, RecordStore, Row, SearchWord, Sqlite,
};
use super::{SingleWrites as _, acted, change, row, team_row};

fn with(id: &str, at: u64, edit: impl FnOnce(&mut Body)) -> Row {
    let mut row = row(id, at);
    edit(Arc::make_mut(&mut row.body));
    row
}

async fn listed(store: &dyn RecordStore, query: ListQuery) -> Vec<String> {
    let rows = store.list(query).await.unwrap();
    rows.into_iter().map(|row| row.id).collect()
}

fn open() -> ListQuery {
    ListQuery::new(Filter::Open, Page::first(100))
}

fn words(text: &str) -> Matching {
    Matching {
        words: SearchWord::all_in(text),
        ..Matching::default()
    }
}

async fn insert(store: &dyn RecordStore, rows: impl IntoIterator<Item = Row>) {
    for row in rows {
        store.insert(row, "asked".to_owned()).await.unwrap();
    }
}

/// `damage` runs SQL on the table `question`.
pub(super) async fn leaves_out_what_it_cannot_read(
    store: &dyn RecordStore,
    damage: impl Fn(&str) -> String,
) {
    insert(store, ["a", "b", "c", "d"].map(|id| row(id, 1))).await;
    let untold = async || store.untold(9).await.unwrap().len();
    let told = untold().await;
    for (id, column) in [("b", "exchange"), ("c", "body")] {
        damage(&format!("SET {column} = '{{}}' WHERE id = '{id}'"));
    }
    // A page is filled, so that nobody takes it for the last.
    for filter in [Filter::Open, Filter::OpenLatest] {
        let query = ListQuery::new(filter, Page::first(2));
        let mut found = listed(store, query).await;
        found.sort();
        assert_eq!(found, ["a", "d"], "{filter:?}");
    }
    let under = open().matching(Matching {
        principal: Some(row("a", 1).body.principal.clone()),
        ..Matching::default()
    });
    assert_eq!(listed(store, under).await, ["a", "d"]);
    let mut keys = ListKeys::default();
    keys.principals.push(row("a", 1).body.principal.clone());
    assert_eq!(listed(store, open().under(Some(keys))).await, ["a", "d"]);
    let found = listed(store, open().matching(words("a"))).await;
    assert!(found.contains(&"a".to_owned()) && !found.contains(&"b".to_owned()));
    assert_eq!(untold().await, told.saturating_sub(2));
    let far = mcp_elicit_core::lifecycle::Timestamp::from_millis(1 << 50);
    let due = store.due(far, 9).await.unwrap();
    assert!(due.iter().all(|row| row.id != "b" && row.id != "c"));
    // It is not forgotten: whoever asks for it by its id gets the error.
    assert!(store.find("b".to_owned()).await.is_err());
}

pub(super) async fn filters(store: &dyn RecordStore) {
    let rows = [
        row("a", 1),
        with("b", 2, |body| body.server = "billing".to_owned()),
        with("c", 3, |body| {
            body.server = "billing".to_owned();
            body.mode = Mode::Url;
            body.kind = Some(CallKind::Prompt);
            body.target = Some("summary".to_owned());
        }),
        with("d", 4, |body| body.principal = "key-1".to_owned()),
    ];
    insert(store, rows).await;
    let found = async |matching: Matching| listed(store, open().matching(matching)).await;
    let any = Matching::default;
    let some = |text: &str| Some(text.to_owned());
    let server = some("billing");
    assert_eq!(found(any()).await, ["a", "b", "c", "d"]);
    assert_eq!(
        found(Matching {
            server: server.clone(),
            ..any()
        })
        .await,
        ["b", "c"]
    );
    let latest = ListQuery::new(Filter::OpenLatest, Page::after("c".to_owned(), 9));
    let latest = latest.matching(Matching { server, ..any() });
    assert_eq!(listed(store, latest).await, ["b"]);
    assert_eq!(
        found(Matching {
            mode: Some(Mode::Url),
            ..any()
        })
        .await,
        ["c"]
    );
    assert_eq!(
        found(Matching {
            kind: Some(CallKind::Tool),
            target: some("deploy"),
            ..any()
        })
        .await,
        ["a", "b", "d"]
    );
    assert_eq!(
        found(Matching {
            principal: some("key-1"),
            ..any()
        })
        .await,
        ["d"]
    );
    assert_eq!(
        found(Matching {
            server: some("nobody"),
            ..any()
        })
        .await,
        [""; 0]
    );
    let ended = acted(&row("a", 1));
    assert!(store.change(vec![change(ended, 0)]).await.unwrap());
    let ended = ListQuery::new(Filter::Ended, Page::first(9)).matching(Matching {
        server: some("s"),
        ..any()
    });
    assert_eq!(listed(store, ended).await, ["a"]);
}

pub(super) async fn searches(store: &dyn RecordStore) {
    let message = |id: &str, at: u64, text: &str| {
        let text = text.to_owned();
        with(id, at, |body| body.message = text)
    };
    let rows = [
        message("q-1", 1, "Deploy to PRODUCTION?"),
        message("q-2", 2, "Ärger mit \"Gebühren\": 50%_\u{0}x"),
        with("q-3", 3, |body| {
            body.server = "billing".to_owned();
            body.target = Some("refund".to_owned());
            body.fields = vec!["amount".to_owned(), "account_number".to_owned()];
            body.principal = r#"["https://id.example","sam"]"#.to_owned();
        }),
        with("q-4", 4, |body| {
            body.target = None;
            body.others = vec!["ship".to_owned()];
        }),
        team_row("approve", 5, "ops", "ada"),
    ];
    insert(store, rows).await;
    let found = async |text: &str| listed(store, open().matching(words(text))).await;
    assert_eq!(found("production").await, ["q-1"]);
    assert_eq!(found("duct").await, ["q-1"], "a part of a word");
    assert_eq!(found("to production deploy").await, ["q-1"], "in any order");
    assert_eq!(found("production refund").await, [""; 0], "all of them");
    assert_eq!(found("ÄRGER").await, ["q-2"]);
    assert_eq!(found("gebühren\":").await, ["q-2"]);
    assert_eq!(found("50%_").await, ["q-2"]);
    assert_eq!(found("%%%").await, [""; 0]);
    assert_eq!(found("är").await, ["q-2"], "a word of two letters");
    assert_eq!(found("billing refund").await, ["q-3"]);
    assert_eq!(found("account_n").await, ["q-3"], "a field");
    assert_eq!(found("sam id.example").await, ["q-3"], "the caller");
    assert_eq!(found("ship").await, ["q-4"], "another call");
    assert_eq!(found("ada").await, ["approve"], "the person who calls");
    assert_eq!(found("q-").await.len(), 4, "the beginning of an id");
    assert_eq!(found("q-3 refund").await, ["q-3"]);
    assert_eq!(found("-3").await, [""; 0], "not its end");
    // All runs of the word occur, but not the word.
    assert_eq!(found("productduction").await, [""; 0]);
    for (person, found) in [("Ada", ["approve"].as_slice()), ("ad", &[]), ("da", &[])] {
        let word = SearchWord::all_in("lovelace").remove(0).or_people([person]);
        let named = Matching {
            words: vec![word],
            ..Matching::default()
        };
        assert_eq!(
            listed(store, open().matching(named)).await,
            found,
            "{person}"
        );
    }
    let word = SearchWord::all_in("laptop").remove(0).or_keys(["7"]);
    let named = Matching {
        words: vec![word],
        ..Matching::default()
    };
    assert_eq!(listed(store, open().matching(named.clone())).await, [""; 0]);
    insert(
        store,
        [with("of-key", 6, |body| {
            body.principal = "key-7".to_owned();
        })],
    )
    .await;
    assert_eq!(listed(store, open().matching(named)).await, ["of-key"]);

    let mut keys = ListKeys::default();
    keys.add_addressee(&Addressee::Group("ops".to_owned()));
    keys.add_subject("https://id.example", "sam");
    let of_person = async |text: &str| {
        let query = open().under(Some(keys.clone())).matching(words(text));
        listed(store, query).await
    };
    assert_eq!(of_person("deploy").await, ["approve"]);
    assert_eq!(of_person("billing").await, ["q-3"]);
    assert_eq!(of_person("?").await, ["q-3", "approve"], "by the keys");
    assert_eq!(of_person("production").await, [""; 0]);

    // The people who ended a question are found as soon as it ended.
    let row = store.find("q-1".to_owned()).await.unwrap().unwrap();
    let seen = row.lifecycle.version();
    assert!(store.change(vec![change(acted(&row), seen)]).await.unwrap());
    assert_eq!(found("production").await, [""; 0]);
    let ended = ListQuery::new(Filter::Ended, Page::first(9));
    for text in ["production", "inbox production"] {
        let ended = ended.clone().matching(words(text));
        assert_eq!(listed(store, ended).await, ["q-1"]);
    }
}

/// Pages of a person's questions, which are under several keys, each once and in order.
pub(super) async fn pages_of_a_person(store: &dyn RecordStore) {
    let mut keys = ListKeys::default();
    keys.add_addressee(&Addressee::Group("ops".to_owned()));
    keys.add_caller("ada");
    keys.add_subject("https://id", "s-ada");
    keys.add_key("7");
    for number in 0..9 {
        let id = format!("q{number}");
        let at = 1 + number / 2;
        let row = match number % 3 {
            0 => team_row(&id, at, "ops", "ada"),
            1 => with(&id, at, |body| body.principal = "key-7".to_owned()),
            _ => team_row(&id, at, "leads", "ada"),
        };
        insert(store, [row, row_of_others(number)]).await;
    }
    let all: Vec<String> = (0..9).map(|number| format!("q{number}")).collect();
    for (filter, most) in [
        (Filter::Open, 2),
        (Filter::Open, 4),
        (Filter::OpenLatest, 2),
    ] {
        let mut pages = Vec::new();
        let mut page = Page::first(most);
        loop {
            let query = ListQuery::new(filter, page).under(Some(keys.clone()));
            let ids = listed(store, query).await;
            let Some(last) = ids.last() else { break };
            assert!(ids.len() <= most);
            page = Page::after(last.clone(), most);
            pages.extend(ids);
        }
        if filter == Filter::OpenLatest {
            pages.reverse();
        }
        assert_eq!(pages, all);
    }
}

fn row_of_others(number: u64) -> Row {
    team_row(&format!("x{number}"), 1, "others", "bob")
}

/// More questions than a search brings into order have the word: they are read in the order of the list.
pub(super) async fn a_common_word(store: &dyn RecordStore) {
    const COUNT: u64 = 5_200;
    let write = |number: u64| super::super::Write::Insert {
        row: Box::new(row(&format!("q{number:05}"), number)),
        audit: Vec::new(),
    };
    let all: Vec<_> = (0..COUNT).map(write).collect();
    store.write(Arc::new(all)).await.unwrap();
    let page = Page::after("q00010".to_owned(), 2);
    let query = ListQuery::new(Filter::Open, page).matching(words("deploy who"));
    assert_eq!(listed(store, query).await, ["q00011", "q00012"]);
    let query = ListQuery::new(Filter::OpenLatest, Page::first(1)).matching(words("deploy"));
    assert_eq!(listed(store, query).await, ["q05199"]);
    let query = open().matching(words("deploy q00007"));
    assert_eq!(listed(store, query).await, ["q00007"]);
}

#[tokio::test]
async fn every_store_filters_searches_and_pages() {
    filters(&Memory::default()).await;
    searches(&Memory::default()).await;
    pages_of_a_person(&Memory::default()).await;
    a_common_word(&Memory::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let at = async |name: &str| Sqlite::open(&folder.path().join(name)).await.unwrap();
    filters(&at("filters").await).await;
    searches(&at("searches").await).await;
    pages_of_a_person(&at("pages").await).await;
    a_common_word(&at("common").await).await;
}
