use std::time::Duration;

use mcp_elicit_core::wire::Revision;

use super::*;
use crate::cell::Cell;
use crate::finding::CellFinding;
use crate::observation::SentFrame;

fn result(cell: Cell, verdict: CellVerdict, codes: &[Code]) -> CellResult {
    let findings = codes.iter().map(|code| CellFinding {
        code: *code,
        message: "the call | said <b>\u{1b}[31m".to_owned(),
    });
    CellResult {
        cell,
        verdict,
        findings: findings.collect(),
        allowed: Vec::new(),
        why: None,
        frames: vec![SentFrame {
            from_server: true,
            text: "{\"id\":1}\u{1}".to_owned(),
        }],
        took: Duration::from_millis(1500),
    }
}

fn report() -> RunReport {
    RunReport {
        server: "my-server".to_owned(),
        suites: vec![Suite {
            tool: "deploy".to_owned(),
            revision: Revision::V2025_11_25,
            results: vec![
                result(Cell::Accept, CellVerdict::Pass, &[]),
                result(Cell::NoAnswer, CellVerdict::Warn, &[Code::NoTimeout]),
                result(
                    Cell::Decline,
                    CellVerdict::Fail,
                    &[Code::EffectWithoutAccept],
                ),
                result(Cell::NoState, CellVerdict::NotApplicable, &[]),
            ],
        }],
        not_spoken: vec![Revision::V2026_07_28],
        took: Duration::from_secs(3),
    }
}

#[test]
fn people_read_the_failure_with_its_clause_and_frames() {
    let text = text(&report());
    assert!(text.contains("deploy on 2025-11-25"), "{text}");
    assert!(text.contains("(effect-without-accept)"), "{text}");
    assert!(text.contains("2025-11-25/client/elicitation"), "{text}");
    assert!(text.contains("<- {\"id\":1}"), "{text}");
    assert!(text.contains("2026-07-28: the server does not speak it"));
    assert!(text.ends_with("1 fail, 1 warn, 1 pass, 1 not-applicable in 3.0 s"));
    assert!(
        !text.contains('\u{1b}') && !text.contains('\u{1}'),
        "{text}"
    );
}

#[test]
fn programs_read_one_object_per_cell_and_a_summary() {
    let lines = lines(&report());
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[2]["findings"][0]["code"], "effect-without-accept");
    assert_eq!(lines[2]["frames"][0]["from"], "server");
    assert_eq!(lines[4]["counts"]["fail"], 1);
    assert_eq!(lines[4]["verdict"], "fail");
    assert_eq!(lines[4]["not_spoken"][0], "2026-07-28");
}

#[test]
fn junit_is_xml_with_one_failure() {
    let xml = junit(&report()).unwrap();
    let read = quick_junit::Report::deserialize_from_str(&xml).unwrap();
    assert_eq!(read.test_suites.len(), 1);
    assert_eq!(read.test_suites[0].failures, 1);
    assert_eq!(xml.matches("<skipped").count(), 1, "{xml}");
    assert!(!xml.contains('\u{1b}') && !xml.contains('\u{1}'), "{xml}");
}

/// The characters of XML 1.0, section 2.2.
#[test]
fn junit_holds_only_characters_that_xml_has_whatever_a_server_says() {
    let odd: String = (0..=0x20)
        .chain(0xd7ff..0xe001)
        .chain(0xfff0..0x10001)
        .chain([0x0001_fffe, 0x0010_fffe, 0x0010_ffff])
        .filter_map(char::from_u32)
        .collect();
    let mut report = report();
    report.suites[0].tool.push_str(&odd);
    for result in &mut report.suites[0].results {
        result.why = Some(odd.clone());
        result.frames[0].text.push_str(&odd);
        for finding in &mut result.findings {
            finding.message.push_str(&odd);
        }
    }
    let xml = junit(&report).unwrap();
    let is_char = |letter: char| matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let others: String = xml.chars().filter(|letter| !is_char(*letter)).collect();
    assert_eq!(others.escape_unicode().to_string(), "");
    for code in (0..0x20).chain([0xfffe, 0xffff]) {
        for spelled in [
            format!("&#{code};"),
            format!("&#x{code:x};"),
            format!("&#x{code:X};"),
        ] {
            let is_allowed = [9, 10, 13].contains(&code);
            assert!(is_allowed || !xml.contains(&spelled), "{spelled}");
        }
    }
    quick_junit::Report::deserialize_from_str(&xml).unwrap();
}

#[test]
fn markdown_of_a_server_starts_no_markup() {
    let text = markdown(&report());
    assert!(
        text.contains("| deploy | 2025-11-25 | 1 | 1 | 1 |"),
        "{text}"
    );
    assert!(text.contains("said &lt;b&gt;"), "{text}");
    assert!(text.contains("call \\| said"), "{text}");
}

#[test]
fn an_allowed_code_causes_no_verdict_and_is_listed() {
    let mut report = report();
    report.allow(&[Code::EffectWithoutAccept]);
    assert_eq!(report.verdict(), CellVerdict::Warn);
    assert!(text(&report).contains("allowed        decline: effect-without-accept"));
    assert_eq!(
        lines(&report)[2]["allowed"][0]["code"],
        "effect-without-accept"
    );
}

#[test]
fn a_tool_s_name_is_on_one_line_of_every_report() {
    let mut report = report();
    report.suites[0].tool = "t\r\n::error ::x\u{2028}## y\u{202e}z".to_owned();
    for text in [text(&report), markdown(&report), junit(&report).unwrap()] {
        let begins = |line: &str| line.trim_start().starts_with("::") || line.starts_with("## y");
        assert!(!text.lines().any(begins), "{text}");
        assert!(!text.contains(['\u{2028}', '\u{202e}']), "{text}");
    }
}
