//! TOML.

use toml_edit::{Document, InlineTable, Item, Key, Table, Value as TomlValue};

use super::SyntaxError;
use crate::tree::{MapMember, Node, NodeStyle, NodeValue};

pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let document = Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        SyntaxError::at(text, at, error.message())
    })?;
    Ok(table(text, document.as_table()))
}

fn table(text: &str, table: &Table) -> Node {
    let members = table.iter().filter_map(|(name, item)| {
        Some(MapMember {
            key: name.to_owned(),
            key_range: table.key(name).and_then(Key::span).unwrap_or_default(),
            value: self::item(text, item)?,
        })
    });
    let style = if table.is_dotted() || table.is_implicit() {
        NodeStyle::Dotted
    } else {
        NodeStyle::Block
    };
    Node {
        range: table.span().unwrap_or_default(),
        value: NodeValue::Map(members.collect(), style),
        is_shared: false,
    }
}

fn item(text: &str, item: &Item) -> Option<Node> {
    Some(match item {
        Item::None => return None,
        Item::Value(one) => value(text, one),
        Item::Table(one) => table(text, one),
        Item::ArrayOfTables(tables) => Node {
            range: tables.span().unwrap_or_default(),
            value: NodeValue::List(
                tables.iter().map(|one| table(text, one)).collect(),
                NodeStyle::Block,
            ),
            is_shared: false,
        },
    })
}

fn value(text: &str, value: &TomlValue) -> Node {
    let range = value.span().unwrap_or_default();
    let value = match value {
        TomlValue::String(string) => NodeValue::Text(string.value().clone()),
        TomlValue::Array(array) => {
            let nodes = array.iter().map(|one| self::value(text, one)).collect();
            NodeValue::List(nodes, NodeStyle::Flow)
        }
        TomlValue::InlineTable(table) => inline(text, table),
        _ => NodeValue::Other(text.get(range.clone()).unwrap_or_default().to_owned()),
    };
    Node {
        range,
        value,
        is_shared: false,
    }
}

fn inline(text: &str, table: &InlineTable) -> NodeValue {
    let members = table.iter().map(|(name, one)| MapMember {
        key: name.to_owned(),
        key_range: table.key(name).and_then(Key::span).unwrap_or_default(),
        value: value(text, one),
    });
    let style = if table.is_dotted() {
        NodeStyle::Dotted
    } else {
        NodeStyle::Flow
    };
    NodeValue::Map(members.collect(), style)
}
