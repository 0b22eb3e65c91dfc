//! `call` and `demo` as a script sees them: events, exit codes, and files left behind.

mod sandbox;

use serde_json::{Value, json};

/// This program, which is also the server that is called.
const ME: &str = env!("CARGO_BIN_EXE_mcp-elicit");

fn call(options: &[&str]) -> sandbox::Run {
    call_with_input(options, b"")
}

fn call_with_input(options: &[&str], input: &[u8]) -> sandbox::Run {
    let mut args = vec!["call"];
    args.extend(options);
    if !options.contains(&"--") {
        args.extend(["--", ME, "demo-server"]);
    }
    sandbox::run(&args, input)
}

fn events(run: &sandbox::Run) -> Vec<Value> {
    run.stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("an event a line"))
        .collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["event"].as_str().expect("a name"))
        .collect()
}

#[test]
fn every_revision_asks_and_is_answered() {
    for revision in ["auto", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let run = call(&[
            "deploy",
            "--answer",
            "environment=staging",
            "--json",
            "--protocol",
            revision,
        ]);
        let events = events(&run);
        assert_eq!(
            names(&events),
            ["connected", "asked", "answered", "result"],
            "{revision}: {}",
            run.stderr
        );
        assert_eq!(run.code, Some(0));
        let spoken = if revision == "auto" {
            "2026-07-28"
        } else {
            revision
        };
        assert_eq!(events[0]["protocol"], spoken);
        assert_eq!(events[0]["transport"], "stdio");
        assert_eq!(events[1]["mode"], "form");
        assert!(events[1]["schema"]["properties"]["environment"].is_object());
        assert_eq!(
            events[2],
            json!({"event": "answered", "action": "accept", "content": {"environment": "staging"}})
        );
        assert!(
            events[3]["result"]["content"][0]["text"]
                .as_str()
                .is_some_and(|text| text.contains("staging"))
        );
    }
}

#[test]
fn a_person_s_no_is_no_error_and_has_its_own_exit_code() {
    for (option, action, past) in [
        ("--decline", "decline", "declined"),
        ("--cancel", "cancel", "cancelled"),
    ] {
        for revision in ["2025-11-25", "2026-07-28"] {
            let run = call(&["deploy", option, "--protocol", revision]);
            assert_eq!(run.code, Some(5), "{}", run.stderr);
            assert!(!run.stderr.contains("error"), "{}", run.stderr);
            let told = format!("declined: the tool ended after its question was {past}");
            assert!(run.stderr.contains(&told), "{}", run.stderr);
        }
        let run = call(&["deploy", option, "--json"]);
        let events = events(&run);
        assert_eq!(events[2], json!({"event": "answered", "action": action}));
        assert_eq!(events[3]["result"]["isError"], true);
        assert_eq!(run.code, Some(5));
    }
}

#[cfg(unix)]
#[test]
fn an_error_of_the_server_after_a_no_is_no_error_either() {
    let asks = r#"echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}'; read answer"#;
    let fails = r#"echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Elicitation declined"}}'; read end"#;
    let script = scripted(&format!("{asks}; {fails}"));
    let run = call(&["go", "--decline", "--", "/bin/sh", "-c", &script]);
    assert_eq!(run.code, Some(5), "{}", run.stderr);
    assert!(
        run.stderr
            .contains("declined: the call ended after its question was declined"),
        "{}",
        run.stderr
    );
    // An error after a yes is an error.
    let answers = ["go", "--accept-defaults", "--", "/bin/sh", "-c", &script];
    let run = call(&answers);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
}

#[test]
fn an_answer_that_the_form_refuses_names_the_field_and_is_not_sent() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let run = call(&[
            "deploy",
            "--answer",
            "environment=mars",
            "--json",
            "--protocol",
            revision,
        ]);
        let events = events(&run);
        assert!(!names(&events).contains(&"answered"), "{}", run.stdout);
        let last = events.last().expect("an event");
        assert_eq!(last["event"], "error");
        assert!(
            last["error"]["message"]
                .as_str()
                .is_some_and(|text| text.contains("environment")),
            "{last}"
        );
        assert!(
            !run.stdout.contains("mars") && !run.stderr.contains("mars"),
            "a value was told"
        );
        assert_eq!(run.code, Some(2));
    }
}

