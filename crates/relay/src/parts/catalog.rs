//! The server's tools, according to the lists that passed through.

use std::collections::HashMap;

use mcp_elicit_core::question::ToolClaims;
use mcp_elicit_core::text::shortened;
use mcp_elicit_core::wire::{CallFrame, members};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::CallKind;
use crate::decisions::ToolFacts;

/// The number of tools that are remembered.
const TOOLS: usize = 10_000;
/// The largest kept input schema, in bytes; and the total size of schemas and descriptions.
const MAX_SCHEMA: usize = 64 * 1024;
const MAX_TEXTS: usize = 8 * 1024 * 1024;
/// The total size of the names, in bytes. Tools with longer names than a call may have are not remembered.
const MAX_NAMES: usize = 4 * 1024 * 1024;

/// The tools that the server listed.
#[derive(Default)]
pub(crate) struct Catalog {
    /// `true` for each tool with an output schema, by name.
    tools: HashMap<String, bool>,
    /// The facts for rules, by name; only if there are rules.
    facts: HashMap<String, ToolFacts>,
    /// The total size of the names in `tools`, and in `facts`.
    name_bytes: usize,
    fact_name_bytes: usize,
    /// The total size of the schemas and descriptions in `facts`.
    text_bytes: usize,
    extent: Extent,
    /// Set if the list was requested for a held call, and has not changed since.
    is_requested: bool,
}

/// The part of the server's list that the facts cover.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Extent {
    /// The part that a client has listed.
    #[default]
    Seen,
    /// The list has changed since.
    Outdated,
    /// All of it: the gateway itself has read the list, and it has not changed since.
    Whole,
}

#[derive(Deserialize)]
struct Described<'a> {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    annotations: Option<Hints>,
    #[serde(rename = "inputSchema", borrow, default)]
    input_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Hints {
    #[serde(rename = "readOnlyHint", default)]
    read_only: Option<bool>,
    #[serde(rename = "destructiveHint", default)]
    destructive: Option<bool>,
    #[serde(rename = "idempotentHint", default)]
    idempotent: Option<bool>,
    #[serde(rename = "openWorldHint", default)]
    open_world: Option<bool>,
}

#[derive(Deserialize)]
struct Tool<'a> {
    name: String,
    #[serde(rename = "outputSchema", borrow, default)]
    output_schema: Option<&'a RawValue>,
}

impl Catalog {
    /// Adds the tools of a `tools/list` result.
    pub(crate) fn learn(&mut self, result: &RawValue) {
        for tool in tools_in(result) {
            if self.tools.len() >= TOOLS {
                return;
            }
            let Ok(Tool {
                name,
                output_schema,
            }) = serde_json::from_str(tool.get())
            else {
                continue;
            };
            let is_new = !self.tools.contains_key(&name);
            if is_new && !has_room(&name, &mut self.name_bytes) {
                continue;
            }
            self.tools.insert(name, output_schema.is_some());
        }
    }

