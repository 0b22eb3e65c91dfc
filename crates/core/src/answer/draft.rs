//! Reading a person's input: tolerant of spelling, never guessing a meaning.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Number, Value};

use super::advice::two_readings;
use super::{Answers, BrokenRule, ExpectedType, Violation, Violations};
use crate::form::{ChoiceOption, ChoiceOptions, Field, Form, Format, Kind, Lines};
use crate::json::Given;
use crate::number::canonical_integer;

/// The current value of one field, as entered by a person.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum DraftValue {
    /// No value.
    #[default]
    Nothing,
    /// Text, whatever the kind of field.
    Text(String),
    /// Options, by their values.
    Picked(Vec<String>),
    /// Yes or no.
    Flag(bool),
}

impl DraftValue {
    /// Returns the value that is shown before the person types: the field's default.
    pub fn from_default(field: &Field) -> Self {
        match field.kind() {
            // A list that is written, not picked.
            Kind::Lines(lines) => lines
                .default
                .as_deref()
                .map_or(DraftValue::Nothing, |values| {
                    DraftValue::Text(Lines::written(values))
                }),
            // Options by their values, which are texts for options of every type.
            Kind::Choice(choice) => choice
                .default
                .clone()
                .map_or(DraftValue::Nothing, DraftValue::Text),
            Kind::Choices(choices) => choices
                .default
                .clone()
                .map_or(DraftValue::Nothing, DraftValue::Picked),
            Kind::Text(_)
            | Kind::Number(_)
            | Kind::Integer(_)
            | Kind::Boolean(_)
            | Kind::Union(_) => Self::from_value(field.default().as_ref()),
        }
    }

    /// Returns the draft of a value.
    pub fn from_value(value: Option<&Value>) -> Self {
        match value {
            Some(Value::String(text)) => DraftValue::Text(text.clone()),
            Some(Value::Bool(flag)) => DraftValue::Flag(*flag),
            Some(Value::Array(items)) => DraftValue::Picked(
                items
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
            ),
            Some(number @ Value::Number(_)) => DraftValue::Text(number.to_string()),
            Some(Value::Null | Value::Object(_)) | None => DraftValue::Nothing,
        }
    }

    /// Returns `true` if the field is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            DraftValue::Nothing => true,
            DraftValue::Text(text) => text.trim().is_empty(),
            DraftValue::Picked(_) | DraftValue::Flag(_) => false,
        }
    }
}

/// Masks the value, which a person typed.
impl fmt::Debug for DraftValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DraftValue::Nothing => "Nothing",
            DraftValue::Text(_) => "Text(***)",
            DraftValue::Picked(_) => "Picked(***)",
            DraftValue::Flag(_) => "Flag(***)",
        })
    }
}

/// The current values of a form's fields, as entered by a person.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Draft(Vec<(String, DraftValue)>);

impl Draft {
    /// Creates an empty draft.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a draft with every default filled in.
    pub fn for_form(form: &Form) -> Self {
        Draft(
            form.fields()
                .iter()
                .map(|field| (field.name().to_owned(), DraftValue::from_default(field)))
                .collect(),
        )
    }

    /// Returns the value of a field.
    pub fn get(&self, field: &str) -> &DraftValue {
        self.0
            .iter()
            .find(|(name, _)| name == field)
            .map_or(&DraftValue::Nothing, |(_, typed)| typed)
    }

    /// Sets the value of a field.
    pub fn set(&mut self, field: &str, typed: DraftValue) {
        match self.0.iter_mut().find(|(name, _)| name == field) {
            Some((_, old)) => *old = typed,
            None => self.0.push((field.to_owned(), typed)),
        }
    }

    /// Returns each field that has a draft value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &DraftValue)> {
        self.0.iter().map(|(name, typed)| (name.as_str(), typed))
    }
}

