//! The example, as people run it.

use std::process::{Child, Command, Stdio};

use mcp_elicit_core::wire::Revision;
use mcp_elicit_testkit::peers::{self, free_port, wait_for_port};

use crate::http_browser::HttpBrowser;
use crate::rig::{call_at, said};

/// A child that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _already_gone = self.0.kill();
        let _already_gone = self.0.wait();
    }
}

/// Starts the example. Cargo builds the examples of a package before it runs its tests, next to them.
fn start(issuer: &str, port: u16) -> Running {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples/sign_in");
    let child = Command::new(program)
        .args(["--issuer", issuer, "--client", "connect"])
        .args(["--scope", "calendar.read"])
        .args(["--listen", &format!("127.0.0.1:{port}")])
        .env("CLIENT_SECRET", "connect-secret")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_port(port);
    Running(child)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_signs_in_on_both_eras() {
    let port = free_port();
    let at = format!("http://127.0.0.1:{port}");
    let back = format!("{at}/connect/back/Account");
    let redirects = [back.clone()];
    let starting = tokio::task::spawn_blocking(move || peers::openid_provider(&redirects));
    let Some(provider) = starting.await.unwrap() else {
        return;
    };
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let _running = start(provider.url(), port);
        let (call, link) = call_at(&at, "anybody", revision, "whoami").await;
        let mut you = HttpBrowser::new();
        let page = you.get(&link).await;
        assert!(page.body.contains("asks you to connect"), "{page:?}");
        let page = you.get(&format!("{link}/go")).await;
        let answer = you.agree(page, "ada", &back).await;
        let page = you.get(answer.as_str()).await;
        assert_eq!(page.status, 200, "{page:?}");
        assert_eq!(
            said(&call.await.unwrap().unwrap()),
            ("ada, who allowed openid calendar.read".into(), false)
        );
    }
}
