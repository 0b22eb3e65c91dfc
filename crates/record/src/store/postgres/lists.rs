//! Lists, and the index of the texts in which a search looks.
//!
//! A question has its text as soon as it is there. The runs of three characters in it are an array, which the server
//! indexes. They are added some time later, in groups, so that neither a question nor an answer waits for the index.
//! Texts without runs are read one after the other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::FutureExt as _;
use tokio_postgres::{Client, Row as Columns};

use super::super::{Filter, ListQuery, RecordStoreError, Row, SearchWord};
use super::database::{PostgresDatabase, StatementValues, execute, query};
use super::statements::{self, Statement};
use super::{counted, readable};

/// The number of rows that are read at once where they are compared here.
const ROWS_AT_ONCE: usize = 1_000;
/// The most rows that a search brings into order. A word that occurs in more is looked for in the order of the list,
/// until the page is full.
const MOST_SORTED: usize = 2_000;
/// The rows of a list whose texts a statement reads: at first, how many times more after each, and at most.
const LOOKED_AT_FIRST: i64 = 1_000;
const LOOKED_AT_MORE: i64 = 8;
const LOOKED_AT_MOST: i64 = 64_000;
/// The length of the runs of characters in the index.
const RUN: usize = 3;
/// The most runs of a word that are looked up.
const MOST_RUNS: usize = 8;
/// The texts that get their runs in one transaction: an answer to one of their questions waits for it.
const TEXTS_AT_ONCE: i64 = 100;
/// The number of writes after which new texts get their runs.
const WRITES_BEFORE_RUNS: usize = 200;

/// Returns one page of rows.
pub(super) async fn list(
    database: &PostgresDatabase,
    query: ListQuery,
) -> Result<Vec<Row>, RecordStoreError> {
    let (matching, page) = (&query.matching, &query.page);
    let texts = [&matching.server, &matching.principal, &page.after];
    // No row has them, and the server takes them as no text.
    if !texts.into_iter().flatten().all(|text| can_be_stored(text)) {
        return Ok(Vec::new());
    }
    let most = query.page.most;
    let mut list = ListReader {
        database,
        query: &query,
        after: query.page.after.clone(),
        found: Vec::new(),
    };
    match Search::of(&query.matching.words) {
        None => list.read(None).await?,
        Some(search) => match search.candidates(database, query.filter).await? {
            Some(ids) => list.read(Some(ids)).await?,
            None => list.read_in_order(&search).await?,
        },
    }
    list.found.truncate(most);
    Ok(list.found)
}

/// Returns the statement for a page, of one person or of everyone.
const fn listed(filter: Filter, is_of_person: bool) -> &'static Statement {
    match (filter, is_of_person) {
        (Filter::Open, false) => &statements::LIST_OPEN,
        (Filter::Open, true) => &statements::LIST_OPEN_OF,
        (Filter::OpenLatest, false) => &statements::LIST_LATEST,
        (Filter::OpenLatest, true) => &statements::LIST_LATEST_OF,
        (Filter::Ended, false) => &statements::LIST_ENDED,
        (Filter::Ended, true) => &statements::LIST_ENDED_OF,
    }
}

/// Returns the statement that looks for words in the order of the list.
const fn matches(filter: Filter, is_of_person: bool) -> &'static Statement {
    match (filter, is_of_person) {
        (Filter::Open, false) => &statements::MATCHES_OPEN,
        (Filter::Open, true) => &statements::MATCHES_OPEN_OF,
        (Filter::OpenLatest, false) => &statements::MATCHES_LATEST,
        (Filter::OpenLatest, true) => &statements::MATCHES_LATEST_OF,
        (Filter::Ended, false) => &statements::MATCHES_ENDED,
        (Filter::Ended, true) => &statements::MATCHES_ENDED_OF,
    }
}

/// A page that is being read.
struct ListReader<'q> {
    database: &'q PostgresDatabase,
    query: &'q ListQuery,
    /// The row after which the next ones are read.
    after: Option<String>,
    found: Vec<Row>,
}

