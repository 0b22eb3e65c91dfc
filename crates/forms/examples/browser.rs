//! Asks a few questions in the browser and prints the outcome of each:
//! `cargo run -p mcp-elicit-forms --example browser`

use std::error::Error;
use std::future::pending;
use std::time::{Duration, SystemTime};

use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_forms::view::{CallView, Origin, QuestionBody, QuestionView};
use mcp_elicit_forms::web::BrowserFrontend;
use serde_json::json;

#[tokio::main]
#[expect(clippy::print_stderr, reason = "an example talks to its reader")]
async fn main() -> Result<(), Box<dyn Error>> {
    let browser = BrowserFrontend::start().await?;
    eprintln!("answer at {}", browser.login_link()?);
    let asked: Vec<_> = questions()?
        .into_iter()
        .map(|question| {
            let browser = browser.clone();
            tokio::spawn(async move { browser.ask(question, pending()).await })
        })
        .collect();
    for asked in asked {
        // `Debug` masks the answers.
        eprintln!("{:?}", asked.await?);
    }
    Ok(())
}

fn questions() -> Result<Vec<QuestionView>, Box<dyn Error>> {
    let deploy = Origin::new("deploy-bot")
        .claiming("Acme Deployments", "2.4.1")
        .connected("over stdio: npx @acme/deploy");
    let release = Form::from_value(&json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Release name", "description": "Shown in the changelog.", "minLength": 3, "maxLength": 50},
            "environment": {"type": "string", "title": "Environment", "oneOf": [
                {"const": "dev", "title": "Development"}, {"const": "staging", "title": "Staging"}, {"const": "prod", "title": "Production"}], "default": "staging"},
            "replicas": {"type": "integer", "title": "Replicas", "minimum": 1, "maximum": 20, "default": 3},
            "migrate": {"type": "boolean", "title": "Run the migrations", "description": "They take about four minutes."},
            "notify": {"type": "string", "title": "Tell whom", "format": "email"},
            "start": {"type": "string", "title": "Start at", "format": "date-time"}
        },
        "required": ["name", "environment", "replicas", "migrate"]
    }))?;
    let until = now() + Duration::from_secs(10 * 60);
    Ok(vec![
        QuestionView::form(
            deploy.clone(),
            "Where should I deploy **build 4812**?\n\nThe plan is at [plan 4812](https://plan.example/4812). It runs `make release`.",
            release,
        )
        .for_call(CallView::tool("deploy").with(json!({"build": 4812, "branch": "release/2026-11"})))
        .until(until),
        QuestionView::new(deploy, "Delete the preview of branch `old-login`?", QuestionBody::Form(Form::from_value(&json!({"type": "object", "properties": {}}))?))
            .for_call(CallView::tool("clean_up")),
        QuestionView::url(
            Origin::new("calendar").connected("at https://mcp.calendar.example/mcp"),
            "Connect your calendar so that I can look for a free hour.",
            Link::parse("https://accounts.calendar.example:8443/oauth/authorize?client_id=7f3a&scope=calendar.read")?,
        )
        .for_call(CallView::tool("find_slot").with(json!({"minutes": 60})))
        .until(until),
    ])
}

#[expect(
    clippy::disallowed_methods,
    reason = "the example sets a deadline from now"
)]
fn now() -> SystemTime {
    SystemTime::now()
}
