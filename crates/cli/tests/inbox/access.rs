//! Access to the inbox: one-time links, sessions that are listed and ended, the state folder's socket, and pages only.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::gateway::{Gateway, login_link};
use crate::http::{PATIENCE, Reply, send};
use crate::opener::{opened_link, opener};
use crate::raw::{DEMO_SERVER, PROGRAM, Raw, command, gateway, inbox, text};

fn start(state: &Path, more: &[&str]) -> Gateway {
    let mut all = vec!["--hold", "3600", "--name", "deploy"];
    all.extend(more);
    let mut gateway = Gateway::start(state, &all, &DEMO_SERVER);
    gateway.initialize();
    gateway
}

fn path<'l>(link: &'l str, host: &str) -> &'l str {
    link.split_once(host).unwrap().1
}

fn get(at: &str, path: &str, cookie: &str) -> Reply {
    let line = format!("GET {path} HTTP/1.1");
    send(at, &[&line, &format!("Cookie: {cookie}")], "").unwrap()
}

/// Signs in. Returns the cookie, and the path of the pages.
fn sign_in(at: &str, link: &str) -> (String, String) {
    let reply = get(at, path(link, at), "");
    let set = reply.header("set-cookie").expect("the link signs in");
    let pages = set.split("Path=").nth(1).unwrap();
    (
        set.split(';').next().unwrap().to_owned(),
        pages.split(';').next().unwrap().to_owned(),
    )
}

#[test]
fn sessions_are_listed_and_ended_and_survive_the_gateway() {
    let state = tempfile::tempdir().unwrap();
    let first = start(state.path(), &[]);
    let at = first.inbox.clone();
    let (cookie, pages) = sign_in(&at, &first.login);
    let again = get(&at, path(&first.login, &at), "");
    assert_eq!(again.status, 401, "a link works once");
    let (other, _) = sign_in(&at, &login_link(state.path(), &at));
    assert_eq!(get(&at, &format!("{pages}/"), &cookie).status, 200);
    drop(first);

    let second = start(state.path(), &["--inbox", &at]);
    assert_eq!(second.inbox, at);
    assert_eq!(get(&at, &format!("{pages}/"), &cookie).status, 200);
    let (listed, sessions) = inbox(state.path(), &["sessions", "list"]);
    assert!(listed && sessions.len() == 2, "{sessions:?}");
    let id = sessions[1]["id"].as_str().unwrap();
    let (ended, _) = inbox(state.path(), &["sessions", "revoke", id]);
    assert!(ended);
    let live = |cookie: &str| get(&at, &format!("{pages}/"), cookie).status == 200;
    assert_ne!(live(&cookie), live(&other), "one of the two has ended");
    let unused = login_link(state.path(), &at);
    let (ended, _) = inbox(state.path(), &["sessions", "revoke", "--all"]);
    assert!(ended && !live(&cookie) && !live(&other));
    assert_eq!(get(&at, path(&unused, &at), "").status, 401);
    let (unknown, _) = inbox(state.path(), &["sessions", "revoke", id]);
    assert!(!unknown);
    let audited = command(state.path(), &["audit"]);
    let audited = String::from_utf8_lossy(&audited.stdout).into_owned();
    assert_eq!(audited.matches("owner signed in").count(), 2, "{audited}");
    assert_eq!(audited.matches("sessions ended").count(), 2, "{audited}");
}

#[test]
fn a_gateway_that_has_ended_leaves_no_address_behind() {
    let state = tempfile::tempdir().unwrap();
    let names = ["inbox.address", "inbox.sock"];
    let mut gateway = start(state.path(), &[]);
    for name in names {
        assert!(state.path().join(name).exists(), "{name}");
    }
    gateway.stdin = None;
    gateway.child.wait().unwrap();
    for name in names {
        assert!(!state.path().join(name).exists(), "{name}");
    }
    // A gateway that was killed leaves the file, and no one is led there.
    let people = "provider https://ask.example.com/\n";
    std::fs::write(state.path().join("inbox.people"), people).unwrap();
    let open = command(state.path(), &["inbox", "open"]);
    let said = String::from_utf8_lossy(&open.stderr).into_owned();
    assert_eq!(open.status.code(), Some(3), "{said}");
    assert!(said.contains("no gateway serves the inbox"), "{said}");
}

