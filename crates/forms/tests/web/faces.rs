//! A person at a browser: every kind of field, every way to answer, and what happens around it.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_forms::view::NotAnswered;
use mcp_elicit_testkit::chromium::{Chromium, Setup};
use serde_json::{Value, json};

use crate::fixtures::{
    Asked, Asking, asks, every_answer, every_kind, form, in_seconds, link, nothing, short,
};

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const END: &str = "\u{e010}";
const UP: &str = "\u{e013}";
const DOWN: &str = "\u{e015}";
const CONTROL: &str = "\u{e009}";
const RELEASE: &str = "\u{e000}";

const SCRIPTED: Setup = Setup {
    without_script: false,
    dark: false,
    narrow: false,
};
const PLAIN: Setup = Setup {
    without_script: true,
    ..SCRIPTED
};

/// Reviews and sends, by mouse.
async fn send(page: &Chromium) {
    page.click("[data-act=review]").await;
    page.at("dl.review").await;
    page.click("[data-act=accept]").await;
}

/// A browser at a question, or nothing where there is no browser.
async fn at_question(
    setup: Setup,
    question: mcp_elicit_forms::view::Question,
) -> Option<(Chromium, Asking, Asked)> {
    let chromium = Chromium::start(setup).await?;
    let mut asking = Asking::start().await;
    let asked = asking.ask(question).await;
    chromium.open(&asked.link).await;
    assert_eq!(
        chromium.path().await,
        asked.path(),
        "the secret has left the address"
    );
    Some((chromium, asking, asked))
}

#[tokio::test]
async fn every_kind_by_keyboard_alone() {
    let Some((page, _asking, asked)) =
        at_question(SCRIPTED, asks("Where to?", &every_kind())).await
    else {
        return;
    };
    page.tab_to("#f0").await;
    page.press("Autumn release").await;
    page.tab_to("#f1").await;
    page.press(&format!("first{ENTER}second")).await;
    page.tab_to("#f2").await;
    page.press("ana@example.org").await;
    page.tab_to("#f3").await;
    page.press("https://tickets.example/77").await;
    page.tab_to("#f4").await;
    page.press("11302026").await;
    page.tab_to("#f5").await;
    page.press(&format!("12012026{TAB}093000AM")).await;
    page.tab_to("#f5-zone").await;
    page.press(&format!("{CONTROL}a{RELEASE}Europe/Brussels"))
        .await;
    page.tab_to("#f6").await;
    page.press(&format!("2{UP}")).await;
    page.tab_to("#f7").await;
    page.press(&format!("0.1{UP}")).await;
    page.tab_to("[name=f8]").await;
    page.press(" ").await;
    page.tab_to("[name=f9]").await;
    page.press(" ").await;
    page.press(DOWN).await;
    page.press(DOWN).await;
    page.tab_to("#f10-field .find").await;
    page.press("REGION-17").await;
    page.press(ENTER).await;
    page.tab_to("[name=f11][value='0']").await;
    page.press(" ").await;
    page.tab_to("[name=f11][value='2']").await;
    page.press(" ").await;
    page.press(&format!("{CONTROL}{ENTER}{RELEASE}")).await;
    page.at("dl.review").await;
    page.tab_to("[data-act=accept]").await;
    page.press(ENTER).await;
    assert_eq!(asked.content().await, every_answer());
    page.shows("Answered").await;
    page.close().await;
}

#[tokio::test]
async fn every_kind_by_mouse() {
    let Some((page, _asking, asked)) =
        at_question(SCRIPTED, asks("Where to?", &every_kind())).await
    else {
        return;
    };
    fill_by_mouse(&page).await;
    for _ in 0..3 {
        page.click("#f6-field .step[value$=up]").await;
        page.click("#f7-field .step[value$=up]").await;
    }
    page.fill("#f10-field .find", "region-17").await;
    page.click("[name=f10][value='16']").await;
    send(&page).await;
    assert_eq!(asked.content().await, every_answer());
    page.close().await;
}

