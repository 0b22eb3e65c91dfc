//! Slack's requests when a person clicks, searches or submits: verified, then converted to actions.
//!
//! Slack requires a response within three seconds. A response that needs no waiting is in [`SlackReply`] at once; the
//! remaining work is its `rest`, which the caller must run to its end.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use mcp_elicit_core::answer::{Answers, Draft, DraftValue, Violations};
use mcp_elicit_core::form::{Form, Kind};
use mcp_elicit_core::lifecycle::Timestamp;
use serde_json::{Value, json};

use super::people::{SlackUser, Stranger};
use super::signature::NotSigned;
use super::text::{cut, escape};
use super::{Slack, modal};
use crate::notice::ChannelSummary;

/// The longest body, in bytes.
pub const BODY_LIMIT: usize = 256 * 1024;

/// The time for which a signature is remembered.
const REMEMBERED: Duration = Duration::from_secs(10 * 60);

/// A request of Slack, as received.
#[derive(Clone, Copy)]
pub struct SlackRequest<'a> {
    /// `X-Slack-Request-Timestamp`
    pub timestamp: Option<&'a str>,
    /// `X-Slack-Signature`
    pub signature: Option<&'a str>,
    /// The raw body.
    pub body: &'a [u8],
}

/// The response to a request of Slack.
pub struct SlackReply {
    /// The status.
    pub status: u16,
    /// The body; empty for none.
    pub body: Option<Value>,
    /// The remaining work, to be run to its end.
    pub rest: Option<BoxFuture<'static, ()>>,
}

impl std::fmt::Debug for SlackReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlackReply")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// The effect of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The question is over.
    Ended,
    /// More people must confirm.
    Waits,
}

/// The refusal of an action or a view. The words are for the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionRefusal {
    /// The reason, for programs: `not-addressed`, `claimed`, `changed`, `ended`.
    pub code: &'static str,
    /// The reason, for the person.
    pub words: String,
}

/// The actions of people in Slack. The gateway implements it over the record and the table of roles: each method finds
/// the person with exactly this mail address, and checks their current role.
#[async_trait]
pub trait SlackInteractions: Send + Sync {
    /// Stores the hash of a signature until then, where every process that serves the address finds it. Returns `false` if
    /// it is already stored, or cannot be.
    async fn is_first(&self, signature: [u8; 32], until: Timestamp) -> bool;

    /// Returns a question, if this person may see and answer it.
    async fn question(
        &self,
        who: &SlackUser,
        question: &str,
    ) -> Result<Arc<ChannelSummary>, ActionRefusal>;

    /// Fills in answers that passed the form's check, at the version that the person saw, with a comment of at most
    /// [`MAX_REASON`](mcp_elicit_core::question::MAX_REASON) characters if there is one.
    async fn fill(
        &self,
        who: &SlackUser,
        question: &str,
        version: u64,
        answers: Answers,
        comment: Option<String>,
    ) -> Result<Done, ActionRefusal>;

    /// Declines, at the version that the person saw, with a reason of at most
    /// [`MAX_REASON`](mcp_elicit_core::question::MAX_REASON) characters if there is one.
    async fn decline(
        &self,
        who: &SlackUser,
        question: &str,
        version: u64,
        reason: Option<String>,
    ) -> Result<Done, ActionRefusal>;

