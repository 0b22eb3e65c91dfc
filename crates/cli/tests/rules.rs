//! `mcp-elicit rules` as a whole, as a user runs it.
#![cfg(feature = "full")]

mod sandbox;

use sandbox::{Files, run};
use serde_json::{Value, json};

const RULES: &str = r#"[people]
ada = { mail = "ada@example.com", local-user = "ada-on-this-machine" }
[people.bob]
mail = "bob@example.com"
[people.cy]
mail = "cy@example.com"
[groups]
ops = ["ada", "bob", "cy"]
leads = { claim = "gateway-leads" }
[[rules]]
name = "no-foreign-links"
when = 'question.mode == "url" && !question.host.endsWith(".example.com")'
refuse = "links outside example.com"
[[rules]]
name = "deploy-production"
server = "deploy"
tool = ["deploy*"]
when = 'arguments.environment == "production"'
ask = { group = "ops", need = 2, not-caller = true }
deadline = "30m"
remind = ["10m"]
escalate = [{ after = "15m", to = { group = "leads" } }]
[[rules]]
name = "deletions"
tool = "delete_*"
approve = true
ask = { group = "ops", not-caller = true }
edit = ["/path"]
good-for = "10m"
"#;

fn simulate(call: &Value) -> Value {
    let files = Files::new(&[("rules.toml", RULES.as_bytes())]);
    let path = files.path("rules.toml");
    let ran = run(
        &["rules", "simulate", &path, "--json", "--call", "-"],
        call.to_string().as_bytes(),
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&ran.stdout).expect("one line of JSON")
}

#[test]
fn a_person_is_shown_each_mistake_at_its_place() {
    let wrong = "[[rules]]\nallow = true\nwhen = 'caller.mial == \"ada@example.com\"'\n[[rules]]\nask = { group = \"ops\" }\n";
    let files = Files::new(&[("rules.toml", wrong.as_bytes())]);
    let path = files.path("rules.toml");
    let ran = run(&["rules", "check", &path], b"");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    let expected = format!(
        r#"error[unknown-member]: `caller` has no member `mial` (rule `rule-1`)
 --> {path}:3:16
  |
3 | when = 'caller.mial == "ada@example.com"'
  |                ^^^^
  |
  = help: did you mean `mail`?

error[no-addressee]: no group is named `ops` (rule `rule-2`)
 --> {path}:5:17
  |
5 | ask = {{ group = "ops" }}
  |                 ^^^^^
  |
  = help: add it under [groups]

2 rules: 2 mistakes, 0 warnings
"#
    );
    assert_eq!(ran.stderr, expected);
}

#[test]
fn a_program_gets_the_mistakes_and_warnings_as_json() {
    let ran = run(&["rules", "check", "-", "--json"], RULES.as_bytes());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(
        (&report["ok"], &report["rules"], &report["defects"]),
        (&json!(true), &json!(3), &json!([]))
    );
    assert_eq!(report["warnings"][0]["code"], "absent-argument");
    let ran = run(
        &["rules", "check", "-", "--json"],
        b"[[rules]]\nclient-secret = \"hunter2\"\n",
    );
    assert_eq!(ran.code, Some(1));
    assert!(!ran.stdout.contains("hunter2"), "{}", ran.stdout);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let first = &report["defects"][0];
    assert_eq!(
        (&first["code"], &first["line"], &first["column"]),
        (&json!("no-decision"), &json!(1), &json!(1))
    );
    let ran = run(&["rules", "check", "/does/not/exist.toml"], b"");
    assert_eq!(ran.code, Some(2));
}

#[test]
fn a_question_of_a_call_is_planned() {
    let call = json!({"server": "deploy", "tool": "deploy_app", "arguments": {"environment": "production"}, "caller": {"subject": "s1", "groups": []}});
    let expected = json!({
        "rule": "deploy-production", "line": 14, "ask": {"group": "ops", "need": 2, "not-caller": true}, "approve": false, "deadline": "30m",
        "reasons": {"caller": true, "audit": false}, "keep-for": null, "remind": ["10m"], "escalate": [{"after": "15m", "to": {"group": "leads"}}], "on-timeout": "error", "refused": null,
        "phase": "asking", "needs": ["question"],
        "skipped": [{"rule": "no-foreign-links", "line": 10, "why": "needs-question"}], "errors": [],
    });
    assert_eq!(simulate(&call), expected);
}

