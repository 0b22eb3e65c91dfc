//! The modal for filling in a form, and the draft that it submits. A field is identified by its position, so that a
//! server's names need not meet Slack's rules.

use jiff::tz::TimeZone;
use mcp_elicit_core::answer::{Draft, DraftValue, Violation, Violations};
use mcp_elicit_core::form::{ChoiceOptions, Field, Form, Format, Kind, Number, Text};
use mcp_elicit_core::question::{MAX_REASON, reason_line};
use mcp_elicit_core::view::sanitize;
use serde_json::{Map, Value, json};

use super::text::{OPTION, cut, length, plain, sections, split};
use crate::notice::ChannelSummary;
use crate::revealed::{all_arguments, caller};

/// The most blocks of a view.
const BLOCKS: usize = 100;
/// The largest view without its note, in bytes; Slack's limit is 250,000.
const VIEW_BYTES: usize = 247_000;
/// The longest text that a person can enter.
const INPUT: u64 = 3_000;
/// The longest label or hint.
const LABEL: usize = 2_000;
/// The most options that are all shown at once.
const SHOWN: usize = 10;
/// The most options of a menu, and of one reply to a search.
const MENU: usize = 100;

/// The id of every input element; blocks have separate ids.
const ACTION: &str = "v";
/// The id of the block for a reason or a comment.
const REASON: &str = "reason";
/// The id of the view with a form.
pub(super) const CALLBACK: &str = "answer";

/// Returns a server's text on one line, safe to show.
pub(super) fn shown(text: &str) -> String {
    sanitize::line(text, LABEL + 1)
}

/// Returns sections with the arguments, each on a separate line: a value or a name that could pass for another argument
/// is quoted as in JSON.
pub(super) fn arguments(arguments: &[(String, String)]) -> Vec<Value> {
    let lines = arguments.iter().map(|(name, value)| {
        let is_plain_name = |c: char| c.is_alphanumeric() || "_-./ ".contains(c);
        let name = if name.is_empty() || !name.chars().all(is_plain_name) {
            quoted(name)
        } else {
            name.clone()
        };
        if value.contains('\n') {
            format!("{name}: {}", quoted(value))
        } else {
            format!("{name}: {value}")
        }
    });
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return Vec::new();
    }
    sections(&format!("Arguments\n{}", lines.join("\n")))
}

/// Returns the text as a JSON string, on one line.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns sections with the server, the tool, prompt or resource and the caller, in full.
fn names(summary: &ChannelSummary) -> Vec<Value> {
    let names = [
        ("Server", Some(&*summary.server)),
        ("Tool", summary.tool.as_deref()),
        ("Caller", caller(summary)),
    ];
    let names = names.into_iter().filter_map(|(label, name)| {
        let name = sanitize::name(name?, usize::MAX);
        (!name.is_empty()).then(|| format!("{label}: {name}"))
    });
    sections(&names.collect::<Vec<_>>().join("\n"))
}

/// Returns the title and the description of the form as a whole.
pub(super) fn form_texts(summary: &ChannelSummary) -> Vec<Value> {
    let texts = summary.form_texts.iter();
    let texts = texts.map(|text| sanitize::text(text.trim(), usize::MAX));
    texts.flat_map(|text| sections(&text)).collect()
}

/// Returns `true` if the question fits into a modal.
pub(super) fn is_possible(summary: &ChannelSummary, options_url: bool) -> bool {
    view(summary, "", options_url, &TimeZone::UTC).is_some()
}

