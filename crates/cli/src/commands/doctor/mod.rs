//! `doctor`: the state of clients, servers and the inbox, and what to do next. Nothing is changed, and started only with
//! `--start`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use mcp_elicit_client::sign_in::{SignIn, SignInOptions};
use mcp_elicit_clients::{Dialog, Profile, Profiles, Shows};
use mcp_elicit_core::link::without_userinfo;
use mcp_elicit_forms::web::SessionStore as _;
use mcp_elicit_gateway::config::{RiskySetting, risky_settings};
use mcp_elicit_inbox::desktop_notice;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_setup::{ClientFiles, Document, ServerEntry, SetupState};
use serde::Serialize;
use serde_json::{Value, json};

use self::start::{Naming, StartedServer, left_out, start};
use super::setup::{FoundFile, Selection, find, is_open};
use super::{in_runtime, state_record};
use crate::call_session::stop;
use crate::failure::{Exit, Failure};
use crate::output::{self, ERROR, GOOD, HINT, WARNING, harmless, print, styled};

mod start;

/// Check clients, servers and the inbox, and say what to do next
///
/// Reads configuration files and the state folder, and starts nothing unless asked to.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct DoctorArgs {
    /// Clients, by their short names, and servers [default: all]
    #[arg(value_name = "CLIENT|SERVER")]
    names: Vec<String>,

    /// Start each server as the gateway would, for a moment, and show what it speaks
    #[arg(long)]
    start: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// The state folder of the gateway
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

const AFTER: &str = "\
Examples:
  mcp-elicit doctor
  mcp-elicit doctor --start
  mcp-elicit doctor cursor --json | jq '.findings[] | {code, next}'

Each finding has a code, which docs/setup.md lists, and the next command.
Exit code 1: there is a problem. Warnings alone exit with 0.";

/// The weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Level {
    /// A question may not reach a person.
    Problem,
    /// It works, and may surprise.
    Warning,
}

/// Something to know.
#[derive(Debug, Serialize)]
struct DoctorFinding {
    code: &'static str,
    level: Level,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    says: String,
    /// The next command, or what to do.
    next: String,
}

impl DoctorFinding {
    fn new(
        code: &'static str,
        level: Level,
        says: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            code,
            level,
            client: None,
            file: None,
            server: None,
            says: says.into(),
            next: next.into(),
        }
    }

    fn of(mut self, file: &FoundFile, server: Option<&ServerEntry>) -> Self {
        self.client = Some(file.client.id());
        self.file = Some(file.path.clone());
        self.server = server.map(|server| server.name().to_owned());
        self
    }
}

/// Runs the command to its end.
pub(crate) fn run(args: &DoctorArgs) -> Result<Exit, Failure> {
    let selection = Selection::read(&args.names)?;
    let files = find(&selection)?;
    selection.check(&files)?;
    let state = StateFolder::at(&state_record::path(args.state.clone())?);
    let profiles = Profiles::default();
    let mut findings = Vec::new();
    for file in &files {
        in_runtime(async {
            in_file(file, &selection, &state, &mut findings).await;
            Ok(())
        })?;
    }
    let mut known = Vec::new();
    if args.start {
        in_runtime(start_all(&files, &selection, &mut known, &mut findings))?;
    }
    two_commands(&files, &mut findings);
    in_runtime(async {
        in_state(&state, &files, &mut findings).await;
        Ok(())
    })?;
    let is_bad = findings
        .iter()
        .any(|finding| finding.level == Level::Problem);
    if args.json {
        let clients: Vec<Value> = files
            .iter()
            .map(|file| file_json(file, &profiles, &known))
            .collect();
        output::print_json(&json!({"clients": clients, "findings": findings}))?;
    } else {
        show(&files, &profiles, &known, &findings)?;
    }
    Ok(if is_bad { Exit::Refused } else { Exit::Done })
}

/// The revisions of a started server, in words.
struct Revisions<'f> {
    file: &'f Path,
    server: &'f str,
    words: String,
}

