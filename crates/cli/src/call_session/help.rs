//! Advice on an error that the server reported: the tools it has, the arguments a tool takes, the mode of questions that
//! this call did not declare, and the revision in which the server can ask.

use mcp_elicit_client::{CallError, CallOptions, Connection};
use mcp_elicit_core::wire::{Capability, Mode, Revision};
use mcp_elicit_forms::view::sanitize;
use rmcp::ClientHandler;
use rmcp::model::{ContentBlock, ErrorCode, ErrorData};

use super::listing;
use super::request::{Got, ServerRequest};
use crate::failure::Failure;
use crate::output;

/// The largest number of tools that are named.
const TOOLS: usize = 40;

/// The advice on an error, which is often empty.
#[derive(Debug, Default)]
pub(super) struct Help {
    heading: Option<String>,
    lines: Vec<String>,
    next: Option<String>,
}

/// The call as far as it got before its error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation {
    /// The modes of questions that it declared.
    pub(super) declared: Capability,
    /// `true` if a question was answered: the tool had accepted its arguments.
    pub(super) has_answered: bool,
}

/// Looks for advice on the error in `got`.
pub(super) async fn find<H: ClientHandler>(
    request: &ServerRequest,
    got: &Result<Got, CallError>,
    connection: &Connection<H>,
    options: &CallOptions,
    situation: Situation,
) -> Help {
    let declared = situation.declared;
    let (text, may_be_unknown) = match got {
        Err(CallError::Server(error)) => (
            error.message.to_string(),
            error.code == ErrorCode::INVALID_PARAMS
                || error.code == ErrorCode::METHOD_NOT_FOUND
                || error.code == ErrorCode::RESOURCE_NOT_FOUND,
        ),
        // Some SDKs report an unknown tool as the tool's own error.
        Ok(Got::Tool(received)) if received.result().is_error == Some(true) => {
            let texts: Vec<_> = received
                .result()
                .content
                .iter()
                .filter_map(ContentBlock::as_text)
                .map(|text| text.text.as_str())
                .collect();
            let text = texts.join(" ");
            let is_about_arguments = is_about_arguments(&text);
            (text, is_about_arguments)
        }
        _ => return Help::default(),
    };
    let missing = match got {
        Err(CallError::Server(error)) => missing_mode(error),
        _ => None,
    };
    let missing = missing.or_else(|| missing_in(&text, declared));
    let has_no_urls = connection.protocol() == Revision::V2025_06_18.as_str();
    let next = other_era(&text).or_else(|| no_url_mode(missing, declared, has_no_urls));
    if let Some(next) = next.or_else(|| undeclared(missing, declared)) {
        return Help {
            next: Some(next),
            ..Help::default()
        };
    }
    match request {
        ServerRequest::Tool { name, .. } if may_be_unknown && !situation.has_answered => {
            match listing::tools(connection, options).await {
                Ok(tools) => of_tools(name, &tools, declared),
                Err(_) => Help::default(),
            }
        }
        ServerRequest::Prompt { .. } | ServerRequest::Resource { .. } if may_be_unknown => Help {
            next: Some("`call --list` shows what the server has.".to_owned()),
            ..Help::default()
        },
        _ => Help::default(),
    }
}

/// Returns `true` if a tool's error is about its name or its arguments. A list of arguments helps with no other error.
fn is_about_arguments(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let is_about = |words: &[&str]| words.iter().any(|word| text.contains(word));
    is_about(&[
        "argument",
        "parameter",
        "-32602",
        "invalid params",
        "validation error",
        "validation failed",
        "input validation",
        "json schema",
        "inputschema",
        "required property",
        "required field",
        "field required",
        "missing field",
        "missing required",
        "unrecognized key",
        "additional properties",
    ]) || text.contains("tool") && is_about(&["not found", "unknown", "no such", "does not exist"])
}

/// Errors of SDKs whose servers ask only in a session.
const SESSION_ONLY: [&str; 3] = [
    // FastMCP 4
    "elicitation via server-initiated requests is unavailable on",
    // `mcp` 2 for Python
    "this transport context has no back-channel for server-initiated requests",
    // rmcp
    "server-to-client requests are not allowed on protocol",
];

/// The error of FastMCP 4 for a tool that asks only in results, and that of `mcp` 2, which has other causes too.
const ROUNDS_ONLY: [&str; 2] = [
    "returned an InputRequiredResult to request client input",
    "Handler returned an invalid result",
];

