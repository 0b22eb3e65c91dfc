//! One person and their queue: pending questions are visible, and a permanent decline is kept.

mod wire;

use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use mcp_elicit_client::answer::{accept, declined};
use mcp_elicit_client::consent::StandingAnswer;
use mcp_elicit_client::dispatch::Observer;
use mcp_elicit_client::responder::{
    Callback, Chain, Defaults, Fallback, Responder, ResponderError, VisitFuture,
};
use mcp_elicit_client::{
    Answer, CallError, CallOptions, ClientSettings, Connection, Consent, ElicitingClient, Question,
    QuestionError, QuestionQueue,
};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::wire::{Capability, ElicitRequest, Mode, Revision};
use mcp_elicit_forms::view;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use wire::{Server, connected, form};

const PUSHED: Revision = Revision::V2025_11_25;

async fn call(connection: &Connection<()>) -> Result<(), CallError> {
    let options = CallOptions::default();
    let called = connection.call_tool("go", Map::new(), &options).await;
    called.map(drop)
}

/// Pushes these questions at once, and returns the response to each.
async fn asks(server: &mut Server, questions: usize) -> Vec<Value> {
    let request = server.request("tools/call").await;
    for number in 0..questions {
        server.push(&format!("q{number}"), form()).await;
    }
    let mut answers = Vec::new();
    for number in 0..questions {
        answers.push(server.response(format!("q{number}")).await);
    }
    server.result(&request["id"], json!({"content": []})).await;
    answers
}

/// Keeps every version of the policy.
#[derive(Default)]
struct Keeper(Mutex<Vec<Consent>>);

impl Observer for Keeper {
    fn consent_changed(&self, consent: &Consent) {
        self.0
            .lock()
            .expect("no test panicked")
            .push(consent.clone());
    }
}

#[tokio::test]
async fn a_no_for_good_declines_what_waits_and_what_comes_and_is_given_to_whoever_keeps_it() {
    let asked = Arc::new(Mutex::new(0));
    let counts = Arc::clone(&asked);
    let responder = Callback::forms(move |_| {
        *counts.lock().unwrap() += 1;
        async { Ok(declined().always()) }
    });
    let keeper = Arc::new(Keeper::default());
    let settings = ClientSettings::default()
        .responder(responder)
        .observer(Arc::clone(&keeper));
    let (connection, mut server, _) = connected(PUSHED, settings).await;
    for questions in [3, 1] {
        let (called, answers) = tokio::join!(call(&connection), asks(&mut server, questions));
        called.unwrap();
        for answer in answers {
            assert_eq!(answer["result"], json!({"action": "decline"}));
        }
    }
    assert_eq!(*asked.lock().unwrap(), 1, "the person was asked again");
    let kept = keeper.0.lock().unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(
        kept[0].rule("hostile").answer,
        Some(StandingAnswer::Decline)
    );
    assert_eq!(kept[0].rule("another").answer, None);
}

#[tokio::test]
async fn a_no_for_good_to_one_server_is_not_lost_when_another_gets_one() {
    // As in a host with several servers: each gets the policy that was read from the file.
    let policy = Consent::from_toml("[server.first]\nfields = [\"place\"]\n").unwrap();
    let person = QuestionQueue::new();
    let keeper = Arc::new(Keeper::default());
    let hosts: Vec<_> = ["first", "second", "third"]
        .into_iter()
        .map(|name| {
            let settings = ClientSettings::default()
                .queue(person.clone())
                .consent(policy.clone())
                .observer(Arc::clone(&keeper));
            ElicitingClient::new((), name, settings)
        })
        .collect();
    hosts[0].decline_always();
    let kept = hosts[1].decline_always();
    let written = keeper.0.lock().unwrap().last().cloned().unwrap();
    assert_eq!(written, kept);
    for name in ["first", "second"] {
        assert_eq!(
            written.rule(name).answer,
            Some(StandingAnswer::Decline),
            "{name}"
        );
    }
    assert_eq!(written.rule("third").answer, None);
    assert!(
        written.rule("first").fields.is_some(),
        "the rest of the policy stays"
    );
}

#[test]
fn of_many_at_once_the_last_policy_that_is_kept_has_every_no() {
    let (person, keeper) = (QuestionQueue::new(), Arc::new(Keeper::default()));
    let names: Vec<String> = (0..32).map(|number| format!("server {number}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let settings = ClientSettings::default()
                .queue(person.clone())
                .observer(Arc::clone(&keeper));
            scope.spawn(move || ElicitingClient::new((), name, settings).decline_always());
        }
    });
    let last = keeper.0.lock().unwrap().last().cloned().unwrap();
    assert_eq!(last.server.len(), names.len());
}

