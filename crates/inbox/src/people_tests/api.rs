//! The table of roles over the API: it gives no access to a question that a rule asks people, with any key or cookie.

use mcp_elicit_policy::access::{AccessAction, ROLES, Role, TABLE};

use super::*;

/// The results of everything that a program can read and send with these headers.
struct Reached {
    /// The bodies of all read responses.
    read: String,
    /// The statuses of all sent requests, by path.
    sent: Vec<(String, u16)>,
    audit: u16,
}

async fn reach(rig: &Rig, head: &str) -> Reached {
    let host = &rig.host;
    let get = async |path: &str| {
        let head = format!("GET /api{path} HTTP/1.1\r\nHost: {host}\r\n{head}");
        send(host, PROXY, &head, "").await
    };
    let question = format!("/questions/{}", rig.id);
    let mut read = String::new();
    for path in ["/questions", "/questions?ended=true", &question] {
        read.push_str(&get(path).await.body);
    }
    let mut sent = Vec::new();
    for (path, body) in [
        ("/answer", r#"{"action":"decline"}"#),
        (
            "/answer",
            r#"{"action":"accept","content":{"name":"Mars"}}"#,
        ),
        ("/comment", r#"{"text":"mine"}"#),
        ("/claim", "{}"),
        ("/confirm", "{}"),
        ("/delegate", r#"{"to":"person:dan"}"#),
    ] {
        let path = format!("{question}{path}");
        let head = format!(
            "POST /api{path} HTTP/1.1\r\nHost: {host}\r\n{head}Content-Type: application/json\r\n"
        );
        sent.push((path, send(host, PROXY, &head, body).await.status));
    }
    for path in ["/account", "/sessions", "/tokens"] {
        let reply = get(path).await;
        sent.push((path.to_owned(), reply.status));
        read.push_str(&reply.body);
    }
    let audit = get("/audit").await.status;
    Reached { read, sent, audit }
}

#[tokio::test]
async fn responses_of_the_api_are_kept_nowhere() {
    let rig = rig(1).await;
    let tokens = StateFolder::at(rig.folder.path()).api_tokens();
    let made = tokens.make("bot", &[Scope::List], None, clock::now());
    let (_, text) = made.unwrap();
    let host = &rig.host;
    for (path, token, status) in [
        ("questions", text.as_str(), 200),
        ("openapi.json", text.as_str(), 200),
        ("nowhere", text.as_str(), 404),
        ("questions", "wrong", 401),
    ] {
        let head = format!(
            "GET /api/{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
        );
        let reply = send(host, PROXY, &head, "").await;
        assert_eq!(reply.status, status, "{path}");
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
        let sniffing = reply.header("x-content-type-options");
        assert_eq!(sniffing, Some("nosniff"), "{path}");
    }
}

#[tokio::test]
async fn the_table_of_roles_is_not_widened_over_the_api() {
    let mut cells = 0;
    for role in ROLES {
        let name = match role {
            Role::None => "nobody",
            Role::Caller => "cy",
            Role::Addressed => "ada",
            Role::OtherAnswerer => "dan",
            Role::Auditor => "aud",
            Role::Admin => "eve",
        };
        let rig = rig(2).await;
        Person::enter(&rig, "bob").await.fill("Moon").await;
        let tokens = StateFolder::at(rig.folder.path()).api_tokens();
        let owner = Some(TokenOwner::Person(name.to_owned()));
        let scopes = [Scope::Call, Scope::List, Scope::Answer];
        let (_, key) = tokens
            .make_for("own", &scopes, None, owner, clock::now())
            .unwrap();
        let cookie = match role {
            Role::None => String::new(),
            _ => Person::enter(&rig, name).await.cookie,
        };
        for (head, is_key) in [
            (format!("Authorization: Bearer {key}\r\n"), true),
            (format!("X-User: {name}\r\nCookie: {cookie}\r\n"), false),
        ] {
            let reached = reach(&rig, &head).await;
            // The key is valid, but the question is not for keys.
            assert_eq!(
                reached.read.contains("\"waiting\":1"),
                is_key,
                "{}",
                reached.read
            );
            let is_refused = |status: u16| matches!(status, 401 | 403 | 404 | 405);
            for (action, _) in TABLE {
                let done = match action {
                    AccessAction::SeeQuestion | AccessAction::SeeOwnHistory => {
                        reached.read.contains("Who?")
                    }
                    AccessAction::SeeEntered => reached.read.contains("Moon"),
                    AccessAction::ListAll => reached.read.contains(&rig.id),
                    AccessAction::Act | AccessAction::Comment => {
                        let mut sent = reached.sent.iter();
                        sent.any(|(_, status)| !is_refused(*status))
                    }
                    AccessAction::Audit => !is_refused(reached.audit),
                    AccessAction::ListSessions | AccessAction::EndSessions => {
                        reached.read.contains("session")
                    }
                    // The API has no address for it.
                    AccessAction::EndGrant => reached.read.contains("grant"),
                };
                assert!(!done, "{name} {action:?} {:?}", reached.sent);
                cells += 1;
            }
        }
        let row = rig.record.find(&rig.id).await.unwrap().unwrap();
        assert!(row.lifecycle.is_open() && rig.record.comments(&row).unwrap().is_empty());
    }
    assert_eq!(cells, 2 * ROLES.len() * TABLE.len());
}
