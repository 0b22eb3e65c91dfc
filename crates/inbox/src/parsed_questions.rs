//! Parsed questions by their ids in the record: a page, its answer and the API read the same question several times, and it is
//! parsed once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::wire::ElicitRequest;
use mcp_elicit_record::store::Row;

/// The most questions that are kept parsed.
const MAX_QUESTIONS: usize = 64;
/// The longest parameters of a question that is kept parsed, in bytes.
const MAX_PARAMS: usize = 64 << 10;

/// A question of the record, parsed.
pub(crate) struct ParsedQuestion {
    /// The question in the newest revision.
    pub(crate) request: ElicitRequest,
    /// The form or the link.
    pub(crate) body: ParsedBody,
}

/// The form or the link of a question.
#[derive(Clone)]
pub(crate) enum ParsedBody {
    /// A form.
    Form(Form),
    /// A link to visit.
    Link(Link),
}

impl ParsedQuestion {
    /// Parses the row's question; `None` when it cannot be read any more.
    fn parse(row: &Row) -> Option<Self> {
        let request = row.request()?;
        let body = match &request {
            ElicitRequest::Form { schema, .. } => ParsedBody::Form(Form::parse(schema.get()).ok()?),
            ElicitRequest::Url { url, .. } => ParsedBody::Link(Link::parse(url).ok()?),
        };
        Some(Self { request, body })
    }
}

/// The questions that were parsed last.
#[derive(Default)]
pub(crate) struct ParsedQuestions {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    by_id: HashMap<String, Arc<ParsedQuestion>>,
    /// The ids, the oldest first.
    order: VecDeque<String>,
}

impl ParsedQuestions {
    /// Returns the row's question, parsed now or before; `None` when it cannot be read any more. The question of a row never
    /// changes.
    pub(crate) fn get(&self, row: &Row) -> Option<Arc<ParsedQuestion>> {
        let known = {
            let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.by_id.get(&row.id).cloned()
        };
        if known.is_some() {
            return known;
        }
        let parsed = Arc::new(ParsedQuestion::parse(row)?);
        if row
            .params
            .as_ref()
            .is_some_and(|params| params.len() <= MAX_PARAMS)
        {
            self.insert(&row.id, &parsed);
        }
        Some(parsed)
    }

    fn insert(&self, id: &str, parsed: &Arc<ParsedQuestion>) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.by_id.insert(id.to_owned(), parsed.clone()).is_none() {
            inner.order.push_back(id.to_owned());
        }
        while inner.order.len() > MAX_QUESTIONS {
            if let Some(oldest) = inner.order.pop_front() {
                inner.by_id.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_elicit_core::lifecycle::Timestamp;
    use mcp_elicit_record::store::Memory;
    use mcp_elicit_record::{Keys, LockFile, Record};

    use super::*;
    use crate::sample;

    #[tokio::test]
    async fn a_question_is_parsed_once_and_the_oldest_is_forgotten() {
        let store = Arc::new(Memory::default());
        let keys = Keys::random().unwrap();
        let lock_file = LockFile::unshared().unwrap();
        let clock = || Timestamp::from_millis(1_000);
        let record = Arc::new(Record::new(store, keys, lock_file, clock));
        let id = sample::raised(&record, Vec::new()).await.unwrap();
        let row = record.find(&id).await.unwrap().unwrap();
        let questions = ParsedQuestions::default();
        let first = questions.get(&row).unwrap();
        assert!(matches!(first.body, ParsedBody::Form(_)));
        let again = questions.get(&Row {
            params: None,
            team: None,
            ..row.clone()
        });
        assert!(Arc::ptr_eq(&first, &again.unwrap()));
        for number in 0..MAX_QUESTIONS {
            let id = number.to_string();
            questions.get(&Row { id, ..row.clone() }).unwrap();
        }
        assert!(!Arc::ptr_eq(&first, &questions.get(&row).unwrap()));
        let broken = Row {
            id: "broken".to_owned(),
            params: Some("{".to_owned()),
            team: None,
            ..row
        };
        assert!(questions.get(&broken).is_none());
    }
}
