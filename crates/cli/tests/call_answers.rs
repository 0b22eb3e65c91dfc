//! `call` and its prepared answers: none is dropped in silence, and each mistake is named before anything is sent.

#![cfg(unix)]

mod sandbox;

use std::os::unix::fs::PermissionsExt as _;

use sandbox::{Files, Run};
use serde_json::{Value, json};

const ME: &str = env!("CARGO_BIN_EXE_mcp-elicit");

/// A server in the shell that asks the question `$1` and answers its call with the members `$2`, in which `@` stands for
/// the answer.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\),.*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}}\n' "$id" ;;
    *'"method":"tools/call"'*)
      printf '%s\n' "$1"; IFS= read -r answer
      printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$(printf '%s' "$2" | awk -v a="$answer" '{ i = index($0, "@"); if (i) print substr($0, 1, i - 1) a substr($0, i + 1); else print }')" ;;
    *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"city":{"type":"string"}}}}]}}\n' "$id" ;;
  esac
done"#;

/// The result that holds the client's answer.
const ECHO: &str = r#"{"content":[],"structuredContent":@}"#;

fn asked(properties: &Value, required: &[&str], result: &str, options: &[&str]) -> Run {
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {
        "message": "Which?", "requestedSchema": {"type": "object", "properties": properties, "required": required},
    }});
    let question = question.to_string();
    let server = ["--", "/bin/sh", "-c", SERVER, "sh", &question, result];
    sandbox::run(&[&["call", "t"][..], options, &server].concat(), b"")
}

fn place() -> Value {
    json!({"place": {"type": "string"}, "extras": {"type": "string"}})
}

/// Asserts that nothing was accepted, with this exit code, and returns what was said.
fn refused(run: &Run, code: i32) -> String {
    assert_eq!(run.code, Some(code), "{}{}", run.stdout, run.stderr);
    assert!(!run.stdout.contains("accept"), "{}", run.stdout);
    run.stderr.clone()
}

