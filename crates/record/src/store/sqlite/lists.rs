//! Lists, filtered, ordered and paged by SQLite, and the text of their search.
//!
//! A search looks in `question_text`, whose index holds each run of three characters. A question gets its text some
//! time after it was asked, and before each search, so that asking does not wait for the index.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;

use mcp_elicit_core::wire::{CallKind, Mode};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};

use super::super::list::search_text;
use super::super::{
    Crash, Filter, ListKeys, ListQuery, RecordStoreError, Row, SearchWord, tell_left_out,
};
use super::file::SqliteFile;
use super::questions::counted;
use super::read;

/// The columns that a list reads.
const LISTED: &str =
    "id, same, owner, claimed, exchange, body, arguments, content, NULL AS params, team";

/// The most rows that a search reads to bring them into order. A word that occurs in more is looked for in the order of
/// the list, until the page is full.
const MOST_SORTED: usize = 1_000;
/// The length of the runs of characters in the index.
const RUN: usize = 3;
/// The most runs of a word that are looked up.
const MOST_RUNS: usize = 8;
/// The rows that get their texts in one step.
const TEXTS_IN_STEP: usize = 1_000;

/// A statement that is being built, and its values.
#[derive(Clone, Default)]
struct ListStatement {
    text: String,
    values: Vec<Value>,
}

impl ListStatement {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            values: Vec::new(),
        }
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a value, and its number in the text.
    fn bind(&mut self, value: impl Into<Value>) {
        self.values.push(value.into());
        let _infallible = write!(self.text, "?{}", self.values.len());
    }

    fn query<T>(
        &self,
        connection: &Connection,
        read: impl Fn(&rusqlite::Row<'_>) -> Result<T, RecordStoreError>,
    ) -> Result<Vec<T>, RecordStoreError> {
        let mut statement = connection.prepare_cached(&self.text)?;
        let mut rows = statement.query(rusqlite::params_from_iter(&self.values))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    }
}

/// The order of a list. `open` is a literal, since a partial index is used for a constant only.
#[derive(Clone, Copy)]
struct ListOrder {
    open: &'static str,
    time: &'static str,
    after: &'static str,
    direction: &'static str,
}

const fn order(filter: Filter) -> ListOrder {
    let (open, time) = match filter {
        Filter::Open | Filter::OpenLatest => ("1", "asked_at"),
        Filter::Ended => ("0", "ended_at"),
    };
    let (after, direction) = match filter {
        Filter::Open => (">", ""),
        Filter::OpenLatest | Filter::Ended => ("<", " DESC"),
    };
    ListOrder {
        open,
        time,
        after,
        direction,
    }
}

/// A position in a list: the time and the number of a row.
type Position = (i64, i64);

/// A list that is being read.
struct ListCursor<'q> {
    query: &'q ListQuery,
    order: ListOrder,
    /// The position after which the page starts.
    start: Option<Position>,
    /// The largest number of rows, with those that are left out.
    most: usize,
    /// The ids of the rows that this version cannot read.
    left_out: RefCell<Vec<String>>,
}

impl SqliteFile {
    /// Returns one page of rows.
    pub(super) fn list(&mut self, query: &ListQuery) -> Result<Vec<Row>, RecordStoreError> {
        // Rows that an earlier version has written get their columns too.
        if query.keys.is_some() || !query.matching.is_any() {
            self.add_new_texts(None)?;
        }
        let connection = &*self.connection()?;
        let order = order(query.filter);
        let start = match &query.page.after {
            None => None,
            Some(id) => match position_of(connection, order, id)? {
                Some(position) => Some(position),
                None => return Ok(Vec::new()),
            },
        };
        let mut list = ListCursor {
            query,
            order,
            start,
            most: query.page.most,
            left_out: RefCell::default(),
        };
        let numbers = list.candidates(connection)?;
        // The page is filled with the rows after those that are left out: a short one would count as the last.
        loop {
            let mut rows = match (&numbers, &query.keys) {
                (Some(numbers), _) => list.sorted(connection, numbers)?,
                (None, Some(keys)) => list.under(connection, keys)?,
                (None, None) => list.in_order(connection)?,
            };
            let left_out = list.left_out.take();
            let most = query.page.most + left_out.len();
            if most > list.most {
                list.most = most;
                continue;
            }
            for id in &left_out {
                tell_left_out(id);
            }
            rows.truncate(query.page.most);
            return Ok(rows);
        }
    }

