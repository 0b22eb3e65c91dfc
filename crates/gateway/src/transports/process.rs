//! A server's process: its environment, its process group, and its end.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::transports::pipe_writer::PipeEnd;
use crate::transports::server_stderr::StderrReader;

/// The command that starts a server.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables set for it.
    pub environment: Vec<(String, String)>,
    /// The inherited part of the gateway's own environment.
    pub inherits: Inherits,
    /// Variables that are not inherited: a file names them for secrets of the gateway.
    pub withheld: Vec<String>,
}

/// The part of the gateway's own environment that a server gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inherits {
    /// All but the gateway's own variables: clients put the settings of their one server there.
    #[default]
    All,
    /// Like `All`, without the password of the gateway's database: whoever has it can write into the record.
    AllButDatabase,
    /// The variables that programs need to run ([`USUAL`]): settings of one of several servers do not concern another.
    Usual,
}

/// Variables that programs need to find their files, their user and their language.
pub(crate) const USUAL: [&str; 24] = [
    "APPDATA",
    "COMSPEC",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "LANG",
    "LANGUAGE",
    "LOCALAPPDATA",
    "LOGNAME",
    "PATH",
    "PATHEXT",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SHELL",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "USERNAME",
    "USERPROFILE",
];

/// Prefixes of more such variables.
const USUAL_BEGINNINGS: [&str; 2] = ["LC_", "XDG_"];

/// The prefix of the gateway's own variables.
const OWN: &str = "MCP_ELICIT_";

/// The variables that have the password of a PostgreSQL database, or the path of its file.
const DATABASE_PASSWORD: [&str; 2] = ["PGPASSWORD", "PGPASSFILE"];

impl Inherits {
    /// Returns `true` if a variable of this name is passed on.
    pub(crate) fn passes(self, name: &str) -> bool {
        let mut beginnings = USUAL_BEGINNINGS.iter();
        match self {
            Self::All => !name.starts_with(OWN),
            Self::AllButDatabase => Self::All.passes(name) && !DATABASE_PASSWORD.contains(&name),
            Self::Usual => USUAL.contains(&name) || beginnings.any(|known| name.starts_with(known)),
        }
    }
}

impl Program {
    /// Creates a program with arguments from the words of a command; `None` if there is no word.
    pub fn from_words<W: Into<OsString>>(words: impl IntoIterator<Item = W>) -> Option<Self> {
        let mut words = words.into_iter().map(Into::into);
        Some(Self {
            program: words.next()?,
            arguments: words.collect(),
            environment: Vec::new(),
            inherits: Inherits::All,
            withheld: Vec::new(),
        })
    }

    /// Returns the command that starts it, with its environment.
    pub(crate) fn command(&self) -> Command {
        let program = &self.program;
        // On Windows, `npx` is the script `npx.cmd`, which is started only by its whole name.
        #[cfg(windows)]
        let program = &which::which(program).map_or_else(|_| program.clone(), OsString::from);
        let mut command = Command::new(program);
        command.args(&self.arguments).env_clear();
        command.envs(self.variables());
        command
    }

    /// Returns its whole environment.
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        // A name that is not text is not one of ours, and cannot be listed in a file.
        let passes = |name: &OsString| match name.to_str() {
            Some(name) => {
                self.inherits.passes(name) && !self.withheld.iter().any(|own| own == name)
            }
            None => self.inherits != Inherits::Usual,
        };
        let inherited = std::env::vars_os().filter(|(name, _)| passes(name));
        let set = self.environment.iter();
        let set = set.map(|(name, value)| (name.into(), value.into()));
        inherited.chain(set).collect()
    }
}

/// The time that a server has to exit after the end of its input, and again after SIGTERM.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// The time that the rest of an ended server's stderr is waited for.
const REST_OF_STDERR: Duration = Duration::from_millis(200);

/// The running servers, by the ids of their processes, which are those of their groups.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn running() -> MutexGuard<'static, BTreeSet<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of running servers.
pub(crate) fn running_servers() -> usize {
    running().len()
}

