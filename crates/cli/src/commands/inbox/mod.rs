//! `inbox`: the questions that servers asked through the gateway, and answers to them, from another terminal or a
//! script.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, Subcommand, value_parser};
use futures::StreamExt as _;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::wire::{Action, Mode};
use mcp_elicit_inbox::api::model::{AnswerResponse, ListRequest, ListedQuestion, WholeQuestion};
use mcp_elicit_inbox::client::{InboxClient, InboxError};
use mcp_elicit_inbox::direct_record;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::KeyFileError;
use mcp_elicit_record::audit::{Details, Event};
use mcp_elicit_record::store::RecordStoreError;
use serde_json::{Map, Value};

mod open;
mod people;
mod sessions;
mod show;

use super::in_runtime;
use super::state_record::{self, NamedFolder};
use crate::args::field_answers::{self, UnansweredFields};
use crate::args::record_location::RecordLocation;
use crate::failure::{Exit, Failure};
use crate::output;

/// The number of digits of a whole id.
const WHOLE: usize = 32;
/// The number of ended questions among which a shortened id is looked up.
const LATELY: usize = 2_000;

/// Open the inbox, list and answer its questions, and manage access
#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    #[command(subcommand)]
    act: InboxCommand,

    /// Address of an inbox, which gets the state folder's token [default: the socket of the gateway in the state folder, or
    /// the record itself if no gateway runs]
    #[arg(long, value_name = "URL", global = true)]
    inbox: Option<String>,

    #[command(flatten)]
    location: RecordLocation,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum InboxCommand {
    /// List pending questions, the oldest first
    List {
        /// List ended questions instead, the newest first
        #[arg(long)]
        ended: bool,
        /// List only questions that contain these words: in the message, the names of the call, fields, rule or caller
        #[arg(long, value_name = "WORDS")]
        find: Option<String>,
        /// List only questions of the server with this name
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Maximum number of questions
        #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = value_parser!(u32).range(1..=1_000_000))]
        limit: u32,
    },
    /// Show one question with its form
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
        /// Accept the form's defaults where no answer is given
        #[arg(long)]
        accept_defaults: bool,
        /// Accept even a form that asks for a credential
        #[arg(long)]
        allow_credentials: bool,
    },
    /// Decline: say no
    Decline {
        /// Its id, or the beginning of it
        id: String,
        /// Why, in one line of at most 500 characters; the server is told it
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Cancel: make no choice
    Cancel {
        /// Its id, or the beginning of it
        id: String,
    },
    /// Print each question as it arrives, including from gateways that start later, until stopped
    Watch,
    /// Sign a browser in and show the queue, or one question
    Open {
        /// The question's id, or the beginning of it
        id: Option<String>,
    },
    /// List or end the sessions of signed-in browsers
    Sessions {
        #[command(subcommand)]
        act: SessionsCommand,
    },
    /// List the people who logged in, or release one from the subject of their first login
    People {
        #[command(subcommand)]
        act: Option<PeopleCommand>,
    },
    /// Replace the API's token; programs that use it must read it again. Browsers stay signed in
    Rotate,
}

