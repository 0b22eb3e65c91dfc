//! A server's connections: their number, and the time that clients have for their requests.
//!
//! At a limit, the connection that has been idle for the longest time after a request is closed; if none is idle, the
//! one whose client has owed its first request, or the rest of a request's body, for the longest time. So clients that
//! send nothing, or half a request, cannot exclude others.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{BoxError, Router};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::Service as _;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::clock;
use super::write_timeout::WriteTimeout;

/// Limits on the connections of one server. The default suits pages on this machine, to which browsers open few
/// connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionBounds {
    /// The most connections at once; more wait to be accepted. Defaults to 256.
    pub connections: usize,
    /// The most connections at once from one address of another machine; more are closed. Unlimited by default.
    pub of_address: usize,
    /// The most connections at once from one address of this machine; more are closed. Unlimited by default.
    pub of_loopback: usize,
    /// The time limit for the head of a request, also of the next one on a kept connection. Defaults to 10 seconds.
    pub head: Duration,
    /// The largest head of a request, in bytes. Defaults to 32 KiB.
    pub head_bytes: usize,
    /// The time limit for the body of a request, from the moment at which it is awaited. Defaults to 30 seconds.
    pub body: Duration,
    /// The time after which a connection is closed if its client reads nothing of what is sent. Defaults to one minute.
    pub unread: Duration,
}

impl Default for ConnectionBounds {
    fn default() -> Self {
        Self {
            connections: 256,
            of_address: usize::MAX,
            of_loopback: usize::MAX,
            head: Duration::from_secs(10),
            head_bytes: 32 * 1024,
            body: Duration::from_secs(30),
            unread: Duration::from_secs(60),
        }
    }
}

impl ConnectionBounds {
    fn of(&self, from: IpAddr) -> usize {
        if from.is_loopback() {
            self.of_loopback
        } else {
            self.of_address
        }
    }
}

/// The pause after a failure to accept, such as when the process has no file descriptors left.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// All connections.
#[derive(Default)]
struct ConnectionTable {
    open: Mutex<OpenConnections>,
    /// A connection ended, or began to wait for its client.
    changed: Notify,
}

#[derive(Default)]
struct OpenConnections {
    /// The last assigned number.
    last: u64,
    by_number: HashMap<u64, ConnectionEntry>,
}

struct ConnectionEntry {
    from: IpAddr,
    /// The message that it waits for; `None` while a request is being handled.
    waits: Option<AwaitedMessage>,
    /// The number of the moment at which it was opened, had answered a request, or got another one after that.
    since: u64,
    close: Arc<Notify>,
}

/// The message for which a connection waits that may be closed for another. The first kind is closed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AwaitedMessage {
    /// A further request: closing loses nothing.
    Next,
    /// The first request, or the rest of a body.
    Message,
}

impl OpenConnections {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Closes the connection that has waited for a further request for the longest time, else the one that has waited
    /// for a message; only of this address if one is given. Returns `false` if none waits for its client.
    fn close_waiting(&mut self, of: Option<IpAddr>) -> bool {
        let waiting = self.by_number.iter().filter_map(|(number, entry)| {
            let is_meant = of.is_none_or(|from| from == entry.from);
            Some((entry.waits?, entry.since, *number)).filter(|_| is_meant)
        });
        let Some((.., number)) = waiting.min() else {
            return false;
        };
        if let Some(entry) = self.by_number.remove(&number) {
            entry.close.notify_one();
        }
        true
    }
}

/// The decision on a new connection.
enum ConnectionAdmission {
    Admitted(CountedConnection),
    /// Every connection is handling a request.
    Full,
    /// This address has too many connections that are handling requests.
    TooMany,
}

/// One counted connection.
struct CountedConnection {
    all: Arc<ConnectionTable>,
    number: u64,
    /// The number of its requests in progress.
    at_work: Arc<AtomicUsize>,
    /// `true` while a request waits for the rest of its body.
    awaits_body: Arc<AtomicBool>,
    /// Notified when it is to be closed for another.
    close: Arc<Notify>,
}