/// Returns the revisions of this server in words, if it was started.
fn revisions_of<'s>(
    known: &'s [Revisions<'_>],
    file: &FoundFile,
    server: &ServerEntry,
) -> Option<&'s str> {
    let mut all = known.iter();
    let found = all.find(|one| one.file == file.path && one.server == server.name())?;
    Some(&found.words)
}

/// Returns `true` if a file of the user's own has a server of this name.
fn is_own(files: &[FoundFile], name: &str) -> bool {
    let mut own = files.iter().filter(|file| !file.is_project);
    own.any(|file| {
        let document = file.document.as_ref().ok();
        document.is_some_and(|document| document.servers().iter().any(|one| one.name() == name))
    })
}

/// Starts the selected servers, one after the other, until a signal stops the process.
async fn start_all<'f>(
    files: &'f [FoundFile],
    selection: &Selection,
    known: &mut Vec<Revisions<'f>>,
    findings: &mut Vec<DoctorFinding>,
) -> Result<(), Failure> {
    let stop = stop::listen()?;
    for file in files {
        let Ok(document) = &file.document else {
            continue;
        };
        for server in document.servers() {
            if !selection.servers.is_empty() && !selection.names(server.name()) {
                continue;
            }
            let naming = match selection.names(server.name()) {
                false => Naming::Unnamed,
                true if file.is_project && is_own(files, server.name()) => Naming::Ambiguous,
                true => Naming::Named,
            };
            if let Some(finding) = left_out(file, document, server, naming) {
                findings.push(finding);
                continue;
            }
            output::say(format_args!(
                "starting {} of {} ..",
                harmless(server.name()),
                file.client.name()
            ));
            let started = start(file, document, server, &stop).await;
            if stop.is_cancelled() {
                return Err(Failure::interrupted(
                    "stopped; the servers were told to end",
                ));
            }
            let Some(StartedServer { revisions, finding }) = started else {
                continue;
            };
            findings.extend(finding);
            known.extend(revisions.map(|words| Revisions {
                file: &file.path,
                server: server.name(),
                words,
            }));
        }
    }
    Ok(())
}