#[test]
fn nothing_that_a_log_may_keep_signs_anybody_in() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = Gateway::start(state.path(), &["--hold", "0"], &DEMO_SERVER);
    gateway.initialize();
    gateway.call(2, "deploy", &json!({}));
    let back = gateway.result(2);
    let said = gateway.said.lock().unwrap().clone();
    assert!(said.contains("mcp-elicit inbox open"), "{said}");
    let token = &gateway.token;
    let record = rusqlite::Connection::open(state.path().join("record.sqlite")).unwrap();
    let query = "SELECT value FROM shared WHERE entity = 'browsers' AND kind = ''";
    let kept: String = record.query_row(query, [], |row| row.get(0)).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    for secret in [token.as_str(), "key=", kept["path"].as_str().unwrap()] {
        assert!(!said.contains(secret), "{said}");
        assert!(!text(&back).contains(secret), "{back}");
    }
    // The page with which the call was handed back says how to sign in.
    let link = text(&back)
        .split_whitespace()
        .find(|word| word.starts_with("http"))
        .unwrap()
        .trim_end_matches(['.', ',', ')']);
    let page = get(&gateway.inbox, path(link, &gateway.inbox), "");
    assert_eq!(page.status, 401);
    assert!(page.body.contains("mcp-elicit inbox open"), "{}", page.body);
}

#[test]
fn at_a_terminal_the_gateway_shows_a_link_that_works_once() {
    let state = tempfile::tempdir().unwrap();
    // `script` gives the program a terminal of its own.
    let program = format!(
        "{PROGRAM} gateway --no-notify --state {} --inbox 127.0.0.1:0 -- {PROGRAM} demo-server",
        state.path().display()
    );
    let mut script = Command::new("script");
    script.args(["-qec", &program, "/dev/null"]);
    let Ok(mut child) = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        assert!(std::env::var_os("CI").is_none(), "CI has `script`");
        return;
    };
    let stdout = child.stdout.take().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Some((_, link)) = line.split_once("inbox: ") {
                let _ = tell.send(link.trim().to_owned());
            }
        }
    });
    let link = told.recv_timeout(PATIENCE).expect("a link");
    let at = crate::gateway::host(&link);
    assert!(link.contains("/login?key="), "{link}");
    let (cookie, pages) = sign_in(&at, &link);
    assert_eq!(get(&at, &format!("{pages}/"), &cookie).status, 200);
    assert_eq!(get(&at, path(&link, &at), "").status, 401);
    drop(child.stdin.take());
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn inbox_open_signs_a_browser_in_without_the_key_in_any_arguments() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = start(state.path(), &[]);
    gateway.call(2, "deploy", &json!({}));
    let id = gateway.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    let bin = opener();
    let path_variable = format!(
        "{}:{}",
        bin.path().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut open = Command::new(PROGRAM);
    open.args(["inbox", "open", &id[..8], "--state"])
        .arg(state.path())
        .env("PATH", path_variable)
        .stderr(Stdio::piped());
    let mut open = open.spawn().unwrap();
    let link = opened_link(bin.path());
    let arguments = std::fs::read_to_string(bin.path().join("arguments")).unwrap();
    assert!(!arguments.contains("key="), "{arguments}");
    assert_eq!(
        std::fs::read_to_string(bin.path().join("mode")).unwrap(),
        "600\n"
    );
    let reply = get(&gateway.inbox, path(&link, &gateway.inbox), "");
    let to = reply.header("location").unwrap();
    assert!(to.ends_with(&format!("/q/{id}")), "{to}");
    let mut said = String::new();
    open.stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(open.wait().unwrap().success(), "{said}");
    assert!(
        said.contains("signed in") && !said.contains("key="),
        "{said}"
    );
    assert!(
        !Path::new(arguments.trim()).exists(),
        "the file is gone with the command"
    );
}

fn press(at: &str, head: &[&str], body: &str) -> Reply {
    let mut all = vec![
        "POST /login HTTP/1.1",
        "Content-Type: application/x-www-form-urlencoded",
    ];
    all.extend(head);
    send(at, &all, body).unwrap()
}

