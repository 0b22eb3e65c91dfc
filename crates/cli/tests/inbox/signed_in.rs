//! People who are signed in, managed from the command line: their sessions end, and a person whose subject has changed
//! is released.

use std::path::Path;

use serde_json::Value;

use crate::gateway::Gateway;
use crate::http::{Reply, send};
use crate::raw::{PROGRAM, command, inbox};

/// A proxy on this machine names the people at the pages; the file knows Ada by her mail address.
fn start(state: &Path) -> Gateway {
    let rest = format!(
        "trusted-proxies = [\"127.0.0.1\"]\n[login]\nmode = \"proxy\"\nmail-header = \"X-Mail\"\n\
         [people.ada]\nmail = \"ada@example.com\"\n[roles]\nadmin = [\"person:ada\"]\n\
         [servers.demo]\ncommand = [\"{PROGRAM}\", \"demo-server\"]\n"
    );
    Gateway::of_config(state, &rest)
}

/// Opens the account page with Ada's mail address and this subject.
fn account(gateway: &Gateway, subject: &str, cookie: &str) -> Reply {
    let subject = format!("X-Forwarded-User: {subject}");
    let cookie = format!("Cookie: {cookie}");
    let head = [
        "GET /account HTTP/1.1",
        "Accept: text/html",
        "X-Mail: ada@example.com",
        &subject,
        &cookie,
    ];
    send(&gateway.inbox, &head, "").unwrap()
}

fn cookie(reply: &Reply) -> Option<&str> {
    reply.header("set-cookie")?.split(';').next()
}

fn events(state: &Path, event: &str) -> Vec<Value> {
    let audit = command(state, &["audit", "--json", "--event", event]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    let read = |line: &str| serde_json::from_str::<Value>(line).unwrap()["entry"].clone();
    audit.lines().map(read).collect()
}

#[test]
fn sessions_of_people_are_listed_and_ended_on_the_command_line() {
    let state = tempfile::tempdir().unwrap();
    let gateway = start(state.path());
    let entered = account(&gateway, "s-1", "");
    let first = cookie(&entered).unwrap();
    // The same browser continues in its session.
    assert_eq!(cookie(&account(&gateway, "s-1", first)), None);
    let (is_listed, listed) = inbox(state.path(), &["sessions", "list"]);
    assert!(
        is_listed && listed.len() == 1 && listed[0]["person"] == "ada",
        "{listed:?}"
    );
    let id = listed[0]["id"].as_str().unwrap();
    let ended = command(state.path(), &["inbox", "sessions", "revoke", id]);
    assert!(ended.status.success(), "{ended:?}");
    let anew = account(&gateway, "s-1", first);
    assert!(cookie(&anew).is_some(), "the session has ended: {anew:?}");
    let noted = events(state.path(), "session-ended");
    assert_eq!(noted.len(), 1, "{noted:?}");
    assert_eq!(
        (&noted[0]["person"], &noted[0]["session"], &noted[0]["by"]),
        (&"ada".into(), &id.into(), &"on the command line".into())
    );
    let again = command(state.path(), &["inbox", "sessions", "revoke", id]);
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    let all = command(state.path(), &["inbox", "sessions", "revoke", "--all"]);
    assert!(all.status.success(), "{all:?}");
    assert!(inbox(state.path(), &["sessions", "list"]).1.is_empty());
}

#[test]
fn a_person_whose_subject_has_changed_is_released_on_the_command_line() {
    let state = tempfile::tempdir().unwrap();
    let gateway = start(state.path());
    let entered = account(&gateway, "s-1", "");
    let first = cookie(&entered).unwrap();
    let other = account(&gateway, "s-2", "");
    assert_eq!(other.status, 403);
    assert!(
        other.body.contains("mcp-elicit inbox people unbind"),
        "{other:?}"
    );
    let refused = events(state.path(), "sign-in-refused");
    assert_eq!(refused[0]["reason"], "bound-to-another", "{refused:?}");
    let (is_listed, people) = inbox(state.path(), &["people"]);
    assert!(
        is_listed && people.len() == 1 && people[0]["subject"] == "s-1",
        "{people:?}"
    );
    let unbind = |name: &str| command(state.path(), &["inbox", "people", "unbind", name]);
    assert_eq!(unbind("bob").status.code(), Some(2));
    let released = unbind("ada");
    assert!(released.status.success(), "{released:?}");
    assert_eq!(account(&gateway, "s-2", "").status, 200);
    // The new subject is Ada now; the earlier one is unknown.
    assert_eq!(account(&gateway, "s-1", first).status, 403);
    let noted = events(state.path(), "person-unbound");
    assert!(noted.len() == 1 && noted[0]["person"] == "ada", "{noted:?}");
    assert_eq!(events(state.path(), "person-bound").len(), 2);
}