/// Adds the findings of one file.
async fn in_file(
    file: &FoundFile,
    selection: &Selection,
    state: &StateFolder,
    findings: &mut Vec<DoctorFinding>,
) {
    use Level::{Problem, Warning};
    let client = file.client.id();
    let document = match &file.document {
        Ok(document) => document,
        Err(why) => {
            let says = format!("the file cannot be read: {why}");
            findings.push(
                DoctorFinding::new(
                    "unreadable-file",
                    Problem,
                    says,
                    "correct the file, then `mcp-elicit doctor`",
                )
                .of(file, None),
            );
            return;
        }
    };
    for server in document.servers() {
        if !selection.servers.is_empty() && !selection.names(server.name()) {
            continue;
        }
        let mut add = |code, level, says: String, next: String| {
            findings.push(DoctorFinding::new(code, level, says, next).of(file, Some(server)));
        };
        let setup = |flags: &str| setup_command(client, server.name(), flags);
        let started = match server.state() {
            SetupState::Program { command } => command.first(),
            SetupState::Wrapped { args, .. } => behind(args).first(),
            SetupState::Url { .. } | SetupState::Unsupported { .. } => None,
        };
        if let Some(program) = started.filter(|program| is_missing(program)) {
            add(
                "server-missing",
                Problem,
                format!("the server's program {program} is not there"),
                format!("install it: {program}"),
            );
        }
        match server.state() {
            SetupState::Program { .. } | SetupState::Url { .. } => {
                let says = if server.is_doubtful_gateway() {
                    "its command names a gateway, but a folder or a setting of the project can put another program there: name \
                     it by its whole path"
                } else {
                    "it is not behind the gateway: its questions reach a person only if the client shows them"
                };
                add("not-wrapped", Problem, says.to_owned(), setup(""));
            }
            SetupState::Unsupported { why } => {
                let says = format!("it cannot be behind the gateway: {why}");
                add("cannot-wrap", Warning, says, setup("--dry-run"));
            }
            SetupState::Wrapped {
                launcher,
                program,
                args,
            } => {
                if let Some(variable) = document.foreign_code(server) {
                    let (says, next) = foreign_code_words(&variable);
                    add("foreign-code", Problem, says, next);
                }
                // A launcher finds, or downloads, what it starts.
                let program = launcher.first().unwrap_or(program);
                let again = format!("{} && {}", setup("--undo"), setup(""));
                if is_missing(program) {
                    // A file of a project names no path of one machine.
                    let next = if file.is_project && !Path::new(program).is_absolute() {
                        "put the folder of mcp-elicit on the PATH".to_owned()
                    } else {
                        again.clone()
                    };
                    add(
                        "program-missing",
                        Problem,
                        format!("the gateway's program {program} is not there"),
                        next,
                    );
                }
                if file.is_project && Path::new(program).is_absolute() {
                    add(
                        "shared-path",
                        Warning,
                        format!("a file of a project names {program}, a path of this machine"),
                        again.clone(),
                    );
                }
                if let [command, rest @ ..] = behind(args) {
                    let path = Path::new(command);
                    // In a relative folder, it may be another program.
                    let is_gateway = (path.is_absolute() || path.components().count() == 1)
                        && path.file_stem().is_some_and(|stem| stem == "mcp-elicit");
                    if is_gateway && rest.first().is_some_and(|word| word == "gateway") {
                        add(
                            "wrapped-twice",
                            Problem,
                            "a gateway is behind a gateway".to_owned(),
                            setup("--undo"),
                        );
                    }
                }
                for (option, effect) in risky_options(args, file.is_project) {
                    add(
                        "risky-option",
                        Warning,
                        format!("its gateway has `{option}`: {effect}"),
                        format!("take `{option}` from its arguments, unless you want it"),
                    );
                }
                let config = config_of(args, server.folder());
                if let Some(Err((path, why))) = config {
                    add(
                        "config-unread",
                        Warning,
                        format!("its gateway's file {path} was not looked through: {why}"),
                        format!(
                            "look for `answer-command`, `inbox`, `insecure`, `presence` in {path}"
                        ),
                    );
                } else if let Some(Ok((path, text))) = config {
                    let risky = risky_settings(&text).into_iter();
                    for setting in risky.filter(|it| file.is_project || !it.is_of_shared_file()) {
                        let (name, effect) = (setting.as_str(), effect_of(setting));
                        let (has, next) = match setting {
                            RiskySetting::NoInbox => ("has no", format!("add `{name}` to {path}")),
                            RiskySetting::AnswerCommand
                            | RiskySetting::AnswerWithClient
                            | RiskySetting::Insecure
                            | RiskySetting::AnyPresence
                            | RiskySetting::Record
                            | RiskySetting::RecordPasswordCommand
                            | RiskySetting::State => ("has", format!("take `{name}` from {path}")),
                        };
                        add(
                            "risky-option",
                            Warning,
                            format!("its gateway's file {path} {has} `{name}`: {effect}"),
                            format!("{next}, unless you want it so"),
                        );
                    }
                }
                if let Some(url) = missing_sign_in(args, state).await {
                    let next = format!(
                        "mcp-elicit gateway --upstream {} --sign-in --check",
                        shell_words::quote(&url)
                    );
                    add(
                        "sign-in-missing",
                        Problem,
                        format!("nobody has signed in at {}", without_userinfo(&url)),
                        next,
                    );
                }
            }
        }
        if let Some(limit) = document
            .short_limit(server)
            .filter(|_| !matches!(server.state(), SetupState::Unsupported { .. }))
        {
            let says = format!(
                "the client gives up a call after {} s (`{}`), before a person may have answered",
                limit.milliseconds / 1000,
                limit.member
            );
            add("short-time-limit", Warning, says, setup("--time-limits"));
        }
    }
}

