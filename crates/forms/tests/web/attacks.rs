//! Attacks that must fail: by unknown clients, by other sites, and by servers that send too much.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use mcp_elicit_testkit::chromium::{Chromium, Setup};

use crate::browser::at_question;
use crate::fixtures::{Asking, asks, every_kind, link, nothing, short};
use crate::http::{Visitor, send};

const PATHS: [&str; 6] = [
    "/",
    "/q/{id}",
    "/q/{id}/review",
    "/q/{id}/state",
    "/events",
    "/state",
];
const ACTS: [&str; 7] = [
    "live", "step", "review", "accept", "decline", "always", "cancel",
];

#[tokio::test]
async fn a_name_that_was_made_to_point_here_gets_nothing() {
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &nothing())).await;
    let visitor = Visitor::enter(&asked.link).await;
    let port = visitor.host.split(':').nth(1).unwrap();
    let csrf = visitor.hidden(asked.path(), "csrf").await;
    for name in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        "127.0.0.1".to_owned(),
    ] {
        for path in PATHS {
            let path = path.replace("/q/{id}", asked.path());
            let head = [
                format!("GET {}{path} HTTP/1.1", visitor.base),
                format!("Host: {name}"),
                format!("Cookie: {}", visitor.cookie),
            ];
            let reply = send(&visitor.host, &head, "").await;
            assert_eq!(reply.status, 421, "{name} {path}");
            assert!(!reply.body.contains("deploy-bot"), "{name} {path}");
        }
        let mut head = visitor.post_head(&format!("{}/accept", asked.path()));
        head[1] = format!("Host: {name}");
        head[3] = format!("Origin: http://{name}");
        assert_eq!(
            send(&visitor.host, &head, &format!("csrf={csrf}"))
                .await
                .status,
            421,
            "{name}"
        );
    }
    let key = asking.browser.login_link().unwrap();
    let path = key.split_once(&visitor.host).unwrap().1;
    let reply = send(
        &visitor.host,
        &[
            format!("GET {path} HTTP/1.1"),
            "Host: evil.example".to_owned(),
        ],
        "",
    )
    .await;
    assert!(reply.status == 421 && reply.header("set-cookie").is_none());
    assert!(asked.is_waiting());
}

#[tokio::test]
async fn without_the_cookie_nothing_is_shown_and_nothing_is_done() {
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &nothing())).await;
    let visitor = Visitor::enter(&asked.link).await;
    let csrf = visitor.hidden(asked.path(), "csrf").await;
    let name = visitor.cookie.split('=').next().unwrap();
    for cookie in [
        String::new(),
        format!("{name}=x"),
        format!("{name}="),
        "mcp-elicit=1".to_owned(),
    ] {
        let stranger = Visitor {
            host: visitor.host.clone(),
            base: visitor.base.clone(),
            cookie,
        };
        for path in PATHS {
            let reply = stranger.get(&path.replace("/q/{id}", asked.path())).await;
            assert_eq!(reply.status, 401, "{path}");
            assert!(
                !reply.body.contains("deploy-bot") && reply.header("set-cookie").is_none(),
                "{path}"
            );
        }
        for act in ACTS {
            let reply = stranger
                .post(&format!("{}/{act}", asked.path()), &format!("csrf={csrf}"))
                .await;
            assert_eq!(reply.status, 401, "{act}");
        }
    }
    for path in [
        "/login",
        "/login?key=",
        "/login?key=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    ] {
        let reply = visitor.get_as_is(path).await;
        assert!(
            reply.status == 401 && reply.header("set-cookie").is_none(),
            "{path}"
        );
    }
    // Outside the secret path even the cookie opens nothing, and nothing reveals that path.
    for path in PATHS {
        let reply = visitor
            .get_as_is(&path.replace("/q/{id}", asked.path()))
            .await;
        assert_eq!(reply.status, 401, "{path}");
        assert!(
            !reply.body.contains("deploy-bot") && !reply.body.contains(&visitor.base),
            "{path}"
        );
    }
    assert!(asked.is_waiting());
}

