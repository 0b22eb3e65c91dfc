//! Tests of the conditions for an answer: a person must have seen the question, and a held key does not count.

use super::{CTRL_C, CTRL_O, CTRL_X, DOWN, ENTER, ESC, TAB, ask, ask_with, ended};

/// Returns a held key, as terminals send it.
fn held(key: &str) -> String {
    key.repeat(30)
}

#[test]
fn a_held_key_answers_nothing() {
    let mut terminal = ask("yesno", 80, 24);
    terminal.wait_for("Enter send");
    terminal.press_for(&held(ENTER), "Choose with the arrow keys first");
    let seen = terminal.press_for(DOWN, "❯ ○ Yes");
    assert!(!seen.contains('●'), "nothing is chosen: {seen}");
    terminal.press_for(&held("y"), "Press Enter to send Yes");
    terminal.press_for(&held("n"), "Press Enter to send No");
    terminal.press(ENTER);
    assert_eq!(ended(&mut terminal), r#"ENDED accept {"go":false}"#);

    let mut terminal = ask("confirm", 80, 24);
    terminal.wait_for("Esc cancel");
    terminal.press_for(&held(ENTER), "Choose with the arrow keys first");
    terminal.press_for(&held("y"), "▸ Yes");
    terminal.press_for(&held("n"), "▸ No");
    terminal.press(ENTER);
    assert_eq!(ended(&mut terminal), "ENDED decline");
}

#[test]
fn keys_that_come_with_a_question_answer_nothing() {
    for (case, chosen) in [
        ("yesno", "Press Enter to send Yes"),
        ("confirm", "▸ Yes"),
        ("link", "Read first"),
    ] {
        let mut terminal = ask(case, 80, 24);
        // Typed on from what was there before.
        let seen = terminal.wait_for_first("Read first: keys count after a short pause.");
        assert!(!seen.contains("Esc cancel"), "{seen}");
        terminal.press(&format!("y{ENTER}"));
        terminal.press(&format!("{ESC}y"));
        terminal.press("\x1b[200~yes\r\x1b[201~");
        let seen = terminal.wait_for("Esc cancel");
        assert!(
            !seen.contains(chosen) && !seen.contains("ENDED"),
            "{case}: {seen}"
        );
        terminal.press_for(CTRL_X, "Decline? Press y");
        terminal.press("y");
        assert_eq!(ended(&mut terminal), "ENDED decline");
    }
    // Ctrl-C ends the program at any time.
    let mut terminal = ask("yesno", 80, 24);
    terminal.wait_for_first("Read first");
    terminal.press(CTRL_C);
    let end = ended(&mut terminal);
    assert!(end.contains("interrupted"), "{end}");
}

#[test]
fn typed_work_is_dropped_only_after_a_yes() {
    for (key, asked, end) in [
        (ESC, "Cancel and drop what you typed?", "ENDED cancel"),
        (CTRL_X, "Decline and drop what you typed?", "ENDED decline"),
    ] {
        let mut terminal = ask("numbers", 80, 24);
        terminal.wait_for("1 of 2");
        terminal.press_for("42", "┃ 42");
        terminal.press_for(key, asked);
        terminal.press_for("n", "┃ 42");
        terminal.press_for("7", "┃ 427");
        terminal.press_for(key, asked);
        terminal.press("y");
        assert_eq!(ended(&mut terminal), end);
    }
}

#[test]
fn a_key_held_down_since_the_question_before_leaves_none() {
    for case in ["deploy", "confirm", "link", "secret"] {
        for (key, asked) in [
            (ESC, "Cancel, without a choice?"),
            (CTRL_X, "Decline? Press y"),
        ] {
            let mut terminal = ask(case, 80, 24);
            terminal.wait_for("Esc cancel");
            terminal.press(&held(key));
            // Whether or not the last key asked, the question is shown.
            terminal.press_for(CTRL_O, "back to the question");
            terminal.press_for(CTRL_O, "Esc cancel");
            terminal.press_for(key, asked);
            terminal.press_for("n", "Esc cancel");
            terminal.press_for(key, asked);
            terminal.press("y");
            let end = if key == ESC { "cancel" } else { "decline" };
            assert_eq!(ended(&mut terminal), format!("ENDED {end}"), "{case}");
        }
    }
}

#[test]
fn a_secret_that_is_typed_line_by_line_is_not_on_the_terminal() {
    let mut terminal = ask_with("secret", 80, 40, &[("TERM", "dumb")]);
    terminal.wait_for("Type allow");
    terminal.type_line("allow\n", "not shown");
    let seen = terminal.press_for("hunter2\n", "Send this?");
    assert!(!seen.contains("hunter"), "{seen}");
    assert!(seen.contains("(hidden)"), "{seen}");
    assert!(terminal.is_given_back(), "other lines are shown again");
    terminal.type_line("yes\n", "ENDED");
    let end = ended(&mut terminal);
    assert_eq!(end, r#"ENDED accept {"password":"hunter2"}"#);
}

/// Returns the number of rows that are shown as being below the visible ones.
fn below(seen: &str) -> Option<usize> {
    seen.split_once("↓ ")?.1.split_once(" more")?.0.parse().ok()
}

#[test]
fn a_link_is_agreed_to_only_after_all_of_it_was_in_sight() {
    for (columns, height) in [(40, 10), (80, 24), (60, 12)] {
        let mut terminal = ask("longlink", columns, height);
        terminal.wait_for("Esc cancel");
        let mut seen = terminal.press_for(&held("y"), "Read the address");
        assert!(!seen.contains("the-end"), "{seen}");
        terminal.press("\x1b[C");
        terminal.press_for(ENTER, "Read the address");
        // Any other key cancels the confirmation, and gives its rows to the address.
        seen = terminal.press_for("x", "Open this address");
        let mut rows: Vec<String> = Vec::new();
        let mut note = |seen: &str| {
            let address = |row: &&str| row.starts_with("https:") || row.contains('=');
            for row in seen.lines().map(str::trim).filter(address) {
                if !rows.iter().any(|known| known == row) {
                    rows.push(row.to_owned());
                }
            }
        };
        note(&seen);
        while let Some(more @ 3..) = below(&seen) {
            seen = terminal.press_for(DOWN, &format!("↓ {} more", more - 1));
            note(&seen);
        }
        seen = terminal.press_for(DOWN, "beginning.");
        note(&seen);
        let all: Vec<_> = (0..200).map(|n| format!("p{n}=v{n}")).collect();
        let whole = format!(
            "https://accounts.example.com/oauth?{}&last=the-end",
            all.join("&")
        );
        // The last row may be too short to be recognized as part of an address.
        let rest = whole.strip_prefix(&rows.concat()).expect("rows in order");
        assert!(
            rest.len() < 5 && seen.contains(rest),
            "at {columns} columns: {rest}"
        );
        terminal.press_for("y", "Press Enter to confirm");
        terminal.press(ENTER);
        assert_eq!(ended(&mut terminal), "ENDED visit");
    }
}

#[test]
fn skipping_to_the_end_of_a_link_is_not_reading_it() {
    let mut terminal = ask("longlink", 40, 10);
    terminal.wait_for("Esc cancel");
    terminal.press_for("\x1b[F", "beginning.");
    terminal.press_for("y", "Read the address");
    terminal.press_for(ESC, "Cancel, without a choice?");
    terminal.press("y");
    assert_eq!(ended(&mut terminal), "ENDED cancel");
}

#[test]
fn a_low_screen_has_what_is_wrong_in_sight() {
    for case in ["deploy", "yesno", "long"] {
        let mut terminal = ask(case, 40, 10);
        terminal.wait_for("Esc cancel");
        let seen = terminal.press_for(TAB, "✗");
        assert!(seen.contains('○'), "and where to put it right: {seen}");
    }
    let mut terminal = ask("numbers", 40, 10);
    terminal.wait_for("Esc cancel");
    terminal.press_for("1,000", "write 1000 or");
    let seen = terminal.press_for(ENTER, "✗");
    assert!(seen.contains("┃ 1,000"), "{seen}");
}

#[test]
fn the_review_shows_what_is_sent() {
    let mut terminal = ask("numbers", 80, 24);
    terminal.wait_for("1 of 2");
    terminal.press_for("1.000", "sent as 1: the point is taken as a decimal point");
    terminal.press_for(&format!("{ENTER}2026/2/30"), "February 2026 has 28 days");
    terminal.press_for("\x7f\x7f28", "sent as 2026-02-28");
    let seen = terminal.press_for(ENTER, "as it will be sent");
    insta::assert_snapshot!("review_sent", seen);
    terminal.press("y\r");
    assert_eq!(
        ended(&mut terminal),
        r#"ENDED accept {"n":1,"d":"2026-02-28"}"#
    );
}

#[test]
fn a_zone_is_proposed_and_shown_before_it_is_used() {
    let mut terminal = ask("when", 80, 24);
    terminal.wait_for("1 of 1");
    terminal.press_for("2026-05-31 14:30", "the time zone is missing");
    let seen = terminal.press_for(ENTER, "Is this the time zone you mean?");
    assert!(
        seen.contains("┃ 2026-05-31 14:30 Europe/Brussels"),
        "{seen}"
    );
    assert!(seen.contains("sent as 2026-05-31T14:30:00+02:00"), "{seen}");
    terminal.press_for(ENTER, "Your answer");
    terminal.press("y\r");
    assert_eq!(
        ended(&mut terminal),
        r#"ENDED accept {"t":"2026-05-31T14:30:00+02:00"}"#
    );
}

#[test]
fn who_asks_for_whom_and_with_which_arguments_is_in_reach() {
    let mut terminal = ask("arguments", 80, 24);
    insta::assert_snapshot!("who_asks", terminal.wait_for("Esc cancel"));
    terminal.press_for(
        CTRL_O,
        "Called by ana@example.org, through a client that calls",
    );
    terminal.press_for("\x1b[F\x1b[5~", "rm -rf /");
    let mut terminal = ask("arguments", 40, 10);
    terminal.wait_for("Esc cancel");
    terminal.press_for(CTRL_O, "Called by");
    terminal.press_for("\x1b[F", "rm -rf /");
}

#[test]
fn a_locale_without_utf_8_gets_ascii() {
    for (case, columns, rows) in [
        ("deploy", 80, 24),
        ("deploy", 120, 30),
        ("link", 40, 10),
        ("confirm", 40, 10),
    ] {
        let mut terminal = ask_with(case, columns, rows, &[("LC_ALL", "C")]);
        let seen = terminal.wait_for("Esc cancel");
        assert!(seen.is_ascii(), "{seen}");
        if columns == 80 {
            insta::assert_snapshot!("ascii", seen);
            let seen = terminal.press_for(&format!("{ENTER}{TAB}日本"), "<U+65E5><U+672C>");
            assert!(seen.is_ascii(), "{seen}");
        }
    }
}

#[test]
fn a_form_that_only_asks_yes_or_no_takes_one_choice() {
    for (keys, end) in [
        ("y\r", r#"ENDED accept {"go":true}"#),
        ("n\r", r#"ENDED accept {"go":false}"#),
        ("\x1b[B\x1b[B\r", r#"ENDED accept {"go":false}"#),
    ] {
        let mut terminal = ask("yesno", 80, 24);
        terminal.wait_for("Enter send");
        terminal.press(keys);
        assert_eq!(ended(&mut terminal), end, "{keys:?}");
    }
    // A default is marked, and still has to be chosen.
    let mut terminal = ask("default", 80, 24);
    terminal.wait_for("● Yes");
    terminal.press_for(&held(ENTER), "Choose with the arrow keys first");
    terminal.press_for("y", "Press Enter to send Yes");
    terminal.press(ENTER);
    assert_eq!(ended(&mut terminal), r#"ENDED accept {"go":true}"#);
}

#[test]
fn the_error_and_a_pending_question_stay_in_sight_on_a_low_screen() {
    for (columns, rows) in [(40, 10), (20, 6)] {
        let mut terminal = ask("deploy", columns, rows);
        terminal.wait_for("Esc");
        terminal.press_for(ENTER, "Replicas");
        terminal.press_for(ENTER, "Note");
        terminal.press(&format!("\x1b[200~{}Z\x1b[201~", "word ".repeat(60)));
        terminal.wait_for("Z");
        let seen = terminal.press_for(ENTER, "✗ must have at");
        assert!(seen.contains("┃"), "and the text: {seen}");
        assert!(seen.contains("Where should"), "and the question: {seen}");
        let seen = terminal.press_for(ESC, "Cancel and drop");
        assert!(seen.contains("stay."), "all of it: {seen}");
        terminal.press_for("y", "filtered out");
        assert!(terminal.is_given_back(), "the terminal is not as it was");
    }
}

#[test]
fn the_question_is_the_strongest_text_and_one_line_says_who_asks() {
    for (columns, rows) in [(120, 30), (80, 24), (40, 10), (20, 6)] {
        let terminal = ask("deploy", columns, rows);
        terminal.wait_for("Esc");
        let (rows, strong) = terminal.look(|screen| {
            let rows: Vec<String> = screen.rows(0, columns).collect();
            let strong: Vec<bool> = (0..3)
                .map(|row| matches!(screen.cell(row, 2), Some(cell) if cell.bold()))
                .collect();
            (rows, strong)
        });
        assert!(rows[0].starts_with("  Where should"), "{rows:?}");
        let who = rows.iter().position(|row| row.starts_with("  demo 0.1.0"));
        let who = who.unwrap_or_else(|| panic!("{rows:?}"));
        assert!(
            strong[0] && (who > 2 || !strong[who]),
            "{rows:?} {strong:?}"
        );
        if columns > 40 {
            assert_eq!(who, 1);
            assert!(rows[1].contains("for the tool deploy"), "{rows:?}");
        }
    }
}

#[test]
fn a_letter_that_no_option_has_is_told() {
    let mut terminal = ask("deploy", 80, 24);
    terminal.wait_for("1 of 6");
    terminal.press_for("q", "No option matches this letter");
    terminal.press_for("pro", "1 of 3");
}
