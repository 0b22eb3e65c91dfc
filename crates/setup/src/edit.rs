//! Changes of a file: what is intended, as a change of values, and how it is written, as ranges of bytes. Both are made
//! independently of each other, so that one checks the other.

use std::fmt::Write as _;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::parse::FileFormat;
use crate::tree::{Data, Node, NodeStyle, NodeValue, PathStep};

/// One replacement in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

/// One change within the entry of a server. The names are those before any change of the same list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Op {
    /// Replaces the value of a member.
    Set {
        at: Vec<PathStep>,
        member: String,
        new: WrittenValue,
    },
    /// Renames a member; its value stays. `raw` is the new name as it stood in the file.
    Rename {
        at: Vec<PathStep>,
        member: String,
        new: String,
        raw: Option<String>,
    },
    /// Adds a member after the value of another one.
    AddAfter {
        at: Vec<PathStep>,
        after: String,
        member: String,
        new: WrittenValue,
    },
    /// Removes a member that follows another one.
    Remove { at: Vec<PathStep>, member: String },
    /// Adds texts at the beginning of a list.
    Prepend {
        at: Vec<PathStep>,
        member: String,
        texts: Vec<String>,
    },
    /// Removes texts from the beginning of a list.
    Unprepend {
        at: Vec<PathStep>,
        member: String,
        texts: Vec<String>,
    },
}

impl Op {
    /// Returns the changed member: its map, and its name before the change.
    pub(crate) fn target(&self) -> (&[PathStep], &str) {
        match self {
            Self::Set { at, member, .. }
            | Self::Rename { at, member, .. }
            | Self::AddAfter { at, member, .. }
            | Self::Remove { at, member }
            | Self::Prepend { at, member, .. }
            | Self::Unprepend { at, member, .. } => (at, member),
        }
    }
}

/// A value that is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WrittenValue {
    Text(String),
    /// A number, as it is written.
    Number(u64),
    Texts(Vec<String>),
    /// A text as it stood in the file, with its value.
    Source {
        raw: String,
        text: String,
    },
    /// A number as it stood in the file.
    SourceNumber {
        raw: String,
    },
}

impl WrittenValue {
    fn data(&self) -> Data {
        match self {
            Self::Text(text) | Self::Source { text, .. } => Data::Text(text.clone()),
            Self::Number(number) => Data::Other(number.to_string()),
            Self::SourceNumber { raw } => Data::Other(raw.clone()),
            Self::Texts(texts) => Data::List(texts.iter().cloned().map(Data::Text).collect()),
        }
    }

    fn spell(&self) -> String {
        match self {
            Self::Text(text) => spell(text),
            Self::Number(number) => number.to_string(),
            Self::Source { raw, .. } | Self::SourceNumber { raw } => raw.clone(),
            Self::Texts(texts) => {
                let texts: Vec<_> = texts.iter().map(|text| spell(text)).collect();
                format!("[{}]", texts.join(", "))
            }
        }
    }
}

/// Spells a text in double quotes, which mean the same in JSON, TOML and YAML.
pub(crate) fn spell(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.chars().fold(String::new(), |mut out, c| {
        if matches!(
            c,
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}'
        ) {
            // Writing to a text cannot fail.
            let _written = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
        out
    })
}

fn spell_key(format: FileFormat, key: &str) -> String {
    let is_bare = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && key.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_bare && format != FileFormat::Json {
        return key.to_owned();
    }
    spell(key)
}

/// Applies edits that do not overlap; returns `None` if they do.
pub(crate) fn apply(text: &str, edits: &[Edit]) -> Option<String> {
    let mut sorted: Vec<&Edit> = edits.iter().collect();
    // Stable: of two insertions at one byte, the first stays the first.
    sorted.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut out = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for edit in sorted {
        out += text.get(at..edit.range.start)?;
        out += &edit.text;
        at = edit.range.end;
    }
    out += text.get(at..)?;
    Some(out)
}

/// A file in which changes are written.
pub(crate) struct FileEditor<'a> {
    pub(crate) text: &'a str,
    pub(crate) format: FileFormat,
}