/// Errors of SDKs and servers about a mode that the client did not declare.
const UNDECLARED: [(&str, Option<Mode>); 5] = [
    ("Client does not support elicitation", None),
    ("Client does not support form elicitation", Some(Mode::Form)),
    ("Client does not support url elicitation", Some(Mode::Url)),
    ("Elicitation in url mode not supported", Some(Mode::Url)),
    ("Elicitation not supported", None),
];

/// Returns `true` if the server reports that its tool asked in a result of 2026-07-28, which its session does not have.
/// The tool has then ended by asking, so it may be called again in that revision.
pub(super) fn asks_only_in_rounds(got: &Result<Got, CallError>) -> bool {
    matches!(got, Err(CallError::Server(error)) if error.message.contains(ROUNDS_ONLY[0]))
}

/// Returns advice on an error of a server that cannot ask in this revision.
fn other_era(text: &str) -> Option<String> {
    let is_one_of = |known: &[&str]| known.iter().any(|known| text.contains(known));
    if is_one_of(&SESSION_ONLY) {
        return Some(
            "the server asks only in a session, and not on 2026-07-28: call with `--protocol 2025-11-25`. If a gateway is in between, \
             give it `--server-revision 2025-11-25`."
                .to_owned(),
        );
    }
    is_one_of(&ROUNDS_ONLY).then(|| {
        "the tool may ask only on 2026-07-28: call with `--protocol 2026-07-28`.".to_owned()
    })
}

/// Returns the mode that a server needed and the client did not declare, from its error.
fn missing_mode(error: &ErrorData) -> Option<Mode> {
    if !matches!(error.code.0, -32601 | -32602 | -32021) {
        return None;
    }
    let data = error.data.as_ref()?;
    if let Some(needed) = data["requiredCapabilities"]["elicitation"].as_object() {
        let only_url = needed.contains_key("url") && !needed.contains_key("form");
        return Some(if only_url { Mode::Url } else { Mode::Form });
    }
    if let Some(mode) = data["mode"].as_str() {
        return mode.parse().ok();
    }
    let reason = data["reason"].as_str()?;
    reason
        .starts_with("Client does not have elicitation capability")
        .then(|| {
            if reason.contains("for url mode") {
                Mode::Url
            } else {
                Mode::Form
            }
        })
}

/// Returns the mode that a server's message says is missing, if the message is a known one.
fn missing_in(text: &str, declared: Capability) -> Option<Mode> {
    let (_, mode) = UNDECLARED.iter().find(|(known, _)| text.contains(known))?;
    let first_missing = || {
        [Mode::Form, Mode::Url]
            .into_iter()
            .find(|mode| !declared.has(*mode))
    };
    mode.or_else(first_missing)
}

/// Returns advice if the server wanted a visit on 2025-06-18, which has forms only.
fn no_url_mode(missing: Option<Mode>, declared: Capability, has_no_urls: bool) -> Option<String> {
    (has_no_urls && missing == Some(Mode::Url) && declared.has(Mode::Url)).then(|| {
        "2025-06-18 has no url mode: leave out `--protocol`, or call with `--protocol 2025-11-25`."
            .to_owned()
    })
}

/// Returns advice if the server wanted to ask in a mode that this call did not declare.
fn undeclared(missing: Option<Mode>, declared: Capability) -> Option<String> {
    let missing = missing.filter(|mode| !declared.has(*mode))?;
    Some(match missing {
        _ if declared.is_none() => {
            "this call declared that it cannot be asked; leave out `--elicit off`, and look at the policy.".to_owned()
        }
        Mode::Url => {
            "this call declared forms only: `--answer`, `--accept-defaults`, `--elicit form` or a policy causes this. Call without \
             them, or with `--answers FILE`, to be asked to visit a URL too."
                .to_owned()
        }
        Mode::Form => {
            "this call declared URLs only: leave out `--elicit url`, and look at the policy.".to_owned()
        }
    })
}

fn of_tools(name: &str, tools: &[rmcp::model::Tool], declared: Capability) -> Help {
    if let Some(tool) = tools.iter().find(|tool| tool.name == name) {
        let lines = listing::argument_lines(tool);
        return Help {
            heading: (!lines.is_empty()).then(|| "the tool's arguments:".to_owned()),
            lines,
            next: None,
        };
    }
    let mut lines: Vec<_> = tools
        .iter()
        .take(TOOLS)
        .map(|tool| sanitize::line(&tool.name, sanitize::LABEL))
        .collect();
    if tools.len() > TOOLS {
        lines.push(format!("and {} more", tools.len() - TOOLS));
    }
    let name = sanitize::line(name, sanitize::LABEL);
    Help {
        heading: Some(if lines.is_empty() {
            format!("there is no tool `{name}`; the server lists none")
        } else {
            format!("there is no tool `{name}`; the server has:")
        }),
        lines,
        next: Some(if declared.is_none() {
            "this call declared that it cannot be asked, and some servers then hide the tools that ask: leave out `--elicit off`."
                .to_owned()
        } else {
            "`call --list` shows their arguments.".to_owned()
        }),
    }
}