impl ConnectionTable {
    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection; one that waits for its client may be closed for it.
    fn admit(self: &Arc<Self>, from: IpAddr, bounds: &ConnectionBounds) -> ConnectionAdmission {
        let mut open = self.open();
        let of_address = open.by_number.values().filter(|entry| entry.from == from);
        if of_address.count() >= bounds.of(from) && !open.close_waiting(Some(from)) {
            return ConnectionAdmission::TooMany;
        }
        if open.by_number.len() >= bounds.connections && !open.close_waiting(None) {
            return ConnectionAdmission::Full;
        }
        let number = open.next();
        let close = Arc::new(Notify::new());
        let entry = ConnectionEntry {
            from,
            waits: Some(AwaitedMessage::Message),
            since: number,
            close: close.clone(),
        };
        open.by_number.insert(number, entry);
        drop(open);
        ConnectionAdmission::Admitted(CountedConnection {
            all: self.clone(),
            number,
            at_work: Arc::default(),
            awaits_body: Arc::default(),
            close,
        })
    }

    /// Waits until a connection can be counted; `None` if its address has too many.
    async fn admitted(
        self: &Arc<Self>,
        from: IpAddr,
        bounds: &ConnectionBounds,
    ) -> Option<CountedConnection> {
        loop {
            let changed = self.changed.notified();
            match self.admit(from, bounds) {
                ConnectionAdmission::Admitted(connection) => return Some(connection),
                ConnectionAdmission::TooMany => return None,
                ConnectionAdmission::Full => changed.await,
            }
        }
    }

    /// Records that a request is being handled on this connection.
    fn set_at_work(&self, number: u64) {
        let mut open = self.open();
        let now = open.next();
        if let Some(entry) = open.by_number.get_mut(&number)
            && entry.waits.take() == Some(AwaitedMessage::Next)
        {
            entry.since = now;
        }
    }

    /// Records that this connection has answered everything.
    fn set_idle(&self, number: u64) {
        let mut open = self.open();
        let now = open.next();
        if let Some(entry) = open.by_number.get_mut(&number) {
            (entry.waits, entry.since) = (Some(AwaitedMessage::Next), now);
        }
        drop(open);
        self.changed.notify_one();
    }

    /// Records whether the request on this connection waits for its body. Received parts of the body do not reset the
    /// time.
    fn set_awaits_body(&self, number: u64, awaits: bool) {
        let mut open = self.open();
        if let Some(entry) = open.by_number.get_mut(&number)
            && entry.waits != Some(AwaitedMessage::Next)
        {
            entry.waits = awaits.then_some(AwaitedMessage::Message);
        }
        drop(open);
        if awaits {
            self.changed.notify_one();
        }
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.all.open().by_number.remove(&self.number);
        self.all.changed.notify_one();
    }
}

/// A request in progress, until its response is written.
struct AtWork {
    all: Arc<ConnectionTable>,
    number: u64,
    count: Arc<AtomicUsize>,
}

impl AtWork {
    fn begin(connection: &CountedConnection) -> Self {
        connection.at_work.fetch_add(1, Ordering::AcqRel);
        connection.all.set_at_work(connection.number);
        Self {
            all: connection.all.clone(),
            number: connection.number,
            count: connection.at_work.clone(),
        }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all.set_idle(self.number);
        }
    }
}

/// The body of a request that is being received.
struct ArrivingBody {
    body: Incoming,
    all: Arc<ConnectionTable>,
    number: u64,
    awaits: Arc<AtomicBool>,
    time: Duration,
    end: Option<Pin<Box<tokio::time::Sleep>>>,
    /// Set once the time limit has passed.
    is_late: Arc<AtomicBool>,
}

impl ArrivingBody {
    fn go_on(&mut self) {
        if self.awaits.swap(false, Ordering::AcqRel) {
            self.all.set_awaits_body(self.number, false);
        }
    }
}

