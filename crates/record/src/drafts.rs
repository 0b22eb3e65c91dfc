//! Drafts: values that people have typed into pages and not sent.
//!
//! With a record that gateways share, a draft is a row of it, so that a person's next request may go to another gateway:
//! sealed, and bound to its question and the person. Otherwise it is in the memory of the process.

use std::sync::PoisonError;
use std::time::Duration;

use mcp_elicit_core::answer::{Draft, DraftValue};
use mcp_elicit_core::lifecycle::Timestamp;
use serde_json::Value;

use crate::store::RecordStore as _;
use crate::store::drafts::StoredDraft;
use crate::{Record, RecordError, associated_data};

/// The time after its last change at which a shared draft is dropped.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3_600);

impl Record {
    /// Returns the draft of a question in an inbox without people. It ends with the question.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub async fn draft(&self, id: &str) -> Result<Option<Draft>, RecordError> {
        if self.shares_drafts() {
            return self.shared_draft(id, "").await;
        }
        let drafts = self.drafts.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(drafts.get(id).cloned())
    }

    /// Stores the draft of a question in an inbox without people.
    ///
    /// # Errors
    /// If the store cannot be reached, or the draft cannot be sealed.
    pub async fn keep_draft(&self, id: &str, draft: Draft) -> Result<(), RecordError> {
        if self.shares_drafts() {
            return self.keep_shared_draft(id, "", &draft).await;
        }
        let mut drafts = self.drafts.lock().unwrap_or_else(PoisonError::into_inner);
        drafts.insert(id.to_owned(), draft);
        Ok(())
    }

    /// Returns `true` if drafts are rows of the record.
    pub fn shares_drafts(&self) -> bool {
        self.store.drafts().is_some()
    }

    /// Returns a person's draft of a question; `None` if there is none, if it is too old, or if no key opens it.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub async fn shared_draft(&self, id: &str, person: &str) -> Result<Option<Draft>, RecordError> {
        let Some(drafts) = self.store.drafts() else {
            return Ok(None);
        };
        let (question, of) = (id.to_owned(), person.to_owned());
        let sealed = drafts.draft(question, of, self.oldest_draft()).await?;
        // What cannot be read is typed again.
        Ok(sealed.and_then(|sealed| {
            let data = bound_to(id, person);
            read(&self.keys.encryption.open(&data, &sealed).ok()?)
        }))
    }

    /// Stores a person's draft of a question, unless that has ended.
    ///
    /// # Errors
    /// If the store cannot be reached, or the draft cannot be sealed.
    pub async fn keep_shared_draft(
        &self,
        id: &str,
        person: &str,
        draft: &Draft,
    ) -> Result<(), RecordError> {
        let Some(drafts) = self.store.drafts() else {
            return Ok(());
        };
        let data = bound_to(id, person);
        let sealed = self.keys.encryption.seal(&data, &written(draft));
        let draft = StoredDraft {
            question: id.to_owned(),
            person: person.to_owned(),
            sealed: sealed.map_err(RecordError::Encryption)?,
            at: (self.clock)(),
        };
        // A question that was asked a moment ago may not be there yet.
        self.flush().await?;
        Ok(drafts.keep_draft(draft, self.oldest_draft()).await?)
    }

    /// Returns the time before which drafts are dropped.
    fn oldest_draft(&self) -> Timestamp {
        let now = (self.clock)().as_millis();
        let lifetime = u64::try_from(LIFETIME.as_millis()).unwrap_or(u64::MAX);
        Timestamp::from_millis(now.saturating_sub(lifetime))
    }
}

/// Returns the associated data of a draft.
fn bound_to(id: &str, person: &str) -> String {
    associated_data(id, &format!("draft.{person}"))
}

/// Returns a draft as JSON: pairs of a field's name and its value. Picked options are an array.
fn written(draft: &Draft) -> String {
    let pair = |(name, value): (&str, &DraftValue)| {
        let value = match value {
            DraftValue::Nothing => Value::Null,
            DraftValue::Text(text) => Value::from(text.as_str()),
            DraftValue::Picked(all) => Value::from(all.clone()),
            DraftValue::Flag(flag) => Value::from(*flag),
        };
        Value::from(vec![Value::from(name), value])
    };
    Value::Array(draft.iter().map(pair).collect()).to_string()
}

/// Reads what [`written`] returned; `None` if it is something else.
fn read(text: &str) -> Option<Draft> {
    let pairs: Vec<(String, Value)> = serde_json::from_str(text).ok()?;
    let mut draft = Draft::new();
    for (name, value) in pairs {
        let value = match value {
            Value::Null => DraftValue::Nothing,
            Value::String(text) => DraftValue::Text(text),
            Value::Bool(flag) => DraftValue::Flag(flag),
            value @ Value::Array(_) => DraftValue::Picked(serde_json::from_value(value).ok()?),
            Value::Number(_) | Value::Object(_) => return None,
        };
        draft.set(&name, value);
    }
    Some(draft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_written_and_read_again() {
        let mut draft = Draft::new();
        draft.set("a", DraftValue::Nothing);
        draft.set("b", DraftValue::Text("\"x\"\n\u{0}".to_owned()));
        draft.set("c", DraftValue::Picked(vec![String::new(), "y".to_owned()]));
        draft.set("d", DraftValue::Flag(false));
        assert_eq!(read(&written(&draft)), Some(draft));
        for damaged in ["", "{}", "[[1,2]]", r#"[["a",7]]"#, r#"[["a",[1]]]"#] {
            assert_eq!(read(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn a_draft_is_bound_to_its_question_and_its_person() {
        let places = [
            bound_to("q", "ada"),
            bound_to("q", "bob"),
            bound_to("r", "ada"),
            bound_to("q", ""),
        ];
        let different: std::collections::HashSet<_> = places.iter().collect();
        assert_eq!(different.len(), places.len());
    }
}
