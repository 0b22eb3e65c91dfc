//! Answers to a form as they stand on the command line: `name=value` words or one JSON object. The one reader of them,
//! so that every command takes the same spellings and says what it understood.

use mcp_elicit_core::answer::{
    Answers, Draft, DraftValue, NotAsked, OptionFields, Violations, asked_content, option_fields,
    typed_options,
};
use mcp_elicit_core::form::{ChoiceOption, Field, Form, Kind};
use mcp_elicit_core::secrecy;
use serde_json::Value;

use super::answers::name_and_value;
use crate::failure::Failure;
use crate::output::harmless;

/// Answers that fit their form.
#[derive(Debug)]
pub(crate) struct FieldAnswers {
    /// The content that is sent.
    pub(crate) answers: Answers,
    /// One line for each value that is sent in another spelling than it was written in.
    pub(crate) understood: Vec<String>,
}

/// The values of fields that are not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnansweredFields {
    /// None.
    Left,
    /// The form's defaults.
    Default,
}

/// Reads `words` as answers to `form`: each `name=value` as a person would type the value (`agree=yes`,
/// `on=2026/2/28`, an option's title), or all of them as one JSON object.
pub(crate) fn read(
    form: &Form,
    words: &[String],
    unanswered: UnansweredFields,
) -> Result<FieldAnswers, Failure> {
    if let [json] = words
        && json.trim_start().starts_with('{')
    {
        let content: Value = serde_json::from_str(json).map_err(|error| {
            Failure::usage("the answers are not a JSON object")
                .because(error)
                .hint("write name=value, or {\"name\": value}.")
        })?;
        let content = match content {
            Value::Object(content) => {
                Value::Object(asked_content(form, content).map_err(|why| not_asked(form, why))?)
            }
            other => other,
        };
        let content = match (unanswered, content) {
            (UnansweredFields::Default, Value::Object(given)) => {
                let mut content = form.defaults();
                content.extend(given);
                Value::Object(content)
            }
            (_, content) => content,
        };
        let answers = form
            .check(content)
            .map_err(|violations| does_not_fit(&violations))?;
        return Ok(FieldAnswers {
            answers,
            understood: Vec::new(),
        });
    }
    let mut typed = Vec::new();
    let mut draft = match unanswered {
        UnansweredFields::Left => Draft::new(),
        UnansweredFields::Default => Draft::for_form(form),
    };
    for word in words {
        match pair(form, word)? {
            Typed::Field(name, value) => typed.push((name, value)),
            Typed::List(fields) => {
                for (field, is_picked) in fields {
                    draft.set(&field, DraftValue::Flag(is_picked));
                }
            }
        }
    }
    for (place, (name, value)) in typed.iter().enumerate() {
        if typed[..place].iter().any(|(known, _)| known == name) {
            return Err(Failure::usage(format!("`{name}` is answered twice"))
                .hint("write several options as one answer: `tags=red,blue`."));
        }
        let is_list = form
            .field(name)
            .is_some_and(|field| matches!(field.kind(), Kind::Choices(_)));
        // Nothing typed for a list means none of its options, as on the screen.
        let typed = if is_list && value.trim().is_empty() {
            DraftValue::Picked(Vec::new())
        } else {
            DraftValue::Text(value.clone())
        };
        draft.set(name, typed);
    }
    let answers = form
        .read(&draft)
        .map_err(|violations| does_not_fit(&violations))?;
    let understood = understood(form, &answers, &typed);
    Ok(FieldAnswers {
        answers,
        understood,
    })
}

/// One answer on the command line.
enum Typed {
    /// The value of a field.
    Field(String, String),
    /// A list that the form asks as one yes-or-no field for each option.
    List(Vec<(String, bool)>),
}

fn pair(form: &Form, word: &str) -> Result<Typed, Failure> {
    // The word itself is not repeated: a value without its name may be a secret.
    let (name, value) = name_and_value(word)
        .map_err(|_| Failure::usage("an answer is not NAME=VALUE").hint(fields_of(form)))?;
    if form.field(&name).is_some() {
        return Ok(Typed::Field(name, value));
    }
    match option_fields(form, &name, &typed_options(&value)) {
        OptionFields::Fields(fields) => Ok(Typed::List(fields)),
        OptionFields::NoSuchOption(options) => Err(no_such_option(&name, &options)),
        OptionFields::Unknown => Err(no_field(form, &name)),
    }
}

