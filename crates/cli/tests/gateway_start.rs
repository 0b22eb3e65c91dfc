//! Tests of a gateway's messages at its start: a configuration in which no person can answer, an address that cannot be
//! served, and a person who starts it by hand.

mod sandbox;

const ME: &str = env!("CARGO_BIN_EXE_mcp-elicit");

fn gateway(args: &[&str]) -> sandbox::Run {
    let state = tempfile::tempdir().expect("a folder");
    let state = state.path().to_str().expect("UTF-8");
    let server = ["--", ME, "demo-server"];
    sandbox::run(
        &[&["gateway", "--state", state], args, &server].concat(),
        b"",
    )
}

#[test]
fn a_gateway_in_which_nobody_can_answer_is_refused() {
    let nobody = ["--inbox", "off", "--answer-with", "inbox"];
    for check in [&["--check"][..], &[]] {
        let run = gateway(&[&nobody, check].concat());
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(
            run.stderr.contains("no question can be answered"),
            "{}",
            run.stderr
        );
        assert!(
            run.stderr.contains("leave out `--inbox off`"),
            "{}",
            run.stderr
        );
    }
    let somebody = gateway(&["--check", "--inbox", "off"]);
    assert_eq!(somebody.code, Some(0), "{}", somebody.stderr);
}

#[test]
fn a_record_that_is_no_address_is_refused_without_its_text() {
    let wrong = "host=127.0.0.1 user=elicit password=sekretpw";
    for log in [&[][..], &["--log", "json"]] {
        let run = gateway(&[&["--check", "--record", wrong], log].concat());
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        let shown = [run.stdout, run.stderr].concat();
        assert!(shown.contains("`--record` names no store"), "{shown}");
        assert!(shown.contains("postgres://USER@HOST"), "{shown}");
        assert!(!shown.contains("sekretpw"), "{shown}");
    }
}

#[test]
fn no_command_guesses_where_the_record_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().to_str().expect("UTF-8");
    let made = sandbox::run(
        &[
            "tokens",
            "make",
            "ci",
            "--scope",
            "list",
            "--no-person",
            "--state",
            state,
        ],
        b"",
    );
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    // A folder in the place of the address; an empty file.
    let at = folder.path().join("record.address");
    for is_folder in [true, false] {
        if is_folder {
            std::fs::create_dir(&at).expect("a folder");
        } else {
            std::fs::remove_dir(&at).expect("no folder");
            std::fs::write(&at, "").expect("a file");
        }
        for words in [
            &["tokens", "list"][..],
            &["tokens", "make", "b", "--scope", "list", "--no-person"],
            &["tokens", "block", "https://id.example", "x"],
            &["audit"],
            &["grants", "list"],
            &["keys", "rotate"],
            &["record", "stats"],
            &["channels", "failed"],
            &["inbox", "list"],
            &["inbox", "open"],
            &["inbox", "watch"],
            &["inbox", "rotate"],
            &["backup", "copy"],
            &["gateway", "--inbox", "off"],
        ] {
            let mut words = [words, &["--state", state]].concat();
            if words[0] == "gateway" {
                words.extend(["--", ME, "demo-server"]);
            }
            let run = sandbox::run(&words, b"");
            let shown = [run.stdout, run.stderr].concat();
            assert_eq!(run.code, Some(2), "{words:?}: {shown}");
            assert!(shown.contains("record.address"), "{words:?}: {shown}");
            assert!(shown.contains("move it away"), "{words:?}: {shown}");
        }
    }
}

