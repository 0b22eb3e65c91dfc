//! A changed file and SIGHUP: the real program serves clients over HTTP while its servers, limits and rules change. Open
//! sessions go on as they began, and others get what the file says now, or nothing of it.
#![cfg(all(unix, feature = "full"))]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[path = "inbox/http.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod http;
#[path = "raw/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod raw;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use http::{Reply, post, send};
use raw::{PATIENCE, PROGRAM, call, initialize, text};
use serde_json::{Value, json};

const REVISION: &str = "2025-11-25";

/// A server in the shell whose tools answer with `$1` and the id of its process.
const ECHO: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}}\n' "$id" ;;
    *'"method":"server/discover"'*)
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id" ;;
    *'"method":"tools/call"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s %s"}]}}\n' "$id" "$1" "$$" ;;
  esac
done"#;

/// Returns the table of a server that answers with this word.
fn echo(name: &str, word: &str) -> String {
    format!("[servers.{name}]\ncommand = [\"sh\", \"-c\", '''{ECHO}''', \"sh\", \"{word}\"]\n")
}

/// Returns the table of the demo server, with these lines.
fn demo(lines: &str) -> String {
    format!("[servers.demo]\ncommand = [\"{PROGRAM}\", \"demo-server\"]\n{lines}\n")
}

struct Running {
    child: Child,
    file: PathBuf,
    state: PathBuf,
    said: mpsc::Receiver<String>,
    /// Host and port of the listener.
    at: String,
    _folder: tempfile::TempDir,
}

