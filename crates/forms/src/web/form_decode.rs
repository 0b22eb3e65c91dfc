//! The conversion from the controls of a page to a draft, and from a draft to answers.
//!
//! Controls are named by position (`f0`, `f1`), and so are options, so that no string from a server has to survive a
//! browser. [`Form::read`] alone decides whether an answer is right.

use mcp_elicit_core::answer::{Draft, DraftValue};

use crate::view::{Control, FieldView, date_time};

pub(super) use crate::view::validation::{FieldErrors, answers};

/// The submitted controls of a page.
#[derive(Default)]
pub(super) struct Posted(Vec<(String, String)>);

impl Posted {
    /// Reads a body of type `application/x-www-form-urlencoded`.
    pub(super) fn read(body: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(body).into_owned().collect())
    }

    /// Returns the first value of the control `name`.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns every value of the control `name`.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the typed values, field by field.
    pub(super) fn draft(&self, fields: &[FieldView]) -> Draft {
        let mut draft = Draft::new();
        for (index, field) in fields.iter().enumerate() {
            draft.set(&field.name, self.typed(field, &key(index)));
        }
        draft
    }

    fn typed(&self, field: &FieldView, key: &str) -> DraftValue {
        let text = || match self.get(key) {
            None | Some("") => DraftValue::Nothing,
            // Browsers send line breaks as CR LF.
            Some(text) => DraftValue::Text(text.replace("\r\n", "\n")),
        };
        match &field.control {
            Control::YesNo => match self.get(key) {
                Some("0") => DraftValue::Flag(true),
                Some("1") => DraftValue::Flag(false),
                _ => DraftValue::Nothing,
            },
            Control::One(_) => match self.picked(field, key).pop() {
                Some(value) => DraftValue::Picked(vec![value]),
                None => DraftValue::Nothing,
            },
            Control::Several { .. } => {
                let picked = self.picked(field, key);
                // An unchecked box has no value, unless the field is required or has a default, which the person has
                // then cleared.
                let unsaid =
                    picked.is_empty() && !field.required && field.default == DraftValue::Nothing;
                if unsaid {
                    DraftValue::Nothing
                } else {
                    DraftValue::Picked(picked)
                }
            }
            Control::DateTime => match (self.get(key), self.get(&format!("{key}.zone"))) {
                (None | Some(""), _) => DraftValue::Nothing,
                (Some(local), None | Some("")) => DraftValue::Text(local.to_owned()),
                (Some(local), Some(zone)) => DraftValue::Text(format!("{local}[{}]", zone.trim())),
            },
            Control::Text { .. }
            | Control::Email
            | Control::Uri
            | Control::Date
            | Control::Number { .. } => text(),
        }
    }

    /// Returns the values of the selected options, in the form's order.
    fn picked(&self, field: &FieldView, key: &str) -> Vec<String> {
        let mut indices: Vec<usize> = self
            .all(key)
            .filter_map(|value| value.parse().ok())
            .collect();
        indices.sort_unstable();
        indices.dedup();
        let options = field.control.options();
        indices
            .into_iter()
            .filter_map(|index| options.get(index))
            .map(|option| option.value.clone())
            .collect()
    }
}

/// Returns the name of the control of the field at `index`.
pub(super) fn key(index: usize) -> String {
    format!("f{index}")
}

/// Returns the initial draft: every default.
pub(super) fn untouched(fields: &[FieldView]) -> Draft {
    let mut draft = Draft::new();
    for field in fields {
        draft.set(&field.name, field.default.clone());
    }
    draft
}

/// Returns `true` if a draft differs from the form's defaults.
pub(super) fn is_filled_in(fields: &[FieldView], draft: &Draft) -> bool {
    fields.iter().any(|field| {
        let typed = draft.get(&field.name);
        match (typed, &field.default) {
            // The zone is filled in by default.
            (DraftValue::Text(typed), DraftValue::Text(default))
                if field.control == Control::DateTime =>
            {
                moment_controls(typed).0 != moment_controls(default).0
            }
            (DraftValue::Picked(typed), DraftValue::Picked(default)) => {
                let in_order = |values: &[String]| {
                    let mut values = values.to_vec();
                    values.sort_unstable();
                    values
                };
                in_order(typed) != in_order(default)
            }
            (typed, default) => !(typed == default || is_empty(typed) && is_empty(default)),
        }
    })
}

fn is_empty(typed: &DraftValue) -> bool {
    match typed {
        DraftValue::Nothing => true,
        DraftValue::Text(text) => text.is_empty(),
        DraftValue::Picked(values) => values.is_empty(),
        DraftValue::Flag(_) => false,
    }
}

