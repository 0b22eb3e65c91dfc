//! A person at a browser decides: the question comes first, a yes or no is one press, and no key decides by accident.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_forms::view::CallView;
use mcp_elicit_testkit::chromium::Chromium;
use serde_json::{Value, json};

use crate::browser::{ENTER, ESCAPE, PLAIN, SCRIPTED, at_question};
use crate::fixtures::{Asking, asks, form, link, nothing, origin, short};
use crate::http::Visitor;

const SPACE: &str = " ";

fn yes_or_no() -> Value {
    json!({"type": "object", "properties": {
        "confirm": {"type": "boolean", "title": "Yes, deploy to production"}
    }, "required": ["confirm"]})
}

#[tokio::test]
async fn the_question_is_the_strongest_text_and_the_rest_opens() {
    let Some((page, _asking, _asked)) = at_question(
        SCRIPTED,
        asks("Where should it **run**?\nOn which host?", &short()),
    )
    .await
    else {
        return;
    };
    assert_eq!(page.text("h1").await, "Where should it run?");
    assert_eq!(page.text(".by p").await, "deploy-bot asks · tool deploy");
    assert!(page.text(".why").await.contains("On which host?"));
    let strongest = "const size = (at) => parseFloat(getComputedStyle(at).fontSize); \
        const h1 = document.querySelector('h1'); \
        const others = [...document.querySelectorAll('body *')].filter((at) => at !== h1 && !h1.contains(at) \
            && [...at.childNodes].some((node) => node.nodeType === 3 && node.data.trim())); \
        return others.every((at) => size(at) < size(h1));";
    assert_eq!(page.run(strongest).await, Value::Bool(true));
    assert_eq!(page.count("details.call[open]").await, 0);
    page.tab_to("details.call > summary").await;
    page.type_keys(ENTER).await;
    page.shows("calls itself “Acme Deployments”").await;
    page.shows("release/2026-11").await;
    page.close().await;
}

/// The caller chooses the names of arguments.
#[tokio::test]
async fn a_long_name_of_an_argument_leaves_the_values_readable() {
    for name in ["x".repeat(120), "a few words ".repeat(20)] {
        let call = CallView::tool("delete")
            .with(json!({"path": "/srv/production/database-main", (name): 1}));
        let question = mcp_elicit_forms::view::QuestionView::form(origin(), "Go?", form(&short()));
        let Some((page, _asking, _asked)) = at_question(SCRIPTED, question.for_call(call)).await
        else {
            return;
        };
        let part = page
            .run(
                "const details = document.querySelector('details.call'); details.open = true; \
                 const width = (at) => at.getBoundingClientRect().width; \
                 return width(details.querySelector('dd')) / width(details.querySelector('dl'));",
            )
            .await;
        assert!(part.as_f64().unwrap() > 0.4, "{part}");
        page.close().await;
    }
}

#[tokio::test]
async fn a_yes_or_no_is_one_press() {
    for setup in [SCRIPTED, PLAIN] {
        for (act, answer) in [("yes", true), ("no", false)] {
            let Some((page, _asking, asked)) =
                at_question(setup, asks("Deploy to production?", &yes_or_no())).await
            else {
                return;
            };
            assert_eq!(
                page.text("[data-act=yes]").await,
                "Yes, deploy to production"
            );
            page.click(&format!("[data-act={act}]")).await;
            assert_eq!(asked.content().await, json!({"confirm": answer}));
            page.close().await;
        }
    }
}

#[tokio::test]
async fn a_yes_or_no_can_be_declined_and_cancelled_without_a_second_question() {
    for (act, action) in [("decline", "decline"), ("cancel", "cancel")] {
        let Some((page, _asking, asked)) =
            at_question(SCRIPTED, asks("Deploy to production?", &yes_or_no())).await
        else {
            return;
        };
        page.tab_to("details.neither > summary").await;
        page.type_keys(ENTER).await;
        page.tab_to(&format!("[data-act={act}]")).await;
        page.type_keys(ENTER).await;
        assert_eq!(asked.outcome().await.unwrap().action().as_str(), action);
        page.close().await;
    }
}