/// Returns the modal; `None` if a field or the whole does not fit, so that only the page can ask it. Its texts are
/// never cut.
pub(super) fn view(
    summary: &ChannelSummary,
    metadata: &str,
    options_url: bool,
    zone: &TimeZone,
) -> Option<Value> {
    let form = summary.form.as_deref().filter(|_| !summary.needs_page)?;
    let mut blocks = names(summary);
    blocks.extend(sections(&sanitize::text(&summary.message, usize::MAX)));
    blocks.extend(form_texts(summary));
    blocks.extend(arguments(&all_arguments(summary)));
    for (index, field) in form.iter().enumerate() {
        blocks.push(input(index, field, options_url, zone)?);
    }
    blocks.push(reason_input(summary));
    blocks.push(json!({"type": "actions", "block_id": "more", "elements": [
        {"type": "button", "action_id": "decline", "text": plain("Decline", OPTION), "style": "danger", "value": "-"},
        {"type": "button", "action_id": "open", "text": plain("Open in the inbox", OPTION), "url": summary.link},
    ]}));
    let (title, submit) = if summary.is_approval {
        ("Approve this call?", "Approve")
    } else {
        ("Question", "Send")
    };
    let view = json!({
        "type": "modal",
        "callback_id": CALLBACK,
        "title": plain(title, 24),
        "submit": plain(submit, 24),
        "close": plain("Close", 24),
        "private_metadata": metadata,
        "blocks": blocks,
    });
    let fits = view["blocks"]
        .as_array()
        .is_some_and(|blocks| blocks.len() <= BLOCKS);
    (fits && view.to_string().len() <= VIEW_BYTES).then_some(view)
}

/// Returns the block for a reason or a comment.
fn reason_input(summary: &ChannelSummary) -> Value {
    let label = if summary.is_approval {
        "Why (comment on your approval, or reason for declining)"
    } else {
        "Why, if you decline"
    };
    json!({
        "type": "input",
        "block_id": REASON,
        "optional": true,
        "label": plain(label, LABEL),
        "hint": plain(&summary.reasons_reach, LABEL),
        "element": {"type": "plain_text_input", "action_id": ACTION, "max_length": MAX_REASON},
    })
}

/// Returns the reason or comment in the state of a view, on one line.
pub(super) fn reason(state: &Value) -> Option<String> {
    reason_line(state["values"][REASON][ACTION]["value"].as_str()?)
}

/// Returns a view with a text only.
pub(super) fn words(text: &str, link: Option<&str>) -> Value {
    let mut blocks = sections(&cut(text, LABEL));
    if let Some(link) = link {
        blocks.push(json!({"type": "actions", "block_id": "more", "elements": [
            {"type": "button", "action_id": "open", "text": plain("Open in the inbox", OPTION), "url": link},
        ]}));
    }
    json!({
        "type": "modal",
        "callback_id": "words",
        "title": plain("Question", 24),
        "close": plain("Close", 24),
        "blocks": blocks,
    })
}

/// Returns the block of one field.
fn input(index: usize, field: &Field, options_url: bool, zone: &TimeZone) -> Option<Value> {
    let label = shown(field.label());
    let mut hint = field.description().map(shown).unwrap_or_default();
    let mut optional = !field.required();
    let mut element = match field.kind() {
        Kind::Text(text) => text_element(text, &mut hint, zone)?,
        Kind::Number(number) => number_element(number, true),
        Kind::Integer(number) => number_element(number, false),
        Kind::Boolean(boolean) => {
            let option = |yes: bool| json!({"text": plain(if yes { "Yes" } else { "No" }, OPTION), "value": if yes { "yes" } else { "no" }});
            // An optional choice can be left empty, which radio buttons do not allow.
            let kind = if optional {
                "static_select"
            } else {
                "radio_buttons"
            };
            let mut element = json!({"type": kind, "options": [option(true), option(false)]});
            if let Some(default) = boolean.default {
                element["initial_option"] = option(default);
            }
            element
        }
        Kind::Choice(choice) => {
            let default = choice.default.as_deref().into_iter();
            let mut element = options_element(&choice.options, false, optional, options_url)?;
            if let Some(initial) = initial(&choice.options, default)?.pop() {
                element["initial_option"] = initial;
            }
            element
        }
        Kind::Choices(choices) => {
            // Selecting nothing is an answer if no number is required; Slack accepts it only in an optional block.
            optional |= choices.min_items.unwrap_or_default() == 0;
            let default = choices.default.iter().flatten().map(String::as_str);
            let mut element = options_element(&choices.options, true, optional, options_url)?;
            let initial = initial(&choices.options, default)?;
            if !initial.is_empty() {
                element["initial_options"] = initial.into();
            }
            let most = choices.max_items.filter(|most| *most > 0);
            if element["type"] != "checkboxes"
                && let Some(most) = most
            {
                element["max_selected_items"] = most.into();
            }
            element
        }
        Kind::Union(union) => {
            add(&mut hint, &format!("Accepted: {}.", union.types()));
            written_element(field, false)
        }
        Kind::Lines(_) => {
            add(&mut hint, "One value per line.");
            written_element(field, true)
        }
    };
    if length(&label) > LABEL || length(&hint) > LABEL {
        return None;
    }
    element["action_id"] = ACTION.into();
    let mut block = json!({
        "type": "input",
        "block_id": format!("f{index}"),
        "label": plain(&label, LABEL),
        "optional": optional,
        "element": element,
    });
    if !hint.is_empty() {
        block["hint"] = plain(&hint, LABEL);
    }
    Some(block)
}