impl HttpBody for ArrivingBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.go_on();
            return Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)));
        }
        let time = self.time;
        let end = self
            .end
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        if end.as_mut().poll(context).is_ready() {
            self.is_late.store(true, Ordering::Release);
            self.go_on();
            return Poll::Ready(Some(Err(LATE.into())));
        }
        if !self.awaits.swap(true, Ordering::AcqRel) {
            self.all.set_awaits_body(self.number, true);
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ArrivingBody {
    fn drop(&mut self) {
        self.go_on();
    }
}

/// The error for a body that took too long.
const LATE: &str = "the body of this request took too long";

/// The body of a response, whose connection counts as busy while it is written.
struct WrittenBody {
    body: Body,
    _at_work: AtWork,
}

impl HttpBody for WrittenBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Serves `app` on `listener` until `stop` completes, then closes all connections.
///
/// Slow and idle clients are disconnected according to `bounds`. Handlers get the client's address as [`ConnectInfo`]
/// of a [`SocketAddr`].
pub async fn serve(
    listener: TcpListener,
    app: Router,
    bounds: ConnectionBounds,
    stop: impl Future<Output = ()>,
) {
    let all = Arc::new(ConnectionTable::default());
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = async {
            let (stream, from) = listener.accept().await?;
            let admitted = all.admitted(from.ip(), &bounds).await;
            Ok::<_, std::io::Error>(admitted.map(|connection| (stream, from, connection)))
        };
        let accepted = tokio::select! {
            () = &mut stop => return,
            accepted = accepted => accepted,
        };
        // Removes finished tasks from the set.
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok(Some((stream, from, connection))) => {
                let app = App {
                    service: TowerToHyperService::new(app.clone()),
                    from,
                    bounds,
                };
                connections.spawn(serve_one(stream, connection, app));
            }
            Ok(None) => {}
            Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
        }
    }
}

/// Responds that the clock is wrong, without a date.
async fn refuse_for_clock(mut stream: impl AsyncWrite + Unpin) {
    let why = "the clock of the gateway's machine is beyond the year 9999: set it right\n";
    let response = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{why}",
        why.len()
    );
    let written = async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await
    };
    let _the_client_has_left = written.await;
}

async fn serve_one(stream: TcpStream, connection: CountedConnection, app: App) {
    // A short message must not wait for more data; a socket without this option still works.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its delay");
    }
    if clock::is_beyond_dates(clock::now()) {
        tracing::error!(
            "the clock of this machine is beyond the year 9999: no connection can be served until it is set right"
        );
        return refuse_for_clock(stream).await;
    }
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(app.bounds.head)
        .max_buf_size(app.bounds.head_bytes);
    let connection = &connection;
    let service = hyper::service::service_fn(|request: Request<Incoming>| {
        let at_work = AtWork::begin(connection);
        let app = app.clone();
        let is_late = Arc::new(AtomicBool::new(false));
        let request = request.map(|body| {
            Body::new(ArrivingBody {
                body,
                all: connection.all.clone(),
                number: connection.number,
                awaits: connection.awaits_body.clone(),
                time: app.bounds.body,
                end: None,
                is_late: is_late.clone(),
            })
        });
        async move {
            let response = app.respond(request, &is_late).await;
            Ok::<_, Infallible>(response.map(|body| {
                Body::new(WrittenBody {
                    body,
                    _at_work: at_work,
                })
            }))
        }
    });
    let stream = WriteTimeout::new(stream, app.bounds.unread);
    let mut served = pin!(http.serve_connection(TokioIo::new(stream), service));
    // An error only means that the client disconnected.
    tokio::select! {
        biased;
        _ = served.as_mut() => return,
        () = connection.close.notified() => {}
    }
    let awaits_body = connection.awaits_body.load(Ordering::Acquire);
    if connection.at_work.load(Ordering::Acquire) > 0 && !awaits_body {
        // A complete request arrived at that moment: it is the last.
        served.as_mut().graceful_shutdown();
        let _ = served.await;
    }
}

/// The application of one connection.
#[derive(Clone)]
struct App {
    service: TowerToHyperService<Router>,
    from: SocketAddr,
    bounds: ConnectionBounds,
}

impl App {
    async fn respond(&self, mut request: Request<Body>, is_late: &AtomicBool) -> Response {
        request.extensions_mut().insert(ConnectInfo(self.from));
        let last = |status: StatusCode, why: String| {
            let mut refused = (status, why).into_response();
            let close = HeaderValue::from_static("close");
            refused.headers_mut().insert(header::CONNECTION, close);
            refused
        };
        if head_length(&request) > self.bounds.head_bytes {
            let why = "the head of this request is too long\n".to_owned();
            return last(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why);
        }
        let Ok(response) = self.service.call(request).await;
        // A handler knows only that a body failed, and not why.
        if is_late.load(Ordering::Acquire) && !response.status().is_success() {
            return last(StatusCode::REQUEST_TIMEOUT, format!("{LATE}\n"));
        }
        response
    }
}