#[tokio::test]
async fn a_login_link_works_once() {
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &nothing())).await;
    let host = crate::http::host(&asked.link);
    let path = asked.link.split_once(&host).unwrap().1;
    let head = |method: &str| [format!("{method} {path} HTTP/1.1"), format!("Host: {host}")];
    // A program that follows the link before the person does not use it up.
    let looked = send(&host, &head("HEAD"), "").await;
    assert!(looked.status == 401 && looked.header("set-cookie").is_none());
    let first = send(&host, &head("GET"), "").await;
    assert!(first.status == 303 && first.header("set-cookie").is_some());
    let again = send(&host, &head("GET"), "").await;
    assert!(again.status == 401 && again.header("set-cookie").is_none());
    assert!(
        again.body.contains("signs one browser in, once"),
        "{}",
        again.body
    );
    assert!(
        again
            .body
            .contains(&format!("data-enter=\"{}\"", asked.path()))
    );
}

/// Starts a server at another port of the same host. Returns the first request that it gets.
async fn elsewhere() -> (String, tokio::sync::oneshot::Receiver<String>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let (tell, told) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(tokio::io::AsyncReadExt::read_u8(&mut stream).await.unwrap());
        }
        let page = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
        stream.write_all(page.as_bytes()).await.unwrap();
        tell.send(String::from_utf8(head).unwrap()).unwrap();
    });
    (at, told)
}

/// As when another site's window goes away between the two clicks of a double click.
#[tokio::test]
async fn a_press_on_a_page_that_has_only_just_come_up_does_nothing() {
    let setup = Setup::default();
    let Some((page, _asking, asked)) = at_question(setup, asks("Go?", &nothing())).await else {
        return;
    };
    let comes_up = "window.dispatchEvent(new Event('focus')); document.querySelector('[data-act=accept]').click();";
    page.run(comes_up).await;
    let said = page.text("[data-early]").await;
    assert!(said.contains("press again"), "{said}");
    assert!(asked.is_waiting());
    page.click("[data-act=accept]").await;
    assert_eq!(asked.content().await, json!({}));
    page.close().await;
}

/// As when another site wants quick clicks, or Ctrl+Enter again and again, and goes to a question in between.
#[tokio::test]
async fn quick_presses_that_began_elsewhere_do_nothing() {
    let setup = Setup::default();
    let Some((page, _asking, asked)) = at_question(setup, asks("Go?", &nothing())).await else {
        return;
    };
    let pressed = page
        .run(
            "return (async () => { window.dispatchEvent(new Event('focus')); let pressed = 0;
             for (; pressed < 12; pressed++) {
               if (pressed % 2) document.querySelector('[data-act=accept]').click();
               else document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true }));
               await new Promise((next) => setTimeout(next, 200));
             }
             return pressed; })()",
        )
        .await;
    assert_eq!(pressed, 12);
    assert!(asked.is_waiting());
    // Keys that hit nothing yet go on, too.
    page.type_keys("").await;
    page.run("window.dispatchEvent(new Event('focus'))").await;
    for _ in 0..10 {
        page.type_at_once("\u{e004}").await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let is_fresh = page.run("return 'fresh' in document.body.dataset").await;
    assert_eq!(is_fresh, true, "Tab, ten times in two seconds");
    page.click("[data-act=accept]").await;
    assert_eq!(asked.content().await, json!({}));
    page.close().await;
}

