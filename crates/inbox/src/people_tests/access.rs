//! Access to pages and actions: roles, headers, links, forms of others and sessions.

use mcp_elicit_forms::web::{ListFilter, ListView, QuestionStore as _, Viewer as _};
use mcp_elicit_policy::access::{AccessAction, AccessCell, ROLES, Role, TABLE};
use mcp_elicit_record::timeline::TimelineKind;

use mcp_elicit_record::grants::ApprovalGrant;

use super::*;
use crate::login::table::LoginSession;

/// The table of roles, cell by cell, over the pages.
/// Stores an approval of the question that applies for an hour, as a gateway does.
pub(super) async fn keep_grant(rig: &Rig) {
    let at = rig.record.now();
    let grant = ApprovalGrant {
        key: "k".to_owned(),
        question: Some(rig.id.clone()),
        rule: "careful".to_owned(),
        rule_digest: "r".to_owned(),
        answers: "{}".to_owned(),
        at,
        until: at.after(Duration::from_secs(60 * 60)),
    };
    rig.record.keep_grant(&grant).await.unwrap();
}

#[tokio::test]
async fn the_table_of_roles_holds_on_the_pages() {
    let mut cells = 0;
    for (column, role) in ROLES.into_iter().enumerate() {
        let name = match role {
            // A person whom the file names, without a role and without questions, is an answerer of other questions.
            Role::None => "nobody",
            Role::Caller => "cy",
            Role::Addressed => "ada",
            Role::OtherAnswerer => "dan",
            Role::Auditor => "aud",
            Role::Admin => "eve",
        };
        for (action, row) in TABLE {
            let allowed = match row[column] {
                AccessCell::No => false,
                AccessCell::Yes | AccessCell::Own => true,
                // The caller is in the group, and the rule excludes callers: the row's own test is `not-caller`.
                AccessCell::IfAddressed => continue,
            };
            let rig = rig(2).await;
            if role == Role::None {
                assert_eq!(get(&rig, name, "/", "").await.status, 403);
                assert!(!allowed);
                cells += 1;
                continue;
            }
            Person::enter(&rig, "ada").await.fill("Moon").await;
            let person = Person::enter(&rig, name).await;
            let page = person.get(&person.question("")).await;
            let done = match action {
                AccessAction::SeeQuestion => page.body.contains("Who?"),
                AccessAction::SeeOwnHistory => page.body.contains("History of the question"),
                AccessAction::SeeEntered => page.body.contains("Moon"),
                AccessAction::ListAll => person.get("/").await.body.contains("data-row"),
                AccessAction::Act => page.body.contains("id=\"answer\""),
                AccessAction::Comment => page.body.contains("name=\"text\""),
                AccessAction::Audit => {
                    let audit = person.get("/audit?view=events").await;
                    audit.status == 200 && audit.body.contains("<strong>asked</strong>")
                }
                AccessAction::ListSessions => person
                    .get("/account")
                    .await
                    .body
                    .contains("Sessions of others"),
                AccessAction::EndSessions => {
                    let account = person.get("/account").await;
                    let ada = other_session(&account);
                    let form = format!(
                        "csrf={}&session={}",
                        account.csrf(),
                        ada.as_deref().unwrap_or("0")
                    );
                    person.post("/account/end", &form).await.status == 303 && ada.is_some()
                }
                AccessAction::EndGrant => {
                    keep_grant(&rig).await;
                    let account = person.get("/account").await;
                    let form = format!("csrf={}&grant=k", account.csrf());
                    let ended = person.post("/grants/end", &form).await.status == 303;
                    assert_eq!(rig.record.grants().await.unwrap().is_empty(), ended);
                    ended
                }
            };
            // People who are asked, and callers in the group, see more than this column alone says; roles add up.
            let adds_up = match (role, action) {
                (
                    Role::Caller,
                    AccessAction::SeeEntered | AccessAction::ListAll | AccessAction::EndGrant,
                )
                | (Role::Addressed, AccessAction::SeeOwnHistory | AccessAction::ListAll) => true,
                _ => allowed,
            };
            assert_eq!(done, adds_up, "{name} {action:?}");
            cells += 1;
        }
    }
    assert_eq!(cells, 59);
}

/// Returns the first session under the heading for others' that is not the reader's.
fn other_session(account: &Reply) -> Option<String> {
    let (_, others) = account.body.split_once("id=\"others\"")?;
    let (_, rest) = others.split_once("data-session=\"")?;
    Some(rest.split('"').next()?.to_owned())
}

