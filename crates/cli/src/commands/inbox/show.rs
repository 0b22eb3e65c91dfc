//! Questions of the inbox as text for people. A server's text is made harmless first.

use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Withdrawal;
use mcp_elicit_forms::view::{CallView, Control, FieldView, Pick, sanitize};
use serde_json::Value;

use crate::failure::Failure;
use crate::output;

/// The number of characters of a message in a list.
const GIST: usize = 100;
/// The number of a field's options that are written out.
const OPTIONS: usize = 12;

/// Returns the beginning of an id, by which this command can name the question.
pub(super) fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

/// Returns a note on the fate of an answer that was just given, if no call waited for it.
pub(super) fn taken_by(given: &Value) -> &'static str {
    match (given["waitedFor"] == false, given["foundAgain"] == false) {
        (false, _) => "",
        (true, false) => "; no call waits for it now, a repeated call gets the answer",
        (true, true) => {
            "; but no call waits for it, and none can collect the answer, because the call that asked is unknown"
        }
    }
}

/// Formats one question as one line.
pub(super) fn line(question: &Value) -> String {
    let word = |name: &str| sanitize::line(question[name].as_str().unwrap_or("-"), sanitize::LABEL);
    format!(
        "{}  {:<9}  {} / {}  {}",
        short(question["id"].as_str().unwrap_or("-")),
        outcome(question),
        word("server"),
        call(question).map_or_else(|| "-".to_owned(), |call| call.name()),
        sanitize::line(question["message"].as_str().unwrap_or("-"), GIST)
    )
}

/// Returns the outcome of the question in a word or two. An answer that was not delivered is shown as such.
fn outcome(question: &Value) -> String {
    let word = match question["delivery"].as_str() {
        Some("failed") => "not delivered",
        Some("in-doubt") => "in doubt",
        Some("lapsed") => "lapsed",
        _ => question["phase"].as_str().unwrap_or("-"),
    };
    sanitize::line(word, sanitize::LABEL)
}

/// Returns the outcome of an answer that had no effect; `None` if it had.
fn undelivered(question: &Value) -> Option<String> {
    let said = match question["delivery"].as_str()? {
        "failed" => "but the server did not accept it",
        "in-doubt" => "but it is not known whether the server has it",
        "lapsed" => "but it was not delivered, and its value is erased",
        _ => return None,
    };
    let why = question["deliveryReason"].as_str();
    Some(why.map_or_else(
        || said.to_owned(),
        |why| format!("{said}: {}", sanitize::line(why, sanitize::DESCRIPTION)),
    ))
}

/// Returns the call that the question is for, or all calls that it may be for.
fn call(question: &Value) -> Option<CallView> {
    let others = question["others"].as_array().into_iter().flatten();
    let others = others.filter_map(Value::as_str).map(str::to_owned);
    Some(CallView::tool(question["target"].as_str()?).or_one_of(others.collect()))
}

/// Returns the calls that the question may be for, with their arguments; `None` if it is known which call asked.
fn candidates(question: &Value) -> Option<CallView> {
    let candidates = question["candidates"].as_array()?;
    let mut calls = candidates.iter().filter_map(|one| {
        let call = CallView::tool(one["target"].as_str()?);
        Some(match one["argumentsText"].as_str() {
            Some(arguments) => call.with_json(arguments),
            None => call,
        })
    });
    Some(calls.next()?.or_one_of_calls(calls.collect()))
}

