//! Lists a server's tools with their arguments, its prompts and its resources.

use std::future::Future;

use mcp_elicit_client::{CallError, CallOptions, Connection};
use mcp_elicit_forms::view::sanitize;
use rmcp::model::{ErrorCode, PaginatedRequestParams, Prompt, Resource, ResourceTemplate, Tool};
use rmcp::{ClientHandler, ServiceError};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::output;

/// The largest number of pages and of entries that are read of one list. A server's list may never end.
const MAX_PAGES: usize = 100;
const MAX_ENTRIES: usize = 10_000;
/// The longest description that is shown, in characters.
const DESCRIPTION: usize = 300;

/// The contents of a server. A kind that the server does not declare is not requested, and is empty.
#[derive(Debug, Default)]
pub(super) struct Listing {
    tools: Vec<Tool>,
    prompts: Vec<Prompt>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    refused: Vec<RefusedList>,
}

/// A list that the server declares and refuses to give.
#[derive(Debug, Serialize)]
struct RefusedList {
    /// The method that was refused.
    method: &'static str,
    message: String,
}

impl RefusedList {
    fn line(&self) -> String {
        let message = sanitize::line(&self.message, DESCRIPTION);
        format!("not listed: {} failed: {message}", self.method)
    }
}

/// The lists that the server refused, and its first error.
#[derive(Default)]
struct Refused {
    lists: Vec<RefusedList>,
    first: Option<CallError>,
}

impl Refused {
    /// Returns the list, or an empty one if the server refuses only this list.
    fn or_empty<T>(
        &mut self,
        method: &'static str,
        list: Result<Vec<T>, CallError>,
    ) -> Result<Vec<T>, CallError> {
        match list {
            Err(
                error @ (CallError::Server(_)
                | CallError::UnexpectedResponse
                | CallError::Undelivered(_)),
            ) => {
                let message = error.to_string();
                self.lists.push(RefusedList { method, message });
                self.first.get_or_insert(error);
                Ok(Vec::new())
            }
            list => list,
        }
    }
}

/// Reads the lists of everything that the server declares.
pub(super) async fn read<H: ClientHandler>(
    connection: &Connection<H>,
    options: &CallOptions,
) -> Result<Listing, CallError> {
    let peer = connection.peer();
    let declared = peer
        .peer_info()
        .map(|info| info.capabilities.clone())
        .unwrap_or_default();
    let mut listing = Listing::default();
    let mut refused = Refused::default();
    if declared.tools.is_some() {
        let tools = tools(connection, options).await;
        listing.tools = refused.or_empty("tools/list", tools)?;
    }
    if declared.prompts.is_some() {
        let prompts = pages(options, async |cursor| {
            let page = peer.list_prompts(Some(cursor)).await?;
            Ok((page.prompts, page.next_cursor))
        });
        listing.prompts = refused.or_empty("prompts/list", prompts.await)?;
    }
    if declared.resources.is_some() {
        let resources = pages(options, async |cursor| {
            let page = peer.list_resources(Some(cursor)).await?;
            Ok((page.resources, page.next_cursor))
        });
        listing.resources = refused.or_empty("resources/list", resources.await)?;
        let templates = pages(options, async |cursor| {
            let page = peer.list_resource_templates(Some(cursor)).await?;
            Ok((page.resource_templates, page.next_cursor))
        });
        listing.templates = match templates.await {
            // Servers with resources and no templates often do not know the method.
            Err(CallError::Server(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                Vec::new()
            }
            templates => refused.or_empty("resources/templates/list", templates)?,
        };
    }
    match refused.first {
        Some(error) if listing.entries().next().is_none() => Err(error),
        _ => {
            listing.refused = refused.lists;
            Ok(listing)
        }
    }
}

/// Reads the list of tools.
pub(crate) async fn tools<H: ClientHandler>(
    connection: &Connection<H>,
    options: &CallOptions,
) -> Result<Vec<Tool>, CallError> {
    pages(options, async |cursor| {
        let page = connection.peer().list_tools(Some(cursor)).await?;
        Ok((page.tools, page.next_cursor))
    })
    .await
}

/// Reads one list, page by page.
async fn pages<T>(
    options: &CallOptions,
    page: impl AsyncFn(PaginatedRequestParams) -> Result<(Vec<T>, Option<String>), ServiceError>,
) -> Result<Vec<T>, CallError> {
    let mut all = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let (some, next) = one(options, page(params)).await?;
        all.extend(some);
        let ended = next.is_none() || next == cursor;
        if ended && all.len() <= MAX_ENTRIES {
            return Ok(all);
        }
        if all.len() >= MAX_ENTRIES {
            break;
        }
        cursor = next;
    }
    output::say(format_args!(
        "a list of the server continues beyond {MAX_PAGES} pages or {MAX_ENTRIES} entries: the rest is not read"
    ));
    all.truncate(MAX_ENTRIES);
    Ok(all)
}

