//! YAML. The parser counts characters; ranges are bytes.

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

use super::{MAX_DEPTH, SyntaxError};
use crate::tree::{MapMember, Node, NodeStyle, NodeValue};

pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let mut reader = YamlReader {
        text,
        bytes: text.char_indices().map(|(at, _)| at).collect(),
        parser: Parser::new_from_str(text),
    };
    let mut root = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            _ if root.is_some() => {
                return Err(reader.error(span.start, "it has several documents"));
            }
            event => root = Some(reader.node(event, span, 0)?),
        }
    }
    let nothing = Node {
        range: text.len()..text.len(),
        value: NodeValue::Map(Vec::new(), NodeStyle::Block),
        is_shared: false,
    };
    Ok(match root {
        Some(root) if matches!(&root.value, NodeValue::Other(word) if is_null(word)) => nothing,
        Some(root) => root,
        None => nothing,
    })
}

struct YamlReader<'a> {
    text: &'a str,
    /// The byte of each character.
    bytes: Vec<usize>,
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
}

impl<'a> YamlReader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), SyntaxError> {
        match self.parser.next_event() {
            Some(Ok(found)) => Ok(found),
            Some(Err(error)) => Err(self.error(*error.marker(), error.info())),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn byte(&self, marker: Marker) -> usize {
        let at = self.bytes.get(marker.index()).copied();
        at.unwrap_or(self.text.len())
    }

    fn error(&self, marker: Marker, says: &str) -> SyntaxError {
        SyntaxError::at(self.text, self.byte(marker), says)
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(self.error(span.start, "it is nested too deeply"));
        }
        let (start, end) = (self.byte(span.start), self.byte(span.end));
        let end = quoted_end(self.text, start).unwrap_or(end);
        let scalar = |value, is_shared| Node {
            range: start..end,
            value,
            is_shared,
        };
        Ok(match event {
            Event::Alias(id) => scalar(NodeValue::Other(format!("*{id}")), true),
            Event::Scalar(text, style, anchor, tag) => {
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let value = if style == ScalarStyle::Plain && is_other(&text) {
                    NodeValue::Other(text.into_owned())
                } else {
                    NodeValue::Text(text.into_owned())
                };
                let mut node = scalar(value, anchor != 0 || tag.is_some());
                // The parser begins a block of text after the line of its sign.
                if is_block {
                    let before = self.text.get(..=start).unwrap_or_default();
                    node.range.start = before.rfind(['|', '>']).unwrap_or(start);
                }
                node
            }
            Event::SequenceStart(anchor, tag) => {
                let mut nodes = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if event == Event::SequenceEnd {
                        let last = nodes.last().map(|node: &Node| node.range.end);
                        let (range, style) = self.collection(start, last, span);
                        break Node {
                            range,
                            value: NodeValue::List(nodes, style),
                            is_shared: anchor != 0 || tag.is_some(),
                        };
                    }
                    nodes.push(self.node(event, span, depth + 1)?);
                }
            }
            Event::MappingStart(anchor, tag) => {
                let mut members = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if event == Event::MappingEnd {
                        let last = members.last().map(|one: &MapMember| one.value.range.end);
                        let (range, style) = self.collection(start, last, span);
                        break Node {
                            range,
                            value: NodeValue::Map(members, style),
                            is_shared: anchor != 0 || tag.is_some(),
                        };
                    }
                    members.push(self.member(event, span, depth + 1)?);
                }
            }
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd
            | Event::Nothing => return Err(self.error(span.start, "it ends too early")),
        })
    }

    fn member(
        &mut self,
        event: Event<'a>,
        span: Span,
        depth: usize,
    ) -> Result<MapMember, SyntaxError> {
        let name = self.node(event, span, depth)?;
        let Some(key) = name.word() else {
            return Err(self.error(span.start, "the name of a member is a list or a map"));
        };
        let key = key.to_owned();
        let (event, span) = self.next()?;
        let mut value = self.node(event, span, depth)?;
        value.is_shared |= name.is_shared;
        Ok(MapMember {
            key,
            key_range: name.range,
            value,
        })
    }

    /// Returns the range and the style. The parser ends a collection after the empty lines and comments that follow it.
    fn collection(
        &self,
        start: usize,
        last: Option<usize>,
        end: Span,
    ) -> (std::ops::Range<usize>, NodeStyle) {
        let last = last.unwrap_or(start).max(start);
        if matches!(self.text.as_bytes().get(start), Some(b'[' | b'{'))
            && self.byte(end.end) > start
        {
            let closed = bracket_end(self.text, last.max(start + 1));
            return (start..closed.unwrap_or(self.byte(end.end)), NodeStyle::Flow);
        }
        (start..last, NodeStyle::Block)
    }
}

/// Returns the end of a collection in brackets of which nothing but commas and comments is left.
fn bracket_end(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    loop {
        match bytes.get(at)? {
            b']' | b'}' => return Some(at + 1),
            b'#' => at += text.get(at..)?.find('\n')?,
            _ => at += 1,
        }
    }
}

/// Returns the end of a quoted scalar: the parser's own is behind the comment that follows it.
fn quoted_end(text: &str, start: usize) -> Option<usize> {
    let rest = text.as_bytes().get(start..)?;
    let quote = *rest.first().filter(|byte| matches!(byte, b'"' | b'\''))?;
    let mut at = 1;
    loop {
        match *rest.get(at)? {
            b'\\' if quote == b'"' => at += 2,
            byte if byte != quote => at += 1,
            _ if quote == b'\'' && rest.get(at + 1) == Some(&quote) => at += 2,
            _ => return Some(start + at + 1),
        }
    }
}

fn is_null(word: &str) -> bool {
    matches!(word, "" | "~" | "null" | "Null" | "NULL")
}

/// Returns `true` for a plain scalar that is no text, in YAML 1.2 or in 1.1, which many clients read.
fn is_other(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    is_null(word)
        || matches!(
            lower.as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "<<"
        )
        || is_number(&lower)
}

fn is_number(lower: &str) -> bool {
    let digits = lower.trim_start_matches(['-', '+']);
    let is_of = |rest: &str, radix| !rest.is_empty() && rest.chars().all(|c| c.is_digit(radix));
    matches!(digits, ".inf" | ".nan")
        || digits.parse::<f64>().is_ok()
            && digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || digits
            .strip_prefix("0x")
            .is_some_and(|rest| is_of(rest, 16))
        || digits.strip_prefix("0o").is_some_and(|rest| is_of(rest, 8))
}
