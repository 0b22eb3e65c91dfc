//! Tests of the frames of questions in both eras: declared capabilities, answers, errors, withdrawal.

mod wire;

use std::time::Duration;

use mcp_elicit_client::responder::{Callback, Defaults, ResponderError, Script};
use mcp_elicit_client::{
    CallError, CallOptions, ClientSettings, ConnectOptions, Connection, ElicitingClient,
    QuestionError, answer,
};
use mcp_elicit_core::wire::{Capability, Revision};
use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};
use wire::{Server, connected, form};

const PUSHED: Revision = Revision::V2025_11_25;
const ROUNDS: Revision = Revision::V2026_07_28;

async fn call(connection: &Connection<()>) -> Result<CallToolResult, CallError> {
    connection
        .call_tool("go", Map::new(), &CallOptions::default())
        .await
}

fn done() -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]})
}

fn input_required(requests: &Value) -> Value {
    json!({"resultType": "input_required", "inputRequests": requests, "requestState": "s1"})
}

fn elicitation(params: &Value) -> Value {
    json!({"method": "elicitation/create", "params": params})
}

fn accepting(content: &Value) -> Script {
    Script::from_json(&json!([{"action": "accept", "content": content}]).to_string())
        .expect("a list of answers")
}

/// Responds with the error that requires visits first.
async fn require(server: &mut Server, id: &Value, data: Value) {
    let error = json!({"code": -32042, "message": "visit first", "data": data});
    server
        .send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
        .await;
}

/// Makes a call while the server pushes one question. Returns the client's answer.
async fn pushed(
    revision: Revision,
    settings: ClientSettings,
    params: Value,
) -> (Value, Result<CallToolResult, CallError>) {
    let (connection, mut server, _) = connected(revision, settings).await;
    let serving = async {
        let request = server.request("tools/call").await;
        server.push("q1", params).await;
        let response = server.response("q1").await;
        server.result(&request["id"], done()).await;
        response
    };
    let (response, called) = tokio::join!(serving, call(&connection));
    connection.close().await;
    (response, called)
}

#[tokio::test]
async fn exactly_what_the_responder_can_do_is_declared() {
    for (revision, settings, declared) in [
        (PUSHED, ClientSettings::default(), None),
        (
            PUSHED,
            ClientSettings::default().responder(Defaults),
            Some(json!({"form": {}})),
        ),
        (
            PUSHED,
            ClientSettings::default().responder(Script::decline()),
            Some(json!({"form": {}, "url": {}})),
        ),
        (
            ROUNDS,
            ClientSettings::default().responder(Script::decline()),
            Some(json!({"form": {}, "url": {}})),
        ),
        (ROUNDS, ClientSettings::default(), None),
        (
            Revision::V2025_06_18,
            ClientSettings::default().responder(Script::decline()),
            Some(json!({})),
        ),
    ] {
        let (connection, _server, capabilities) = connected(revision, settings).await;
        assert_eq!(
            capabilities.get("elicitation"),
            declared.as_ref(),
            "{revision}"
        );
        assert_eq!(connection.protocol(), revision.as_str());
    }
}

#[tokio::test]
async fn tasks_are_declared_only_where_they_are_followed() {
    for follows in [false, true] {
        let (ours, theirs) = tokio::io::duplex(4096);
        let mut eliciting = ElicitingClient::new((), "server", ClientSettings::default());
        if follows {
            eliciting = eliciting.following_tasks();
        }
        let (read, write) = tokio::io::split(ours);
        let mut server = Server::over(theirs);
        let options = ConnectOptions::default().revision(ROUNDS);
        let opened = Connection::over(read, write, eliciting, &options);
        let (opened, declared) = tokio::join!(opened, server.greet(ROUNDS));
        assert!(opened.is_ok());
        let tasks = declared["extensions"].get("io.modelcontextprotocol/tasks");
        assert_eq!(tasks.is_some(), follows, "{declared}");
    }
}

#[tokio::test]
async fn a_pushed_question_is_answered_with_what_the_form_takes() {
    let settings =
        ClientSettings::default().responder(accepting(&json!({"place": "there", "count": 6})));
    let (response, called) = pushed(PUSHED, settings, form()).await;
    assert_eq!(
        response["result"],
        json!({"action": "accept", "content": {"place": "there", "count": 6}})
    );
    assert!(called.is_ok());
}

