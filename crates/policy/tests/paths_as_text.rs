//! A path that a condition compares with a prefix, as text, leads out of its folder: a warning says so.
#![cfg(feature = "cel")]

use mcp_elicit_policy::Rules;

/// Returns the codes of the warnings about one condition.
fn warned(condition: &str) -> Vec<&'static str> {
    let text = format!(
        "[[rules]]\nname = \"files\"\ntool = \"write_file\"\nwhen = '{condition}'\nrefuse = \"no\"\n"
    );
    let loaded = Rules::load(&text);
    assert_eq!(loaded.defects, [], "{condition}");
    loaded.warnings.iter().map(|warning| warning.code).collect()
}

#[test]
fn a_prefix_alone_is_warned_of() {
    for condition in [
        r#"has(arguments.path) && arguments.path.startsWith("/srv/")"#,
        r#"!has(arguments.path) || !arguments.path.startsWith("file:///srv/")"#,
        r#"!has(arguments.path) || !arguments.path.matches("^/srv/[a-z0-9/_.-]+$")"#,
        r#"has(arguments.path) && arguments.path.matches("^/srv/.*[.]txt$")"#,
        r#"has(arguments.path) && arguments.path.matches("^/srv/")"#,
        r#"has(arguments.paths) && arguments.paths.all(p, p.startsWith("src/"))"#,
        // Another argument is looked at.
        r#"has(arguments.path) && has(arguments.to) && !arguments.to.contains("..") && arguments.path.startsWith("/a/")"#,
    ] {
        assert_eq!(warned(condition), ["path-as-text"], "{condition}");
    }
}

#[test]
fn names_that_cannot_lead_out_and_other_texts_are_not() {
    for condition in [
        r#"!has(arguments.path) || !arguments.path.matches("^/srv(/[a-z0-9_][a-z0-9_.-]*)+$")"#,
        r#"!has(arguments.path) || arguments.path.contains("..") || !arguments.path.startsWith("/srv/")"#,
        r#"has(arguments.paths) && arguments.paths.all(p, p.startsWith("src/") && !p.contains(".."))"#,
        r#"has(arguments.branch) && arguments.branch.startsWith("release-")"#,
        r#"has(arguments.name) && arguments.name.matches("^[a-z]+$")"#,
        r#"tool.startsWith("a/")"#,
    ] {
        assert_eq!(warned(condition), Vec::<&str>::new(), "{condition}");
    }
}

#[test]
fn the_documented_rule_refuses_every_way_out() {
    let guide = include_str!("../../../docs/rules.md");
    let rule = guide.split("name = \"only-our-files\"").nth(1).unwrap();
    let pattern = rule.split("matches(\"").nth(1).unwrap();
    let pattern = regex::Regex::new(pattern.split("\")").next().unwrap()).unwrap();
    for inside in ["/srv/a", "/srv/a/b-2.txt", "/srv/2026/_x"] {
        assert!(pattern.is_match(inside), "{inside}");
    }
    for outside in [
        "/srv/../etc/passwd",
        "/srv/a/../../etc/passwd",
        "/srv/..",
        "/srv/%2e%2e/etc/passwd",
        "/srv/a%2f..%2fetc",
        "/srv/.hidden",
        "/srv/a\\..\\b",
        "/srv//etc",
        "/srvx/a",
        "/etc/passwd",
        "/srv/a\n/srv/b",
        "x/srv/a",
    ] {
        assert!(!pattern.is_match(outside), "{outside}");
    }
}