#[test]
fn a_program_s_answer_with_an_unknown_field_is_not_sent_and_it_may_correct_itself() {
    let folder = Files::new(&[]);
    let program = folder.path("answer");
    let write = |lines: &str| {
        std::fs::write(&program, format!("#!/bin/sh\n{lines}\n")).unwrap();
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&program, mode).unwrap();
    };
    let run = |result: &str| {
        asked(
            &place(),
            &["place"],
            result,
            &["--answer-command", &program],
        )
    };
    write(r#"cat > /dev/null; echo '{"action":"accept","content":{"place":"Rome","nope":1}}'"#);
    let said = refused(&run(ECHO), 2);
    assert!(said.contains("nope") && !said.contains("Rome"), "{said}");
    // Told of the field, it leaves it out.
    write(
        r#"PATH=/bin:/usr/bin; if grep -q '"field":"nope"'; then c='{"place":"Rome"}'; else c='{"place":"Rome","nope":1}'; fi
echo '{"action":"accept","content":'"$c"'}'"#,
    );
    let corrected = run(ECHO);
    assert_eq!(corrected.code, Some(0), "{}", corrected.stderr);
    assert!(
        corrected.stdout.contains(r#""content":{"place":"Rome"}"#),
        "{}",
        corrected.stdout
    );
}

#[test]
fn a_mistyped_name_beside_a_right_one_stops_the_answer_before_it_is_sent() {
    for typed in ["extra=late", "Extras=late", "exrtas=late"] {
        let options = ["--answer", "place=Rome", "--answer", typed];
        let said = refused(&asked(&place(), &["place"], ECHO, &options), 2);
        assert!(said.contains("extras"), "{typed}: {said}");
    }
    // A name of another question may still be asked for. It was not, and that is told.
    let options = ["--answer", "place=Rome", "--answer", "colour=red"];
    let run = asked(&place(), &["place"], ECHO, &options);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(
        run.stdout.contains("Rome") && run.stderr.contains("colour"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_answer_given_twice_is_refused_at_once() {
    let options = ["--answer", "place=Rome", "--answer", "place=Bern"];
    let said = refused(&asked(&place(), &[], ECHO, &options), 2);
    assert!(
        said.contains("\"place\"") && said.contains("two values"),
        "{said}"
    );
    assert!(!said.contains("connected"), "{said}");
}

#[test]
fn a_list_of_answers_names_what_is_wrong_with_its_position() {
    for (answers, said) in [
        (
            r#"[{"action":"accept","content":{}},{"action":"accept","contents":{}}]"#,
            ["answer 2", "\"contents\""],
        ),
        (
            r#"[{"action":"accept","content":{"place":"Rome"}},{"content":{}}]"#,
            ["answer 2", "action"],
        ),
        (
            r#"[{"action":"accept","content":{"place":"Rome","nope":1}}]"#,
            ["answer 1", "\"nope\""],
        ),
    ] {
        let file = Files::new(&[("answers", answers.as_bytes())]);
        let path = file.path("answers");
        let run = asked(&place(), &["place"], ECHO, &["--answers", &path]);
        let told = refused(&run, 2);
        assert!(said.iter().all(|part| told.contains(part)), "{told}");
    }
}

#[test]
fn an_option_written_as_json_has_no_odd_note() {
    let mixed = json!({"n": {"enum": [1, "1"]}});
    for (typed, sent) in [
        ("n=\"1\"", r#""content":{"n":"1"}"#),
        ("n=1", r#""content":{"n":1}"#),
    ] {
        let run = asked(&mixed, &[], ECHO, &["--answer", typed]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stdout.contains(sent), "{typed}: {}", run.stdout);
        assert!(
            !run.stderr.contains("is sent as"),
            "{typed}: {}",
            run.stderr
        );
    }
}

#[test]
fn a_person_s_no_is_no_error_and_gets_no_advice_on_arguments() {
    let confirm = json!({"confirm": {"type": "boolean"}});
    let error = |text: &str| {
        json!({"content": [{"type": "text", "text": text}], "isError": true}).to_string()
    };
    let no = error("The user answered no to \"Cancel booking 7?\"");
    let run = asked(&confirm, &["confirm"], &no, &["--answer", "confirm=no"]);
    assert_eq!(run.code, Some(5), "{}", run.stderr);
    assert!(run.stderr.contains("answered no"), "{}", run.stderr);
    assert!(!run.stderr.contains("arguments"), "{}", run.stderr);
    // An error after an answer is not about the arguments either, whatever its words.
    let full = error("the type of room is not valid any more: a field is required");
    let run = asked(&confirm, &["confirm"], &full, &["--answer", "confirm=yes"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(
        !run.stderr.contains("the tool's arguments"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_link_on_the_revision_of_forms_says_why_it_cannot_be_asked() {
    let answers = Files::new(&[("answers", br#"[{"action":"accept"}]"#)]);
    let path = answers.path("answers");
    let args = [
        "call",
        "connect-account",
        "--protocol",
        "2025-06-18",
        "--answers",
        &path,
        "--",
        ME,
        "demo-server",
    ];
    let run = sandbox::run(&args, b"");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(
        run.stderr.contains("2025-06-18 has no url mode"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_call_without_a_tool_names_the_list() {
    let run = sandbox::run(&["call", "--", ME, "demo-server"], b"");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(
        run.stderr.contains("call --list -- SERVER"),
        "{}",
        run.stderr
    );
    let run = sandbox::run(&["call", "deploy", ME, "demo-server"], b"");
    assert!(run.stderr.contains("after `--`"), "{}", run.stderr);
}

#[test]
fn an_address_without_its_scheme_is_told_what_to_write() {
    let run = sandbox::run(&["call", "t", "--url", "127.0.0.1:9/mcp"], b"");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(
        run.stderr.contains("write `--url http://127.0.0.1:9/mcp`"),
        "{}",
        run.stderr
    );
}

#[test]
fn lines_of_a_message_are_marked_and_a_cut_answer_is_not_sent() {
    let args = ["call", "deploy", "--plain", "--", ME, "demo-server"];
    let run = sandbox::run(&args, b"staging\n");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stderr.contains("\n> Which environment"),
        "{}",
        run.stderr
    );
    let cut = sandbox::run(&args, b"staging");
    assert_eq!(cut.code, Some(4), "{}{}", cut.stdout, cut.stderr);
    assert!(cut.stderr.contains("no line end"), "{}", cut.stderr);
    assert!(!cut.stdout.contains("Deployed"), "{}", cut.stdout);
}

#[test]
fn a_long_description_is_listed_whole() {
    let about = format!("{}and the end", "word ".repeat(120));
    let server = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\),.*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}}\n' "$id" ;;
    *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t","description":"%s","inputSchema":{"type":"object"}}]}}\n' "$id" "$1" ;;
  esac
done"#;
    let run = sandbox::run(
        &[
            "call", "--list", "--", "/bin/sh", "-c", server, "sh", &about,
        ],
        b"",
    );
    assert!(
        run.stdout.contains("and the end"),
        "{}{}",
        run.stdout,
        run.stderr
    );
    assert!(!run.stdout.contains("more characters"), "{}", run.stdout);
}

#[test]
fn help_is_grouped_and_short() {
    let help = sandbox::run(&["gateway", "--help"], b"").stdout;
    for heading in [
        "Server:",
        "Clients:",
        "Inbox and answers:",
        "Limits:",
        "Record:",
    ] {
        assert!(
            help.contains(&format!("\n{heading}\n")),
            "{heading}\n{help}"
        );
    }
    let help = sandbox::run(&["audit", "--help"], b"").stdout;
    assert!(!help.contains("delivery-failed"), "{help}");
    let unknown = sandbox::run(&["audit", "--event", "list"], b"").stderr;
    assert!(unknown.contains("delivery-failed"), "{unknown}");
}