fn no_field(form: &Form, name: &str) -> Failure {
    Failure::usage(format!("the form has no field `{}`", harmless(name))).hint(fields_of(form))
}

fn no_such_option(name: &str, options: &[String]) -> Failure {
    let name = harmless(name);
    Failure::usage(format!("`{name}` has no such option")).hint(format!(
        "its options are {}.",
        harmless(&options.join(", "))
    ))
}

/// Returns the failure for content that the form does not ask for, which would not be sent.
fn not_asked(form: &Form, why: NotAsked) -> Failure {
    match why {
        NotAsked::Option { name, options } => no_such_option(&name, &options),
        NotAsked::Fields(names) => no_field(form, &names.join("`, `")),
    }
}

fn fields_of(form: &Form) -> String {
    let names: Vec<_> = form.fields().iter().map(Field::name).collect();
    if names.is_empty() {
        return "the form has no fields; accept it without answers.".to_owned();
    }
    format!("its fields are {}.", harmless(&names.join(", ")))
}

/// Returns every invalid field with its reason, without values.
fn does_not_fit(violations: &Violations) -> Failure {
    let lines = violations
        .iter()
        .map(|violation| {
            harmless(&format!("{}: {}", violation.field(), violation.message())).into_owned()
        })
        .collect();
    Failure::usage("the answers do not fit the form; nothing was sent").telling("wrong:", lines)
}

/// Returns a line for each typed value that is sent in another spelling: `on: 2026/2/28 is sent as 2026-02-28`. Values of
/// fields that seem to hold a credential are left out.
pub(crate) fn understood(
    form: &Form,
    answers: &Answers,
    typed: &[(String, String)],
) -> Vec<String> {
    let secret = secrecy::inspect(form, "");
    let shown = |field: &&Field| {
        secret
            .iter()
            .all(|suspicion| suspicion.field() != Some(field.name()))
    };
    form.fields()
        .iter()
        .filter(shown)
        .filter_map(|field| {
            let (name, text) = typed.iter().find(|(name, _)| name == field.name())?;
            let sent = answers.get(name)?;
            let written = written(sent);
            // The JSON of an option is exactly what is sent: `"1"` beside the number 1.
            let json = sent.to_string();
            let is_json = matches!(field.kind(), Kind::Choice(_)) && json == *text;
            if written == *text || is_json {
                return None;
            }
            let label = label(field, sent).map_or(String::new(), |label| format!(" ({label})"));
            Some(harmless(&format!("{name}: {text} is sent as {written}{label}")).into_owned())
        })
        .collect()
}

