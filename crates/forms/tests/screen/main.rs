//! The screen, on a real pseudo-terminal: keys in, screens out.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
#![cfg(unix)]

mod deciding;
mod filling;
mod leaving;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_forms::terminal::{Frontend, QuestionHandle};
use mcp_elicit_forms::view::{CallView, Origin, PendingView, QuestionView, Submission};
use mcp_elicit_testkit::pty::{self, TestTerminal};
use serde_json::json;

const DEPLOY: &str = r#"{"type":"object","required":["environment","regions"],"properties":{
    "environment":{"type":"string","title":"Environment","description":"Where the build is put live.",
        "oneOf":[{"const":"staging","title":"Staging"},{"const":"production","title":"Production"},
            {"const":"preview","title":"Preview"}]},
    "replicas":{"type":"integer","title":"Replicas","minimum":1,"maximum":9,"default":2},
    "note":{"type":"string","title":"Note","maxLength":200,"description":"Shown to everyone who watches."},
    "notify":{"type":"string","title":"Tell whom","format":"email"},
    "regions":{"type":"array","title":"Regions","items":{"type":"string","enum":["eu-west","eu-north","us-east"]},"minItems":1},
    "dry":{"type":"boolean","title":"Dry run","default":true}}}"#;

const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";
const RIGHT: &str = "\x1b[C";
const ENTER: &str = "\r";
const TAB: &str = "\t";
const BACK_TAB: &str = "\x1b[Z";
const ESC: &str = "\x1b";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_O: &str = "\x0f";
const CTRL_R: &str = "\x12";
const CTRL_U: &str = "\x15";
const CTRL_X: &str = "\x18";
const ALT_ENTER: &str = "\x1b\r";

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(60 * 60)
}