/// Everything but the numbers and the searched list.
async fn fill_by_mouse(page: &Chromium) {
    page.fill("#f0", "Autumn release").await;
    page.fill("#f1", &format!("first{ENTER}second")).await;
    page.fill("#f2", "ana@example.org").await;
    page.fill("#f3", "https://tickets.example/77").await;
    page.fill("#f4", "11302026").await;
    page.fill("#f5", &format!("12012026{TAB}093000AM")).await;
    page.fill("#f5-zone", &format!("{CONTROL}a{RELEASE}Europe/Brussels"))
        .await;
    page.click("[name=f8][value='0']").await;
    page.click("[name=f9][value='2']").await;
    page.click("[name=f11][value='0']").await;
    page.click("[name=f11][value='2']").await;
}

#[tokio::test]
async fn every_kind_without_script() {
    let Some((page, _asking, asked)) = at_question(PLAIN, asks("Where to?", &every_kind())).await
    else {
        return;
    };
    fill_by_mouse(&page).await;
    // Each press of a stepper is a round to the server, which keeps everything else.
    page.fill("#f6", "2").await;
    page.click("#f6-field .step[value$=up]").await;
    page.fill("#f7", "0.3").await;
    page.click("#f7-field .step[value$=down]").await;
    assert_eq!(
        (page.value("#f6").await, page.value("#f7").await),
        ("3".into(), "0.2".into())
    );
    page.click("[name=f10][value='16']").await;
    send(&page).await;
    assert_eq!(asked.content().await, every_answer());
    page.close().await;
}

#[tokio::test]
async fn wrong_is_said_beside_the_field_and_in_the_forms_own_words() {
    let Some((page, _asking, asked)) = at_question(SCRIPTED, asks("Where to?", &short())).await
    else {
        return;
    };
    page.fill("#f0", "ab").await;
    page.click("#f1").await;
    let typed = mcp_elicit_core::answer::Typed::Text("ab".into());
    let own = form(&short()).read_field("name", &typed).unwrap_err()[0].message();
    page.until("return document.querySelector('#f0-error li') !== null")
        .await;
    assert_eq!(page.text("#f0-error").await, own);

    page.click("[data-act=review]").await;
    page.at("#problems").await;
    assert!(page.title().await.starts_with("Error:"));
    assert!(page.text("#problems").await.contains(&own));
    assert_eq!(page.value("#f0").await, "ab", "what was typed is kept");
    page.click("#problems a").await;
    page.press(&format!("{END}c")).await;
    page.until("return document.querySelector('#f0-error li') === null")
        .await;
    send(&page).await;
    assert_eq!(asked.content().await, json!({"name": "abc", "replicas": 3}));
    page.close().await;
}

#[tokio::test]
async fn wrong_then_right_without_script() {
    let Some((page, _asking, asked)) = at_question(PLAIN, asks("Where to?", &short())).await else {
        return;
    };
    page.fill("#f0", "ab").await;
    page.click("[data-act=review]").await;
    page.at("#problems").await;
    assert!(!page.text("#f0-error").await.is_empty());
    page.client.refresh().await.unwrap();
    assert_eq!(page.value("#f0").await, "ab");
    page.fill("#f0", "c").await;
    send(&page).await;
    assert_eq!(asked.content().await["name"], "abc");
    page.close().await;
}

#[tokio::test]
async fn a_half_typed_date_is_not_sent_as_none() {
    let schema =
        json!({"type": "object", "properties": {"day": {"type": "string", "format": "date"}}});
    for setup in [SCRIPTED, PLAIN] {
        let Some((page, _asking, asked)) = at_question(setup, asks("When?", &schema)).await else {
            return;
        };
        page.fill("#f0", "1130").await;
        page.click("[data-act=review]").await;
        page.at("#f0").await;
        assert_eq!(page.count("dl.review").await, 0);
        page.fill("#f0", "11302026").await;
        send(&page).await;
        assert_eq!(asked.content().await, json!({"day": "2026-11-30"}));
        page.close().await;
    }
}