/// Shows one question, with everything that a person needs to answer it.
pub(super) fn question(question: &Value) -> Result<(), Failure> {
    for line in lines(question) {
        output::print(line)?;
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
    let line = |text: &str| sanitize::line(text, sanitize::LABEL);
    add("server", line(text("server").unwrap_or("-")));
    if let Some(name) = question["serverInfo"]["name"].as_str() {
        let version = question["serverInfo"]["version"]
            .as_str()
            .unwrap_or_default();
        add(
            "",
            line(format!("calls itself {name} {version}").trim_end()),
        );
    }
    if let Some(caller) = text("onBehalfOf") {
        add("for", line(caller));
    }
    if let Some(name) = question["client"]["name"].as_str() {
        let version = question["client"]["version"].as_str().unwrap_or_default();
        add("through", line(format!("{name} {version}").trim_end()));
    }
    if let Some(call) = call(question) {
        let kind = text("kind").unwrap_or("call");
        match call.doubt() {
            Some(doubt) => add(kind, format!("{} ({doubt})", call.name())),
            None => add(kind, call.name()),
        }
    }
    let one = text("argumentsText").map(|arguments| CallView::tool("").with_json(arguments));
    if let Some(whole) = one.or_else(|| candidates(question)) {
        for (at, (name, value)) in whole.arguments_in_full().into_iter().enumerate() {
            let value = value.replace('\n', "\n  ");
            let shown = if name.is_empty() {
                value
            } else {
                format!("{name}: {value}")
            };
            add(if at == 0 { "arguments" } else { "" }, shown);
        }
    }
    for (name, value) in tool_lines(&question["tool"]) {
        add(name, value);
    }
    if let Some(bytes) = question["argumentsLeftOut"].as_u64() {
        add(
            "arguments",
            format!("{bytes} bytes, too long to be stored (`argument-bytes`)"),
        );
    }
    for caution in question["cautions"].as_array().into_iter().flatten() {
        add(
            "careful",
            sanitize::line(caution.as_str().unwrap_or_default(), sanitize::DESCRIPTION),
        );
    }
    add(
        "asks",
        sanitize::text(text("message").unwrap_or_default(), sanitize::MESSAGE),
    );
    let is_approval = question["approval"] == true;
    let mut example = String::new();
    if let Some(url) = text("url") {
        add("link", sanitize::line(url, sanitize::DESCRIPTION));
    }
    let form = Form::parse_leniently(&question["requestedSchema"].to_string());
    for field in form
        .iter()
        .flat_map(Form::fields)
        .map(FieldView::from_field)
    {
        if field.required {
            example.extend([" ", &*sanitize::line(&field.name, sanitize::LABEL), "=..."]);
        }
        // The fields of an approval are arguments of the call.
        let name = if is_approval { "may change" } else { "field" };
        add(name, described(&field));
        if let Some(description) = &field.description {
            let lines: Vec<String> = description
                .lines()
                .map(|line| format!("  {line}"))
                .collect();
            add("", lines.join("\n"));
        }
    }
    for remark in form.iter().flat_map(Form::remarks) {
        add(
            "unchecked",
            sanitize::line(&remark.message, sanitize::DESCRIPTION),
        );
    }
    if is_open(question) {
        let flag = if question["asksForCredential"] == true {
            " --allow-credentials"
        } else {
            ""
        };
        let accept = format!("mcp-elicit inbox accept {id}{flag}{example}");
        let page = text("link");
        if let Some(rule) = text("rule") {
            // Each person whom a rule asks answers under their own name.
            let verb = if is_approval { "approve" } else { "answer" };
            let page = page.map_or_else(String::new, |page| format!(" at {page}"));
            let rule = line(rule);
            add(
                verb,
                format!("on the inbox's pages{page}, by those whom the rule {rule} asks"),
            );
        } else {
            add("answer", accept);
            if let Some(page) = page {
                add("", format!("or at {page}"));
            }
        }
    }
    lines
}

/// Returns the server's claims about the tool of a call that waits for approval, each with its label.
fn tool_lines(tool: &Value) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let left_out = tool["leftOut"].as_array().into_iter().flatten();
    for (at, argument) in left_out.enumerate() {
        let name = sanitize::name(
            argument["name"].as_str().unwrap_or_default(),
            sanitize::LABEL,
        );
        let words = match argument["defaultText"].as_str() {
            None => format!("{name}, and the server names no default"),
            Some(default) => format!(
                "{name}, by the server's word then {}",
                sanitize::line(default, sanitize::LABEL)
            ),
        };
        lines.push((if at == 0 { "left out" } else { "" }, words));
    }
    if let Some(more) = tool["moreLeftOut"].as_u64().filter(|more| *more > 0) {
        lines.push(("", format!("and {more} more")));
    }
    let hints = tool["hints"].as_array().into_iter().flatten();
    let hints = hints.filter_map(Value::as_str).enumerate();
    if let Some(description) = tool["description"].as_str() {
        let description = sanitize::text(description.trim(), sanitize::DESCRIPTION);
        lines.push((
            "described",
            "by its server, which nothing checks:".to_owned(),
        ));
        let quoted = description.lines().map(|line| ("", format!("> {line}")));
        lines.extend(quoted);
    }
    for (at, hint) in hints {
        let label = if at == 0 { "claims" } else { "" };
        lines.push((label, sanitize::line(hint, sanitize::LABEL)));
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
        said.push(sanitize::line(by, sanitize::LABEL));
    }
    if let Some(reason) = question["reason"].as_str() {
        let reason = Withdrawal::of_word(reason).map_or(reason, |withdrawal| withdrawal.words());
        said.push(sanitize::line(reason, sanitize::LABEL));
    }
    let moment = |name: &str| super::super::audit::moment(question[name].as_i64()?);
    if is_open(question) {
        said.extend(moment("until").map(|until| format!("can be answered until {until}")));
        let waiting = if question["waitedFor"] == true {
            "a call waits for it"
        } else if question["foundAgain"] == false {
            "no call waits for it, and none can collect an answer"
        } else {
            "no call waits for it now"
        };
        said.push(waiting.to_owned());
    } else {
        said.extend(moment("endedAt"));
        if let Some(undelivered) = undelivered(question) {
            said.push(undelivered);
            if question["delivery"] == "failed"
                && let Some(until) = moment("validUntil")
            {
                said.push(format!("kept for a repeated call until {until}"));
            }
        }
        if question["deliveredAt"].is_null()
            && question["deliveryReason"].is_null()
            && let Some(until) = moment("validUntil")
        {
            said.push("no call has taken the answer yet".to_owned());
            said.push(if question["foundAgain"] == false {
                "a later call never gets it".to_owned()
            } else {
                format!("kept until {until}")
            });
        }
    }
    said.join(", ")
}

