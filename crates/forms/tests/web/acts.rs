//! Tests of the requests that count as the person's action.

use std::sync::Arc;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_forms::view::FrontendError;

use crate::fixtures::{Asking, asks, in_seconds, nothing, short};
use crate::http::Visitor;

#[tokio::test]
async fn only_what_was_reviewed_is_sent() {
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &short())).await;
    let visitor = Visitor::enter(&asked.link).await;
    let (here, csrf) = (
        asked.path().to_owned(),
        visitor.hidden(asked.path(), "csrf").await,
    );
    visitor
        .post(
            &format!("{here}/review"),
            &format!("csrf={csrf}&f0=first&f1=3"),
        )
        .await;
    let seen = visitor.hidden(&format!("{here}/review"), "seen").await;
    visitor
        .post(
            &format!("{here}/live"),
            &format!("csrf={csrf}&f0=second&f1=3"),
        )
        .await;
    let accept = format!("{here}/accept");
    for body in [
        format!("csrf={csrf}"),
        format!("csrf={csrf}&seen={seen}"),
        format!("csrf={csrf}&seen={csrf}"),
    ] {
        let reply = visitor.post(&accept, &body).await;
        assert_eq!(
            visitor.inside(&reply),
            Some(format!("{here}/review?changed").as_str())
        );
    }
    assert!(asked.is_waiting());
    let seen = visitor
        .hidden(&format!("{here}/review?changed"), "seen")
        .await;
    visitor
        .post(&accept, &format!("csrf={csrf}&seen={seen}"))
        .await;
    assert_eq!(asked.content().await["name"], "second");
}

#[tokio::test]
async fn an_answer_that_the_form_refuses_is_never_sent() {
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &short())).await;
    let visitor = Visitor::enter(&asked.link).await;
    let (here, csrf) = (
        asked.path().to_owned(),
        visitor.hidden(asked.path(), "csrf").await,
    );
    visitor
        .post(&format!("{here}/live"), &format!("csrf={csrf}&f0=ab&f1=3"))
        .await;
    let reply = visitor
        .post(
            &format!("{here}/accept"),
            &format!("csrf={csrf}&seen={csrf}"),
        )
        .await;
    assert_eq!(
        visitor.inside(&reply),
        Some(format!("{here}?check").as_str())
    );
    assert!(asked.is_waiting());
}

#[tokio::test]
async fn after_the_end_nothing_is_taken() {
    let mut asking = Asking::start().await;
    let asked = asking
        .ask(asks("Go?", &nothing()).until(in_seconds(1)))
        .await;
    let visitor = Visitor::enter(&asked.link).await;
    let (here, csrf) = (
        asked.path().to_owned(),
        visitor.hidden(asked.path(), "csrf").await,
    );
    assert!(matches!(asked.outcome().await, Err(FrontendError::Expired)));
    let reply = visitor
        .post(&format!("{here}/accept"), &format!("csrf={csrf}"))
        .await;
    assert_eq!(
        visitor.inside(&reply),
        Some(format!("{here}?late").as_str())
    );
    assert!(
        visitor
            .get(&format!("{here}?late"))
            .await
            .body
            .contains("Too late")
    );
    assert_eq!(
        visitor
            .post(&format!("{here}/live"), &format!("csrf={csrf}"))
            .await
            .status,
        409
    );
}

#[tokio::test]
async fn a_question_whose_call_has_ended_leaves_the_page() {
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &nothing())).await;
    let visitor = Visitor::enter(&asked.link).await;
    asked.abandon();
    let here = asked.path().to_owned();
    assert!(asked.outcome.await.is_err_and(|error| error.is_cancelled()));
    let page = visitor.get(&here).await.body;
    assert!(page.contains("Withdrawn") && page.contains("the call that asked has ended"));
}

#[tokio::test]
async fn of_many_answers_at_once_one_wins() {
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &nothing())).await;
    let visitor = Arc::new(Visitor::enter(&asked.link).await);
    let (here, csrf) = (
        asked.path().to_owned(),
        visitor.hidden(asked.path(), "csrf").await,
    );
    let presses: Vec<_> = (0..20)
        .map(|n| {
            let act = ["accept", "decline", "cancel"][n % 3];
            let (visitor, path, body) = (
                Arc::clone(&visitor),
                format!("{here}/{act}"),
                format!("csrf={csrf}"),
            );
            tokio::spawn(async move { (act, visitor.post(&path, &body).await) })
        })
        .collect();
    let mut won = Vec::new();
    for press in presses {
        let (act, reply) = press.await.unwrap();
        match visitor.inside(&reply) {
            Some(location) if location == here => won.push(act),
            Some(location) => assert_eq!(location, format!("{here}?late")),
            None => panic!("{}", reply.head),
        }
    }
    assert_eq!(won.len(), 1);
    let outcome = asked.outcome().await.unwrap();
    assert_eq!(outcome.action().as_str(), won[0]);
    assert!(!matches!(outcome, Outcome::Visit));
}

#[tokio::test]
async fn a_form_that_asks_for_a_secret_waits_until_one_allows() {
    let schema = serde_json::json!({"type": "object", "properties": {
        "token": {"type": "string", "title": "API token", "description": "Your password or API key"}
    }, "required": ["token"]});
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Enter your password", &schema)).await;
    let visitor = Visitor::enter(&asked.link).await;
    let (here, csrf) = (
        asked.path().to_owned(),
        visitor.hidden(asked.path(), "csrf").await,
    );
    assert!(
        visitor
            .get(&here)
            .await
            .body
            .contains("Be careful with this form")
    );
    visitor
        .post(&format!("{here}/review"), &format!("csrf={csrf}&f0=abc"))
        .await;
    let seen = visitor.hidden(&format!("{here}/review"), "seen").await;
    let reply = visitor
        .post(
            &format!("{here}/accept"),
            &format!("csrf={csrf}&seen={seen}"),
        )
        .await;
    assert_eq!(
        visitor.inside(&reply),
        Some(format!("{here}/review?allow").as_str())
    );
    assert!(asked.is_waiting());
    visitor
        .post(
            &format!("{here}/accept"),
            &format!("csrf={csrf}&seen={seen}&allow=yes"),
        )
        .await;
    assert_eq!(asked.content().await["token"], "abc");
}

#[tokio::test]
async fn a_no_for_good_is_taken_only_where_it_was_offered() {
    let mut asking = Asking::start().await;
    let asked = asking.ask(asks("Go?", &nothing())).await;
    let visitor = Visitor::enter(&asked.link).await;
    let always = format!("{}/always", asked.path());
    let body = format!("csrf={}", visitor.hidden(asked.path(), "csrf").await);
    assert!(!visitor.get(asked.path()).await.body.contains("permanently"));
    assert_eq!(visitor.post(&always, &body).await.status, 404);
    assert!(asked.is_waiting());

    for (act, for_good) in [("always", true), ("decline", false)] {
        let browser = asking.browser.clone();
        let asked = tokio::spawn(async move {
            browser
                .ask_for_reply(asks("Go on?", &nothing()), std::future::pending())
                .await
        });
        let path = asking.next_path().await;
        let body = format!("csrf={}", visitor.hidden(&path, "csrf").await);
        assert!(visitor.get(&path).await.body.contains("permanently"));
        visitor.post(&format!("{path}/{act}"), &body).await;
        let reply = asked.await.unwrap().unwrap();
        assert_eq!(
            (reply.outcome, reply.from_now_on),
            (Outcome::Decline, for_good)
        );
    }
}
