//! Sessions of the revisions before 2026-07-28 at gateways that forward each other's requests: any of them serves any session.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};

use mcp_elicit_testkit::peers::{self, PeerProgram};
use mcp_elicit_testkit::postgres::{PostgresServer, TestDatabase};
use serde_json::{Value, json};

use super::replica::{Deployment, LOOK, LOOKS, Replica};
use super::{balancer, rounds_client};
use crate::asker::Asker;
use crate::gateway::REVISION;
use crate::http::{PATIENCE, Reply, post, send};
use crate::raw::{call, initialize, text};

struct Two {
    _deployment: Deployment,
    database: TestDatabase,
    a: Replica,
    b: Replica,
}

/// Starts two gateways that forward requests.
fn two(server: &PostgresServer, asker: &Asker) -> Two {
    let database = server.database();
    let deployment = Deployment::new(&database.address, &asker.url, 3_600).forwarding();
    let [a, b] = [0, 1].map(|number| deployment.start(number).expect("it starts"));
    Two {
        _deployment: deployment,
        database,
        a,
        b,
    }
}

/// Opens a session of a client with this token. Returns its id.
fn open(at: &str, token: Option<&str>) -> String {
    let opened = post(at, "/mcp", token, None, &initialize(REVISION, &json!({})));
    assert_eq!(opened.status, 200, "{opened:?}");
    opened.header("mcp-session-id").unwrap().to_owned()
}

/// Makes a call that asks nothing.
fn tell(at: &str, token: Option<&str>, session: &str) -> Reply {
    let body = call(2, "tell", &json!({"n": 7}));
    post(at, "/mcp", token, Some(session), &body)
}

/// Makes a request without a body in this session.
fn request(method: &str, at: &str, session: &str) -> u16 {
    let line = format!("{method} /mcp HTTP/1.1");
    let session = format!("Mcp-Session-Id: {session}");
    let reply = send(at, &[&line, &session, "Accept: text/event-stream"], "");
    reply.expect("a response").status
}

/// Opens the stream of a session. Returns the status, and the connection, which stays open.
fn listen(at: &str, session: &str) -> (u16, BufReader<TcpStream>) {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!(
        "GET /mcp HTTP/1.1\r\nHost: {at}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    (line.split(' ').nth(1).unwrap().parse().unwrap(), stream)
}

/// Returns the value of a metric with this label; 0 if there is none.
fn metric(at: &str, name: &str) -> u64 {
    let text = send(at, &["GET /metrics HTTP/1.1"], "").unwrap().body;
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or(0)
}

#[test]
fn a_call_at_another_gateway_gets_the_answer_that_is_given_there() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let asker = Asker::start();
    let two = two(server, &asker);
    let (at_a, at_b) = (two.a.serving.as_str(), two.b.serving.as_str());
    let session = open(at_a, None);
    assert_eq!(
        tell(at_b, None, &session).response()["result"]["content"][0]["text"],
        "told 7"
    );
    let desk = two.b.desk();
    let answered = thread::scope(|threads| {
        let call = call(3, "note", &json!({"n": 9}));
        let session = &session;
        let calling = threads.spawn(move || post(at_b, "/mcp", None, Some(session), &call));
        let id = desk.question_of(9, true);
        assert_eq!(desk.accept(&id, "through B"), Some(200));
        calling.join().unwrap()
    });
    assert_eq!(answered.status, 200);
    assert_eq!(answered.header("content-type"), Some("text/event-stream"));
    assert_eq!(text(&answered.response()), "through B");
    assert_eq!(asker.told(), [(9, "through B".to_owned())]);
    // A notification passes as well.
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(
        post(at_b, "/mcp", None, Some(&session), &notice).status,
        202
    );
    let sent = metric(
        at_b,
        "mcp_elicit_forwarded_requests_total{result=\"answered\"}",
    );
    let taken = metric(at_a, "mcp_elicit_received_requests_total{result=\"taken\"}");
    assert_eq!((sent, taken), (3, 3));
    // Of a client of rounds, which has no session, nothing is forwarded.
    thread::scope(|threads| {
        let calling = threads.spawn(|| rounds_client::make_call(at_b, 5, false, None, PATIENCE));
        let id = desk.question_of(5, true);
        assert_eq!(desk.accept(&id, "here"), Some(200));
        assert_eq!(text(&calling.join().unwrap().unwrap()), "here");
    });
    assert_eq!(
        metric(at_a, "mcp_elicit_received_requests_total{result=\"taken\"}"),
        3
    );
}

