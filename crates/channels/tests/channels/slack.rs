//! Slack against a stand-in that checks every block with Slack's own models and signs its requests as Slack does.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use jiff::tz::TimeZone;
use mcp_elicit_channels::config::SlackConfig;
use mcp_elicit_channels::secret::SecretSource;
use mcp_elicit_channels::slack::{
    ActionRefusal, Done, Slack, SlackInteractions, SlackReply, SlackRequest, SlackUser,
};
use mcp_elicit_channels::{
    Channel as _, ChannelError, ChannelSummary, EndSummary, NotSentReason, QuestionEvent,
    Recipient, Updated,
};
use mcp_elicit_core::answer::Answers;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_policy::rules::Reveal;
use mcp_elicit_testkit::peers::{self, Listening};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{ask, notice, person, secret, summary};

const SIGNING_SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";

/// A record with one question that only ops-1 may answer.
struct Record {
    summary: ChannelSummary,
    filled: Mutex<Vec<Value>>,
    declined: Mutex<usize>,
    reasons: Mutex<Vec<String>>,
    signatures: Mutex<HashSet<[u8; 32]>>,
    refused: Mutex<Vec<&'static str>>,
    /// Each action takes one permit.
    permits: Semaphore,
}

#[async_trait]
impl SlackInteractions for Record {
    async fn is_first(&self, signature: [u8; 32], _: Timestamp) -> bool {
        self.signatures.lock().unwrap().insert(signature)
    }

    async fn question(
        &self,
        who: &SlackUser,
        question: &str,
    ) -> Result<Arc<ChannelSummary>, ActionRefusal> {
        if who.mail != "ops1@example.com" || question != self.summary.question {
            return Err(ActionRefusal {
                code: "not-addressed",
                words: "This question is not addressed to you.".to_owned(),
            });
        }
        Ok(Arc::new(self.summary.clone()))
    }

    async fn fill(
        &self,
        _: &SlackUser,
        _: &str,
        version: u64,
        answers: Answers,
        comment: Option<String>,
    ) -> Result<Done, ActionRefusal> {
        self.reasons.lock().unwrap().extend(comment);
        self.permits.acquire().await.unwrap().forget();
        if version != self.summary.version {
            return Err(ActionRefusal {
                code: "changed",
                words: "The question has changed.".to_owned(),
            });
        }
        self.filled.lock().unwrap().push(answers.into_value());
        Ok(Done::Ended)
    }

    async fn decline(
        &self,
        who: &SlackUser,
        question: &str,
        _: u64,
        reason: Option<String>,
    ) -> Result<Done, ActionRefusal> {
        self.question(who, question).await?;
        self.reasons.lock().unwrap().extend(reason);
        *self.declined.lock().unwrap() += 1;
        Ok(Done::Ended)
    }

    fn refused(&self, reason: &'static str) {
        self.refused.lock().unwrap().push(reason);
    }
}

struct Rig {
    workspace: Listening,
    slack: Arc<Slack>,
    record: Arc<Record>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the stand-in signs with its own clock"
)]
fn now() -> Timestamp {
    Timestamp::from_epoch(
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap(),
    )
}

impl Rig {
    fn start(summary: ChannelSummary, act_limit: Duration) -> Option<Self> {
        let workspace = peers::channel_script("slack.py")?;
        let workspace = workspace.env("SIGNING_SECRET", SIGNING_SECRET).listen();
        let config = SlackConfig {
            token: SecretSource::Env("A".to_owned()),
            signing_secret: Some(SecretSource::Env("B".to_owned())),
            api: Some(format!("{}/api/", workspace.url()).parse().unwrap()),
            team: "T0123".to_owned(),
            options_url: true,
            mention: true,
            groups: BTreeMap::from([
                ("ops".to_owned(), "C0456".to_owned()),
                ("gone".to_owned(), "CGONE".to_owned()),
            ]),
        };
        let signing = Some(secret(SIGNING_SECRET));
        let slack = Slack::new(&config, secret("xoxb-token"), signing, TimeZone::UTC);
        let slack = slack.unwrap().act_limit(act_limit);
        Some(Self {
            workspace,
            slack: Arc::new(slack),
            record: Arc::new(Record {
                summary,
                filled: Mutex::default(),
                declined: Mutex::default(),
                reasons: Mutex::default(),
                signatures: Mutex::default(),
                refused: Mutex::default(),
                permits: Semaphore::new(0),
            }),
        })
    }

