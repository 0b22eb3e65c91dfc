//! Forms that are built at run time, in Rust.

use std::marker::PhantomData;

use serde_json::{Map, Value, json};

use super::{Boolean, Choice, Choices, Defects, Form, Format, Number, Text};

/// A builder of a [`Form`], field by field.
///
/// ```
/// use mcp_elicit_core::form::{FieldBuilder, Form};
///
/// let form = Form::builder()
///     .field("branch", FieldBuilder::choice(["main", "next"]).title("Branch").required())
///     .field("note", FieldBuilder::text().max_length(200))
///     .build()?;
/// assert_eq!(form.fields().len(), 2);
/// # Ok::<(), mcp_elicit_core::form::Defects>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct FormBuilder {
    properties: Map<String, Value>,
    required: Vec<String>,
    duplicate: Option<String>,
}

impl Form {
    /// Creates a builder of a form without fields.
    pub fn builder() -> FormBuilder {
        FormBuilder::default()
    }
}

impl FormBuilder {
    /// Adds a field.
    #[must_use]
    pub fn field<K>(mut self, name: impl Into<String>, field: FieldBuilder<K>) -> Self {
        let name = name.into();
        if field.required {
            self.required.push(name.clone());
        }
        if self
            .properties
            .insert(name.clone(), Value::Object(field.schema))
            .is_some()
        {
            self.duplicate.get_or_insert(name);
        }
        self
    }

    /// Builds the form.
    ///
    /// # Errors
    /// Every defect, with its JSON Pointer into the generated schema: impossible bounds, duplicate options, a default
    /// that breaks its field's rules.
    pub fn build(self) -> Result<Form, Defects> {
        if let Some(name) = self.duplicate {
            let at = super::defect::At::ROOT;
            let at = at.child("properties");
            return Err(Defects(vec![super::Defect {
                pointer: at.child(&name).pointer(),
                code: super::DefectCode::DuplicateField,
                message: "this field was added twice".to_owned(),
            }]));
        }
        Form::from_value(
            &json!({ "type": "object", "properties": self.properties, "required": self.required }),
        )
    }
}

/// One field for [`FormBuilder::field`]. `K` is its kind; a rule that the kind does not have does not compile:
///
/// ```compile_fail
/// use mcp_elicit_core::form::FieldBuilder;
///
/// let field = FieldBuilder::boolean().min_length(3);
/// ```
///
/// ```
/// use mcp_elicit_core::form::FieldBuilder;
///
/// let field = FieldBuilder::text().min_length(3);
/// # let _ = field;
/// ```
#[derive(Debug)]
pub struct FieldBuilder<K> {
    schema: Map<String, Value>,
    required: bool,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for FieldBuilder<K> {
    fn clone(&self) -> Self {
        FieldBuilder {
            schema: self.schema.clone(),
            required: self.required,
            kind: PhantomData,
        }
    }
}

impl FieldBuilder<Text> {
    /// Creates a field for text.
    pub fn text() -> Self {
        Self::new("string")
    }
}

impl FieldBuilder<Number> {
    /// Creates a field for any number.
    pub fn number() -> Self {
        Self::new("number")
    }

    /// Creates a field for a whole number.
    pub fn integer() -> Self {
        Self::new("integer")
    }
}

impl FieldBuilder<Boolean> {
    /// Creates a yes-or-no field.
    pub fn boolean() -> Self {
        Self::new("boolean")
    }
}

impl FieldBuilder<Choice> {
    /// Creates a choice of one of these strings, or of these `(value, title)` pairs.
    pub fn choice<O: IntoOption>(options: impl IntoIterator<Item = O>) -> Self {
        let (key, list) = option_list(options);
        Self::new("string").with(if key == "enum" { "enum" } else { "oneOf" }, list)
    }
}

impl FieldBuilder<Choices> {
    /// Creates a choice of several of these strings, or of these `(value, title)` pairs.
    pub fn choices<O: IntoOption>(options: impl IntoIterator<Item = O>) -> Self {
        let (key, list) = option_list(options);
        let items = if key == "enum" {
            json!({ "type": "string", "enum": list })
        } else {
            json!({ "anyOf": list })
        };
        Self::new("array").with("items", items)
    }
}

impl<K> FieldBuilder<K> {
    fn new(kind: &str) -> Self {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), kind.into());
        FieldBuilder {
            schema,
            required: false,
            kind: PhantomData,
        }
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.schema.insert(key.to_owned(), value.into());
        self
    }

    /// Makes the field required.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets the title that the person reads.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with("title", title.into())
    }

    /// Sets the description that the person reads.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        self.with("description", description.into())
    }
}

impl FieldBuilder<Text> {
    /// Sets the default text.
    #[must_use]
    pub fn default(self, value: impl Into<String>) -> Self {
        self.with("default", value.into())
    }

    /// Sets the minimum number of characters.
    #[must_use]
    pub fn min_length(self, characters: u64) -> Self {
        self.with("minLength", characters)
    }

    /// Sets the maximum number of characters.
    #[must_use]
    pub fn max_length(self, characters: u64) -> Self {
        self.with("maxLength", characters)
    }

