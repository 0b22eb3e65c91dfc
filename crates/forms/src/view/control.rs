use mcp_elicit_core::answer::DraftValue;
use mcp_elicit_core::form::{Choice, ChoiceOption, Field, Format, Kind, Text};
use serde_json::{Number, Value};

use super::{hints, sanitize};

/// Above this many characters a text gets a box of several lines.
const LONG: u64 = 120;

/// One entry of a list to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pick {
    /// The value that is sent when it is chosen, exactly as the server gave it.
    pub value: String,
    /// The text that the person reads, safe to show.
    pub label: String,
}

/// The kind of control that fits a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// Free text; `long` where a box of several lines fits better than a line.
    Text {
        /// `true` if a box of several lines fits better than a line.
        long: bool,
    },
    /// An email address.
    Email,
    /// A URI.
    Uri,
    /// A calendar date.
    Date,
    /// A moment with its zone.
    DateTime,
    /// A number; `whole` where it has no fraction.
    Number {
        /// `true` if it has no fraction.
        whole: bool,
        /// The least that is allowed.
        minimum: Option<Number>,
        /// The most that is allowed.
        maximum: Option<Number>,
        /// The distance between allowed numbers.
        step: Option<Number>,
    },
    /// Yes or no, or nothing yet.
    YesNo,
    /// One of a list.
    One(Vec<Pick>),
    /// Several of a list.
    Several {
        /// The list.
        options: Vec<Pick>,
        /// The least number of entries to choose.
        least: Option<u64>,
        /// The most entries to choose.
        most: Option<u64>,
    },
}

impl Control {
    fn of(kind: &Kind) -> Self {
        match kind {
            Kind::Text(Text {
                format: Some(format),
                ..
            }) => match format {
                Format::Email => Self::Email,
                Format::Uri => Self::Uri,
                Format::Date => Self::Date,
                Format::DateTime => Self::DateTime,
            },
            Kind::Text(text) => Self::Text {
                long: text.max_length.is_some_and(|most| most > LONG)
                    || text.min_length.is_some_and(|least| least > LONG / 2),
            },
            Kind::Number(number) | Kind::Integer(number) => Self::Number {
                whole: matches!(kind, Kind::Integer(_)),
                minimum: number.minimum.clone(),
                maximum: number.maximum.clone(),
                step: number.multiple_of.clone(),
            },
            Kind::Boolean(_) => Self::YesNo,
            Kind::Choice(Choice { options, .. }) => Self::One(picks(options)),
            Kind::Choices(choices) => Self::Several {
                options: picks(&choices.options),
                least: choices.min_items,
                most: choices.max_items,
            },
        }
    }

    /// The list to choose from; empty for controls that have none.
    pub fn options(&self) -> &[Pick] {
        match self {
            Self::One(options) | Self::Several { options, .. } => options,
            _ => &[],
        }
    }

    /// Returns whether what is typed may hold line breaks.
    pub fn takes_lines(&self) -> bool {
        matches!(self, Self::Text { .. })
    }
}

fn picks(options: &[ChoiceOption]) -> Vec<Pick> {
    options
        .iter()
        .map(|option| {
            let shown = sanitize::line(option.label(), TEXT);
            let label = if shown.is_empty() {
                sanitize::line(&option.value, TEXT)
            } else {
                shown
            };
            Pick {
                value: option.value.to_string(),
                label: if label.is_empty() {
                    "(empty)".to_owned()
                } else {
                    label
                },
            }
        })
        .collect()
}

/// A field as a frontend shows it. All text is safe to show; `name` is for matching and records.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FieldView {
    /// The field's name in the form, exactly as the server gave it.
    pub name: String,
    /// The name that the person reads: its title, or its name.
    pub label: String,
    /// The server's explanation, of several lines.
    pub description: Option<String>,
    /// `true` if it must be answered.
    pub required: bool,
    /// The control that fits.
    pub control: Control,
    /// The bounds in words: `3 to 50 characters`.
    pub hints: Vec<String>,
    /// The initial value: its default, or nothing.
    pub default: DraftValue,
    /// `true` if it certainly asks for a credential, so that what is typed into it is not shown.
    pub is_secret: bool,
}

