//! Asks one question in the terminal and prints its outcome.
//!
//! `terminal FORM.json|URL [MESSAGE] [SECONDS] [--plain|--tty]`

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_forms::terminal::Frontend;
use mcp_elicit_forms::view::{CallView, Origin, QuestionView};

fn main() -> ExitCode {
    match run() {
        Ok(said) => {
            show(&said);
            ExitCode::SUCCESS
        }
        Err(error) => {
            show(&format!("not answered: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, Box<dyn std::error::Error>> {
    let (flags, words): (Vec<_>, Vec<_>) = std::env::args()
        .skip(1)
        .partition(|word| word.starts_with("--"));
    let mut words = words.into_iter();
    let what = words.next().ok_or("name a file with a form, or a URL")?;
    let message = words
        .next()
        .unwrap_or_else(|| "Where should this build go?".to_owned());
    let origin = Origin::new("demo")
        .claiming("demo-server", "0.1.0")
        .connected("over stdio");
    let question = if what.starts_with("http") {
        QuestionView::url(origin, message, Link::parse(&what)?)
    } else {
        QuestionView::form(
            origin,
            message,
            Form::parse(&std::fs::read_to_string(what)?)?,
        )
    };
    let mut question =
        question.for_call(CallView::tool("deploy").with(serde_json::json!({"build": "latest"})));
    if let Some(seconds) = words.next() {
        question = question.until(now() + Duration::from_secs(seconds.parse()?));
    }
    let frontend = match flags.first().map(String::as_str) {
        Some("--plain") => Frontend::plain()?,
        Some("--tty") => Frontend::on_tty()?,
        _ => Frontend::detect()?,
    };
    Ok(match frontend.ask(&question)? {
        Outcome::Accept(answers) => format!("accept {}", answers.to_value()),
        Outcome::Visit => "visit".to_owned(),
        Outcome::Decline => "decline".to_owned(),
        Outcome::Cancel => "cancel".to_owned(),
    })
}

#[expect(clippy::disallowed_methods, reason = "an example is a shell")]
fn now() -> SystemTime {
    SystemTime::now()
}

#[expect(clippy::print_stdout, reason = "this is the example's output")]
fn show(said: &str) {
    println!("{said}");
}
