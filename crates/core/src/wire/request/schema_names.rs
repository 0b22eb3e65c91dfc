//! The keywords of a form's schema: none may be spelled in other letter case, since a reader that does not mind it would show another
//! form.

use serde_json::value::RawValue;

use super::super::error::WireError;
use super::super::members::Members;

const LOCATION: &str = "requestedSchema";

/// Keywords of the schema itself.
const OF_FORM: [&str; 5] = ["type", "properties", "required", "title", "description"];

/// Keywords of a field, and of the items of one with several choices.
const OF_FIELD: [&str; 19] = [
    "type",
    "title",
    "description",
    "default",
    "enum",
    "enumNames",
    "oneOf",
    "anyOf",
    "const",
    "items",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "uniqueItems",
];

/// Refuses keywords that differ from those of a form in letter case alone. What is no form is for `Form` to refuse.
pub(super) fn refuse_like(schema: &RawValue) -> Result<(), WireError> {
    let Ok(form) = Members::read(schema, LOCATION) else {
        return Ok(());
    };
    form.refuse_like(&OF_FORM, LOCATION)?;
    let fields = form.get("properties");
    let Some(Ok(fields)) = fields.map(|fields| Members::read(fields, LOCATION)) else {
        return Ok(());
    };
    for (_, field) in fields.iter() {
        refuse_like_in_field(field)?;
    }
    Ok(())
}

fn refuse_like_in_field(field: &RawValue) -> Result<(), WireError> {
    let Ok(field) = Members::read(field, LOCATION) else {
        return Ok(());
    };
    field.refuse_like(&OF_FIELD, LOCATION)?;
    if let Some(items) = field.get("items") {
        refuse_like_in_field(items)?;
    }
    for options in ["oneOf", "anyOf"] {
        let options = field.get(options);
        let options: Option<Vec<&RawValue>> =
            options.and_then(|options| serde_json::from_str(options.get()).ok());
        for option in options.into_iter().flatten() {
            refuse_like_in_field(option)?;
        }
    }
    Ok(())
}
