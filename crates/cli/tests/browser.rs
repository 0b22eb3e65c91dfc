//! `call --browser` and `demo --browser`: a person answers on a page in a real Chromium, and the call continues.
#![cfg(unix)]

use std::process::Stdio;
use std::time::Duration;

use mcp_elicit_testkit::chromium::{Chromium, Setup};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

const ME: &str = env!("CARGO_BIN_EXE_mcp-elicit");

/// The program while it waits for the person.
struct Asking {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
    heard: Vec<String>,
}

/// The output, kept for the end.
struct Ended {
    code: Option<i32>,
    events: Vec<Value>,
    stdout: String,
    stderr: String,
}

impl Asking {
    /// Starts the program without a way to open a browser, so that the test opens the link.
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(ME)
            .args(args)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts");
        let stderr = child.stderr.take().expect("stderr is piped");
        Self {
            child,
            said: BufReader::new(stderr).lines(),
            heard: Vec::new(),
        }
    }

    fn call(args: &[&str]) -> Self {
        Self::start(
            &[
                &["call"],
                args,
                &["--browser", "--json", "--", ME, "demo-server"],
            ]
            .concat(),
        )
    }

    /// A call of a server that asks twice.
    fn twice() -> Self {
        Self::start(&[
            "call",
            "go",
            "--browser",
            "--json",
            "--",
            "/bin/sh",
            "-c",
            TWICE,
        ])
    }

    /// The link to the next question.
    async fn link(&mut self) -> String {
        while let Some(line) = self.said.next_line().await.expect("it can be read") {
            if let Some((_, link)) = line.split_once("answer in the browser: ") {
                return link.to_owned();
            }
            self.heard.push(line);
        }
        panic!("it ended without a question: {:?}", self.heard);
    }

    async fn ended(mut self) -> Ended {
        let mut stdout = String::new();
        let mut out = self.child.stdout.take().expect("stdout is piped");
        out.read_to_string(&mut stdout).await.expect("it is text");
        while let Some(line) = self.said.next_line().await.expect("it can be read") {
            self.heard.push(line);
        }
        let status = self.child.wait().await.expect("it ends");
        Ended {
            code: status.code(),
            events: stdout
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect(),
            stdout,
            stderr: self.heard.join("\n"),
        }
    }
}

impl Ended {
    fn answers(&self) -> Vec<&Value> {
        self.events
            .iter()
            .filter(|event| event["event"] == "answered")
            .collect()
    }

    fn text(&self) -> &str {
        let result = self.events.last().expect("there is an event");
        result["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("no result in {}\n{}", self.stdout, self.stderr))
    }
}

/// Reviews and sends.
async fn send(page: &Chromium) {
    page.click("[data-act=review]").await;
    page.at("dl.review").await;
    page.click("[data-act=accept]").await;
}

#[tokio::test]
async fn an_answer_on_the_page_lets_the_call_go_on_in_every_revision() {
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let mut asking = Asking::call(&["deploy", "--protocol", revision]);
        page.open(&asking.link().await).await;
        page.shows("Which environment should I deploy to?").await;
        page.shows("asks · tool deploy").await;
        page.click("[name=f0][value='1']").await;
        page.fill("#f1", "release 7").await;
        send(&page).await;
        page.shows("The answer was handed to").await;
        // Production asks again, in its own tab.
        page.open(&asking.link().await).await;
        page.shows("Deploy to production?").await;
        // A yes is one press.
        page.click("[data-act=yes]").await;
        // The pages end with the process, but not before this one was shown, with its style.
        page.shows("You can close this page").await;
        let style = "return getComputedStyle(document.querySelector('.notice')).display";
        assert_ne!(page.run(style).await, json!("block"), "no style came");
        // The program has ended: no link leads to a page that cannot be reached.
        page.until("return ![...document.querySelectorAll('a[href]:not(.skip)')].some((link) => link.offsetParent)")
            .await;
        let ended = asking.ended().await;
        assert_eq!(ended.code, Some(0), "{revision}: {}", ended.stderr);
        assert_eq!(
            ended.answers()[0],
            &json!({"event": "answered", "action": "accept",
                "content": {"environment": "production", "note": "release 7"}})
        );
        assert_eq!(ended.text(), "Deployed to production (release 7)");
    }
    let mut demo = Asking::start(&["demo", "--browser"]);
    page.open(&demo.link().await).await;
    page.click("[name=f0][value='0']").await;
    send(&page).await;
    page.shows("The answer was handed to").await;
    let ended = demo.ended().await;
    assert_eq!(ended.stdout, "Deployed to staging\n");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    page.close().await;
}

