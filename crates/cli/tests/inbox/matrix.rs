//! The matrix: client revision, server revision, stdio and HTTP on both sides, capability, and kind of question. Every
//! cell runs through the real program, with real pipes and sockets, and states its expected result; an impossible cell
//! states the reason.

mod client;
mod gateways;
mod server;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use mcp_elicit_testkit::postgres::PostgresServer;
use serde_json::{Value, json};

use crate::gateway::api;
use crate::raw::text;
use client::Client;
use gateways::{Gateways, RecordPlace};
use server::Server;

/// The revision without sessions, where a server asks in its results.
const NEWEST: &str = "2026-07-28";
const REVISIONS: [&str; 3] = ["2025-06-18", "2025-11-25", NEWEST];
/// A server that speaks 2025-11-25 and 2026-07-28, and asks only in a session: on 2026-07-28, it goes on unasked.
const BOTH_ERAS: &str = "both eras";

/// The transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Stdio,
    Http,
}

/// The modes that a client declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Capability {
    None,
    Form,
    Both,
}

/// A question, or a change made to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    Nothing,
    Form,
    TwoForms,
    Url,
    /// The error that requires a visit (-32042).
    Visit,
    TwoWrongAnswers,
    ThreeWrongAnswers,
    /// Two answers that break the same rule.
    TwoAlike,
    UnknownMembers,
    DuplicateMembers,
    TamperedState,
    MovedState,
    Logs,
    /// A form that no revision lists, as SDKs send it.
    FormOutside,
    FiftyCalls,
    /// The client declares the mode, and answers with an error.
    DeclaresAndErrors,
    /// The client declares the mode, and declines sooner than a person can read.
    InstantAnswers,
    /// The client stops waiting without a word, and makes the same call again.
    TimesOutInSilence,
}

const ASKS: [Asks; 18] = [
    Asks::Nothing,
    Asks::Form,
    Asks::TwoForms,
    Asks::Url,
    Asks::Visit,
    Asks::TwoWrongAnswers,
    Asks::ThreeWrongAnswers,
    Asks::UnknownMembers,
    Asks::DuplicateMembers,
    Asks::TamperedState,
    Asks::MovedState,
    Asks::Logs,
    Asks::FormOutside,
    Asks::FiftyCalls,
    Asks::TwoAlike,
    Asks::InstantAnswers,
    // The session remembers these, so no other cell follows.
    Asks::DeclaresAndErrors,
    Asks::TimesOutInSilence,
];

/// A client and a server, and the transports between them.
#[derive(Clone, Copy)]
struct Wiring {
    client: &'static str,
    client_over: Over,
    capability: Capability,
    server: &'static str,
    server_over: Over,
}

impl fmt::Display for Wiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            client,
            client_over,
            capability,
            server,
            server_over,
        } = self;
        write!(
            f,
            "client {client} {client_over:?} {capability:?}, server {server} {server_over:?}"
        )
    }
}

impl Wiring {
    /// Returns the reason why a cell is impossible; `None` if it is possible.
    fn impossible(&self, asks: Asks) -> Option<&'static str> {
        let has_dialog = self.capability != Capability::None;
        match asks {
            _ if self.capability == Capability::Both && self.client == REVISIONS[0] => {
                Some("2025-06-18 has no url mode to declare")
            }
            Asks::Url if self.server == REVISIONS[0] => {
                Some("a server of 2025-06-18 has no url mode")
            }
            Asks::Visit if self.server != REVISIONS[1] && self.server != BOTH_ERAS => {
                Some("only 2025-11-25 has the error that requires a visit")
            }
            Asks::TwoWrongAnswers | Asks::ThreeWrongAnswers | Asks::TwoAlike if !has_dialog => {
                Some("without a dialog the inbox asks, which checks before it sends")
            }
            Asks::UnknownMembers if !has_dialog => {
                Some("a person in the inbox is shown no unknown members and writes none")
            }
            Asks::DeclaresAndErrors if self.client == NEWEST => {
                Some("a retry carries answers; it cannot carry an error")
            }
            Asks::DeclaresAndErrors | Asks::InstantAnswers if !has_dialog => {
                Some("nothing is declared")
            }
            Asks::TimesOutInSilence if has_dialog => Some("the client itself is asked, and waits"),
            Asks::TimesOutInSilence if self.client == NEWEST && self.client_over == Over::Http => {
                Some("an open stream of 2026-07-28 says that the client waits")
            }
            Asks::TamperedState | Asks::MovedState if self.client != NEWEST => {
                Some("only 2026-07-28 has `requestState`")
            }
            Asks::TamperedState | Asks::MovedState if !has_dialog => {
                Some("a client that cannot ask gets no state")
            }
            _ => None,
        }
    }

    /// Returns `true` if this client shows links itself.
    fn shows_links(&self) -> bool {
        self.capability == Capability::Both
    }
}