/// Returns a value as JSON, and text without its quotes.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the title of a single option, if it says more than its value.
fn label<'f>(field: &'f Field, sent: &Value) -> Option<&'f str> {
    let Kind::Choice(choice) = field.kind() else {
        return None;
    };
    let mut options = choice.options.iter();
    let option = options.find(|option| option.sent() == *sent)?;
    Some(ChoiceOption::label(option)).filter(|label| **label != *option.value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form() -> Form {
        Form::from_value(
            &json!({"type": "object", "required": ["check"], "properties": {
                "check": {"type": "boolean"},
                "on": {"type": "string", "format": "date"},
                "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
                "tags": {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}},
                "zip": {"type": "string"},
                "password": {"type": "string"},
                "more.a": {"type": "boolean"},
                "more.b": {"type": "boolean"},
            }}),
        )
        .expect("a legal form")
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn values_are_taken_as_a_person_types_them_and_what_was_understood_is_said() {
        let typed = [
            "check=yes",
            "on=1990/1/2",
            "size=Large",
            "tags=Red, blue",
            "zip=0123",
        ];
        let read = read(&form(), &words(&typed), UnansweredFields::Left).expect("they fit");
        assert_eq!(
            read.answers.to_value(),
            json!({"check": true, "on": "1990-01-02", "size": "l", "tags": ["red", "blue"], "zip": "0123"})
        );
        assert_eq!(
            read.understood,
            [
                "check: yes is sent as true",
                "on: 1990/1/2 is sent as 1990-01-02",
                "size: Large is sent as l (Large)",
                "tags: Red, blue is sent as [\"red\",\"blue\"]",
            ]
        );
    }

    #[test]
    fn a_list_is_spread_over_the_fields_in_which_it_is_asked() {
        let sent = json!({"check": true, "more.a": false, "more.b": true});
        for typed in [
            &["check=yes", "more=b"][..],
            &["check=yes", "more= B ,"],
            &["{\"check\": true, \"more\": [\"b\"]}"],
            &["{\"check\": true, \"more\": \"b\"}"],
            &["check=yes", "more=b", "more.a=no"],
        ] {
            let read = read(&form(), &words(typed), UnansweredFields::Left).expect("they fit");
            assert_eq!(read.answers.to_value(), sent, "{typed:?}");
        }
    }

    #[test]
    fn one_json_object_is_taken_as_it_stands() {
        let read = read(
            &form(),
            &words(&["{\"check\": false, \"zip\": \"1\"}"]),
            UnansweredFields::Left,
        )
        .expect("it fits");
        assert_eq!(read.answers.to_value(), json!({"check": false, "zip": "1"}));
        assert!(read.understood.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_field_and_never_by_its_value() {
        for (typed, said) in [
            (&["check=perhaps"][..], "check"),
            (&["zip=1"], "check"),
            (&["check=yes", "colour=blue"], "colour"),
            (&["check=yes", "check=no"], "twice"),
            (&["hunter2"], "NAME=VALUE"),
            (&["{\"check\": 7}"], "check"),
            (&["{\"check\": true, \"nope\": 1}"], "nope"),
            (&["check=yes", "more=a,c"], "more"),
            (&["{\"check\":"], "JSON object"),
        ] {
            let failure =
                read(&form(), &words(typed), UnansweredFields::Left).expect_err("it does not fit");
            let told = format!("{failure:?}");
            assert!(told.contains(said), "{typed:?}: {told}");
            assert!(
                !told.contains("perhaps") && !told.contains("hunter2"),
                "{told}"
            );
        }
    }

    #[test]
    fn a_value_that_seems_to_be_a_credential_is_not_repeated() {
        let typed = [
            ("password".to_owned(), "hunter2 ".to_owned()),
            ("check".to_owned(), "y".to_owned()),
        ];
        let answers = form()
            .check(json!({"password": "hunter2", "check": true}))
            .expect("they fit");
        assert_eq!(
            understood(&form(), &answers, &typed),
            ["check: y is sent as true"]
        );
    }

    #[test]
    fn defaults_stand_where_nothing_is_answered_if_that_is_wanted() {
        let form = Form::from_value(
            &json!({"type": "object", "required": ["place", "nights", "tags"], "properties": {
                "place": {"type": "string", "default": "Rome"},
                "nights": {"type": "integer", "default": 3},
                "tags": {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}, "default": ["red"]},
            }}),
        )
        .expect("a legal form");
        let sent = json!({"place": "Rome", "nights": 4, "tags": []});
        for typed in [
            &["nights=4", "tags="][..],
            &["{\"nights\": 4, \"tags\": []}"],
        ] {
            let read = read(&form, &words(typed), UnansweredFields::Default).expect("they fit");
            assert_eq!(read.answers.to_value(), sent, "{typed:?}");
        }
        assert!(read(&form, &words(&["nights=4"]), UnansweredFields::Left).is_err());
    }

    #[test]
    fn an_option_that_is_written_as_json_needs_no_note() {
        let form = Form::from_value_leniently(
            &json!({"type": "object", "properties": {"n": {"enum": [1, "1", 2.0]}}}),
        )
        .expect("a form that can be shown");
        for (typed, sent, note) in [
            ("n=\"1\"", json!({"n": "1"}), None),
            ("n=1", json!({"n": 1}), None),
        ] {
            let read = read(&form, &words(&[typed]), UnansweredFields::Left).expect("it fits");
            assert_eq!(read.answers.to_value(), sent, "{typed}");
            assert_eq!(read.understood.first().map(String::as_str), note, "{typed}");
        }
    }
}