    /// Records a request that was refused before it reached a question.
    fn refused(&self, _reason: &'static str) {}
}

/// A click, and its location.
struct Click {
    action: String,
    value: String,
    user: String,
    trigger: String,
    /// The view, for a click in a modal.
    view: Option<(String, String)>,
    /// The reason or comment entered in the modal.
    reason: Option<String>,
    /// The channel, for a click in a message.
    channel: String,
}

fn reply(status: u16, body: Option<Value>) -> SlackReply {
    SlackReply {
        status,
        body,
        rest: None,
    }
}

impl Slack {
    /// Responds to a request of Slack.
    pub async fn interact(
        self: &Arc<Self>,
        request: SlackRequest<'_>,
        acts: &Arc<dyn SlackInteractions>,
        now: Timestamp,
    ) -> SlackReply {
        let refuse = |status, reason| {
            acts.refused(reason);
            reply(status, None)
        };
        let Some(signer) = &self.signer else {
            return refuse(404, "no-signing-secret");
        };
        if request.body.len() > BODY_LIMIT {
            return refuse(413, "too-large");
        }
        let SlackRequest {
            timestamp,
            signature,
            body,
        } = request;
        let hash = match signer.verify(timestamp, signature, body, now) {
            Ok(hash) => hash,
            Err(NotSigned::Headers) => return refuse(401, "headers"),
            Err(NotSigned::Time) => return refuse(401, "timestamp"),
            Err(NotSigned::Signature) => return refuse(401, "signature"),
        };
        if !acts.is_first(hash, now.after(REMEMBERED)).await {
            return refuse(401, "replayed");
        }
        let mut pairs = url::form_urlencoded::parse(body);
        let payload = pairs.find(|(name, _)| name == "payload");
        let payload = payload.and_then(|(_, payload)| serde_json::from_str::<Value>(&payload).ok());
        let Some(payload) = payload else {
            return refuse(400, "payload");
        };
        if payload["team"]["id"] != *self.team {
            return refuse(403, "team");
        }
        let Some(user) = payload["user"]["id"].as_str().map(str::to_owned) else {
            return refuse(400, "payload");
        };
        match payload["type"].as_str() {
            Some("block_actions") => self.clicked(&payload, user, acts, now),
            Some("view_submission") => self.submitted(&payload, user, acts, now).await,
            Some("block_suggestion") => self.searched(&payload, &user, acts, now).await,
            _ => reply(200, None),
        }
    }

    fn clicked(
        self: &Arc<Self>,
        payload: &Value,
        user: String,
        acts: &Arc<dyn SlackInteractions>,
        now: Timestamp,
    ) -> SlackReply {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let action = &payload["actions"][0];
        let view = &payload["view"];
        let view = view["id"].as_str();
        let click = Click {
            action: text(&action["action_id"]),
            value: text(&action["value"]),
            user,
            trigger: text(&payload["trigger_id"]),
            view: view.map(|id| (id.to_owned(), text(&payload["view"]["private_metadata"]))),
            reason: modal::reason(&payload["view"]["state"]),
            channel: text(&payload["container"]["channel_id"]),
        };
        let (slack, acts) = (Arc::clone(self), Arc::clone(acts));
        let rest: BoxFuture<'static, ()> = match (click.action.as_str(), &click.view) {
            ("review", None) => Box::pin(async move { slack.review(&click, &*acts, now).await }),
            ("decline", Some(_)) => {
                Box::pin(async move { slack.decline_in_view(&click, &*acts, now).await })
            }
            (action, None) if action == "decline" || action.starts_with("choose:") => {
                Box::pin(async move { slack.choose(&click, &*acts, now).await })
            }
            _ => return reply(200, None),
        };
        SlackReply {
            status: 200,
            body: None,
            rest: Some(rest),
        }
    }

    /// Opens the modal. The trigger expires after three seconds, so a person who must be looked up first sees a loading
    /// modal.
    async fn review(&self, click: &Click, acts: &dyn SlackInteractions, now: Timestamp) {
        let Some((question, _, _)) = parts(&click.value) else {
            return;
        };
        if self.users.get(&click.user, now).is_some() {
            let view = self.answer_view(&click.user, question, acts, now).await;
            self.open(&click.trigger, &view).await;
            return;
        }
        let opened = self
            .open(&click.trigger, &modal::words("Loading…", None))
            .await;
        let view = self.answer_view(&click.user, question, acts, now).await;
        if let Some(id) = opened {
            self.show(&id, &view).await;
        }
    }

    /// Returns the modal of a question for a user, or the reason why there is none.
    async fn answer_view(
        &self,
        user: &str,
        question: &str,
        acts: &dyn SlackInteractions,
        now: Timestamp,
    ) -> Value {
        let opened = async {
            let who = self.user(user, now).await.map_err(stranger)?;
            let summary = acts.question(&who, question).await?;
            Ok::<_, ActionRefusal>((who, summary))
        };
        match opened.await {
            Err(refusal) => modal::words(&refusal.words, None),
            Ok((who, summary)) => {
                let note = self.note(&summary.question, summary.version, user);
                let view = modal::view(&summary, &note, self.options_url, &who.zone);
                view.unwrap_or_else(|| {
                    modal::words(
                        "This question can only be answered in the inbox.",
                        Some(&summary.link),
                    )
                })
            }
        }
    }

