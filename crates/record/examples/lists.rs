//! Measures lists and searches of a record with many open questions, and its size.
//!
//! ```text
//! cargo run --release -p mcp-elicit-record --example lists            # 100,000 open questions
//! cargo run --release -p mcp-elicit-record --example lists -- 10000
//! cargo run --release -p mcp-elicit-record --features postgres --example lists -- 100000 postgres://…   # an empty database
//! ```
//!
//! It prints a table with the aims of `docs/benchmarks.md`. The questions are those of 20 servers and 500 callers, with a
//! message of 20 words, a form of two fields and sealed arguments.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_elicit_core::lifecycle::{Lifecycle, Timestamp};
use mcp_elicit_core::wire::{CallKind, Mode};
use mcp_elicit_record::store::{
    Body, Filter, ListKeys, ListQuery, Matching, Page, RecordStore, Row, SearchWord, Sqlite, Write,
};
#[cfg(feature = "postgres")]
use mcp_elicit_record::store::{Postgres, PostgresDatabase, PostgresSettings};

/// The number of times that each list is read.
const READINGS: usize = 15;
/// The questions that are written in one step.
const BATCH: u32 = 256;
/// The rows of a page.
const PAGE: usize = 100;

/// A generator of numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn word(&mut self) -> String {
        // 5,000 words of three to nine letters.
        let mut letters = Self(1 + self.below(5_000) * 0x9e37_79b9_7f4a_7c15);
        letters.below(1);
        let length = 3 + letters.below(7);
        let letter = |_| char::from(b'a' + u8::try_from(letters.below(26)).unwrap_or(0));
        (0..length).map(letter).collect()
    }
}

