//! A cache of parsed questions by id, because pages, their answers, the API, messages and the audit all read the same
//! question.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::store::Row;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::question::ParsedQuestion;

/// The most questions in the cache.
const MAX_QUESTIONS: usize = 64;
/// The longest params of a cached question, in bytes.
const MAX_PARAMS: usize = 64 << 10;

/// The params of a question.
pub(crate) struct WholeParams<'r> {
    pub(crate) text: Cow<'r, str>,
    /// `false` if values are missing that may be readable later.
    pub(crate) is_whole: bool,
}

/// The questions that were parsed last.
#[derive(Default)]
pub(crate) struct ParsedQuestions {
    inner: Mutex<ParsedCache>,
}

/// The parsed parts of a question.
#[derive(Clone)]
enum ParsedParts {
    /// Its form.
    Form(Arc<Form>),
    /// All of it.
    Question(Arc<ParsedQuestion>),
}

#[derive(Default)]
struct ParsedCache {
    by_id: HashMap<String, ParsedParts>,
    /// The ids, the oldest first.
    order: VecDeque<String>,
}

impl ParsedQuestions {
    /// Returns the row's parsed question, cached, or read from `params`; `None` if it can no longer be read. The question of
    /// a row never changes.
    pub(crate) fn get<'r>(
        &self,
        row: &Row,
        params: impl FnOnce() -> Option<WholeParams<'r>>,
    ) -> Option<Arc<ParsedQuestion>> {
        let known = {
            let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.by_id.get(&row.id).cloned()
        };
        let form = match known {
            Some(ParsedParts::Question(parsed)) => return Some(parsed),
            Some(ParsedParts::Form(form)) => Some(form),
            None => None,
        };
        let params = params()?;
        let parsed = Arc::new(ParsedQuestion::read(&params.text, form)?);
        if params.is_whole && is_short(row) {
            self.insert(&row.id, ParsedParts::Question(parsed.clone()));
        }
        Some(parsed)
    }

    /// Keeps the parsed form of a new row.
    pub(crate) fn keep_form(&self, row: &Row, form: Arc<Form>) {
        if is_short(row) {
            self.insert(&row.id, ParsedParts::Form(form));
        }
    }

    fn insert(&self, id: &str, known: ParsedParts) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.by_id.insert(id.to_owned(), known).is_none() {
            inner.order.push_back(id.to_owned());
        }
        while inner.order.len() > MAX_QUESTIONS {
            if let Some(oldest) = inner.order.pop_front() {
                inner.by_id.remove(&oldest);
            }
        }
    }
}

/// Returns `true` for a question that is kept parsed.
fn is_short(row: &Row) -> bool {
    let params = row.params.as_ref();
    params.is_some_and(|params| params.len() <= MAX_PARAMS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row;
    use mcp_elicit_core::question::ParsedBody;

    const SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string"}}}"#;

    fn row_with_form() -> Row {
        let params = format!(r#"{{"message":"Who?","requestedSchema":{SCHEMA}}}"#);
        Row {
            params: Some(params),
            ..row::tests::open()
        }
    }

    fn get(questions: &ParsedQuestions, row: &Row) -> Option<Arc<ParsedQuestion>> {
        questions.get(row, || {
            Some(WholeParams {
                text: row.params.as_deref()?.into(),
                is_whole: true,
            })
        })
    }

    #[test]
    fn a_form_that_was_parsed_when_the_question_came_up_is_not_parsed_again() {
        let row = row_with_form();
        let questions = ParsedQuestions::default();
        let form = Arc::new(Form::parse(SCHEMA).unwrap());
        questions.keep_form(&row, form.clone());
        let parsed = get(&questions, &row).unwrap();
        let ParsedBody::Form(known) = &parsed.body else {
            panic!("it is a form")
        };
        assert!(Arc::ptr_eq(known, &form));
        assert_eq!(parsed.request.message(), "Who?");
        assert!(Arc::ptr_eq(&parsed, &get(&questions, &row).unwrap()));
        let long = Row {
            params: Some(" ".repeat(MAX_PARAMS + 1)),
            id: "long".to_owned(),
            ..row
        };
        questions.keep_form(&long, form);
        assert!(get(&questions, &long).is_none());
    }

    #[test]
    fn a_question_is_parsed_once_and_the_oldest_is_forgotten() {
        let row = row_with_form();
        let questions = ParsedQuestions::default();
        let first = get(&questions, &row).unwrap();
        assert!(first.form().is_some());
        let again = get(
            &questions,
            &Row {
                params: None,
                ..row.clone()
            },
        );
        assert!(Arc::ptr_eq(&first, &again.unwrap()));
        for number in 0..MAX_QUESTIONS {
            let id = number.to_string();
            get(&questions, &Row { id, ..row.clone() }).unwrap();
        }
        assert!(!Arc::ptr_eq(&first, &get(&questions, &row).unwrap()));
        let broken = Row {
            id: "broken".to_owned(),
            params: Some("{".to_owned()),
            ..row
        };
        assert!(get(&questions, &broken).is_none());
    }
}
