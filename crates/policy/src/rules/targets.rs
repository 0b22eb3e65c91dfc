//! The calls of a rule, by method and name.

use mcp_elicit_core::wire::CallKind;
use serde::Serialize;

use super::{Decision, Rule, RulePhase, Rules};
use crate::glob::Glob;

/// The calls that a rule applies to.
#[derive(Debug)]
pub(crate) enum Targets {
    /// Every call.
    All,
    /// Calls whose name matches one of these patterns.
    Named(Vec<TargetPattern>),
}

/// One pattern of `tool`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TargetPattern {
    pub(crate) kind: CallKind,
    pub(crate) name: Glob,
}

impl TargetPattern {
    /// Reads a pattern: `prompt:NAME`, `resource:URI`, or the name of a tool.
    pub(super) fn new(text: &str) -> Self {
        let (kind, name) = match text.split_once(':') {
            Some(("prompt", name)) => (CallKind::Prompt, name),
            Some(("resource", uri)) => (CallKind::Resource, uri),
            _ => (CallKind::Tool, text),
        };
        Self {
            kind,
            name: Glob::new(name),
        }
    }
}

impl Targets {
    pub(super) fn matches(&self, kind: CallKind, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(targets) => targets
                .iter()
                .any(|target| target.kind == kind && target.name.matches(name)),
        }
    }

    /// Returns `true` if some of these calls has this name.
    pub(super) fn may_name(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(targets) => targets.iter().any(|target| target.name.matches(name)),
        }
    }

    /// Returns `true` if some of these calls is of this kind.
    pub(super) fn has_kind(&self, kind: CallKind) -> bool {
        match self {
            Self::All => true,
            Self::Named(targets) => targets.iter().any(|target| target.kind == kind),
        }
    }

    /// Returns the patterns; `None` for every call.
    pub(super) fn patterns(&self) -> impl Iterator<Item = Option<&TargetPattern>> {
        let (all, named) = match self {
            Self::All => (Some(None), [].as_slice()),
            Self::Named(targets) => (None, targets.as_slice()),
        };
        all.into_iter().chain(named.iter().map(Some))
    }

    /// Returns `true` if all calls of one pattern are certainly among these; `None` stands for every call.
    pub(super) fn covers_pattern(&self, pattern: Option<&TargetPattern>) -> bool {
        match (self, pattern) {
            (Self::All, _) => true,
            (Self::Named(_), None) => false,
            (Self::Named(wide), Some(narrow)) => wide
                .iter()
                .any(|wide| wide.kind == narrow.kind && wide.name.covers(&narrow.name)),
        }
    }

    /// Returns `true` if some call may be in both.
    pub(super) fn may_meet(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => true,
            (Self::Named(one), Self::Named(other)) => one.iter().any(|one| {
                let mut other = other.iter();
                other.any(|other| one.kind == other.kind && one.name.may_meet(&other.name))
            }),
        }
    }

    /// Returns `true` if these certainly include all calls of `other`.
    pub(super) fn covers(&self, other: &Self) -> bool {
        other.patterns().all(|narrow| self.covers_pattern(narrow))
    }
}

/// The extent to which rules apply to one tool: those that decide about its calls, or about its server's questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// A rule without a condition applies to it.
    Always,
    /// Only rules with conditions apply to it.
    Conditional,
    /// No rule applies to it.
    Never,
}

/// The rules that apply to one tool, each list in the order of the file.
#[derive(Clone, Debug)]
pub struct ToolCoverage<'r> {
    /// The extent of their coverage.
    pub coverage: Coverage,
    /// Those that decide about its calls, or choose the people for its server's questions.
    pub rules: Vec<&'r Rule>,
    /// Those that only refuse some of its server's questions.
    pub questions: Vec<&'r Rule>,
}

impl Rules {
    /// Returns the rules that apply to a tool of a server, and their coverage.
    pub fn coverage(&self, server: &str, tool: &str) -> ToolCoverage<'_> {
        let speaking = self.all.iter().filter(|rule| {
            rule.is_for_server(server) && rule.targets.matches(CallKind::Tool, tool)
        });
        let (questions, rules): (Vec<_>, Vec<_>) =
            speaking.partition(|rule| rule.only_refuses_questions());
        let coverage = if rules.is_empty() {
            Coverage::Never
        } else if rules.iter().any(|rule| rule.is_unconditional()) {
            Coverage::Always
        } else {
            Coverage::Conditional
        };
        ToolCoverage {
            coverage,
            rules,
            questions,
        }
    }
}

impl Rule {
    /// Returns `true` if the rule lets every call proceed, and every question but some.
    fn only_refuses_questions(&self) -> bool {
        matches!(self.decision, Decision::Refuse(_)) && self.phase == RulePhase::Asking
    }

    /// Returns `true` if the rule applies to tools, and not only to prompts or resources.
    pub fn is_for_tools(&self) -> bool {
        match &self.targets {
            Targets::All => true,
            Targets::Named(targets) => targets.iter().any(|target| target.kind == CallKind::Tool),
        }
    }

    /// Returns `true` if the rule applies to this server.
    pub fn is_for_server(&self, server: &str) -> bool {
        self.servers.iter().any(|glob| glob.matches(server))
    }

    /// Returns `true` if the rule names this server, rather than applying to all.
    pub fn names_server(&self, server: &str) -> bool {
        let every = Glob::new("*");
        self.is_for_server(server) && !self.servers.iter().any(|glob| glob.covers(&every))
    }
}