#[test]
fn an_address_that_is_not_of_this_machine_is_named_as_the_reason() {
    // TEST-NET-1: no machine has it.
    let run = gateway(&["--inbox", "off", "--insecure", "--listen", "192.0.2.1:4099"]);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(
        run.stderr.contains("this machine has no address 192.0.2.1"),
        "{}",
        run.stderr
    );
    assert!(
        !run.stderr.contains("something else listens"),
        "{}",
        run.stderr
    );

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("an address").to_string();
    let run = gateway(&["--inbox", "off", "--listen", &at]);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(
        run.stderr.contains("something else listens there"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_client_that_closes_at_once_is_no_error() {
    let run = gateway(&["--inbox", "off"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        !run.stderr.to_lowercase().contains("error"),
        "{}",
        run.stderr
    );
}

#[cfg(unix)]
#[test]
fn a_person_who_starts_it_by_hand_is_told_what_it_waits_for() {
    use mcp_elicit_testkit::pty::{self, TestTerminal};

    let state = tempfile::tempdir().expect("a folder");
    let mut command = pty::command(ME);
    command.args(["gateway", "--inbox", "off", "--state"]);
    command.arg(state.path());
    command.args(["--", ME, "demo-server"]);
    let mut terminal = TestTerminal::start(command, 100, 30);
    let seen = terminal.wait_for("to end it");
    assert!(
        seen.contains("waiting for an MCP client on stdin"),
        "{seen}"
    );
    assert!(seen.contains("mcp-elicit call --list --"), "{seen}");
    terminal.press("\x04");
    assert_eq!(terminal.ended(), 0);

    let mut command = pty::command(ME);
    command.args(["gateway", "--inbox", "off", "--state"]);
    command.arg(state.path());
    command.args(["--", ME, "demo-server"]);
    let mut terminal = TestTerminal::start(command, 100, 30);
    terminal.wait_for("to end it");
    terminal.press("\x03");
    let seen = terminal.wait_for("stopped");
    assert!(!seen.contains("handshake"), "{seen}");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn an_address_that_the_network_reaches_is_refused_before_anything_is_said() {
    for (args, why) in [
        (
            &["--listen", "0.0.0.0:0"][..],
            "can be reached from the network",
        ),
        (&["--inbox", "0.0.0.0:0"], "is not a loopback address"),
    ] {
        let served = gateway(args);
        assert_eq!(served.code, Some(2), "{}", served.stderr);
        assert!(served.stderr.contains(why), "{}", served.stderr);
        assert!(
            !served.stderr.contains("inbox:") && !served.stderr.contains("serving:"),
            "{}",
            served.stderr
        );
        let checked = gateway(&[args, &["--check"]].concat());
        assert_eq!(
            (checked.code, checked.stderr),
            (served.code, served.stderr),
            "`--check` says the same"
        );
    }
    let insecure = gateway(&["--listen", "0.0.0.0:0", "--insecure", "--check"]);
    assert_eq!(insecure.code, Some(0), "{}", insecure.stderr);
}

#[test]
fn a_bound_that_makes_no_sense_is_refused_with_the_range() {
    for (option, value, range) in [
        ("--max-frame", "0", "4096..=1073741824"),
        ("--max-frame", "99999999999", "4096..=1073741824"),
        ("--hold", "86401", "0..=86400"),
        ("--keep-answers", "2592001", "0..=2592000"),
        (
            "--keep-results",
            "99999999999999999999",
            "invalid digit|too large",
        ),
        ("--keep-ended", "0", "1..=3650"),
        ("--pending", "0", "from 1 to 1000000 nor `off`"),
        ("--questions-per-minute", "0", "from 1 to 1000000 nor `off`"),
    ] {
        let run = gateway(&[option, value, "--check"]);
        assert_eq!(run.code, Some(2), "{option} {value}: {}", run.stderr);
        assert!(
            range.split('|').any(|range| run.stderr.contains(range)),
            "{option}: {}",
            run.stderr
        );
    }
    // Events that go before their questions.
    for (days, warns) in [("29", true), ("30", false)] {
        let run = gateway(&["--keep-audit", days, "--keep-ended", "30", "--check"]);
        assert_eq!(run.code, Some(0), "{days}: {}", run.stderr);
        let is_said = run.stderr.contains("`keep-audit` is shorter");
        assert_eq!(is_said, warns, "{days}: {}", run.stderr);
    }
    let run = sandbox::run(&["inbox", "list", "--limit", "0"], b"");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("1..=1000000"), "{}", run.stderr);
}

/// Returns a gateway on this state folder, whose client sends nothing and ends.
fn gateway_on(state: &std::path::Path) -> sandbox::Run {
    let state = state.to_str().expect("UTF-8");
    let args = ["gateway", "--state", state, "--inbox", "127.0.0.1:0"];
    sandbox::run(&[&args[..], &["--", ME, "demo-server"]].concat(), b"")
}

#[test]
fn a_lost_key_is_told_with_the_remedy_and_the_record_can_be_begun_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    assert_eq!(gateway_on(&state).code, Some(0));
    let at = state.to_str().expect("UTF-8").to_owned();
    // An event in the audit.
    let rotated = sandbox::run(&["inbox", "--state", &at, "rotate"], b"");
    assert_eq!(rotated.code, Some(0), "{}", rotated.stderr);
    std::fs::remove_file(state.join("identity.key")).expect("it is there");
    let check = [
        "gateway",
        "--state",
        &at,
        "--check",
        "--",
        ME,
        "demo-server",
    ];
    for run in [
        gateway_on(&state),
        sandbox::run(&check, b""),
        sandbox::run(&["inbox", "--state", &at, "list"], b""),
    ] {
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        for words in [
            "identity.key is missing",
            "from a backup",
            "keys start-over",
        ] {
            assert!(run.stderr.contains(words), "{}", run.stderr);
        }
    }
    let audit = sandbox::run(&["audit", "--state", &at], b"");
    assert_eq!(audit.code, Some(1), "{}", audit.stderr);
    assert!(audit.stdout.contains("key changed"), "{}", audit.stdout);
    assert!(
        audit.stderr.contains("cannot be verified"),
        "{}",
        audit.stderr
    );
    assert!(!state.join("identity.key").exists(), "nothing was made");
    let anew = sandbox::run(&["keys", "--state", &at, "start-over"], b"");
    assert_eq!(anew.code, Some(0), "{}", anew.stderr);
    assert!(anew.stderr.contains("record.1.sqlite"), "{}", anew.stderr);
    assert_eq!(gateway_on(&state).code, Some(0));
    // A damaged token is simply replaced.
    std::fs::write(state.join("inbox.token"), "").expect("written");
    let run = gateway_on(&state);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("held no token"), "{}", run.stderr);
}

#[test]
fn an_audit_without_events_says_so_and_is_no_mistake() {
    let files = sandbox::Files::new(&[]);
    for (folder, name) in [
        ("fresh", "identity.key"),
        ("begun", "record.sqlite"),
        ("other", "letter"),
    ] {
        let folder = std::path::PathBuf::from(files.path(folder));
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join(name), "").expect("a file");
    }
    let ran = files.path("ran");
    assert_eq!(gateway_on(ran.as_ref()).code, Some(0));
    for folder in ["fresh", "begun", "ran"] {
        let at = files.path(folder);
        for more in [
            &[][..],
            &["--json"],
            &["--verify"],
            &["--event", "answered"],
        ] {
            let run = sandbox::run(&[&["audit", "--state", &at][..], more].concat(), b"");
            assert_eq!(run.code, Some(0), "{folder} {more:?}: {}", run.stderr);
            assert_eq!(run.stdout, "", "{folder} {more:?}");
            assert!(
                run.stderr.contains("no events yet"),
                "{folder} {more:?}: {}",
                run.stderr
            );
        }
    }
    // A search without a hit, in an audit that has events.
    let rotated = sandbox::run(&["inbox", "--state", &ran, "rotate"], b"");
    assert_eq!(rotated.code, Some(0), "{}", rotated.stderr);
    let run = sandbox::run(&["audit", "--state", &ran, "--event", "answered"], b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("no event matches"), "{}", run.stderr);
    assert!(run.stderr.contains("`--caller` takes"), "{}", run.stderr);
    assert!(run.stderr.contains("chain is intact"), "{}", run.stderr);
    // A folder that does not belong to a gateway is an error.
    for other in ["other", "none"] {
        let run = sandbox::run(&["audit", "--state", &files.path(other)], b"");
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains("there is no record"), "{}", run.stderr);
    }
}

