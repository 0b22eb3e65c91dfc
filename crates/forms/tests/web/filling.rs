//! A person at a browser fills forms in: every kind of field, wrong and right, by keyboard, by mouse and without
//! script.

use mcp_elicit_testkit::chromium::Chromium;
use serde_json::json;

use crate::browser::{
    CONTROL, DOWN, END, ENTER, PLAIN, RELEASE, SCRIPTED, TAB, UP, at_question, send,
};
use crate::fixtures::{asks, every_answer, every_kind, form, short};

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

/// Fills in every field but the numbers and the searched list.
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
    // Each press of a stepper is a request to the server, which keeps all other values.
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
    let typed = mcp_elicit_core::answer::DraftValue::Text("ab".into());
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
