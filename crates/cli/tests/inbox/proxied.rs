//! Callers named by a proxy: the header is accepted only from the proxy's addresses.

use std::thread;

use serde_json::{Value, json};

use crate::gateway::{Gateway, REVISION};
use crate::http::{Reply, read, send};
use crate::oidc::{TRUSTED, accept, round};
use crate::raw::{PROGRAM, call, command, initialize, text};

/// An address of this machine that is not the proxy's, with any port.
const ELSEWHERE: &str = "127.0.0.2:0";

fn head<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let mut head = vec![
        "POST /mcp/demo HTTP/1.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
    ];
    head.extend(lines);
    head
}

/// Posts a message with these headers, as the proxy.
fn post(at: &str, lines: &[&str], message: &Value) -> Reply {
    send(at, &head(lines), &message.to_string()).unwrap()
}

/// The same from another address of this machine.
fn post_from_elsewhere(at: &str, lines: &[&str], message: &Value) -> Reply {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let body = message.to_string();
    let head = head(lines).join("\r\n");
    let length = body.len();
    let request = format!(
        "{head}\r\nHost: {at}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bytes = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(ELSEWHERE.parse().unwrap()).unwrap();
        let mut stream = socket.connect(at.parse().unwrap()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        bytes
    });
    read(&bytes).unwrap()
}

fn session_of(at: &str, person: &str) -> String {
    let opened = post(at, &[person], &initialize(REVISION, &json!({})));
    assert_eq!(opened.status, 200, "{opened:?}");
    let session = opened.header("mcp-session-id").unwrap();
    let session = format!("Mcp-Session-Id: {session}");
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(at, &[person, &session], &ready).status, 202);
    session
}

#[test]
fn a_proxy_names_the_caller_and_nobody_else_does() {
    let state = tempfile::tempdir().unwrap();
    let gateway = Gateway::of_config(
        state.path(),
        &format!(
            "trusted-proxies = [\"127.0.0.1\"]\n[auth]\nmode = \"proxy\"\n\
             [servers.demo]\ncommand = [\"{PROGRAM}\", \"demo-server\"]\n"
        ),
    );
    let at = gateway.serving.clone().unwrap();
    let (ada, bob) = ("X-Forwarded-User: ada", "X-Forwarded-User: bob");
    let open = initialize(REVISION, &json!({}));
    for nobody in [&[][..], &[ada, bob], &["X-Forwarded-User:"]] {
        let refused = post(&at, nobody, &open);
        assert_eq!(refused.status, 403, "{nobody:?}: {refused:?}");
    }
    let forged = post_from_elsewhere(&at, &[ada], &open);
    assert_eq!(forged.status, 403, "{forged:?}");

    let session = session_of(&at, ada);
    let waits = {
        let (at, session) = (at.clone(), session.clone());
        thread::spawn(move || post(&at, &[ada, &session], &call(7, "deploy", &json!({}))))
    };
    let asked = gateway.wait_for(1);
    let behalf = asked[0]["onBehalfOf"].as_str().unwrap();
    assert!(behalf.contains("ada"), "{behalf}");
    // Her session belongs to her: neither another caller of the proxy nor her name from another address can use it.
    let list = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"});
    assert_eq!(post(&at, &[bob, &session], &list).status, 404);
    let forged = post_from_elsewhere(&at, &[ada, &session], &list);
    assert_eq!(forged.status, 403, "{forged:?}");
    let own = session_of(&at, bob);
    assert_eq!(post(&at, &[bob, &own], &list).status, 200);
    accept(&gateway, asked[0]["id"].as_str().unwrap(), "by proxy");
    let done = waits.join().unwrap();
    assert!(text(&done.response()).contains("by proxy"), "{done:?}");
    let audit = command(state.path(), &["audit", "--json"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    for reason in ["not-the-proxy", "no-subject"] {
        let reason = format!(r#""mode":"proxy","reason":"{reason}""#);
        assert!(audit.contains(&reason), "{audit}");
    }
}

#[test]
fn rules_see_the_groups_that_the_proxy_names_in_each_request() {
    let state = tempfile::tempdir().unwrap();
    let gateway = Gateway::of_config(
        state.path(),
        &format!(
            "trusted-proxies = [\"127.0.0.1\"]\n[auth]\nmode = \"proxy\"\n[auth.proxy]\ngroups-header = \"X-Forwarded-Groups\"\n\
             {TRUSTED}[servers.demo]\ncommand = [\"{PROGRAM}\", \"demo-server\"]\n"
        ),
    );
    let at = gateway.serving.clone().unwrap();
    let ada = "X-Forwarded-User: ada";
    let (admins, devs) = ("X-Forwarded-Groups: admins", "X-Forwarded-Groups: devs");
    let deploy = call(7, "deploy", &json!({}));
    let opened = post(&at, &[ada, admins], &initialize(REVISION, &json!({})));
    let session = opened.header("mcp-session-id").unwrap();
    let session = format!("Mcp-Session-Id: {session}");
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(&at, &[ada, admins, &session], &ready).status, 202);
    let waits = {
        let (at, session, deploy) = (at.clone(), session.clone(), deploy.clone());
        thread::spawn(move || post(&at, &[ada, admins, &session], &deploy))
    };
    let asked = gateway.wait_for(1);
    // She loses the group at the company's login, in the same session and without one.
    let refused = post(&at, &[ada, devs, &session], &deploy).response();
    assert!(text(&refused).contains("not with this client"), "{refused}");
    let first = round(&at, &[ada, devs]);
    assert!(first.contains("not with this client"), "{first}");
    accept(&gateway, asked[0]["id"].as_str().unwrap(), "as admin");
    let done = waits.join().unwrap();
    assert!(text(&done.response()).contains("as admin"), "{done:?}");
    let free = {
        let at = at.clone();
        thread::spawn(move || round(&at, &[ada, admins]))
    };
    let asked = gateway.wait_for(1);
    let refused = round(&at, &[ada, devs]);
    assert!(refused.contains("not with this client"), "{refused}");
    accept(&gateway, asked[0]["id"].as_str().unwrap(), "in a round");
    assert!(free.join().unwrap().contains("in a round"));
}