#[tokio::test]
async fn the_audit_is_read_by_kind_server_and_question_from_the_latest_on() {
    let rig = rig(2).await;
    Person::enter(&rig, "ada").await.fill("Moon").await;
    let auditor = Person::enter(&rig, "aud").await;
    let all = auditor.get("/audit?view=events").await.body;
    let at = |event: &str| all.find(&format!("<strong>{event}</strong>"));
    assert!(
        at("answer entered") < at("asked") && at("asked").is_some(),
        "{all}"
    );
    assert!(!all.contains("Moon") && all.contains("by ada"), "{all}");
    assert!(!all.contains("person:ada"), "{all}");
    let (id, half) = (&rig.id, &rig.id[..rig.id.len() / 2]);
    for (query, is_there) in [
        ("event=filled".to_owned(), true),
        (format!("event=filled&question={half}"), true),
        (format!("event=filled&question={id}x"), false),
        ("event=filled&server=elsewhere".to_owned(), false),
        ("event=nothing".to_owned(), false),
        ("before=1&view=events".to_owned(), false),
        ("person=ada&view=events".to_owned(), true),
        ("person=ad&view=events".to_owned(), false),
        ("since=1h&view=events".to_owned(), true),
        ("until=2020-01-01&view=events".to_owned(), false),
        ("since=yesterday&view=events".to_owned(), false),
    ] {
        let page = auditor.get(&format!("/audit?{query}")).await;
        assert_eq!(page.status, 200);
        let found = page.body.contains("<strong>answer entered</strong>");
        assert_eq!(found, is_there, "{query}");
        let wrong = page.body.contains("is not a time; use a day");
        assert_eq!(wrong, query.starts_with("since=yesterday"), "{query}");
        let kinds = page.body.contains("<strong>asked</strong>");
        let selects_all = query.starts_with("since=1h");
        assert_eq!(kinds, selects_all, "{query}");
    }
    let nobody = send(
        &rig.host,
        [127, 0, 0, 2],
        &format!("GET /audit HTTP/1.1\r\nHost: {}\r\n", rig.host),
        "",
    )
    .await;
    assert_eq!(nobody.status, 403);
    // A person whom it is not for is redirected, and so is one who follows an address without a page.
    let ada = Person::enter(&rig, "ada").await;
    let refused = ada.get("/audit").await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.body.contains("href=\"/\">Questions for you</a>"),
        "{}",
        refused.body
    );
    let nowhere = ada.get("/q/x/y").await;
    assert_eq!(nowhere.status, 404);
    for words in ["There is no such page.", "href=\"/account\""] {
        assert!(nowhere.body.contains(words), "{words}: {}", nowhere.body);
    }
}

#[tokio::test]
async fn the_audit_has_a_row_per_question_and_is_exported_to_auditors_only() {
    let rig = rig(2).await;
    let id = rig.id.clone();
    Person::enter(&rig, "ada").await.fill("Moon").await;
    let auditor = Person::enter(&rig, "aud").await;
    let page = auditor.get("/audit").await.body;
    assert_eq!(
        page.matches("<li><div class=\"what\">").count(),
        1,
        "{page}"
    );
    assert!(page.contains("<span class=\"tag \">open</span>"), "{page}");
    let events = format!("/audit?view=events&amp;question={id}");
    assert!(page.contains(&events), "{page}");
    Person::enter(&rig, "bob")
        .await
        .press("decline", "&drop=yes")
        .await;
    let page = auditor.get("/audit").await.body;
    assert!(
        page.contains("<span class=\"tag bad\">declined</span>") && page.contains("by bob"),
        "{page}"
    );
    for (query, is_there) in [
        ("outcome=declined", true),
        ("outcome=accepted", false),
        ("person=bob", true),
        ("person=eve", false),
        ("outcome=nonsense", false),
    ] {
        let page = auditor.get(&format!("/audit?{query}")).await.body;
        assert_eq!(page.contains(&events), is_there, "{query}: {page}");
    }
    let csv = auditor.get("/audit/export?format=csv&person=ada").await;
    assert_eq!(csv.status, 200);
    // The response is sent in parts, whose sizes are lines of their own; a part ends with a line.
    let lines: Vec<&str> = csv.body.lines().filter(|line| line.contains(',')).collect();
    assert!(
        lines[0].starts_with("number,time,event,question,"),
        "{lines:?}"
    );
    assert!(
        lines[1..].iter().any(|line| line.contains(",filled,")),
        "{lines:?}"
    );
    assert!(!csv.body.contains(",declined,"), "{lines:?}");
    let json = auditor.get("/audit/export?format=json").await;
    let lines = json.body.lines().filter(|line| line.starts_with('{'));
    let entries: Vec<serde_json::Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(entries[0]["number"], 1);
    assert!(
        entries
            .iter()
            .any(|line| line["entry"]["event"] == "declined")
    );
    let numbers: Vec<u64> = entries
        .iter()
        .map(|line| line["number"].as_u64().unwrap())
        .collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    for (query, status) in [("format=xml", 400), ("", 400), ("format=csv&since=x", 400)] {
        let page = auditor.get(&format!("/audit/export?{query}")).await;
        assert_eq!(page.status, status, "{query}");
    }
    let ada = Person::enter(&rig, "ada").await;
    assert_eq!(ada.get("/audit/export?format=csv").await.status, 403);
    let nobody = send(
        &rig.host,
        [127, 0, 0, 2],
        &format!(
            "GET /audit/export?format=csv HTTP/1.1\r\nHost: {}\r\n",
            rig.host
        ),
        "",
    )
    .await;
    assert_eq!(nobody.status, 403);
}