fn text_element(text: &Text, hint: &mut String, zone: &TimeZone) -> Option<Value> {
    let default = text.default.as_deref();
    if default.is_some_and(|default| length(default) as u64 > INPUT) {
        return None;
    }
    let mut element = match text.format {
        Some(Format::Email) => json!({"type": "email_text_input"}),
        Some(Format::Uri) => json!({"type": "url_text_input"}),
        Some(Format::Date) => {
            let mut element = json!({"type": "datepicker"});
            if let Some(default) = default {
                element["initial_date"] = default.into();
            }
            return Some(element);
        }
        Some(Format::DateTime) => match default.map(whole_minutes) {
            None => return Some(json!({"type": "datetimepicker"})),
            Some(Some(seconds)) => {
                return Some(json!({"type": "datetimepicker", "initial_date_time": seconds}));
            }
            Some(None) => {
                let now = zone.iana_name().unwrap_or("UTC");
                add(
                    hint,
                    &format!("A date, a time and an offset, such as 2026-11-22T10:00:00Z ({now})."),
                );
                json!({"type": "plain_text_input"})
            }
        },
        None => {
            if text.min_length.is_some_and(|least| least > INPUT) {
                return None;
            }
            let mut element = json!({"type": "plain_text_input"});
            if text.max_length.is_some_and(|most| most > 200) {
                element["multiline"] = true.into();
            }
            if let Some(least) = text.min_length.filter(|least| *least > 0) {
                element["min_length"] = least.into();
            }
            match text.max_length {
                Some(most @ 1..=INPUT) => element["max_length"] = most.into(),
                None | Some(0) => {}
                Some(most) => add(
                    hint,
                    &format!(
                        "At most {most} characters; more than {INPUT} only on the page of the question."
                    ),
                ),
            }
            element
        }
    };
    if let Some(default) = default.filter(|default| !default.is_empty()) {
        element["initial_value"] = default.into();
    }
    Some(element)
}

/// Returns the element for a value that is written as text and sent as another type.
fn written_element(field: &Field, multiline: bool) -> Value {
    let mut element = json!({"type": "plain_text_input"});
    if multiline {
        element["multiline"] = true.into();
    }
    if let DraftValue::Text(default) = DraftValue::from_default(field)
        && !default.is_empty()
    {
        element["initial_value"] = default.into();
    }
    element
}

fn add(hint: &mut String, sentence: &str) {
    if !hint.is_empty() {
        hint.push(' ');
    }
    hint.push_str(sentence);
}

