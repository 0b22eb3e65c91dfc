//! The transport at each bound of its input and output, and beside rmcp's reading of the same messages.

use std::io::{self, Cursor};
use std::pin::Pin;
use std::task::{Context, Poll};

use rmcp::RoleServer;
use rmcp::model::{CustomNotification, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::MessageLines;
use super::input::{InputBytes, InputLine};
use super::message::{UnreadableLine, read};
use super::output::Output;

/// Returns the lines of an input of which each read returns at most `step` bytes.
async fn lines(text: &[u8], step: usize, longest: usize) -> Vec<String> {
    let (mut end, reader) = tokio::io::duplex(step);
    let text = text.to_vec();
    let written = tokio::spawn(async move {
        end.write_all(&text).await.unwrap();
    });
    let mut input = InputBytes::bounded(reader, longest);
    let mut found = Vec::new();
    loop {
        match input.line().await.unwrap() {
            InputLine::Whole(line) => found.push(String::from_utf8(line.to_vec()).unwrap()),
            InputLine::TooLong => found.push("too long".to_owned()),
            InputLine::End => break,
        }
    }
    written.await.unwrap();
    found
}

#[tokio::test]
async fn lines_are_the_same_however_the_input_is_cut() {
    let text = "\u{feff}{\"a\":1}\r\n\n  \r\n{\"b\":2}\n123456789012345678901234567890\n{\"c\":3}\n x \nlast";
    let want = [
        "{\"a\":1}",
        "{\"b\":2}",
        "too long",
        "{\"c\":3}",
        "x",
        "last",
    ];
    for step in [1, 2, 3, 7, 16, 29, 4096] {
        assert_eq!(
            lines(text.as_bytes(), step, 24).await,
            want,
            "{step} at a time"
        );
    }
}

#[tokio::test]
async fn a_line_is_too_long_by_its_own_length() {
    for (line, want) in [
        ("x".repeat(24), "x".repeat(24)),
        ("x".repeat(25), "too long".into()),
    ] {
        for step in [1, 25, 4096] {
            let text = format!("{line}\nnext\n");
            assert_eq!(
                lines(text.as_bytes(), step, 24).await,
                [want.as_str(), "next"]
            );
        }
    }
}

#[tokio::test]
async fn a_line_survives_a_wait_that_is_given_up() {
    let (mut end, reader) = tokio::io::duplex(64);
    let mut input = InputBytes::new(reader);
    for part in ["{\"half", "\":", "1}"] {
        end.write_all(part.as_bytes()).await.unwrap();
        tokio::select! {
            biased;
            line = input.line() => panic!("{line:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
    end.write_all(b"\n").await.unwrap();
    assert_eq!(
        input.line().await.unwrap(),
        InputLine::Whole(b"{\"half\":1}")
    );
}

/// Messages of every kind, and some that are none.
fn messages() -> Vec<Value> {
    let meta = json!({ "progressToken": 7, "io.modelcontextprotocol/protocolVersion": "2026-07-28", "x": [1] });
    let mut messages = Vec::new();
    for id in [
        json!(1),
        json!("a"),
        json!(-3),
        json!(1.5),
        Value::Null,
        json!([1]),
    ] {
        for (method, params) in [
            (
                "tools/call",
                json!({ "name": "ask", "arguments": { "big": 1e300, "n": -0.0 }, "_meta": meta }),
            ),
            (
                "tools/call",
                json!({ "name": "ask", "requestState": "s", "inputResponses": { "k": { "action": "decline" } } }),
            ),
            ("tools/call", json!({ "name": 3 })),
            ("tools/call", json!({})),
            ("tools/list", json!({ "cursor": "x" })),
            ("tools/list", Value::Null),
            (
                "prompts/get",
                json!({ "name": "p", "arguments": { "a": "b" }, "_meta": meta }),
            ),
            (
                "resources/read",
                json!({ "uri": "file:///a", "_meta": meta }),
            ),
            ("ping", json!({})),
            ("ping", Value::Null),
            (
                "initialize",
                json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } }),
            ),
            ("server/discover", json!({ "_meta": meta })),
            ("x/unknown", json!({ "a": 1, "_meta": meta })),
            ("notifications/cancelled", json!({ "requestId": 1 })),
        ] {
            messages
                .push(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
            messages.push(json!({ "jsonrpc": "2.0", "id": id, "method": method }));
            messages.push(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
            messages.push(json!({ "id": id, "method": method, "params": params }));
            messages.push(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params, "result": {} }));
        }
        for result in [
            json!({ "action": "accept", "content": { "name": "Ada", "age": 36, "list": ["a"] } }),
            json!({ "action": "accept", "content": { "nested": { "a": 1 } }, "_meta": meta }),
            json!({ "action": "accept", "content": null }),
            json!({ "action": "accept", "content": [1] }),
            json!({ "action": "no such act" }),
            json!({ "action": "accept", "roots": [] }),
            json!({ "action": "accept", "model": "m", "role": "assistant", "content": { "type": "text", "text": "t" } }),
            json!({ "model": "m", "role": "assistant", "content": { "type": "text", "text": "t" } }),
            json!({ "roots": [{ "uri": "file:///a" }] }),
            json!({}),
            json!({ "x": 1 }),
            json!("text"),
            Value::Null,
        ] {
            messages.push(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            messages.push(json!({ "jsonrpc": "2.0", "id": id, "result": result, "error": { "code": 1, "message": "m" } }));
        }
        messages.push(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "m", "data": { "a": 1 } } }));
    }
    messages
}