/// The conditions of a page as values of statements.
struct PageConditions<'q> {
    server: Option<&'q str>,
    principal: Option<&'q str>,
    /// Those of one person: the keys, and the callers.
    keys: Option<&'q [String]>,
    principals: Option<&'q [String]>,
}

impl ListReader<'_> {
    /// Reads the rows of the page, among those of these ids if there are any.
    async fn read(&mut self, ids: Option<Vec<String>>) -> Result<(), RecordStoreError> {
        let statement = listed(self.query.filter, self.query.keys.is_some());
        let most = self.query.page.most;
        // Columns that the table does not have are compared here.
        let is_narrowed = self.query.matching.is_of_server_principal_and_words();
        let mut at_once = if is_narrowed {
            most
        } else {
            ROWS_AT_ONCE.max(most)
        };
        while self.found.len() < most {
            let limit = counted(at_once);
            let on = self.conditions();
            let values: StatementValues<'_> = &[
                &limit,
                &self.after,
                &on.server,
                &on.principal,
                &on.keys,
                &on.principals,
                &ids,
            ];
            let rows = self.database.rows(statement, values).await?;
            self.add(&rows);
            if rows.len() < at_once {
                break;
            }
            self.after = rows.last().map(|row| row.try_get("id")).transpose()?;
            at_once = at_once.saturating_mul(4).min(ROWS_AT_ONCE.max(most));
        }
        Ok(())
    }

    /// Reads the rows of the page with all words of a search, in the order of the list.
    async fn read_in_order(&mut self, search: &Search<'_>) -> Result<(), RecordStoreError> {
        let filter = self.query.filter;
        let matches = matches(filter, self.query.keys.is_some());
        let listed = listed(filter, false);
        let most = counted(self.query.page.most);
        let mut looked_at = LOOKED_AT_FIRST;
        while self.found.len() < self.query.page.most {
            let on = self.conditions();
            let values: StatementValues<'_> = &[
                &looked_at,
                &self.after,
                &on.server,
                &on.principal,
                &on.keys,
                &on.principals,
                &most,
                &search.words,
                &search.others,
                &search.ids,
                &search.principals,
            ];
            let rows = self.database.rows(matches, values).await?;
            let (mut ids, mut last) = (Vec::new(), None);
            for row in &rows {
                let id: String = row.try_get(0)?;
                if row.try_get(1)? {
                    ids.push(id);
                } else {
                    last = Some(id);
                }
            }
            if counted(ids.len()) == most {
                // There may be more of them before the last row.
                last = ids.last().cloned();
            }
            if !ids.is_empty() {
                let none: Option<&str> = None;
                let no_keys: Option<&[String]> = None;
                let values: StatementValues<'_> =
                    &[&most, &none, &none, &none, &no_keys, &no_keys, &ids];
                let rows = self.database.rows(listed, values).await?;
                self.add(&rows);
            }
            if last.is_none() {
                break;
            }
            self.after = last;
            looked_at = looked_at.saturating_mul(LOOKED_AT_MORE).min(LOOKED_AT_MOST);
        }
        Ok(())
    }

    /// Returns the conditions that are columns.
    fn conditions(&self) -> PageConditions<'_> {
        let (matching, keys) = (&self.query.matching, self.query.keys.as_ref());
        PageConditions {
            server: matching.server.as_deref(),
            principal: matching.principal.as_deref(),
            keys: keys.map(|keys| keys.keys.as_slice()),
            principals: keys.map(|keys| keys.principals.as_slice()),
        }
    }

    /// Adds the rows that the query admits: statements may return more.
    fn add(&mut self, rows: &[Columns]) {
        let rows = rows.iter().filter_map(readable);
        let admitted = rows.filter(|row| self.query.matching.admits(row));
        self.found.extend(admitted);
    }
}