#[tokio::test]
async fn auditors_and_administrators_see_that_it_exists() {
    let rig = rig(1).await;
    for name in ["aud", "eve"] {
        let person = Person::enter(&rig, name).await;
        let list = person.get("/").await;
        assert!(
            list.body.contains("data-row") && !list.body.contains("Who?"),
            "{name}"
        );
        let page = person.get(&person.question("")).await;
        assert!(page.body.contains("not addressed to you") && !page.body.contains("moon"));
        assert_eq!(person.get(&person.question("/review")).await.status, 200);
        assert!(
            !person
                .get(&person.question("/review"))
                .await
                .body
                .contains("Who?")
        );
        // Even with a token of a form of theirs, nothing is done.
        let account = person.get("/account").await;
        let form = format!("csrf={}", account.csrf());
        assert_eq!(
            person
                .post(&person.question("/decline"), &form)
                .await
                .status,
            403
        );
    }
    assert!(phase(&rig).await.is_open());
}

#[tokio::test]
async fn headers_from_elsewhere_sign_no_one_in() {
    let rig = rig(1).await;
    let host = &rig.host;
    for path in ["/", "/account", "/state", &format!("/q/{}", rig.id)] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nX-User: ada\r\n");
        let reply = send(host, [127, 0, 0, 2], &head, "").await;
        assert_eq!(reply.status, 403, "{path}");
        assert!(!reply.body.contains("Who?") && reply.header("set-cookie").is_none());
    }
    // A stolen cookie without the proxy has no effect either.
    let ada = Person::enter(&rig, "ada").await;
    let head = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nCookie: {}\r\n",
        ada.cookie
    );
    assert_eq!(send(host, [127, 0, 0, 2], &head, "").await.status, 403);
    let doubled = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX-User: ada\r\nX-User: eve\r\n");
    assert_eq!(send(host, PROXY, &doubled, "").await.status, 403);
    let wrong_host = "GET / HTTP/1.1\r\nHost: evil.example\r\nX-User: ada\r\n";
    let reply = send(host, PROXY, wrong_host, "").await;
    assert_eq!((reply.status, reply.header("set-cookie")), (421, None));
}

#[tokio::test]
async fn a_forwarded_link_and_guessed_names_open_nothing() {
    let rig = rig(1).await;
    let dan = Person::enter(&rig, "dan").await;
    let forwarded = dan.get(&dan.question("")).await;
    let guessed = dan.get("/q/00000000000000000000000000000000").await;
    assert_eq!((forwarded.status, guessed.status), (404, 404));
    assert_eq!(
        forwarded.body, guessed.body,
        "one cannot tell the two apart"
    );
    for part in ["/review", "/state"] {
        let reply = dan.get(&dan.question(part)).await;
        assert!(
            !reply.body.contains("Who?") && !reply.body.contains("\"open\":true"),
            "{part}"
        );
    }
    let account = dan.get("/account").await;
    let form = format!("csrf={}&session=000000000000", account.csrf());
    assert_eq!(dan.post("/account/end", &form).await.status, 404);
    // Reading has no effect.
    assert_eq!(phase(&rig).await, Phase::Asked);
}

