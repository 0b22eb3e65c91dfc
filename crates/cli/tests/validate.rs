//! `mcp-elicit validate` as a whole, as a user runs it.

mod sandbox;

use std::fmt::Write as _;

use sandbox::{Files, run};

const SCHEMA: &[u8] = br#"{"type":"object","properties":{"email":{"type":"string","format":"email"},"age":{"type":"integer","minimum":18}},"required":["email"]}"#;

fn verdict(schema: &[u8], content: &[u8]) -> (Option<i32>, serde_json::Value) {
    let files = Files::new(&[("schema.json", schema), ("content.json", content)]);
    let ran = run(
        &[
            "validate",
            "--schema",
            &files.path("schema.json"),
            "--content",
            &files.path("content.json"),
            "--json",
        ],
        b"",
    );
    assert_eq!(ran.stderr, "", "everything for a program goes to stdout");
    (
        ran.code,
        serde_json::from_str(&ran.stdout).expect("one line of JSON"),
    )
}

#[test]
fn exit_codes_tell_valid_from_not_and_from_illegal() {
    let (code, json) = verdict(SCHEMA, br#"{"email":"ada@lovelace.example","age":36}"#);
    assert_eq!(
        (code, json.to_string().as_str()),
        (
            Some(0),
            r#"{"schema":"ok","valid":true,"violations":[],"defects":[]}"#
        )
    );

    let (code, json) = verdict(SCHEMA, br#"{"age":12}"#);
    assert_eq!(code, Some(1));
    let rules: Vec<_> = json["violations"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|v| (&v["field"], &v["rule"]))
        .collect();
    assert_eq!(
        rules,
        [
            (&"email".into(), &"required".into()),
            (&"age".into(), &"minimum".into())
        ]
    );

    let (code, json) = verdict(
        br#"{"type":"object","properties":{"a":{"type":"object"}}}"#,
        b"{}",
    );
    assert_eq!(
        (code, &json["schema"], &json["valid"]),
        (Some(2), &"illegal".into(), &false.into())
    );
    assert_eq!(json["defects"][0]["pointer"], "/properties/a/type");
}

#[test]
fn the_persons_value_is_never_printed() {
    let files = Files::new(&[
        ("s", SCHEMA),
        ("c", br#"{"email":"hunter2","age":"hunter2"}"#),
    ]);
    for extra in [&["--json"][..], &[]] {
        let (schema, content) = (files.path("s"), files.path("c"));
        let args = [
            &["validate", "--schema", &schema, "--content", &content],
            extra,
        ]
        .concat();
        let ran = run(&args, b"");
        assert_eq!(ran.code, Some(1));
        assert!(
            !format!("{}{}", ran.stdout, ran.stderr).contains("hunter2"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[test]
fn a_rule_that_is_not_checked_is_said_to_be() {
    let schema = br#"{"type":"object","properties":{"a":{"type":"string","pattern":"^(?=x)"}}}"#;
    let files = Files::new(&[("s", &schema[..])]);
    let args = ["validate", "--schema", &files.path("s"), "--content", "-"];
    let ran = run(&args, br#"{"a":"y"}"#);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stderr.contains("warning: /properties/a/pattern: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn words_for_people_go_to_stderr_without_colours() {
    let files = Files::new(&[("s", SCHEMA), ("c", br#"{"email":"a@b.cc","extra":1}"#)]);
    let ran = run(
        &["validate", "--schema", &files.path("s"), "--content", "-"],
        br#"{"age":"x"}"#,
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(
        ran.stderr.contains("not valid: stdin does not answer"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("  email: a value is required\n  age: must be a whole number\n"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);

    let ran = run(
        &[
            "validate",
            "--schema",
            &files.path("s"),
            "--content",
            &files.path("c"),
        ],
        b"",
    );
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stderr.contains("not in the form, and dropped: extra"),
        "{}",
        ran.stderr
    );

    let ran = run(
        &[
            "--color",
            "always",
            "validate",
            "--schema",
            &files.path("s"),
            "--content",
            &files.path("c"),
        ],
        b"",
    );
    assert!(ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
}

#[test]
fn broken_input_has_a_verdict_and_never_a_crash() {
    let deep = [vec![b'['; 200_000], vec![b']'; 200_000]].concat();
    let huge = [b"\"".to_vec(), vec![b'x'; 10 << 20], b"\"".to_vec()].concat();
    for broken in [&b""[..], b"\xff\xfe{}", b"{", b"nul", b"[1,2", &deep, &huge] {
        let (code, json) = verdict(broken, b"{}");
        assert_eq!(
            (code, &json["schema"]),
            (Some(2), &"illegal".into()),
            "{:?}",
            json["defects"]
        );
        assert!(
            json["defects"][0]["message"]
                .as_str()
                .is_some_and(|message| message.len() < 300)
        );

        let (code, json) = verdict(SCHEMA, broken);
        assert_eq!(
            (code, &json["schema"], &json["valid"]),
            (Some(1), &"ok".into(), &false.into())
        );
    }
}

#[test]
fn a_missing_file_and_a_wrong_command_line_are_usage() {
    for (args, said) in [
        (
            &["validate", "--schema", "/nowhere/s", "--content", "-"][..],
            "cannot read /nowhere/s",
        ),
        (
            &["validate", "--schema", "-", "--content", "-"],
            "cannot both come from stdin",
        ),
        (&["validate", "--schema", "x"], "--content"),
        (
            &["validate", "--batch", "--schema", "x"],
            "cannot be used with",
        ),
        (&["validate"], "--schema"),
        (&["no-such-command"], "unrecognized subcommand"),
        (&[], "Usage:"),
    ] {
        let ran = run(args, b"");
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn a_batch_streams() {
    let schema = std::str::from_utf8(SCHEMA).expect("UTF-8");
    let mut input = String::new();
    for id in 0..1_000 {
        let age = if id % 2 == 0 { 40 } else { 4 };
        writeln!(
            input,
            "{{\"id\":{id},\"schema\":{schema},\"content\":{{\"email\":\"a@b.cc\",\"age\":{age}}}}}"
        )
        .expect("a string takes everything");
    }
    let ran = run(&["validate", "--batch"], input.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<serde_json::Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    assert_eq!(lines.len(), 1_000);
    for (id, line) in lines.iter().enumerate() {
        assert_eq!(
            (&line["id"], &line["valid"]),
            (&id.into(), &(id % 2 == 0).into())
        );
    }
}

#[test]
fn an_id_of_a_batch_acts_on_no_terminal() {
    let input = "{\"id\":{\"a\":\t\"x\u{202e}\u{200b}\u{2028}y\"},\"schema\":{},\"content\":{}}\n";
    let ran = run(&["validate", "--batch"], input.as_bytes());
    let hidden = ['\t', '\u{202e}', '\u{200b}', '\u{2028}'];
    assert!(!ran.stdout.contains(hidden), "{}", ran.stdout);
    let line: serde_json::Value = serde_json::from_str(&ran.stdout).expect("one line of JSON");
    assert_eq!(line["id"]["a"], "x\u{202e}\u{200b}\u{2028}y");
}

#[test]
fn a_batch_answers_each_line_before_the_next_comes() {
    use std::io::{BufRead as _, BufReader, Write};
    use std::process::{Command, Stdio};

    let mut child = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .args(["validate", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut input = child.stdin.take().expect("stdin is piped");
    let mut output = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let schema = std::str::from_utf8(SCHEMA).expect("UTF-8");
    for id in 0..3 {
        writeln!(
            input,
            "{{\"id\":{id},\"schema\":{schema},\"content\":{{}}}}"
        )
        .expect("the child reads");
        input.flush().expect("the child reads");
        let mut line = String::new();
        output
            .read_line(&mut line)
            .expect("the child answers while its stdin is still open");
        assert!(
            line.starts_with(&format!("{{\"id\":{id},\"schema\":\"ok\",\"valid\":false,")),
            "{line}"
        );
    }
    drop(input);
    assert!(child.wait().expect("the child ends").success());
}