fn described(field: &FieldView) -> String {
    let name = sanitize::line(&field.name, sanitize::LABEL);
    let mut said = format!("{name}  {}", field.need());
    if field.label != name {
        said.extend([", \u{201c}", &*field.label, "\u{201d}"]);
    }
    let kind = match &field.control {
        Control::YesNo => Some("yes or no".to_owned()),
        Control::One(options) => Some(format!("one of {}", listed(options))),
        Control::Several { options, .. } => {
            Some(format!("several of {}, with commas", listed(options)))
        }
        // The limits already describe the value.
        Control::Number { .. }
        | Control::Text { .. }
        | Control::Email
        | Control::Uri
        | Control::Date
        | Control::DateTime => None,
    };
    let hint = Some(field.hint()).filter(|hint| !hint.is_empty());
    let default = field.shown(&field.default);
    let default =
        default.map(|default| format!("{} by default", sanitize::line(&default, sanitize::LABEL)));
    for more in kind.into_iter().chain(hint).chain(default) {
        said.push_str(", ");
        said.push_str(&more);
    }
    said
}

/// Returns the values to write, each with its title if that differs.
fn listed(options: &[Pick]) -> String {
    let values: Vec<String> = options
        .iter()
        .map(|pick| {
            let value = sanitize::line(&pick.value, sanitize::LABEL);
            if pick.label == value {
                value
            } else {
                format!("{value} (\u{201c}{}\u{201d})", pick.label)
            }
        })
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
    fn what_a_server_says_of_its_tool_is_marked_as_its_words() {
        let question = json!({"id": "5f2c1a9b5f2c1a9b5f2c1a9b5f2c1a9b", "phase": "asked", "server": "dbops", "target": "delete",
            "kind": "tool", "argumentsText": "{\"name\":\"tmp1\"}", "message": "Approve?", "approval": true, "rule": "deletions",
            "tool": {"description": "Deletes for good.\nquestion   another\u{1b}", "hints": ["destructive: it may delete or overwrite"],
                "leftOut": [{"name": "cluster", "defaultText": "\"staging\""}, {"name": "note", "defaultText": null}], "moreLeftOut": 3}});
        let shown = lines(&question).join("\n");
        for part in [
            "arguments  name: tmp1\nleft out   cluster, by the server's word then \"staging\"\n           note, and the server names no default\n           and 3 more",
            "described  by its server, which nothing checks:\n           > Deletes for good.\n           > question   another\u{241b}",
            "claims     destructive: it may delete or overwrite",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }

    #[test]
    fn a_question_says_what_it_wants_and_cannot_drive_the_terminal() {
        let question = json!({"id": "5f2c1a9b5f2c1a9b5f2c1a9b5f2c1a9b", "phase": "asked", "server": "deploy\u{1b}[31m", "target": "release",
            "kind": "tool", "argumentsText": "{\"build\":7,\"force\":true}", "onBehalfOf": "ana", "client": {"name": "Claude", "version": "2"},
            "asksForCredential": false, "message": "Where to?\nThink.", "waitedFor": true, "until": 1_000_000,
            "requestedSchema": {"type": "object", "required": ["where"], "properties": {
                "where": {"type": "string", "title": "Environment", "enum": ["staging", "production"]},
                "count": {"type": "integer", "minimum": 1, "maximum": 100, "default": 3, "description": "How many\ncopies"},
                "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
                "sure": {"type": "boolean"}}}});
        let shown = lines(&question).join("\n");
        for part in [
            "5f2c1a9b, asked, can be answered until 1970-01-01 00:16:40 UTC, a call waits for it",
            "tool       release",
            "arguments  build: 7\n           force: true",
            "for        ana",
            "through    Claude 2",
            "count  optional, a whole number, 1 to 100, 3 by default\n             How many\n             copies",
            "one of s (\u{201c}Small\u{201d}) | l (\u{201c}Large\u{201d})",
            "where  required, \u{201c}Environment\u{201d}, one of staging | production",
            "sure  optional, yes or no",
            "mcp-elicit inbox accept 5f2c1a9b where=...",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains('\u{1b}') && !shown.contains("--allow-credentials"));
        assert_eq!(shown.matches("whole number").count(), 1);
        let mut secret = question.clone();
        secret["asksForCredential"] = json!(true);
        assert!(
            lines(&secret)
                .join("\n")
                .contains("accept 5f2c1a9b --allow-credentials where=...")
        );
        let mut deep = question.clone();
        deep["argumentsText"] = json!("{\"a\":1e999,\"force\":true\u{1b}");
        let shown_raw = lines(&deep).join("\n");
        assert!(
            shown_raw.contains("force") && !shown_raw.contains('\u{1b}'),
            "{shown_raw}"
        );
        let mut several = question.clone();
        several["others"] = json!(["plan"]);
        let shown = lines(&several).join("\n");
        assert!(
            shown.contains("tool       release or plan (one of several"),
            "{shown}"
        );
        several["argumentsText"] = Value::Null;
        several["candidates"] = json!([
            {"kind": "tool", "target": "release", "argumentsText": "{\"to\":\"moon\"}"},
            {"kind": "tool", "target": "plan", "argumentsText": null},
        ]);
        let shown = lines(&several).join("\n");
        for part in ["call 1, release: to: moon", "call 2, plan: no arguments"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!line(&question).contains(['\n', '\u{1b}']));
        let mut approval = question.clone();
        approval["approval"] = json!(true);
        approval["rule"] = json!("careful\u{1b}");
        approval["link"] = json!("http://127.0.0.1:1/q/5f2c1a9b");
        let shown = lines(&approval).join("\n");
        for part in [
            "may change where  required",
            "approve    on the inbox's pages at http://127.0.0.1:1/q/5f2c1a9b, by those whom the rule careful",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(
            !shown.contains("inbox accept") && !shown.contains('\u{1b}'),
            "{shown}"
        );
    }

    #[test]
    fn an_answer_that_was_not_delivered_is_not_shown_as_one_that_was() {
        let mut question =
            json!({"id": "5f2c1a9b", "phase": "answered", "deliveryReason": "status 401"});
        for (delivery, word, words) in [
            (
                "failed",
                "not delivered",
                "the server did not accept it: status 401",
            ),
            (
                "in-doubt",
                "in doubt",
                "it is not known whether the server has it: status 401",
            ),
            ("lapsed", "lapsed", "its value is erased: status 401"),
        ] {
            question["delivery"] = json!(delivery);
            assert!(line(&question).contains(word), "{}", line(&question));
            assert!(!line(&question).contains("answered"));
            assert!(state(&question).contains(words), "{}", state(&question));
        }
        question["delivery"] = json!("delivered");
        assert!(line(&question).contains("answered"));
    }

    #[test]
    fn an_answer_that_no_call_can_come_for_is_not_promised_to_one() {
        let promised = json!({"waitedFor": false, "foundAgain": true});
        assert!(taken_by(&promised).contains("a repeated call gets the answer"));
        let lost = json!({"waitedFor": false, "foundAgain": false});
        assert!(taken_by(&lost).contains("none can collect the answer"));
        assert_eq!(
            taken_by(&json!({"waitedFor": true, "foundAgain": false})),
            ""
        );
        let open = json!({"phase": "asked", "waitedFor": false, "foundAgain": false});
        assert!(
            state(&open).contains("none can collect an answer"),
            "{}",
            state(&open)
        );
        let mut answered =
            json!({"phase": "answered", "validUntil": 1_000_000, "foundAgain": false});
        let said = state(&answered);
        assert!(
            said.contains("a later call never gets it") && !said.contains("kept until"),
            "{said}"
        );
        answered["foundAgain"] = json!(true);
        assert!(state(&answered).contains("kept until 1970"));
    }
}