fn wirings() -> Vec<Wiring> {
    let mut all = Vec::new();
    for client in REVISIONS {
        for client_over in [Over::Stdio, Over::Http] {
            // A client with a session is answered by a server of both eras as by one of 2025-11-25.
            let both = (client == NEWEST).then_some(BOTH_ERAS);
            for server in REVISIONS.into_iter().chain(both) {
                for server_over in [Over::Stdio, Over::Http] {
                    for capability in [Capability::None, Capability::Form, Capability::Both] {
                        all.push(Wiring {
                            client,
                            client_over,
                            capability,
                            server,
                            server_over,
                        });
                    }
                }
            }
        }
    }
    all
}

/// Returns the content that a person or a client enters for the question with this message: each call has its own
/// answer.
fn content_for(message: &str) -> Value {
    let number: String = message
        .trim_start_matches("Who is ")
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    json!({"name": format!("for {number}"), "age": 36})
}

/// Answers every question of the inbox until stopped. Returns the number of questions.
fn answer_all(inbox: &str, token: &str, stop: &AtomicBool) -> usize {
    let mut answered = 0;
    while !stop.load(Ordering::Relaxed) {
        let listed =
            api(inbox, token, "GET", "/api/questions?most=1000", "").expect("the inbox answers");
        let questions = listed.json()["questions"].as_array().cloned();
        let open = questions.unwrap_or_default();
        let open = open
            .iter()
            .filter(|question| question["askedInClient"] != true);
        let mut idle = true;
        for question in open {
            let id = question["id"].as_str().unwrap();
            let body = if question["mode"] == "url" {
                json!({"action": "accept"})
            } else {
                let content = content_for(question["message"].as_str().unwrap());
                json!({"action": "accept", "content": content})
            };
            let path = format!("/api/questions/{id}/answer");
            let said =
                api(inbox, token, "POST", &path, &body.to_string()).expect("the inbox answers");
            assert_eq!(said.status, 200, "{said:?}");
            answered += 1;
            idle = false;
        }
        if idle {
            thread::sleep(Duration::from_millis(5));
        }
    }
    answered
}

/// Runs `work` while a person answers in the inbox. Returns its result, and the number of answers.
fn with_person<T>(inbox: &str, token: &str, work: impl FnOnce() -> T) -> (T, usize) {
    let stop = AtomicBool::new(false);
    thread::scope(|threads| {
        let person = threads.spawn(|| answer_all(inbox, token, &stop));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        let answered = person.join().unwrap();
        let done = done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (done, answered)
    })
}

