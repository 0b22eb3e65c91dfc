//! Responders that ask through other means: programs, web services, several in sequence.

mod wire;

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_client::audit::{AuditEvent, AuditLog};
use mcp_elicit_client::responder::{
    Callback, Chain, Command, Defaults, Fallback, Responder, ResponderError, Script, Webhook,
};
use mcp_elicit_client::{CallError, CallOptions, ClientSettings, Question};
use mcp_elicit_core::wire::{Capability, Revision};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use wire::{connected, form};

/// Returns the response to a server that asks [`form`].
async fn answer_of(settings: ClientSettings) -> Value {
    answer_to(form(), settings).await
}

/// Returns the response to a server that asks this.
async fn answer_to(question: Value, settings: ClientSettings) -> Value {
    let (connection, mut server, _) = connected(Revision::V2025_11_25, settings).await;
    let serving = async {
        let request = server.request("tools/call").await;
        server.push("q", question).await;
        let response = server.response("q").await;
        server.result(&request["id"], json!({"content": []})).await;
        response
    };
    let options = CallOptions::default();
    let (_, response) = tokio::join!(connection.call_tool("go", Map::new(), &options), serving);
    connection.close().await;
    response
}

async fn answer_by(responder: impl Responder) -> Value {
    answer_of(ClientSettings::default().responder(responder)).await
}

fn place(text: &str) -> Value {
    json!({"action": "accept", "content": {"place": text}})
}

fn shell(script: &str) -> Command {
    Command::new("sh", ["-c", script])
}

#[tokio::test]
async fn a_script_sends_nothing_with_what_was_not_asked_for() {
    let script = |content: Value| {
        let answers = json!([{"action": "accept", "content": content}, {"action": "decline"}]);
        Arc::new(Script::from_json(&answers.to_string()).unwrap())
    };
    let wrong = script(json!({"place": "here", "palce": "there"}));
    let response = answer_by(Arc::clone(&wrong)).await;
    assert!(
        response["error"].is_object() && response["result"].is_null(),
        "{response}"
    );
    let right = script(json!({"place": "here"}));
    assert_eq!(answer_by(Arc::clone(&right)).await["result"], place("here"));
    assert_eq!((right.unused(), right.left()), (Vec::new(), 1));
}

