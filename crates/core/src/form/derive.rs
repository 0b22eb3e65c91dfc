//! A form from a Rust type: schemars' description of it, converted to the keywords of forms.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Number, Value, json};

use super::defect::{Defect, DefectCode};
use super::{Defects, Form};

impl Form {
    /// Creates the form of a struct with named fields.
    ///
    /// Strings, integers, floats, booleans, enums of unit variants, `Vec`s and sets of those, dates and times (`format`
    /// date or date-time), `Url` (`format` uri) and `Option`s of all become fields. Doc comments become descriptions;
    /// those of variants become titles. Titles, ranges, lengths, formats and patterns in `#[schemars(...)]` are kept,
    /// and so are serde's renames and defaults. Exclusive integer bounds become inclusive, and integers narrower than
    /// 64 bits are limited to their range.
    ///
    /// # Errors
    /// If a part of the type cannot be asked in a form: each [`Defect`] gives the pointer of the field
    /// and the fix.
    pub fn from_type<T: JsonSchema>() -> Result<Self, Defects> {
        let settings = SchemaSettings::draft2020_12()
            .for_deserialize()
            .with(|settings| {
                settings.inline_subschemas = true;
                settings.meta_schema = None;
            });
        let mut schema = settings
            .into_generator()
            .into_root_schema_for::<T>()
            .to_value();
        if let Some(root) = schema.as_object_mut() {
            // Fields that the form does not have are dropped before the type is read, so the type may reject them.
            root.remove("additionalProperties");
            if let Some(Value::Object(fields)) = root.get_mut("properties") {
                fields.values_mut().for_each(tidy_field);
            } else if root.get("type") == Some(&json!("object")) {
                root.insert("properties".to_owned(), json!({}));
            }
        }
        Form::from_value(&schema).map_err(|mut defects| {
            for defect in &mut defects.0 {
                if let Some(name) = nested_field(defect) {
                    defect.message = format!(
                        "the field `{name}` is an object, and a form is flat: put its fields into the form itself"
                    );
                }
            }
            defects
        })
    }
}

/// Returns the name of the field that the defect says is an object.
fn nested_field(defect: &Defect) -> Option<&str> {
    let name = defect.pointer.strip_prefix("/properties/")?;
    let name = name.strip_suffix("/type")?;
    (defect.code == DefectCode::Nested && !name.contains('/')).then_some(name)
}

/// Removes everything but its type from a field that is an object, so that it has one defect.
fn flatten_object(field: &mut Map<String, Value>) {
    let is_object = field.get("type") == Some(&json!("object"))
        || ["properties", "additionalProperties", "patternProperties"]
            .iter()
            .any(|keyword| field.contains_key(*keyword));
    if is_object {
        field.clear();
        field.insert("type".to_owned(), json!("object"));
    }
}

fn tidy_field(schema: &mut Value) {
    let Some(field) = schema.as_object_mut() else {
        return;
    };
    unwrap_option(field);
    flatten_object(field);
    if field.get("default") == Some(&Value::Null) {
        field.remove("default");
    }
    list_variants(field, "oneOf");
    match field.get("type").and_then(Value::as_str) {
        Some("integer") => {
            bound_by_width(field);
            include_bounds(field);
            field.remove("format");
        }
        Some("number") => {
            field.remove("format");
        }
        Some("array") => {
            if let Some(Value::Object(items)) = field.get_mut("items") {
                list_variants(items, "anyOf");
                items.remove("description");
            }
        }
        _ => {}
    }
}

/// Unwraps `Option<T>`, which is T or null: in a form, the field is not required.
fn unwrap_option(field: &mut Map<String, Value>) {
    let null = json!({ "type": "null" });
    if let Some(Value::Array(either)) = field.get("anyOf")
        && let [some, none] = either.as_slice()
        && *none == null
        && let Value::Object(some) = some.clone()
    {
        field.remove("anyOf");
        for (key, value) in some {
            field.entry(key).or_insert(value);
        }
    }
    if let Some(Value::Array(types)) = field.get("type")
        && let [one, Value::String(none)] = types.as_slice()
        && none == "null"
    {
        let one = one.clone();
        field.insert("type".to_owned(), one);
    }
    if let Some(Value::Array(options)) = field.get_mut("enum") {
        options.retain(|option| !option.is_null());
    }
}