#[tokio::test]
async fn a_wrong_answer_names_the_field_and_is_not_sent() {
    // rmcp alone loses both rules when it reads the schema.
    for (content, field) in [
        (json!({"place": "THERE"}), "place"),
        (json!({"place": "x", "count": 4}), "count"),
    ] {
        let (response, _) = pushed(
            PUSHED,
            ClientSettings::default().responder(accepting(&content)),
            form(),
        )
        .await;
        assert!(response.get("result").is_none(), "{response}");
        let (connection, mut server, _) = connected(
            ROUNDS,
            ClientSettings::default().responder(accepting(&content)),
        )
        .await;
        let serving = async {
            let request = server.request("tools/call").await;
            server
                .result(
                    &request["id"],
                    input_required(&json!({"a": elicitation(&form())})),
                )
                .await;
        };
        let (called, ()) = tokio::join!(call(&connection), serving);
        let Err(CallError::Question(QuestionError::NoResponder {
            why: ResponderError::Refused { violations },
            ..
        })) = called
        else {
            panic!("{called:?}");
        };
        assert_eq!(
            violations
                .iter()
                .next()
                .map(mcp_elicit_core::answer::Violation::field),
            Some(field)
        );
    }
}

#[tokio::test]
async fn decline_and_cancel_are_told_apart() {
    for (script, action) in [(Script::decline(), "decline"), (Script::cancel(), "cancel")] {
        let (response, _) =
            pushed(PUSHED, ClientSettings::default().responder(script), form()).await;
        assert_eq!(response["result"], json!({"action": action}));
    }
}

#[tokio::test]
async fn a_reason_for_declining_stays_here() {
    let responder = Callback::forms(async |_| Ok(answer::decline("none of their business")));
    let (response, _) = pushed(
        PUSHED,
        ClientSettings::default().responder(responder),
        form(),
    )
    .await;
    assert_eq!(response["result"], json!({"action": "decline"}));
}

#[tokio::test]
async fn nobody_there_is_an_error_and_no_decline() {
    let cases = [
        (ClientSettings::default(), PUSHED, -32601),
        (
            ClientSettings::default().responder(Script::from_json("[]").unwrap()),
            PUSHED,
            -32000,
        ),
        (
            ClientSettings::default()
                .responder(Script::by_name([("other".to_owned(), "x".to_owned())])),
            PUSHED,
            -32000,
        ),
    ];
    for (settings, revision, code) in cases {
        let (response, _) = pushed(revision, settings, form()).await;
        assert_eq!(response["error"]["code"], code, "{response}");
        assert!(response.get("result").is_none());
    }
}

#[tokio::test]
async fn a_mode_that_was_not_declared_is_an_error() {
    let url =
        json!({"mode": "url", "message": "m", "url": "https://a.example/", "elicitationId": "e"});
    let (response, _) = pushed(PUSHED, ClientSettings::default().responder(Defaults), url).await;
    assert_eq!(response["error"]["code"], -32602);
    let telepathy = json!({"mode": "telepathy", "message": "m"});
    let (response, _) = pushed(
        PUSHED,
        ClientSettings::default().responder(Defaults),
        telepathy,
    )
    .await;
    assert_eq!(response["error"]["code"], -32602);
}

#[tokio::test]
async fn an_illegal_form_is_the_server_s_fault() {
    let nested = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"type": "object"}}}});
    let (response, _) = pushed(
        PUSHED,
        ClientSettings::default().responder(Defaults),
        nested,
    )
    .await;
    assert_eq!(response["error"]["code"], -32602);
    assert_eq!(response["error"]["data"]["field"], "properties.a.type");
}

#[tokio::test]
async fn running_out_of_time_is_a_timeout_and_no_action() {
    let never = Callback::forms(async |_| std::future::pending().await);
    let settings = ClientSettings::default()
        .responder(never)
        .answer_within(Duration::from_millis(1_200));
    let (response, _) = pushed(PUSHED, settings, form()).await;
    assert_eq!(response["error"]["code"], -32000);
    assert_eq!(response["error"]["data"]["timeoutSeconds"], 2);
}

#[tokio::test]
async fn a_withdrawn_question_goes_off_the_screen_with_the_reason() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let shown = Callback::forms(move |question| {
        let tell = tell.clone();
        async move {
            tell.send("shown".to_owned()).unwrap();
            let withdrawn = question.withdrawn();
            tokio::spawn(async move { tell.send(withdrawn.await).unwrap() });
            std::future::pending().await
        }
    });
    let (connection, mut server, _) =
        connected(PUSHED, ClientSettings::default().responder(shown)).await;
    let serving = async {
        let request = server.request("tools/call").await;
        server.push("q1", form()).await;
        assert_eq!(told.recv().await.as_deref(), Some("shown"));
        let cancelled = json!({"requestId": "q1", "reason": "changed my mind"});
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})).await;
        assert_eq!(told.recv().await.as_deref(), Some("the server withdrew it"));
        server.push("q2", form()).await;
        assert_eq!(told.recv().await.as_deref(), Some("shown"));
        server.result(&request["id"], done()).await;
        assert_eq!(told.recv().await.as_deref(), Some("its call is over"));
    };
    let (called, ()) = tokio::join!(call(&connection), serving);
    assert!(called.is_ok());
}

