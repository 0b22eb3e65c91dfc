//! Replicas that end or stand still while calls wait there, and the same calls made again at another.

use std::thread;

use mcp_elicit_testkit::postgres::PostgresServer;
use serde_json::{Value, json};

use super::replica::{Deployment, LOOK, LOOKS, Replica};
use super::rounds_client::make_call;
use crate::asker::Asker;
use crate::gateway::REVISION;
use crate::http::{PATIENCE, post, send};
use crate::raw::{call, initialize, text};

/// Two replicas, whose calls are held longer than any test takes.
fn two(server: &PostgresServer, asker: &Asker) -> (Deployment, Replica, Replica) {
    let deployment = Deployment::new(&server.database().address, &asker.url, 3_600);
    let [a, b] = [0, 1].map(|number| deployment.start(number).expect("it starts"));
    (deployment, a, b)
}

/// Makes a call and waits for its end. Returns the text of its result, or an empty one.
fn result_of(at: &str, number: u64) -> String {
    let done = make_call(at, number, false, None, PATIENCE);
    done.map_or_else(String::new, |done| text(&done).to_owned())
}

#[test]
fn the_same_call_made_at_once_after_its_gateway_was_killed_asks_nobody_twice() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let asker = Asker::start();
    let (_deployment, mut a, b) = two(server, &asker);
    let desk = b.desk();
    thread::scope(|threads| {
        let at = a.serving.clone();
        let cut = threads.spawn(move || result_of(&at, 7));
        let id = desk.question_of(7, true);
        a.kill();
        assert_eq!(cut.join().unwrap(), "");
        let again = threads.spawn(|| result_of(&b.serving, 7));
        assert_eq!(desk.question_of(7, true), id);
        // Before or after the question was taken over.
        assert_eq!(desk.accept(&id, "once"), Some(200));
        assert_eq!(again.join().unwrap(), "once", "{:?}", desk.waiting());
        assert_eq!(desk.waiting(), [], "it was not asked twice");
    });
    assert_eq!(asker.told(), [(7, "once".to_owned())]);
}

/// Makes a call in a session of its own, which ends with it. Returns the text of its result.
fn call_in_session(at: &str, number: u64) -> String {
    let (session, text) = call_in_open_session(at, number);
    let name = format!("Mcp-Session-Id: {session}");
    let ended = send(at, &["DELETE /mcp HTTP/1.1", &name], "");
    assert!(ended.is_some_and(|ended| ended.status < 300));
    text
}

/// Makes a call in a session of its own, which stays open. Returns the text of its result.
fn call_and_stay(at: &str, number: u64) -> String {
    call_in_open_session(at, number).1
}

/// Opens a session and makes a call in it. Returns the session's id and the text of the result.
fn call_in_open_session(at: &str, number: u64) -> (String, String) {
    let opening = initialize(REVISION, &json!({}));
    let opened = post(at, "/mcp", None, None, &opening);
    let session = opened.header("mcp-session-id").unwrap();
    let body = call(number, "note", &json!({"n": number}));
    let reply = post(at, "/mcp", None, Some(session), &body);
    let mut frames = reply.body.lines().filter_map(|line| {
        let event = line.strip_prefix("data:").unwrap_or(line);
        serde_json::from_str::<Value>(event).ok()
    });
    let done = frames.next_back().unwrap_or_else(|| panic!("{reply:?}"));
    (session.to_owned(), text(&done).to_owned())
}