fn question(numbers: &mut Numbers, number: u64, count: u32) -> Row {
    let mut message = "Deploy to production?".to_owned();
    for _ in 0..20 {
        let _infallible = write!(message, " {}", numbers.word());
    }
    if number == u64::from(count / 2) {
        message.push_str(" zanzibar");
    }
    let asked = Timestamp::from_millis(1_700_000_000_000 + number * 7);
    let caller = number % 500;
    let params = format!(
        r#"{{"mode":"form","message":"{message}","requestedSchema":{{"type":"object","properties":{{"environment":{{"type":"string","enum":["staging","production"]}},"reason":{{"type":"string","minLength":10,"maxLength":500,"description":"Why now?"}}}},"required":["environment","reason"]}}}}"#
    );
    Row {
        id: format!("{:016x}{:016x}", numbers.below(u64::MAX), number),
        binding: format!("{:064x}", number + 1),
        owner: "0123456789abcdef0123456789abcdef".to_owned(),
        exclusive: false,
        lifecycle: Lifecycle::ask(asked, Some(asked.after(Duration::from_secs(3_600)))),
        body: Arc::new(Body {
            server: format!("server-{}", number % 20),
            address: None,
            mode: Mode::Form,
            message: Body::beginning_of(&message),
            elicitation_id: None,
            principal: format!(r#"["https://id.example","user-{caller}"]"#),
            server_info: Some(r#"{"name":"deployer","version":"1.2.3"}"#.to_owned()),
            client_info: Some(r#"{"name":"an agent","version":"4.5"}"#.to_owned()),
            kind: Some(CallKind::Tool),
            target: Some(format!("deploy_{}", number % 50)),
            others: Vec::new(),
            fields: vec!["environment".to_owned(), "reason".to_owned()],
            cautions: Vec::new(),
            at_client: false,
            unchecked: None,
            arguments_left_out: None,
            trace: None,
        }),
        arguments: Some(vec![7; 160]),
        content: None,
        params: Some(params),
        team: None,
    }
}

/// Returns the median and the longest time of a list, and its number of rows.
async fn timed(
    store: &impl RecordStore,
    query: &ListQuery,
) -> Result<(Duration, Duration, usize), Box<dyn Error>> {
    let (mut times, mut rows) = (Vec::new(), 0);
    for _ in 0..READINGS {
        let begin = Instant::now();
        rows = store.list(query.clone()).await?.len();
        times.push(begin.elapsed());
    }
    times.sort();
    let longest = times.last().copied().unwrap_or_default();
    Ok((times[times.len() / 2], longest, rows))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let count = arguments
        .next()
        .map_or(Ok(100_000), |count| count.parse::<u32>())?;
    match arguments.next() {
        None => {
            let folder = tempfile::tempdir()?;
            let store = Sqlite::open(&folder.path().join("record.sqlite")).await?;
            let ids = fill(&store, count).await?;
            measure(&store, &ids).await
        }
        #[cfg(feature = "postgres")]
        Some(address) => {
            let database = PostgresDatabase::new(PostgresSettings::read(&address)?)?;
            let store = Postgres::at(database);
            store.ready().await?;
            let ids = fill(&store, count).await?;
            wait_for_index(&address).await?;
            measure(&store, &ids).await
        }
        #[cfg(not(feature = "postgres"))]
        Some(_) => Err("a record on PostgreSQL needs `--features postgres`".into()),
    }
}

/// Waits until every text is in the index of the search, which is made beside other work, and has the server look at its
/// tables, as it does by itself within a minute.
#[cfg(feature = "postgres")]
async fn wait_for_index(address: &str) -> Result<(), Box<dyn Error>> {
    const LEFT: &str = "SELECT EXISTS (SELECT 1 FROM mcp_elicit.question_text WHERE runs IS NULL)";
    let begin = Instant::now();
    let (client, connection) = tokio_postgres::connect(address, tokio_postgres::NoTls).await?;
    let connection = tokio::spawn(connection);
    while client.query_one(LEFT, &[]).await?.get(0) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let seconds = begin.elapsed().as_secs_f64();
    writeln!(
        std::io::stdout(),
        "every text is in the index {seconds:.0} s later"
    )?;
    client
        .batch_execute("ANALYZE mcp_elicit.question, mcp_elicit.question_text")
        .await?;
    drop(client);
    Ok(connection.await??)
}

/// Fills the record, prints the time, and returns the ids.
async fn fill(store: &impl RecordStore, count: u32) -> Result<Vec<String>, Box<dyn Error>> {
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    let mut ids = Vec::new();
    let begin = Instant::now();
    for batch in 0..count.div_ceil(BATCH) {
        let numbers_of_batch = batch * BATCH..count.min((batch + 1) * BATCH);
        let rows = numbers_of_batch.map(|number| question(&mut numbers, u64::from(number), count));
        let write = |row: Row| {
            ids.push(row.id.clone());
            let audit = vec![format!(
                r#"{{"at":1700000000000,"event":"asked","id":"{}","server":"server","principal":"local","mode":"form"}}"#,
                row.id
            )];
            Write::Insert {
                row: Box::new(row),
                audit,
            }
        };
        let writes = rows.map(write).collect();
        store.write(Arc::new(writes)).await?;
    }
    let each = begin.elapsed().as_secs_f64() * 1e6 / f64::from(count);
    writeln!(
        std::io::stdout(),
        "{count} open questions, written in {each:.0} µs each"
    )?;
    Ok(ids)
}

/// Reads the lists of a record, and prints the times.
async fn measure(store: &impl RecordStore, ids: &[String]) -> Result<(), Box<dyn Error>> {
    let count = u64::try_from(ids.len())?;
    let bytes = store.size().await?.unwrap_or_default().on_disk / count;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{bytes} bytes each with their links of the audit and the index of their texts\n"
    )?;
    writeln!(
        out,
        "| list | rows | median ms | longest ms | aim |\n| --- | --- | --- | --- | --- |"
    )?;
    let middle = ids[ids.len() / 2].clone();
    let page = |filter| ListQuery::new(filter, Page::first(PAGE));
    let search = |text: &str| Matching {
        words: SearchWord::all_in(text),
        ..Matching::default()
    };
    let server = Matching {
        server: Some("server-7".to_owned()),
        ..Matching::default()
    };
    let mut keys = ListKeys::default();
    keys.add_subject("https://id.example", "user-7");
    keys.add_caller("user-7");
    let after = ListQuery::new(Filter::Open, Page::after(middle.clone(), PAGE));
    let lists = [
        ("page, the oldest", page(Filter::Open), 10),
        ("page, the latest", page(Filter::OpenLatest), 10),
        ("page after the middle one", after, 10),
        (
            "page of one server",
            page(Filter::Open).matching(server.clone()),
            10,
        ),
        (
            "page of one person",
            page(Filter::Open).under(Some(keys.clone())),
            10,
        ),
        (
            "search, one match",
            page(Filter::Open).matching(search("zanzibar")),
            50,
        ),
        (
            "search, no match",
            page(Filter::Open).matching(search("xylophone quartz")),
            50,
        ),
        (
            "search, every row",
            page(Filter::Open).matching(search("production")),
            50,
        ),
        (
            "search, one tool of 50",
            page(Filter::OpenLatest).matching(search("deploy_33")),
            50,
        ),
        (
            "search, a person",
            page(Filter::Open).matching(search("user-77")),
            50,
        ),
        (
            "search, two letters",
            page(Filter::Open).matching(search("qj")),
            50,
        ),
        (
            "search, an id",
            page(Filter::Open).matching(search(&middle[..12])),
            50,
        ),
        (
            "search in one server",
            page(Filter::Open).matching(Matching {
                words: SearchWord::all_in("zanzibar"),
                ..server
            }),
            50,
        ),
        (
            "search of one person",
            page(Filter::Open)
                .under(Some(keys))
                .matching(search("production")),
            50,
        ),
    ];
    for (name, query, aim) in lists {
        let (median, longest, rows) = timed(store, &query).await?;
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        writeln!(
            out,
            "| {name} | {rows} | {:.2} | {:.2} | {aim} |",
            millis(median),
            millis(longest)
        )?;
    }
    let begin = Instant::now();
    let waiting = store.waiting().await?;
    writeln!(
        out,
        "\ncounting {waiting}: {:.2} ms",
        begin.elapsed().as_secs_f64() * 1e3
    )?;
    Ok(())
}
