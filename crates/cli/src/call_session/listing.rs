//! Lists a server's tools with their arguments, its prompts and its resources.

use mcp_elicit_client::{CallError, CallOptions, Connection};
use mcp_elicit_forms::view::sanitize;
use rmcp::ClientHandler;
use rmcp::model::{ErrorCode, Prompt, Resource, ResourceTemplate, Tool};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::pages::{ServerList, pages};
use crate::failure::Failure;
use crate::output;

/// The longest text of a server that is shown in a list, in characters.
const DESCRIPTION: usize = sanitize::DESCRIPTION;

/// The contents of a server. A kind that the server does not declare is not requested, and is empty; a server that
/// declares nothing is asked for its tools.
#[derive(Debug, Default)]
pub(super) struct Listing {
    tools: ServerList<Tool>,
    prompts: ServerList<Prompt>,
    resources: ServerList<Resource>,
    templates: ServerList<ResourceTemplate>,
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
struct RefusedLists {
    lists: Vec<RefusedList>,
    first: Option<CallError>,
}

impl RefusedLists {
    /// Returns the list, or an empty one if the server refuses only this list.
    fn or_empty<T>(
        &mut self,
        method: &'static str,
        list: Result<ServerList<T>, CallError>,
    ) -> Result<ServerList<T>, CallError> {
        match list {
            Err(
                error @ (CallError::Server(_)
                | CallError::Unreadable { .. }
                | CallError::UnexpectedResponse
                | CallError::Undelivered(_)),
            ) => {
                let message = error.to_string();
                self.lists.push(RefusedList { method, message });
                self.first.get_or_insert(error);
                Ok(ServerList::default())
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
    let declared = connection
        .peer()
        .peer_info()
        .map(|info| info.capabilities.clone())
        .unwrap_or_default();
    let declares_none =
        declared.tools.is_none() && declared.prompts.is_none() && declared.resources.is_none();
    let mut listing = Listing::default();
    let mut refused = RefusedLists::default();
    if declared.tools.is_some() {
        let tools = list_tools(connection, options).await;
        listing.tools = refused.or_empty("tools/list", tools)?;
    } else if declares_none {
        listing.tools = match list_tools(connection, options).await {
            Err(CallError::Server(_)) => ServerList::default(),
            tools => refused.or_empty("tools/list", tools)?,
        };
    }
    if declared.prompts.is_some() {
        let prompts = pages(
            "prompts/list",
            "prompts",
            async |cursor| connection.prompts_page(cursor, options).await,
            |page| (page.prompts, page.next_cursor),
        );
        listing.prompts = refused.or_empty("prompts/list", prompts.await)?;
    }
    if declared.resources.is_some() {
        let resources = pages(
            "resources/list",
            "resources",
            async |cursor| connection.resources_page(cursor, options).await,
            |page| (page.resources, page.next_cursor),
        );
        listing.resources = refused.or_empty("resources/list", resources.await)?;
        let templates = pages(
            "resources/templates/list",
            "resourceTemplates",
            async |cursor| connection.templates_page(cursor, options).await,
            |page| (page.resource_templates, page.next_cursor),
        );
        listing.templates = match templates.await {
            // Servers with resources and no templates often do not know the method.
            Err(CallError::Server(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                ServerList::default()
            }
            templates => refused.or_empty("resources/templates/list", templates)?,
        };
    }
    match refused.first {
        Some(error) if listing.is_empty() => Err(error),
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
    let list = list_tools(connection, options).await?;
    if let Some(why) = list.unfinished() {
        output::say(format_args!(
            "{} {why}",
            output::styled(output::WARNING, "warning:")
        ));
    }
    Ok(list.into_entries())
}

async fn list_tools<H: ClientHandler>(
    connection: &Connection<H>,
    options: &CallOptions,
) -> Result<ServerList<Tool>, CallError> {
    pages(
        "tools/list",
        "tools",
        async |cursor| connection.tools_page(cursor, options).await,
        |page| (page.tools, page.next_cursor),
    )
    .await
}

/// An entry as the server wrote it.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum ListedEntry<'e> {
    Tool {
        tool: &'e RawValue,
    },
    Prompt {
        prompt: &'e RawValue,
    },
    Resource {
        resource: &'e RawValue,
    },
    ResourceTemplate {
        template: &'e RawValue,
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
            let refused = self
                .refused
                .iter()
                .map(|list| ListedEntry::Refused { list });
            return self
                .entries()
                .chain(refused)
                .try_for_each(|entry| output::print_json(&entry));
        }
        for line in self.lines() {
            output::print_wrapped(&line)?;
        }
        let warning = output::styled(output::WARNING, "warning:");
        for list in &self.refused {
            output::say(format_args!("{warning} {}", list.line()));
        }
        output::say(if self.is_empty() {
            "the server has no tools, prompts or resources"
        } else {
            "use one with `call TOOL NAME=VALUE`, `call --prompt NAME NAME=VALUE` or `call --resource URI`"
        });
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.entries().next().is_none()
    }

    fn entries(&self) -> impl Iterator<Item = ListedEntry<'_>> {
        let tools = self.tools.raw().map(|tool| ListedEntry::Tool { tool });
        let prompts = self
            .prompts
            .raw()
            .map(|prompt| ListedEntry::Prompt { prompt });
        let resources = self.resources.raw();
        let templates = self.templates.raw();
        tools
            .chain(prompts)
            .chain(resources.map(|resource| ListedEntry::Resource { resource }))
            .chain(templates.map(|template| ListedEntry::ResourceTemplate { template }))
    }

    /// Returns what is wrong with the lists, each with its JSON Pointer.
    pub(super) fn warnings(&self) -> Vec<(String, Option<&str>)> {
        let tools = self.tools.warnings();
        tools
            .chain(self.prompts.warnings())
            .chain(self.resources.warnings())
            .chain(self.templates.warnings())
            .collect()
    }

    /// Returns the reason why a list was not read to its end; `None` if all were.
    pub(super) fn unfinished(&self) -> Option<String> {
        self.tools
            .unfinished()
            .or_else(|| self.prompts.unfinished())
            .or_else(|| self.resources.unfinished())
            .or_else(|| self.templates.unfinished())
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut heading = |heading: &str, entries: Vec<String>| {
            if !entries.is_empty() {
                lines.push(heading.to_owned());
                lines.extend(entries);
            }
        };
        heading("tools", self.tools.entries().flat_map(tool_lines).collect());
        heading(
            "prompts",
            self.prompts.entries().flat_map(prompt_lines).collect(),
        );
        let resources = self.resources.entries().map(|resource| {
            let about = resource
                .description
                .as_deref()
                .or(resource.title.as_deref());
            entry(&resource.uri, Some(about.unwrap_or(&resource.name)))
        });
        let templates = self.templates.entries().map(|template| {
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