#[tokio::test]
async fn a_program_reads_the_question_and_writes_the_answer() {
    let echo = r#"read q; case "$q" in *'"message":"Where?"'*) echo '{"action":"accept","content":{"place":"shell"}}';; esac"#;
    assert_eq!(answer_by(shell(echo)).await["result"], place("shell"));
    let declines = shell(r#"echo '{"action":"decline","reason":"busy"}'"#);
    assert_eq!(
        answer_by(declines).await["result"],
        json!({"action": "decline"})
    );
}

#[tokio::test]
async fn a_program_may_write_before_it_has_read_a_long_question() {
    // More than a pipe holds, in both directions.
    let mut long = form();
    long["message"] = "x".repeat(300_000).into();
    let writes = shell(
        r#"head -c 300000 /dev/zero | tr '\0' ' '; cat >/dev/null; echo '{"action":"decline"}'"#,
    );
    let response = answer_to(long, ClientSettings::default().responder(writes)).await;
    assert_eq!(response["result"], json!({"action": "decline"}));
}

/// The process left behind keeps stdin, stdout and stderr for longer than the test may take.
#[tokio::test]
async fn an_answer_is_taken_at_the_exit_although_a_process_is_left_behind() {
    let leaves = shell(r#"sleep 3600 & echo '{"action":"accept","content":{"place":"shell"}}'"#);
    let answered = tokio::time::timeout(Duration::from_secs(60), answer_by(leaves)).await;
    assert_eq!(answered.unwrap()["result"], place("shell"));
    let fails = shell(r#"sleep 3600 & echo '{"action":"decline"}'; exit 3"#);
    let failed = tokio::time::timeout(Duration::from_secs(60), answer_by(fails)).await;
    assert_eq!(failed.unwrap()["error"]["code"], -32603);
}

#[tokio::test]
async fn the_stderr_of_a_program_goes_into_the_pipe_that_is_set() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let warns = shell(r#"echo warning >&2; echo '{"action":"decline"}'"#).stderr(writer);
    assert_eq!(
        answer_by(warns).await["result"],
        json!({"action": "decline"})
    );
    let mut said = String::new();
    std::io::Read::read_to_string(&mut reader, &mut said).unwrap();
    assert_eq!(said, "warning\n");
}

#[tokio::test]
async fn a_program_may_correct_itself() {
    let learns = r#"read q; case "$q" in *'"attempt":1,"violations":[]'*) p=WRONG;; *pattern*) p=right;; *) p=LOST;; esac
        echo "{\"action\":\"accept\",\"content\":{\"place\":\"$p\"}}""#;
    assert_eq!(answer_by(shell(learns)).await["result"], place("right"));
    let stubborn = shell(r#"echo '{"action":"accept","content":{"place":"WRONG"}}'"#);
    let refused = answer_by(stubborn).await;
    assert_eq!(refused["error"]["code"], -32000, "{refused}");
    assert_eq!(refused["error"]["message"], "Elicitation not answered");
}

#[tokio::test]
async fn a_program_that_fails_or_is_silent_declines_nothing() {
    for (script, code) in [
        ("exit 3", -32603),
        ("true", -32601),
        ("echo nonsense", -32603),
    ] {
        let response = answer_by(shell(script)).await;
        assert_eq!(response["error"]["code"], code, "{script}: {response}");
    }
    let missing = answer_by(Command::new("/nonexistent/program", [""; 0])).await;
    assert_eq!(missing["error"]["code"], -32603);
}

#[tokio::test]
async fn a_chain_passes_on_what_cannot_be_shown_and_nothing_else() {
    let silent = || shell("true");
    let there = || Script::by_name([("place".to_owned(), "there".to_owned())]);
    assert_eq!(
        answer_by(Chain::new().then(silent()).then(there())).await["result"],
        place("there")
    );
    assert_eq!(
        answer_by(Chain::new().then(Script::cancel()).then(there())).await["result"],
        json!({"action": "cancel"})
    );
    let broken = answer_by(Chain::new().then(shell("exit 1")).then(there())).await;
    assert_eq!(broken["error"]["code"], -32603);
    assert_eq!(Chain::new().then(Defaults).modes(), Capability::FORM);
}

#[tokio::test]
async fn a_fallback_answers_when_the_first_is_late_or_broken() {
    let never = || Callback::forms(async |_| std::future::pending().await);
    let late = Fallback::new(never(), Defaults).within(Duration::from_millis(50));
    assert_eq!(answer_by(late).await["result"], place("here"));
    assert_eq!(
        answer_by(Fallback::new(shell("exit 1"), Defaults)).await["result"],
        place("here")
    );
    assert_eq!(
        answer_by(Fallback::new(Script::decline(), Defaults)).await["result"],
        json!({"action": "decline"})
    );
}

/// A web service that answers each request with the next of these, and returns the requests.
async fn service(answers: Vec<&'static str>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let serving = tokio::spawn(async move {
        let mut seen = Vec::new();
        for answer in answers {
            let (mut socket, _) = listener.accept().await.expect("a request");
            let mut request = Vec::new();
            let mut chunk = [0; 4096];
            while !request.ends_with(b"}") {
                let read = socket.read(&mut chunk).await.expect("bytes");
                request.extend_from_slice(&chunk[..read]);
            }
            seen.push(String::from_utf8(request).expect("UTF-8"));
            socket.write_all(answer.as_bytes()).await.expect("sent");
        }
        seen
    });
    (url, serving)
}

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn header<'r>(request: &'r str, name: &str) -> &'r str {
    let line = request
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")));
    line.unwrap_or_default()
        .split_once(':')
        .unwrap_or_default()
        .1
        .trim()
}

