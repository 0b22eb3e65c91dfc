//! `--start`: each server, started as the gateway starts it, with the check that a gateway makes of its servers.

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use mcp_elicit_setup::{Document, ServerEntry, SetupState};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::{DoctorFinding, Level, foreign_code_words, own_command};
use crate::commands::setup::FoundFile;
use crate::server_eras::CheckReport;

/// The longest time for one server, whose launcher may have to download it.
const WITHIN: Duration = Duration::from_secs(200);

/// The time that a check has to end, with its server, before it is killed.
const END_WITHIN: Duration = Duration::from_secs(5);

/// The longest part of what a check says, in characters.
const MAX_TEXT: usize = 400;

/// The most bytes of what a check says that are read.
const MAX_READ: u64 = 64 << 10;

/// A server that was started.
pub(super) struct StartedServer {
    /// The revisions that it speaks, and those in which it was seen to ask, in words.
    pub(super) revisions: Option<String>,
    pub(super) finding: Option<DoctorFinding>,
}

/// The way in which the user has named a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// It was not named.
    Unnamed,
    /// Its name is that of no other.
    Named,
    /// One of the user's own files has a server of that name, too.
    Ambiguous,
}

/// Returns the finding of a server that is not started: its file, or its environment, belongs to a project, which nobody may
/// have looked at yet, and chooses what runs.
pub(super) fn left_out(
    file: &FoundFile,
    document: &Document,
    server: &ServerEntry,
    naming: Naming,
) -> Option<DoctorFinding> {
    let words = command(server).filter(|_| !server.is_disabled())?;
    let finding = |says: String, next: String| {
        let finding = DoctorFinding::new("not-started", Level::Warning, says, next);
        Some(finding.of(file, Some(server)))
    };
    if naming == Naming::Ambiguous {
        return finding(
            "a server of your own has this name too, so that the project's was not started"
                .to_owned(),
            format!(
                "give it another name in {}, and name it then",
                file.path.display()
            ),
        );
    }
    if file.is_project && naming == Naming::Unnamed {
        return finding(
            "a file of the project chooses what runs, so that it is started only if you name it"
                .to_owned(),
            own_command("doctor", file.client.id(), server.name(), "--start"),
        );
    }
    let foreign = match server.state() {
        SetupState::Wrapped { .. } => document.foreign_code(server),
        _ => document.foreign_code_for(server, words.first()?),
    };
    let (says, next) = foreign_code_words(&foreign?);
    finding(says, next)
}

/// Starts a server, reads what it speaks, and ends it, early when the token is cancelled. Returns `None` for one that the
/// client does not use now, or that cannot be behind the gateway.
pub(super) async fn start(
    file: &FoundFile,
    document: &Document,
    server: &ServerEntry,
    stop: &CancellationToken,
) -> Option<StartedServer> {
    if server.is_disabled() {
        return None;
    }
    let finding = |code, level, says: String, next: String| {
        Some(StartedServer {
            revisions: None,
            finding: Some(DoctorFinding::new(code, level, says, next).of(file, Some(server))),
        })
    };
    let not_started = |why: &str| {
        let client = file.client.name();
        let next = format!("start {client}, and look whether it lists the tools");
        finding("not-started", Level::Warning, why.to_owned(), next)
    };
    let words = match command(server) {
        Some(words) => words,
        None if matches!(server.state(), SetupState::Url { .. }) => {
            return not_started("the client has its credentials, so that it was not tried");
        }
        None => return None,
    };
    let environment = document.environment(server);
    let values = environment.iter().map(|(_, value)| value);
    if words.iter().chain(values).any(|word| is_filled_in(word)) {
        return not_started(
            "the client fills in a part of its command, so that it was not started",
        );
    }
    let [program, arguments @ ..] = words.as_slice() else {
        return None;
    };
    let by_hand = || shell_words::join(words.iter().map(String::as_str));
    let problem = |says: String, next: Option<String>| {
        let next = next.unwrap_or_else(by_hand);
        finding("server-fails", Level::Problem, says, next)
    };
    let folder = folder_of(file, server);
    let check = check(program, arguments, environment, folder, stop);
    let checked = tokio::time::timeout(WITHIN, check);
    match checked.await {
        Ok(Ok((status, said))) => {
            let mut reports = said
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            if status.success() {
                let eras = reports.find_map(|report| match report {
                    CheckReport::Revisions(eras) => eras.words(),
                    CheckReport::Failed { .. } => None,
                });
                return Some(StartedServer {
                    revisions: eras,
                    finding: None,
                });
            }
            let failed = reports.find_map(|report| match report {
                CheckReport::Failed { message, next } => Some((cut(&message), next)),
                CheckReport::Revisions(_) => None,
            });
            let (why, next) =
                failed.unwrap_or_else(|| (format!("its gateway ends with {status}"), None));
            problem(why, next)
        }
        Ok(Err(error)) => problem(format!("its gateway cannot be started: {error}"), None),
        Err(_) => {
            let most = WITHIN.as_secs();
            problem(format!("it did not start within {most} s"), None)
        }
    }
}

