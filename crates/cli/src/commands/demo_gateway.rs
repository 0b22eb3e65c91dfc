//! `demo --gateway`: a client that cannot ask, a server that asks, the gateway between them, and its inbox.
//!
//! Three processes take part, as in a real setup: this one is the client, which declares no elicitation; it starts a
//! gateway, which starts `demo-server`; the question is answered in the inbox. Prepared answers, and those given at
//! this terminal, are submitted through the inbox's API by this process, and the record says so.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::StreamExt as _;
use mcp_elicit_client::connection::Target;
use mcp_elicit_client::responder::Responder;
use mcp_elicit_client::{
    CallOptions, ClientSettings, ConnectOptions, Connection, ElicitingClient, Question,
    QuestionQueue,
};
use mcp_elicit_core::answer::{Action, Answers};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Phase;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::wire::{ElicitRequest, Mode, Revision};
use mcp_elicit_forms::view;
use mcp_elicit_forms::web::SessionStore as _;
use mcp_elicit_inbox::api::model::{ListedQuestion, WholeQuestion};
use mcp_elicit_inbox::client::{InboxClient, InboxError};
use mcp_elicit_inbox::state_folder::StateFolder;
use serde_json::{Map, json};

use crate::args::answers::AnswerArgs;
use crate::call_session::events::{self, Events};
use crate::call_session::handler::Handler;
use crate::call_session::private_link::PrivateLink;
use crate::call_session::{exit_of, failures, responder_setup, stop};
use crate::failure::{Exit, Failure};
use crate::output::{self, GOOD, HINT, styled};

/// The tool that asks where to deploy.
const TOOL: &str = "deploy";

/// Commands to try next.
const TRY_NEXT: [(&str, &str); 2] = [
    (
        "mcp-elicit demo --gateway --terminal",
        "the same, answered here",
    ),
    (
        "mcp-elicit gateway -- YOUR-SERVER",
        "in your client's configuration, in front of your server's command",
    ),
];

/// Runs the demo to its end.
pub(crate) async fn run(args: AnswerArgs, terminal: bool) -> Result<Exit, Failure> {
    let json = args.json;
    let played = Box::pin(play(&args, terminal)).await;
    if let (Err(failure), true) = (&played, json) {
        events::print_failure(failure)?;
    }
    played
}

async fn play(args: &AnswerArgs, terminal: bool) -> Result<Exit, Failure> {
    let json = args.json;
    let state = tempfile::tempdir()
        .map_err(|error| Failure::usage("no folder for the demo's inbox").because(error))?;
    let who = who_answers(args, terminal).await?;
    let stop = stop::listen()?;
    let events = Events::new(json, stop.clone());
    let target = gateway(state.path())?;
    if !json {
        introduce();
    }
    // Without a responder nothing is declared, so no server may ask this client.
    let client = ElicitingClient::new(
        Handler::new(true),
        "gateway".to_owned(),
        ClientSettings::default(),
    );
    let usual = ConnectOptions::default();
    let within = args.timeout.unwrap_or(usual.within);
    let options = usual.within(within);
    let connection = Connection::open(&target, client, &options)
        .await
        .map_err(|error| failures::connecting(&error, &target))?;
    events.connected(&connection, &target)?;
    let inbox = DemoInbox::find(state.path()).await?;
    let options = CallOptions::default().stop(stop.clone());
    let called = {
        let calling = connection.call_tool(TOOL, Map::new(), &options);
        let mut calling = std::pin::pin!(calling);
        let mut answering = std::pin::pin!(inbox.answer(who.as_ref(), json));
        tokio::select! {
            // The question's end is reported before the result, even if the result is known first.
            called = &mut calling => if inbox.asked.get() {
                answering.await.map(|()| called)
            } else {
                Ok(called)
            },
            // The call continues only after an answer; without one it would be held for nothing.
            answered = &mut answering => match answered {
                Ok(()) => Ok(calling.await),
                Err(failure) => Err(failure),
            },
        }
    };
    let said = failures::ServerOutput::from_connection(&connection);
    connection.close().await;
    if let Some(action) = inbox.action.get() {
        events.note_action(action);
    }
    let result = called?.map_err(|error| failures::calling(&error, &said, None))?;
    events.result(&result)?;
    if !json {
        output::say_what_to_try(&TRY_NEXT);
    }
    Ok(exit_of(
        result.is_error == Some(true),
        events.refusal().is_some(),
    ))
}

