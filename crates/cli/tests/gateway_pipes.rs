//! The gateway's pipes: every frame is one line, and a server that reads nothing does not delay an end.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[path = "raw/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod raw;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse as _;
use axum::routing::post;
use raw::{Raw, gateway};
use serde_json::{Value, json};

/// The kind and the text of the response to a call.
type Answer = fn(&Value) -> (&'static str, String);

/// A server over HTTP with a session; returns its address.
fn http_server(answer: Answer) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let respond = move |body: String| async move {
        let request: Value = serde_json::from_str(&body).unwrap();
        let (kind, text) = match request["method"].as_str() {
            Some("initialize") => {
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}});
                let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
                ("application/json", response.to_string())
            }
            Some("tools/call") => answer(&request["id"]),
            _ => return StatusCode::ACCEPTED.into_response(),
        };
        ([(CONTENT_TYPE, kind)], text).into_response()
    };
    let app = Router::new().route("/mcp", post(respond));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, app).await.unwrap();
        });
    });
    url
}

/// A question that would be the server's own if it were a frame.
fn hidden() -> Value {
    json!({"jsonrpc": "2.0", "id": "hidden", "method": "elicitation/create", "params": {
        "message": "Your password?", "requestedSchema": {"type": "object", "properties": {"password": {"type": "string"}}}}})
}

fn result(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "done"}]}})
}

fn event(text: &str) -> String {
    let lines = text.lines().map(|line| format!("data: {line}\n"));
    lines.chain(["\n".to_owned()]).collect()
}

#[test]
fn a_message_of_several_lines_reaches_a_client_on_stdio_as_one_frame() {
    let answers: [Answer; 4] = [
        |id| {
            let pretty = serde_json::to_string_pretty(&result(id)).unwrap();
            ("application/json", pretty)
        },
        |id| {
            let pretty = serde_json::to_string_pretty(&result(id)).unwrap();
            ("text/event-stream", event(&pretty))
        },
        |id| {
            let whole = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[],\"x\":\r\n{}\r\n}}}}",
                hidden()
            );
            ("application/json", whole)
        },
        |id| {
            let notice = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"level\":\"info\",\"data\":\n{}\n}}}}",
                hidden()
            );
            let events = event(&notice) + &event(&result(id).to_string());
            ("text/event-stream", events)
        },
    ];
    for (case, answer) in answers.into_iter().enumerate() {
        let state = tempfile::tempdir().unwrap();
        let url = http_server(answer);
        let mut raw = Raw::start(gateway(state.path(), &[], &["--upstream", &url]));
        raw.initialize("2025-11-25", &json!({"elicitation": {"form": {}}}));
        raw.call(2, "t", &json!({}));
        loop {
            let frame = raw.next();
            assert_ne!(frame["method"], "elicitation/create", "{case}: {frame}");
            if frame["id"] == 2 {
                assert!(frame["result"]["content"].is_array(), "{case}: {frame}");
                break;
            }
        }
    }
}

/// Servers that block their client, and processes that have to end.
#[cfg(unix)]
mod ends {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::{ChildStderr, Command, Stdio};
    use std::sync::mpsc;
    use std::time::Duration;

    use serde_json::json;

    use super::raw::{PATIENCE, PROGRAM, Raw, gateway, inbox};

    /// Reads until it is called, sends illegal requests with long ids, reads none of the responses, and does not end by
    /// itself.
    /// only asks.
    const FLOODS: &str = r#"
trap '' TERM HUP INT
while read -r line; do
  case $line in
    *'"initialize"'*) id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
    *'"tools/call"'*) break ;;
  esac
done
id=x; while [ ${#id} -lt 4000 ]; do id=$id$id; done
n=0; while [ $n -lt 100 ]; do echo '{"jsonrpc":"2.0","id":"'$n$id'","method":"elicitation/create","params":{"bad":1}}'; n=$((n+1)); done
echo flooded >&2
while :; do sleep 5; done
"#;

    /// The same without the requests: it only stops reading.
    const STOPS: &str = r#"
trap '' TERM HUP INT
while read -r line; do
  case $line in
    *'"initialize"'*) id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
    *'"tools/call"'*) break ;;
  esac