#[tokio::test]
async fn decline_and_cancel_are_buttons() {
    for setup in [SCRIPTED, PLAIN] {
        for (button, action) in [("decline", "decline"), ("cancel", "cancel")] {
            for question in [
                asks("Where to?", &short()),
                asks("Sure?", &nothing()),
                link("https://a.example/"),
            ] {
                let Some((page, _asking, asked)) = at_question(setup, question).await else {
                    return;
                };
                page.click(&format!("[data-act={button}]")).await;
                assert_eq!(asked.outcome().await.unwrap().action().as_str(), action);
                page.close().await;
            }
        }
    }
}

#[tokio::test]
async fn a_plain_yes_is_one_press() {
    for setup in [SCRIPTED, PLAIN] {
        let Some((page, _asking, asked)) = at_question(setup, asks("Sure?", &nothing())).await
        else {
            return;
        };
        page.click("[data-act=accept]").await;
        assert_eq!(asked.content().await, json!({}));
        page.close().await;
    }
}

#[tokio::test]
async fn escape_is_cancel_and_asks_first_once_something_was_typed() {
    let Some((page, mut asking, asked)) = at_question(SCRIPTED, asks("Where to?", &short())).await
    else {
        return;
    };
    page.press(ESCAPE).await;
    assert!(matches!(asked.outcome().await, Ok(Outcome::Cancel)));

    let asked = asking.ask(asks("Where to?", &short())).await;
    page.open(&asked.link).await;
    page.fill("#f0", "abc").await;
    page.press(ESCAPE).await;
    page.at("dialog[open]").await;
    page.click("[data-sure=no]").await;
    assert!(asked.is_waiting());
    page.press(ESCAPE).await;
    page.at("dialog[open]").await;
    page.press(ENTER).await;
    assert!(matches!(asked.outcome().await, Ok(Outcome::Cancel)));
    page.close().await;
}

#[tokio::test]
async fn running_out_of_time_is_told_and_is_no_action() {
    let question = asks("Where to?", &short()).until(in_seconds(20));
    let Some((page, _asking, asked)) = at_question(SCRIPTED, question).await else {
        return;
    };
    assert!(page.text(".clock").await.contains("left"));
    assert!(matches!(asked.outcome().await, Err(NotAnswered::Expired)));
    page.shows("Too late").await;
    page.shows("Nothing was sent").await;
    page.close().await;
}

#[tokio::test]
async fn taken_back_by_the_server_it_leaves_the_screen() {
    let Some((page, _asking, mut asked)) = at_question(SCRIPTED, asks("Where to?", &short())).await
    else {
        return;
    };
    asked.withdraw("the call was cancelled");
    page.shows("Taken back").await;
    page.shows("the call was cancelled").await;
    assert!(matches!(
        asked.outcome().await,
        Err(NotAnswered::Withdrawn { .. })
    ));
    page.close().await;
}

#[tokio::test]
async fn of_two_tabs_one_wins_and_the_other_is_told() {
    for setup in [SCRIPTED, PLAIN] {
        let Some((page, _asking, asked)) = at_question(setup, asks("Sure?", &nothing())).await
        else {
            return;
        };
        let first = page.client.window().await.unwrap();
        let second = page.client.new_window(true).await.unwrap().handle;
        page.client.switch_to_window(second.clone()).await.unwrap();
        if setup.without_script {
            page.forbid_script().await;
        }
        page.open(&asked.link).await;
        page.at("[data-act=decline]").await;
        page.client.switch_to_window(first).await.unwrap();
        page.click("[data-act=accept]").await;
        assert_eq!(asked.content().await, json!({}));
        page.shows("Answered").await;
        page.client.switch_to_window(second).await.unwrap();
        if setup.without_script {
            page.click("[data-act=decline]").await;
            page.shows("You were not the first").await;
        }
        page.shows("has the answer").await;
        page.close().await;
    }
}

