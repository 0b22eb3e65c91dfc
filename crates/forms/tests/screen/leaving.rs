//! Each way to leave a question, and the terminal's content after it.

use super::{
    CTRL_C, CTRL_D, CTRL_O, CTRL_R, CTRL_X, DOWN, ENTER, ESC, RIGHT, ask, ask_apart, ask_with,
    ended,
};

#[test]
fn each_way_out_is_itself() {
    for (key, asked, end) in [
        (ESC, "Cancel, without a choice? Press y", "ENDED cancel"),
        (CTRL_X, "Decline? Press y", "ENDED decline"),
    ] {
        let mut terminal = ask("deploy", 120, 24);
        terminal.wait_for("Esc cancel");
        terminal.press_for(key, asked);
        terminal.press("y");
        assert_eq!(ended(&mut terminal), end, "{key:?}");
    }
    let ways = [
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
fn a_link_is_opened_only_on_yes() {
    let mut terminal = ask("link", 80, 24);
    insta::assert_snapshot!("link", terminal.wait_for("Esc cancel"));
    terminal.press_for(ENTER, "Choose with the arrow keys first");
    terminal.press_for(&format!("{RIGHT}{RIGHT}"), "▸ No, decline");
    terminal.press(ENTER);
    assert_eq!(ended(&mut terminal), "ENDED decline");
    assert!(!terminal.seen().contains("OPENED"));

    let mut terminal = ask("link", 80, 24);
    terminal.wait_for("Esc cancel");
    terminal.press("y\r");
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
    terminal.press("y\r");
    assert_eq!(
        ended(&mut terminal),
        r#"ENDED accept {"password":"hunter2"}"#
    );
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
fn what_was_done_is_said_once() {
    for (case, times) in [("deploy", 1), ("quiet", 0)] {
        let mut terminal = ask(case, 80, 24);
        terminal.wait_for("Esc cancel");
        terminal.press_for(CTRL_X, "Decline? Press y");
        terminal.press("y");
        assert_eq!(ended(&mut terminal), "ENDED decline");
        let said = terminal.seen().matches("demo: declined.").count();
        assert_eq!(said, times, "{case}");
    }
}

#[test]
fn a_crash_gives_the_terminal_back() {
    let mut terminal = ask("crash", 80, 24);
    terminal.wait_for("test result: FAILED");
    assert!(!terminal.ended_well());
    assert!(terminal.is_given_back());
}

#[test]
fn the_controlling_terminal_serves_when_stdin_and_stdout_carry_something_else() {
    let mut terminal = ask_apart("apart", 80, 24);
    terminal.wait_for("1 of 6");
    terminal.press_for(ENTER, "2 of 6");
    terminal.press_for(ESC, "Cancel and drop");
    terminal.press_for("y", "demo: cancelled");
    assert!(terminal.ended_well());
    assert!(terminal.is_given_back());
}

#[test]
fn every_later_question_is_declined_only_after_a_yes() {
    let mut terminal = ask("pushy", 80, 24);
    terminal.wait_for("Ctrl-R decline always");
    let asked = "Decline this and every later question";
    terminal.press_for(CTRL_R, asked);
    terminal.press_for(DOWN, "❯ ○ Production");
    terminal.press_for(&format!("{CTRL_R}{CTRL_R}{CTRL_R}"), asked);
    terminal.press("y");
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
fn an_address_to_copy_stays_in_sight_while_the_visit_is_waited_for() {
    for (key, end) in [
        (ENTER, "ENDED done"),
        (CTRL_C, "ENDED interrupted before the question was answered"),
    ] {
        let mut terminal = ask("copy", 200, 24);
        terminal.wait_for("Open this address");
        let seen = terminal.press_for("y\r", "Press Enter when you are done");
        assert!(
            seen.contains(
                "https://accounts.example.com.login.evil.co.uk/oauth/authorize?client=42"
            ),
            "{seen}"
        );
        terminal.press(key);
        assert_eq!(ended(&mut terminal), end);
    }
}
