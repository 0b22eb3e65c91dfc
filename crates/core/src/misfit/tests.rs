use serde_json::{Value, json};

use super::*;

fn said(kind: ResultKind, result: &Value) -> Vec<String> {
    fit(kind, &result.to_string())
        .misfits
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_legal_result_is_unchanged() {
    let legal = json!({
        "content": [
            {"type": "text", "text": "a", "annotations": {"audience": ["user"], "priority": 0.5}, "x": 1},
            {"type": "image", "data": "", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "a:b", "blob": ""}},
            {"type": "resource_link", "uri": "a:b", "name": "b", "size": 7},
        ],
        "structuredContent": null, "isError": true, "_meta": {"y": []}, "z": {},
    });
    let fitted = fit(ResultKind::Tool, &legal.to_string());
    assert_eq!((fitted.value, fitted.misfits), (legal, Vec::new()));
}

#[test]
fn each_misfit_is_named_by_pointer_and_value() {
    let cases = [
        (
            ResultKind::Tool,
            json!(null),
            vec!["the result: null is not an object"],
        ),
        (
            ResultKind::Tool,
            json!([]),
            vec![
                "the result: [] is not an object",
                "/content: a list is missing",
            ],
        ),
        (
            ResultKind::Tool,
            json!({"content": {"type": "text"}}),
            vec!["/content: {\"type\":\"text\"} is not a list"],
        ),
        (
            ResultKind::Tool,
            json!({"content": ["hi"]}),
            vec!["/content/0: \"hi\" is not an object"],
        ),
        (
            ResultKind::Tool,
            json!({"content": [{"text": "hi"}]}),
            vec!["/content/0/type: text, image, audio, resource or resource_link is missing"],
        ),
        (
            ResultKind::Tool,
            json!({"content": [{"type": "text", "text": {"a~/b": 1}}]}),
            vec!["/content/0/text: {\"a~/b\":1} is not a string"],
        ),
        (
            ResultKind::Tool,
            json!({"content": [], "_meta": 3, "isError": 2}),
            vec!["/isError: 2 is not a boolean", "/_meta: 3 is not an object"],
        ),
        (
            ResultKind::Prompt,
            json!({"messages": [{"role": "system", "content": {"type": "text", "text": "a"}}]}),
            vec!["/messages/0/role: \"system\" is not user or assistant"],
        ),
        (
            ResultKind::Resource,
            json!({"contents": [{"uri": "a:b"}]}),
            vec!["/contents/0: {\"uri\":\"a:b\"} is not contents with a text or a blob"],
        ),
        (
            ResultKind::Tools,
            json!({"tools": [{"inputSchema": {}}, {"name": "a"}]}),
            vec![
                "/tools/0/name: a string is missing",
                "/tools/1/inputSchema: an object is missing",
            ],
        ),
        (
            ResultKind::Templates,
            json!({"resourceTemplates": [{"uriTemplate": 5, "name": "x"}]}),
            vec!["/resourceTemplates/0/uriTemplate: 5 is not a string"],
        ),
        (
            ResultKind::Discover,
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete", "ttlMs": -1, "cacheScope": "shared"}),
            vec![
                "/ttlMs: -1 is not a whole number from zero",
                "/cacheScope: \"shared\" is not public or private",
            ],
        ),
        (
            ResultKind::InputRequired,
            json!({"inputRequests": {"a/b": {"method": "ask"}}}),
            vec![
                "/inputRequests/a~1b/method: \"ask\" is not elicitation/create, sampling/createMessage or roots/list",
            ],
        ),
    ];
    for (kind, result, expected) in cases {
        assert_eq!(said(kind, &result), expected, "{result}");
    }
}

#[test]
fn what_can_be_read_is_kept() {
    let result = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"tools": true, "prompts": [], "resources": false, "logging": null},
        "serverInfo": {"name": 7, "icons": [{"src": "a", "sizes": "48x48"}, {"sizes": []}]}, "instructions": ["a"],
    });
    let fitted = fit(ResultKind::Initialize, &result.to_string());
    assert_eq!(
        fitted.value,
        json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}},
            "serverInfo": {"name": "7", "version": "", "icons": [{"src": "a"}]},
        })
    );
    assert!(fitted.misses("/serverInfo/version") && fitted.misses("/serverInfo/icons/0/sizes"));
    assert!(!fitted.misses("/serverInfo"));
}

#[test]
fn a_number_in_another_spelling_is_no_misfit() {
    let link = json!({"type": "resource_link", "uri": "a:b", "name": "b", "size": 5.0e9});
    let huge = r#"{"type":"resource_link","uri":"a:b","name":"b","size":1e300}"#;
    let result = format!(r#"{{"content":[{link},{huge}]}}"#);
    let fitted = fit(ResultKind::Tool, &result);
    assert_eq!(fitted.misfits, []);
    assert_eq!(fitted.value["content"][0]["size"], json!(5_000_000_000_u64));
    assert_eq!(fitted.value["content"][1].get("size"), None);
}

#[test]
fn values_are_cut_and_misfits_are_bounded() {
    let result = json!({"content": (0..500).map(|_| "é".repeat(500)).collect::<Vec<_>>()});
    let fitted = fit(ResultKind::Tool, &result.to_string());
    assert_eq!(fitted.misfits.len(), 50);
    assert!(fitted.misfits[0].to_string().len() < 200);
    let deep = format!(r#"{{"content":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    assert_eq!(fit(ResultKind::Tool, &deep).misfits.len(), 1);
}

#[test]
fn errors_are_read_in_every_spelling() {
    for (error, code, message, misfits) in [
        (json!({"code": -1, "message": "m", "data": 1}), -1, "m", 0),
        (json!({"code": "-32601", "message": "m"}), -32601, "m", 1),
        (json!({"code": 1e300, "message": "m"}), -32603, "m", 1),
        (json!({"message": ["m"]}), -32603, "[\"m\"]", 2),
        (json!("boom"), -32603, "boom", 1),
        (json!(null), -32603, "", 1),
    ] {
        let fitted = fit_error(&error);
        assert_eq!(fitted.value["code"], code, "{error}");
        assert_eq!(fitted.value["message"], message, "{error}");
        assert_eq!(fitted.misfits.len(), misfits, "{error}");
    }
}

#[test]
fn only_what_is_not_json_is_mended() {
    for legal in [
        r#"{"a":"NaN \ud83d\ude00 \\ud800 \" -Infinity"}"#,
        "[-1, \"\\n\"]",
    ] {
        assert_eq!(mend(legal.as_bytes()), None, "{legal}");
    }
    for (broken, mended) in [
        (&b"[-Infinity,Infinity]"[..], "[null,null]"),
        (b"[\"\\ude00\\ud83d\"]", "[\"\\ufffd\\ufffd\"]"),
        (b"[\"caf\xe9\"]", "[\"caf\u{fffd}\"]"),
        (b"[\"\x1b[0m\"]", "[\"\\u001b[0m\"]"),
        // Left as it is, and no JSON.
        (b"[NaN,\"\\ud8", "[null,\"\\ud8"),
    ] {
        assert_eq!(
            mend(broken).map(|mended| mended.text).as_deref(),
            Some(mended)
        );
    }
}