/// Creates the reason why a question gets no answer.
type Reason = fn() -> ResponderError;

/// Returns settings with which the question is shown and gets no answer, for this reason.
fn ends(why: Reason) -> ClientSettings {
    ClientSettings::default().responder(Callback::forms(move |_| async move { Err(why()) }))
}

/// Makes a call that asks one question, in the way of the revision. The server responds to the question's error with
/// `late`.
async fn asked_once(
    revision: Revision,
    settings: ClientSettings,
    as_task: bool,
    late: Value,
) -> CallError {
    let (connection, mut server, _) = connected(revision, settings).await;
    let serving = async {
        let mut request = server.request("tools/call").await;
        if revision == Revision::V2026_07_28 {
            let asks = json!({"method": "elicitation/create", "params": form()});
            let required = json!({"resultType": "input_required", "inputRequests": {"a": asks}, "requestState": "s"});
            server.result(&request["id"], required).await;
            return;
        }
        if as_task {
            let task = json!({"taskId": "t", "status": "working", "pollInterval": 60_000});
            server.result(&request["id"], json!({"task": task})).await;
            request = server.request("tasks/result").await;
        }
        server.push("q", form()).await;
        let response = server.response("q").await;
        assert!(
            response.get("error").is_some(),
            "no person acted: {response}"
        );
        if !late.is_null() {
            let mut late = late;
            late["id"] = request["id"].clone();
            return server.send(&late).await;
        }
        let told = server.request("notifications/cancelled").await;
        assert_eq!(told["params"]["requestId"], request["id"]);
    };
    let options = CallOptions::default().as_task(as_task);
    let (called, ()) = tokio::join!(connection.call_tool("go", Map::new(), &options), serving);
    called.expect_err("the call has no result")
}

#[tokio::test]
async fn an_interrupted_question_ends_the_call_in_one_way() {
    let reasons: [(Reason, &str); 2] = [
        (|| ResponderError::Interrupted, "Interrupted"),
        (
            || ResponderError::Withdrawn {
                why: "closed".to_owned(),
            },
            "Withdrawn",
        ),
    ];
    let failed = json!({"jsonrpc": "2.0", "error": {"code": -32602, "message": "-32800"}});
    let told = json!({"jsonrpc": "2.0", "result": {"content": [], "isError": true}});
    for (why, name) in reasons {
        let mut ways = vec![(Revision::V2026_07_28, false, Value::Null)];
        for revision in [Revision::V2025_06_18, PUSHED] {
            for late in [&Value::Null, &failed, &told] {
                ways.push((revision, false, late.clone()));
            }
        }
        ways.push((PUSHED, true, Value::Null));
        for (revision, as_task, late) in ways {
            let which = format!("{name} on {revision}, {as_task}, {late}");
            let error = asked_once(revision, ends(why), as_task, late).await;
            assert!(
                matches!(
                    &error,
                    CallError::Question(QuestionError::NoResponder { why, .. }) if format!("{why:?}").starts_with(name)
                ),
                "{which}: {error:?}"
            );
        }
    }
}

#[tokio::test]
async fn only_a_decline_is_meant_for_good() {
    let responder = Callback::forms(async |question: Question| {
        let answer = accept(&question, json!({"place": "here"})).unwrap();
        Ok(answer.always())
    });
    let settings = ClientSettings::default().responder(responder);
    let (connection, mut server, _) = connected(PUSHED, settings).await;
    let (_, answers) = tokio::join!(call(&connection), asks(&mut server, 2));
    assert_eq!(answers[1]["result"]["action"], "accept");
}

