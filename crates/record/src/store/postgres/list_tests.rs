//! Searches with the index of texts, and before texts are in it, beside those of the store in memory.

use std::sync::Arc;

use super::super::contract::{SingleWrites as _, acted, change, row};
use super::super::{Filter, ListQuery, Matching, Memory, Page, RecordStore, SearchWord, Write};
use super::lists::add_runs;
use super::tests::store;
use super::{Postgres, database, statements};

/// The questions of the test.
const COUNT: u64 = 240;
/// The searches of the test.
const SEARCHES: usize = 150;

/// Numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most).unwrap()
    }

    /// Returns a word of few different letters, so that its parts are in others too.
    fn word(&mut self) -> String {
        let letters = ['a', 'b', 'B', 'ä', '漢', '%', '_', '\\', '"', '\0', 'ſ'];
        let length = 1 + self.below(6);
        (0..length)
            .map(|_| letters[self.below(if length > 3 { 3 } else { 11 })])
            .collect()
    }

    fn search(&mut self, ids: &[String]) -> Vec<SearchWord> {
        let mut text = String::new();
        for _ in 0..=self.below(2) {
            text.push_str(&self.word());
            text.push(' ');
        }
        if self.below(6) == 0 {
            let id = &ids[self.below(COUNT)];
            text.push_str(&id[..=self.below(4)]);
        }
        let words = SearchWord::all_in(&text).into_iter();
        let words = words.map(|word| match self.below(8) {
            0 => word.or_keys(["7", "x\0"]),
            1 => word.or_people(["ada", "no\0one"]),
            _ => word,
        });
        words.collect()
    }
}

async fn found(store: &dyn RecordStore, query: &ListQuery) -> Vec<String> {
    let rows = store.list(query.clone()).await.unwrap();
    rows.into_iter().map(|row| row.id).collect()
}

/// Adds the missing runs, and returns the number of texts that have some then.
async fn indexed(store: &Postgres) -> i64 {
    let client = store.database().client().await.unwrap();
    let count =
        "SELECT count(*), count(*) FILTER (WHERE runs IS NULL) FROM mcp_elicit.question_text";
    loop {
        // The store may be adding some.
        add_runs(store.database()).await.unwrap();
        let counted = client.query_one(count, &[]).await.unwrap();
        if counted.get::<_, i64>(1) == 0 {
            return counted.get(0);
        }
    }
}

#[tokio::test]
async fn a_search_finds_the_same_as_in_memory_with_the_index_and_without() {
    let Some(store) = store() else { return };
    let memory = Memory::default();
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    let mut ids = Vec::new();
    for number in 0..COUNT {
        let mut row = row(&format!("{:x}{number}", numbers.below(1 << 20)), 1 + number);
        let body = Arc::make_mut(&mut row.body);
        body.message = format!("{} {}", numbers.word(), numbers.word());
        body.target = Some(numbers.word());
        if number % 9 == 0 {
            body.principal = "key-7".to_owned();
        }
        ids.push(row.id.clone());
        for one in [&store as &dyn RecordStore, &memory] {
            one.insert(row.clone(), "asked".to_owned()).await.unwrap();
        }
        if number % 3 == 0 {
            let ended = acted(&row);
            for one in [&store as &dyn RecordStore, &memory] {
                let changes = vec![change(ended.clone(), row.lifecycle.version())];
                assert!(one.change(changes).await.unwrap());
            }
        }
    }
    let mut matches = 0;
    for number in 0..SEARCHES {
        // Some have all texts in the index, some a part, and some none.
        if number < SEARCHES / 3 {
            assert_eq!(indexed(&store).await, i64::try_from(COUNT).unwrap());
        } else {
            let every = if number % 2 == 0 {
                "true"
            } else {
                "question < '5'"
            };
            let forget = format!("UPDATE mcp_elicit.question_text SET runs = NULL WHERE {every}");
            let client = store.database().client().await.unwrap();
            client.batch_execute(&forget).await.unwrap();
        }
        let words = numbers.search(&ids);
        let filter = [Filter::Open, Filter::OpenLatest, Filter::Ended][number % 3];
        let page = match numbers.below(3) {
            0 => Page::first(7),
            1 => Page::after(ids[numbers.below(COUNT)].clone(), 30),
            _ => Page::first(1_000),
        };
        // A page after a row that is not on the list may begin elsewhere in another store.
        let page = match &page.after {
            Some(after) => {
                let of_list = ListQuery::new(filter, Page::first(1_000));
                let is_there = found(&memory, &of_list).await.contains(after);
                if is_there { page } else { Page::first(3) }
            }
            None => page,
        };
        let query = ListQuery::new(filter, page).matching(Matching {
            words,
            ..Matching::default()
        });
        let wanted = found(&memory, &query).await;
        assert_eq!(found(&store, &query).await, wanted, "{query:?}");
        matches += wanted.len();
    }
    assert!(matches > SEARCHES, "{matches}");
}