#[tokio::test]
async fn a_link_is_visited_from_the_page() {
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    let mut asking = Asking::call(&["connect-account", "--protocol", "2025-11-25"]);
    page.open(&asking.link().await).await;
    page.shows("accounts.example.com").await;
    page.click("[data-act=accept]").await;
    page.shows("agreed to open the page").await;
    let ended = asking.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(
        ended.answers(),
        [&json!({"event": "answered", "action": "accept"})]
    );
    page.close().await;
}

#[tokio::test]
async fn a_no_is_a_no_and_running_out_of_time_is_none() {
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    for (act, action, told) in [
        ("decline", "decline", "was told no"),
        ("cancel", "cancel", "no choice was made"),
    ] {
        let mut asking = Asking::call(&["deploy"]);
        page.open(&asking.link().await).await;
        page.click(&format!("[data-act={act}]")).await;
        page.shows(told).await;
        let ended = asking.ended().await;
        assert_eq!(
            ended.answers(),
            [&json!({"event": "answered", "action": action})]
        );
        assert_eq!(ended.code, Some(5), "{}", ended.stderr);
    }
    for revision in ["2025-11-25", "2026-07-28"] {
        let mut asking = Asking::call(&["deploy", "--timeout", "4", "--protocol", revision]);
        page.open(&asking.link().await).await;
        page.at("[data-left]").await;
        page.shows("Nothing was sent").await;
        let ended = asking.ended().await;
        assert!(ended.answers().is_empty(), "{}", ended.stdout);
        assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    }
    page.close().await;
}

/// A server that asks twice within one call, one question after the other.
const TWICE: &str = r#"read a; echo '{"jsonrpc":"2.0","id":1000000000,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}'
    read c; read d
    for q in one two; do
      echo '{"jsonrpc":"2.0","id":"'$q'","method":"elicitation/create","params":{"message":"'$q'?","requestedSchema":{"type":"object","properties":{}}}}'
      read r
    done
    echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"over"}]}}'
    read end"#;

#[tokio::test]
async fn a_no_for_good_is_kept_for_the_rest_of_the_call() {
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    let mut asking = Asking::twice();
    page.open(&asking.link().await).await;
    page.shows("one?").await;
    page.click(".always summary").await;
    page.click("[data-act=always]").await;
    page.shows("was told no").await;
    let ended = asking.ended().await;
    assert_eq!(
        ended.answers(),
        [&json!({"event": "answered", "action": "decline"}); 2],
        "{}",
        ended.stderr
    );
    assert!(
        !ended.stderr.contains("answer in the browser"),
        "it was asked again"
    );
    assert_eq!(ended.text(), "over");
    page.close().await;
}

#[tokio::test]
async fn of_two_tabs_one_answers_and_a_question_that_is_taken_back_says_so() {
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    let mut asking = Asking::twice();
    let link = asking.link().await;
    page.open(&link).await;
    page.at("[data-act=accept]").await;
    let first = page.client.window().await.expect("a window");
    let second = page.client.new_window(true).await.expect("another tab");
    let second = second.handle;
    page.client
        .switch_to_window(second.clone())
        .await
        .expect("it is there");
    page.open(&link).await;
    page.click("[data-act=accept]").await;
    page.shows("The answer was handed to").await;
    let next = asking.link().await;
    page.client
        .switch_to_window(first)
        .await
        .expect("it is there");
    page.shows("Answered").await;
    page.open(&next).await;
    page.click("[data-act=decline]").await;
    page.shows("was told no").await;
    let ended = asking.ended().await;
    let actions: Vec<_> = ended
        .answers()
        .iter()
        .map(|answer| answer["action"].clone())
        .collect();
    assert_eq!(actions, ["accept", "decline"]);

    let mut asking = Asking::call(&["deploy"]);
    page.open(&asking.link().await).await;
    page.at("[data-act=decline]").await;
    let process = asking.child.id().expect("it runs").to_string();
    let sent = std::process::Command::new("kill")
        .args(["-TERM", &process])
        .status();
    assert!(sent.expect("kill runs").success());
    page.shows("Withdrawn").await;
    let ended = tokio::time::timeout(Duration::from_secs(60), asking.ended())
        .await
        .expect("it ends");
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(ended.answers().is_empty());

    // A killed process cannot tell the page, but the page notices.
    let mut asking = Asking::call(&["deploy"]);
    page.open(&asking.link().await).await;
    page.at("[data-act=decline]").await;
    asking.child.kill().await.expect("it ends");
    page.shows("Nothing that you do on this page arrives").await;
    assert_eq!(page.count("button[type=submit]:not([disabled])").await, 0);
    if let Some(folder) = std::env::var_os("MCP_ELICIT_SHOTS") {
        let file = std::path::PathBuf::from(folder).join("gone.png");
        page.picture(&file).await;
    }
    page.close().await;
}
