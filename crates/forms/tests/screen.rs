//! The screen, on a real pseudo-terminal: keys in, screens out.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
#![cfg(unix)]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_forms::terminal::{Face, Handle};
use mcp_elicit_forms::view::{Call, Next, Origin, Question, Reply};
use mcp_elicit_testkit::pty::{self, Color, Screen, Terminal};
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
    UNIX_EPOCH + Duration::from_hours(1)
}

fn question(case: &str) -> Question {
    let origin = Origin::new("demo")
        .claiming("demo", "0.1.0")
        .connected("over stdio");
    let form = |message: &str, schema: &str| {
        Question::form(origin.clone(), message, Form::parse(schema).unwrap())
    };
    let question = match case {
        "confirm" => form("Deploy to production?", r#"{"type":"object","properties":{}}"#),
        "link" => Question::url(
            origin.clone(),
            "Connect your account",
            Link::parse("https://accounts.example.com.login.evil.co.uk/oauth/authorize?client=42&redirect=https://example.com/").unwrap(),
        ),
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
        .for_call(Call::tool("deploy").with(json!({"build": "latest"})))
        .until(now() + Duration::from_secs(249))
        .with_pending(waiting(case))
}

fn waiting(case: &str) -> Vec<Next> {
    let asks = |server: &str, message: &str| {
        let form = Form::parse(r#"{"type":"object","properties":{}}"#).unwrap();
        let question = Question::form(Origin::new(server), message, form);
        Next::of(&question.for_call(Call::tool("clean")))
    };
    match case {
        "queue" => vec![
            asks("files", "Delete **everything**?"),
            asks("mail", "Send it to all?"),
        ],
        _ => Vec::new(),
    }
}

/// This test program again, on a new terminal, to ask the question called `case`.
fn ask(case: &str, columns: u16, rows: u16) -> Terminal {
    ask_with(case, columns, rows, &[])
}

/// As [`ask`], with more environment.
fn ask_with(case: &str, columns: u16, rows: u16, environment: &[(&str, &str)]) -> Terminal {
    let mut command = pty::command(std::env::current_exe().unwrap());
    command.args(["--exact", "asked", "--ignored", "--nocapture"]);
    command.env("ELICIT_CASE", case);
    for (name, value) in environment {
        command.env(name, value);
    }
    Terminal::start(command, columns, rows)
}

/// As [`ask`], with stdin, stdout and stderr going elsewhere.
fn ask_apart(case: &str, columns: u16, rows: u16) -> Terminal {
    let mut command = pty::command("sh");
    command.args([
        "-c",
        "exec \"$0\" --exact asked --ignored --nocapture </dev/null >/dev/null 2>/dev/null",
    ]);
    command.arg(std::env::current_exe().unwrap());
    command.env("ELICIT_CASE", case);
    Terminal::start(command, columns, rows)
}

/// Not a test by itself: what the other tests start on a terminal of their own.
#[test]
#[ignore = "started by the other tests"]
fn asked() {
    let case = std::env::var("ELICIT_CASE").unwrap_or_default();
    let face = if case == "apart" {
        Face::on_tty().unwrap()
    } else {
        Face::detect().unwrap()
    };
    let mut looks = 0;
    let clock = std::sync::Mutex::new(move || {
        looks += 1;
        match std::env::var("ELICIT_CASE").as_deref() {
            Ok("crash") if looks > 20 => panic!("the clock broke"),
            Ok("late") if looks > 20 => now() + Duration::from_mins(10),
            _ => now(),
        }
    });
    let face = face
        .with_clock(move || clock.lock().unwrap()())
        .opening(|address| {
            println!("OPENED {address}");
            Ok(())
        });
    let handle = Handle::new();
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
    if case == "visit" {
        let ended = face.wait_for_visit(&["accounts.example.com".to_owned()], &handle);
        println!(
            "ENDED {}",
            ended.map_or_else(|why| why.to_string(), |()| "done".to_owned())
        );
        return;
    }
    let reply = match case.as_str() {
        "pushy" => face.ask_fully(&question(&case), &handle),
        _ => face
            .ask_with(&question(&case), &handle)
            .map(|outcome| Reply {
                outcome,
                insisted: false,
                from_now_on: false,
            }),
    };
    match reply {
        Ok(Reply {
            from_now_on: true, ..
        }) => println!("ENDED decline from now on"),
        Ok(Reply {
            outcome: Outcome::Accept(answers),
            ..
        }) => println!("ENDED accept {}", answers.to_value()),
        Ok(Reply {
            outcome: Outcome::Visit,
            ..
        }) => println!("ENDED visit"),
        Ok(Reply {
            outcome: Outcome::Decline,
            ..
        }) => println!("ENDED decline"),
        Ok(Reply {
            outcome: Outcome::Cancel,
            ..
        }) => println!("ENDED cancel"),
        Err(why) => println!("ENDED not answered: {why}"),
    }
}

/// The rows from the one that says how it ended, joined as they were before the terminal wrapped them.
fn ended(terminal: &mut Terminal) -> String {
    let seen = terminal.wait_for("test result");
    assert!(terminal.is_given_back(), "the terminal is not as it was");
    let from = seen.find("ENDED ").unwrap();
    seen[from..]
        .lines()
        .take_while(|line| !line.starts_with("test ") && !line.is_empty())
        .collect()
}

#[test]
fn step_by_step_from_the_first_field_to_the_answer() {
    let mut terminal = ask("deploy", 80, 24);
    insta::assert_snapshot!("step_choice", terminal.wait_for("Ctrl-X"));
    insta::assert_snapshot!("step_type_ahead", terminal.press_for("pr", "2 of 3"));
    terminal.press_for(&format!("{DOWN}{UP}{ENTER}"), "2 of 6");
    insta::assert_snapshot!("step_live_error", terminal.press_for("12", "must be"));
    terminal.press_for(&format!("{CTRL_U}4{ENTER}"), "3 of 6");
    terminal.press_for(
        &format!("first line{ALT_ENTER}zweite Zeile 日本語"),
        "日本語",
    );
    insta::assert_snapshot!("step_lines", terminal.seen());
    terminal.press_for(ENTER, "4 of 6");
    terminal.press_for("ada@", "must be an email");
    terminal.press_for("example.org", "ada@example.org");
    terminal.press_for(ENTER, "5 of 6");
    insta::assert_snapshot!(
        "step_several",
        terminal.press_for(&format!(" {DOWN}{DOWN} "), "[x] us-east")
    );
    terminal.press_for(ENTER, "6 of 6");
    insta::assert_snapshot!(
        "step_review",
        terminal.press_for(&format!("{DOWN}{ENTER}"), "Your answer")
    );
    terminal.press_for(&format!("{UP}{UP}{ENTER}"), "5 of 6");
    terminal.press_for(&format!("{DOWN} {ENTER}"), "Your answer");
    terminal.press(ENTER);
    let answer = json!({"environment": "production", "replicas": 4, "note": "first line\nzweite Zeile 日本語",
        "notify": "ada@example.org", "regions": ["us-east"], "dry": false});
    assert_eq!(ended(&mut terminal), format!("ENDED accept {answer}"));
}

#[test]
fn a_required_field_is_not_passed_empty_and_going_back_loses_nothing() {
    let mut terminal = ask("deploy", 80, 24);
    terminal.wait_for("1 of 6");
    terminal.press_for(TAB, "✗");
    terminal.press_for(ENTER, "2 of 6");
    terminal.press_for("7", "┃ 7");
    terminal.press_for(BACK_TAB, "● Staging");
    terminal.press_for(TAB, "┃ 7");
    terminal.press_for(ESC, "Press Esc again to cancel");
    terminal.press(ESC);
    assert_eq!(ended(&mut terminal), "ENDED cancel");
}

#[test]
fn each_way_out_is_itself() {
    let ways = [
        (ESC, "ENDED cancel"),
        (CTRL_X, "ENDED decline"),
        (
            CTRL_C,
            "ENDED not answered: interrupted before the question was answered",
        ),
        (
            CTRL_D,
            "ENDED not answered: the input ended before the question was answered (at \"environment\")",
        ),
    ];
    for (key, end) in ways {
        let mut terminal = ask("deploy", 120, 24);
        terminal.wait_for("Esc cancel");
        terminal.press(key);
        assert_eq!(ended(&mut terminal), end, "{key:?}");
    }
}

#[test]
fn the_whole_form_on_a_wide_screen() {
    let mut terminal = ask("deploy", 120, 30);
    insta::assert_snapshot!("wide_first", terminal.wait_for("Ctrl-X"));
    terminal.press(&format!("{DOWN} {TAB}12{TAB}{TAB}ada@{TAB}"));
    insta::assert_snapshot!("wide_errors", terminal.wait_for("❯ [ ] eu-west"));
    terminal.press(&format!(" {TAB}{TAB}"));
    terminal.wait_for("┃ 12");
    terminal.press(&format!("{CTRL_U}3{TAB}{DOWN}.org{DOWN}{TAB}{TAB}"));
    terminal.wait_for("ada@.org");
    terminal.press_for(&format!("{CTRL_U}ada@example.org{TAB}{TAB}{TAB}"), "▸ Send");
    insta::assert_snapshot!("wide_ready", terminal.seen());
    terminal.press(ENTER);
    let answer = json!({"environment": "production", "replicas": 3, "notify": "ada@example.org",
        "regions": ["eu-west"], "dry": true});
    assert_eq!(ended(&mut terminal), format!("ENDED accept {answer}"));
}

#[test]
fn a_changed_window_is_filled_again() {
    let mut terminal = ask("deploy", 120, 30);
    terminal.wait_for("Esc cancel");
    terminal.resize(34, 12);
    insta::assert_snapshot!("narrow", terminal.wait_for("1 of 6"));
    terminal.resize(24, 6);
    terminal.wait_for("^X decline Esc cancel");
    terminal.resize(120, 30);
    terminal.wait_for("Tab ↑↓");
    terminal.press(ESC);
    assert_eq!(ended(&mut terminal), "ENDED cancel");
}

#[test]
fn a_paste_fills_and_presses_nothing() {
    let mut terminal = ask("deploy", 80, 24);
    terminal.wait_for("1 of 6");
    terminal.press_for(ENTER, "2 of 6");
    terminal.press_for("\x1b[200~5\r\n\x1b[201~", "┃ 5");
    terminal.press_for(ENTER, "3 of 6");
    let seen = terminal.press_for("\x1b[200~one\ntwo\x1b[2J\nthree\x1b[201~", "three");
    assert!(
        seen.contains("┃ one") && seen.contains("┃ two[2J"),
        "{seen}"
    );
    assert!(seen.contains("3 of 6"));
}

#[test]
fn a_form_without_fields_is_confirmed() {
    let mut terminal = ask("confirm", 80, 24);
    insta::assert_snapshot!("confirm", terminal.wait_for("Esc cancel"));
    terminal.press("y");
    assert_eq!(ended(&mut terminal), "ENDED accept {}");
    for (keys, end) in [
        ("n", "ENDED decline"),
        (ENTER, "ENDED accept {}"),
        (ESC, "ENDED cancel"),
    ] {
        let mut terminal = ask("confirm", 80, 24);
        terminal.wait_for("Esc cancel");
        terminal.press(keys);
        assert_eq!(ended(&mut terminal), end);
    }
}

#[test]
fn a_link_is_opened_only_on_yes() {
    let mut terminal = ask("link", 80, 24);
    insta::assert_snapshot!("link", terminal.wait_for("Esc cancel"));
    terminal.press_for(ENTER, "Choose with the arrow keys first");
    terminal.press(&format!("{RIGHT}{RIGHT}{ENTER}"));
    assert_eq!(ended(&mut terminal), "ENDED decline");
    assert!(!terminal.seen().contains("OPENED"));

    let mut terminal = ask("link", 80, 24);
    terminal.wait_for("Esc cancel");
    terminal.press("y");
    assert_eq!(ended(&mut terminal), "ENDED visit");
    assert!(
        terminal
            .seen()
            .contains("OPENED https://accounts.example.com.login.evil.co.uk/oauth")
    );
}

#[test]
fn a_form_that_wants_a_secret_waits_for_the_person_to_insist() {
    let mut terminal = ask("secret", 80, 24);
    insta::assert_snapshot!("secret", terminal.wait_for("Esc cancel"));
    terminal.press_for(ENTER, "Choose with the arrow keys first");
    terminal.press_for(&format!("{RIGHT}{ENTER}"), "1 of 1");
    terminal.press_for(&format!("hunter2{ENTER}"), "Your answer");
    terminal.press(ENTER);
    assert_eq!(
        ended(&mut terminal),
        r#"ENDED accept {"password":"hunter2"}"#
    );
}

#[test]
fn a_long_message_leaves_room_for_the_answer_and_can_be_read() {
    let mut terminal = ask("long", 80, 24);
    insta::assert_snapshot!("long", terminal.wait_for("Esc cancel"));
    terminal.press_for(CTRL_O, "line 12 of");
    terminal.press_for("\x1b[6~\x1b[6~\x1b[6~\x1b[6~\x1b[6~", "line 60 of");
    terminal.press_for(ESC, "1 of 6");
}

#[test]
fn a_thousand_options_are_searched() {
    let mut terminal = ask("list", 80, 24);
    insta::assert_snapshot!("list", terminal.wait_for("Esc cancel"));
    terminal.press_for("0500", "host-0500");
    terminal.press_for(ENTER, "Your answer");
    terminal.press(ENTER);
    assert_eq!(ended(&mut terminal), r#"ENDED accept {"host":"host-0500"}"#);
}

#[test]
fn a_withdrawn_question_leaves_the_screen_and_says_so() {
    let sign = std::env::temp_dir().join(format!("elicit-withdraw-{}", std::process::id()));
    let terminal = &mut ask_with(
        "queue",
        80,
        24,
        &[("ELICIT_WITHDRAW_AT", sign.to_str().unwrap())],
    );
    let seen = terminal.wait_for("Esc cancel");
    assert!(
        seen.contains("2 more, Ctrl-O lists them. Next: files, for clean: Delete"),
        "{seen}"
    );
    let listed = terminal.press_for(CTRL_O, "2 more questions are waiting:");
    assert!(
        listed.contains("mail, for clean: Send it to all?"),
        "{listed}"
    );
    terminal.press_for(CTRL_O, "Esc cancel");
    std::fs::write(&sign, "").unwrap();
    assert!(ended(terminal).contains("withdrawn: the server withdrew it"));
    assert!(
        terminal
            .seen()
            .contains("demo: This question is gone: the server withdrew it. Nothing was sent.")
    );
    std::fs::remove_file(&sign).unwrap();
}

#[test]
fn a_question_whose_time_is_over_leaves_the_screen_and_says_so() {
    let mut terminal = ask("late", 80, 24);
    assert_eq!(
        ended(&mut terminal),
        "ENDED not answered: the time to answer ran out"
    );
    assert!(
        terminal
            .seen()
            .contains("demo: The time to answer ran out. Nothing was sent.")
    );
}

#[test]
fn a_crash_gives_the_terminal_back() {
    let mut terminal = ask("crash", 80, 24);
    terminal.wait_for("the clock broke");
    terminal.wait_for("test result");
    assert!(!terminal.ended_well());
    assert!(terminal.is_given_back());
}

#[test]
fn no_colour_where_none_is_wanted() {
    let colours = |terminal: &Terminal| {
        terminal.wait_for("Esc cancel");
        terminal.look(|screen| {
            (0..24)
                .flat_map(|row| (0..80).map(move |column| (row, column)))
                .filter_map(|(row, column)| screen.cell(row, column))
                .any(|cell| cell.fgcolor() != Color::Default)
        })
    };
    assert!(colours(&ask("deploy", 80, 24)));
    assert!(!colours(&ask_with("deploy", 80, 24, &[("NO_COLOR", "1")])));
}

#[test]
fn a_dumb_terminal_is_asked_line_by_line() {
    let mut terminal = ask_with("deploy", 80, 24, &[("TERM", "dumb")]);
    terminal.wait_for("Environment:");
    assert!(!terminal.look(Screen::alternate_screen));
    terminal.press_for("2\n", "Replicas [2]:");
    terminal.press(":decline\n");
    assert_eq!(ended(&mut terminal), "ENDED decline");
}

#[test]
fn the_controlling_terminal_serves_when_stdin_and_stdout_carry_something_else() {
    let mut terminal = ask_apart("apart", 80, 24);
    terminal.wait_for("1 of 6");
    terminal.press_for(ENTER, "2 of 6");
    terminal.press_for(ESC, "Press Esc again");
    terminal.press_for(ESC, "demo: cancelled");
    assert!(terminal.ended_well());
    assert!(terminal.is_given_back());
}

#[test]
fn every_later_question_is_declined_only_on_the_second_press() {
    let mut terminal = ask("pushy", 80, 24);
    terminal.wait_for("Ctrl-R decline always");
    terminal.press_for(CTRL_R, "Press Ctrl-R again");
    terminal.press_for(DOWN, "❯ ○ Production");
    terminal.press_for(CTRL_R, "Press Ctrl-R again");
    terminal.press(CTRL_R);
    assert_eq!(ended(&mut terminal), "ENDED decline from now on");
}

#[test]
fn a_visit_is_waited_for_until_the_person_is_back() {
    let mut terminal = ask("visit", 60, 12);
    insta::assert_snapshot!("visit", terminal.wait_for("Ctrl-C"));
    terminal.press(ENTER);
    assert_eq!(ended(&mut terminal), "ENDED done");
    let mut terminal = ask("visit", 60, 12);
    terminal.wait_for("Ctrl-C");
    terminal.press(CTRL_C);
    assert_eq!(
        ended(&mut terminal),
        "ENDED interrupted before the question was answered"
    );
}

#[test]
fn a_program_that_withdraws_and_ends_leaves_the_terminal_as_it_was() {
    let sign = std::env::temp_dir().join(format!("elicit-leave-{}", std::process::id()));
    let mut terminal = ask_with(
        "leaving",
        80,
        24,
        &[("ELICIT_WITHDRAW_AT", sign.to_str().unwrap())],
    );
    terminal.wait_for("Esc cancel");
    std::fs::write(&sign, "").unwrap();
    terminal.wait_for("ENDED with the program");
    terminal.ended_well();
    assert!(terminal.is_given_back());
    std::fs::remove_file(&sign).unwrap();
}

#[test]
fn a_line_feed_is_enter_too() {
    let mut terminal = ask("deploy", 80, 24);
    terminal.wait_for("1 of 6");
    terminal.press_for("\n", "2 of 6");
    terminal.press_for("\n", "3 of 6");
    terminal.press_for("hello\n", "4 of 6");
}