/// As when another site asks to press and hold, and opens a question under the press.
#[tokio::test]
async fn a_press_that_began_too_early_does_nothing_however_long_it_is_held() {
    let setup = Setup::default();
    let Some((page, _asking, asked)) = at_question(setup, asks("Go?", &nothing())).await else {
        return;
    };
    page.type_keys("").await;
    let focus = "document.querySelector('[data-act=accept]').focus(); window.dispatchEvent(new Event('focus'));";
    page.run(focus).await;
    page.hold_at_once(' ', Duration::from_millis(1_500)).await;
    let said = page.text("[data-early]").await;
    assert!(said.contains("press again"), "{said}");
    assert!(asked.is_waiting());
    page.click("[data-act=accept]").await;
    assert_eq!(asked.content().await, json!({}));
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_port_of_the_same_host_gets_no_session_from_a_click() {
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    let (at, told) = elsewhere().await;
    let mut asking = Asking::start().await;
    let asked = asking.ask(link(&format!("http://{at}/q/x"))).await;
    page.open(&asked.link).await;
    page.click("[data-open]").await;
    let head = told.await.unwrap().to_lowercase();
    assert!(head.starts_with("get /q/x "), "{head}");
    for leak in ["cookie:", "referer:", "mcp-elicit"] {
        assert!(!head.contains(leak), "{leak} {head}");
    }
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_without_a_secret_finds_the_way_in_for_a_browser_with_a_session() {
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &nothing())).await;
    let deep = format!("http://{}{}", crate::http::host(&asked.link), asked.path());
    page.open(&deep).await;
    page.shows("not signed in").await;
    page.open(&asked.link).await;
    page.at("form[data-question]").await;
    page.open(&deep).await;
    page.at("form[data-question]").await;
    page.close().await;
}

#[tokio::test]
async fn a_form_on_another_site_does_nothing() {
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &nothing())).await;
    let visitor = Visitor::enter(&asked.link).await;
    let csrf = visitor.hidden(asked.path(), "csrf").await;
    for act in ACTS {
        let path = format!("{}/{act}", asked.path());
        for origin in [
            "Origin: http://evil.example",
            "Origin: null",
            "Origin: http://127.0.0.1:1",
            "X: no origin at all",
        ] {
            let mut head = visitor.post_head(&path);
            origin.clone_into(&mut head[3]);
            let reply = send(&visitor.host, &head, &format!("csrf={csrf}")).await;
            assert_eq!(reply.status, 403, "{act} {origin}");
        }
    }
    assert!(asked.is_waiting());
}

#[tokio::test]
async fn a_form_without_its_token_does_nothing() {
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &nothing())).await;
    let other = asking.ask(asks("Or this?", &nothing())).await;
    let visitor = Visitor::enter(&asked.link).await;
    let foreign = visitor.hidden(other.path(), "csrf").await;
    for act in ACTS {
        for body in [
            "x=1".to_owned(),
            "csrf=".to_owned(),
            "csrf=AAAA".to_owned(),
            format!("csrf={foreign}"),
        ] {
            let reply = visitor
                .post(&format!("{}/{act}", asked.path()), &body)
                .await;
            assert_eq!(reply.status, 403, "{act} {body}");
        }
    }
    assert!(asked.is_waiting() && other.is_waiting());
}

#[tokio::test]
async fn a_guessed_name_says_nothing() {
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &nothing())).await;
    let visitor = Visitor::enter(&asked.link).await;
    let id = asked.path().strip_prefix("/q/").unwrap();
    assert_eq!(id.len(), 43, "256 bits");
    let nearly = format!("/q/{}A", &id[..id.len() - 1]);
    let mut told = Vec::new();
    for path in [
        nearly.as_str(),
        "/q/1",
        "/q/..%2f..%2fetc",
        "/q/%00",
        "/q/<script>",
        &format!("/q/{}", "a".repeat(5000)),
    ] {
        let path = if path == asked.path() { "/q/0" } else { path };
        let reply = visitor
            .get(&path.replace('<', "%3C").replace('>', "%3E"))
            .await;
        assert_eq!(reply.status, 404, "{path}");
        told.push(reply.body);
    }
    assert!(
        told.windows(2).all(|pair| pair[0] == pair[1]),
        "every wrong name is answered alike"
    );
}