/// Kills every remaining server and its descendants at once, because this process is about to end.
pub fn kill_servers() {
    // Under the lock, so that no id is removed and reused during the loop.
    for id in running().iter() {
        signal_group(*id, ProcessSignal::Kill);
    }
}

/// A running server, the leader of its own process group.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// The reader of its stderr, once it runs.
    stderr: Option<StderrReader>,
}

/// The input of a server. If the system supports it, a write does not wait for the server to read.
#[derive(Debug)]
pub(crate) struct ServerInput(ChildStdin);

impl ServerInput {
    fn new(stdin: ChildStdin) -> io::Result<Self> {
        // Of this end alone: the server's end of the pipe keeps its mode.
        #[cfg(unix)]
        rustix::io::ioctl_fionbio(&stdin, true)?;
        Ok(Self(stdin))
    }
}

impl io::Write for ServerInput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl PipeEnd for ServerInput {
    #[cfg(unix)]
    fn wait(&self, at_most: Duration) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let at_most = Timespec::try_from(at_most).ok();
        let mut end = [PollFd::new(&self.0, PollFlags::OUT)];
        // A failure shows in the next write.
        let _ = poll(&mut end, at_most.as_ref());
    }

    fn may_wait(&self) -> bool {
        cfg!(not(unix))
    }
}

impl Process {
    /// Starts the program of the server of this name, whose stderr goes to the log.
    pub(crate) fn start(
        program: &Program,
        server: &str,
    ) -> io::Result<(Self, ServerInput, ChildStdout)> {
        let mut command = program.command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = Self::spawn(command)?;
        let stderr = process.child.stderr.take().ok_or_else(gone)?;
        process.stderr = Some(StderrReader::start(stderr, server)?);
        let stdin = process.child.stdin.take().ok_or_else(gone)?;
        let stdout = process.child.stdout.take().ok_or_else(gone)?;
        Ok((process, ServerInput::new(stdin)?, stdout))
    }

    /// Starts a program whose stderr is dropped.
    pub(crate) fn start_silent(program: &Program) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let mut command = program.command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = Self::spawn(command)?;
        let stdin = process.child.stdin.take().ok_or_else(gone)?;
        let stdout = process.child.stdout.take().ok_or_else(gone)?;
        Ok((process, stdin, stdout))
    }

    fn spawn(mut command: Command) -> io::Result<Self> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        // Under the lock, so that a server started while all are killed is one of them.
        let mut running = running();
        let child = command.spawn()?;
        running.insert(child.id());
        Ok(Self {
            child,
            stderr: None,
        })
    }

    /// Waits this long for a server whose input has ended; then sends SIGTERM, then kills it and its descendants. A
    /// server whose input could not be ended (`None`) gets SIGTERM at once.
    pub(crate) fn end(mut self, grace: Option<Duration>) -> io::Result<ExitStatus> {
        let by_itself = match grace {
            Some(grace) => self.ended_within(grace)?,
            None => None,
        };
        let status = match by_itself {
            Some(status) => Some(status),
            None if self.ask_to_end() => self.ended_within(GRACE)?,
            None => None,
        };
        self.kill_all(status)
    }

    /// Kills the server and its descendants at once.
    pub(crate) fn kill(mut self) -> io::Result<ExitStatus> {
        self.kill_all(None)
    }

    /// Kills the rest of the group, and reaps the server.
    fn kill_all(&mut self, status: Option<ExitStatus>) -> io::Result<ExitStatus> {
        // A server may leave helpers, which the group still includes.
        self.signal(ProcessSignal::Kill);
        running().remove(&self.child.id());
        let status = if let Some(status) = status {
            status
        } else {
            self.child.kill()?;
            self.child.wait()?
        };
        if let Some(stderr) = &self.stderr {
            stderr.wait(REST_OF_STDERR);
        }
        Ok(status)
    }

    /// Waits this long for the process to exit. `None` if it goes on.
    pub(crate) fn status_within(&mut self, grace: Duration) -> Option<ExitStatus> {
        self.ended_within(grace).ok().flatten()
    }

    /// Returns the last lines of its stderr, oldest first.
    pub(crate) fn last_stderr(&self) -> Vec<String> {
        let Some(stderr) = &self.stderr else {
            return Vec::new();
        };
        stderr.wait(REST_OF_STDERR);
        stderr.last_lines()
    }

    fn ended_within(&mut self, grace: Duration) -> io::Result<Option<ExitStatus>> {
        let step = Duration::from_millis(10);
        let mut waited = Duration::ZERO;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if waited >= grace {
                return Ok(None);
            }
            thread::sleep(step);
            waited += step;
        }
    }

    fn ask_to_end(&self) -> bool {
        self.signal(ProcessSignal::Terminate)
    }

    fn signal(&self, signal: ProcessSignal) -> bool {
        signal_group(self.child.id(), signal)
    }
}