#[test]
fn on_a_desktop_the_sign_in_page_signs_this_machine_s_browser_in_and_nobody_else() {
    let (state, bin) = (tempfile::tempdir().unwrap(), opener());
    let more = ["--hold", "3600", "--name", "deploy"];
    let gateway = Gateway::on_desktop(state.path(), &more, &DEMO_SERVER, bin.path());
    let at = &gateway.inbox;
    let ours = format!("Origin: http://{at}");
    let page = get(at, "/q/abc", "");
    assert!(page.status == 401 && page.body.contains("<button class=\"btn main\">Sign in"));
    for foreign in [
        "Origin: http://evil.example",
        "Origin: null",
        "X: none",
        "Origin: http://127.0.0.1:1",
    ] {
        let reply = press(at, &[foreign], "next=/");
        assert_eq!(reply.status, 403, "{foreign}");
    }
    assert!(!bin.path().join("page").exists(), "another site opened it");

    let reply = press(at, &[&ours], "next=//evil.example/");
    assert_eq!(reply.status, 200, "{reply:?}");
    let link = opened_link(bin.path());
    assert!(link.ends_with("&next=/"), "{link}");
    let arguments = std::fs::read_to_string(bin.path().join("arguments")).unwrap();
    for told in [&reply.head, &reply.body, &arguments] {
        assert!(!told.contains("key="), "{told}");
        assert!(!told.to_lowercase().contains("set-cookie"), "{told}");
    }
    let again = press(at, &[&ours], "next=/");
    assert_eq!(again.status, 429, "pages do not cover the desktop");
    let (cookie, pages) = sign_in(at, &link);
    assert_eq!(get(at, &format!("{pages}/"), &cookie).status, 200);
    assert_eq!(get(at, path(&link, at), "").status, 401, "it works once");
    assert!(!gateway.said.lock().unwrap().contains("key="));
    // The file that the browser read ends with the gateway.
    assert!(Path::new(arguments.trim()).exists());
    let mut gateway = gateway;
    gateway.stdin = None;
    gateway.child.wait().unwrap();
    assert!(!Path::new(arguments.trim()).exists());
}

#[test]
fn without_a_desktop_or_a_browser_the_sign_in_page_says_what_to_do() {
    let (state, bin) = (tempfile::tempdir().unwrap(), opener());
    let more = ["--hold", "3600", "--name", "deploy"];
    std::fs::write(bin.path().join("xdg-open"), "#!/bin/sh\nexit 3\n").unwrap();
    let first = Gateway::on_desktop(state.path(), &more, &DEMO_SERVER, bin.path());
    let at = &first.inbox;
    let reply = press(at, &[&format!("Origin: http://{at}")], "next=/");
    assert_eq!(reply.status, 503);
    assert!(reply.body.contains("mcp-elicit inbox open"), "{reply:?}");
    let record = rusqlite::Connection::open(state.path().join("record.sqlite")).unwrap();
    let text = "SELECT count(*) FROM shared WHERE entity = 'browsers' AND kind = 'logins'";
    let links: i64 = record.query_row(text, [], |row| row.get(0)).unwrap();
    assert_eq!(links, 1, "only the link of the test is left");
    drop(first);

    let mut command = gateway(state.path(), &more, &DEMO_SERVER);
    for name in ["DBUS_SESSION_BUS_ADDRESS", "WAYLAND_DISPLAY", "DISPLAY"] {
        command.env_remove(name);
    }
    let gateway = Gateway::run(state.path(), command, false);
    let at = &gateway.inbox;
    let page = get(at, "/q/abc", "");
    assert!(page.status == 401 && !page.body.contains("<button"));
    let reply = press(at, &[&format!("Origin: http://{at}")], "next=/");
    assert_eq!(reply.status, 405);
}

