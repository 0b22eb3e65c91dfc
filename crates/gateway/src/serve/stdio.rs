//! A client on stdin and stdout.

use std::io::{self, BufReader};
use std::sync::Arc;
use std::thread;

use super::child::{ChildServer, Program, read_frames};
use super::frame::Frame;
use super::pipe::Pipe;
use super::session::{ClientSide, Driver, ServerSide, Session};
use super::upstream::{HttpServer, Repeating, Upstream};
use crate::config::Server;
use crate::office::{Office, StartFault};
use crate::record::Book;
use crate::relay::Door;

/// Bytes read from stdin at once.
const READ: usize = 64 * 1024;

/// The client at the other end of stdin and stdout.
pub struct StdioClient {
    pipe: Pipe,
}

impl StdioClient {
    /// Takes stdout. Whatever else writes there breaks the protocol.
    pub fn open() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            pipe: Pipe::new(stdout()?),
        }))
    }

    /// Reads the client's frames into the session until stdin ends.
    pub fn read(session: &Session, max_frame: usize) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(READ, stdin()?);
        read_frames(&mut reader, max_frame, |frame| {
            session.from_client(Door::SESSION, Frame::Lent(frame));
        })
    }
}

impl ClientSide for StdioClient {
    fn send(&self, _door: Door, frame: Frame<'_>, _last: bool) {
        self.pipe.push(frame.bytes());
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
    office: &Office,
    server: &Server,
    program: &Program,
    max_frame: usize,
) -> Result<(), StartFault> {
    let (child, stdout) =
        ChildServer::start(program.clone(), max_frame, false).map_err(fault_of(server))?;
    serve_client(office, server, child.clone(), max_frame, |session| {
        child.attach(session, stdout)
    })
}

/// Serves one client on stdin and stdout, with a server over HTTP, until the client ends. Runs on a thread that may
/// wait, inside a tokio runtime.
pub fn serve_url(
    office: &Office,
    server: &Server,
    at: &Upstream,
    max_frame: usize,
) -> Result<(), StartFault> {
    let upstream = HttpServer::new(at, max_frame, Repeating::Gateway)?;
    serve_client(office, server, upstream.clone(), max_frame, |session| {
        upstream.attach(session);
        Ok(())
    })
}

/// Opens the session, reads the client to its end, ends the session, and waits until what happened in it is written.
fn serve_client(
    office: &Office,
    server: &Server,
    side: Arc<dyn ServerSide>,
    max_frame: usize,
    attach: impl FnOnce(&Arc<Session>) -> io::Result<()>,
) -> Result<(), StartFault> {
    let client = StdioClient::open().map_err(fault_of(server))?;
    let who = office.who(server, "local");
    let book = office.book.clone();
    let (session, driver) = Session::new(server.settings.clone(), who, client, side, book);
    attach(&session).map_err(fault_of(server))?;
    let record = drive(driver).map_err(fault_of(server))?;
    stop_on_signal(&session, office.book.clone());
    if let Err(error) = StdioClient::read(&session, max_frame) {
        tracing::warn!(%error, "the client's messages cannot be read any more");
    }
    session.end();
    let _driver_panicked = record.join();
    Ok(())
}

/// What is said when this server cannot be served.
pub(super) fn fault_of(server: &Server) -> impl FnOnce(io::Error) -> StartFault {
    let server = server.settings.server.clone();
    move |source| StartFault::Program { server, source }
}

/// A thread of its own for the driver, since it may wait for the child to read.
pub(super) fn drive(driver: Driver) -> io::Result<thread::JoinHandle<()>> {
    let runtime = tokio::runtime::Handle::current();
    thread::Builder::new()
        .name("record".to_owned())
        .spawn(move || runtime.block_on(driver.run()))
}

/// SIGTERM and SIGINT: what is held is handed back, then the process ends.
fn stop_on_signal(session: &Arc<Session>, book: Arc<Book>) {
    let session = Arc::downgrade(session);
    tokio::spawn(async move {
        super::stop::signal().await;
        if let Some(session) = session.upgrade() {
            session.drain();
            session.stop();
            session.end();
        }
        // The thread that reads stdin cannot be woken; everything else has been told.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        if let Err(fault) = book.flush().await {
            tracing::error!(%fault, "the record could not be kept");
        }
        std::process::exit(0);
    });
}
