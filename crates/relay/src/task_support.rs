//! The tasks that the gateway has for a client: whether it runs any, and what it says of them.

use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::members::{self, Members};
use mcp_elicit_core::wire::meta;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::era::{Client, Server};
use crate::frame_edit::Splice;
use crate::{Audience, Relay, RelaySettings};

/// The extension for 2026-07-28.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The facts that decide about the tasks of the gateway.
#[derive(Clone, Copy)]
pub(crate) struct TaskSupport<'a> {
    settings: &'a RelaySettings,
    client: &'a Client,
    server: &'a Server,
}

impl Relay {
    /// Returns the facts that decide about the tasks of the gateway.
    pub(crate) fn task_support(&self) -> TaskSupport<'_> {
        TaskSupport {
            settings: &self.settings,
            client: &self.client,
            server: &self.server,
        }
    }
}

impl TaskSupport<'_> {
    /// Returns `true` if the gateway runs the client's calls as tasks: the client knows tasks, the server has none, and a
    /// call may have to wait for people.
    pub(crate) fn runs_tasks(self) -> bool {
        self.settings.tasks
            && self.client.has_tasks()
            && self.may_wait_for_people()
            && self.server.can_be_given_tasks()
    }

    /// Adds the tasks of the gateway to an `InitializeResult` for the client.
    pub(crate) fn with_tasks(self, mut result: Value) -> Value {
        let runs = self.runs_tasks();
        let capabilities = result.get_mut("capabilities").filter(|_| runs);
        if let Some(capabilities) = capabilities.and_then(Value::as_object_mut) {
            let tasks = capabilities.entry("tasks").or_insert_with(|| json!({}));
            if !tasks.is_object() {
                *tasks = json!({});
            }
            tasks["cancel"] = json!({});
            if !tasks["requests"].is_object() {
                tasks["requests"] = json!({});
            }
            tasks["requests"]["tools"] = json!({"call": {}});
        }
        result
    }

    /// Returns the change of the response to `tools/list` after which its tools may be called as tasks; `None` if the
    /// gateway runs none.
    pub(crate) fn in_tools(self, frame: Frame<'_>) -> Option<Splice> {
        if !self.runs_tasks() {
            return None;
        }
        let result = Members::read(frame.result()?, "result").ok()?;
        let tools: Vec<&RawValue> = serde_json::from_str(result.get("tools")?.get()).ok()?;
        let optional = members::raw_text("optional");
        let supports = |tool: &&RawValue| -> Option<Box<RawValue>> {
            let tool = Members::read(tool, "tool").ok()?;
            let known = tool
                .get("execution")
                .filter(|known| known.get().starts_with('{'));
            let empty = members::raw_value(&json!({}));
            let execution = Members::read(known.unwrap_or(&empty), "execution").ok()?;
            let execution = execution.with("taskSupport", Some(&optional));
            Some(tool.with("execution", Some(&execution)))
        };
        let tools: Option<Vec<_>> = tools.iter().map(supports).collect();
        let tools = serde_json::value::to_raw_value(&tools?).ok()?;
        let range = frame.range(FramePart::Result)?.clone();
        let result = result.with("tools", Some(&tools));
        Some(Splice::new(range, result.get()))
    }

    /// Returns `true` if a request declares the extension for 2026-07-28, so that its held call may become a task.
    pub(crate) fn is_declared_in(self, frame: Frame<'_>) -> bool {
        if self.client.is_pushed_to() || !self.settings.tasks {
            return false;
        }
        let declared = frame.member(FramePart::Meta, meta::CLIENT_CAPABILITIES);
        let declared = declared.filter(|declared| declared.contains(TASKS));
        let declared: Option<Value> = declared.and_then(|all| serde_json::from_str(all).ok());
        declared.is_some_and(|all| all["extensions"][TASKS].is_object())
    }

    /// Returns `true` if the gateway has to tell this client that its held calls may become tasks (2026-07-28, the
    /// extension), because the server does not say so of its own.
    pub(crate) fn adds_extension(self) -> bool {
        self.settings.tasks
            && self.may_wait_for_people()
            && !self.client.is_pushed_to()
            && self.client.capabilities()["extensions"][TASKS].is_object()
            && !self.server.discover_result()["capabilities"]["extensions"][TASKS].is_object()
    }

    /// Adds the extension to a `DiscoverResult` for the client.
    pub(crate) fn with_extension(self, mut result: Value) -> Value {
        let adds = self.adds_extension();
        let capabilities = result.get_mut("capabilities").filter(|_| adds);
        if let Some(capabilities) = capabilities.and_then(Value::as_object_mut) {
            let extensions = capabilities
                .entry("extensions")
                .or_insert_with(|| json!({}));
            if let Some(extensions) = extensions.as_object_mut() {
                extensions.insert(TASKS.to_owned(), json!({}));
            }
        }
        result
    }

    fn may_wait_for_people(self) -> bool {
        self.settings.answer_with != Audience::Client || self.settings.decisions.is_some()
    }
}