#[tokio::test]
async fn a_round_is_answered_and_sent_again_with_its_state() {
    let script = json!([
        {"action": "accept", "content": {"place": "first"}},
        {"action": "decline"},
    ]);
    let script = Script::from_json(&script.to_string()).unwrap();
    let (connection, mut server, _) =
        connected(ROUNDS, ClientSettings::default().responder(script)).await;
    let serving = async {
        let first = server.request("tools/call").await;
        // The server's order counts, not the alphabet's.
        let requests = json!({"zz": elicitation(&form()), "aa": elicitation(&form())});
        server.result(&first["id"], input_required(&requests)).await;
        let second = server.request("tools/call").await;
        assert_ne!(first["id"], second["id"]);
        assert_eq!(second["params"]["requestState"], "s1");
        assert_eq!(
            second["params"]["inputResponses"],
            json!({"zz": {"action": "accept", "content": {"place": "first"}}, "aa": {"action": "decline"}})
        );
        server
            .result(
                &second["id"],
                json!({"resultType": "input_required", "requestState": "s2"}),
            )
            .await;
        let third = server.request("tools/call").await;
        assert_eq!(third["params"]["requestState"], "s2");
        assert!(third["params"].get("inputResponses").is_none());
        server.result(&third["id"], done()).await;
    };
    let (called, ()) = tokio::join!(call(&connection), serving);
    assert!(called.is_ok());
}

/// Serves every attempt with the result of `next` for its number.
async fn serve_rounds(server: &mut Server, next: impl Fn(usize) -> Value) -> usize {
    for attempt in 0.. {
        let Some(frame) = server.read().await else {
            return attempt;
        };
        if frame["method"] == "tools/call" {
            server.result(&frame["id"], next(attempt)).await;
        }
    }
    unreachable!("the client stops")
}

#[tokio::test]
async fn a_server_that_does_not_listen_is_left() {
    let accept = || ClientSettings::default().responder(Defaults);
    let (connection, mut server, _) = connected(ROUNDS, accept()).await;
    let calling = async {
        let called = call(&connection).await;
        connection.close().await;
        called
    };
    let same = |_| input_required(&json!({"a": elicitation(&form())}));
    let (called, _) = tokio::join!(calling, serve_rounds(&mut server, same));
    assert!(matches!(called, Err(CallError::SameAgain)), "{called:?}");

    let (connection, mut server, _) = connected(ROUNDS, accept().rounds(4)).await;
    let calling = async {
        let called = call(&connection).await;
        connection.close().await;
        called
    };
    let changing = |attempt: usize| {
        let requests = json!({"a": elicitation(&form())});
        json!({"resultType": "input_required", "inputRequests": requests, "requestState": attempt.to_string()})
    };
    let (called, _) = tokio::join!(calling, serve_rounds(&mut server, changing));
    assert!(
        matches!(called, Err(CallError::TooManyRounds { limit: 4 })),
        "{called:?}"
    );
}