#[test]
fn a_call_that_needs_approval_says_so() {
    let decision = simulate(&json!({"server": "files", "tool": "delete_all"}));
    let shown = [
        "rule", "approve", "ask", "edit", "good-for", "deadline", "phase",
    ]
    .map(|key| decision[key].clone());
    let expected = [
        json!("deletions"),
        json!(true),
        json!({"group": "ops", "not-caller": true}),
        json!(["/path"]),
        json!("10m"),
        json!("24h"),
        json!("admission"),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn no_rule_leaves_a_question_to_its_caller_and_a_given_question_decides() {
    let decision =
        simulate(&json!({"server": "crm", "tool": "find", "question": {"mode": "form"}}));
    assert_eq!(
        [
            &decision["rule"],
            &decision["ask"],
            &decision["deadline"],
            &decision["needs"]
        ],
        [&Value::Null, &json!("caller"), &json!("24h"), &json!([])]
    );
    let decision = simulate(
        &json!({"server": "crm", "tool": "find", "question": {"mode": "url", "host": "evil.com"}}),
    );
    assert_eq!(
        [&decision["rule"], &decision["refused"], &decision["ask"]],
        [
            &json!("no-foreign-links"),
            &json!("links outside example.com"),
            &Value::Null
        ]
    );
}

#[test]
fn an_error_in_a_condition_shows_and_restricts() {
    let decision = simulate(&json!({"server": "deploy", "tool": "deploy_app", "question": {}}));
    assert_eq!(decision["rule"], "deploy-production");
    let expected = json!([{"rule": "deploy-production", "line": 14, "message": "`environment` is absent", "matched": true}]);
    assert_eq!(decision["errors"], expected);
}

#[test]
fn a_call_that_cannot_be_read_is_refused() {
    let files = Files::new(&[
        ("rules.toml", RULES.as_bytes()),
        ("wrong.toml", b"[[rules]]\n"),
    ]);
    let (path, wrong) = (files.path("rules.toml"), files.path("wrong.toml"));
    for (file, call, about) in [
        (&path, "{", "the call cannot be read"),
        (&path, "{}", "server"),
        (&path, r#"{"server":"a","tool":"b","prompt":"c"}"#, "one of"),
        (&path, r#"{"server":"a","caller":{"mial":"x"}}"#, "mial"),
        (&path, r#"{"server":"a","server":"b"}"#, "duplicate"),
        (&path, r#"["a","b"]"#, "the call is a list"),
        (
            &path,
            r#"{"server":"a","caller":["x"]}"#,
            "`caller` is a list",
        ),
        (
            &path,
            r#"{"server":"a","question":{"fields":{"to":["string"]}}}"#,
            "`to` is a list",
        ),
        (
            &path,
            r#"{"server":"a","question":{"mode":"URL"}}"#,
            "`URL` is not a mode",
        ),
        (
            &path,
            r#"{"server":"a","question":{"fields":{"to":{"kind":"text"}}}}"#,
            "`text` is not a kind",
        ),
        (
            &path,
            r#"{"server":"a","caller":{"kind":"key","person":"dora"}}"#,
            "no person is named `dora`",
        ),
        (
            &path,
            r#"{"server":"a","caller":{"person":"ada"}}"#,
            "only a key has an owner",
        ),
        (&wrong, r#"{"server":"a"}"#, "1 mistake"),
    ] {
        let ran = run(&["rules", "simulate", file, "--call", call], b"");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{call}");
        assert!(ran.stderr.contains(about), "{call}: {}", ran.stderr);
    }
}

#[test]
fn a_person_reads_what_is_decided() {
    let files = Files::new(&[("rules.toml", RULES.as_bytes())]);
    let path = files.path("rules.toml");
    let ran = run(
        &[
            "rules",
            "simulate",
            &path,
            "--call",
            r#"{"server":"files","tool":"delete_all"}"#,
        ],
        b"",
    );
    let expected = "rule `deletions` (line 23) asks for approval before the call\n  asked: group:ops\n  the caller cannot answer\n  open for 24h\n  approvers may change /path\n  an approval is good for 10m\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), expected));
}

#[test]
fn a_call_that_no_page_shows_in_full_is_refused_as_in_the_gateway() {
    let delete = |characters: usize| {
        let path = "x".repeat(characters);
        simulate(&json!({"server": "files", "tool": "delete_all", "arguments": {"path": path}}))
    };
    assert_eq!(delete(1_000)["approve"], true);
    let longer = delete(1_048_577);
    assert_eq!(longer["approve"], false);
    assert_eq!(
        longer["refused"],
        "people cannot be shown all of it, since its arguments have more than 1048576 characters"
    );
}

#[test]
fn a_caller_who_may_be_any_of_those_asked_is_refused_as_in_the_gateway() {
    let decided = |caller: Value| {
        let call = json!({"server": "files", "tool": "delete_all", "caller": caller});
        let decision = simulate(&call);
        let refused = decision["refused"].as_str().map(str::to_owned);
        assert_eq!(decision["approve"], refused.is_none(), "{decision}");
        refused
    };
    for unknown in [
        json!({"kind": "key"}),
        json!({"kind": "local", "subject": "root"}),
    ] {
        let refused = decided(unknown.clone()).expect("a refusal");
        assert!(
            refused.contains("not known which person calls"),
            "{unknown}: {refused}"
        );
    }
    for known in [
        json!({"kind": "key", "person": "ada"}),
        json!({"kind": "key", "person": ""}),
        json!({"kind": "local", "subject": "ada-on-this-machine"}),
        json!({"kind": "subject", "subject": "somebody"}),
        json!({}),
    ] {
        assert_eq!(decided(known.clone()), None, "{known}");
    }
}

/// People of one issuer, and rules about one of them.
const LOGIN: &str = r#"
[people.ada]
subject = "s1"
[people.bob]
subject = "s2"
[login]
mode = "oidc"
issuer = "https://id.example.com"
client-id = "x"
[roles]
admin = ["person:ada"]
[[rules]]
name = "adas"
when = 'caller.person == "ada"'
allow = true
[[rules]]
name = "rest"
approve = true
ask = { any = ["person:ada", "person:bob"], not-caller = true }
"#;

#[test]
fn a_subject_of_another_issuer_than_that_of_the_login_is_nobody_of_the_file() {
    let files = Files::new(&[("rules.toml", LOGIN.as_bytes())]);
    let path = files.path("rules.toml");
    let decided = |caller: Value| {
        let call = json!({"server": "a", "tool": "b", "caller": caller}).to_string();
        let words = ["rules", "simulate", &path, "--json", "--call", &call];
        let ran = run(&words, b"");
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let decision: Value = serde_json::from_str(&ran.stdout).unwrap();
        let refused = decision["refused"].is_string();
        (decision["allowed-by"] == "adas", refused)
    };
    let of = |issuer: &str, subject: &str| json!({"issuer": issuer, "subject": subject});
    assert_eq!(decided(of("https://id.example.com", "s1")), (true, false));
    assert_eq!(decided(of("", "s1")), (true, false));
    assert_eq!(decided(of("https://id.example.com", "s9")), (false, false));
    // This caller may be any of the people asked.
    assert_eq!(decided(of("https://other.example", "s1")), (false, true));
    // The subject of a key is its id.
    let key = json!({"kind": "key", "subject": "s1", "person": ""});
    assert_eq!(decided(key), (false, false));
}

#[test]
fn a_secret_in_the_file_is_not_shown_with_its_mistake() {
    for line in [
        r#"client-secret = "hunter2""#,
        r"client-secret = 'hunter2' # here",
        r#"client-secret = """hunter2"#,
        r#"deep = { client-secret = "hun\"ter2", modee = 1, api-key = "hunter2" }"#,
    ] {
        let end = if line.contains("\"\"\"") {
            "\"\"\"\n"
        } else {
            ""
        };
        let file = format!("[login]\nmode = \"oidc\"\n{line}\n{end}[[rules]]\n{line}\n{end}");
        let ran = run(&["rules", "check", "-"], file.as_bytes());
        assert_eq!(ran.code, Some(1), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains("literal-secret"), "{}", ran.stderr);
        assert!(ran.stderr.contains("secret = \"...\""), "{}", ran.stderr);
        assert!(!ran.stderr.contains("ter2"), "{line}: {}", ran.stderr);
    }
}

#[test]
fn arguments_that_are_null_are_a_value_as_in_the_gateway() {
    let call = json!({"server": "deploy", "tool": "deploy_app", "question": {}, "arguments": null});
    let decision = simulate(&call);
    assert_eq!(decision["rule"], "deploy-production", "{decision}");
    assert_eq!(decision["errors"][0]["matched"], true, "{decision}");
}

#[test]
fn a_call_that_no_gateway_takes_is_an_error() {
    let files = Files::new(&[("rules.toml", RULES.as_bytes())]);
    let path = files.path("rules.toml");
    for arguments in [r#"{"path":"a","path":"b"}"#, r#"{"n":1e999}"#] {
        let call = format!(r#"{{"server":"files","tool":"delete_all","arguments":{arguments}}}"#);
        let words = ["rules", "simulate", &path, "--json", "--call", &call];
        let ran = run(&words, b"");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{call}");
        let why = "a gateway refuses this call under any rules";
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
}

#[test]
fn the_tools_of_a_server_are_compared_with_the_rules() {
    let server = env!("CARGO_BIN_EXE_mcp-elicit");
    // `deletions` names no server: its tools may be another server's.
    let unused =
        "[[rules]]\nname = \"typo\"\nserver = \"dep*\"\ntool = \"delpoy\"\nask = \"caller\"\n";
    let rules = RULES.replace("deploy*", "depl*y") + unused;
    let files = Files::new(&[("rules.toml", rules.as_bytes())]);
    let path = files.path("rules.toml");
    let ran = run(
        &[
            "rules",
            "coverage",
            &path,
            "--json",
            "--name",
            "deploy",
            "--",
            server,
            "demo-server",
        ],
        b"",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(report["server"], "deploy");
    let tools = report["tools"].as_array().expect("a list");
    let covered = |name: &str| {
        tools
            .iter()
            .find(|tool| tool["tool"] == name)
            .map(|tool| tool["covered"].clone())
    };
    assert_eq!(covered("deploy"), Some(json!("conditional")));
    assert_eq!(report["unused"], json!(["typo"]));
    let plain = run(
        &[
            "rules",
            "coverage",
            &path,
            "--name",
            "deploy",
            "--",
            server,
            "demo-server",
        ],
        b"",
    );
    assert!(
        plain
            .stderr
            .contains("rule `typo` is for this server and matches none of its tools"),
        "{}",
        plain.stderr
    );
    assert!(!plain.stderr.contains("deletions"), "{}", plain.stderr);
    // The name that a server reports often differs from the name in the file.
    let named = format!("{rules}[servers.deploy]\ncommand = [\"deploy\"]\n");
    let words = ["rules", "coverage", "-", "--", server, "demo-server"];
    let unnamed = run(&words, named.as_bytes());
    assert!(
        unnamed.stderr.contains("the file has no server `")
            && unnamed.stderr.contains("it has deploy;")
            && unnamed.stderr.contains("`--name NAME`"),
        "{}",
        unnamed.stderr
    );
    // A rule that only refuses some questions decides about no call.
    let filters = b"[[rules]]\nname = \"links\"\nrefuse-modes = [\"url\"]\n[[rules]]\nname = \"hosts\"\nwhen = 'question.host == \"a\"'\nrefuse = \"no\"\n[[rules]]\nname = \"asked\"\ntool = \"deploy\"\nask = \"caller\"\ndeadline = \"1h\"\n";
    let words = ["rules", "coverage", "-", "--name", "deploy"];
    let behind = ["--", server, "demo-server"];
    let ran = run(&[&words[..], &["--json"], &behind].concat(), filters);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let tools = report["tools"].as_array().expect("a list");
    assert!(tools.len() > 1);
    for tool in tools {
        let is_asked = tool["tool"] == "deploy";
        assert_eq!(tool["covered"], if is_asked { "always" } else { "never" });
        let named = |list: &str| -> Vec<&str> {
            let rules = tool[list].as_array().expect("a list").iter();
            rules.map(|rule| rule["rule"].as_str().unwrap()).collect()
        };
        assert_eq!(
            named("rules"),
            if is_asked { vec!["asked"] } else { vec![] }
        );
        assert_eq!(named("questions"), ["links", "hosts"]);
    }
    assert_eq!(report["unused"], json!([]));
    let plain = run(&[&words[..], &behind].concat(), filters);
    assert!(
        plain.stdout.contains("asked; its questions: links, hosts"),
        "{}",
        plain.stdout
    );
    let gone = run(&["rules", "coverage", &path, "--", "/does/not/exist"], b"");
    assert_eq!(gone.code, Some(3), "{}", gone.stderr);
    assert!(
        gone.stderr.contains("next: install the program"),
        "{}",
        gone.stderr
    );
}

#[test]
fn every_file_in_the_guide_passes_the_check() {
    let guide = include_str!("../../../docs/rules.md");
    let blocks: Vec<&str> = guide
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .collect();
    assert_eq!(blocks.len(), 6);
    for block in blocks {
        let ran = run(&["rules", "check", "-", "--json"], block.as_bytes());
        let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!(
            (&report["ok"], &report["defects"], &report["warnings"]),
            (&json!(true), &json!([]), &json!([])),
            "{block}"
        );
    }
    // The output must match the guide.
    let first = guide
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("a block");
    let call =
        r#"{"server":"deploy","tool":"deploy_app","arguments":{"environment":"production"}}"#;
    let files = Files::new(&[("rules.toml", first.as_bytes())]);
    let ran = run(
        &[
            "rules",
            "simulate",
            &files.path("rules.toml"),
            "--call",
            call,
        ],
        b"",
    );
    assert!(guide.contains(&ran.stdout), "{}", ran.stdout);
    let help = run(&["rules", "--help"], b"");
    let example: String = help
        .stdout
        .lines()
        .skip_while(|line| *line != "Example file:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n");
    let ran = run(&["rules", "check", "-"], example.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(help.stdout.contains("applies them"), "{}", help.stdout);
}

#[test]
fn a_server_that_the_file_does_not_have_is_told() {
    let servers = "[servers.backups]\ncommand = [\"a\"]\n[servers.deploy]\ncommand = [\"b\"]\n";
    for (file, is_told) in [
        (format!("{RULES}{servers}"), true),
        (RULES.to_owned(), false),
    ] {
        let files = Files::new(&[("gateway.toml", file.as_bytes())]);
        let path = files.path("gateway.toml");
        let call = r#"{"server":"nope","tool":"deploy_app"}"#;
        let ran = run(&["rules", "simulate", &path, "--call", call], b"");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let warning = "the file has no server `nope`; it has backups, deploy";
        assert_eq!(ran.stderr.contains(warning), is_told, "{}", ran.stderr);
    }
    let files = Files::new(&[("rules.toml", RULES.as_bytes())]);
    let ran = run(&["rules", "simulate", &files.path("rules.toml")], b"");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--audit"), "{}", ran.stderr);
}

/// The settings of a gateway with several servers and rules.
const GATEWAY: &str = "listen = \"127.0.0.1:0\"\ninbox = \"127.0.0.1:0\"\ntrusted-proxies = [\"127.0.0.1\"]\n[auth]\nmode = \"keys\"\n[login]\nmode = \"proxy\"\n[people.ada]\nsubject = \"ada\"\n[roles]\nadmin = [\"person:ada\"]\n";

/// The servers of a gateway's file need no command line, and a tool without a rule fails on request.
#[test]
fn coverage_lists_every_server_of_the_file_and_fails_if_a_tool_has_no_rule() {
    let server = env!("CARGO_BIN_EXE_mcp-elicit");
    let servers = format!(
        "[servers.deploy]\ncommand = [\"{server}\", \"demo-server\"]\n[servers.backups]\ncommand = [\"{server}\", \"demo-server\", \"--backups\"]\n"
    );
    let some = format!(
        "{GATEWAY}[[rules]]\nname = \"a\"\nserver = \"backups\"\nask = \"caller\"\napprove = true\n{servers}"
    );
    let all =
        format!("{GATEWAY}[[rules]]\nname = \"a\"\nask = \"caller\"\napprove = true\n{servers}");
    let files = Files::new(&[("some.toml", some.as_bytes()), ("all.toml", all.as_bytes())]);
    let coverage = |file: &str, more: &[&str]| {
        let path = files.path(file);
        run(&[&["rules", "coverage", &path], more].concat(), b"")
    };
    let listed = coverage("some.toml", &["--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let lines: Vec<Value> = listed
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let of = |name: &str| {
        let found = lines.iter().find(|line| line["server"] == name);
        let tools = found.expect("a server")["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["covered"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(lines.len(), 2);
    assert!(
        of("backups").iter().all(|covered| covered == "always"),
        "{lines:?}"
    );
    assert!(
        of("deploy").iter().all(|covered| covered == "never"),
        "{lines:?}"
    );
    let failing = coverage("some.toml", &["--require"]);
    assert_eq!(failing.code, Some(1), "{}", failing.stderr);
    assert!(
        failing.stderr.contains("have no rule"),
        "{}",
        failing.stderr
    );
    for (file, more) in [
        ("all.toml", &["--require"][..]),
        ("some.toml", &["--require", "--name", "backups"]),
    ] {
        let good = coverage(file, more);
        assert_eq!(good.code, Some(0), "{file}: {}", good.stderr);
    }
    let other = coverage("some.toml", &["--name", "crm"]);
    assert_eq!(other.code, Some(2), "{}", other.stderr);
    assert!(other.stderr.contains("it has"), "{}", other.stderr);
}