/// Runs the check of a gateway to its end; returns its status, and the beginning of what it reports as lines of JSON. When the token is
/// cancelled, the check is told to end, and ends its server.
async fn check(
    program: &str,
    arguments: &[String],
    environment: Vec<(String, String)>,
    folder: Option<PathBuf>,
    stop: &CancellationToken,
) -> io::Result<(ExitStatus, String)> {
    let mut command = Command::new(program);
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    let mut child = command
        .args(arguments)
        .envs(environment)
        .stdin(Stdio::null())
        // Its stderr has words of the server, which are not told apart from its own there.
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut said = Vec::new();
    let stdout = child.stdout.take();
    let read = async {
        if let Some(mut stdout) = stdout {
            (&mut stdout).take(MAX_READ).read_to_end(&mut said).await?;
            // Read to its end, so that the check does not wait for a reader.
            tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await?;
        }
        io::Result::Ok(())
    };
    tokio::select! {
        read = read => read?,
        () = stop.cancelled() => {
            terminate(&mut child)?;
            let ended = tokio::time::timeout(END_WITHIN, child.wait()).await;
            return Ok((ended.map_err(io::Error::other)??, String::new()));
        }
    }
    let status = child.wait().await?;
    Ok((status, String::from_utf8_lossy(&said).into_owned()))
}

/// Returns the folder in which a server is started; `None` for the current one, in which the servers of a project's file
/// run. Those of a person's own files do not: the folder would choose what they run, as with `node_modules`, `.npmrc` and
/// modules of Python, although nobody has looked at it.
fn folder_of(file: &FoundFile, server: &ServerEntry) -> Option<PathBuf> {
    if file.is_project {
        return None;
    }
    let named = server.folder().map(PathBuf::from);
    let named = named.filter(|folder| folder.is_absolute());
    named.or_else(std::env::home_dir)
}

/// Tells a process to end.
fn terminate(child: &mut Child) -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process};
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        match id.and_then(Pid::from_raw) {
            Some(id) => kill_process(id, Signal::TERM)?,
            None => child.start_kill()?,
        }
        Ok(())
    }
    #[cfg(not(unix))]
    child.start_kill()
}

/// Returns the command that checks this server; `None` if it cannot be checked here.
fn command(server: &ServerEntry) -> Option<Vec<String>> {
    let own = || {
        let path = std::env::current_exe().ok()?;
        Some(path.to_string_lossy().into_owned())
    };
    let check = |program: Vec<String>, words: &[String]| {
        let middle = ["gateway", "--check", "--json"].map(str::to_owned);
        [&program, &middle[..], words].concat()
    };
    let named = |option: &str| {
        let words = ["--name", server.name(), option];
        words.map(str::to_owned).to_vec()
    };
    match server.state() {
        SetupState::Wrapped {
            launcher,
            program,
            args,
        } => Some(check(
            [&launcher[..], std::slice::from_ref(program)].concat(),
            args.get(1..)?,
        )),
        SetupState::Program { command } => {
            Some(check(vec![own()?], &[&named("--")[..], command].concat()))
        }
        // The credentials stay in the client's file.
        SetupState::Url {
            url,
            has_credentials: false,
        } => {
            let url = std::slice::from_ref(url);
            Some(check(
                vec![own()?],
                &[&named("--upstream")[..], url].concat(),
            ))
        }
        SetupState::Url { .. } | SetupState::Unsupported { .. } => None,
    }
}

/// Returns `true` for a text with a variable that a client replaces.
fn is_filled_in(word: &str) -> bool {
    word.contains("${") || word.contains("{{")
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}
