//! Any text as a requestedSchema, read as servers send it, and lines as a person types them, parted by a NUL: nothing panics, an
//! answer that is built is accepted by the form's own check, and what other clients are shown instead is a legal form, whose
//! answers can be read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_elicit_core::answer::{Draft, DraftValue, check_asked};
use mcp_elicit_core::form::{Form, Kind};
use mcp_elicit_core::wire::Revision;
use serde_json::Value;

fuzz_target!(|input: &str| {
    let (schema, typed) = input.split_once('\0').unwrap_or((input, ""));
    let form = match Form::parse_leniently(schema) {
        Ok(form) => form,
        Err(defects) => {
            assert!(defects.iter().count() > 0, "refused without a reason");
            assert!(Form::parse(schema).is_err(), "what is legal is read");
            return;
        }
    };
    assert!(!form.is_unread(), "a form that was read can be shown");
    if Form::parse(schema).is_ok() {
        assert!(form.adjustments().is_empty(), "a legal form is read as it is");
    }
    let defaults = form.violations(&Value::Object(form.defaults()));
    let is_missing = |code: &str| code == "required";
    assert!(
        defaults.iter().all(|one| is_missing(one.rule().code())),
        "{defaults}"
    );
    for draft in [
        Draft::for_form(&form),
        drafted(&form, typed),
        picked(&form, typed),
    ] {
        if let Ok(answers) = form.read(&draft) {
            accepted(&form, &answers.to_value());
        }
    }
    if let Ok(content) = serde_json::from_str::<Value>(typed)
        && let Ok(answers) = form.check(content)
    {
        accepted(&form, &answers.to_value());
    }
    for revision in Revision::ALL {
        shown_elsewhere(&form, revision, typed);
    }
});

/// The text that a person types into each field, one line each; the last line is used for all further fields.
fn drafted(form: &Form, typed: &str) -> Draft {
    let mut lines = typed.split('\n');
    let mut line = "";
    let mut draft = Draft::new();
    for field in form.fields() {
        line = lines.next().unwrap_or(line);
        draft.set(field.name(), DraftValue::Text(line.to_owned()));
    }
    draft
}

/// The choice of a person in each field, by the bytes of `typed`.
fn picked(form: &Form, typed: &str) -> Draft {
    let mut bytes = typed.bytes().map(usize::from).cycle();
    let mut draft = Draft::new();
    for field in form.fields() {
        let byte = bytes.next().unwrap_or(0);
        let value = match field.kind() {
            Kind::Boolean(_) => DraftValue::Flag(byte % 2 == 0),
            Kind::Choice(choice) => {
                let option = &choice.options[byte % choice.options.len()];
                DraftValue::Picked(vec![option.value.to_string()])
            }
            Kind::Choices(choices) => {
                let options = choices.options.iter().enumerate();
                let some = options.filter(|(index, _)| byte & (1 << (index % 8)) != 0);
                DraftValue::Picked(some.map(|(_, option)| option.value.to_string()).collect())
            }
            _ => DraftValue::Text(typed.chars().take(byte).collect()),
        };
        draft.set(field.name(), value);
    }
    draft
}

/// Checks that answers which were made for a form fit it, as a value and as text, and stay what they are.
fn accepted(form: &Form, sent: &Value) {
    let again = form.check(sent.clone()).expect("answers fit their form");
    assert_eq!(again.to_value(), *sent);
    let text = form.check_text(&sent.to_string());
    assert_eq!(text.expect("their text fits").to_value(), *sent);
    let asked = check_asked(form, sent.clone()).expect("each was asked for");
    assert_eq!(asked.to_value(), *sent);
}

/// A client of another era is shown a legal form. What it answers can be read back, or is refused with reasons.
fn shown_elsewhere(form: &Form, revision: Revision, typed: &str) {
    let Ok(schema) = form.emit(revision) else {
        return;
    };
    let legal = Form::from_value(&schema).expect("what is written is legal");
    for draft in [drafted(&legal, typed), picked(&legal, typed)] {
        let Ok(answers) = legal.read(&draft) else {
            continue;
        };
        match form.check_emitted(answers.to_value()) {
            Ok(read) => accepted(form, &read.to_value()),
            Err(violations) => assert!(!violations.is_empty(), "refused without a reason"),
        }
    }
}
