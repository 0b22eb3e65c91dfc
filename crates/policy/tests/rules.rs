//! Rules files: their errors and their decisions.
#![cfg(feature = "cel")]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use mcp_elicit_core::wire::CallKind;
use mcp_elicit_policy::rules::{Admit, PlannedQuestion};
use mcp_elicit_policy::{Caller, Facts, KnownCall, Now, QuestionFacts, Rules};

const PEOPLE: &str = r#"
[people.ada]
mail = "ada@example.com"
[people.bob]
mail = "bob@example.com"
[people.cy]
mail = "cy@example.com"
[groups]
ops = ["ada", "bob"]
all = ["cy", "group:ops"]
leads = { claim = "gateway-leads" }
"#;

/// Returns the errors of a file that begins with people: code, line after them, column.
fn defects(rest: &str) -> Vec<(&'static str, usize, usize)> {
    let before = PEOPLE.lines().count();
    let loaded = Rules::load(&format!("{PEOPLE}{rest}"));
    loaded
        .defects
        .iter()
        .map(|defect| (defect.code, defect.line - before, defect.column))
        .collect()
}

fn warnings(rest: &str) -> Vec<(&'static str, usize, usize)> {
    let before = PEOPLE.lines().count();
    let loaded = Rules::load(&format!("{PEOPLE}{rest}"));
    assert_eq!(loaded.defects, [], "{rest}");
    loaded
        .warnings
        .iter()
        .map(|defect| (defect.code, defect.line - before, defect.column))
        .collect()
}

#[test]
fn a_mail_address_is_of_one_person_with_and_without_the_dot_of_the_root() {
    let file =
        "[people.ada]\nmail = \"ada@example.com\"\n[people.bob]\nmail = \"Bob@example.com.\"\n";
    let rules = Rules::parse(file).unwrap();
    for (mail, person) in [
        ("ada@example.com.", Some("ada")),
        ("ADA@Example.com.", Some("ada")),
        ("bob@example.com", Some("bob")),
        ("bob@example.com.", Some("bob")),
        ("ada@example.com.evil.test.", None),
        (".", None),
    ] {
        assert_eq!(rules.people().find("", mail), person, "{mail}");
    }
}

#[test]
fn a_pattern_that_matches_nothing_is_warned_of_at_its_place() {
    for (key, pattern, is_warned) in [
        ("tool", "deploy*", false),
        ("tool", "ns:deploy", false),
        ("tool", "deploy ", true),
        ("tool", "de\tploy", true),
        ("tool", "tool:deploy", true),
        ("tool", "prompts:*", true),
        ("tool", "Resource:file:///a", true),
        ("tool", "prompt:", true),
        ("tool", "prompt:*", false),
        ("tool", "resource:", true),
        ("tool", "resource:*", false),
        ("tool", "resource:/etc/*", true),
        ("tool", "resource:etc", true),
        ("tool", "resource:*/etc/passwd", false),
        ("tool", "resource:file:///etc/*", false),
        ("tool", "resource:FILE:///etc/*", false),
        ("tool", "resource:file:///a b", true),
        ("tool", "resource:urn:x:?", false),
        ("server", "deploy-*", false),
        ("server", "dépl?y_1", false),
        ("server", "deploy/*", true),
        ("server", "my server", true),
    ] {
        let rest = format!(
            "[[rules]]\n{key} = {}\nask = \"caller\"\n",
            toml_text(pattern)
        );
        let expected: &[_] = &[("unmatched-pattern", 2, key.len() + 4)];
        let found = warnings(&rest);
        assert_eq!(
            found,
            &expected[..usize::from(is_warned)],
            "{key} {pattern:?}"
        );
    }
}

fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\t', "\\t"))
}