#[test]
fn a_message_means_the_same_as_to_rmcp() {
    for message in messages() {
        let line = message.to_string();
        let theirs = serde_json::from_str::<RxJsonRpcMessage<RoleServer>>(&line);
        match (read(line.as_bytes()), theirs) {
            (Ok(ours), Ok(theirs)) => {
                assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{line}");
            }
            (Err(_), Err(_)) => {}
            // More than rmcp reads: something ends the wait.
            (Ok(RxJsonRpcMessage::<RoleServer>::Error(_)), Err(_))
                if message["error"].is_object() => {}
            (ours, theirs) => panic!("{line}\nhere: {ours:?}\nrmcp: {theirs:?}"),
        }
    }
}

#[test]
fn a_member_that_stands_twice_selects_nothing() {
    let line =
        br#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"a"}}"#;
    assert!(
        matches!(read(line), Err(UnreadableLine::Refused(..))),
        "{:?}",
        read(line)
    );
}

#[test]
fn a_list_is_neither_a_message_nor_an_answer() {
    let line = br#"["2.0",1,"ping"]"#;
    assert!(
        matches!(read(line), Err(UnreadableLine::Refused(None, _))),
        "{:?}",
        read(line)
    );
    let line = br#"{"jsonrpc":"2.0","id":1,"result":["accept",{"name":"Ada"}]}"#;
    let message = format!("{:?}", read(line).unwrap());
    assert!(message.contains("CustomResult"), "{message}");
}

#[test]
fn an_error_of_any_form_ends_the_wait_for_a_response() {
    for error in [
        "\"no\"",
        "{\"message\":\"no\"}",
        "{\"code\":\"E1\",\"message\":\"no\"}",
        "7",
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":4,"error":{error}}}"#);
        let message = read(line.as_bytes()).unwrap();
        let RxJsonRpcMessage::<RoleServer>::Error(read) = message else {
            panic!("{message:?}");
        };
        assert_eq!(read.id, Some(rmcp::model::RequestId::Number(4)));
        assert!(
            read.error.message.contains(error.trim_matches(['{', '}'])),
            "{read:?}"
        );
    }
}

#[tokio::test]
async fn what_is_no_message_is_answered_under_its_id_or_ignored() {
    let text = concat!(
        "noise of a library\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":3}\n",
        "[1]\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":3}\n",
        "{\"jsonrpc\":\"1.0\",\"id\":\"two\",\"method\":\"ping\"}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n",
    );
    let (writer, mut end) = tokio::io::duplex(4096);
    let mut lines = MessageLines::new(Cursor::new(text.as_bytes().to_vec()), writer);
    let message = lines.receive().await.unwrap();
    assert!(
        format!("{message:?}").contains("PingRequest"),
        "{message:?}"
    );
    assert!(lines.receive().await.is_none());
    lines.output.close().await.unwrap();
    let mut answers = String::new();
    end.read_to_string(&mut answers).await.unwrap();
    let ids: Vec<Value> = answers
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|answer| {
            assert_eq!(answer["error"]["code"], -32600);
            answer["id"].clone()
        })
        .collect();
    assert_eq!(ids, [json!(1), Value::Null, json!("two")]);
}

fn notification(text: &str) -> TxJsonRpcMessage<RoleServer> {
    let params = Some(json!({ "text": text }));
    TxJsonRpcMessage::<RoleServer>::notification(ServerNotification::CustomNotification(
        CustomNotification::new("x/test", params),
    ))
}

#[tokio::test]
async fn messages_of_one_turn_are_written_at_once_and_in_order() {
    /// Counts the writes.
    struct Counted(tokio::sync::mpsc::UnboundedSender<Vec<u8>>);
    impl AsyncWrite for Counted {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.send(bytes.to_vec()).unwrap();
            Poll::Ready(Ok(bytes.len()))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
    let (sender, mut writes) = tokio::sync::mpsc::unbounded_channel();
    let output = Output::new(Counted(sender));
    let sends: Vec<_> = (0..64)
        .map(|number| output.send(&notification(&number.to_string())))
        .collect();
    for send in sends {
        send.await.unwrap();
    }
    output.close().await.unwrap();
    let batch = String::from_utf8(writes.recv().await.unwrap()).unwrap();
    let texts: Vec<String> = batch
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["params"]["text"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(
        texts,
        (0..64).map(|number| number.to_string()).collect::<Vec<_>>()
    );
    assert!(writes.recv().await.is_none());
}

#[tokio::test]
async fn a_sender_waits_while_nobody_reads_and_learns_that_the_reader_has_gone() {
    let (writer, mut end) = tokio::io::duplex(64);
    let output = Output::new(writer);
    let large = "x".repeat(700_000);
    output.send(&notification(&large)).await.unwrap();
    // The first is being written; the next two are collected.
    tokio::task::yield_now().await;
    output.send(&notification(&large)).await.unwrap();
    let mut waits = Box::pin(output.send(&notification(&large)));
    tokio::select! {
        biased;
        sent = &mut waits => panic!("{sent:?}"),
        () = tokio::task::yield_now() => {}
    }
    let mut some = vec![0; 710_000];
    end.read_exact(&mut some).await.unwrap();
    waits.await.unwrap();
    drop(end);
    let error = output.close().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    let error = output.send(&notification("late")).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}
