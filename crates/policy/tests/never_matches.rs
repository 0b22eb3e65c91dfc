//! Rules that can never match, or that no one can answer: each is an error at its place, and no rule that may match is
//! one.
#![cfg(feature = "cel")]

use mcp_elicit_policy::Rules;

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

/// Returns the messages of a file that begins with people.
fn messages(rest: &str) -> Vec<String> {
    let loaded = Rules::load(&format!("{PEOPLE}{rest}"));
    loaded
        .defects
        .into_iter()
        .map(|defect| defect.message)
        .collect()
}

#[test]
fn a_value_that_a_member_never_has_is_a_mistake_at_its_place() {
    for (condition, column) in [
        ("caller.kind == \"locall\"", Some(24)),
        ("\"robot\" != caller.kind", Some(9)),
        ("caller.kind in [\"key\", \"keys\"]", Some(32)),
        ("has(arguments.a) && question.mode == \"links\"", Some(46)),
        ("method == \"tools/list\"", Some(19)),
        ("now.hour > 25", Some(20)),
        ("now.hour > 23", Some(20)),
        ("now.hour >= 24", Some(21)),
        ("24 <= now.hour", Some(9)),
        ("now.weekday == 0", Some(24)),
        ("now.minute < 0", Some(22)),
        ("caller.person == \"adaa\"", Some(26)),
        ("tool == \"a\" && tool == \"b\"", Some(32)),
        ("server == \"s\" && server in [\"t\", \"u\"]", Some(36)),
        ("caller.kind == \"local\" || caller.kind == \"key\"", None),
        ("now.hour < 8 || now.hour >= 18", None),
        ("now.hour >= 23 && now.hour <= 23 && now.weekday == 7", None),
        ("caller.person == \"ada\"", None),
        ("caller.person == \"\"", None),
        ("caller.person == \"https://id.example s-1\"", None),
        ("caller.person in [\"ada\", \"adaa\"]", None),
        ("tool == \"a\" || tool == \"b\"", None),
        ("tool in [\"a\", \"b\"] && tool == \"b\"", None),
        // Arguments may be of any type, and an error may match.
        ("arguments.x == \"a\" && arguments.x == \"b\"", None),
    ] {
        let found = defects(&format!(
            "[[rules]]\nwhen = '{condition}'\nrefuse = \"no\"\n"
        ));
        let expected: Vec<_> = column
            .map(|column| ("never-matches", 2, column))
            .into_iter()
            .collect();
        assert_eq!(found, expected, "{condition}");
    }
    // Without people in the file, a key may have any owner.
    let alone = "[[rules]]\nwhen = 'caller.person == \"adaa\"'\nrefuse = \"no\"\n";
    assert_eq!(Rules::load(alone).defects, []);
}

#[test]
fn a_condition_that_disagrees_with_the_patterns_is_a_mistake() {
    for (patterns, condition, is_wrong) in [
        ("tool = \"x_*\"", "tool == \"y\"", true),
        ("tool = \"x_*\"", "tool == \"x_1\"", false),
        ("tool = \"x_*\"", "tool in [\"y\", \"x_1\"]", false),
        ("tool = \"prompt:*\"", "method == \"tools/call\"", true),
        (
            "tool = [\"prompt:*\", \"x\"]",
            "method == \"tools/call\"",
            false,
        ),
        ("tool = \"prompt:plan\"", "tool == \"plan\"", false),
        ("server = \"a*\"", "server == \"b\"", true),
        ("server = \"a*\"", "server == \"ab\"", false),
        (
            "tool = \"x_*\"",
            "tool == \"y\" || caller.kind == \"key\"",
            false,
        ),
        ("tool = \"x_*\"", "tool != \"y\"", false),
    ] {
        let rule = format!("[[rules]]\n{patterns}\nwhen = '{condition}'\nrefuse = \"no\"\n");
        let found = defects(&rule);
        let is_told = found
            .iter()
            .any(|(code, line, _)| (*code, *line) == ("never-matches", 3));
        assert_eq!(
            (is_told, found.len()),
            (is_wrong, usize::from(is_wrong)),
            "{rule}"
        );
    }
}

