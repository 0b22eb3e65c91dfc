//! The entries that come with the program, and files of operators.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use mcp_elicit_clients::{
    Dialog, EmptyForm, EntrySource, How, ObservedClient, Profile, ProfileEntry, Profiles,
    ProgramAct, Shows,
};
use mcp_elicit_core::form::{FieldKind, Form};
use mcp_elicit_core::wire::Capability;

fn seen(name: &str) -> ObservedClient<'_> {
    ObservedClient {
        name,
        version: "1.0",
        declares: Capability::BOTH,
        declares_apps: false,
        env: None,
        call_meta: None,
    }
}

fn of(name: &str) -> Profile {
    Profiles::default().profile(&seen(name))
}

/// Returns the number of days of a date, in a calendar of months of 31 days: differences are never too small.
fn days(date: &str) -> i64 {
    let parts: Vec<i64> = date.split('-').map(|part| part.parse().unwrap()).collect();
    parts[0] * 372 + parts[1] * 31 + parts[2]
}

/// The newest evidence is the day on which somebody looked last: what is much older than that was overlooked then.
#[test]
fn every_entry_has_evidence_that_is_not_old() {
    let profiles = Profiles::default();
    assert!(profiles.entries().len() >= 12);
    let all = || profiles.entries().iter().flat_map(ProfileEntry::evidence);
    let newest = all().map(|evidence| days(&evidence.on)).max().unwrap();
    for entry in profiles.entries() {
        assert_eq!(entry.source(), &EntrySource::BuiltIn);
        let own = entry
            .evidence()
            .iter()
            .map(|evidence| days(&evidence.on))
            .max();
        let own = own.expect("evidence");
        assert!(newest - own <= 400, "{:?} is old", entry.id());
        for evidence in entry.evidence() {
            let is_sourced = evidence.how == How::Seen || evidence.place.is_some();
            assert!(is_sourced, "{:?}: where was it read?", entry.id());
            let is_versioned = evidence.how == How::Read || evidence.version.is_some();
            assert!(is_versioned, "{:?}: which version was seen?", entry.id());
        }
    }
}

#[test]
fn an_unknown_client_is_taken_at_its_word() {
    assert_eq!(of("some-client"), Profile::default());
    assert_eq!(of(""), Profile::default());
    assert_eq!(of("claude-code-fork"), Profile::default());
}