/// Returns the command that sets up this server, to be copied into a shell.
fn setup_command(client: &str, server: &str, flags: &str) -> String {
    own_command("setup", client, server, flags)
}

/// Returns a command about this server, to be copied into a shell. A name that begins as an option does is none, and one
/// that a shell would expand is in quotes.
fn own_command(command: &str, client: &str, server: &str, flags: &str) -> String {
    let name = if server.contains('!') && !server.contains('\'') {
        format!("'{server}'").into()
    } else {
        shell_words::quote(server)
    };
    let (flags, ends) = (
        if flags.is_empty() {
            String::new()
        } else {
            format!(" {flags}")
        },
        if server.starts_with('-') { " --" } else { "" },
    );
    format!("mcp-elicit {command}{flags}{ends} {client} {name}")
}

/// Returns `true` for a program that is given by a path, or searched on the PATH, and is not there. A path that the client
/// completes is not judged.
fn is_missing(program: &str) -> bool {
    let path = Path::new(program);
    if program.contains(['$', '~', '%']) || path.components().count() > 1 && !path.is_absolute() {
        return false;
    }
    if path.is_absolute() {
        return !path.is_file();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let names = [
        program.to_owned(),
        format!("{program}.exe"),
        format!("{program}.cmd"),
    ];
    !std::env::split_paths(&folders)
        .any(|folder| names.iter().any(|name| folder.join(name).is_file()))
}

/// Returns the address at which a gateway needs a sign-in that nobody has made.
async fn missing_sign_in(args: &[String], state: &StateFolder) -> Option<String> {
    let at = args.iter().position(|word| word == "--upstream")?;
    let url = args.get(at + 1)?;
    args.iter().find(|word| *word == "--sign-in")?;
    let sign_in = SignIn::new(url, SignInOptions::default(), &state.path().join("sign-in"));
    match sign_in.known().await {
        Ok(Some(_)) => None,
        Ok(None) | Err(_) => Some(url.clone()),
    }
}

/// Returns what is said of an entry with this variable or member, and the next step.
fn foreign_code_words(variable: &str) -> (String, String) {
    (
        format!(
            "its entry has `{variable}`, with which other code runs in place of the gateway or in it"
        ),
        format!("take `{variable}` from its entry"),
    )
}

/// Options of a gateway that let something else than a person answer, or others see the answers, with their effect. The
/// third part is the value that has it; any has it without one.
const RISKY: [(&str, &str, Option<&str>); 8] = [
    ("--answer-command", "a program answers, not a person", None),
    (
        "--answer-with",
        "a program answers, not a person",
        Some("command"),
    ),
    (
        "--answer-with",
        "only the client is asked, whoever answers there",
        Some("client"),
    ),
    (
        "--profiles",
        "a file decides which answers of a client are a person's",
        None,
    ),
    (
        "--doubt",
        "answers that come too fast for a person may count",
        None,
    ),
    (
        "--inbox",
        "without the inbox, no person sees what the client does not show",
        Some("off"),
    ),
    (
        "--insecure",
        "every program that reaches its address can call the server",
        None,
    ),
    (
        "--presence",
        "programs of this user may answer too",
        Some("any"),
    ),
];

/// The same for a file that others have written too.
const RISKY_IN_PROJECT: [(&str, &str, Option<&str>); 3] = [
    (
        "--record",
        "who can use that database reads the questions and acts for people",
        None,
    ),
    (
        "--record-password-command",
        "a program is run at each start",
        None,
    ),
    ("--state", "who can read that folder acts for people", None),
];

/// Returns these options among the arguments of a gateway, as they are written without other values, and the effect of
/// each.
fn risky_options(args: &[String], is_project: bool) -> Vec<(String, &'static str)> {
    let end = args.iter().position(|word| word == "--");
    let own = &args[..end.unwrap_or(args.len())];
    let found = own.iter().enumerate().filter_map(|(at, word)| {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.as_str(), own.get(at + 1).map(String::as_str)),
        };
        let has = |needed: Option<&str>| needed.is_none_or(|needed| value == Some(needed));
        let of_shared_files = RISKY_IN_PROJECT.iter().filter(|_| is_project);
        let (option, effect, needed) = RISKY
            .iter()
            .chain(of_shared_files)
            .find(|(option, _, needed)| *option == name && has(*needed))?;
        let written = match needed {
            None => (*option).to_owned(),
            Some(needed) => format!("{option} {needed}"),
        };
        Some((written, *effect))
    });
    found.collect()
}

