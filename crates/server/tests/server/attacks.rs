//! Whoever carries a `requestState` can do nothing with it but bring it back, once, for the same call, in time.

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_server::seal::{Key, Keys, MemoryStore};
use mcp_elicit_server::{Eliciting, ElicitingExt, Settings};
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};

use crate::eras::Asker;
use crate::harness::{Person, complete, once, required, retry};

const AGE: &str = "age";

fn call(tool: &'static str) -> CallToolRequestParams {
    CallToolRequestParams::new(tool)
}

fn old_enough(requests: &rmcp::model::InputRequests) -> Vec<(String, Value)> {
    requests
        .keys()
        .map(|key| (key.clone(), json!({ "age": 40 })))
        .collect()
}

fn server(settings: Settings) -> Eliciting<Asker> {
    Asker.eliciting(settings)
}

/// The first round of `age` as Ada plays it, and the retry that would complete it.
async fn ada(settings: &Settings) -> (Person, CallToolRequestParams) {
    let ada = Person::who("2026-07-28", []).called("ada");
    let client = ada.meet(server(settings.clone())).await;
    let (requests, state) = required(once(&client, &call(AGE)).await.unwrap());
    let retry = retry(&call(AGE), &state, old_enough(&requests));
    (ada, retry)
}

/// A principal is whoever the client says it is; enough for a test.
fn by_client_name(settings: Settings) -> Settings {
    settings.principal(|context| context.client_info().map(|info| info.name))
}

#[tokio::test(start_paused = true)]
async fn the_state_is_good_for_the_same_call() {
    let settings = by_client_name(Settings::default());
    let (ada, retry) = ada(&settings).await;
    let client = ada.meet(server(settings)).await;
    assert_eq!(complete(once(&client, &retry).await.unwrap()), "40");
}

#[tokio::test(start_paused = true)]
async fn another_principal_tool_or_argument_is_refused() {
    let settings = by_client_name(Settings::default());
    let (ada, retry) = ada(&settings).await;
    let eve = Person::who("2026-07-28", [])
        .called("eve")
        .meet(server(settings.clone()))
        .await;
    let error = once(&eve, &retry).await.unwrap_err();
    assert_eq!(error.code.0, -32602, "{error:?}");
    assert!(
        !format!("{error:?}").contains("principal"),
        "a forger learns nothing: {error:?}"
    );

    let client = ada.meet(server(settings)).await;
    let mut other_tool = retry.clone();
    other_tool.name = "choose".into();
    assert_eq!(once(&client, &other_tool).await.unwrap_err().code.0, -32602);
    let mut other_arguments = retry.clone();
    other_arguments.arguments = json!({ "more": 1 }).as_object().cloned();
    assert_eq!(
        once(&client, &other_arguments).await.unwrap_err().code.0,
        -32602
    );
}

#[tokio::test(start_paused = true)]
async fn another_key_or_server_is_refused() {
    let keys = |byte| Keys::of(Key::new("k", [byte; 32]).unwrap());
    let settings = Settings::default().keys(keys(1)).audience("one");
    let (ada, retry) = ada(&settings).await;
    for other in [
        settings.clone().keys(keys(2)),
        settings.clone().audience("two"),
    ] {
        let client = ada.meet(server(other)).await;
        assert_eq!(once(&client, &retry).await.unwrap_err().code.0, -32602);
    }
    let client = ada.meet(server(settings)).await;
    assert_eq!(complete(once(&client, &retry).await.unwrap()), "40");
}

