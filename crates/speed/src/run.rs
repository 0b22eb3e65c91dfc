//! One work: started, called, measured and stopped.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::line::PipedClient;
use crate::lossless;
use crate::memory::{self, TreeMemory};
use crate::say::RepeatedCall;
use crate::web::Web;
use crate::works::{Ends, SideTransport, Work};

/// The number of calls before anything is timed.
const WARM: usize = 30;
/// The time that one step of a measurement may take before the work is abandoned.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// The longest time for which calls made one at a time are timed.
const BUDGET: Duration = Duration::from_secs(2);
/// The time for which simultaneous calls are counted.
const COUNTED: Duration = Duration::from_secs(1);

/// The kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallSize {
    Small,
    Middle,
    Question,
    Large,
}

impl CallSize {
    /// Every load, in order of measurement.
    pub(crate) const ALL: [Self; 4] = [Self::Small, Self::Middle, Self::Question, Self::Large];

    fn job(self) -> RepeatedCall {
        match self {
            Self::Small => RepeatedCall::echo(100),
            Self::Middle => RepeatedCall::echo(10_000),
            Self::Large => RepeatedCall::echo(1_000_000),
            Self::Question => RepeatedCall::ask(),
        }
    }

    /// Returns the number of calls made one at a time, and the number of simultaneous calls.
    fn counts(self) -> (usize, u64) {
        match self {
            Self::Small | Self::Middle | Self::Question => (1_000, 64),
            Self::Large => (100, 8),
        }
    }
}

impl fmt::Display for CallSize {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Small => "100 B",
            Self::Middle => "10 kB",
            Self::Large => "1 MB",
            Self::Question => "question",
        })
    }
}

/// The figures of one load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadFigures {
    /// The median duration of a call, in microseconds, one at a time.
    pub(crate) median: f64,
    /// The duration that one call in a hundred exceeds, in microseconds.
    pub(crate) p99: f64,
    /// The calls per second, with many at once.
    pub(crate) rate: f64,
}

/// The figures of one run of one work.
#[derive(Debug, Default)]
pub(crate) struct RunFigures {
    /// The milliseconds from the work's start to the response to the first request, with the server's start.
    pub(crate) start: Option<f64>,
    /// The resident memory after that response.
    pub(crate) idle: Option<TreeMemory>,
    /// The resident memory after all loads.
    pub(crate) after: Option<TreeMemory>,
    pub(crate) loads: BTreeMap<CallSize, Result<LoadFigures, String>>,
    /// The values that did not arrive unchanged.
    pub(crate) lost: Option<Result<Vec<&'static str>, String>>,
}

/// The current time.
#[expect(
    clippy::disallowed_methods,
    reason = "a rig that measures time reads the clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

enum AnyClient {
    Line(PipedClient),
    Web(Web),
}

/// A running work, with the server behind it.
struct RunningWork {
    client: AnyClient,
    /// The work's own process; the client's child process if the client starts it.
    work: Option<Child>,
    server: Option<Child>,
    state: tempfile::TempDir,
    start: Duration,
}

/// Measures a work once, on each of these loads.
pub(crate) fn measure(work: &Work, loads: &[CallSize]) -> RunFigures {
    let mut figures = RunFigures::default();
    let mut running: Option<RunningWork> = None;
    for &load in loads {
        let mut one = match running.take() {
            Some(one) => one,
            None => match RunningWork::start(work) {
                Ok(one) => one,
                Err(error) => {
                    figures.loads.insert(load, Err(error.to_string()));
                    continue;
                }
            },
        };
        if figures.start.is_none() {
            figures.start = Some(one.start.as_secs_f64() * 1e3);
            figures.idle = one.memory();
        }
        let found = one.load(load);
        let failed = found.is_err();
        figures
            .loads
            .insert(load, found.map_err(|error| error.to_string()));
        figures.after = one.memory().or(figures.after);
        if failed {
            one.stop();
        } else {
            running = Some(one);
        }
    }
    if let Some(one) = running.take() {
        one.stop();
    }
    if let Ok(mut one) = RunningWork::start(work) {
        figures.lost = Some(one.mirror().map_err(|error| error.to_string()));
        one.stop();
    }
    figures
}

impl RunningWork {
    fn start(work: &Work) -> io::Result<Self> {
        let state = tempfile::tempdir()?;
        let ends = Ends::new(free_port()?, free_port()?, state.path())?;
        let server = match work.wiring.back {
            SideTransport::Http => {
                let server = spawn(&ends.server(SideTransport::Http))?;
                wait_for(&ends.upstream_host())?;
                Some(server)
            }
            SideTransport::Stdio => None,
        };
        let words = work.command(&ends);
        let begun = now();
        let (client, child) = match work.wiring.front {
            SideTransport::Stdio => {
                let words = words.unwrap_or_else(|| ends.server(SideTransport::Stdio));
                (
                    AnyClient::Line(PipedClient::start(&words, Stdio::null())?),
                    None,
                )
            }
            SideTransport::Http => {
                let (host, child) = match words {
                    Some(words) => (ends.host(), Some(spawn(&words)?)),
                    None => (ends.upstream_host(), None),
                };
                match opened_web(&host) {
                    Ok(web) => (AnyClient::Web(web), child),
                    Err(error) => {
                        child.into_iter().chain(server).for_each(stop);
                        return Err(error);
                    }
                }
            }
        };
        let mut running = Self {
            client,
            work: child,
            server,
            state,
            start: Duration::ZERO,
        };
        if let Err(error) = running.open() {
            running.stop();
            return Err(error);
        }
        running.start = begun.elapsed();
        Ok(running)
    }