    async fn got(&self) -> Vec<Value> {
        let got = ask(&format!("{}/got", self.workspace.url()), None).await;
        let got = got.as_array().unwrap().clone();
        for call in &got {
            assert_eq!(call["ok"], true, "{call}");
        }
        got
    }

    async fn sign(&self, payload: Value, age: i64) -> Value {
        let url = format!("{}/sign", self.workspace.url());
        ask(&url, Some(json!({"payload": payload, "age": age}))).await
    }

    async fn deliver(&self, signed: &Value) -> SlackReply {
        let request = SlackRequest {
            timestamp: signed["timestamp"].as_str(),
            signature: signed["signature"].as_str(),
            body: signed["body"].as_str().unwrap().as_bytes(),
        };
        let acts: Arc<dyn SlackInteractions> = Arc::clone(&self.record) as _;
        self.slack.interact(request, &acts, now()).await
    }

    /// Sends a payload and finishes the deferred work.
    async fn send(&self, payload: Value) -> SlackReply {
        let signed = self.sign(payload, 0).await;
        let mut reply = self.deliver(&signed).await;
        if let Some(rest) = reply.rest.take() {
            rest.await;
        }
        reply
    }
}

fn click(user: &str, action: &str, value: &str) -> Value {
    json!({
        "type": "block_actions",
        "team": {"id": "T0123"},
        "user": {"id": user, "team_id": "T0123"},
        "trigger_id": format!("trigger-{user}-{action}-{value}"),
        "container": {"type": "message", "message_ts": "1.1", "channel_id": "C0456"},
        "actions": [{"type": "button", "action_id": action, "block_id": "b", "value": value}],
    })
}

fn submission(user: &str, view: &Value, values: &Value) -> Value {
    let mut view = view.clone();
    view["id"] = "V1".into();
    view["state"] = json!({"values": values});
    json!({"type": "view_submission", "team": {"id": "T0123"}, "user": {"id": user}, "view": view})
}

const EVERY_KIND: &str = r#"{
    "text":{"type":"string","title":"Text","description":"A text","minLength":2,"maxLength":500,"default":"abc"},
    "mail":{"type":"string","format":"email","default":"a@example.com"},
    "link":{"type":"string","format":"uri"},
    "day":{"type":"string","format":"date","default":"2026-01-02"},
    "at":{"type":"string","format":"date-time","default":"2026-01-02T03:04:00Z"},
    "exact":{"type":"string","format":"date-time","default":"2026-01-02T03:04:05Z"},
    "number":{"type":"number","minimum":-1.5,"maximum":10,"default":2.5},
    "count":{"type":"integer","minimum":0,"default":3},
    "maybe":{"type":"boolean"},
    "one":{"type":"string","oneOf":[{"const":"a","title":"<!channel> A"},{"const":"b","title":"LONG"}],"default":"b"},
    "some":{"type":"array","items":{"type":"string","enum":["x","y","z"]},"maxItems":2,"default":["x"]}}"#;