fn gone() -> io::Error {
    io::Error::other("the child has no pipes")
}

/// Kills a server that was not ended.
impl Drop for Process {
    fn drop(&mut self) {
        if running().contains(&self.child.id()) {
            // No one is left to report an error to.
            let _ = self.kill_all(None);
        }
    }
}

/// Signals a group; returns `false` if that is impossible.
#[cfg(unix)]
fn signal_group(id: u32, signal: ProcessSignal) -> bool {
    use rustix::process::{Pid, Signal as Number, kill_process_group};
    let group = i32::try_from(id).ok().and_then(Pid::from_raw);
    let number = match signal {
        ProcessSignal::Terminate => Number::TERM,
        ProcessSignal::Kill => Number::KILL,
    };
    group.is_some_and(|group| kill_process_group(group, number).is_ok())
}

#[cfg(not(unix))]
fn signal_group(_id: u32, _signal: ProcessSignal) -> bool {
    false
}

#[derive(Clone, Copy)]
enum ProcessSignal {
    Terminate,
    Kill,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_several_gets_what_programs_need() {
        for name in ["PATH", "HOME", "LC_ALL"] {
            assert!(Inherits::Usual.passes(name), "{name}");
        }
        for name in ["TOKEN_OF_B", "MCP_ELICIT_LOG", "AWS_SECRET_ACCESS_KEY"] {
            assert!(!Inherits::Usual.passes(name), "{name}");
        }
        assert!(Inherits::All.passes("TOKEN_OF_B"));
        assert!(!Inherits::All.passes("MCP_ELICIT_LOG"));
        assert!(Inherits::All.passes("PGPASSWORD"));
        let other = Inherits::AllButDatabase;
        assert!(other.passes("TOKEN_OF_B") && !other.passes("MCP_ELICIT_LOG"));
        assert!(!other.passes("PGPASSWORD") && !other.passes("PGPASSFILE"));
        let has_path = |program: &Program| {
            let all = program.variables();
            all.iter().any(|(name, _)| name == "PATH")
        };
        let mut program = Program::from_words(["answer"]).unwrap();
        assert!(has_path(&program));
        program.withheld = vec!["PATH".to_owned()];
        assert!(!has_path(&program));
    }

    #[cfg(unix)]
    #[test]
    fn a_server_is_asked_to_end_before_it_is_ended_and_leaves_nobody() {
        use std::io::{BufRead as _, BufReader, Read as _};
        // The script ignores the end of its input, and prints a line on SIGTERM; its helper ignores SIGTERM.
        let script = "trap 'echo asked; exit 7' TERM; (trap '' TERM; while :; do sleep 1; done) & echo helper $!; \
                      while :; do sleep 0.1; done";
        let program = Program::from_words(["sh", "-c", script]).unwrap();
        let (process, stdin, stdout) = Process::start(&program, "s").unwrap();
        let mut said = BufReader::new(stdout);
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.starts_with("helper "), "{line}");
        drop(stdin);
        let status = process.end(Some(GRACE)).unwrap();
        assert_eq!(status.code(), Some(7));
        // The helper holds the pipe: it ends with the last process of the group.
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "asked\n");
    }
}