#[test]
fn each_mistake_has_its_line_and_column() {
    for (rest, expected) in [
        (
            "[[rules]]\nask = \"caller\"\nserverr = \"x\"\n",
            ("unknown-key", 3, 1),
        ),
        ("[lisen]\n", ("unknown-key", 1, 2)),
        (
            "[channels.mail]\npassword = \"hunter2\"\n",
            ("literal-secret", 2, 12),
        ),
        (
            "[people.dot]\nmail = \"ADA@example.com\"\n",
            ("same-person", 2, 8),
        ),
        (
            "[people.dot]\nmail = \"ada@example.com.\"\n",
            ("same-person", 2, 8),
        ),
        ("[people.dot]\nmail = \"nobody\"\n", ("invalid-mail", 2, 8)),
        ("[people.dot]\n", ("unknown-person", 1, 1)),
        (
            "[roles]\nadmin = [\"group:opps\"]\n",
            ("no-addressee", 2, 10),
        ),
        ("[[rules]]\n", ("no-decision", 1, 1)),
        (
            "[[rules]]\nallow = true\nask = \"caller\"\n",
            ("two-decisions", 1, 1),
        ),
        (
            "[[rules]]\nserver = []\nallow = true\n",
            ("never-matches", 2, 10),
        ),
        (
            "[[rules]]\nwhen = 'false'\nallow = true\n",
            ("never-matches", 2, 8),
        ),
        (
            "[[rules]]\nwhen = '1 == 2'\nallow = true\n",
            ("never-matches", 2, 8),
        ),
        (
            "[[rules]]\nask = { group = \"opps\" }\n",
            ("no-addressee", 2, 17),
        ),
        (
            "[[rules]]\nask = { group = \"ops\", need = 3 }\n",
            ("no-addressee", 2, 24),
        ),
        (
            "[[rules]]\nask = { group = \"ops\", need = 2, not-caller = true }\n",
            ("no-addressee", 2, 24),
        ),
        ("[[rules]]\nask = { any = [] }\n", ("no-addressee", 2, 7)),
        ("[[rules]]\nask = { }\n", ("no-addressee", 2, 7)),
        (
            "[[rules]]\nask = { group = \"ops\", need = 0 }\n",
            ("out-of-range", 2, 31),
        ),
        (
            "[[rules]]\nask = \"caller\"\nedit = [\"/a\"]\n",
            ("no-effect", 3, 1),
        ),
        (
            "[[rules]]\nask = \"caller\"\ngood-for = \"1m\"\n",
            ("no-effect", 3, 1),
        ),
        (
            "[[rules]]\nask = \"caller\"\non-timeout = \"hand-back\"\n",
            ("no-effect", 3, 1),
        ),
        ("[[rules]]\napprove = true\n", ("no-addressee", 1, 1)),
        (
            "[[rules]]\napprove = true\nask = \"caller\"\nedit = [\"a\"]\n",
            ("invalid-pointer", 4, 9),
        ),
        (
            "[[rules]]\nask = \"caller\"\ndeadline = \"soon\"\n",
            ("invalid-duration", 3, 12),
        ),
        (
            "[[rules]]\nask = \"caller\"\ndeadline = \"5m\"\nremind = [\"1m\", \"5m\"]\n",
            ("after-deadline", 4, 17),
        ),
        (
            "[[rules]]\nask = { person = \"ada\" }\nescalate = [{ after = \"25h\", to = { group = \"ops\" } }]\n",
            ("after-deadline", 3, 13),
        ),
        (
            "[[rules]]\nask = { group = \"all\" }\nescalate = [{ after = \"5m\", to = { group = \"ops\" } }]\n",
            ("escalation-repeats", 3, 13),
        ),
        (
            "[[rules]]\nask = { person = \"ada\" }\nescalate = [{ after = \"5m\", to = { group = \"leads\" } }, { after = \"9m\", to = { group = \"leads\" } }]\n",
            ("escalation-repeats", 3, 57),
        ),
        (
            "[[rules]]\nask = \"caller\"\non-timeout = \"accept\"\n",
            ("unknown-choice", 3, 14),
        ),
        (
            "[[rules]]\nrefuse-modes = [\"voice\"]\n",
            ("never-matches", 2, 17),
        ),
        ("[[rules]]\nname = 3\nallow = true\n", ("wrong-type", 2, 8)),
        ("[[rules]]\nallow = false\n", ("no-decision", 2, 1)),
        (
            "[[rules]]\nwhen = 'question.mode == \"url\"'\napprove = true\nask = \"caller\"\n",
            ("never-matches", 2, 9),
        ),
        (
            "[servers.crm]\nurl = \"http://x\"\n[[rules]]\nserver = \"crn\"\nallow = true\n",
            ("never-matches", 4, 10),
        ),
        ("[[rules]\n", ("invalid-toml", 1, 9)),
    ] {
        let found = defects(rest);
        assert_eq!(found, [expected], "{rest}");
    }
}

/// Returns the errors and warnings about one rule with these keys, as codes with messages.
fn said_of(keys: &str) -> Vec<String> {
    let loaded = Rules::load(&format!("{PEOPLE}[[rules]]\ntool = \"x\"\n{keys}\n"));
    let all = loaded.defects.iter().chain(&loaded.warnings);
    all.map(|defect| format!("{}: {}", defect.code, defect.message))
        .collect()
}

