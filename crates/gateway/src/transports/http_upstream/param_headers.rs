//! Arguments that are repeated in headers (2026-07-28, transports, custom headers from tool parameters), as the
//! server's list of tools declares (`x-mcp-header`). A client over HTTP sends the headers itself; for any other client
//! they are added here.

use std::collections::HashMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memmem;
use serde_json::{Map, Value};

use crate::headers::{PARAM_PREFIX, in_header, repeats};
use mcp_elicit_core::wire::{Frame, FramePart};

const MARK: &str = "x-mcp-header";

/// The headers of each tool, as last listed.
#[derive(Default)]
pub(super) struct ParamHeaders {
    by_tool: HashMap<String, Vec<(Vec<String>, HeaderName)>>,
}

impl ParamHeaders {
    /// Learns from the response to `tools/list`.
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

    /// Returns the headers of the tool that this request calls.
    fn marked_in(&self, frame: Frame<'_>) -> Option<&Vec<(Vec<String>, HeaderName)>> {
        let tool = frame.text_member(FramePart::Params, "name")?;
        self.by_tool.get(&*tool)
    }

    /// Adds the headers that this call lacks.
    pub(super) fn complete(&self, frame: Frame<'_>, headers: &mut HeaderMap) {
        if self.by_tool.is_empty() {
            return;
        }
        let Some(marked) = self.marked_in(frame) else {
            return;
        };
        let arguments = arguments_of(frame);
        for (path, name) in marked {
            let Some(text) = at(&arguments, path).and_then(text_of) else {
                continue;
            };
            if let Ok(value) = HeaderValue::from_str(&in_header(&text)) {
                headers.entry(name).or_insert(value);
            }
        }
    }
}

/// Removes the headers that a client sent beside its call and that do not repeat their argument. The server might act
/// on them, and neither a rule nor a person has seen them. If its tools are known, the server has declared the
/// argument; otherwise it is assumed to be the one of that name.
pub(super) fn remove_unrepeated<'f>(
    known: &ParamHeaders,
    frame: impl FnOnce() -> Option<Frame<'f>>,
    headers: &mut HeaderMap,
) {
    let is_param = |name: &HeaderName| name.as_str().starts_with(PARAM_PREFIX);
    let names: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_param(name))
        .cloned()
        .collect();
    if names.is_empty() {
        return;
    }
    let frame = frame();
    let marked = frame.and_then(|frame| known.marked_in(frame));
    let arguments = frame.map(arguments_of).unwrap_or_default();
    for name in names {
        let mut texts = Vec::new();
        match marked {
            Some(marked) => {
                let paths = marked.iter().filter(|(_, header)| *header == name);
                texts.extend(paths.map(|(path, _)| at(&arguments, path).and_then(text_of)));
            }
            None => collect_named(
                &arguments,
                &letters(&name.as_str()[PARAM_PREFIX.len()..]),
                &mut texts,
            ),
        }
        let mut values = headers.get_all(&name).iter();
        // With two, another reader might use the other.
        let only = values.next().filter(|_| values.next().is_none());
        let repeats_all = |value| {
            let mut texts = texts.iter();
            texts.all(|text| text.as_ref().is_some_and(|text| repeats(value, text)))
        };
        if texts.is_empty() || !only.is_some_and(repeats_all) {
            headers.remove(&name);
        }
    }
}

/// Returns the arguments of a call; `null` if there are none.
fn arguments_of(frame: Frame<'_>) -> Value {
    let arguments = frame.value_member(FramePart::Params, "arguments");
    arguments.unwrap_or_default()
}

/// Returns the value at the end of this path.
fn at<'v>(arguments: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter()
        .try_fold(arguments, |value, step| value.get(step))
}

/// Collects the values of the members with these letters in their names, in header form; `None` for one that a header
/// cannot repeat.
fn collect_named(value: &Value, wanted: &str, texts: &mut Vec<Option<String>>) {
    let Value::Object(members) = value else {
        return;
    };
    for (name, member) in members {
        if letters(name) == wanted {
            texts.push(text_of(member));
        }
        collect_named(member, wanted, texts);
    }
}

/// Returns the letters and digits of a name, in lower case.
fn letters(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Returns a value in header form, before its encoding.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Collects the marked properties, each with its path.
fn marked(schema: &Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, HeaderName)>) {
    let nothing = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&nothing);
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(header) = property[MARK].as_str().filter(|header| !header.is_empty())
            && let Ok(header) = HeaderName::try_from(format!("{PARAM_PREFIX}{header}"))
        {
            found.push((path.clone(), header));
        }
        marked(property, path, found);
        path.pop();
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

    #[test]
    fn a_header_that_does_not_repeat_its_argument_goes_no_further() {
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run","arguments":{"region":"zürich","at":{"dry":true,"n":3}}}}"#;
        let index = FrameIndex::at(call.as_bytes()).unwrap();
        let mut known = ParamHeaders::default();
        let left = |known: &ParamHeaders, frame: Option<Frame<'_>>| {
            let all = [
                ("mcp-param-region", "=?base64?esO8cmljaA==?="),
                ("mcp-param-dry", "true"),
                ("mcp-param-n", "3"),
                ("mcp-param-evil", "production"),
                ("mcp-param-other", "3"),
                ("mcp-param-two", "true"),
                ("mcp-param-two", "3"),
                ("traceparent", "00"),
            ];
            let mut headers = HeaderMap::new();
            for (name, value) in all {
                headers.append(name, HeaderValue::from_static(value));
            }
            remove_unrepeated(known, || frame, &mut headers);
            let mut names: Vec<_> = headers.keys().map(ToString::to_string).collect();
            names.sort();
            names
        };
        assert_eq!(
            left(&known, Some(Frame::of_text(call, &index))),
            [
                "mcp-param-dry",
                "mcp-param-n",
                "mcp-param-region",
                "traceparent"
            ]
        );
        assert_eq!(left(&known, None), ["traceparent"]);
        // If the server has declared the argument, no other is meant.
        let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"run","inputSchema":{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Dry"},"at":{"properties":{"n":{"x-mcp-header":"N"}}}}}}]}}"#;
        let listed = FrameIndex::at(list.as_bytes()).unwrap();
        known.learn(Frame::of_text(list, &listed));
        assert_eq!(
            left(&known, Some(Frame::of_text(call, &index))),
            ["mcp-param-n", "traceparent"]
        );
    }
}