/// The largest configuration file of a gateway that is looked into, in bytes.
const MAX_CONFIG: u64 = 4 << 20;

/// The path of a file and its text, or the reason why that is not there.
type ReadConfig = Result<(String, String), (String, String)>;

/// Returns the configuration file among the arguments of a gateway that is started in this folder; `None` if there is none.
fn config_of(args: &[String], folder: Option<&str>) -> Option<ReadConfig> {
    let end = args.iter().position(|word| word == "--");
    let own = &args[..end.unwrap_or(args.len())];
    let mut named = own.iter().enumerate().filter_map(|(at, word)| {
        if word == "--config" {
            own.get(at + 1).map(String::as_str)
        } else {
            word.strip_prefix("--config=")
        }
    });
    let path = Path::new(folder.unwrap_or_default()).join(named.next()?);
    let shown = path.display().to_string();
    let text = std::fs::metadata(&path).and_then(|about| match about.len() {
        _ if !about.is_file() => Err(io::Error::other("it is not a regular file")),
        MAX_CONFIG.. => Err(io::Error::other("it is too large")),
        _ => std::fs::read_to_string(&path),
    });
    Some(match text {
        Ok(text) => Ok((shown, text)),
        Err(error) => Err((shown, error.to_string())),
    })
}

/// Returns the effect of a setting, as of the option.
fn effect_of(setting: RiskySetting) -> &'static str {
    let option = match setting {
        RiskySetting::AnswerCommand => ("--answer-command", None),
        RiskySetting::AnswerWithClient => ("--answer-with", Some("client")),
        RiskySetting::NoInbox => ("--inbox", Some("off")),
        RiskySetting::Insecure => ("--insecure", None),
        RiskySetting::AnyPresence => ("--presence", Some("any")),
        RiskySetting::Record => ("--record", None),
        RiskySetting::RecordPasswordCommand => ("--record-password-command", None),
        RiskySetting::State => ("--state", None),
    };
    let of_option = RISKY
        .iter()
        .chain(&RISKY_IN_PROJECT)
        .find(|(name, _, value)| (*name, *value) == option);
    of_option.map_or("", |(_, effect, _)| effect)
}

/// Returns the command that a gateway with these arguments starts; empty for a server at a URL.
fn behind(args: &[String]) -> &[String] {
    let end = args.iter().position(|word| word == "--");
    end.map_or(&[], |end| &args[end + 1..])
}

/// Adds the names that stand for different servers in different files.
fn two_commands(files: &[FoundFile], findings: &mut Vec<DoctorFinding>) {
    let inner = |server: &ServerEntry| match server.state() {
        SetupState::Program { command } => command.clone(),
        SetupState::Wrapped { args, .. } => match behind(args) {
            [] => args
                .iter()
                .skip_while(|word| *word != "--upstream")
                .skip(1)
                .take(1)
                .cloned()
                .collect(),
            command => command.to_vec(),
        },
        SetupState::Url { url, .. } => vec![url.clone()],
        SetupState::Unsupported { .. } => Vec::new(),
    };
    let mut known: Vec<(&str, Vec<String>, &FoundFile)> = Vec::new();
    for file in files {
        for server in file.document.iter().flat_map(Document::servers) {
            let command = inner(server);
            if command.is_empty() {
                continue;
            }
            match known.iter().find(|(name, ..)| *name == server.name()) {
                Some((_, other, at)) if *other != command => findings.push(
                    DoctorFinding::new(
                        "two-servers",
                        Level::Warning,
                        format!(
                            "another server has this name in {}: people see one name for both",
                            at.path.display()
                        ),
                        "rename one of them in its file",
                    )
                    .of(file, Some(server)),
                ),
                Some(_) => {}
                None => known.push((server.name(), command, file)),
            }
        }
    }
}

