//! `inbox`: what servers asked through the gateway, and answers to it, from another terminal or a script.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use futures::StreamExt as _;
use mcp_elicit_gateway::inbox::client::{InboxClient, InboxFault};
use mcp_elicit_gateway::inbox::place::StateFolder;
use serde_json::{Map, Value};

use super::in_runtime;
use crate::failure::{Exit, Failure};
use crate::screen;

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
    /// The questions that wait
    List {
        /// Those that ended, instead
        #[arg(long)]
        ended: bool,
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
        Act::List { ended } => {
            for question in inbox.list(*ended).await.map_err(failed)? {
                args.print(&question)?;
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
                screen::print(serde_json::to_string_pretty(&question).unwrap_or_default())?;
            }
            Ok(Exit::Done)
        }
        Act::Accept { id, answers } => {
            let id = whole(&inbox, id).await?;
            let question = inbox.show(&id).await.map_err(failed)?;
            let content = content(answers, &question)?;
            let content = (question["mode"] == "form").then_some(Value::Object(content));
            args.told(&inbox.answer(&id, "accept", content).await.map_err(failed)?)
        }
        Act::Decline { id } => args.told(
            &inbox
                .answer(&whole(&inbox, id).await?, "decline", None)
                .await
                .map_err(failed)?,
        ),
        Act::Cancel { id } => args.told(
            &inbox
                .answer(&whole(&inbox, id).await?, "cancel", None)
                .await
                .map_err(failed)?,
        ),
        Act::Watch => watch(&args, &inbox).await,
    }
}

async fn watch(args: &InboxArgs, inbox: &InboxClient) -> Result<Exit, Failure> {
    let changes = inbox.changes().await.map_err(failed)?;
    let mut changes = std::pin::pin!(changes);
    let mut known = std::collections::HashSet::new();
    while changes.next().await.is_some() {
        for question in inbox.list(false).await.map_err(failed)? {
            if known.insert(question["id"].to_string()) {
                args.print(&question)?;
            }
        }
    }
    Err(Failure::connection("the inbox has ended"))
}

/// The id that begins like this, when only one does.
async fn whole(inbox: &InboxClient, id: &str) -> Result<String, Failure> {
    if id.len() >= 32 {
        return Ok(id.to_owned());
    }
    let mut found = inbox.list(false).await.map_err(failed)?;
    found.extend(inbox.list(true).await.map_err(failed)?);
    let mut ids = found
        .iter()
        .filter_map(|question| question["id"].as_str())
        .filter(|known| known.starts_with(id));
    match (ids.next(), ids.next()) {
        (Some(only), None) => Ok(only.to_owned()),
        (None, _) => Err(Failure::usage(format!("no question begins with `{id}`"))),
        (Some(_), Some(_)) => Err(Failure::usage(format!(
            "several questions begin with `{id}`"
        ))),
    }
}

/// Answers as they stand on the command line, read by what the form says each is.
fn content(answers: &[String], question: &Value) -> Result<Map<String, Value>, Failure> {
    if let [only] = answers
        && only.trim_start().starts_with('{')
    {
        return serde_json::from_str(only)
            .map_err(|error| Failure::usage("the answers are not a JSON object").because(error));
    }
    let mut content = Map::new();
    for answer in answers {
        let (name, value) = answer.split_once('=').ok_or_else(|| {
            Failure::usage(format!("`{answer}` is no answer")).hint("write name=value.")
        })?;
        let kind = &question["requestedSchema"]["properties"][name]["type"];
        let value = match kind.as_str() {
            Some("string") => Value::from(value),
            Some("array") if !value.starts_with('[') => value
                .split(',')
                .filter(|one| !one.is_empty())
                .map(Value::from)
                .collect(),
            _ => serde_json::from_str(value).unwrap_or_else(|_| Value::from(value)),
        };
        content.insert(name.to_owned(), value);
    }
    Ok(content)
}

fn failed(fault: InboxFault) -> Failure {
    match fault {
        InboxFault::Refused { code, message, violations } => {
            let told = if violations.is_empty() { message } else { format!("{message}: {}", violations.join("; ")) };
            let failure = Failure::refused(told);
            match code.as_str() {
                "no-token" => failure.hint("name the gateway's state folder with `--state DIR`."),
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
            return screen::print_json(question);
        }
        let word = |name: &str| question[name].as_str().unwrap_or("-").to_owned();
        let id: String = word("id").chars().take(8).collect();
        let message: String = word("message")
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(100)
            .collect();
        screen::print(format_args!(
            "{id}  {:<9}  {} / {}  {message}",
            word("phase"),
            word("server"),
            word("target")
        ))
    }

    fn told(&self, said: &Value) -> Result<Exit, Failure> {
        if self.json {
            screen::print_json(said)?;
        } else {
            screen::say(format_args!("{}", said["phase"].as_str().unwrap_or("done")));
        }
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_by_the_forms_types() {
        let question = serde_json::json!({"requestedSchema": {"properties": {
            "zip": {"type": "string"}, "age": {"type": "integer"}, "tags": {"type": "array"}, "ok": {"type": "boolean"}}}});
        let read = content(
            &[
                "zip=0123".into(),
                "age=36".into(),
                "tags=a,b".into(),
                "ok=true".into(),
            ],
            &question,
        )
        .unwrap();
        assert_eq!(
            Value::Object(read),
            serde_json::json!({"zip": "0123", "age": 36, "tags": ["a", "b"], "ok": true})
        );
        assert!(content(&["zip".into()], &question).is_err());
    }
}
