//! `call` on a real pseudo-terminal: the person answers on the screen, and the terminal is restored after every ending.
#![cfg(unix)]

use std::process::Command;

use mcp_elicit_testkit::pty::{self, TestTerminal};

const ME: &str = env!("CARGO_BIN_EXE_mcp-elicit");
const ENTER: &str = "\r";
const DOWN: &str = "\x1b[B";
const CTRL_O: &str = "\x0f";
const CTRL_R: &str = "\x12";

fn call(args: &[&str]) -> TestTerminal {
    // No browser can be found from here.
    call_with_path("/nonexistent", args)
}

fn call_with_path(path: &str, args: &[&str]) -> TestTerminal {
    let mut command = pty::command(ME);
    command.arg("call");
    command.args(args);
    command.env("PATH", path);
    // A person's decision in a test must not be saved for this user.
    command.env("MCP_ELICIT_STATE", "/dev/null/state");
    TestTerminal::start(command, 90, 30)
}

fn deploy(revision: &str) -> TestTerminal {
    call(&["deploy", "--protocol", revision, "--", ME, "demo-server"])
}

/// Starts a call to a server on 2025-11-25 that sends these lines once its tool is called.
fn scripted(then: &str) -> TestTerminal {
    call(&["go", "--", "/bin/sh", "-c", &script(then)])
}

fn script(then: &str) -> String {
    format!(
        r#"read a; echo '{{"jsonrpc":"2.0","id":1000000000,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}'
        read c; read d
        ask() {{ echo '{{"jsonrpc":"2.0","id":"'$1'","method":"elicitation/create","params":{{"message":"'$1'?","requestedSchema":{{"type":"object","properties":{{}}}}}}}}'; }}
        {then}
        echo '{{"jsonrpc":"2.0","id":2,"result":{{"content":[{{"type":"text","text":"over"}}]}}}}'
        read end"#
    )
}

#[test]
fn a_person_answers_step_by_step() {
    let mut terminal = deploy("2026-07-28");
    terminal.wait_for("Which environment should I deploy to?");
    terminal.press_for(ENTER, "2 of 2");
    terminal.press_for("hello\x1b\rworld", "world");
    terminal.press_for(ENTER, "Send");
    terminal.press("y\r");
    assert_eq!(terminal.ended(), 0);
    let seen = terminal.wait_for("Deployed to staging (hello");
    assert!(seen.contains("world)"), "{seen}");
    assert!(terminal.is_given_back());
}

#[test]
fn a_signal_gives_the_terminal_back_in_every_revision() {
    for revision in ["2025-11-25", "2026-07-28"] {
        for signal in ["-TERM", "-INT", "-HUP"] {
            let mut terminal = deploy(revision);
            terminal.wait_for("Which environment");
            assert!(!terminal.is_given_back(), "there is a screen to leave");
            let process = terminal.process().expect("it runs").to_string();
            let sent = Command::new("kill").args([signal, &process]).status();
            assert!(sent.expect("kill runs").success());
            assert_eq!(terminal.ended(), 130, "{revision} {signal}");
            // The line may break anywhere, depending on the length of the program's name.
            terminal.wait_for("thing was sent");
            assert!(terminal.is_given_back(), "{revision} {signal}");
        }
    }
}

#[test]
fn what_else_waits_is_listed_and_a_no_for_good_answers_it_too() {
    let mut terminal = scripted("ask one; ask two; ask three; read r; read r; read r");
    let seen = terminal.wait_for("2 more");
    assert!(seen.contains("one?"), "{seen}");
    assert!(seen.contains("Next: s, for go"), "{seen}");
    let read = terminal.press_for(CTRL_O, "2 more questions are waiting:");
    assert!(
        read.contains(", for go: two?") && read.contains(", for go: three?"),
        "{read}"
    );
    terminal.press_for(ENTER, "Go ahead?");
    terminal.press_for(CTRL_R, "Decline this and every later question");
    terminal.press("y");
    assert_eq!(terminal.ended(), 0);
    let seen = terminal.wait_for("over");
    assert_eq!(seen.matches("answered decline").count(), 3, "{seen}");
    assert!(terminal.is_given_back());
}

