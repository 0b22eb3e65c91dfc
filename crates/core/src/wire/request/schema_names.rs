//! The keywords of a form's schema: no other name may have the same letters as one, since a lenient reader would show
//! another form.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::super::error::WireError;
use super::super::frame::{each_item, each_key, skip_value, unescaped};
use super::super::spelling::is_nearly_bytes;

const LOCATION: &str = "requestedSchema";

/// Keywords of the schema itself.
const OF_FORM: [&str; 9] = [
    "type",
    "properties",
    "required",
    "title",
    "description",
    "$ref",
    "$defs",
    "definitions",
    "allOf",
];

/// Keywords of a field, and of the items of a field with several choices.
const OF_FIELD: [&str; 22] = [
    "$ref",
    "allOf",
    "nullable",
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

/// A part of a schema.
#[derive(Clone, Copy)]
enum SchemaPart {
    Form,
    /// The fields of a form by their names.
    Fields,
    /// A field, its items or an option.
    Field,
}

impl SchemaPart {
    /// Returns `true` if a member's name has the same letters as a keyword of this part and is not that keyword.
    fn is_odd(self, name: &[u8]) -> bool {
        match self {
            Self::Form => is_nearly_bytes(name, &OF_FORM),
            Self::Fields => false,
            Self::Field => is_nearly_bytes(name, &OF_FIELD),
        }
    }

    /// Returns the part that the member of this name is, if it is one.
    fn inner(self, name: &[u8]) -> Option<Self> {
        match (self, name) {
            (Self::Form, b"properties" | b"$defs" | b"definitions") => Some(Self::Fields),
            (Self::Fields, _) | (Self::Field, b"items" | b"oneOf" | b"anyOf" | b"allOf") => {
                Some(Self::Field)
            }
            (Self::Form, b"allOf" | b"anyOf" | b"oneOf") => Some(Self::Form),
            _ => None,
        }
    }
}

/// Rejects names that have the same letters as a keyword and are not that keyword. `Form` rejects schemas that are not
/// forms; their nesting was limited before.
pub(super) fn refuse_like(schema: &RawValue) -> Result<(), WireError> {
    let mut is_odd = false;
    let _end = inspect(schema.get().as_bytes(), 0, SchemaPart::Form, &mut is_odd);
    if is_odd {
        return Err(WireError::Spelling { location: LOCATION });
    }
    Ok(())
}

/// Checks the names in the part at this position. Returns the position after it.
fn inspect(text: &[u8], at: usize, part: SchemaPart, is_odd: &mut bool) -> Option<usize> {
    match text.get(at)? {
        b'{' => each_key(text, at, |key, at| {
            let written = key.contains(&b'\\').then(|| unescaped(key)).flatten();
            let name = written.map_or(Cow::Borrowed(key), Cow::Owned);
            *is_odd |= part.is_odd(&name);
            match part.inner(&name) {
                Some(inner) => inspect(text, at, inner, is_odd),
                None => skip_value(text, at),
            }
        }),
        b'[' => each_item(text, at, |at| inspect(text, at, part, is_odd)),
        _ => skip_value(text, at),
    }
}