/// Runs one cell.
fn ask(client: &mut Client<'_>, wiring: Wiring, asks: Asks, server: &Server) {
    match asks {
        Asks::Nothing => assert_eq!(text(&client.run("plain", 1)), "plain"),
        Asks::Form => assert_eq!(text(&client.run("form", 2)), "accept:for 2"),
        Asks::TwoForms => assert_eq!(text(&client.run("two", 3)), "accept:for 3"),
        Asks::Url => assert_eq!(text(&client.run("url", 4)), "accept:-"),
        Asks::Visit => assert_eq!(text(&client.run("visit", 5)), "visited"),
        Asks::TwoWrongAnswers => {
            client.wrong = 2;
            assert_eq!(text(&client.run("form", 6)), "accept:for 6");
            let messages = client
                .asked
                .iter()
                .map(|asked| asked["message"].as_str().unwrap());
            for (message, reason) in messages.zip(["Who is 6?", "name", "18"]) {
                let named = message.starts_with("Who is 6?") && message.contains(reason);
                assert!(named, "{reason}: {:?}", client.asked);
            }
        }
        Asks::ThreeWrongAnswers => {
            client.wrong = 3;
            assert_eq!(text(&client.run("form", 7)), "accept:for 7");
        }
        Asks::TwoAlike => {
            client.alike = true;
            client.wrong = 2;
            assert_eq!(text(&client.run("form", 15)), "accept:for 15");
            client.alike = false;
        }
        Asks::UnknownMembers => unknown_members(client),
        Asks::DuplicateMembers => duplicate_members(client, server),
        Asks::TamperedState => states(client, server, 10, |retry| {
            let state = retry["params"]["requestState"].as_str().unwrap();
            retry["params"]["requestState"] = json!(format!("{state}A"));
        }),
        Asks::MovedState => states(client, server, 11, |retry| {
            retry["params"]["arguments"]["n"] = json!(12);
        }),
        Asks::Logs => logs(client, wiring),
        Asks::FormOutside => {
            assert_eq!(text(&client.run("outside", 12)), "accept:for 12");
            if let Some(asked) = client.asked.last()
                && wiring.client == wiring.server
            {
                assert_eq!(asked["requestedSchema"], server::outside(), "{asked}");
            }
        }
        Asks::DeclaresAndErrors => {
            client.error = Some(match wiring.server {
                "2025-06-18" => -32601,
                "2025-11-25" => -32600,
                _ => -32603,
            });
            assert_eq!(text(&client.run("form", 13)), "accept:for 13");
            assert_eq!(text(&client.run("form", 14)), "accept:for 14");
        }
        Asks::FiftyCalls | Asks::InstantAnswers | Asks::TimesOutInSilence => {
            unreachable!("it has a function of its own")
        }
    }
}

/// A client that declines at once, before a gateway that takes no act for a person's which comes that soon: the person in
/// the inbox answers. Returns the numbers of questions that were asked in the dialog and answered in the inbox.
fn instant_answers(wiring: Wiring, record: RecordPlace) -> (usize, usize) {
    let server = Server::start(wiring.server, wiring.server_over);
    let mut gateways = Gateways::start(record, wiring, &server, &["--doubt", "60s"]);
    let (inbox, token) = (gateways.inbox.clone(), gateways.token.clone());
    let mut client = gateways.client(wiring);
    client.instant = Some("decline");
    with_person(&inbox, &token, || {
        assert_eq!(text(&client.run("form", 16)), "accept:for 16");
        client.asked.len()
    })
}

/// A call that its client gives up without a word, and makes again: the second joins the question, and the tool runs
/// once. Returns the same numbers.
fn times_out_in_silence(
    client: &mut Client<'_>,
    inbox: &str,
    token: &str,
    server: &Server,
) -> (usize, usize) {
    let given_up = client.call("form", 17);
    client.leave(&given_up);
    let open = || {
        let listed = api(inbox, token, "GET", "/api/questions", "").expect("the inbox answers");
        let questions = listed.json()["questions"].as_array().cloned();
        questions.unwrap_or_default()
    };
    while open().is_empty() {
        thread::sleep(Duration::from_millis(10));
    }
    // Calls that follow each other sooner are two calls that are meant.
    thread::sleep(Duration::from_millis(1_100));
    let joined = client.run("form", 17);
    assert!(text(&joined).starts_with("Not done yet"), "{joined}");
    let questions = open();
    let [question] = questions.as_slice() else {
        panic!("it is asked once: {questions:?}");
    };
    let path = format!("/api/questions/{}/answer", question["id"].as_str().unwrap());
    let answer = json!({"action": "accept", "content": content_for("Who is 17?")});
    let said = api(inbox, token, "POST", &path, &answer.to_string()).expect("the inbox answers");
    assert_eq!(said.status, 200, "{said:?}");
    let done = (0..100)
        .map(|_| client.run("form", 17))
        .find(|done| text(done) == "accept:for 17");
    assert!(done.is_some(), "the next identical call gets the result");
    let seen = server.seen();
    let is_run = |frame: &&Value| {
        let params = &frame["params"];
        params["arguments"]["n"] == 17 && params["inputResponses"].is_null()
    };
    assert_eq!(seen.iter().filter(is_run).count(), 1, "one run of the tool");
    (client.asked.len(), 1)
}

