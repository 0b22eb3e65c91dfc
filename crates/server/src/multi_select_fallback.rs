//! Several choices for a revision without them (2025-06-18): a checkbox per option, and the conversion back into a
//! list.
//!
//! The author asks for a list and gets a list. The person sees one checkbox per option. The response is checked twice:
//! as the checkboxes that were sent, and then, combined, as the list that was asked for.

use mcp_elicit_core::answer::{Answers, CheckError, Outcome, judge};
use mcp_elicit_core::form::{Choices, Field, Form, Kind};
use mcp_elicit_core::wire::{Action, Revision};
use serde_json::{Map, Value, json};

/// A form whose lists are replaced by checkboxes.
#[derive(Debug)]
pub(crate) struct MultiSelectFallback {
    form: Form,
    lists: Vec<CheckboxList>,
}

/// A list and its checkboxes: the name and option of each.
#[derive(Debug)]
struct CheckboxList {
    field: String,
    required: bool,
    boxes: Vec<(String, String)>,
}

impl MultiSelectFallback {
    /// Replaces the lists of `form`; `None` if it has none. Fails if a checkbox would have the name of another field.
    pub(crate) fn from_form(form: &Form) -> Result<Option<Self>, String> {
        let lists: Vec<CheckboxList> = form.fields().iter().filter_map(CheckboxList::of).collect();
        if lists.is_empty() {
            return Ok(None);
        }
        let schema = as_checkboxes(form, &lists)?;
        let form = Form::from_value(&schema).map_err(|defects| defects.to_string())?;
        Ok(Some(Self { form, lists }))
    }

    /// Returns the form to send.
    pub(crate) fn form(&self) -> &Form {
        &self.form
    }

    /// Returns the outcome of an action. The content is checked against the form that was sent and then, converted, as
    /// an answer to the original `form`.
    pub(crate) fn outcome(
        &self,
        form: &Form,
        action: Action,
        content: &str,
    ) -> Result<Outcome, CheckError> {
        match judge(Some(&self.form), action, content)? {
            Outcome::Accept(boxes) => Ok(judge(Some(form), action, self.put_together(boxes))?),
            unaccepted @ (Outcome::Visit | Outcome::Decline | Outcome::Cancel) => Ok(unaccepted),
        }
    }

    fn put_together(&self, boxes: Answers) -> Value {
        let Value::Object(mut content) = boxes.into_value() else {
            return Value::Null;
        };
        for list in &self.lists {
            let mut picked = Vec::new();
            for (name, option) in &list.boxes {
                if content.remove(name) == Some(Value::Bool(true)) {
                    picked.push(option.as_str());
                }
            }
            // Checkboxes always have values: an optional list with none ticked counts as omitted.
            if list.required || !picked.is_empty() {
                content.insert(list.field.clone(), json!(picked));
            }
        }
        Value::Object(content)
    }
}

impl CheckboxList {
    fn of(field: &Field) -> Option<Self> {
        let Kind::Choices(choices) = field.kind() else {
            return None;
        };
        let name_of = |option: &str| format!("{}.{option}", field.name());
        Some(Self {
            field: field.name().to_owned(),
            required: field.required(),
            boxes: choices
                .options
                .iter()
                .map(|option| (name_of(&option.value), option.value.to_string()))
                .collect(),
        })
    }
}

/// Returns the schema with checkboxes in place of the lists, in the same order.
fn as_checkboxes(form: &Form, lists: &[CheckboxList]) -> Result<Value, String> {
    let mut schema = form
        .emit(Revision::LATEST)
        .map_err(|cannot_emit| cannot_emit.to_string())?;
    let alone = form.fields().len() == 1;
    let mut properties = Map::new();
    let mut put = |name: &str, property: Value| match properties.insert(name.to_owned(), property) {
        None => Ok(()),
        Some(_) => Err(format!("two fields would be called `{name}`")),
    };
    for field in form.fields() {
        let list = lists.iter().find(|list| list.field == field.name());
        match (field.kind(), list) {
            (Kind::Choices(choices), Some(list)) => {
                for (index, (name, _)) in list.boxes.iter().enumerate() {
                    put(name, checkbox(field, choices, index, alone))?;
                }
            }
            _ => put(field.name(), schema["properties"][field.name()].clone())?,
        }
    }
    schema["properties"] = Value::Object(properties);
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !lists.iter().any(|list| *name == list.field));
    }
    Ok(schema)
}