impl Form {
    /// Reads the answers from a draft.
    ///
    /// # Errors
    /// Every violation, in the form's order.
    pub fn read(&self, draft: &Draft) -> Result<Answers, Violations> {
        let mut content = Map::new();
        let mut unread = Vec::new();
        for (index, field) in self.fields().iter().enumerate() {
            match read(field, draft.get(field.name())) {
                Ok(Some(value)) => {
                    content.insert(field.name().to_owned(), value);
                }
                Ok(None) => {}
                Err(rule) => unread.push(Violation {
                    index,
                    field: field.shared_name(),
                    rule,
                }),
            }
        }
        match self.check(Value::Object(content)) {
            Ok(answers) if unread.is_empty() => Ok(answers),
            checked => {
                let checked = checked.err().unwrap_or_default();
                // A field that could not be read is not reported as missing too.
                let judged = checked
                    .into_iter()
                    .filter(|v| unread.iter().all(|u| u.index != v.index));
                let mut all: Vec<_> = judged.chain(unread.iter().cloned()).collect();
                all.sort_by_key(|violation| violation.index);
                Err(Violations(all))
            }
        }
    }

    /// Reads one field, for checks during input. `None` if an optional field is empty.
    ///
    /// # Errors
    /// Every violation of this field. A name that the form does not have is [`BrokenRule::AdditionalProperties`].
    pub fn read_field(
        &self,
        name: &str,
        typed: &DraftValue,
    ) -> Result<Option<Value>, Vec<Violation>> {
        let Some(index) = self.position(name) else {
            let field = Arc::from(crate::form::text::clip(name));
            return Err(vec![Violation {
                index: 0,
                field,
                rule: BrokenRule::AdditionalProperties,
            }]);
        };
        let field = &self.fields()[index];
        let violation = |rule| Violation {
            index,
            field: field.shared_name(),
            rule,
        };
        let Some(value) = read(field, typed).map_err(|rule| vec![violation(rule)])? else {
            return if field.required() {
                Err(vec![violation(BrokenRule::Required)])
            } else {
                Ok(None)
            };
        };
        let mut broken = Vec::new();
        field.kind().check(Given::from_value(&value), &mut |rule| {
            broken.push(violation(rule));
        });
        if broken.is_empty() {
            Ok(Some(value))
        } else {
            Err(broken)
        }
    }
}

/// Reads the intended value; the field's limits are checked later.
fn read(field: &Field, typed: &DraftValue) -> Result<Option<Value>, BrokenRule> {
    if typed.is_empty() {
        return Ok(None);
    }
    read_kind(field.kind(), field.required(), typed)
}

fn read_kind(kind: &Kind, required: bool, typed: &DraftValue) -> Result<Option<Value>, BrokenRule> {
    match kind {
        Kind::Text(text) => match typed {
            DraftValue::Text(typed) => Ok(Some(Value::String(read_text(typed, text.format)))),
            _ => Err(BrokenRule::Type(ExpectedType::Text)),
        },
        Kind::Number(_) => read_number(typed)
            .ok_or(BrokenRule::Type(ExpectedType::Number))
            .map(Some),
        Kind::Integer(_) => read_number(typed)
            .filter(|_| !is_doubtful(typed))
            .ok_or(BrokenRule::Type(ExpectedType::Integer))
            .map(Some),
        Kind::Boolean(_) => match typed {
            DraftValue::Flag(flag) => Ok(Some(Value::Bool(*flag))),
            DraftValue::Text(word) => read_flag(word)
                .map(|flag| Some(Value::Bool(flag)))
                .ok_or(BrokenRule::Type(ExpectedType::Boolean)),
            _ => Err(BrokenRule::Type(ExpectedType::Boolean)),
        },
        Kind::Choice(choice) => {
            let picked = match typed {
                DraftValue::Text(text) => option_of(&choice.options, text),
                DraftValue::Picked(picked) => match picked.as_slice() {
                    [] => return Ok(None),
                    [one] => option_of(&choice.options, one),
                    _ => None,
                },
                DraftValue::Flag(flag) => choice.options.find(Given::Boolean(*flag)),
                DraftValue::Nothing => None,
            };
            picked
                .map(|option| Some(option.sent()))
                .ok_or_else(|| choice.options.rule())
        }
        Kind::Choices(choices) => {
            let picked = match typed {
                DraftValue::Picked(picked) if picked.is_empty() && !required => {
                    return Ok(None);
                }
                DraftValue::Picked(picked) => picked
                    .iter()
                    .map(|one| option_of(&choices.options, one))
                    .collect(),
                DraftValue::Text(text) => options_of(&choices.options, text),
                _ => None,
            };
            picked
                .map(|picked: Vec<&ChoiceOption>| {
                    Some(picked.into_iter().map(ChoiceOption::sent).collect())
                })
                .ok_or_else(|| choices.options.rule())
        }
        Kind::Union(union) => read_union(&union.alternatives, typed).map(Some),
        Kind::Lines(lines) => match typed {
            DraftValue::Picked(items) if items.is_empty() && !required => Ok(None),
            DraftValue::Picked(items) => {
                read_items(&lines.item, items.iter().map(String::as_str)).map(Some)
            }
            DraftValue::Text(text) => {
                // Values may contain line breaks in a JSON list.
                if let Ok(Value::Array(items)) = serde_json::from_str(text) {
                    let items = items.into_iter().map(|item| match item {
                        Value::String(text) => read_items(&lines.item, std::iter::once(&*text))
                            .map(|mut read| read[0].take()),
                        other => Ok(other),
                    });
                    return items.collect::<Result<Value, _>>().map(Some);
                }
                let lines_of_text = text.lines().filter(|line| !line.trim().is_empty());
                read_items(&lines.item, lines_of_text).map(Some)
            }
            _ => Err(BrokenRule::Type(ExpectedType::List)),
        },
    }
}