    fn open(&mut self) -> io::Result<()> {
        self.guarded(|client| match client {
            AnyClient::Line(line) => line.open(),
            // The session was opened while waiting for the port.
            AnyClient::Web(_) => Ok(()),
        })
    }

    /// Returns the process to measure, between the ends.
    fn id(&self) -> Option<u32> {
        match (&self.client, &self.work) {
            (AnyClient::Line(line), _) => Some(line.child.id()),
            (AnyClient::Web(_), Some(child)) => Some(child.id()),
            (AnyClient::Web(_), None) => None,
        }
    }

    fn memory(&self) -> Option<TreeMemory> {
        self.id().map(memory::below)
    }

    /// Runs `act` with the client, and ends the work if that takes too long, so that nothing waits forever.
    fn guarded<T>(&mut self, act: impl FnOnce(&mut AnyClient) -> io::Result<T>) -> io::Result<T> {
        let id = self.id();
        let (done, waits) = mpsc::channel::<()>();
        let guard = thread::spawn(move || {
            let late = waits.recv_timeout(TIME_LIMIT) == Err(mpsc::RecvTimeoutError::Timeout);
            if let Some(id) = id.filter(|_| late) {
                end_group(id);
            }
        });
        let result = act(&mut self.client);
        drop(done);
        let _joined = guard.join();
        result
    }

    fn load(&mut self, load: CallSize) -> io::Result<LoadFigures> {
        let job = load.job();
        let (most, window) = load.counts();
        self.guarded(|client| client.one_by_one(&job, WARM, BUDGET).map(|_| ()))?;
        let mut took = self.guarded(|client| client.one_by_one(&job, most, BUDGET))?;
        let rate = self.guarded(|client| client.at_once(&job, window, COUNTED))?;
        took.sort();
        let at = |part: usize| {
            let place = (took.len() * part / 100).min(took.len().saturating_sub(1));
            took.get(place)
                .map_or(f64::NAN, |one| one.as_secs_f64() * 1e6)
        };
        Ok(LoadFigures {
            median: at(50),
            p99: at(99),
            rate,
        })
    }

    fn mirror(&mut self) -> io::Result<Vec<&'static str>> {
        let response = self.guarded(|client| match client {
            AnyClient::Line(line) => line.say(lossless::CALL, lossless::ID),
            AnyClient::Web(web) => web.say(lossless::CALL),
        })?;
        lossless::lost(&response)
    }

    fn stop(self) {
        match self.client {
            AnyClient::Line(line) => stop(line.child),
            AnyClient::Web(_) => {}
        }
        self.work.into_iter().chain(self.server).for_each(stop);
        let _cleared_by_the_system = self.state.close();
    }
}

impl AnyClient {
    fn one_by_one(
        &mut self,
        job: &RepeatedCall,
        most: usize,
        budget: Duration,
    ) -> io::Result<Vec<Duration>> {
        match self {
            Self::Line(line) => line.one_by_one(job, most, budget),
            Self::Web(web) => web.one_by_one(job, most, budget),
        }
    }

    fn at_once(&mut self, job: &RepeatedCall, window: u64, time: Duration) -> io::Result<f64> {
        match self {
            Self::Line(line) => line.at_once(job, window, time),
            Self::Web(web) => web.at_once(job, window, time),
        }
    }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Starts a program in a process group of its own.
fn spawn(words: &[String]) -> io::Result<Child> {
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| io::Error::other("no program"))?;
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

fn wait_for(host: &str) -> io::Result<()> {
    let begun = now();
    while std::net::TcpStream::connect(host).is_err() {
        if begun.elapsed() > TIME_LIMIT {
            return Err(io::Error::other("it never listened"));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Opens a client's session, as soon as the work accepts it.
fn opened_web(host: &str) -> io::Result<Web> {
    let begun = now();
    loop {
        let opened = Web::connect(host, "/mcp").and_then(|mut web| web.open().map(|()| web));
        match opened {
            Ok(web) => return Ok(web),
            Err(error) if begun.elapsed() > TIME_LIMIT => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn end_group(id: u32) {
    // The standard library ends processes, not groups.
    let _gone_already = Command::new("kill")
        .args(["-KILL", "--", &format!("-{id}")])
        .stderr(Stdio::null())
        .status();
}

/// Ends a process and all its descendants.
pub(crate) fn stop(mut child: Child) {
    end_group(child.id());
    let _gone_already = child.wait();
}
