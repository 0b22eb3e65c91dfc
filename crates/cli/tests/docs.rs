//! Checks that each promise in the tables of SECURITY.md and the threat model names a test, and that the named tests exist.
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

/// The names of the tests in a source text.
fn tests(source: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        let function = line.strip_prefix("async ").unwrap_or(line);
        if let Some(rest) = function.strip_prefix("fn ") {
            let name = rest.split(['(', '<']).next().unwrap();
            if is_test {
                names.insert(name);
            }
            is_test = false;
        } else if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        }
    }
    names
}

/// The last cells of the rows of tables whose last column names tests.
fn proofs(text: &str) -> Vec<&str> {
    let mut cells = Vec::new();
    let mut names_tests = None;
    for line in text.lines() {
        let Some(row) = line.trim().strip_prefix('|') else {
            names_tests = None;
            continue;
        };
        let last = row.trim_end_matches('|').rsplit('|').next().unwrap().trim();
        match names_tests {
            None => names_tests = Some(last.contains("test")),
            Some(true) if !last.starts_with("---") => cells.push(last),
            Some(_) => {}
        }
    }
    cells
}

#[test]
fn every_test_that_a_promise_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = String::new();
    source(&root.join("crates"), &mut all);
    let tests = tests(&all);
    for file in ["SECURITY.md", "docs/threat-model.md"] {
        let text = fs::read_to_string(root.join(file)).unwrap();
        let names = named(&text);
        assert!(names.len() > 10, "{file}: {names:?}");
        for name in names {
            assert!(tests.contains(&*name), "{file} names {name}");
        }
        let proofs = proofs(&text);
        assert!(proofs.len() > 10, "{file}: {proofs:?}");
        for proof in proofs {
            let is_file = |code: &str| {
                code.strip_suffix(".rs").is_some() && root.join("crates").join(code).is_file()
                    || code.strip_prefix("fuzz/").is_some_and(|target| {
                        root.join("fuzz/targets")
                            .join(format!("{target}.rs"))
                            .is_file()
                    })
            };
            let is_proof = !named(proof).is_empty() || proof.split('`').any(is_file);
            assert!(is_proof, "{file} has a promise without a test: {proof}");
        }
    }
}
