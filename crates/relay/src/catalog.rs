//! The server's tools, as far as its lists that passed by say.

use std::collections::HashMap;

use mcp_elicit_core::wire::members;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The number of tools that are remembered.
const TOOLS: usize = 10_000;

/// The tools that the server listed.
#[derive(Default)]
pub(crate) struct Catalog {
    /// By name, whether the tool has an output schema.
    tools: HashMap<String, bool>,
}

#[derive(Deserialize)]
struct Tool<'a> {
    name: String,
    #[serde(rename = "outputSchema", borrow, default)]
    output_schema: Option<&'a RawValue>,
}

impl Catalog {
    /// Takes in what a `tools/list` gave.
    pub(crate) fn learn(&mut self, result: &RawValue) {
        let tools = members::member(result, "tools");
        let tools =
            tools.and_then(|tools| serde_json::from_str::<Vec<&RawValue>>(tools.get()).ok());
        for tool in tools.unwrap_or_default() {
            if self.tools.len() >= TOOLS {
                return;
            }
            if let Ok(tool) = serde_json::from_str::<Tool<'_>>(tool.get()) {
                self.tools.insert(tool.name, tool.output_schema.is_some());
            }
        }
    }

    /// Forgets all tools: the server has others now.
    pub(crate) fn forget(&mut self) {
        self.tools.clear();
    }

    /// Returns `false` only for a tool that was listed without an output schema.
    pub(crate) fn may_have_output_schema(&self, tool: &str) -> bool {
        self.tools.get(tool).copied().unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
