//! Any text as a requestedSchema: it is read or refused, and what was read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::wire::Revision;
use serde_json::Value;

fuzz_target!(|text: &str| {
    match Form::parse(text) {
        Err(defects) => assert!(defects.iter().count() > 0, "refused without a reason"),
        Ok(form) => {
            written_and_read_again(&form);
            defaults_fit(&form);
        }
    }
});

fn written_and_read_again(form: &Form) {
    for revision in Revision::ALL {
        let Ok(schema) = form.emit(revision) else {
            assert!(
                !revision.has_several_choices(),
                "the newest can say everything"
            );
            continue;
        };
        let again = Form::from_value(&schema).expect("what is written is legal");
        assert_eq!(again.emit(revision).expect("still sayable"), schema);
        assert_eq!(again.fields().len(), form.fields().len());
    }
}

/// A default that its field refuses is a defect, so what is wrong with all defaults is at most what is missing.
fn defaults_fit(form: &Form) {
    let violations = form.violations(&Value::Object(form.defaults()));
    assert!(
        violations
            .iter()
            .all(|violation| violation.rule().code() == "required"),
        "{violations}"
    );
}