/// Reads the text as the first alternative that it fits as it is written, or else as the first that accepts a tolerant
/// reading. If none does, the first alternative that it can be read as at all tells the rules that it breaks.
fn read_union(alternatives: &[Kind], typed: &DraftValue) -> Result<Value, BrokenRule> {
    let fits = |kind: &Kind, value: &Value| kind.accepts(Given::from_value(value));
    if let DraftValue::Text(text) = typed {
        let plain = alternatives.iter().find_map(|kind| {
            let value = read_plain(kind, text)?;
            fits(kind, &value).then_some(value)
        });
        if let Some(value) = plain {
            return Ok(value);
        }
    }
    let mut readable = None;
    for kind in alternatives {
        match read_kind(kind, true, typed) {
            Ok(Some(value)) if fits(kind, &value) => return Ok(value),
            Ok(Some(value)) => readable = readable.or(Some(value)),
            Ok(None) | Err(_) => {}
        }
    }
    readable.ok_or(BrokenRule::Type(ExpectedType::Scalar))
}

/// Reads a text as a value of this kind without any tolerance, since the text may be meant for another alternative.
fn read_plain(kind: &Kind, text: &str) -> Option<Value> {
    match kind {
        Kind::Text(format) => Some(Value::String(read_text(text, format.format))),
        Kind::Number(_) => serde_json::from_str(text.trim()).ok().map(Value::Number),
        Kind::Integer(_) => serde_json::from_str(text.trim())
            .ok()
            .map(|number| Value::Number(canonical_integer(number))),
        Kind::Boolean(_) => serde_json::from_str(text.trim()).ok().map(Value::Bool),
        Kind::Choice(choice) => {
            let is_it = |o: &&ChoiceOption| &*o.value == text || o.label() == text;
            choice.options.iter().find(is_it).map(ChoiceOption::sent)
        }
        Kind::Choices(_) | Kind::Union(_) | Kind::Lines(_) => None,
    }
}

/// Reads content that answers a schema as [`Form::emit`] spells it: what became a text there is read as a person's text.
pub(crate) fn from_emitted(field: &Field, value: Value) -> Value {
    let read = match (field.kind(), &value) {
        (Kind::Choice(choice), Value::String(text)) if choice.options.are_typed() => {
            let option = choice.options.iter().find(|option| *option.value == **text);
            option.map(ChoiceOption::sent)
        }
        (Kind::Choices(choices), Value::Array(items)) if choices.options.are_typed() => {
            let option_of = |item: &Value| {
                let text = item.as_str()?;
                let option = choices.options.iter().find(|option| &*option.value == text);
                option.map(ChoiceOption::sent)
            };
            let items = items.iter();
            Some(
                items
                    .map(|item| option_of(item).unwrap_or_else(|| item.clone()))
                    .collect(),
            )
        }
        (Kind::Union(_) | Kind::Lines(_), Value::String(text)) => {
            let typed = DraftValue::Text(text.clone());
            read_kind(field.kind(), field.required(), &typed).unwrap_or(None)
        }
        _ => None,
    };
    read.unwrap_or(value)
}