#[test]
fn a_run_without_a_person_is_recognized_by_the_environment_or_the_call() {
    let profiles = Profiles::default();
    for (entrypoint, dialog) in [
        (Some("sdk-cli"), Dialog::None),
        (Some("sdk-ts"), Dialog::None),
        (Some("cli"), Dialog::Person),
        (None, Dialog::Person),
    ] {
        let env = |name: &str| {
            let is_it = name == "CLAUDE_CODE_ENTRYPOINT";
            entrypoint.filter(|_| is_it).map(str::to_owned)
        };
        let client = ObservedClient {
            env: Some(&env),
            ..seen("claude-code")
        };
        let profile = profiles.profile(&client);
        assert_eq!(profile.dialog, dialog, "{entrypoint:?}");
        assert_eq!(profile.doubt, Some(Duration::from_millis(150)));
        // Another client that has inherited the variable is not meant.
        let other = ObservedClient {
            env: Some(&env),
            ..seen("other")
        };
        assert_eq!(profiles.profile(&other).dialog, Dialog::Person);
    }
    for (meta, dialog) in [
        (
            r#"{"x-codex-turn-metadata":{"turn_trigger":"exec"}}"#,
            Dialog::None,
        ),
        (
            r#"{"x-codex-turn-metadata":{"turn_trigger":"user"}}"#,
            Dialog::Person,
        ),
        (r#"{"progressToken":1}"#, Dialog::Person),
    ] {
        let client = ObservedClient {
            call_meta: Some(meta),
            ..seen("codex-mcp-client")
        };
        assert_eq!(profiles.profile(&client).dialog, dialog, "{meta}");
    }
}

#[test]
fn a_form_that_the_client_cannot_show_is_seen_as_a_whole() {
    let codex = of("codex-mcp-client");
    let form = |properties: &str| {
        let schema = format!(r#"{{"type":"object","properties":{properties}}}"#);
        Form::parse(&schema).unwrap()
    };
    let text = form(r#"{"a":{"type":"string"},"b":{"type":"boolean"}}"#);
    let number = form(r#"{"a":{"type":"string"},"n":{"type":"integer"}}"#);
    let date = form(r#"{"d":{"type":"string","format":"date"}}"#);
    let empty = form("{}");
    assert!(codex.shows_form(&text));
    for other in [&number, &date, &empty] {
        assert!(!codex.shows_form(other));
    }
    assert_eq!(codex.url, Shows::No);
    assert!(!codex.kinds.contains(FieldKind::Choices));
}

#[test]
fn what_a_client_was_seen_to_answer_can_be_played() {
    let profiles = Profiles::default();
    let empty = Form::parse(r#"{"type":"object","properties":{}}"#).unwrap();
    let number = Form::parse(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#).unwrap();
    let text = Form::parse(r#"{"type":"object","properties":{"n":{"type":"string"}}}"#).unwrap();
    let (plays, profile, acts) = profiles.played("codex").unwrap();
    assert_eq!(plays.name, "codex-mcp-client");
    assert_eq!(
        acts.to(Some(&number), &profile),
        Some(ProgramAct::AcceptEmpty)
    );
    assert_eq!(acts.to(Some(&text), &profile), None, "a person is asked");
    let (plays, profile, acts) = profiles.played("codex-exec").unwrap();
    assert!(!plays.call_meta.is_empty());
    assert_eq!(
        acts.to(Some(&empty), &profile),
        Some(ProgramAct::AcceptEmpty)
    );
    assert_eq!(acts.to(Some(&text), &profile), Some(ProgramAct::Decline));
    assert_eq!(acts.to(None, &profile), Some(ProgramAct::Decline));
    for none in ["opencode", "gemini"] {
        let (_, profile, acts) = profiles.played(none).unwrap();
        assert_eq!(
            acts.to(Some(&text), &profile),
            Some(ProgramAct::NoMethod),
            "{none}"
        );
        assert_eq!(
            acts.to(Some(&empty), &profile),
            Some(ProgramAct::NoMethod),
            "{none}"
        );
    }
    assert!(profiles.played("nobody").is_none());
    assert!(profiles.playable().contains(&"claude-code-print"));
}

const OWN: &str = r#"
[[client]]
match = { name = "my-*", version = ">=2" }
dialog = "none"
doubt = "2s"
evidence = [{ on = 2026-11-01, version = "2.0", how = "seen", what = "runs in CI" }]

[[client]]
match = { name = "my-*" }
doubt = "off"
empty-form = "inbox"
evidence = [{ on = 2026-11-01, version = "2.0", how = "seen", what = "waits" }]
"#;

#[test]
fn later_entries_and_files_win_key_by_key() {
    let mut profiles = Profiles::default();
    profiles.set_doubt(Some(Duration::from_millis(90)));
    profiles.add_file(Path::new("own.toml"), OWN).unwrap();
    let client = ObservedClient {
        version: "2.4.1",
        ..seen("my-agent")
    };
    let profile = profiles.profile(&client);
    assert_eq!((profile.dialog, profile.doubt), (Dialog::None, None));
    assert_eq!(profile.empty_form, EmptyForm::Inbox);
    let found = profiles.recognize(&client);
    assert_eq!(found.entries.len(), 2);
    assert_eq!(found.entries[0].line(), 2);
    let old = ObservedClient {
        version: "1.9",
        ..seen("my-agent")
    };
    let conditions = found.entries[0].conditions(&old);
    let holds: BTreeMap<_, _> = conditions
        .iter()
        .map(|one| (one.says.as_str(), one.holds))
        .collect();
    assert_eq!(
        holds,
        BTreeMap::from([("name my-*", true), ("version >=2", false)])
    );
    assert_eq!(profiles.profile(&old).dialog, Dialog::Person);
    // The operator's own duration counts for others, and not for those whose entry has one.
    assert_eq!(
        profiles.profile(&seen("x")).doubt,
        Some(Duration::from_millis(90))
    );
    assert_eq!(
        profiles.profile(&seen("claude-code")).doubt,
        Some(Duration::from_millis(150))
    );
    // A gateway's file has them beside its other tables.
    let table = format!(
        "listen = \"127.0.0.1:0\"\n{}",
        OWN.replace("[[client]]", "[[clients]]")
    );
    let mut profiles = Profiles::default();
    profiles
        .add_tables(Path::new("gateway.toml"), &table)
        .unwrap();
    assert_eq!(profiles.profile(&client).dialog, Dialog::None);
}

#[test]
fn each_file_has_one_spelling_and_the_other_is_not_passed_over() {
    let plural = OWN.replace("[[client]]", "[[clients]]");
    let both = format!("{OWN}{plural}");
    for (text, is_gateways, spelling) in [
        (OWN, true, "[[clients]]"),
        (&both, true, "[[clients]]"),
        (&plural, false, "[[client]]"),
        (&both, false, "[[client]]"),
    ] {
        let mut profiles = Profiles::default();
        let path = Path::new("own.toml");
        let read = if is_gateways {
            profiles.add_tables(path, text)
        } else {
            profiles.add_file(path, text)
        };
        let error = read.unwrap_err().to_string();
        assert!(
            error.contains("did you mean") && error.contains(spelling),
            "{error}"
        );
    }
}

#[test]
fn a_mistake_is_reported_with_its_place_and_what_to_write() {
    let evidence = r#"evidence = [{ on = 2026-11-01, how = "seen", what = "x" }]"#;
    for (text, line, column, words) in [
        (
            "[[client]]\nmatch = {}\nevidence = []",
            2,
            9,
            "needs a condition",
        ),
        (
            "[[client]]\nmatch = { name = \"a\" }",
            1,
            1,
            "no `evidence`",
        ),
        (
            &*format!(
                "[[client]]\nmatch = {{ name = \"a\" }}\nkinds = [\"text\", \"list\"]\n{evidence}"
            ),
            3,
            18,
            "not a kind of field",
        ),
        (
            &*format!("[[client]]\nmatch = {{ name = \"a\" }}\ndoubt = \"150\"\n{evidence}"),
            3,
            9,
            "not a duration",
        ),
        (
            &*format!("[[client]]\nmatch = {{ name = \"a\" }}\ndialog = \"robot\"\n{evidence}"),
            3,
            10,
            "robot",
        ),
        (
            &*format!("[[client]]\nmatch = {{ name = \"a\", version = \"^2\" }}\n{evidence}"),
            2,
            9,
            "write a range",
        ),
        (
            "[[client]]\nmatch = { name = \"a\" }\nevidence = [{ on = 10:00:00, how = \"seen\", what = \"x\" }]",
            3,
            13,
            "is a date",
        ),
        (
            &*format!("[[client]]\nmatch = {{ names = \"a\" }}\n{evidence}"),
            2,
            11,
            "names",
        ),
        ("[[client]\n", 1, 10, ""),
    ] {
        let error = Profiles::default()
            .add_file(Path::new("x.toml"), text)
            .expect_err(text);
        assert_eq!(
            (error.line(), error.column()),
            (line, column),
            "{text}: {error}"
        );
        assert!(error.message().contains(words), "{text}: {error}");
    }
}