impl Running {
    fn start(tables: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (file, state) = (
            folder.path().join("gateway.toml"),
            folder.path().join("state"),
        );
        write(&file, "", tables);
        let mut command = Command::new(PROGRAM);
        command.args(["gateway", "--state"]).arg(&state);
        command.arg("--config").arg(&file);
        let streams = command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = streams.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let (tell, said) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _the_test_is_over = tell.send(line);
            }
        });
        let mut gateway = Self {
            child,
            file,
            state,
            said,
            at: String::new(),
            _folder: folder,
        };
        let line = gateway.wait_to_say("serving: http://");
        let at = line.split_once("http://").unwrap().1;
        at.split('/').next().unwrap().clone_into(&mut gateway.at);
        gateway
    }

    fn wait_to_say(&self, words: &str) -> String {
        loop {
            let line = self.said.recv_timeout(PATIENCE).unwrap();
            if line.contains(words) {
                return line;
            }
        }
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let done = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(done.success());
    }

    /// Writes the file anew, with these settings above its tables, and waits until it is in force.
    fn reload(&self, top: &str, tables: &str) -> String {
        write(&self.file, top, tables);
        self.signal("-HUP");
        self.wait_to_say("read again")
    }

    /// Does the same for a file that is refused.
    fn refused(&self, top: &str, tables: &str) -> String {
        write(&self.file, top, tables);
        self.signal("-HUP");
        self.wait_to_say("was not applied")
    }

    /// Tries to open a session at this path.
    fn opened(&self, path: &str) -> Reply {
        let capabilities = json!({"elicitation": {"form": {}}});
        let message = initialize(REVISION, &capabilities);
        post(&self.at, path, None, None, &message)
    }

    /// Opens a session at this path, and returns its id.
    fn open(&self, path: &str) -> String {
        let opened = self.opened(path);
        assert_eq!(opened.status, 200, "{opened:?}");
        opened.header("mcp-session-id").unwrap().to_owned()
    }

    fn called(&self, path: &str, session: &str, tool: &str, arguments: &Value) -> Value {
        called(&self.at, path, session, tool, arguments)
    }

    /// Returns the word of the server of a session, and the id of its process.
    fn word(&self, path: &str, session: &str) -> (String, String) {
        let result = self.called(path, session, "t", &json!({}));
        let (word, id) = text(&result).split_once(' ').unwrap();
        (word.to_owned(), id.to_owned())
    }

    /// Waits for a question, and returns its id.
    fn asked(&self) -> String {
        for _ in 0..1_000 {
            let (_, open) = raw::inbox(&self.state, &["list"]);
            if let Some(id) = open.first().and_then(|question| question["id"].as_str()) {
                return id.to_owned();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("nothing was asked");
    }

    fn audit(&self, event: &str) -> Value {
        for _ in 0..1_000 {
            let audit = raw::command(&self.state, &["audit", "--json"]);
            let audit = String::from_utf8(audit.stdout).unwrap();
            let entries = audit.lines().map(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                line["entry"].clone()
            });
            let mut found = entries.filter(|entry| entry["event"] == event);
            if let Some(entry) = found.next_back() {
                return entry;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the audit has no {event}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal("-TERM");
        let _ = self.child.wait();
    }
}

fn called(at: &str, path: &str, session: &str, tool: &str, arguments: &Value) -> Value {
    let message = call(2, tool, arguments);
    post(at, path, None, Some(session), &message).response()
}

fn write(file: &Path, top: &str, tables: &str) {
    let text = format!("listen = \"127.0.0.1:0\"\ninbox = \"127.0.0.1:0\"\n{top}{tables}");
    std::fs::write(file, text).unwrap();
}

/// Waits until there is no such process.
fn wait_for_end(id: &str) {
    for _ in 0..1_000 {
        if !Command::new("kill")
            .args(["-0", id])
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
        {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{id} runs");
}

#[test]
fn open_sessions_go_on_with_their_server_and_new_ones_get_what_the_file_says_now() {
    let (first, gone) = (echo("a", "one"), echo("b", "gone"));
    let gateway = Running::start(&format!("{first}{gone}"));
    let (of_a, of_b) = (gateway.open("/mcp/a"), gateway.open("/mcp/b"));
    let (word, process) = gateway.word("/mcp/a", &of_a);
    assert_eq!(word, "one");
    assert_eq!(gateway.opened("/mcp/c").status, 404);

    let said = gateway.reload("", &format!("{}{}", echo("a", "two"), echo("c", "new")));
    let named = "and are in force: [servers.a], [servers.b], [servers.c]";
    assert!(said.contains(named), "{said}");
    // Each goes on with the child that it had.
    assert_eq!(
        gateway.word("/mcp/a", &of_a),
        ("one".to_owned(), process.clone())
    );
    assert_eq!(gateway.word("/mcp/b", &of_b).0, "gone");
    let changed = gateway.open("/mcp/a");
    assert_eq!(gateway.word("/mcp/a", &changed).0, "two");
    assert_eq!(gateway.word("/mcp/c", &gateway.open("/mcp/c")).0, "new");
    let refused = gateway.opened("/mcp/b");
    assert_eq!(refused.status, 404, "{refused:?}");
    let why = "it has no server of this name any more";
    assert!(refused.body.contains(why), "{refused:?}");

    // A server that is left as it was keeps its sessions and their children, also without a change.
    let (_, second) = gateway.word("/mcp/a", &changed);
    gateway.reload(
        "keep-ended = 3\n",
        &format!("{}{}", echo("a", "two"), echo("b", "back")),
    );
    let same = ("two".to_owned(), second.clone());
    assert_eq!(gateway.word("/mcp/a", &changed), same);
    assert_eq!(gateway.word("/mcp/b", &gateway.open("/mcp/b")).0, "back");
    assert_eq!(gateway.word("/mcp/b", &of_b).0, "gone");

    // The child of an earlier definition ends with its session.
    let head = ["DELETE /mcp/a HTTP/1.1", &format!("Mcp-Session-Id: {of_a}")];
    assert_eq!(send(&gateway.at, &head, "").unwrap().status, 204);
    wait_for_end(&process);
    let (_, process) = gateway.word("/mcp/b", &of_b);
    drop(gateway);
    wait_for_end(&process);
    wait_for_end(&second);
}

#[test]
fn a_call_that_waits_for_a_person_goes_on_while_its_server_is_changed_and_removed() {
    let inbox = demo("answer-with = \"inbox\"");
    let gateway = Running::start(&format!("{inbox}{}", echo("a", "one")));
    let session = gateway.open("/mcp/demo");
    std::thread::scope(|threads| {
        let (at, session) = (&gateway.at, &session);
        let deploy = || called(at, "/mcp/demo", session, "deploy", &json!({}));
        let calling = threads.spawn(deploy);
        let id = gateway.asked();
        let changed = demo("answer-with = \"inbox\"\npending = 1\nenv = { A = \"b\" }");
        gateway.reload("", &format!("{changed}{}", echo("a", "one")));
        let said = gateway.reload("", &echo("a", "one"));
        assert!(said.ends_with("in force: [servers.demo]"), "{said}");
        let (done, _) = raw::inbox(&gateway.state, &["accept", &id, "environment=staging"]);
        assert!(done);
        let result = calling.join().unwrap();
        assert!(text(&result).contains("staging"), "{result}");
    });
    assert_eq!(gateway.opened("/mcp/demo").status, 404);
}

#[test]
fn the_path_of_the_only_server_goes_on_for_its_sessions_when_there_are_several() {
    let gateway = Running::start(&echo("a", "one"));
    let (only, named) = (gateway.open("/mcp"), gateway.open("/mcp/a"));
    let (_, process) = gateway.word("/mcp", &only);
    gateway.reload("", &format!("{}{}", echo("a", "one"), echo("b", "other")));
    assert_eq!(gateway.word("/mcp", &only), ("one".to_owned(), process));
    assert_eq!(gateway.word("/mcp/a", &named).0, "one");
    let refused = gateway.opened("/mcp");
    assert_eq!(refused.status, 404, "{refused:?}");
    assert!(refused.body.contains("each is at /mcp/NAME"), "{refused:?}");
    // The path then belongs to the server that is left.
    gateway.reload("", &echo("b", "other"));
    assert_eq!(gateway.word("/mcp", &gateway.open("/mcp")).0, "other");
    assert_eq!(gateway.word("/mcp", &only).0, "one");
    assert_eq!(gateway.opened("/mcp/a").status, 404);
}

/// Returns a request of the rounds era.
fn in_rounds(id: u64, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn post_in_rounds(at: &str, path: &str, name: Option<&str>, message: &Value) -> Value {
    let mut head = vec![
        format!("POST {path} HTTP/1.1"),
        "Content-Type: application/json".to_owned(),
        "Accept: application/json, text/event-stream".to_owned(),
        "MCP-Protocol-Version: 2026-07-28".to_owned(),
        format!("Mcp-Method: {}", message["method"].as_str().unwrap()),
    ];
    head.extend(name.map(|name| format!("Mcp-Name: {name}")));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    send(at, &head, &message.to_string()).unwrap().response()
}

#[test]
fn a_task_goes_on_with_the_child_that_has_it() {
    let table = |env: &str| {
        demo(&format!(
            "answer-with = \"inbox\"\ntasks = true\nhold = 1\n{env}"
        ))
    };
    let gateway = Running::start(&table(""));
    let about = |id: u64, method: &str, params: Value| {
        let mut message = in_rounds(id, &params);
        message["method"] = json!(method);
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let name = params["name"].as_str().or(params["taskId"].as_str());
        post_in_rounds(&gateway.at, "/mcp", name, &message)
    };
    let call = json!({"name": "deploy", "arguments": {}});
    let begun = about(2, "tools/call", call);
    let task = begun["result"]["taskId"].as_str();
    let task = json!({"taskId": task.unwrap_or_else(|| panic!("no task: {begun}"))});
    let id = gateway.asked();
    gateway.reload("", &table("env = { A = \"b\" }"));
    let told = about(3, "tasks/get", task.clone());
    let message = told["result"]["statusMessage"].as_str();
    assert!(
        message.is_some_and(|message| message.contains(&id)),
        "{told}"
    );
    let (done, _) = raw::inbox(&gateway.state, &["accept", &id, "environment=staging"]);
    assert!(done);
    let ended = (4..1_000).find_map(|number| {
        let told = about(number, "tasks/get", task.clone());
        let is_working = told["result"]["status"] == "working";
        std::thread::sleep(Duration::from_millis(20));
        (!is_working).then_some(told)
    });
    let ended = ended.unwrap();
    assert!(ended.to_string().contains("staging"), "{ended}");
}

#[test]
fn requests_without_a_session_go_to_the_new_server_and_a_round_to_the_one_that_asked() {
    let gateway = Running::start(&format!("{}{}", demo(""), echo("a", "one")));
    let word = || {
        let params = json!({"name": "t", "arguments": {}});
        let result = post_in_rounds(&gateway.at, "/mcp/a", Some("t"), &in_rounds(1, &params));
        text(&result).split_once(' ').unwrap().0.to_owned()
    };
    assert_eq!(word(), "one");
    let params = json!({"name": "deploy", "arguments": {}});
    let asked = post_in_rounds(
        &gateway.at,
        "/mcp/demo",
        Some("deploy"),
        &in_rounds(2, &params),
    );
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let requests = result["inputRequests"].as_object().unwrap();
    let key = requests.keys().next().unwrap();

    gateway.reload(
        "",
        &format!("{}{}", demo("env = { A = \"b\" }"), echo("a", "two")),
    );
    assert_eq!(word(), "two");
    let answer = json!({"action": "accept", "content": {"environment": "staging"}});
    let params = json!({"name": "deploy", "arguments": {},
        "requestState": result["requestState"], "inputResponses": {key: answer}});
    let done = post_in_rounds(
        &gateway.at,
        "/mcp/demo",
        Some("deploy"),
        &in_rounds(3, &params),
    );
    assert!(text(&done).contains("staging"), "{done}");
}

#[test]
fn limits_and_times_apply_to_what_begins_after_the_change() {
    let gateway = Running::start(&demo(""));
    let large = json!({"why": "x".repeat(200_000)});
    let session = gateway.open("/mcp");
    let from_page = || {
        let head = [
            "POST /mcp HTTP/1.1",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            "Origin: http://page.example",
        ];
        let message = initialize(REVISION, &json!({}));
        send(&gateway.at, &head, &message.to_string())
            .unwrap()
            .status
    };
    let of_large = || {
        let message = call(2, "no-such-tool", &large);
        let reply = post(&gateway.at, "/mcp", None, Some(&session), &message);
        (reply.status, reply.body)
    };
    assert_eq!((of_large().0, from_page()), (200, 403));
    let said = gateway.reload(
        "all-call-bytes = 65536\nallow-origins = [\"http://page.example\"]\nready-grace = 2\n",
        &demo(""),
    );
    let named = "in force: `all-call-bytes`, `allow-origins`, `ready-grace`";
    assert!(said.contains(named), "{said}");
    let (status, why) = of_large();
    assert!(status == 429 && why.contains("all-call-bytes"), "{why}");
    assert_eq!(from_page(), 200);

    // A session has the largest message of its beginning.
    gateway.reload("max-frame = 100000\n", &demo(""));
    assert_eq!((of_large().0, from_page()), (200, 403));
    let small = gateway.open("/mcp");
    let message = call(2, "no-such-tool", &large);
    let reply = post(&gateway.at, "/mcp", None, Some(&small), &message);
    assert_eq!(reply.status, 413, "{reply:?}");

    // What a question may take in the record is looked at when it is asked.
    gateway.reload("all-question-bytes = 65536\n", &demo(""));
    let big = json!({"why": "x".repeat(100_000)});
    let refused = gateway.called("/mcp", &session, "deploy", &big);
    assert!(
        refused.to_string().contains("all-question-bytes"),
        "{refused}"
    );

    gateway.reload("ready-grace = 2\n", &demo(""));
    gateway.signal("-TERM");
    let ready = ["GET /ready HTTP/1.1"];
    let stopping = || send(&gateway.at, &ready, "").filter(|reply| reply.status == 503);
    let reply = (0..1_000).find_map(|_| stopping()).unwrap();
    assert_eq!(reply.body, "stopping\n");
}

#[test]
fn sessions_of_a_changed_server_stay_under_the_rules_of_its_file() {
    let people = "[people.ada]\nmail = \"ada@example.com\"\n";
    let rule = "[[rules]]\nname = \"never\"\nserver = \"a\"\ntool = \"t\"\nrefuse = \"no\"\n";
    let gateway = Running::start(&format!("{}{people}{rule}", echo("a", "one")));
    let before = gateway.open("/mcp");
    let refused = |session: &str, rule: &str| {
        let result = gateway.called("/mcp", session, "t", &json!({}));
        assert!(text(&result).contains(&format!("`{rule}`")), "{result}");
    };
    refused(&before, "never");
    // The rule was about the server that this file replaces.
    gateway.reload("", &format!("{}{people}", echo("a", "two")));
    refused(&before, "never");
    let after = gateway.open("/mcp");
    assert_eq!(gateway.word("/mcp", &after).0, "two");
    let loaded = gateway.audit("rules-loaded");
    assert_eq!(loaded["settings"], json!(["[servers.a]"]), "{loaded}");
    // A later rule is for all sessions.
    let closed = "[[rules]]\nname = \"closed\"\nrefuse = \"closed\"\n";
    gateway.reload("", &format!("{}{people}{closed}", echo("a", "two")));
    refused(&before, "closed");
    refused(&after, "closed");
}

#[test]
fn a_setting_that_needs_a_restart_or_a_mistake_leaves_everything_as_it_is() {
    let people = "[people.ada]\nmail = \"ada@example.com\"\n";
    let gateway = Running::start(&format!("{}{people}", echo("a", "one")));
    let rule = "[[rules]]\nname = \"never\"\nrefuse = \"no\"\n";
    let (next, added) = (echo("a", "two"), echo("b", "new"));
    let next = format!("{next}{added}{people}{rule}");
    let unchanged = |said: &str, words: &str| {
        assert!(said.contains(words), "{words}: {said}");
        assert_eq!(gateway.word("/mcp", &gateway.open("/mcp")).0, "one");
        assert_eq!(gateway.opened("/mcp/b").status, 404);
    };
    for (top, tables, named) in [
        (
            "public-url = \"https://mcp.example.com\"\n",
            "",
            "`public-url` in",
        ),
        ("record = \"memory\"\n", "", "`record` in"),
        ("traces = \"http://127.0.0.1:4318\"\n", "", "`traces` in"),
        (
            "trusted-proxies = [\"127.0.0.1\"]\n",
            "[auth]\nmode = \"keys\"\n",
            "[auth], `trusted-proxies` in",
        ),
        (
            "state = \"elsewhere\"\nnotify = false\n",
            "",
            "`notify`, `state` in",
        ),
    ] {
        let said = gateway.refused(top, &format!("{next}{tables}"));
        unchanged(&said, named);
        assert!(said.contains("restart this gateway"), "{said}");
    }
    let rejected = gateway.audit("rules-rejected");
    assert_eq!(rejected["restart"], json!(["`notify`", "`state`"]));
    for (top, tables, words) in [
        ("drain = 4000\n", "", "`drain` is 4000"),
        ("drane = 4\n", "", "drane"),
        ("", "[servers.c]\n", "needs either `command`"),
        (
            "",
            "[servers.c]\nurl = \"http://127.0.0.1:9\"\ntoken-env = \"NO_SUCH\"\n",
            "NO_SUCH",
        ),
        ("", "[[clients]]\nnames = 3\n", "names"),
        (
            "",
            "[servers.c]\ncommand = [\"true\"]\nanswer-with = \"terminal\"\n",
            "no terminal",
        ),
    ] {
        let said = gateway.refused(top, &format!("{next}{tables}"));
        unchanged(&said, words);
    }
    // The same file without the mistake.
    gateway.reload("", &next);
    let session = gateway.open("/mcp/b");
    let refused = gateway.called("/mcp/b", &session, "t", &json!({}));
    assert!(text(&refused).contains("`never`"), "{refused}");
}

/// A server over HTTP whose tools answer with this word. Returns its address.
fn upstream(word: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while let Ok(Some((_, body))) = http::read_request(&mut reader) {
                    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
                    let result = match message["method"].as_str() {
                        Some("initialize") => {
                            json!({"result": {"protocolVersion": REVISION, "capabilities": {"tools": {}},
                                "serverInfo": {"name": "raw", "version": "1"}}})
                        }
                        Some("tools/call") => {
                            json!({"result": {"content": [{"type": "text", "text": format!("{word} 0")}]}})
                        }
                        _ => json!({"error": {"code": -32601, "message": "no such method"}}),
                    };
                    let mut response = result;
                    response["jsonrpc"] = json!("2.0");
                    response["id"] = message["id"].clone();
                    let (status, body) = if message["id"].is_null() {
                        ("202 Accepted", String::new())
                    } else {
                        ("200 OK", response.to_string())
                    };
                    let head = format!(
                        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                        body.len()
                    );
                    if write!(stream, "{head}{body}").is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("http://{at}/mcp")
}

#[test]
fn a_server_over_http_is_replaced_in_the_same_way() {
    let table = |url: &str| format!("[servers.far]\nurl = \"{url}\"\n");
    let gateway = Running::start(&table(&upstream("one")));
    let before = gateway.open("/mcp/far");
    assert_eq!(gateway.word("/mcp/far", &before).0, "one");
    gateway.reload("", &table(&upstream("two")));
    let after = gateway.open("/mcp/far");
    assert_eq!(gateway.word("/mcp/far", &after).0, "two");
    assert_eq!(gateway.word("/mcp/far", &before).0, "one");
    // A program in its place.
    gateway.reload("", &echo("far", "three"));
    let last = gateway.open("/mcp/far");
    assert_eq!(gateway.word("/mcp/far", &last).0, "three");
    assert_eq!(gateway.word("/mcp/far", &after).0, "two");
    assert_eq!(gateway.word("/mcp/far", &before).0, "one");
}
