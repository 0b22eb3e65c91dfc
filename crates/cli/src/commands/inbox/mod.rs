//! `inbox`: what servers asked through the gateway, and answers to it, from another terminal or a script.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use futures::StreamExt as _;
use mcp_elicit_core::form::Form;
use mcp_elicit_gateway::inbox::client::{InboxClient, InboxFault};
use mcp_elicit_gateway::inbox::place::StateFolder;
use serde_json::Value;

mod show;

use super::in_runtime;
use crate::args::field_answers;
use crate::failure::{Exit, Failure};
use crate::screen;

/// Digits of a whole id.
const WHOLE: usize = 32;
/// How many of the questions that ended an id's beginning is looked for in.
const LATELY: usize = 2_000;

/// List and answer the questions that wait in a running gateway
#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    #[command(subcommand)]
    act: Act,

    /// The inbox's address; found in the state folder unless set
    #[arg(long, value_name = "URL", global = true)]
    inbox: Option<String>,

    /// The state folder of the gateway
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// The questions that wait, the longest waiting first
    List {
        /// Those that ended instead, the latest first
        #[arg(long)]
        ended: bool,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 10_000)]
        most: usize,
    },
    /// One question, with its form
    Show {
        /// Its id, or the beginning of it
        id: String,
    },
    /// Accept, with answers as name=value or one JSON object
    Accept {
        /// Its id, or the beginning of it
        id: String,
        /// The answers
        #[arg(value_name = "ANSWER")]
        answers: Vec<String>,
        /// Accept even a form that asks for a credential
        #[arg(long)]
        insist: bool,
    },
    /// Say no
    Decline {
        /// Its id, or the beginning of it
        id: String,
    },
    /// Make no choice
    Cancel {
        /// Its id, or the beginning of it
        id: String,
    },
    /// Print each question as it comes, until stopped
    Watch,
}

/// Runs the command to its end.
pub(crate) fn run(args: InboxArgs) -> Result<Exit, Failure> {
    in_runtime(act(args))
}

async fn act(args: InboxArgs) -> Result<Exit, Failure> {
    let inbox = args.client()?;
    match &args.act {
        Act::List { ended, most } => {
            let questions = inbox.list(*ended, None, *most).await.map_err(failed)?;
            for question in &questions {
                args.print(question)?;
            }
            if questions.is_empty() && !args.json {
                screen::say(if *ended {
                    "nothing has ended yet"
                } else {
                    "nothing is waiting"
                });
            }
            Ok(Exit::Done)
        }
        Act::Show { id } => {
            let question = inbox
                .show(&whole(&inbox, id).await?)
                .await
                .map_err(failed)?;
            if args.json {
                screen::print_json(&question)?;
            } else {
                show::question(&question)?;
            }
            Ok(Exit::Done)
        }
        Act::Accept {
            id,
            answers,
            insist,
        } => {
            let id = whole(&inbox, id).await?;
            let question = inbox.show(&id).await.map_err(failed)?;
            let is_form = question["mode"] == "form";
            if !is_form && !answers.is_empty() {
                return Err(Failure::usage("a link takes no answers").hint(format!(
                    "`mcp-elicit inbox accept {}` alone agrees to open it.",
                    show::short(&id)
                )));
            }
            let content = is_form.then(|| content(answers, &question)).transpose()?;
            args.hand_in(&inbox, &id, "accept", content, *insist).await
        }
        Act::Decline { id } => {
            let id = whole(&inbox, id).await?;
            args.hand_in(&inbox, &id, "decline", None, false).await
        }
        Act::Cancel { id } => {
            let id = whole(&inbox, id).await?;
            args.hand_in(&inbox, &id, "cancel", None, false).await
        }
        Act::Watch => watch(&args, &inbox).await,
    }
}

async fn watch(args: &InboxArgs, inbox: &InboxClient) -> Result<Exit, Failure> {
    let changes = inbox.changes().await.map_err(failed)?;
    let mut changes = std::pin::pin!(changes);
    let mut last: Option<String> = None;
    while changes.next().await.is_some() {
        // Those that wait are listed in the order in which they came: what is new stands behind the last.
        let new = inbox.list(false, last.as_deref(), usize::MAX).await;
        for question in new.map_err(failed)? {
            args.print(&question)?;
            last = question["id"].as_str().map(str::to_owned).or(last);
        }
    }
    Err(Failure::connection("the inbox has ended").hint("start a gateway, then watch again."))
}