/// Returns the numbers of questions that a cell asks the client and the inbox.
fn expected(wiring: Wiring, asks: Asks) -> (usize, usize) {
    let has_dialog = wiring.capability != Capability::None;
    let form = |count| if has_dialog { (count, 0) } else { (0, count) };
    match asks {
        Asks::Nothing | Asks::DuplicateMembers | Asks::Logs => (0, 0),
        Asks::Form | Asks::UnknownMembers | Asks::FormOutside => form(1),
        Asks::TwoAlike => (2, 1),
        Asks::DeclaresAndErrors => (1, 2),
        Asks::InstantAnswers => (1, 1),
        Asks::TwoForms => form(2),
        Asks::Url | Asks::Visit if wiring.shows_links() => (1, 0),
        Asks::TimesOutInSilence | Asks::Url | Asks::Visit => (0, 1),
        Asks::TwoWrongAnswers => (3, 0),
        // No answer of the client could be used, so a person in the inbox gives one.
        Asks::ThreeWrongAnswers => (3, 1),
        Asks::TamperedState | Asks::MovedState => (1, 0),
        Asks::FiftyCalls => form(50),
    }
}

/// Unknown members reach the other side, in both directions.
fn unknown_members(client: &mut Client<'_>) {
    let told = client.run("unknown", 8);
    let asked = client.asked.last().expect("it was asked");
    assert_eq!(asked["x-hint"], json!({"a": 1}), "{asked}");
    assert_eq!(asked["_meta"]["vendor/x"], 2, "{asked}");
    let name = &asked["requestedSchema"]["properties"]["name"];
    assert_eq!(name["x-widget"], "big", "{asked}");
    let reply: Value = serde_json::from_str(text(&told)).expect("the answer as the server got it");
    assert_eq!(reply["x-more"], 4, "{reply}");
    assert_eq!(reply["_meta"]["vendor/y"], 3, "{reply}");
}