#[tokio::test]
async fn a_key_held_down_since_the_page_before_presses_neither_button() {
    let Some((page, _asking, asked)) =
        at_question(SCRIPTED, asks("Deploy to production?", &yes_or_no())).await
    else {
        return;
    };
    for key in ["Enter", SPACE] {
        let held = format!(
            "const at = document.querySelector('[data-act=yes]'); at.focus(); \
             return at.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', repeat: true, bubbles: true, cancelable: true}}));"
        );
        assert_eq!(page.run(&held).await, Value::Bool(false), "{key:?}");
    }
    assert!(asked.is_waiting());
    page.tab_to("[data-act=no]").await;
    page.type_keys(SPACE).await;
    assert_eq!(asked.content().await, json!({"confirm": false}));
    page.close().await;
}

#[tokio::test]
async fn an_optional_yes_or_no_can_be_left_out_and_a_default_is_the_main_button() {
    let schema = json!({"type": "object", "properties": {
        "notify": {"type": "boolean", "title": "Tell the team", "description": "By mail.", "default": false}
    }});
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Deploy?", &schema)).await;
    let visitor = Visitor::enter(&asked.link).await;
    let body = visitor.get(asked.path()).await.body;
    assert!(
        body.contains(r#"<button class="btn main" type="submit" formaction"#)
            && body.contains(r#"value="1" data-act="no""#)
    );
    assert!(body.contains("Tell the team") && body.contains("By mail."));
    let yes = body.find(r#"data-act="yes""#).unwrap();
    assert!(!body[..yes].contains("btn main"), "the default is no");
    let csrf = visitor.hidden(asked.path(), "csrf").await;
    visitor
        .post(
            &format!("{}/accept", asked.path()),
            &format!("csrf={csrf}&f0="),
        )
        .await;
    assert_eq!(asked.content().await, json!({}));
}

#[tokio::test]
async fn two_fields_are_never_answered_by_one_press() {
    let two = json!({"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}}});
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Both?", &two)).await;
    let visitor = Visitor::enter(&asked.link).await;
    let body = visitor.get(asked.path()).await.body;
    assert!(!body.contains(r#"data-act="yes""#), "{body}");
    let csrf = visitor.hidden(asked.path(), "csrf").await;
    visitor
        .post(
            &format!("{}/accept", asked.path()),
            &format!("csrf={csrf}&f0=0"),
        )
        .await;
    assert!(asked.is_waiting());
}

#[tokio::test]
async fn escape_asks_first_on_every_page_and_a_second_one_goes_back() {
    for question in [
        asks("Where to?", &short()),
        asks("Sure?", &nothing()),
        asks("Deploy?", &yes_or_no()),
        link("https://a.example/"),
    ] {
        let Some((page, _asking, asked)) = at_question(SCRIPTED, question).await else {
            return;
        };
        page.type_keys(ESCAPE).await;
        page.at("dialog[open]").await;
        assert!(!page.text("dialog[open]").await.contains("filled in"));
        page.type_keys(ESCAPE).await;
        page.until("return document.querySelector('dialog[open]') === null")
            .await;
        assert!(asked.is_waiting());
        page.type_keys(ESCAPE).await;
        // Enter may be held: it goes back.
        page.at("dialog[open]").await;
        page.type_keys(ENTER).await;
        page.until("return document.querySelector('dialog[open]') === null")
            .await;
        assert!(asked.is_waiting());
        page.type_keys(ESCAPE).await;
        page.click("dialog[open] [data-leave=yes]").await;
        assert!(matches!(asked.outcome().await, Ok(Outcome::Cancel)));
        page.close().await;
    }
}

#[tokio::test]
async fn a_heading_with_markup_stays_whole() {
    let message = "Shall I?\n\n## Migration of **everything**\n\nIt takes an hour.";
    let Some((page, _asking, _asked)) = at_question(SCRIPTED, asks(message, &nothing())).await
    else {
        return;
    };
    let gap = "const word = document.querySelector('.why .heading strong').getBoundingClientRect(); \
        const range = document.createRange(); range.selectNodeContents(document.querySelector('.why .heading').firstChild); \
        return word.left - range.getBoundingClientRect().right < 12;";
    assert_eq!(page.run(gap).await, Value::Bool(true));
    page.close().await;
}

#[tokio::test]
async fn of_several_calls_their_arguments_are_not_counted_as_those_of_one() {
    let call = CallView::tool("deploy")
        .with(json!({"build": 1}))
        .or_one_of_calls(vec![CallView::tool("deploy"), CallView::tool("book")]);
    let question =
        mcp_elicit_forms::view::QuestionView::form(origin(), "Go?", form(&short())).for_call(call);
    let mut asking = Asking::start().await;
    let asked = asking.ask(question).await;
    let body = Visitor::enter(&asked.link)
        .await
        .get(asked.path())
        .await
        .body;
    assert!(body.contains("with the arguments of each call"), "{body}");
    assert!(!body.contains("3 arguments"));
}

#[tokio::test]
async fn a_long_message_opens_by_key_and_needs_no_scroll_bar_of_its_own() {
    for setup in [SCRIPTED, PLAIN] {
        let message = format!("Go?\n\n{}", "A long line of reasons.\n\n".repeat(120));
        let Some((page, _asking, _asked)) = at_question(setup, asks(&message, &nothing())).await
        else {
            return;
        };
        let height = "return document.querySelector('.why').clientHeight";
        let before = page.run(height).await.as_f64().unwrap();
        page.tab_to("#whole").await;
        page.type_keys(SPACE).await;
        let after = page.run(height).await.as_f64().unwrap();
        assert!(after > 4.0 * before, "{before} {after}");
        let scrolls = "const why = document.querySelector('.why'); return why.scrollHeight > why.clientHeight + 1";
        assert_eq!(page.run(scrolls).await, Value::Bool(false));
        page.close().await;
    }
}

#[tokio::test]
async fn cautions_that_say_the_same_are_one_and_the_button_is_not_the_solid_one() {
    let mut asking = Asking::start().await;
    // The name has Cyrillic letters: it looks like another, mixes scripts, and has letters that can be mistaken.
    let asked = asking.ask(link("https://аррӏe.example.org/")).await;
    let body = Visitor::enter(&asked.link)
        .await
        .get(asked.path())
        .await
        .body;
    let about_letters = ["looks like", "mixes letters", "can be mistaken"];
    let said = about_letters.iter().filter(|words| body.contains(**words));
    assert_eq!(said.count(), 1, "{body}");
    assert!(body.contains(r#"<a class="btn" href="https"#), "{body}");
    let plain = asking.ask(link("https://calendar.example.org/")).await;
    let body = Visitor::enter(&plain.link)
        .await
        .get(plain.path())
        .await
        .body;
    assert!(body.contains(r#"<a class="btn main" href="https"#));
}

#[tokio::test]
async fn a_page_may_be_closed_only_once_no_question_follows() {
    let Some((page, mut asking, asked)) =
        at_question(SCRIPTED, asks("Deploy?", &yes_or_no())).await
    else {
        return;
    };
    page.click("[data-act=yes]").await;
    page.at("[data-early]").await;
    assert!(!page.text(".notice").await.contains("You can close"));
    page.shows("If deploy-bot asks again, its question appears here")
        .await;
    let next = asking.ask(asks("And the database?", &nothing())).await;
    page.shows("Next question, from deploy-bot").await;
    assert!(!page.text(".notice").await.contains("You can close"));
    page.click(".notice .btn.main").await;
    page.click("[data-act=accept]").await;
    assert_eq!(next.content().await, json!({}));
    page.shows("You can close this page").await;
    assert!(asked.outcome().await.is_ok());
    page.close().await;
}

#[tokio::test]
async fn the_page_without_a_session_names_its_command_as_code() {
    let Some(page) = Chromium::start(SCRIPTED).await else {
        return;
    };
    let asking = Asking::start().await;
    let host = crate::http::host(&asking.browser.login_link().unwrap());
    page.open(&format!("http://{host}/")).await;
    assert!(!page.text("body").await.contains('`'));
    assert!(!page.text("body").await.contains("any more"));
    page.close().await;
}