impl Help {
    /// Adds the advice to the failure.
    pub(super) fn add_to(self, failure: Failure) -> Failure {
        let failure = match self.heading {
            Some(heading) => failure.telling(&heading, self.lines),
            None => failure,
        };
        match self.next {
            Some(next) if failure.next_step().is_none() => failure.hint(next),
            _ => failure,
        }
    }

    /// Shows the advice below a result.
    pub(super) fn say(&self) {
        if let Some(heading) = &self.heading {
            output::say(format_args!("  {heading}"));
        }
        for line in &self.lines {
            output::say(format_args!("    {}", line.trim_start()));
        }
        if let Some(next) = &self.next {
            output::say(format_args!(
                "  {} {next}",
                output::styled(output::HINT, "next:")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i32, message: &str, data: serde_json::Value) -> ErrorData {
        ErrorData::new(ErrorCode(code), message.to_owned(), Some(data))
    }

    #[test]
    fn only_an_error_about_arguments_lists_them() {
        for text in [
            "MCP error -32602: Input validation error",
            "Unknown tool: book",
            "1 validation error for call[book] nights Missing required argument",
        ] {
            assert!(is_about_arguments(text), "{text}");
        }
        for text in [
            "The user answered no to \"Cancel booking 7?\"",
            "the disk is full",
            "",
        ] {
            assert!(!is_about_arguments(text), "{text}");
        }
    }

    #[test]
    fn only_a_mode_that_was_left_out_is_advised_about() {
        let form_only = Capability::FORM;
        for (text, declared, advice) in [
            (
                "Client does not support elicitation.",
                Capability::NONE,
                "cannot be asked",
            ),
            (
                "Client does not support form elicitation.",
                Capability::NONE,
                "cannot be asked",
            ),
            (
                "Error calling tool 'x': Client does not support url elicitation.",
                form_only,
                "forms only",
            ),
            (
                "Elicitation not supported",
                Capability::NONE,
                "cannot be asked",
            ),
        ] {
            let told = undeclared(missing_in(text, declared), declared).expect(text);
            assert!(told.contains(advice), "{text}: {told}");
            let both = Capability::BOTH;
            assert_eq!(undeclared(missing_in(text, both), both), None, "{text}");
        }
        for text in [
            "Not done yet. The server mcp-elicit-demo needs a person's answer before the tool deploy can go on.",
            "elicitation via server-initiated requests is unavailable on 2026-07-28 connections.",
            "the elicitation mode is unavailable",
        ] {
            assert_eq!(missing_in(text, Capability::NONE), None, "{text}");
        }
    }

    #[test]
    fn the_data_of_an_error_names_the_mode() {
        use serde_json::json;
        for (code, data, mode) in [
            (
                -32021,
                json!({"requiredCapabilities": {"elicitation": {"url": {}}}}),
                Some(Mode::Url),
            ),
            (
                -32021,
                json!({"requiredCapabilities": {"elicitation": {}}}),
                Some(Mode::Form),
            ),
            (
                -32602,
                json!({"reason": "Client does not have elicitation capability for url mode"}),
                Some(Mode::Url),
            ),
            (
                -32601,
                json!({"reason": "Client does not have elicitation capability"}),
                Some(Mode::Form),
            ),
            (-32602, json!({"mode": "form"}), Some(Mode::Form)),
            (
                -32602,
                json!({"reason": "the elicitation has an unknown mode"}),
                None,
            ),
            (-32000, json!({"mode": "form"}), None),
            (-32601, json!(null), None),
        ] {
            assert_eq!(
                missing_mode(&error(code, "no", data.clone())),
                mode,
                "{code} {data}"
            );
        }
    }

    #[test]
    fn a_server_of_another_era_is_named_with_the_option() {
        for (text, option) in [
            (
                "Error calling tool 'ask': elicitation via server-initiated requests is unavailable on 2026-07-28 connections.",
                "--protocol 2025-11-25",
            ),
            (
                "Cannot send 'elicitation/create': this transport context has no back-channel for server-initiated requests.",
                "--server-revision 2025-11-25",
            ),
            (
                "Tool 'x' returned an InputRequiredResult to request client input, but",
                "--protocol 2026-07-28",
            ),
        ] {
            assert!(other_era(text).expect(text).contains(option), "{text}");
        }
        assert_eq!(other_era("the elicitation ended"), None);
    }
}
