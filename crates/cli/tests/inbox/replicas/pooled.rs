//! Two gateways behind a pooler that gives each transaction another connection: no notice arrives, and no lock of a session
//! is held.

use std::thread;

use mcp_elicit_testkit::postgres::PostgresServer;

use super::replica::Deployment;
use super::rounds_client::make_call;
use crate::asker::Asker;
use crate::http::PATIENCE;
use crate::pooler::Pooler;
use crate::raw::text;

#[test]
fn behind_a_pooler_an_answer_at_one_gateway_reaches_the_call_at_another() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let Some(pooler) = Pooler::start(server, &server.database()) else {
        return;
    };
    let asker = Asker::start();
    let deployment = Deployment::new(&pooler.database.address, &asker.url, 3_600);
    let [mut a, b] = [0, 1].map(|number| deployment.start(number).expect("it starts"));
    let result_of = |at: &str, number: u64| {
        let done = make_call(at, number, false, None, PATIENCE);
        done.map_or_else(String::new, |done| text(&done).to_owned())
    };
    for (number, caller, answerer) in [(7, &a, &b), (8, &b, &a)] {
        thread::scope(|threads| {
            let at = &caller.serving;
            let call = threads.spawn(move || result_of(at, number));
            let desk = answerer.desk();
            let id = desk.question_of(number, true);
            assert_eq!(desk.accept(&id, "elsewhere"), Some(200));
            assert_eq!(call.join().unwrap(), "elsewhere");
        });
    }
    // The end of a gateway is known by its lease, and its question is not asked again.
    let desk = b.desk();
    thread::scope(|threads| {
        let at = a.serving.clone();
        let cut = threads.spawn(move || result_of(&at, 9));
        let id = desk.question_of(9, true);
        a.kill();
        assert_eq!(cut.join().unwrap(), "");
        assert_eq!(desk.question_of(9, false), id);
        let at = &b.serving;
        let again = threads.spawn(move || result_of(at, 9));
        assert_eq!(desk.question_of(9, true), id);
        assert_eq!(desk.accept(&id, "taken over"), Some(200));
        assert_eq!(again.join().unwrap(), "taken over");
    });
    assert_eq!(desk.waiting(), []);
    let told = [(7, "elsewhere"), (8, "elsewhere"), (9, "taken over")];
    assert_eq!(
        asker.told(),
        told.map(|(call, value)| (call, value.to_owned()))
    );
}