/// Adds the findings of the state folder and of the inbox.
async fn in_state(state: &StateFolder, files: &[FoundFile], findings: &mut Vec<DoctorFinding>) {
    let servers = files
        .iter()
        .flat_map(|file| file.document.iter().flat_map(Document::servers));
    let is_used = servers
        .into_iter()
        .any(|server| matches!(server.state(), SetupState::Wrapped { .. }));
    if files.is_empty() {
        findings.push(DoctorFinding::new(
            "no-client",
            Level::Warning,
            "no configuration file of a known client was found",
            "configure a server in your client, then `mcp-elicit setup`",
        ));
    }
    #[cfg(unix)]
    if let Ok(about) = std::fs::metadata(state.path())
        && std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o077 != 0
    {
        let path = state.path().display().to_string();
        findings.push(DoctorFinding::new(
            "open-state",
            Level::Problem,
            format!("other users may read the state folder {path}"),
            format!("chmod 700 {}", shell_words::quote(&path)),
        ));
    }
    let record_address = state.record_address();
    if let Err(fault) = &record_address {
        let says = format!("no command can know where the record is: {fault}");
        findings.push(DoctorFinding::new(
            "record-unknown",
            Level::Problem,
            says,
            "correct the file, then `mcp-elicit doctor`",
        ));
    }
    if !is_used {
        return;
    }
    if !desktop_notice::is_desktop() {
        findings.push(DoctorFinding::new(
            "no-notification",
            Level::Warning,
            "there is no desktop here that could notify you of a question",
            "keep `mcp-elicit inbox watch` open, or set up mail, Slack or Teams (docs/channels.md)",
        ));
    }
    if state.served_inbox().await.is_none() {
        findings.push(DoctorFinding::new(
            "inbox-not-served",
            Level::Warning,
            "no gateway serves the inbox now: one starts when a client starts a server",
            "start a client, then `mcp-elicit inbox open`",
        ));
    } else if matches!(record_address, Ok(None))
        && state
            .sessions()
            .read()
            .is_ok_and(|table| table.live(now()).is_empty())
    {
        findings.push(DoctorFinding::new(
            "no-browser",
            Level::Warning,
            "no browser is signed in to the inbox",
            "mcp-elicit inbox open",
        ));
    }
}

/// Returns who is asked through a client, in words.
fn asked(client: &ClientFiles, profiles: &Profiles) -> String {
    let Some((_, profile, _)) = profiles.played(client.id()) else {
        return "the client's dialog if it declares one, else the inbox".to_owned();
    };
    asked_by(&profile).to_owned()
}

/// Returns who is asked when a client runs without a person, as in a script; `None` if no way is known to recognise it.
fn asked_headless(client: &ClientFiles, profiles: &Profiles) -> Option<&'static str> {
    let is_of_client = |id: &str| {
        let rest = id.strip_prefix(client.id());
        rest.is_some_and(|rest| rest.starts_with('-'))
    };
    let mut ids = profiles.entries().iter().filter_map(|entry| entry.id());
    let id = ids.find(|id| is_of_client(id))?;
    let (_, profile, _) = profiles.played(id)?;
    (profile.dialog == Dialog::None).then(|| asked_by(&profile))
}

fn asked_by(profile: &Profile) -> &'static str {
    match (profile.dialog, profile.form, profile.url) {
        (Dialog::None, ..) | (_, Shows::No, Shows::No) => "the inbox",
        (_, Shows::No, _) => "forms: the inbox; links: the client's dialog",
        (_, _, Shows::No) => "forms: the client's dialog; links and what it cannot show: the inbox",
        _ => "the client's dialog; what it cannot show: the inbox",
    }
}

