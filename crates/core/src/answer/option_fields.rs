//! Several options given for a field that a server asks as one yes-or-no field per option.
//!
//! 2025-06-18 has no lists of options. Libraries for servers, this project's among them, ask `extras` there as
//! `extras.breakfast`, `extras.late` and so on. A prepared answer `extras=breakfast,late` means the same list.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Answers, BrokenRule, Violation, Violations};
use crate::form::{ChoiceOptions, Field, Form, Kind};

/// The options of such a list that were given, as yes-or-no fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionFields {
    /// The form asks nothing of this name.
    Unknown,
    /// Every yes-or-no field of the list, with `true` for those that were given.
    Fields(Vec<(String, bool)>),
    /// An option was given that the list does not have; these are its options.
    NoSuchOption(Vec<String>),
}

/// Spreads the options given for `name` over the yes-or-no fields `name.option` of a form that has no field `name`. An
/// option may be given by the end of the field's name, or by the end of its title, in any case.
///
/// ```
/// use mcp_elicit_core::answer::{OptionFields, option_fields};
/// use mcp_elicit_core::form::Form;
/// use serde_json::json;
///
/// let form = Form::from_value(&json!({"type": "object", "properties": {
///     "extras.late": {"type": "boolean", "title": "Extras: Late check-out"}, "extras.bed": {"type": "boolean"},
/// }}))?;
/// let fields = |late, bed| OptionFields::Fields(vec![("extras.late".to_owned(), late), ("extras.bed".to_owned(), bed)]);
/// assert_eq!(option_fields(&form, "extras", &["Late check-out"]), fields(true, false));
/// assert_eq!(option_fields(&form, "extras", &[]), fields(false, false));
/// assert_eq!(option_fields(&form, "extra", &["bed"]), OptionFields::Unknown);
/// assert!(matches!(option_fields(&form, "extras", &["sauna"]), OptionFields::NoSuchOption(_)));
/// # Ok::<(), mcp_elicit_core::form::Defects>(())
/// ```
pub fn option_fields(form: &Form, name: &str, given: &[&str]) -> OptionFields {
    let boxes: Vec<(&Field, &str)> = form
        .fields()
        .iter()
        .filter(|field| matches!(field.kind(), Kind::Boolean(_)))
        .filter_map(|field| Some((field, option_of(field.name(), name)?)))
        .collect();
    if boxes.is_empty() || form.field(name).is_some() {
        return OptionFields::Unknown;
    }
    let mut picked = vec![false; boxes.len()];
    for option in given {
        let exact = boxes.iter().position(|(_, suffix)| suffix == option);
        let found = exact.or_else(|| {
            boxes
                .iter()
                .position(|(field, suffix)| is_same(suffix, option) || is_title(field, option))
        });
        let Some(at) = found else {
            let options = boxes.iter().map(|(_, suffix)| (*suffix).to_owned());
            return OptionFields::NoSuchOption(options.collect());
        };
        picked[at] = true;
    }
    let fields = boxes.iter().map(|(field, _)| field.name().to_owned());
    OptionFields::Fields(fields.zip(picked).collect())
}

/// The reason why prepared content is not sent: the form does not ask for all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAsked {
    /// The form has no such fields.
    Fields(Vec<String>),
    /// A list has no such option.
    Option {
        /// The name of the list.
        name: String,
        /// Its options.
        options: Vec<String>,
    },
}

/// Returns prepared content in which the form asks for every value: lists of options are spread over the fields in which
/// the form asks them. The values are not checked.
///
/// # Errors
/// If a value would not be sent, because the form does not ask for it.
pub fn asked_content(
    form: &Form,
    content: Map<String, Value>,
) -> Result<Map<String, Value>, NotAsked> {
    let mut asked = Map::new();
    let mut unknown = Vec::new();
    for (name, value) in content {
        if form.field(&name).is_some() {
            asked.insert(name, value);
            continue;
        }
        let options = match &value {
            Value::String(text) => Some(typed_options(text)),
            Value::Array(options) => options.iter().map(Value::as_str).collect(),
            _ => None,
        };
        match options.map_or(OptionFields::Unknown, |options| {
            option_fields(form, &name, &options)
        }) {
            OptionFields::Fields(fields) => {
                for (field, is_picked) in fields {
                    asked.entry(field).or_insert(Value::Bool(is_picked));
                }
            }
            OptionFields::NoSuchOption(options) => return Err(NotAsked::Option { name, options }),
            OptionFields::Unknown => unknown.push(name),
        }
    }
    if unknown.is_empty() {
        Ok(asked)
    } else {
        Err(NotAsked::Fields(unknown))
    }
}

/// Checks content of which every value is to be sent: as [`Form::check`], but a value that the form does not ask for is a
/// violation too, in every form. Lists of options are spread over the fields in which the form asks them.
///
/// ```
/// use mcp_elicit_core::answer::check_asked;
/// use mcp_elicit_core::form::Form;
/// use serde_json::json;
///
/// let form = Form::from_value(&json!({"type": "object", "properties": {"name": {"type": "string"}}}))?;
/// assert!(check_asked(&form, json!({"name": "Ada"})).is_ok());
/// let misspelt = check_asked(&form, json!({"nmae": "Ada"})).unwrap_err();
/// assert_eq!(misspelt.iter().next().map(|violation| violation.field()), Some("nmae"));
/// # Ok::<(), mcp_elicit_core::form::Defects>(())
/// ```
///
/// # Errors
/// Every [`Violation`], the values that the form does not ask for last.
pub fn check_asked(form: &Form, content: Value) -> Result<Answers, Violations> {
    let Value::Object(content) = content else {
        return form.check(content);
    };
    let why = match asked_content(form, content.clone()) {
        Ok(asked) => return form.check(Value::Object(asked)),
        Err(why) => why,
    };
    let mut all = form.violations(&Value::Object(content));
    for violation in why.violations(form) {
        if !all.0.contains(&violation) {
            all.0.push(violation);
        }
    }
    Err(all)
}

impl NotAsked {
    /// Returns the values that are not sent as violations of the form.
    fn violations(self, form: &Form) -> Violations {
        let index = form.fields().len();
        let violation = |field: &str, rule| Violation {
            index,
            field: Arc::from(crate::form::text::clip(field)),
            rule,
        };
        Violations(match self {
            Self::Fields(names) => names
                .iter()
                .map(|name| violation(name, BrokenRule::AdditionalProperties))
                .collect(),
            Self::Option { name, options } => {
                let options = ChoiceOptions::of_values(options);
                vec![violation(&name, BrokenRule::Enum(options))]
            }
        })
    }
}

/// Returns the option that a field's name has after the list's name and a separator.
fn option_of<'f>(field: &'f str, list: &str) -> Option<&'f str> {
    let rest = field.strip_prefix(list)?;
    let option = rest.strip_prefix(['.', '/', ':'])?;
    (!option.is_empty() && !list.is_empty()).then_some(option)
}

fn is_title(field: &Field, option: &str) -> bool {
    field.title().is_some_and(|title| {
        is_same(title, option)
            || title
                .rsplit_once(": ")
                .is_some_and(|(_, end)| is_same(end, option))
    })
}

fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Returns the options in a text as a person types them: between commas.
pub fn typed_options(text: &str) -> Vec<&str> {
    text.split(',')
        .map(str::trim)
        .filter(|option| !option.is_empty())
        .collect()
}