#[test]
fn the_inboxs_token_is_not_sent_unencrypted_to_another_machine() {
    let folder = sandbox::Files::new(&[("inbox.token", &[b'a'; 64])]);
    let state = folder.path("");
    let at = "http://inbox.example:7878";
    let run = sandbox::run(&["inbox", "--state", &state, "--inbox", at, "list"], b"");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("not encrypted"), "{}", run.stderr);
    assert!(
        run.stderr.contains("name an https address"),
        "{}",
        run.stderr
    );
}

#[cfg(feature = "full")]
#[test]
fn a_check_reads_the_secrets_of_channels() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gateway.toml");
    let text = format!(
        r#"
state = {state:?}
listen = "127.0.0.1:0"
inbox = "127.0.0.1:0"
[auth]
mode = "keys"
[login]
mode = "oidc"
issuer = "https://id.example.com"
client-id = "inbox"
[people.ada]
mail = "ada@example.com"
[roles]
admin = ["person:ada"]
[channels.slack]
team = "T0123"
token = {{ env = "A_TOKEN_THAT_NOBODY_SET" }}
signing-secret = {{ env = "A_SECRET_THAT_NOBODY_SET" }}
[[rules]]
name = "all"
tool = "*"
approve = true
ask = {{ person = "ada" }}
[servers.deploy]
command = [{ME:?}, "demo-server"]
"#,
        state = folder.path().join("state"),
    );
    std::fs::write(&file, text).expect("a file");
    let file = file.to_str().expect("UTF-8");
    let run = sandbox::run(&["gateway", "--config", file, "--check"], b"");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    for words in [
        "gateway.toml cannot be used",
        "[channels.slack]",
        "line 17: A_TOKEN_THAT_NOBODY_SET",
        "line 18: A_SECRET_THAT_NOBODY_SET",
    ] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
}

