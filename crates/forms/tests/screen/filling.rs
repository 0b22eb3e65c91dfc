//! Filling in a form, step by step and as a whole.

use mcp_elicit_testkit::pty::{Color, Screen, TestTerminal};
use serde_json::json;

use super::{ALT_ENTER, BACK_TAB, CTRL_O, CTRL_U, DOWN, ENTER, ESC, TAB, UP, ask, ask_with, ended};

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
    terminal.press_for("ada@", "what follows the @ is missing");
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
    terminal.press_for(ENTER, "Nothing is sent yet");
    terminal.press_for("y", "▸ Send");
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
    terminal.press_for(ESC, "Cancel and drop what you typed?");
    terminal.press_for("n", "┃ 7");
    terminal.press_for(ESC, "Cancel and drop what you typed?");
    terminal.press("y");
    assert_eq!(ended(&mut terminal), "ENDED cancel");
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
    terminal.press_for(ESC, "Cancel, without a choice?");
    terminal.press("y");
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
    terminal.press_for(ENTER, "Choose with the arrow keys first");
    terminal.press_for("y", "Press Enter to confirm");
    terminal.press(ENTER);
    assert_eq!(ended(&mut terminal), "ENDED accept {}");
    for (keys, end) in [("n\r", "ENDED decline"), ("\x1b[C\r", "ENDED accept {}")] {
        let mut terminal = ask("confirm", 80, 24);
        terminal.wait_for("Esc cancel");
        terminal.press(keys);
        assert_eq!(ended(&mut terminal), end);
    }
}

#[test]
fn a_long_message_leaves_room_for_the_answer_and_can_be_read() {
    let mut terminal = ask("long", 80, 24);
    insta::assert_snapshot!("long", terminal.wait_for("Esc cancel"));
    terminal.press_for(CTRL_O, "line 12 of");
    terminal.press_for("\x1b[6~\x1b[6~\x1b[6~\x1b[6~\x1b[6~", "line 60 of");
    terminal.press_for("\x1b[F", "build: latest");
    terminal.press_for(ESC, "1 of 6");
}

#[test]
fn a_thousand_options_are_searched() {
    let mut terminal = ask("list", 80, 24);
    insta::assert_snapshot!("list", terminal.wait_for("Esc cancel"));
    terminal.press_for("0500", "host-0500");
    terminal.press_for(ENTER, "Your answer");
    terminal.press("y\r");
    assert_eq!(ended(&mut terminal), r#"ENDED accept {"host":"host-0500"}"#);
}

#[test]
fn no_colour_where_none_is_wanted() {
    let colours = |terminal: &TestTerminal| {
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
    terminal.type_line("2\n", "Replicas [2]:");
    terminal.press(":decline\n");
    assert_eq!(ended(&mut terminal), "ENDED decline");
}

#[test]
fn a_line_feed_is_enter_too() {
    let mut terminal = ask("deploy", 80, 24);
    terminal.wait_for("1 of 6");
    terminal.press_for("\n", "2 of 6");
    terminal.press_for("\n", "3 of 6");
    terminal.press_for("hello\n", "4 of 6");
}