/// Returns the checkbox of one option. Texts about the whole list are with the first.
fn checkbox(field: &Field, choices: &Choices, index: usize, alone: bool) -> Value {
    let option = &choices.options[index];
    let title = if alone && field.title().is_none() {
        option.label().to_owned()
    } else {
        format!("{}: {}", field.label(), option.label())
    };
    let mut checkbox = json!({ "type": "boolean", "title": title });
    if index == 0 {
        let words: Vec<String> = field
            .description()
            .map(str::to_owned)
            .into_iter()
            .chain(how_many(choices))
            .collect();
        if !words.is_empty() {
            checkbox["description"] = words.join(" ").into();
        }
    }
    if let Some(default) = &choices.default {
        checkbox["default"] = default.iter().any(|value| **value == *option.value).into();
    }
    checkbox
}

fn how_many(choices: &Choices) -> Option<String> {
    match (choices.min_items.filter(|min| *min > 0), choices.max_items) {
        (None, None) => None,
        (Some(min), None) => Some(format!("Choose at least {min}.")),
        (None, Some(max)) => Some(format!("Choose at most {max}.")),
        (Some(min), Some(max)) if min == max => Some(format!("Choose {min}.")),
        (Some(min), Some(max)) => Some(format!("Choose {min} to {max}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Form {
        Form::from_value(&json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "toppings": {
                    "type": "array", "title": "Toppings", "description": "On top.", "minItems": 1, "maxItems": 2,
                    "items": { "anyOf": [
                        { "const": "c", "title": "Cheese" }, { "const": "h", "title": "Ham" }, { "const": "o", "title": "Olives" }
                    ] },
                    "default": ["h"]
                },
                "days": { "type": "array", "minItems": 1, "items": { "type": "string", "enum": ["mon", "tue"] } }
            },
            "required": ["name", "toppings"]
        }))
        .unwrap()
    }

    fn checked(content: &Value) -> Result<Value, String> {
        let form = order();
        let multi_select_fallback = MultiSelectFallback::from_form(&form).unwrap().unwrap();
        let outcome = multi_select_fallback.outcome(&form, Action::Accept, &content.to_string());
        outcome
            .map(|outcome| outcome.answers().expect("accepted").to_value())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn each_option_is_a_checkbox_that_the_oldest_revision_can_say() {
        let multi_select_fallback = MultiSelectFallback::from_form(&order()).unwrap().unwrap();
        assert_eq!(
            multi_select_fallback
                .form()
                .emit(Revision::V2025_06_18)
                .unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string" },
                    "toppings.c": { "type": "boolean", "title": "Toppings: Cheese",
                        "description": "On top. Choose 1 to 2.", "default": false },
                    "toppings.h": { "type": "boolean", "title": "Toppings: Ham", "default": true },
                    "toppings.o": { "type": "boolean", "title": "Toppings: Olives", "default": false },
                    "days.mon": { "type": "boolean", "title": "days: mon", "description": "Choose at least 1." },
                    "days.tue": { "type": "boolean", "title": "days: tue" }
                },
                "required": ["name"]
            })
        );
    }

    #[test]
    fn what_was_ticked_is_a_list_again_and_judged_as_one() {
        assert_eq!(
            checked(
                &json!({ "name": "a", "toppings.o": true, "toppings.c": true, "toppings.h": false })
            ),
            Ok(json!({ "name": "a", "toppings": ["c", "o"] }))
        );
        // Nothing ticked is too few for a required list, and an omission for an optional one.
        let none = json!({ "name": "a", "days.mon": false });
        let why = checked(&none).unwrap_err();
        assert!(why.contains("toppings") && !why.contains("days"), "{why}");
        let all =
            json!({ "name": "a", "toppings.c": true, "toppings.h": true, "toppings.o": true });
        assert!(checked(&all).unwrap_err().contains("toppings"));
        let wrong = json!({ "name": "a", "toppings.c": "yes" });
        assert!(checked(&wrong).unwrap_err().contains("toppings.c"));
    }

    #[test]
    fn a_form_without_lists_stays_as_it_is_and_names_are_not_used_twice() {
        let form = |schema: Value| Form::from_value(&schema).unwrap();
        let plain = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        assert!(
            MultiSelectFallback::from_form(&form(plain))
                .unwrap()
                .is_none()
        );
        let twice = json!({ "type": "object", "properties": {
            "a.b": { "type": "string" },
            "a": { "type": "array", "items": { "type": "string", "enum": ["b"] } }
        } });
        assert!(
            MultiSelectFallback::from_form(&form(twice))
                .unwrap_err()
                .contains("a.b")
        );
    }
}
