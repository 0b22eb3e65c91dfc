use rmcp::model::{CallToolRequest, CallToolRequestParams};

use super::*;

/// Returns the reader of a connection on which a tool's call with the id 7 is awaited.
fn awaiting() -> (PendingMessages, Health, ResultSlot) {
    let health = Health::default();
    let messages = PendingMessages::new(health.clone());
    let slot = ResultSlot::default();
    let mut call = CallToolRequest::new(CallToolRequestParams::new("t"));
    call.extensions.insert(slot.clone());
    let request = ClientRequest::CallToolRequest(call);
    messages.sends(&ClientJsonRpcMessage::request(
        request,
        RequestId::Number(7),
    ));
    (messages, health, slot)
}

fn said(health: &Health) -> Vec<String> {
    health.findings().iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_no_message_is_passed_over() {
    let (messages, health, _slot) = awaiting();
    for stray in [
        "",
        "ready",
        "null",
        "\"text\"",
        "7",
        "[]",
        "[1,2]",
        "[{\"id\":7,\"result\":{}}]",
        "{}",
        r#"{"level":30,"time":1,"msg":"up"}"#,
        r#"{"level":30,"id":"r1","method":"GET","url":"/"}"#,
        r#"{"id":7,"msg":"seven"}"#,
        r#"{"id":9,"result":"done"}"#,
        r#"{"error":"refused","code":1}"#,
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"x","result":{}}"#,
    ] {
        assert!(
            matches!(messages.read(stray.as_bytes()), Heard::Stray),
            "{stray}"
        );
    }
    assert!(said(&health).is_empty());
    assert!(messages.awaits(&RequestId::Number(7)));
}

#[test]
fn a_broken_line_names_the_request_that_it_seems_to_answer() {
    let (messages, _health, _slot) = awaiting();
    for (line, answers) in [
        (
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":["#,
            Some(RequestId::Number(7)),
        ),
        (
            r#"{"jsonrpc":"2.0", "id" : "7", "error": {"#,
            Some(RequestId::String("7".into())),
        ),
        (r#"{"jsonrpc":"2.0","id":7,"resu"#, None),
        (r#"{"level":30,"msg":"cut"#, None),
        ("[DEBUG] ready", None),
    ] {
        let Heard::Broken { answers: found, .. } = messages.read(line.as_bytes()) else {
            panic!("broken: {line}");
        };
        assert_eq!(found, answers, "{line}");
    }
}

#[test]
fn a_response_is_read_however_it_is_wrapped() {
    for (frame, result, finding) in [
        (
            &br#"{"jsonrpc":"2.0","id":7,"result":{"a" : 1.0}}"#[..],
            r#"{"a" : 1.0}"#,
            None,
        ),
        (
            b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":null}",
            "null",
            None,
        ),
        (
            br#"{"id":7,"result":{},"error":null}"#,
            "{}",
            Some("jsonrpc of a message is missing"),
        ),
        (
            br#"{"jsonrpc":2.0,"id":7.0,"result":[1]}"#,
            "[1]",
            Some("jsonrpc of a message is 2.0"),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"t\":\"\xff\"}}",
            "{\"t\":\"\u{fffd}\"}",
            Some("not UTF-8"),
        ),
        (
            br#"{"jsonrpc":"2.0","id":7,"result":{"n":NaN,"s":"\ud800"}}"#,
            r#"{"n":null,"s":"\ufffd"}"#,
            Some("NaN"),
        ),
    ] {
        let (messages, health, slot) = awaiting();
        let shown = String::from_utf8_lossy(frame);
        let Heard::Message(message, text) = messages.read(frame) else {
            panic!("a message: {shown}");
        };
        assert!(
            matches!(*message, ServerJsonRpcMessage::Response(_)),
            "{shown}"
        );
        assert!(
            serde_json::from_slice::<ServerJsonRpcMessage>(&text).is_ok(),
            "{shown}"
        );
        assert_eq!(
            slot.take().map(|raw| raw.get().to_owned()).as_deref(),
            Some(result),
            "{shown}"
        );
        match finding {
            Some(finding) => assert!(
                said(&health)[0].contains(finding),
                "{shown}: {:?}",
                said(&health)
            ),
            None => assert!(said(&health).is_empty(), "{shown}"),
        }
        // The second response to a request is none.
        assert!(matches!(messages.read(frame), Heard::Stray), "{shown}");
    }
}

#[test]
fn an_error_is_read_whatever_its_members_are() {
    for (error, code, message) in [
        (r#"{"code":-1,"message":"m"}"#, -1, "m"),
        (r#"{"code":"E","message":"m"}"#, -32603, "m"),
        (r#""boom""#, -32603, "boom"),
        (r#"{"code":99999999999}"#, -32603, ""),
    ] {
        let (messages, _health, _slot) = awaiting();
        let frame = format!(r#"{{"jsonrpc":"2.0","id":7,"error":{error}}}"#);
        let Heard::Message(read, _) = messages.read(frame.as_bytes()) else {
            panic!("a message: {frame}");
        };
        let ServerJsonRpcMessage::Error(read) = *read else {
            panic!("an error: {frame}");
        };
        assert_eq!((read.error.code.0, &*read.error.message), (code, message));
        assert!(!messages.awaits(&RequestId::Number(7)));
    }
}

#[test]
fn a_question_with_any_id_gets_its_answer_under_that_id() {
    for id in [
        "null",
        "123456789012345678901234567890",
        "1.5",
        "true",
        "{\"a\":1}",
    ] {
        let (messages, health, _slot) = awaiting();
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"message":"m"}}}}"#
        );
        let Heard::Message(read, _) = messages.read(frame.as_bytes()) else {
            panic!("a message: {frame}");
        };
        let ServerJsonRpcMessage::Request(request) = *read else {
            panic!("a request: {frame}");
        };
        assert_eq!(said(&health).len(), 1, "{frame}");
        let answer = ClientJsonRpcMessage::error(
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no", None),
            Some(request.id),
        );
        let written =
            String::from_utf8(messages.written(&answer).expect("it can be written")).expect("text");
        assert!(written.contains(&format!("\"id\":{id}")), "{written}");
    }
}

#[test]
fn a_batch_of_messages_is_read_and_any_other_list_is_not() {
    let (messages, _health, slot) = awaiting();
    let frame =
        r#"[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":7,"result":{}}]"#;
    let Heard::Batch(batch) = messages.read(frame.as_bytes()) else {
        panic!("a batch");
    };
    assert_eq!(batch.len(), 2);
    assert!(slot.take().is_some());
}