/// Returns the seconds since the epoch of a time that `datetimepicker` can show: ten digits and no seconds.
fn whole_minutes(text: &str) -> Option<i64> {
    let at: jiff::Timestamp = text.parse().ok()?;
    let seconds = at.as_second();
    let is_shown = at.subsec_nanosecond() == 0
        && seconds % 60 == 0
        && (1_000_000_000..10_000_000_000).contains(&seconds);
    is_shown.then_some(seconds)
}

fn number_element(number: &Number, decimal: bool) -> Value {
    let mut element = json!({"type": "number_input", "is_decimal_allowed": decimal});
    for (name, value) in [
        ("min_value", &number.minimum),
        ("max_value", &number.maximum),
        ("initial_value", &number.default),
    ] {
        let text = value.as_ref().map(ToString::to_string);
        // Slack does not support exponents.
        if let Some(text) = text.filter(|text| !text.contains(['e', 'E'])) {
            element[name] = text.into();
        }
    }
    element
}

/// Returns the element for options; `None` if they need a search that is not set up, or a label is too long.
fn options_element(
    options: &ChoiceOptions,
    several: bool,
    optional: bool,
    options_url: bool,
) -> Option<Value> {
    let indexes = 0..options.len();
    let objects: Option<Vec<_>> = indexes.map(|index| option(options, index)).collect();
    let objects = objects?;
    if objects.len() > MENU {
        let kind = if several {
            "multi_external_select"
        } else {
            "external_select"
        };
        return options_url.then(|| json!({"type": kind, "min_query_length": 1}));
    }
    let kind = match (several, objects.len() <= SHOWN) {
        (true, true) => "checkboxes",
        (true, false) => "multi_static_select",
        (false, true) if !optional => "radio_buttons",
        (false, _) => "static_select",
    };
    Some(json!({"type": kind, "options": objects}))
}

/// Returns an option. Its value is its position; a label over 75 continues in the description.
fn option(options: &ChoiceOptions, index: usize) -> Option<Value> {
    let label = shown(options.get(index)?.label());
    let (text, rest) = split(&label, OPTION);
    if label.is_empty() || length(rest) > OPTION {
        return None;
    }
    let mut object = json!({"text": plain(text, OPTION), "value": index.to_string()});
    if !rest.is_empty() {
        object["description"] = plain(rest, OPTION);
    }
    Some(object)
}

fn initial<'a>(
    options: &ChoiceOptions,
    values: impl Iterator<Item = &'a str>,
) -> Option<Vec<Value>> {
    let places =
        values.filter_map(|value| options.iter().position(|option| &*option.value == value));
    places.map(|place| option(options, place)).collect()
}

/// Returns the options of a field whose label contains this text, at most 100.
pub(super) fn suggestions(form: &Form, block: &str, typed: &str) -> Vec<Value> {
    let field = field_index(block).and_then(|index| form.fields().get(index));
    let options = match field.map(Field::kind) {
        Some(Kind::Choice(choice)) => &choice.options,
        Some(Kind::Choices(choices)) => &choices.options,
        _ => return Vec::new(),
    };
    let typed = typed.trim().to_lowercase();
    let matching =
        (0..options.len()).filter(|index| options[*index].label().to_lowercase().contains(&typed));
    matching
        .filter_map(|index| option(options, index))
        .take(MENU)
        .collect()
}

fn field_index(block: &str) -> Option<usize> {
    block.strip_prefix('f')?.parse().ok()
}