fn question(case: &str) -> QuestionView {
    let origin = Origin::new("demo")
        .claiming("demo", "0.1.0")
        .connected("over stdio");
    let form = |message: &str, schema: &str| {
        QuestionView::form(origin.clone(), message, Form::parse(schema).unwrap())
    };
    let question = match case {
        "confirm" => form("Deploy to production?", r#"{"type":"object","properties":{}}"#),
        "link" => QuestionView::url(
            origin.clone(),
            "Connect your account",
            Link::parse("https://accounts.example.com.login.evil.co.uk/oauth/authorize?client=42&redirect=https://example.com/").unwrap(),
        ),
        "yesno" => form("Go?", r#"{"type":"object","required":["go"],"properties":{"go":{"type":"boolean","title":"Deploy to production?"}}}"#),
        "default" => form("Go?", r#"{"type":"object","properties":{"go":{"type":"boolean","title":"Deploy to production?","default":true}}}"#),
        "longlink" => QuestionView::url(
            origin.clone(),
            "Connect your account",
            Link::parse(&format!("https://accounts.example.com/oauth?{}&last=the-end", (0..200).map(|n| format!("p{n}=v{n}")).collect::<Vec<_>>().join("&"))).unwrap(),
        ),
        "numbers" => form("How much?", r#"{"type":"object","required":["n"],"properties":{"n":{"type":"number","title":"Amount"},"d":{"type":"string","format":"date","title":"Day"}}}"#),
        "when" => form("When?", r#"{"type":"object","required":["t"],"properties":{"t":{"type":"string","format":"date-time","title":"Start"}}}"#),
        "arguments" => {
            let script = format!("{}; rm -rf /", "echo harmless; ".repeat(300));
            let question = QuestionView::form(
                Origin::unnamed("/home/ana/projects/inputs/target/debug/runner --fast").claiming("Runner", "2.0").connected("over stdio"),
                "Run it?",
                Form::parse(r#"{"type":"object","properties":{}}"#).unwrap(),
            );
            return question
                .on_behalf_of("ana@example.org")
                .through("Claude Code", Some("2.1"))
                .for_call(CallView::tool("run").with(json!({"script": script})));
        }
        "secret" => form("Please log in", r#"{"type":"object","properties":{"password":{"type":"string"}}}"#),
        "long" => {
            let lines: Vec<_> = (1..=60).map(|n| format!("This is line {n} of a long explanation.")).collect();
            form(&lines.join("\n"), DEPLOY)
        }
        "list" => {
            let options: Vec<_> = (1..=1000).map(|n| format!("host-{n:04}")).collect();
            let schema = json!({"type": "object", "required": ["host"],
                "properties": {"host": {"type": "string", "title": "Host", "enum": options}}});
            form("On which host?", &schema.to_string())
        }
        _ => form("Where should this build go?", DEPLOY),
    };
    question
        .for_call(CallView::tool("deploy").with(json!({"build": "latest"})))
        .until(now() + Duration::from_secs(249))
        .with_pending(waiting(case))
}

fn waiting(case: &str) -> Vec<PendingView> {
    let asks = |server: &str, message: &str| {
        let form = Form::parse(r#"{"type":"object","properties":{}}"#).unwrap();
        let question = QuestionView::form(Origin::new(server), message, form);
        PendingView::from_question(&question.for_call(CallView::tool("clean")))
    };
    match case {
        "queue" => vec![
            asks("files", "Delete **everything**?"),
            asks("mail", "Send it to all?"),
        ],
        _ => Vec::new(),
    }
}

/// Starts this test program again on a new terminal, to ask the question called `case`.
fn ask(case: &str, columns: u16, rows: u16) -> TestTerminal {
    ask_with(case, columns, rows, &[])
}

/// Like [`ask`], with more environment variables.
fn ask_with(case: &str, columns: u16, rows: u16, environment: &[(&str, &str)]) -> TestTerminal {
    let mut command = pty::command(std::env::current_exe().unwrap());
    command.args(["--exact", "asked", "--ignored", "--nocapture"]);
    command.env("ELICIT_CASE", case);
    for (name, value) in environment {
        command.env(name, value);
    }
    TestTerminal::start(command, columns, rows)
}

/// Like [`ask`], with stdin, stdout and stderr redirected.
fn ask_apart(case: &str, columns: u16, rows: u16) -> TestTerminal {
    let mut command = pty::command("sh");
    command.args([
        "-c",
        "exec \"$0\" --exact asked --ignored --nocapture </dev/null >/dev/null 2>/dev/null",
    ]);
    command.arg(std::env::current_exe().unwrap());
    command.env("ELICIT_CASE", case);
    TestTerminal::start(command, columns, rows)
}

/// Not a test by itself: the other tests start it on a terminal of its own.
#[test]
#[ignore = "started by the other tests"]
fn asked() {
    let case = std::env::var("ELICIT_CASE").unwrap_or_default();
    let frontend = if case == "apart" {
        Frontend::on_tty().unwrap()
    } else {
        Frontend::detect().unwrap()
    };
    let mut looks = 0;
    let clock = std::sync::Mutex::new(move || {
        looks += 1;
        match std::env::var("ELICIT_CASE").as_deref() {
            Ok("crash") if looks > 20 => panic!("the clock broke"),
            Ok("late") if looks > 20 => now() + Duration::from_secs(10 * 60),
            _ => now(),
        }
    });
    let frontend = if case == "quiet" {
        frontend.without_outcome_line()
    } else {
        frontend
    };
    let frontend = frontend
        .in_zone("Europe/Brussels")
        .with_clock(move || clock.lock().unwrap()())
        .opening(|address| {
            if std::env::var("ELICIT_CASE").as_deref() == Ok("copy") {
                return Err(std::io::ErrorKind::NotFound.into());
            }
            println!("OPENED {address}");
            Ok(())
        });
    let handle = QuestionHandle::new();
    if let Ok(sign) = std::env::var("ELICIT_WITHDRAW_AT") {
        let handle = handle.clone();
        std::thread::spawn(move || {
            while !std::path::Path::new(&sign).exists() {
                std::thread::sleep(Duration::from_millis(20));
            }
            handle.withdraw("the server withdrew it");
            if std::env::var("ELICIT_CASE").as_deref() == Ok("leaving") {
                println!("ENDED with the program");
                std::process::exit(0);
            }
        });
    }
    if case == "copy" {
        frontend.ask_with(&question("link"), &handle).unwrap();
    }
    if matches!(case.as_str(), "visit" | "copy") {
        let ended = frontend.wait_for_visit(&["accounts.example.com".to_owned()], &handle);
        println!(
            "ENDED {}",
            ended.map_or_else(|why| why.to_string(), |()| "done".to_owned())
        );
        return;
    }
    let reply = match case.as_str() {
        "pushy" => frontend.ask_fully(&question(&case), &handle),
        _ => frontend
            .ask_with(&question(&case), &handle)
            .map(|outcome| Submission {
                outcome,
                allows_credentials: false,
                from_now_on: false,
            }),
    };
    if case == "leaving" {
        // The thread that withdrew the question ends the program.
        loop {
            std::thread::park();
        }
    }
    match reply {
        Ok(Submission {
            from_now_on: true, ..
        }) => println!("ENDED decline from now on"),
        Ok(Submission {
            outcome: Outcome::Accept(answers),
            ..
        }) => println!("ENDED accept {}", answers.to_value()),
        Ok(Submission {
            outcome: Outcome::Visit,
            ..
        }) => println!("ENDED visit"),
        Ok(Submission {
            outcome: Outcome::Decline,
            ..
        }) => println!("ENDED decline"),
        Ok(Submission {
            outcome: Outcome::Cancel,
            ..
        }) => println!("ENDED cancel"),
        Err(why) => println!("ENDED not answered: {why}"),
    }
}

/// Returns the rows from the one that shows the ending, joined as they were before the terminal wrapped them.
fn ended(terminal: &mut TestTerminal) -> String {
    let seen = terminal.wait_for("test result");
    assert!(terminal.is_given_back(), "the terminal is not as it was");
    let from = seen.find("ENDED ").unwrap();
    seen[from..]
        .lines()
        .take_while(|line| !line.starts_with("test ") && !line.is_empty())
        .collect()
}
