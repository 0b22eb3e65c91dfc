//! A client can use a `requestState` only to return it, once, for the same call, in time.

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_server::seal::{Key, Keys, MemoryStore};
use mcp_elicit_server::{ElicitingExt, ElicitingServer, ServerSettings};
use rmcp::model::{CallToolRequestParams, InputRequests};
use serde_json::{Value, json};

use crate::asker::Asker;
use crate::harness::{ScriptedUser, complete, once, required, retry};

const AGE: &str = "age";

fn call(tool: &'static str) -> CallToolRequestParams {
    CallToolRequestParams::new(tool)
}

fn old_enough(requests: &InputRequests) -> Vec<(String, Value)> {
    requests
        .keys()
        .map(|key| (key.clone(), json!({ "age": 40 })))
        .collect()
}

fn server(settings: ServerSettings) -> ElicitingServer<Asker> {
    Asker.eliciting(settings)
}

/// Plays the first round of `age` as Ada. Returns the retry that would complete it.
async fn ada(settings: &ServerSettings) -> (ScriptedUser, CallToolRequestParams) {
    let ada = ScriptedUser::answering("2026-07-28", []).called("ada");
    let client = ada.meet(server(settings.clone())).await;
    let (requests, state) = required(once(&client, &call(AGE)).await.unwrap());
    let retry = retry(&call(AGE), &state, old_enough(&requests));
    (ada, retry)
}

/// Uses the name that the client reports as the principal, which is enough for a test.
fn by_client_name(settings: ServerSettings) -> ServerSettings {
    settings.principal(|context| context.client_info().map(|info| info.name))
}

#[tokio::test(start_paused = true)]
async fn the_state_is_good_for_the_same_call() {
    let settings = by_client_name(ServerSettings::default());
    let (ada, retry) = ada(&settings).await;
    let client = ada.meet(server(settings)).await;
    assert_eq!(complete(once(&client, &retry).await.unwrap()), "40");
}

