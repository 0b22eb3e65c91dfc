//! Tests of the members that the scan finds and of the frames that it rejects.

use super::*;

fn part<'a>(frame: &'a str, range: Option<&Range<usize>>) -> &'a str {
    &frame[range.unwrap().clone()]
}

#[test]
fn members_are_found_wherever_they_stand() {
    let frame =
        r#" { "result" : {"a":[1,{"id":"no"}],"s":"}\"{"} , "jsonrpc":"2.0", "id" : "x,1" } "#;
    let index = FrameIndex::at(frame.as_bytes()).unwrap();
    assert_eq!(index.shape(), Some(Shape::Response));
    assert_eq!(part(frame, index.id.as_ref()), r#""x,1""#);
    assert_eq!(
        part(frame, index.result.as_ref()),
        r#"{"a":[1,{"id":"no"}],"s":"}\"{"}"#
    );
    let inner = member(frame.as_bytes(), index.result.as_ref().unwrap(), "s");
    assert_eq!(part(frame, inner.as_ref()), r#""}\"{""#);
}

#[test]
fn a_request_gives_its_method_without_quotes() {
    let frame = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}"#;
    let index = FrameIndex::at(frame.as_bytes()).unwrap();
    assert_eq!(part(frame, index.method.as_ref()), "tools/call");
    assert_eq!(part(frame, index.id.as_ref()), "7");
    assert_eq!(index.shape(), Some(Shape::Request));
    assert_eq!(index.meta, None);
    assert_eq!(index.method_in(frame.as_bytes()), Some("tools/call"));
    assert_eq!(index.id_in(frame.as_bytes()).unwrap().as_json(), "7");
    // The index of another frame finds the value at that place, if any.
    assert_eq!((index.method_in(b"{}"), index.id_in(b"{}")), (None, None));
}

#[test]
fn members_of_params_are_found_there_and_nowhere_else() {
    let frame = r#"{"id":7,"method":"m","_meta":0,"params":{"a":{"_meta":1,"name":0},"_meta" : {"x":2},"name":"n","uri":"u",
        "arguments":{},"requestState":"s","inputResponses":{}}}"#;
    let index = FrameIndex::read(frame.as_bytes()).unwrap();
    assert_eq!(part(frame, index.meta.as_ref()), r#"{"x":2}"#);
    assert_eq!(part(frame, index.name.as_ref()), r#""n""#);
    assert_eq!(part(frame, index.uri.as_ref()), r#""u""#);
    assert_eq!(part(frame, index.arguments.as_ref()), "{}");
    assert_eq!(part(frame, index.request_state.as_ref()), r#""s""#);
    assert_eq!(part(frame, index.input_responses.as_ref()), "{}");
    for odd in [r#""_meta""#, r#"["_meta",1]"#] {
        let frame = format!(r#"{{"id":7,"method":"m","params":{odd}}}"#);
        let index = FrameIndex::read(frame.as_bytes()).unwrap();
        assert_eq!(
            (part(&frame, index.params.as_ref()), index.meta),
            (odd, None)
        );
    }
}

#[test]
fn a_member_that_stands_twice_is_refused() {
    for (frame, location) in [
        (r#"{"method":"a","method":"b"}"#, "the message"),
        (r#"{"id":1,"id":2,"method":"a"}"#, "the message"),
        (r#"{"id":1,"result":{},"result":{}}"#, "the message"),
        (
            r#"{"id":1,"method":"a","params":{},"params":{}}"#,
            "the message",
        ),
        (r#"{"x":1,"\u0078":2,"method":"a"}"#, "the message"),
        (r#"{"\u0078":1,"x":2,"method":"a"}"#, "the message"),
        (
            r#"{"method":"tools/call","id":1,"params":{"name":"harmless","arguments":{},"name":"delete_all"}}"#,
            "`params`",
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"arguments":{},"name":"t","arguments":{"force":true}}}"#,
            "`params`",
        ),
        (
            r#"{"id":1,"method":"resources/read","params":{"uri":"a","uri":"b"}}"#,
            "`params`",
        ),
        (
            r#"{"id":1,"method":"m","params":{"_meta":{},"_meta":{}}}"#,
            "`params`",
        ),
        (
            r#"{"id":1,"method":"m","params":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"i":10}}"#,
            "`params`",
        ),
        (
            r#"{"id":1,"method":"m","params":{"_meta":{"progressToken":1,"progressToken":2}}}"#,
            "`_meta`",
        ),
    ] {
        assert_eq!(
            FrameIndex::read(frame.as_bytes()),
            Err(FrameDefect::Duplicate { location }),
            "{frame}"
        );
    }
}

#[test]
fn a_member_that_stands_twice_is_refused_however_many_others_there_are() {
    let names: Vec<String> = (0..40).map(|number| format!("member{number}")).collect();
    let members = |more: &str| {
        let all: Vec<String> = names.iter().map(|name| format!(r#""{name}":0"#)).collect();
        format!(
            r#"{{"id":1,"method":"m","params":{{{}{more}}}}}"#,
            all.join(",")
        )
    };
    assert!(FrameIndex::read(members("").as_bytes()).is_ok());
    let location = "`params`";
    for name in &names {
        let escaped = name.replace('m', "\\u006d");
        for again in [name, &escaped] {
            let frame = members(&format!(r#","{again}":1"#));
            assert_eq!(
                FrameIndex::read(frame.as_bytes()),
                Err(FrameDefect::Duplicate { location }),
                "{again}"
            );
        }
    }
}

#[test]
fn a_member_that_is_spelled_to_be_overlooked_is_refused() {
    for (frame, location) in [
        (r#"{"m\u0065thod":"b"}"#, "the message"),
        (r#"{"id":1,"Method":"b","result":{}}"#, "the message"),
        (
            r#"{"id":1,"method":"tools/call","params":{"n\u0061me":"t"}}"#,
            "`params`",
        ),
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"t","Name":"u"}}"#,
            "`params`",
        ),
        (
            r#"{"params":{"name":"t","ARGUMENTS":{}},"id":1,"method":"tools/call"}"#,
            "`params`",
        ),
        (
            "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\"argument\u{17f}\":{}}}",
            "`params`",
        ),
        (
            r#"{"id":1,"method":"m","params":{"inputRespon\u0073es":{}}}"#,
            "`params`",
        ),
    ] {
        assert_eq!(
            FrameIndex::read(frame.as_bytes()),
            Err(FrameDefect::Spelling { location }),
            "{frame}"
        );
    }
}

/// Python's SDK also accepts members under their Python names.
#[test]
fn a_name_with_the_letters_of_a_member_that_decides_is_refused() {
    let location = "`params`";
    for method in [
        "tools/call",
        "prompts/get",
        "resources/read",
        "tasks/update",
        "tasks/get",
    ] {
        for member in [
            r#""input_responses":{}"#,
            r#""input-responses":{}"#,
            r#""inputResponses ":{}"#,
            r#""input\u005fresponses":{}"#,
            "\"\u{feff}inputResponses\":{}",
            r#""request_state":"s""#,
            r#""RequestState":"s""#,
            r#""task_id":"t""#,
            r#""Task":{}"#,
            r#""meta":{}"#,
            r#""_meta":{"progress_token":1}"#,
            r#""_meta":{"io.modelcontextprotocol/protocol_version":"2026-07-28"}"#,
            r#""_meta":{"io_modelcontextprotocol_clientCapabilities":{}}"#,
            r#""_meta":{"io.modelcontextprotocol\/client\u0049nfo ":{}}"#,
            r#""_meta":{"io.modelcontextprotocol/relatedTask":{}}"#,
        ] {
            let frame =
                format!(r#"{{"id":1,"method":"{method}","params":{{"name":"t",{member}}}}}"#);
            assert_eq!(
                FrameIndex::read(frame.as_bytes()),
                Err(FrameDefect::Spelling { location }),
                "{frame}"
            );
        }
    }
}

#[test]
fn other_members_may_be_spelled_as_they_like() {
    for frame in [
        r#"{"id":1,"method":"m","params":{"gr\u00f6\u00dfe":1,"gro":2}}"#,
        r#"{"id":1,"method":"other","params":{"Name":1,"name":2}}"#,
        r#"{"id":1,"method":"other","params":{"input_responses":1,"meta":2,"_meta":{"progress_token":3}}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol\/logLevel":"info","x/meta":1}}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"t","_meta":{"a":{"progress_token":3}},"metadata":1}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"Name":1,"n\u0061me":2}}}"#,
    ] {
        assert!(FrameIndex::read(frame.as_bytes()).is_ok(), "{frame}");
    }
}

#[test]
fn the_id_of_what_is_refused_is_told_where_there_is_one() {
    let id = |frame: &str| only_id(frame.as_bytes()).map(|id| id.as_json().to_owned());
    let doubled = r#"{"id":7,"method":"m","params":{"name":1,"name":2}}"#;
    assert_eq!(id(doubled).as_deref(), Some("7"));
    for nameless in [
        r#"{"id":7,"id":8}"#,
        r#"{"id":7,"ID":8}"#,
        r#"{"id":{}}"#,
        "[1]",
        "",
        r#"{"id":7}}"#,
    ] {
        assert_eq!(id(nameless), None, "{nameless}");
    }
}

#[test]
fn what_is_not_one_object_is_refused() {
    for frame in [
        r#"{"method":"a"} {"method":"b"}"#,
        r#"[{"method":"a"}]"#,
        r#"{"method":"a""#,
        r#"{"method""#,
        r#"{"id":1,"method":"m","params":{"_meta":1]}"#,
        r#"{"a":"\"#,
        "",
        "{",
        "null",
    ] {
        assert_eq!(
            FrameIndex::read(frame.as_bytes()),
            Err(FrameDefect::NotOneObject),
            "{frame}"
        );
    }
    let escaped = r#"{"method":"elicit\u0061tion/create","id":1}"#;
    assert_eq!(
        FrameIndex::read(escaped.as_bytes()),
        Err(FrameDefect::Method)
    );
    assert_eq!(FrameDefect::Method.code(), -32600);
}

#[test]
fn a_member_that_decides_must_stand_once_and_plainly() {
    let sole = |object: &str| {
        let found = sole_member(object.as_bytes(), &(0..object.len()), "kind");
        found.map(|range| range.map(|range| object[range].to_owned()))
    };
    assert_eq!(
        sole(r#"{"a":{"kind":0},"kind":1}"#),
        Ok(Some("1".to_owned()))
    );
    assert_eq!(sole(r#"{"a":{"k\u0069nd":0}}"#), Ok(None));
    for unclear in [r#"{"kind":1,"kind":2}"#, r#"{"k\u0069nd":1}"#, "[1]", "1"] {
        assert_eq!(sole(unclear), Err(Unclear), "{unclear}");
    }
}

proptest::proptest! {
    #[test]
    fn it_never_panics_and_agrees_with_a_parser(text in ".{0,60}", bytes in proptest::collection::vec(0_u8..=255, 0..60)) {
        let _ = FrameIndex::at(&bytes);
        let frame = serde_json::json!({"jsonrpc": "2.0", "x": [text, {"y": text}], "id": text, "result": {"k": text}}).to_string();
        let index = FrameIndex::at(frame.as_bytes()).unwrap();
        let id: String = serde_json::from_str(&frame[index.id.unwrap()]).unwrap();
        proptest::prop_assert_eq!(&id, &text);
        let value = member(frame.as_bytes(), &index.result.unwrap(), "k").unwrap();
        let value: String = serde_json::from_str(&frame[value]).unwrap();
        proptest::prop_assert_eq!(value, text);
    }
}

#[test]
fn a_result_with_members_of_2026_07_28_is_known_by_their_names() {
    for (result, has) in [
        (r#"{"content":[{"resultType":"task"}]}"#, false),
        (r#"{"content":[],"resultType":"complete"}"#, true),
        (r#"{"inputRequests":{}}"#, true),
        (r#"{"result\u0054ype":"task"}"#, true),
        (r#"["resultType"]"#, false),
        ("{}", false),
        ("7", false),
    ] {
        let frame = format!(r#"{{"id":1,"result":{result} ,"jsonrpc":"2.0"}}"#);
        let index = FrameIndex::read(frame.as_bytes()).unwrap();
        assert_eq!(index.has_rounds_member, has, "{result}");
        assert_eq!(&frame[index.result.unwrap()], result);
    }
}

#[test]
fn a_response_that_nearly_asks_is_refused() {
    for odd in [
        r#"{"id":1,"result":{"ResultType":"input_required"}}"#,
        r#"{"id":1,"result":{"content":[],"inputrequests":{}}}"#,
        r#"{"id":1,"result":{"resultType":"complete","re\u0073ulttype":"input_required"}}"#,
        "{\"id\":1,\"result\":{\"request\u{17f}tate\":\"s\"}}",
        r#"{"id":1,"result":{"result_type":"input_required"}}"#,
        r#"{"id":1,"result":{"input_requests":{}}}"#,
    ] {
        let location = "`result`";
        let spelling = Err(FrameDefect::Spelling { location });
        assert_eq!(FrameIndex::read(odd.as_bytes()), spelling, "{odd}");
    }
    let odd = r#"{"id":1,"error":{"Code":-32042,"message":"m"}}"#;
    let location = "`error`";
    let spelling = Err(FrameDefect::Spelling { location });
    assert_eq!(FrameIndex::read(odd.as_bytes()), spelling);
    for fine in [
        r#"{"id":1,"result":{"re\u0073ultType":"complete","a":{"ResultType":1}}}"#,
        r#"{"id":1,"result":[{"ResultType":1}]}"#,
        r#"{"id":1,"error":{"code":1,"data":{"Code":1}}}"#,
    ] {
        assert!(FrameIndex::read(fine.as_bytes()).is_ok(), "{fine}");
    }
}

#[test]
fn a_response_has_one_outcome() {
    let two = r#"{"id":1,"result":{"content":[]},"error":{"code":1,"message":"m"}}"#;
    assert_eq!(
        FrameIndex::read(two.as_bytes()),
        Err(FrameDefect::TwoOutcomes)
    );
    for fine in [
        r#"{"id":1,"result":{},"error":null}"#,
        r#"{"id":1,"result":null,"error":{"code":1,"message":"m"}}"#,
    ] {
        assert!(FrameIndex::read(fine.as_bytes()).is_ok(), "{fine}");
    }
}