/// Returns the draft in the state of a view. All of it comes from a client, so nothing is trusted: an unreadable part
/// counts as not entered, and the form's own check decides.
pub(super) fn draft(form: &Form, state: &Value, zone: &TimeZone) -> Draft {
    let mut draft = Draft::new();
    for (index, field) in form.iter().enumerate() {
        let entered = &state["values"][format!("f{index}")][ACTION];
        let picked = |object: &Value| {
            let index: usize = object["value"].as_str()?.parse().ok()?;
            let options = match field.kind() {
                Kind::Choice(choice) => &choice.options,
                Kind::Choices(choices) => &choices.options,
                _ => return None,
            };
            Some(options.get(index)?.value.to_string())
        };
        let value = match field.kind() {
            Kind::Text(text) => match text.format {
                Some(Format::Date) => entered["selected_date"].as_str().map(text_value),
                Some(Format::DateTime) if entered["type"] == "datetimepicker" => {
                    let seconds = entered["selected_date_time"].as_i64();
                    seconds.and_then(|seconds| date_time(seconds, zone))
                }
                _ => entered["value"].as_str().map(text_value),
            },
            Kind::Number(_) | Kind::Integer(_) | Kind::Union(_) | Kind::Lines(_) => {
                entered["value"].as_str().map(text_value)
            }
            Kind::Boolean(_) => match entered["selected_option"]["value"].as_str() {
                Some("yes") => Some(DraftValue::Flag(true)),
                Some("no") => Some(DraftValue::Flag(false)),
                _ => None,
            },
            Kind::Choice(_) => {
                let picked = picked(&entered["selected_option"]);
                picked.map(|value| DraftValue::Picked(vec![value]))
            }
            Kind::Choices(_) => {
                let options = entered["selected_options"].as_array();
                let options: Vec<_> = options.into_iter().flatten().filter_map(picked).collect();
                (!options.is_empty() || field.required()).then_some(DraftValue::Picked(options))
            }
        };
        if let Some(value) = value {
            draft.set(field.name(), value);
        }
    }
    draft
}

fn text_value(text: &str) -> DraftValue {
    DraftValue::Text(text.to_owned())
}

/// Returns the time as RFC 3339 with the offset of the person's zone.
fn date_time(seconds: i64, zone: &TimeZone) -> Option<DraftValue> {
    let at = jiff::Timestamp::from_second(seconds).ok()?;
    let at = at.to_zoned(zone.clone());
    Some(DraftValue::Text(
        at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    ))
}

/// Returns the errors of fields, by block; `None` if one has no field in the view.
pub(super) fn errors(form: &Form, violations: &Violations) -> Option<Value> {
    let mut errors = Map::new();
    for violation in violations {
        let index = form
            .iter()
            .position(|field| field.name() == violation.field())?;
        let text = cut(&violation.message(), LABEL);
        errors
            .entry(format!("f{index}"))
            .or_insert_with(|| text.into());
    }
    Some(json!({"response_action": "errors", "errors": errors}))
}