    /// Sets a regular expression (ECMA-262) that the text must contain a match of.
    #[must_use]
    pub fn pattern(self, pattern: impl Into<String>) -> Self {
        self.with("pattern", pattern.into())
    }

    /// Sets one of the four formats.
    #[must_use]
    pub fn format(self, format: Format) -> Self {
        self.with("format", format.as_str())
    }
}

impl FieldBuilder<Number> {
    /// Sets the default number.
    #[must_use]
    pub fn default(self, value: impl Into<Value>) -> Self {
        self.with("default", value)
    }

    /// Sets the minimum.
    #[must_use]
    pub fn minimum(self, minimum: impl Into<Value>) -> Self {
        self.with("minimum", minimum)
    }

    /// Sets the maximum.
    #[must_use]
    pub fn maximum(self, maximum: impl Into<Value>) -> Self {
        self.with("maximum", maximum)
    }
}

impl FieldBuilder<Boolean> {
    /// Sets the default.
    #[must_use]
    pub fn default(self, value: bool) -> Self {
        self.with("default", value)
    }
}

impl FieldBuilder<Choice> {
    /// Sets the default option, by its value.
    #[must_use]
    pub fn default(self, value: impl Into<String>) -> Self {
        self.with("default", value.into())
    }
}

impl FieldBuilder<Choices> {
    /// Sets the default options, by their values.
    #[must_use]
    pub fn default<V: Into<String>>(self, values: impl IntoIterator<Item = V>) -> Self {
        let values: Vec<String> = values.into_iter().map(Into::into).collect();
        self.with("default", values)
    }

    /// Sets the minimum number of selected options.
    #[must_use]
    pub fn min_items(self, picked: u64) -> Self {
        self.with("minItems", picked)
    }

    /// Sets the maximum number of selected options.
    #[must_use]
    pub fn max_items(self, picked: u64) -> Self {
        self.with("maxItems", picked)
    }
}

/// A value that can be an option, with or without a title.
pub trait IntoOption: sealed::Sealed {
    /// Returns the value, and the title if there is one.
    fn into_option(self) -> (String, Option<String>);
}

mod sealed {
    /// Seals [`IntoOption`](super::IntoOption), so that it can gain methods.
    pub trait Sealed {}

    impl Sealed for &str {}
    impl Sealed for String {}
    impl<V, T> Sealed for (V, T) {}
}

impl IntoOption for &str {
    fn into_option(self) -> (String, Option<String>) {
        (self.to_owned(), None)
    }
}

impl IntoOption for String {
    fn into_option(self) -> (String, Option<String>) {
        (self, None)
    }
}

impl<V: Into<String>, T: Into<String>> IntoOption for (V, T) {
    fn into_option(self) -> (String, Option<String>) {
        (self.0.into(), Some(self.1.into()))
    }
}

fn option_list<O: IntoOption>(options: impl IntoIterator<Item = O>) -> (&'static str, Value) {
    let options: Vec<_> = options.into_iter().map(IntoOption::into_option).collect();
    if options.iter().all(|(_, title)| title.is_none()) {
        return (
            "enum",
            options.into_iter().map(|(value, _)| value).collect(),
        );
    }
    let constants = options.into_iter().map(|(value, title)| {
        let title = title.unwrap_or_else(|| value.clone());
        json!({ "const": value, "title": title })
    });
    ("anyOf", constants.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Revision;

    #[test]
    fn every_kind() {
        let form = Form::builder()
            .field(
                "s",
                FieldBuilder::text()
                    .title("S")
                    .min_length(1)
                    .max_length(9)
                    .pattern("^a")
                    .default("abc")
                    .required(),
            )
            .field("m", FieldBuilder::text().format(Format::Email))
            .field("n", FieldBuilder::number().minimum(0.5).maximum(2))
            .field("i", FieldBuilder::integer().description("count"))
            .field("b", FieldBuilder::boolean().default(false))
            .field("c", FieldBuilder::choice([("x", "Ex"), ("y", "Why")]))
            .field(
                "d",
                FieldBuilder::choices(["p", "q"]).min_items(1).max_items(2),
            )
            .build()
            .unwrap();
        let schema = form.emit(Revision::V2025_11_25).unwrap();
        assert_eq!(schema["required"], json!(["s"]));
        assert_eq!(
            schema["properties"]["c"]["oneOf"][1],
            json!({"const":"y","title":"Why"})
        );
        assert_eq!(
            schema["properties"]["d"]["items"],
            json!({"type":"string","enum":["p","q"]})
        );
        assert_eq!(Form::from_value(&schema).unwrap(), form);
    }

    #[test]
    fn mistakes_are_defects() {
        let error = Form::builder()
            .field("a", FieldBuilder::integer().minimum(3).maximum(1))
            .build()
            .unwrap_err();
        assert_eq!(error.first().pointer, "/properties/a/minimum");
        let twice = Form::builder()
            .field("a", FieldBuilder::text())
            .field("a", FieldBuilder::text())
            .build()
            .unwrap_err();
        assert_eq!(twice.first().code.as_str(), "duplicate-field");
        let none = Form::builder()
            .field("a", FieldBuilder::choice(Vec::<String>::new()))
            .build()
            .unwrap_err();
        assert_eq!(none.first().code.as_str(), "no-options");
    }
}