#[tokio::test]
async fn what_no_text_can_be_is_not_found_and_no_fault() {
    let Some(store) = store() else { return };
    let write = Write::Insert {
        row: Box::new(row("q", 1)),
        audit: Vec::new(),
    };
    store.write(Arc::new(vec![write])).await.unwrap();
    assert_eq!(store.find("q\0".to_owned()).await.unwrap(), None);
    let all = ListQuery::new(Filter::Open, Page::first(9));
    assert_eq!(found(&store, &all).await.len(), 1);
    let mut of_server = all.clone();
    of_server.matching.server = Some("\0".to_owned());
    let mut after = all;
    after.page.after = Some("\0".to_owned());
    for query in [of_server, after] {
        assert!(found(&store, &query).await.is_empty());
    }
}

#[tokio::test]
async fn new_texts_get_their_runs_by_themselves_and_go_with_their_questions() {
    let Some(store) = store() else { return };
    let write = |number: u64| Write::Insert {
        row: Box::new(row(&format!("q{number}"), 1 + number)),
        audit: Vec::new(),
    };
    // Enough writes for the index.
    let writes: Vec<_> = (0..250).map(write).collect();
    store.write(Arc::new(writes)).await.unwrap();
    let client = store.database().client().await.unwrap();
    let count = async |condition: &str| -> i64 {
        let text = format!("SELECT count(*) FROM mcp_elicit.question_text WHERE {condition}");
        client.query_one(&text, &[]).await.unwrap().get(0)
    };
    while count("runs IS NULL").await > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(count("runs IS NOT NULL").await, 250);
    // A text that changes loses its runs, and the next search has them added.
    let ended = acted(&row("q7", 8));
    assert!(store.change(vec![change(ended, 0)]).await.unwrap());
    assert_eq!(count("runs IS NULL AND NOT is_waiting").await, 1);
    let query = ListQuery::new(Filter::Ended, Page::first(9)).matching(Matching {
        words: SearchWord::all_in("inbox"),
        ..Matching::default()
    });
    assert_eq!(found(&store, &query).await, ["q7"]);
    while count("runs IS NULL").await > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(found(&store, &query).await, ["q7"]);
    client
        .batch_execute("DELETE FROM mcp_elicit.question WHERE id = 'q7'")
        .await
        .unwrap();
    assert_eq!(count("true").await, 249);
}

#[tokio::test]
async fn a_rare_word_is_looked_up_in_the_index() {
    let Some(store) = store() else { return };
    let write = |number: u64| Write::Insert {
        row: Box::new(row(&format!("q{number}"), 1 + number)),
        audit: Vec::new(),
    };
    let writes: Vec<_> = (0..3_000).map(write).collect();
    store.write(Arc::new(writes)).await.unwrap();
    assert_eq!(indexed(&store).await, 3_000);
    let client = store.database().client().await.unwrap();
    let statement = statements::CANDIDATES.text;
    let values = [
        ("$1", "1001"),
        ("$2", "true"),
        ("$3", "'{1,2,3}'::smallint[]"),
        ("$4", "'{%zanzibar%}'::text[]"),
        ("$5", "'{zanzibar}'::text[]"),
        ("$6", "'{zanzibas}'::text[]"),
        ("$7", "'{}'::text[]"),
    ];
    let explained = values
        .iter()
        .fold(format!("EXPLAIN {statement}"), |text, (at, value)| {
            text.replace(at, value)
        });
    let analyze = "VACUUM ANALYZE mcp_elicit.question_text, mcp_elicit.question";
    client.batch_execute(analyze).await.unwrap();
    let plan = client.query(&explained, &[]).await;
    let plan = plan.unwrap_or_else(|error| panic!("{}", database::described(&error)));
    let plan: Vec<String> = plan.iter().map(|line| line.get(0)).collect();
    let plan = plan.join("\n");
    assert!(plan.contains("question_text_runs"), "{plan}");
}