/// Returns the responder in this process; `None` if the person answers on the inbox's page.
async fn who_answers(
    args: &AnswerArgs,
    terminal: bool,
) -> Result<Option<Arc<dyn Responder>>, Failure> {
    if terminal {
        return Ok(Some(responder_setup::terminal(args.plain)?.responder));
    }
    let prepared = !args.named.is_empty()
        || args.file.is_some()
        || args.accept_defaults
        || args.decline
        || args.cancel
        || args.answer_command.is_some();
    if prepared {
        return Ok(Some(responder_setup::from_args(args).await?.responder));
    }
    Ok(None)
}

/// Returns the command line of the gateway in front of the demo's server. Both are this program.
fn gateway(state: &Path) -> Result<Target, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::usage("cannot find this program to start the gateway").because(error)
    })?;
    let mut arguments: Vec<OsString> = ["gateway", "--name", "demo", "--hold", "3600"]
        .map(OsString::from)
        .into();
    arguments.extend(["--inbox".into(), "127.0.0.1:0".into()]);
    arguments.extend(["--state".into(), state.into(), "--".into()]);
    arguments.extend([program.clone().into(), "demo-server".into()]);
    Ok(Target::Command {
        program: program.into(),
        arguments,
    })
}

fn introduce() {
    output::say("Starting three programs, as in a real setup:");
    for (name, what) in [
        ("client", "this demo, which cannot ask"),
        ("gateway", "mcp-elicit gateway -- mcp-elicit demo-server"),
        (
            "server",
            "its tool `deploy` does not know where to deploy, so it asks",
        ),
    ] {
        output::say(format_args!("  {name:<8} {what}"));
    }
}

/// The validity of a login link of the demo.
const LOGIN_LIFE: Duration = Duration::from_secs(60 * 60);

#[expect(clippy::disallowed_methods, reason = "a link ends at a time of day")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// The gateway's inbox.
struct DemoInbox {
    client: InboxClient,
    folder: StateFolder,
    /// `true` once a question has come.
    asked: Cell<bool>,
    /// The person's action.
    action: Cell<Option<Action>>,
    /// The link file that was opened in the browser.
    opened: Cell<Option<PrivateLink>>,
}

impl DemoInbox {
    /// Reads the inbox's address, which the gateway wrote into the state folder before it answered the client.
    async fn find(state: &Path) -> Result<Self, Failure> {
        let folder = StateFolder::at(state);
        let client = InboxClient::running(&folder).await.map_err(failed)?;
        let client = client.ok_or_else(|| Failure::connection("the gateway serves no inbox"))?;
        Ok(Self {
            client,
            folder,
            asked: Cell::new(false),
            action: Cell::new(None),
            opened: Cell::new(None),
        })
    }

    /// Waits for the questions of the call, one after the other, until each is answered.
    async fn answer(&self, who: Option<&Arc<dyn Responder>>, json: bool) -> Result<(), Failure> {
        let changes = self.client.changes().await.map_err(failed)?;
        let mut changes = std::pin::pin!(changes);
        let mut asked: Option<String> = None;
        while changes.next().await.is_some() {
            if let Some(id) = &asked {
                let question = self.client.show(id).await.map_err(failed)?;
                if question.question.ended_at.is_some() {
                    self.action.set(question.question.phase.action());
                    return report_answered(&question.question, json);
                }
                continue;
            }
            for question in self.client.list(false, None, 100).await.map_err(failed)? {
                let id = question.id;
                let question = self.client.show(&id).await.map_err(failed)?;
                self.asked.set(true);
                self.tell_asked(&question, who.is_none(), json)?;
                if let Some(who) = who {
                    self.hand_in(&id, &question, who.as_ref()).await?;
                }
                asked = Some(id);
            }
        }
        Err(Failure::connection("the inbox has ended"))
    }

    /// Returns a link that signs one browser in, and leads to the question.
    fn login_link(&self, question: &str) -> Result<String, Failure> {
        let unwritable =
            |error: std::io::Error| Failure::connection("no login link can be made").because(error);
        let at = self.folder.inbox().unwrap_or_default();
        let mut key = String::new();
        let changed = self.folder.sessions().change(&mut |table| {
            key = table.add_login(now(), LOGIN_LIFE)?;
            Ok(())
        });
        changed.map_err(unwritable)?;
        Ok(format!("{at}/login?key={key}&next=/q/{question}"))
    }

    /// Returns the command that lists the question in another terminal.
    fn list_command(&self) -> String {
        let state = self.folder.path().display().to_string();
        format!("mcp-elicit inbox list --state {}", in_shell(&state))
    }

