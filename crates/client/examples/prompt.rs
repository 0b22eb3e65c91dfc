//! A host with a prompt of its own: one line for each field, on stdin and stdout.
//!
//! `cargo run -p mcp-elicit-client --example prompt -- TOOL SERVER [ARGUMENT...]`

#![expect(clippy::print_stdout, reason = "a host prints results for its user")]

use std::error::Error;
use std::io::{BufRead as _, Write as _};

use mcp_elicit_client::answer::{cancel, declined};
use mcp_elicit_client::core::answer::{Draft, DraftValue};
use mcp_elicit_client::core::wire::Capability;
use mcp_elicit_client::responder::Callback;
use mcp_elicit_client::{
    Answer, CallOptions, ClientSettings, ConnectOptions, Connection, ElicitingClient, Question,
    ResponderError, Target,
};

/// Returns what the person types; `None` at the end of the input.
fn line(prompt: &str) -> Option<String> {
    print!("{prompt}: ");
    std::io::stdout().flush().ok()?;
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

/// Asks the person. After an answer that did not fit, this runs again, with the reasons.
fn ask(question: &Question) -> Result<Answer, ResponderError> {
    println!("{} asks: {}", question.server(), question.shown().message());
    for violation in question.violations() {
        println!("  {violation}");
    }
    if let Some(link) = question.link() {
        println!("  It wants you to visit {}: {link}", link.host().ascii());
    }
    match line("yes, no, or Enter to cancel").as_deref() {
        Some("yes" | "y") => {}
        Some("no" | "n") => return Ok(declined()),
        Some(_) => return Ok(cancel()),
        None => return Err(ResponderError::EndOfInput),
    }
    let Some(form) = question.form() else {
        return Ok(question.accept(serde_json::Value::Null)?);
    };
    let mut draft = Draft::for_form(form);
    for field in form.fields() {
        let typed = line(field.title().unwrap_or(field.name()));
        match typed.ok_or(ResponderError::EndOfInput)? {
            empty if empty.is_empty() => {}
            text => draft.set(field.name(), DraftValue::Text(text)),
        }
    }
    Ok(question.accept(form.read(&draft)?.into_value())?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(tool), Some(program)) = (words.next(), words.next()) else {
        return Err("usage: prompt TOOL SERVER [ARGUMENT...]".into());
    };
    let target = Target::Command {
        program: program.into(),
        arguments: words.map(Into::into).collect(),
    };
    // Questions are asked one at a time. A thread of its own, because typing blocks.
    let prompt = Callback::new(Capability::BOTH, async |question: Question| {
        let asked = tokio::task::spawn_blocking(move || ask(&question)).await;
        asked.unwrap_or_else(|_| Err(ResponderError::failed("the prompt ended")))
    });
    let settings = ClientSettings::default().responder(prompt);
    let client = ElicitingClient::new((), tool.clone(), settings);
    let connection = Connection::open(&target, client, &ConnectOptions::default()).await?;
    let (none, options) = (serde_json::Map::new(), CallOptions::default());
    let result = connection.call_tool(tool, none, &options).await;
    connection.close().await;
    println!("{}", serde_json::to_string_pretty(&result?)?);
    Ok(())
}