    /// Adds the texts of at most `most` questions that have none yet.
    pub(super) fn add_new_texts(&mut self, most: Option<usize>) -> Result<(), RecordStoreError> {
        const IS_NEW: &str = "SELECT coalesce((SELECT max(number) FROM question), 0) > coalesce((SELECT max(number) FROM question_text), 0)";
        let is_new = self
            .connection()?
            .prepare_cached(IS_NEW)?
            .query_row([], |row| row.get::<_, bool>(0))?;
        if !is_new {
            return Ok(());
        }
        self.set_survives(Crash::Process)?;
        let connection = self.connection()?;
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        add_texts(&step, most)?;
        step.commit()?;
        Ok(())
    }
}

fn position_of(
    connection: &Connection,
    order: ListOrder,
    id: &str,
) -> Result<Option<Position>, RecordStoreError> {
    let text = format!(
        "SELECT {time}, number FROM question WHERE id = ?1 AND {time} IS NOT NULL",
        time = order.time
    );
    let mut statement = connection.prepare_cached(&text)?;
    let found = statement.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(found.optional()?)
}

impl ListCursor<'_> {
    /// Returns a row; `None` if this version cannot read it.
    fn readable(&self, row: &rusqlite::Row<'_>) -> Option<Row> {
        let found = read(row).ok();
        if found.is_none() {
            let id = row.get("id").unwrap_or_default();
            self.left_out.borrow_mut().push(id);
        }
        found
    }

    /// Returns the rows of this query that can be read.
    fn rows(
        &self,
        statement: &ListStatement,
        connection: &Connection,
    ) -> Result<Vec<Row>, RecordStoreError> {
        let rows = statement.query(connection, |row| Ok(self.readable(row)))?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// Returns the rows of the page, read in the order of the list.
    fn in_order(&self, connection: &Connection) -> Result<Vec<Row>, RecordStoreError> {
        let mut statement = ListStatement::new(&format!("SELECT {LISTED} FROM question WHERE "));
        self.push_position(&mut statement);
        self.push_conditions(&mut statement)?;
        self.push_end(&mut statement);
        self.rows(&statement, connection)
    }

    /// Returns the rows of the page among those of these numbers.
    fn sorted(
        &self,
        connection: &Connection,
        numbers: &[i64],
    ) -> Result<Vec<Row>, RecordStoreError> {
        // The numbers are looked up, and no index is read.
        let mut statement = ListStatement::new(&format!(
            "SELECT {LISTED} FROM question NOT INDEXED WHERE number IN (SELECT value FROM json_each("
        ));
        statement.bind(serde_json::to_string(numbers)?);
        statement.push(")) AND ");
        self.push_position(&mut statement);
        if let Some(keys) = &self.query.keys {
            statement.push(
                " AND (EXISTS (SELECT 1 FROM addressed WHERE addressed.question = question.id \
                 AND addressed.key IN (SELECT value FROM json_each(",
            );
            statement.bind(serde_json::to_string(&keys.keys)?);
            statement.push("))) OR (team IS NULL AND principal IN (SELECT value FROM json_each(");
            statement.bind(serde_json::to_string(&keys.principals)?);
            statement.push("))))");
        }
        self.push_conditions(&mut statement)?;
        self.push_end(&mut statement);
        self.rows(&statement, connection)
    }

    /// Returns the rows of the page under these keys: the first ones under each are merged.
    fn under(
        &self,
        connection: &Connection,
        keys: &ListKeys,
    ) -> Result<Vec<Row>, RecordStoreError> {
        let ListOrder { open, time, .. } = self.order;
        let mut positions = Vec::new();
        let position = |row: &rusqlite::Row<'_>| -> Result<Position, RecordStoreError> {
            Ok((row.get(0)?, row.get(1)?))
        };
        for key in &keys.keys {
            let mut statement = ListStatement::new("SELECT at, addressed.number FROM addressed ");
            if !self.query.matching.is_any() {
                statement.push("CROSS JOIN question ON question.number = addressed.number ");
            }
            statement.push("WHERE key = ");
            statement.bind(key.clone());
            statement.push(&format!(" AND addressed.open = {open}"));
            self.push_start(&mut statement, "at, addressed.number");
            self.push_conditions(&mut statement)?;
            self.push_order(&mut statement, "at", "addressed.number");
            positions.extend(statement.query(connection, position)?);
        }
        for principal in &keys.principals {
            let mut statement =
                ListStatement::new(&format!("SELECT {time}, number FROM question WHERE "));
            self.push_position(&mut statement);
            statement.push(" AND team IS NULL AND principal = ");
            statement.bind(principal.clone());
            self.push_conditions(&mut statement)?;
            self.push_end(&mut statement);
            positions.extend(statement.query(connection, position)?);
        }
        positions.sort_unstable();
        positions.dedup();
        if self.query.filter != Filter::Open {
            positions.reverse();
        }
        positions.truncate(self.most);
        let numbers: Vec<i64> = positions.iter().map(|(_, number)| *number).collect();
        let mut statement = ListStatement::new(&format!(
            "SELECT number, {LISTED} FROM question WHERE number IN (SELECT value FROM json_each("
        ));
        statement.bind(serde_json::to_string(&numbers)?);
        statement.push("))");
        let rows = statement.query(connection, |row| {
            let number: i64 = row.get("number")?;
            Ok(self.readable(row).map(|row| (number, row)))
        })?;
        let mut rows: HashMap<i64, Row> = rows.into_iter().flatten().collect();
        Ok(numbers
            .iter()
            .filter_map(|number| rows.remove(number))
            .collect())
    }

    /// Returns the numbers of all rows that may match the search; `None` if there are too many of them, or no word is
    /// in the index.
    fn candidates(&self, connection: &Connection) -> Result<Option<Vec<i64>>, RecordStoreError> {
        let words = &self.query.matching.words;
        let words: Vec<&SearchWord> = words.iter().filter(|word| is_indexed(word)).collect();
        if words.is_empty() {
            return Ok(None);
        }
        let mut found = Vec::new();
        let mut add = |mut statement: ListStatement| -> Result<bool, RecordStoreError> {
            statement.push(" LIMIT ");
            statement.bind(counted(MOST_SORTED + 1));
            found.extend(statement.query(connection, |row| Ok(row.get::<_, i64>(0)?))?);
            Ok(found.len() <= MOST_SORTED)
        };
        let mut texts =
            ListStatement::new("SELECT rowid FROM question_search WHERE question_search MATCH ");
        texts.bind(runs_of(&words));
        if !add(texts)? {
            return Ok(None);
        }
        for word in words {
            let mut ids = ListStatement::new("SELECT number FROM question WHERE id >= ");
            ids.bind(word.id().to_owned());
            ids.push(" AND id < ");
            ids.bind(format!("{}\u{10ffff}", word.id()));
            if !add(ids)? {
                return Ok(None);
            }
            for principal in word.principals() {
                let mut of_caller = ListStatement::new(&format!(
                    "SELECT number FROM question WHERE open = {} AND principal = ",
                    self.order.open
                ));
                of_caller.bind(principal.clone());
                if !add(of_caller)? {
                    return Ok(None);
                }
            }
        }
        Ok(Some(found))
    }

    /// Adds the condition for the list and the page's start.
    fn push_position(&self, statement: &mut ListStatement) {
        let ListOrder { open, time, .. } = self.order;
        statement.push(&format!("question.open = {open}"));
        self.push_start(statement, &format!("{time}, number"));
    }

    /// Adds the condition for the page's start.
    fn push_start(&self, statement: &mut ListStatement, columns: &str) {
        if let Some((time, number)) = self.start {
            statement.push(&format!(" AND ({columns}) {} (", self.order.after));
            statement.bind(time);
            statement.push(", ");
            statement.bind(number);
            statement.push(")");
        }
    }

    /// Adds the order of the list, and the page's length.
    fn push_end(&self, statement: &mut ListStatement) {
        self.push_order(statement, self.order.time, "number");
    }

    fn push_order(&self, statement: &mut ListStatement, time: &str, number: &str) {
        let direction = self.order.direction;
        statement.push(&format!(
            " ORDER BY {time}{direction}, {number}{direction} LIMIT "
        ));
        statement.bind(counted(self.most));
    }

    /// Adds the conditions for the rows.
    fn push_conditions(&self, statement: &mut ListStatement) -> Result<(), RecordStoreError> {
        let matching = &self.query.matching;
        let typed = [
            ("server", matching.server.as_deref()),
            ("mode", matching.mode.map(Mode::as_str)),
            ("kind", matching.kind.map(CallKind::word)),
            ("target", matching.target.as_deref()),
            ("principal", matching.principal.as_deref()),
        ];
        for (column, value) in typed {
            if let Some(value) = value {
                statement.push(&format!(" AND question.{column} = "));
                statement.bind(value.to_owned());
            }
        }
        for word in &matching.words {
            statement.push(
                " AND (instr((SELECT text FROM question_text WHERE question_text.number = question.number), ",
            );
            statement.bind(word.text().to_owned());
            statement.push(") > 0");
            if !word.others().is_empty() {
                statement.push(" OR EXISTS (SELECT 1 FROM question_text JOIN json_each(");
                statement.bind(serde_json::to_string(word.others())?);
                statement.push(
                    ") ON instr(text, value) > 0 WHERE question_text.number = question.number)",
                );
            }
            statement.push(" OR instr(question.id, ");
            statement.bind(word.id().to_owned());
            statement.push(") = 1");
            if !word.principals().is_empty() {
                statement.push(" OR question.principal IN (SELECT value FROM json_each(");
                statement.bind(serde_json::to_string(word.principals())?);
                statement.push("))");
            }
            statement.push(")");
        }
        Ok(())
    }
}

