//! Tests of a gateway's messages at its start: a configuration in which nobody can answer, an address that cannot be served, and
//! a person who starts it by hand.

#[expect(dead_code, reason = "not every helper is needed here")]
mod house;

const ME: &str = env!("CARGO_BIN_EXE_mcp-elicit");

fn gateway(args: &[&str]) -> house::Run {
    let state = tempfile::tempdir().expect("a folder");
    let state = state.path().to_str().expect("UTF-8");
    let server = ["--", ME, "demo-server"];
    house::run(
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
            run.stderr.contains("nobody can ever answer"),
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
    use mcp_elicit_testkit::pty::{self, Terminal};

    let state = tempfile::tempdir().expect("a folder");
    let mut command = pty::command(ME);
    command.args(["gateway", "--inbox", "off", "--state"]);
    command.arg(state.path());
    command.args(["--", ME, "demo-server"]);
    let mut terminal = Terminal::start(command, 100, 30);
    let seen = terminal.wait_for("to end it");
    assert!(
        seen.contains("waiting for an MCP client on stdin"),
        "{seen}"
    );
    assert!(seen.contains("mcp-elicit call --list --"), "{seen}");
    terminal.press("\x04");
    assert_eq!(terminal.ended(), 0);
}