    fn tell_asked(&self, whole: &WholeQuestion, on_page: bool, json: bool) -> Result<(), Failure> {
        let question = &whole.question;
        if json {
            output::print_json(&json!({
                "event": "asked", "where": "inbox", "id": question.id, "server": question.server,
                "tool": question.target, "mode": question.mode, "message": question.message,
                "schema": whole.requested_schema, "link": question.link,
            }))?;
        } else {
            let message = question.message.as_deref().unwrap_or_default();
            output::say(format_args!(
                "The server asks: {}",
                view::sanitize::line(message, 200)
            ));
            output::say(
                "The client cannot be asked, so the question waits in the gateway's inbox.",
            );
        }
        if on_page {
            // Each link signs one browser in, once, and is shown only to the person at this terminal.
            let shown = self.login_link(&question.id)?;
            output::say(format_args!("{} {shown}", styled(HINT, "Answer here:")));
            if !json {
                output::say(format_args!(
                    "{} {}",
                    styled(HINT, "Or in another terminal:"),
                    self.list_command()
                ));
                let link = self.login_link(&question.id)?;
                // If no browser opens here, the person copies the other link.
                self.opened.set(PrivateLink::open(&link).ok());
            }
        }
        Ok(())
    }

    /// Asks the responder, and submits its answer to the inbox.
    async fn hand_in(
        &self,
        id: &str,
        shown: &WholeQuestion,
        who: &dyn Responder,
    ) -> Result<(), Failure> {
        let question = readable(shown).ok_or_else(|| {
            Failure::connection("the inbox shows something that is not a question")
        })?;
        let answer = who
            .respond(&question)
            .await
            .map_err(|why| Failure::unanswered("the question got no answer").because(why))?;
        let outcome = answer.outcome();
        let content = outcome.answers().map(Answers::to_value);
        let content = content.and_then(|content| content.as_object().cloned());
        self.client
            .answer(id, outcome.action(), content, answer.allows_credentials())
            .await
            .map_err(failed)?;
        Ok(())
    }
}

/// Returns the inbox's question in the form that a responder takes.
fn readable(shown: &WholeQuestion) -> Option<Question> {
    let message = shown.question.message.clone()?;
    let origin = view::Origin::new(&*shown.question.server).connected("through the gateway");
    let (view, request) = if shown.question.mode == Mode::Url {
        let url = shown.url.clone()?;
        let view = view::QuestionView::url(origin, message.clone(), Link::parse(&url).ok()?);
        let elicitation_id = None;
        (
            view,
            ElicitRequest::Url {
                message,
                url,
                elicitation_id,
            },
        )
    } else {
        let schema = shown.requested_schema.as_ref()?;
        let form = Form::parse(&schema.to_string()).ok()?;
        let view = view::QuestionView::form(origin, message.clone(), form);
        (view, ElicitRequest::form(message, schema))
    };
    let view = match shown.question.target.as_deref() {
        Some(tool) => view.for_call(view::CallView::tool(tool)),
        None => view,
    };
    let (question, _withdrawal) =
        Question::from_record(view, request, Revision::LATEST, QuestionQueue::new());
    Some(question)
}

fn report_answered(question: &ListedQuestion, json: bool) -> Result<(), Failure> {
    if json {
        return output::print_json(&json!({
            "event": "answered", "where": "inbox", "id": question.id, "phase": question.phase, "by": question.by,
        }));
    }
    output::say(answered_words(question.phase, question.by.as_deref()));
    Ok(())
}

/// Returns the outcome of the question in words. Unless a person ended it, the call does not go on either.
fn answered_words(phase: Phase, by: Option<&str>) -> String {
    let by = view::sanitize::line(by.unwrap_or_default(), 80);
    if by.is_empty() {
        return format!("The question is {phase}.");
    }
    format!(
        "{} {phase} {by}. The call continues:",
        styled(GOOD, "The question is")
    )
}

/// Returns a path as one word of a shell's command.
fn in_shell(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if path.bytes().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

fn failed(fault: InboxError) -> Failure {
    Failure::connection("the demo's inbox failed").because(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_command() {
        assert_eq!(in_shell("/tmp/.tmpAb1-_"), "/tmp/.tmpAb1-_");
        assert_eq!(in_shell("/tmp/my files"), "'/tmp/my files'");
        assert_eq!(in_shell("/it's"), r"'/it'\''s'");
    }

    #[test]
    fn a_question_that_nobody_ended_lets_no_call_go_on() {
        let words = answered_words(Phase::Withdrawn, None);
        assert_eq!(words, "The question is withdrawn.");
        let words = answered_words(Phase::Answered, Some("in the browser"));
        assert!(
            words.ends_with("answered in the browser. The call continues:"),
            "{words}"
        );
    }
}