#[tokio::test(start_paused = true)]
async fn a_changed_state_is_an_error_and_not_a_question() {
    let settings = Settings::default();
    let (ada, retry) = ada(&settings).await;
    let client = ada.meet(server(settings)).await;
    let state = retry.request_state.clone().unwrap();
    let mut changed = state.clone().into_bytes();
    *changed.last_mut().unwrap() ^= 1;
    let states = [
        String::from_utf8(changed).unwrap(),
        format!("{state}-TAMPERED"),
        state[..state.len() - 8].to_owned(),
        "me1.".to_owned(),
        "me1.process.AAAA".to_owned(),
    ];
    for state in states {
        let error = once(&client, &retry.clone().with_request_state(state.clone()))
            .await
            .unwrap_err();
        assert_eq!(error.code.0, -32602, "{state}: {error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_expires() {
    let person = Person::who("2026-07-28", []);
    let settings = person
        .clock
        .settings()
        .timeout(Duration::from_hours(2))
        .state_lifetime(Duration::from_hours(1));
    let client = person.meet(server(settings)).await;
    let (requests, state) = required(once(&client, &call(AGE)).await.unwrap());
    let retry = retry(&call(AGE), &state, old_enough(&requests));
    person.clock.advance(Duration::from_hours(1));
    let error = once(&client, &retry).await.unwrap_err();
    assert!(error.message.contains("expired"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn with_a_store_a_state_counts_once() {
    let settings = Settings::default().store(Arc::new(MemoryStore::new()));
    let (ada, retry) = ada(&settings).await;
    let client = ada.meet(server(settings)).await;
    assert_eq!(complete(once(&client, &retry).await.unwrap()), "40");
    let error = once(&client, &retry).await.unwrap_err();
    assert!(error.message.contains("used before"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_store_it_counts_until_it_expires_as_the_docs_say() {
    let settings = Settings::default();
    let (ada, retry) = ada(&settings).await;
    let client = ada.meet(server(settings)).await;
    for _ in 0..2 {
        assert_eq!(complete(once(&client, &retry).await.unwrap()), "40");
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_too_large_is_an_error_or_kept() {
    let person = Person::who("2026-07-28", []);
    let small = Settings::default().state_limit(200);
    let client = person.meet(server(small.clone())).await;
    let error = once(&client, &call(AGE)).await.unwrap_err();
    assert!(error.message.contains("200"), "{error:?}");

    let (ada, retry) = ada(&small.store(Arc::new(MemoryStore::new()))).await;
    assert!(retry.request_state.as_ref().unwrap().len() <= 200);
    let elsewhere = ada.meet(server(Settings::default())).await;
    assert_eq!(
        once(&elsewhere, &retry).await.unwrap_err().code.0,
        -32602,
        "what is kept elsewhere is not found here"
    );
}

#[tokio::test(start_paused = true)]
async fn a_kept_state_comes_back() {
    let settings = Settings::default()
        .state_limit(200)
        .store(Arc::new(MemoryStore::new()));
    let (ada, retry) = ada(&settings).await;
    let client = ada.meet(server(settings)).await;
    assert_eq!(complete(once(&client, &retry).await.unwrap()), "40");
}

#[tokio::test(start_paused = true)]
async fn replies_that_are_none_are_the_clients_fault() {
    for rubbish in [
        json!(12345),
        json!({}),
        json!({ "action": "maybe" }),
        json!({ "action": "accept", "content": [1] }),
    ] {
        let (ada, mut retry) = ada(&Settings::default()).await;
        for reply in retry.input_responses.as_mut().unwrap().values_mut() {
            *reply = rubbish.clone();
        }
        let client = ada.meet(server(Settings::default())).await;
        let error = once(&client, &retry).await.unwrap_err();
        assert_eq!(error.code.0, -32602, "{rubbish}: {error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_without_a_state_counts_for_nothing_without_a_key() {
    let person = Person::who("2026-07-28", []);
    let client = person.meet(server(Settings::default())).await;
    let (requests, _) = required(once(&client, &call(AGE)).await.unwrap());
    let invented = call(AGE).with_input_responses(
        old_enough(&requests)
            .into_iter()
            .map(|(key, content)| (key, json!({ "action": "accept", "content": content })))
            .collect(),
    );
    required(once(&client, &invented).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_not_taken_for_another_question() {
    // The state of the first question, with the reply under the key that a later question would have.
    let person = Person::who("2026-07-28", []);
    let client = person.meet(server(Settings::default())).await;
    let (requests, state) = required(once(&client, &call("deploy")).await.unwrap());
    let key = requests.keys().next().unwrap().clone();
    let replies = [
        (key, json!({ "environment": "production" })),
        ("confirm".to_owned(), json!({ "confirm": true })),
    ];
    let (next, _) = required(
        once(&client, &retry(&call("deploy"), &state, replies))
            .await
            .unwrap(),
    );
    assert!(
        serde_json::to_string(&next)
            .unwrap()
            .contains("Production?"),
        "the confirmation has to be asked"
    );
}
