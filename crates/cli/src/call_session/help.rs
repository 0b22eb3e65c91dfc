//! Advice on an error that the server reported: the tools it has, the arguments a tool takes, and the mode of questions
//! that this call did not declare.

use mcp_elicit_client::{CallError, CallOptions, Connection};
use mcp_elicit_core::wire::Capability;
use mcp_elicit_forms::view::sanitize;
use rmcp::ClientHandler;
use rmcp::model::{ContentBlock, ErrorCode};

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

/// Looks for advice on the error in `got`.
pub(super) async fn find<H: ClientHandler>(
    request: &ServerRequest,
    got: &Result<Got, CallError>,
    connection: &Connection<H>,
    options: &CallOptions,
    declared: Capability,
) -> Help {
    let (text, may_be_unknown) = match got {
        Err(CallError::Server(error)) => (
            error.message.to_string(),
            error.code == ErrorCode::INVALID_PARAMS
                || error.code == ErrorCode::METHOD_NOT_FOUND
                || error.code == ErrorCode::RESOURCE_NOT_FOUND,
        ),
        // Some SDKs report an unknown tool as the tool's own error.
        Ok(Got::Tool(result)) if result.is_error == Some(true) => (
            result
                .content
                .iter()
                .filter_map(ContentBlock::as_text)
                .map(|text| text.text.as_str())
                .collect::<Vec<_>>()
                .join(" "),
            true,
        ),
        _ => return Help::default(),
    };
    if let Some(next) = undeclared(&text, declared) {
        return Help {
            next: Some(next),
            ..Help::default()
        };
    }
    match request {
        ServerRequest::Tool { name, .. } if may_be_unknown => {
            match listing::tools(connection, options).await {
                Ok(tools) => of_tools(name, &tools),
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

/// Returns advice if the server wanted to ask in a mode that this call did not declare.
fn undeclared(text: &str, declared: Capability) -> Option<String> {
    let text = text.to_ascii_lowercase();
    // The word alone may be part of a name.
    let is_refused = [
        "support",
        "capab",
        "declar",
        "mode",
        "unavailable",
        "cannot",
    ]
    .iter()
    .any(|word| text.contains(word));
    if !text.contains("elicitation") || !is_refused || declared == Capability::BOTH {
        return None;
    }
    Some(if declared.is_none() {
        "this call declared that it cannot be asked; leave out `--elicit off`, and look at the policy.".to_owned()
    } else if declared.form {
        "this call declared forms only: `--answer`, `--accept-defaults`, `--elicit form` or a policy causes this. Call without \
         them, or with `--answers FILE`, to be asked to visit a URL too."
            .to_owned()
    } else {
        "this call declared URLs only: leave out `--elicit url`, and look at the policy.".to_owned()
    })
}

fn of_tools(name: &str, tools: &[rmcp::model::Tool]) -> Help {
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
        next: Some("`call --list` shows their arguments.".to_owned()),
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

    #[test]
    fn only_a_mode_that_was_left_out_is_advised_about() {
        for text in [
            "Elicitation not supported",
            "Client does not support url elicitation",
            "this client declares no elicitation",
        ] {
            assert!(undeclared(text, Capability::NONE).is_some(), "{text}");
            assert!(undeclared(text, Capability::BOTH).is_none(), "{text}");
        }
        for text in [
            "Not done yet. The server mcp-elicit-demo needs a person's answer before the tool deploy can go on.",
            "the elicitation ended",
        ] {
            assert!(undeclared(text, Capability::NONE).is_none(), "{text}");
        }
    }
}