/// Converts an enum of unit variants with doc comments: `oneOf` of constants with descriptions, with plain ones in an
/// `enum` among them. The description is meant for people, so it becomes the title.
fn list_variants(field: &mut Map<String, Value>, key: &str) {
    let Some(Value::Array(variants)) = field.get("oneOf") else {
        return;
    };
    let mut options = Vec::new();
    for variant in variants {
        match (variant.get("const"), variant.get("enum")) {
            (Some(Value::String(value)), _) => {
                let title = variant
                    .get("title")
                    .or(variant.get("description"))
                    .cloned()
                    .unwrap_or(json!(value));
                options.push(json!({ "const": value, "title": one_line(&title) }));
            }
            (None, Some(Value::Array(values))) if values.iter().all(Value::is_string) => {
                options.extend(
                    values
                        .iter()
                        .map(|value| json!({ "const": value, "title": value })),
                );
            }
            // Not an enum of unit variants; the parser reports the defect.
            _ => return,
        }
    }
    field.remove("oneOf");
    field.insert(key.to_owned(), options.into());
    if key == "oneOf" {
        field.insert("type".to_owned(), json!("string"));
    }
}

fn one_line(title: &Value) -> Value {
    let text = title.as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").into()
}

/// Converts the width of an integer, which schemars writes as a `format`, into bounds: forms have no `format` for
/// numbers.
fn bound_by_width(field: &mut Map<String, Value>) {
    let (low, high): (i64, i64) = match field.get("format").and_then(Value::as_str) {
        Some("int8") => (i8::MIN.into(), i8::MAX.into()),
        Some("int16") => (i16::MIN.into(), i16::MAX.into()),
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("uint8") => (0, u8::MAX.into()),
        Some("uint16") => (0, u16::MAX.into()),
        Some("uint32") => (0, u32::MAX.into()),
        _ => return,
    };
    if !field.contains_key("exclusiveMinimum") {
        field.entry("minimum").or_insert(low.into());
    }
    if !field.contains_key("exclusiveMaximum") {
        field.entry("maximum").or_insert(high.into());
    }
}