/// The id that begins like this, when only one question that waits does; else among those that ended lately.
async fn whole(inbox: &InboxClient, id: &str) -> Result<String, Failure> {
    if id.len() >= WHOLE {
        return Ok(id.to_owned());
    }
    for (ended, most) in [(false, usize::MAX), (true, LATELY)] {
        let questions = inbox.list(ended, None, most).await.map_err(failed)?;
        let mut ids = questions
            .iter()
            .filter_map(|question| question["id"].as_str())
            .filter(|known| known.starts_with(id));
        match (ids.next(), ids.next()) {
            (Some(only), None) => return Ok(only.to_owned()),
            (None, _) => {}
            (Some(_), Some(_)) => {
                return Err(
                    Failure::usage(format!("several questions begin with `{id}`")).hint(
                        "write more of the id; `mcp-elicit inbox list --json` has all of it.",
                    ),
                );
            }
        }
    }
    Err(Failure::usage(format!("no question begins with `{id}`"))
        .hint("`mcp-elicit inbox list` has those that wait, `--ended` those that ended."))
}

/// Answers as they stand on the command line, checked against the question's form. Says what is sent in another spelling
/// than it was written in.
fn content(answers: &[String], question: &Value) -> Result<Value, Failure> {
    let form = Form::from_value(&question["requestedSchema"]).map_err(|defects| {
        Failure::refused("the question's form cannot be read").because(defects)
    })?;
    let read = field_answers::read(&form, answers)?;
    for line in &read.understood {
        screen::say(line);
    }
    Ok(read.answers.into_value())
}

fn failed(fault: InboxFault) -> Failure {
    match fault {
        InboxFault::Refused { code, message, violations } => {
            let told = if violations.is_empty() { message } else { format!("{message}: {}", violations.join("; ")) };
            let failure = Failure::refused(told);
            match code.as_str() {
                "no-token" => failure.hint("name the gateway's state folder with `--state DIR`."),
                "does-not-fit" => failure.hint("`mcp-elicit inbox show ID` says what fits."),
                "asks-for-a-credential" => failure.hint("never give a credential in a form; if this is none, say so with `--insist`."),
                "too-late" => failure.hint("the first answer stands; `mcp-elicit inbox list --ended` shows it."),
                _ => failure,
            }
        }
        other => Failure::connection("the inbox cannot be reached")
            .because(other)
            .hint("start a gateway, or name its inbox with `--inbox URL` and its state folder with `--state DIR`."),
    }
}

impl InboxArgs {
    fn client(&self) -> Result<InboxClient, Failure> {
        let path = self
            .state
            .clone()
            .or_else(StateFolder::usual)
            .ok_or_else(|| Failure::usage("there is no state folder"))?;
        let folder = StateFolder::at(&path);
        let at =
            self.inbox
                .clone()
                .or_else(|| folder.inbox())
                .ok_or_else(|| {
                    Failure::connection("no gateway has served an inbox from this state folder")
                .hint("start `mcp-elicit gateway`, or name its state folder with `--state DIR`.")
                })?;
        let token = folder
            .known_token()
            .map_err(|error| Failure::usage("the inbox's token cannot be read").because(error))?;
        InboxClient::new(&at, token).map_err(failed)
    }

    fn print(&self, question: &Value) -> Result<(), Failure> {
        if self.json {
            screen::print_json(question)
        } else {
            screen::print(show::line(question))
        }
    }

    async fn hand_in(
        &self,
        inbox: &InboxClient,
        id: &str,
        action: &str,
        content: Option<Value>,
        insist: bool,
    ) -> Result<Exit, Failure> {
        let said = inbox.answer(id, action, content, insist).await;
        let said = said.map_err(failed)?;
        if self.json {
            screen::print_json(&said)?;
        } else {
            let phase = said["phase"].as_str().unwrap_or("done");
            screen::say(format_args!("{}  {phase}", show::short(id)));
        }
        Ok(Exit::Done)
    }
}