impl FileEditor<'_> {
    /// Returns the edits of a change within this entry, or why it cannot be written.
    pub(crate) fn edits(&self, entry: &Node, op: &Op) -> Result<Vec<Edit>, String> {
        let map = |at: &[PathStep]| {
            entry
                .at(at)
                .ok_or_else(|| "a part of it is gone".to_owned())
        };
        Ok(match op {
            Op::Set { at, member, new } => {
                let node = map(at)?.get(member).ok_or_else(|| gone(member))?;
                vec![Edit {
                    range: node.range.clone(),
                    text: new.spell(),
                }]
            }
            Op::Rename {
                at,
                member,
                new,
                raw,
            } => {
                let found = map(at)?.member(member).ok_or_else(|| gone(member))?;
                let text = raw.clone().unwrap_or_else(|| spell_key(self.format, new));
                vec![Edit {
                    range: found.key_range.clone(),
                    text,
                }]
            }
            Op::AddAfter {
                at,
                after,
                member,
                new,
            } => {
                vec![self.add_after(map(at)?, after, member, new)?]
            }
            Op::Remove { at, member } => vec![self.remove(map(at)?, member)?],
            Op::Prepend { at, member, texts } => {
                let list = map(at)?.get(member).ok_or_else(|| gone(member))?;
                vec![self.prepend(list, texts)?]
            }
            Op::Unprepend { at, member, texts } => {
                let list = map(at)?.get(member).ok_or_else(|| gone(member))?;
                vec![self.unprepend(list, texts)?]
            }
        })
    }

    fn add_after(
        &self,
        map: &Node,
        after: &str,
        member: &str,
        new: &WrittenValue,
    ) -> Result<Edit, String> {
        let found = map.member(after).ok_or_else(|| gone(after))?;
        let NodeValue::Map(_, style) = &map.value else {
            return Err("a part of it is gone".to_owned());
        };
        let (own_line, indent) = self.indent(found.key_range.start);
        let eol = self.end_of_line();
        let (key, end) = (found.key_range.end, found.value.range.end);
        let colon = self
            .text
            .get(key..found.value.range.start)
            .unwrap_or_default();
        let is_plain = colon.trim_matches([' ', '\t']).len() == 1;
        let colon = match self.format {
            _ if is_plain => colon,
            FileFormat::Toml => " = ",
            FileFormat::Json | FileFormat::Yaml => ": ",
        };
        let before = match style {
            NodeStyle::Block => format!("{eol}{indent}"),
            NodeStyle::Flow if own_line => format!(",{eol}{indent}"),
            NodeStyle::Flow if colon == ":" => ",".to_owned(),
            NodeStyle::Flow => ", ".to_owned(),
            NodeStyle::Dotted => return Err(format!("`{after}` is written with a dotted key")),
        };
        let text = format!(
            "{before}{}{colon}{}",
            spell_key(self.format, member),
            new.spell()
        );
        Ok(Edit {
            range: end..end,
            text,
        })
    }

    fn remove(&self, map: &Node, member: &str) -> Result<Edit, String> {
        let found = map.member(member).ok_or_else(|| gone(member))?;
        let ends = map.members().iter().map(|one| one.value.range.end);
        let previous = ends.filter(|end| *end <= found.key_range.start).max();
        let start = previous.ok_or_else(|| format!("`{member}` was moved"))?;
        let between = self
            .text
            .get(start..found.value.range.start)
            .unwrap_or_default();
        if between.contains('#') || between.contains("//") || between.contains("/*") {
            return Err(format!("a comment stands before `{member}`"));
        }
        Ok(Edit {
            range: start..found.value.range.end,
            text: String::new(),
        })
    }

    fn prepend(&self, list: &Node, texts: &[String]) -> Result<Edit, String> {
        let NodeValue::List(nodes, style) = &list.value else {
            return Err("its arguments are no list".to_owned());
        };
        let spelled: Vec<_> = texts.iter().map(|text| spell(text)).collect();
        let Some(first) = nodes.first() else {
            if *style != NodeStyle::Flow {
                return Err("its arguments are no list".to_owned());
            }
            let at = list.range.start + 1;
            return Ok(Edit {
                range: at..at,
                text: spelled.join(", "),
            });
        };
        let start = first.range.start;
        if *style == NodeStyle::Block {
            let dash = self.dash(start)?;
            let (_, indent) = self.indent(dash);
            let eol = self.end_of_line();
            let lines: Vec<_> = spelled
                .iter()
                .map(|one| ["- ", one, eol, &indent].concat())
                .collect();
            return Ok(Edit {
                range: dash..dash,
                text: lines.concat(),
            });
        }
        let (own_line, indent) = self.indent(start);
        let sep = if own_line {
            format!(",{}{indent}", self.end_of_line())
        } else {
            ", ".to_owned()
        };
        Ok(Edit {
            range: start..start,
            text: spelled.join(", ") + &sep,
        })
    }

    fn unprepend(&self, list: &Node, texts: &[String]) -> Result<Edit, String> {
        let nodes = list.elements().unwrap_or_default();
        let ours = nodes.iter().take(texts.len()).map(Node::text);
        if !ours.eq(texts.iter().map(|text| Some(text.as_str()))) {
            return Err("its arguments were changed".to_owned());
        }
        let is_block = matches!(list.value, NodeValue::List(_, NodeStyle::Block));
        let first_byte = |node: &Node| {
            if is_block {
                self.dash(node.range.start)
            } else {
                Ok(node.range.start)
            }
        };
        let (Some(first), Some(ending)) = (nodes.first(), nodes.get(texts.len().wrapping_sub(1)))
        else {
            return Err("its arguments were changed".to_owned());
        };
        let (start, end) = match nodes.get(texts.len()) {
            Some(next) => (first_byte(first)?, first_byte(next)?),
            None if is_block => {
                return Ok(Edit {
                    range: first_byte(first)?..ending.range.end,
                    text: "[]".to_owned(),
                });
            }
            None => (first.range.start, ending.range.end),
        };
        let between = self.text.get(ending.range.end..end).unwrap_or_default();
        if between.contains('#') || between.contains("//") || between.contains("/*") {
            return Err("a comment stands between its arguments".to_owned());
        }
        Ok(Edit {
            range: start..end,
            text: String::new(),
        })
    }

    /// Returns the dash before an element of a block list.
    fn dash(&self, element: usize) -> Result<usize, String> {
        let before = self.text.get(..element).unwrap_or_default().trim_end();
        match before.strip_suffix('-') {
            Some(rest) => Ok(rest.len()),
            None => Err("its arguments are written in an unusual form".to_owned()),
        }
    }

    /// Returns `true` if only white space stands before this byte on its line, and the indentation of a line below it.
    fn indent(&self, at: usize) -> (bool, String) {
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.rfind('\n').map_or(before, |end| &before[end + 1..]);
        if line.trim_matches([' ', '\t']).is_empty() {
            return (true, line.to_owned());
        }
        (false, " ".repeat(line.chars().count()))
    }

    fn end_of_line(&self) -> &'static str {
        match self.text.find('\n') {
            Some(at) if self.text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        }
    }
}

