//! `demo --team`: an issuer, a gateway with rules, two servers, and two people who sign in and agree, all with real programs.
#![cfg(feature = "full")]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[path = "raw/browser.rs"]
mod browser;

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use browser::{Browser, Page, client};
#[cfg(unix)]
use mcp_elicit_testkit::pty::{self, TestTerminal};

/// The time that the demo may take for anything.
const WITHIN: Duration = Duration::from_secs(60);

/// Agrees to exactly what the page shows.
async fn confirm(browser: &mut Browser, question: &str) -> Page {
    let page = browser.get(question).await;
    let digest = page.after("name=\"digest\" value=\"");
    let form = format!("csrf={}&digest={digest}", page.csrf());
    browser.post(&format!("{question}/confirm"), &form).await
}

/// The running demo, which ends with the test.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the demo and returns the address of its inbox.
fn start() -> (Demo, String) {
    let program = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .args(["demo", "--team"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut demo = Demo(program.unwrap());
    let mut lines = BufReader::new(demo.0.stderr.take().unwrap()).lines();
    let line = lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.contains("Answer here:"))
        .unwrap();
    let at = line.find("http://").unwrap();
    let inbox = line[at..].trim_end_matches("\u{1b}[0m").to_owned();
    // The rest of its output is read, so that it never waits for a reader.
    std::thread::spawn(move || lines.for_each(drop));
    (demo, inbox)
}

#[tokio::test]
async fn two_people_answer_a_server_and_approve_a_call_whose_argument_one_of_them_changes() {
    let (mut demo, inbox) = tokio::task::spawn_blocking(start).await.unwrap();
    let mut ada = Browser::signed_in(client(), &inbox, 0).await;
    let mut bob = Browser::signed_in(client(), &inbox, 1).await;

    let deploy = ada.asked(&inbox, "").await;
    let page = ada.fill(&deploy, "f0=0&f1=first", "first").await;
    assert!(
        page.text.contains("You have agreed. 1 more must agree."),
        "{}",
        page.text
    );
    let again = ada.get(&deploy).await;
    assert!(
        !again.text.contains("name=\"digest\""),
        "nobody agrees twice: {}",
        again.text
    );
    let page = confirm(&mut bob, &deploy).await;
    assert!(page.text.contains("by Ada and Bob"), "{}", page.text);

    let backups = ada.asked(&inbox, &deploy).await;
    let page = ada.get(&backups).await;
    for words in ["is about to be called", "delete_backup", "2026-11-01"] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    // The argument `archive` becomes true.
    let before = "changed from <del dir=\"auto\">false</del>";
    ada.fill(&backups, "f0=0", before).await;
    let page = bob.get(&backups).await;
    for words in [before, "Ada approved with archive changed"] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    let page = confirm(&mut bob, &backups).await;
    assert!(page.text.contains("The call was approved"), "{}", page.text);

    let ended = tokio::task::spawn_blocking(move || {
        let mut said = String::new();
        let mut stdout = demo.0.stdout.take().unwrap();
        stdout.read_to_string(&mut said).unwrap();
        (demo.0.wait().unwrap(), said)
    });
    let (status, said) = tokio::time::timeout(WITHIN, ended).await.unwrap().unwrap();
    assert!(status.success(), "{said}");
    assert!(said.contains("Deployed to staging"), "{said}");
    assert!(
        said.contains("archived and deleted the backup of 2026-11-01"),
        "{said}"
    );
}

/// The keys of Ctrl-C.
#[cfg(unix)]
const CTRL_C: &str = "\x03";

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_the_demo_stays_until_it_is_ended() {
    let mut command = pty::command(env!("CARGO_BIN_EXE_mcp-elicit"));
    command.args(["demo", "--team"]);
    let mut terminal = TestTerminal::start(command, 120, 50);
    let seen = terminal.wait_for("Sign in as Ada there");
    let (_, rest) = seen.split_once("Answer here: ").unwrap();
    let inbox = rest.split_whitespace().next().unwrap().to_owned();
    let mut ada = Browser::signed_in(client(), &inbox, 0).await;
    let mut bob = Browser::signed_in(client(), &inbox, 1).await;
    let deploy = ada.asked(&inbox, "").await;
    ada.fill(&deploy, "f0=0&f1=first", "first").await;
    confirm(&mut bob, &deploy).await;
    let backups = ada.asked(&inbox, &deploy).await;
    ada.fill(&backups, "f0=1", "false").await;
    confirm(&mut bob, &backups).await;
    let seen = terminal.wait_for("Ctrl-C ends the demo.");
    assert!(seen.contains("deleted the backup of 2026-11-01"), "{seen}");
    for page in ["", "account", "audit"] {
        let page = ada.get(&format!("{inbox}{page}")).await;
        assert_eq!(page.status, 200, "{}", page.text);
    }
    terminal.press(CTRL_C);
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn a_configuration_that_is_kept_stays_after_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let demo = || {
        let mut demo = Command::new("sh");
        // Its files are for their owner only, whatever the mask.
        demo.args(["-c", "umask 000; exec \"$0\" demo --team --keep \"$1\""]);
        demo.arg(env!("CARGO_BIN_EXE_mcp-elicit")).arg(&kept);
        demo.stdin(Stdio::null()).stdout(Stdio::null());
        demo.stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut first = Demo(demo());
    let mut lines = BufReader::new(first.0.stderr.take().unwrap()).lines();
    lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.contains("Answer here:"))
        .unwrap();
    let stop = Command::new("kill")
        .args(["-INT", &first.0.id().to_string()])
        .status();
    assert!(stop.unwrap().success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let file = kept.join("gateway.toml");
    for path in [&kept, &file, &kept.join("inbox.secret")] {
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
    let path = file.display().to_string();
    assert!(
        rest.iter()
            .any(|line| line.contains("configuration is in") && line.contains(&path)),
        "{rest:?}"
    );
    assert_eq!(first.0.wait().unwrap().code(), Some(130));
    let checked = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .args(["gateway", "--check", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
    // Existing files are not overwritten.
    let mut second = Demo(demo());
    assert_eq!(second.0.wait().unwrap().code(), Some(2));
}

#[tokio::test]
async fn the_issuer_alone_serves_a_gateway_of_ones_own_and_keeps_its_secret() {
    let folder = tempfile::tempdir().unwrap();
    let mut secrets = Vec::new();
    for _ in 0..2 {
        let mut issuer = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"));
        issuer.args(["demo", "--issuer", "127.0.0.1:0", "--keep"]);
        issuer.arg(folder.path()).stdin(Stdio::null());
        issuer.args(["--inbox-url", "http://127.0.0.1:7879/"]);
        issuer.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut issuer = Demo(issuer.spawn().unwrap());
        let lines = BufReader::new(issuer.0.stdout.take().unwrap()).lines();
        let login: Vec<String> = lines.take(5).map(Result::unwrap).collect();
        let [table, mode, issuer_line, client, secret] = &login[..] else {
            panic!("{login:?}");
        };
        assert_eq!(
            [&**table, mode, client],
            ["[login]", "mode = \"oidc\"", "client-id = \"inbox\""]
        );
        let quoted = |line: &str| line.split('"').nth(1).unwrap().to_owned();
        let at = quoted(issuer_line);
        let discovery = format!("{at}/.well-known/openid-configuration");
        let found = browser::client()
            .build()
            .unwrap()
            .get(discovery)
            .send()
            .await
            .unwrap();
        let found = found.text().await.unwrap();
        assert!(found.contains(&format!("\"issuer\":\"{at}\"")), "{found}");
        secrets.push(std::fs::read_to_string(quoted(secret)).unwrap());
        let stop = Command::new("kill")
            .args(["-INT", &issuer.0.id().to_string()])
            .status();
        assert!(stop.unwrap().success());
        assert_eq!(issuer.0.wait().unwrap().code(), Some(130));
        let mut said = String::new();
        let mut stderr = issuer.0.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        assert!(
            said.contains("\"http://127.0.0.1:7879\"") && !said.contains("error"),
            "{said}"
        );
    }
    assert_eq!(secrets[0], secrets[1]);
    // Any program that reaches it is let in.
    let open = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .args(["demo", "--issuer", "0.0.0.0:0", "--keep"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert_eq!(open.status.code(), Some(2), "{open:?}");
}
