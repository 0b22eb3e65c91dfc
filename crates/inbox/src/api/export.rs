//! The questions of a record one after the other, for a copy of them.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use mcp_elicit_record::store::{Filter, ListQuery, Matching, Page, Row};
use mcp_elicit_record::{Record, RecordError};

use super::model::WholeQuestion;
use super::{ApiState, ON_COMMAND_LINE, RequestAccess};
use crate::record_question_store::RecordQuestionStore;
use crate::state_folder::StateFolder;

/// The number of questions whose ids are read at once.
const PAGE: usize = 200;

/// The questions that an export has.
#[derive(Clone, Debug, Default)]
pub struct ExportSelection {
    /// Those of this caller only.
    pub principal: Option<String>,
    /// With the values that rules keep for auditors. Each of them that is read is in the audit.
    pub with_kept: bool,
}

/// An export in progress. Nothing counts as shown to a person.
pub struct Export {
    state: ApiState,
    selection: ExportSelection,
    /// The list that is read now, and the question after which its next page starts; `None` at the end.
    next: Option<(Filter, Option<String>)>,
    /// The questions that are given next.
    ids: VecDeque<String>,
    /// The questions that waited when they were read. One that ends before the other list is read is not given twice.
    waited: HashSet<String>,
}

impl Export {
    /// Begins an export: first what waits, the oldest first, then what ended, the newest first.
    pub fn new(record: Arc<Record>, folder: StateFolder, selection: ExportSelection) -> Self {
        let tokens = Arc::new(folder.api_tokens());
        let questions =
            RecordQuestionStore::new(Arc::clone(&record)).naming_keys(Arc::clone(&tokens));
        let state = ApiState {
            record,
            questions: Arc::new(questions),
            tokens,
            state: folder,
            access: RequestAccess::Owner(None),
            streams: super::EventStreams::default(),
        };
        Self {
            state,
            selection,
            next: Some((Filter::Open, None)),
            ids: VecDeque::new(),
            waited: HashSet::new(),
        }
    }

    /// Returns the next question; `None` after the last.
    ///
    /// # Errors
    /// If the record cannot be read, or a value in it cannot be opened.
    pub async fn next_question(&mut self) -> Result<Option<WholeQuestion>, RecordError> {
        loop {
            while let Some(id) = self.ids.pop_front() {
                // A list has no params. One that was purged meanwhile is gone.
                if let Some(row) = self.state.record.find(&id).await? {
                    return Ok(Some(self.whole(&row).await?));
                }
            }
            if !self.read_page().await? {
                return Ok(None);
            }
        }
    }

    /// Reads the ids of the next page. Returns `false` if there is none.
    async fn read_page(&mut self) -> Result<bool, RecordError> {
        let Some((filter, after)) = self.next.take() else {
            return Ok(false);
        };
        let page = Page { after, most: PAGE };
        let matching = Matching {
            principal: self.selection.principal.clone(),
            ..Matching::default()
        };
        let query = ListQuery::new(filter, page).matching(matching);
        let rows = self.state.record.list_by(query).await?;
        self.next = match rows.last() {
            Some(last) if rows.len() == PAGE => Some((filter, Some(last.id.clone()))),
            Some(_) | None => (filter == Filter::Open).then_some((Filter::Ended, None)),
        };
        let ids = rows.into_iter().map(|row| row.id);
        if filter == Filter::Open {
            self.ids.extend(ids);
            self.waited.extend(self.ids.iter().cloned());
        } else {
            self.ids.extend(ids.filter(|id| !self.waited.contains(id)));
        }
        Ok(true)
    }

    async fn whole(&self, row: &Row) -> Result<WholeQuestion, RecordError> {
        let kept = if self.selection.with_kept {
            let record = &self.state.record;
            record.read_retained_call(row, ON_COMMAND_LINE).await?
        } else {
            None
        };
        self.state.whole(row, kept.as_ref())
    }
}