#[test]
fn a_no_for_good_is_kept_in_the_policy_and_heeded_by_the_next_call() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let policy = folder.path().join("mine.toml");
    std::fs::write(&policy, "").expect("an empty policy");
    let file = policy.to_str().expect("a UTF-8 path");
    let state = folder.path().join("state");
    let usual = state.join("consent.toml");
    let state = state.to_str().expect("a UTF-8 path");
    // Saved in the named file, and by default in the state folder, which is created.
    for (option, file, policy) in [("--consent", file, &policy), ("--state", state, &usual)] {
        let args = ["deploy", option, file, "--", ME, "demo-server"];
        let mut terminal = call(&args);
        terminal.wait_for("Which environment");
        terminal.press_for(CTRL_R, "Decline this and every later question");
        terminal.press_for("y", "in later calls too");
        assert_eq!(terminal.ended(), 5);
        let kept = std::fs::read_to_string(policy).expect("the policy was written");
        assert!(
            kept.contains("demo-server") && kept.contains("answer = \"decline\""),
            "{kept}"
        );

        let mut terminal = call(&args);
        assert_eq!(terminal.ended(), 5);
        let seen = terminal.wait_for("answered decline");
        assert!(seen.contains(".toml says"), "{seen}");
        assert!(!seen.contains("Ctrl-X"), "the person was asked: {seen}");
    }

    // If the decision cannot be saved, it applies to this call only, with a message.
    let mut terminal = deploy("2025-11-25");
    terminal.wait_for("Which environment");
    terminal.press_for(CTRL_R, "Decline this and every later question");
    terminal.press_for("y", "could not be saved");
    assert_eq!(terminal.ended(), 5);
}

#[test]
fn a_required_visit_is_waited_for_until_the_person_is_back() {
    let required = r#"echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32042,"message":"first","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://accounts.example.com/start","message":"Sign in"}]}}}'
        read again; echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"signed in"}]}}'; read end"#;
    let mut terminal = scripted(required);
    terminal.wait_for("Open this address");
    let seen = terminal.press_for("y\r", "Press Enter when you are done");
    assert!(
        seen.contains("https://accounts.example.com/start"),
        "{seen}"
    );
    terminal.press(ENTER);
    assert_eq!(terminal.ended(), 0);
    terminal.wait_for("signed in");

    // The person may end the wait, and the call with it.
    let mut terminal = scripted(required);
    terminal.wait_for("Open this address");
    terminal.press_for("y\r", "Press Enter when you are done");
    terminal.press("\x03");
    assert_eq!(terminal.ended(), 130);
    assert!(terminal.is_given_back());

    // A link that is only shown is not opened.
    let mut terminal = scripted(required);
    terminal.wait_for("Open this address");
    terminal.press_for(DOWN, "▸ Yes, open it");
    terminal.press_for(DOWN, "▸ No, decline");
    terminal.press(ENTER);
    assert_eq!(terminal.ended(), 5);
}

#[test]
fn a_browser_that_cannot_be_opened_leaves_the_address_to_copy() {
    let link = r#"echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mode":"url","elicitationId":"e","url":"https://accounts.example.com/start","message":"Sign in"}}'; read r"#;
    for (opener, said) in [
        ("exit 3", "https://accounts.example.com/start"),
        ("exit 0", "opened accounts.example.com in your browser"),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["xdg-open", "open"] {
            let file = folder.path().join(name);
            std::fs::write(&file, format!("#!/bin/sh\n{opener}\n")).expect("it is written");
            let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&file, may_run).expect("it may run");
        }
        let path = folder.path().to_str().expect("a UTF-8 path");
        let args = ["go", "--", "/bin/sh", "-c", &script(link)];
        let mut terminal = call_with_path(path, &args);
        terminal.wait_for("Open this address");
        terminal.press("y\r");
        assert_eq!(terminal.ended(), 0, "{opener}");
        let seen = terminal.wait_for("over");
        assert!(seen.contains(said), "{opener}: {seen}");
    }
}

#[test]
fn a_secret_that_a_person_gives_anyway_is_not_on_the_screen() {
    let ask = r#"echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who are you?","requestedSchema":{"type":"object","required":["password"],"properties":{"password":{"type":"string"}}}}}'; read r"#;
    let mut terminal = scripted(ask);
    let seen = terminal.wait_for("Answer anyway");
    if !seen.contains("▸ Answer anyway") {
        terminal.press_for(DOWN, "▸ Answer anyway");
    }
    terminal.press_for(ENTER, "┃");
    let typed = terminal.press_for("hunter2", "*******");
    assert!(!typed.contains("hunter"), "{typed}");
    let review = terminal.press_for(ENTER, "(hidden)");
    assert!(!review.contains("hunter"), "{review}");
    terminal.press("\x03");
    assert_eq!(terminal.ended(), 130);
    let left = terminal.wait_for("stopped");
    assert!(!left.contains("hunter"), "{left}");
}

/// Returns the terminal's content, after checking that it has no full-screen output.
fn only_lines(terminal: &TestTerminal) -> String {
    assert!(!terminal.look(|screen| screen.alternate_screen() || screen.bracketed_paste()));
    terminal.seen()
}