#[tokio::test]
async fn closing_the_tab_loses_nothing_and_answers_nothing() {
    let Some((page, _asking, asked)) = at_question(SCRIPTED, asks("Where to?", &short())).await
    else {
        return;
    };
    let first = page.client.window().await.unwrap();
    let other = page.client.new_window(true).await.unwrap().handle;
    page.fill("#f0", "Autumn").await;
    page.click("#f1").await;
    page.until("return document.querySelector('[data-kept]').textContent === 'Saved'")
        .await;
    page.client.switch_to_window(first).await.unwrap();
    page.client.close_window().await.unwrap();
    page.client.switch_to_window(other).await.unwrap();
    assert!(asked.is_waiting());
    page.open(&asked.link).await;
    assert_eq!(page.value("#f0").await, "Autumn");
    send(&page).await;
    assert_eq!(asked.content().await["name"], "Autumn");
    page.close().await;
}

#[tokio::test]
async fn a_link_is_opened_by_the_person_and_learns_nothing_of_us() {
    for setup in [SCRIPTED, PLAIN] {
        let mut elsewhere = Asking::start().await;
        let there = elsewhere.ask(asks("Somewhere else", &nothing())).await;
        let address = format!("http://{}/assets/icon.svg", crate::http::host(&there.link));
        let Some((page, _asking, asked)) = at_question(setup, link(&address)).await else {
            return;
        };
        assert_eq!(page.text(".address .whole").await, address);
        assert!(
            page.count(".note.warn li").await > 0,
            "the person is warned"
        );
        page.click("[data-open]").await;
        assert!(asked.is_waiting(), "opening it is not yet an answer");
        let ours = page.client.window().await.unwrap();
        let windows = page.client.windows().await.unwrap();
        let opened = windows
            .into_iter()
            .find(|window| *window != ours)
            .expect("a new tab");
        page.client.switch_to_window(opened).await.unwrap();
        page.until("return location.pathname === '/assets/icon.svg'")
            .await;
        assert_eq!(
            page.run("return window.opener === null && document.referrer === ''")
                .await,
            Value::Bool(true)
        );
        page.client.switch_to_window(ours).await.unwrap();
        page.click("[data-done]").await;
        assert!(matches!(asked.outcome().await, Ok(Outcome::Visit)));
        page.close().await;
    }
}

#[tokio::test]
async fn the_queue_updates_itself_and_is_worked_by_keyboard() {
    let Some((page, mut asking, asked)) =
        at_question(SCRIPTED, asks("First of all", &nothing())).await
    else {
        return;
    };
    page.open(&asking.browser.login_link()).await;
    page.shows("First of all").await;
    assert_eq!(page.title().await, "(1) Questions");
    let second = asking.ask(asks("Second of all", &nothing())).await;
    page.shows("Second of all").await;
    page.until("return document.title === '(2) Questions'")
        .await;

    page.press("/").await;
    page.press("second").await;
    page.until("return [...document.querySelectorAll('.rowlink')].filter(row => row.offsetParent).length === 1").await;
    page.press(DOWN).await;
    page.press(ENTER).await;
    page.at("[data-act=accept]").await;
    assert_eq!(page.path().await, second.path());
    page.click("[data-act=accept]").await;
    assert_eq!(second.content().await, json!({}));

    page.open(&asking.browser.login_link()).await;
    page.shows("answered").await;
    drop(asked);
    page.close().await;
}

#[tokio::test]
async fn a_paste_of_several_lines_keeps_them() {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let Some((page, _asking, asked)) = at_question(SCRIPTED, asks("What?", &schema)).await else {
        return;
    };
    page.click("#f0").await;
    let paste = "const data = new DataTransfer(); data.setData('text/plain', 'one\\ntwo'); \
        document.activeElement.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}));";
    page.run(paste).await;
    page.at("textarea#f0").await;
    send(&page).await;
    assert_eq!(asked.content().await, json!({"text": "one\ntwo"}));
    page.close().await;
}

