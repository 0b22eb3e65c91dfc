//! Any text as a file of rules, and as a condition: it is read or refused with places that exist, and what was read decides.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_elicit_core::wire::CallKind;
use mcp_elicit_policy::{Annotations, Caller, Facts, KnownCall, Now, QuestionFacts, Rules};

const ARGUMENTS: &str = r#"{"environment":"production","n":3,"list":[1,"a",null],"deep":{"a":{"b":1.5}},"huge":9223372036854775809}"#;

fuzz_target!(|text: &str| {
    whole_file(text);
    if !text.contains("'''") {
        whole_file(&format!("[[rules]]\nwhen = '''{text}'''\nallow = true\n"));
        whole_file(&format!("[[rules]]\nwhen = '''{text}'''\nrefuse = \"no\"\n"));
    }
});

fn whole_file(text: &str) {
    let loaded = Rules::load(text);
    let lines = text.matches('\n').count() + 1;
    for defect in loaded.defects.iter().chain(&loaded.warnings) {
        assert!((1..=lines).contains(&defect.line), "{defect}");
        assert!(defect.column >= 1, "{defect}");
    }
    let Some(rules) = loaded.rules else {
        assert!(!loaded.defects.is_empty(), "refused without a reason");
        return;
    };
    let (caller, now) = (Caller::default(), Now::default());
    let call = KnownCall {
        kind: CallKind::Tool,
        target: "deploy",
        arguments: Some(ARGUMENTS),
        annotations: Annotations::default(),
    };
    let question = QuestionFacts {
        mode: "form".to_owned(),
        ..QuestionFacts::default()
    };
    for call in [Some(call), None] {
        let facts = Facts {
            caller: &caller,
            groups: &[],
            server: "deploy",
            call,
            now: &now,
        };
        // What is simulated is what is decided.
        let preview = rules.preview(&facts, Some(&question));
        assert_eq!(preview.admit, rules.admit(&facts));
        if let Some(planned) = preview.planned {
            assert_eq!(planned, rules.plan(&facts, &question));
        }
    }
}