#[tokio::test]
async fn too_much_and_the_wrong_kind_are_refused() {
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &short())).await;
    let visitor = Visitor::enter(&asked.link).await;
    let csrf = visitor.hidden(asked.path(), "csrf").await;
    let path = format!("{}/live", asked.path());
    let long = format!("csrf={csrf}&f0={}", "a".repeat(2 * 1024 * 1024));
    assert_eq!(visitor.post(&path, &long).await.status, 413);
    let mut head = visitor.post_head(&path);
    "Content-Type: application/json".clone_into(&mut head[4]);
    assert_eq!(
        send(&visitor.host, &head, &format!("csrf={csrf}"))
            .await
            .status,
        415
    );
    let mut head = visitor.post_head(&path);
    head.push(format!("X-Long: {}", "a".repeat(200 * 1024)));
    assert_eq!(
        send(&visitor.host, &head, &format!("csrf={csrf}"))
            .await
            .status,
        431
    );
    for method in ["PUT", "DELETE", "PATCH"] {
        let mut head = visitor.post_head(&path);
        head[0] = format!("{method} {}{path} HTTP/1.1", visitor.base);
        assert_eq!(
            send(&visitor.host, &head, &format!("csrf={csrf}"))
                .await
                .status,
            405
        );
    }
    assert!(asked.is_waiting());
}

#[tokio::test]
async fn clients_that_never_finish_keep_nobody_out() {
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &nothing())).await;
    let visitor = Visitor::enter(&asked.link).await;
    let mut slow = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(&visitor.host).await.unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: 127")
            .await
            .unwrap();
        slow.push(stream);
    }
    assert_eq!(visitor.get(asked.path()).await.status, 200);
}

#[tokio::test]
async fn every_response_carries_the_rules_and_nothing_from_outside() {
    let mut asking = Asking::start().await;
    let form = asking.ask(asks("Go <b>on</b>?", &every_kind())).await;
    let url = asking.ask(link("https://accounts.example.org/x")).await;
    let visitor = Visitor::enter(&form.link).await;
    for path in [
        "/",
        form.path(),
        &format!("{}?check", form.path()),
        url.path(),
        "/state",
        "/login",
        "/nowhere",
        "/assets/style.css",
        "/assets/page.js",
        "/assets/none",
    ] {
        let reply = visitor.get(path).await;
        let policy = reply.header("content-security-policy").unwrap_or_default();
        assert!(
            policy.starts_with("default-src 'none'")
                && !policy.contains("unsafe")
                && !policy.contains("http"),
            "{path}"
        );
        assert_eq!(reply.header("x-frame-options"), Some("DENY"), "{path}");
        assert_eq!(
            reply.header("referrer-policy"),
            Some("same-origin"),
            "{path}"
        );
        assert_eq!(
            reply.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert!(
            reply
                .header("cache-control")
                .is_some_and(|cache| cache == "no-store" || path.starts_with("/assets/")),
            "{path}"
        );
        assert!(
            reply.header("access-control-allow-origin").is_none(),
            "{path}"
        );
        if reply
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/html"))
        {
            for inline in [
                "<style",
                " style=",
                " onclick",
                " onload",
                " onerror",
                "javascript:",
                "<script>",
                "src=\"http",
                "src=\"//",
            ] {
                assert!(!reply.body.contains(inline), "{path}: {inline}");
            }
        }
    }
}

/// Collects every log line, at every level.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .expect("nobody panics while logging")
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_a_person_typed_is_in_no_log_and_no_address() {
    const TYPED: &str = "xylophone";
    let logged = Logged::default();
    let writer = logged.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing_subscriber::util::SubscriberInitExt::set_default(subscriber);

    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &short())).await;
    let visitor = Visitor::enter(&asked.link).await;
    let csrf = visitor.hidden(asked.path(), "csrf").await;
    let mut addresses = Vec::new();
    for (act, more) in [
        ("live", ""),
        ("step", "&step=f1:up"),
        ("review", "&f1=99"),
        ("review", "&f1=7"),
    ] {
        let body = format!("csrf={csrf}&f0={TYPED}{more}");
        let reply = visitor
            .post(&format!("{}/{act}", asked.path()), &body)
            .await;
        addresses.extend(reply.header("location").map(str::to_owned));
    }
    let seen = visitor
        .hidden(&format!("{}/review", asked.path()), "seen")
        .await;
    let reply = visitor
        .post(
            &format!("{}/accept", asked.path()),
            &format!("csrf={csrf}&seen={seen}"),
        )
        .await;
    addresses.extend(reply.header("location").map(str::to_owned));
    let after = visitor.get(asked.path()).await.body;
    assert_eq!(asked.content().await["name"], TYPED);
    assert!(
        !after.contains(TYPED),
        "the page of the end does not repeat it"
    );
    assert_eq!(addresses.len(), 4);
    assert!(addresses.iter().all(|address| !address.contains(TYPED)));
    let logged = String::from_utf8_lossy(&logged.0.lock().unwrap()).into_owned();
    assert!(!logged.contains(TYPED));
}