#[tokio::test]
async fn what_waits_is_seen_with_its_origin_its_call_and_its_first_words() {
    let shown = Arc::new(Notify::new());
    let go_on = Arc::new(Notify::new());
    let behind = Arc::new(Mutex::new(Vec::new()));
    let responder = {
        let (shown, go_on, behind) = (Arc::clone(&shown), Arc::clone(&go_on), Arc::clone(&behind));
        Callback::forms(move |question: Question| {
            let (shown, go_on, behind) =
                (Arc::clone(&shown), Arc::clone(&go_on), Arc::clone(&behind));
            async move {
                shown.notify_one();
                go_on.notified().await;
                let next = question.behind();
                behind.lock().unwrap().push(
                    next.iter()
                        .map(|next| {
                            format!("{} {:?} {}", next.server(), next.call(), next.beginning())
                        })
                        .collect::<Vec<_>>(),
                );
                Ok(declined())
            }
        })
    };
    let person = QuestionQueue::new();
    let settings = ClientSettings::default()
        .responder(responder)
        .queue(person.clone());
    let (connection, mut server, _) = connected(PUSHED, settings).await;
    let looking = async {
        shown.notified().await;
        let mut count = person.watch();
        count.wait_for(|count| *count == 2).await.unwrap();
        let waiting = person.pending();
        assert_eq!(waiting[1].server, "hostile 1");
        assert_eq!(waiting[1].call.as_deref(), Some("go"));
        assert_eq!(
            (waiting[1].message.as_str(), waiting[1].mode),
            ("Where?", Mode::Form)
        );
        go_on.notify_one();
        shown.notified().await;
        go_on.notify_one();
    };
    let (_, _, ()) = tokio::join!(call(&connection), asks(&mut server, 2), looking);
    let behind = behind.lock().unwrap();
    assert_eq!(behind[0], ["hostile Some(\"go\") Where?"]);
    assert!(behind[1].is_empty());
    assert!(person.pending().is_empty());
}

/// Agrees to every link, and is interrupted while it waits for the visit.
struct WalksAway;

impl Responder for WalksAway {
    fn name(&self) -> std::borrow::Cow<'static, str> {
        "walks away".into()
    }

    fn modes(&self) -> Capability {
        Capability::URL
    }

    fn respond<'a>(
        &'a self,
        question: &'a Question,
    ) -> mcp_elicit_client::responder::RespondFuture<'a> {
        let agreed: Result<Answer, ResponderError> =
            Ok(question.accept(Value::Null).expect("a link takes any"));
        Box::pin(std::future::ready(agreed))
    }

    fn visited<'a>(&'a self, _hosts: &'a [String]) -> VisitFuture<'a> {
        Box::pin(std::future::ready(Err(ResponderError::Interrupted)))
    }
}

#[tokio::test]
async fn whoever_agreed_to_a_visit_may_end_the_wait_and_the_call_with_it() {
    let silent = || {
        Callback::new(Capability::BOTH, async |_| {
            Err(ResponderError::cannot_show("no screen"))
        })
    };
    let responders: [Arc<dyn Responder>; 3] = [
        Arc::new(WalksAway),
        Arc::new(Chain::new().then(silent()).then(WalksAway)),
        Arc::new(Fallback::new(silent(), WalksAway)),
    ];
    for responder in responders {
        let (connection, mut server, _) =
            connected(PUSHED, ClientSettings::default().responder(responder)).await;
        let serving = async {
            let request = server.request("tools/call").await;
            let error = json!({"code": -32042, "message": "first", "data": {"elicitations": [
                {"mode": "url", "message": "m", "url": "https://a.example/", "elicitationId": "e1"}
            ]}});
            server
                .send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}))
                .await;
        };
        let (called, ()) = tokio::join!(call(&connection), serving);
        assert!(
            matches!(
                called,
                Err(CallError::Question(QuestionError::NoResponder {
                    why: ResponderError::Interrupted,
                    ..
                }))
            ),
            "{called:?}"
        );
    }
}

#[tokio::test]
async fn a_form_answered_meanwhile_does_not_end_the_wait_for_a_visit() {
    let kept = |params: &Value| {
        let params = to_raw_value(params).unwrap();
        let request = ElicitRequest::parse(&params, PUSHED).unwrap();
        let ask = match &request {
            ElicitRequest::Form { schema, .. } => {
                view::QuestionBody::Form(Form::parse(schema.get()).unwrap())
            }
            ElicitRequest::Url { url, .. } => view::QuestionBody::Url(Link::parse(url).unwrap()),
        };
        let shown = view::QuestionView::new(view::Origin::new("server"), request.message(), ask);
        Question::from_record(shown, request, PUSHED, QuestionQueue::new()).0
    };
    let link =
        json!({"mode": "url", "message": "m", "url": "https://a.example/", "elicitationId": "e"});
    let responders: [Arc<dyn Responder>; 3] = [
        Arc::new(Chain::new().then(WalksAway).then(Defaults)),
        Arc::new(Fallback::new(WalksAway, Defaults)),
        Arc::new(Fallback::new(Defaults, WalksAway)),
    ];
    for responder in responders {
        responder.respond(&kept(&link)).await.unwrap();
        responder.respond(&kept(&form())).await.unwrap();
        let ended = responder.visited(&[]).now_or_never();
        assert!(
            matches!(ended, Some(Err(ResponderError::Interrupted))),
            "{ended:?}"
        );
    }
}