#[tokio::test]
async fn what_a_hostile_server_says_stays_text() {
    let evil = "<script>window.owned = 1</script><img src=x onerror='window.owned = 1'>\"'>\u{202e}{{7*7}}";
    let schema = json!({"type": "object", "properties": {
        (evil): {"type": "string", "title": evil, "description": evil, "default": evil},
        "pick": {"type": "string", "title": evil, "oneOf": [{"const": evil, "title": evil}, {"const": "b", "title": "b"}]},
        "some": {"type": "array", "title": evil, "items": {"anyOf": [{"const": evil, "title": evil}, {"const": "\"><script>", "title": "\"><script>"}]}, "default": [evil]}
    }});
    let message = format!(
        "{evil}\n\n[click](javascript:alert(1)) <a href='javascript:alert(1)'>here</a> ![x](https://evil.example/x.png)"
    );
    let question = mcp_elicit_forms::view::Question::form(
        mcp_elicit_forms::view::Origin::new(evil)
            .claiming(evil, evil)
            .connected(evil),
        message,
        form(&schema),
    )
    .for_call(mcp_elicit_forms::view::Call::tool(evil).with(json!({(evil): evil})));
    for setup in [SCRIPTED, PLAIN] {
        let Some((page, _asking, asked)) = at_question(setup, question.clone()).await else {
            return;
        };
        page.click("[name=f1][value='0']").await;
        assert_eq!(
            page.count("main a[href], main img, main script").await,
            0,
            "nothing to click, fetch or run"
        );
        page.click("[data-act=review]").await;
        page.at("dl.review").await;
        assert_eq!(
            page.run("return window.owned === undefined").await,
            Value::Bool(true)
        );
        page.click("[data-act=accept]").await;
        let content = asked.content().await;
        assert_eq!(content["pick"], evil, "options come back as they went out");
        assert_eq!(content["some"], json!([evil]));
        page.shows("answer").await;
        assert_eq!(
            page.run("return window.owned === undefined").await,
            Value::Bool(true)
        );
        page.close().await;
    }
}

#[tokio::test]
async fn a_hundred_fields_a_thousand_options_and_a_long_message() {
    let options: Vec<String> = (0..1000).map(|n| format!("option {n:04}")).collect();
    let mut properties = serde_json::Map::new();
    properties.insert(
        "many".into(),
        json!({"type": "array", "items": {"type": "string", "enum": options}}),
    );
    for n in 1..100 {
        properties.insert(format!("field {n}"), json!({"type": "string"}));
    }
    let schema = json!({"type": "object", "properties": properties, "required": ["field 99"]});
    let message = "A long message. ".repeat(1300);
    let Some((page, _asking, asked)) = at_question(SCRIPTED, asks(&message, &schema)).await else {
        return;
    };
    page.fill("#f0-field .find", "0999").await;
    page.click("[name=f0][value='999']").await;
    page.fill("#f99", "last").await;
    send(&page).await;
    assert_eq!(
        asked.content().await,
        json!({"many": ["option 0999"], "field 99": "last"})
    );
    page.close().await;
}

#[tokio::test]
async fn a_login_that_another_site_started_goes_on_by_itself() {
    let Some(page) = Chromium::start(SCRIPTED).await else {
        return;
    };
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Sure?", &nothing())).await;
    // A page of another site, with a link to ours, as a chat in the browser would show it.
    page.open("data:text/html,<a id=go>go</a>").await;
    page.run(&format!(
        "document.getElementById('go').href = {}",
        json!(asked.link)
    ))
    .await;
    page.click("#go").await;
    page.at("[data-act=accept]").await;
    assert_eq!(page.path().await, asked.path());
    page.close().await;
}
