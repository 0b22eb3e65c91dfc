//! The calls that a question may belong to if its server does not name one. Each is shown to a person with its
//! arguments, which are stored sealed like those of a single call.

use mcp_elicit_core::question::{CallSummary, NewQuestion};
use mcp_elicit_core::wire::CallKind;
use std::io;

use serde::{Deserialize, Serialize};

use super::{Record, RecordError, associated_data};
use crate::store::Row;

/// The member of a row's sealed arguments for one call.
pub(crate) const ARGUMENTS: &str = "arguments";
/// The member of a row's sealed arguments for several calls.
pub(crate) const COLUMN: &str = "candidates";

/// A call that a question may belong to.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Tool, prompt or resource.
    pub kind: CallKind,
    /// The name, or the resource's URI.
    pub target: String,
    /// The arguments as the client wrote them, JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
}

impl std::fmt::Debug for Candidate {
    /// Hides the arguments.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Candidate")
            .field("kind", &self.kind)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl From<&CallSummary> for Candidate {
    fn from(calling: &CallSummary) -> Self {
        Self {
            kind: calling.kind,
            target: calling.target.clone(),
            arguments: calling.arguments.clone(),
        }
    }
}

/// Returns the length of all arguments, in bytes.
fn length_of<'a>(calls: impl IntoIterator<Item = &'a CallSummary>) -> usize {
    let arguments = calls.into_iter().filter_map(|call| call.arguments.as_ref());
    arguments.map(String::len).sum()
}

impl Record {
    /// Returns the sealed arguments of the question's call for storage; those of all calls if any may be meant. If they
    /// are longer than may be stored, returns their length in bytes instead.
    pub(super) fn sealed_arguments(
        &self,
        id: &str,
        asked: &NewQuestion,
        is_approval: bool,
    ) -> io::Result<(Option<Vec<u8>>, Option<usize>)> {
        let length = length_of(asked.call.iter().chain(&asked.candidates));
        // Approvals are shown whole, and have their own limit.
        if length > self.most_arguments() && !is_approval {
            return Ok((None, Some(length)));
        }
        Ok((self.sealed_calls(id, asked)?, None))
    }

    fn sealed_calls(&self, id: &str, asked: &NewQuestion) -> io::Result<Option<Vec<u8>>> {
        let Some(calling) = &asked.call else {
            return Ok(None);
        };
        if !asked.is_ambiguous() {
            let arguments = calling.arguments.as_deref();
            let seal = |text| {
                self.keys
                    .encryption
                    .seal(&associated_data(id, ARGUMENTS), text)
            };
            return arguments.map(seal).transpose();
        }
        // One of several alone would be taken for the call that asks.
        if asked.candidates.is_empty() {
            return Ok(None);
        }
        self.sealed_all(id, std::iter::once(calling).chain(&asked.candidates))
            .map(Some)
    }

    /// Returns the calls that a question may belong to, sealed for storage; `None` for one that is certain, or if their
    /// arguments are longer than may be stored.
    pub(super) fn sealed_candidates(
        &self,
        id: &str,
        calls: &[CallSummary],
    ) -> io::Result<Option<Vec<u8>>> {
        let is_certain = calls.len() < 2;
        let is_short = length_of(calls) <= self.most_arguments();
        (!is_certain && is_short)
            .then(|| self.sealed_all(id, calls.iter()))
            .transpose()
    }

    fn sealed_all<'a>(
        &self,
        id: &str,
        calls: impl Iterator<Item = &'a CallSummary>,
    ) -> io::Result<Vec<u8>> {
        let all: Vec<Candidate> = calls.map(Candidate::from).collect();
        let text = serde_json::to_string(&all)?;
        self.keys
            .encryption
            .seal(&associated_data(id, COLUMN), &text)
    }

    /// Returns the calls that the question may belong to, the likeliest first; none if its call is known.
    ///
    /// # Errors
    /// If their arguments were sealed with another key, or are damaged.
    pub fn candidates(&self, row: &Row) -> Result<Vec<Candidate>, RecordError> {
        if row.body.others.is_empty() {
            return Ok(Vec::new());
        }
        let opened = self.opened_arguments(row)?;
        let read = opened.and_then(|text| serde_json::from_str(&text).ok());
        Ok(read.unwrap_or_default())
    }

    /// Opens the result of [`Self::sealed_arguments`].
    pub(super) fn opened_arguments(&self, row: &Row) -> Result<Option<String>, RecordError> {
        let is_one = row.body.others.is_empty();
        let place = associated_data(&row.id, if is_one { ARGUMENTS } else { COLUMN });
        let open = |sealed| self.keys.encryption.open(&place, sealed);
        Ok(row.arguments.as_deref().map(open).transpose()?)
    }
}
