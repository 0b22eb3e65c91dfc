//! The code of this crate's README and of `docs/lint.md`, word for word: it compiles and runs.

use std::error::Error;

#[test]
fn a_form_is_built_and_checks_what_a_person_sent() -> Result<(), Box<dyn Error>> {
    use mcp_elicit_core::form::{FieldBuilder, Form};

    let form = Form::builder()
        .field("age", FieldBuilder::integer().minimum(18).required())
        .build()?;
    assert!(form.check_text(r#"{"age": 36}"#).is_ok());
    assert!(form.check_text(r#"{"age": 12}"#).is_err());
    Ok(())
}

#[test]
fn a_form_is_linted() {
    let schema_text = String::from(
        r#"{"type": "object", "properties": {"age": {"type": "integer", "title": "Age"}}}"#,
    );

    let report = mcp_elicit_core::lint::lint(&schema_text, None);
    assert!(!report.has_errors(), "{:?}", report.findings);
}

/// Returns code without the effects of rustfmt and indentation.
fn bare(code: &str) -> String {
    code.chars().filter(|c| !c.is_whitespace()).collect()
}

#[test]
fn the_guides_show_this_very_code() {
    let here = bare(include_str!("guide.rs"));
    for guide in [
        include_str!("../README.md"),
        include_str!("../../../docs/lint.md"),
    ] {
        let blocks = guide.split("```rust\n").skip(1);
        let blocks: Vec<_> = blocks
            .filter_map(|rest| Some(rest.split_once("```")?.0))
            .collect();
        assert!(!blocks.is_empty());
        for block in blocks {
            assert!(here.contains(&bare(block)), "{block}");
        }
    }
}
