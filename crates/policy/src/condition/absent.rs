//! The replacement in builds without the feature `cel`: each condition is a defect that names it.

use super::{ConditionError, Recalled, Remark, Required};
use crate::facts::{Facts, QuestionFacts};

/// A condition; there is none in this build.
#[derive(Debug)]
pub(crate) enum Condition {}

impl Condition {
    pub(crate) fn compile(
        _source: &str,
        _names: &mut Interner,
    ) -> Result<(Self, Vec<Remark>), Vec<Remark>> {
        Err(vec![Remark {
            at: 0,
            code: "no-conditions",
            message: "this build has no conditions".to_owned(),
            help: "build mcp-elicit with `--features full`".to_owned(),
        }])
    }

    pub(crate) fn reads_question(&self) -> Option<usize> {
        match *self {}
    }

    pub(crate) fn source(&self) -> &str {
        match *self {}
    }

    pub(crate) fn reads_arguments(&self) -> bool {
        match *self {}
    }

    pub(crate) fn reads_annotations(&self) -> Option<usize> {
        match *self {}
    }

    pub(crate) fn required(&self) -> &[Required] {
        match *self {}
    }

    pub(crate) fn constant(&self) -> Option<bool> {
        match *self {}
    }

    pub(crate) fn has_comparison(&self) -> bool {
        match *self {}
    }

    pub(crate) fn compared_texts(&self) -> Option<(usize, Vec<&str>)> {
        match *self {}
    }

    pub(crate) fn recall(
        &self,
        _environment: &Environment<'_>,
        _gaps: &[&'static str],
    ) -> Recalled {
        match *self {}
    }

    pub(crate) fn evaluate(&self, _environment: &Environment<'_>) -> Result<bool, ConditionError> {
        match *self {}
    }
}

/// The names that conditions read.
#[derive(Debug, Default)]
pub(crate) struct Interner {}

/// The values of one decision.
pub(crate) struct Environment<'f> {
    pub(crate) facts: &'f Facts<'f>,
    pub(crate) question: Option<&'f QuestionFacts>,
}

impl<'f> Environment<'f> {
    pub(crate) fn new(
        facts: &'f Facts<'f>,
        question: Option<&'f QuestionFacts>,
        _names: &'f Interner,
    ) -> Self {
        Self { facts, question }
    }

    #[expect(clippy::unused_self, reason = "as in a build with conditions")]
    pub(crate) fn text_at(&self, _path: usize) -> Option<&str> {
        None
    }
}
