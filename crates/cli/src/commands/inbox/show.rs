//! Questions of the inbox as text for people. A server's text is made harmless first.

use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::{Delivery, Timestamp, Withdrawal};
use mcp_elicit_core::question::quoted;
use mcp_elicit_core::wire::CallKind;
use mcp_elicit_forms::view::{CallView, Control, FieldView, Pick, sanitize};
use mcp_elicit_inbox::api::model::{AnswerResponse, ListedQuestion, ListedTool, WholeQuestion};

use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::output;

/// The number of characters of a message in a list.
const GIST: usize = 100;
/// The number of a field's options that are written out.
const OPTIONS: usize = 12;

/// Returns the beginning of an id, by which this command can name the question.
pub(super) fn short(id: &str) -> String {
    let short: String = id.chars().take(8).collect();
    output::harmless(&short).into_owned()
}

/// Returns a note on the fate of an answer that was just given, if no call waited for it.
pub(super) fn taken_by(given: &AnswerResponse) -> &'static str {
    match (given.waited_for, given.found_again) {
        (true, _) => "",
        (false, true) => "; no call waits for it now, a repeated call gets the answer",
        (false, false) => {
            "; but no call waits for it, and none can collect the answer, because the call that asked is unknown"
        }
    }
}

/// Formats one question as one line.
pub(super) fn line(question: &ListedQuestion) -> String {
    let message = question.message.as_deref().unwrap_or("-");
    format!(
        "{}  {:<9}  {} / {}  {}",
        short(&question.id),
        outcome(question),
        sanitize::line(&question.server, sanitize::LABEL),
        call(question).map_or_else(|| "-".to_owned(), |call| call.name()),
        sanitize::line(message, GIST)
    )
}

/// Returns the outcome of the question in a word or two. An answer that was not delivered is shown as such.
fn outcome(question: &ListedQuestion) -> &'static str {
    match question.delivery {
        Some(Delivery::Failed) => "not delivered",
        Some(Delivery::InDoubt) => "in doubt",
        Some(Delivery::Lapsed) => "lapsed",
        Some(Delivery::Waiting | Delivery::Delivered) | None => question.phase.as_str(),
    }
}

/// Returns the outcome of an answer that had no effect; `None` if it had.
fn undelivered(question: &ListedQuestion) -> Option<String> {
    let said = match question.delivery? {
        Delivery::Failed => "but the server did not accept it",
        Delivery::InDoubt => "but it is not known whether the server has it",
        Delivery::Lapsed => "but it was not delivered, and its value is erased",
        Delivery::Waiting | Delivery::Delivered => return None,
    };
    let why = question.delivery_reason.as_deref();
    Some(why.map_or_else(
        || said.to_owned(),
        |why| format!("{said}: {}", sanitize::line(why, sanitize::DESCRIPTION)),
    ))
}

/// Returns the call that the question is for, or all calls that it may be for.
fn call(question: &ListedQuestion) -> Option<CallView> {
    let others = question.others.clone().unwrap_or_default();
    Some(CallView::tool(question.target.as_deref()?).or_one_of(others))
}

/// Returns the calls that the question may be for, with their arguments; `None` if it is known which call asked.
fn candidates(question: &WholeQuestion) -> Option<CallView> {
    let mut calls = question.candidates.iter().map(|one| {
        let call = CallView::tool(&one.target);
        match &one.arguments_text {
            Some(arguments) => call.with_json(arguments),
            None => call,
        }
    });
    Some(calls.next()?.or_one_of_calls(calls.collect()))
}

/// Shows one question, with everything that a person needs to answer it.
pub(super) fn question(question: &WholeQuestion) -> Result<(), Failure> {
    for line in lines(question) {
        output::print(line)?;
    }
    Ok(())
}