#[tokio::test]
async fn ten_thousand_questions_are_shown_in_part_and_found_by_searching() {
    let mut asking = Asking::start().await;
    let mut asked = Vec::new();
    for n in 0..10_000 {
        asked.push(
            asking
                .ask(asks(&format!("Question number {n}."), &nothing()))
                .await,
        );
    }
    let visitor = Visitor::enter(&asking.browser.login_link().unwrap()).await;
    let page = visitor.get("/").await;
    assert_eq!(page.body.matches("class=\"rowlink\"").count(), 200);
    assert!(page.body.contains("9800 more are waiting") && page.body.len() < 400_000);
    assert!(
        page.body
            .contains("/?rows=400#waiting-101\">Show more questions</a>")
    );
    // The first and the last questions asked.
    for (number, is_listed) in [
        (0, true),
        (99, true),
        (100, false),
        (9899, false),
        (9900, true),
        (9999, true),
    ] {
        assert_eq!(
            page.body.contains(asked[number].path()),
            is_listed,
            "{number}"
        );
    }
    let longer = visitor.get("/?rows=400").await.body;
    assert_eq!(longer.matches("class=\"rowlink\"").count(), 400);
    assert!(longer.contains("<li id=\"waiting-101\""));
    let longest = visitor.get("/?rows=99999999").await.body;
    assert_eq!(longest.matches("class=\"rowlink\"").count(), 2_000);
    assert!(!longest.contains("Show more questions"));
    let found = visitor.get("/?find=NUMBER+9999").await.body;
    assert_eq!(found.matches("class=\"rowlink\"").count(), 1);
    assert!(found.contains(asked[9999].path()));
    assert_eq!(visitor.get(asked[9999].path()).await.status, 200);
}

#[tokio::test]
async fn no_part_of_a_question_is_hidden_because_it_is_long() {
    let mut asking = Asking::start().await;
    let long = |end: &str| format!("{}{end}", "x ".repeat(5_000));
    let schema = json!({"type": "object", "properties": {
        "go": {"type": "boolean", "title": long("LABEL"), "description": long("DESCRIPTION")},
        "one": {"type": "string", "enum": [long("OPTION"), "none"]},
    }});
    // The longest message that a gateway accepts.
    let message = format!("{}MESSAGE", "m".repeat((64 << 10) - "MESSAGE".len()));
    let asked = asking.ask(asks(&message, &schema)).await;
    let visitor = Visitor::enter(&asked.link).await;
    let page = visitor.get(asked.path()).await.body;
    for end in ["MESSAGE", "LABEL", "DESCRIPTION", "OPTION"] {
        assert!(page.contains(end), "{end}");
    }
    assert!(!page.contains("more characters"));
}

#[tokio::test]
async fn a_message_of_ten_megabytes_is_shown_in_part() {
    let mut asking = Asking::start().await;
    let asked = asking
        .ask(asks(&"<b>*x*\n".repeat(10 * 1024 * 1024 / 7), &nothing()))
        .await;
    let visitor = Visitor::enter(&asked.link).await;
    let page = visitor.get(asked.path()).await;
    assert_eq!(page.status, 200);
    assert!(page.body.len() < 1_000_000 && page.body.contains("more characters"));
    assert_eq!(visitor.get("/").await.status, 200);
}