/// A call that two readers could read differently is rejected, and does not reach the server.
fn duplicate_members(client: &mut Client<'_>, server: &Server) {
    let before = server.seen().len();
    let call = client.call("plain", 9);
    let whole = call.to_string();
    for (once, twice) in [
        (r#""name":"plain""#, r#""name":"plain","name":"other""#),
        (r#""name":"plain""#, r#""name":"plain","n\u0061me":"other""#),
        (r#""arguments":{"#, r#""arguments":{"n":0},"arguments":{"#),
        (
            r#""method":"tools/call""#,
            r#""method":"tools/call","method":"ping""#,
        ),
        (r#""params":{"#, r#""params":{},"params":{"#),
    ] {
        let text = whole.replacen(once, twice, 1);
        assert_ne!(text, whole);
        let error = client.refused(&text, &call);
        assert_eq!(error["code"], -32600, "{text}: {error}");
    }
    let seen = server.seen();
    let calls = seen[before..]
        .iter()
        .filter(|frame| frame["method"] == "tools/call");
    assert_eq!(calls.count(), 0, "{seen:?}");
}

/// A state that was changed, or comes with another call, is rejected and does not reach the server; the right one
/// remains valid.
fn states(client: &mut Client<'_>, server: &Server, number: u64, change: impl Fn(&mut Value)) {
    let call = client.call("form", number);
    let told = client.once(&call);
    assert_eq!(told["result"]["resultType"], "input_required", "{told}");
    let requests = told["result"]["inputRequests"].as_object().unwrap();
    let replies = requests
        .iter()
        .map(|(key, asked)| (key.clone(), client.reply(&asked["params"])));
    let replies: Value = replies.collect();
    let mut retry = call.clone();
    retry["params"]["inputResponses"] = replies;
    retry["params"]["requestState"] = told["result"]["requestState"].clone();
    let before = server.seen().len();
    let mut wrong = retry.clone();
    wrong["id"] = json!(number * 1_000);
    change(&mut wrong);
    let refused = client.once(&wrong);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(server.seen().len(), before, "nothing reached the server");
    retry["id"] = json!(number * 1_000 + 1);
    let done = client.once(&retry);
    assert_eq!(text(&done), format!("accept:for {number}"), "{done}");
}

/// A session gets log messages of the level that it set; a request of 2026-07-28 gets those that it asked for, if any.
fn logs(client: &mut Client<'_>, wiring: Wiring) {
    if wiring.client == NEWEST {
        assert_eq!(text(&client.run("log", 13)), "plain");
        assert!(client.logged.is_empty(), "{:?}", client.logged);
        let mut call = client.call("log", 14);
        call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("warning");
        client.run_all(vec![call]);
    } else {
        client.set_level("warning");
        assert_eq!(text(&client.run("log", 14)), "plain");
    }
    assert_eq!(client.logged, ["error"]);
}

/// Makes this number of calls at once, each with its own answer.
fn calls_at_once(client: &mut Client<'_>, from: u64, count: u64) {
    let numbers = from..from + count;
    let calls: Vec<_> = numbers.map(|number| client.call("form", number)).collect();
    let numbers: BTreeMap<u64, Value> = calls
        .iter()
        .map(|call| {
            let number = call["params"]["arguments"]["n"].clone();
            (call["id"].as_u64().unwrap(), number)
        })
        .collect();
    for (id, told) in client.run_all(calls) {
        let expected = format!("accept:for {}", numbers[&id]);
        assert_eq!(text(&told), expected, "{told}");
    }
}

/// Makes fifty calls at once: over HTTP ten from each of five clients, over stdio all from the only client. Returns the
/// number of questions that the clients got.
fn fifty_calls(client: &mut Client<'_>, at: Option<&str>, wiring: Wiring) -> usize {
    let Some(at) = at else {
        calls_at_once(client, 100, 50);
        return client.asked.len();
    };
    thread::scope(|threads| {
        let one = |number: u64| {
            let name = format!("client{number}");
            let mut client = Client::over_http(at, &name, wiring.client, wiring.capability);
            calls_at_once(&mut client, number * 100, 10);
            client.asked.len()
        };
        let clients: Vec<_> = (1..=5)
            .map(|number| threads.spawn(move || one(number)))
            .collect();
        let asked = clients.into_iter().map(|client| client.join().unwrap());
        asked.sum()
    })
}

/// The results of the cells of one wiring.
#[derive(Default)]
struct Outcome {
    ran: usize,
    impossible: Vec<String>,
    failed: Vec<String>,
}

fn run(wiring: Wiring, record: RecordPlace) -> Outcome {
    let mut outcome = Outcome::default();
    let place = |asks: Asks| format!("{wiring}, {asks:?}");
    let (never, cells): (Vec<Asks>, Vec<Asks>) = ASKS
        .into_iter()
        .partition(|asks| wiring.impossible(*asks).is_some());
    for asks in never {
        let why = wiring.impossible(asks).unwrap_or_default();
        outcome.impossible.push(format!("{}: {why}", place(asks)));
    }
    if cells.is_empty() {
        return outcome;
    }
    let server = Server::start(wiring.server, wiring.server_over);
    let mut gateways = Gateways::start(record, wiring, &server, &[]);
    let (inbox, token, at) = (
        gateways.inbox.clone(),
        gateways.token.clone(),
        gateways.at.clone(),
    );
    let mut client = gateways.client(wiring);
    for asks in cells {
        client.asked.clear();
        client.logged.clear();
        let cell = || match asks {
            Asks::InstantAnswers => instant_answers(wiring, record),
            Asks::TimesOutInSilence => times_out_in_silence(&mut client, &inbox, &token, &server),
            _ => with_person(&inbox, &token, || {
                if asks == Asks::FiftyCalls {
                    return fifty_calls(&mut client, at.as_deref(), wiring);
                }
                ask(&mut client, wiring, asks, &server);
                client.asked.len()
            }),
        };
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(cell));
        match done {
            Ok(asked) if asked == expected(wiring, asks) => outcome.ran += 1,
            Ok(asked) => {
                let expected = expected(wiring, asks);
                let place = place(asks);
                let failed =
                    format!("{place}: asked {asked:?} times in dialog and inbox, not {expected:?}");
                outcome.failed.push(failed);
            }
            Err(panic) => {
                let why = words(&*panic);
                outcome.failed.push(format!("{}: {why}", place(asks)));
                // Its client may still wait for something.
                break;
            }
        }
    }
    outcome
}

/// Returns the message of a panic.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().cloned();
    let plain = || panic.downcast_ref::<&str>().map(ToString::to_string);
    words.or_else(plain).unwrap_or_default()
}

/// The number of wirings that run at once.
const AT_ONCE: usize = 4;

#[test]
fn every_cell_comes_out_as_stated() {
    run_all(RecordPlace::File);
}

/// Two gateways with one database come out as one with a file.
#[test]
fn every_cell_comes_out_as_stated_with_a_database_and_behind_a_balancer() {
    if let Some(database) = PostgresServer::shared() {
        run_all(RecordPlace::Database(database));
    }
}

fn run_all(record: RecordPlace) {
    if cfg!(windows)
        || std::process::Command::new("bash")
            .arg("--version")
            .output()
            .is_err()
    {
        mcp_elicit_testkit::chromium::report_skipped("no bash here, THE MATRIX WAS NOT TESTED");
        return;
    }
    // `MCP_ELICIT_WIRING` has words of the wirings to be run, such as "client 2025-11-25 Stdio". Without it, those with a
    // balancer are run with a database, and all with a file.
    let wanted = std::env::var("MCP_ELICIT_WIRING").unwrap_or_else(|_| match record {
        RecordPlace::File => String::new(),
        RecordPlace::Database(_) => " Http ".to_owned(),
    });
    let mut wirings = wirings();
    wirings.retain(|wiring| wiring.to_string().contains(&wanted));
    let next = AtomicUsize::new(0);
    let outcomes: Vec<Outcome> = thread::scope(|threads| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                threads.spawn(|| {
                    let mut outcomes = Vec::new();
                    while let Some(wiring) = wirings.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let outcome = std::panic::catch_unwind(|| run(*wiring, record));
                        outcomes.push(outcome.unwrap_or_else(|panic| Outcome {
                            failed: vec![format!("{wiring}: {}", words(&*panic))],
                            ..Outcome::default()
                        }));
                    }
                    outcomes
                })
            })
            .collect();
        let outcomes = workers.into_iter();
        outcomes.flat_map(|worker| worker.join().unwrap()).collect()
    });
    let all = |part: fn(&Outcome) -> &[String]| -> Vec<&String> {
        outcomes.iter().flat_map(part).collect()
    };
    let (impossible, failed) = (
        all(|outcome| &outcome.impossible),
        all(|outcome| &outcome.failed),
    );
    let ran: usize = outcomes.iter().map(|outcome| outcome.ran).sum();
    assert!(
        failed.is_empty(),
        "{} cells failed:\n{failed:#?}",
        failed.len()
    );
    assert_eq!(ran + impossible.len(), wirings.len() * ASKS.len());
    report(ran, &impossible);
}

#[expect(
    clippy::print_stderr,
    reason = "which cells cannot be is for whoever reads the run"
)]
fn report(ran: usize, impossible: &[&String]) {
    for cell in impossible {
        eprintln!("cannot be: {cell}");
    }
    eprintln!("{ran} cells ran, {} cannot be", impossible.len());
}
