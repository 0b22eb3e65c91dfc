//! Questions of the inbox as text for people. What a server wrote is made harmless first.

use mcp_elicit_core::form::Form;
use mcp_elicit_forms::view::{Call, Control, FieldView, inert};
use serde_json::Value;

use crate::failure::Failure;
use crate::screen;

/// Letters of a message in a list.
const GIST: usize = 100;
/// Options of a field that are written out.
const OPTIONS: usize = 12;

/// The beginning of an id, which names the question to this command.
pub(super) fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

/// One question on one line.
pub(super) fn line(question: &Value) -> String {
    let word = |name: &str| inert::line(question[name].as_str().unwrap_or("-"), inert::LABEL);
    format!(
        "{}  {:<9}  {} / {}  {}",
        short(question["id"].as_str().unwrap_or("-")),
        word("phase"),
        word("server"),
        call(question).map_or_else(|| "-".to_owned(), |call| call.name()),
        inert::line(question["message"].as_str().unwrap_or("-"), GIST)
    )
}

/// The call that the question is for, or all that it may be for.
fn call(question: &Value) -> Option<Call> {
    let others = question["others"].as_array().into_iter().flatten();
    let others = others.filter_map(Value::as_str).map(str::to_owned);
    Some(Call::tool(question["target"].as_str()?).or_one_of(others.collect()))
}

/// One question, with all a person needs to answer it.
pub(super) fn question(question: &Value) -> Result<(), Failure> {
    for line in lines(question) {
        screen::print(line)?;
    }
    Ok(())
}

fn lines(question: &Value) -> Vec<String> {
    let text = |name: &str| question[name].as_str();
    let id = short(text("id").unwrap_or("-"));
    let mut lines = vec![format!("question   {id}, {}", state(question))];
    let mut add = |name: &str, value: String| {
        for (at, part) in value.lines().enumerate() {
            let name = if at == 0 { name } else { "" };
            lines.push(format!("{name:<11}{part}"));
        }
    };
    let line = |text: &str| inert::line(text, inert::LABEL);
    add("server", line(text("server").unwrap_or("-")));
    if let Some(call) = call(question) {
        let kind = text("kind").unwrap_or("call");
        match call.doubt() {
            Some(doubt) => add(kind, format!("{} ({doubt})", call.name())),
            None => add(kind, call.name()),
        }
    }
    if !question["arguments"].is_null() {
        add(
            "arguments",
            inert::line(&question["arguments"].to_string(), inert::DESCRIPTION),
        );
    }
    for caution in question["cautions"].as_array().into_iter().flatten() {
        add(
            "careful",
            inert::line(caution.as_str().unwrap_or_default(), inert::DESCRIPTION),
        );
    }
    add(
        "asks",
        inert::text(text("message").unwrap_or_default(), inert::MESSAGE),
    );
    let mut example = String::new();
    if let Some(url) = text("url") {
        add("link", inert::line(url, inert::DESCRIPTION));
    }
    let form = Form::parse(&question["requestedSchema"].to_string());
    for field in form.iter().flat_map(Form::fields).map(FieldView::of) {
        if field.required {
            example.extend([" ", &*inert::line(&field.name, inert::LABEL), "=..."]);
        }
        add("field", described(&field));
    }
    if is_open(question) {
        add("answer", format!("mcp-elicit inbox accept {id}{example}"));
        if let Some(link) = text("link") {
            add("", format!("or at {link}"));
        }
    }
    lines
}

fn is_open(question: &Value) -> bool {
    matches!(question["phase"].as_str(), Some("asked" | "shown"))
}

fn state(question: &Value) -> String {
    let phase = question["phase"].as_str().unwrap_or("-");
    let mut said = vec![phase.to_owned()];
    if let Some(by) = question["by"].as_str() {
        said.push(format!("by {}", inert::line(by, inert::LABEL)));
    }
    if let Some(reason) = question["reason"].as_str() {
        said.push(inert::line(reason, inert::LABEL));
    }
    let moment = |name: &str| super::super::audit::moment(question[name].as_i64()?);
    if is_open(question) {
        said.extend(moment("until").map(|until| format!("can be answered until {until}")));
        let waits = question["waitedFor"] == true;
        said.push(
            if waits {
                "a call waits for it"
            } else {
                "no call waits for it now"
            }
            .to_owned(),
        );
    } else {
        said.extend(moment("endedAt"));
    }
    said.join(", ")
}

fn described(field: &FieldView) -> String {
    let name = inert::line(&field.name, inert::LABEL);
    let mut said = format!("{name}  {}", field.need());
    if field.label != name {
        said.extend([", \u{201c}", &*field.label, "\u{201d}"]);
    }
    let kind = match &field.control {
        Control::YesNo => Some("true or false".to_owned()),
        Control::One(options) => Some(format!(
            "one of {}",
            listed(options.iter().map(|pick| pick.value.as_str()))
        )),
        Control::Several { options, .. } => Some(format!(
            "several of {}, with commas",
            listed(options.iter().map(|pick| pick.value.as_str()))
        )),
        Control::Number { whole: true, .. } => Some("a whole number".to_owned()),
        Control::Number { .. } => Some("a number".to_owned()),
        Control::Text { .. }
        | Control::Email
        | Control::Uri
        | Control::Date
        | Control::DateTime => None,
    };
    let hint = Some(field.hint()).filter(|hint| !hint.is_empty());
    for more in kind.into_iter().chain(hint) {
        said.push_str(", ");
        said.push_str(&more);
    }
    said
}

fn listed<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let values: Vec<String> = values
        .map(|value| inert::line(value, inert::LABEL))
        .collect();
    let mut shown = values
        .iter()
        .take(OPTIONS)
        .cloned()
        .collect::<Vec<_>>()
        .join(" | ");
    if values.len() > OPTIONS {
        shown.extend([" and ", &*(values.len() - OPTIONS).to_string(), " more"]);
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_says_what_it_wants_and_cannot_drive_the_terminal() {
        let question = json!({"id": "5f2c1a9b5f2c1a9b5f2c1a9b5f2c1a9b", "phase": "asked", "server": "deploy\u{1b}[31m", "target": "release",
            "kind": "tool", "arguments": {"build": 7}, "message": "Where to?\nThink.", "waitedFor": true, "until": 1_000_000,
            "requestedSchema": {"type": "object", "required": ["where"], "properties": {
                "where": {"type": "string", "title": "Environment", "enum": ["staging", "production"]},
                "sure": {"type": "boolean"}}}});
        let shown = lines(&question).join("\n");
        for part in [
            "5f2c1a9b, asked, can be answered until 1970-01-01 00:16:40 UTC, a call waits for it",
            "tool       release",
            "{\"build\":7}",
            "where  required, \u{201c}Environment\u{201d}, one of staging | production",
            "sure  optional, true or false",
            "mcp-elicit inbox accept 5f2c1a9b where=...",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains('\u{1b}'));
        let mut several = question.clone();
        several["others"] = json!(["plan"]);
        let shown = lines(&several).join("\n");
        assert!(
            shown.contains("tool       release or plan (one of several"),
            "{shown}"
        );
        assert!(!line(&question).contains(['\n', '\u{1b}']));
    }
}