/// Returns the number of bytes in a request's head that count towards the limit; reads from the network are limited
/// only in steps.
fn head_length<B>(request: &Request<B>) -> usize {
    let target = request.uri().path_and_query();
    let target = target.map_or(0, |target| target.as_str().len());
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    request.method().as_str().len() + target + headers.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";

    async fn served(bounds: ConnectionBounds) -> SocketAddr {
        let app = Router::new().route("/", get(|| async { "here" }));
        serving(bounds, app).await
    }

    async fn serving(bounds: ConnectionBounds, app: Router) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, app, bounds, std::future::pending()));
        at
    }

    async fn rest(mut stream: TcpStream) -> String {
        let mut said = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut said));
        // A connection that is closed for another may be reset.
        let _ = read.await.expect("the connection ends");
        String::from_utf8(said).unwrap()
    }

    async fn asked(at: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(at).await.unwrap();
        // A peer may respond and close before all was written.
        let _ = stream.write_all(request).await;
        rest(stream).await
    }

    #[tokio::test]
    async fn a_head_that_does_not_come_ends_the_connection() {
        let head = Duration::from_millis(50);
        let at = served(ConnectionBounds {
            head,
            ..ConnectionBounds::default()
        })
        .await;
        let said = asked(at, b"GET / HTTP/1.1\r\nHost: ").await;
        assert!(!said.contains("here"), "{said}");
    }

    #[tokio::test]
    async fn a_head_has_so_many_bytes_and_no_more() {
        let head_bytes = 64 * 1024;
        let at = served(ConnectionBounds {
            head_bytes,
            ..ConnectionBounds::default()
        })
        .await;
        let head = |length: usize| {
            let long = "x".repeat(length);
            format!("GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\nX-Long: {long}\r\n\r\n")
        };
        let fits = asked(at, head(head_bytes - 200).as_bytes()).await;
        assert!(fits.ends_with("here"), "{fits}");
        for length in [head_bytes, 100_000, 1_000_000] {
            let said = asked(at, head(length).as_bytes()).await;
            assert!(!said.contains("200 OK"), "{length}: {said}");
        }
    }

    #[tokio::test]
    async fn idle_connections_keep_nobody_out() {
        for bounds in [
            ConnectionBounds {
                connections: 2,
                ..ConnectionBounds::default()
            },
            ConnectionBounds {
                of_loopback: 2,
                ..ConnectionBounds::default()
            },
        ] {
            let at = served(bounds).await;
            let mut idle = Vec::new();
            for count in 0..10 {
                let mut stream = TcpStream::connect(at).await.unwrap();
                if count % 2 == 0 {
                    stream.write_all(b"GET / HTT").await.unwrap();
                }
                idle.push(stream);
                assert!(asked(at, REQUEST).await.ends_with("here"));
            }
            let first = idle.remove(0);
            assert_eq!(
                rest(first).await,
                "",
                "the one that was idle longest is closed"
            );
        }
    }

    fn taking() -> Router {
        let take = axum::routing::post(|body: Bytes| async move { format!("took {}", body.len()) });
        Router::new().route("/", get(|| async { "here" }).merge(take))
    }

    const HALF: &[u8] =
        b"POST / HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 4\r\n\r\nab";

    #[tokio::test]
    async fn bodies_that_do_not_come_keep_nobody_out() {
        for bounds in [
            ConnectionBounds {
                connections: 2,
                ..ConnectionBounds::default()
            },
            ConnectionBounds {
                of_loopback: 2,
                ..ConnectionBounds::default()
            },
        ] {
            let at = serving(bounds, taking()).await;
            let mut waiting = Vec::new();
            for _ in 0..10 {
                let mut stream = TcpStream::connect(at).await.unwrap();
                stream.write_all(HALF).await.unwrap();
                waiting.push(stream);
                assert!(asked(at, REQUEST).await.ends_with("here"));
            }
            let first = waiting.remove(0);
            assert_eq!(
                rest(first).await,
                "",
                "the one that waited longest is closed"
            );
            // The last one still has its place.
            let mut last = waiting.pop().unwrap();
            last.write_all(b"cd").await.unwrap();
            assert!(rest(last).await.ends_with("took 4"));
        }
    }

    #[tokio::test]
    async fn a_body_has_so_much_time_and_no_more() {
        let bounds = ConnectionBounds {
            body: Duration::from_millis(50),
            ..ConnectionBounds::default()
        };
        let at = serving(bounds, taking()).await;
        let said = asked(at, HALF).await;
        assert!(
            said.starts_with("HTTP/1.1 408") && said.contains(LATE),
            "{said}"
        );
        let whole =
            "POST / HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 4\r\n\r\nabcd";
        assert!(asked(at, whole.as_bytes()).await.ends_with("took 4"));
    }

    #[test]
    fn a_connection_that_answered_makes_room_first_and_then_the_one_that_owes_most() {
        let all = Arc::new(ConnectionTable::default());
        let bounds = ConnectionBounds {
            connections: 2,
            ..ConnectionBounds::default()
        };
        let admit = || match all.admit([127, 0, 0, 1].into(), &bounds) {
            ConnectionAdmission::Admitted(connection) => Some(connection),
            ConnectionAdmission::Full | ConnectionAdmission::TooMany => None,
        };
        let is_open =
            |connection: &CountedConnection| all.open().by_number.contains_key(&connection.number);
        let (slow, kept) = (admit().unwrap(), admit().unwrap());
        let slow_at_work = AtWork::begin(&slow);
        all.set_awaits_body(slow.number, true);
        drop(AtWork::begin(&kept));
        let next = admit().unwrap();
        assert!(is_open(&slow) && !is_open(&kept), "nothing was lost");
        // A byte came, and the rest is awaited again.
        all.set_awaits_body(slow.number, false);
        all.set_awaits_body(slow.number, true);
        let last = admit().unwrap();
        assert!(!is_open(&slow) && is_open(&next) && is_open(&last));
        let at_work = (AtWork::begin(&next), AtWork::begin(&last));
        assert!(admit().is_none(), "requests at work are not closed");
        drop((slow_at_work, at_work));
        // A connection that has been open for long has not owed anything for long.
        let next_at_work = AtWork::begin(&next);
        all.set_awaits_body(next.number, true);
        drop(last);
        let (_young, _) = (admit().unwrap(), admit().unwrap());
        assert!(!is_open(&next));
        drop(next_at_work);
    }

    #[tokio::test]
    async fn a_connection_with_a_request_at_work_is_not_closed_for_another() {
        let at_work = Arc::new(Notify::new());
        let go_on = Arc::new(Notify::new());
        let (told, waits) = (at_work.clone(), go_on.clone());
        let slow = get(move || async move {
            told.notify_one();
            waits.notified().await;
            "slow"
        });
        let app = Router::new()
            .route("/", get(|| async { "here" }))
            .route("/slow", slow);
        let bounds = ConnectionBounds {
            connections: 1,
            ..ConnectionBounds::default()
        };
        let at = serving(bounds, app).await;
        let request = b"GET /slow HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
        let first = tokio::spawn(asked(at, request));
        at_work.notified().await;
        let second = tokio::spawn(asked(at, REQUEST));
        tokio::task::yield_now().await;
        go_on.notify_one();
        assert!(first.await.unwrap().ends_with("slow"));
        assert!(second.await.unwrap().ends_with("here"));
    }

    #[test]
    fn a_machine_has_so_many_connections_with_requests_at_work() {
        let all = Arc::new(ConnectionTable::default());
        let bounds = ConnectionBounds {
            connections: 3,
            of_address: 1,
            of_loopback: 2,
            ..ConnectionBounds::default()
        };
        let admit = |from: &str| match all.admit(from.parse().unwrap(), &bounds) {
            ConnectionAdmission::Admitted(connection) => Ok(connection),
            ConnectionAdmission::Full => Err("full"),
            ConnectionAdmission::TooMany => Err("too many"),
        };
        let (far, here) = ("192.0.2.1", "127.0.0.1");
        let first = admit(far).ok().unwrap();
        let first_at_work = AtWork::begin(&first);
        assert_eq!(admit(far).err(), Some("too many"));
        let both = [admit(here).ok().unwrap(), admit(here).ok().unwrap()];
        let at_work = both.each_ref().map(AtWork::begin);
        assert_eq!(admit(here).err(), Some("too many"));
        assert_eq!(admit("192.0.2.2").err(), Some("full"));
        drop((first_at_work, at_work));
        assert!(admit("192.0.2.2").is_ok(), "one that is idle made room");
        drop((first, both));
        assert!(all.open().by_number.is_empty());
    }
}