/// Requests every address, as a person who may act there, with all fields that a form would send.
#[tokio::test]
async fn no_get_does_anything() {
    let rig = rig(2).await;
    Person::enter(&rig, "bob").await.fill("Moon").await;
    let (ada, eve) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "eve").await,
    );
    let page = ada.get(&ada.question("")).await;
    let team = |row: &mcp_elicit_record::store::Row| row.team.as_ref().unwrap().quorum().clone();
    let row = rig.record.find(&rig.id).await.unwrap().unwrap();
    let before = team(&row);
    let digest = page.body.split_once("name=\"digest\" value=\"");
    let digest = digest.and_then(|(_, rest)| rest.split('"').next()).unwrap();
    let fields = format!(
        "csrf={}&version=1&digest={}&f0=Mars&name=Mars&seen=x&allow=yes&drop=yes&text=hi&note=hi&to=person%3Acy&act=accept",
        page.csrf(),
        digest,
    );
    let acts = [
        "",
        "/review",
        "/accept",
        "/visit",
        "/decline",
        "/cancel",
        "/always",
        "/confirm",
        "/claim",
        "/takeover",
        "/delegate",
        "/comment",
        "/state",
        "/check",
        "/save",
    ];
    for act in acts {
        let at = ada.question(act);
        for at in [format!("{at}?{fields}"), at] {
            let reply = ada.get(&at).await;
            assert!(reply.status < 500, "{at}: {}", reply.status);
        }
    }
    keep_grant(&rig).await;
    let account = eve.get("/account").await;
    let form = format!("csrf={}&session=0&device=0&grant=k", account.csrf());
    for path in [
        "/account/end",
        "/account/devices",
        "/account/devices/end",
        "/grants",
        "/grants/end",
        "/logout",
        "/audit",
        "/events/none",
        "/login",
    ] {
        let reply = eve.get(&format!("{path}?{form}")).await;
        assert!(reply.status < 500, "{path}: {}", reply.status);
    }
    assert_eq!(
        eve.get("/account").await.status,
        200,
        "nobody was signed out"
    );
    assert_eq!(rig.record.grants().await.unwrap().len(), 1);
    let row = rig.record.find(&rig.id).await.unwrap().unwrap();
    assert!(row.lifecycle.is_open());
    assert_eq!(team(&row), before);
    let kinds: Vec<_> = row.timeline().into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [TimelineKind::Asked, TimelineKind::Filled]);
}

#[tokio::test]
async fn forms_of_other_sites_and_other_sessions_do_nothing() {
    let rig = rig(1).await;
    let (ada, bob) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "bob").await,
    );
    let page = bob.get(&bob.question("")).await;
    let (token, decline) = (page.csrf(), bob.question("/decline"));
    let own = format!("http://{}", rig.host);
    for (origin, form) in [
        ("https://evil.example", format!("csrf={token}")),
        ("null", format!("csrf={token}")),
        (own.as_str(), String::new()),
        // The token of another session's form for the same question.
        (
            own.as_str(),
            format!("csrf={}", ada.get(&ada.question("")).await.csrf()),
        ),
    ] {
        let reply = post(&rig, "bob", &decline, &bob.cookie, origin, &form).await;
        assert_eq!(reply.status, 403, "{origin} {form}");
    }
    keep_grant(&rig).await;
    let account = format!("csrf={}&grant=k", bob.get("/account").await.csrf());
    for path in ["/logout", "/account/end", "/grants/end"] {
        let reply = post(
            &rig,
            "bob",
            path,
            &bob.cookie,
            "https://evil.example",
            &account,
        )
        .await;
        assert_eq!(reply.status, 403);
        let stolen = format!("csrf={}&grant=k", ada.get("/account").await.csrf());
        assert_eq!(bob.post(path, &stolen).await.status, 403);
    }
    assert_eq!(rig.record.grants().await.unwrap().len(), 1);
    assert!(phase(&rig).await.is_open());
    assert_eq!(bob.get("/account").await.status, 200);
}

#[tokio::test]
async fn a_session_is_made_anew_and_belongs_to_one_person() {
    let rig = rig(1).await;
    let port = rig.host.rsplit(':').next().unwrap();
    let planted = format!("mcp-elicit-login-{port}={}", "0".repeat(64));
    let entered = get(&rig, "ada", "/", &planted).await;
    let cookie = entered.cookie().unwrap();
    assert_ne!(cookie, planted, "fixation");
    let set = entered.header("set-cookie").unwrap();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax") && set.contains("Path=/"));
    // The proxy names another person: that session ends, and a new one is made.
    let other = get(&rig, "bob", "/", &cookie).await;
    assert!(other.cookie().is_some_and(|new| new != cookie));
    let again = get(&rig, "ada", "/", &cookie).await;
    assert!(
        again.cookie().is_some_and(|new| new != cookie),
        "the old one has ended"
    );
    let stored = sample::stored(rig.folder.path());
    let value = cookie.split_once('=').unwrap().1;
    assert!(!stored.contains(value));
}

