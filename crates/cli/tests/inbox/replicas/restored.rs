//! A backup made while calls are held, restored into another database after everything was lost.

use std::thread;

use mcp_elicit_testkit::postgres::PostgresServer;

use super::replica::Deployment;
use super::rounds_client::make_call;
use crate::asker::Asker;
use crate::http::PATIENCE;
use crate::raw::{command, text};

#[test]
fn calls_that_were_held_at_the_time_of_a_backup_go_on_after_its_restore_and_ask_nobody_twice() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let asker = Asker::start();
    let (database, another) = (server.database().address, server.database().address);
    let before = Deployment::new(&database, &asker.url, 3_600);
    let [mut a, mut b] = [0, 1].map(|number| before.start(number).expect("it starts"));
    let backups = tempfile::tempdir().unwrap();
    let copy = backups.path().join("copy");
    let desk = b.desk();
    let held = [1, 2, 3].map(|number| {
        let at = a.serving.clone();
        let call = thread::spawn(move || make_call(&at, number, false, None, PATIENCE));
        (call, desk.question_of(number, true))
    });
    let words = ["backup", copy.to_str().unwrap(), "--record", &database];
    let made = command(&before.state(1), &words);
    assert!(made.status.success(), "{made:?}");
    // One call ends after the backup; then everything is lost.
    let [(first, given), (second, open), (third, last)] = held;
    assert_eq!(desk.accept(&given, "after the backup"), Some(200));
    assert_eq!(
        text(&first.join().unwrap().expect("a result")),
        "after the backup"
    );
    a.kill();
    b.kill();
    for lost in [second, third] {
        assert!(
            lost.join().unwrap().is_none(),
            "no call ends as if it had an answer"
        );
    }

    let after = Deployment::new(&another, &asker.url, 3_600);
    let words = ["restore", copy.to_str().unwrap(), "--record", &another];
    let restored = command(&after.state(0), &words);
    assert!(restored.status.success(), "{restored:?}");
    let [a, b] = [0, 1].map(|number| after.start(number).expect("it starts"));
    let (desk, other) = (a.desk(), b.desk());
    let mut open_there: Vec<_> = desk.waiting().into_iter().map(|(_, id)| id).collect();
    open_there.sort_unstable();
    let mut all = [given, open.clone(), last.clone()];
    all.sort_unstable();
    assert_eq!(open_there, all);
    // The same calls made again, at either gateway, wait for the questions that are open.
    thread::scope(|threads| {
        for (at, number, id) in [(&b.serving, 2, &open), (&a.serving, 3, &last)] {
            let again = threads.spawn(move || make_call(at, number, false, None, PATIENCE));
            assert_eq!(&desk.question_of(number, true), id);
            assert_eq!(other.accept(id, "after the restore"), Some(200));
            let done = again.join().unwrap().expect("a result");
            assert_eq!(text(&done), "after the restore");
            assert!(desk.is_delivered(id), "{}", desk.row(id));
        }
    });
    assert_eq!(desk.waiting().len(), 1, "nothing was asked twice");
    assert_eq!(
        asker.told(),
        [
            (1, "after the backup"),
            (2, "after the restore"),
            (3, "after the restore")
        ]
        .map(|(number, value)| (number, value.to_owned()))
    );
}