fn read_items<'t>(kind: &Kind, items: impl Iterator<Item = &'t str>) -> Result<Value, BrokenRule> {
    let values = items.map(|item| {
        let typed = DraftValue::Text(item.to_owned());
        Ok(read_kind(kind, true, &typed)?.unwrap_or_else(|| Value::from(item)))
    });
    values.collect()
}

/// Keeps free text as typed; trims formatted values, where surrounding space has no meaning.
fn read_text(text: &str, format: Option<Format>) -> String {
    match format {
        None => text.to_owned(),
        Some(Format::Email) => read_email(text.trim()).unwrap_or_else(|| text.trim().to_owned()),
        Some(Format::Uri) => read_uri(text.trim()).unwrap_or_else(|| text.trim().to_owned()),
        Some(Format::Date) => read_date(text.trim()).unwrap_or_else(|| text.trim().to_owned()),
        Some(Format::DateTime) => {
            read_date_time(text.trim()).unwrap_or_else(|| text.trim().to_owned())
        }
    }
}

/// Returns a mail address with an international domain in its ASCII spelling: the domain in Punycode (RFC 5890). The
/// format `email` has no other. `None` if the domain is ASCII already or no domain.
fn read_email(text: &str) -> Option<String> {
    let (local, domain) = text.rsplit_once('@')?;
    if domain.is_ascii() || !local.is_ascii() {
        return None;
    }
    let domain = idna::domain_to_ascii_strict(domain).ok()?;
    Some(format!("{local}@{domain}"))
}

/// Returns an http or https URL with international characters in its ASCII spelling: the host in Punycode, the rest
/// percent-encoded. `None` if it is ASCII already, and if the parser would repair it.
fn read_uri(text: &str) -> Option<String> {
    let repaired = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    if text.is_ascii() || text.contains(repaired) {
        return None;
    }
    let url = url::Url::parse(text).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.into())
}

/// Reads a date with the year first, with any of three separators and without leading zeros: 2026/2/3. A leading day
/// could be a month.
fn read_date(text: &str) -> Option<String> {
    let separator = ['-', '/', '.'].into_iter().find(|c| text.contains(*c))?;
    let mut parts = text.split(separator);
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = |part: &str, most: usize| {
        (1..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
    };
    let sound = parts.next().is_none()
        && year.len() == 4
        && digits(year, 4)
        && digits(month, 2)
        && digits(day, 2);
    sound.then(|| format!("{year}-{month:0>2}-{day:0>2}"))
}

/// Reads a date-time with a space in place of the T, without seconds, or with a space before the offset. The offset
/// itself is never guessed.
fn read_date_time(text: &str) -> Option<String> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let rest = rest.trim();
    let offset_at = rest.find(['Z', 'z', '+', '-'])?;
    let (time, offset) = rest.split_at(offset_at);
    let time = time.trim();
    let seconds = if time.matches(':').count() == 1 {
        ":00"
    } else {
        ""
    };
    Some(format!(
        "{}T{time}{seconds}{}",
        read_date(date)?,
        offset.to_ascii_uppercase()
    ))
}

/// Returns `true` if a point is where many countries group digits, as in 1.000: a whole number is not written with a
/// fraction.
fn is_doubtful(typed: &DraftValue) -> bool {
    matches!(typed, DraftValue::Text(text) if two_readings(text.trim()).is_some())
}

fn read_number(typed: &DraftValue) -> Option<Value> {
    let DraftValue::Text(text) = typed else {
        return None;
    };
    let mut plain: String = text.trim().replace('\u{2212}', "-");
    plain = plain.strip_prefix('+').map_or(plain.clone(), str::to_owned);
    // Spaces and apostrophes group digits: 12 000, 12'000.
    let grouped = |c: char| c.is_whitespace() || matches!(c, '\'' | '\u{2019}' | '_');
    if plain.contains(grouped) {
        let whole = plain
            .split(['.', ','])
            .next()
            .unwrap_or_default()
            .trim_start_matches('-');
        let mut groups = whole.split(grouped);
        let first = groups.next().unwrap_or_default();
        if !(1..=3).contains(&first.len()) || !groups.all(|group| group.len() == 3) {
            return None;
        }
        plain.retain(|c| !grouped(c));
    }
    // A single comma is a decimal comma unless three digits follow: then it is ambiguous, and rejected.
    if let Some((whole, fraction)) = plain.split_once(',') {
        if fraction.len() == 3 || fraction.contains([',', '.']) || whole.contains('.') {
            return None;
        }
        plain = format!("{whole}.{fraction}");
    }
    let json = plain
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e' | b'E'));
    let padded = match plain.strip_prefix('.') {
        Some(fraction) => format!("0.{fraction}"),
        None => plain,
    };
    if !json {
        return None;
    }
    serde_json::from_str::<Number>(&padded)
        .ok()
        .map(|number| Value::Number(canonical_integer(number)))
}