    /// Handles a button of the message. The message itself changes when the record does.
    async fn choose(&self, click: &Click, acts: &dyn SlackInteractions, now: Timestamp) {
        let acted = async {
            let (question, version, word) = parts(&click.value).ok_or_else(unreadable)?;
            let who = self.user(&click.user, now).await.map_err(stranger)?;
            if click.action == "decline" {
                return acts.decline(&who, question, version, None).await;
            }
            let summary = acts.question(&who, question).await?;
            if summary.needs_page {
                return Err(only_page());
            }
            let form = summary.form.as_deref().ok_or_else(only_page)?;
            let draft = chosen(form, word).ok_or_else(unreadable)?;
            let answers = form.read(&draft).map_err(|violations| ActionRefusal {
                code: "violation",
                words: modal::errors_text(form, &violations),
            })?;
            acts.fill(&who, question, version, answers, None).await
        };
        let text = match acted.await {
            Ok(done) => words(done).to_owned(),
            Err(refusal) => refusal.words,
        };
        let body = json!({
            "channel": click.channel,
            "user": click.user,
            "text": escape(&cut(&text, 1_000)),
            "parse": "none",
        });
        // The record has decided; a lost note changes nothing.
        let _ = self.api.call("chat.postEphemeral", &body).await;
    }

    async fn decline_in_view(&self, click: &Click, acts: &dyn SlackInteractions, now: Timestamp) {
        let Some((view, note)) = &click.view else {
            return;
        };
        let acted = async {
            let read = self.read_note(note, &click.user);
            let (question, version) = read.ok_or_else(unreadable)?;
            let who = self.user(&click.user, now).await.map_err(stranger)?;
            let reason = click.reason.clone();
            acts.decline(&who, &question, version, reason).await
        };
        let text = match acted.await {
            Ok(done) => words(done).to_owned(),
            Err(refusal) => refusal.words,
        };
        self.show(view, &modal::words(&text, None)).await;
    }

    async fn submitted(
        self: &Arc<Self>,
        payload: &Value,
        user: String,
        acts: &Arc<dyn SlackInteractions>,
        now: Timestamp,
    ) -> SlackReply {
        let view = &payload["view"];
        if view["callback_id"] != modal::CALLBACK {
            return reply(200, None);
        }
        let note = view["private_metadata"].as_str().unwrap_or_default();
        let Some((question, version)) = self.read_note(note, &user) else {
            acts.refused("note");
            let words = modal::words(&unreadable().words, None);
            return reply(
                200,
                Some(json!({"response_action": "update", "view": words})),
            );
        };
        let state = view["state"].clone();
        let id = view["id"].as_str().unwrap_or_default().to_owned();
        let (slack, taken) = (Arc::clone(self), Arc::clone(acts));
        let mut acted: BoxFuture<'static, Result<Submitted, ActionRefusal>> = async move {
            let who = slack.user(&user, now).await.map_err(stranger)?;
            let summary = taken.question(&who, &question).await?;
            let form = summary.form.clone().ok_or_else(only_page)?;
            let draft = modal::draft(&form, &state, &who.zone);
            match form.read(&draft) {
                Err(violations) => Ok(Submitted::Wrong(form, violations)),
                Ok(answers) => {
                    let comment = modal::reason(&state);
                    let done = taken.fill(&who, &question, version, answers, comment);
                    let done = done.await?;
                    Ok(Submitted::Done(done))
                }
            }
        }
        .boxed();
        let in_time = tokio::time::timeout(self.act_limit, &mut acted).await;
        let Ok(result) = in_time else {
            // It continues in a task: a started action is not interrupted.
            let slack = Arc::clone(self);
            let rest = async move {
                let text = match acted.await {
                    Ok(Submitted::Done(done)) => words(done).to_owned(),
                    Ok(Submitted::Wrong(form, violations)) => {
                        modal::errors_text(&form, &violations)
                    }
                    Err(refusal) => refusal.words,
                };
                slack.show(&id, &modal::words(&text, None)).await;
            };
            let saving = modal::words("Saving…", None);
            return SlackReply {
                status: 200,
                body: Some(json!({"response_action": "update", "view": saving})),
                rest: Some(Box::pin(rest)),
            };
        };
        let update =
            |text: &str| json!({"response_action": "update", "view": modal::words(text, None)});
        let body = match result {
            Ok(Submitted::Done(Done::Ended)) => json!({"response_action": "clear"}),
            Ok(Submitted::Done(done @ Done::Waits)) => update(words(done)),
            Ok(Submitted::Wrong(form, violations)) => modal::errors(&form, &violations)
                .unwrap_or_else(|| update(&modal::errors_text(&form, &violations))),
            Err(refusal) => update(&refusal.words),
        };
        reply(200, Some(body))
    }

    async fn searched(
        &self,
        payload: &Value,
        user: &str,
        acts: &Arc<dyn SlackInteractions>,
        now: Timestamp,
    ) -> SlackReply {
        let note = payload["view"]["private_metadata"].as_str();
        let read = note.and_then(|note| self.read_note(note, user));
        let options = async {
            let (question, _) = read?;
            let who = self.user(user, now).await.ok()?;
            let summary = acts.question(&who, &question).await.ok()?;
            let block = payload["block_id"].as_str()?;
            let typed = payload["value"].as_str().unwrap_or_default();
            Some(modal::suggestions(summary.form.as_deref()?, block, typed))
        };
        let options = tokio::time::timeout(self.act_limit, options).await;
        let options = options.ok().flatten().unwrap_or_default();
        reply(200, Some(json!({"options": options})))
    }

    /// Returns the note of a view: the question and its version, for one user.
    fn note(&self, question: &str, version: u64, user: &str) -> String {
        let signer = self.signer.as_ref();
        let note = signer.map(|signer| signer.note(question, version, user));
        note.unwrap_or_default()
    }

    fn read_note(&self, note: &str, user: &str) -> Option<(String, u64)> {
        self.signer.as_ref()?.read_note(note, user)
    }

    /// Opens a view, and returns its id.
    async fn open(&self, trigger: &str, view: &Value) -> Option<String> {
        let body = json!({"trigger_id": trigger, "view": view});
        let opened = self.api.call("views.open", &body).await.ok()?;
        opened["view"]["id"].as_str().map(str::to_owned)
    }

    async fn show(&self, id: &str, view: &Value) {
        // A view that the person has closed cannot be changed, and need not be.
        let _ = self
            .api
            .call("views.update", &json!({"view_id": id, "view": view}))
            .await;
    }
}

