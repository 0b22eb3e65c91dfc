//! Two people in two real browsers, and axe-core's findings in every state of the pages for several people. Without
//! `chromedriver` and a Chromium, each test reports a skip, or fails if `MCP_ELICIT_MUST_BROWSE` is set.

use std::fmt::Write as _;

use mcp_elicit_testkit::chromium::accessible::{AxeReport, SETUPS};
use mcp_elicit_testkit::chromium::{Chromium, Setup};
use serde_json::json;

use super::approvals::editable;
use super::*;

/// The key as WebDriver encodes it.
const BACKSPACE: &str = "\u{e003}";

/// Starts a browser behind the proxy that names this person.
pub(super) async fn browser(name: &str, setup: Setup) -> Option<Chromium> {
    let page = Chromium::start(setup).await?;
    page.cdp("Network.enable", json!({})).await;
    let headers = json!({"headers": {"X-User": name}});
    page.cdp("Network.setExtraHTTPHeaders", headers).await;
    Some(page)
}

pub(super) fn address(rig: &Rig, path: &str) -> String {
    format!("http://{}{path}", rig.host)
}

/// A script that returns `true` if the focus is on the sentence that confirms the action.
const FOCUS_ON_STATUS: &str = "return document.activeElement.matches('[data-told]')";

#[tokio::test(flavor = "multi_thread")]
async fn what_one_person_does_the_other_sees_without_reloading() {
    let rig = rig(2).await;
    let (Some(ada), Some(bob)) = (
        browser("ada", Setup::default()).await,
        browser("bob", Setup::default()).await,
    ) else {
        return;
    };
    let question = address(&rig, &format!("/q/{}", rig.id));
    ada.open(&question).await;
    bob.open(&question).await;
    bob.at("#f0").await;
    bob.run("window.isSameDocument = true").await;
    bob.fill("#f0", "Moon").await;

    ada.click("form[action$=claim] button").await;
    ada.shows("You have claimed the question").await;
    ada.until(FOCUS_ON_STATUS).await;
    // Bob's form is closed while he types: the page says so, and keeps his text.
    bob.shows("ada has claimed this question").await;
    bob.until(
        "return document.querySelector('[data-told]').textContent.includes('ada claimed it')",
    )
    .await;
    bob.until("return document.querySelector('[data-answering]').disabled && document.querySelector('[data-answers]').disabled")
        .await;
    assert_eq!(bob.run("return window.isSameDocument").await, json!(true));
    assert_eq!(bob.value("#f0").await, "Moon");

    bob.click("[formaction$=takeover]").await;
    bob.shows("You have taken the question over").await;
    assert_eq!(bob.value("#f0").await, "Moon");
    ada.shows("Bob Ross has claimed this question").await;
    ada.until("return document.querySelector('[data-answering]').disabled")
        .await;

    bob.click("[data-act=review]").await;
    bob.at("dl.review").await;
    assert_eq!(bob.text("[data-act=accept]").await, "Enter these answers");
    // The focus is on a control that is replaced, and is not lost.
    ada.run("document.querySelector('details.course summary').focus()")
        .await;
    bob.click("[data-act=accept]").await;
    bob.shows("Your answers are entered").await;
    ada.shows("Answers that Bob Ross entered").await;
    ada.until("return document.activeElement.matches('details.course summary')")
        .await;
    ada.until("return document.querySelectorAll('.btn.main:not(dialog *)').length === 1")
        .await;
    ada.click("[name=digest]").await;
    ada.shows("Answered by Bob Ross and ada").await;
    // The other page updates itself at the end.
    bob.at(".notice").await;
    bob.shows("Bob Ross entered answers").await;
    assert_eq!(phase(&rig).await, Phase::Answered);
    ada.close().await;
    bob.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_change_are_not_confirmed_by_a_press_for_those_before() {
    let rig = rig(2).await;
    let Some(page) = browser("bob", Setup::default()).await else {
        return;
    };
    let ada = Person::enter(&rig, "ada").await;
    ada.fill("Moon").await;
    page.open(&address(&rig, &format!("/q/{}", rig.id))).await;
    page.at("[name=digest]").await;
    page.run("document.querySelector('[name=digest]').focus()")
        .await;
    ada.fill("Mars").await;
    page.shows("Mars").await;
    // The button has changed: the focus moved to the confirmation.
    page.until(FOCUS_ON_STATUS).await;
    page.until("return document.activeElement.textContent.includes('ada entered other answers')")
        .await;
    page.press("\u{e007}").await;
    assert!(phase(&rig).await.is_open());
    page.until("return !document.querySelector('[name=digest]').disabled")
        .await;
    page.click("[name=digest]").await;
    page.shows("Answered").await;
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_happens_again_is_said_again() {
    let rig = rig(2).await;
    let Some(page) = browser("bob", Setup::default()).await else {
        return;
    };
    let ada = Person::enter(&rig, "ada").await;
    page.open(&address(&rig, &format!("/q/{}", rig.id))).await;
    page.at("[data-told]").await;
    for _ in 0..2 {
        page.run("document.querySelector('[data-told]').textContent = ''")
            .await;
        assert_eq!(ada.press("comment", "&text=Well").await.status, 303);
        page.until("return document.querySelector('[data-told]').textContent === 'ada wrote.'")
            .await;
    }
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_says_what_it_finds() {
    let rig = rig(1).await;
    let Some(page) = browser("ada", Setup::default()).await else {
        return;
    };
    let says = async |words: &str| {
        let news = "document.querySelector('[data-news]').textContent";
        page.until(&format!("return {news} === '{words}'")).await;
    };
    page.open(&address(&rig, "/")).await;
    says("One question is waiting for you").await;
    page.press("/").await;
    page.press("deploy").await;
    says("One question matches").await;
    page.press("zz").await;
    says("Nothing matches").await;
    page.until("return !document.querySelector('[data-none]').hidden && document.querySelector('.rows').hidden")
        .await;
    page.press("\u{e00c}").await;
    says("One question is waiting for you").await;
    page.until("return document.querySelector('[data-none]').hidden && !document.querySelector('.rows').hidden")
        .await;
    page.open(&address(&rig, "/?find=zzz")).await;
    says("Nothing matches").await;
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keyboard_and_the_search_work_in_every_view() {
    let rig = rig(1).await;
    let Some(page) = browser("ada", Setup::default()).await else {
        return;
    };
    for view in ["", "?view=groups"] {
        page.open(&address(&rig, &format!("/{view}"))).await;
        page.at("[data-row]").await;
        page.press("/").await;
        page.until("return document.activeElement.type === 'search'")
            .await;
        page.press("nothing like it").await;
        page.until("return [...document.querySelectorAll('[data-row]')].every(row => row.hidden)")
            .await;
        // The other views have the same search.
        page.until("return document.querySelector('.views a[href*=mine]').href.endsWith('find=nothing+like+it')")
            .await;
        page.press("\u{e00c}").await;
        page.until("return document.querySelectorAll('[data-row]:not([hidden])').length === 1")
            .await;
        page.press("\u{e015}").await;
        page.until("return !!document.activeElement.closest('[data-row]')")
            .await;
        page.press("\u{e007}").await;
        page.at("form[data-question]").await;
    }
    page.open(&address(&rig, "/?view=mine")).await;
    page.shows("addressed to you by name").await;
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_person_registers_the_worker_and_can_be_installed() {
    let rig = rig(1).await;
    let Some(page) = browser("ada", Setup::default()).await else {
        return;
    };
    page.open(&address(&rig, "/account")).await;
    // The script has finished, and the worker controls all pages.
    page.at("[data-push][data-ready]").await;
    page.run("navigator.serviceWorker.ready.then(found => { window.scope = found.scope; })")
        .await;
    page.until(&format!("return window.scope === '{}'", address(&rig, "/")))
        .await;
    let manifest = page.cdp("Page.getAppManifest", json!({})).await;
    assert!(
        manifest["url"]
            .as_str()
            .is_some_and(|url| url.ends_with("/assets/manifest.webmanifest"))
            && manifest["errors"].as_array().is_some_and(Vec::is_empty),
        "{manifest}"
    );
    let missing = page.cdp("Page.getInstallabilityErrors", json!({})).await;
    assert_eq!(missing["installabilityErrors"], json!([]), "{missing}");
    assert_eq!(page.text("[data-push-told]").await, "");
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_notifies_once_it_was_asked_to_and_nobody_looks_at_it() {
    let rig = rig(1).await;
    let Some(page) = browser("ada", Setup::default()).await else {
        return;
    };
    let origin = address(&rig, "");
    let granted = json!({"origin": origin, "permissions": ["notifications"]});
    page.cdp("Browser.grantPermissions", granted).await;
    page.open(&address(&rig, "/")).await;
    page.at("[data-watch]:not([hidden])").await;
    // What is shown is recorded. The page is covered by another window, or is in another tab.
    page.run(
        "window.shown = []; window.asked = 0; const Real = window.Notification; \
         window.Notification = class extends Real { \
           constructor(title, more) { super(title, more); window.shown.push([title, more.body]); } \
           static requestPermission() { window.asked += 1; return Real.requestPermission(); } }; \
         Object.defineProperty(document, 'hidden', { get: () => window.away ?? false });",
    )
    .await;
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let ask = async |number: u32| {
        let asked = ["ada", "bob", "cy"].map(str::to_owned).to_vec();
        let hour = Duration::from_secs(60 * 60);
        let caller = TeamCaller {
            person: Some("cy".to_owned()),
            ..TeamCaller::default()
        };
        let team = Team::new("deploys", "r", caller, &plan(1), asked, hour);
        let arguments = json!({"number": number}).to_string();
        let plan = Some(team.to_plan().unwrap());
        let id = sample::raised_with_form(&rig.record, plan, &arguments, &form).await;
        id.unwrap();
        page.shows(&format!("number: {number}")).await;
    };
    ask(1).await;
    page.click("[data-watch] button").await;
    page.at("[data-watch] [aria-pressed=true]").await;
    // A visible page shows the change itself.
    ask(2).await;
    assert_eq!(page.run("return window.shown").await, json!([]));
    assert_eq!(page.run("return window.asked").await, json!(1));
    page.run("window.away = true; document.dispatchEvent(new Event('visibilitychange'))")
        .await;
    ask(3).await;
    let shown = json!([["Inbox", "4 questions are waiting for you"]]);
    page.until("return window.shown.length > 0").await;
    assert_eq!(page.run("return window.shown").await, shown);
    page.click("[data-watch] button").await;
    page.at("[data-watch] [aria-pressed=false]").await;
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_shows_what_a_push_service_delivers() {
    let rig = rig(1).await;
    let Some(page) = browser("ada", Setup::default()).await else {
        return;
    };
    let origin = address(&rig, "");
    let granted = json!({"origin": origin, "permissions": ["notifications"]});
    page.cdp("Browser.grantPermissions", granted).await;
    page.open(&address(&rig, "/account")).await;
    page.at("[data-push][data-ready]").await;
    page.run("navigator.serviceWorker.ready.then(found => { window.worker = found; })")
        .await;
    page.until("return !!window.worker").await;
    page.cdp("ServiceWorker.enable", json!({})).await;
    let path = format!("/q/{}", rig.id);
    let question =
        json!({"id": "one", "title": "s: decision needed", "body": "Who?", "path": path});
    let later = json!({"id": "one", "title": "s: reminder", "path": path});
    for (sent, title, body) in [
        (question.to_string(), "s: decision needed", "Who?"),
        // A later message replaces the earlier one.
        (later.to_string(), "s: reminder", ""),
        ("no JSON".to_owned(), "A question has changed", ""),
    ] {
        let push = json!({"origin": origin, "registrationId": "0", "data": sent});
        let told = json!([title, body]);
        let is_told = format!(
            "window.worker.getNotifications().then(found => {{ window.told = found; }}); \
             return (window.told ?? []).some(one => JSON.stringify([one.title, one.body]) === {:?})",
            told.to_string()
        );
        // The browser drops messages that arrive before it has started the worker, so it is sent again: the same
        // message replaces itself.
        let shown = async {
            loop {
                page.cdp("ServiceWorker.deliverPushMessage", push.clone())
                    .await;
                for _ in 0..40 {
                    if page.run(&is_told).await == json!(true) {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(60), shown).await;
        assert!(in_time.is_ok(), "never shown: {told}");
    }
    let told = "return window.told.map(one => one.tag + ' ' + one.data.path).sort()";
    let left = json!([format!("one {path}"), "question "]);
    assert_eq!(page.run(told).await, left);
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn axe_finds_nothing_on_the_pages_for_several_people() {
    let Some(mut looks) = AxeReport::new() else {
        return;
    };
    for (way, setup) in SETUPS {
        let rig = rig(3).await;
        let (Some(page), Some(admin)) = (browser("ada", setup).await, browser("eve", setup).await)
        else {
            return;
        };
        let bob = Person::enter(&rig, "bob").await;
        let question = address(&rig, &format!("/q/{}", rig.id));
        macro_rules! look {
            ($page:expr, $state:literal) => {
                looks.at(&$page, &format!("people-{}-{way}", $state)).await
            };
        }
        page.open(&address(&rig, "/?view=mine")).await;
        look!(page, "list-mine-empty");
        page.open(&address(&rig, "/?view=groups&find=nothing"))
            .await;
        look!(page, "list-no-match");
        page.open(&question).await;
        look!(page, "asked");
        bob.press("claim", "").await;
        page.shows("Bob Ross has claimed").await;
        look!(page, "claimed-by-other");
        page.click("[formaction$=takeover]").await;
        page.shows("You have taken the question over").await;
        look!(page, "taken-over");
        page.run("for (const one of document.querySelectorAll('details')) one.open = true")
            .await;
        look!(page, "everything-open");
        page.fill("#comment", "Is the moon meant?\nI am not sure.")
            .await;
        page.click("form[action$=comment] button").await;
        page.shows("Your comment was added").await;
        look!(page, "commented");
        page.fill("#f0", "Moon").await;
        page.click("[data-act=review]").await;
        page.at("dl.review").await;
        look!(page, "review");
        page.click("[data-act=accept]").await;
        page.shows("Your answers are entered").await;
        look!(page, "entered-by-me");
        bob.press("takeover", "").await;
        bob.fill("Mars").await;
        page.shows("Bob Ross entered other answers").await;
        look!(page, "to-be-confirmed");
        page.open(&address(&rig, "/")).await;
        look!(page, "list");
        page.open(&address(&rig, "/account")).await;
        look!(page, "account");
        admin.open(&address(&rig, "/")).await;
        look!(admin, "list-of-admin");
        admin.open(&question).await;
        look!(admin, "outline-of-admin");
        admin.open(&address(&rig, "/account")).await;
        look!(admin, "account-of-admin");
        admin.open(&address(&rig, "/audit")).await;
        look!(admin, "audit");
        admin
            .open(&address(&rig, "/audit?view=events&since=yesterday"))
            .await;
        look!(admin, "audit-wrong-time");
        admin.open(&address(&rig, "/audit?view=events")).await;
        look!(admin, "audit-events");
        let declined = bob.press("decline", "&drop=yes").await;
        assert_eq!(declined.status, 303);
        page.open(&question).await;
        page.shows("Declined by Bob Ross").await;
        look!(page, "ended");
        page.close().await;
        admin.close().await;
    }
    looks.all_well();
}

#[tokio::test(flavor = "multi_thread")]
async fn axe_finds_nothing_where_arguments_are_changed_and_where_people_are_refused() {
    let Some(mut looks) = AxeReport::new() else {
        return;
    };
    for (way, setup) in SETUPS {
        let rig = editable().await;
        let (Some(ada), Some(bob)) = (browser("ada", setup).await, browser("bob", setup).await)
        else {
            return;
        };
        macro_rules! look {
            ($page:expr, $state:literal) => {
                looks
                    .at(&$page, &format!("approval-{}-{way}", $state))
                    .await
            };
        }
        let question = address(&rig, &format!("/q/{}", rig.id));
        ada.open(&question).await;
        ada.at("#f0").await;
        look!(ada, "asked");
        ada.fill("#f1", "many").await;
        ada.click("[data-act=review]").await;
        ada.at("[aria-invalid=true]").await;
        look!(ada, "wrong");
        ada.fill("#f1", &BACKSPACE.repeat("many".len())).await;
        ada.fill("#f0", "base").await;
        ada.click("[data-act=review]").await;
        ada.shows("changed from").await;
        look!(ada, "review");
        ada.click("[data-act=accept]").await;
        ada.shows("Your approval is recorded").await;
        look!(ada, "approved-by-me");
        bob.open(&question).await;
        bob.shows("changed from").await;
        look!(bob, "to-be-approved");
        bob.click("[name=digest]").await;
        bob.shows("The call was approved").await;
        bob.open(&question).await;
        look!(bob, "ended");
        // A person whom it is not for, one who delegates, one who comes too late, and one whom the file does not name.
        let rig = super::rig(1).await;
        let question = address(&rig, &format!("/q/{}", rig.id));
        let late = Setup {
            without_script: true,
            ..setup
        };
        let (late, dan) = (browser("ada", late).await, browser("dan", setup).await);
        let (late, dan) = (late.unwrap(), dan.unwrap());
        dan.open(&question).await;
        look!(dan, "not-for-me");
        late.open(&question).await;
        let other = Person::enter(&rig, "bob").await;
        assert_eq!(other.press("claim", "").await.status, 303);
        late.click("form[action$=claim] button").await;
        // axe is a script too.
        let allowed = json!({"value": false});
        late.cdp("Emulation.setScriptExecutionDisabled", allowed)
            .await;
        late.shows("has claimed").await;
        looks.at(&late, &format!("approval-late-{way}")).await;
        let handed_on = other.press("delegate", "&to=person:dan&note=Yours").await;
        assert_eq!(handed_on.status, 303);
        bob.open(&question).await;
        look!(bob, "handed-on");
        dan.open(&question).await;
        dan.shows("Yours").await;
        look!(dan, "handed-to-me");
        let zed = browser("zed", setup).await.unwrap();
        zed.open(&question).await;
        look!(zed, "nobody");
        for page in [ada, bob, late, dan, zed] {
            page.close().await;
        }
    }
    looks.all_well();
}

/// Returns the people of a rule that asks forty by name, with the longest names that a file may have.
fn crowd() -> Vec<String> {
    (0..40).map(|number| format!("p{number}")).collect()
}

/// Returns a call that waits for approval, with an argument of 20 kB, sixty events, and comments.
async fn crowded() -> Rig {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let record = record();
    let caller = TeamCaller {
        name: "Cy".repeat(100),
        issuer: "proxy".to_owned(),
        subject: "cy".to_owned(),
        ..TeamCaller::default()
    };
    let mut plan = plan(2);
    plan.ask.to = crowd().into_iter().map(Addressee::Person).collect();
    let hour = Duration::from_secs(60 * 60);
    let team = Team::new(&"rule-".repeat(40), "r", caller, &plan, crowd(), hour).for_approval();
    let arguments =
        json!({"to": "moon", "long": "x".repeat(10_000), "text": "many words ".repeat(1_000)});
    let plan = Some(team.to_plan().unwrap());
    let id = sample::raised_with(&record, plan, &arguments.to_string()).await;
    let mut file = String::new();
    for (number, name) in crowd().iter().enumerate() {
        let shown = match number % 2 {
            0 => "N".repeat(76),
            _ => "Name ".repeat(15),
        };
        // Writing into a String cannot fail.
        let _ = writeln!(
            file,
            "[people.{name}]\nsubject = \"{name}\"\nname = \"{shown}{number}\""
        );
    }
    let rig = inbox_over(listener, record, id.unwrap(), &file, proxy(), hour);
    for number in 0..60 {
        let (person, act) = match number {
            0 => ("p2", TeamAct::Claim),
            1..50 => (["p2", "p3"][number % 2], TeamAct::TakeOver),
            _ => (
                "p4",
                TeamAct::Comment {
                    text: "Https://example.com/a-very-long-address-without-any-space-in-it-at-all",
                },
            ),
        };
        let login_age = None;
        let by = ActingPerson { person, login_age };
        let acted = rig.record.act(&rig.id, act, by, &Everybody).await.unwrap();
        assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
    }
    rig
}

/// A script that checks that no element extends beyond the window.
const TOO_WIDE: &str = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] : \
    [...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(one => one.outerHTML.slice(0, 200))";

#[tokio::test(flavor = "multi_thread")]
async fn long_names_and_courses_stay_inside_a_narrow_page() {
    let Some(mut looks) = AxeReport::new() else {
        return;
    };
    for (way, setup) in SETUPS {
        let rig = crowded().await;
        let Some(page) = browser("p0", setup).await else {
            return;
        };
        if setup.narrow {
            let size =
                json!({"width": 320, "height": 740, "deviceScaleFactor": 1, "mobile": false});
            page.cdp("Emulation.setDeviceMetricsOverride", size).await;
        }
        macro_rules! look {
            ($state:literal) => {
                page.run("for (const one of document.querySelectorAll('details')) one.open = true")
                    .await;
                assert_eq!(page.run(TOO_WIDE).await, json!([]), "{}", $state);
                looks.at(&page, &format!("crowd-{}-{way}", $state)).await
            };
        }
        let question = address(&rig, &format!("/q/{}", rig.id));
        page.open(&question).await;
        page.shows("has claimed this question").await;
        look!("asked");
        page.click("[formaction$=takeover]").await;
        page.shows("You have taken the question over").await;
        page.fill("#f0", "Moon").await;
        page.click("[data-act=review]").await;
        page.at("dl.review").await;
        look!("review");
        page.click("[data-act=accept]").await;
        page.shows("Your approval is recorded").await;
        look!("approved-by-me");
        page.open(&address(&rig, "/")).await;
        look!("list");
        page.open(&address(&rig, "/account")).await;
        look!("account");
        let other = browser("p1", setup).await.unwrap();
        other.open(&question).await;
        other.at("[name=digest]").await;
        other.click("[name=digest]").await;
        other.shows("The call was approved").await;
        other.close().await;
        page.open(&question).await;
        page.shows("Approved by").await;
        // In the reader's own time zone, which is named.
        page.until("return [...document.querySelectorAll('time[data-local]')].every(one => /^\\D{0,4}\\d.* \\S+$/.test(one.textContent) && one.dateTime.endsWith('Z'))").await;
        look!("ended");
        page.close().await;
    }
    looks.all_well();
}
