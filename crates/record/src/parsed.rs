//! A cache of parsed questions by id, because pages, their answers, the API, messages and the audit all read the same
//! question.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::store::Row;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::wire::ElicitRequest;

/// The most questions in the cache.
const MAX_QUESTIONS: usize = 64;
/// The longest params of a cached question, in bytes.
const MAX_PARAMS: usize = 64 << 10;

/// A question of the record, parsed.
pub struct ParsedQuestion {
    /// The question in the newest revision.
    pub request: ElicitRequest,
    /// The form or the link.
    pub body: ParsedBody,
}

/// The form or the link of a question.
#[derive(Clone)]
pub enum ParsedBody {
    /// A form.
    Form(Form),
    /// A link to visit.
    Link(Link),
}

impl ParsedQuestion {
    /// Returns the form, unless it is a link.
    pub fn form(&self) -> Option<&Form> {
        match &self.body {
            ParsedBody::Form(form) => Some(form),
            ParsedBody::Link(_) => None,
        }
    }

    /// Parses the row's question; `None` if it can no longer be read.
    fn parse(row: &Row) -> Option<Self> {
        let request = row.request()?;
        let body = match &request {
            ElicitRequest::Form { schema, .. } => ParsedBody::Form(Form::parse(schema.get()).ok()?),
            ElicitRequest::Url { url, .. } => ParsedBody::Link(Link::parse(url).ok()?),
        };
        Some(Self { request, body })
    }
}

/// The most recently parsed questions.
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
    /// Returns the row's parsed question, cached; `None` if it can no longer be read. The question of a row never
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
    use super::*;
    use crate::row;

    #[test]
    fn a_question_is_parsed_once_and_the_oldest_is_forgotten() {
        let schema = r#"{"type":"object","properties":{"name":{"type":"string"}}}"#;
        let params = format!(r#"{{"message":"Who?","requestedSchema":{schema}}}"#);
        let row = Row {
            params: Some(params),
            ..row::tests::open()
        };
        let questions = ParsedQuestions::default();
        let first = questions.get(&row).unwrap();
        assert!(first.form().is_some());
        let again = questions.get(&Row {
            params: None,
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
            ..row
        };
        assert!(questions.get(&broken).is_none());
    }
}
