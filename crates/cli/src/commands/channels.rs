//! `channels`: messages to people and programs that have failed, or that wait for another try.

use clap::{Args, Subcommand, value_parser};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_inbox::direct_record::{self, ON_COMMAND_LINE};
use mcp_elicit_record::Record;
use mcp_elicit_record::store::outbox::Notification;
use serde_json::{Value, json};

use super::audit::moment;
use super::state_record::{unopened, unusable as broken};
use super::{in_runtime, state_record};
use crate::args::record_location::RecordLocation;
use crate::failure::{Exit, Failure};
use crate::output::{self, harmless};

/// The largest number of failed messages that are read.
const MOST: usize = 100_000;
/// The largest number of messages waiting for another try that are counted beside the failed ones.
const MOST_COUNTED: usize = 1_000;
/// The number of an id's characters that are shown to people.
const SHORT: usize = 8;

/// The events of messages that ask people to act.
const ASKING: [&str; 5] = [
    "question.asked",
    "question.reminded",
    "question.escalated",
    "question.delegated",
    "question.filled",
];

const EXAMPLES: &str = "\
Examples:
  mcp-elicit channels waiting
  mcp-elicit channels failed
  mcp-elicit channels failed --json | jq -r 'select(.channel == \"mail\") | .id'
  mcp-elicit channels retry 4f1c9a0b
  mcp-elicit channels retry --all

Messages are retried until the question's deadline (webhooks: three days): `waiting` lists them.
They fail after that, or when the receiver rejects them permanently. Reasons, among others:
  unreachable     nothing answers at the receiver's address
  tls             the receiver's certificate is not trusted
  credentials     the password or token is refused
  missing-scope   the Slack app lacks a scope: add it, and install the app again
  not-in-channel  the Slack app is not in that channel: invite it
  address         the person or group has no address on the channel, or nobody there has it
  refused         the receiver rejects the message, such as for an unknown address
  address-gone    the channel, workspace or address no longer exists, or the channel is no longer in
                  the gateway's file
  too-late        its deadline passed before it could be sent

The gateway that uses this state folder sends retries. A message about a question that has ended
is skipped.";