#[test]
fn plain_asks_line_by_line_where_a_screen_could_be() {
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let args = [
            "deploy",
            "--plain",
            "--protocol",
            revision,
            "--",
            ME,
            "demo-server",
        ];
        let mut terminal = call(&args);
        terminal.wait_for("Environment:");
        only_lines(&terminal);
        terminal.type_line("mars\n", "not in the list");
        terminal.press_for("?\n", ":decline  say no to the whole question");
        terminal.press_for("stag\n", "Note:");
        terminal.press_for(":back\n", "Environment [staging]:");
        terminal.press_for("\n", "Note:");
        terminal.press_for("for now\n", "Send this?");
        only_lines(&terminal);
        terminal.type_line("yes\n", "Deployed to staging (for now)");
        assert_eq!(terminal.ended(), 0);
        assert!(terminal.is_given_back());
    }
}

/// Lines typed before a question is shown cannot be meant for it, whether nothing was asked then or another question.
#[test]
fn plain_takes_no_line_that_was_typed_before_the_question() {
    for question in [
        r#"{"mode":"url","elicitationId":"e","url":"https://accounts.example.com/start","message":"Q?"}"#,
        r#"{"message":"Q?","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}"#,
        r#"{"message":"Q?","requestedSchema":{"type":"object","properties":{}}}"#,
    ] {
        // The server asks only when a file is there.
        let folder = tempfile::tempdir().unwrap();
        let now = folder.path().join("now");
        let ask = format!(
            r#"{{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{question}}}"#
        );
        let then = format!(
            "until test -e {now}; do sleep 0.05; done; echo '{ask}'; read a; echo \"$a\" > {now}; \
             echo '{ask}'; read a",
            now = now.display()
        );
        let script = script(&then);
        let mut terminal = call(&["go", "--plain", "--", "/bin/sh", "-c", &script]);
        // The connection is reported before the call, in which nothing is shown until the question.
        terminal.wait_for("connected");
        terminal.press("y\nyes\ny\nyes\nyes\n");
        std::fs::write(&now, "").unwrap();
        let seen = terminal.press_for("", ":decline to say no");
        assert!(!seen.contains("answered accept"), "{seen}");
        // It ends with an act of now, which reaches no further question.
        terminal.type_line(":decline\n:decline\n", "answered decline");
        terminal.press("\x03");
        terminal.ended();
        let answer = std::fs::read_to_string(&now).unwrap();
        assert!(answer.contains("decline"), "{question}: {answer}");
    }
}

/// A yes or no.
const DELETE: &str = r#"echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Delete all?","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}}'; read r"#;

/// A paste over a slow line comes in parts. Lines that come before a review can have been read do not agree to it.
#[test]
fn plain_takes_no_line_that_comes_with_the_review() {
    let plain = ["go", "--plain", "--", "/bin/sh", "-c", &script(DELETE)];
    let is_early = |_| {
        let mut terminal = call(&plain);
        terminal.wait_for(":decline to say no");
        terminal.type_line("y\n", "Send this?");
        // A busy machine may leave a person's time between the two.
        let seen = terminal.press_for("yes\n", "answer): yes\n");
        if !seen.contains("type it again") {
            return false;
        }
        assert!(!seen.contains("answered"), "{seen}");
        terminal.type_line("yes\n", "answered accept");
        assert_eq!(terminal.ended(), 0);
        true
    };
    assert!((0..5).any(is_early));
}