done
echo flooded >&2
while :; do sleep 5; done
"#;

    /// Responds to the first call after so many lines of 7,000 bytes on its stderr.
    fn noisy(lines: u32) -> String {
        let script = r#"
text=xxxxxxx; n=0; while [ $n -lt 3 ]; do text=$text$text$text$text$text$text$text$text$text$text; n=$((n+1)); done
while read -r line; do
  id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
    *'"tools/call"'*)
      n=0; while [ $n -lt LINES ]; do echo "number $n $text" >&2; n=$((n+1)); done
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[]}}' ;;
  esac
done
"#;
        script.replace("LINES", &lines.to_string())
    }

    #[test]
    fn a_stderr_that_nobody_reads_holds_up_no_call_no_inbox_and_no_end() {
        let state = tempfile::tempdir().unwrap();
        // More than a pipe and the queue of the log hold.
        let script = noisy(300);
        let mut command = gateway(state.path(), &[], &["--", "sh", "-c", &script]);
        command.stderr(Stdio::piped());
        let mut raw = Raw::start(command);
        raw.initialize("2025-11-25", &json!({}));
        raw.call(2, "t", &json!({}));
        assert!(raw.result(2)["result"].is_object());
        let (listed, _) = inbox(state.path(), &["list"]);
        assert!(listed, "the inbox answers");
        let mut stderr = raw.child.stderr.take().unwrap();
        drop(raw.stdin.take());
        let (ends, ended) = mpsc::channel();
        let waits = std::thread::spawn(move || {
            let status = raw.child.wait().unwrap();
            let _ = ends.send(());
            status
        });
        assert!(ended.recv_timeout(PATIENCE).is_ok(), "it ends");
        assert!(waits.join().unwrap().success());
        let mut kept = Vec::new();
        stderr.read_to_end(&mut kept).unwrap();
        assert!(String::from_utf8_lossy(&kept).contains("number 0 xxx"));
    }

    #[test]
    fn a_log_has_every_line_or_says_how_many_are_missing() {
        for (lines, is_read_late) in [(100, false), (300, true)] {
            let state = tempfile::tempdir().unwrap();
            let script = noisy(lines);
            let options = ["--inbox", "off", "--log", "json"];
            let mut command = gateway(state.path(), &options, &["--", "sh", "-c", &script]);
            command.stderr(Stdio::piped());
            let mut raw = Raw::start(command);
            let stderr = raw.child.stderr.take().unwrap();
            let read = || {
                std::thread::spawn(|| {
                    let records = BufReader::new(stderr).lines().map_while(Result::ok);
                    let records = records.map(|line| serde_json::from_str(&line).unwrap());
                    records.collect::<Vec<serde_json::Value>>()
                })
            };
            raw.initialize("2025-11-25", &json!({}));
            let records = if is_read_late {
                raw.call(2, "t", &json!({}));
                raw.result(2);
                read()
            } else {
                let reads = read();
                raw.call(2, "t", &json!({}));
                raw.result(2);
                reads
            };
            drop(raw.stdin.take());
            let records = records.join().unwrap();
            let message = |record: &serde_json::Value| {
                let message = record["fields"]["message"].as_str();
                message.unwrap_or_default().to_owned()
            };
            let messages: Vec<String> = records.iter().map(message).collect();
            let numbered = messages.iter().filter(|said| said.starts_with("number "));
            let missing = messages.iter().filter_map(|said| {
                let (number, _) = said.split_once(" lines are missing here")?;
                number.parse::<usize>().ok()
            });
            let missing: usize = missing.sum();
            assert_eq!(missing > 0, is_read_late, "{missing}");
            let all = numbered.count() + missing;
            assert!(all >= lines as usize, "{all}: {missing}");
        }
    }

    /// The stderr of a process and of all its descendants, which ends with the last of them.
    struct Said {
        lines: mpsc::Receiver<String>,
    }

    impl Said {
        fn by(stderr: ChildStderr) -> Self {
            let (said, lines) = mpsc::channel();
            std::thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    let _ = said.send(line);
                }
            });
            Self { lines }
        }

        fn wait_for(&self, what: &str) -> String {
            loop {
                let line = self.lines.recv_timeout(PATIENCE).unwrap();
                if line.contains(what) {
                    return line;
                }
            }
        }

        /// Waits until no process is left that could write.
        fn ended(&self) {
            loop {
                match self.lines.recv_timeout(PATIENCE) {
                    Ok(_) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                    Err(mpsc::RecvTimeoutError::Timeout) => panic!("somebody is left"),
                }
            }
        }
    }

    fn signal(process: u32, name: &str) {
        let sent = Command::new("kill")
            .args([format!("-{name}"), process.to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Returns `false` if these tests ignore the hangup signal (`nohup`), as the programs that they start then do too.
    fn hears_hangup() -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        ignored.is_none_or(|mask| mask & 1 == 0)
    }

    /// Checks that a gateway on stdio ends if it is told to in this way.
    fn gateway_ends(script: &str, how: &str) {
        let state = tempfile::tempdir().unwrap();
        let mut command = gateway(
            state.path(),
            &["--inbox", "off"],
            &["--", "sh", "-c", script],
        );
        command.stderr(Stdio::piped());
        let mut raw = Raw::start(command);
        let said = Said::by(raw.child.stderr.take().unwrap());
        raw.initialize("2025-11-25", &json!({}));
        raw.call(2, "t", &json!({}));
        said.wait_for("flooded");
        // More than fits into a pipe.
        raw.call(3, "t", &json!({"text": "x".repeat(300_000)}));
        match how {
            "end of input" => drop(raw.stdin.take()),
            signalled => signal(raw.child.id(), signalled),
        }
        said.ended();
        assert_eq!(raw.child.wait().unwrap().code(), Some(0), "{how}");
    }

    #[test]
    fn the_end_of_input_ends_a_gateway_and_its_server_that_reads_nothing() {
        gateway_ends(FLOODS, "end of input");
    }

    #[test]
    fn the_end_of_input_is_seen_while_a_frame_waits_for_the_server() {
        gateway_ends(STOPS, "end of input");
    }

    #[test]
    fn signals_end_a_gateway_and_its_server() {
        for how in ["TERM", "INT", "HUP"] {
            if how != "HUP" || hears_hangup() {
                gateway_ends(FLOODS, how);
            }
        }
    }

    #[test]
    fn a_second_signal_ends_at_once_what_the_first_would() {
        let state = tempfile::tempdir().unwrap();
        let mut command = gateway(
            state.path(),
            &["--inbox", "off"],
            &["--", "sh", "-c", STOPS],
        );
        command.stderr(Stdio::piped());
        let mut raw = Raw::start(command);
        let said = Said::by(raw.child.stderr.take().unwrap());
        raw.initialize("2025-11-25", &json!({}));
        raw.call(2, "t", &json!({}));
        said.wait_for("flooded");
        signal(raw.child.id(), "TERM");
        // Its end begins with this.
        raw.result(2);
        // Simultaneous signals count as one, so the second comes later.
        let ended = std::thread::spawn(move || said.ended());
        while !ended.is_finished() && raw.child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(100));
            signal(raw.child.id(), "TERM");
        }
        ended.join().unwrap();
        assert_eq!(raw.child.wait().unwrap().code(), Some(1));
    }

    #[tokio::test]
    async fn a_session_over_http_that_is_ended_ends_its_server_and_so_does_a_signal() {
        let state = tempfile::tempdir().unwrap();
        let options = ["--inbox", "off", "--listen", "127.0.0.1:0"];
        let mut command = gateway(state.path(), &options, &["--", "sh", "-c", FLOODS]);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut gateway = command.spawn().unwrap();
        let said = Said::by(gateway.stderr.take().unwrap());
        let serving = said.wait_for("serving: ");
        let url = serving.trim_start_matches("serving: ").to_owned();
        mcp_elicit_client::tls::ready();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let post = |body: serde_json::Value, session: &str| {
            let request = client.post(&url).body(body.to_string());
            let request = request
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream");
            match session {
                "" => request,
                session => request.header("mcp-session-id", session),
            }
        };
        let open = async || {
            let opened = post(super::raw::initialize("2025-11-25", &json!({})), "");
            let opened = opened.send().await.unwrap();
            let session = opened.headers()["mcp-session-id"].to_str().unwrap();
            let session = session.to_owned();
            let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            post(ready, &session).send().await.unwrap();
            // Its response is a stream, which is not read further.
            post(super::raw::call(2, "t", &json!({})), &session)
                .send()
                .await
                .unwrap();
            session
        };
        let session = open().await;
        said.wait_for("flooded");
        let ended = client.delete(&url).header("mcp-session-id", &session);
        assert!(ended.send().await.unwrap().status().is_success());
        let children = || {
            let list = Command::new("pgrep")
                .args(["-P", &gateway.id().to_string()])
                .output();
            list.unwrap().stdout
        };
        let over = async {
            while !children().is_empty() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, over).await.unwrap();
        open().await;
        said.wait_for("flooded");
        signal(gateway.id(), if hears_hangup() { "HUP" } else { "TERM" });
        said.ended();
        assert_eq!(gateway.wait().unwrap().code(), Some(0));
    }

    /// Runs `call` with a server that reads nothing, and stops it in this way. Returns its exit code and output.
    fn call_ends(script: &str, options: &[&str], how: Option<&str>) -> (Option<i32>, String) {
        let state = tempfile::tempdir().unwrap();
        let pings = script
            .replace("\"elicitation/create\"", "\"ping\"")
            .replace("echo flooded >&2", "echo $$ >\"$1\"");
        let mark = state.path().join("flooded");
        let mut call = Command::new(PROGRAM);
        call.args(["call", "t", "--decline", "--protocol", "2025-11-25"]);
        call.args(options).args(["--", "sh", "-c", &pings, "sh"]);
        let mut call = call
            .arg(&mark)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let server = || std::fs::read_to_string(&mark).unwrap_or_default();
        while how.is_some() && !server().ends_with('\n') {
            std::thread::sleep(Duration::from_millis(20));
        }
        if let Some(how) = how {
            signal(call.id(), how);
        }
        let mut said = String::new();
        call.stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        let left = Command::new("kill").args(["-0", server().trim()]).output();
        assert!(!left.unwrap().status.success(), "the server is left");
        (call.wait().unwrap().code(), said)
    }

    /// Once it is called, it asks without end and reads nothing.
    const ASKS_ON: &str = r#"
