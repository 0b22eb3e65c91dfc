//! `mcp-elicit lint` as a whole, as a user runs it.

mod sandbox;

use sandbox::{Files, run};
use serde_json::{Value, json};

const REQUEST: &str = r#"{
  "method": "elicitation/create",
  "params": {
    "message": "Connect your account",
    "requestedSchema": {
      "type": "object",
      "properties": {
        "api_key": { "type": "string", "title": "API key", "description": "From your settings page." },
        "confirm": { "type": "boolean", "title": "Replace the old one", "description": "It stops working.", "default": true }
      }
    }
  }
}"#;

fn report(text: &[u8], extra: &[&str]) -> (Option<i32>, Value) {
    let ran = run(&[&["lint", "-", "--json"], extra].concat(), text);
    assert_eq!(ran.stderr, "", "everything for a program goes to stdout");
    (
        ran.code,
        serde_json::from_str(&ran.stdout).expect("one line of JSON"),
    )
}

#[test]
fn a_person_is_shown_each_finding_at_its_place() {
    let files = Files::new(&[("request.json", REQUEST.as_bytes())]);
    let path = files.path("request.json");
    let ran = run(&["lint", &path], b"");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    let expected = format!(
        r#"error[asks-for-secret]: The field "api_key" asks for an API key or secret.
 --> {path}:8:9
  |
8 |         "api_key": {{ "type": "string", "title": "API key", "description": "From your settings page." }},
  |         ^^^^^^^^^
  |
  = help: a form must not ask for credentials: send the person to a page of your own with url mode

warning[risky-default]: yes is chosen already: a person agrees without having said so
 --> {path}:9:113
  |
9 |         "confirm": {{ "type": "boolean", "title": "Replace the old one", "description": "It stops working.", "default": true }}
  |                                                                                                             ^^^^^^^^^^^^^^^
  |
  = help: let the default be false, or leave it out

legal on: 2025-06-18, 2025-11-25, 2026-07-28
who shows it: every client, the inbox, the terminal and the page, as it is written
1 error, 1 warning, 0 notes
"#
    );
    let column = REQUEST
        .lines()
        .nth(8)
        .and_then(|line| line.find("\"default\""))
        .expect("a default")
        + 1;
    assert_eq!(
        ran.stderr,
        expected.replace(":9:113", &format!(":9:{column}"))
    );
}

#[test]
fn lines_may_end_as_windows_ends_them() {
    let ran = run(&["lint", "-"], REQUEST.replace('\n', "\r\n").as_bytes());
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("From your settings page.\" },\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("stdin:8:9"), "{}", ran.stderr);
}

#[test]
fn a_program_is_given_json() {
    let (code, json) = report(REQUEST.as_bytes(), &[]);
    assert_eq!(code, Some(1));
    assert_eq!(
        json["legal"],
        json!({"2025-06-18": true, "2025-11-25": true, "2026-07-28": true})
    );
    assert_eq!(
        json["findings"][0],
        json!({
            "level": "error",
            "code": "asks-for-secret",
            "pointer": "/params/requestedSchema/properties/api_key",
            "message": "The field \"api_key\" asks for an API key or secret.",
            "help": "a form must not ask for credentials: send the person to a page of your own with url mode"
        })
    );
    let keys: Vec<_> = json.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["legal", "reading", "findings"]);
}

#[test]
fn warnings_are_no_failure_and_a_revision_may_be() {
    let several = br#"{"type":"object","properties":{"tags":{"type":"array","items":{"type":"string","enum":["a","b"]}}}}"#;
    let (code, json) = report(several, &[]);
    assert_eq!(
        (
            code,
            &json["legal"]["2025-06-18"],
            &json["legal"]["2025-11-25"]
        ),
        (Some(0), &false.into(), &true.into())
    );
    let (code, json) = report(several, &["--revision", "2025-06-18"]);
    assert_eq!(
        (code, &json["findings"][0]["code"]),
        (Some(1), &"not-in-revision".into())
    );
    let (code, _) = report(several, &["--revision", "2026-07-28"]);
    assert_eq!(code, Some(0));
}

#[test]
fn broken_input_has_a_report_and_never_a_crash() {
    let deep = [vec![b'['; 200_000], vec![b']'; 200_000]].concat();
    let huge = [
        b"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"title\":\"".to_vec(),
        vec![b'x'; 10 << 20],
        b"\"}}}".to_vec(),
    ]
    .concat();
    for (broken, code) in [
        (&b""[..], "not-json"),
        (b"{", "not-json"),
        (b"\xff\xfe", "not-json"),
        (b"{\"type\":\"obj\xffect\"}", "root-type"),
        (b"[]", "not-an-object"),
        (b"null", "not-an-object"),
        (&deep, "not-json"),
        (&huge, "too-large"),
    ] {
        let (exit, json) = report(broken, &[]);
        let codes: Vec<_> = json["findings"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|finding| &finding["code"])
            .collect();
        assert!(
            exit == Some(1) && codes.contains(&&Value::from(code)),
            "{code}: {codes:?}"
        );
        // The same for people: the place is shown without printing ten megabytes.
        let ran = run(&["lint", "-"], broken);
        assert_eq!(ran.code, Some(1));
        assert!(
            ran.stderr.contains(code) && ran.stderr.len() < 20_000,
            "{code}: {} bytes",
            ran.stderr.len()
        );
    }
}

#[test]
fn a_hostile_schema_cannot_drive_the_terminal() {
    let hostile = "{\"type\":\"object\",\"properties\":{\"x\\u001b[31m\\u202ey\":{\"type\":\"object\\u001b]0;t\\u0007\"},\n\"raw\u{202e}\u{9b}31m\":{}}}";
    let ran = run(&["lint", "-"], hostile.as_bytes());
    assert_eq!(ran.code, Some(1));
    let harmful = |c: &char| {
        (c.is_control() && *c != '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert_eq!(ran.stderr.chars().find(harmful), None, "{:?}", ran.stderr);
}

#[test]
fn usage() {
    for (args, said) in [
        (&["lint"][..], "<FILE>"),
        (
            &["lint", "/nowhere/form.json"],
            "cannot read /nowhere/form.json",
        ),
        (
            &["lint", "-", "--revision", "2024-11-05"],
            "known are 2025-06-18, 2025-11-25 and 2026-07-28",
        ),
    ] {
        let ran = run(args, b"{}");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
}