/// Returns `true` if the rows that match the word can be found in the index: it is long enough, and stands for nothing
/// else.
fn is_indexed(word: &SearchWord) -> bool {
    word.others().is_empty() && word.text().chars().nth(RUN - 1).is_some()
}

/// Returns the query for texts that have all runs of characters of the words. The runs of a long word that are looked
/// up are spread over it.
fn runs_of(words: &[&SearchWord]) -> String {
    let mut query = String::new();
    for word in words {
        let letters: Vec<char> = word.text().chars().collect();
        let last = letters.len() - RUN;
        let runs = MOST_RUNS.min(last + 1);
        for run in 0..runs {
            let at = if runs == 1 {
                0
            } else {
                run * last / (runs - 1)
            };
            if !query.is_empty() {
                query.push_str(" AND ");
            }
            query.push('"');
            for letter in &letters[at..at + RUN] {
                if *letter == '"' {
                    query.push('"');
                }
                query.push(*letter);
            }
            query.push('"');
        }
    }
    query
}

/// Adds the texts of questions that have none yet, at most `most`, and the typed columns of rows that an earlier
/// version wrote.
pub(super) fn add_texts(
    step: &Transaction<'_>,
    most: Option<usize>,
) -> Result<(), RecordStoreError> {
    const LAST: &str = "SELECT coalesce(max(number), 0) FROM question_text";
    const TYPE: &str = "UPDATE question SET server = json_extract(body, '$.server'), \
        address = coalesce(json_extract(body, '$.address'), json_extract(body, '$.server')), \
        mode = json_extract(body, '$.mode'), kind = json_extract(body, '$.kind'), target = json_extract(body, '$.target'), \
        approval = coalesce(json_extract(team, '$.is_approval'), 0), principal = json_extract(body, '$.principal') \
        WHERE number > ?1 AND principal IS NULL";
    let next =
        format!("SELECT number, {LISTED} FROM question WHERE number > ?1 ORDER BY number LIMIT ?2");
    let mut last: i64 = step.query_row(LAST, [], |row| row.get(0))?;
    step.execute(TYPE, [last])?;
    let mut left = most.unwrap_or(usize::MAX);
    let mut add =
        step.prepare_cached("INSERT INTO question_text (number, text) VALUES (?1, ?2)")?;
    while left > 0 {
        let mut statement = step.prepare_cached(&next)?;
        let mut rows = statement.query((last, counted(left.min(TEXTS_IN_STEP))))?;
        let mut is_end = true;
        while let Some(row) = rows.next()? {
            is_end = false;
            left -= 1;
            last = row.get("number")?;
            // A row that this version cannot read is found by its typed columns only.
            let text = read(row).map_or_else(|_| String::new(), |row| search_text(&row));
            add.execute((last, text))?;
        }
        if is_end {
            break;
        }
    }
    Ok(())
}

/// Changes the text of a row that has one.
pub(super) fn change_text(step: &Transaction<'_>, row: &Row) -> Result<(), RecordStoreError> {
    const CHANGE: &str = "UPDATE question_text SET text = ?2 \
        WHERE number = (SELECT number FROM question WHERE id = ?1) AND text <> ?2";
    let mut statement = step.prepare_cached(CHANGE)?;
    statement.execute((&row.id, search_text(row)))?;
    Ok(())
}
