//! A client on stdin and stdout.

use std::io::{self, BufReader};
use std::sync::Arc;
use std::thread;

use crate::callers::{Caller, CurrentCaller};
use crate::config::Server;
use crate::frame::Frame;
use crate::runtime::{Runtime, StartError};
use crate::session::child_pool::{self, Beside, Pool, Started};
use crate::session::{ClientTransport, Driver, ServerTransport, Session};
use crate::transports::child::{ChildTransport, read_frames};
use crate::transports::http_upstream::{HeaderSource, HttpTarget, HttpUpstream};
use crate::transports::pipe_writer::PipeWriter;
use crate::transports::process::Program;
use mcp_elicit_relay::{RelaySettings, StreamId};

/// Bytes read from stdin at once.
const READ: usize = 64 * 1024;

/// The client at the other end of stdin and stdout.
pub(crate) struct StdioClient {
    pipe: PipeWriter,
}

impl StdioClient {
    /// Takes stdout. Whatever else writes there breaks the protocol.
    pub(crate) fn open() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            pipe: PipeWriter::new(stdout()?),
        }))
    }

    /// Reads the client's frames into the session until stdin ends.
    pub(crate) fn read(pool: &Pool, max_frame: usize) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(READ, stdin()?);
        read_frames(&mut reader, max_frame, |frame| {
            if let Err(fault) = pool.handle_client(StreamId::SESSION, Frame::Lent(frame)) {
                tracing::error!(%fault, "a message could not be passed on");
            }
        })
    }
}

impl ClientTransport for StdioClient {
    fn send(&self, _door: StreamId, frame: Frame<'_>, _last: bool) {
        self.pipe.push(frame.bytes(), None);
    }

    fn flush(&self) {
        self.pipe.flush();
    }

    fn may_wait(&self) -> bool {
        true
    }
}

/// Stdin past the standard library's own buffer.
#[cfg(unix)]
fn stdin() -> io::Result<std::fs::File> {
    use std::os::fd::AsFd as _;
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

#[cfg(not(unix))]
fn stdin() -> io::Result<io::Stdin> {
    Ok(io::stdin())
}

/// Stdout past the standard library's line buffer.
#[cfg(unix)]
fn stdout() -> io::Result<Box<dyn io::Write + Send>> {
    use std::os::fd::AsFd as _;
    Ok(Box::new(std::fs::File::from(
        io::stdout().as_fd().try_clone_to_owned()?,
    )))
}

#[cfg(not(unix))]
fn stdout() -> io::Result<Box<dyn io::Write + Send>> {
    Ok(Box::new(io::stdout()))
}

/// Serves one client on stdin and stdout, with a program as the server, until the client ends. Runs on a thread that
/// may wait, inside a tokio runtime.
pub fn serve_program(
    runtime: &Runtime,
    server: &Server,
    program: &Program,
    max_frame: usize,
) -> Result<(), StartError> {
    let client = StdioClient::open().map_err(fault_of(server))?;
    let most = if server.share_child {
        1
    } else {
        child_pool::CHILDREN
    };
    let start = {
        let (runtime, server, program) = (runtime.clone(), server.clone(), program.clone());
        let client = client.clone();
        move |beside: Beside| {
            let (child, stdout) = ChildTransport::start(program.clone(), max_frame, false, None)
                .map_err(fault_of(&server))?;
            let settings = RelaySettings {
                first_call: beside.first_call,
                is_pushed: beside.is_pushed,
                ..server.settings.clone()
            };
            start(
                &runtime,
                &server,
                settings,
                &client,
                child.clone(),
                |session| child.attach(session, stdout),
            )
        }
    };
    let pool = Pool::growing(Box::new(start), most, Arc::default());
    serve_client(runtime, server, &pool, max_frame)
}

/// Serves one client on stdin and stdout, with a server over HTTP, until the client ends. Runs on a thread that may
/// wait, inside a tokio runtime.
pub fn serve_url(
    runtime: &Runtime,
    server: &Server,
    at: &HttpTarget,
    max_frame: usize,
) -> Result<(), StartError> {
    let client = StdioClient::open().map_err(fault_of(server))?;
    let tokio = tokio::runtime::Handle::current();
    let start = {
        let (runtime, server, at) = (runtime.clone(), server.clone(), at.clone());
        move |_: Beside| {
            let _in_runtime = tokio.enter();
            let upstream = HttpUpstream::new(&at, max_frame, HeaderSource::Gateway)?;
            let settings = RelaySettings {
                server_streams: true,
                ..server.settings.clone()
            };
            start(
                &runtime,
                &server,
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
    serve_client(runtime, server, &pool, max_frame)
}

/// Opens a session with this side as its server.
fn start(
    runtime: &Runtime,
    server: &Server,
    settings: RelaySettings,
    client: &Arc<StdioClient>,
    side: Arc<dyn ServerTransport>,
    attach: impl FnOnce(&Arc<Session>) -> io::Result<()>,
) -> Result<Started, StartError> {
    let caller = CurrentCaller::new(Caller::local());
    let who = runtime.session_context(server, &caller);
    let record = runtime.record.clone();
    let (session, driver) = Session::new(settings, who, client.clone(), side, record);
    attach(&session).map_err(fault_of(server))?;
    let driver = Some(drive(driver).map_err(fault_of(server))?);
    Ok(Started { session, driver })
}

/// Reads the client to its end, ends the sessions, and waits until what happened in them is written.
fn serve_client(
    runtime: &Runtime,
    server: &Server,
    pool: &Arc<Pool>,
    max_frame: usize,
) -> Result<(), StartError> {
    // Here and now, so that a server that cannot be started is told before the client has said anything.
    pool.first()?;
    stop_on_signal(pool, runtime.clone());
    if let Err(error) = StdioClient::read(pool, max_frame) {
        tracing::warn!(server = %server.settings.server, %error, "the client's messages cannot be read any more");
    }
    pool.end();
    pool.join();
    tokio::runtime::Handle::current().block_on(runtime.close());
    Ok(())
}

/// Returns what is said when this server cannot be served.
pub(crate) fn fault_of(server: &Server) -> impl FnOnce(io::Error) -> StartError {
    let server = server.settings.server.clone();
    move |source| StartError::Program { server, source }
}

/// A thread of its own for the driver, since it may wait for the child to read.
pub(crate) fn drive(driver: Driver) -> io::Result<thread::JoinHandle<()>> {
    let tokio = tokio::runtime::Handle::current();
    thread::Builder::new()
        .name("record".to_owned())
        .spawn(move || tokio.block_on(driver.run()))
}

/// SIGTERM and SIGINT: what is held is handed back, then the process ends.
fn stop_on_signal(pool: &Arc<Pool>, runtime: Runtime) {
    let pool = Arc::downgrade(pool);
    tokio::spawn(async move {
        crate::stop_signal::received().await;
        if let Some(pool) = pool.upgrade() {
            pool.drain();
            pool.stop();
            pool.end();
        }
        runtime.stop_asking().await;
        // The thread that reads stdin cannot be woken; everything else has been told.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        runtime.close().await;
        std::process::exit(0);
    });
}
