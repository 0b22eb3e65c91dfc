//! Arguments that are repeated in headers (2026-07-28, transports, custom headers from tool parameters), as the
//! server's list of tools declares (`x-mcp-header`). A client over HTTP sends the headers itself; for any other client
//! they are added here.

mod found;
mod marks;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memmem;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::headers::{PARAM_PREFIX, in_header, repeats};
use marks::{MARK, Marks};
use mcp_elicit_core::wire::{CallFrame, Frame, FramePart};

/// The number of tools whose headers are remembered.
const TOOLS: usize = 10_000;
/// The total size of their names and marks, in bytes.
const BYTES: usize = 4 * 1024 * 1024;
/// The memory of a remembered tool beside its name and marks, in bytes.
const TOOL_BYTES: usize = 128;

/// The headers of each tool, as last listed.
#[derive(Default)]
pub(super) struct ParamHeaders {
    by_tool: HashMap<String, ListedMarks>,
    /// The total size of the names and marks, in bytes.
    bytes: usize,
    /// The number of lists that were begun.
    listing: u64,
}

/// The marks of a tool.
struct ListedMarks {
    marks: Marks,
    /// The list in which they were last seen.
    listing: u64,
}

impl ListedMarks {
    fn bytes_with(&self, name: &str) -> usize {
        TOOL_BYTES + name.len() + self.marks.bytes()
    }
}

/// The page of a list of tools that a response contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListPage {
    First,
    Later,
}

impl ListPage {
    /// Returns the page that this request asks for.
    pub(super) fn of(request: Option<Frame<'_>>) -> Self {
        let cursor = request.and_then(|request| request.member(FramePart::Params, "cursor"));
        match cursor {
            None | Some("null") => Self::First,
            Some(_) => Self::Later,
        }
    }
}

#[derive(Deserialize)]
struct ToolSchema<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(rename = "inputSchema", borrow, default)]
    input_schema: Option<&'a RawValue>,
}

/// Reads a list tool by tool, because all of it would take many times its size.
struct Tools<'p>(&'p mut ParamHeaders);

impl<'de> DeserializeSeed<'de> for Tools<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, list: D) -> Result<(), D::Error> {
        list.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Tools<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of tools")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(tool) = list.next_element::<&RawValue>()? {
            self.0.learn_tool(tool);
        }
        Ok(())
    }
}

impl ParamHeaders {
    /// Learns from the response to `tools/list`. What an earlier list said is kept until the new one is complete, or
    /// has no room beside it.
    pub(super) fn learn(&mut self, page: ListPage, frame: Frame<'_>) {
        if self.by_tool.is_empty()
            && memmem::find(frame.text().as_bytes(), MARK.as_bytes()).is_none()
        {
            return;
        }
        let Some(tools) = frame.member(FramePart::Result, "tools") else {
            return;
        };
        if page == ListPage::First {
            self.listing += 1;
        }
        // What comes before an error counts.
        let _ = Tools(self).deserialize(&mut serde_json::Deserializer::from_str(tools));
        let next = frame.member(FramePart::Result, "nextCursor");
        if next.is_none_or(|next| next == "null") {
            self.forget_earlier();
        }
    }