async fn one<T>(
    options: &CallOptions,
    page: impl Future<Output = Result<T, ServiceError>>,
) -> Result<T, CallError> {
    let silence = async {
        match options.silence {
            Some(after) => {
                tokio::time::sleep(after).await;
                after
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        page = page => page.map_err(CallError::from),
        () = options.stop.cancelled() => Err(CallError::Stopped),
        after = silence => Err(CallError::Silent { after }),
    }
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Entry<'e> {
    Tool {
        tool: &'e Tool,
    },
    Prompt {
        prompt: &'e Prompt,
    },
    Resource {
        resource: &'e Resource,
    },
    ResourceTemplate {
        template: &'e ResourceTemplate,
    },
    Refused {
        #[serde(flatten)]
        list: &'e RefusedList,
    },
}

impl Listing {
    /// Shows the list on stdout: one JSON object per entry, or lines for people.
    pub(super) fn show(&self, json: bool) -> Result<(), Failure> {
        if json {
            let refused = self.refused.iter().map(|list| Entry::Refused { list });
            return self
                .entries()
                .chain(refused)
                .try_for_each(|entry| output::print_json(&entry));
        }
        for line in self.lines() {
            output::print(line)?;
        }
        let warning = output::styled(output::WARNING, "warning:");
        for list in &self.refused {
            output::say(format_args!("{warning} {}", list.line()));
        }
        output::say(if self.entries().next().is_none() {
            "the server has no tools, prompts or resources"
        } else {
            "use one with `call TOOL NAME=VALUE`, `call --prompt NAME NAME=VALUE` or `call --resource URI`"
        });
        Ok(())
    }

    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let tools = self.tools.iter().map(|tool| Entry::Tool { tool });
        let prompts = self.prompts.iter().map(|prompt| Entry::Prompt { prompt });
        let resources = self.resources.iter();
        let templates = self.templates.iter();
        tools
            .chain(prompts)
            .chain(resources.map(|resource| Entry::Resource { resource }))
            .chain(templates.map(|template| Entry::ResourceTemplate { template }))
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut heading = |heading: &str, entries: Vec<String>| {
            if !entries.is_empty() {
                lines.push(heading.to_owned());
                lines.extend(entries);
            }
        };
        heading("tools", self.tools.iter().flat_map(tool_lines).collect());
        heading(
            "prompts",
            self.prompts.iter().flat_map(prompt_lines).collect(),
        );
        let resources = self.resources.iter().map(|resource| {
            let about = resource
                .description
                .as_deref()
                .or(resource.title.as_deref());
            entry(&resource.uri, Some(about.unwrap_or(&resource.name)))
        });
        let templates = self.templates.iter().map(|template| {
            let about = template
                .description
                .as_deref()
                .or(template.title.as_deref());
            entry(
                &template.uri_template,
                Some(about.unwrap_or(&template.name)),
            )
        });
        heading("resources", resources.chain(templates).collect());
        lines
    }
}

fn tool_lines(tool: &Tool) -> Vec<String> {
    let about = tool.description.as_deref().or(tool.title.as_deref());
    let mut lines = vec![entry(&tool.name, about)];
    lines.extend(argument_lines(tool));
    lines
}

/// Returns the arguments of a tool, one per line.
pub(super) fn argument_lines(tool: &Tool) -> Vec<String> {
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| {
        required.is_some_and(|names| names.iter().any(|known| known.as_str() == Some(name)))
    };
    let properties = tool.input_schema.get("properties");
    let properties = properties.and_then(Value::as_object).into_iter().flatten();
    properties
        .map(|(name, schema)| {
            argument(
                name,
                kind(schema).as_deref(),
                is_required(name),
                schema["description"].as_str(),
            )
        })
        .collect()
}

fn prompt_lines(prompt: &Prompt) -> Vec<String> {
    let about = prompt.description.as_deref().or(prompt.title.as_deref());
    let mut lines = vec![entry(&prompt.name, about)];
    lines.extend(prompt.arguments.iter().flatten().map(|one| {
        let about = one.description.as_deref().or(one.title.as_deref());
        argument(&one.name, None, one.required == Some(true), about)
    }));
    lines
}

fn entry(name: &str, about: Option<&str>) -> String {
    let name = sanitize::line(name, sanitize::LABEL);
    match about.map(|about| sanitize::line(about, DESCRIPTION)) {
        Some(about) if !about.is_empty() && about != name => format!("  {name}  {about}"),
        _ => format!("  {name}"),
    }
}

fn argument(name: &str, kind: Option<&str>, required: bool, about: Option<&str>) -> String {
    let name = sanitize::line(name, sanitize::LABEL);
    let mut facts: Vec<_> = kind.map(str::to_owned).into_iter().collect();
    if required {
        facts.push("required".to_owned());
    }
    let facts = match facts.join(", ") {
        facts if facts.is_empty() => String::new(),
        facts => format!(" ({facts})"),
    };
    match about.map(|about| sanitize::line(about, DESCRIPTION)) {
        Some(about) if !about.is_empty() => format!("      {name}{facts}: {about}"),
        _ => format!("      {name}{facts}"),
    }
}

/// Returns the values or the type that a schema allows, if it states them in the simplest form.
fn kind(schema: &Value) -> Option<String> {
    let listed = |values: &Vec<Value>| {
        let values: Vec<_> = values
            .iter()
            .map(|value| {
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned)
            })
            .collect();
        sanitize::line(&values.join("|"), sanitize::LABEL)
    };
    match (&schema["enum"], &schema["type"]) {
        (Value::Array(values), _) => Some(listed(values)),
        (_, Value::String(kind)) => Some(sanitize::line(kind, sanitize::LABEL)),
        (_, Value::Array(kinds)) => Some(listed(kinds)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_is_listed_with_its_arguments() {
        let tool: Tool = serde_json::from_value(json!({
            "name": "deploy\u{1b}[31m", "description": "Deploy\nit",
            "inputSchema": {"type": "object", "required": ["to"], "properties": {
                "to": {"enum": ["staging", "production"], "description": "where"},
                "replicas": {"type": ["integer", "null"]}, "any": {},
            }},
        }))
        .expect("a tool");
        let lines = tool_lines(&tool);
        assert!(
            !lines[0].contains('\u{1b}') && lines[0].ends_with("Deploy it"),
            "{lines:?}"
        );
        assert_eq!(
            lines[1..],
            [
                "      to (staging|production, required): where",
                "      replicas (integer|null)",
                "      any",
            ]
        );
    }
}