#[tokio::test(start_paused = true)]
async fn another_principal_tool_or_argument_is_refused() {
    let settings = by_client_name(ServerSettings::default());
    let (ada, retry) = ada(&settings).await;
    let eve = ScriptedUser::answering("2026-07-28", [])
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
    let keys = |byte| Keys::new(Key::new("k", [byte; 32]).unwrap());
    let settings = ServerSettings::default().keys(keys(1)).audience("one");
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
    let settings = ServerSettings::default();
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
    let person = ScriptedUser::answering("2026-07-28", []);
    let settings = person
        .clock
        .settings()
        .timeout(Duration::from_secs(2 * 60 * 60))
        .state_lifetime(Duration::from_secs(60 * 60));
    let client = person.meet(server(settings)).await;
    let (requests, state) = required(once(&client, &call(AGE)).await.unwrap());
    let retry = retry(&call(AGE), &state, old_enough(&requests));
    person.clock.advance(Duration::from_secs(60 * 60));
    let error = once(&client, &retry).await.unwrap_err();
    assert!(error.message.contains("expired"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn with_a_store_a_state_counts_once() {
    let settings = ServerSettings::default().store(Arc::new(MemoryStore::new()));
    let (ada, retry) = ada(&settings).await;
    let client = ada.meet(server(settings)).await;
    assert_eq!(complete(once(&client, &retry).await.unwrap()), "40");
    let error = once(&client, &retry).await.unwrap_err();
    assert!(error.message.contains("used before"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_store_it_counts_once_in_this_process() {
    let settings = ServerSettings::default();
    let (ada, retry) = ada(&settings).await;
    let client = ada.meet(server(settings)).await;
    assert_eq!(complete(once(&client, &retry).await.unwrap()), "40");
    // Another wrapper of the same process knows it too: a stateless service creates a wrapper for each request.
    for settings in [ServerSettings::default(), ServerSettings::default()] {
        let client = ada.meet(server(settings)).await;
        let error = once(&client, &retry).await.unwrap_err();
        assert!(error.message.contains("used before"), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_that_may_be_used_again_counts_until_it_expires_as_the_docs_say() {
    let settings = ServerSettings::default().single_use(false);
    let (ada, retry) = ada(&settings).await;
    let client = ada.meet(server(settings)).await;
    for _ in 0..2 {
        assert_eq!(complete(once(&client, &retry).await.unwrap()), "40");
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_too_large_is_an_error_or_kept() {
    let person = ScriptedUser::answering("2026-07-28", []);
    let small = ServerSettings::default().state_limit(200);
    let client = person.meet(server(small.clone())).await;
    let error = once(&client, &call(AGE)).await.unwrap_err();
    assert!(error.message.contains("200"), "{error:?}");

    let (ada, retry) = ada(&small.store(Arc::new(MemoryStore::new()))).await;
    assert!(retry.request_state.as_ref().unwrap().len() <= 200);
    let elsewhere = ada.meet(server(ServerSettings::default())).await;
    assert_eq!(
        once(&elsewhere, &retry).await.unwrap_err().code.0,
        -32602,
        "what is kept elsewhere is not found here"
    );
}

#[tokio::test(start_paused = true)]
async fn a_kept_state_comes_back() {
    let settings = ServerSettings::default()
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
        let (ada, mut retry) = ada(&ServerSettings::default()).await;
        for reply in retry.input_responses.as_mut().unwrap().values_mut() {
            *reply = rubbish.clone();
        }
        let client = ada.meet(server(ServerSettings::default())).await;
        let error = once(&client, &retry).await.unwrap_err();
        assert_eq!(error.code.0, -32602, "{rubbish}: {error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_without_a_state_counts_for_nothing_without_a_key() {
    let person = ScriptedUser::answering("2026-07-28", []);
    let client = person.meet(server(ServerSettings::default())).await;
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
    let person = ScriptedUser::answering("2026-07-28", []);
    let client = person.meet(server(ServerSettings::default())).await;
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

/// An answer is final: a state of a later round accepts no new answer to a question of an earlier round, and a state of
/// an earlier round accepts none to a later question.
#[tokio::test(start_paused = true)]
async fn rounds_cannot_be_reordered() {
    let person = ScriptedUser::answering("2026-07-28", []);
    let client = person
        .meet(server(ServerSettings::default().single_use(false)))
        .await;
    let deploy = call("deploy");
    let key_of = |requests: &InputRequests| requests.keys().next().unwrap().clone();
    let (first, first_state) = required(once(&client, &deploy).await.unwrap());
    let where_to = key_of(&first);
    let production = json!({ "environment": "production" });
    let go_on = retry(
        &deploy,
        &first_state,
        [(where_to.clone(), production.clone())],
    );
    let (second, second_state) = required(once(&client, &go_on).await.unwrap());
    let really = key_of(&second);

    let both = [
        (where_to.clone(), production),
        (really.clone(), json!({ "confirm": true })),
    ];
    let ahead = retry(&deploy, &first_state, both);
    let (asked, _) = required(once(&client, &ahead).await.unwrap());
    assert_eq!(
        key_of(&asked),
        really,
        "an answer cannot come before its question"
    );

    let both = [
        (where_to, json!({ "environment": "staging" })),
        (really, json!({ "confirm": true })),
    ];
    let back = retry(&deploy, &second_state, both);
    assert_eq!(
        complete(once(&client, &back).await.unwrap()),
        "Production None",
        "an answer cannot be taken back"
    );
}

/// A client that comes back without an answer gets the same question and a state of the same size, until the limit.
#[tokio::test(start_paused = true)]
async fn a_thousand_rounds_without_an_answer() {
    let person = ScriptedUser::answering("2026-07-28", []);
    let client = person
        .meet(server(
            ServerSettings::default()
                .questions_per_call(1_000)
                .single_use(false),
        ))
        .await;
    let (first, mut state) = required(once(&client, &call(AGE)).await.unwrap());
    let length = state.len();
    for _ in 1..1_000 {
        let again = call(AGE).with_request_state(state);
        let (requests, next) = required(once(&client, &again).await.unwrap());
        assert_eq!(requests, first);
        // The number of the round grows by three digits.
        assert!(next.len() <= length + 8, "{} {length}", next.len());
        state = next;
    }
    let answered = retry(&call(AGE), &state, old_enough(&first));
    assert_eq!(complete(once(&client, &answered).await.unwrap()), "40");
    let once_more = call(AGE).with_request_state(state);
    let error = once(&client, &once_more).await.unwrap_err();
    assert_eq!(error.code.0, -32000, "{error:?}");
}

/// A thousand questions in one call: the state grows with the answers, and stops at its limit with an error.
#[tokio::test(start_paused = true)]
async fn a_call_without_end_stops_at_the_limit_of_its_state() {
    let person = ScriptedUser::answering("2026-07-28", []);
    let settings = ServerSettings::default()
        .questions_per_call(1_000)
        .state_limit(4_096);
    let client = person.meet(server(settings)).await;
    let many = call("endless");
    let mut request = many.clone();
    let mut rounds = 0;
    let error = loop {
        match once(&client, &request).await {
            Ok(response) => {
                let (requests, state) = required(response);
                let answers: Vec<_> = requests
                    .keys()
                    .map(|key| (key.clone(), json!({ "choice": "a" })))
                    .collect();
                request = retry(&many, &state, answers);
                rounds += 1;
            }
            Err(error) => break error,
        }
    };
    assert!(error.message.contains("4096"), "{error:?}");
    assert!((10..100).contains(&rounds), "{rounds}");
}

/// A change of any one bit of the state, as the client sends it, causes an error and never another question.
#[tokio::test(start_paused = true)]
async fn every_bit_of_a_state_counts() {
    let settings = ServerSettings::default();
    let (ada, retry) = ada(&settings).await;
    let client = ada.meet(server(settings)).await;
    let state = retry.request_state.clone().unwrap();
    for bit in 0..state.len() * 8 {
        let mut flipped = state.clone().into_bytes();
        flipped[bit / 8] ^= 1 << (bit % 8);
        // Bytes that are not text are not a JSON string either.
        let Ok(flipped) = String::from_utf8(flipped) else {
            continue;
        };
        let forged = retry.clone().with_request_state(flipped.clone());
        match once(&client, &forged).await {
            Err(error) => assert_eq!(error.code.0, -32602, "{flipped}: {error:?}"),
            // With another prefix the state belongs to a handler that asks by hand: the question is asked again.
            Ok(response) => {
                assert!(bit / 8 < 4, "{flipped}");
                required(response);
            }
        }
    }
}