/// List messages to people and programs that have failed or are being retried, and send them again
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ChannelsArgs {
    #[command(subcommand)]
    act: ChannelsCommand,

    #[command(flatten)]
    location: RecordLocation,

    /// Print JSON lines
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ChannelsCommand {
    /// List messages that have failed, the newest first
    Failed {
        /// Maximum number of messages
        #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
    /// List messages that are being retried, the next attempt first
    Waiting {
        /// Maximum number of messages
        #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
    /// Make the gateway try to send a message again, for at most an hour
    Retry {
        /// Its id, or the beginning of it
        id: Option<String>,
        /// All messages that have failed
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
}

/// Runs the command to its end.
pub(crate) fn run(args: ChannelsArgs) -> Result<Exit, Failure> {
    in_runtime(act(args))
}

async fn act(args: ChannelsArgs) -> Result<Exit, Failure> {
    let folder = state_record::folder(&args.location).await?;
    let record = direct_record::record(&folder).await.map_err(unopened)?;
    let done = match args.act {
        ChannelsCommand::Failed { limit } => list(&record, limit as usize, args.json).await,
        ChannelsCommand::Waiting { limit } => {
            list_waiting(&record, limit as usize, args.json).await
        }
        ChannelsCommand::Retry { id: Some(id), .. } => retry(&record, &id, args.json).await,
        ChannelsCommand::Retry {
            id: None,
            all: true,
        } => retry_all(&record, args.json).await,
        ChannelsCommand::Retry {
            id: None,
            all: false,
        } => Err(Failure::usage("no message is named").hint(
            "name one by its id, as shown by `mcp-elicit channels failed`, or all with `--all`.",
        )),
    };
    record.flush().await.map_err(broken)?;
    done
}

async fn failed(record: &Record, most: usize) -> Result<Vec<Notification>, Failure> {
    record.failed_messages(most).await.map_err(broken)
}

async fn list(record: &Record, most: usize, json: bool) -> Result<Exit, Failure> {
    let failed = failed(record, most).await?;
    for message in &failed {
        if json {
            output::print_json(&shown(message))?;
        } else {
            output::print(line_and_remedy(message))?;
        }
    }
    if json {
        return Ok(Exit::Done);
    }
    let waiting = waiting(record, MOST_COUNTED).await?.len();
    match (failed.is_empty(), waiting) {
        (true, 0) => output::say("no message has failed"),
        (false, 0) => {}
        (is_empty, count) => {
            let failed = if is_empty {
                "no message has failed; "
            } else {
                ""
            };
            let are = if count == 1 { "is" } else { "are" };
            output::say(format_args!(
                "{failed}{count} {are} being retried: `mcp-elicit channels waiting`"
            ));
        }
    }
    Ok(Exit::Done)
}

async fn waiting(record: &Record, most: usize) -> Result<Vec<Notification>, Failure> {
    record.waiting_messages(most).await.map_err(broken)
}

async fn list_waiting(record: &Record, most: usize, json: bool) -> Result<Exit, Failure> {
    let waiting = waiting(record, most).await?;
    for message in &waiting {
        if json {
            let mut shown = shown(message);
            if let Some(members) = shown.as_object_mut() {
                members.remove("failedAt");
                members.insert("nextTry".to_owned(), json!(message.due_at));
                members.insert("until".to_owned(), json!(message.until));
            }
            output::print_json(&shown)?;
        } else {
            let at = i64::try_from(message.due_at.as_millis()).ok();
            let at = at.and_then(moment).unwrap_or_default();
            let line = line_and_remedy(message);
            output::print(format_args!("{line}; next try {at}"))?;
        }
    }
    if waiting.is_empty() && !json {
        output::say("no message is being retried");
    }
    Ok(Exit::Done)
}

async fn retry(record: &Record, id: &str, json: bool) -> Result<Exit, Failure> {
    let failed = failed(record, MOST).await?;
    let mut found = failed.iter().filter(|message| message.id.starts_with(id));
    match (found.next(), found.next()) {
        (Some(message), None) => {
            again(record, message, json).await?;
            Ok(Exit::Done)
        }
        (None, _) => Err(Failure::usage(format!(
            "no failed message begins with `{}`",
            harmless(id)
        ))
        .hint("`mcp-elicit channels failed` lists them.")),
        (Some(_), Some(_)) => Err(Failure::usage(format!(
            "several failed messages begin with `{}`",
            harmless(id)
        ))
        .hint("write more of the id; `mcp-elicit channels failed --json` shows it in full.")),
    }
}

async fn retry_all(record: &Record, json: bool) -> Result<Exit, Failure> {
    let (mut queued, mut skipped) = (0, 0);
    for message in &failed(record, MOST).await? {
        match again(record, message, json).await? {
            Retried::Queued => queued += 1,
            Retried::Skipped => skipped += 1,
            Retried::ByOthers => {}
        }
    }
    let messages = |count: u32| if count == 1 { "message" } else { "messages" };
    if queued > 0 {
        output::say(format_args!(
            "{queued} {} queued; `mcp-elicit channels failed` lists those that fail again",
            messages(queued)
        ));
    }
    if skipped > 0 {
        output::say(format_args!(
            "{skipped} {} skipped: the question has ended",
            messages(skipped)
        ));
    }
    if queued + skipped == 0 {
        output::say("no message has failed");
    }
    Ok(Exit::Done)
}

/// The outcome for a message that was to be sent again.
enum Retried {
    /// The gateway will send it.
    Queued,
    /// The gateway removes it from the list without sending it: the question about which it asks has ended.
    Skipped,
    /// Another command did so first.
    ByOthers,
}

/// Queues a message again.
async fn again(record: &Record, message: &Notification, json: bool) -> Result<Retried, Failure> {
    let is_over = is_over(record, message).await?;
    let queued = record.send_again(message, ON_COMMAND_LINE).await;
    if !queued.map_err(broken)? {
        return Ok(Retried::ByOthers);
    }
    if json {
        output::print_json(&json!({"id": message.id, "queued": !is_over}))?;
    } else {
        let done = if is_over {
            "skipped: the question has ended"
        } else {
            "queued"
        };
        output::print(format_args!("{}  {done}", line(message)))?;
    }
    Ok(if is_over {
        Retried::Skipped
    } else {
        Retried::Queued
    })
}

/// Returns `true` if the gateway would skip the message because the question about which it asks has ended.
async fn is_over(record: &Record, message: &Notification) -> Result<bool, Failure> {
    if message.recipient == "endpoint" || !ASKING.contains(&&*message.event) {
        return Ok(false);
    }
    let row = record.find(&message.question).await.map_err(broken)?;
    let is_due = |at: Timestamp| at <= record.now();
    Ok(row.is_some_and(|row| {
        !row.lifecycle.is_open() || row.lifecycle.deadline().is_some_and(is_due)
    }))
}

/// Returns a message as JSON. A recipient is named as in the configuration; the record has no addresses.
fn shown(message: &Notification) -> Value {
    json!({
        "id": message.id,
        "question": message.question,
        "event": message.event,
        "channel": message.channel,
        "to": message.recipient,
        "attempts": message.attempts,
        "at": message.at,
        "failedAt": message.done_at,
        "reason": message.why,
    })
}

fn line(message: &Notification) -> String {
    let at = i64::try_from(message.done_at.unwrap_or(message.at).as_millis());
    let at = at.ok().and_then(moment).unwrap_or_default();
    let short = |id: &str| id.chars().take(SHORT).collect::<String>();
    let line = format!(
        "{}  {at}  {} to {}  {} of question {}  {} after {} {}",
        short(&message.id),
        message.channel,
        message.recipient,
        message.event,
        short(&message.question),
        message.why.as_deref().unwrap_or("unknown"),
        message.attempts,
        if message.attempts == 1 {
            "attempt"
        } else {
            "attempts"
        },
    );
    harmless(&line).into_owned()
}

/// Returns the line of a message that was not sent, with advice on the reason.
fn line_and_remedy(message: &Notification) -> String {
    match message.why.as_deref().and_then(remedy) {
        Some(remedy) => format!("{}: {remedy}", line(message)),
        None => line(message),
    }
}

/// Returns advice on a reason; `None` if there is nothing to add to it.
fn remedy(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "unreachable" => {
            "check the receiver's address in the file, and that this machine reaches it"
        }
        "tls" => {
            "check the receiver's certificate; for mail, `ca` names your own root certificates"
        }
        "credentials" => "check the secret that the file names",
        "missing-scope" => "add the scope to the Slack app, and install the app again",
        "not-in-channel" => "invite the Slack app to the channel",
        "address" | "no-address" => "check `mail` of the person, or `groups` of the channel",
        "private-address" => "allow the address with `allow-private = true` in the channel's table",
        "configuration" => "check the channel's table in the file",
        "address-gone" => "check that the channel or address exists and is in the file",
        _ => return None,
    })
}
