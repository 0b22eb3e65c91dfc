//! Any schema and any content, parted by a NUL: judged from the text and from the value alike.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_elicit_core::form::Form;
use serde_json::Value;

fuzz_target!(|input: &str| {
    let Some((schema, content)) = input.split_once('\0') else {
        return;
    };
    let Ok(form) = Form::parse(schema) else {
        return;
    };
    let from_text = form.check_text(content);
    let Ok(value) = serde_json::from_str::<Value>(content) else {
        return;
    };
    let violations = form.violations(&value);
    let from_value = form.check(value);
    assert_eq!(from_value.is_ok(), violations.is_empty());
    // Of a doubled key the text judges both values and the value holds the last: text is never the milder.
    if let Ok(answers) = from_text {
        let same = from_value.expect("what the text passes the value passes");
        assert_eq!(answers.to_value(), same.to_value());
        let again = form
            .check(answers.to_value())
            .expect("answers are valid content");
        assert_eq!(again.to_value(), answers.to_value());
    }
});