    /// Remembers the marks of a tool; none if there are too many.
    fn learn_tool(&mut self, tool: &RawValue) {
        let Ok(ToolSchema { name, input_schema }) = serde_json::from_str(tool.get()) else {
            return;
        };
        self.forget(&name);
        if name.len() > CallFrame::MAX_NAME
            || memmem::find(tool.get().as_bytes(), MARK.as_bytes()).is_none()
        {
            return;
        }
        let Some(marks) = input_schema.and_then(Marks::of) else {
            return;
        };
        let listed = ListedMarks {
            marks,
            listing: self.listing,
        };
        let bytes = listed.bytes_with(&name);
        if !self.has_room(bytes) {
            self.forget_earlier();
        }
        if self.has_room(bytes) {
            self.bytes += bytes;
            self.by_tool.insert(name.into_owned(), listed);
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.by_tool.len() < TOOLS && self.bytes + bytes <= BYTES
    }

    fn forget(&mut self, tool: &str) {
        if let Some(before) = self.by_tool.remove(tool) {
            self.bytes -= before.bytes_with(tool);
        }
    }

    /// Forgets the tools that the last list did not have.
    fn forget_earlier(&mut self) {
        let (last, bytes) = (self.listing, &mut self.bytes);
        self.by_tool.retain(|name, listed| {
            let stays = listed.listing == last;
            if !stays {
                *bytes -= listed.bytes_with(name);
            }
            stays
        });
    }

    /// Returns the headers of the tool that this request calls.
    fn marked_in(&self, frame: Frame<'_>) -> Option<&[(Vec<String>, HeaderName)]> {
        let tool = frame.text_member(FramePart::Params, "name")?;
        Some(self.by_tool.get(&*tool)?.marks.all())
    }

    /// Adds the headers that this call lacks.
    pub(super) fn complete(&self, frame: Frame<'_>, headers: &mut HeaderMap) {
        if self.by_tool.is_empty() {
            return;
        }
        let Some(marked) = self.marked_in(frame) else {
            return;
        };
        let paths = marked.iter().map(|(path, _)| path.as_slice());
        let texts = found::at_paths(arguments_of(frame), paths);
        for ((_, name), text) in marked.iter().zip(texts) {
            let Some(text) = text else {
                continue;
            };
            if let Ok(value) = HeaderValue::from_str(&in_header(&text))
                && !headers.contains_key(name)
            {
                // Fails only for more headers than a request can have.
                let _ = headers.try_insert(name, value);
            }
        }
    }
}

/// Removes the headers that a client sent beside its call and that do not repeat their argument. The server might act
/// on them, and neither a rule nor a person has seen them. If its tools are known, the server has declared the
/// argument; otherwise it is assumed to be the one of that name. All of them are removed if there are more than a tool's
/// marks that are read.
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
    if names.len() > Marks::MOST {
        for name in names {
            headers.remove(&name);
        }
        return;
    }
    let frame = frame();
    let marked = frame.and_then(|frame| known.marked_in(frame));
    let arguments = frame.map_or("null", arguments_of);
    let values = match marked {
        Some(marked) => {
            let paths = marked.iter().map(|(path, _)| path.as_slice());
            let texts = found::at_paths(arguments, paths);
            let texts = marked.iter().zip(texts);
            let mut by_name: HashMap<&HeaderName, Vec<_>> = HashMap::new();
            for ((_, header), text) in texts {
                by_name.entry(header).or_default().push(text);
            }
            let of = |name| by_name.remove(name).unwrap_or_default();
            names.iter().map(of).collect()
        }
        None => values_by_letters(arguments, &names),
    };
    for (name, values) in names.into_iter().zip(values) {
        let mut given = headers.get_all(&name).iter();
        // With two, another reader might use the other.
        let only = given.next().filter(|_| given.next().is_none());
        let repeats_all = |header| {
            let mut texts = values.iter();
            texts.all(|text| text.as_ref().is_some_and(|text| repeats(header, text)))
        };
        if values.is_empty() || !only.is_some_and(repeats_all) {
            headers.remove(&name);
        }
    }
}

/// Returns the text of a call's arguments; `null` if there are none.
fn arguments_of(frame: Frame<'_>) -> &str {
    let arguments = frame.member(FramePart::Params, "arguments");
    arguments.unwrap_or("null")
}

/// Returns the values that these headers of an unknown tool may repeat.
fn values_by_letters(arguments: &str, names: &[HeaderName]) -> found::FoundValues {
    let mut places = HashMap::new();
    for name in names {
        let next = places.len();
        places.entry(meant(name)).or_insert(next);
    }
    let found = found::by_letters(arguments, &places);
    let of = |name| found[places[&meant(name)]].clone();
    names.iter().map(of).collect()
}

