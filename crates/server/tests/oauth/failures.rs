//! Failures without an attacker, and their outcomes.

use mcp_elicit_core::wire::Revision;

use crate::http_browser::HttpBrowser;
use crate::rig::{Login, Rig, said};

async fn ada_at(rig: &Rig) -> HttpBrowser {
    let mut ada = HttpBrowser::new();
    ada.get(&format!("{}/login/ada", rig.at)).await;
    ada
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_said_no_at_the_provider_may_try_again_or_leave_it() {
    let Some(rig) = Rig::start(Login::Cookie).await else {
        return;
    };
    for (revision, tool) in [
        (Revision::V2025_11_25, "visit"),
        (Revision::V2026_07_28, "visit"),
        (Revision::V2026_07_28, "require"),
    ] {
        let (call, link) = rig.call("ada", revision, tool).await;
        let mut ada = ada_at(&rig).await;
        let page = ada.get(&format!("{link}/go")).await;
        let answer = ada.refuse(page, &rig.back()).await;
        assert!(answer.as_str().contains("access_denied"), "{answer}");
        let page = ada.get(answer.as_str()).await;
        assert_eq!(page.status, 403, "{page:?}");
        for words in ["did not let Planner in", "Try again", "Do not connect"] {
            assert!(page.body.contains(words), "{words}: {page:?}");
        }
        assert!(!page.body.contains("the person said no"), "{page:?}");
        assert!(
            !call.is_finished(),
            "that was not an answer to the question"
        );
        let page = ada.post(&format!("{link}/decline"), "").await;
        assert_eq!(page.status, 200, "{page:?}");
        let (words, is_error) = said(&call.await.unwrap().unwrap());
        assert!(is_error && words.contains("declined"), "{words}");
    }
    rig.has_nothing();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_gone_is_said_to_be() {
    let Some(mut rig) = Rig::start(Login::Cookie).await else {
        return;
    };
    let (call, link) = rig.call("ada", Revision::V2026_07_28, "visit").await;
    let mut ada = ada_at(&rig).await;
    let page = ada.get(&format!("{link}/go")).await;
    let answer = ada.agree(page, "ada", &rig.back()).await;
    rig.provider.running.child.kill().unwrap();
    rig.provider.running.child.wait().unwrap();
    let page = ada.get(answer.as_str()).await;
    assert_eq!(page.status, 502, "{page:?}");
    assert!(page.body.contains("Calendar cannot be reached"), "{page:?}");
    // The published metadata is still cached; after a while it is requested again.
    rig.wait(11 * 60);
    let (later, link) = rig.call("ada", Revision::V2026_07_28, "visit").await;
    let mut ada = ada_at(&rig).await;
    let page = ada.get(&link).await;
    assert_eq!(page.status, 502, "{page:?}");
    assert!(page.body.contains("Calendar cannot be reached"), "{page:?}");
    rig.has_nothing();
    call.abort();
    later.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_expires_while_somebody_signs_in_does_nothing() {
    let Some(rig) = Rig::start(Login::Cookie).await else {
        return;
    };
    let (call, link) = rig.call("ada", Revision::V2026_07_28, "visit").await;
    let mut ada = ada_at(&rig).await;
    let page = ada.get(&format!("{link}/go")).await;
    let answer = ada.agree(page, "ada", &rig.back()).await;
    rig.wait(10 * 60);
    for url in [answer.as_str(), &link] {
        let page = ada.get(url).await;
        assert_eq!(page.status, 410, "{page:?}");
        assert!(page.body.contains("expired"), "{page:?}");
    }
    rig.has_nothing();
    call.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_registered_hears_so_and_the_person_is_told_whom_to_tell() {
    let Some(rig) = Rig::with(Login::Cookie, |provider| provider.secret("wrong")).await else {
        return;
    };
    let (call, link) = rig.call("ada", Revision::V2026_07_28, "visit").await;
    let mut ada = ada_at(&rig).await;
    let page = ada.get(&format!("{link}/go")).await;
    let answer = ada.agree(page, "ada", &rig.back()).await;
    let page = ada.get(answer.as_str()).await;
    assert_eq!(page.status, 502, "{page:?}");
    assert!(
        page.body.contains("Calendar does not accept Planner"),
        "{page:?}"
    );
    assert!(page.body.contains("the operator of Planner"), "{page:?}");
    rig.has_nothing();
    call.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_stored_is_said_and_may_be_tried_again() {
    let Some(rig) = Rig::start(Login::Cookie).await else {
        return;
    };
    for (user, fits) in [("ada", true), ("bob", true), ("eve", false)] {
        let (call, link) = rig.call(user, Revision::V2025_11_25, "visit").await;
        let mut person = HttpBrowser::new();
        person.get(&format!("{}/login/{user}", rig.at)).await;
        let page = person.get(&format!("{link}/go")).await;
        let answer = person.agree(page, user, &rig.back()).await;
        let page = person.get(answer.as_str()).await;
        if fits {
            assert_eq!(page.status, 200, "{page:?}");
            assert!(!said(&call.await.unwrap().unwrap()).1);
            continue;
        }
        assert_eq!(page.status, 422, "{page:?}");
        assert!(page.body.contains("no room for a third"), "{page:?}");
        assert!(page.body.contains("Try again"), "{page:?}");
        call.abort();
    }
}

/// A person who starts again and again gets only a few cookies, and the last start counts.
#[tokio::test(flavor = "multi_thread")]
async fn trips_that_were_never_finished_are_forgotten() {
    let Some(rig) = Rig::start(Login::Cookie).await else {
        return;
    };
    let (call, link) = rig.call("ada", Revision::V2026_07_28, "visit").await;
    let mut ada = ada_at(&rig).await;
    for _ in 0..20 {
        let page = ada.get(&format!("{link}/go")).await;
        assert_eq!(page.status, 303);
        assert!(ada.cookies() <= 5, "{}", ada.cookies());
    }
    let page = ada.get(&format!("{link}/go")).await;
    let answer = ada.agree(page, "ada", &rig.back()).await;
    let page = ada.get(answer.as_str()).await;
    assert_eq!(page.status, 200, "{page:?}");
    assert!(!said(&call.await.unwrap().unwrap()).1);
    rig.has_token_of("ada").await;
}
