//! Checks that the tests named in SECURITY.md and the threat model exist, so that no promise is without a test.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns the names of tests in a text: words between backticks that look like a test's name, with or without its file
/// before `::`.
fn named(text: &str) -> BTreeSet<String> {
    let is_name = |name: &str| {
        name.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            && name.matches('_').count() >= 2
    };
    text.split('`')
        .skip(1)
        .step_by(2)
        .map(|code| code.rsplit("::").next().unwrap().to_owned())
        .filter(|name| is_name(name))
        .collect()
}

/// All Rust below a folder.
fn source(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            source(&path, all);
        } else if path.extension().is_some_and(|end| end == "rs") {
            all.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_test_that_a_promise_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = String::new();
    source(&root.join("crates"), &mut all);
    for file in ["SECURITY.md", "docs/threat-model.md"] {
        let text = fs::read_to_string(root.join(file)).unwrap();
        let named = named(&text);
        assert!(named.len() > 10, "{file}: {named:?}");
        for name in named {
            assert!(all.contains(&format!("fn {name}(")), "{file} names {name}");
        }
    }
}
