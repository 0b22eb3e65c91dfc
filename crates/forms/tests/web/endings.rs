//! A person at a browser: every way to end a question, and the effects around it.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_forms::view::FrontendError;
use mcp_elicit_testkit::chromium::Chromium;
use serde_json::{Value, json};

use crate::browser::{DOWN, ENTER, ESCAPE, PLAIN, SCRIPTED, at_question, send};
use crate::fixtures::{Asking, asks, form, in_seconds, link, nothing, short};

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
async fn escape_asks_whether_to_cancel_and_what_was_typed_is_kept() {
    let Some((page, mut asking, asked)) = at_question(SCRIPTED, asks("Where to?", &short())).await
    else {
        return;
    };
    page.press(ESCAPE).await;
    page.click("dialog[open] [data-leave=yes]").await;
    assert!(matches!(asked.outcome().await, Ok(Outcome::Cancel)));

    let asked = asking.ask(asks("Where to?", &short())).await;
    page.open(&asked.link).await;
    page.fill("#f0", "abc").await;
    page.press(ESCAPE).await;
    page.at("dialog[open]").await;
    page.click("dialog[open] [data-leave=no]").await;
    assert!(asked.is_waiting());
    page.press(ESCAPE).await;
    page.at("dialog[open]").await;
    // Enter may be held: it continues the answer.
    page.press(ENTER).await;
    assert!(asked.is_waiting());
    page.press(ESCAPE).await;
    page.click("dialog[open] [data-leave=yes]").await;
    assert!(matches!(asked.outcome().await, Ok(Outcome::Cancel)));
    page.close().await;
}

#[tokio::test]
async fn what_was_filled_in_is_dropped_only_after_a_yes() {
    for setup in [SCRIPTED, PLAIN] {
        for (button, action, reviewed) in [
            ("decline", "decline", false),
            ("cancel", "cancel", true),
            ("always", "decline", false),
        ] {
            let Some(page) = Chromium::start(setup).await else {
                return;
            };
            let mut asking = Asking::start().await;
            asking.offers = true;
            let asked = asking.ask(asks("Where to?", &short())).await;
            page.open(&asked.link).await;
            page.fill("#f0", "abcd").await;
            if reviewed {
                page.click("[data-act=review]").await;
                page.at("dl.review").await;
            }
            if button == "always" {
                page.click("details.always summary").await;
            }
            let asks_again = if setup.without_script {
                "#leaving"
            } else {
                "dialog[open]"
            };
            page.click(&format!("[data-act={button}]")).await;
            page.at(asks_again).await;
            assert!(asked.is_waiting());
            page.click(&format!("{asks_again} [data-leave=no]")).await;
            if setup.without_script {
                // The form is shown again, with all its values.
                page.at("form:not(:has(#leaving)) #f0[value=abcd]").await;
            }
            if button == "always" && setup.without_script {
                page.click("details.always summary").await;
            }
            assert!(asked.is_waiting());
            page.click(&format!("[data-act={button}]")).await;
            page.click(&format!("{asks_again} [data-leave=yes]")).await;
            let outcome = asked.outcome().await.unwrap();
            assert_eq!(outcome.action().as_str(), action, "{button}");
            page.close().await;
        }
    }
}

#[tokio::test]
async fn running_out_of_time_is_told_and_is_no_action() {
    let question = asks("Where to?", &short()).until(in_seconds(20));
    let Some((page, _asking, asked)) = at_question(SCRIPTED, question).await else {
        return;
    };
    assert!(page.text(".clock").await.contains("left"));
    assert!(matches!(asked.outcome().await, Err(FrontendError::Expired)));
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
    page.shows("Withdrawn").await;
    page.shows("the call was cancelled").await;
    assert!(matches!(
        asked.outcome().await,
        Err(FrontendError::Withdrawn { .. })
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
        let here = page.client.current_url().await.unwrap();
        let first = page.client.window().await.unwrap();
        let second = page.client.new_window(true).await.unwrap().handle;
        page.client.switch_to_window(second.clone()).await.unwrap();
        if setup.without_script {
            page.forbid_script().await;
        }
        page.open(here.as_str()).await;
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
        page.shows("The answer was handed to").await;
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
    for (setup, scripted) in [(SCRIPTED, true), (PLAIN, false)] {
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
        // Without script, the browser opens the page, and the person reports the visit.
        assert!(scripted || asked.is_waiting());
        let ours = page.client.window().await.unwrap();
        let windows = page.client.windows().await.unwrap();
        let opened = windows
            .into_iter()
            .find(|window| *window != ours)
            .expect("a new tab");
        page.client.switch_to_window(opened).await.unwrap();
        page.until("return location.pathname.endsWith('/assets/icon.svg')")
            .await;
        assert_eq!(
            page.run("return window.opener === null && document.referrer === ''")
                .await,
            Value::Bool(true)
        );
        page.client.switch_to_window(ours).await.unwrap();
        if !scripted {
            page.click("[data-done]").await;
        }
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
    page.open(&asking.browser.login_link().unwrap()).await;
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
    assert!(page.path().await.ends_with(second.path()));
    page.click("[data-act=accept]").await;
    assert_eq!(second.content().await, json!({}));

    page.open(&asking.browser.login_link().unwrap()).await;
    page.shows("answered").await;
    drop(asked);
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
    let question = mcp_elicit_forms::view::QuestionView::form(
        mcp_elicit_forms::view::Origin::new(evil)
            .claiming(evil, evil)
            .connected(evil),
        message,
        form(&schema),
    )
    .for_call(mcp_elicit_forms::view::CallView::tool(evil).with(json!({(evil): evil})));
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
    // A page of another site with a link to ours, as a chat in the browser would show it.
    page.open("data:text/html,<a id=go>go</a>").await;
    page.run(&format!(
        "document.getElementById('go').href = {}",
        json!(asked.link)
    ))
    .await;
    page.click("#go").await;
    page.at("[data-act=accept]").await;
    assert!(page.path().await.ends_with(asked.path()));
    page.close().await;
}
