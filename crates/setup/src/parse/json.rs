//! JSON with comments and trailing commas.

use jsonc_parser::ast::{self, ObjectPropName};
use jsonc_parser::common::{Range, Ranged as _};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::{MAX_DEPTH, SyntaxError};
use crate::tree::{MapMember, Node, NodeStyle, NodeValue};

/// No client reads the extensions of JSON5 that the parser knows.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS)
        .map_err(|error| SyntaxError::at(text, error.range().start, error.kind().to_string()))?;
    match parsed.value {
        Some(value) => node(text, &value, 0),
        None => Ok(Node {
            range: text.len()..text.len(),
            value: NodeValue::Map(Vec::new(), NodeStyle::Flow),
            is_shared: false,
        }),
    }
}

fn node(text: &str, value: &ast::Value<'_>, depth: usize) -> Result<Node, SyntaxError> {
    let range = range(value.range());
    if depth > MAX_DEPTH {
        return Err(SyntaxError::at(
            text,
            range.start,
            "it is nested too deeply",
        ));
    }
    let value = match value {
        ast::Value::StringLit(string) => NodeValue::Text(string.value.to_string()),
        ast::Value::NumberLit(_) | ast::Value::BooleanLit(_) | ast::Value::NullKeyword(_) => {
            NodeValue::Other(text.get(range.clone()).unwrap_or_default().to_owned())
        }
        ast::Value::Array(array) => {
            let nodes = array.elements.iter().map(|one| node(text, one, depth + 1));
            NodeValue::List(nodes.collect::<Result<_, _>>()?, NodeStyle::Flow)
        }
        ast::Value::Object(object) => {
            let members = object.properties.iter().map(|property| {
                Ok(MapMember {
                    key: match &property.name {
                        ObjectPropName::String(string) => string.value.to_string(),
                        ObjectPropName::Word(word) => word.value.to_owned(),
                    },
                    key_range: self::range(property.name.range()),
                    value: node(text, &property.value, depth + 1)?,
                })
            });
            NodeValue::Map(members.collect::<Result<_, _>>()?, NodeStyle::Flow)
        }
    };
    Ok(Node {
        range,
        value,
        is_shared: false,
    })
}

fn range(range: Range) -> std::ops::Range<usize> {
    range.start..range.end
}