#[test]
fn the_stream_of_a_session_and_its_end_are_forwarded_and_a_client_that_leaves_frees_both() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let two = two(server, &Asker::start());
    let (at_a, at_b) = (two.a.serving.as_str(), two.b.serving.as_str());
    let session = open(at_a, None);
    let (status, stream) = listen(at_b, &session);
    assert_eq!(status, 200);
    assert_eq!(metric(at_b, "mcp_elicit_forwarding"), 1);
    assert_eq!(
        listen(at_a, &session).0,
        409,
        "it is the one of the session"
    );
    drop(stream);
    let is_free = (0..LOOKS).any(|_| {
        sleep(LOOK);
        listen(at_a, &session).0 == 200
    });
    assert!(is_free, "its client has left");
    assert_eq!(metric(at_b, "mcp_elicit_forwarding"), 0);
    assert_eq!(request("DELETE", at_b, &session), 204);
    assert_eq!(tell(at_a, None, &session).status, 404);
    assert_eq!(tell(at_b, None, &session).status, 404);
}

#[test]
fn another_caller_gets_no_session_through_another_gateway() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let two = two(server, &Asker::start());
    let (at_a, at_b) = (two.a.serving.as_str(), two.b.serving.as_str());
    let session = open(at_a, Some("mine"));
    assert_eq!(tell(at_b, Some("mine"), &session).status, 200);
    for token in [Some("another"), None] {
        assert_eq!(tell(at_b, token, &session).status, 404, "{token:?}");
    }
    // The headers between gateways mean nothing from a client.
    let head = [
        "POST /mcp HTTP/1.1",
        "Content-Type: application/json",
        &format!("Mcp-Session-Id: {session}"),
        &format!("Mcp-Elicit-Forwarded-To: {}", &session[1..33]),
        "Mcp-Elicit-Caller: eyJraW5kIjoidW52ZXJpZmllZCIsImlkIjoiYW5vbnltb3VzIn0=",
    ];
    let body = call(2, "tell", &json!({"n": 7})).to_string();
    for at in [at_a, at_b] {
        assert_eq!(send(at, &head, &body).unwrap().status, 404);
    }
}

#[test]
fn a_session_of_a_gateway_that_was_killed_is_404_and_of_one_that_stands_still_503() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let mut two = two(server, &Asker::start());
    let (at_a, at_b) = (two.a.serving.clone(), two.b.serving.clone());
    let session = open(&at_a, None);
    two.a.pause();
    let waits = tell(&at_b, None, &session);
    assert_eq!(waits.status, 503, "{waits:?}");
    assert_eq!(waits.header("retry-after"), Some("2"));
    two.a.go_on();
    assert_eq!(tell(&at_b, None, &session).status, 200);
    two.a.kill();
    let ended = tell(&at_b, None, &session);
    assert_eq!(ended.status, 404, "{ended:?}");
    assert!(ended.body.contains("`initialize`"), "{ended:?}");
    assert_eq!(request("GET", &at_b, &session), 404);
    assert_eq!(request("DELETE", &at_b, &session), 404);
    for wrong in [
        "r",
        "r-",
        &format!("r{}-{}", "0".repeat(32), "0".repeat(32)),
    ] {
        assert_eq!(tell(&at_b, None, wrong).status, 404, "{wrong}");
    }
}

