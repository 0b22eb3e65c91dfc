//! A client on stdin and stdout.

use std::io::{self, BufReader};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mcp_elicit_record::clock;

use crate::callers::{ProvenCaller, SessionCaller};
use crate::config::ConfiguredServer;
use crate::frame::FrameBytes;
use crate::runtime::current_file::ServedServer;
use crate::runtime::{Runtime, StartError};
use crate::session::child_pool::{self, Pool, SameCallerSession, StartedSession};
use crate::session::{ClientTransport, Driver, ServerTransport, Session};
use crate::stop_signal::{self, StopSignal};
use crate::transports::child::{ChildTransport, read_frames};
use crate::transports::child_limit::ChildAccount;
use crate::transports::http_upstream::{HeaderSource, HttpTarget, HttpUpstream};
use crate::transports::pipe_writer::{PipeEnd, PipeWriter};
use crate::transports::process::{GRACE, Program, kill_servers};
use crate::transports::unfinished::UnfinishedMessage;
use mcp_elicit_relay::{RelaySettings, StreamId};

/// The bytes read from stdin at once.
const READ: usize = 64 * 1024;
/// The bytes that may wait for a server to read, before the client is read no further.
const AHEAD: usize = 1024 * 1024;
/// The intervals of checks on a server that does not read: the first, which doubles, and the longest.
const STEPS: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(10));
/// The time that the only client's thread waits for a server to read, which is cheaper than using another thread.
const ROOM_WAIT: Duration = Duration::from_millis(10);
/// The time for telling clients that the gateway stops.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The client at the other end of stdin and stdout.
pub(crate) struct StdioClient {
    pipe: PipeWriter,
}

impl StdioClient {
    /// Takes stdout. Other output there would break the protocol.
    pub(crate) fn open() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            pipe: PipeWriter::new(stdout()?),
        }))
    }

    /// Reads the client's frames into the session until stdin ends.
    pub(crate) fn read(pool: &Pool, max_frame: usize) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(READ, stdin()?);
        let mut goes_on = true;
        let unfinished = UnfinishedMessage::of("client", max_frame);
        read_frames(&mut reader, unfinished, |frame| {
            if !goes_on {
                return;
            }
            if let Err(fault) = pool.handle_client(StreamId::SESSION, FrameBytes::Lent(frame)) {
                tracing::error!(%fault, "a message could not be passed on");
            }
            goes_on = has_room(pool);
        })
    }
}

impl ClientTransport for StdioClient {
    fn send(&self, _stream: StreamId, frame: FrameBytes<'_>, _last: bool) {
        self.pipe.push(frame.bytes(), None);
    }

    fn flush(&self) {
        self.pipe.flush_waiting();
    }

    fn may_wait(&self) -> bool {
        true
    }
}

/// Waits until the servers have read most of their input; returns `false` if they do not, and the client has ended.
fn has_room(pool: &Pool) -> bool {
    let (mut unwritten, mut since) = (pool.unwritten(), None);
    let (mut step, longest) = STEPS;
    while unwritten >= AHEAD {
        let gone = has_hung_up();
        thread::sleep(step);
        step = longest.min(step * 2);
        let left = pool.unwritten();
        if !gone || left < unwritten {
            since = None;
        } else if clock::now().since(*since.get_or_insert_with(clock::now)) >= GRACE {
            return false;
        }
        unwritten = left;
    }
    true
}

/// Returns `true` if the other end of stdin is closed, even if data are left to read.
#[cfg(unix)]
fn has_hung_up() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = io::stdin();
    let mut end = [PollFd::new(&stdin, PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut end, Some(&at_once)).is_ok() && end[0].revents().contains(PollFlags::HUP)
}

#[cfg(not(unix))]
fn has_hung_up() -> bool {
    false
}