#[test]
fn commands_speak_to_the_socket_and_to_nobody_who_has_the_port() {
    let state = tempfile::tempdir().unwrap();
    let mut first = start(state.path(), &[]);
    first.call(2, "deploy", &json!({}));
    let id = first.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    let at = first.inbox.clone();
    let mode = std::fs::metadata(state.path())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o077, 0);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    // Another process takes the port, and waits for the token.
    let thief = TcpListener::bind(&at).unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = thief.accept() {
            let _ = tell.send(());
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
        }
    });
    // The record is read without a gateway, and answered for the next call.
    let (reached, waiting) = inbox(state.path(), &["list"]);
    assert!(reached && waiting.len() == 1, "{waiting:?}");
    let (shown, whole) = inbox(state.path(), &["show", &id]);
    assert!(shown && whole[0]["waitedFor"] == false, "{whole:?}");
    let said = command(
        state.path(),
        &["inbox", "accept", &id, "environment=staging"],
    );
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("no call waits for it now"), "{said}");
    let open = command(state.path(), &["inbox", "open"]);
    assert_eq!(open.status.code(), Some(3), "{open:?}");
    assert!(told.try_recv().is_err(), "nobody spoke to the port");

    let mut second = start(state.path(), &["--inbox", "127.0.0.1:0"]);
    second.call(3, "deploy", &json!({}));
    let done = second.result(3);
    assert!(text(&done).contains("Deployed to staging"), "{done}");
    let (_, ended) = inbox(state.path(), &["list", "--ended"]);
    assert_eq!(ended[0]["by"], "on the command line");
}

#[test]
fn no_proxy_sees_the_token() {
    let state = tempfile::tempdir().unwrap();
    let gateway = start(state.path(), &[]);
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let named = format!("http://{}", proxy.local_addr().unwrap());
    let address = format!("http://{}", gateway.inbox);
    for more in [vec![], vec!["--inbox", &address]] {
        let mut list = Command::new(PROGRAM);
        list.args(["inbox", "list", "--state"])
            .arg(state.path())
            .args(&more);
        for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
            list.env(name, &named);
        }
        list.env_remove("NO_PROXY").env_remove("no_proxy");
        let done = list.output().unwrap();
        assert!(done.status.success(), "{more:?} {done:?}");
        assert!(proxy.accept().is_err(), "{more:?} went to the proxy");
    }
}

#[test]
fn a_token_that_was_rotated_away_opens_nothing() {
    let state = tempfile::tempdir().unwrap();
    let gateway = start(state.path(), &[]);
    let list = |token: &str| {
        let reply = crate::gateway::api(&gateway.inbox, token, "GET", "/api/questions", "");
        reply.unwrap().status
    };
    assert_eq!(list(&gateway.token), 200);
    let (cookie, pages) = sign_in(&gateway.inbox, &gateway.login);
    assert!(inbox(state.path(), &["rotate"]).0);
    assert_eq!(list(&gateway.token), 401);
    let now = std::fs::read_to_string(state.path().join("inbox.token")).unwrap();
    assert_eq!(list(now.trim()), 200);
    let page = get(&gateway.inbox, &format!("{pages}/"), &cookie);
    assert_eq!(page.status, 200, "browsers stay signed in");
    assert!(inbox(state.path(), &["list"]).0);
}

#[test]
fn a_stream_ends_with_the_token_that_was_rotated_away() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = start(state.path(), &[]);
    let stream = TcpStream::connect(&gateway.inbox).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (at, token) = (&gateway.inbox, &gateway.token);
    write!(
        &stream,
        "GET /api/events HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while !line.starts_with("data: 0") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the first event");
    }
    assert!(inbox(state.path(), &["rotate"]).0);
    // A change, at which the stream ends.
    gateway.call(2, "deploy", &json!({}));
    let mut rest = String::new();
    let read = stream.read_to_string(&mut rest);
    assert!(read.is_ok(), "the stream goes on: {rest}");
}

