//! Questions for the tests, and the store that asks them.

use std::future::pending;
use std::time::{Duration, SystemTime};

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_forms::view::{CallView, FrontendError, Origin, QuestionView};
use mcp_elicit_forms::web::BrowserFrontend;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub(crate) fn origin() -> Origin {
    Origin::new("deploy-bot")
        .claiming("Acme Deployments", "2.4.1")
        .connected("over stdio: npx @acme/deploy")
}

pub(crate) fn form(schema: &Value) -> Form {
    Form::from_value(schema).expect("the fixture is a legal form")
}

pub(crate) fn asks(message: &str, schema: &Value) -> QuestionView {
    let call = CallView::tool("deploy").with(json!({"build": 4812, "branch": "release/2026-11"}));
    QuestionView::form(origin(), message, form(schema)).for_call(call)
}

/// Returns a form with a field of every kind, each with its own control.
pub(crate) fn every_kind() -> Value {
    let regions: Vec<String> = (1..=40).map(|n| format!("region-{n}")).collect();
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Release name", "description": "Shown in the changelog.", "minLength": 3, "maxLength": 50},
            "notes": {"type": "string", "title": "Notes", "maxLength": 2000},
            "email": {"type": "string", "title": "Tell whom", "format": "email"},
            "ticket": {"type": "string", "title": "Ticket", "format": "uri"},
            "day": {"type": "string", "title": "Not before", "format": "date"},
            "start": {"type": "string", "title": "Start at", "format": "date-time"},
            "replicas": {"type": "integer", "title": "Replicas", "minimum": 1, "maximum": 20},
            "share": {"type": "number", "title": "Share of traffic", "minimum": 0, "maximum": 1, "multipleOf": 0.1},
            "migrate": {"type": "boolean", "title": "Run the migrations"},
            "environment": {"type": "string", "title": "Environment", "oneOf": [
                {"const": "dev", "title": "Development"}, {"const": "staging", "title": "Staging area"},
                {"const": "canary", "title": "Canary"}, {"const": "prod", "title": "Production"}]},
            "region": {"type": "string", "title": "Region", "enum": regions},
            "services": {"type": "array", "title": "Services", "minItems": 1, "maxItems": 2,
                "items": {"type": "string", "enum": ["api", "web", "worker"]}}
        },
        "required": ["name", "replicas", "migrate", "environment", "services"]
    })
}

/// Returns the answers of the browser tests to [`every_kind`].
pub(crate) fn every_answer() -> Value {
    json!({
        "name": "Autumn release",
        "notes": "first\nsecond",
        "email": "ana@example.org",
        "ticket": "https://tickets.example/77",
        "day": "2026-11-30",
        "start": "2026-12-01T09:30:00+01:00",
        "replicas": 3,
        "share": 0.2,
        "migrate": true,
        "environment": "canary",
        "region": "region-17",
        "services": ["api", "worker"]
    })
}

pub(crate) fn short() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "title": "Release name", "minLength": 3},
        "replicas": {"type": "integer", "title": "Replicas", "minimum": 1, "maximum": 20, "default": 3}
    }, "required": ["name"]})
}

pub(crate) fn nothing() -> Value {
    json!({"type": "object", "properties": {}})
}

pub(crate) fn link(url: &str) -> QuestionView {
    let link = Link::parse(url).expect("the fixture is a link to show");
    QuestionView::url(Origin::new("calendar"), "Connect your calendar.", link)
        .for_call(CallView::tool("find_slot"))
}

#[expect(clippy::disallowed_methods, reason = "a deadline from now")]
pub(crate) fn in_seconds(seconds: u64) -> SystemTime {
    SystemTime::now() + Duration::from_secs(seconds)
}

/// A person's question store with its server, and the links of its questions as they are announced.
pub(crate) struct Asking {
    pub(crate) browser: BrowserFrontend,
    /// `true` to offer declining permanently.
    pub(crate) offers: bool,
    links: mpsc::UnboundedReceiver<String>,
}

/// A question that was asked: its link, and its pending outcome.
pub(crate) struct Asked {
    pub(crate) link: String,
    withdraw: Option<oneshot::Sender<String>>,
    pub(crate) outcome: JoinHandle<Result<Outcome, FrontendError>>,
}

impl Asking {
    pub(crate) async fn start() -> Self {
        let (tell, links) = mpsc::unbounded_channel();
        let browser = BrowserFrontend::start().await.expect("a free port");
        let browser =
            browser.announcing(move |link| tell.send(link.to_owned()).expect("the test listens"));
        Self {
            browser,
            offers: false,
            links,
        }
    }

    pub(crate) async fn ask(&mut self, question: QuestionView) -> Asked {
        let browser = self.browser.clone();
        let offers = self.offers;
        let (withdraw, withdrawn) = oneshot::channel();
        let outcome = tokio::spawn(async move {
            let withdrawn = async {
                match withdrawn.await {
                    Ok(why) => why,
                    Err(_) => pending().await,
                }
            };
            if offers {
                let reply = browser.ask_for_reply(question, withdrawn).await;
                return reply.map(|reply| reply.outcome);
            }
            browser.ask(question, withdrawn).await
        });
        let link = self.links.recv().await.expect("the question is announced");
        Asked {
            link,
            withdraw: Some(withdraw),
            outcome,
        }
    }

    /// Returns the address of the question that is announced next, without the secret.
    pub(crate) async fn next_path(&mut self) -> String {
        let link = self.links.recv().await.expect("the question is announced");
        link.split_once("&next=")
            .expect("a link to a question")
            .1
            .to_owned()
    }
}

impl Asked {
    /// Returns the address of the question, without the secret.
    pub(crate) fn path(&self) -> &str {
        self.link
            .split_once("&next=")
            .expect("a link to a question")
            .1
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.outcome.is_finished()
    }

    pub(crate) fn withdraw(&mut self, why: &str) {
        let withdraw = self.withdraw.take().expect("withdrawn once");
        withdraw.send(why.to_owned()).expect("it still waits");
    }

    /// Abandons the question, as a host does whose call has ended.
    pub(crate) fn abandon(&self) {
        self.outcome.abort();
    }

    pub(crate) async fn outcome(self) -> Result<Outcome, FrontendError> {
        self.outcome.await.expect("asking does not panic")
    }

    /// Returns the content of an accepted form.
    pub(crate) async fn content(self) -> Value {
        match self.outcome().await {
            Ok(Outcome::Accept(answers)) => answers.into_value(),
            other => panic!("not accepted: {other:?}"),
        }
    }
}
