//! The whole sign-in in a real browser.

use mcp_elicit_core::wire::Revision;
use mcp_elicit_testkit::chromium::{Chromium, Setup};

use crate::rig::{Login, Rig, said};

/// Signs in at the provider's own pages, and agrees there.
async fn agree(chromium: &Chromium, name: &str) {
    chromium.fill("#login", name).await;
    chromium.click("#yes").await;
    chromium.shows("calendar.read").await;
    chromium.click("#yes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_in_and_the_call_goes_on() {
    for login in [Login::Cookie, Login::OpenId] {
        for (revision, tool) in [
            (Revision::V2025_11_25, "visit"),
            (Revision::V2025_11_25, "require"),
            (Revision::V2026_07_28, "visit"),
            (Revision::V2026_07_28, "require"),
        ] {
            let Some(rig) = Rig::start(login).await else {
                return;
            };
            let Some(chromium) = Chromium::start(Setup::default()).await else {
                return;
            };
            let (call, link) = rig.call("ada", revision, tool).await;
            if login == Login::Cookie {
                chromium.open(&link).await;
                chromium.shows("Please sign in first").await;
                chromium.open(&format!("{}/login/ada", rig.at)).await;
                chromium.open(&link).await;
            } else {
                chromium.open(&link).await;
                chromium.shows("Please sign in first").await;
                chromium.click("a.btn.main").await;
                agree(&chromium, "ada").await;
            }
            chromium.shows("asks you to connect Calendar").await;
            for words in [
                "signed in as ada",
                "So that I can read",
                "127.0.0.1",
                "calendar.read",
            ] {
                chromium.shows(words).await;
            }
            assert!(!call.is_finished());
            chromium.click("a.btn.main").await;
            if login == Login::Cookie {
                agree(&chromium, "ada").await;
            }
            chromium.shows("Connected").await;
            let result = call.await.unwrap().unwrap();
            assert_eq!(
                said(&result),
                ("nothing until noon".into(), false),
                "{tool} on {revision}"
            );
            rig.has_token_of("ada").await;
            // A second visit to a finished link says so.
            chromium.open(&link).await;
            chromium.shows("Connected").await;
            chromium.close().await;
        }
    }
}

/// Eve sends her link to Ada, who follows it in her own browser, signed in as herself.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_was_sent_to_somebody_else_leads_nowhere() {
    for login in [Login::Cookie, Login::OpenId] {
        let Some(rig) = Rig::start(login).await else {
            return;
        };
        let Some(chromium) = Chromium::start(Setup::default()).await else {
            return;
        };
        let (call, link) = rig.call("eve", Revision::V2025_11_25, "visit").await;
        if login == Login::Cookie {
            chromium.open(&format!("{}/login/ada", rig.at)).await;
            chromium.open(&link).await;
        } else {
            chromium.open(&link).await;
            chromium.click("a.btn.main").await;
            agree(&chromium, "ada").await;
        }
        chromium.shows("made for another person").await;
        assert_eq!(chromium.count("a, button").await, 0, "there is no way on");
        assert!(!call.is_finished());
        call.abort();
        rig.has_nothing();
        chromium.close().await;
    }
}

/// Declining is one click, in a browser that reports the origin of its forms.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_says_no_on_the_page_and_the_call_ends_with_it() {
    let Some(rig) = Rig::start(Login::Cookie).await else {
        return;
    };
    let Some(chromium) = Chromium::start(Setup::default()).await else {
        return;
    };
    chromium.open(&format!("{}/login/ada", rig.at)).await;
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (call, link) = rig.call("ada", revision, "visit").await;
        chromium.open(&link).await;
        chromium.click("button.quiet").await;
        chromium.shows("Not connected").await;
        let (words, is_error) = said(&call.await.unwrap().unwrap());
        assert!(is_error && words.contains("declined"), "{words}");
    }
    rig.has_nothing();
    chromium.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_leaves_a_key_on_a_page_wrong_then_right() {
    let Some(rig) = Rig::start(Login::Cookie).await else {
        return;
    };
    let Some(chromium) = Chromium::start(Setup::default()).await else {
        return;
    };
    chromium.open(&format!("{}/login/ada", rig.at)).await;
    let (call, link) = rig.call("ada", Revision::V2025_11_25, "secret").await;
    chromium.open(&link).await;
    chromium.fill("#secret", "wrong").await;
    chromium.click("button.main").await;
    chromium.shows("Notes does not know this key").await;
    chromium.fill("#secret", "right").await;
    chromium.click("button.main").await;
    chromium.shows("Connected").await;
    assert_eq!(said(&call.await.unwrap().unwrap()), ("noted".into(), false));
    chromium.close().await;
}
