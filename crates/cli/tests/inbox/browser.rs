//! The inbox in a real Chromium, over a real gateway. Without `chromedriver` and a Chromium, each test reports a skip,
//! or fails if `MCP_ELICIT_MUST_BROWSE` is set.

use std::path::Path;

use mcp_elicit_testkit::chromium::accessible::{AxeReport, SETUPS};
use mcp_elicit_testkit::chromium::{Chromium, Setup};
use serde_json::{Value, json};

use crate::gateway::{Gateway, NO_LIMITS, login_link};
use crate::opener::{opened_link, opener};
use crate::raw::{DEMO_SERVER, inbox, text};

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const DOWN: &str = "\u{e015}";

fn gateway(state: &Path, more: &[&str]) -> Gateway {
    let mut all = vec!["--hold", "3600", "--name", "deploy"];
    all.extend(NO_LIMITS);
    all.extend(more);
    let mut gateway = Gateway::start(state, &all, &DEMO_SERVER);
    gateway.initialize();
    gateway
}

/// Asks through a tool of the demo server. Returns the question's id.
fn ask(gateway: &mut Gateway, call: u64, tool: &str) -> String {
    let known: Vec<Value> = gateway.waiting();
    gateway.call(call, tool, &json!({"build": 4812, "branch": "main"}));
    let now = gateway.wait_for(known.len() + 1);
    let new = now
        .iter()
        .find(|one| known.iter().all(|old| old["id"] != one["id"]));
    new.unwrap()["id"].as_str().unwrap().to_owned()
}