    /// Adds the facts for rules. Returns the tools whose annotations have changed, because a server could change them
    /// to avoid a rule.
    pub(crate) fn learn_facts(&mut self, result: &RawValue) -> Vec<String> {
        let mut changed = Vec::new();
        for tool in tools_in(result) {
            let Ok(Tool { name, .. }) = serde_json::from_str::<Tool<'_>>(tool.get()) else {
                continue;
            };
            let facts = self.facts_in(tool);
            let before = self.facts.get(&name);
            if self.facts.len() >= TOOLS && before.is_none() {
                return changed;
            }
            if before.is_none() && !has_room(&name, &mut self.fact_name_bytes) {
                continue;
            }
            let hints = |facts: &ToolFacts| {
                [
                    facts.read_only,
                    facts.destructive,
                    facts.idempotent,
                    facts.open_world,
                ]
            };
            if before.is_some_and(|before| hints(before) != hints(&facts)) {
                changed.push(name.clone());
            }
            let size = |facts: &ToolFacts| {
                let texts = [&facts.input_schema, &facts.description];
                let lengths = texts.into_iter().flatten().map(|text| text.len());
                lengths.sum::<usize>()
            };
            self.text_bytes += size(&facts);
            if let Some(before) = self.facts.insert(name, facts) {
                self.text_bytes -= size(&before);
            }
        }
        changed
    }

    fn facts_in(&self, tool: &RawValue) -> ToolFacts {
        let Ok(described) = serde_json::from_str::<Described<'_>>(tool.get()) else {
            return ToolFacts::default();
        };
        let schema = described.input_schema.map(RawValue::get);
        let schema = schema.filter(|schema| {
            schema.len() <= MAX_SCHEMA && self.text_bytes + schema.len() <= MAX_TEXTS
        });
        let described_by = described.description.as_deref().map(str::trim);
        let description = described_by.filter(|text| !text.is_empty());
        let description = description.map(|text| shortened(text, ToolClaims::MAX_DESCRIPTION));
        let both = |text: &String| text.len() + schema.map_or(0, str::len);
        let description = description.filter(|text| self.text_bytes + both(text) <= MAX_TEXTS);
        let hints = described.annotations;
        let hint = |of: fn(&Hints) -> Option<bool>| hints.as_ref().and_then(of);
        ToolFacts {
            read_only: hint(|hints| hints.read_only),
            destructive: hint(|hints| hints.destructive),
            idempotent: hint(|hints| hints.idempotent),
            open_world: hint(|hints| hints.open_world),
            input_schema: schema.map(Into::into),
            description: description.map(Into::into),
        }
    }

    /// Returns the facts for rules about the target, if it is a listed tool.
    pub(crate) fn facts_of(&self, kind: CallKind, target: &str) -> Option<&ToolFacts> {
        self.facts.get(target).filter(|_| kind == CallKind::Tool)
    }

    /// Forgets which tools have output schemas, because the list has changed. Facts for rules stay, to detect changes.
    pub(crate) fn forget(&mut self) {
        self.tools.clear();
        self.name_bytes = 0;
        self.extent = Extent::Outdated;
        self.is_requested = false;
    }

    /// Returns `true` if the list should be requested to know whether this tool has an output schema: once, until the
    /// list changes, because a server may not list its tools.
    pub(crate) fn wants_list_for(&self, tool: &str) -> bool {
        !self.is_requested && self.extent != Extent::Whole && !self.tools.contains_key(tool)
    }

    /// Records that the list is requested for a held call.
    pub(crate) fn list_requested(&mut self) {
        self.is_requested = true;
    }

    /// Records that the gateway itself has read the whole list.
    pub(crate) fn read_whole(&mut self) {
        self.extent = Extent::Whole;
    }

    /// Returns `true` if the server's list may contain more about this tool than is known.
    pub(crate) fn may_learn_of(&self, tool: &str) -> bool {
        match self.extent {
            Extent::Seen => !self.facts.contains_key(tool),
            Extent::Outdated => true,
            Extent::Whole => false,
        }
    }

    /// Returns `false` only for a tool that was listed without an output schema.
    pub(crate) fn may_have_output_schema(&self, tool: &str) -> bool {
        self.tools.get(tool).copied().unwrap_or(true)
    }
}

/// Counts a name among these bytes. Returns `false` if it is too long, or has no room.
fn has_room(name: &str, bytes: &mut usize) -> bool {
    let with_it = *bytes + name.len();
    let has_room = name.len() <= CallFrame::MAX_NAME && with_it <= MAX_NAMES;
    if has_room {
        *bytes = with_it;
    }
    has_room
}

/// Returns the descriptions of tools in a `tools/list` result; none if it cannot be read.
fn tools_in(result: &RawValue) -> Vec<&RawValue> {
    let tools = members::member(result, "tools");
    let tools = tools.and_then(|tools| serde_json::from_str(tools.get()).ok());
    tools.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_call_may_have_and_names_without_room_are_not_remembered() {
        let mut catalog = Catalog::default();
        let mut list = |names: Vec<String>| {
            let tools: Vec<_> = names
                .iter()
                .map(|name| serde_json::json!({"name": name, "inputSchema": {}}))
                .collect();
            let list = serde_json::json!({"tools": tools}).to_string();
            let list: &RawValue = serde_json::from_str(&list).unwrap();
            catalog.learn(list);
            catalog.learn_facts(list);
            (catalog.tools.len(), catalog.facts.len())
        };
        assert_eq!(list(vec!["n".repeat(4_097), "n".repeat(4_096)]), (1, 1));
        let many = |from: usize| (from..from + 2_000).map(|n| format!("{n:04096}")).collect();
        assert_eq!(list(many(0)), (1_024, 1_024));
        assert_eq!(list(many(0)), (1_024, 1_024));
        catalog.forget();
        catalog.learn(serde_json::from_str(r#"{"tools":[{"name":"a"}]}"#).unwrap());
        assert_eq!(catalog.tools.len(), 1);
    }

    #[test]
    fn a_tool_has_an_output_schema_unless_it_was_listed_without() {
        let mut catalog = Catalog::default();
        assert!(catalog.may_have_output_schema("plain"));
        let list = r#"{"tools":[{"name":"plain","inputSchema":{}},{"name":"typed","outputSchema":{"type":"object"}},
            {"name":"null","outputSchema":null},{"no":"name"},7]}"#;
        catalog.learn(serde_json::from_str(list).unwrap());
        let said =
            ["plain", "typed", "null", "other"].map(|tool| catalog.may_have_output_schema(tool));
        assert_eq!(said, [false, true, false, true]);
        catalog.learn(serde_json::from_str("7").unwrap());
        catalog.forget();
        assert!(catalog.may_have_output_schema("plain"));
    }
}
