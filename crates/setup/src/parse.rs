//! Reads JSON with comments, TOML and YAML into a tree with byte ranges.

mod json;
mod toml_tables;
mod yaml;

use serde::Deserialize;

use crate::tree::{Node, line_of};

/// The format of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileFormat {
    /// JSON; comments and trailing commas are read too.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 128;

/// A file that cannot be read as its format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {says}")]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// The mistake.
    pub says: String,
}

impl SyntaxError {
    fn at(text: &str, byte: usize, says: impl Into<String>) -> Self {
        let mut says: String = says.into();
        // A parser may quote the text, in which there may be a secret.
        if let Some(end) = says.find('\n') {
            says.truncate(end);
        }
        Self {
            line: line_of(text, byte),
            says,
        }
    }
}

/// Reads a text without a byte order mark. A text without a value is an empty map.
pub(crate) fn parse(format: FileFormat, text: &str) -> Result<Node, SyntaxError> {
    match format {
        FileFormat::Json => json::parse(text),
        FileFormat::Toml => toml_tables::parse(text),
        FileFormat::Yaml => yaml::parse(text),
    }
}