/// Returns stdin without the standard library's buffer.
#[cfg(unix)]
fn stdin() -> io::Result<std::fs::File> {
    use std::os::fd::AsFd as _;
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

#[cfg(not(unix))]
fn stdin() -> io::Result<io::Stdin> {
    Ok(io::stdin())
}

impl PipeEnd for std::fs::File {}

#[cfg(not(unix))]
impl PipeEnd for io::Stdout {}

/// Returns stdout without the standard library's line buffer.
#[cfg(unix)]
fn stdout() -> io::Result<Box<dyn PipeEnd>> {
    use std::os::fd::AsFd as _;
    Ok(Box::new(std::fs::File::from(
        io::stdout().as_fd().try_clone_to_owned()?,
    )))
}

#[cfg(not(unix))]
fn stdout() -> io::Result<Box<dyn PipeEnd>> {
    Ok(Box::new(io::stdout()))
}

/// Serves one client on stdin and stdout, with a program as the server, until the client ends. Must be called on a
/// thread that may block, inside a tokio runtime.
pub fn serve_program(
    runtime: &Runtime,
    server: &ConfiguredServer,
    program: &Program,
    max_frame: usize,
    stop: StopSignal,
) -> Result<(), StartError> {
    let client = StdioClient::open().map_err(fault_of(server))?;
    let definition = runtime.served(server, max_frame);
    let most = if server.share_child {
        1
    } else {
        child_pool::CHILDREN
    };
    let start = {
        let (runtime, definition, program) = (runtime.clone(), definition, program.clone());
        let client = client.clone();
        move |beside: SameCallerSession| {
            let server = &definition.config;
            let (child, stdout) = ChildTransport::start(
                program.clone(),
                &server.settings.server,
                max_frame,
                ROOM_WAIT,
                None,
            )
            .map_err(fault_of(server))?;
            let settings = RelaySettings {
                first_call: beside.first_call,
                is_pushed: beside.is_pushed,
                ..server.settings.clone()
            };
            start(
                &runtime,
                &definition,
                settings,
                &client,
                child.clone(),
                |session| child.attach(session, stdout),
            )
        }
    };
    let pool = Pool::growing(Box::new(start), most, ChildAccount::of_one_client());
    serve_client(runtime, server, &pool, max_frame, stop)
}

/// Serves one client on stdin and stdout, with a server over HTTP, until the client ends. Must be called on a thread
/// that may block, inside a tokio runtime.
pub fn serve_url(
    runtime: &Runtime,
    server: &ConfiguredServer,
    at: &HttpTarget,
    max_frame: usize,
    stop: StopSignal,
) -> Result<(), StartError> {
    let client = StdioClient::open().map_err(fault_of(server))?;
    let definition = runtime.served(server, max_frame);
    let tokio = tokio::runtime::Handle::current();
    let start = {
        let (runtime, at) = (runtime.clone(), at.clone());
        move |_: SameCallerSession| {
            let _in_runtime = tokio.enter();
            let upstream = HttpUpstream::new(&at, max_frame, HeaderSource::Gateway)?;
            let settings = RelaySettings {
                server_streams: true,
                ..definition.config.settings.clone()
            };
            start(
                &runtime,
                &definition,
                settings,
                &client,
                upstream.clone(),
                |session| {
                    upstream.attach(session);
                    Ok(())
                },
            )
        }
    };
    let pool = Pool::of_one(Box::new(start));
    pool.first()?;
    serve_client(runtime, server, &pool, max_frame, stop)
}

/// Opens a session for this client.
fn start(
    runtime: &Runtime,
    definition: &ServedServer,
    settings: RelaySettings,
    client: &Arc<StdioClient>,
    side: Arc<dyn ServerTransport>,
    attach: impl FnOnce(&Arc<Session>) -> io::Result<()>,
) -> Result<StartedSession, StartError> {
    let caller = SessionCaller::new(ProvenCaller::local());
    let who = runtime.session_context(definition, &caller, "");
    let record = runtime.record.clone();
    let (session, driver) = Session::new(settings, who, client.clone(), side, record);
    let server = &definition.config;
    attach(&session).map_err(fault_of(server))?;
    let driver = Some(drive(driver).map_err(fault_of(server))?);
    Ok(StartedSession { session, driver })
}

/// Reads the client to its end, ends the sessions, and waits until their changes are written.
fn serve_client(
    runtime: &Runtime,
    server: &ConfiguredServer,
    pool: &Arc<Pool>,
    max_frame: usize,
    stop: StopSignal,
) -> Result<(), StartError> {
    // At once, so that a server that cannot be started is reported before the client sends anything.
    pool.first()?;
    stop_on_signal(pool, runtime.clone(), stop);
    if let Err(error) = StdioClient::read(pool, max_frame) {
        tracing::warn!(server = %server.settings.server, %error, "the client's messages cannot be read any more");
    }
    pool.end();
    pool.join();
    tokio::runtime::Handle::current().block_on(runtime.close());
    Ok(())
}

/// Returns the error of a server that cannot be served.
pub(crate) fn fault_of(server: &ConfiguredServer) -> impl FnOnce(io::Error) -> StartError {
    let server = server.settings.server.clone();
    move |source| StartError::Program { server, source }
}

/// Runs the driver on a separate thread, since it may wait for the child to read.
pub(crate) fn drive(driver: Driver) -> io::Result<thread::JoinHandle<()>> {
    let tokio = tokio::runtime::Handle::current();
    thread::Builder::new()
        .name("record".to_owned())
        .spawn(move || tokio.block_on(driver.run()))
}

/// Handles the stop signal: held calls are handed back, the servers are ended, then the process ends.
fn stop_on_signal(pool: &Arc<Pool>, runtime: Runtime, signal: StopSignal) {
    let pool = Arc::downgrade(pool);
    tokio::spawn(async move {
        signal.received().await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        let told = pool.clone();
        // Waits for a client that does not read, which the rest must not.
        let told = tokio::task::spawn_blocking(move || {
            told.drain();
            told.stop();
        });
        let _client_reads_nothing = tokio::time::timeout(LAST_WORDS, told).await;
        pool.end();
        runtime.stop_asking().await;
        // A server over HTTP is told by a separate request.
        let last_words = tokio::time::sleep(LAST_WORDS);
        let joined = tokio::task::spawn_blocking(move || pool.join());
        if let ((), Err(error)) = tokio::join!(last_words, joined) {
            tracing::error!(%error, "the sessions could not be ended");
        }
        runtime.close().await;
        // The thread that reads stdin cannot be woken; all others have been notified.
        kill_servers();
        stop_signal::exit(0);
    });
}