#[test]
fn a_question_that_finds_nobody_has_its_own_exit_code() {
    let nobody = call(&["deploy"]);
    assert_eq!(nobody.code, Some(4), "{}", nobody.stderr);
    assert!(nobody.stderr.contains("--answer"), "{}", nobody.stderr);
    let no_default = call(&["deploy", "--accept-defaults"]);
    assert_eq!(no_default.code, Some(4));
    assert!(
        no_default.stderr.contains("environment"),
        "{}",
        no_default.stderr
    );
}

#[test]
fn a_second_question_without_an_answer_is_named_with_what_it_wants() {
    let one = br#"[{"action":"accept","content":{"environment":"production"}}]"#;
    let files = sandbox::Files::new(&[("one.json", one)]);
    for revision in ["2025-11-25", "2026-07-28"] {
        let options = [
            &["--answer", "environment=production"][..],
            &["--answers", &files.path("one.json")],
        ];
        for answers in options {
            let run = call(&[&["deploy", "--protocol", revision], answers].concat());
            assert_eq!(run.code, Some(4), "{}", run.stderr);
            let told = "question 2 (\"Deploy to production?\"): no prepared answer is left";
            assert!(run.stderr.contains(told), "{}", run.stderr);
            assert!(
                run.stderr.contains("`--answer confirm=VALUE`"),
                "{}",
                run.stderr
            );
        }
    }
}

#[test]
fn lines_from_a_pipe_answer_one_by_one() {
    let run = call_with_input(&["deploy"], b"staging\n\n");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("staging"), "{}", run.stdout);
}