#[test]
fn where_only_pages_answer_no_command_program_or_client_can() {
    let state = tempfile::tempdir().unwrap();
    let options = ["--presence", "page", "--hold", "3600", "--name", "deploy"];
    let mut first = Gateway::start(state.path(), &options, &DEMO_SERVER);
    // A client that can be asked is not asked.
    let can = json!({"elicitation": {"form": {}}});
    Raw::initialize(&mut first, "2025-11-25", &can);
    first.call(2, "deploy", &json!({}));
    let id = first.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    let act = json!({"action": "decline"});
    assert_eq!(first.answer(&id, &act), 403);
    let refused = command(state.path(), &["inbox", "decline", &id]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("inbox open"), "{said}");
    let (_, ended) = inbox(state.path(), &["list", "--ended"]);
    assert!(ended.is_empty());
    drop(first);
    // The setting remains without a gateway, and for gateways started without the option.
    assert!(!inbox(state.path(), &["decline", &id]).0);
    for wrong in [
        ["--answer-with", "client"],
        ["--answer-with", "terminal"],
        ["--inbox", "off"],
    ] {
        let done = gateway(state.path(), &wrong, &DEMO_SERVER)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(2), "{wrong:?} {done:?}");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(said.contains("only pages may answer"), "{said}");
    }
    let mut second = start(state.path(), &[]);
    second.call(2, "deploy", &json!({}));
    let id = second.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    assert!(!inbox(state.path(), &["accept", &id, "environment=staging"]).0);
    let (cookie, pages) = sign_in(&second.inbox, &second.login);
    let question = format!("{pages}/q/{id}");
    let page = get(&second.inbox, &question, &cookie).body;
    let (_, rest) = page.split_once("name=\"csrf\" value=\"").unwrap();
    let csrf = rest.split('"').next().unwrap();
    let head = [
        format!("POST {question}/decline HTTP/1.1"),
        format!("Cookie: {cookie}"),
        format!("Origin: http://{}", second.inbox),
        "Content-Type: application/x-www-form-urlencoded".to_owned(),
    ];
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let done = send(&second.inbox, &head, &format!("csrf={csrf}")).unwrap();
    assert_eq!(done.status, 303, "{done:?}");
    second.result(2);
    let (_, ended) = inbox(state.path(), &["list", "--ended"]);
    let by = ended[0]["by"].as_str().unwrap();
    let (_, sessions) = inbox(state.path(), &["sessions", "list"]);
    let session = sessions[0]["id"].as_str().unwrap();
    assert_eq!(by, format!("in the browser, session {session}"));
    drop(second);
    // Until it is lifted.
    let third = start(state.path(), &["--presence", "any"]);
    assert_eq!(third.answer("nobody", &act), 404);
}

#[test]
fn watch_goes_on_with_the_next_gateway() {
    let state = tempfile::tempdir().unwrap();
    let mut watch = Command::new(PROGRAM);
    watch
        .args(["inbox", "watch", "--json", "--state"])
        .arg(state.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut watch = watch.spawn().unwrap();
    let stdout = watch.stdout.take().unwrap();
    let (tell, told) = mpsc::channel::<Value>();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = tell.send(serde_json::from_str(&line).unwrap());
        }
    });
    for tool in ["deploy", "connect-account"] {
        let mut gateway = start(state.path(), &[]);
        gateway.call(2, tool, &json!({}));
        let shown = told
            .recv_timeout(PATIENCE)
            .expect("the question is printed");
        assert_eq!(shown["target"], tool);
    }
    assert!(told.try_recv().is_err(), "and each of them once");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn a_port_that_another_program_has_holds_up_nothing_and_another_inbox_is_named() {
    // The process that has the usual port: this one, or an earlier one.
    let owner = TcpListener::bind("127.0.0.1:7878");
    if let Ok(owner) = owner {
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = owner.accept() {
                let _ = stream.read(&mut [0; 1_024]);
                let _ = stream.write_all(
                    b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n{\"error\":{\"code\":\"no-token\"}}",
                );
            }
        });
        let said = |log: Option<&str>, until: &str| {
            let state = tempfile::tempdir().unwrap();
            let mut command = Command::new(PROGRAM);
            command
                .args(["gateway", "--state"])
                .arg(state.path().join("state"));
            command.args(DEMO_SERVER).stderr(Stdio::piped());
            match log {
                Some(log) => command.env("MCP_ELICIT_LOG", log),
                None => command.env_remove("MCP_ELICIT_LOG"),
            };
            let mut client = Raw::start(command);
            let stderr = client.child.stderr.take().unwrap();
            client.initialize("2025-11-25", &json!({}));
            client.call(2, "deploy", &json!({}));
            let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
            let mut said = Vec::new();
            while !said
                .last()
                .is_some_and(|line: &String| line.contains(until))
            {
                said.push(lines.next().expect("it is told"));
            }
            said
        };
        let other = "the inbox of another state folder";
        said(Some("mcp_elicit_gateway=debug"), other);
        // Nobody needs to know: a person who starts a gateway is not greeted with it.
        let usual = said(None, "asked");
        let needless = usual
            .iter()
            .find(|line| line.contains(other) || line.contains("WARN"));
        assert_eq!(needless, None, "{usual:?}");
    }
}

