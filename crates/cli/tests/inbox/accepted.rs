//! `inbox accept`: the content that the server gets.

use std::path::Path;

use serde_json::{Value, json};

use crate::raw::{DEMO_SERVER, Raw, gateway, inbox, text};

/// Returns the content that the server got for these answers.
fn accepted(client: &mut Raw, state: &Path, call: u64, words: &[&str]) -> Value {
    client.call(call, "profile", &json!({}));
    let id = loop {
        let (reached, questions) = inbox(state, &["list"]);
        if let (true, [question]) = (reached, questions.as_slice()) {
            break question["id"].as_str().unwrap().to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let (is_accepted, said) = inbox(state, &[&["accept", &id], words].concat());
    assert!(is_accepted, "{said:?}");
    let done = text(&client.result(call)).to_owned();
    serde_json::from_str(done.strip_prefix("Saved ").unwrap()).unwrap()
}

#[test]
fn defaults_are_sent_only_if_that_is_wanted_and_a_list_may_be_empty() {
    let state = tempfile::tempdir().unwrap();
    let mut client = Raw::start(gateway(state.path(), &[], &DEMO_SERVER));
    client.initialize("2025-11-25", &json!({}));
    let given = ["name=Ada", "email=ada@example.com", "age=36"];
    let person = json!({"name": "Ada", "email": "ada@example.com", "age": 36});
    let mut with = |call, more: &[&str]| {
        accepted(
            &mut client,
            state.path(),
            call,
            &[&given[..], more].concat(),
        )
    };
    assert_eq!(with(2, &[]), person);
    let mut defaults = person.clone();
    defaults["newsletter"] = json!(true);
    defaults["colour"] = json!("blue");
    defaults["interests"] = json!(["books"]);
    assert_eq!(with(3, &["--accept-defaults"]), defaults);
    // An optional list with nothing in it is left out, its default too.
    defaults.as_object_mut().unwrap().remove("interests");
    assert_eq!(with(4, &["--accept-defaults", "interests="]), defaults);
    defaults["interests"] = json!(["music", "food"]);
    assert_eq!(
        with(5, &["--accept-defaults", "interests=music,food"]),
        defaults
    );
}
