use std::collections::HashMap;

use mcp_elicit_core::answer::DraftValue;
use mcp_elicit_core::form::{
    AdjustmentKind, Choice, ChoiceOption, Field, Form, Format, Kind, Text,
};
use serde_json::{Number, Value};

use super::{hints, sanitize};

/// The number of characters above which a text gets a box of several lines.
const LONG: u64 = 120;

/// One entry of a list of choices.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pick {
    /// The value that is sent when it is selected, exactly as the server gave it.
    pub value: String,
    /// The text that the person reads, safe to show.
    pub label: String,
}

/// The kind of control that fits a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// Free text.
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
    /// A date and time with its zone.
    DateTime,
    /// A number.
    Number {
        /// `true` if it has no fraction.
        whole: bool,
        /// The minimum.
        minimum: Option<Number>,
        /// The maximum.
        maximum: Option<Number>,
        /// The distance between allowed numbers.
        step: Option<Number>,
    },
    /// Yes, no or no answer.
    YesNo,
    /// One of a list.
    One(Vec<Pick>),
    /// Several of a list.
    Several {
        /// The list.
        options: Vec<Pick>,
        /// The minimum number of entries.
        least: Option<u64>,
        /// The maximum number of entries.
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
            Kind::Union(_) => Self::Text { long: false },
            Kind::Lines(_) => Self::Text { long: true },
        }
    }

    /// Returns the list of choices; empty for controls without one.
    pub fn options(&self) -> &[Pick] {
        match self {
            Self::One(options) | Self::Several { options, .. } => options,
            _ => &[],
        }
    }

    /// Returns `true` if typed text may contain line breaks.
    pub fn takes_lines(&self) -> bool {
        matches!(self, Self::Text { .. })
    }
}

fn picks(options: &[ChoiceOption]) -> Vec<Pick> {
    let mut titles: HashMap<String, usize> = HashMap::with_capacity(options.len());
    for option in options {
        *titles
            .entry(sanitize::line(option.label(), TEXT))
            .or_default() += 1;
    }
    options
        .iter()
        .map(|option| {
            let shown = sanitize::line(option.label(), TEXT);
            let label = if shown.is_empty() {
                sanitize::line(&option.value, TEXT)
            } else if titles.get(&shown).is_some_and(|count| *count > 1) && *option.value != *shown
            {
                // Options of one title are told apart by their values.
                format!("{shown} ({})", sanitize::line(&option.value, TEXT))
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
    /// The label that the person reads: the title or the name.
    pub label: String,
    /// The server's description, of several lines.
    pub description: Option<String>,
    /// `true` if it must be answered.
    pub required: bool,
    /// The control that fits.
    pub control: Control,
    /// The limits in words: `3 to 50 characters`.
    pub hints: Vec<String>,
    /// The initial value: the default, or nothing.
    pub default: DraftValue,
    /// `true` if it certainly asks for a credential, so that typed text is not shown.
    pub is_secret: bool,
    /// `true` for a list that is written, one value per line.
    pub is_list: bool,
}

/// The longest label, description or option shown, in characters. No schema is longer, so that no part of a question is
/// hidden.
const TEXT: usize = sanitize::ARGUMENTS;

/// The replacement for typed text in a field that asks for a credential.
const HIDDEN: &str = "(hidden)";

impl FieldView {
    /// Creates the view of one field.
    pub fn from_field(field: &Field) -> Self {
        let label = match (field.title(), field.name()) {
            // The only field of a question about one thing, if its author gave no title.
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
            is_list: matches!(field.kind(), Kind::Lines(_)),
        }
    }

    /// Creates the views of a form's fields. Rules of the server that are not checked are among the hints.
    pub fn of_form(form: &Form) -> Vec<Self> {
        let mut views: Vec<_> = form.fields().iter().map(Self::from_field).collect();
        for remark in form.remarks() {
            let is_hint = matches!(
                remark.kind,
                AdjustmentKind::FormatNotEnforced | AdjustmentKind::PatternNotEnforced
            );
            let view = views
                .iter_mut()
                .find(|view| Some(&view.name) == remark.field.as_ref());
            if let Some(view) = view
                && !is_hint
            {
                view.hints.push(sanitize::line(&remark.message, TEXT));
            }
        }
        views
    }

    /// Returns `required` or `optional`.
    pub fn need(&self) -> &'static str {
        if self.required {
            "required"
        } else {
            "optional"
        }
    }

    /// Returns the limits on one line, joined by ` · `; empty if there are none.
    pub fn hint(&self) -> String {
        self.hints.join(" · ")
    }

    /// Returns the value of the field, in the words of its choices, safe to show. `None` if it is empty.
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

    /// Returns the values to send for the field: options by their labels, everything else exactly as the server gets
    /// it. Safe to show.
    pub fn sent(&self, value: &Value) -> Vec<String> {
        match value {
            Value::Bool(flag) if !self.control.options().is_empty() => {
                vec![self.label_of(&flag.to_string())]
            }
            Value::Bool(flag) => vec![if *flag { "Yes" } else { "No" }.to_owned()],
            Value::String(_) | Value::Number(_) if self.is_secret => vec![HIDDEN.to_owned()],
            Value::String(text) if self.control.options().is_empty() => {
                vec![sanitize::text(text, sanitize::ARGUMENTS)]
            }
            Value::String(value) => vec![self.label_of(value)],
            Value::Number(_) if !self.control.options().is_empty() => {
                vec![self.label_of(&value.to_string())]
            }
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

/// Returns a default as if a person had entered it: an option is selected, not typed.
fn default_of(field: &Field) -> DraftValue {
    match (field.kind(), DraftValue::from_default(field)) {
        (Kind::Choice(_), DraftValue::Text(value)) => DraftValue::Picked(vec![value]),
        (_, typed) => typed,
    }
}