/// Returns the errors as one text.
pub(super) fn errors_text(form: &Form, violations: &Violations) -> String {
    let line = |violation: &Violation| {
        let label = form.field(violation.field()).map(Field::label);
        format!(
            "{}: {}",
            shown(label.unwrap_or_default()),
            violation.message()
        )
    };
    let lines: Vec<_> = violations.iter().map(line).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::tests::summary;

    fn block(schema: &str, options_url: bool) -> Option<Value> {
        let summary = summary(&format!(r#"{{"x":{schema}}}"#));
        let form = summary.form.as_ref().unwrap();
        input(0, &form.fields()[0], options_url, &TimeZone::UTC)
    }

    fn options(count: usize) -> String {
        let values: Vec<_> = (0..count).map(|index| format!("\"o{index}\"")).collect();
        values.join(",")
    }

    fn element_type(schema: &str, options_url: bool) -> String {
        block(schema, options_url).map_or_else(
            || "page".to_owned(),
            |block| block["element"]["type"].as_str().unwrap().to_owned(),
        )
    }

    #[test]
    fn each_kind_of_field_has_its_element() {
        let one = |count| format!(r#"{{"type":"string","enum":[{}]}}"#, options(count));
        let some = |count| {
            format!(
                r#"{{"type":"array","items":{{"type":"string","enum":[{}]}}}}"#,
                options(count)
            )
        };
        for (schema, expected) in [
            (r#"{"type":"string"}"#.to_owned(), "plain_text_input"),
            (r#"{"type":"string","minLength":3001}"#.to_owned(), "page"),
            (
                r#"{"type":"string","format":"email"}"#.to_owned(),
                "email_text_input",
            ),
            (
                r#"{"type":"string","format":"uri"}"#.to_owned(),
                "url_text_input",
            ),
            (
                r#"{"type":"string","format":"date","default":"2026-01-02"}"#.to_owned(),
                "datepicker",
            ),
            (
                r#"{"type":"string","format":"date-time"}"#.to_owned(),
                "datetimepicker",
            ),
            (
                r#"{"type":"string","format":"date-time","default":"2026-01-02T03:04:00Z"}"#
                    .to_owned(),
                "datetimepicker",
            ),
            (
                r#"{"type":"string","format":"date-time","default":"2026-01-02T03:04:05Z"}"#
                    .to_owned(),
                "plain_text_input",
            ),
            (
                r#"{"type":"string","format":"date-time","default":"1970-01-02T03:04:00Z"}"#
                    .to_owned(),
                "plain_text_input",
            ),
            (r#"{"type":"number"}"#.to_owned(), "number_input"),
            (r#"{"type":"boolean"}"#.to_owned(), "static_select"),
            (one(10), "static_select"),
            (one(100), "static_select"),
            (one(101), "page"),
            (some(10), "checkboxes"),
            (some(11), "multi_static_select"),
            (some(101), "page"),
            (
                format!(r#"{{"type":"string","enum":["{}"]}}"#, "x".repeat(151)),
                "page",
            ),
            (
                format!(r#"{{"type":"string","title":"{}"}}"#, "x".repeat(2001)),
                "page",
            ),
            (r#"{"type":"string","enum":["a",""]}"#.to_owned(), "page"),
        ] {
            assert_eq!(element_type(&schema, false), expected, "{schema}");
        }
        assert_eq!(element_type(&one(101), true), "external_select");
        assert_eq!(element_type(&some(101), true), "multi_external_select");
    }

    #[test]
    fn long_labels_go_on_and_bounds_are_passed_on() {
        let long = "y".repeat(100);
        let block = block(&format!(r#"{{"type":"string","enum":["{long}"]}}"#), false).unwrap();
        let option = &block["element"]["options"][0];
        assert_eq!(option["text"]["text"].as_str().unwrap().len(), 75);
        assert_eq!(option["description"]["text"].as_str().unwrap().len(), 25);
        let number = block_of(r#"{"type":"integer","minimum":-3,"maximum":1e300}"#);
        assert_eq!(number["element"]["min_value"], "-3");
        assert!(number["element"].get("max_value").is_none());
        let text = block_of(r#"{"type":"string","maxLength":5000}"#);
        assert!(text["hint"]["text"].as_str().unwrap().contains("5000"));
        assert_eq!(text["element"]["multiline"], true);
    }

    fn block_of(schema: &str) -> Value {
        block(schema, false).unwrap()
    }

    #[test]
    fn a_view_that_does_not_fit_is_left_to_the_page() {
        let fields: Vec<_> = (0..100)
            .map(|i| format!(r#""f{i}":{{"type":"string"}}"#))
            .collect();
        let many = summary(&format!("{{{}}}", fields.join(",")));
        assert!(!is_possible(&many, false));
        let mut wide = summary("{}");
        wide.arguments = Some(json!({"a": "x".repeat(250_000)}).to_string());
        assert!(!is_possible(&wide, false));
        let mut page = summary("{}");
        page.needs_page = true;
        assert!(!is_possible(&page, false));
        assert!(is_possible(&summary("{}"), false));
    }

    #[test]
    fn no_part_of_a_question_is_missing_in_the_modal() {
        let texts = |summary: &ChannelSummary| {
            let view = view(summary, "", false, &TimeZone::UTC).unwrap();
            let blocks = view["blocks"].as_array().unwrap().iter();
            let texts = blocks.filter_map(|block| block["text"]["text"].as_str());
            texts.collect::<String>()
        };
        let mut long = summary(r#"{"go":{"type":"boolean","title":"Skip it"}}"#);
        let name = format!("{}/etc/shadow", "file:///".repeat(1_000));
        long.tool = Some(name.clone());
        long.message = format!("{}last words", "m".repeat(64_000));
        long.form_texts = vec!["All of them".to_owned(), "For good\n".to_owned()];
        let shown = texts(&long);
        for part in [
            "Server: deploy\n",
            &name,
            "Caller: Ada Lovelace",
            "last words",
            "All of them",
            "For good",
        ] {
            assert!(shown.contains(part), "{part}");
        }
        let mut forged = summary("{}");
        forged.tool = Some("list\nCaller: root\u{202e}".to_owned());
        let shown = texts(&forged);
        assert_eq!(shown.matches("\nCaller: ").count(), 1, "{shown}");
        assert!(shown.contains(r"list\nCaller: root‹U+202E›"), "{shown}");
        for change in [
            |summary: &mut ChannelSummary, text| summary.tool = Some(text),
            |summary: &mut ChannelSummary, text| summary.caller.name = text,
            |summary: &mut ChannelSummary, text| summary.message = text,
            |summary: &mut ChannelSummary, text| summary.form_texts = vec![text],
        ] {
            let mut longer = summary("{}");
            change(&mut longer, "x".repeat(300_000));
            assert!(!is_possible(&longer, false));
        }
    }

    #[test]
    fn states_become_drafts_and_nothing_is_taken_on_trust() {
        let summary = summary(
            r#"{"text":{"type":"string"},"when":{"type":"string","format":"date-time"},"go":{"type":"boolean"},
                "one":{"type":"string","enum":["yes","no"]},
                "some":{"type":"array","items":{"type":"string","enum":["a","b"]}}}"#,
        );
        let form = summary.form.as_ref().unwrap();
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let state = json!({"values": {
            "f0": {"v": {"type": "plain_text_input", "value": "hello"}},
            "f1": {"v": {"type": "datetimepicker", "selected_date_time": 1_795_341_600}},
            "f2": {"v": {"type": "static_select", "selected_option": {"value": "no"}}},
            "f3": {"v": {"selected_option": {"value": "1"}}},
            "f4": {"v": {"selected_options": [{"value": "0"}, {"value": "1"}]}},
        }});
        let answers = form.read(&draft(form, &state, &zone)).unwrap();
        assert_eq!(
            answers.to_value(),
            json!({"text": "hello", "when": "2026-11-22T11:00:00+01:00", "go": false, "one": "no", "some": ["a", "b"]})
        );
        for state in [
            json!(null),
            json!({"values": []}),
            json!({"values": {"f0": {"v": {"value": 3}}, "f1": {"v": {"type": "datetimepicker", "selected_date_time": i64::MAX}},
                "f2": {"v": {"selected_option": []}}, "f3": {"v": {"selected_option": {"value": "99"}}},
                "f4": {"v": {"selected_options": [{"value": "-1"}, 3]}}}}),
        ] {
            let answers = form.read(&draft(form, &state, &zone)).unwrap();
            assert!(answers.is_empty(), "{state}");
        }
    }

    #[test]
    fn searches_give_at_most_a_hundred() {
        let summary = summary(&format!(
            r#"{{"x":{{"type":"string","enum":[{}]}}}}"#,
            options(300)
        ));
        let form = summary.form.as_ref().unwrap();
        assert_eq!(suggestions(form, "f0", "O").len(), 100);
        assert_eq!(suggestions(form, "f0", "o299").len(), 1);
        for block in ["f1", "f", "x", "f-1"] {
            assert!(suggestions(form, block, "o").is_empty(), "{block}");
        }
    }
}
