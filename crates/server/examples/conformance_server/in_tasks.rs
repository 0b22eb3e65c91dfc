//! Tools of the tasks extension; those that ask do so through `Elicit::in_task`.

use std::time::Duration;

use mcp_elicit_server::{Elicit, ElicitError};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, CreateTaskResult,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskContext, TaskExit, TaskOptions};
use rmcp::{ErrorData, RoleServer, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::asking::Name;
use super::{Conformance, text};

#[derive(Deserialize, JsonSchema)]
struct Compute {
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    label: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct File {
    #[serde(default)]
    filename: Option<String>,
}

fn has_tasks(context: &RequestContext<RoleServer>) -> bool {
    context
        .client_capabilities()
        .is_some_and(|declared| declared.supports_tasks())
}

fn needs_tasks(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    if has_tasks(context) {
        return Ok(());
    }
    let required = ClientCapabilities::builder().enable_tasks().build();
    Err(ErrorData::missing_required_client_capability(required))
}

/// Sleeps unless the task is cancelled first.
async fn sleep(task: &TaskContext, duration: Duration) -> Result<(), TaskExit> {
    tokio::select! {
        () = tokio::time::sleep(duration) => Ok(()),
        () = task.cancelled() => Err(TaskExit::Cancelled),
    }
}

async fn delete(elicit: &Elicit, filename: &str) -> Result<CallToolResult, ElicitError> {
    elicit
        .confirm(format!("Delete {filename}?"))
        .key("confirm")
        .await?;
    Ok(text(format!("deleted {filename}")))
}

async fn two(elicit: &Elicit) -> Result<CallToolResult, ElicitError> {
    let (first, second) = tokio::join!(
        elicit.form::<Name>("The first name?").key("first"),
        elicit.form::<Name>("The second name?").key("second"),
    );
    Ok(text(format!("{} and {}", first?.name, second?.name)))
}

#[tool_router(router = in_tasks, vis = "pub(crate)")]
impl Conformance {
    fn spawn<F, Fut>(&self, operation: F) -> CallToolResponse
    where
        F: FnOnce(TaskContext) -> Fut + Send + 'static,
        Fut: Future<Output = Result<CallToolResult, TaskExit>> + Send + 'static,
    {
        let options = TaskOptions::new().with_poll_interval_ms(100);
        let task = self.tasks.spawn(options, |task| Box::pin(operation(task)));
        CallToolResponse::Task(CreateTaskResult::new(task))
    }

    #[tool(description = "Says hello at once")]
    async fn greet(&self, Parameters(Name { name }): Parameters<Name>) -> String {
        format!("Hello, {name}!")
    }

    #[tool(description = "Takes its time")]
    async fn slow_compute(
        &self,
        context: RequestContext<RoleServer>,
        Parameters(Compute { seconds, label }): Parameters<Compute>,
    ) -> Result<CallToolResponse, ErrorData> {
        let duration = Duration::try_from_secs_f64(seconds)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let done = text(format!(
            "computed {} in {seconds} s",
            label.unwrap_or_default()
        ));
        if !has_tasks(&context) {
            tokio::time::sleep(duration).await;
            return Ok(done.into());
        }
        Ok(self.spawn(move |task| async move {
            sleep(&task, duration).await?;
            Ok(done)
        }))
    }

    #[tool(description = "Fails after a second")]
    async fn failing_job(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        needs_tasks(&context)?;
        Ok(self.spawn(|task| async move {
            sleep(&task, Duration::from_secs(1)).await?;
            Ok(CallToolResult::error(vec![ContentBlock::text(
                "this job always fails",
            )]))
        }))
    }

    #[tool(description = "Breaks")]
    async fn protocol_error_job(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        needs_tasks(&context)?;
        Ok(self.spawn(|_| async {
            Err(ErrorData::internal_error("this job always breaks", None).into())
        }))
    }

    #[tool(description = "Asks before it deletes")]
    async fn confirm_delete(
        &self,
        elicit: Elicit,
        context: RequestContext<RoleServer>,
        Parameters(File { filename }): Parameters<File>,
    ) -> Result<CallToolResponse, ErrorData> {
        let filename = filename.unwrap_or_else(|| "file.txt".into());
        if !has_tasks(&context) {
            return Ok(delete(&elicit, &filename).await?.into());
        }
        let manager = self.tasks.clone();
        Ok(self.spawn(move |task| async move {
            delete(&elicit.in_task(&manager, &task), &filename)
                .await
                .or_else(ElicitError::into_task_result)
        }))
    }

    #[tool(description = "Asks two questions at once")]
    async fn multi_input(
        &self,
        elicit: Elicit,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !has_tasks(&context) {
            return Ok(two(&elicit).await?.into());
        }
        let manager = self.tasks.clone();
        Ok(self.spawn(move |task| async move {
            two(&elicit.in_task(&manager, &task))
                .await
                .or_else(ElicitError::into_task_result)
        }))
    }

    #[tool(description = "Asks first, and goes on as a task")]
    async fn test_tool_with_task(
        &self,
        elicit: Elicit,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        needs_tasks(&context)?;
        let Name { name } = elicit.form("What is your name?").key("user_name").await?;
        Ok(self.spawn(|_| async move { Ok(text(format!("Hello, {name}!"))) }))
    }
}