/// Returns the values of the two controls of a date and time for `text`, which may be a draft or a default such as
/// `2026-11-30T09:00:00Z`.
pub(super) fn moment_controls(text: &str) -> (String, String) {
    if let Some((local, zone)) = date_time::parts(text) {
        return (local.to_owned(), zone.to_owned());
    }
    let Some(at) = text.find(['T', 't', ' ']) else {
        return (text.to_owned(), String::new());
    };
    let time = &text[at + 1..];
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let local = format!("{}T{}", &text[..at], &time[..zone_at]);
    let zone = match &time[zone_at..] {
        "Z" | "z" => "UTC".to_owned(),
        offset => offset.to_owned(),
    };
    (local, zone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_elicit_core::answer::Answers;
    use mcp_elicit_core::form::Form;
    use serde_json::json;

    fn form() -> Form {
        Form::from_value(&json!({"type": "object", "properties": {
            "name": {"type": "string", "minLength": 3},
            "start": {"type": "string", "format": "date-time"},
            "go": {"type": "boolean"},
            "one": {"type": "string", "enum": ["a", "b\r\nc"]},
            "some": {"type": "array", "items": {"type": "string", "enum": ["x", "y", "z"]}, "maxItems": 2}
        }, "required": ["name", "go"]}))
        .unwrap()
    }

    fn fields(form: &Form) -> Vec<FieldView> {
        form.fields().iter().map(FieldView::from_field).collect()
    }

    fn read(body: &str) -> Result<serde_json::Value, FieldErrors> {
        let form = form();
        let fields = fields(&form);
        let draft = Posted::read(body.as_bytes()).draft(&fields);
        answers(&form, &fields, &draft).map(Answers::into_value)
    }

    #[test]
    fn controls_become_answers() {
        assert_eq!(
            read("f0=Ana+B%0D%0AC&f1=2026-07-30T09:00&f1.zone=Europe/Brussels&f2=1&f3=1&f4=2&f4=0")
                .unwrap(),
            json!({"name": "Ana B\nC", "start": "2026-07-30T09:00:00+02:00", "go": false, "one": "b\r\nc", "some": ["x", "z"]})
        );
    }

    #[test]
    fn what_is_left_empty_is_left_out() {
        assert_eq!(
            read("f0=Ana&f1=&f1.zone=UTC&f2=0&f3=").unwrap(),
            json!({"name": "Ana", "go": true})
        );
    }

    #[test]
    fn offsets_and_utc_are_zones() {
        for (zone, offset) in [
            ("UTC", "+00:00"),
            ("%2B05:30", "+05:30"),
            ("-03:00", "-03:00"),
            ("Z", "+00:00"),
        ] {
            let body = format!("f0=Ana&f2=0&f1=2026-01-02T03:04:05&f1.zone={zone}");
            assert_eq!(
                read(&body).unwrap()["start"],
                format!("2026-01-02T03:04:05{offset}"),
                "{zone}"
            );
        }
    }

    #[test]
    fn an_unknown_zone_is_said_once_and_without_the_value() {
        let wrong = read("f0=Ana&f2=0&f1=2026-01-02T03:04&f1.zone=Mars/Base").unwrap_err();
        assert_eq!(wrong.len(), 1);
        assert_eq!(wrong[0].0, 1);
        assert!(wrong[0].1.contains("time zone") && !wrong[0].1.contains("Mars"));
    }

    #[test]
    fn every_wrong_field_is_named_in_order() {
        let wrong = read("f0=A&f4=0&f4=1&f4=2&f4=99&f4=-1").unwrap_err();
        assert_eq!(
            wrong.iter().map(|(index, _)| *index).collect::<Vec<_>>(),
            [0, 2, 4]
        );
    }

    #[test]
    fn a_default_fills_both_controls_of_a_moment() {
        assert_eq!(
            moment_controls("2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05".into(), "UTC".into())
        );
        assert_eq!(
            moment_controls("2026-01-02T03:04:05.5-03:00"),
            ("2026-01-02T03:04:05.5".into(), "-03:00".into())
        );
        assert_eq!(
            moment_controls("2026-01-02T03:04[Asia/Tokyo]"),
            ("2026-01-02T03:04".into(), "Asia/Tokyo".into())
        );
        assert_eq!(moment_controls("junk"), ("junk".into(), String::new()));
    }

    #[test]
    fn a_body_of_anything_is_read_without_panic() {
        for body in [
            "",
            "&&&",
            "f0",
            "=x",
            "f0=%ff%00",
            "f3=18446744073709551616",
            "f1=[]&f1.zone=][",
        ] {
            let _ = read(body);
        }
    }
}