enum Submitted {
    Done(Done),
    Wrong(Arc<Form>, Violations),
}

const fn words(done: Done) -> &'static str {
    match done {
        Done::Ended => "Saved. Thank you.",
        Done::Waits => "Saved. More people must agree.",
    }
}

/// Parses the value of a button: the question, its version and a word.
fn parts(value: &str) -> Option<(&str, u64, &str)> {
    let (rest, word) = value.rsplit_once(':')?;
    let (question, version) = rest.rsplit_once(':')?;
    Some((question, version.parse().ok()?, word))
}

/// Returns the draft for the word of a button; `None` if the form does not support buttons.
pub(super) fn chosen(form: &Form, word: &str) -> Option<Draft> {
    let mut draft = Draft::new();
    let field = match form.fields() {
        [] => return (word == "ok").then_some(draft),
        [field] => field,
        _ => return None,
    };
    let value = match (field.kind(), word) {
        (Kind::Boolean(_), "yes") => DraftValue::Flag(true),
        (Kind::Boolean(_), "no") => DraftValue::Flag(false),
        (Kind::Choice(choice), word) => {
            let option = choice.options.get(word.parse::<usize>().ok()?)?;
            DraftValue::Picked(vec![option.value.to_string()])
        }
        _ => return None,
    };
    draft.set(field.name(), value);
    Some(draft)
}

fn stranger(stranger: Stranger) -> ActionRefusal {
    match stranger {
        Stranger::Unknown => ActionRefusal {
            code: "slack-unavailable",
            words: "Slack does not say who you are. Try again, or use the inbox.".to_owned(),
        },
        Stranger::NotMember => ActionRefusal {
            code: "not-a-member",
            words: "Only full members of this workspace with a mail address can answer here."
                .to_owned(),
        },
    }
}

fn unreadable() -> ActionRefusal {
    ActionRefusal {
        code: "unreadable",
        words: "This cannot be answered here. Use the inbox.".to_owned(),
    }
}

fn only_page() -> ActionRefusal {
    ActionRefusal {
        code: "needs-page",
        words: "This question can only be answered in the inbox.".to_owned(),
    }
}
