//! Stolen links, answers and cookies.

use mcp_elicit_core::wire::Revision;

use crate::http_browser::HttpBrowser;
use crate::rig::{Login, Rig, said};

/// The specification's phishing case: Eve requests a link and sends it to Ada, to get Ada's account into her own.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_was_sent_to_somebody_else_leads_nowhere() {
    for login in [Login::Cookie, Login::OpenId] {
        let Some(rig) = Rig::start(login).await else {
            return;
        };
        let (call, link) = rig.call("eve", Revision::V2026_07_28, "visit").await;
        let mut ada = HttpBrowser::new();
        if login == Login::Cookie {
            ada.get(&format!("{}/login/ada", rig.at)).await;
        } else {
            let page = ada.get(&link).await;
            assert_eq!(page.status, 401, "{page:?}");
            assert!(page.body.contains("Please sign in first"), "{page:?}");
            assert!(!page.body.contains("Calendar"), "{page:?}");
            let page = ada.get(&format!("{link}/sign-in")).await;
            let back = rig.connect.sign_in_redirect_uri();
            let back = ada.agree(page, "ada", &back).await;
            let page = ada.get(back.as_str()).await;
            assert_eq!(page.status, 303, "{page:?}");
        }
        for way in ["", "/go"] {
            let page = ada.get(&format!("{link}{way}")).await;
            assert_eq!(page.status, 403, "{page:?}");
            assert!(page.body.contains("made for another person"), "{page:?}");
            assert!(page.onward.is_none());
        }
        let page = ada.post(&format!("{link}/decline"), "").await;
        assert_eq!(page.status, 403, "nobody else can say no either: {page:?}");
        assert!(!call.is_finished());
        call.abort();
        rig.has_nothing();
    }
}

/// Eve goes as far as the provider's answer and sends that to Ada, so that Ada's browser finishes it; and the reverse.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_in_the_browser_that_left_and_nowhere_else() {
    let Some(rig) = Rig::start(Login::Cookie).await else {
        return;
    };
    let (call, link) = rig.call("eve", Revision::V2026_07_28, "visit").await;
    let mut eve = HttpBrowser::new();
    eve.get(&format!("{}/login/eve", rig.at)).await;
    let page = eve.get(&format!("{link}/go")).await;
    let answer = eve.agree(page, "eve", &rig.back()).await;

    let mut ada = HttpBrowser::new();
    ada.get(&format!("{}/login/ada", rig.at)).await;
    let page = ada.get(answer.as_str()).await;
    assert_eq!(page.status, 400, "{page:?}");
    assert!(page.body.contains("did not start here"), "{page:?}");

    // In the same browser, but with another person signed in by now.
    eve.get(&format!("{}/login/ada", rig.at)).await;
    let page = eve.get(answer.as_str()).await;
    assert_eq!(page.status, 403, "{page:?}");
    assert!(page.body.contains("made for another person"), "{page:?}");
    rig.has_nothing();
    call.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_answer_is_thrown_away() {
    let Some(rig) = Rig::start(Login::Cookie).await else {
        return;
    };
    let (call, link) = rig.call("ada", Revision::V2026_07_28, "visit").await;
    let mut ada = HttpBrowser::new();
    ada.get(&format!("{}/login/ada", rig.at)).await;
    for (name, value, status, words) in [
        ("state", Some("another"), 400, "did not start here"),
        ("state", None, 400, "did not start here"),
        // RFC 9207, which this provider promises to follow.
        (
            "iss",
            Some("https://evil.example"),
            400,
            "not from Calendar",
        ),
        ("iss", None, 400, "not from Calendar"),
        ("code", Some("stolen"), 502, "does not accept"),
        ("code", None, 502, "cannot be trusted"),
        (
            "error",
            Some("<script>alert(1)</script>"),
            502,
            "cannot be trusted",
        ),
    ] {
        let page = ada.get(&format!("{link}/go")).await;
        let mut answer = ada.agree(page, "ada", &rig.back()).await;
        let kept: Vec<(String, String)> = answer
            .query_pairs()
            .filter(|(found, _)| found != name)
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        answer.query_pairs_mut().clear().extend_pairs(&kept);
        if let Some(value) = value {
            answer.query_pairs_mut().append_pair(name, value);
        }
        let page = ada.get(answer.as_str()).await;
        assert_eq!(page.status, status, "{name} {value:?}: {page:?}");
        assert!(page.body.contains(words), "{name} {value:?}: {page:?}");
        assert!(!page.body.contains("script"), "{page:?}");
    }
    // An answer at the redirect URI of another purpose.
    let page = ada.get(&format!("{link}/go")).await;
    let answer = ada.agree(page, "ada", &rig.back()).await;
    let elsewhere = answer
        .as_str()
        .replace("/back/Calendar", "/back/The%20others");
    let page = ada.get(&elsewhere).await;
    assert_eq!(page.status, 400, "{page:?}");
    rig.has_nothing();

    // None of this has used up the link.
    let page = ada.get(answer.as_str()).await;
    assert_eq!(page.status, 200, "{page:?}");
    assert_eq!(
        said(&call.await.unwrap().unwrap()),
        ("nothing until noon".into(), false)
    );
    rig.has_token_of("ada").await;
    let page = ada.get(answer.as_str()).await;
    assert_eq!(page.status, 400, "an answer counts once: {page:?}");
    let page = ada.get(&format!("{link}/go")).await;
    assert_eq!(page.status, 303);
    let again = ada.agree(page, "ada", &rig.back()).await;
    let page = ada.get(again.as_str()).await;
    assert_eq!(page.status, 410, "and so does a link: {page:?}");
}

/// A request to the provider cannot be changed on its way without being detected.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_request_is_noticed() {
    let Some(rig) = Rig::start(Login::Cookie).await else {
        return;
    };
    let (call, link) = rig.call("ada", Revision::V2026_07_28, "visit").await;
    let mut ada = HttpBrowser::new();
    ada.get(&format!("{}/login/ada", rig.at)).await;
    let other_challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    for (name, value, words) in [
        // An ID token that was made for another sign-in.
        ("nonce", "another", "cannot be trusted"),
        // A code that was made for another verifier.
        ("code_challenge", other_challenge, "does not accept"),
    ] {
        let page = ada.get(&format!("{link}/go")).await;
        let mut request = page.onward.unwrap();
        let pairs: Vec<(String, String)> = request
            .query_pairs()
            .map(|(found, kept)| {
                let value = if found == name { value.into() } else { kept };
                (found.into_owned(), value.into_owned())
            })
            .collect();
        let has = |name: &str, value: &str| pairs.iter().any(|(n, v)| n == name && v == value);
        assert!(has(name, value) && has("code_challenge_method", "S256"));
        assert!(has("redirect_uri", &rig.back()) && has("response_type", "code"));
        request.query_pairs_mut().clear().extend_pairs(&pairs);
        let page = ada.get(request.as_str()).await;
        let answer = ada.agree(page, "ada", &rig.back()).await;
        let page = ada.get(answer.as_str()).await;
        assert_eq!(page.status, 502, "{name}: {page:?}");
        assert!(page.body.contains(words), "{name}: {page:?}");
    }
    rig.has_nothing();
    call.abort();
}