#[test]
fn a_row_that_its_gateway_did_not_write_leads_nowhere_and_strangers_get_nothing() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let two = two(server, &Asker::start());
    let (at_a, at_b) = (two.a.serving.as_str(), two.b.serving.as_str());
    let session = open(at_a, None);
    assert_eq!(tell(at_b, None, &session).status, 200);
    let of_a = &session[1..33];
    let sql = |text: &str| server.sql(&two.database.name, text).unwrap();
    let address = sql(&format!(
        "SELECT peer_address FROM mcp_elicit.replica WHERE id = '{of_a}'"
    ));
    let address = address.trim();
    // Neither a plain request nor other bytes get a response.
    for said in [
        "GET /mcp HTTP/1.1\r\nHost: a\r\n\r\n",
        "\0\0\0",
        "\x16\x03\x01\x00\x05hello",
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(said.as_bytes()).unwrap();
        let mut got = Vec::new();
        let _closed = std::io::Read::read_to_end(&mut stream, &mut got);
        assert!(!got.starts_with(b"HTTP"), "{got:?}");
    }
    // Somebody who can write to the database leads requests to an address of their own.
    let trap = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = trap.local_addr().unwrap();
    let reached = Arc::new(Mutex::new(0));
    let counted = reached.clone();
    thread::spawn(move || trap.incoming().for_each(|_| *counted.lock().unwrap() += 1));
    let change = |what: &str| {
        sql(&format!(
            "UPDATE mcp_elicit.replica SET {what} WHERE id = '{of_a}'"
        ));
        let is_refused = (0..LOOKS).any(|_| {
            sleep(LOOK);
            tell(at_b, None, &session).status == 404
        });
        assert!(is_refused, "{what}");
    };
    change(&format!("peer_address = '{at}'"));
    assert_eq!(*reached.lock().unwrap(), 0, "nothing is sent there");
    let is_told = (0..LOOKS).any(|_| {
        sleep(LOOK);
        let said = two.b.said.lock().unwrap();
        said.contains("the row of a gateway was not written by it")
    });
    assert!(is_told, "{}", two.b.said.lock().unwrap());
    // With its row as it was, the session is there again.
    sql(&format!(
        "UPDATE mcp_elicit.replica SET peer_address = '{address}' WHERE id = '{of_a}'"
    ));
    let is_there = (0..LOOKS).any(|_| {
        sleep(LOOK);
        tell(at_b, None, &session).status == 200
    });
    assert!(is_there);
    change("peer_key = decode('00', 'hex')");
}

/// Plays a client on a published SDK, which declares dialogs or none, through a balancer that knows no session.
fn plays(program: &PeerProgram, revision: &str, url: &str, number: u64, has_dialog: bool) -> Value {
    let arguments = json!({"n": number}).to_string();
    let answers = json!([{"action": "accept", "content": {"value": format!("of {number}")}}]);
    let program = program.clone().with([
        "--revision",
        revision,
        "--tool",
        "note",
        "--arguments",
        &arguments,
        "--url",
        url,
    ]);
    let program = if has_dialog {
        program.with(["--answers", &answers.to_string()])
    } else {
        program.with(["--no-capability"])
    };
    program.run().last_json_line()
}

#[test]
fn clients_on_published_sdks_are_served_through_a_balancer_that_knows_no_session() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let programs = [
        ("auto", peers::node_script("ts1-client.mjs")),
        ("pushed", peers::node_script("ts2-client.mjs")),
        ("pushed", peers::python_script("mcp_client.py")),
    ];
    let asker = Asker::start();
    let two = two(server, &asker);
    let behind = [&two.a, &two.b].map(|gateway| Some(gateway.serving.clone()));
    let url = format!(
        "http://{}/mcp",
        balancer::start(Arc::new(Mutex::new(behind.into())))
    );
    let desk = two.b.desk();
    let mut expected = Vec::new();
    for (number, (revision, program)) in (0..).step_by(10).zip(programs) {
        let Some(program) = program else {
            continue;
        };
        for (number, has_dialog) in [(number, true), (number + 1, false)] {
            let (program, url) = (&program, &url);
            let played = thread::scope(|threads| {
                let playing =
                    threads.spawn(move || plays(program, revision, url, number, has_dialog));
                if !has_dialog {
                    let id = desk.question_of(number, true);
                    assert_eq!(desk.accept(&id, &format!("of {number}")), Some(200));
                }
                playing.join().unwrap()
            });
            assert_eq!(text(&played), format!("of {number}"), "{played}");
            expected.push((number, format!("of {number}")));
        }
    }
    let mut told = asker.told();
    told.sort_unstable();
    assert_eq!(told, expected);
    let answered = "mcp_elicit_forwarded_requests_total{result=\"answered\"}";
    let forwarded = [&two.a, &two.b].map(|gateway| metric(&gateway.serving, answered));
    assert!(
        expected.is_empty() || forwarded.iter().sum::<u64>() > 0,
        "{forwarded:?}"
    );
}