#[test]
fn an_event_that_there_is_not_is_refused_with_the_list() {
    let state = tempfile::tempdir().unwrap();
    let done = command(state.path(), &["audit", "--event", "nonsense"]);
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    for event in ["nonsense", "answered", "delivery-failed", "lapsed"] {
        assert!(said.contains(event), "{said}");
    }
}

#[test]
fn a_page_says_where_no_call_waits_and_how_long_an_answer_is_kept() {
    let state = tempfile::tempdir().unwrap();
    let mut first = start(state.path(), &[]);
    first.call(2, "deploy", &json!({}));
    let id = first.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    let (cookie, pages) = sign_in(&first.inbox, &first.login);
    let page = |gateway: &Gateway| get(&gateway.inbox, &format!("{pages}/q/{id}"), &cookie).body;
    assert!(!page(&first).contains("No call waits"));
    let at = first.inbox.clone();
    drop(first);
    let second = start(state.path(), &["--inbox", &at]);
    let body = page(&second);
    assert!(
        body.contains("No call waits") && body.contains("15 minutes"),
        "{body}"
    );
    let content = json!({"action": "accept", "content": {"environment": "staging"}});
    assert_eq!(second.answer(&id, &content), 200);
    let body = page(&second);
    assert!(body.contains("No call has taken the answer yet"), "{body}");
    assert!(!body.contains("The answer was handed to"), "{body}");
    let shown = command(state.path(), &["inbox", "show", &id]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("no call has taken the answer yet"),
        "{shown}"
    );
}

#[test]
fn the_desktop_is_told_which_server_asks_for_which_tool_and_nothing_else() {
    let state = tempfile::tempdir().unwrap();
    let bin = tempfile::tempdir().unwrap();
    let program = bin.path().join("notify-send");
    std::fs::write(
        &program,
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >>\"$(dirname \"$0\")/told\"\n",
    )
    .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path_variable = format!(
        "{}:{}",
        bin.path().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let start = |more: &[&str]| {
        let options = [&["--name", "deploy-bot"], more].concat();
        let mut command = gateway(state.path(), &options, &DEMO_SERVER);
        command.env("PATH", &path_variable).env("DISPLAY", ":99");
        let mut client = Raw::start(command);
        client.initialize("2025-11-25", &json!({}));
        client
    };
    let told = bin.path().join("told");
    let mut quiet = start(&["--no-notify"]);
    quiet.call(2, "connect-account", &json!({}));
    while inbox(state.path(), &["list"]).1.is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    drop(quiet);
    let mut client = start(&[]);
    client.call(2, "deploy", &json!({"branch": "secret-branch"}));
    let mut said = String::new();
    for _ in 0..6_000 {
        said = std::fs::read_to_string(&told).unwrap_or_default();
        if said.contains("inbox open") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(said.contains("deploy-bot asks for deploy"), "{said}");
    for inner in ["secret-branch", "environment", "connect-account", "http"] {
        assert!(!said.contains(inner), "{said}");
    }
}

#[test]
fn an_answer_is_found_after_the_key_was_changed() {
    let state = tempfile::tempdir().unwrap();
    let options = ["--hold", "0", "--name", "deploy"];
    let mut first = Gateway::start(state.path(), &options, &DEMO_SERVER);
    first.initialize();
    first.call(2, "deploy", &json!({}));
    first.result(2);
    let id = first.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    let content = json!({"action": "accept", "content": {"environment": "staging"}});
    drop(first);
    let second = start(state.path(), &[]);
    assert_eq!(second.answer(&id, &content), 200);
    drop(second);
    let before = std::fs::read(state.path().join("seal.key")).unwrap();
    let done = command(state.path(), &["keys", "rotate"]);
    assert!(done.status.success(), "{done:?}");
    assert_ne!(
        std::fs::read(state.path().join("seal.key")).unwrap(),
        before
    );
    let mut third = start(state.path(), &[]);
    third.call(2, "deploy", &json!({}));
    let done = third.result(2);
    assert!(text(&done).contains("Deployed to staging"), "{done}");
    let audited = command(state.path(), &["audit", "--event", "rotated"]);
    assert!(String::from_utf8_lossy(&audited.stdout).contains("key changed"));
}