/// A program that ended in the middle may leave a terminal without line editing, at which one read gives many lines.
#[test]
fn plain_takes_one_line_of_a_paste_at_a_terminal_without_line_editing() {
    let mut command = pty::command("/bin/sh");
    command.args(["-c", r#"stty -icanon min 1; exec "$@""#, "sh", ME, "call"]);
    command.args(["go", "--plain", "--", "/bin/sh", "-c", &script(DELETE)]);
    command.env("PATH", "/bin:/usr/bin");
    command.env("MCP_ELICIT_STATE", "/dev/null/state");
    let mut terminal = TestTerminal::start(command, 90, 30);
    terminal.wait_for(":decline to say no");
    let seen = terminal.type_line("y\nyes\nyes\n", "Send this?");
    assert!(!seen.contains("answered"), "{seen}");
    let seen = terminal.type_line(
        "no such word\n",
        "Send this? (yes, or a number to change that answer): no such word",
    );
    assert!(!seen.contains("answered"), "{seen}");
    terminal.type_line("yes\n", "answered accept");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn plain_says_no_in_words() {
    for (word, code) in [
        (":decline\n", 5),
        (":cancel\n", 5),
        ("\x04", 4),
        ("\x03", 130),
    ] {
        let mut terminal = call(&["deploy", "--plain", "--", ME, "demo-server"]);
        terminal.wait_for("Environment:");
        if word.ends_with('\n') {
            terminal.type_line(word, "answered");
        } else {
            terminal.press(word);
        }
        assert_eq!(terminal.ended(), code, "{word:?}");
        assert!(terminal.is_given_back());
    }
}

#[test]
fn plain_says_when_no_browser_could_be_opened() {
    let link = r#"echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mode":"url","elicitationId":"e","url":"https://accounts.example.com/start","message":"Sign in"}}'; read r"#;
    let mut terminal = call(&["go", "--plain", "--", "/bin/sh", "-c", &script(link)]);
    let seen = terminal.wait_for("(yes, no):");
    assert!(
        seen.contains("https://accounts.example.com/start"),
        "{seen}"
    );
    let seen = terminal.type_line("yes\n", "over");
    assert_eq!(terminal.ended(), 0);
    assert!(
        seen.contains("No browser could be opened; copy the address above"),
        "{seen}"
    );
    assert!(
        !seen.contains("was opened") && !seen.contains("Opened in"),
        "{seen}"
    );
}

/// A question for a password, which a person answers anyway.
const PASSWORD: &str = r#"echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who are you?","requestedSchema":{"type":"object","required":["password"],"properties":{"password":{"type":"string"}}}}}'; read r"#;

#[test]
fn a_secret_that_is_typed_line_by_line_is_not_on_the_terminal() {
    let plain = ["go", "--plain", "--", "/bin/sh", "-c", &script(PASSWORD)];
    let mut terminal = call(&plain);
    terminal.wait_for("Type allow");
    terminal.type_line("allow\n", "what you type now is not shown");
    let seen = terminal.press_for("hunter2\n", "Send this?");
    assert!(!seen.contains("hunter"), "{seen}");
    assert!(!terminal.type_line("yes\n", "over").contains("hunter"));
    assert_eq!(terminal.ended(), 0);
    assert!(terminal.is_given_back());

    for signal in ["-TERM", "-INT", "-HUP"] {
        let mut terminal = call(&plain);
        terminal.wait_for("Type allow");
        terminal.type_line("allow\n", "what you type now is not shown");
        assert!(!terminal.is_given_back(), "the terminal shows nothing");
        let process = terminal.process().expect("it runs").to_string();
        let sent = Command::new("kill").args([signal, &process]).status();
        assert!(sent.expect("kill runs").success());
        assert_eq!(terminal.ended(), 130, "{signal}");
        assert!(terminal.is_given_back(), "{signal}");
    }
}

#[test]
fn a_locale_without_utf_8_gets_nothing_but_ascii() {
    let asked = r#"echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Wohin – nach „Köln“?","requestedSchema":{"type":"object","properties":{"ort":{"type":"string","title":"Straße","minLength":2,"maxLength":9,"default":"日本"}}}}}'; read r"#;
    let result = script(asked).replace("\"over\"", "\"vorüber · …\"");
    for options in [
        &["go"][..],
        &["go", "--plain"],
        &["go", "--accept-defaults"],
        &["nö", "--decline"],
    ] {
        let mut command = pty::command(ME);
        command.arg("call");
        command.args([options, &["--", "/bin/sh", "-c", &result]].concat());
        command.env("PATH", "/nonexistent:/bin:/usr/bin");
        command.env("MCP_ELICIT_STATE", "/dev/null/state");
        command.env("LC_ALL", "C");
        let mut terminal = TestTerminal::start(command, 100, 40);
        let ascii = |seen: &str| assert!(seen.is_ascii(), "{options:?}: {seen}");
        if options.contains(&"--plain") {
            ascii(&terminal.wait_for("Stra<U+00DF>e [<U+65E5><U+672C>]:"));
            terminal.type_line("\n", "Send this?");
            terminal.type_line("yes\n", "vor<U+00FC>ber");
        } else if options.len() == 1 {
            ascii(&terminal.wait_for("Esc cancel"));
            ascii(&terminal.press_for(ENTER, "Your answer"));
            terminal.press_for("y", "Send");
            terminal.press(ENTER);
        }
        assert_eq!(terminal.ended(), 0, "{options:?}");
        let seen = terminal.wait_for("vor<U+00FC>ber");
        ascii(&seen);
    }
}

/// A person who starts a gateway reads its warnings as those of any command.
#[test]
fn a_gateway_at_a_terminal_warns_in_words_without_a_module() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    std::fs::create_dir(&state).expect("a folder");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&state, open).expect("opened to others");
    let mut command = pty::command(ME);
    command.args(["gateway", "--inbox", "127.0.0.1:0", "--state"]);
    command.arg(&state);
    command.args(["--", ME, "demo-server"]);
    let mut terminal = TestTerminal::start(command, 200, 30);
    let seen = terminal.wait_for("it is its owner's only now");
    assert!(
        seen.contains("warning: the state folder was open to other users"),
        "{seen}"
    );
    let seen = terminal.wait_for("waiting for an MCP client");
    assert!(!seen.contains("mcp_elicit"), "{seen}");
    terminal.press("\x03");
    terminal.ended();
}