fn read_flag(word: &str) -> Option<bool> {
    match word.trim().to_lowercase().as_str() {
        "yes" | "y" | "true" | "t" | "1" | "on" | "ok" | "ja" | "oui" | "si" | "sí" | "sim" => {
            Some(true)
        }
        "no" | "n" | "false" | "f" | "0" | "off" | "nein" | "non" | "não" => Some(false),
        _ => None,
    }
}

/// Returns the option for a value, a title, or either in another letter case if only one matches.
fn option_of<'o>(options: &'o ChoiceOptions, text: &str) -> Option<&'o ChoiceOption> {
    let exact = options.iter().find(|option| &*option.value == text);
    if exact.is_some() {
        return exact;
    }
    let mut titled = options.iter().filter(|option| option.label() == text);
    if let Some(option) = titled.next() {
        // Of two options with one title, neither is guessed.
        return titled.next().is_none().then_some(option);
    }
    let wanted = text.trim().to_lowercase();
    let mut close = options
        .iter()
        .filter(|o| o.value.to_lowercase() == wanted || o.label().to_lowercase() == wanted);
    let option = close.next()?;
    close.next().is_none().then_some(option)
}

/// Returns one option, or several separated by commas, semicolons or line breaks, or given as a JSON list, in which
/// options may contain commas.
fn options_of<'o>(options: &'o ChoiceOptions, text: &str) -> Option<Vec<&'o ChoiceOption>> {
    if let Some(one) = option_of(options, text.trim()) {
        return Some(vec![one]);
    }
    if let Ok(listed) = serde_json::from_str::<Vec<Value>>(text) {
        let listed = listed.iter().map(|one| {
            let option = options.find(Given::from_value(one));
            option.or_else(|| option_of(options, one.as_str()?))
        });
        return listed.collect();
    }
    let parts = text
        .split([',', ';', '\n'])
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts.map(|part| option_of(options, part)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Draft, DraftValue};
    use crate::form::Form;
    use crate::form::tests::form;

    #[track_caller]
    fn reads(properties: &str, cases: &[(&str, Option<serde_json::Value>)]) {
        let form = form(properties);
        for (text, expected) in cases {
            let read = form.read_field("a", &DraftValue::Text((*text).to_owned()));
            assert_eq!(read.ok().flatten(), *expected, "{text:?}");
        }
    }

    #[test]
    fn addresses_in_their_own_letters_are_sent_in_ascii() {
        reads(
            r#"{"a":{"type":"string","format":"uri"}}"#,
            &[
                (
                    " https://例え.jp/パス?q=ü ",
                    Some(json!("https://xn--r8jz45g.jp/%E3%83%91%E3%82%B9?q=%C3%BC")),
                ),
                ("https://example.com", Some(json!("https://example.com"))),
                ("例え.jp", None),
                ("ftp://例え.jp/", None),
                ("https://例え.jp/a b", None),
                ("https://例え.jp\\@evil.example/", None),
            ],
        );
    }

    #[test]
    fn a_mail_address_is_sent_with_its_domain_in_ascii() {
        reads(
            r#"{"a":{"type":"string","format":"email"}}"#,
            &[
                (" user@münchen.de ", Some(json!("user@xn--mnchen-3ya.de"))),
                ("a@Пример.рф", Some(json!("a@xn--e1afmkfd.xn--p1ai"))),
                (
                    "\"a@b\"@bücher.example",
                    Some(json!("\"a@b\"@xn--bcher-kva.example")),
                ),
                ("user@example.com", Some(json!("user@example.com"))),
                ("büro@example.com", None),
                ("büro@münchen.de", None),
                ("user@mün chen.de", None),
                ("user@.münchen", None),
                ("münchen.de", None),
            ],
        );
    }

    #[test]
    fn numbers_as_people_write_them() {
        reads(
            r#"{"a":{"type":"number"}}"#,
            &[
                ("42", Some(json!(42))),
                (" 12 000 ", Some(json!(12000))),
                ("1 234 567.5", Some(json!(1_234_567.5))),
                ("12'000", Some(json!(12000))),
                ("3,5", Some(json!(3.5))),
                ("-.5", None),
                (".5", Some(json!(0.5))),
                ("+7", Some(json!(7))),
                ("\u{2212}7", Some(json!(-7))),
                ("1e3", Some(json!(1000))),
                ("1.000", Some(json!(1))),
                ("2.50", Some(json!(2.5))),
                ("1,000", None),
                ("1 2", None),
                ("12 00", None),
                ("seven", None),
                ("NaN", None),
                ("1e999", None),
                ("0x10", None),
            ],
        );
        reads(
            r#"{"a":{"type":"integer","minimum":2}}"#,
            &[
                ("1", None),
                ("2", Some(json!(2))),
                ("2.5", None),
                ("2.0", Some(json!(2))),
                ("2.000", None),
            ],
        );
    }

    #[test]
    fn yes_and_no() {
        reads(
            r#"{"a":{"type":"boolean"}}"#,
            &[
                ("Yes", Some(json!(true))),
                ("n", Some(json!(false))),
                ("perhaps", None),
            ],
        );
    }

    #[test]
    fn dates() {
        reads(
            r#"{"a":{"type":"string","format":"date"}}"#,
            &[
                ("2026/2/3", Some(json!("2026-02-03"))),
                (" 2026-02-28", Some(json!("2026-02-28"))),
                ("2026-02-30", None),
                ("3.2.2026", None),
            ],
        );
        reads(
            r#"{"a":{"type":"string","format":"date-time"}}"#,
            &[
                ("2026-11-21 09:30Z", Some(json!("2026-11-21T09:30:00Z"))),
                (
                    "2026-11-21 09:30 +01:00",
                    Some(json!("2026-11-21T09:30:00+01:00")),
                ),
                (
                    "2026-11-21T09:30:05.25z",
                    Some(json!("2026-11-21T09:30:05.25Z")),
                ),
                ("2026-11-21 09:30", None),
            ],
        );
    }

    #[test]
    fn options_by_value_title_or_case() {
        let field = r#""oneOf":[{"const":"eu-1","title":"Europe"},{"const":"us-1","title":"United States"},{"const":"EU-1","title":"Old, Europe"}]"#;
        reads(
            &format!(r#"{{"a":{{"type":"string",{field}}}}}"#),
            &[
                ("eu-1", Some(json!("eu-1"))),
                ("Europe", Some(json!("eu-1"))),
                ("united states", Some(json!("us-1"))),
                ("Eu-1", None),
                ("Mars", None),
            ],
        );
        reads(
            &format!(r#"{{"a":{{"type":"array","minItems":1,"items":{{{field}}}}}}}"#),
            &[
                ("Europe, us-1", Some(json!(["eu-1", "us-1"]))),
                ("Old, Europe", Some(json!(["EU-1"]))),
                (r#"["Old, Europe", "us-1"]"#, Some(json!(["EU-1", "us-1"]))),
                (r#"["Mars"]"#, None),
                ("Europe, Mars", None),
                (",", None),
            ],
        );
    }

    #[test]
    fn a_whole_draft() {
        let form = Form::parse(
            r#"{"type":"object","properties":{"n":{"type":"integer","default":5},"s":{"type":"string"},"t":{"type":"string"}},"required":["n","s"]}"#,
        )
        .unwrap();
        let mut draft = Draft::for_form(&form);
        assert_eq!(
            form.read(&draft).unwrap_err().to_string(),
            "s: a value is required"
        );
        draft.set("n", DraftValue::Text("many".into()));
        assert_eq!(
            form.read(&draft).unwrap_err().to_string(),
            "n: must be a whole number; s: a value is required"
        );
        draft.set("n", DraftValue::Text("7".into()));
        draft.set("s", DraftValue::Text(" as typed ".into()));
        assert_eq!(
            form.read(&draft).unwrap().to_value(),
            json!({"n":7,"s":" as typed "})
        );
        assert!(!format!("{draft:?}").contains("typed "));
    }
}
