//! From the controls of a page to a draft, and from a draft to answers.
//!
//! Controls are named by position (`f0`, `f1`), options by theirs, so that no string of a server's choosing ever has
//! to survive a browser. Whether an answer is right is decided by [`Form::read`] alone.

use jiff::civil;
use jiff::tz::TimeZone;
use mcp_elicit_core::answer::{Answers, Draft, Typed};
use mcp_elicit_core::form::Form;

use crate::view::{Control, FieldView, inert};

/// Longest message about one field, in characters.
const MESSAGE: usize = 400;

/// The controls of a page as they came in.
#[derive(Default)]
pub(super) struct Posted(Vec<(String, String)>);

impl Posted {
    /// Reads a body of type `application/x-www-form-urlencoded`.
    pub(super) fn read(body: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(body).into_owned().collect())
    }

    /// The first value of the control `name`.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// What was typed, field by field.
    pub(super) fn draft(&self, fields: &[FieldView]) -> Draft {
        let mut draft = Draft::new();
        for (index, field) in fields.iter().enumerate() {
            draft.set(&field.name, self.typed(field, &key(index)));
        }
        draft
    }

    fn typed(&self, field: &FieldView, key: &str) -> Typed {
        let text = || match self.get(key) {
            None | Some("") => Typed::Nothing,
            // Browsers send line breaks as CR LF, whatever was typed.
            Some(text) => Typed::Text(text.replace("\r\n", "\n")),
        };
        match &field.control {
            Control::YesNo => match self.get(key) {
                Some("0") => Typed::Flag(true),
                Some("1") => Typed::Flag(false),
                _ => Typed::Nothing,
            },
            Control::One(_) => match self.picked(field, key).pop() {
                Some(value) => Typed::Picked(vec![value]),
                None => Typed::Nothing,
            },
            Control::Several { .. } => {
                let picked = self.picked(field, key);
                // No tick says nothing, unless there was something to say about: a default taken back, or a must.
                let unsaid =
                    picked.is_empty() && !field.required && field.default == Typed::Nothing;
                if unsaid {
                    Typed::Nothing
                } else {
                    Typed::Picked(picked)
                }
            }
            Control::DateTime => match (self.get(key), self.get(&format!("{key}.zone"))) {
                (None | Some(""), _) => Typed::Nothing,
                (Some(local), None | Some("")) => Typed::Text(local.to_owned()),
                (Some(local), Some(zone)) => Typed::Text(format!("{local}[{}]", zone.trim())),
            },
            Control::Text { .. }
            | Control::Email
            | Control::Uri
            | Control::Date
            | Control::Number { .. } => text(),
        }
    }

    /// The values of the chosen options, in the form's order.
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

/// The name of the control of the field at `index`.
pub(super) fn key(index: usize) -> String {
    format!("f{index}")
}

/// The draft before anything was typed: every default.
pub(super) fn untouched(fields: &[FieldView]) -> Draft {
    let mut draft = Draft::new();
    for field in fields {
        draft.set(&field.name, field.default.clone());
    }
    draft
}

/// What is wrong with a draft: the positions of fields, each with a message for a person.
pub(super) type Wrong = Vec<(usize, String)>;

/// Answers from a draft, or all that is wrong with it in the form's order.
pub(super) fn answers(form: &Form, fields: &[FieldView], draft: &Draft) -> Result<Answers, Wrong> {
    let mut meant = draft.clone();
    let mut wrong = Wrong::new();
    for (index, field) in fields.iter().enumerate() {
        if field.control != Control::DateTime {
            continue;
        }
        match moment(draft.get(&field.name)) {
            Ok(typed) => meant.set(&field.name, typed),
            Err(message) => wrong.push((index, message.to_owned())),
        }
    }
    let violations = match form.read(&meant) {
        Ok(answers) if wrong.is_empty() => return Ok(answers),
        Ok(_) => Vec::new(),
        Err(violations) => violations.into_iter().collect(),
    };
    for violation in violations {
        let Some(index) = fields
            .iter()
            .position(|field| field.name == violation.field())
        else {
            continue;
        };
        // A moment whose zone is not known is wrong for that reason alone.
        if !wrong
            .iter()
            .any(|(at, _)| *at == index && fields[index].control == Control::DateTime)
        {
            wrong.push((index, inert::line(&violation.message(), MESSAGE)));
        }
    }
    wrong.sort_by_key(|(index, _)| *index);
    Err(wrong)
}

/// A local time and zone, `2026-11-30T09:00[Europe/Brussels]`, as the moment it means, `2026-11-30T09:00:00+01:00`.
/// Whatever else was typed is left to the form's check.
fn moment(typed: &Typed) -> Result<Typed, &'static str> {
    let Typed::Text(text) = typed else {
        return Ok(typed.clone());
    };
    let Some((local, zone)) = parts(text) else {
        return Ok(typed.clone());
    };
    let Ok(local) = local.parse::<civil::DateTime>() else {
        return Ok(typed.clone());
    };
    let zone = zone_of(zone)
        .ok_or("the time zone is not known here; write one like Europe/Brussels, UTC or +02:00")?;
    let zoned = local
        .to_zoned(zone)
        .map_err(|_| "the date and time is outside what can be told")?;
    let text = zoned.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string();
    Ok(Typed::Text(text))
}

/// `2026-11-30T09:00[Europe/Brussels]` in its two parts.
fn parts(text: &str) -> Option<(&str, &str)> {
    text.strip_suffix(']')?.split_once('[')
}

fn zone_of(name: &str) -> Option<TimeZone> {
    if matches!(name, "Z" | "z") {
        return Some(TimeZone::UTC);
    }
    if name.starts_with(['+', '-', '−']) {
        let offset = name.replace('−', "-");
        // A moment in that offset is the plainest reader of offsets there is.
        let moment = format!("2000-01-01T00:00:00{offset}");
        let pieces =
            jiff::fmt::temporal::DateTimeParser::new().parse_zoned(format!("{moment}[{offset}]"));
        return pieces.ok().map(|zoned| zoned.time_zone().clone());
    }
    TimeZone::get(name).ok()
}

/// What the two controls of a moment show for `text`, be it a draft or a default such as `2026-11-30T09:00:00Z`.
pub(super) fn moment_controls(text: &str) -> (String, String) {
    if let Some((local, zone)) = parts(text) {
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
        form.fields().iter().map(FieldView::of).collect()
    }

    fn read(body: &str) -> Result<serde_json::Value, Wrong> {
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