/// The words of a search as values of statements. These find every row that matches, and some that do not.
struct Search<'w> {
    wanted: &'w [SearchWord],
    /// Patterns of the words, all of which are in the text.
    words: Vec<String>,
    /// Patterns of other texts that a word stands for.
    others: Vec<String>,
    /// Patterns of ids that begin with a word.
    ids: Vec<String>,
    /// The callers that a word names.
    principals: Vec<String>,
}

impl<'w> Search<'w> {
    /// Returns the search for these words; `None` if there are none.
    fn of(words: &'w [SearchWord]) -> Option<Self> {
        if words.is_empty() {
            return None;
        }
        let within = |text: &str| format!("%{}%", literally(text));
        let others = words.iter().flat_map(SearchWord::others);
        let ids = words.iter().map(SearchWord::id);
        let principals = words.iter().flat_map(SearchWord::principals);
        Some(Self {
            wanted: words,
            words: words.iter().map(|word| within(word.text())).collect(),
            others: others
                .filter(|other| can_be_stored(other))
                .map(|other| within(other))
                .collect(),
            ids: ids
                .filter(|id| can_be_stored(id))
                .map(|id| format!("{}%", literally(id)))
                .collect(),
            principals: principals
                .filter(|one| can_be_stored(one))
                .cloned()
                .collect(),
        })
    }

    /// Returns the ids of all rows that may match; `None` if there are too many of them, or no word is in the index.
    async fn candidates(
        &self,
        database: &PostgresDatabase,
        filter: Filter,
    ) -> Result<Option<Vec<String>>, RecordStoreError> {
        let is_waiting = filter != Filter::Ended;
        // Ended questions have no index by caller.
        let is_indexed = |word: &&SearchWord| {
            word.others().is_empty()
                && !runs(word.text()).is_empty()
                && (is_waiting || word.principals().is_empty())
        };
        let words: Vec<&SearchWord> = self.wanted.iter().filter(is_indexed).collect();
        if words.is_empty() {
            return Ok(None);
        }
        let mut wanted = BTreeSet::new();
        for word in &words {
            let runs = runs(word.text());
            let last = runs.len() - 1;
            // Those of a long word are spread over it.
            let looked_up = MOST_RUNS.min(runs.len());
            wanted.extend(
                (0..looked_up).filter_map(|at| runs.get(at * last / (looked_up - 1).max(1))),
            );
        }
        let wanted: Vec<i16> = wanted.into_iter().collect();
        let texts: Vec<String> = words
            .iter()
            .map(|word| format!("%{}%", literally(word.text())))
            .collect();
        let ids = words.iter().map(|word| word.id());
        let firsts: Vec<&str> = ids.filter(|id| can_be_stored(id)).collect();
        let pasts: Vec<String> = firsts.iter().map(|id| format!("{id}\u{10ffff}")).collect();
        let callers: Vec<&String> = words
            .iter()
            .flat_map(|word| word.principals())
            .filter(|one| can_be_stored(one))
            .collect();
        let most = counted(MOST_SORTED + 1);
        let values: StatementValues<'_> = &[
            &most,
            &is_waiting,
            &wanted,
            &texts,
            &firsts,
            &pasts,
            &callers,
        ];
        let rows = database.rows(&statements::CANDIDATES, values).await?;
        if rows.len() > MOST_SORTED {
            return Ok(None);
        }
        let ids = rows.iter().map(|row| Ok(row.try_get(0)?));
        ids.collect::<Result<_, RecordStoreError>>().map(Some)
    }
}

/// Returns `true` if a text of the database can be the same: none has this character.
pub(super) fn can_be_stored(text: &str) -> bool {
    !text.contains('\0')
}

/// Returns the pattern of a text in which no character stands for others.
fn literally(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// Returns the hashes of all runs of three characters without white space, in their order. They are stored: the hash
/// never changes.
fn runs(text: &str) -> Vec<i16> {
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        found.extend(letters.windows(RUN).map(hash));
    }
    found
}