#[test]
fn answers_in_order_come_from_a_file() {
    let files = sandbox::Files::new(&[
        (
            "two.json",
            br#"[{"action":"accept","content":{"environment":"production"}},{"action":"decline"}]"#,
        ),
        ("bad.json", br#"[{"action":"maybe"}]"#),
    ]);
    let run = call(&["deploy", "--answers", &files.path("two.json"), "--json"]);
    let actions: Vec<_> = events(&run)
        .iter()
        .filter_map(|event| event["action"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(actions, ["accept", "decline"]);
    assert_eq!(run.code, Some(5));
    assert_eq!(
        call(&["deploy", "--answers", &files.path("bad.json")]).code,
        Some(2)
    );
}

#[test]
fn a_wrong_command_line_is_found_before_anything_is_started() {
    for options in [
        &["deploy", "--decline", "--cancel"][..],
        &["deploy", "loose"],
        &["deploy", "--timeout", "soon"],
        &["deploy", "--url", "ftp://127.0.0.1/", "--"],
        &["deploy", "--"],
    ] {
        assert_eq!(call(options).code, Some(2), "{options:?}");
    }
}

/// A server on 2025-11-25 that runs these commands once its tool is called.
#[cfg(unix)]
fn scripted(then: &str) -> String {
    format!(
        r#"read a; echo '{{"jsonrpc":"2.0","id":1000000000,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}'
        read c; read d; {then}"#
    )
}

#[cfg(unix)]
#[test]
fn servers_that_break_end_the_call_and_say_why() {
    let hello = r#"read a; echo '{"jsonrpc":"2.0","id":1000000000,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}'
        read c; read d;"#;
    let ask = r#"echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}';"#;
    for (script, told) in [
        ("exit 7".to_owned(), "exit status: 7"),
        (format!("{hello} {ask} exit 7"), "exit status: 7"),
        (
            format!("{hello} echo '{{\"jsonrpc\":'; sleep 60"),
            "broken JSON",
        ),
        (
            format!("{hello} echo '{{\"id\":[]}}'; sleep 60"),
            "not an MCP message",
        ),
        (
            format!("{hello} head -c 10000000 /dev/zero | tr '\\0' x; echo; sleep 60"),
            "larger than",
        ),
        (format!("{hello} sleep 60"), "said nothing"),
        ("sleep 60".to_owned(), "no answer within"),
    ] {
        let run = call(&[
            "go",
            "--decline",
            "--timeout",
            "2",
            "--",
            "/bin/sh",
            "-c",
            &script,
        ]);
        assert_eq!(run.code, Some(3), "{script}: {}", run.stderr);
        assert!(run.stderr.contains(told), "{script}: {}", run.stderr);
    }
    assert_eq!(
        call(&["go", "--decline", "--", "/nonexistent/server"]).code,
        Some(3)
    );
    let url = [
        "go",
        "--decline",
        "--timeout",
        "5",
        "--url",
        "http://127.0.0.1:9/mcp",
    ];
    assert_eq!(call(&[&url[..], &["--"]].concat()).code, Some(3));
    assert_eq!(call(&url).code, Some(2), "a URL and a command");
}

#[cfg(unix)]
#[test]
fn nothing_of_the_server_is_left_behind() {
    let marker = format!("{}.{}", 3_141, std::process::id());
    let script = format!("sleep {marker} & exec '{ME}' demo-server");
    let run = call(&[
        "deploy",
        "--answer",
        "environment=staging",
        "--",
        "/bin/sh",
        "-c",
        &script,
    ]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let left = std::process::Command::new("pgrep")
        .args(["-f", &format!("^sleep {marker}$")])
        .output();
    if let Ok(left) = left {
        assert!(
            left.stdout.is_empty(),
            "left behind: {}",
            String::from_utf8_lossy(&left.stdout)
        );
    }
}

/// A person presses Ctrl-C while the question waits.
#[cfg(unix)]
#[test]
fn an_interrupt_tells_the_server_and_ends_it() {
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    let files = sandbox::Files::new(&[]);
    let log = files.path("heard");
    // The server's input goes through `tee`, so that the test can read it after the end.
    let script = format!("tee '{log}' | '{ME}' demo-server");
    let mut child = Command::new(ME)
        .args([
            "call",
            "deploy",
            "--protocol",
            "2025-11-25",
            "--",
            "/bin/sh",
            "-c",
            &script,
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // Kept open: waiting for the child would close it, and the end of input differs from an interrupt.
    let _stdin = child.stdin.take().expect("stdin is piped");
    let mut stderr = child.stderr.take().expect("stderr is piped");
    let mut said = Vec::new();
    let mut chunk = [0; 256];
    while !String::from_utf8_lossy(&said).contains("Environment:") {
        let read = stderr.read(&mut chunk).expect("stderr is read");
        assert_ne!(
            read,
            0,
            "it ended early: {}",
            String::from_utf8_lossy(&said)
        );
        said.extend_from_slice(&chunk[..read]);
    }
    let id = child.id().to_string();
    let sent = Command::new("kill")
        .args(["-INT", &id])
        .status()
        .expect("kill runs");
    assert!(sent.success());
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    let heard = std::fs::read_to_string(&log).expect("the server heard something");
    assert!(heard.contains("notifications/cancelled"), "{heard}");
}

#[test]
fn the_demo_asks_answers_and_says_what_to_try() {
    let run = sandbox::run(&["demo"], b"staging\n\n");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("staging"));
    assert!(run.stderr.contains("Try next"));
    let json = sandbox::run(&["demo", "--answer", "environment=staging", "--json"], b"");
    assert_eq!(
        names(&events(&json)),
        ["connected", "asked", "answered", "result"]
    );
    assert!(json.stderr.is_empty(), "{}", json.stderr);
}

#[test]
fn a_program_may_answer() {
    let answer = r#"sh -c 'read -r question; echo "{\"action\":\"accept\",\"content\":{\"environment\":\"staging\"}}"'"#;
    let run = call(&["deploy", "--answer-command", answer, "--json"]);
    assert_eq!(events(&run)[2]["action"], "accept", "{}", run.stderr);
    assert_eq!(run.code, Some(0));
    let nothing = call(&["deploy", "--answer-command", "'"]);
    assert_eq!(nothing.code, Some(2), "{}", nothing.stderr);
}

#[test]
fn what_the_policy_says_of_a_server_is_kept_to() {
    let files = sandbox::Files::new(&[
        ("no.toml", b"[default]\nanswer = \"decline\""),
        ("forms.toml", b"[default]\nfields = [\"other\"]"),
        ("bad.toml", b"[default]\nanswers = \"decline\""),
    ]);
    for (file, code, word) in [
        ("no.toml", 5, "no.toml says"),
        (
            "forms.toml",
            4,
            "does not let this server ask for environment",
        ),
        ("bad.toml", 2, "2 | answers = "),
        ("absent.toml", 2, "absent.toml does not exist"),
    ] {
        let run = call(&[
            "deploy",
            "--answer",
            "environment=staging",
            "--consent",
            &files.path(file),
        ]);
        assert_eq!(run.code, Some(code), "{file}: {}", run.stderr);
        assert!(run.stderr.contains(word), "{file}: {}", run.stderr);
    }
}

/// Each cell of the table of exit codes in docs/call.md.
#[cfg(unix)]
mod exit_codes {
    use super::*;

    const DONE: &str = r#"echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"over"}]}}'; read end"#;
    const TOOL_FAILS: &str = r#"echo '{"jsonrpc":"2.0","id":2,"result":{"isError":true,"content":[{"type":"text","text":"no luck"}]}}'; read end"#;
    const SERVER_FAILS: &str =
        r#"echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"no luck"}}'; read end"#;

    /// Returns the script that asks a question with these params and then runs `then`.
    fn asks(params: &str, then: &str) -> String {
        format!(
            r#"echo '{{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{params}}}'; read answer; {then}"#
        )
    }

    fn form(then: &str) -> String {
        let params = r#"{"message":"m","requestedSchema":{"type":"object","properties":{"name":{"type":"string","default":"ana"}}}}"#;
        asks(params, then)
    }

    /// Checks the exit code and the messages of a call of a server with this script.
    #[track_caller]
    fn ends(options: &[&str], then: &str, code: i32, said: &str) {
        let script = scripted(then);
        let run = call(&[&["go"], options, &["--", "/bin/sh", "-c", &script]].concat());
        assert_eq!(run.code, Some(code), "{options:?} {then}: {}", run.stderr);
        let all = format!("{}{}", run.stdout, run.stderr);
        assert!(all.contains(said), "{options:?} {then}: {all}");
        if code > 0 {
            let json = [
                &["go", "--json"],
                options,
                &["--", "/bin/sh", "-c", &script],
            ]
            .concat();
            let run = call(&json);
            assert_eq!(run.code, Some(code), "{json:?}: {}", run.stderr);
        }
    }

    #[test]
    fn done_is_0() {
        ends(&["--decline"], DONE, 0, "over");
        ends(&["--accept-defaults"], &form(DONE), 0, "over");
    }

    #[test]
    fn an_error_of_the_tool_or_the_server_is_1() {
        ends(&["--decline"], TOOL_FAILS, 1, "the tool reported an error");
        ends(&["--decline"], SERVER_FAILS, 1, "error -32000: no luck");
        ends(&["--accept-defaults"], &form(TOOL_FAILS), 1, "no luck");
        let unknown = r#"echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"tool not found"}}'
            read list; echo '{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"stay","inputSchema":{"type":"object"}}]}}'; read end"#;
        ends(&["--decline"], unknown, 1, "    stay");
    }

    #[test]
    fn what_was_given_and_cannot_be_used_is_2() {
        let files = sandbox::Files::new(&[("no.json", b"{}")]);
        ends(&["--decline", "--cancel"], DONE, 2, "cannot be used with");
        ends(
            &["--answers", &files.path("absent.json")],
            DONE,
            2,
            "cannot read",
        );
        ends(
            &["--answers", &files.path("no.json")],
            DONE,
            2,
            "holds no answers",
        );
        ends(
            &["--consent", &files.path("absent.toml")],
            DONE,
            2,
            "does not exist",
        );
        let wants_a_number = r#"{"message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}"#;
        ends(
            &["--answer", "n=many"],
            &asks(wants_a_number, DONE),
            2,
            "the answer was not sent",
        );
    }

    #[test]
    fn no_connection_or_a_broken_protocol_is_3() {
        ends(&["--decline"], "exit 7", 3, "exit status: 7");
        let nested = r#"{"message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"object"}}}}"#;
        ends(&["--decline"], &asks(nested, DONE), 3, "n");
        let link = r#"{"mode":"url","elicitationId":"e","url":"https://a.example/","message":"m"}"#;
        ends(
            &["--answer", "name=ana"],
            &asks(link, DONE),
            3,
            "not declare",
        );
        let endless = "head -c 9000000 /dev/zero | tr '\\0' x; echo; read end";
        ends(&["--decline"], endless, 3, "larger than");
    }

    #[test]
    fn a_question_that_found_nobody_is_4() {
        let files = sandbox::Files::new(&[("none.json", b"[]")]);
        ends(
            &["--answers", &files.path("none.json")],
            &form(DONE),
            4,
            "no prepared answer is left",
        );
        ends(&[], &form(DONE), 4, "the input ended");
        let slow = ["--answer-command", "sleep 60", "--timeout", "1"];
        ends(&slow, &form(DONE), 4, "question 1");
    }

    #[test]
    fn a_person_s_no_is_5_where_the_call_ends_there() {
        for option in ["--decline", "--cancel"] {
            ends(&[option], &form(TOOL_FAILS), 5, "declined:");
            ends(&[option], &form(SERVER_FAILS), 5, "declined:");
            ends(&[option], &form(DONE), 0, "over");
        }
        let required = r#"echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32042,"message":"first","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://a.example/","message":"Sign in"}]}}}'; read end"#;
        ends(&["--decline"], required, 5, "was not agreed to");
    }
}