#[derive(Debug, Subcommand)]
enum PeopleCommand {
    /// List people with the subjects that they are bound to
    List,
    /// Release a person whose subject has changed at the issuer: their sessions end, and their next login by mail address binds them again
    Unbind {
        /// The name in [people]
        name: String,
    },
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// List sessions with the times of sign-in and last use
    List,
    /// End one session, or all
    Revoke {
        /// Its id, as shown by `inbox sessions list`
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// All sessions, including those of people who log in, and every unused login link
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
}

/// Runs the command to its end.
pub(crate) fn run(args: InboxArgs) -> Result<Exit, Failure> {
    in_runtime(act(args))
}

async fn act(args: InboxArgs) -> Result<Exit, Failure> {
    match &args.act {
        InboxCommand::Open { id } => {
            let folder = args.folder()?;
            let id = match id {
                Some(id) => Some(whole(&args.client().await?, id).await?),
                None => None,
            };
            if let Some(address) = folder.people_inbox() {
                // A gateway that was killed has left the file behind.
                if folder.served_inbox().await.is_none() {
                    return Err(no_gateway(&folder));
                }
                return Err(open::people_log_in(&address, id.as_deref()));
            }
            let folder = state_record::named_folder(&args.location)?.folder;
            return open::open(&folder, id.as_deref()).await;
        }
        InboxCommand::Sessions { act } => {
            return sessions::run(&args.known_folder()?, act, args.json).await;
        }
        InboxCommand::People { act } => {
            return people::run(&args.known_folder()?, act.as_ref(), args.json).await;
        }
        InboxCommand::Rotate => return rotate(&args.known_folder()?).await,
        InboxCommand::Watch => return watch(&args).await,
        InboxCommand::List { .. }
        | InboxCommand::Show { .. }
        | InboxCommand::Accept { .. }
        | InboxCommand::Decline { .. }
        | InboxCommand::Cancel { .. } => {}
    }
    let inbox = args.client().await?;
    match &args.act {
        InboxCommand::List {
            ended,
            find,
            server,
            limit,
        } => {
            let is_selected = find.is_some() || server.is_some();
            let request = ListRequest {
                ended: *ended,
                find: find.clone(),
                server: server.clone(),
                ..ListRequest::default()
            };
            let questions = inbox.list_of(request, *limit as usize).await;
            let questions = questions.map_err(failed)?;
            for question in &questions {
                args.print(question)?;
            }
            if questions.is_empty() && !args.json {
                output::say(if is_selected {
                    "no question matches"
                } else if *ended {
                    "nothing has ended yet"
                } else {
                    "nothing is waiting"
                });
            }
            Ok(Exit::Done)
        }
        InboxCommand::Show { id } => {
            let question = inbox
                .show(&whole(&inbox, id).await?)
                .await
                .map_err(failed)?;
            if args.json {
                output::print_json(&question)?;
            } else {
                show::question(&question)?;
            }
            Ok(Exit::Done)
        }
        InboxCommand::Accept {
            id,
            answers,
            accept_defaults,
            allow_credentials,
        } => {
            let id = whole(&inbox, id).await?;
            let question = inbox.show(&id).await.map_err(failed)?;
            if question.question.rule.is_some() {
                // The gateway gives its reason before any answer is read: the form is only for those who are asked.
                return args.hand_in(&inbox, &id, Action::Accept, None, false).await;
            }
            let is_form = question.question.mode == Mode::Form;
            if !is_form && !answers.is_empty() {
                return Err(Failure::usage("a link takes no answers").hint(format!(
                    "`mcp-elicit inbox accept {}` alone agrees to open it.",
                    show::short(&id)
                )));
            }
            let unanswered = if *accept_defaults {
                UnansweredFields::Default
            } else {
                UnansweredFields::Left
            };
            let content = is_form.then(|| content(answers, unanswered, &question));
            let content = content.transpose()?;
            args.hand_in(&inbox, &id, Action::Accept, content, *allow_credentials)
                .await
        }
        InboxCommand::Decline { id, reason } => {
            let id = whole(&inbox, id).await?;
            let said = inbox.decline(&id, reason.as_deref()).await;
            args.tell_done(&id, &said.map_err(failed)?)
        }
        InboxCommand::Cancel { id } => {
            let id = whole(&inbox, id).await?;
            args.hand_in(&inbox, &id, Action::Cancel, None, false).await
        }
        InboxCommand::Open { .. }
        | InboxCommand::Sessions { .. }
        | InboxCommand::People { .. }
        | InboxCommand::Rotate
        | InboxCommand::Watch => Ok(Exit::Done),
    }
}

/// The interval of checks for a running gateway.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

async fn watch(args: &InboxArgs) -> Result<Exit, Failure> {
    let folder = args.folder()?;
    let mut printed = Printed::default();
    let mut told = false;
    loop {
        let inbox = match &args.inbox {
            Some(_) => Some(args.client().await?),
            None => InboxClient::running(&folder).await.map_err(failed)?,
        };
        let followed = match &inbox {
            Some(inbox) => follow(args, inbox, &mut printed, &mut told).await,
            None => Ok(()),
        };
        match followed {
            // The gateway has ended, or does not serve yet.
            Ok(()) | Err(Stopped::Inbox(InboxError::Unreachable { .. })) => {}
            Err(Stopped::Inbox(fault)) => return Err(failed(fault)),
            Err(Stopped::Failure(failure)) => return Err(failure),
        }
        if !told {
            told = true;
            output::say(format_args!(
                "no gateway serves the inbox of {} now; waiting for one",
                folder.path().display()
            ));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The reason why a gateway's questions are no longer followed.
enum Stopped {
    Inbox(InboxError),
    Failure(Failure),
}

/// The time by which a question may be listed before one that was printed already: its gateway's clock is behind, or its
/// id comes first in the order of the same millisecond.
const LATE: Duration = Duration::from_secs(60);

/// The questions printed so far.
#[derive(Default)]
struct Printed {
    /// Those among which a later one may still be listed, with their times, in the order of the list.
    latest: BTreeSet<(Timestamp, String)>,
    /// Those that a client was showing: they are printed again if they come to people after all.
    in_client: BTreeSet<String>,
}

impl Printed {
    /// Returns the question after which new ones are looked for.
    fn after(&self) -> Option<&str> {
        let (newest, _) = self.latest.last()?;
        let is_early = |at: &Timestamp| at.after(LATE) < *newest;
        let early = self.latest.iter().take_while(|(at, _)| is_early(at));
        early.last().map(|(_, id)| id.as_str())
    }

    /// Remembers a question; returns `true` if it was not printed before.
    fn add(&mut self, at: Timestamp, id: &str) -> bool {
        let is_new = self.latest.insert((at, id.to_owned()));
        // The one that is looked after stays, and nothing before it is listed again.
        if let Some(after) = self.after().map(str::to_owned) {
            while self.latest.first().is_some_and(|(_, id)| *id != after) {
                self.latest.pop_first();
            }
        }
        is_new
    }
}

/// Prints the questions of one gateway as they arrive, until it ends.
async fn follow(
    args: &InboxArgs,
    inbox: &InboxClient,
    printed: &mut Printed,
    told: &mut bool,
) -> Result<(), Stopped> {
    let changes = inbox.changes().await.map_err(Stopped::Inbox)?;
    let mut changes = std::pin::pin!(changes);
    while changes.next().await.is_some() {
        *told = false;
        // Pending questions are listed in the order of their times, which is nearly that of their arrival.
        if !printed.in_client.is_empty() {
            let open = inbox.list(false, None, usize::MAX).await;
            let mut in_client = BTreeSet::new();
            for question in open.map_err(Stopped::Inbox)? {
                if !printed.in_client.contains(&question.id) {
                    continue;
                }
                if question.asked_in_client {
                    in_client.insert(question.id);
                } else {
                    args.print(&question).map_err(Stopped::Failure)?;
                }
            }
            printed.in_client = in_client;
        }
        let listed = inbox.list(false, printed.after(), usize::MAX).await;
        for question in listed.map_err(Stopped::Inbox)? {
            if !printed.add(question.asked_at, &question.id) {
                continue;
            }
            args.print(&question).map_err(Stopped::Failure)?;
            if question.asked_in_client {
                printed.in_client.insert(question.id);
            }
        }
    }
    Ok(())
}

async fn rotate(folder: &StateFolder) -> Result<Exit, Failure> {
    folder
        .rotate_token()
        .map_err(|error| Failure::usage("the token cannot be written").because(error))?;
    let details = Details {
        reason: Some("the token of the inbox's API"),
        ..Details::by(direct_record::ON_COMMAND_LINE)
    };
    note_all(folder, &[(Event::Rotated, details)]).await;
    output::say(format_args!(
        "the API's token was replaced; programs that use it read it from {}",
        folder.token_file().display()
    ));
    Ok(Exit::Done)
}

/// Writes an audit event. A failure is reported, and does not undo the action.
pub(super) async fn note(folder: &StateFolder, event: Event) {
    warn_if_not_noted(direct_record::note(folder, event, None).await);
}

/// Writes audit events, if there is a record. A failure is reported, and does not undo the action.
pub(super) async fn note_all(folder: &StateFolder, events: &[(Event, Details<'_>)]) {
    warn_if_not_noted(direct_record::note_all(folder, events).await);
}

/// Writes an audit event about the thing with this id.
pub(super) async fn note_about(folder: &StateFolder, event: Event, about: (&str, &str)) {
    if !folder.has_record() {
        return output::say("there is no record yet, so this is not in the audit");
    }
    warn_if_not_noted(direct_record::note(folder, event, Some(about)).await);
}

fn warn_if_not_noted(noted: Result<(), direct_record::OpenRecordError>) {
    if let Err(error) = noted {
        output::say(format_args!(
            "{} this is not in the audit: {error}",
            output::styled(output::WARNING, "warning:")
        ));
    }
}

/// Returns the failure for sessions that cannot be read or written.
fn unwritable(error: &std::io::Error) -> Failure {
    Failure::usage("the inbox's sessions cannot be read or written").because(error)
}

/// Returns the failure for a folder whose inbox no gateway serves.
fn no_gateway(folder: &StateFolder) -> Failure {
    Failure::connection(format!(
        "no gateway serves the inbox of the state folder {}",
        folder.path().display()
    ))
    .hint("start `mcp-elicit gateway`, or name its state folder with `--state DIR`.")
}

/// Returns the whole id for its beginning, which must be that of only one pending question or, if of none, of only one
/// recently ended question.
async fn whole(inbox: &InboxClient, id: &str) -> Result<String, Failure> {
    if id.len() >= WHOLE {
        return Ok(id.to_owned());
    }
    for (ended, limit) in [(false, usize::MAX), (true, LATELY)] {
        let request = ListRequest {
            ended,
            find: Some(id.to_owned()),
            ..ListRequest::default()
        };
        let questions = inbox.list_of(request, limit).await.map_err(failed)?;
        let mut ids = questions
            .iter()
            .map(|question| question.id.as_str())
            .filter(|known| known.starts_with(id));
        match (ids.next(), ids.next()) {
            (Some(only), None) => return Ok(only.to_owned()),
            (None, _) => {}
            (Some(_), Some(_)) => {
                return Err(
                    Failure::usage(format!("several questions begin with `{id}`")).hint(
                        "write more of the id; `mcp-elicit inbox list --json` shows it in full.",
                    ),
                );
            }
        }
    }
    Err(Failure::usage(format!("no question begins with `{id}`"))
        .hint("`mcp-elicit inbox list` shows pending questions, `--ended` shows ended ones."))
}

/// Reads answers from the command line and checks them against the question's form. Reports each value that is sent in
/// a different spelling.
fn content(
    answers: &[String],
    unanswered: UnansweredFields,
    question: &WholeQuestion,
) -> Result<Map<String, Value>, Failure> {
    let schema = question.requested_schema.as_ref().unwrap_or(&Value::Null);
    let form = Form::from_value_leniently(schema).map_err(|defects| {
        Failure::refused("the question's form cannot be read").because(defects)
    })?;
    let read = field_answers::read(&form, answers, unanswered)?;
    for line in &read.understood {
        output::say(line);
    }
    match read.answers.into_value() {
        Value::Object(content) => Ok(content),
        _ => Ok(Map::new()),
    }
}

fn failed(fault: InboxError) -> Failure {
    match fault {
        InboxError::Refused { code, message, violations } => {
            let told = if violations.is_empty() { message } else { format!("{message}: {}", violations.join("; ")) };
            let failure = Failure::refused(told);
            match code.as_str() {
                "no-token" => failure.hint("name the gateway's state folder with `--state DIR`."),
                "does-not-fit" => failure.hint("`mcp-elicit inbox show ID` shows the valid answers."),
                "asks-for-a-credential" => failure.hint("never give a credential in a form; if this is not one, say so with `--allow-credentials`."),
                "too-late" => failure.hint("the first answer counts; `mcp-elicit inbox list --ended` shows it."),
                "pages-only" => failure.hint("`mcp-elicit inbox open` opens the page."),
                "asks-people" => failure.hint("those who are asked log in to the inbox; `mcp-elicit inbox open` says where it is."),
                "record-failed" => failure.hint("try again when the gateway can read and write its record: its log says why it cannot, such as a database that is away."),
                _ => failure,
            }
        }
        fault @ InboxError::NothingThere { .. } => {
            Failure::connection("there is no inbox").because(fault)
                .hint("start `mcp-elicit gateway`, or name its state folder with `--state DIR`.")
        }
        InboxError::Record { folder, source } => {
            let remedy = match (source.downcast_ref::<KeyFileError>(), source.downcast_ref::<RecordStoreError>()) {
                (Some(fault), _) => fault.remedy(),
                (None, Some(fault)) => fault.remedy(),
                (None, None) => None,
            };
            let failure = Failure::usage("there is no inbox").because(InboxError::Record { folder, source });
            match remedy {
                Some(remedy) => failure.hint(remedy),
                None => failure,
            }
        }
        fault @ InboxError::NotEncrypted { .. } => Failure::usage("the token is not sent to that address").because(fault)
            .hint("name an https address, or one of this machine such as a tunnel's: `--inbox http://127.0.0.1:PORT`."),
        fault @ InboxError::Redirected { .. } => Failure::connection("the inbox cannot be reached").because(fault)
            .hint("name the address of the inbox itself with `--inbox URL`."),
        other => Failure::connection("the inbox cannot be reached")
            .because(other)
            .hint("start a gateway, or name its inbox with `--inbox URL` and its state folder with `--state DIR`."),
    }
}

impl InboxArgs {
    fn folder(&self) -> Result<StateFolder, Failure> {
        Ok(state_record::unchecked_folder(&self.location)?.folder)
    }

    /// Returns the state folder, which a gateway must have created, with its record.
    fn known_folder(&self) -> Result<StateFolder, Failure> {
        let folder = state_record::named_folder(&self.location)?.folder;
        if folder.token_file().exists() {
            return Ok(folder);
        }
        let path = folder.path().display();
        Err(
            Failure::connection(format!("no gateway has served an inbox from {path}"))
                .hint("start `mcp-elicit gateway`, or name its state folder with `--state DIR`."),
        )
    }

    async fn client(&self) -> Result<InboxClient, Failure> {
        let NamedFolder { folder, noted, .. } = state_record::unchecked_folder(&self.location)?;
        let Some(at) = &self.inbox else {
            return match (InboxClient::find(&folder).await, noted) {
                (Err(InboxError::NothingThere { .. }), Some(address)) => {
                    Err(state_record::in_another_database(
                        &folder,
                        &address,
                        "start its gateway, or name",
                    ))
                }
                (found, _) => found.map_err(failed),
            };
        };
        let token = folder
            .known_token()
            .map_err(|error| Failure::usage("the inbox's token cannot be read").because(error))?;
        InboxClient::new(at, token).map_err(failed)
    }

    fn print(&self, question: &ListedQuestion) -> Result<(), Failure> {
        if self.json {
            output::print_json(question)
        } else {
            output::print(show::line(question))
        }
    }

    async fn hand_in(
        &self,
        inbox: &InboxClient,
        id: &str,
        action: Action,
        content: Option<Map<String, Value>>,
        allow_credentials: bool,
    ) -> Result<Exit, Failure> {
        let said = inbox.answer(id, action, content, allow_credentials).await;
        self.tell_done(id, &said.map_err(failed)?)
    }

    /// Prints the result of an answer.
    fn tell_done(&self, id: &str, said: &AnswerResponse) -> Result<Exit, Failure> {
        if self.json {
            output::print_json(said)?;
        } else {
            let phase = said.phase;
            let later = show::taken_by(said);
            output::say(format_args!("{}  {phase}{later}", show::short(id)));
        }
        Ok(Exit::Done)
    }
}