#[tokio::test]
async fn a_web_service_is_waited_for() {
    let accepted =
        "HTTP/1.1 202 Accepted\r\nretry-after: 0\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 49\r\nconnection: close\r\n\r\n{\"action\":\"accept\",\"content\":{\"place\":\"webhook\"}}";
    let (url, serving) = service(vec![accepted, answer]).await;
    let response = answer_by(Webhook::new(&url, SECRET).unwrap()).await;
    assert_eq!(response["result"], place("webhook"));
    let seen = serving.await.unwrap();
    // The same message came again, with the same id.
    assert_eq!(
        header(&seen[0], "webhook-id"),
        header(&seen[1], "webhook-id")
    );
    assert!(header(&seen[0], "webhook-signature").starts_with("v1,"));
    assert!(seen[0].contains(r#""message":"Where?""#));
}

#[tokio::test]
async fn a_web_service_that_fails_declines_nothing() {
    for (answer, code) in [
        (
            "HTTP/1.1 500 Oh\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            -32603,
        ),
        (
            "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n",
            -32601,
        ),
        (
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            -32603,
        ),
    ] {
        let (url, _serving) = service(vec![answer]).await;
        let response = answer_by(Webhook::new(&url, SECRET).unwrap()).await;
        assert_eq!(response["error"]["code"], code, "{answer}: {response}");
    }
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_any_more_has_an_end_in_the_record() {
    let audit = Arc::new(AuditLog::new(std::io::sink()));
    // Both are asked before the first of them finds no responder, which ends the call.
    let responder = Callback::forms(async |question: Question| {
        if question.message() == "Where?" {
            std::future::pending::<()>().await;
        }
        tokio::task::yield_now().await;
        Err(ResponderError::failed("no screen"))
    });
    let settings = ClientSettings::default()
        .responder(Both(responder))
        .observer(Arc::clone(&audit));
    let (connection, mut server, _) = connected(Revision::V2026_07_28, settings).await;
    let mut other = form();
    other["message"] = "When?".into();
    let asks = |params| json!({"method": "elicitation/create", "params": params});
    let serving = async {
        let request = server.request("tools/call").await;
        let requests = json!({"a": asks(other), "b": asks(form())});
        let required =
            json!({"resultType": "input_required", "inputRequests": requests, "requestState": "s"});
        server.result(&request["id"], required).await;
    };
    let options = CallOptions::default();
    let (called, ()) = tokio::join!(connection.call_tool("go", Map::new(), &options), serving);
    assert!(matches!(called, Err(CallError::Question(_))), "{called:?}");
    let turns = audit.counters().events();
    let of = |turn| turns[&turn];
    assert_eq!(
        (
            of(AuditEvent::Asked),
            of(AuditEvent::NoResponder),
            of(AuditEvent::Withdrawn)
        ),
        (2, 1, 1)
    );
    assert_eq!(audit.counters().open().0, 2);
}

/// Shows all pending questions at once.
struct Both<R>(R);

impl<R: Responder> Responder for Both<R> {
    fn name(&self) -> std::borrow::Cow<'static, str> {
        self.0.name()
    }

    fn modes(&self) -> Capability {
        self.0.modes()
    }

    fn has_own_queue(&self) -> bool {
        true
    }

    fn respond<'a>(
        &'a self,
        question: &'a Question,
    ) -> mcp_elicit_client::responder::RespondFuture<'a> {
        self.0.respond(question)
    }
}

/// A writer whose text can be read while it is written to.
#[derive(Clone, Default)]
struct Shared(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        std::io::Write::write(&mut *self.0.lock().expect("no test panicked"), bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_audit_tells_everything_but_what_was_said() {
    let log = Shared::default();
    let audit = Arc::new(AuditLog::new(log.clone()));
    let said =
        Script::from_json(r#"[{"action":"accept","content":{"place":"secretplace"}}]"#).unwrap();
    answer_of(
        ClientSettings::default()
            .responder(said)
            .observer(Arc::clone(&audit)),
    )
    .await;
    answer_of(
        ClientSettings::default()
            .responder(Script::decline())
            .observer(Arc::clone(&audit)),
    )
    .await;
    answer_of(ClientSettings::default().observer(Arc::clone(&audit))).await;
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(!text.contains("secretplace"), "{text}");
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let turns: Vec<_> = lines
        .iter()
        .map(|line| line["event"].as_str().unwrap())
        .collect();
    assert_eq!(turns, ["asked", "answered", "asked", "declined", "refused"]);
    assert_eq!(lines[1]["responder"], "script");
    assert_eq!(lines[1]["name"], "go");
    assert_eq!(lines[1]["fields"], json!(["place", "count"]));
    let counters = audit.counters();
    assert_eq!(
        (counters.events()[&AuditEvent::Asked], counters.open().0),
        (2, 2)
    );
    let text = counters.to_prometheus("mcp_elicit_client");
    assert!(text.contains("mcp_elicit_client_events_total{event=\"declined\"} 1"));
}