/// Makes exclusive bounds inclusive: every revision has `minimum` and `maximum`, and none lists the exclusive ones.
fn include_bounds(field: &mut Map<String, Value>) {
    for (exclusive, inclusive, step) in [
        ("exclusiveMinimum", "minimum", 1),
        ("exclusiveMaximum", "maximum", -1),
    ] {
        let Some(whole) = field
            .get(exclusive)
            .and_then(Value::as_number)
            .cloned()
            .map(crate::number::canonical_integer)
        else {
            continue;
        };
        let Some(bound) = whole.as_i64().and_then(|bound| bound.checked_add(step)) else {
            continue;
        };
        field.remove(exclusive);
        let tighter = |old: &Value| {
            let order = old
                .as_number()
                .map(|old| crate::number::compare(old, &Number::from(bound)));
            order
                == Some(if step > 0 {
                    std::cmp::Ordering::Greater
                } else {
                    std::cmp::Ordering::Less
                })
        };
        if !field.get(inclusive).is_some_and(tighter) {
            field.insert(inclusive.to_owned(), bound.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    use crate::form::{DefectCode, Form};
    use crate::wire::Revision;

    #[derive(Deserialize, JsonSchema, PartialEq, Eq, PartialOrd, Ord, Debug)]
    #[serde(rename_all = "kebab-case")]
    enum Environment {
        /// The one
        /// for trying things
        Staging,
        /// The one that counts
        Production,
    }

    #[derive(Deserialize, JsonSchema, PartialEq, Eq, PartialOrd, Ord, Debug)]
    enum Plain {
        #[serde(rename = "a-b")]
        Ab,
        Cd,
    }

    fn port() -> u16 {
        3000
    }

    /// The environment to deploy to.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Deploy {
        /// Which environment?
        target_environment: Environment,
        #[schemars(title = "Fallback", description = "If that fails")]
        fallback: Option<Environment>,
        plain: Option<Plain>,
        #[schemars(length(min = 1, max = 50), regex(pattern = "^[a-z]+$"))]
        name: String,
        note: Option<String>,
        #[schemars(email)]
        mail: Option<String>,
        #[serde(default = "port")]
        port: u16,
        #[schemars(range(min = 1))]
        replicas: u32,
        #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 10))]
        small: i32,
        ratio: f64,
        big: u64,
        sure: bool,
        tags: Vec<Plain>,
        #[schemars(length(max = 1))]
        zones: Option<BTreeSet<Environment>>,
        day: Option<jiff::civil::Date>,
        at: jiff::Timestamp,
        site: url::Url,
    }

    #[test]
    fn dates_of_chrono_are_dates_too() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Times {
            day: chrono::NaiveDate,
            at: chrono::DateTime<chrono::Utc>,
        }
        let schema = Form::from_type::<Times>()
            .unwrap()
            .emit(Revision::LATEST)
            .unwrap();
        assert_eq!(schema["properties"]["day"]["format"], "date");
        assert_eq!(schema["properties"]["at"]["format"], "date-time");
    }

    #[test]
    fn a_type_becomes_a_form() {
        let form = Form::from_type::<Deploy>().unwrap_or_else(|defects| panic!("{defects}"));
        let schema = form.emit(Revision::V2025_11_25).unwrap();
        let titled = json!([{"const":"staging","title":"The one for trying things"},{"const":"production","title":"The one that counts"}]);
        let expected = json!({
            "targetEnvironment": {"type":"string","description":"Which environment?","oneOf":titled},
            "fallback": {"type":"string","title":"Fallback","description":"If that fails","oneOf":titled},
            "plain": {"type":"string","enum":["a-b","Cd"]},
            "name": {"type":"string","minLength":1,"maxLength":50,"pattern":"^[a-z]+$"},
            "note": {"type":"string"},
            "mail": {"type":"string","format":"email"},
            "port": {"type":"integer","minimum":0,"maximum":65535,"default":3000},
            "replicas": {"type":"integer","minimum":1,"maximum":u32::MAX},
            "small": {"type":"integer","minimum":1,"maximum":9},
            "ratio": {"type":"number"},
            "big": {"type":"integer","minimum":0},
            "sure": {"type":"boolean"},
            "tags": {"type":"array","items":{"type":"string","enum":["a-b","Cd"]}},
            "zones": {"type":"array","maxItems":1,"uniqueItems":true,"items":{"anyOf":titled}},
            "day": {"type":"string","format":"date"},
            "at": {"type":"string","format":"date-time"},
            "site": {"type":"string","format":"uri"},
        });
        for (name, field) in expected.as_object().unwrap() {
            assert_eq!(schema["properties"][name], *field, "{name}");
        }
        assert_eq!(
            schema["required"],
            json!([
                "targetEnvironment",
                "name",
                "replicas",
                "small",
                "ratio",
                "big",
                "sure",
                "tags",
                "at",
                "site"
            ])
        );
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Inner {
        x: String,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct UnsupportedQuestion {
        inner: Inner,
        free: Vec<String>,
        shape: Shape,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Shape {
        Round { radius: f64 },
        Flat,
    }

    #[test]
    fn what_cannot_be_asked_is_named() {
        let defects = Form::from_type::<UnsupportedQuestion>().unwrap_err();
        let mut fields: Vec<_> = defects
            .iter()
            .map(|d| d.pointer.split('/').nth(2).unwrap())
            .collect();
        let inner = fields.iter().filter(|field| **field == "inner").count();
        assert_eq!(inner, 1, "{defects}");
        let told = "the field `inner` is an object";
        assert!(defects.to_string().contains(told), "{defects}");
        fields.dedup();
        assert_eq!(fields, ["inner", "free", "shape"], "{defects}");
        assert!(defects.iter().any(|d| d.code == DefectCode::Nested));
        assert_eq!(
            Form::from_type::<String>().unwrap_err().first().code,
            DefectCode::RootType
        );
    }

    #[derive(Deserialize, JsonSchema)]
    struct Confirm {}

    #[test]
    fn an_empty_struct_asks_to_confirm() {
        assert!(Form::from_type::<Confirm>().unwrap().fields().is_empty());
    }
}