fn rows(count: usize) -> String {
    format!(
        "return document.querySelectorAll('[aria-labelledby=waiting] [data-row]').length === {count}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_answers_with_the_keyboard_alone() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = gateway(state.path(), &[]);
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    page.open(&gateway.login).await;
    page.shows("Nothing is waiting").await;
    assert!(!page.title().await.starts_with('('));

    // The list and the title update themselves.
    let deploy = ask(&mut gateway, 2, "deploy");
    page.until(&rows(1)).await;
    ask(&mut gateway, 3, "connect-account");
    page.until(&rows(2)).await;
    page.until("return document.title.startsWith('(2)')").await;
    page.shows("for deploy").await;

    // Search, then to the question and through it without a mouse.
    page.press("/").await;
    page.until("return document.activeElement.type === 'search'")
        .await;
    page.press("environment").await;
    page.until("return [...document.querySelectorAll('[aria-labelledby=waiting] [data-row]')].filter(r => r.checkVisibility()).length === 1").await;
    page.press(DOWN).await;
    page.until("return !!document.activeElement.closest('[data-row]')")
        .await;
    page.press(ENTER).await;
    page.at("form[data-question]").await;
    assert!(page.path().await.ends_with(&format!("/q/{deploy}")));
    page.tab_to("details.call > summary").await;
    page.press(ENTER).await;
    page.shows("4812").await;
    for _ in 0..40 {
        if page
            .run("return document.activeElement.matches('[type=radio]')")
            .await
            == json!(true)
        {
            break;
        }
        page.press(TAB).await;
    }
    page.press(" ").await;
    page.until("return document.querySelectorAll('[type=radio]:checked').length === 1")
        .await;
    page.press(TAB).await;
    page.press("from the keyboard").await;
    page.press(&format!("\u{e009}{ENTER}")).await;
    page.at("dl.review").await;
    page.shows("from the keyboard").await;
    page.press(&format!("\u{e009}{ENTER}")).await;
    page.at(".notice").await;
    let done = gateway.result(2);
    assert!(
        text(&done).contains("Deployed to staging (from the keyboard)"),
        "{done}"
    );
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_of_a_call_leads_to_its_question_without_a_terminal() {
    let (state, bin) = (tempfile::tempdir().unwrap(), opener());
    let more = ["--hold", "3600", "--name", "deploy"];
    let mut gateway = Gateway::on_desktop(state.path(), &more, &DEMO_SERVER, bin.path());
    gateway.initialize();
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    let id = ask(&mut gateway, 2, "deploy");
    page.open(&format!("http://{}/q/{id}", gateway.inbox)).await;
    page.shows("not signed in").await;
    page.tab_to("form[action$='/login'] button").await;
    page.press(ENTER).await;
    page.shows("Go on in the new page").await;
    // The opener of a desktop starts the person's browser with the page; here, the test opens it.
    page.open(&opened_link(bin.path())).await;
    page.at("form[data-question]").await;
    assert!(page.path().await.ends_with(&format!("/q/{id}")));
    // The first page is of use again.
    page.open(&format!("http://{}/q/{id}", gateway.inbox)).await;
    page.at("form[data-question]").await;
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sign_in_page_of_a_desktop_is_accessible() {
    let Some(mut looks) = AxeReport::new() else {
        return;
    };
    let (state, bin) = (tempfile::tempdir().unwrap(), opener());
    let gateway = Gateway::on_desktop(state.path(), &[], &DEMO_SERVER, bin.path());
    // The second and the third time come too soon after the first.
    for (name, setup) in SETUPS {
        let Some(page) = Chromium::start(setup).await else {
            return;
        };
        page.open(&format!("http://{}/", gateway.inbox)).await;
        looks.at(&page, &format!("sign-in-{name}")).await;
        page.click("form[action$='/login'] button").await;
        page.at("a[href='/']").await;
        looks.at(&page, &format!("sign-in-opened-{name}")).await;
        page.close().await;
    }
    looks.all_well();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_a_deep_link_and_every_act() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = gateway(state.path(), &[]);
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    page.open(&gateway.login).await;
    let id = ask(&mut gateway, 2, "deploy");
    let link = format!("http://{}/q/{id}", gateway.inbox);
    page.open(&link).await;
    page.at("form[data-question]").await;
    let first = page.client.window().await.unwrap();
    let second = page.client.new_window(true).await.unwrap().handle;
    page.client.switch_to_window(second).await.unwrap();
    page.open(&link).await;
    page.click("[data-act=decline]").await;
    page.at(".notice").await;
    let done = gateway.result(2);
    assert!(!text(&done).contains("Deployed"), "{done}");
    // The other tab updates itself.
    page.client.switch_to_window(first).await.unwrap();
    page.shows("Declined").await;

    let id = ask(&mut gateway, 3, "deploy");
    page.open(&format!("http://{}/q/{id}", gateway.inbox)).await;
    page.click("[data-act=cancel]").await;
    page.at(".notice").await;
    gateway.result(3);
    let (_, ended) = inbox(state.path(), &["list", "--ended"]);
    let phases: Vec<&Value> = ended.iter().map(|row| &row["phase"]).collect();
    assert_eq!(phases, ["cancelled", "declined"]);

    // Answered in a terminal while the page is open.
    let id = ask(&mut gateway, 4, "connect-account");
    page.open(&format!("http://{}/q/{id}", gateway.inbox)).await;
    page.shows("accounts.example.com").await;
    assert!(inbox(state.path(), &["accept", &id[..8]]).0);
    page.shows("on the command line").await;
    gateway.result(4);
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_outlives_the_gateway() {
    let state = tempfile::tempdir().unwrap();
    let mut first = gateway(state.path(), &[]);
    let inbox = first.inbox.clone();
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    page.open(&first.login).await;
    let id = ask(&mut first, 2, "deploy");
    page.until(&rows(1)).await;
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    drop(first);

    let mut second = gateway(state.path(), &["--inbox", &inbox]);
    // The same page continues: it is still signed in, and shows new questions.
    let other = ask(&mut second, 2, "connect-account");
    page.until(&rows(2)).await;
    // While two calls are open, a server on stdio does not say for which call it asks.
    assert_eq!(second.answer(&other, &json!({"action": "decline"})), 200);
    second.result(2);
    page.until(&rows(1)).await;
    page.click(&format!("[data-row='{id}'] a")).await;
    page.at("form[data-question]").await;
    page.client
        .execute("document.querySelector('[type=radio]').click()", Vec::new())
        .await
        .unwrap();
    page.click("[data-act=review]").await;
    page.click("[data-act=accept]").await;
    page.at(".notice").await;
    // The call that asked ended with the first gateway; made again, it finds the answer.
    second.call(3, "deploy", &json!({"build": 4812, "branch": "main"}));
    let done = second.result(3);
    assert!(text(&done).contains("Deployed to staging"), "{done}");
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_script_everything_can_be_answered() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = gateway(state.path(), &[]);
    let setup = Setup {
        without_script: true,
        ..Setup::default()
    };
    let Some(page) = Chromium::start(setup).await else {
        return;
    };
    let id = ask(&mut gateway, 2, "deploy");
    page.open(&gateway.login).await;
    page.click(&format!("[data-row='{id}'] a")).await;
    page.click("[type=radio]").await;
    page.click("[data-act=review]").await;
    page.click("[data-act=accept]").await;
    page.at(".notice").await;
    assert!(text(&gateway.result(2)).contains("Deployed to staging"));
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_state_is_accessible_in_every_light_and_width() {
    let Some(mut looks) = AxeReport::new() else {
        return;
    };
    let state = tempfile::tempdir().unwrap();
    let mut gateway = gateway(state.path(), &[]);
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    page.open(&gateway.login).await;
    looks.at(&page, "inbox-empty").await;
    // Calls of one tool in one session take turns, so the calls that end precede the one that waits.
    for (call, action) in [(2, "decline"), (3, "cancel")] {
        let id = ask(&mut gateway, call, "deploy");
        assert_eq!(gateway.answer(&id, &json!({"action": action})), 200);
    }
    let deploy = ask(&mut gateway, 4, "deploy");
    for (call, tool) in [(5, "profile"), (6, "connect-account"), (7, "plan-trip")] {
        ask(&mut gateway, call, tool);
    }
    page.until(&rows(4)).await;
    looks.at(&page, "inbox-queue").await;
    page.open(&format!("http://{}/?find=nothing+like+this", gateway.inbox))
        .await;
    looks.at(&page, "inbox-search").await;
    page.close().await;

    for (way, setup) in SETUPS {
        let Some(page) = Chromium::start(setup).await else {
            return;
        };
        page.open(&login_link(state.path(), &gateway.inbox)).await;
        page.until(&rows(4)).await;
        looks.at(&page, &format!("inbox-queue-{way}")).await;
        page.open(&format!("http://{}/q/{deploy}", gateway.inbox))
            .await;
        page.at("form[data-question]").await;
        looks.at(&page, &format!("inbox-question-{way}")).await;
        page.click("[data-act=review]").await;
        page.at("#problems").await;
        looks.at(&page, &format!("inbox-error-{way}")).await;
        page.close().await;
    }
    looks.all_well();
}