fn file_json(file: &FoundFile, profiles: &Profiles, known: &[Revisions<'_>]) -> Value {
    let servers = file.document.iter().flat_map(Document::servers);
    let servers: Vec<Value> = servers
        .map(|server| {
            let state = match server.state() {
                SetupState::Program { .. } => "program",
                SetupState::Url { .. } => "url",
                SetupState::Wrapped { .. } => "wrapped",
                SetupState::Unsupported { .. } => "unsupported",
            };
            let mut shown = json!({"name": server.name(), "line": server.line(), "state": state, "disabled": server.is_disabled()});
            if let Some(words) = revisions_of(known, file, server) {
                shown["revisions"] = words.into();
            }
            shown
        })
        .collect();
    json!({"client": file.client.id(), "file": file.path, "project": file.is_project, "readable": file.document.is_ok(),
        "asked": asked(file.client, profiles), "askedHeadless": asked_headless(file.client, profiles), "servers": servers})
}

fn show(
    files: &[FoundFile],
    profiles: &Profiles,
    known: &[Revisions<'_>],
    findings: &[DoctorFinding],
) -> Result<(), Failure> {
    for file in files {
        print(format_args!(
            "{}  {}",
            file.client.name(),
            harmless(&file.path.to_string_lossy())
        ))?;
        for server in file.document.iter().flat_map(Document::servers) {
            let state = match server.state() {
                SetupState::Wrapped { .. } => styled(GOOD, "behind the gateway"),
                _ if is_open(server) => styled(WARNING, "not behind the gateway"),
                _ => "cannot be behind the gateway".to_owned(),
            };
            let speaks = revisions_of(known, file, server);
            let speaks = speaks.map_or_else(String::new, |words| format!(", {}", harmless(words)));
            print(format_args!(
                "  {}  {state}{speaks}",
                harmless(server.name())
            ))?;
        }
        print(format_args!("  asked: {}", asked(file.client, profiles)))?;
        if let Some(by) = asked_headless(file.client, profiles) {
            print(format_args!("  asked without a person at it: {by}"))?;
        }
    }
    for finding in findings {
        let label = match finding.level {
            Level::Problem => styled(ERROR, "problem:"),
            Level::Warning => styled(WARNING, "warning:"),
        };
        let about = About(finding).to_string();
        print(format_args!(
            "{label} {}: {}{}",
            finding.code,
            harmless(&about),
            harmless(&finding.says)
        ))?;
        print(format_args!(
            "  {} {}",
            styled(HINT, "next:"),
            harmless(&finding.next)
        ))?;
    }
    let count = |level| {
        findings
            .iter()
            .filter(|finding| finding.level == level)
            .count()
    };
    print(format_args!(
        "{} problem(s), {} warning(s)",
        count(Level::Problem),
        count(Level::Warning)
    ))
}

/// The client and the server of a finding.
struct About<'a>(&'a DoctorFinding);

impl fmt::Display for About<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.client, &self.0.server, &self.0.file) {
            (Some(client), Some(server), _) => write!(f, "{client} {server}: "),
            (Some(client), None, Some(file)) => write!(f, "{client} {}: ", file.display()),
            _ => Ok(()),
        }
    }
}

fn now() -> std::time::SystemTime {
    #[expect(clippy::disallowed_methods, reason = "this is a shell")]
    std::time::SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::setup_command;

    #[test]
    fn a_name_in_a_command_is_no_option_and_expands_to_nothing() {
        for (name, command) in [
            ("deploy", "mcp-elicit setup --undo cursor deploy"),
            ("a b", "mcp-elicit setup --undo cursor 'a b'"),
            ("--all", "mcp-elicit setup --undo -- cursor --all"),
            ("$(id)", "mcp-elicit setup --undo cursor '$(id)'"),
            ("!x", "mcp-elicit setup --undo cursor '!x'"),
        ] {
            assert_eq!(setup_command("cursor", name, "--undo"), command);
        }
        assert_eq!(
            setup_command("cursor", "-y", ""),
            "mcp-elicit setup -- cursor -y"
        );
    }
}
