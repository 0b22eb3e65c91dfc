//! Arguments that headers repeat (2026-07-28, transports, custom headers from tool parameters): which those are, the server
//! says in its list of tools (`x-mcp-header`). A client over HTTP sends the headers itself; for any other it is done here.

use std::collections::HashMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memmem;
use serde_json::{Map, Value};

use crate::headers::in_header;
use mcp_elicit_core::wire::{Frame, FramePart};

const MARK: &str = "x-mcp-header";

/// The headers of each tool, as last listed.
#[derive(Default)]
pub(super) struct ParamHeaders {
    by_tool: HashMap<String, Vec<(Vec<String>, HeaderName)>>,
}

impl ParamHeaders {
    /// Learns from the answer to `tools/list`.
    pub(super) fn learn(&mut self, frame: Frame<'_>) {
        if self.by_tool.is_empty()
            && memmem::find(frame.text().as_bytes(), MARK.as_bytes()).is_none()
        {
            return;
        }
        let Some(result) = frame.part(FramePart::Result) else {
            return;
        };
        let result: Value = serde_json::from_str(result).unwrap_or_default();
        for tool in result["tools"].as_array().into_iter().flatten() {
            let Some(name) = tool["name"].as_str() else {
                continue;
            };
            let mut found = Vec::new();
            marked(&tool["inputSchema"], &mut Vec::new(), &mut found);
            if found.is_empty() {
                self.by_tool.remove(name);
            } else {
                self.by_tool.insert(name.to_owned(), found);
            }
        }
    }

    /// Adds what this call lacks.
    pub(super) fn complete(&self, frame: Frame<'_>, headers: &mut HeaderMap) {
        if self.by_tool.is_empty() {
            return;
        }
        let member = |name| frame.member(FramePart::Params, name);
        let tool = member("name").and_then(|name| serde_json::from_str::<String>(name).ok());
        let Some(marked) = tool.and_then(|tool| self.by_tool.get(&tool)) else {
            return;
        };
        let arguments = member("arguments").and_then(|all| serde_json::from_str(all).ok());
        let arguments: Value = arguments.unwrap_or_default();
        for (path, name) in marked {
            let value = path
                .iter()
                .try_fold(&arguments, |value, step| value.get(step));
            let text = match value {
                Some(Value::String(text)) => text.clone(),
                Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
                _ => continue,
            };
            if let Ok(value) = HeaderValue::from_str(&in_header(&text)) {
                headers.entry(name).or_insert(value);
            }
        }
    }
}

/// The marked properties, each with the way to it.
fn marked(schema: &Value, way: &mut Vec<String>, found: &mut Vec<(Vec<String>, HeaderName)>) {
    let nothing = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&nothing);
    for (name, property) in properties {
        way.push(name.clone());
        if let Some(header) = property[MARK].as_str().filter(|header| !header.is_empty())
            && let Ok(header) = HeaderName::try_from(format!("mcp-param-{header}"))
        {
            found.push((way.clone(), header));
        }
        marked(property, way, found);
        way.pop();
    }
}

#[cfg(test)]
mod tests {
    use mcp_elicit_core::wire::FrameIndex;

    use super::*;

    fn completed(params: &ParamHeaders, frame: &str, mut headers: HeaderMap) -> HeaderMap {
        let index = FrameIndex::at(frame.as_bytes()).unwrap();
        params.complete(Frame::of_text(frame, &index), &mut headers);
        headers
    }

    #[test]
    fn what_a_tool_marks_is_repeated() {
        let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"run","inputSchema":{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "at":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry"}}},
            "bad":{"type":"string","x-mcp-header":"a b"},"other":{"type":"string"}}}}]}}"#;
        let mut params = ParamHeaders::default();
        let index = FrameIndex::at(list.as_bytes()).unwrap();
        params.learn(Frame::of_text(list, &index));
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run","arguments":{"region":"zürich","at":{"dry":true},"bad":"x","other":"y"}}}"#;
        let headers = completed(&params, call, HeaderMap::new());
        assert_eq!(headers["mcp-param-region"], "=?base64?esO8cmljaA==?=");
        assert_eq!(headers["mcp-param-dry"], "true");
        assert_eq!(headers.len(), 2);
        let own = HeaderMap::from_iter([(
            HeaderName::from_static("mcp-param-region"),
            HeaderValue::from_static("own"),
        )]);
        assert_eq!(completed(&params, call, own)["mcp-param-region"], "own");
        let none = call.replace("\"zürich\"", "null").replace("run", "walk");
        assert!(completed(&params, &none, HeaderMap::new()).is_empty());
    }
}