/// Longest label, description or option shown, in characters. No schema is longer, so that no part of a question is hidden.
const TEXT: usize = sanitize::ARGUMENTS;

/// Stands for what is typed into a field that asks for a credential.
const HIDDEN: &str = "(hidden)";

impl FieldView {
    /// The view of one field.
    pub fn from_field(field: &Field) -> Self {
        let label = match (field.title(), field.name()) {
            // What a question about one thing calls its only field, where its author gave no title.
            (None, "choice") => "Your choice".to_owned(),
            (None, "choices") => "Your choices".to_owned(),
            (None, "confirm") => "Your answer".to_owned(),
            _ => sanitize::line(field.label(), TEXT),
        };
        let description = field
            .description()
            .map(|raw| sanitize::text(raw.trim(), TEXT));
        Self {
            name: field.name().to_owned(),
            label: if label.is_empty() {
                "(no name)".to_owned()
            } else {
                label
            },
            description: description.filter(|text| !text.is_empty()),
            required: field.required(),
            control: Control::of(field.kind()),
            hints: hints::from_kind(field.kind()),
            default: default_of(field),
            is_secret: false,
        }
    }

    /// `required` or `optional`.
    pub fn need(&self) -> &'static str {
        if self.required {
            "required"
        } else {
            "optional"
        }
    }

    /// The bounds on one line, joined by ` · `; empty where anything goes.
    pub fn hint(&self) -> String {
        self.hints.join(" · ")
    }

    /// Returns what the field holds, in the words the person chose it by, safe to show. `None` when it is empty.
    pub fn shown(&self, typed: &DraftValue) -> Option<String> {
        match typed {
            DraftValue::Nothing => None,
            DraftValue::Text(text) if text.is_empty() => None,
            DraftValue::Text(_) if self.is_secret => Some(HIDDEN.to_owned()),
            DraftValue::Text(text) => Some(sanitize::text(text, sanitize::DESCRIPTION)),
            DraftValue::Flag(flag) => Some(if *flag { "Yes" } else { "No" }.to_owned()),
            DraftValue::Picked(values) => {
                let labels: Vec<_> = values.iter().map(|value| self.label_of(value)).collect();
                (!labels.is_empty()).then(|| labels.join(", "))
            }
        }
    }

    /// Returns what is sent for the field, in the words the person chose it by: options by their labels, everything
    /// else exactly as the server gets it. Safe to show.
    pub fn sent(&self, value: &Value) -> Vec<String> {
        match value {
            Value::Bool(flag) => vec![if *flag { "Yes" } else { "No" }.to_owned()],
            Value::String(_) | Value::Number(_) if self.is_secret => vec![HIDDEN.to_owned()],
            Value::String(text) if self.control.options().is_empty() => {
                vec![sanitize::text(text, sanitize::ARGUMENTS)]
            }
            Value::String(value) => vec![self.label_of(value)],
            Value::Array(items) if items.is_empty() => vec!["none of them".to_owned()],
            Value::Array(items) => items.iter().flat_map(|item| self.sent(item)).collect(),
            other => vec![sanitize::line(&other.to_string(), sanitize::LABEL)],
        }
    }

    fn label_of(&self, value: &str) -> String {
        let option = self
            .control
            .options()
            .iter()
            .find(|pick| pick.value == value);
        option.map_or_else(
            || sanitize::line(value, sanitize::LABEL),
            |pick| pick.label.clone(),
        )
    }
}

/// A default in the shape a person would have given it: an option is picked, not typed.
fn default_of(field: &Field) -> DraftValue {
    match (field.kind(), DraftValue::from_default(field)) {
        (Kind::Choice(_), DraftValue::Text(value)) => DraftValue::Picked(vec![value]),
        (_, typed) => typed,
    }
}
