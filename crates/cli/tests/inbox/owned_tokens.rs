//! Tokens whose owner is a person of the gateway's file.

use std::process::Output;

use serde_json::Value;

use crate::raw::PROGRAM;

/// The owner of a token is a person of the file, and the token is in the state folder that the file names.
#[test]
fn a_token_is_made_for_a_person_of_the_file_and_in_its_state_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (file, state) = (
        folder.path().join("gateway.toml"),
        folder.path().join("state"),
    );
    let text = format!(
        "state = {state:?}\n[people.ada]\nsubject = \"a\"\n[people.bob]\nsubject = \"b\"\n"
    );
    std::fs::write(&file, text).unwrap();
    let run = |words: &[&str]| -> Output {
        std::process::Command::new(PROGRAM)
            .args(words)
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env_remove("XDG_STATE_HOME")
            .output()
            .unwrap()
    };
    let make = |person: &str, file: &str| {
        let words = ["tokens", "make", "ci", "--scope", "call", "--for", person];
        run(&[&words[..], &["--config", file, "--json"]].concat())
    };
    let refused = make("zed", file.to_str().unwrap());
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("has no person `zed`") && said.contains("it has ada, bob"),
        "{said}"
    );
    let missing = make("ada", "nothing.toml");
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
    assert!(!state.exists(), "nothing was made");
    let done = make("ada", file.to_str().unwrap());
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{said}");
    assert!(!said.contains("not checked"), "{said}");
    let listed = run(&[
        "tokens",
        "list",
        "--json",
        "--state",
        state.to_str().unwrap(),
    ]);
    let lines = String::from_utf8(listed.stdout).unwrap();
    let token: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&token["name"], &token["for"]),
        (&"ci".into(), &"ada".into()),
        "{lines}"
    );
}