#[tokio::test]
async fn a_task_asks_each_question_once() {
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&asked);
    let responder = Callback::new(
        Capability::FORM,
        move |question: mcp_elicit_client::Question| {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            async move { Ok(question.accept(json!({"place": "here"})).unwrap()) }
        },
    );
    let (connection, mut server, _) =
        connected(ROUNDS, ClientSettings::default().responder(responder)).await;
    let task = |status: &str| {
        json!({"resultType": "complete", "taskId": "t", "status": status, "createdAt": "2026-01-01T00:00:00Z",
               "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": null, "pollIntervalMs": 50})
    };
    let serving = async {
        let request = server.request("tools/call").await;
        let mut created = task("working");
        created["resultType"] = "task".into();
        server.result(&request["id"], created).await;
        // The same key is listed twice, as by a server that has not processed the answer yet.
        for _ in 0..2 {
            let poll = server.request("tasks/get").await;
            let mut waiting = task("input_required");
            waiting["inputRequests"] = json!({"k": elicitation(&form())});
            server.result(&poll["id"], waiting).await;
            if asked.load(std::sync::atomic::Ordering::Relaxed) == 0 {
                let update = server.request("tasks/update").await;
                assert_eq!(update["params"]["inputResponses"]["k"]["action"], "accept");
                server
                    .result(&update["id"], json!({"resultType": "complete"}))
                    .await;
            }
        }
        let poll = server.request("tasks/get").await;
        let mut finished = task("completed");
        finished["result"] = done();
        server.result(&poll["id"], finished).await;
    };
    let (called, ()) = tokio::join!(call(&connection), serving);
    assert!(called.is_ok(), "{called:?}");
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_required_visit_is_made_and_the_call_tried_again() {
    let script = Script::from_json(r#"[{"action":"accept"},{"action":"accept"}]"#).unwrap();
    let (connection, mut server, _) =
        connected(PUSHED, ClientSettings::default().responder(script)).await;
    let visit = |url: &str, id: &str| json!({"elicitations": [{"mode": "url", "message": "m", "url": url, "elicitationId": id}]});
    let serving = async {
        let first = server.request("tools/call").await;
        require(&mut server, &first["id"], visit("https://a.example/", "e1")).await;
        let second = server.request("tools/call").await;
        require(
            &mut server,
            &second["id"],
            visit("https://b.example/", "e2"),
        )
        .await;
        let third = server.request("tools/call").await;
        require(&mut server, &third["id"], visit("https://a.example/", "e3")).await;
    };
    let (called, ()) = tokio::join!(call(&connection), serving);
    let Err(CallError::SameVisitAgain { host }) = called else {
        panic!("{called:?}")
    };
    assert_eq!(host, "a.example");
}

#[tokio::test]
async fn a_visit_that_a_task_requires_is_made_too() {
    let script = Script::from_json(r#"[{"action":"accept"}]"#).unwrap();
    let (connection, mut server, _) =
        connected(PUSHED, ClientSettings::default().responder(script)).await;
    let serving = async {
        let first = server.request("tools/call").await;
        let listed = json!({"mode": "url", "message": "m", "url": "https://a.example/", "elicitationId": "e"});
        require(&mut server, &first["id"], json!({"elicitations": [listed]})).await;
        let second = server.request("tools/call").await;
        assert_eq!(second["params"]["task"], json!({}));
        server.result(&second["id"], done()).await;
    };
    let options = CallOptions::default().as_task(true);
    let (called, ()) = tokio::join!(connection.call_tool("go", Map::new(), &options), serving);
    assert!(called.is_ok(), "{called:?}");
}

#[tokio::test]
async fn a_server_that_wants_new_visits_without_end_is_left() {
    let script = Script::from_json(r#"[{"action":"accept"},{"action":"accept"}]"#).unwrap();
    let settings = ClientSettings::default().responder(script).rounds(2);
    let (connection, mut server, _) = connected(PUSHED, settings).await;
    let serving = async {
        for attempt in 0..3 {
            let request = server.request("tools/call").await;
            let url = format!("https://a.example/?state={attempt}");
            let listed = json!({"mode": "url", "message": "m", "url": url, "elicitationId": url});
            require(
                &mut server,
                &request["id"],
                json!({"elicitations": [listed]}),
            )
            .await;
        }
    };
    let (called, ()) = tokio::join!(call(&connection), serving);
    assert!(
        matches!(called, Err(CallError::TooManyRounds { limit: 2 })),
        "{called:?}"
    );
}

#[tokio::test]
async fn the_end_of_a_visit_is_heard_from_the_server_and_only_for_known_ids() {
    // This responder cannot report that a visit is done, so only the server's notification ends the wait.
    let agrees = Callback::new(
        Capability::BOTH,
        async |question: mcp_elicit_client::Question| Ok(question.accept(Value::Null).unwrap()),
    );
    let (connection, mut server, _) =
        connected(PUSHED, ClientSettings::default().responder(agrees)).await;
    let complete = |id: &str| json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": id}});
    let serving = async {
        let first = server.request("tools/call").await;
        let listed = json!({"mode": "url", "message": "m", "url": "https://a.example/", "elicitationId": "mine"});
        require(&mut server, &first["id"], json!({"elicitations": [listed]})).await;
        server.send(&complete("someone else's")).await;
        let early =
            tokio::time::timeout(Duration::from_millis(200), server.request("tools/call")).await;
        assert!(early.is_err(), "a foreign id ended the wait");
        server.send(&complete("mine")).await;
        let second = server.request("tools/call").await;
        server.result(&second["id"], done()).await;
    };
    let (called, ()) = tokio::join!(call(&connection), serving);
    assert!(called.is_ok());
}

#[tokio::test]
async fn stopping_a_call_tells_the_server() {
    let never = Callback::forms(async |_| std::future::pending().await);
    let (connection, mut server, _) =
        connected(PUSHED, ClientSettings::default().responder(never)).await;
    let options = CallOptions::default();
    let serving = async {
        let request = server.request("tools/call").await;
        options.stop.cancel();
        let cancelled = server.request("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], request["id"]);
    };
    let (called, ()) = tokio::join!(connection.call_tool("go", Map::new(), &options), serving);
    assert!(matches!(called, Err(CallError::Stopped)), "{called:?}");
}