fn gone(member: &str) -> String {
    format!("its member `{member}` is gone")
}

/// Makes the same changes in values. Returns `None` if they do not fit.
pub(crate) fn apply_to_data(entry: &mut Data, ops: &[Op]) -> Option<()> {
    let mut renames: Vec<_> = Vec::new();
    for op in ops {
        match op {
            Op::Set { at, member, new }
            | Op::AddAfter {
                at, member, new, ..
            } => {
                entry.at_mut(at)?.set(member, new.data()).then_some(())?;
            }
            Op::Remove { at, member } => {
                entry.at_mut(at)?.remove(member)?;
            }
            Op::Prepend { at, member, texts } => {
                let Data::List(list) = member_mut(entry, at, member)? else {
                    return None;
                };
                list.splice(0..0, texts.iter().cloned().map(Data::Text));
            }
            Op::Unprepend { at, member, texts } => {
                let Data::List(list) = member_mut(entry, at, member)? else {
                    return None;
                };
                list.drain(..texts.len().min(list.len()));
            }
            Op::Rename {
                at, member, new, ..
            } => renames.push((at, member, new)),
        }
    }
    // The names of changes are those before them: the innermost are renamed first.
    renames.sort_by_key(|(at, ..)| std::cmp::Reverse(at.len()));
    for (at, member, new) in renames {
        let map = entry.at_mut(at)?;
        let value = map.remove(member)?;
        map.set(new, value).then_some(())?;
    }
    Some(())
}

fn member_mut<'a>(entry: &'a mut Data, at: &[PathStep], member: &str) -> Option<&'a mut Data> {
    entry
        .at_mut(at)?
        .at_mut(&[PathStep::Key(member.to_owned())])
}

/// Returns the changes that undo these, as names are after them. `text` is the file before them.
pub(crate) fn inverse(text: &str, entry: &Node, ops: &[Op]) -> Option<Vec<Op>> {
    let renamed = |at: &[PathStep], member: &str| {
        let found = ops.iter().find_map(|op| match op {
            Op::Rename {
                at: there,
                member: old,
                new,
                ..
            } if there == at && old == member => Some(new.clone()),
            _ => None,
        });
        found.unwrap_or_else(|| member.to_owned())
    };
    let path = |at: &[PathStep]| -> Vec<PathStep> {
        let step = |(depth, step): (usize, &PathStep)| match step {
            PathStep::Key(key) => PathStep::Key(renamed(&at[..depth], key)),
            PathStep::Index(index) => PathStep::Index(*index),
        };
        at.iter().enumerate().map(step).collect()
    };
    let source = |at: &[PathStep], member: &str| {
        let node = entry.at(at)?.get(member)?;
        let raw = text.get(node.range.clone())?.to_owned();
        Some(match &node.value {
            NodeValue::Text(text) => WrittenValue::Source {
                raw,
                text: text.clone(),
            },
            _ => WrittenValue::SourceNumber { raw },
        })
    };
    let inverse = |op: &Op| {
        Some(match op {
            Op::Set { at, member, .. } => Op::Set {
                at: path(at),
                member: renamed(at, member),
                new: source(at, member)?,
            },
            Op::Rename {
                at, member, new, ..
            } => {
                let range = entry.at(at)?.member(member)?.key_range.clone();
                let raw = Some(text.get(range)?.to_owned());
                Op::Rename {
                    at: path(at),
                    member: new.clone(),
                    new: member.clone(),
                    raw,
                }
            }
            Op::AddAfter { at, member, .. } => Op::Remove {
                at: path(at),
                member: member.clone(),
            },
            Op::Prepend { at, member, texts } => Op::Unprepend {
                at: path(at),
                member: renamed(at, member),
                texts: texts.clone(),
            },
            Op::Remove { .. } | Op::Unprepend { .. } => return None,
        })
    };
    ops.iter().map(inverse).collect()
}