while read -r line; do
  case $line in
    *'"initialize"'*) id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
    *'"tools/call"'*) break ;;
  esac
done
id=x; while [ ${#id} -lt 500 ]; do id=$id$id; done
exec yes '{"jsonrpc":"2.0","id":"'$id'","method":"Elicitation/create","params":{}}'
"#;

    #[test]
    fn a_server_that_asks_without_end_and_reads_nothing_is_ended_with_the_reason() {
        let state = tempfile::tempdir().unwrap();
        let server = ["--", "sh", "-c", ASKS_ON];
        let mut command = gateway(state.path(), &["--inbox", "off"], &server);
        command.stderr(Stdio::piped());
        let mut raw = Raw::start(command);
        let said = Said::by(raw.child.stderr.take().unwrap());
        raw.initialize("2025-11-25", &json!({}));
        raw.call(2, "t", &json!({}));
        let line = said.wait_for("does not read what it is sent");
        assert!(line.contains("WARN"), "{line}");
        let ended = loop {
            let frame = raw.next();
            if frame["id"] == 2 {
                break frame;
            }
        };
        let why = ended["error"]["message"].as_str().unwrap();
        assert!(why.contains("does not read what it is sent"), "{ended}");
        drop(raw.stdin.take());
        said.ended();
    }

    #[test]
    fn a_call_ends_although_its_server_reads_no_replies() {
        for how in ["INT", "TERM"] {
            let (code, said) = call_ends(FLOODS, &[], Some(how));
            assert!(code.is_some_and(|code| code != 0), "{how}: {said}");
        }
        let (code, said) = call_ends(FLOODS, &["--timeout", "3"], None);
        assert!(code.is_some_and(|code| code != 0), "{said}");
    }
}