#[test]
fn a_mistake_in_a_file_is_told_in_the_words_of_the_file() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("an address").to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gateway.toml");
    let path = file.to_str().expect("UTF-8").to_owned();
    let state = folder.path().join("state");
    let start = |keys: &str| {
        let server = format!("[servers.deploy]\ncommand = [{ME:?}, \"demo-server\"]\n");
        let text = format!("state = {state:?}\n{keys}\n{server}");
        std::fs::write(&file, text).expect("a file");
        let run = sandbox::run(&["gateway", "--config", &path], b"");
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        run.stderr
    };
    let said = start(&format!("listen = \"{at}\"\ninbox = \"127.0.0.1:0\""));
    assert!(
        said.contains("as `inbox`, `listen` or `peer-listen` in "),
        "{said}"
    );
    assert!(
        !said.contains("--listen") && !said.contains("inbox: "),
        "{said}"
    );
    let said = start("lissten = \"127.0.0.1:0\"");
    assert!(said.contains("did you mean `listen`?"), "{said}");
    assert!(!said.contains("expected one of"), "{said}");
    let missing = sandbox::run(&["gateway", "--config", "no-such.toml"], b"");
    assert!(missing.stderr.contains("next:"), "{}", missing.stderr);
}

#[test]
fn advice_fits_what_is_wrong_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    std::fs::create_dir(&state).expect("a folder");
    std::fs::write(
        state.join("record.sqlite"),
        "not a database, but some text of that length",
    )
    .expect("a file");
    let run = gateway_on(&state);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("keys start-over"), "{}", run.stderr);
    assert!(
        !run.stderr.contains("readable and writable"),
        "{}",
        run.stderr
    );

    let file = folder.path().join("gateway.toml");
    std::fs::write(&file, [b'#', 0xff, b'\n']).expect("a file");
    let file = file.to_str().expect("UTF-8");
    let run = sandbox::run(&["gateway", "--config", file], b"");
    assert!(
        run.stderr.contains("UTF-8, as TOML requires"),
        "{}",
        run.stderr
    );

    let state = folder
        .path()
        .join("other")
        .to_str()
        .expect("UTF-8")
        .to_owned();
    let missing = [
        "gateway",
        "--inbox",
        "off",
        "--state",
        &state,
        "--",
        "no-such-program",
    ];
    let run = sandbox::run(&missing, b"");
    assert!(
        run.stderr.contains("next: install the program"),
        "{}",
        run.stderr
    );

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("an address").to_string();
    let run = sandbox::run(&["demo-server", "--listen", &at], b"");
    assert!(run.stderr.contains("name another port"), "{}", run.stderr);
}