/// Both gateways go on running: the first one only has no session any more.
#[test]
fn a_call_that_was_handed_back_and_is_made_again_at_another_gateway_asks_nobody_twice() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let asker = Asker::start();
    let deployment = Deployment::new(&server.database().address, &asker.url, 1);
    let [a, b] = [0, 1].map(|number| deployment.start(number).expect("it starts"));
    let desk = b.desk();
    for (number, make) in [
        (7, call_in_session as fn(&str, u64) -> String),
        (8, result_of),
        (9, call_and_stay),
    ] {
        let handed_back = make(&a.serving, number);
        assert!(handed_back.contains("/q/"), "{handed_back}");
        let of = |(of, _): &(u64, String)| *of == number;
        let open = || desk.waiting().into_iter().filter(of).collect::<Vec<_>>();
        let [(_, id)] = &open()[..] else {
            panic!("{:?}", desk.waiting());
        };
        let again = make(&b.serving, number);
        assert!(again.contains("/q/"), "{again}");
        assert_eq!(open().len(), 1, "it is asked once: {:?}", desk.waiting());
        assert_eq!(desk.accept(id, "once"), Some(200));
        let mut done = String::new();
        for _ in 0..LOOKS {
            done = make(&a.serving, number);
            if done == "once" {
                break;
            }
            thread::sleep(LOOK);
        }
        assert_eq!(done, "once");
        assert_eq!(desk.waiting(), [], "it was not asked twice");
    }
    let once = |number| (number, "once".to_owned());
    assert_eq!(asker.told(), [7, 8, 9].map(once));
}

/// The replica is stopped past its lease, and finds three things changed when it goes on: a question of its call that
/// another took over and whose answer was delivered; one that another took over and that is open; and one that was
/// answered for its own call.
#[test]
fn a_replica_that_stood_still_past_its_lease_delivers_nothing_that_is_another_s() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let asker = Asker::start();
    let (_deployment, a, b) = two(server, &asker);
    let desk = b.desk();
    thread::scope(|threads| {
        let at_a = [1, 2, 3].map(|number| {
            let at = &a.serving;
            threads.spawn(move || result_of(at, number))
        });
        let [delivered, open, own] = [1, 2, 3].map(|number| desk.question_of(number, true));
        a.pause();
        // Its lease has ended.
        assert_eq!(desk.question_of(1, false), delivered);
        let at_b = [1, 2].map(|number| {
            let at = &b.serving;
            threads.spawn(move || result_of(at, number))
        });
        assert_eq!(desk.question_of(1, true), delivered, "it is taken over");
        assert_eq!(desk.question_of(2, true), open);
        assert_eq!(desk.accept(&delivered, "at B"), Some(200));
        assert_eq!(desk.accept(&own, "for A"), Some(200));
        assert!(desk.is_delivered(&delivered), "{}", desk.row(&delivered));
        // They reach the stopped replica, which reads them when it goes on.
        let late = [(&delivered, "late"), (&open, "through A")].map(|(id, value)| {
            let (id, desk) = (id.clone(), a.desk());
            threads.spawn(move || desk.accept(&id, value))
        });
        thread::sleep(LOOK);
        a.go_on();
        let [late, through_a] = late.map(|late| late.join().unwrap());
        assert_eq!(late, Some(409), "it is answered already");
        assert_eq!(
            through_a,
            Some(200),
            "an answer may be given at any replica"
        );
        let at_b = at_b.map(|call| call.join().unwrap());
        assert_eq!(at_b, ["at B", "through A"]);
        let [first, second, third] = at_a.map(|call| call.join().unwrap());
        assert_eq!(third, "for A");
        assert_ne!(first, "at B", "the answer is another's: {first}");
        assert_ne!(second, "through A", "the answer is another's: {second}");
    });
    let mut told = asker.told();
    told.sort_unstable();
    let expected = [(1, "at B"), (2, "through A"), (3, "for A")];
    assert_eq!(told, expected.map(|(call, value)| (call, value.to_owned())));
}

/// A database that has just been started knows of no end: the rows of the gateways say that they run until their leases end.
#[test]
fn a_call_made_again_at_once_after_a_stop_of_everything_asks_nobody_twice() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let asker = Asker::start();
    let deployment = Deployment::new(&server.database().address, &asker.url, 1);
    let gateways = || [0, 1].map(|number| deployment.start(number).expect("it starts"));
    let [mut a, mut b] = gateways();
    let handed_back = call_in_session(&a.serving, 7);
    assert!(handed_back.contains("/q/"), "{handed_back}");
    server.stop();
    a.kill();
    b.kill();
    server.start_again();
    let [_a, b] = gateways();
    let again = call_and_stay(&b.serving, 7);
    assert!(again.contains("/q/"), "{again}");
    assert_eq!(b.desk().waiting().len(), 1, "{:?}", b.desk().waiting());
}
