//! A program that is ready to start: run to its end with a time limit, or kept running until dropped.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// The time after which a program counts as hanging. The start of python on a busy machine takes several seconds.
const LIMIT: Duration = Duration::from_secs(2 * 60);

/// A command line with its environment.
#[derive(Clone, Debug)]
pub struct PeerProgram {
    argv: Vec<String>,
    env: Vec<(String, String)>,
}

impl PeerProgram {
    /// Creates a command line for the program with this path or name, found as the system finds it.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            argv: vec![program.into()],
            env: Vec::new(),
        }
    }

    /// Appends arguments.
    #[must_use]
    pub fn with<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.argv.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Returns the program and its arguments, for use after the `--` of another command line.
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// Returns a [`Command`] for tests that need more than [`run`](Self::run) and [`start`](Self::start).
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).envs(self.env.iter().cloned());
        command
    }

    /// Runs the program to its end with nothing on stdin.
    ///
    /// # Panics
    ///
    /// If it cannot be started, or does not end in two minutes. The message contains its output.
    pub fn run(&self) -> Finished {
        self.run_with("")
    }

    /// Runs the program to its end with this text on stdin.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn run_with(&self, stdin: &str) -> Finished {
        let mut running = self.start();
        if let Some(mut pipe) = running.child.stdin.take() {
            // A program that does not read its stdin may have closed it already.
            let _ = pipe.write_all(stdin.as_bytes());
        }
        let stdout = collect(running.child.stdout.take());
        let stderr = collect(running.child.stderr.take());
        let out = stdout.recv_timeout(LIMIT);
        if out.is_err() {
            let _ = running.child.kill();
        }
        let err = stderr.recv_timeout(LIMIT).unwrap_or_default();
        let out = out.unwrap_or_else(|_| panic!("{:?} does not end\n{err}", self.argv));
        let status = running
            .child
            .wait()
            .expect("a started program can be waited for");
        Finished {
            status,
            stdout: out,
            stderr: err,
        }
    }

    /// Starts the program with all three pipes. It is killed when the result is dropped.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start(&self) -> RunningPeer {
        let mut command = self.command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {:?}: {error}", self.argv));
        RunningPeer { child }
    }

    /// Starts one of the test servers as `... http 0` and waits for its line `{"listening": URL}`.
    ///
    /// # Panics
    ///
    /// If it ends before it reports its URL.
    pub fn listen(&self) -> Listening {
        let program = self.clone().with(["http", "0"]);
        let mut running = program.start();
        let mut lines = BufReader::new(running.child.stdout.take().expect("stdout is piped"));
        let stderr = collect(running.child.stderr.take());
        let mut line = String::new();
        let read = lines.read_line(&mut line);
        let url = serde_json::from_str::<Value>(&line)
            .ok()
            .and_then(|said| said["listening"].as_str().map(str::to_owned));
        let Some(url) = url else {
            let _ = running.child.kill();
            let said = stderr.recv_timeout(LIMIT).unwrap_or_default();
            panic!(
                "{:?} says {line:?} ({read:?}), not where it listens\n{said}",
                program.argv
            )
        };
        drop(collect(Some(lines)));
        Listening { running, url }
    }

    /// Starts a server that listens on a given port, and waits until the port accepts connections.
    ///
    /// # Panics
    ///
    /// If nothing listens there within two minutes.
    pub fn listen_on(&self, port: u16, url: String) -> Listening {
        let mut running = self.start();
        drop(collect(running.child.stdout.take()));
        drop(collect(running.child.stderr.take()));
        wait_for_port(port);
        Listening { running, url }
    }
}

/// The output and the exit status of a program.
#[derive(Debug)]
pub struct Finished {
    /// The exit status.
    pub status: ExitStatus,
    /// All of its stdout.
    pub stdout: String,
    /// All of its stderr.
    pub stderr: String,
}

impl Finished {
    /// Parses every line of stdout as JSON.
    ///
    /// # Panics
    ///
    /// If a line is not JSON. The message contains stderr.
    pub fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{line:?} is not JSON: {error}\n{}", self.stderr))
        };
        self.stdout.lines().map(parse).collect()
    }

    /// Parses the last line of stdout as JSON: the report of the scripted clients.
    ///
    /// # Panics
    ///
    /// If there is no line, or it is not JSON. The message contains stderr.
    pub fn last_json_line(&self) -> Value {
        let last = self.stdout.lines().last();
        let last = last
            .unwrap_or_else(|| panic!("no report on stdout ({})\n{}", self.status, self.stderr));
        serde_json::from_str(last)
            .unwrap_or_else(|error| panic!("{last:?} is not JSON: {error}\n{}", self.stderr))
    }
}

/// A started program, killed when dropped.
#[derive(Debug)]
pub struct RunningPeer {
    /// The process, with its pipes.
    pub child: Child,
}

impl Drop for RunningPeer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that listens, killed when dropped.
#[derive(Debug)]
pub struct Listening {
    /// The process. Its output is read continuously, so that it never blocks.
    pub running: RunningPeer,
    url: String,
}

impl Listening {
    /// Returns the URL for clients.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Returns a loopback port that was free a moment ago, for programs that cannot choose one themselves.
///
/// # Panics
///
/// If the system has no free port.
pub fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the system has a free port");
        let address = listener.local_addr();
        let port = address.expect("a bound socket has an address").port();
        // Two tests of one process must not start a server on the same port.
        let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        if given.insert(port) {
            return port;
        }
    }
}

/// Waits until this loopback port accepts connections.
///
/// # Panics
///
/// If it does not within two minutes.
pub fn wait_for_port(port: u16) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let pause = Duration::from_millis(25);
    for _ in 0..LIMIT.as_millis() / pause.as_millis() {
        // Where nothing listens, the system may give the connection the same port, so that it connects to itself.
        let connected = TcpStream::connect_timeout(&address, pause);
        if connected.is_ok_and(|one| one.local_addr().is_ok_and(|own| own != address)) {
            return;
        }
        thread::sleep(pause);
    }
    panic!("nothing listens on {address}");
}

/// Reads a pipe to its end on its own thread, so that no pipe fills up while another is read.
fn collect(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (done, text) = mpsc::channel();
    if let Some(mut pipe) = pipe {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            let _ = done.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    text
}