#[tokio::test]
async fn messages_are_posted_changed_and_refused() {
    let Some(rig) = Rig::start(summary("{}"), Duration::from_secs(60)) else {
        return;
    };
    let to = |to: Recipient, summary: ChannelSummary, event| {
        notice("n-1", to, event, Reveal::Arguments, summary)
    };
    let mut visit = summary("{}");
    visit.form = None;
    visit.address = Some("http://example.com/pay?password=x".to_owned());
    let mut hostile = summary(EVERY_KIND);
    hostile.message = "<!channel> *x* \u{202e}".repeat(500);
    hostile.arguments = Some(json!({"text": "y".repeat(200_000)}).to_string());
    for summary in [
        summary("{}"),
        summary(r#"{"go":{"type":"boolean"}}"#),
        summary(EVERY_KIND),
        visit,
        hostile,
    ] {
        let sent = rig
            .slack
            .send(&to(
                person("ops1@example.com"),
                summary,
                QuestionEvent::Asked,
            ))
            .await;
        assert!(sent.unwrap().0.starts_with("DOPS1/"));
    }
    let group = Recipient::Group("ops".to_owned());
    let sent = rig
        .slack
        .send(&to(group.clone(), summary("{}"), QuestionEvent::Asked))
        .await
        .unwrap();
    assert!(sent.0.starts_with("C0456/"));
    let got = rig.got().await;
    let posts = got.iter().filter(|one| one["method"] == "chat.postMessage");
    for post in posts {
        let body = &post["body"];
        let is_of_group = body["channel"] == "C0456";
        let mentions = body["blocks"].to_string().contains("\"mrkdwn\"");
        assert_eq!(mentions, is_of_group, "{body}");
    }
    // A phone shows the text instead of the blocks: it names the tool and the caller.
    let text = got.last().unwrap()["body"]["text"].as_str().unwrap();
    let asked = summary("{}");
    let tool = asked.tool.as_deref().unwrap();
    assert!(
        text.contains(tool) && text.contains(&asked.caller.name),
        "{text}"
    );
    let mut ended = summary("{}");
    ended.ending = Some(EndSummary {
        event: QuestionEvent::Answered,
        by: Some("ops-2".to_owned()),
        at: ended.asked_at,
        why: Vec::new(),
    });
    let ended = to(group, ended, QuestionEvent::Answered);
    assert_eq!(rig.slack.update(&sent, &ended).await, Ok(Updated::Changed));
    let got = rig.got().await;
    let last = got.last().unwrap();
    assert_eq!(last["method"], "chat.update");
    let blocks = last["body"]["blocks"].to_string();
    assert!(
        blocks.contains("Answered by ops-2 at 10:00 UTC"),
        "{blocks}"
    );
    assert!(
        !blocks.contains("choose:") && !blocks.contains("decline"),
        "{blocks}"
    );

    let nobody = to(
        person("nobody@example.com"),
        summary("{}"),
        QuestionEvent::Asked,
    );
    assert_eq!(
        rig.slack.send(&nobody).await,
        Err(ChannelError::Permanent(NotSentReason::Address))
    );
    let gone = to(
        Recipient::Group("gone".to_owned()),
        summary("{}"),
        QuestionEvent::Asked,
    );
    assert_eq!(rig.slack.send(&gone).await, Err(ChannelError::AddressGone));
}

#[tokio::test]
async fn a_call_is_decided_beside_its_whole_name_or_on_the_page() {
    let uri = format!("file:///srv/{}/../../etc/shadow", "readme/".repeat(100));
    for (name, opens) in [(uri, true), ("x".repeat(300_000), false)] {
        let mut call = summary("{}");
        call.is_approval = true;
        call.tool = Some(name.clone());
        let Some(rig) = Rig::start(call.clone(), Duration::from_secs(60)) else {
            return;
        };
        let to = person("ops1@example.com");
        let asked = notice("n-1", to, QuestionEvent::Asked, Reveal::Arguments, call);
        rig.slack.send(&asked).await.unwrap();
        rig.send(click("UOPS1", "review", "5f2c8a:3:-")).await;
        let got = rig.got().await;
        let blocks = got[1]["body"]["blocks"].as_array().unwrap();
        let buttons = blocks.last().unwrap()["elements"].as_array().unwrap();
        let ids: Vec<_> = buttons.iter().map(|button| &button["action_id"]).collect();
        let view = &got.last().unwrap()["body"]["view"];
        let head = view["blocks"][0]["text"]["text"].as_str().unwrap();
        if opens {
            assert_eq!(ids, ["review", "open"]);
            assert_eq!(
                head,
                format!("Server: deploy\nTool: {name}\nCaller: Ada Lovelace")
            );
            assert_eq!(view["submit"]["text"], "Approve");
        } else {
            assert_eq!(ids, ["open"]);
            assert_eq!(head, "This question can only be answered in the inbox.");
            assert!(view.get("submit").is_none(), "{view}");
        }
    }
}

#[tokio::test]
async fn a_form_with_every_kind_of_field_is_filled_in_a_modal() {
    let required = EVERY_KIND.replace("LONG", &"l".repeat(150));
    let mut question = summary(&required);
    let schema =
        format!(r#"{{"type":"object","properties":{required},"required":["text","count","one"]}}"#);
    question.form = Some(Arc::new(schema.parse().unwrap()));
    let Some(rig) = Rig::start(question, Duration::from_secs(60)) else {
        return;
    };
    let reply = rig.send(click("UOPS1", "review", "5f2c8a:3:-")).await;
    assert_eq!((reply.status, reply.body), (200, None));
    // The person is not known yet: a loading view opens first, then the modal.
    let got = rig.got().await;
    let methods: Vec<_> = got
        .iter()
        .map(|call| call["method"].as_str().unwrap())
        .collect();
    assert_eq!(methods, ["views.open", "users.info", "views.update"]);
    let view = got[2]["body"]["view"].clone();
    assert_eq!(view["callback_id"], "answer", "{view}");
    // The person is known now: the modal opens at once.
    rig.send(click("UOPS1", "review", "5f2c8a:3:- ")).await;
    assert_eq!(rig.got().await.len(), 4);

    let values = json!({
        "f0": {"v": {"type": "plain_text_input", "value": "x"}},
        "f6": {"v": {"type": "number_input", "value": "99"}},
        "f7": {"v": {"type": "number_input", "value": "3"}},
        "f9": {"v": {"type": "radio_buttons", "selected_option": {"value": "1"}}},
    });
    let wrong = rig
        .send(submission("UOPS1", &view, &values))
        .await
        .body
        .unwrap();
    assert_eq!(wrong["response_action"], "errors");
    let beside: Vec<_> = wrong["errors"].as_object().unwrap().keys().collect();
    assert_eq!(beside, ["f0", "f6"]);
    assert!(!wrong.to_string().contains("99"), "{wrong}");

    rig.record.permits.add_permits(1);
    let mut right = values;
    right["f0"]["v"]["value"] = "xy".into();
    right["f6"]["v"]["value"] = "-1.5".into();
    right["f4"] = json!({"v": {"type": "datetimepicker", "selected_date_time": 1_767_323_040}});
    right["f8"] = json!({"v": {"type": "static_select", "selected_option": null}});
    right["f10"] =
        json!({"v": {"type": "checkboxes", "selected_options": [{"value": "0"}, {"value": "2"}]}});
    let done = rig.send(submission("UOPS1", &view, &right)).await.body;
    assert_eq!(done, Some(json!({"response_action": "clear"})));
    assert_eq!(
        *rig.record.filled.lock().unwrap(),
        [
            json!({"text": "xy", "at": "2026-01-02T04:04:00+01:00", "number": -1.5, "count": 3, "one": "b", "some": ["x", "z"]})
        ]
    );

    // Another person's view, and a note that was changed, are rejected.
    let other = rig
        .send(submission("UOPS2", &view, &right))
        .await
        .body
        .unwrap();
    assert_eq!(other["response_action"], "update");
    let mut changed = view.clone();
    changed["private_metadata"] = view["private_metadata"]
        .as_str()
        .unwrap()
        .replace(":3:", ":4:")
        .into();
    let changed = rig
        .send(submission("UOPS1", &changed, &right))
        .await
        .body
        .unwrap();
    assert!(changed.to_string().contains("Use the inbox"), "{changed}");
    assert_eq!(rig.record.filled.lock().unwrap().len(), 1);

    let mut decline = click("UOPS1", "decline", "-");
    decline["view"] = json!({"id": "V1", "private_metadata": view["private_metadata"]});
    rig.send(decline).await;
    assert_eq!(*rig.record.declined.lock().unwrap(), 1);
}

#[tokio::test]
async fn buttons_decide_and_strangers_are_told_no() {
    let mut question = summary(r#"{"go":{"type":"boolean"}}"#);
    question.arguments = None;
    let Some(rig) = Rig::start(question, Duration::from_secs(60)) else {
        return;
    };
    rig.record.permits.add_permits(2);
    rig.send(click("UOPS1", "choose:0", "5f2c8a:3:yes")).await;
    assert_eq!(*rig.record.filled.lock().unwrap(), [json!({"go": true})]);
    for (user, value) in [
        ("UOPS2", "5f2c8a:3:yes"),
        ("UGUEST", "5f2c8a:3:yes"),
        ("UOTHER", "5f2c8a:3:yes"),
        ("UOPS1", "5f2c8a:2:no"),
        ("UOPS1", "5f2c8a:3:maybe"),
        ("UOPS1", "5f2c8a"),
        ("UOPS1", "other:3:yes"),
    ] {
        rig.send(click(user, "choose:1", value)).await;
    }
    assert_eq!(rig.record.filled.lock().unwrap().len(), 1);
    let got = rig.got().await;
    let notes = got
        .iter()
        .filter(|call| call["method"] == "chat.postEphemeral");
    let notes: Vec<_> = notes
        .map(|call| call["body"]["text"].as_str().unwrap())
        .collect();
    assert_eq!(notes.len(), 8);
    assert!(notes[0].starts_with("Saved"), "{notes:?}");
    assert!(
        notes[2].contains("full members") && notes[3].contains("full members"),
        "{notes:?}"
    );
    assert_eq!(notes[4], "The question has changed.");
}

#[tokio::test]
async fn an_act_that_takes_long_is_answered_in_time_and_finished() {
    let Some(rig) = Rig::start(summary("{}"), Duration::ZERO) else {
        return;
    };
    rig.send(click("UOPS1", "review", "5f2c8a:3:-")).await;
    let view = rig.got().await[2]["body"]["view"].clone();
    let signed = rig.sign(submission("UOPS1", &view, &json!({})), 0).await;
    let reply = rig.deliver(&signed).await;
    let body = reply.body.unwrap();
    assert_eq!(body["response_action"], "update");
    assert!(body.to_string().contains("Saving"), "{body}");
    rig.record.permits.add_permits(1);
    reply.rest.unwrap().await;
    assert_eq!(rig.record.filled.lock().unwrap().len(), 1);
    let got = rig.got().await;
    let last = got.last().unwrap();
    assert_eq!(
        (&last["method"], &last["body"]["view_id"]),
        (&"views.update".into(), &"V1".into())
    );
    assert!(last.to_string().contains("Saved"), "{last}");
}

#[tokio::test]
async fn long_lists_are_searched() {
    let options: Vec<_> = (0..300).map(|index| format!("option {index}")).collect();
    let schema = json!({"one": {"type": "string", "enum": options}}).to_string();
    let Some(rig) = Rig::start(summary(&schema), Duration::from_secs(60)) else {
        return;
    };
    rig.send(click("UOPS1", "review", "5f2c8a:3:-")).await;
    let view = rig.got().await[2]["body"]["view"].clone();
    assert_eq!(
        view["blocks"][3]["element"]["type"], "external_select",
        "{view}"
    );
    let search = |user: &str, value: &str| {
        json!({"type": "block_suggestion", "team": {"id": "T0123"}, "user": {"id": user}, "view": view.clone(),
            "block_id": "f0", "action_id": "v", "value": value})
    };
    let options = rig.send(search("UOPS1", "OPTION 29")).await.body.unwrap();
    assert_eq!(options["options"].as_array().unwrap().len(), 11);
    let nothing = rig.send(search("UOPS2", "option")).await.body.unwrap();
    assert_eq!(nothing["options"], json!([]));
}

#[tokio::test]
async fn forged_late_repeated_and_foreign_requests_are_refused() {
    let Some(rig) = Rig::start(summary("{}"), Duration::from_secs(60)) else {
        return;
    };
    let payload = click("UOPS1", "decline", "5f2c8a:3:-");
    let signed = rig.sign(payload.clone(), 0).await;
    let mut forged = signed.clone();
    forged["body"] = signed["body"]
        .as_str()
        .unwrap()
        .replace("UOPS1", "UOPS2")
        .into();
    assert_eq!(rig.deliver(&forged).await.status, 401);
    let late = rig.sign(payload.clone(), 301).await;
    assert_eq!(rig.deliver(&late).await.status, 401);
    let mut foreign = payload;
    foreign["team"]["id"] = "T9".into();
    let foreign = rig.sign(foreign, 0).await;
    assert_eq!(rig.deliver(&foreign).await.status, 403);
    let first = rig.deliver(&signed).await;
    assert_eq!(first.status, 200);
    first.rest.unwrap().await;
    let again = rig.deliver(&signed).await;
    assert_eq!(again.status, 401);
    assert!(again.rest.is_none());
    let mut long = signed.clone();
    long["body"] = "x".repeat(256 * 1024 + 1).into();
    assert_eq!(rig.deliver(&long).await.status, 413);
    let nonsense = rig
        .sign(
            json!({"type": "block_actions", "team": {"id": "T0123"}, "user": {}}),
            0,
        )
        .await;
    assert_eq!(rig.deliver(&nonsense).await.status, 400);
    assert_eq!(*rig.record.declined.lock().unwrap(), 1);
    assert_eq!(
        *rig.record.refused.lock().unwrap(),
        [
            "signature",
            "timestamp",
            "team",
            "replayed",
            "too-large",
            "payload"
        ]
    );
}