#[test]
fn parts_that_cannot_be_filled_are_found_before_anyone_is_asked() {
    let each = |parts: &str, more: &str| said_of(&format!("ask = {{ each = [{parts}]{more} }}"));
    let two = r#"{ group = "ops" }, { person = "cy" }"#;
    assert_eq!(each(two, ""), Vec::<String>::new());
    let is = |said: &[String], words: &str| {
        assert!(said.len() == 1 && said[0].contains(words), "{said:?}");
    };
    // A group without enough members.
    is(
        &each(r#"{ group = "ops", need = 3 }, { person = "cy" }"#, ""),
        "3 of group:ops must agree, and 2 can",
    );
    // The same person alone in both.
    is(
        &each(
            r#"{ person = "cy" }, { any = [{ person = "cy" }] , need = 1 }"#,
            "",
        ),
        "the same people",
    );
    is(
        &each(r#"{ group = "ops", need = 2 }, { person = "ada" }"#, ""),
        "at most 2 can",
    );
    // The caller may be the only one of a part.
    is(
        &each(two, ", not-caller = true"),
        "which is not possible for a call of cy",
    );
    // A claim decides.
    is(
        &each(r#"{ group = "ops" }, { group = "leads" }"#, ""),
        "unknown-size",
    );
    is(
        &each(r#"{ group = "ops" }"#, ""),
        "`each` has 2 to 10 parts",
    );
    is(&each(two, ", need = 2"), "every part has its own `need`");
    is(
        &each(r#"{ group = "ops" }, { need = 2 }"#, ""),
        "names no one",
    );
    is(
        &said_of(r#"ask = { group = "ops", each = [] }"#),
        "names two things",
    );
}

#[test]
fn keys_for_people_are_read_and_the_one_that_nobody_saw_is_refused() {
    let file = format!(
        "{PEOPLE}[[rules]]\ntool = \"x\"\napprove = true\nask = {{ each = [{{ group = \"ops\" }}, {{ person = \"cy\", need = 1 }}] }}\n\
         explain = \"Deletions need two.\"\nlink = \"https://wiki.example.com/r\"\nreasons = [\"audit\"]\nkeep = \"arguments\"\nkeep-for = \"30d\"\n"
    );
    let rules = Rules::parse(&file).unwrap();
    let plan = rules.rules()[0].decision().plan().unwrap();
    assert_eq!(plan.explain.as_deref(), Some("Deletions need two."));
    assert_eq!(plan.link.as_deref(), Some("https://wiki.example.com/r"));
    assert!(plan.reasons.audit && !plan.reasons.caller);
    let days = plan.keep_arguments.unwrap().as_secs() / 86_400;
    assert_eq!((days, plan.ask.need.get()), (30, 2));
    let shown = serde_json::to_string(&plan.ask).unwrap();
    assert_eq!(shown, r#"{"each":[{"group":"ops"},{"person":"cy"}]}"#);
    let ask = r#"ask = { group = "ops" }"#;
    for (keys, code) in [
        ("note = \"x\"", "unknown-key"),
        ("explain = \"a\\nb\"", "invalid-text"),
        ("link = \"javascript:alert(1)\"", "invalid-link"),
        ("reasons = [\"server\"]", "unknown-choice"),
        ("keep = \"answers\"", "unknown-choice"),
        ("keep-for = \"3d\"", "no-effect"),
    ] {
        let said = said_of(&format!("{ask}\n{keys}"));
        assert!(
            said.len() == 1 && said[0].starts_with(code),
            "{keys}: {said:?}"
        );
    }
    assert!(said_of("allow = true\nexplain = \"x\"")[0].contains("has no effect without `ask`"));
}

/// Digests of these texts are stored, so an update must not change them: under another text, an open question is not found
/// by the same call made again, and an approval is void.
#[test]
fn rules_and_people_keep_their_spelling() {
    let file = r#"
[people.ada]
name = "Ada O'Hara"
mail = "ada@example.com"
local-user = "ada"
channels = ["mail"]
quiet = "22:00-07:00"
digest = "1h"
time-zone = "Europe/Berlin"
[people.bob]
mail = "bob@example.com"
subject = "s-1"
[groups]
ops = ["ada", "bob"]
leads = { claim = "gw" }
mixed = ["bob", "group:leads"]
[roles]
admin = ["person:ada"]
auditor = ["group:ops"]
[[rules]]
name = "never"
tool = ["drop_*", "prompt:x?", "resource:file:///*"]
server = ["a", "b*"]
refuse = "not 'here'"
[[rules]]
name = "reads"
when = "annotations.readOnly"
allow = true
[[rules]]
name = "careful"
tool = "delete_*"
approve = true
ask = { group = "ops", not-caller = true }
edit = ["/path"]
good-for = "10m"
on-timeout = "hand-back"
on-error = "refuse"
[[rules]]
name = "full"
when = 'arguments.environment == "production"'
ask = { any = ["person:ada", "group:leads"], need = 2 }
deadline = "30m"
remind = ["5m"]
escalate = [{ after = "10m", to = { person = "bob" } }]
claim = "1m"
delegate-to = ["person:ada"]
reauth = "5m"
reveal = "arguments"
reasons = ["audit"]
explain = "why"
link = "https://x.example/"
keep = "arguments"
keep-for = "3d"
[[rules]]
name = "each"
tool = "x"
ask = { each = [{ group = "ops" }, { group = "leads" }] }
"#;
    let rules = Rules::parse(file).unwrap();
    let texts: Vec<_> = rules
        .rules()
        .iter()
        .map(mcp_elicit_policy::rules::Rule::canonical_text)
        .collect();
    let never = r#""never" [Glob { text: "a", is_literal: true }, Glob { text: "b*", is_literal: false }] Named([Target { kind: Tool, name: Glob { text: "drop_*", is_literal: false } }, Target { kind: Prompt, name: Glob { text: "x?", is_literal: false } }, Target { kind: Resource, name: Glob { text: "file:///*", is_literal: false } }]) None Refuse(Refusal { reason: "not 'here'", modes: [], credentials: false }) Match"#;
    let reads = r#""reads" [Glob { text: "*", is_literal: false }] All Some(Condition("annotations.readOnly")) Allow Skip"#;
    let careful = r#""careful" [Glob { text: "*", is_literal: false }] Named([Target { kind: Tool, name: Glob { text: "delete_*", is_literal: false } }]) None Approve(Approval { plan: Plan { ask: Ask { to: [Group("ops")], need: 1, not_caller: true, is_any: false }, deadline: None, remind: [], escalate: [], on_timeout: HandBack, claim: Some(900s), delegate_to: [], reauth: None, reveal: Question }, edit: ["/path"], good_for: Some(600s) }) Refuse"#;
    let full = r#""full" [Glob { text: "*", is_literal: false }] All Some(Condition("arguments.environment == \"production\"")) Ask(Plan { ask: Ask { to: [Person("ada"), Group("leads")], need: 2, not_caller: false, is_any: true }, deadline: Some(1800s), remind: [300s], escalate: [Escalation { after: 600s, to: Person("bob") }], on_timeout: Error, claim: Some(60s), delegate_to: [Person("ada")], reauth: Some(300s), reveal: Arguments, reasons: ReasonsReach { caller: false, audit: true }, explain: Some("why"), link: Some("https://x.example/"), keep_arguments: Some(259200s) }) Match"#;
    let each = r#""each" [Glob { text: "*", is_literal: false }] Named([Target { kind: Tool, name: Glob { text: "x", is_literal: true } }]) None Ask(Plan { ask: Ask { to: [Group("ops"), Group("leads")], each: [Part { to: [Group("ops")], need: 1 }, Part { to: [Group("leads")], need: 1 }], need: 2, not_caller: false, is_any: false }, deadline: None, remind: [], escalate: [], on_timeout: Error, claim: Some(900s), delegate_to: [], reauth: None, reveal: Question }) Match"#;
    assert_eq!(texts, [never, reads, careful, full, each]);
    let deciding = r#"Plan { ask: Ask { to: [Person("ada"), Group("leads")], need: 2, not_caller: false, is_any: true }, deadline: Some(1800s), remind: [], escalate: [Escalation { after: 600s, to: Person("bob") }], on_timeout: Error, claim: Some(900s), delegate_to: [], reauth: Some(300s), reveal: Question }"#;
    let rule = rules.rule("full").unwrap();
    assert_eq!(rule.decision().plan().unwrap().deciding_text(), deciding);
    assert!(rule.deciding_text().contains(deciding));
    assert_eq!(
        rules.people().canonical_text(),
        r#"People { people: {"ada": PersonEntry { name: Some("Ada O'Hara"), mail: Some("ada@example.com"), subject: None, local_user: Some("ada"), channels: Some(["mail"]), quiet: Some("22:00-07:00"), digest: Some("1h"), time_zone: Some("Europe/Berlin") }, "bob": PersonEntry { name: None, mail: Some("bob@example.com"), subject: Some("s-1"), local_user: None, channels: None, quiet: None, digest: None, time_zone: None }}, groups: {"leads": Claim("gw"), "mixed": Mixed { people: {"bob"}, claims: {"gw"} }, "ops": Listed({"ada", "bob"})}, admins: [Person("ada")], auditors: [Group("ops")] }"#
    );
}

#[test]
fn the_help_says_what_was_meant() {
    for (rest, help) in [
        (
            "[roles]\nadmin = [\"ada\"]\n",
            "did you mean \"person:ada\"?",
        ),
        (
            "[roles]\nadmin = [\"ops\"]\n",
            "did you mean \"group:ops\"?",
        ),
        (
            "[[rules]]\nask = \"caller\"\ndeadline = 30\n",
            "write it like \"30m\", with s, m, h or d",
        ),
        (
            "[[rules]]\nwhen = 'arguments.environment = \"production\"'\nallow = true\n",
            "did you mean `==`?",
        ),
    ] {
        let loaded = Rules::load(&format!("{PEOPLE}{rest}"));
        let helps: Vec<_> = loaded.defects.iter().map(|defect| &*defect.help).collect();
        assert_eq!(helps, [help], "{rest}");
    }
}

#[test]
fn all_mistakes_are_named_and_not_only_the_first() {
    let found = defects("x = [\"ada\"\n");
    assert!(!found.is_empty());
    let rest = r#"cyc = ["group:cyc2"]
cyc2 = ["group:cyc"]
empty = []
[[rules]]
ask = { group = "nobody" }
whenn = "true"
deadline = "x"
[[rules]]
when = 'caller.mial == "x" && arguments.n + true'
tool = []
allow = true
"#;
    let codes: Vec<_> = defects(rest)
        .into_iter()
        .map(|(code, line, column)| format!("{code} {line}:{column}"))
        .collect();
    assert_eq!(
        codes,
        [
            "cyclic-group 1:7",
            "cyclic-group 2:8",
            "no-addressee 3:9",
            "no-addressee 5:17",
            "unknown-key 6:1",
            "invalid-duration 7:12",
            "unknown-member 9:16",
            "wrong-type 9:43",
            "never-matches 10:8",
        ]
    );
}

#[test]
fn a_condition_is_checked_before_anything_calls() {
    for (when, expected) in [
        ("caller.mial == 'x'", Some(("unknown-member", 8))),
        ("calller.mail == 'x'", Some(("unknown-variable", 1))),
        ("caller.mail.starts('x')", Some(("unknown-function", 19))),
        ("caller.mail == 3", Some(("wrong-type", 13))),
        ("'ü' == caller.mial", Some(("unknown-member", 15))),
        ("server", Some(("not-boolean", 1))),
        ("size(tool)", Some(("not-boolean", 5))),
        ("annotations.destructive", None),
        ("arguments.force", None),
        ("tool ==", Some(("invalid-condition", 8))),
        ("'üü' == tool tool", Some(("invalid-condition", 14))),
        ("tool.matches('^[a-z]+$')", None),
        ("tool.matches('[')", Some(("invalid-pattern", 14))),
        ("tool.matches(server)", Some(("wrong-arguments", 14))),
        (
            "groups.exists(g, groups.exists(h, h == g))",
            Some(("nested-loop", 31)),
        ),
        ("groups.map(g, g) == groups", Some(("unknown-function", 11))),
        ("{'a': 1}.a == 1", Some(("unsupported", 1))),
        ("now.hour >= 9 && now.weekday < 6", None),
        ("now.hour == '9'", Some(("wrong-type", 10))),
        ("'ops' in groups", None),
        ("'ops' in arguments", None),
        ("has(arguments.a) && arguments.a > 3", None),
        ("has(arguments)", Some(("wrong-arguments", 5))),
        ("!tool", Some(("wrong-type", 2))),
    ] {
        let file = format!("[[rules]]\nwhen = \"\"\"{when}\"\"\"\nallow = true\n");
        let loaded = Rules::load(&file);
        let found = loaded
            .defects
            .first()
            .map(|defect| (defect.code, defect.column - 10));
        let expected = expected.map(|(code, column)| {
            if code == "wrong-arguments" && when == "has(arguments)" {
                ("wrong-type", column)
            } else {
                (code, column)
            }
        });
        assert_eq!(found, expected, "{when}: {:?}", loaded.defects);
        assert!(loaded.defects.len() < 2, "{when}: {:?}", loaded.defects);
    }
    let long = format!(
        "[[rules]]\nwhen = '{}'\nallow = true\n",
        ["tool == \"x\""; 60].join(" || ")
    );
    assert_eq!(Rules::load(&long).defects[0].code, "condition-too-large");
    let huge = format!("[[rules]]\nwhen = '{}'\nallow = true\n", " ".repeat(3_000));
    assert_eq!(Rules::load(&huge).defects[0].code, "condition-too-large");
    // The largest that the limits allow does not overflow the stack of a small thread.
    for source in [
        format!("{}true{}", "(".repeat(8), ")".repeat(8)),
        format!("{}true{}", "!(".repeat(7), ")".repeat(7)),
        format!("{}true", "!".repeat(8)),
        format!("{}true", "true ? true : ".repeat(8)),
        format!("{}1 == 1", "1+".repeat(240)),
        format!("server{} == 1", "[0]".repeat(160)),
        format!("arguments{}", ".a".repeat(240)),
        format!("{}true", "true&&".repeat(160)),
        format!("{}1{} == 1", "[".repeat(8), "]".repeat(8)),
    ] {
        let file = format!("[[rules]]\nwhen = '{source}'\nallow = true\n");
        for defect in Rules::load(&file).defects {
            assert!(
                ["condition-too-large", "wrong-type", "never-matches"].contains(&defect.code),
                "{defect} {source}"
            );
        }
    }
    let deep = format!(
        "[[rules]]\nwhen = '{}true'\nallow = true\n",
        "(".repeat(500)
    );
    assert_eq!(Rules::load(&deep).defects[0].code, "condition-too-large");
}

#[test]
fn a_hidden_rule_is_refused_and_its_cause_named() {
    let rest = "[[rules]]\nname = \"a\"\ntool = \"delete_*\"\nallow = true\n[[rules]]\nname = \"b\"\nserver = \"crm\"\ntool = \"delete_all\"\nwhen = 'true == annotations.destructive'\napprove = true\nask = \"caller\"\n";
    let loaded = Rules::load(&format!("{PEOPLE}{rest}"));
    let messages: Vec<_> = loaded
        .defects
        .iter()
        .map(|defect| defect.message.as_str())
        .collect();
    let line = PEOPLE.lines().count() + 1;
    assert_eq!(
        messages,
        [format!(
            "the rule never matches: `a` in line {line} takes all its calls"
        )]
    );
    // A rule of the other phase, or with a condition, hides nothing.
    assert_eq!(
        defects("[[rules]]\nallow = true\n[[rules]]\nask = \"caller\"\n"),
        []
    );
    assert_eq!(
        defects("[[rules]]\nwhen = '\"ops\" in groups'\nallow = true\n[[rules]]\nallow = true\n"),
        []
    );
    assert_eq!(
        defects("[[rules]]\nrefuse-modes = [\"url\"]\n[[rules]]\nask = \"caller\"\n"),
        []
    );
}

#[test]
fn warnings_leave_the_file_usable() {
    assert_eq!(
        warnings(
            "[[rules]]\nwhen = 'arguments.environment == \"production\"'\nask = { group = \"leads\", need = 2 }\n"
        ),
        [("absent-argument", 2, 19), ("unknown-size", 3, 26)]
    );
    assert_eq!(
        warnings("[[rules]]\nwhen = 'has(arguments.a) && arguments.a == 1'\nallow = true\n"),
        []
    );
    assert_eq!(
        warnings("[[rules]]\nwhen = 'arguments.a == 1'\non-error = \"skip\"\nallow = true\n"),
        []
    );
    assert_eq!(
        warnings("[[rules]]\nwhen = 'annotations.readOnly'\nallow = true\n"),
        [("loosens-by-annotations", 2, 9)]
    );
}

const RULES: &str = r#"
[[rules]]
name = "no-foreign-links"
when = 'question.mode == "url" && !question.host.endsWith(".example.com")'
refuse = "links outside example.com"
[[rules]]
name = "deploy-production"
server = "deploy"
tool = ["deploy*"]
when = 'arguments.environment == "production"'
ask = { group = "all", need = 2, not-caller = true }
deadline = "30m"
[[rules]]
name = "reads"
tool = "get_*"
allow = true
[[rules]]
name = "deletions"
tool = ["delete_*", "get_and_delete"]
when = '!has(arguments.dry) || arguments.dry != true'
approve = true
ask = { group = "ops" }
edit = ["/path"]
good-for = "10m"
[[rules]]
name = "big"
tool = "pay"
when = 'arguments.amount > 100'
on-error = "refuse"
approve = true
ask = { group = "ops" }
[[rules]]
name = "vouched"
tool = "pay"
when = 'arguments.vouched.by == "ada"'
allow = true
"#;

struct World {
    rules: Rules,
    caller: Caller,
    now: Now,
}

impl World {
    fn new() -> Self {
        Self {
            rules: Rules::parse(&format!("{PEOPLE}{RULES}")).unwrap(),
            caller: Caller::default(),
            now: Now::default(),
        }
    }

    fn facts<'a>(&'a self, server: &'a str, call: Option<(&'a str, &'a str)>) -> Facts<'a> {
        let call = call.map(|(target, arguments)| KnownCall {
            kind: CallKind::Tool,
            target,
            arguments: Some(arguments),
            annotations: mcp_elicit_policy::Annotations::default(),
        });
        Facts {
            caller: &self.caller,
            groups: &[],
            server,
            call,
            now: &self.now,
        }
    }

    fn admit(&self, tool: &str, arguments: &str) -> String {
        match self
            .rules
            .admit(&self.facts("crm", Some((tool, arguments))))
        {
            Admit::Free(rule) => format!("free {}", rule.unwrap_or("-")),
            Admit::Refuse(rule, _) => format!("refuse {rule}"),
            Admit::Approve(rule, _) => format!("approve {rule}"),
        }
    }

    fn plan(&self, server: &str, call: Option<(&str, &str)>, question: &QuestionFacts) -> String {
        match self.rules.plan(&self.facts(server, call), question) {
            PlannedQuestion::Ask(rule, plan) => {
                format!("ask {} need {}", rule.unwrap_or("-"), plan.ask.need)
            }
            PlannedQuestion::Refuse(rule, refusal) => format!("refuse {rule}: {}", refusal.reason),
        }
    }
}

fn form() -> QuestionFacts {
    QuestionFacts {
        mode: "form".to_owned(),
        ..QuestionFacts::default()
    }
}

fn link(host: &str) -> QuestionFacts {
    QuestionFacts {
        mode: "url".to_owned(),
        host: host.to_owned(),
        ..QuestionFacts::default()
    }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let world = World::new();
    assert_eq!(world.admit("list", "{}"), "free -");
    assert_eq!(world.admit("get_all", "{}"), "free reads");
    assert_eq!(world.admit("get_and_delete", "{}"), "free reads");
    assert_eq!(world.admit("delete_all", "{}"), "approve deletions");
    assert_eq!(world.admit("delete_all", r#"{"dry":true}"#), "free -");
    assert_eq!(
        world.admit("delete_all", r#"{"dry":"true"}"#),
        "approve deletions"
    );
    let production = r#"{"environment":"production"}"#;
    assert_eq!(
        world.plan("deploy", Some(("deploy_app", production)), &form()),
        "ask deploy-production need 2"
    );
    assert_eq!(
        world.plan("crm", Some(("deploy_app", production)), &form()),
        "ask - need 1"
    );
    assert_eq!(
        world.plan(
            "deploy",
            Some(("deploy_app", r#"{"environment":"test"}"#)),
            &form()
        ),
        "ask - need 1"
    );
    assert_eq!(
        world.plan("crm", Some(("x", "{}")), &link("evil.com")),
        "refuse no-foreign-links: links outside example.com"
    );
    assert_eq!(
        world.plan("crm", Some(("x", "{}")), &link("a.example.com")),
        "ask - need 1"
    );
}

#[test]
fn errors_restrict() {
    let world = World::new();
    // Absent, of a wrong type, unreadable: a restrictive rule matches, a permissive one does not.
    assert_eq!(
        world.plan("deploy", Some(("deploy_app", "{}")), &form()),
        "ask deploy-production need 2"
    );
    assert_eq!(
        world.plan(
            "deploy",
            Some(("deploy_app", r#"{"environment":"a","environment":"b"}"#)),
            &form()
        ),
        "ask deploy-production need 2"
    );
    assert_eq!(world.admit("pay", r#"{"amount":"much"}"#), "refuse big");
    assert_eq!(
        world.admit("pay", r#"{"amount":9223372036854775809}"#),
        "refuse big"
    );
    assert_eq!(world.admit("pay", r#"{"amount":101}"#), "approve big");
    assert_eq!(world.admit("pay", r#"{"amount":100.5}"#), "approve big");
    assert_eq!(world.admit("pay", r#"{"amount":5}"#), "free -");
    assert_eq!(
        world.admit("pay", r#"{"amount":5,"vouched":{"by":"ada"}}"#),
        "free vouched"
    );
    // The server did not say for which call it asks.
    assert_eq!(
        world.plan("deploy", None, &form()),
        "ask deploy-production need 2"
    );
    assert_eq!(world.plan("crm", None, &form()), "ask - need 1");
}

/// Returns the decision of one rule with this condition about these arguments: `true`, `false`, or an error. Checked as
/// a restrictive and as a permissive rule, and by the preview, which evaluates the rules one by one.
fn held(when: &str, arguments: &str) -> Option<bool> {
    let decides = |decision: &str| {
        let file = format!("{PEOPLE}[[rules]]\nname = \"r\"\nwhen = '{when}'\n{decision}\n");
        let world = World {
            rules: Rules::parse(&file).unwrap(),
            ..World::new()
        };
        let facts = world.facts("s", Some(("t", arguments)));
        let admit = world.rules.admit(&facts);
        let preview = world.rules.preview(&facts, None);
        assert_eq!(preview.admit, admit, "{when} {arguments}");
        (admit != Admit::Free(None), preview.errors.len())
    };
    match (decides("refuse = \"no\""), decides("allow = true")) {
        ((true, 0), (true, 0)) => Some(true),
        ((false, 0), (false, 0)) => Some(false),
        ((true, 1), (false, 1)) => None,
        other => panic!("{when} {arguments}: {other:?}"),
    }
}

const A: &str = "arguments.a";

#[test]
fn values_of_different_types_are_neither_equal_nor_unequal() {
    let text = r#"{"a":"production"}"#;
    let others = [
        r#"{"a":["production"]}"#,
        r#"{"a":{"x":1}}"#,
        r#"{"a":null}"#,
        r#"{"a":true}"#,
        r#"{"a":1}"#,
        r#"{"a":1.5}"#,
        r#"{"a":10.0000000000000001}"#,
        "{}",
    ];
    // The first is compared without CEL, the others by CEL.
    for (equal, unequal) in [
        (
            format!("{A} == \"production\""),
            format!("{A} != \"production\""),
        ),
        (
            format!("(true && {A} == \"production\")"),
            format!("!({A} == \"production\")"),
        ),
        (
            format!("{A} in [\"production\"]"),
            format!("!({A} in [\"production\"])"),
        ),
        (
            format!("\"production\" in [{A}, {A}]"),
            format!("!(\"production\" in [{A}])"),
        ),
        (
            format!("[{A}] == [\"production\"]"),
            format!("[{A}] != [\"production\"]"),
        ),
        (
            format!("[{A}].exists(a, a == \"production\")"),
            format!("[{A}].all(a, a != \"production\")"),
        ),
    ] {
        assert_eq!(held(&equal, text), Some(true), "{equal}");
        assert_eq!(held(&unequal, text), Some(false), "{unequal}");
        assert_eq!(held(&equal, r#"{"a":"test"}"#), Some(false), "{equal}");
        assert_eq!(held(&unequal, r#"{"a":"test"}"#), Some(true), "{unequal}");
        for other in others {
            assert_eq!(held(&equal, other), None, "{equal} {other}");
            assert_eq!(held(&unequal, other), None, "{unequal} {other}");
        }
    }
    for (when, arguments, expected) in [
        // Numbers are one type, and compared without rounding.
        ("arguments.a == 1000", r#"{"a":1000}"#, Some(true)),
        ("arguments.a == 1000", r#"{"a":1e3}"#, Some(true)),
        ("arguments.a == 1000", r#"{"a":1000.5}"#, Some(false)),
        ("arguments.a == 1000", r#"{"a":"1000"}"#, None),
        ("arguments.a == 0.5", r#"{"a":0}"#, Some(false)),
        ("arguments.a == 0", r#"{"a":-0.0}"#, Some(true)),
        (
            "arguments.a == 9007199254740993",
            r#"{"a":9007199254740992.0}"#,
            Some(false),
        ),
        (
            "arguments.a == 9223372036854775807",
            r#"{"a":9223372036854775808}"#,
            Some(false),
        ),
        ("arguments.a <= 10", r#"{"a":10.0000000000000001}"#, None),
        ("arguments.a <= 10", r#"{"a":10.0}"#, Some(true)),
        ("arguments.a in [1, 2.5]", r#"{"a":2.5}"#, Some(true)),
        ("arguments.a == true", r#"{"a":"true"}"#, None),
        ("arguments.a == true", r#"{"a":1}"#, None),
        ("arguments.a == true", r#"{"a":false}"#, Some(false)),
        // `null` is written to test for an absent value.
        ("arguments.a == null", r#"{"a":null}"#, Some(true)),
        ("arguments.a == null", r#"{"a":"x"}"#, Some(false)),
        ("null != arguments.a", r#"{"a":["x"]}"#, Some(true)),
        ("arguments.a == null", r#"{"a":10.0000000000000001}"#, None),
        (
            "arguments.a == null || arguments.a == \"x\"",
            r#"{"a":null}"#,
            Some(true),
        ),
        ("arguments.a in [\"x\", null]", r#"{"a":null}"#, Some(true)),
        ("arguments.a in [\"x\", null]", r#"{"a":"y"}"#, Some(false)),
        ("arguments.a in [\"x\", null]", r#"{"a":1}"#, None),
        ("arguments.a in [null]", r#"{"a":1}"#, Some(false)),
        // A list in the condition determines the expected types.
        ("arguments.a in [\"x\", 1]", r#"{"a":"y"}"#, Some(false)),
        ("arguments.a in [\"x\", 1]", r#"{"a":1}"#, Some(true)),
        ("arguments.a in [\"x\", 1]", r#"{"a":true}"#, None),
        ("arguments.a in []", r#"{"a":true}"#, Some(false)),
        // In a list of the call, each element must be of the type of the wanted value, unless it is found.
        ("\"x\" in arguments.a", r#"{"a":["y","z"]}"#, Some(false)),
        ("\"x\" in arguments.a", r#"{"a":[1,"x"]}"#, Some(true)),
        ("\"x\" in arguments.a", r#"{"a":["y",["x"]]}"#, None),
        ("\"x\" in arguments.a", r#"{"a":["y",null]}"#, None),
        ("\"x\" in arguments.a", r#"{"a":"x"}"#, None),
        // A map is no list, even if it has such a key. Of the arguments themselves, the names are tested.
        ("\"x\" in arguments.a", r#"{"a":{"x":0}}"#, None),
        ("\"x\" in arguments.a", r#"{"a":{"y":"x"}}"#, None),
        ("\"a\" in arguments", r#"{"a":{"y":0}}"#, Some(true)),
        ("\"y\" in arguments", r#"{"a":{"y":0}}"#, Some(false)),
        (
            "arguments.a.exists(x, x == \"p\")",
            r#"{"a":["p"]}"#,
            Some(true),
        ),
        (
            "arguments.a.exists(x, x == \"p\")",
            r#"{"a":{"x":"p"}}"#,
            None,
        ),
        (
            "arguments.a.exists(x, x == \"p\")",
            r#"{"a":{"p":"x"}}"#,
            None,
        ),
        (
            "arguments.a.all(x, x.startsWith(\"/srv/\"))",
            r#"{"a":{"/srv/x":"/etc"}}"#,
            None,
        ),
        (
            "arguments.a.all(x, x.startsWith(\"/srv/\"))",
            r#"{"a":{}}"#,
            None,
        ),
        (
            "arguments.a.exists_one(x, x == \"p\")",
            r#"{"a":{"p":1}}"#,
            None,
        ),
        (
            "arguments.a.all(x, x.startsWith(\"/srv/\"))",
            r#"{"a":"/etc"}"#,
            None,
        ),
        (
            "arguments.exists(name, name == \"a\")",
            r#"{"a":1}"#,
            Some(true),
        ),
        ("arguments.a == [\"x\"]", r#"{"a":["x","y"]}"#, Some(false)),
        ("arguments.a == [\"x\", \"y\"]", r#"{"a":["z",1]}"#, None),
        (
            "arguments.a == arguments.b",
            r#"{"a":{"x":[1]},"b":{"x":[1.0]}}"#,
            Some(true),
        ),
        (
            "arguments.a == arguments.b",
            r#"{"a":{"x":1,"y":2},"b":{"x":1,"z":2}}"#,
            Some(false),
        ),
        (
            "arguments.a == arguments.b",
            r#"{"a":{"x":1},"b":{"x":"1"}}"#,
            None,
        ),
        (
            "arguments.a == arguments.b",
            r#"{"a":null,"b":null}"#,
            Some(true),
        ),
        ("arguments.a == arguments.b", r#"{"a":null,"b":"x"}"#, None),
        // A conjunct or disjunct that decides without the value decides.
        (
            "arguments.a == \"x\" && tool == \"u\"",
            r#"{"a":1}"#,
            Some(false),
        ),
        (
            "arguments.a == \"x\" || tool == \"t\"",
            r#"{"a":1}"#,
            Some(true),
        ),
        ("arguments.a == \"x\" && tool == \"t\"", r#"{"a":1}"#, None),
    ] {
        assert_eq!(held(when, arguments), expected, "{when} {arguments}");
    }
}

#[test]
fn a_preview_decides_as_the_gateway_would_and_says_why() {
    let world = World::new();
    let facts = world.facts("deploy", Some(("deploy_app", "{}")));
    let preview = world.rules.preview(&facts, None);
    let skipped: Vec<_> = preview
        .skipped
        .iter()
        .map(|skipped| format!("{} {:?}", skipped.rule, skipped.why))
        .collect();
    assert_eq!(skipped, ["no-foreign-links NeedsQuestion"]);
    assert!(preview.needs_question);
    let errors: Vec<_> = preview
        .errors
        .iter()
        .map(|error| error.message.as_str())
        .collect();
    assert_eq!(errors, ["`environment` is absent"]);
    assert!(matches!(
        preview.planned,
        Some(PlannedQuestion::Ask(Some("deploy-production"), _))
    ));
    let facts = world.facts("crm", Some(("pay", r#"{"amount":"hunter2"}"#)));
    let preview = world.rules.preview(&facts, None);
    assert!(matches!(preview.admit, Admit::Refuse("big", _)));
    assert!(!format!("{preview:?}").contains("hunter2"));
}

#[test]
fn prompts_and_resources_have_patterns_of_their_own() {
    let file =
        "[[rules]]\ntool = \"prompt:*\"\nallow = true\n[[rules]]\ntool = \"*\"\nrefuse = \"no\"\n";
    let rules = Rules::parse(file).unwrap();
    let (caller, now) = (Caller::default(), Now::default());
    let admit = |kind, target| {
        let call = KnownCall {
            kind,
            target,
            arguments: None,
            annotations: mcp_elicit_policy::Annotations::default(),
        };
        let facts = Facts {
            caller: &caller,
            groups: &[],
            server: "s",
            call: Some(call),
            now: &now,
        };
        matches!(rules.admit(&facts), Admit::Free(_))
    };
    assert!(admit(CallKind::Prompt, "plan"));
    // A server cannot name a tool so that it counts as a prompt.
    assert!(!admit(CallKind::Tool, "prompt:plan"));
    assert!(!admit(CallKind::Resource, "file:///a"));
}

#[test]
fn the_people_of_a_file_are_found() {
    let rules = Rules::parse(PEOPLE).unwrap();
    let people = rules.people();
    assert_eq!(people.find("", "Ada@Example.com"), Some("ada"));
    assert_eq!(people.find("", ""), None);
    // The kelvin sign is another character: it becomes `k` in lower case, but names another mailbox.
    let kelvin = PEOPLE.replace("ada@example.com", "kit@example.com");
    let kelvin = Rules::parse(&kelvin).unwrap();
    assert_eq!(kelvin.people().find("", "Kit@example.com"), Some("ada"));
    assert_eq!(kelvin.people().find("", "\u{212a}it@example.com"), None);
    assert_eq!(people.groups_of("ada", &[]), ["all", "ops"]);
    assert!(people.is_member("leads", "cy", &["gateway-leads".to_owned()]));
    assert!(!people.is_member("leads", "cy", &[]));
}