fn lines(whole: &WholeQuestion) -> Vec<String> {
    let question = &whole.question;
    let id = short(&question.id);
    let mut lines = vec![format!("question   {id}, {}", state(question))];
    let mut add = |name: &str, value: String| {
        for (at, part) in value.lines().enumerate() {
            let name = if at == 0 { name } else { "" };
            lines.push(format!("{name:<11}{part}"));
        }
    };
    let line = |text: &str| sanitize::line(text, sanitize::LABEL);
    add("server", line(&question.server));
    if let Some(name) = whole.server_info["name"].as_str() {
        let version = whole.server_info["version"].as_str().unwrap_or_default();
        let name = quoted(&sanitize::claim(name, sanitize::CLAIMED_NAME));
        add(
            "",
            line(format!("calls itself {name} {version}").trim_end()),
        );
    }
    if let Some(caller) = &question.on_behalf_of {
        add("for", line(caller));
    }
    if let Some(client) = &question.client {
        let version = client.version.as_deref().unwrap_or_default();
        add(
            "through",
            line(format!("{} {version}", client.name).trim_end()),
        );
    }
    if let Some(call) = call(question) {
        let kind = question.kind.map_or("call", CallKind::word);
        match call.doubt() {
            Some(doubt) => add(kind, format!("{} ({doubt})", call.name())),
            None => add(kind, call.name()),
        }
    }
    let arguments = whole.arguments_text.as_deref();
    let one = arguments.map(|arguments| CallView::tool("").with_json(arguments));
    if let Some(call) = one.or_else(|| candidates(whole)) {
        for (at, (name, value)) in call.arguments_in_full().into_iter().enumerate() {
            let value = value.replace('\n', "\n  ");
            let shown = if name.is_empty() {
                value
            } else {
                format!("{name}: {value}")
            };
            add(if at == 0 { "arguments" } else { "" }, shown);
        }
    }
    for (name, value) in whole.tool.iter().flat_map(tool_lines) {
        add(name, value);
    }
    if let Some(bytes) = whole.arguments_left_out {
        add(
            "arguments",
            format!("{bytes} bytes, too long to be stored (`argument-bytes`)"),
        );
    }
    for caution in &whole.cautions {
        add("careful", sanitize::line(caution, sanitize::DESCRIPTION));
    }
    add(
        "asks",
        sanitize::text(
            question.message.as_deref().unwrap_or_default(),
            sanitize::MESSAGE,
        ),
    );
    let is_approval = question.approval;
    let mut required = Vec::new();
    if let Some(url) = &whole.url {
        add("link", sanitize::line(url, sanitize::DESCRIPTION));
    }
    let form = whole.requested_schema.as_ref();
    let form = form.and_then(|schema| Form::from_value_leniently(schema).ok());
    for field in form
        .iter()
        .flat_map(Form::fields)
        .map(FieldView::from_field)
    {
        if field.required {
            required.push(field.name.clone());
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
    if question.phase.is_open() {
        let flag = if whole.asks_for_credential {
            " --allow-credentials"
        } else {
            ""
        };
        let accept = format!("mcp-elicit inbox accept {id}{flag}{}", example(&required));
        let page = question.link.as_deref();
        if let Some(rule) = &question.rule {
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

/// Returns the arguments of a command that answers these fields. A server chooses their names, and a person or a program may
/// paste the command into a shell.
fn example(required: &[String]) -> String {
    let is_plain = |name: &String| {
        name.starts_with(char::is_alphanumeric)
            && name.chars().count() <= sanitize::LABEL
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
            && sanitize::line(name, sanitize::LABEL) == *name
    };
    if required.iter().all(is_plain) {
        return required
            .iter()
            .flat_map(|name| [" ", name.as_str(), "=..."])
            .collect();
    }
    let object: Map<String, Value> = required
        .iter()
        .map(|name| (name.clone(), Value::from("...")))
        .collect();
    let object = sanitize::json(&Value::from(object).to_string());
    format!(" {}", shell_words::quote(&object))
}

/// Returns the server's claims about the tool of a call that waits for approval, each with its label.
fn tool_lines(tool: &ListedTool) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    for (at, argument) in tool.left_out.iter().enumerate() {
        let name = sanitize::name(&argument.name, sanitize::LABEL);
        let words = match &argument.default_text {
            None => format!("{name}, and the server names no default"),
            Some(default) => format!(
                "{name}, by the server's word then {}",
                sanitize::line(default, sanitize::LABEL)
            ),
        };
        lines.push((if at == 0 { "left out" } else { "" }, words));
    }
    if tool.more_left_out > 0 {
        lines.push(("", format!("and {} more", tool.more_left_out)));
    }
    if let Some(description) = &tool.description {
        let description = sanitize::text(description.trim(), sanitize::DESCRIPTION);
        lines.push((
            "described",
            "by its server, which nothing checks:".to_owned(),
        ));
        let quoted = description.lines().map(|line| ("", format!("> {line}")));
        lines.extend(quoted);
    }
    for (at, hint) in tool.hints.iter().enumerate() {
        let label = if at == 0 { "claims" } else { "" };
        lines.push((label, sanitize::line(hint, sanitize::LABEL)));
    }
    lines
}

fn state(question: &ListedQuestion) -> String {
    let mut said = vec![question.phase.as_str().to_owned()];
    if let Some(by) = &question.by {
        said.push(sanitize::line(by, sanitize::LABEL));
    }
    if let Some(reason) = &question.reason {
        let reason =
            Withdrawal::of_word(reason).map_or(reason.as_str(), |withdrawal| withdrawal.words());
        said.push(sanitize::line(reason, sanitize::LABEL));
    }
    let moment = |at: Option<Timestamp>| super::super::audit::moment(at?.as_millis().cast_signed());
    if question.phase.is_open() {
        said.extend(moment(question.until).map(|until| format!("can be answered until {until}")));
        let waiting = if question.waited_for {
            "a call waits for it"
        } else if question.found_again {
            "no call waits for it now"
        } else {
            "no call waits for it, and none can collect an answer"
        };
        said.push(waiting.to_owned());
    } else {
        said.extend(moment(question.ended_at));
        if let Some(undelivered) = undelivered(question) {
            said.push(undelivered);
            if question.delivery == Some(Delivery::Failed)
                && let Some(until) = moment(question.valid_until)
            {
                said.push(format!("kept for a repeated call until {until}"));
            }
        }
        if question.delivered_at.is_none()
            && question.delivery_reason.is_none()
            && let Some(until) = moment(question.valid_until)
        {
            said.push("no call has taken the answer yet".to_owned());
            said.push(if question.found_again {
                format!("kept until {until}")
            } else {
                "a later call never gets it".to_owned()
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
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;

    /// Returns the question with these members, and the least that every question has.
    fn with<T: DeserializeOwned>(members: &Value) -> T {
        let mut all = json!({"id": "5f2c1a9b5f2c1a9b5f2c1a9b5f2c1a9b", "phase": "asked", "server": "dbops", "principal": "p",
            "mode": "form", "askedAt": 0, "waitedFor": true, "foundAgain": true});
        for (name, value) in members.as_object().unwrap() {
            all[name] = value.clone();
        }
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn a_command_to_copy_is_one_command_whatever_the_fields_are_called() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            example(&names)
        };
        assert_eq!(of(&[]), "");
        assert_eq!(of(&["env", "é_1.a-b"]), " env=... é_1.a-b=...");
        for name in [
            "x; touch f; echo ",
            "$(x)",
            "`x`",
            "'; x; '",
            "a\nb",
            "a=b",
            "",
            "-x",
            "*",
            "~",
            "a\u{202e}b",
        ] {
            let command = of(&["env", name]);
            let words = shell_words::split(&command).unwrap();
            assert_eq!(words.len(), 1, "{command}");
            let read: Value = serde_json::from_str(&words[0]).unwrap();
            assert_eq!(read, json!({"env": "...", name: "..."}), "{command}");
            assert!(!command.contains(['\n', '\u{202e}']), "{command}");
        }
    }

    #[test]
    fn what_a_server_says_of_its_tool_is_marked_as_its_words() {
        let question = json!({"id": "5f2c1a9b5f2c1a9b5f2c1a9b5f2c1a9b", "phase": "asked", "server": "dbops", "target": "delete",
            "kind": "tool", "argumentsText": "{\"name\":\"tmp1\"}", "message": "Approve?", "approval": true, "rule": "deletions",
            "tool": {"description": "Deletes for good.\nquestion   another\u{1b}", "hints": ["destructive: it may delete or overwrite"],
                "leftOut": [{"name": "cluster", "defaultText": "\"staging\""}, {"name": "note", "defaultText": null}], "moreLeftOut": 3}});
        let shown = lines(&with(&question)).join("\n");
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
        let shown = lines(&with(&question)).join("\n");
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
            lines(&with(&secret))
                .join("\n")
                .contains("accept 5f2c1a9b --allow-credentials where=...")
        );
        let mut deep = question.clone();
        deep["argumentsText"] = json!("{\"a\":1e999,\"force\":true\u{1b}");
        let shown_raw = lines(&with(&deep)).join("\n");
        assert!(
            shown_raw.contains("force") && !shown_raw.contains('\u{1b}'),
            "{shown_raw}"
        );
        let mut several = question.clone();
        several["others"] = json!(["plan"]);
        let shown = lines(&with(&several)).join("\n");
        assert!(
            shown.contains("tool       release or plan (one of several"),
            "{shown}"
        );
        several["argumentsText"] = Value::Null;
        several["candidates"] = json!([
            {"kind": "tool", "target": "release", "argumentsText": "{\"to\":\"moon\"}"},
            {"kind": "tool", "target": "plan", "argumentsText": null},
        ]);
        let shown = lines(&with(&several)).join("\n");
        for part in ["call 1, release: to: moon", "call 2, plan: no arguments"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!line(&with(&question)).contains(['\n', '\u{1b}']));
        let mut approval = question.clone();
        approval["approval"] = json!(true);
        approval["rule"] = json!("careful\u{1b}");
        approval["link"] = json!("http://127.0.0.1:1/q/5f2c1a9b");
        let shown = lines(&with(&approval)).join("\n");
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
            assert!(
                line(&with(&question)).contains(word),
                "{}",
                line(&with(&question))
            );
            assert!(!line(&with(&question)).contains("answered"));
            assert!(
                state(&with(&question)).contains(words),
                "{}",
                state(&with(&question))
            );
        }
        question["delivery"] = json!("delivered");
        assert!(line(&with(&question)).contains("answered"));
    }

    #[test]
    fn an_answer_that_no_call_can_come_for_is_not_promised_to_one() {
        let promised = json!({"waitedFor": false, "foundAgain": true});
        assert!(taken_by(&with(&promised)).contains("a repeated call gets the answer"));
        let lost = json!({"waitedFor": false, "foundAgain": false});
        assert!(taken_by(&with(&lost)).contains("none can collect the answer"));
        assert_eq!(
            taken_by(&with(&json!({"waitedFor": true, "foundAgain": false}))),
            ""
        );
        let open = json!({"phase": "asked", "waitedFor": false, "foundAgain": false});
        assert!(
            state(&with(&open)).contains("none can collect an answer"),
            "{}",
            state(&with(&open))
        );
        let mut answered =
            json!({"phase": "answered", "validUntil": 1_000_000, "foundAgain": false});
        let said = state(&with(&answered));
        assert!(
            said.contains("a later call never gets it") && !said.contains("kept until"),
            "{said}"
        );
        answered["foundAgain"] = json!(true);
        assert!(state(&with(&answered)).contains("kept until 1970"));
    }
}
