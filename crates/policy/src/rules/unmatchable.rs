//! Rules that no call can match: their condition contradicts their patterns or itself.

use std::ops::Range;

use mcp_elicit_core::wire::CallKind;

use super::targets::Targets;
use crate::condition::{Condition, Required};
use crate::defect::nearest;
use crate::document::DocumentReader;
use crate::glob::Glob;
use crate::people::People;

/// The parts of a rule that its condition must agree with.
pub(super) struct Patterns<'r> {
    pub(super) servers: &'r [Glob],
    pub(super) targets: &'r Targets,
    pub(super) people: &'r People,
}

/// The text of a condition, and its span in the file.
pub(super) struct ConditionText<'r> {
    pub(super) span: Range<usize>,
    pub(super) text: &'r str,
}

impl Patterns<'_> {
    /// Reports the conjuncts of a condition that no call of the rule can satisfy.
    pub(super) fn check(
        &self,
        reader: &mut DocumentReader<'_>,
        condition: &Condition,
        source: &ConditionText<'_>,
    ) {
        let all = condition.required();
        for (number, one) in all.iter().enumerate() {
            let why = self
                .disagrees(one)
                .or_else(|| contradicts(&all[..number], one));
            if let Some((message, help)) = why {
                let at = reader.inside_text(source.span.clone(), source.text, one.at);
                reader.defect(at, "never-matches", message, help);
            }
        }
    }

    /// Returns the reason why no call of the rule has one of these texts, and the fix.
    fn disagrees(&self, one: &Required) -> Option<(String, String)> {
        let texts = one.texts.iter().map(String::as_str);
        let mut texts = texts.filter(|text| !text.is_empty());
        let named = words(&one.texts);
        match one.path.as_str() {
            "tool" if !one.texts.iter().any(|text| self.targets.may_name(text)) => Some((
                format!("the rule is not for {named}, so it never matches"),
                "the patterns of `tool` take other names".to_owned(),
            )),
            "server" if !one.texts.iter().any(|text| self.is_for_server(text)) => Some((
                format!("the rule is not for {named}, so it never matches"),
                "the patterns of `server` take other names".to_owned(),
            )),
            "method" => {
                let kinds = one.texts.iter().filter_map(|text| kind_of(text));
                let mut kinds = kinds.peekable();
                // Unknown words are reported as such elsewhere.
                kinds.peek()?;
                (!kinds.any(|kind| self.targets.has_kind(kind))).then(|| {
                    (
                        format!("the rule is not for {named}, so it never matches"),
                        "the patterns of `tool` are for other methods".to_owned(),
                    )
                })
            }
            // Without people in the file, keys may belong to anyone.
            "caller.person" if !self.people.people.is_empty() => {
                let known = self.people.people.keys().map(String::as_str);
                let first = texts.next()?;
                let is_known = |text: &str| text.is_empty() || self.people.is_person(text);
                (!one.texts.iter().any(|text| is_known(text))).then(|| {
                    let help = match nearest(first, known) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => "the people are those of [people.NAME]".to_owned(),
                    };
                    (format!("no person is named {named}"), help)
                })
            }
            _ => None,
        }
    }

    fn is_for_server(&self, name: &str) -> bool {
        self.servers.iter().any(|server| server.matches(name))
    }
}

/// Returns the reason why a conjunct is never true together with an earlier one, and the fix. Arguments and fields may
/// have any type, and a comparison with another type is an error, so they are not checked.
fn contradicts(before: &[Required], one: &Required) -> Option<(String, String)> {
    let root = one.path.split('.').next().unwrap_or_default();
    if matches!(root, "arguments" | "fields") {
        return None;
    }
    let mut same = before.iter().filter(|other| other.path == one.path);
    let other = same.find(|other| !one.texts.iter().any(|text| other.texts.contains(text)))?;
    let message = format!(
        "`{}` is never {} and {} at once",
        one.path,
        words(&other.texts),
        words(&one.texts)
    );
    Some((message, "join them with `||`, or with `in`".to_owned()))
}

fn words(texts: &[String]) -> String {
    let quoted = texts
        .iter()
        .map(|text| format!("`{}`", text.escape_debug()));
    quoted.collect::<Vec<_>>().join(" or ")
}

fn kind_of(method: &str) -> Option<CallKind> {
    Some(match method {
        "tools/call" => CallKind::Tool,
        "prompts/get" => CallKind::Prompt,
        "resources/read" => CallKind::Resource,
        _ => return None,
    })
}
