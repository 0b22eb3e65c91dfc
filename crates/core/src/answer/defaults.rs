//! Values that the schema fills in before the person answers.

use serde_json::{Map, Value};

use super::{Answers, Violations};
use crate::form::{Field, Form};

impl Form {
    /// Returns every field's `default`, in the form's order. Each obeys its own field's rules; required fields without
    /// a default are missing.
    pub fn defaults(&self) -> Map<String, Value> {
        self.fields()
            .iter()
            .filter_map(|field| Some((field.name().to_owned(), field.default()?)))
            .collect()
    }

    /// Returns answers from the defaults, overridden by partial content.
    ///
    /// # Errors
    /// Every field that is still missing or wrong.
    pub fn with_defaults(&self, partial: Map<String, Value>) -> Result<Answers, Violations> {
        let mut content = self.defaults();
        content.extend(partial);
        self.check(Value::Object(content))
    }

    /// Returns the required fields without a default.
    pub fn without_default(&self) -> impl Iterator<Item = &Field> {
        self.fields()
            .iter()
            .filter(|field| field.required() && field.default().is_none())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use crate::form::Form;

    #[test]
    fn partial_goes_over_defaults() {
        let form = Form::parse(
            r#"{"type":"object","properties":{"port":{"type":"integer","default":3000},"host":{"type":"string"},
                "tags":{"type":"array","items":{"enum":["a","b"]},"default":["b"]},"hot":{"type":"boolean","default":true}},"required":["host","port"]}"#,
        )
        .unwrap();
        assert_eq!(
            json!(form.defaults()),
            json!({"port":3000,"tags":["b"],"hot":true})
        );
        assert_eq!(
            form.without_default()
                .map(crate::form::Field::name)
                .collect::<Vec<_>>(),
            ["host"]
        );
        assert_eq!(
            form.with_defaults(Map::new()).unwrap_err().to_string(),
            "host: a value is required"
        );
        let partial = json!({"host":"x","port":80}).as_object().cloned().unwrap();
        assert_eq!(
            form.with_defaults(partial).unwrap().to_value(),
            json!({"port":80,"host":"x","tags":["b"],"hot":true})
        );
    }
}