/// Returns the letters of the argument that a header repeats.
fn meant(header: &HeaderName) -> String {
    letters(&header.as_str()[PARAM_PREFIX.len()..])
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

#[cfg(test)]
mod tests {
    use mcp_elicit_core::wire::FrameIndex;

    use super::*;

    fn completed(params: &ParamHeaders, frame: &str, mut headers: HeaderMap) -> HeaderMap {
        let index = FrameIndex::at(frame.as_bytes()).unwrap();
        params.complete(Frame::of_text(frame, &index), &mut headers);
        headers
    }

    fn listed(params: &mut ParamHeaders, page: ListPage, tools: &[Value], next: Option<&str>) {
        let result = serde_json::json!({"tools": tools, "nextCursor": next});
        let list = serde_json::json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string();
        let index = FrameIndex::at(list.as_bytes()).unwrap();
        params.learn(page, Frame::of_text(&list, &index));
    }

    fn tool(name: &str, marked: &[String]) -> Value {
        let mark = |name: &String| (name.clone(), serde_json::json!({MARK: name}));
        let properties: serde_json::Map<_, _> = marked.iter().map(mark).collect();
        serde_json::json!({"name": name, "inputSchema": {"properties": properties}})
    }

    #[test]
    fn the_names_and_marks_of_listed_tools_are_bounded_together() {
        let mut params = ParamHeaders::default();
        let one = ["a".to_owned()];
        let tools: Vec<_> = (0..TOOLS + 5).map(|n| tool(&n.to_string(), &one)).collect();
        listed(&mut params, ListPage::First, &tools, None);
        assert_eq!(params.by_tool.len(), TOOLS);
        let (bytes, page) = (params.bytes, |from: usize| {
            let long = |n| tool(&format!("{n:04096}"), &one);
            (from..from + 300).map(long).collect::<Vec<_>>()
        });
        listed(&mut params, ListPage::First, &tools, None);
        assert_eq!(params.bytes, bytes, "what is listed again counts once");
        for n in 0..6 {
            listed(&mut params, ListPage::Later, &page(n * 300), Some("more"));
            assert!(params.bytes <= BYTES, "{}", params.bytes);
        }
        listed(&mut params, ListPage::First, &page(0), Some("more"));
        for n in 1..6 {
            listed(&mut params, ListPage::Later, &page(n * 300), Some("more"));
        }
        assert!(params.bytes <= BYTES && params.bytes > BYTES - 5_000);
        let longer = tool(&"n".repeat(CallFrame::MAX_NAME + 1), &one);
        listed(&mut params, ListPage::First, &[longer], None);
        assert_eq!((params.by_tool.len(), params.bytes), (0, 0));
    }

    /// A client may call a tool of a later page while the list is read again.
    #[test]
    fn a_list_replaces_the_one_before_when_it_is_complete() {
        let mut params = ParamHeaders::default();
        let marked = |name: &str| tool(name, &["a".to_owned()]);
        let names = |params: &ParamHeaders| {
            let mut names: Vec<_> = params.by_tool.keys().cloned().collect();
            names.sort();
            names.concat()
        };
        listed(&mut params, ListPage::First, &[marked("a")], Some("2"));
        listed(
            &mut params,
            ListPage::Later,
            &[marked("b"), marked("c")],
            None,
        );
        assert_eq!(names(&params), "abc");
        listed(&mut params, ListPage::First, &[marked("a")], Some("2"));
        assert_eq!(names(&params), "abc");
        listed(&mut params, ListPage::Later, &[marked("b")], None);
        assert_eq!(names(&params), "ab");
        listed(&mut params, ListPage::First, &[tool("a", &[])], Some("2"));
        assert_eq!(names(&params), "b", "it has no marks any more");
    }

    #[test]
    fn a_tool_with_too_many_marks_is_not_remembered() {
        let mut params = ParamHeaders::default();
        let many = |count: usize| (0..count).map(|n| format!("m{n}")).collect::<Vec<_>>();
        listed(
            &mut params,
            ListPage::First,
            &[tool("t", &many(Marks::MOST))],
            None,
        );
        assert_eq!(params.by_tool["t"].marks.all().len(), Marks::MOST);
        listed(
            &mut params,
            ListPage::First,
            &[tool("t", &many(Marks::MOST + 1))],
            None,
        );
        assert!(params.by_tool.is_empty());
    }

    #[test]
    fn the_first_page_is_the_one_without_a_cursor() {
        for (params, page) in [
            ("{}", ListPage::First),
            (r#"{"cursor":null}"#, ListPage::First),
            (r#"{"cursor":"2"}"#, ListPage::Later),
        ] {
            let list =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#);
            let index = FrameIndex::at(list.as_bytes()).unwrap();
            assert_eq!(
                ListPage::of(Some(Frame::of_text(&list, &index))),
                page,
                "{params}"
            );
        }
        assert_eq!(ListPage::of(None), ListPage::First);
    }

    #[test]
    fn what_a_tool_marks_is_repeated() {
        let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"run","inputSchema":{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "at":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry"}}},
            "bad":{"type":"string","x-mcp-header":"a b"},"other":{"type":"string"}}}}]}}"#;
        let mut params = ParamHeaders::default();
        let index = FrameIndex::at(list.as_bytes()).unwrap();
        params.learn(ListPage::First, Frame::of_text(list, &index));
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
        known.learn(ListPage::First, Frame::of_text(list, &listed));
        assert_eq!(
            left(&known, Some(Frame::of_text(call, &index))),
            ["mcp-param-n", "traceparent"]
        );
    }

    /// Each of them would be compared with all members of the arguments.
    #[test]
    fn more_headers_than_a_tool_can_mark_are_not_compared() {
        for (count, left) in [(Marks::MOST, Marks::MOST + 1), (Marks::MOST + 1, 1)] {
            let names: Vec<_> = (0..count).map(|n| format!("p{n}")).collect();
            let arguments: Vec<_> = names.iter().map(|name| format!("\"{name}\":1")).collect();
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"run","arguments":{{{}}}}}}}"#,
                arguments.join(",")
            );
            let index = FrameIndex::at(call.as_bytes()).unwrap();
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", HeaderValue::from_static("00"));
            for name in &names {
                let name = HeaderName::try_from(format!("{PARAM_PREFIX}{name}")).unwrap();
                headers.insert(name, HeaderValue::from_static("1"));
            }
            let frame = || Some(Frame::of_text(&call, &index));
            remove_unrepeated(&ParamHeaders::default(), frame, &mut headers);
            assert_eq!(headers.len(), left);
        }
    }

    /// Only what headers repeat is kept of them.
    #[test]
    fn the_headers_of_large_arguments_are_sent_and_compared() {
        let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"run","inputSchema":{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"}}}}]}}"#;
        let mut known = ParamHeaders::default();
        let listed = FrameIndex::at(list.as_bytes()).unwrap();
        known.learn(ListPage::First, Frame::of_text(list, &listed));
        for size in [1_000, 256 * 1024, 5 * 1024 * 1024] {
            let fill = "x".repeat(size);
            for arguments in [
                format!(r#"{{"region":"eu","x":"{fill}"}}"#),
                format!(r#"{{"x":["{fill}"],"region":"eu"}}"#),
            ] {
                let call = format!(
                    r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"run","arguments":{arguments}}}}}"#
                );
                let completed = completed(&known, &call, HeaderMap::new());
                assert_eq!(completed["mcp-param-region"], "eu", "{size}");
                for known in [&known, &ParamHeaders::default()] {
                    let index = FrameIndex::at(call.as_bytes()).unwrap();
                    let name = HeaderName::from_static("mcp-param-region");
                    for (value, is_left) in [("eu", true), ("us", false)] {
                        let value = HeaderValue::from_static(value);
                        let mut headers = HeaderMap::from_iter([(name.clone(), value)]);
                        let frame = || Some(Frame::of_text(&call, &index));
                        remove_unrepeated(known, frame, &mut headers);
                        assert_eq!(headers.contains_key(&name), is_left, "{size}");
                    }
                }
            }
        }
    }
}