/// Returns the hash of a run: FNV-1a of its characters in UTF-8, 32 bits, whose halves are combined.
fn hash(run: &[char]) -> i16 {
    let mut hash: u32 = 0x811c_9dc5;
    let mut bytes = [0; 4];
    for letter in run {
        for byte in letter.encode_utf8(&mut bytes).bytes() {
            hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    }
    let [a, b, c, d] = hash.to_be_bytes();
    i16::from_be_bytes([a ^ c, b ^ d])
}

/// Texts without runs, and the task that adds these.
#[derive(Debug, Default)]
pub(super) struct NewTexts {
    writes: AtomicUsize,
    is_running: AtomicBool,
}

impl NewTexts {
    /// Counts writes. After some of them, starts to add the runs of new texts.
    pub(super) fn wrote(self: &Arc<Self>, database: &PostgresDatabase, count: usize) {
        let before = self.writes.fetch_add(count, Ordering::Relaxed);
        if before.saturating_add(count) >= WRITES_BEFORE_RUNS {
            self.start(database);
        }
    }

    /// Starts to add the runs of new texts, unless this process does already.
    pub(super) fn start(self: &Arc<Self>, database: &PostgresDatabase) {
        if self.is_running.swap(true, Ordering::Relaxed) {
            return;
        }
        self.writes.store(0, Ordering::Relaxed);
        let (texts, there) = (Arc::clone(self), database.clone());
        database.start(async move {
            loop {
                match add_runs(&there).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(fault) => {
                        // A search reads these texts, and the next one tries again.
                        tracing::debug!(%fault, "new questions were not prepared for the search");
                        break;
                    }
                }
            }
            texts.is_running.store(false, Ordering::Relaxed);
        });
    }
}

/// Adds the runs of some texts, which no other process is adding; returns `false` if there were no more.
pub(super) async fn add_runs(database: &PostgresDatabase) -> Result<bool, RecordStoreError> {
    database
        .transaction(|client| add_runs_within(client).boxed())
        .await
}

async fn add_runs_within(client: &Client) -> Result<bool, RecordStoreError> {
    let new = query(client, &statements::TEXTS_WITHOUT_RUNS, &[&TEXTS_AT_ONCE]).await?;
    let (mut questions, mut arrays) = (Vec::new(), Vec::new());
    for row in &new {
        let (question, text): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
        questions.push(question);
        arrays.push(array(text));
    }
    if !questions.is_empty() {
        execute(client, &statements::ADD_RUNS, &[&questions, &arrays]).await?;
    }
    Ok(counted(new.len()) == TEXTS_AT_ONCE)
}

/// Returns the runs of a text, each once, as an array of the database.
fn array(text: &str) -> String {
    let runs: BTreeSet<i16> = runs(text).into_iter().collect();
    let runs: Vec<String> = runs.iter().map(i16::to_string).collect();
    format!("{{{}}}", runs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_run_is_the_stored_one() {
        assert_eq!(array("deploy"), "{10334,15448,18383,27847}");
        assert_eq!(array("ab\ncd e"), "{}", "shorter than a run");
        assert_eq!(array("deploy a deploy"), array("deploy"));
        assert_ne!(array("äöü"), array("aou"));
    }

    #[test]
    fn no_character_of_a_word_stands_for_others() {
        assert_eq!(literally(r"50%_\x"), r"50\%\_\\x");
    }

    /// Every run of a part of a text is one of the text.
    #[test]
    fn a_part_has_runs_of_the_whole_text() {
        let text = "server-7\ndeploy to 'production'? ärger\u{3000}漢字かな\u{1f600}ok\n";
        let whole: BTreeSet<i16> = runs(text).into_iter().collect();
        let letters: Vec<char> = text.chars().collect();
        for from in 0..letters.len() {
            for to in from..=letters.len() {
                let part: String = letters[from..to].iter().collect();
                assert!(runs(&part).iter().all(|run| whole.contains(run)), "{part}");
            }
        }
    }
}