#[test]
fn a_rule_whose_calls_others_take_or_refuse_is_a_mistake() {
    let refused = "[[rules]]\nname = \"r\"\ntool = \"delete_*\"\nrefuse = \"no\"\n";
    let asks = "[[rules]]\nname = \"a\"\ntool = \"delete_all\"\nask = { group = \"ops\" }\n";
    let modes = "[[rules]]\nname = \"m\"\nrefuse-modes = [\"url\", \"form\"]\n";
    for rules in [
        format!("{refused}{asks}"),
        format!("{asks}{refused}"),
        format!("{modes}{asks}"),
    ] {
        let found = messages(&rules);
        assert_eq!(found.len(), 1, "{rules}: {found:?}");
        assert!(found[0].starts_with("the rule never matches"), "{found:?}");
    }
    let allows = "[[rules]]\nname = \"f\"\ntool = \"*_all\"\nwhen = 'caller.kind == \"local\"'\nallow = true\n";
    let approves = "[[rules]]\nname = \"p\"\ntool = \"delete_all\"\napprove = true\nask = { group = \"ops\" }\n";
    let others = asks.replace("delete_all", "drop_all");
    let in_part = asks.replace("\"delete_all\"", "[\"delete_all\", \"drop_all\"]");
    let urls = modes.replace("\"url\", \"form\"", "\"url\"");
    let some = refused.replace("refuse", "when = 'caller.kind == \"key\"'\nrefuse");
    for rules in [
        format!("{allows}{refused}{asks}"),
        format!("{approves}{refused}{asks}"),
        format!("{refused}{others}"),
        format!("{refused}{in_part}"),
        format!("{urls}{asks}"),
        format!("{some}{asks}"),
        format!("{asks}{modes}"),
    ] {
        assert_eq!(messages(&rules), [""; 0], "{rules}");
    }
    // An approval after the refusal lets nothing through: both hidden rules are reported.
    assert_eq!(messages(&format!("{refused}{approves}{asks}")).len(), 2);
}

#[test]
fn a_rule_that_several_hide_together_is_a_mistake() {
    let of = |name: &str, tool: &str| {
        format!("[[rules]]\nname = \"{name}\"\ntool = {tool}\nask = {{ group = \"ops\" }}\n")
    };
    let (a, b) = (of("a", "\"a*\""), of("b", "\"b*\""));
    let found = messages(&format!("{a}{b}{}", of("c", "[\"a1\", \"b2\"]")));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("`a` in line") && found[0].contains("`b` in line"),
        "{found:?}"
    );
    assert_eq!(
        messages(&format!("{a}{b}{}", of("c", "[\"a1\", \"c2\"]"))),
        [""; 0]
    );
    assert_eq!(
        messages(&format!("{a}{}{b}", of("c", "[\"a1\", \"b2\"]"))),
        [""; 0]
    );
}

#[test]
fn a_step_to_a_group_of_the_same_claim_adds_nobody() {
    let groups = "first = { claim = \"c\" }\nsecond = { claim = \"c\" }\nwide = [\"ada\", \"group:first\"]\n";
    let of = |asked: &str, to: &str| {
        let text = format!(
            "{groups}[[rules]]\nask = {{ group = \"{asked}\" }}\nescalate = [{{ after = \"1m\", to = {{ group = \"{to}\" }} }}]\n"
        );
        defects(&text)
            .iter()
            .any(|(code, ..)| *code == "escalation-repeats")
    };
    for (asked, to, repeats) in [
        ("first", "second", true),
        ("wide", "second", true),
        ("first", "wide", false),
        ("first", "leads", false),
        ("leads", "first", false),
    ] {
        assert_eq!(of(asked, to), repeats, "{asked} {to}");
    }
}

#[test]
fn a_rule_that_asks_only_those_who_may_not_log_in_is_a_mistake() {
    let of = |allow: &str, ask: &str, more: &str| {
        let text = format!("[[rules]]\nask = {ask}\n{more}\n[login]\nallow = {allow}\n");
        defects(&text)
    };
    let ada = "{ person = \"ada\" }";
    assert_eq!(of("[\"person:bob\"]", ada, ""), [("no-addressee", 2, 7)]);
    let two = "{ group = \"ops\", need = 2 }";
    assert_eq!(of("[\"person:bob\"]", two, ""), [("no-addressee", 2, 7)]);
    for (allow, ask, more) in [
        ("[\"person:ada\"]", ada, ""),
        ("[\"group:ops\"]", two, ""),
        ("[]", ada, ""),
        // A claim may let her in, or add another person.
        ("[\"group:leads\"]", ada, ""),
        ("[\"person:bob\"]", "{ group = \"leads\" }", ""),
        ("[\"person:bob\"]", "\"caller\"", ""),
        (
            "[\"person:bob\"]",
            ada,
            "escalate = [{ after = \"1m\", to = { person = \"bob\" } }]",
        ),
        ("[\"person:bob\"]", two, "delegate-to = [\"person:cy\"]"),
        ("[\"person:bob\"]", ada, "[channels.slack]\nteam = \"T1\""),
    ] {
        assert_eq!(of(allow, ask, more), [], "{allow} {ask} {more}");
    }
}