#[tokio::test]
async fn people_end_their_sessions_and_administrators_those_of_all() {
    let rig = rig(1).await;
    let (ada, eve) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "eve").await,
    );
    let account = eve.get("/account").await;
    let id = other_session(&account).unwrap();
    let form = format!("csrf={}&session={id}", account.csrf());
    assert_eq!(eve.post("/account/end", &form).await.status, 303);
    assert!(
        ada.get("/").await.cookie().is_some(),
        "a new session was needed"
    );
    let account = eve.get("/account").await;
    let gone = eve
        .post("/logout", &format!("csrf={}", account.csrf()))
        .await;
    assert!(gone.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert!(eve.get("/logged-out").await.body.contains("Logged out"));
    let audit = mcp_elicit_record::audit::read(rig.record.store())
        .await
        .unwrap();
    let all: Vec<String> = audit.iter().map(|entry| entry.entry.clone()).collect();
    let has = |parts: &[&str]| {
        let mut all = all.iter();
        all.any(|entry| parts.iter().all(|part| entry.contains(part)))
    };
    let by_eve = r#""by":"person:eve""#;
    assert!(has(&[r#""sign-in""#, r#""by":"person:ada","session":""#]));
    assert!(has(&["session-ended", by_eve, r#""person":"ada""#]));
    assert!(has(&["session-ended", by_eve, r#""session":""#]));
    assert_eq!(get(&rig, "stranger", "/", "").await.status, 403);
}

/// A person whom the file knows only by a mail address is bound to the subject of the first login.
#[tokio::test]
async fn who_is_bound_to_a_subject_is_in_the_audit_and_nobody_else_becomes_them() {
    let file = "[people.fay]\nmail = \"fay@example.com\"\n";
    let mode = LoginMode::Proxy(ProxyLogin {
        trusts: Arc::new(|from| from == std::net::IpAddr::from(PROXY)),
        issuer: "proxy".to_owned(),
        subject: HeaderName::from_static("x-user"),
        mail: Some(HeaderName::from_static("x-mail")),
        groups: None,
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let recheck = Duration::from_secs(60 * 60);
    let rig = inbox_over(listener, record(), String::new(), file, mode, recheck);
    let enter = async |subject: &str| {
        let head = format!(
            "GET / HTTP/1.1\r\nHost: {}\r\nX-User: {subject}\r\nX-Mail: fay@example.com\r\nAccept: text/html\r\n",
            rig.host
        );
        send(&rig.host, PROXY, &head, "").await.status
    };
    assert_eq!([enter("s-1").await, enter("s-1").await], [200, 200]);
    let bound = audited(&rig, "person-bound").await;
    assert_eq!(bound.len(), 1, "{bound:?}");
    for part in [r#""by":"person:fay""#, "s-1", r#""session":""#] {
        assert!(bound[0].contains(part), "{bound:?}");
    }
    assert_eq!(enter("s-2").await, 403);
    let refused = audited(&rig, "sign-in-refused").await.pop().unwrap();
    assert!(
        refused.contains(r#""reason":"bound-to-another""#) && refused.contains("s-2"),
        "{refused}"
    );
    let logins = StateFolder::at(rig.folder.path()).logins();
    assert!(logins.unbind("fay").unwrap());
    assert_eq!(enter("s-2").await, 200);
    assert_eq!(audited(&rig, "person-bound").await.len(), 2);
}

/// Sends the head of a request, and returns once the server waits for the body.
async fn begun(who: &Person<'_>, path: &str, body: &str) -> tokio::net::TcpStream {
    let (host, cookie) = (&who.rig.host, &who.cookie);
    let mut stream = tokio::net::TcpStream::connect(host.as_str()).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nX-User: {}\r\nCookie: {cookie}\r\nOrigin: http://{host}\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        who.name,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut told = Vec::new();
    while !told.ends_with(b"\r\n\r\n") {
        told.push(stream.read_u8().await.unwrap());
    }
    assert!(told.starts_with(b"HTTP/1.1 100"), "{path}");
    stream
}

#[tokio::test]
async fn a_session_that_ends_while_a_body_is_on_its_way_does_nothing() {
    let rig = rig(1).await;
    let logins = StateFolder::at(rig.folder.path()).logins();
    let other = Person::enter(&rig, "ada").await;
    let account = other.get("/account").await;
    let keys = r#""endpoint":"https://push.example.com/1","keys":{"p256dh":"p","auth":"a"}"#;
    let device = format!(r#"{{"csrf":"{}",{keys}}}"#, account.csrf());
    let added = other.post("/account/devices", &device).await;
    assert_eq!(added.status, 204, "{}", added.body);
    let table = logins.table().unwrap();
    let device = table.devices_of("ada").next().unwrap();
    let (device, first) = (device.id(), device.session());
    for path in [
        other.question("/decline"),
        other.question("/comment"),
        "/account/devices".to_owned(),
        "/account/devices/end".to_owned(),
        "/account/end".to_owned(),
        "/logout".to_owned(),
    ] {
        let ada = Person::enter(&rig, "ada").await;
        let token = ada.get("/account").await.csrf();
        let body = match path.as_str() {
            "/account/devices" => format!(r#"{{"csrf":"{token}",{keys}}}"#),
            "/account/devices/end" => format!("csrf={token}&device={device}"),
            "/account/end" => format!("csrf={token}&session={first}"),
            "/logout" => format!("csrf={token}"),
            _ => {
                let csrf = ada.get(&ada.question("")).await.csrf();
                format!("csrf={csrf}&version=0&drop=yes&text=hello")
            }
        };
        let mut stream = begun(&ada, &path, &body).await;
        let own = |session: &LoginSession| session.person() == "ada" && session.id() != first;
        assert_eq!(logins.end(own).unwrap().sessions.len(), 1, "{path}");
        let before = serde_json::to_value(&*logins.table().unwrap()).unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        let to_login = reply.starts_with("HTTP/1.1 303") && reply.contains("location: /login\r\n");
        assert!(
            reply.starts_with("HTTP/1.1 401") || to_login,
            "{path}: {reply}"
        );
        let after = serde_json::to_value(&*logins.table().unwrap()).unwrap();
        assert!(before == after, "{path}");
    }
    let row = rig.record.find(&rig.id).await.unwrap().unwrap();
    assert!(row.lifecycle.is_open());
    assert!(!other.get(&other.question("")).await.body.contains("hello"));
}

#[tokio::test]
async fn programs_that_keep_no_cookie_push_nobody_out() {
    let rig = rig(1).await;
    let ada = Person::enter(&rig, "ada").await;
    assert_eq!(ada.get("/account").await.status, 200);
    let host = &rig.host;
    let question = ada.question("");
    for number in 0..60 {
        // A browser's navigation makes a session each time, and a program's request none.
        let accept = ["*/*", "text/html"][number % 2];
        let head = format!(
            "GET {question} HTTP/1.1\r\nHost: {host}\r\nX-User: ada\r\nAccept: {accept}\r\n"
        );
        let page = send(host, PROXY, &head, "").await;
        assert!(page.status == 200 && page.body.contains("Who?"));
        assert_eq!(page.cookie().is_some(), number % 2 == 1);
    }
    assert_eq!(ada.press("comment", "&text=hm").await.status, 303);
    let logins = StateFolder::at(rig.folder.path()).logins();
    assert_eq!(logins.table().unwrap().sessions().len(), 20);
    // Without a session nothing can be posted, and the page says how to log in.
    let origin = format!("http://{host}");
    let token = ada.get(&question).await.csrf();
    let (decline, form) = (ada.question("/decline"), format!("csrf={token}"));
    let refused = post(&rig, "ada", &decline, "", &origin, &form).await;
    assert_eq!(refused.status, 401);
    assert!(
        refused.body.contains("open the inbox through it again"),
        "{}",
        refused.body
    );
    let stranger = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX-User: stranger\r\nAccept: */*\r\n");
    assert_eq!(send(host, PROXY, &stranger, "").await.status, 403);
}

#[tokio::test]
async fn refused_people_are_written_down_so_often_a_minute() {
    let rig = rig(1).await;
    for _ in 0..40 {
        assert_eq!(get(&rig, "stranger", "/", "").await.status, 403);
    }
    assert_eq!(audited(&rig, "sign-in-refused").await.len(), 30);
    // A person who may log in is never left out.
    Person::enter(&rig, "ada").await;
    assert_eq!(audited(&rig, "sign-in").await.len(), 1);
}

/// Opens a stream of events with this cookie.
async fn stream_of(rig: &Rig, cookie: &str) -> tokio::net::TcpStream {
    let mut stream = tokio::net::TcpStream::connect(&rig.host).await.unwrap();
    let head = format!(
        "GET /events HTTP/1.1\r\nHost: {}\r\nX-User: ada\r\nCookie: {cookie}\r\n\r\n",
        rig.host
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    stream
}

/// Reads a stream of events to its end.
async fn end_of(mut stream: tokio::net::TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut chunk = [0; 1024];
    // The connection is kept, and the last chunk is empty.
    while !bytes.ends_with(b"\r\n0\r\n\r\n") {
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut chunk));
        let read = read.await.expect("the stream ends").unwrap();
        assert_ne!(read, 0, "it ends in order");
        bytes.extend_from_slice(&chunk[..read]);
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn a_stream_of_events_ends_with_its_session_and_a_person_has_so_many() {
    let rig = rig(1).await;
    let (ada, bob) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "bob").await,
    );
    let first = stream_of(&rig, &ada.cookie).await;
    let mut others = Vec::new();
    for _ in 0..32 {
        others.push(stream_of(&rig, &ada.cookie).await);
    }
    end_of(first).await;
    let account = ada.get("/account").await;
    let out = ada
        .post("/logout", &format!("csrf={}", account.csrf()))
        .await;
    assert_eq!(out.status, 303);
    // A person who has logged out is not notified of the next change.
    assert_eq!(bob.press("comment", "&text=hm").await.status, 303);
    for stream in others {
        let told = end_of(stream).await;
        assert!(told.matches("event: change").count() <= 1, "{told}");
    }
}

#[tokio::test]
async fn a_program_that_only_reads_leaves_a_question_unshown() {
    let rig = rig(1).await;
    let id = sample::raised_by(&rig.record, "local").await.unwrap();
    let tokens = StateFolder::at(rig.folder.path()).api_tokens();
    let make = |scope: Scope| tokens.make("bot", &[scope], None, clock::now()).unwrap().1;
    let (reads, answers) = (make(Scope::List), make(Scope::Answer));
    let asked = async |method: &str, token: &str| {
        let head = format!(
            "{method} /api/questions/{id} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n",
            rig.host
        );
        assert_eq!(send(&rig.host, PROXY, &head, "").await.status, 200);
        let row = rig.record.find(&id).await.unwrap().unwrap();
        row.lifecycle.phase()
    };
    assert_eq!(asked("GET", &reads).await, Phase::Asked);
    assert_eq!(asked("HEAD", &answers).await, Phase::Asked);
    assert_eq!(asked("GET", &answers).await, Phase::Shown);
}

#[tokio::test]
async fn the_page_after_a_logout_behind_a_proxy_signs_nobody_in_again() {
    let rig = rig(1).await;
    let ada = Person::enter(&rig, "ada").await;
    let account = ada.get("/account").await;
    let csrf = account.csrf();
    let out = ada.post("/logout", &format!("csrf={csrf}")).await;
    assert_eq!(out.header("location"), Some("/logged-out"));
    let page = get(&rig, "ada", "/logged-out", "").await;
    assert_eq!((page.status, page.cookie()), (200, None));
    assert!(page.body.contains("logs you in again"), "{}", page.body);
    assert_eq!(audited(&rig, "sign-in").await.len(), 1);
    // From another address, there is no page.
    let head = format!("GET /logged-out HTTP/1.1\r\nHost: {}\r\n", rig.host);
    let refused = send(&rig.host, [127, 0, 0, 9], &head, "").await;
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn who_has_left_the_group_is_told_so_and_their_acts_are_in_the_audit() {
    let rig = rig(2).await;
    let bob = Person::enter(&rig, "bob").await;
    let csrf = bob.get(&bob.question("")).await.csrf();
    rig.read(&FILE.replace(r#"ops = ["ada", "bob", "cy"]"#, r#"ops = ["ada", "cy"]"#));
    let why = "This question was addressed to a group that you have left.";
    let page = bob.get(&bob.question("")).await;
    assert_eq!(page.status, 403, "{}", page.body);
    assert!(page.body.contains(why), "{}", page.body);
    // Reading is no action.
    assert!(audited(&rig, "act-refused").await.is_empty());
    let form = format!("csrf={csrf}&version=0");
    for (button, act) in [
        ("accept", "fill"),
        ("decline", "decline"),
        ("claim", "claim"),
    ] {
        let path = bob.question(&format!("/{button}"));
        let refused = bob.post(&path, &form).await;
        assert_eq!(refused.status, 403, "{button}: {}", refused.body);
        assert!(refused.body.contains(why), "{button}: {}", refused.body);
        let noted = audited(&rig, "act-refused").await.pop().unwrap();
        for part in [
            format!(r#""act":"{act}""#).as_str(),
            r#""reason":"left-group""#,
            r#""by":"person:bob""#,
        ] {
            assert!(noted.contains(part), "{part}: {noted}");
        }
    }
    // Saving a draft is no action.
    let noted = audited(&rig, "act-refused").await.len();
    assert_eq!(bob.post(&bob.question("/live"), &form).await.status, 409);
    assert_eq!(audited(&rig, "act-refused").await.len(), noted);
    // For a person who was never asked, the question does not exist.
    let dan = Person::enter(&rig, "dan").await;
    assert_eq!(dan.get(&dan.question("")).await.status, 404);
    assert!(phase(&rig).await.is_open());
}

#[tokio::test]
async fn a_new_question_is_found_however_many_others_wait() {
    let record = record();
    let team = |caller: &str| {
        let caller = TeamCaller {
            person: Some(caller.to_owned()),
            ..TeamCaller::default()
        };
        let hour = Duration::from_secs(60 * 60);
        let team = Team::new(
            "deploys",
            "r",
            caller,
            &plan(1),
            vec!["ada".to_owned()],
            hour,
        );
        Some(team.to_plan().unwrap())
    };
    let flood = team("cy");
    for number in 0..10_050 {
        let arguments = format!(r#"{{"to":"flood{number}"}}"#);
        sample::raised_in(&record, &format!("c{number}"), flood.clone(), &arguments)
            .await
            .unwrap();
    }
    // Questions of one millisecond have no order, and this one must be the last.
    let flooded = record.now();
    while record.now() == flooded {
        tokio::task::yield_now().await;
    }
    let id = sample::raised_in(&record, "other", team("bob"), r#"{"to":"needle"}"#)
        .await
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hour = Duration::from_secs(60 * 60);
    let rig = inbox_over(listener, record, id.clone(), FILE, proxy(), hour);
    let ada = Person::enter(&rig, "ada").await;
    let row = format!("data-row=\"{id}\"");
    for find in ["needle", "flood10030", id.as_str()] {
        for view in ["", "&view=groups"] {
            let found = ada.get(&format!("/?find={find}{view}")).await.body;
            assert_eq!(found.matches("data-row=").count(), 1, "{find}{view}");
        }
    }
    assert!(ada.get("/?find=needle").await.body.contains(&row));
    // Arguments are stored sealed: a search opens those of the first and the last questions only.
    let between = ada.get("/?find=flood5000").await.body;
    assert!(!between.contains("data-row="), "{between}");
    let all = ada.get("/").await.body;
    assert!(all.contains("1000 or more are waiting."), "{all}");
    assert_eq!(all.matches("data-row=").count(), 200);
    for listed in [row.as_str(), "flood30<", "flood10030<"] {
        assert!(all.contains(listed), "{listed}: {all}");
    }
    assert!(!all.contains("flood300<") && !all.contains("flood9700<"));
    let heard = "1000 or more questions are waiting for you";
    assert!(all.contains(heard), "{all}");
    let none = ada.get("/?find=nothing-like-it").await.body;
    assert!(none.contains("Nothing matches"), "{none}");
    // The owner of the folder reads without the login of people.
    let questions = crate::record_question_store::RecordQuestionStore::new(rig.record.clone());
    let filter = ListFilter {
        text: id.clone(),
        view: ListView::All,
        most: 10,
    };
    let owner = crate::viewer::InboxViewer::from_link("by".to_owned());
    let list = questions.list(&owner, &filter).await.unwrap();
    assert_eq!((list.pending.len(), list.pending_total), (1, 10_051));
    assert!(!list.is_cut);
    let filter = ListFilter {
        text: String::new(),
        ..filter
    };
    let list = questions.list(&owner, &filter).await.unwrap();
    let newest = list.pending.last().map(|summary| summary.id.as_str());
    assert_eq!((list.pending.len(), newest), (10, Some(id.as_str())));
}

#[tokio::test]
async fn only_one_name_below_assets_is_open_without_a_login() {
    let rig = rig(1).await;
    let outside = async |path: &str| {
        let host = &rig.host;
        send(
            host,
            PROXY,
            &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n"),
            "",
        )
        .await
    };
    let style = outside("/assets/style.css").await;
    assert_eq!(style.status, 200);
    for path in [
        "/assets/a/b",
        "/assets/",
        "/assets/none.css",
        "/assets/../audit",
        "/assets/..",
        "/assets/a%2Fb",
        "/assets/style.css/",
    ] {
        let missing = outside(path).await;
        assert_eq!(missing.status, 404, "{path}: {}", missing.body);
        let told = "There is no such file";
        assert!(missing.body.contains(told), "{path}: {}", missing.body);
        let head = &missing.head;
        assert!(head.contains("content-security-policy"), "{head}");
    }
    for path in ["/q/assets/x", "/assets", "/assetsx/a"] {
        let refused = outside(path).await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.body);
    }
    let ada = Person::enter(&rig, "ada").await;
    for path in ["/assets/a/b", "/q/assets/x", "/none"] {
        let missing = ada.get(path).await;
        assert_eq!(missing.status, 404, "{path}: {}", missing.body);
        let told = "There is no such";
        assert!(missing.body.contains(told), "{}", missing.body);
    }
}

#[tokio::test]
async fn a_request_that_no_address_takes_is_told_what_to_do() {
    let rig = rig(1).await;
    let host = &rig.host;
    let ada = Person::enter(&rig, "ada").await;
    let told = "Open the inbox, and use the links and buttons of its pages.";
    let as_ada = async |method: &str, path: &str| {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nX-User: ada\r\nCookie: {}\r\nOrigin: http://{host}\r\nAccept: text/html\r\n",
            ada.cookie
        );
        send(host, PROXY, &head, "").await
    };
    let question = ada.question("");
    for (method, path, takes) in [
        ("GET", "/logout", "POST"),
        ("GET", "/account/end", "POST"),
        ("POST", "/account", "GET,HEAD"),
        ("PUT", question.as_str(), "GET,HEAD"),
        ("DELETE", "/", "GET,HEAD"),
    ] {
        let refused = as_ada(method, path).await;
        assert_eq!(refused.status, 405, "{method} {path}");
        assert!(refused.body.contains(told), "{}", refused.body);
        assert_eq!(refused.header("allow"), Some(takes), "{}", refused.head);
    }
    // Longer than any form, and nothing ends.
    for path in [
        "/logout",
        "/account/end",
        "/account/devices/end",
        "/grants/end",
    ] {
        let long = ada.post(path, &"x".repeat(65 * 1024)).await;
        assert_eq!(long.status, 413, "{path}");
        let told = "Nothing was done: open the page again";
        assert!(long.body.contains(told), "{}", long.body);
        assert!(!long.body.contains("buffer"), "{}", long.body);
    }
    assert_eq!(ada.get(&question).await.status, 200);
}
